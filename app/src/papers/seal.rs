//! The seal for people: the same sentences and tables on a terminal and on paper.

use debora::measure::answer::{Align, Answer, AnswerTable, Sentence, Tone};
use debora::measure::words::{amount, whole};
use maud::{Markup, html};

use super::{between, columns, facts, sentences};
use crate::log::seal::{PlannedLook, Seal, SealedQuantity};
use crate::report::html::table;

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

/// What a terminal shows.
pub fn answer(seal: &Seal) -> Answer {
    let mut answer = Answer::default();
    answer.paragraph([
        Sentence::of(Tone::Strong, title(seal)),
        Sentence::plain(PURPOSE),
    ]);
    answer.paragraph(seal.promised.iter().map(Sentence::plain));
    answer.paragraph(seal.premises.iter().map(Sentence::plain));
    answer.table(quantities(seal));
    if !seal.looks.is_empty() {
        answer.table(looks(seal));
        answer.paragraph([Sentence::plain(LOOKS)]);
    }
    answer.paragraph([Sentence::plain(seal.commitment)]);
    let named = hashes(seal).into_iter();
    let shown = named.filter_map(|(name, value)| Some((name, value?)));
    answer.paragraph(
        shown.map(|(name, value)| Sentence::plain(format!("{name} ")).and(Tone::Faint, value)),
    );
    answer
}

/// What a page shows.
pub fn content(seal: &Seal) -> Markup {
    html! {
        p.first { (PURPOSE) }
        h2 { "What is promised" }
        (sentences(&seal.promised))
        h2 { "What the promises rest on" }
        (sentences(&seal.premises))
        (table(&quantities(seal)))
        h2 { "What will be seen, and when" }
        @if seal.looks.is_empty() {
            p { "Nothing is ever compared: the horizon is too short." }
        } @else {
            (table(&looks(seal)))
            p.small { (LOOKS) }
        }
        h2 { "What it commits to" }
        p { (seal.commitment) }
        (facts(&hashes(seal)))
        h2 { "The spec" }
        pre { (seal.spec) }
    }
}

fn hashes(seal: &Seal) -> Vec<(&'static str, Option<&str>)> {
    vec![
        ("Experiment", seal.id.as_deref()),
        ("Created", seal.created.as_deref()),
        ("Head", seal.head.as_deref()),
        ("Key hash", seal.key_hash.as_deref()),
        ("SHA-256 of the spec", Some(&seal.spec_hash)),
        ("Fingerprint without the key", Some(&seal.fingerprint)),
        ("Program", Some(seal.program)),
    ]
}

fn quantities(seal: &Seal) -> AnswerTable {
    let row = |quantity: &SealedQuantity| {
        vec![
            quantity.name.clone(),
            between(quantity.range),
            quantity.mean.map_or("anywhere in it".into(), between),
            quantity.threshold.map(amount).unwrap_or_default(),
            quantity.promise.unwrap_or_default().to_owned(),
        ]
    };
    let rows = seal.quantities.iter().map(row).collect();
    let heading = [
        ("quantity", Align::Left),
        ("range", Align::Right),
        ("means", Align::Right),
        ("threshold", Align::Right),
        ("which is", Align::Left),
    ];
    columns(heading, rows)
}

fn looks(seal: &Seal) -> AnswerTable {
    let estimated = seal.looks.first().map_or(0, |look| look.widths.len());
    let names = seal.quantities.iter().take(estimated);
    let widths = names.map(|quantity| format!("width of {}", quantity.name));
    let heading = ["outcomes of each", "round", "gap"].map(str::to_owned);
    let row = |look: &PlannedLook| {
        let counts = [whole(look.samples), whole(look.round), amount(look.gap)];
        let widths = look.widths.iter().map(|width| amount(*width));
        counts.into_iter().chain(widths).collect()
    };
    let rows = seal.looks.iter().map(row).collect();
    AnswerTable::of_numbers(heading.into_iter().chain(widths), rows)
}
