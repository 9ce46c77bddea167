//! The plan: every constant a run will use, computed from the problem alone, before any data.
//!
//! Profile tight re-estimates an action when its count hits growth^k, k0 <= k <= top. The plan picks the levels:
//!
//! ```text
//! top = largest k with growth^k <= T - 1, then one less, and so on
//! k0  = smallest k <= top with width_k < 1/2 when the budget is split over the top - k + 1 levels k..top
//! the first top whose k0 exists and whose exploration, explore(growth^k0) rounds, fits into T - 1
//! ```
//!
//! If no top will do the plan is *blind*: nothing will ever be compared, and the plan says which horizon or rho would
//! change that. Sources: docs/theory.md; for profile paper, Algorithms 2 to 4 and the bounds of docs/deviations.md.

use std::f64::consts::PI;
use std::sync::Arc;

use serde::Serialize;

use crate::Error;
use crate::budget::{Share, doublings};
use crate::problem::{HORIZON_MAX, Policy, Problem, Profile};
use crate::width::{self, Width};

/// A count at which an action is estimated, with the grid's cell and the width that then hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// count = growth^level (2^level in profile paper, where levels are only examples: any count may occur).
    pub level: u32,
    /// The number of samples.
    pub count: u64,
    /// The grid's step.
    pub cell: f64,
    /// Half-length of the confidence interval.
    pub width: f64,
}

/// Every constant of a run, on the unit scale where each range is [0, 1]. Fields serialise by the names of the JSON contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// What is planned.
    #[serde(skip)]
    pub problem: Arc<Problem>,
    /// Which constants these are.
    pub profile: Profile,
    /// The factor by which counts grow between estimates; `None` in profile paper.
    pub growth: Option<u32>,
    /// What each estimate may spend of rho.
    pub rho_share: f64,
    /// What each estimate may spend of delta.
    pub delta_share: f64,
    /// Whether nothing will ever be compared.
    pub blind: bool,
    /// The count from which an action's width is below 1/2. None if no level of a tight plan is, or it exceeds 2^53.
    pub first_informative_count: Option<u64>,
    /// Rounds until all actions have that count; under hard constraints, on the expected path.
    pub exploration_rounds: Option<u64>,
    /// The levels that are estimated (tight), or the doublings (paper).
    pub levels: Vec<Level>,
    /// Epochs at most.
    pub epochs_max: u64,
    /// Twice the width at T/K samples each: gaps above it are seen. None below the first informative count.
    pub detectable_gap: Option<f64>,
    /// The regret is at most this, with probability `bound_probability`.
    pub regret_bound: f64,
    /// The violation is at most this, with probability `bound_probability`. None for policy free, which ignores costs.
    pub violation_bound: Option<f64>,
    /// The probability of the bounds.
    pub bound_probability: f64,
    /// If blind: the smallest horizon known to be enough. None if that exceeds 2^53, or the plan is not blind.
    pub horizon_needed: Option<u64>,
    /// If blind: any rho above this would be enough. None if no rho below 1 helps, or the plan is not blind.
    pub rho_needed: Option<f64>,
    #[serde(skip)]
    share: Share,
    /// The counts at which epochs end in profile tight: growth^0 .. growth^top.
    #[serde(skip)]
    counts: Vec<u64>,
}

impl Plan {
    /// Computes every constant.
    pub fn of(problem: impl Into<Arc<Problem>>) -> Self {
        let problem = problem.into();
        match problem.profile() {
            Profile::Tight { growth } => Self::tight(problem, growth),
            Profile::Paper => Self::paper(problem),
        }
    }

