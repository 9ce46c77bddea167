//! optimistic-lp: in doubling epochs, the best strategy under optimistic rewards and costs \[structure\].
//!
//! ```text
//! u = min(1, rbar + b),   l_i = max(0, gbar_i - b),   unplayed: u = 1, l_i = 0;       b: see `epochs.rs`
//! x = argmax u.x   over   l_i.x <= alpha_i
//! ```
//!
//! Source: Efroni, Mannor, Pirotta, *Exploration-Exploitation in Constrained MDPs* (2020), OptCMDP with one state. If no
//! strategy meets the optimistic limits, the least violation, as policy soft has it.

use std::sync::Arc;

use super::epochs::{AnytimeWidth, EpochRule, infeasible_note};
use crate::bounds::Bounds;
use crate::lp::Solver;
use crate::mean::Tally;
use crate::policy::{self, View};
use crate::problem::Problem;
use crate::record::Kind;
use crate::strategy::Strategy;

pub(super) struct OptimisticLp {
    problem: Arc<Problem>,
    width: AnytimeWidth,
    infeasible: u64,
    solver: Solver,
}

impl OptimisticLp {
    pub fn new(problem: &Arc<Problem>) -> Self {
        Self {
            width: AnytimeWidth::of(problem),
            problem: Arc::clone(problem),
            infeasible: 0,
            solver: Solver::default(),
        }
    }
}

/// u(a) for quantity 0, l_i(a) for the number of a limited cost.
pub(super) fn optimistic(
    (problem, width): (&Problem, AnytimeWidth),
    tally: &Tally,
    action: u32,
    quantity: usize,
) -> f64 {
    let count = tally.counts()[action as usize];
    // Cut to the range, unlike debora's index, as OptCMDP has it.
    let share = match (count, quantity) {
        (0, 0) => 1.0,
        (0, _) => 0.0,
        (_, 0) => (tally.mean(action, 0) + width.at(count)).min(1.0),
        _ => (tally.mean(action, quantity) - width.at(count)).max(0.0),
    };
    problem.on_scale(quantity, action, share)
}

impl EpochRule for OptimisticLp {
    fn choose(&mut self, tally: &Tally) -> Strategy {
        let actions = tally.counts().len();
        let grounds = (&*self.problem, self.width);
        let row = |quantity: usize| {
            (0..actions as u32).map(move |action| optimistic(grounds, tally, action, quantity))
        };
        let bounds = Bounds {
            index: row(0).collect(),
            low: self
                .problem
                .limited()
                .iter()
                .flat_map(|&cost| row(cost))
                .collect(),
            ..Bounds::default()
        };
        // Policy soft of the paper itself decides, on other numbers: rivals differ in their widths, not in their linear program.
        let choice = policy::optimistic(
            &View::Estimate(&bounds),
            self.problem.thresholds(),
            &mut self.solver,
        );
        self.infeasible += u64::from(choice.kind == Kind::Infeasible);
        choice.strategy
    }

    fn note(&self) -> Option<String> {
        infeasible_note(self.infeasible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K = 2, Q = 2, T = 1e4, delta = .05: b(64) = .334 and b(400) = .134 from Python, the program solved by hand.
    #[test]
    fn the_strategy_is_the_best_of_the_optimistic_set() {
        let problem =
            Problem::soft(["a", "b"], 10_000, 0.3)
                .delta(0.05)
                .cost("cost", [0.0, 1.0], 0.25);
        let mut rule = OptimisticLp::new(&Arc::new(problem.build().unwrap()));
        assert_eq!(
            [0, 1].map(|quantity| optimistic(
                (&rule.problem, rule.width),
                &Tally::new(2, 2),
                1,
                quantity
            )),
            [1.0, 0.0]
        );
        assert_eq!(rule.choose(&Tally::new(2, 2)), Strategy::pure(0, 2));
        let mut tally = Tally::new(2, 2);
        tally.add_sums(0, 64, &[32 << 53, 16 << 53]);
        tally.add_sums(1, 400, &[360 << 53, 240 << 53]);
        let [u0, u1] =
            [0, 1].map(|action| optimistic((&rule.problem, rule.width), &tally, action, 0));
        let [l0, l1] =
            [0, 1].map(|action| optimistic((&rule.problem, rule.width), &tally, action, 1));
        assert!((u0 - (0.5 + 0.33407421269469184)).abs() < 1e-14 && u1 == 1.0 && l0 == 0.0);
        assert!((l1 - (0.6 - 0.13362968507787673)).abs() < 1e-14);
        // The better action as often as its optimistic cost lets it.
        let chosen = rule.choose(&tally);
        assert!(
            (chosen.probabilities()[1] - 0.25 / l1).abs() < 1e-12,
            "{chosen:?}"
        );
        assert_eq!(rule.note(), None);
    }

    #[test]
    fn out_of_reach_limits_are_noted() {
        let problem = Problem::soft(["a", "b"], 10_000, 0.3)
            .cost("cost", [0.0, 1.0], 0.25)
            .build()
            .unwrap();
        let mut rule = OptimisticLp::new(&Arc::new(problem));
        let mut tally = Tally::new(2, 2);
        (0..2).for_each(|action| {
            tally.add_sums(
                action,
                4_000,
                &[0, (3_000 + 500 * u128::from(action)) << 53],
            )
        });
        assert_eq!(rule.choose(&tally), Strategy::pure(0, 2));
        assert!(rule.note().is_some_and(|note| note.contains("in 1 epochs")));
    }
}
