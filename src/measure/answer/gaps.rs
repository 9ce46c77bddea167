//! What a horizon sees of a world, in words.

use crate::measure::WorldGap;
use crate::measure::answer::{AnswerCell, AnswerTable, row_for_each};
use crate::measure::words::{amount, listed, whole};

/// How many differences get a sentence, the hardest to see first: all of them are in the JSON document.
const SENTENCES: usize = 2;

/// How many are shown in a table.
const ROWS: usize = 12;

/// What this horizon is not sure to see; nothing of a blind plan, whose warning says more.
pub(super) fn sentences(gaps: &[WorldGap]) -> Vec<String> {
    if gaps.iter().any(|gap| gap.sight.is_none()) {
        return Vec::new();
    }
    let unseen: Vec<&WorldGap> = gaps.iter().filter(|gap| !gap.seen).collect();
    let mut sentences: Vec<String> = unseen
        .iter()
        .take(SENTENCES)
        .map(|gap| not_seen(gap))
        .collect();
    if unseen.len() > SENTENCES {
        sentences.push(format!(
            "Of {} differences that matter in this world, {} are not sure to be seen.",
            whole(gaps.len() as u64),
            whole(unseen.len() as u64)
        ));
    }
    if let ([], [hardest, ..]) = (&*unseen, gaps) {
        sentences.push(all_seen(hardest));
    }
    sentences
}

/// Who differs from what.
fn subject(gap: &WorldGap) -> String {
    match &*gap.actions {
        [action] => format!("{} of {action} differs from its threshold", gap.quantity),
        actions => format!("{} differ in {}", listed(actions), gap.quantity),
    }
}

fn not_seen(gap: &WorldGap) -> String {
    let would = match gap.horizon_needed {
        Some(horizon) => format!("{} rounds would be", whole(horizon)),
        None => "no horizon up to 2^53 would be".to_owned(),
    };
    format!(
        "{} by {}; this horizon sees {}: it is not sure to tell them apart, {would}.",
        subject(gap),
        amount(gap.gap),
        amount(gap.sight.unwrap_or(f64::INFINITY))
    )
}

fn all_seen(hardest: &WorldGap) -> String {
    format!(
        "This horizon sees all that matters in this world; the hardest: {} by {}, and it sees {}.",
        subject(hardest),
        amount(hardest.gap),
        amount(hardest.sight.unwrap_or(f64::INFINITY))
    )
}

/// The differences with what is seen of them.
pub(super) fn table(gaps: &[WorldGap]) -> AnswerTable {
    row_for_each(gaps.iter().take(ROWS))
        .words("between", |gap| between(gap))
        .numbers("in", |gap| &*gap.quantity)
        .numbers("gap", |gap| gap.gap)
        .numbers("sees", |gap| AnswerCell::or_none(gap.sight))
        .numbers("rounds to see it", |gap| rounds(gap))
        .table()
}

fn between(gap: &WorldGap) -> String {
    match &*gap.actions {
        [action] => format!("{action}, threshold"),
        actions => actions.join(", "),
    }
}

fn rounds(gap: &WorldGap) -> AnswerCell {
    match (gap.seen, gap.horizon_needed) {
        (true, _) => "seen".into(),
        (false, Some(horizon)) => horizon.into(),
        (false, None) => "none".into(),
    }
}
