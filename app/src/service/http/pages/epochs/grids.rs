//! Every estimate with the cell of the grid that held its mean, quantity by quantity on one scale.

use debora::measure::answer::row_for_each;
use debora::measure::words::{amount, counted, whole};
use debora::record::Interval;
use maud::{Markup, html};

use super::one::{UNFOLDED, largest};
use crate::chart::{Axis, Chart, Mark, legend};
use crate::document::{HtmlCell, HtmlTable};
use crate::reading::share;
use crate::service::http::epochs::detail::{EpochDetail, EstimateHere};

/// Quantities shown before the rest is folded.
const QUANTITIES_UNFOLDED: usize = 4;

/// The estimates in force, of one quantity alone if it is asked for.
pub fn shown(detail: &EpochDetail, quantity: Option<u32>) -> Markup {
    let grids: Vec<Grid> = grids(detail, quantity);
    let (first, rest) = grids.split_at(grids.len().min(QUANTITIES_UNFOLDED));
    html! {
        h2 { "Estimates in force" }
        @if grids.is_empty() {
            p { "There is none." }
        } @else {
            p {
                "A mean is rounded to the middle of its grid cell; the key shifts the grid. Runs with this key whose means all fall into "
                "the same cells have the same estimates, and so the same strategy."
            }
            (keys(&grids))
        }
        @for grid in first { (grid.section(detail)) }
        @if !rest.is_empty() {
            details {
                summary { (counted(rest.len() as u64, "more cost", "more costs")) }
                @for grid in rest { (grid.section(detail)) }
            }
        }
    }
}

fn keys(grids: &[Grid]) -> Markup {
    let mut entries = vec![
        (legend::block("c0 band"), "the mean's cell".into()),
        (legend::upright("c0"), "estimate, its middle".into()),
        (legend::dot("c1"), "mean, which no decision sees".into()),
        (legend::upright("muted edge"), "edges of cells".into()),
        (legend::level("span"), "where the true mean lies".into()),
    ];
    if grids.iter().any(|grid| grid.threshold.is_some()) {
        entries.push((legend::upright("threshold"), "threshold".into()));
    }
    legend::legend(entries)
}

/// A quantity's estimates, those of the actions that are played most first.
struct Grid<'a> {
    place: u32,
    name: &'a str,
    threshold: Option<f64>,
    estimates: Vec<&'a EstimateHere>,
    /// How many more there are.
    more: usize,
}

fn grids(detail: &EpochDetail, quantity: Option<u32>) -> Vec<Grid<'_>> {
    let mut places: Vec<u32> = detail
        .estimates
        .iter()
        .map(|estimate| estimate.place)
        .collect();
    places.sort_unstable();
    places.dedup();
    places.retain(|place| quantity.is_none_or(|asked| asked == *place));
    let room = if quantity.is_some() {
        usize::MAX
    } else {
        UNFOLDED
    };
    places
        .into_iter()
        .filter_map(|place| Grid::of(detail, place, room))
        .collect()
}

impl<'a> Grid<'a> {
    fn of(detail: &'a EpochDetail, place: u32, room: usize) -> Option<Self> {
        let of_it = detail
            .estimates
            .iter()
            .filter(|estimate| estimate.place == place);
        let mut estimates: Vec<&EstimateHere> = of_it.collect();
        let played = |estimate: &EstimateHere| largest(&detail.actions[estimate.action as usize]);
        estimates.sort_by(|one, other| played(other).total_cmp(&played(one)));
        let more = estimates.len().saturating_sub(room);
        estimates.truncate(room);
        let first = estimates.first()?;
        Some(Self {
            place,
            name: &first.quantity,
            threshold: first.threshold,
            more,
            estimates,
        })
    }

    fn section(&self, detail: &EpochDetail) -> Markup {
        let here = format!("/experiments/{}/epochs/{}", detail.id, detail.entry.epoch);
        html! {
            h3 { bdi { (self.name) } }
            (self.table(detail))
            @if self.more > 0 {
                p {
                    a href={ (here) "?quantity=" (self.place) } {
                        "All " (whole((self.estimates.len() + self.more) as u64)) " actions of " bdi { (self.name) }
                    }
                }
            }
        }
    }

