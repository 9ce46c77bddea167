//! Many pairs in a few numbers, each with its interval, beside what was promised.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Plan;
use crate::lab::metrics::{Spread, clopper_pearson, lower_limit};
use crate::lab::replicate::Pair;
use crate::problem::Policy;

/// How often a wrong alarm may be raised over each promise: the one-sided limits that decide have 99.9 % confidence.
pub const ALARM: f64 = 0.001;

/// A spread beside its bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// Mean and quantiles over runs.
    #[serde(flatten)]
    pub spread: Spread,
    /// What the plan promises, if it promises anything.
    pub bound: Option<f64>,
}

/// What many pairs showed. Field names are those of the JSON contract; regret and violation on the unit scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Pairs measured.
    pub pairs: u64,
    /// Pairs with equal strategies in every round.
    pub identical: u64,
    /// Their share.
    pub identical_rate: f64,
    /// Two-sided 95 % Clopper-Pearson interval of that rate.
    pub interval: [f64; 2],
    /// 1 - rho.
    pub promised: f64,
    /// None if no strategy is safe.
    pub regret: Option<Bounded>,
    /// The largest total excess over a threshold.
    pub violation: Bounded,
    /// The same with negative excesses counted; none without costs.
    pub signed_violation: Option<Spread>,
    /// Runs with a round whose strategy was not safe.
    pub unsafe_runs: u64,
    /// Runs above a bound of the plan.
    pub runs_above_bound: u64,
    /// Runs in all.
    pub runs: u64,
    /// Pairs by the epoch in which they parted.
    pub first_split: BTreeMap<u64, u64>,
    /// Stretches of one strategy per run, on average.
    pub epochs_mean: f64,
    /// The mean reward observed, in the user's units.
    pub reward_mean: f64,
}

/// A promise that was measured as broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Broken {
    /// Which one, in words.
    pub promise: &'static str,
    /// What was promised.
    pub promised: f64,
    /// The 99.9 % limit that lies beyond it.
    pub limit: f64,
}

impl Summary {
    /// Of these pairs; there must be one at least.
    pub fn of(plan: &Plan, pairs: &[Pair]) -> Self {
        assert!(!pairs.is_empty(), "a summary needs a pair");
        let runs = || pairs.iter().flat_map(|pair| &pair.runs);
        let count = |holds: &dyn Fn(&crate::lab::metrics::Run) -> bool| {
            runs().filter(|run| holds(run)).count() as u64
        };
        let total = pairs.len() as u64;
        let identical = pairs.iter().filter(|pair| pair.split.is_none()).count() as u64;
        let mut first_split = BTreeMap::new();
        for split in pairs.iter().filter_map(|pair| pair.split.as_ref()) {
            *first_split.entry(split.epoch).or_insert(0) += 1;
        }
        // Floats are summed to within 1e-9 of a round each.
        let slack = 1e-9 * plan.problem.horizon() as f64;
        let violation_bound = plan.violation_bound.unwrap_or(f64::INFINITY) + slack;
        let above = |run: &crate::lab::metrics::Run| {
            run.regret
                .is_some_and(|regret| regret > plan.regret_bound + slack)
                || run.violation > violation_bound
        };
        let regret = Spread::of(runs().filter_map(|run| run.regret));
        Self {
            pairs: total,
            identical,
            identical_rate: identical as f64 / total as f64,
            interval: clopper_pearson(identical, total, 0.05),
            promised: 1.0 - plan.problem.rho(),
            regret: regret.map(|spread| Bounded {
                spread,
                bound: Some(plan.regret_bound),
            }),
            violation: Bounded {
                spread: Spread::of(runs().map(|run| run.violation)).expect("a run"),
                bound: plan.violation_bound,
            },
            signed_violation: Spread::of(runs().filter_map(|run| run.signed_violation)),
            unsafe_runs: count(&|run| run.unsafe_rounds > 0),
            runs_above_bound: count(&above),
            runs: 2 * total,
            first_split,
            epochs_mean: Spread::of(runs().map(|run| run.epochs as f64))
                .expect("a run")
                .mean,
            reward_mean: Spread::of(runs().map(|run| run.reward_mean))
                .expect("a run")
                .mean,
        }
    }

    /// The promises of debora's own policies that these pairs show to be broken, each with 99.9 % confidence.
    ///
    /// If no strategy is safe there is nothing to bound, and only replicability is promised.
    pub fn broken(&self, plan: &Plan) -> Vec<Broken> {
        let mut broken = Vec::new();
        let upper = 1.0 - lower_limit(self.pairs - self.identical, self.pairs, ALARM);
        if upper < self.promised {
            broken.push(Broken {
                promise: "identical decisions",
                promised: self.promised,
                limit: upper,
            });
        }
        if self.regret.is_none() {
            return broken;
        }
        let mut exceeds = |promise: &'static str, runs: u64, chance: f64| {
            let limit = lower_limit(runs, self.runs, ALARM);
            if limit > chance {
                broken.push(Broken {
                    promise,
                    promised: chance,
                    limit,
                });
            }
        };
        if plan.problem.policy() == Policy::Hard {
            exceeds(
                "safe in every round",
                self.unsafe_runs,
                plan.problem.delta(),
            );
        }
        exceeds(
            "within the bounds",
            self.runs_above_bound,
            1.0 - plan.bound_probability,
        );
        broken
    }
}
