//! What `debora sweep` says.

use crate::measure::answer::pairs::broken;
use crate::measure::answer::{Answer, AnswerTable, Sentence, Tone};
use crate::measure::words::{amount, counted, percent};
use crate::measure::{DEBORA, Swept};

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
    let mut heading: Vec<&str> = swept.names.iter().map(|name| &**name).collect();
    heading.extend(["player", "identical", "interval", "promised", "regret"]);
    if has_costs {
        heading.extend(["violation", "unsafe"]);
    }
    let mut rows = Vec::new();
    for point in &swept.points {
        for row in &point.rows {
            let summary = &row.summary;
            let mut cells = point.values.clone();
            let [low, high] = summary
                .interval
                .map(|end| percent(end).trim_end_matches(" %").to_owned());
            cells.extend([
                row.player.clone(),
                percent(summary.identical_rate),
                format!("{low} to {high}"),
                // Rivals promise nothing of the kind.
                if row.player == DEBORA {
                    percent(summary.promised)
                } else {
                    String::new()
                },
                amount(row.regret()),
            ]);
            if has_costs {
                cells.push(amount(summary.violation.spread.mean));
                cells.push(percent(summary.unsafe_runs as f64 / summary.runs as f64));
            }
            rows.push(cells);
        }
    }
    AnswerTable::of_numbers(heading, rows)
}
