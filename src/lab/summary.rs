//! Many pairs in a few numbers, each with its interval, beside what was promised.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lab::metrics::{Run, Spread, clopper_pearson, lower_limit};
use crate::lab::replicate::Pair;
use crate::problem::Policy;
use crate::{Kind, Plan};

/// How often a wrong alarm may be raised over each promise: the one-sided limits that decide have 99.9 % confidence.
pub const ALARM: f64 = 0.001;

/// A spread beside its bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bounded {
    /// Mean and quantiles over runs.
    #[serde(flatten)]
    pub spread: Spread,
    /// What the plan promises, if it promises anything.
    pub bound: Option<f64>,
}

/// What many pairs showed. Field names are those of the JSON contract; regret and violation on the unit scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
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
    /// The same with negative excesses counted; `None` without costs.
    pub signed_violation: Option<Spread>,
    /// What runs conclude, whatever their keys.
    pub same_conclusion: Conclusion,
    /// Runs that committed to an action before the end of their trial.
    pub committed: u64,
    /// Runs with a round whose strategy was not safe.
    pub unsafe_runs: u64,
    /// Runs above a bound of the plan.
    pub runs_above_bound: u64,
    /// Runs in all.
    pub runs: u64,
    /// Pairs by the epoch in which they diverged.
    pub first_split: BTreeMap<u64, u64>,
    /// Stretches of one strategy per run, on average.
    pub epochs_mean: f64,
    /// The mean reward observed, in the user's units.
    pub reward_mean: f64,
    /// What the player says of its runs, if anything.
    pub note: Option<String>,
}

/// How far apart last strategies may be and still be the same conclusion: half the sum of their differences.
pub const SAME_CONCLUSION: f64 = 0.05;

/// What the last strategies say: where the data are too few the final choice comes from the key, and these numbers show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Conclusion {
    /// How often two runs with different keys, on data of their own, end at the same strategy, within [`SAME_CONCLUSION`]. None
    /// of a single pair, and where pairs meet different worlds it is about all of them.
    pub other_keys: Option<f64>,
    /// How often the last strategy is the best the world has: of policy free the best action, else within a hundredth of the
    /// reward's range of the optimum, and keeping the limits. None if no strategy is safe.
    pub best: Option<f64>,
}

impl Conclusion {
    fn of(pairs: &[Pair]) -> Self {
        // Neighbours have keys of their own; one member of each, so that no run is compared with itself.
        let neighbours = pairs
            .windows(2)
            .map(|two| (&two[0].runs[0], &two[1].runs[1]));
        let same = neighbours.map(|(one, two)| f64::from(u8::from(is_same(one, two))));
        let runs = pairs.iter().flat_map(|pair| &pair.runs);
        let best = runs.filter_map(|run| run.ends_best);
        Self {
            other_keys: Spread::of(same).map(|spread| spread.mean),
            best: Spread::of(best.map(|best| f64::from(u8::from(best)))).map(|spread| spread.mean),
        }
    }
}

/// Whether two runs end at the same strategy.
fn is_same(one: &Run, two: &Run) -> bool {
    let differences = one.final_strategy.iter().zip(&two.final_strategy);
    let apart: f64 = differences.map(|(one, two)| (one - two).abs()).sum();
    apart / 2.0 <= SAME_CONCLUSION
}

/// What debora's own policies promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Promise {
    /// Two runs of a pair decide alike, with probability 1 - rho.
    #[serde(rename = "identical decisions")]
    Identical,
    /// No round's strategy exceeds a threshold, with probability 1 - delta. Of policy hard.
    #[serde(rename = "safe in every round")]
    Safe,
    /// Regret and violation stay within the plan's bounds.
    #[serde(rename = "within the bounds")]
    WithinBounds,
}

impl Promise {
    /// The promise in words, as documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Promise::Identical => "identical decisions",
            Promise::Safe => "safe in every round",
            Promise::WithinBounds => "within the bounds",
        }
    }
}

