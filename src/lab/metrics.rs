//! What a run cost: regret, violation, unsafe rounds, all from the strategies it held and the world's true means.
//!
//! ```text
//! regret            R_t = sum r.(x* - x_s)               against the optimal safe strategy x*
//! violation         V_t = max_i sum max(0, g_i.x_s - alpha_i)
//! signed violation        max_i sum (g_i.x_s - alpha_i)   what rounds below a threshold may repay
//! ```
//!
//! Sums over s <= t. Within a stretch they grow linearly, so they are known exactly at every checkpoint. Unit scale.

use serde::{Deserialize, Serialize};

use crate::Kind;
use crate::lab::epochs::Stretch;
use crate::lab::world::{Truth, World};
use crate::plan::Plan;
use crate::problem::{Policy, Problem};

/// A round is unsafe if some cost exceeds its threshold by more than this.
pub const UNSAFE_TOLERANCE: f64 = 1e-9;

/// A last strategy with limits is as good as the best if it earns at most this share of the reward's range less.
pub const BEST_TOLERANCE: f64 = 0.01;

/// A strategy that loses less than this in a round loses nothing: where means are equal, sums of rounded products are not.
const LOSS_TOLERANCE: f64 = 4.0 * f64::EPSILON;

/// What one run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// Rounds played.
    pub rounds: u64,
    /// Stretches of one strategy; debora's epochs.
    pub epochs: u64,
    /// None if no strategy is safe.
    pub regret: Option<f64>,
    /// The largest total of positive excesses over a threshold.
    pub violation: f64,
    /// The total of positive excesses, cost by cost.
    pub violations: Vec<f64>,
    /// The largest total of excesses, negative ones included. None without costs.
    pub signed_violation: Option<f64>,
    /// Rounds whose strategy was not safe.
    pub unsafe_rounds: u64,
    /// Epochs in which the estimates left no strategy within the thresholds.
    pub infeasible_epochs: u64,
    /// How one action was found to be played for good, a commitment or a pick; none if none was.
    pub decided_by: Option<Kind>,
    /// The round from which it is played.
    pub decided_at: Option<u64>,
    /// What the run's own record says that regret is at most, with the probability of the plan's bounds; none of players without
    /// estimates.
    pub lost_at_most: Option<f64>,
    /// Whether the last strategy is the best the world has: of policy free the best action, else within [`BEST_TOLERANCE`] of
    /// the optimum, and keeping the limits. None if no strategy is safe.
    pub ends_best: Option<bool>,
    /// The mean reward observed, in the user's units.
    pub reward_mean: f64,
    /// Rounds per action.
    pub counts: Vec<u64>,
    /// The last strategy.
    pub final_strategy: Vec<f64>,
    /// Over all strategies, if the player has a digest.
    pub digest: Option<String>,
    /// Regret so far at each checkpoint; empty if there is no safe strategy.
    pub regret_curve: Vec<f64>,
    /// Violation so far at each checkpoint.
    pub violation_curve: Vec<f64>,
    /// What the player says of this run, if anything.
    // Left out of files where there is none, as those written before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Rounds 1, 2, 3, 6, 10, 18, 32, 56, 100, .. (four a decade), and the horizon.
pub fn checkpoints(horizon: u64) -> Vec<u64> {
    let quarter = |step: u32| (libm::exp10(f64::from(step) / 4.0) + 0.5) as u64;
    // The first few round to the same numbers.
    let mut rounds: Vec<u64> = (0..)
        .map(quarter)
        .take_while(|&round| round < horizon)
        .collect();
    rounds.dedup();
    rounds.push(horizon);
    rounds
}

/// Adds up what a run costs, stretch by stretch.
pub struct Meter<'a> {
    problem: &'a Problem,
    means: &'a [Vec<f64>],
    best: Option<f64>,
    thresholds: &'a [f64],
    /// What the rounds so far may have lost by the player's own record, if it says.
    spans: Option<f64>,
    checkpoints: &'a [u64],
    regret: f64,
    /// Of the open stretch, cost by cost.
    excess: Vec<f64>,
    positive: Vec<f64>,
    signed: Vec<f64>,
    run: Run,
}

