//! How profile tight chooses the counts of soft and hard: when actions are first estimated, and how often after that.
//!
//! ```text
//! n_1(J) = smallest n with width(n) < phi, rho and delta split over J levels
//! n_j    = n_1 growth^(j-1)
//! J      = largest, from 1 up without a gap, with explore(n_1(J)) <= T - 1 and n_J <= T/K
//! phi    = 3/10, and 1/2 if not even J = 1 fits
//! ```
//!
//! With `explore` = s there is one level, at n_f = max(1, floor(s T/explore(1))). Source: docs/theory.md, "Levels".

use super::rounding::{ceil, floor};
use crate::budget::Share;
use crate::problem::{HORIZON_MAX, Problem, Safe};
use crate::width;

/// How small a width on the line must be to be worth comparing; tried in turn. With 1/2 an optimistic choice can exclude
/// something at last; with 3/10 the first choices are good ones.
const PHIS: [f64; 2] = [0.3, 0.5];

/// The counts at which a plan estimates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    /// The first estimated count, n_f.
    pub first: u64,
    /// How many levels are estimated.
    pub levels: usize,
}

/// The plan's counts; none if it is blind.
pub(super) fn choose(problem: &Problem, growth: u32) -> Option<Chosen> {
    if problem.explore().is_some() {
        return choose_one(problem);
    }
    let (first, levels) = fit(problem, growth, |phi, levels, count| {
        is_informative(problem, levels, phi, count)
    })?;
    Some(Chosen { first, levels })
}

/// One level, after the share of the horizon that was asked for.
fn choose_one(problem: &Problem) -> Option<Chosen> {
    let first = count_asked_for(problem)?;
    let fits = Pace::of(problem).rounds(first) < problem.horizon();
    (fits && is_informative(problem, 1, PHIS[1], first)).then_some(Chosen { first, levels: 1 })
}

/// max(1, floor(s T/explore(1))), with `explore` = s.
fn count_asked_for(problem: &Problem) -> Option<u64> {
    let rounds = problem.explore()? * problem.horizon() as f64;
    Some(floor(rounds / Pace::of(problem).rounds_per_sample).max(1))
}

/// n_1 and J, for what is informative at a phi, a number of levels and a count.
pub(crate) fn fit(
    problem: &Problem,
    growth: u32,
    informative: impl Fn(f64, usize, u64) -> bool,
) -> Option<(u64, usize)> {
    let pace = Pace::of(problem);
    let horizon = problem.horizon();
    let most = horizon / problem.actions().len() as u64;
    PHIS.into_iter().find_map(|phi| {
        let mut fitting: Option<(u64, usize)> = None;
        for levels in 1.. {
            // More levels mean smaller shares and a later n_1: each search begins where the last one ended.
            let from = fitting.map_or(1, |(first, _)| first);
            let fits = |first: &u64| {
                let top = u64::from(growth)
                    .checked_pow(levels as u32 - 1)
                    .and_then(|power| first.checked_mul(power));
                top.is_some_and(|top| top <= most) && pace.rounds(*first) < horizon
            };
            match first_count(from, most, |count| informative(phi, levels, count)).filter(fits) {
                Some(first) => fitting = Some((first, levels)),
                None => break,
            }
        }
        fitting
    })
}

/// Whether the width at `count` is below `phi`.
fn is_informative(problem: &Problem, levels: usize, phi: f64, count: u64) -> bool {
    width::tight(Share::tight(problem, levels), count).width < phi
}