    fn tight(problem: Arc<Problem>, growth: u32) -> Self {
        let horizon = problem.horizon();
        let actions = problem.actions().len() as u64;
        let counts = powers(growth, horizon - 1);
        // A blind plan explores to the end: every count ends an epoch and none is estimated. Its share is never spent.
        let chosen = choose_levels(&problem, &counts);
        let (first, counts) = match chosen {
            Some((first, top)) => (first, counts[..=top].to_vec()),
            None => (counts.len(), counts),
        };
        let share = Share::tight(&problem, (counts.len() - first).max(1));
        let levels: Vec<Level> = (first..counts.len())
            .map(|k| level(k, counts[k], width::tight(share, counts[k])))
            .collect();
        let mut plan = Self {
            growth: Some(growth),
            blind: chosen.is_none(),
            first_informative_count: levels.first().map(|level| level.count),
            exploration_rounds: chosen.map(|(first, _)| exploration(&problem, &counts[..=first])),
            epochs_max: (actions * counts.len() as u64 + 1).min(horizon),
            detectable_gap: levels
                .iter()
                .rfind(|level| level.count <= horizon / actions)
                .map(|level| 2.0 * level.width),
            levels,
            counts,
            ..Self::unfilled(problem, share)
        };
        if plan.blind {
            plan.horizon_needed = tight_horizon_needed(&plan.problem, growth);
            plan.rho_needed = tight_rho_needed(&plan.problem, growth);
        }
        // Free strategies are single actions, so that only the estimates can fail; the others add the chance of the draws.
        plan.set_bounds(match plan.problem.policy() {
            Policy::Free => 1.0,
            Policy::Soft | Policy::Hard => 2.0,
        });
        plan
    }

    fn paper(problem: Arc<Problem>) -> Self {
        let horizon = problem.horizon();
        let actions = problem.actions().len() as u64;
        let share = Share::paper(&problem, doublings(horizon));
        let informative = paper_informative_count(share);
        let exploration = informative.and_then(|count| count.checked_mul(actions));
        let gap = 2.0 * width::paper(share, horizon / actions).width;
        let counts = powers(2, horizon - 1);
        let mut plan = Self {
            blind: exploration.is_none_or(|rounds| rounds >= horizon),
            first_informative_count: informative,
            exploration_rounds: exploration,
            // Any count may occur in this profile; the doublings show how widths fall.
            levels: counts
                .iter()
                .enumerate()
                .map(|(k, &count)| level(k, count, width::paper(share, count)))
                .collect(),
            epochs_max: (actions * u64::from(doublings(horizon)) + 1).min(horizon),
            detectable_gap: (gap < 1.0).then_some(gap),
            ..Self::unfilled(problem, share)
        };
        if plan.blind {
            plan.horizon_needed = paper_horizon_needed(&plan.problem);
            plan.rho_needed = paper_rho_needed(&plan.problem, share);
        }
        // The published delta' leaves half of delta to the draws (docs/theory.md, section 7), so nothing is added.
        plan.set_bounds(1.0);
        plan
    }

    /// What both profiles fill in alike, and nothing where they differ.
    fn unfilled(problem: Arc<Problem>, share: Share) -> Self {
        Self {
            profile: problem.profile(),
            growth: None,
            rho_share: share.rho,
            delta_share: share.delta,
            blind: false,
            first_informative_count: None,
            exploration_rounds: None,
            levels: Vec::new(),
            epochs_max: 0,
            detectable_gap: None,
            regret_bound: 0.0,
            violation_bound: None,
            bound_probability: 0.0,
            horizon_needed: None,
            rho_needed: None,
            share,
            counts: Vec::new(),
            problem,
        }
    }

    /// Sets the bounds, which fail with probability `failures` times delta.
    fn set_bounds(&mut self, failures: f64) {
        (self.regret_bound, self.violation_bound) = self.bounds_at(self.problem.horizon());
        self.bound_probability = (1.0 - failures * self.problem.delta()).max(0.0);
    }