impl<'a> Meter<'a> {
    /// A meter at round 0.
    pub fn new(
        problem: &'a Problem,
        world: &'a dyn World,
        truth: &Truth,
        checkpoints: &'a [u64],
    ) -> Self {
        let thresholds = problem.thresholds();
        let zeros = vec![0.0; thresholds.len()];
        Self {
            problem,
            means: world.means(),
            best: truth.reward,
            thresholds,
            spans: Some(0.0),
            checkpoints,
            regret: 0.0,
            excess: Vec::new(),
            positive: zeros.clone(),
            signed: zeros,
            run: Run::default(),
        }
    }

    /// Adds a stretch.
    pub fn add(&mut self, stretch: &Stretch) {
        let strategy = stretch.player.strategy();
        let loss = self
            .best
            .map_or(0.0, |best| best - strategy.expectation(&self.means[0]));
        // A horizon long enough would make a regret of it, and the sign a best player.
        let loss = if loss.abs() < LOSS_TOLERANCE {
            0.0
        } else {
            loss
        };
        // A buffer of the meter's own: players that decide round by round have a stretch for every round.
        self.excess.clear();
        let limited = self.problem.limited().iter();
        let costs = limited.map(|&quantity| strategy.expectation(&self.means[quantity]));
        self.excess.extend(
            costs
                .zip(self.thresholds)
                .map(|(cost, threshold)| cost - threshold),
        );
        self.read_curves(stretch, loss);
        self.add_sums(stretch.rounds, loss);
        self.run.epochs += 1;
        let span = stretch.player.span();
        self.spans = self
            .spans
            .zip(span)
            .map(|(sum, span)| sum + span * stretch.rounds as f64);
        match stretch.player.record().map(|record| record.kind) {
            Some(Kind::Infeasible) => self.run.infeasible_epochs += 1,
            Some(kind @ (Kind::Commit | Kind::Pick)) => {
                self.run.decided_by = Some(kind);
                self.run.decided_at = Some(stretch.first_round);
            }
            Some(Kind::Explore | Kind::Estimate) | None => {}
        }
    }

    /// Reads the curves at the checkpoints within a stretch, in which every sum grows linearly.
    fn read_curves(&mut self, stretch: &Stretch, loss: f64) {
        let end = self.run.rounds + stretch.rounds;
        while let Some(&checkpoint) = self
            .checkpoints
            .get(self.run.violation_curve.len())
            .filter(|&&checkpoint| checkpoint <= end)
        {
            let rounds = (checkpoint - self.run.rounds) as f64;
            // Without a safe strategy there is nothing to regret, and the curve stays empty.
            if self.best.is_some() {
                self.run.regret_curve.push(self.regret + loss * rounds);
            }
            let so_far = self
                .positive
                .iter()
                .zip(&self.excess)
                .map(|(sum, excess)| sum + excess.max(0.0) * rounds);
            self.run.violation_curve.push(so_far.fold(0.0, f64::max));
        }
    }

    fn add_sums(&mut self, rounds: u64, loss: f64) {
        self.run.rounds += rounds;
        if self.excess.iter().any(|&excess| excess > UNSAFE_TOLERANCE) {
            self.run.unsafe_rounds += rounds;
        }
        let rounds = rounds as f64;
        self.regret += loss * rounds;
        let sums = self.positive.iter_mut().zip(&mut self.signed);
        for ((positive, signed), excess) in sums.zip(&self.excess) {
            // A round below its threshold repays nothing in the first, and all it can in the second.
            *positive += excess.max(0.0) * rounds;
            *signed += excess * rounds;
        }
    }

