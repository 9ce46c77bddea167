//! Decided, told, outstanding, imputed, late, overtime: in all and action by action.

use debora::measure::answer::row_for_each;
use debora::measure::words::whole;
use maud::{Markup, html};

use super::shape::Shape;
use super::view::ExperimentView;
use crate::document;
use crate::document::HtmlTable;
use crate::reading::{ActionCounts, OutcomeCounts};

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
    let mut rows: Vec<(String, &[(&ActionCounts, f64)])> = actions
        .iter()
        .map(|action| (action.0.name.clone(), std::slice::from_ref(action)))
        .collect();
    if !others.is_empty() {
        let name = format!("{} others", whole(others.len() as u64));
        rows.push((name, &others));
    }
    let table = row_for_each(rows)
        .words("Action", |(name, _)| name.clone())
        .probabilities("Probability", |(_, actions)| {
            let played: f64 = actions.iter().map(|(_, share)| share).sum();
            played.clamp(0.0, 1.0)
        })
        .numbers("Decided", |(_, actions)| {
            sum(actions, |action| action.decided)
        })
        .numbers("Told", |(_, actions)| sum(actions, |action| action.told))
        .numbers("Outstanding", |(_, actions)| {
            sum(actions, ActionCounts::outstanding)
        })
        .numbers("Imputed", |(_, actions)| {
            sum(actions, |action| action.imputed)
        });
    html! {
        (HtmlTable::cards("The strategy and the counts of each action", table.table()))
        p.small { "Decided = told + imputed + outstanding. " (shape.data("counts")) }
    }
}

fn sum(actions: &[(&ActionCounts, f64)], count: fn(&ActionCounts) -> u64) -> u64 {
    actions.iter().map(|(action, _)| count(action)).sum()
}
