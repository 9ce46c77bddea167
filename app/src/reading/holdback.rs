//! What was held back beside what the experiment gave: the lift, with an interval valid at any time.
//!
//! ```text
//! lift = mean of what was told in the experiment - mean of what was told of those held back
//! ```
//!
//! It compares whole lives: what exploration cost is in it, so that a strategy that was found late has gained little yet.

use debora::Problem;
use debora::lab::observed::{MISS, SumOf, lift_at_any_time};
use debora::measure::words::{amount, counted, percent, whole};
use debora::record::Interval;
use debora::spec::Holdback;
use serde::Serialize;

use super::Reading;
use super::sums::{RoundSpan, mean_of};
use crate::log::observed::ToldSums;

/// Those who are held back, beside the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct HoldbackState {
    /// The share of request keys that is held back.
    pub share: f64,
    /// The action that they get: its number in the spec, from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// Decisions that were held back; they count for nothing else.
    pub decided: u64,
    /// Outcomes that were told of them.
    pub told: u64,
    /// What the experiment gains or costs over them: the reward first, then the costs.
    pub lifts: Vec<LiftState>,
    /// Who is held back, and what the comparison is of, in words.
    pub sentence: String,
}

/// A quantity in the experiment and among those held back, in the spec's units.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LiftState {
    /// The reward or a cost, by name.
    pub quantity: String,
    /// In the rounds of the experiment that were told.
    pub experiment: SideMean,
    /// Among those held back that were told.
    pub holdback: SideMean,
    /// The first mean minus the second; none unless both are there.
    pub lift: Option<f64>,
    /// Where the difference of the means of what was played lies, valid at any time.
    #[schema(value_type = Object)]
    pub interval: Interval,
    /// The same in words.
    pub sentence: String,
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SideMean {
    /// The plain mean; none if nothing was told.
    pub mean: Option<f64>,
    /// How many outcomes were told.
    pub count: u64,
}

/// Compares both sides of an experiment whose spec holds something back.
pub(super) fn compute(reading: &Reading, holdback: &Holdback) -> HoldbackState {
    let problem = reading.problem();
    let held_back = match &reading.observed.holdback {
        Some(told) => told.clone(),
        None => ToldSums::new(problem),
    };
    // What was told on both sides: nothing is imputed for those held back, and a worst value would be on one side alone.
    let played = reading.sum_all_told(RoundSpan::All);
    let name = problem.actions()[holdback.action as usize].clone();
    let decided = reading.progress.holdback;
    let [are, get] = if reading.is_open() {
        ["are", "get"]
    } else {
        ["were", "got"]
    };
    HoldbackState {
        share: holdback.share,
        action: holdback.action,
        decided,
        told: held_back.count,
        lifts: (0..problem.quantities())
            .map(|quantity| lift(problem, quantity, &name, [&played, &held_back]))
            .collect(),
        sentence: format!(
            "{} of request keys {are} held back from the experiment and {get} {name:?}: {}, of which {} told. The comparison is of \
             averages over the whole life, exploration included.",
            percent(holdback.share),
            counted(decided, "decision", "decisions"),
            counted(held_back.count, "was", "were"),
        ),
        name,
    }
}

fn lift(
    problem: &Problem,
    quantity: usize,
    action: &str,
    [played, held_back]: [&ToldSums; 2],
) -> LiftState {
    let range = problem.quantity(quantity).range;
    let side = |told: &ToldSums| SideMean {
        mean: mean_of(problem, quantity, told),
        count: told.count,
    };
    let sum = |told: &ToldSums| SumOf {
        count: told.count,
        sum: told.sum(quantity),
    };
    // A difference has the range's unit and not its zero.
    let ends = lift_at_any_time(sum(played), sum(held_back), MISS);
    let [low, high] = ends.map(|end| end * range.span());
    let (experiment, holdback) = (side(played), side(held_back));
    let both = experiment.mean.zip(holdback.mean);
    let mut lift = LiftState {
        quantity: problem.quantity(quantity).name.clone(),
        experiment,
        holdback,
        lift: both.map(|(experiment, holdback)| experiment - holdback),
        interval: Interval { low, high },
        // Written from the rest of it.
        sentence: String::new(),
    };
    lift.sentence = lift.words(action);
    lift
}

impl LiftState {
    fn words(&self, action: &str) -> String {
        let name = &self.quantity;
        let (Some(experiment), Some(holdback)) = (self.experiment.mean, self.holdback.mean) else {
            return format!(
                "Whether the experiment changes {name} is not known: both sides need at least one outcome first."
            );
        };
        let means = format!(
            "{name} is {} on average in the experiment ({} told), and {} among those held back, who get {action:?} ({} told)",
            amount(experiment),
            whole(self.experiment.count),
            amount(holdback),
            whole(self.holdback.count),
        );
        let Interval { low, high } = self.interval;
        // The whole interval must lie on one side for it to be known.
        let between = |one: f64, two: f64| format!("by {} to {}", amount(one), amount(two));
        if low > 0.0 {
            format!(
                "The experiment raises {name} {}: {means}.",
                between(low, high)
            )
        } else if high < 0.0 {
            format!(
                "The experiment lowers {name} {}: {means}.",
                between(-high, -low)
            )
        } else {
            format!(
                "Whether the experiment changes {name} is not known: {means}, and the difference lies between {} and {}.",
                amount(low),
                amount(high)
            )
        }
    }
}
