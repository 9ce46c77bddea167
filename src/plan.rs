//! The plan: every constant a run will use, computed from the problem alone, before any data.
//!
//! In profile tight policy free tries all actions equally often and then plays one of them for good:
//!
//! ```text
//! trial     n_f of each action, with looks on the way      `plan/trial.rs`
//! ```
//!
//! Soft and hard explore until every action has n_f samples, estimate all of them, and then re-estimate an action whenever its
//! count has grown by the growth factor:
//!
//! ```text
//! levels    n_f, n_f growth, .., n_f growth^(J-1) <= T/K      `plan/tight.rs`
//! ```
//!
//! If no n_f fits, the plan is *blind*: nothing will ever be compared, and the plan says which horizon or rho would
//! change that. Sources: docs/theory.md; for profile paper, Algorithms 2 to 4 and the bounds of docs/deviations.md.

mod bounds;
mod paper;
pub(crate) mod rounding;
mod sight;
mod tight;
mod trial;

use std::sync::Arc;

use serde::Serialize;

use crate::Error;
use crate::budget::{Share, doublings};
use crate::line::MeanLine;
use crate::problem::{HORIZON_MAX, Policy, Problem, Profile};
use crate::width::{self, Width};

pub use sight::Sight;
use tight::Pace;
pub(crate) use tight::{fit, safe_weight};
pub use trial::{PlannedLook, Trial};

/// A count at which an action is estimated, with the grid's cell and the width that then hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// Its number, from 0: count = n_f growth^level (2^level in profile paper, where levels are only examples: any count
    /// may occur).
    pub level: u32,
    /// The number of samples.
    pub count: u64,
    /// The grid's step: on the line in profile tight, as a share of the range in profile paper.
    pub cell: f64,
    /// Half-length of the confidence interval, likewise.
    pub width: f64,
}

impl Level {
    fn new(level: usize, count: u64, Width { width, cell }: Width) -> Self {
        Self {
            level: level as u32,
            count,
            cell,
            width,
        }
    }
}

/// What exploration does in an epoch, whatever the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Explore {
    /// Profile paper: the first epoch plays action 0.
    First,
    /// Free and soft: permuted blocks.
    Blocks,
    /// Hard: draws from a mixture with the uniform strategy over the actions below this count.
    Below {
        /// The first estimated count; `u64::MAX` if the plan is blind.
        count: u64,
    },
}

/// Every constant of a run. Fields serialise by the names of the JSON contract; what a policy does not have is null.
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
    /// The share of the horizon that exploration was asked to take.
    pub explore: Option<f64>,
    /// How much of an estimate's uncertainty counts against a cost; of policy soft in profile tight.
    pub caution: Option<f64>,
    /// What each estimate may spend of rho; none where nothing is estimated.
    pub rho_share: Option<f64>,
    /// What each estimate may spend of delta.
    pub delta_share: Option<f64>,
    /// c of the line that estimates are rounded on; none in profile paper and of policy free.
    pub offset_c: Option<f64>,
    /// Whether nothing will ever be compared.
    pub blind: bool,
    /// The count at which actions are first estimated (tight), or from which widths are below 1/2 (paper). None if a tight
    /// plan is blind or nothing is estimated, or it exceeds 2^53.
    pub first_informative_count: Option<u64>,
    /// Rounds until all actions have been tried as often as planned; under hard constraints, on the expected path.
    pub exploration_rounds: Option<u64>,
    /// The levels that are estimated (tight), or the doublings (paper).
    pub levels: Vec<Level>,
    /// The trial of policy free in profile tight; none if the plan is blind.
    pub trial: Option<Trial>,
    /// Epochs at most.
    pub epochs_max: u64,
    /// The difference of rewards, as a share of their range, that is found with probability .9: of policy free around a mean
    /// of 1/2 the lead that is picked, else twice the width at T/K samples each. None if nothing is.
    pub detectable: Option<f64>,
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
    share: Option<Share>,
}