    /// The smallest horizon, up to a factor of 1.05, at which the detectable gap is at most `gap`, in the reward's units. None
    /// if no horizon up to 2^53 shows it.
    pub fn horizon_for_gap(&self, gap: f64) -> Result<Option<u64>, Error> {
        let most = self.problem.quantity(0).range.span();
        if !(gap > 0.0 && gap <= most) {
            return Err(Error::Gap { gap, most });
        }
        // The gap falls with the horizon, but not steadily: a longer one may split rho over one more level. So the first of
        // a fine row of horizons is taken, where bisection could land on a later one.
        let mut horizon = 10.0f64;
        while horizon < HORIZON_MAX as f64 {
            let plan = Self::of(self.problem.with_horizon(horizon as u64)?);
            if plan.detectable_gap.is_some_and(|seen| seen * most <= gap) {
                return Ok(Some(horizon as u64));
            }
            horizon *= 1.05;
        }
        Ok(None)
    }

    /// Bounds on regret and violation after this many rounds of the run, each with probability `bound_probability`.
    pub fn bounds_at(&self, round: u64) -> (f64, Option<f64>) {
        let problem = &self.problem;
        let rounds = round as f64;
        let summed_widths = match problem.profile() {
            Profile::Tight { .. } => self.tight_bound(rounds),
            Profile::Paper => self.paper_bound(rounds),
        };
        // sigma <= d.x / margin: this is what mixing with the safe strategy costs (docs/theory.md, "Hard constraints").
        let factor = problem
            .margin_min()
            .map_or(1.0, |margin| 1.0 + 1.0 / margin);
        let violation = match problem.policy() {
            Policy::Free => None,
            Policy::Soft => Some(summed_widths.min(rounds)),
            Policy::Hard => Some(0.0),
        };
        ((factor * summed_widths).min(rounds), violation)
    }

    /// K F(T/K), and the deviation of the actions drawn from their strategies where a policy draws.
    ///
    /// F(n) sums d over an action's first n pulls: 1 while its level is below k0, then twice its width.
    fn tight_bound(&self, rounds: f64) -> f64 {
        let actions = self.problem.actions().len() as f64;
        let pulls = rounds / actions;
        let mut sum = self
            .levels
            .first()
            .map_or(pulls, |first| pulls.min(first.count as f64));
        // As charges never rise from pull to pull, F is concave, and spreading the rounds evenly over the actions is worst.
        for (k, level) in self.levels.iter().enumerate() {
            let end = self
                .levels
                .get(k + 1)
                .map_or(f64::INFINITY, |next| next.count as f64);
            sum += 2.0 * level.width * (pulls.min(end) - level.count as f64).max(0.0);
        }
        // Azuma and Hoeffding over the draws; free strategies are single actions, and nothing is drawn.
        let drawn = match self.problem.policy() {
            Policy::Free => 0.0,
            Policy::Soft | Policy::Hard => {
                libm::sqrt(rounds * libm::log(1.0 / self.problem.delta()) / 2.0)
            }
        };
        actions * sum + drawn
    }

    /// Section "Bounds of profile paper" of docs/deviations.md.
    fn paper_bound(&self, rounds: f64) -> f64 {
        let actions = self.problem.actions().len() as f64;
        let drawn = match self.problem.policy() {
            Policy::Free => 0.0,
            Policy::Soft | Policy::Hard => {
                libm::sqrt(2.0 * rounds * libm::log(4.0 / self.problem.delta()))
            }
        };
        2.0 * std::f64::consts::SQRT_2
            * width::paper(self.share, 1).width
            * (2.0 * libm::sqrt(actions * rounds) + drawn)
    }

    /// The share of the horizon that exploration takes; 1 if the plan is blind. Above a fifth it deserves a warning.
    pub fn exploration_share(&self) -> f64 {
        // A blind plan of profile paper knows how long exploration would take, but it does not end in time.
        match self.exploration_rounds {
            Some(rounds) if !self.blind => rounds as f64 / self.problem.horizon() as f64,
            _ => 1.0,
        }
    }

    /// The count at which an action that begins an epoch with `count` ends it, if it can.
    pub fn target(&self, count: u64) -> Option<u64> {
        match self.problem.profile() {
            Profile::Tight { .. } => self
                .counts
                .get(self.counts.partition_point(|&target| target <= count))
                .copied(),
            Profile::Paper => Some((2 * count).max(1)),
        }
    }

