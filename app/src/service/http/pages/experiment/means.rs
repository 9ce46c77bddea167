//! What was observed beside the estimates that replicate: a table for each quantity, whose rows are drawn on one scale.

use debora::measure::words::{amount, percent, whole};
use debora::record::{Interval, Kind};
use maud::{Markup, html};

use super::parts;
use super::shape::Shape;
use super::view::ExperimentView;
use crate::chart::{Axis, Chart, Mark, legend};
use crate::reading::{ActionMean, METHODS, Reading};

/// The most rows of all tables together, and of one: the rest is in the data.
const ROWS_MAX: usize = 240;
const ROWS_OF_ONE_MAX: usize = 24;

/// How far a scale reaches beyond what is on it, so that nothing is cut in half.
const MARGIN: f64 = 0.04;

/// The section.
pub fn section(view: &ExperimentView, shape: &Shape) -> Markup {
    let reading = &view.reading;
    let quantities = quantities(reading);
    let rows = (ROWS_MAX / quantities.len().max(1)).clamp(4, ROWS_OF_ONE_MAX);
    html! {
        h2 { "What was observed, and what decides" }
        @if reading.progress.rounds() == 0 {
            p { "Nothing yet: no round is decided." }
        } @else {
            p.small {
                "Observed are the plain means of what was told; each interval holds its true mean at every look, but for a chance of "
                (percent(METHODS.miss)) ". Estimates are rounded to the middle of a cell, so that another run with the \
                 same key is likely to find the same; all their intervals, estimate ± width, hold together with probability "
                (percent(1.0 - reading.problem().delta())) ". "
                (shape.data("means"))
            }
            @if reading.kind() == Kind::Commit {
                p { "No mean is estimated: a run that commits needs none, and only its leader is still played." }
            }
            @for (name, threshold) in &quantities { (quantity(reading, name, *threshold, rows)) }
            (key(reading))
        }
    }
}

/// The quantities in the spec's order, with their thresholds.
fn quantities(reading: &Reading) -> Vec<(&str, Option<f64>)> {
    let of_first_action = reading.means().iter().take_while(|mean| mean.action == 0);
    of_first_action
        .map(|mean| (&*mean.quantity, mean.threshold))
        .collect()
}

fn quantity(reading: &Reading, name: &str, threshold: Option<f64>, rows: usize) -> Markup {
    let mut means: Vec<&ActionMean> = reading.means_of(name).collect();
    let all = means.len();
    if all > rows {
        // What was played most is known best.
        let decided = |mean: &&ActionMean| reading.progress.decided[mean.action as usize];
        means.sort_by_key(|mean| std::cmp::Reverse(decided(mean)));
        means.truncate(rows);
    }
    let scale = scale(&means, threshold);
    let strip = |mean: &ActionMean| strip(mean, threshold, scale);
    let table = html! {
        table.means {
            thead {
                tr {
                    th scope="col" { "Action" } th.number scope="col" { "Observed" } th.number scope="col" { "Interval" }
                    th.number scope="col" { "Told" } th.number scope="col" { "Estimate" } th.number scope="col" { "± width" }
                    th.drawn scope="col" { span.unseen { "Drawn" } (axis(scale).scale()) }
                }
            }
            tbody { @for mean in &means { (row(mean, &strip(mean))) } }
        }
    };
    html! {
        h3 {
            bdi { (name) }
            @if let Some(threshold) = threshold { ", threshold " (amount(threshold)) }
        }
        (parts::scroll(&format!("Means of {name}"), &table))
        @if all > rows {
            p.small { "The " (whole(rows as u64)) " of " (whole(all as u64)) " actions that were played most; the data has all." }
        }
    }
}

fn row(mean: &ActionMean, strip: &Markup) -> Markup {
    let estimate = mean.estimate.as_ref();
    html! {
        // The reason stands where the numbers differ, and takes no room until it is asked for.
        tr title=(mean.why) {
            th scope="row" { bdi { (mean.name) } }
            td.number { (mean.observed.mean.map(amount).unwrap_or_default()) }
            td.number { (between(&mean.observed.interval)) }
            td.number { (whole(mean.observed.count)) }
            td.number { (estimate.map(|estimate| amount(estimate.value)).unwrap_or_default()) }
            td.number { (estimate.map(|estimate| amount(estimate.width)).unwrap_or_default()) }
            td.drawn { (strip) }
        }
        // Where the cell does not even hold what was observed, the reason is not left to a pointer that hovers.
        @if mean.is_surprising() { tr { td colspan="7" { small { (parts::sentence(&mean.why)) } } } }
    }
}

