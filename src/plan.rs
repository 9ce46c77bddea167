//! The plan: every constant a run will use, computed from the problem alone, before any data.
//!
//! Profile tight explores until every action has n_f samples, estimates all of them, and then re-estimates an action
//! whenever its count has grown by the growth factor:
//!
//! ```text
//! levels    n_f, n_f growth, .., n_f growth^(J-1) <= T/K      chosen in `plan/tight.rs`
//! ```
//!
//! If no n_f fits, the plan is *blind*: nothing will ever be compared, and the plan says which horizon or rho would
//! change that. Sources: docs/theory.md; for profile paper, Algorithms 2 to 4 and the bounds of docs/deviations.md.

mod paper;
mod tight;

use std::sync::Arc;

use serde::Serialize;

use crate::Error;
use crate::budget::{Portion, Share, doublings};
use crate::clear::Clear;
use crate::problem::{HORIZON_MAX, Policy, Problem, Profile};
use crate::width::{self, Width};

use tight::{Chosen, Pace};
pub(crate) use tight::{fit, safe_weight};

/// A count at which an action is estimated, with the grid's cell and the width that then hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// Its number, from 0: count = n_f growth^level (2^level in profile paper, where levels are only examples: any count
    /// may occur).
    pub level: u32,
    /// The number of samples.
    pub count: u64,
    /// The grid's step, the largest over the quantities.
    pub cell: f64,
    /// Half-length of the confidence interval, the largest over the quantities.
    pub width: f64,
    /// The grid's step of each estimated quantity.
    pub cells: Vec<f64>,
    /// Half-length of the confidence interval of each estimated quantity.
    pub widths: Vec<f64>,
}

impl Level {
    fn new(level: usize, count: u64, of: impl Iterator<Item = Width>) -> Self {
        let (cells, widths): (Vec<f64>, Vec<f64>) = of.map(|of| (of.cell, of.width)).unzip();
        let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        Self {
            level: level as u32,
            count,
            cell: largest(&cells),
            width: largest(&widths),
            cells,
            widths,
        }
    }
}

