//! What an epoch's strategy follows from. Neither the key nor a raw mean is in it, so whoever has the records has it, too.

use crate::bounds::Bounds;
use crate::lp::Solver;
use crate::plan::{Explore, Plan};
use crate::policy::{self, NextStrategy, View};
use crate::problem::{Policy, Profile};
use crate::record::Kind;
use crate::strategy::Strategy;

/// What is known at an epoch's start.
pub(super) struct Grounds<'a> {
    pub plan: &'a Plan,
    /// Rounds per action before the epoch.
    pub counts: &'a [u64],
    /// The action that a look or the pick found at its start, if one did.
    pub decided: Option<(Kind, u32)>,
    /// What the estimates say.
    pub bounds: &'a Bounds,
}

impl<'a> Grounds<'a> {
    /// What the epoch explores, if it does.
    pub fn exploring(&self) -> Option<Explore> {
        // A run may commit before its exploration is over.
        if self.decided.is_some() {
            return None;
        }
        self.plan.explore(self.counts)
    }

    /// The one place where the policies differ.
    pub fn next_strategy(&self, solver: &mut Solver) -> NextStrategy {
        if let Some((kind, action)) = self.decided {
            return NextStrategy::plain(kind, Strategy::pure(action, self.counts.len()));
        }
        let problem = &self.plan.problem;
        let thresholds = problem.thresholds();
        let view = self.view();
        // The published algorithms are optimistic, and under hard limits only mix.
        let published = problem.profile() == Profile::Paper;
        match problem.policy() {
            Policy::Free => policy::free(&view),
            Policy::Soft if published => policy::optimistic(&view, thresholds, solver),
            Policy::Soft => policy::soft(&view, thresholds, solver),
            Policy::Hard => {
                let safe = problem.safe().expect("policy hard has a safe strategy");
                policy::hard(&view, thresholds, safe, !published, solver)
            }
        }
    }

    /// All that a policy may know, or that it explores.
    pub fn view(&self) -> View<'a> {
        match self.exploring() {
            Some(explore) => self.explored(explore),
            None => View::Estimate(self.bounds),
        }
    }

    fn explored(&self, explore: Explore) -> View<'a> {
        let actions = self.counts.len();
        let candidate = match explore {
            Explore::First => Strategy::pure(0, actions),
            Explore::Blocks => Strategy::uniform(actions, |_| true),
            Explore::Below { count } => {
                Strategy::uniform(actions, |action| self.counts[action] < count)
            }
        };
        View::Explore {
            candidate,
            // Before any estimate costs may be as large as their ranges.
            worst: vec![1.0; self.plan.problem.quantities_estimated() - 1],
        }
    }
}
