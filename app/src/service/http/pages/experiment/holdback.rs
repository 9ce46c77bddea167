//! What the experiment gains over those who are held back: in words, then in numbers.

use debora::measure::answer::{AnswerCell, row_for_each};
use debora::measure::words::{amount, whole};
use maud::{Markup, html};

use super::means::between;
use super::view::ExperimentView;
use crate::document::{self, HtmlTable};
use crate::reading::SideMean;

/// With more quantities than this, the table says it all.
const SENTENCES_MAX: usize = 4;

/// The section; empty if nothing is held back.
pub fn section(view: &ExperimentView) -> Markup {
    let Some(holdback) = view.reading.holdback() else {
        return html! {};
    };
    let table = row_for_each(&holdback.lifts)
        .words("Quantity", |lift| &lift.quantity)
        .numbers("Experiment", |lift| side(lift.experiment))
        .numbers("Held back", |lift| side(lift.holdback))
        .numbers("Difference", |lift| AnswerCell::or_none(lift.lift))
        .numbers("Interval", |lift| between(&lift.interval));
    html! {
        h2 { "What does it gain?" }
        @for lift in holdback.lifts.iter().take(SENTENCES_MAX) { p { (document::sentence(&lift.sentence)) } }
        (HtmlTable::cards("What the experiment gains", table.table()))
        p.small { (document::sentence(&holdback.sentence)) }
    }
}

/// A mean, and of how many.
fn side(side: SideMean) -> String {
    match side.mean {
        Some(mean) => format!("{} ({} told)", amount(mean), whole(side.count)),
        None => "none".into(),
    }
}
