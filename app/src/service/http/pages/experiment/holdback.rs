//! What the experiment gains over those who are held back: in words, then in numbers.

use debora::measure::words::{amount, whole};
use maud::{Markup, html};

use super::means::between;
use super::parts;
use super::view::ExperimentView;
use crate::reading::{LiftState, SideMean};

/// With more quantities than this, the table says it all.
const SENTENCES_MAX: usize = 4;

/// The section; empty if nothing is held back.
pub fn section(view: &ExperimentView) -> Markup {
    let Some(holdback) = view.reading.holdback() else {
        return html! {};
    };
    let table = html! {
        table.cards {
            thead {
                tr {
                    th scope="col" { "Quantity" } th.number scope="col" { "Experiment" } th.number scope="col" { "Held back" }
                    th.number scope="col" { "Difference" } th.number scope="col" { "Interval" }
                }
            }
            tbody { @for lift in &holdback.lifts { (row(lift)) } }
        }
    };
    html! {
        h2 { "What does it gain?" }
        @for lift in holdback.lifts.iter().take(SENTENCES_MAX) { p { (parts::sentence(&lift.sentence)) } }
        (parts::scroll("What the experiment gains", &table))
        p.small { (parts::sentence(&holdback.sentence)) }
    }
}

fn row(lift: &LiftState) -> Markup {
    html! {
        tr {
            th scope="row" { bdi { (lift.quantity) } }
            td.number data-label="Experiment" { (side(lift.experiment)) }
            td.number data-label="Held back" { (side(lift.holdback)) }
            td.number data-label="Difference" { (lift.lift.map_or("none".into(), amount)) }
            td.number data-label="Interval" { (between(&lift.interval)) }
        }
    }
}

/// A mean, and of how many.
fn side(side: SideMean) -> String {
    match side.mean {
        Some(mean) => format!("{} ({} told)", amount(mean), whole(side.count)),
        None => "none".into(),
    }
}