/// A promise that was measured as broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Broken {
    /// Which one.
    pub promise: Promise,
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
        let total = pairs.len() as u64;
        let mut first_split = BTreeMap::new();
        for divergence in pairs.iter().filter_map(|pair| pair.divergence.as_ref()) {
            *first_split.entry(divergence.epoch).or_insert(0) += 1;
        }
        // Every pair counts once, whatever happens after its runs diverged: rho is about whole runs.
        let identical = total - first_split.values().sum::<u64>();
        Self {
            pairs: total,
            identical,
            identical_rate: identical as f64 / total as f64,
            interval: clopper_pearson(identical, total, 0.05),
            promised: 1.0 - plan.problem.rho(),
            regret: Spread::of(runs().filter_map(|run| run.regret)).map(|spread| Bounded {
                spread,
                bound: Some(plan.regret_bound),
            }),
            violation: Bounded {
                spread: Spread::of(runs().map(|run| run.violation)).expect("a run"),
                bound: plan.violation_bound,
            },
            signed_violation: Spread::of(runs().filter_map(|run| run.signed_violation)),
            same_conclusion: Conclusion::of(pairs),
            committed: runs()
                .filter(|run| run.decided_by == Some(Kind::Commit))
                .count() as u64,
            unsafe_runs: runs().filter(|run| run.unsafe_rounds > 0).count() as u64,
            runs_above_bound: runs().filter(|run| is_above_bound(plan, run)).count() as u64,
            runs: 2 * total,
            first_split,
            epochs_mean: mean(runs().map(|run| run.epochs as f64)),
            reward_mean: mean(runs().map(|run| run.reward_mean)),
            note: note(pairs),
        }
    }

    /// The promises of debora's own policies that these pairs show to be broken, each with 99.9 % confidence.
    ///
    /// If no strategy is safe there is nothing to bound, and only replicability is promised.
    pub fn broken(&self, plan: &Plan) -> Vec<Broken> {
        // An upper limit here and lower ones below: each promise has the benefit of the doubt.
        let upper = 1.0 - lower_limit(self.pairs - self.identical, self.pairs, ALARM);
        let identical = (upper < self.promised).then_some(Broken {
            promise: Promise::Identical,
            promised: self.promised,
            limit: upper,
        });
        let mut broken = Vec::from_iter(identical);
        if self.regret.is_none() {
            return broken;
        }
        if plan.problem.policy() == Policy::Hard {
            let delta = plan.problem.delta();
            broken.extend(self.exceeded(Promise::Safe, self.unsafe_runs, delta));
        }
        let chance = 1.0 - plan.bound_probability;
        broken.extend(self.exceeded(Promise::WithinBounds, self.runs_above_bound, chance));
        broken
    }

    /// The share of runs with an unsafe round.
    pub fn unsafe_share(&self) -> f64 {
        self.unsafe_runs as f64 / self.runs as f64
    }

    /// The promise as broken, if this many bad runs show that they are more frequent than `chance`.
    fn exceeded(&self, promise: Promise, bad_runs: u64, chance: f64) -> Option<Broken> {
        let limit = lower_limit(bad_runs, self.runs, ALARM);
        (limit > chance).then_some(Broken {
            promise,
            promised: chance,
            limit,
        })
    }
}

/// The first note, and of how many runs it is one where not all say the same.
fn note(pairs: &[Pair]) -> Option<String> {
    let runs = || pairs.iter().flat_map(|pair| &pair.runs);
    let first = runs().find_map(|run| run.note.as_ref())?;
    if runs().all(|run| run.note.as_ref() == Some(first)) {
        return Some(first.clone());
    }
    // Notes with numbers in them differ from run to run: one is an example, and how many there are says how much it matters.
    let noted = runs().filter(|run| run.note.is_some()).count();
    let runs = 2 * pairs.len();
    Some(format!("{first} (one of {noted} notes on {runs} runs)"))
}

fn is_above_bound(plan: &Plan, run: &Run) -> bool {
    // Floats are summed to within 1e-9 of a round each.
    let slack = 1e-9 * plan.problem.horizon() as f64;
    let above = |value: f64, bound: Option<f64>| bound.is_some_and(|bound| value > bound + slack);
    run.regret
        .is_some_and(|regret| above(regret, Some(plan.regret_bound)))
        || above(run.violation, plan.violation_bound)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).expect("a run").mean
}