/// What exploration does in an epoch, whatever the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Explore {
    /// Profile paper: the first epoch plays action 0.
    First,
    /// Free and soft: permuted blocks, each action so many times; `u64::MAX` if to the horizon.
    Blocks {
        /// Times each action is played.
        each: u64,
    },
    /// Hard: draws from a mixture with the uniform strategy over the actions below this count.
    Below {
        /// The first estimated count; `u64::MAX` if the plan is blind.
        count: u64,
    },
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
    /// The count at which actions are first estimated (tight), or from which widths are below 1/2 (paper). None if a tight
    /// plan is blind, or it exceeds 2^53.
    pub first_informative_count: Option<u64>,
    /// Rounds until all actions have that count; under hard constraints, on the expected path.
    pub exploration_rounds: Option<u64>,
    /// The levels that are estimated (tight), or the doublings (paper).
    pub levels: Vec<Level>,
    /// The clear test of policy free, if there are rounds enough for one.
    pub clear: Option<Clear>,
    /// Epochs at most.
    pub epochs_max: u64,
    /// Twice the reward's width at T/K samples each: gaps above it are seen. None below the first informative count.
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
        let chosen = tight::choose(&problem, growth);
        // A blind plan estimates nothing, and its share is never spent.
        let share = chosen
            .as_ref()
            .map_or(Share::tight(&problem, 1, Portion::WHOLE), |chosen| {
                Share::tight(&problem, chosen.levels, chosen.portion)
            });
        let levels = chosen.as_ref().map_or(Vec::new(), |chosen| {
            tight_levels(&problem, growth, share, chosen)
        });
        let first = levels.first().map(|level| level.count);
        let mut plan = Self {
            growth: Some(growth),
            blind: chosen.is_none(),
            first_informative_count: first,
            exploration_rounds: first.map(|first| Pace::of(&problem).rounds(first)),
            // Every level's count fits into T/K, so the last one decides.
            detectable_gap: levels.last().map(|level| 2.0 * level.widths[0]),
            levels,
            clear: chosen.and_then(|chosen| chosen.clear),
            ..Self::unfilled(problem, share)
        };
        plan.epochs_max = plan.tight_epochs_max().min(horizon);
        if plan.blind {
            plan.horizon_needed = tight::horizon_needed(&plan.problem);
            plan.rho_needed = tight::rho_needed(&plan.problem);
        }
        // Free plays single actions once exploration is over, so that only the estimates can fail; the others add the chance
        // of the draws.
        plan.set_bounds(match plan.problem.policy() {
            Policy::Free => 1.0,
            Policy::Soft | Policy::Hard => 2.0,
        });
        plan
    }

    /// Exploration's epochs, one for each count an action reaches after that, and the one that the horizon ends.
    fn tight_epochs_max(&self) -> u64 {
        let actions = self.problem.actions().len() as u64;
        let levels = self.levels.len() as u64;
        if levels == 0 {
            return 1;
        }
        match self.problem.policy() {
            // All actions come to n_f together.
            Policy::Free | Policy::Soft => {
                let stages = self
                    .clear
                    .as_ref()
                    .map_or(1, |clear| clear.stages.len() as u64);
                stages + actions * (levels - 1) + 1
            }
            Policy::Hard => actions * levels + 1,
        }
    }

    fn paper(problem: Arc<Problem>) -> Self {
        let horizon = problem.horizon();
        let actions = problem.actions().len() as u64;
        let share = Share::paper(&problem, doublings(horizon));
        let informative = paper::informative_count(share);
        let exploration = informative.and_then(|count| count.checked_mul(actions));
        let gap = 2.0 * width::paper(share, horizon / actions).width;
        let counts = std::iter::successors(Some(1u64), |count| Some(2 * count));
        let quantities = problem.quantities_estimated();
        let mut plan = Self {
            blind: exploration.is_none_or(|rounds| rounds >= horizon),
            first_informative_count: informative,
            exploration_rounds: exploration,
            // Any count may occur in this profile; the doublings show how widths fall.
            levels: counts
                .take_while(|&count| count < horizon)
                .enumerate()
                .map(|(k, count)| {
                    let each = std::iter::repeat_n(width::paper(share, count), quantities);
                    Level::new(k, count, each)
                })
                .collect(),
            epochs_max: (actions * u64::from(doublings(horizon)) + 1).min(horizon),
            detectable_gap: (gap < 1.0).then_some(gap),
            ..Self::unfilled(problem, share)
        };
        if plan.blind {
            plan.horizon_needed = paper::horizon_needed(&plan.problem);
            plan.rho_needed = paper::rho_needed(&plan.problem, share);
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
            clear: None,
            epochs_max: 0,
            detectable_gap: None,
            regret_bound: 0.0,
            violation_bound: None,
            bound_probability: 0.0,
            horizon_needed: None,
            rho_needed: None,
            share,
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
        for horizon in horizons() {
            let plan = Self::of(self.problem.with_horizon(horizon)?);
            if plan.detectable_gap.is_some_and(|seen| seen * most <= gap) {
                return Ok(Some(horizon));
            }
        }
        Ok(None)
    }

    /// Differences of a quantity's means that this horizon sees, on the unit scale: twice the width at T/K samples of each
    /// action. None if the plan is blind or the quantity is not estimated.
    pub fn sight(&self, quantity: usize) -> Option<f64> {
        match self.problem.profile() {
            Profile::Tight { .. } => Some(2.0 * self.levels.last()?.widths.get(quantity)?),
            // One width for all quantities.
            Profile::Paper => self
                .detectable_gap
                .filter(|_| quantity < self.problem.quantities_estimated()),
        }
    }

    /// For each quantity with a difference on the unit scale, the smallest horizon above this one known to see it.
    pub fn horizons_for_gaps(&self, gaps: &[(usize, f64)]) -> Vec<Option<u64>> {
        let mut found = vec![None; gaps.len()];
        // One pass for all of them: each horizon has a plan of its own to be made.
        for horizon in horizons().skip_while(|&horizon| horizon <= self.problem.horizon()) {
            if found.iter().all(Option::is_some) {
                break;
            }
            let problem = self.problem.with_horizon(horizon);
            let plan = Self::of(problem.expect("a longer horizon than one that was accepted"));
            for (found, &(quantity, gap)) in found.iter_mut().zip(gaps) {
                if found.is_none() && plan.sight(quantity).is_some_and(|sight| sight <= gap) {
                    *found = Some(horizon);
                }
            }
        }
        found
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
    /// F(n) sums d over an action's first n pulls: the longest declared range below n_f, then twice the largest width.
    fn tight_bound(&self, rounds: f64) -> f64 {
        let actions = self.problem.actions().len() as f64;
        let pulls = rounds / actions;
        let exploring = self
            .levels
            .first()
            .map_or(pulls, |first| pulls.min(first.count as f64));
        let longest = (0..self.problem.quantities_estimated())
            .map(|quantity| self.problem.means(quantity).span())
            .fold(0.0, f64::max);
        let mut sum = longest * exploring;
        // As charges never rise from pull to pull, F is concave, and spreading the rounds evenly over the actions is worst.
        for (k, level) in self.levels.iter().enumerate() {
            let end = self
                .levels
                .get(k + 1)
                .map_or(f64::INFINITY, |next| next.count as f64);
            sum += 2.0 * level.width * (pulls.min(end) - level.count as f64).max(0.0);
        }
        // Azuma and Hoeffding over the draws. Free draws nothing: exploration's counts are fixed, its other strategies single
        // actions.
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

    /// The count at which an action that begins an epoch with `count` ends it, if it can. In epochs of permuted blocks none
    /// does: all actions come to their counts together.
    pub(crate) fn target(&self, count: u64) -> Option<u64> {
        match self.problem.profile() {
            Profile::Tight { .. } => {
                let next = self.levels.partition_point(|level| level.count <= count);
                self.levels.get(next).map(|level| level.count)
            }
            Profile::Paper => Some((2 * count).max(1)),
        }
    }

    /// What is played, whatever the estimates, in an epoch that begins with these counts; none once all are estimated. No
    /// data enters, so no budget is spent.
    pub(crate) fn explore(&self, counts: &[u64]) -> Option<Explore> {
        if self.problem.profile() == Profile::Paper {
            return counts
                .iter()
                .all(|&count| count == 0)
                .then_some(Explore::First);
        }
        // A blind plan has no level, and explores to the horizon.
        let first = self.levels.first().map_or(u64::MAX, |first| first.count);
        if counts.iter().all(|&count| count >= first) {
            return None;
        }
        if self.problem.policy() == Policy::Hard {
            return Some(Explore::Below { count: first });
        }
        let stages = self.clear.as_ref().map_or(&[][..], |clear| &clear.stages);
        let stage = stages.iter().find(|&&stage| stage > counts[0]);
        let end = stage.copied().unwrap_or(first);
        Some(Explore::Blocks {
            each: end.saturating_sub(counts[0]),
        })
    }

    /// Whether an epoch can begin with these counts, as far as exploration says: permuted blocks bring all actions from stage
    /// to stage together.
    pub(crate) fn explores_in_step(&self, counts: &[u64]) -> bool {
        let Some(Explore::Blocks { .. }) = self.explore(counts) else {
            return true;
        };
        let stages = self.clear.as_ref().map_or(&[][..], |clear| &clear.stages);
        let together = counts.iter().all(|count| *count == counts[0]);
        together && (counts[0] == 0 || stages.contains(&counts[0]))
    }

    /// The count on which an action with `count` pulls at the start of an epoch is estimated; `None` if it never was.
    pub(crate) fn estimated_count(&self, count: u64) -> Option<u64> {
        match self.problem.profile() {
            Profile::Tight { .. } => self.level(count).map(|level| level.count),
            Profile::Paper => (count > 0).then_some(count),
        }
    }

    /// Width and cell of a quantity at `count` samples.
    pub(crate) fn width(&self, quantity: usize, count: u64) -> Width {
        match self.problem.profile() {
            Profile::Tight { .. } => {
                let level = self
                    .level(count)
                    .expect("only counts that are estimated have a width");
                Width {
                    width: level.widths[quantity],
                    cell: level.cells[quantity],
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

/// The horizons that are tried for the smallest that shows a gap.
fn horizons() -> impl Iterator<Item = u64> {
    // The gap falls with the horizon, but not steadily: a longer one may split rho over one more level. So the first of a fine
    // row of horizons is taken, where bisection could land on a later one.
    std::iter::successors(Some(10.0f64), |horizon| Some(horizon * 1.05))
        .take_while(|&horizon| horizon < HORIZON_MAX as f64)
        .map(|horizon| horizon as u64)
}

/// n_f, n_f growth, .. with the widths that the shares allow.
fn tight_levels(problem: &Problem, growth: u32, share: Share, chosen: &Chosen) -> Vec<Level> {
    let counts = std::iter::successors(Some(chosen.first), |count| {
        count.checked_mul(u64::from(growth))
    });
    counts
        .take(chosen.levels)
        .enumerate()
        .map(|(number, count)| {
            let quantities = 0..problem.quantities_estimated();
            let each = quantities.map(|q| width::tight(share, problem.means(q), count));
            Level::new(number, count, each)
        })
        .collect()
}