    /// The action to play, whatever its estimates, at the start of an epoch with these counts; `None` once all are estimated.
    ///
    /// Tight: the smallest (level, index) while some action is below level k0. Paper: action 0 in the first epoch. No data
    /// enters, so no budget is spent.
    pub fn explored(&self, counts: &[u64]) -> Option<u32> {
        match self.problem.profile() {
            Profile::Tight { .. } => self.explored_tight(counts),
            Profile::Paper => counts.iter().all(|&count| count == 0).then_some(0),
        }
    }

    fn explored_tight(&self, counts: &[u64]) -> Option<u32> {
        // A blind plan has no level and explores to the end.
        let first = self.levels.first().map_or(u64::MAX, |first| first.count);
        if counts.iter().all(|&count| count >= first) {
            return None;
        }
        let level = |count: u64| self.counts.partition_point(|&target| target <= count);
        (0..)
            .zip(counts)
            .min_by_key(|&(action, &count)| (level(count), action))
            .map(|(action, _)| action)
    }

    /// The count on which an action with `count` pulls at the start of an epoch is estimated; `None` if it never was.
    pub(crate) fn estimated_count(&self, count: u64) -> Option<u64> {
        match self.problem.profile() {
            Profile::Tight { .. } => self.level(count).map(|level| level.count),
            Profile::Paper => (count > 0).then_some(count),
        }
    }

    /// Width and cell at `count` samples.
    pub(crate) fn width(&self, count: u64) -> Width {
        match self.problem.profile() {
            Profile::Tight { .. } => {
                let level = self
                    .level(count)
                    .expect("only counts that are estimated have a width");
                Width {
                    width: level.width,
                    cell: level.cell,
                }
            }
            Profile::Paper => width::paper(self.share, count),
        }
    }

    /// The highest level at or below `count`.
    pub(crate) fn level(&self, count: u64) -> Option<&Level> {
        self.levels.iter().rfind(|level| level.count <= count)
    }
}

fn level(level: usize, count: u64, Width { width, cell }: Width) -> Level {
    Level {
        level: level as u32,
        count,
        cell,
        width,
    }
}

/// growth^0, growth^1, .. up to `most`.
pub(crate) fn powers(growth: u32, most: u64) -> Vec<u64> {
    std::iter::successors(Some(1u64), |count| count.checked_mul(u64::from(growth)))
        .take_while(|&n| n <= most)
        .collect()
}

/// k0 and top, as the module's first paragraph says.
fn choose_levels(problem: &Problem, counts: &[u64]) -> Option<(usize, usize)> {
    // Later levels cost budget too: giving up the last one may be what lets the first begin in time.
    (0..counts.len()).rev().find_map(|top| {
        let informative = |&k: &usize| {
            let share = Share::tight(problem, top - k + 1);
            width::tight(share, counts[k]).width < 0.5
        };
        let first = (0..=top).find(informative)?;
        (exploration(problem, &counts[..=first]) < problem.horizon()).then_some((first, top))
    })
}

/// Rounds until all actions have `counts`' last entry, exploring level by level and action by action.
///
/// Under hard constraints a round goes to the explored action with probability 1 - sigma_0 only, sigma_0 being the safe
/// strategy's weight when costs could be 1; actions the safe strategy plays gain on the way. The time is that of the
/// expected path: each action gets its probability's share of every stretch.
fn exploration(problem: &Problem, counts: &[u64]) -> u64 {
    let count = counts[counts.len() - 1];
    let Some(safe) = problem.safe() else {
        return count.saturating_mul(problem.actions().len() as u64);
    };
    let sigma = safe_weight(
        problem.thresholds().iter().map(|threshold| 1.0 - threshold),
        &safe.margins,
    );
    // A closed form from the size of the safe strategy's support falls short by up to 1/(1 - sigma) when it spreads thinly,
    // so the path is followed step by step (docs/deviations.md).
    let mut explored = vec![0.0; problem.actions().len()];
    let mut rounds = 0.0;
    for &count in counts {
        for (explored, safe) in explored.iter_mut().zip(safe.strategy.probabilities()) {
            let missing = count as f64 - (*explored + sigma * safe * rounds);
            if missing > 0.0 {
                let stretch = missing / (1.0 - sigma + sigma * safe);
                *explored += (1.0 - sigma) * stretch;
                rounds += stretch;
            }
        }
    }
    // A path of whole rounds may come out a last bit above them, but none is shorter than the samples it collects.
    let rounds = libm::ceil(rounds * (1.0 - 1e-12)).min(u64::MAX as f64) as u64;
    rounds.max(count.saturating_mul(problem.actions().len() as u64))
}

