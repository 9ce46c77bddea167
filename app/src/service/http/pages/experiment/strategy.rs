//! The strategy over time: the probability of each action, stacked, in steps from epoch to epoch.

use debora::measure::words::whole;
use maud::Markup;
use serde::{Deserialize, Serialize};

use super::view::ExperimentView;
use crate::chart::{Axis, COLOURS, Chart, Mark, Tip, colour, legend};
use crate::reading::epoch::EpochHead;
use crate::reading::share;

/// The narrowest step that is drawn, as a share of the figure: thinner ones are not seen, and there may be thousands.
const STEP_MIN: f64 = 0.001;

/// What the figure's axis shows: the query of its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeAxis {
    /// Along what.
    pub x: Along,
    /// How rounds are spread.
    pub scale: RoundScale,
}

/// Rounds or time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Along {
    #[default]
    Rounds,
    Clock,
}

/// By their logarithm, as epochs grow, or evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundScale {
    #[default]
    Log,
    Linear,
}

impl TimeAxis {
    /// Its query.
    pub fn query(self) -> &'static str {
        match (self.x, self.scale) {
            (Along::Rounds, RoundScale::Log) => "?x=rounds&scale=log",
            (Along::Rounds, RoundScale::Linear) => "?x=rounds&scale=linear",
            // Times are spread evenly: there is no first one to take a logarithm from.
            (Along::Clock, _) => "?x=clock",
        }
    }
}

/// The figure and its legend.
pub fn drawn(view: &ExperimentView, along: TimeAxis) -> (Markup, Markup) {
    let bands = Bands::of(view);
    let chart = Chart {
        label: "The strategy over time: the probability of each action, epoch by epoch.".into(),
        x: axis(view, along),
        y: Axis::shares(),
        marks: Vec::new(),
        tips: Vec::new(),
    };
    let steps = steps(view, along, &chart.x);
    let tips = steps
        .iter()
        .map(|step| Tip {
            x: step.x,
            lines: bands.lines(step.epoch),
        })
        .collect();
    let chart = Chart {
        marks: bands.marks(&steps),
        tips,
        ..chart
    };
    (chart.svg(), legend::legend(bands.legend()))
}

fn axis(view: &ExperimentView, along: TimeAxis) -> Axis {
    let first = view.epochs.first();
    match along.x {
        Along::Rounds => Axis::rounds(
            first.map_or(1, |epoch| epoch.first_round),
            view.reading.progress.rounds() + 1,
            along.scale == RoundScale::Log,
        ),
        Along::Clock => Axis::times(
            first.map_or(view.reading.experiment.created_at, |epoch| epoch.opened_at),
            view.last_at(),
        ),
    }
}

/// An epoch, from where to where it is drawn.
struct DrawnStep<'a> {
    x: [f64; 2],
    epoch: &'a EpochHead,
}

fn steps<'a>(view: &'a ExperimentView, along: TimeAxis, axis: &Axis) -> Vec<DrawnStep<'a>> {
    let mut steps: Vec<DrawnStep<'a>> = Vec::new();
    for epoch in &view.epochs {
        let x = match along.x {
            // To the next epoch's first round, so that no gap shows between them.
            Along::Rounds => [epoch.first_round as f64, (epoch.last_round() + 1) as f64],
            Along::Clock => {
                let end = epoch.closed_at.unwrap_or(view.last_at());
                [epoch.opened_at, end.max(epoch.opened_at)].map(|time| time as f64)
            }
        };
        let begin = match steps.pop() {
            // Too narrow to be seen: this one is drawn in its place.
            Some(last) if axis.place(last.x[1]) - axis.place(last.x[0]) < STEP_MIN => last.x[0],
            Some(last) => {
                steps.push(last);
                x[0]
            }
            None => x[0],
        };
        steps.push(DrawnStep {
            x: [begin, x[1]],
            epoch,
        });
    }
    steps
}

/// Which actions have a band of their own; the others share one.
struct Bands<'a> {
    view: &'a ExperimentView,
    /// In the spec's order.
    shown: Vec<usize>,
    others: usize,
}

impl<'a> Bands<'a> {
    fn of(view: &'a ExperimentView) -> Self {
        let actions = view.reading.problem().actions().len();
        let mut shown: Vec<usize> = (0..actions).collect();
        if actions > COLOURS {
            let played = played(view);
            shown.sort_by(|one, other| played[*other].total_cmp(&played[*one]));
            // The last colour is grey, which the others have.
            shown.truncate(COLOURS - 1);
            shown.sort_unstable();
        }
        Self {
            others: actions - shown.len(),
            view,
            shown,
        }
    }

    /// A strategy's shares, band by band, the others' last.
    fn shares(&self, strategy: &[f64]) -> Vec<f64> {
        let mut shares: Vec<f64> = self.shown.iter().map(|action| strategy[*action]).collect();
        if self.others > 0 {
            // What is left can be less than nothing by the last digits of a sum.
            shares.push((1.0 - shares.iter().sum::<f64>()).max(0.0));
        }
        shares
    }

    fn marks(&self, steps: &[DrawnStep<'_>]) -> Vec<Mark> {
        let bands = self.shown.len() + usize::from(self.others > 0);
        let mut points = vec![Vec::new(); bands];
        for step in steps {
            let mut low = 0.0;
            for (band, share) in self.shares(&step.epoch.strategy).into_iter().enumerate() {
                let high = low + share;
                points[band].extend(step.x.map(|x| (x, low, high)));
                low = high;
            }
        }
        let area = |(band, points)| Mark::Area {
            class: colour(band),
            points,
        };
        points.into_iter().enumerate().map(area).collect()
    }

    fn names(&self) -> Vec<String> {
        let actions = self.view.reading.problem().actions();
        let shown = self.shown.iter();
        let mut names: Vec<String> = shown.map(|action| actions[*action].clone()).collect();
        if self.others > 0 {
            names.push(format!("{} others", whole(self.others as u64)));
        }
        names
    }

    fn legend(&self) -> Vec<(Vec<Mark>, String)> {
        let names = self.names().into_iter().enumerate();
        names
            .map(|(band, name)| (legend::block(&colour(band)), name))
            .collect()
    }

    fn lines(&self, epoch: &EpochHead) -> Vec<String> {
        let mut lines = vec![format!(
            "Epoch {}: rounds {} to {}",
            whole(epoch.epoch),
            whole(epoch.first_round),
            whole(epoch.last_round())
        )];
        let shares = self.shares(&epoch.strategy);
        let named = self.names().into_iter().zip(shares);
        // From top to bottom, as the bands lie.
        let played = named.rev().filter(|(_, share)| *share > 0.0);
        lines.extend(played.map(|(name, share)| format!("{}  {name}", self::share(share))));
        lines
    }
}

/// How often each action was played, as its strategies say.
fn played(view: &ExperimentView) -> Vec<f64> {
    let mut played = vec![0.0; view.reading.problem().actions().len()];
    for epoch in &view.epochs {
        for (sum, share) in played.iter_mut().zip(&epoch.strategy) {
            *sum += epoch.rounds as f64 * share;
        }
    }
    played
}