pub fn between(interval: &Interval) -> String {
    format!("{} to {}", amount(interval.low), amount(interval.high))
}

/// From the lowest to the highest of what is drawn.
fn scale(means: &[&ActionMean], threshold: Option<f64>) -> [f64; 2] {
    let ends = means.iter().flat_map(|mean| {
        let told = &mean.observed.interval;
        let cell = mean.estimate.as_ref().map(|estimate| estimate.cell);
        [
            Some(told.low),
            Some(told.high),
            cell.map(|cell| cell.low),
            cell.map(|cell| cell.high),
        ]
    });
    reach(ends.flatten().chain(threshold))
}

/// From the lowest to the highest value, and a little beyond.
pub fn reach(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let ends = values.fold([f64::INFINITY, f64::NEG_INFINITY], |ends, value| {
        [ends[0].min(value), ends[1].max(value)]
    });
    let margin = MARGIN * (ends[1] - ends[0]);
    [ends[0] - margin, ends[1] + margin]
}

pub fn axis([low, high]: [f64; 2]) -> Chart {
    Chart {
        label: String::new(),
        x: Axis::linear("", low, high),
        y: Axis::linear("", 0.0, 1.0),
        marks: Vec::new(),
        tips: Vec::new(),
    }
}

fn strip(mean: &ActionMean, threshold: Option<f64>, scale: [f64; 2]) -> Markup {
    let mut marks = Vec::new();
    let class = |class: &str| class.to_owned();
    // The cell first: what is drawn later lies above it.
    if let Some(estimate) = &mean.estimate {
        let value = estimate.value;
        marks.push(Mark::Block {
            class: class("band c0"),
            x: [estimate.cell.low, estimate.cell.high],
            y: [0.1, 0.9],
        });
        marks.push(Mark::Line {
            class: class("c0"),
            points: vec![(value, 0.1), (value, 0.9)],
        });
    }
    marks.extend(observed(mean.observed.mean, &mean.observed.interval));
    let limit = threshold.map(|x| Mark::Upright {
        class: class("threshold"),
        x,
    });
    marks.extend(limit);
    let chart = Chart {
        label: words(mean, threshold),
        marks,
        ..axis(scale)
    };
    chart.strip()
}

/// An interval as a line, with what was observed on it.
pub fn observed(mean: Option<f64>, interval: &Interval) -> Vec<Mark> {
    let line = Mark::Line {
        class: "c1".into(),
        points: vec![(interval.low, 0.5), (interval.high, 0.5)],
    };
    let dot = mean.map(|mean| Mark::Dot {
        class: "c1".into(),
        at: (mean, 0.5),
    });
    std::iter::once(line).chain(dot).collect()
}

/// What a strip shows, for those who hover or do not see it.
fn words(mean: &ActionMean, threshold: Option<f64>) -> String {
    let observed = mean
        .observed
        .mean
        .map_or("nothing observed".into(), |value| {
            format!(
                "observed {}, from {}",
                amount(value),
                between(&mean.observed.interval)
            )
        });
    let estimate = mean.estimate.as_ref().map_or(String::new(), |estimate| {
        format!(
            "; estimate {} in the cell {}",
            amount(estimate.value),
            between(&estimate.cell)
        )
    });
    let limit = threshold.map_or(String::new(), |limit| {
        format!("; threshold {}", amount(limit))
    });
    format!("{}: {observed}{estimate}{limit}", mean.name)
}

/// What the strips' signs mean.
fn key(reading: &Reading) -> Markup {
    let whole = Interval {
        low: 0.0,
        high: 1.0,
    };
    let mut signs = vec![(
        observed(Some(0.5), &whole),
        "observed mean with its interval",
    )];
    // Before the first estimate, and after a commitment, none is drawn.
    if reading.means().iter().any(|mean| mean.estimate.is_some()) {
        let cell = [legend::block("band c0"), legend::upright("c0")].concat();
        signs.push((cell, "estimate, in the cell that held the mean"));
    }
    if reading.problem().quantities() > 1 {
        signs.push((legend::upright("threshold"), "threshold"));
    }
    let named = signs.into_iter().map(|(marks, name)| (marks, name.into()));
    legend::legend(named.collect())
}