/// The largest y_i / (y_i + margin_i) over positive excesses y_i; 0 if there is none. Algorithm 4, lines 4 and 18.
pub(crate) fn safe_weight(excesses: impl Iterator<Item = f64>, margins: &[f64]) -> f64 {
    excesses
        .zip(margins)
        .filter(|(excess, _)| *excess > 0.0)
        .map(|(excess, margin)| excess / (excess + margin))
        .fold(0.0, f64::max)
}

/// Exploration of the first level that would be informative alone, and one round to use it.
fn tight_horizon_needed(problem: &Problem, growth: u32) -> Option<u64> {
    let share = Share::tight(problem, 1);
    let counts = powers(growth, HORIZON_MAX);
    let level = counts
        .iter()
        .position(|&count| width::tight(share, count).width < 0.5)?;
    Some(exploration(problem, &counts[..=level]).saturating_add(1))
        .filter(|&horizon| horizon <= HORIZON_MAX)
}

/// The rho at which the largest count that fits has width 1/2, alone.
fn tight_rho_needed(problem: &Problem, growth: u32) -> Option<f64> {
    let counts = powers(growth, problem.horizon() - 1);
    let fits = |level: &usize| exploration(problem, &counts[..=*level]) < problem.horizon();
    let count = counts[(0..counts.len()).rfind(fits)?];
    // hoeffding + cell/2 < 1/2, solved for rho.
    let shares = Share::tight(problem, 1).shares;
    let room = 1.0 - 2.0 * width::hoeffding(problem.delta() / shares, count);
    let rho = shares / (libm::sqrt(PI * count as f64) * room);
    (room > 0.0 && rho < 1.0).then_some(rho)
}

/// The smallest count of profile paper with width below 1/2; `None` beyond 2^53.
fn paper_informative_count(share: Share) -> Option<u64> {
    // width(1)^2 / n < 1/4. The closed form may be off by one in the last bit, so look at the count itself.
    let guess = libm::floor(4.0 * width::paper(share, 1).width * width::paper(share, 1).width);
    if guess >= HORIZON_MAX as f64 {
        return None;
    }
    let guess = guess as u64;
    (guess.saturating_sub(1)..guess + 3).find(|&n| n > 0 && width::paper(share, n).width < 0.5)
}

/// The smallest horizon with K times the informative count at or below T - 1; the shares depend on T by its doublings only.
fn paper_horizon_needed(problem: &Problem) -> Option<u64> {
    (1..=doublings(HORIZON_MAX)).find_map(|exponent| {
        let count = paper_informative_count(Share::paper(problem, exponent))?;
        let needed = count
            .checked_mul(problem.actions().len() as u64)?
            .saturating_add(1);
        let smallest = if exponent == 1 {
            1
        } else {
            (1 << (exponent - 1)) + 1
        };
        (needed <= 1 << exponent).then_some(needed.max(smallest))
    })
}

/// The rho at which floor((T - 1)/K) samples have width 1/2.
fn paper_rho_needed(problem: &Problem, share: Share) -> Option<f64> {
    let count = (problem.horizon() - 1) / problem.actions().len() as u64;
    let room = 2.0 * libm::sqrt(2.0 * libm::log(2.0 / share.delta) / count as f64);
    Some(share.shares * (room + 2.0 * share.delta)).filter(|rho| *rho < 1.0)
}