    /// Whether a strategy is as good as the best, on the true means.
    fn is_best(&self, best: f64, strategy: &[f64]) -> bool {
        let expectation = |quantity: usize| -> f64 {
            let products = strategy.iter().zip(&self.means[quantity]);
            products.map(|(probability, mean)| probability * mean).sum()
        };
        let lost = best - expectation(0);
        if self.problem.policy() == Policy::Free {
            return lost < LOSS_TOLERANCE;
        }
        let mut limits = self.problem.limited().iter().zip(self.thresholds);
        let kept = |(&quantity, &threshold): (&usize, &f64)| {
            expectation(quantity) <= threshold + UNSAFE_TOLERANCE
        };
        lost <= BEST_TOLERANCE && limits.all(kept)
    }

    /// The run's costs, with what only its end tells.
    pub fn finish(
        self,
        plan: &Plan,
        tally: &crate::Tally,
        final_strategy: &[f64],
        digest: Option<String>,
    ) -> Run {
        // The mean of all rounds from exact sums, whatever the order in which actions were played.
        let quantities = tally.quantities();
        let sum: u128 = tally.sums().iter().step_by(quantities).sum();
        let mean = sum as f64 / self.run.rounds as f64 / crate::mean::FIXED_ONE as f64;
        Run {
            regret: self.best.map(|_| self.regret),
            lost_at_most: self
                .spans
                .map(|spans| plan.bounds_of_spans(spans, self.run.rounds).0),
            ends_best: self.best.map(|best| self.is_best(best, final_strategy)),
            violation: self.positive.iter().copied().fold(0.0, f64::max),
            violations: self.positive,
            signed_violation: self.signed.iter().copied().reduce(f64::max),
            reward_mean: self.problem.quantity(0).range.to_user(mean),
            counts: tally.counts().to_vec(),
            final_strategy: final_strategy.to_vec(),
            digest,
            ..self.run
        }
    }
}

/// Mean and quantiles of a number over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The 5 % quantile.
    pub p05: f64,
    /// The median.
    pub median: f64,
    /// The 95 % quantile.
    pub p95: f64,
}

impl Spread {
    /// Of these values, in any order; `None` if there are no values. Quantiles are interpolated linearly between order
    /// statistics.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.is_empty() {
            return None;
        }
        // Before sorting, in the order of the runs: the order of a sum is part of its value.
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            mean,
            p05: quantile(&sorted, 0.05),
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
        })
    }
}

/// The value below which this share of them lies; there must be one at least.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = share * last as f64;
    let below = libm::floor(place) as usize;
    let part = place - libm::floor(place);
    sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
}

/// The Clopper-Pearson interval for a probability of which `hits` of `trials` were seen: it misses the truth with
/// probability at most `miss`, half on each side.
pub fn clopper_pearson(hits: u64, trials: u64, miss: f64) -> [f64; 2] {
    [
        lower_limit(hits, trials, miss / 2.0),
        1.0 - lower_limit(trials - hits, trials, miss / 2.0),
    ]
}

/// The one-sided lower limit: the truth is below it with probability at most `miss`, which is below 1/2.
///
/// The p with P(Binomial(trials, p) >= hits) = miss, by bisection to the last bit. The usual way is to invert the beta law, and
/// statrs 0.19 does so in microseconds even for 1e12 trials; but it takes its logarithms from the standard library, whose last
/// bits differ between platforms, and a limit decides an exit code.
pub fn lower_limit(hits: u64, trials: u64, miss: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    // The limit lies below the observed rate, since a miss is below 1/2.
    let mut low = 0.0;
    let mut high = hits as f64 / trials as f64;
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return low;
        }
        if upper_tail(hits, trials, middle) > miss {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/// P(Binomial(trials, p) >= hits) for p <= hits / trials, summed from its largest term on.
fn upper_tail(hits: u64, trials: u64, p: f64) -> f64 {
    let (n, k) = (trials as f64, hits as f64);
    let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    // In units of the first term, the largest: its logarithm may be far below what a double holds.
    let mut term = 1.0;
    let mut sum = 0.0;
    for j in hits..=trials {
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
        term *= (n - j as f64) / (j as f64 + 1.0) * p / (1.0 - p);
    }
    sum * libm::exp(ways + k * libm::log(p) + (n - k) * libm::log1p(-p))
}