impl Plan {
    /// Computes every constant.
    pub fn of(problem: impl Into<Arc<Problem>>) -> Self {
        let problem = problem.into();
        match (problem.profile(), problem.policy()) {
            (Profile::Tight { growth }, Policy::Free) => Self::free(problem, growth),
            (Profile::Tight { growth }, _) => Self::tight(problem, growth),
            (Profile::Paper, _) => Self::paper(problem),
        }
    }

    fn free(problem: Arc<Problem>, growth: u32) -> Self {
        let actions = problem.actions().len() as u64;
        let trial = Trial::new(&problem, growth);
        let mut plan = Self {
            growth: Some(growth),
            blind: trial.is_none(),
            exploration_rounds: trial.as_ref().map(|trial| trial.count * actions),
            epochs_max: trial.as_ref().map_or(1, Trial::epochs_max),
            trial,
            ..Self::unfilled(problem, None)
        };
        plan.epochs_max = plan.epochs_max.min(plan.problem.horizon());
        if plan.blind {
            plan.horizon_needed = Some(actions + 1);
        }
        plan.detectable = plan.sight().and_then(|sight| sight.around_half());
        plan.set_bounds(2.0);
        plan
    }

    fn tight(problem: Arc<Problem>, growth: u32) -> Self {
        let chosen = tight::choose(&problem, growth);
        // A blind plan estimates nothing, and its share is never spent.
        let share = Share::tight(&problem, chosen.as_ref().map_or(1, |chosen| chosen.levels));
        let levels: Vec<Level> = chosen.as_ref().map_or(Vec::new(), |chosen| {
            let counts = std::iter::successors(Some(chosen.first), |count| {
                count.checked_mul(u64::from(growth))
            });
            counts
                .take(chosen.levels)
                .enumerate()
                .map(|(number, count)| Level::new(number, count, width::tight(share, count)))
                .collect()
        });
        let first = levels.first().map(|level| level.count);
        let mut plan = Self {
            growth: Some(growth),
            caution: (problem.policy() == Policy::Soft).then(|| problem.caution()),
            offset_c: Some(width::offset_c(share.delta)),
            blind: chosen.is_none(),
            first_informative_count: first,
            exploration_rounds: first.map(|first| Pace::of(&problem).rounds(first)),
            // Every level's count fits into T/K, so the last one decides.
            detectable: levels
                .last()
                .map(|level| 2.0 * level.width)
                .filter(|&found| found < 1.0),
            levels,
            ..Self::unfilled(problem, Some(share))
        };
        plan.epochs_max = plan.tight_epochs_max().min(plan.problem.horizon());
        if plan.blind {
            plan.horizon_needed = tight::horizon_needed(&plan.problem);
            plan.rho_needed = tight::rho_needed(&plan.problem);
        }
        // The estimates may fail, and the chance of the draws.
        plan.set_bounds(2.0);
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
            Policy::Free | Policy::Soft => actions * (levels - 1) + 2,
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
        let mut plan = Self {
            blind: exploration.is_none_or(|rounds| rounds >= horizon),
            first_informative_count: informative,
            exploration_rounds: exploration,
            // Any count may occur in this profile; the doublings show how widths fall.
            levels: counts
                .take_while(|&count| count < horizon)
                .enumerate()
                .map(|(k, count)| Level::new(k, count, width::paper(share, count)))
                .collect(),
            epochs_max: (actions * u64::from(doublings(horizon)) + 1).min(horizon),
            detectable: (gap < 1.0).then_some(gap),
            ..Self::unfilled(problem, Some(share))
        };
        if plan.blind {
            plan.horizon_needed = paper::horizon_needed(&plan.problem);
            plan.rho_needed = paper::rho_needed(&plan.problem, share);
        }
        // The published delta' leaves half of delta to the draws (docs/theory.md, section 7), so nothing is added.
        plan.set_bounds(1.0);
        plan
    }

