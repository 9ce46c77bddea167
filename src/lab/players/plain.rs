//! ucb-doubling and safe-mix: profile tight's epochs with plain means and Hoeffding widths \[derived\].
//!
//! ```text
//! width_k = sqrt(ln(2KQL/delta) / (2 n_k)),   n_k = growth^k <= T - 1,   L = max(1, ceil(log2 T)) >= the number of levels
//! ```
//!
//! ucb-doubling is debora's policy free (Q = 1), safe-mix its policy hard. Only rounding, and what the budget rho does to the
//! width, is missing: the difference in regret is the *price of replicability*. As there, an action is estimated when its
//! count hits n_k exactly, and keeps that estimate and width until its next level. There is no first informative level: an
//! action is estimated from one sample on, and while some are unplayed the lowest of them is the candidate (index +infinity).
//!
//! The growth is the problem's, or 8 under profile paper.

use std::sync::Arc;

use super::epochs::{EpochRule, infeasible_note};
use crate::budget::doublings;
use crate::mean::Tally;
use crate::plan::powers;
use crate::policy::{self, View};
use crate::problem::{Problem, Profile};
use crate::record::Kind;
use crate::strategy::Strategy;
use crate::width::hoeffding;

pub(super) struct Plain {
    problem: Arc<Problem>,
    /// The levels' counts.
    levels: Vec<u64>,
    delta_share: f64,
    /// The latest estimates, quantity by quantity, and widths, per action.
    values: Vec<f64>,
    widths: Vec<f64>,
    infeasible: u64,
}

impl Plain {
    pub fn new(problem: &Arc<Problem>) -> Self {
        let growth = match problem.profile() {
            Profile::Tight { growth } => growth,
            // Profile paper has no growth; this is the default of profile tight.
            Profile::Paper => 8,
        };
        let actions = problem.actions().len();
        let quantities = problem.quantities_estimated();
        let estimates = (actions * quantities) as f64 * f64::from(doublings(problem.horizon()));
        Self {
            levels: powers(growth, problem.horizon() - 1),
            delta_share: problem.delta() / estimates,
            values: vec![f64::NAN; actions * quantities],
            widths: vec![f64::INFINITY; actions],
            infeasible: 0,
            problem: Arc::clone(problem),
        }
    }

    /// Estimates every action whose count is a level's. One that has not moved since gets the same estimate again.
    fn estimate(&mut self, tally: &Tally) {
        let actions = self.widths.len();
        for (action, &count) in tally.counts().iter().enumerate() {
            // At the level's count only, as in the engine: the width is that of a fixed number of samples.
            if self.levels.binary_search(&count).is_ok() {
                self.widths[action] = hoeffding(self.delta_share, count);
                for (quantity, row) in self.values.chunks_exact_mut(actions).enumerate() {
                    row[action] = tally.mean(action as u32, quantity);
                }
            }
        }
    }
}

impl EpochRule for Plain {
    fn target(&self, count: u64) -> Option<u64> {
        self.levels
            .get(self.levels.partition_point(|&level| level <= count))
            .copied()
    }

    fn choose(&mut self, tally: &Tally) -> Strategy {
        self.estimate(tally);
        let view = match tally.counts().iter().position(|&count| count == 0) {
            Some(action) => View::Explore(action as u32),
            None => View::of(&self.values, &self.widths, 0.0, 1.0),
        };
        // The engine's own policies, so that rounding and the width are the only difference to measure.
        let actions = self.widths.len();
        let thresholds = self.problem.thresholds();
        let choice = match self.problem.safe() {
            Some(safe) => policy::hard(&view, actions, thresholds, safe),
            None => policy::free(&view, actions),
        };
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

    fn told(rule: &mut Plain, counts: &[u64]) {
        let mut tally = Tally::new(counts.len(), rule.problem.quantities());
        for (action, &count) in (0..).zip(counts) {
            let half = u128::from(count) << 52;
            tally.add_sums(action, count, &vec![half; rule.problem.quantities()]);
        }
        rule.choose(&tally);
    }

    /// Numbers from a line of Python: K = 5, T = 1e6, delta = .05 at 64 samples, and K = 3, Q = 2, T = 2e4, delta = .01 at 8.
    #[test]
    fn widths_are_those_of_the_formula() {
        let free = Problem::free(["a", "b", "c", "d", "e"], 1_000_000, 0.3).delta(0.05);
        let mut rule = Plain::new(&Arc::new(
            free.cost("ignored", [0.0, 1.0], 0.5).build().unwrap(),
        ));
        told(&mut rule, &[64; 5]);
        assert!(
            rule.widths
                .iter()
                .all(|width| (width - 0.2545530648279393).abs() < 1e-14),
            "{:?}",
            rule.widths
        );
        let hard = Problem::hard(["a", "b", "c"], 20_000, 0.3).cost("cost", [0.0, 1.0], 0.5);
        let mut rule = Plain::new(&Arc::new(
            hard.safe_with_margins([1.0, 0.0, 0.0], [0.25])
                .build()
                .unwrap(),
        ));
        told(&mut rule, &[8; 3]);
        assert!(
            rule.widths
                .iter()
                .all(|width| (width - 0.7825490015359382).abs() < 1e-14),
            "{:?}",
            rule.widths
        );
    }

    #[test]
    fn levels_are_those_of_the_plan() {
        for (draft, levels) in [
            (Problem::free(["a", "b"], 1_000, 0.5), vec![1, 8, 64, 512]),
            (
                Problem::free(["a", "b"], 65, 0.5).growth(4),
                vec![1, 4, 16, 64],
            ),
            (Problem::free(["a", "b"], 64, 0.5).paper(), vec![1, 8]),
            (Problem::free(["a", "b"], 1, 0.5), vec![]),
        ] {
            let rule = Plain::new(&Arc::new(draft.build().unwrap()));
            assert_eq!(rule.levels, levels);
            let targets: Vec<u64> =
                std::iter::successors(rule.target(0), |&count| rule.target(count)).collect();
            assert_eq!(targets, levels);
        }
    }

    #[test]
    fn between_two_levels_an_estimate_stays() {
        let mut rule = Plain::new(&Arc::new(
            Problem::free(["a", "b"], 1_000, 0.5).build().unwrap(),
        ));
        told(&mut rule, &[8, 1]);
        let (values, widths) = (rule.values.clone(), rule.widths.clone());
        let mut tally = Tally::new(2, 1);
        tally.add_sums(0, 20, &[20 << 53]);
        tally.add_sums(1, 8, &[8 << 53]);
        rule.choose(&tally);
        assert_eq!((rule.values[0], rule.widths[0]), (values[0], widths[0]));
        assert_eq!(rule.values[1], 1.0);
        assert!(rule.widths[1] < widths[1]);
    }
}