    fn table(&self, detail: &EpochDetail) -> Markup {
        let ends = self.ends();
        let scale = chart(ends, String::new(), Vec::new());
        let table = row_for_each(&self.estimates)
            .words("Action", |estimate| &estimate.name)
            .drawings("Cell", |estimate| strip(estimate, ends))
            .digits(4, "Mean", |estimate| estimate.mean)
            .digits(4, "Estimate", |estimate| {
                HtmlCell::strong(estimate.estimate)
            })
            .numbers("Interval", |estimate| between(&estimate.interval))
            .numbers("Cell", |estimate| between(&estimate.cell))
            .numbers("To an edge", |estimate| to_edge(estimate))
            .numbers("Rounds", |estimate| estimate.count)
            .numbers("Level", |estimate| estimate.level)
            .numbers("Offset", |estimate| estimate.offset)
            .numbers("Made in", |estimate| made_in(detail, estimate.made_in));
        let label = format!("Estimates of {}", self.name);
        let table = HtmlTable::cards(&label, table.table());
        let head = html! { span.unseen { "Cell" } (scale.scale()) };
        table.class("cards grids").head(1, head).markup()
    }

    /// Where the scale begins and ends: it shows every cell with its neighbours, and the threshold.
    fn ends(&self) -> [f64; 2] {
        let mut ends = [f64::INFINITY, f64::NEG_INFINITY];
        let mut include = |value: f64| ends = [ends[0].min(value), ends[1].max(value)];
        for estimate in &self.estimates {
            estimate.edges.iter().copied().for_each(&mut include);
            // A cell that reaches beyond the range has no edge there.
            let Interval { low, high } = estimate.cell;
            [low, high].into_iter().for_each(&mut include);
        }
        self.threshold.into_iter().for_each(include);
        let margin = 0.02 * (ends[1] - ends[0]);
        [ends[0] - margin, ends[1] + margin]
    }
}

fn between(interval: &Interval) -> String {
    format!("{} to {}", amount(interval.low), amount(interval.high))
}

fn made_in(detail: &EpochDetail, epoch: u64) -> Markup {
    html! {
        @if epoch == detail.entry.epoch { strong { "this epoch" } }
        @else { a href={ "/experiments/" (detail.id) "/epochs/" (epoch) } { "epoch " (whole(epoch)) } }
    }
}

fn to_edge(estimate: &EstimateHere) -> Markup {
    let Some((distance, cells)) = estimate.to_edge.zip(estimate.to_edge_cells) else {
        return html! { "no edge" };
    };
    let part = share(cells);
    let told = format!(
        "Another run's mean must differ by {} to be rounded differently, {part} of a cell.",
        amount(distance)
    );
    html! { span title=(told) { (amount(distance)) " (" (part) ")" } }
}

fn strip(estimate: &EstimateHere, ends: [f64; 2]) -> Markup {
    let [low, high] = [estimate.cell.low, estimate.cell.high].map(amount);
    let label = format!(
        "{} of {}: mean {} in the cell from {low} to {high}, estimate {}, true mean from {}",
        estimate.quantity,
        estimate.name,
        amount(estimate.mean),
        amount(estimate.estimate),
        between(&estimate.interval)
    );
    chart(ends, label, marks(estimate, ends)).strip()
}

fn chart(ends: [f64; 2], label: String, marks: Vec<Mark>) -> Chart {
    Chart {
        label,
        x: Axis::linear("", ends[0], ends[1]),
        y: Axis::shares(),
        marks,
        tips: Vec::new(),
    }
}

fn marks(estimate: &EstimateHere, ends: [f64; 2]) -> Vec<Mark> {
    let upright = |class: &str, x: f64| Mark::Upright {
        class: class.into(),
        x,
    };
    let Interval {
        low: from,
        high: to,
    } = estimate.interval;
    // Cut at the ends: what lies beyond would be drawn over the table.
    let between = [from.max(ends[0]), to.min(ends[1])];
    let mut marks = vec![
        Mark::Block {
            class: "c0 band".into(),
            x: [estimate.cell.low, estimate.cell.high],
            y: [0.0, 1.0],
        },
        Mark::Line {
            class: "span".into(),
            points: between.map(|x| (x, 0.5)).to_vec(),
        },
    ];
    let edges = estimate.edges.iter();
    marks.extend(edges.map(|edge| upright("muted edge", *edge)));
    marks.extend(
        estimate
            .threshold
            .map(|threshold| upright("threshold", threshold)),
    );
    marks.push(upright("c0", estimate.estimate));
    marks.push(Mark::Dot {
        class: "c1".into(),
        at: (estimate.mean, 0.5),
    });
    marks
}
