//! The seal for people: the same sentences and tables on a terminal and on paper.

use debora::measure::answer::{Answer, AnswerCell, AnswerTable, Sentence, row_for_each};

use super::between;
use crate::log::seal::Seal;

/// What it is for.
const PURPOSE: &str = "What is fixed before the first decision. Publish it before, or keep it where the operator of the service \
    cannot change it: whoever has it can later tell whether this was the experiment that was run.";

/// What its table of looks means.
const LOOKS: &str = "Once all actions have as many outcomes, and never before the round beside it, differences in reward of \
    the gap's size are seen; the width is half an interval.";

/// What it is called.
pub fn title(seal: &Seal) -> String {
    let named = seal.name.as_deref().or(seal.id.as_deref());
    format!("Seal of {}", named.unwrap_or("an experiment"))
}

/// What it says.
pub fn answer(seal: &Seal) -> Answer {
    let mut answer = Answer::default();
    answer.paragraph([Sentence::plain(PURPOSE)]);
    answer.heading("What is promised");
    answer.list(&seal.promised);
    answer.heading("What the promises rest on");
    answer.list(&seal.premises);
    answer.table(quantities(seal));
    answer.heading("What will be seen, and when");
    if seal.looks.is_empty() {
        let none = "Nothing is ever compared: the horizon is too short.";
        answer.paragraph([Sentence::plain(none)]);
    } else {
        answer.table(looks(seal));
        answer.paragraph([Sentence::plain(LOOKS)]);
    }
    answer.heading("What it commits to");
    answer.paragraph([Sentence::plain(seal.commitment)]);
    answer.facts(hashes(seal));
    answer.heading("The spec");
    answer.quotation(&seal.spec);
    answer
}

fn hashes(seal: &Seal) -> [(&'static str, AnswerCell); 7] {
    let code = |text: &str| AnswerCell::Code(text.to_owned());
    [
        ("Experiment", seal.id.as_deref().map(code).into()),
        ("Created", seal.created.as_deref().map(code).into()),
        ("Head", seal.head.as_deref().map(code).into()),
        ("Key hash", seal.key_hash.as_deref().map(code).into()),
        ("SHA-256 of the spec", code(&seal.spec_hash)),
        ("Fingerprint without the key", code(&seal.fingerprint)),
        ("Program", code(seal.program)),
    ]
}

fn quantities(seal: &Seal) -> AnswerTable {
    row_for_each(&seal.quantities)
        .words("quantity", |quantity| &quantity.name)
        .numbers("range", |quantity| between(quantity.range))
        .numbers("threshold", |quantity| quantity.threshold)
        .words("which is", |quantity| quantity.promise.unwrap_or_default())
        .table()
}

fn looks(seal: &Seal) -> AnswerTable {
    let mut table = row_for_each(&seal.looks)
        .words("outcomes of each", |look| look.samples)
        .numbers("round", |look| look.round)
        .numbers("gap", |look| look.gap);
    let estimated = seal.looks.first().map_or(0, |look| look.widths.len());
    for (place, quantity) in seal.quantities.iter().take(estimated).enumerate() {
        table = table.numbers(format!("width of {}", quantity.name), |look| {
            look.widths[place]
        });
    }
    table.table()
}
