//! What `debora import` says.

use crate::measure::answer::{Answer, AnswerTable, Sentence, Tone, row_for_each};
use crate::measure::words::{amount, counted, listed, whole};
use crate::spec::{Imported, ImportedAction, ImportedMean, ImportedQuantity};

/// What was read of a recorded test, and what the spec drafted from it says.
pub fn imported(found: &Imported) -> Answer {
    let mut answer = Answer::default();
    answer.paragraph([headline(found)]);
    // Before the means, which they may move.
    answer.paragraph(left_out(found).into_iter().map(Sentence::plain));
    answer.table(means(found));
    answer.note(
        "means, with intervals that hold with probability 99 % each if the rows are independent and the ranges true",
    );
    answer.paragraph(
        found
            .quantities
            .iter()
            .map(|one| Sentence::plain(range(one))),
    );
    answer.paragraph([Sentence::plain(horizon(found))]);
    answer
}

fn headline(found: &Imported) -> Sentence {
    let columns = found.quantities.iter();
    let columns: Vec<String> = columns.map(|one| format!("{:?}", one.column)).collect();
    let rest = format!(
        ": {} of {}, with {}",
        counted(found.rows, "row", "rows"),
        counted(found.actions.len() as u64, "action", "actions"),
        listed(&columns)
    );
    Sentence::of(Tone::Strong, &found.file).and(Tone::Plain, rest)
}

fn left_out(found: &Imported) -> Vec<String> {
    let left_out = &found.left_out;
    if left_out.rows == 0 {
        return vec!["No value is missing.".into()];
    }
    let columns = left_out.columns.iter();
    let columns: Vec<String> = columns
        .map(|(column, rows)| format!("{column:?} in {}", whole(*rows)))
        .collect();
    let mut lines: Vec<String> = left_out.lines.iter().map(u64::to_string).collect();
    let more = left_out.rows - lines.len() as u64;
    if more > 0 {
        lines.push(format!("{} more", whole(more)));
    }
    let mut sentences = vec![
        format!(
            "{} left out, as a value is missing: {}; line {}.",
            counted(left_out.rows, "row is", "rows are"),
            listed(&columns),
            listed(&lines)
        ),
        "If values go missing more often where they would have been large or small, the means below are off.".into(),
    ];
    if !found.empty_actions.is_empty() {
        let names = found.empty_actions.iter().map(|name| format!("{name:?}"));
        let names: Vec<String> = names.collect();
        // Not an error: a variant that was never shown is often left in an export.
        sentences.push(format!(
            "The spec does not have {}, which has no complete row.",
            listed(&names)
        ));
    }
    sentences
}

fn means(found: &Imported) -> AnswerTable {
    let share =
        |action: &ImportedAction| action.left_out as f64 / (action.rows + action.left_out) as f64;
    let mut table = row_for_each(&found.actions)
        .words("action", |action| &action.name)
        .numbers("rows", |action| action.rows)
        .shares("left out", |action| share(action));
    for (place, quantity) in found.quantities.iter().enumerate() {
        table = table.numbers(&quantity.name, |action| mean(&action.means[place]));
    }
    table.table()
}

fn mean(found: &ImportedMean) -> String {
    let [low, high] = found.interval.map(amount);
    format!("{} ({low} to {high})", amount(found.mean))
}

fn range(quantity: &ImportedQuantity) -> String {
    let [least, largest] = quantity.seen.map(amount);
    let [low, high] = quantity.range.map(amount);
    let name = &quantity.name;
    let range = format!(
        "Check that {name} always lies from {low} to {high}: {least} to {largest} was seen, and a range must hold whatever can come"
    );
    match quantity.threshold {
        None => range + ".",
        Some(_) => {
            format!("{range}. Put your own limit on {name} into the spec: {high} excludes nothing.")
        }
    }
}

fn horizon(found: &Imported) -> String {
    let horizon = whole(found.horizon);
    if found.rows_are_blind {
        return format!(
            "The horizon is {horizon} rounds: with as many as there are rows the plan would be blind."
        );
    }
    format!("The horizon is {horizon} rounds, as many as there are rows.")
}
