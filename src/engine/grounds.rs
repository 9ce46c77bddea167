//! What an epoch's strategy follows from. Neither the key nor a raw mean is in it, so whoever has the records has it, too.

use crate::lp::Solver;
use crate::plan::{Explore, Plan};
use crate::policy::{self, NextStrategy, Sight, View};
use crate::problem::{Policy, Profile, Range};
use crate::record::{ClearTest, Kind};
use crate::strategy::Strategy;

/// What is known at an epoch's start.
pub(super) struct Grounds<'a> {
    pub plan: &'a Plan,
    /// Rounds per action before the epoch.
    pub counts: &'a [u64],
    /// The clear test made at its start, if one was due.
    pub test: Option<&'a ClearTest>,
    /// Per quantity and action: the rounded mean.
    pub values: &'a [f64],
    /// Per quantity and action: the width.
    pub widths: &'a [f64],
}

impl<'a> Grounds<'a> {
    fn passed_test(&self) -> Option<&'a ClearTest> {
        self.test.filter(|test| test.passed)
    }

    /// What the epoch explores, if it does.
    pub fn exploring(&self) -> Option<Explore> {
        // A run may commit before its exploration is over.
        if self.passed_test().is_some() {
            return None;
        }
        self.plan.explore(self.counts)
    }

    /// The one place where the three policies differ.
    pub fn next_strategy(&self, solver: &mut Solver) -> NextStrategy {
        if let Some(test) = self.passed_test() {
            let leader = Strategy::pure(test.leader, self.counts.len());
            return NextStrategy::plain(Kind::Commit, leader);
        }
        let problem = &self.plan.problem;
        let thresholds = problem.thresholds();
        match problem.policy() {
            Policy::Free => policy::free(&self.view(Sight::Optimistic)),
            Policy::Soft => policy::soft(&self.view(Sight::Optimistic), thresholds, solver),
            Policy::Hard => {
                let safe = problem.safe().expect("policy hard has a safe strategy");
                // The published algorithm only mixes.
                let planning = problem.profile() != Profile::Paper;
                policy::hard(&self.view(Sight::Whole), thresholds, safe, planning, solver)
            }
        }
    }

    /// What a policy may know: optimistic rewards and costs, or that it explores.
    pub fn view(&self, sight: Sight) -> View {
        match self.exploring() {
            Some(explore) => self.explored(explore),
            None => {
                let actions = self.counts.len();
                View::of(actions, self.values, self.widths, self.ends(), sight)
            }
        }
    }

    fn explored(&self, explore: Explore) -> View {
        let problem = &self.plan.problem;
        let actions = self.counts.len();
        let candidate = match explore {
            Explore::First => Strategy::pure(0, actions),
            Explore::Blocks { .. } => Strategy::uniform(actions, |_| true),
            Explore::Below { count } => {
                Strategy::uniform(actions, |action| self.counts[action] < count)
            }
        };
        // Before any estimate, costs may be as large as declared; the published algorithm takes 1.
        let worst = (1..problem.quantities_estimated()).map(|cost| match explore {
            Explore::First => 1.0,
            Explore::Blocks { .. } | Explore::Below { .. } => problem.means(cost).high,
        });
        View::Explore {
            candidate,
            worst: worst.collect(),
        }
    }

    /// The ends that each limited cost is kept within.
    fn ends(&self) -> impl Iterator<Item = Range> {
        let problem = &self.plan.problem;
        // Profile paper keeps the published bounds on costs, which reach far beyond what costs can be.
        (1..problem.quantities_estimated()).map(|cost| match problem.profile() {
            Profile::Tight { .. } => problem.means(cost),
            Profile::Paper => Range {
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            },
        })
    }
}