/// The smallest informative count in `from..=most`. Widths fall with the count, so doubling brackets it and halving finds it.
fn first_count(from: u64, most: u64, informative: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (from, from);
    while high > most || !informative(high) {
        if high >= most {
            return None;
        }
        low = high + 1;
        high = high.saturating_mul(2).min(most);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if informative(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// How long exploration takes: in proportion to the samples that each action is to have.
pub(crate) struct Pace {
    actions: u64,
    /// explore(1): rounds until each action has one sample, on the expected path.
    rounds_per_sample: f64,
}

impl Pace {
    pub fn of(problem: &Problem) -> Self {
        let actions = problem.actions().len() as u64;
        let rounds_per_sample = match problem.safe() {
            None => actions as f64,
            Some(safe) => hard_pace(safe, exploring_weight(problem, safe)),
        };
        Self {
            actions,
            rounds_per_sample,
        }
    }

    /// Rounds until each action has `count` samples.
    pub fn rounds(&self, count: u64) -> u64 {
        // None is shorter than the samples it collects, which rounding of the path could make it.
        ceil(self.rounds_per_sample * count as f64).max(count.saturating_mul(self.actions))
    }

    /// The largest count that takes at most so many rounds.
    fn count(&self, rounds: u64) -> u64 {
        let guess = (rounds as f64 / self.rounds_per_sample) as u64 + 2;
        // The quotient may round up, and `rounds` rounds up too: two counts below the guess is the least it can be.
        (guess.saturating_sub(4)..=guess)
            .rev()
            .find(|&count| self.rounds(count) <= rounds)
            .unwrap_or(0)
    }
}

/// The safe strategy's weight while nothing is estimated: each cost may be as large as its range.
fn exploring_weight(problem: &Problem, safe: &Safe) -> f64 {
    let excesses = problem.thresholds().iter().map(|threshold| 1.0 - threshold);
    safe_weight(excesses, &safe.margins)
}

/// Rounds until each action has one sample, if in every round each action gets its probability's share: weight sigma goes
/// to the safe strategy, the rest evenly to the actions that still have less than one.
///
/// Departs from a bound by the slowest action alone, which is short by a factor of two and more where the safe strategy
/// spreads thinly (docs/deviations.md).
fn hard_pace(safe: &Safe, sigma: f64) -> f64 {
    // What the safe strategy plays most arrives first, so the order of arrivals is known beforehand.
    let mut plays: Vec<f64> = safe.strategy.probabilities().to_vec();
    plays.sort_by(|one, other| other.total_cmp(one));
    let mut rounds = 0.0;
    let mut evenly = 0.0;
    for (arrived, play) in plays.iter().enumerate() {
        let below = (plays.len() - arrived) as f64;
        let missing = 1.0 - (sigma * play * rounds + evenly);
        if missing > 0.0 {
            let stretch = missing * below / (1.0 - sigma + sigma * play * below);
            rounds += stretch;
            evenly += (1.0 - sigma) * stretch / below;
        }
    }
    rounds
}

/// The largest y_i / (y_i + margin_i) over positive excesses y_i; 0 if there is none. Algorithm 4, lines 4 and 18.
pub(crate) fn safe_weight(excesses: impl Iterator<Item = f64>, margins: &[f64]) -> f64 {
    excesses
        .zip(margins)
        .filter(|(excess, _)| *excess > 0.0)
        .map(|(excess, margin)| excess / (excess + margin))
        .fold(0.0, f64::max)
}

/// If blind: the smallest horizon that is not. One level alone has the largest shares, and needs one round to be used.
pub(super) fn horizon_needed(problem: &Problem) -> Option<u64> {
    let first = first_count(1, HORIZON_MAX, |count| {
        is_informative(problem, 1, PHIS[1], count)
    })?;
    let pace = Pace::of(problem);
    let least = pace.rounds(first).saturating_add(1);
    let horizon = match problem.explore() {
        None => least,
        Some(share) => least.max(horizon_giving(share, pace.rounds_per_sample, first)),
    };
    (horizon <= HORIZON_MAX).then_some(horizon)
}

/// The least T with floor(s T/explore(1)) >= count.
fn horizon_giving(share: f64, rounds_per_sample: f64, count: u64) -> u64 {
    let enough = |horizon: u64| floor(share * horizon as f64 / rounds_per_sample) >= count;
    let guess = ceil(count as f64 * rounds_per_sample / share);
    // The closed form may miss by a last bit, which for long horizons is more than one round.
    let (mut low, mut high) = (
        guess - guess / (1 << 40) - guess.min(2),
        guess + guess / (1 << 40) + 2,
    );
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

/// If blind: the rho above which the largest count that fits is informative: E spread(n)/(1 - 2 radius(n)).
pub(super) fn rho_needed(problem: &Problem) -> Option<f64> {
    let count = match count_asked_for(problem) {
        Some(count) => count,
        None => Pace::of(problem).count(problem.horizon() - 1),
    };
    if count == 0 {
        return None;
    }
    let share = Share::tight(problem, 1);
    let room = 1.0 - 2.0 * width::radius(share.delta, count);
    let rho = share.shares * width::spread(count) / room;
    (room > 0.0 && rho < 1.0).then_some(rho)
}
