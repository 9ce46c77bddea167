//! Each limit beside what was spent: in all rounds, in the last epoch, in overtime.

use debora::Policy;
use debora::measure::words::amount;
use maud::{Markup, html};

use super::means::{axis, between, observed, reach};
use super::parts;
use super::shape::Shape;
use super::view::ExperimentView;
use crate::chart::{Chart, Mark};
use crate::reading::LimitState;

/// With more limits than this, the table says it all.
const SENTENCES_MAX: usize = 4;

/// The section; empty without limits.
pub fn section(view: &ExperimentView, shape: &Shape) -> Markup {
    let reading = &view.reading;
    let limits = reading.limits();
    let table = html! {
        table.cards {
            thead {
                tr {
                    th scope="col" { "Cost" } th.number scope="col" { "Threshold" } th.number scope="col" { "Average" }
                    th.number scope="col" { "Last epoch" } th.number scope="col" { "Overtime" } th scope="col" { "Kept?" }
                    th.drawn scope="col" { "Average and interval of the mean" }
                }
            }
            tbody { @for limit in limits { (row(limit)) } }
        }
    };
    html! {
        @if !limits.is_empty() {
            h2 { "Were the limits kept?" }
            (parts::scroll("Limits", &table))
            // Under policy free a threshold is stated, and decides nothing.
            @if reading.policy() == Policy::Free { p.small { "Policy free does not try to keep limits." } }
            @for limit in limits.iter().take(SENTENCES_MAX) { (sentences(limit, reading.progress.epoch)) }
            p.small {
                "The interval is of the mean of what was played; it holds at every look, but for a chance of one in a hundred. "
                (shape.data("limits"))
            }
        }
    }
}

fn row(limit: &LimitState) -> Markup {
    let average = |value: Option<f64>| value.map_or("none".into(), amount);
    let [class, word] = parts::verdict(limit.all.verdict);
    html! {
        tr {
            th scope="row" { bdi { (limit.name) } }
            td.number data-label="Threshold" { (amount(limit.threshold)) }
            td.number data-label="Average" { (average(limit.all.realised)) }
            td.number data-label="Last epoch" { (average(limit.last_epoch.realised)) }
            td.number data-label="Overtime" { (average(limit.realised_overtime)) }
            td data-label="Kept?" { (parts::badge(class, word)) }
            td.drawn { (strip(limit)) }
        }
    }
}

fn strip(limit: &LimitState) -> Markup {
    let all = &limit.all;
    // A scale each, as costs have units of their own.
    let scale = reach([all.interval.low, all.interval.high, limit.threshold].into_iter());
    let mut marks = observed(all.realised, &all.interval);
    marks.push(Mark::Upright {
        class: "threshold".into(),
        x: limit.threshold,
    });
    let average = all.realised.map_or("no outcome".into(), amount);
    let chart = Chart {
        label: format!(
            "{}: average {average}, mean {}; threshold {}",
            limit.name,
            between(&all.interval),
            amount(limit.threshold)
        ),
        marks,
        ..axis(scale)
    };
    chart.strip()
}

fn sentences(limit: &LimitState, epoch: u64) -> Markup {
    html! {
        p { (parts::sentence(&limit.all.sentence)) }
        // An epoch that has just begun has nothing to say.
        @if limit.last_epoch.count > 0 { p.small { "In epoch " (epoch) ": " (parts::sentence(&limit.last_epoch.sentence)) } }
        @if let Some(average) = limit.realised_overtime {
            p.small { "Overtime decisions cost " (amount(average)) " of " bdi { (limit.name) } " on average." }
        }
    }
}
