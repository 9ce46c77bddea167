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
use crate::problem::Problem;

/// A round is unsafe if some cost exceeds its threshold by more than this.
pub const UNSAFE_TOLERANCE: f64 = 1e-9;

/// What one run cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// Rounds 1, 2, 3, 6, 10, 18, 32, 56, 100, .. (four a decade), and the horizon.
pub fn checkpoints(horizon: u64) -> Vec<u64> {
    let quarter = |step: u32| (libm::exp10(f64::from(step) / 4.0) + 0.5) as u64;
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
        let run = Run {
            rounds: 0,
            epochs: 0,
            regret: None,
            violation: 0.0,
            violations: Vec::new(),
            signed_violation: None,
            unsafe_rounds: 0,
            infeasible_epochs: 0,
            reward_mean: 0.0,
            counts: Vec::new(),
            final_strategy: Vec::new(),
            digest: None,
            regret_curve: Vec::new(),
            violation_curve: Vec::new(),
        };
        let zeros = vec![0.0; thresholds.len()];
        Self {
            problem,
            means: world.means(),
            best: truth.reward,
            thresholds,
            checkpoints,
            regret: 0.0,
            excess: Vec::new(),
            positive: zeros.clone(),
            signed: zeros,
            run,
        }
    }

    /// Adds a stretch.
    pub fn add(&mut self, stretch: &Stretch) {
        let strategy = stretch.player.strategy();
        let loss = self
            .best
            .map_or(0.0, |best| best - strategy.expectation(&self.means[0]));
        let costs = self.means[1..].iter().map(|row| strategy.expectation(row));
        self.excess.clear();
        self.excess.extend(
            costs
                .zip(self.thresholds)
                .map(|(cost, threshold)| cost - threshold),
        );
        let excess = &self.excess;
        let end = self.run.rounds + stretch.rounds;
        while let Some(&checkpoint) = self
            .checkpoints
            .get(self.run.violation_curve.len())
            .filter(|&&c| c <= end)
        {
            let rounds = (checkpoint - self.run.rounds) as f64;
            if self.best.is_some() {
                self.run.regret_curve.push(self.regret + loss * rounds);
            }
            let so_far = self
                .positive
                .iter()
                .zip(excess)
                .map(|(sum, excess)| sum + excess.max(0.0) * rounds);
            self.run.violation_curve.push(so_far.fold(0.0, f64::max));
        }
        let rounds = stretch.rounds as f64;
        self.regret += loss * rounds;
        for ((positive, signed), excess) in
            self.positive.iter_mut().zip(&mut self.signed).zip(excess)
        {
            *positive += excess.max(0.0) * rounds;
            *signed += excess * rounds;
        }
        if excess.iter().any(|&excess| excess > UNSAFE_TOLERANCE) {
            self.run.unsafe_rounds += stretch.rounds;
        }
        self.run.rounds = end;
        self.run.epochs += 1;
        let infeasible = stretch
            .player
            .record()
            .is_some_and(|record| record.kind == Kind::Infeasible);
        self.run.infeasible_epochs += u64::from(infeasible);
    }

    /// The run's costs, with what only its end tells.
    pub fn finish(
        self,
        tally: &crate::Tally,
        final_strategy: &[f64],
        digest: Option<String>,
    ) -> Run {
        let quantities = tally.quantities();
        let sum: u128 = tally.sums().iter().step_by(quantities).sum();
        let mean = sum as f64 / self.run.rounds as f64 / crate::mean::FIXED_ONE as f64;
        Run {
            regret: self.best.map(|_| self.regret),
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
    /// Of these values, in any order; none of none. Quantiles are interpolated linearly between order statistics.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let quantile = |share: f64| {
            let place = share * last as f64;
            let (below, part) = (libm::floor(place) as usize, place - libm::floor(place));
            sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
        };
        Some(Self {
            mean,
            p05: quantile(0.05),
            median: quantile(0.5),
            p95: quantile(0.95),
        })
    }
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
/// The p with P(Binomial(trials, p) >= hits) = miss, by bisection to the last bit. Inverting the beta law, the usual way, is left
/// alone: the library at hand never returns from some ten million trials on.
pub fn lower_limit(hits: u64, trials: u64, miss: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, hits as f64 / trials as f64);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return low;
        }
        *(if upper_tail(hits, trials, middle) > miss {
            &mut high
        } else {
            &mut low
        }) = middle;
    }
}

/// P(Binomial(trials, p) >= hits) for p <= hits / trials, summed from its largest term on.
fn upper_tail(hits: u64, trials: u64, p: f64) -> f64 {
    let (n, k) = (trials as f64, hits as f64);
    let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    let (mut term, mut sum) = (1.0, 0.0);
    for j in hits..=trials {
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
        term *= (n - j as f64) / (j as f64 + 1.0) * p / (1.0 - p);
    }
    sum * libm::exp(ways + k * libm::log(p) + (n - k) * libm::log1p(-p))
}