    /// What all plans fill in alike, and nothing where they differ.
    fn unfilled(problem: Arc<Problem>, share: Option<Share>) -> Self {
        Self {
            profile: problem.profile(),
            growth: None,
            explore: problem.explore(),
            caution: None,
            rho_share: share.map(|share| share.rho),
            delta_share: share.map(|share| share.delta),
            offset_c: None,
            blind: false,
            first_informative_count: None,
            exploration_rounds: None,
            levels: Vec::new(),
            trial: None,
            epochs_max: 0,
            detectable: None,
            regret_bound: 0.0,
            violation_bound: None,
            bound_probability: 0.0,
            horizon_needed: None,
            rho_needed: None,
            share,
            problem,
        }
    }

    /// The smallest horizon, up to a factor of 1.05, at which a difference of `gap` in the reward's units is found. None
    /// if no horizon up to 2^53 is enough.
    pub fn horizon_for_gap(&self, gap: f64) -> Result<Option<u64>, Error> {
        let most = self.problem.quantity(0).range.span();
        if !(gap > 0.0 && gap <= most) {
            return Err(Error::Gap { gap, most });
        }
        for horizon in horizons() {
            let plan = Self::of(self.problem.with_horizon(horizon)?);
            if plan.detectable.is_some_and(|found| found * most <= gap) {
                return Ok(Some(horizon));
            }
        }
        Ok(None)
    }

    /// For each question the smallest horizon above this one known to answer it with yes.
    pub fn horizons_for(&self, questions: &[&dyn Fn(&Plan) -> bool]) -> Vec<Option<u64>> {
        let mut found = vec![None; questions.len()];
        // One pass for all of them: each horizon has a plan of its own to be made.
        for horizon in horizons().skip_while(|&horizon| horizon <= self.problem.horizon()) {
            if found.iter().all(Option::is_some) {
                break;
            }
            let problem = self.problem.with_horizon(horizon);
            let plan = Self::of(problem.expect("a longer horizon than one that was accepted"));
            for (found, question) in found.iter_mut().zip(questions) {
                if found.is_none() && question(&plan) {
                    *found = Some(horizon);
                }
            }
        }
        found
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

    /// The count at which exploration ends; `u64::MAX` if it lasts to the horizon. Of profile tight.
    pub(crate) fn explored_count(&self) -> u64 {
        let trial = self.trial.as_ref().map(|trial| trial.count);
        trial.or(self.first_informative_count).unwrap_or(u64::MAX)
    }

    /// What is played, whatever the estimates, in an epoch that begins with these counts; none once all are tried. No
    /// data enters, so no budget is spent.
    pub(crate) fn explore(&self, counts: &[u64]) -> Option<Explore> {
        if self.problem.profile() == Profile::Paper {
            return counts
                .iter()
                .all(|&count| count == 0)
                .then_some(Explore::First);
        }
        let first = self.explored_count();
        if counts.iter().all(|&count| count >= first) {
            return None;
        }
        match self.problem.policy() {
            Policy::Hard => Some(Explore::Below { count: first }),
            Policy::Free | Policy::Soft => Some(Explore::Blocks),
        }
    }

    /// The count on which an action with `count` pulls at the start of an epoch is estimated; `None` if it never was.
    pub(crate) fn estimated_count(&self, count: u64) -> Option<u64> {
        match self.problem.profile() {
            Profile::Tight { .. } => self.level(count).map(|level| level.count),
            Profile::Paper => (count > 0).then_some(count),
        }
    }

    /// Width and cell at `count` samples: on the line in profile tight.
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
            Profile::Paper => width::paper(self.share.expect("profile paper has shares"), count),
        }
    }

    /// The line of estimates from `count` samples; none in profile paper, and where nothing is estimated.
    pub(crate) fn line(&self, count: u64) -> Option<MeanLine> {
        Some(MeanLine::new(count, self.offset_c?))
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
