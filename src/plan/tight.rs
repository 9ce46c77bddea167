//! How profile tight chooses its counts: when actions are first estimated, and how often after that.
//!
//! ```text
//! n_1(J) = smallest n with width_q(n) < phi (hi_q - lo_q) for every estimated q, the budget split over J levels
//! n_j    = n_1 growth^(j-1)
//! J      = largest, from 1 up without a gap, with explore(n_1(J)) <= T - 1 and n_J <= T/K
//! phi    = 3/10, and 1/2 if not even J = 1 fits
//! ```
//!
//! Policy free plans with the clear test first, and without it where the test does not fit. Source: docs/theory.md,
//! "Levels".

use crate::budget::{Portion, Share};
use crate::clear::Clear;
use crate::problem::{HORIZON_MAX, Policy, Problem, Safe};
use crate::width;

/// How small a width must be, as a share of its quantity's declared range, to be worth comparing; tried in turn. With 1/2
/// an optimistic choice can exclude something at last; with 3/10 the first choices are good ones.
const PHIS: [f64; 2] = [0.3, 0.5];

/// The counts at which a plan estimates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    /// The first estimated count, n_f.
    pub first: u64,
    /// How many levels are estimated.
    pub levels: usize,
    /// What the estimates may spend.
    pub portion: Portion,
    /// The clear test on the way to `first`.
    pub clear: Option<Clear>,
}

/// The plan's counts; none if it is blind.
pub(crate) fn choose(problem: &Problem, growth: u32) -> Option<Chosen> {
    let tested = match problem.policy() {
        Policy::Free => choose_with_test(problem, growth),
        Policy::Soft | Policy::Hard => None,
    };
    tested.or_else(|| {
        let (first, levels) = fit_shares(problem, growth, Portion::WHOLE)?;
        Some(Chosen {
            first,
            levels,
            portion: Portion::WHOLE,
            clear: None,
        })
    })
}

/// Policy free with the clear test, which leaves little to find at small counts: levels are skipped as long as exploring
/// beyond them takes at most a hundredth of the horizon.
fn choose_with_test(problem: &Problem, growth: u32) -> Option<Chosen> {
    let portion = Portion::BESIDE_TEST;
    let (mut first, mut levels) = fit_shares(problem, growth, portion)?;
    let actions = problem.actions().len();
    let most = problem.horizon() / (100 * actions as u64);
    while levels > 1 && first.saturating_mul(growth.into()) <= most {
        first *= u64::from(growth);
        levels -= 1;
    }
    let clear = Clear::of(actions, problem.rho(), problem.delta(), first)?;
    Some(Chosen {
        first,
        levels,
        portion,
        clear: Some(clear),
    })
}

fn fit_shares(problem: &Problem, growth: u32, portion: Portion) -> Option<(u64, usize)> {
    fit(problem, growth, |phi, levels, count| {
        is_informative(problem, Share::tight(problem, levels, portion), phi, count)
    })
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

/// Whether all widths at `count` are below `phi` of their quantity's declared range.
fn is_informative(problem: &Problem, share: Share, phi: f64, count: u64) -> bool {
    (0..problem.quantities_estimated()).all(|quantity| {
        let means = problem.means(quantity);
        width::tight(share, means, count).width < phi * means.span()
    })
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
    /// Rounds until each action has one sample, on the expected path.
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
        // A path of whole rounds may come out a last bit above them, but none is shorter than the samples it collects.
        let path = libm::ceil(self.rounds_per_sample * count as f64 * (1.0 - 1e-12));
        (path.min(u64::MAX as f64) as u64).max(count.saturating_mul(self.actions))
    }

    /// The largest count that takes at most so many rounds.
    pub fn count(&self, rounds: u64) -> u64 {
        let guess = (rounds as f64 / self.rounds_per_sample) as u64 + 2;
        // The quotient may round up, and `rounds` rounds up too: two counts below the guess is the least it can be.
        (guess.saturating_sub(4)..=guess)
            .rev()
            .find(|&count| self.rounds(count) <= rounds)
            .unwrap_or(0)
    }
}

/// The safe strategy's weight while nothing is estimated: costs may be as large as declared.
pub(crate) fn exploring_weight(problem: &Problem, safe: &Safe) -> f64 {
    let excesses = (1..)
        .zip(problem.thresholds())
        .map(|(quantity, threshold)| problem.means(quantity).high - threshold);
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
pub(crate) fn horizon_needed(problem: &Problem) -> Option<u64> {
    let share = Share::tight(problem, 1, Portion::WHOLE);
    let informative = |count| is_informative(problem, share, PHIS[1], count);
    let first = first_count(1, HORIZON_MAX, informative)?;
    let horizon = Pace::of(problem).rounds(first).saturating_add(1);
    (horizon <= HORIZON_MAX).then_some(horizon)
}

/// If blind: the rho above which the largest count that fits is informative alone.
pub(crate) fn rho_needed(problem: &Problem) -> Option<f64> {
    let count = Pace::of(problem).count(problem.horizon() - 1);
    let share = Share::tight(problem, 1, Portion::WHOLE);
    let rho = |quantity: usize| {
        let means = problem.means(quantity);
        let variance = width::variance_max(means);
        let room = means.span() - 2.0 * width::radius(variance, share.delta, count);
        (room > 0.0).then(|| share.shares * width::spread(variance, count) / room)
    };
    let needed = (0..problem.quantities_estimated())
        .map(rho)
        .try_fold(0.0, |most: f64, rho| Some(most.max(rho?)))?;
    (count > 0 && needed < 1.0).then_some(needed)
}
