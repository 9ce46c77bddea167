//! What was observed of each action, beside the estimate that replicates, and why they differ.

use debora::lab::observed::{MISS, interval_at_any_time};
use debora::measure::words::{amount, counted, whole};
use debora::record::Interval;
use debora::{Estimate, Plan, Problem};
use serde::Serialize;

use super::Reading;
use super::sums::mean_of;
use crate::log::observed::ToldSums;

/// How the intervals are made.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct IntervalMethods {
    /// Of the mean of an action.
    pub mean: &'static str,
    /// Of the average of what was played.
    pub average: &'static str,
    /// Of the lift over what was held back.
    pub lift: &'static str,
    /// The chance that one of them ever misses, whenever and however often one looks.
    pub miss: f64,
}

/// The same everywhere.
pub const METHODS: IntervalMethods = IntervalMethods {
    mean: "confidence sequence: beta mixture (1/2, 1/2) of binomial martingales, for values within the range",
    average: "confidence sequence: normal mixture (r = 300) of Hoeffding's martingales, for values within the range whose means \
              may change",
    lift: "the second minus the first, each at half the miss",
    miss: MISS,
};

/// A mean as it was told.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ObservedMean {
    /// The plain mean; none if nothing was told.
    pub mean: Option<f64>,
    /// Where the true mean lies, valid at any time: each interval for itself misses with the probability that `intervals` says.
    #[schema(value_type = Object)]
    pub interval: Interval,
    /// How many outcomes were told.
    pub count: u64,
}

/// A mean as it decides.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ReplicableMean {
    /// The rounded mean.
    pub value: f64,
    /// The cell of the grid that held the mean: any mean in it gives the same estimate.
    #[schema(value_type = Object)]
    pub cell: Interval,
    /// Where the true mean lies: the estimate and its width, within the range.
    #[serde(skip)]
    pub interval: Interval,
    /// The true mean is this close to the estimate. All estimates hold together with probability 1 - delta.
    pub width: f64,
    /// From how many rounds, imputed ones among them.
    pub count: u64,
}

/// A mean of an action, as it was observed and as it decides.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ActionMean {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// The reward or a cost, by name.
    pub quantity: String,
    /// The threshold of a cost; under policy free it is stated and decides nothing.
    #[serde(skip)]
    pub threshold: Option<f64>,
    /// As it was told.
    pub observed: ObservedMean,
    /// As it decides; none before the first estimate.
    pub estimate: Option<ReplicableMean>,
    /// Why the two differ.
    pub why: String,
}

impl ActionMean {
    /// Whether what was observed lies outside the cell of the estimate: somebody will ask why.
    pub fn is_surprising(&self) -> bool {
        let mean = self.observed.mean.zip(self.estimate.as_ref());
        mean.is_some_and(|(mean, estimate)| mean < estimate.cell.low || mean > estimate.cell.high)
    }
}

/// All means of an experiment, quantity by quantity within action by action.
pub(super) fn compute(reading: &Reading) -> Vec<ActionMean> {
    let problem = reading.problem();
    // Estimates come in the same order, and some are missing.
    let mut estimates = reading.engine.estimates().peekable();
    let mut means = Vec::new();
    for (action, name) in problem.actions().iter().enumerate() {
        let told = reading.sum_told(action);
        for quantity in 0..problem.quantities() {
            let estimate = estimates.next_if(|next| {
                (next.action as usize, next.quantity as usize) == (action, quantity)
            });
            means.push(ActionMean {
                action: action as u32,
                name: name.clone(),
                quantity: problem.quantity(quantity).name.clone(),
                threshold: quantity
                    .checked_sub(1)
                    .and_then(|cost| problem.threshold(cost)),
                observed: ObservedMean::new(problem, quantity, &told),
                estimate: estimate
                    .map(|estimate| ReplicableMean::new(reading.engine.plan(), &estimate)),
                why: why(reading, action, quantity, estimate.as_ref()),
            });
        }
    }
    means
}

impl ObservedMean {
    fn new(problem: &Problem, quantity: usize, told: &ToldSums) -> Self {
        let range = problem.quantity(quantity).range;
        let interval = interval_at_any_time(told.count, told.sum(quantity), MISS);
        let [low, high] = interval.map(|end| range.to_user(end));
        Self {
            mean: mean_of(problem, quantity, told),
            interval: Interval { low, high },
            count: told.count,
        }
    }
}

impl ReplicableMean {
    fn new(plan: &Plan, estimate: &Estimate) -> Self {
        let range = plan.problem.quantity(estimate.quantity as usize).range;
        let to_user = |[low, high]: [f64; 2]| Interval {
            low: range.to_user(low),
            high: range.to_user(high),
        };
        Self {
            // The middle of the outermost cells may lie outside the range, where no mean can be.
            value: range.to_user(estimate.estimate.clamp(0.0, 1.0)),
            cell: to_user(estimate.cell_ends(plan)),
            interval: to_user(estimate.interval()),
            // The longer of the two sides, as the interval need not be even.
            width: longer_side(estimate) * range.span(),
            count: estimate.count,
        }
    }
}

/// How far from the estimate the truth may be, as a share of the range.
fn longer_side(estimate: &Estimate) -> f64 {
    let [low, high] = estimate.interval();
    let middle = estimate.estimate.clamp(0.0, 1.0);
    (middle - low).max(high - middle)
}

fn why(reading: &Reading, action: usize, quantity: usize, estimate: Option<&Estimate>) -> String {
    let problem = reading.problem();
    let Some(estimate) = estimate else {
        return if problem.estimated().contains(&quantity) {
            "There is no estimate yet: what was observed decides nothing until the action has been played more often.".into()
        } else {
            "There is no estimate: under policy free this cost decides nothing.".into()
        };
    };
    if estimate.index.is_none() {
        return "The estimate says nothing yet: after so few rounds its cell is the whole range."
            .into();
    }
    let shown = ReplicableMean::new(reading.engine.plan(), estimate);
    let [low, high] = [shown.cell.low, shown.cell.high].map(amount);
    let rounds = whole(estimate.count);
    let mut sentence = format!(
        "The estimate is the middle of the cell from {low} to {high}, in which the mean of {rounds} rounds lay when epoch {} began: \
         another run with this key is likely to find the same cell, and not the same mean",
        estimate.epoch
    );
    let more = reading.progress.outcomes[action].saturating_sub(estimate.count);
    if more > 0 {
        let rounds = counted(more, "round has", "rounds have");
        sentence += &format!("; {rounds} had an outcome since then");
    }
    // All of the action's: which of them the estimate has seen is not kept.
    let imputed = reading.progress.imputed[action];
    if imputed > 0 {
        let rounds = counted(imputed, "round was", "rounds were");
        sentence += &format!(
            "; {rounds} imputed, which the estimate counts and the observed mean does not"
        );
    }
    sentence + "."
}
