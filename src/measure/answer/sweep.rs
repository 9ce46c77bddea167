//! What `debora sweep` says.

use crate::measure::answer::pairs::{broken, interval};
use crate::measure::answer::{Answer, AnswerTable, Sentence, Tone, row_for_each};
use crate::measure::words::counted;
use crate::measure::{DEBORA, Swept, SweptPoint};

/// The most warnings that are shown: a grid has many points with the same one.
const WARNINGS_MAX: usize = 5;

/// A whole sweep.
pub fn swept(swept: &Swept) -> Answer {
    let mut answer = Answer::with_warnings(&warnings(swept));
    let mut sentences = Vec::new();
    for point in &swept.points {
        for one in &point.broken {
            let at = Sentence::of(Tone::Alarm, format!("{}: ", place(swept, &point.values)));
            sentences.push(Sentence([at.0, broken(one).0].concat()));
        }
    }
    let pairs = swept
        .points
        .first()
        .map_or(0, |point| point.rows[0].summary.pairs);
    let has_costs = swept.points.iter().any(|point| point.has_costs);
    sentences.push(Sentence::plain(format!(
        "{} of {} each, with the same keys and worlds at every point; {} in all rounds together, on average.",
        counted(swept.points.len() as u64, "point", "points"),
        counted(pairs, "pair", "pairs"),
        if has_costs { "regret and violation" } else { "regret" },
    )));
    answer.paragraph(sentences);
    answer.table(table(swept));
    answer
}

/// Each once, with the first point that it is about.
fn warnings(swept: &Swept) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut left = 0;
    for point in &swept.points {
        for warning in &point.warnings {
            if shown.len() == WARNINGS_MAX {
                left += 1;
            } else {
                shown.push(format!("{}: {warning}", place(swept, &point.values)));
            }
        }
    }
    if left > 0 {
        shown.push(format!(
            "{} more; sweep.json has them all",
            counted(left, "warning", "warnings")
        ));
    }
    shown
}

fn place(swept: &Swept, values: &[String]) -> String {
    let parts = swept.names.iter().zip(values);
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    parts.join(", ")
}

fn table(swept: &Swept) -> AnswerTable {
    let has_costs = swept.points.iter().any(|point| point.has_costs);
    let rows = swept
        .points
        .iter()
        .flat_map(|point| point.rows.iter().map(move |row| (point, row)));
    let mut table = row_for_each(rows);
    for (place, name) in swept.names.iter().enumerate() {
        let value = |(point, _): &(&SweptPoint, _)| point.values[place].clone();
        // The first parameter begins the line, and what it leads to lines up on the right.
        table = match place {
            0 => table.words(name, value),
            _ => table.numbers(name, value),
        };
    }
    table
        .numbers("player", |(_, row)| &row.player)
        .shares("identical", |(_, row)| row.summary.identical_rate)
        .numbers("interval", |(_, row)| interval(&row.summary))
        // Rivals promise nothing of the kind.
        .shares("promised", |(_, row)| {
            (row.player == DEBORA).then_some(row.summary.promised)
        })
        .numbers("regret", |(_, row)| row.regret())
        .when(has_costs, |table| {
            table
                .numbers("violation", |(_, row)| row.summary.violation.spread.mean)
                .shares("unsafe", |(_, row)| row.summary.unsafe_share())
        })
        .table()
}
