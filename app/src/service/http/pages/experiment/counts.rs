//! Decided, told, outstanding, imputed, late, overtime: in all and action by action.

use debora::measure::words::whole;
use maud::{Markup, html};

use super::parts;
use super::shape::Shape;
use super::view::ExperimentView;
use crate::document;
use crate::reading::{ActionCounts, OutcomeCounts, share};

/// The most actions in the table: the rest is one row, and in the data.
const ROWS_MAX: usize = 24;

/// The numbers of a whole experiment.
pub fn numbers(outcomes: OutcomeCounts) -> Markup {
    document::numbers(outcomes.named())
}

/// The table of actions, with the strategy that is played now or was last.
pub fn table(view: &ExperimentView, shape: &Shape) -> Markup {
    let shares = view.reading.shares().all().iter();
    let counts = view.reading.actions();
    let shares = shares.map(|share| share.probability);
    let mut actions: Vec<(&ActionCounts, f64)> = counts.iter().zip(shares).collect();
    let all = actions.len();
    if all > ROWS_MAX {
        // Few stay in the order of the spec; of many those that are played come first.
        actions.sort_by(|one, other| {
            let by_share = other.1.total_cmp(&one.1);
            by_share.then(other.0.decided.cmp(&one.0.decided))
        });
    }
    let others = actions.split_off(all.min(ROWS_MAX));
    let table = html! {
        table.cards {
            thead {
                tr {
                    th scope="col" { "Action" } th.number scope="col" { "Probability" } th.number scope="col" { "Decided" }
                    th.number scope="col" { "Told" } th.number scope="col" { "Outstanding" } th.number scope="col" { "Imputed" }
                }
            }
            tbody {
                @for action in &actions {
                    (row(&html! { bdi { (action.0.name) } }, std::slice::from_ref(action)))
                }
                @if !others.is_empty() {
                    (row(&html! { (whole(others.len() as u64)) " others" }, &others))
                }
            }
        }
    };
    html! {
        (parts::scroll("The strategy and the counts of each action", &table))
        p.small { "Decided = told + imputed + outstanding. " (shape.data("counts")) }
    }
}

fn row(name: &Markup, actions: &[(&ActionCounts, f64)]) -> Markup {
    let sum = |count: fn(&ActionCounts) -> u64| -> u64 {
        actions.iter().map(|(action, _)| count(action)).sum()
    };
    let played: f64 = actions.iter().map(|(_, share)| share).sum();
    html! {
        tr {
            th scope="row" { (name) }
            td.number data-label="Probability" { (share(played.clamp(0.0, 1.0))) }
            td.number data-label="Decided" { (whole(sum(|action| action.decided))) }
            td.number data-label="Told" { (whole(sum(|action| action.told))) }
            td.number data-label="Outstanding" { (whole(sum(ActionCounts::outstanding))) }
            td.number data-label="Imputed" { (whole(sum(|action| action.imputed))) }
        }
    }
}
