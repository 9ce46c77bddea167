//! ucb-doubling and safe-mix: levels of plain means with plain widths, without replicability \[derived\].
//!
//! ```text
//! width(n) = sqrt(ln(2KQL/delta) / (2n))       L = max(1, ceil(log2 T)) >= the number of levels
//! ```
//!
//! safe-mix is debora's policy hard: the same exploration, levels and rules, with plain means on the plain line. Only the line, its
//! rounding and what the budget rho does to the width are missing, so the difference in regret is the *price of
//! replicability*. ucb-doubling plays the action with the largest mean and width at growing counts. Debora's policy free tries
//! and picks instead, so between these two more differs than the rounding.
//!
//! The growth is the problem's, or 8 under profile paper.

use std::sync::Arc;

use super::epochs::{EpochRule, infeasible_note};
use crate::bounds::Bounds;
use crate::budget::doublings;
use crate::lp::Solver;
use crate::mean::Tally;
use crate::plan::fit;
use crate::policy::{self, NextStrategy, View};
use crate::problem::{Problem, Profile};
use crate::record::Kind;
use crate::strategy::Strategy;
use crate::width::hoeffding;

pub(super) struct Plain {
    problem: Arc<Problem>,
    /// The levels' counts; none if the horizon is too short to compare anything.
    levels: Vec<u64>,
    delta_share: f64,
    /// The latest estimates and widths, quantity by quantity and action by action.
    values: Vec<f64>,
    widths: Vec<f64>,
    infeasible: u64,
    solver: Solver,
}

impl Plain {
    pub fn new(problem: &Arc<Problem>) -> Self {
        let growth = match problem.profile() {
            Profile::Tight { growth } => growth,
            Profile::Paper => 8,
        };
        let entries = problem.actions().len() * problem.quantities_estimated();
        let estimates = entries as f64 * f64::from(doublings(problem.horizon()));
        let delta_share = problem.delta() / estimates;
        // The share is for more levels than there can be, so the number of levels does not matter.
        let fitting = fit(problem, growth, |phi, _, count| {
            hoeffding(delta_share, count) < phi
        });
        let levels = fitting.map_or(Vec::new(), |(first, levels)| {
            let power = |level| first * u64::from(growth).pow(level);
            (0..levels as u32).map(power).collect()
        });
        Self {
            levels,
            delta_share,
            values: vec![f64::NAN; entries],
            widths: vec![f64::INFINITY; entries],
            infeasible: 0,
            problem: Arc::clone(problem),
            solver: Solver::default(),
        }
    }

    /// Estimates every action whose count is a level's. One that has not moved since gets the same estimate again.
    fn estimate(&mut self, tally: &Tally) {
        let actions = tally.counts().len();
        for (action, &count) in tally.counts().iter().enumerate() {
            if self.levels.binary_search(&count).is_err() {
                continue;
            }
            for (place, &quantity) in self.problem.estimated().iter().enumerate() {
                let entry = place * actions + action;
                self.values[entry] = tally.mean(action as u32, quantity);
                self.widths[entry] = hoeffding(self.delta_share, count);
            }
        }
    }

    /// The count below which actions are explored.
    fn first(&self) -> u64 {
        self.levels.first().copied().unwrap_or(u64::MAX)
    }

    /// What the estimates say, costs kept within their ranges.
    fn bounds(&self) -> Bounds {
        let actions = self.values.len() / self.problem.quantities_estimated();
        let mut bounds = Bounds::before(&self.problem);
        for (place, &quantity) in self.problem.estimated().iter().enumerate() {
            for action in 0..actions {
                let entry = place * actions + action;
                let (mean, width) = (self.values[entry], self.widths[entry]);
                let Some(cost) = place.checked_sub(1) else {
                    bounds.set_plain(0, action, mean, width);
                    continue;
                };
                let on_scale = |share: f64| self.problem.on_scale(quantity, action as u32, share);
                bounds.low[cost * actions + action] = on_scale((mean - width).max(0.0));
                bounds.high[cost * actions + action] = on_scale((mean + width).min(1.0));
            }
        }
        (0..actions).for_each(|action| bounds.set_span(action));
        bounds
    }

    fn next(&mut self, counts: &[u64]) -> NextStrategy {
        let bounds;
        let view = if counts.iter().all(|&count| count >= self.first()) {
            bounds = self.bounds();
            View::Estimate(&bounds)
        } else {
            let below = |action: usize| counts[action] < self.first();
            View::Explore {
                candidate: Strategy::uniform(counts.len(), below),
                worst: vec![1.0; self.problem.quantities_estimated() - 1],
            }
        };
        match self.problem.safe() {
            Some(safe) => {
                let thresholds = self.problem.thresholds();
                policy::hard(&view, thresholds, safe, true, &mut self.solver)
            }
            None => policy::free(&view),
        }
    }
}

impl EpochRule for Plain {
    fn target(&self, count: u64) -> Option<u64> {
        let next = self.levels.partition_point(|&level| level <= count);
        self.levels.get(next).copied()
    }

    fn blocks_each(&self, counts: &[u64]) -> Option<u64> {
        // Under hard limits exploration is a mixture with the safe strategy, drawn round by round.
        let exploring = self.problem.safe().is_none() && counts[0] == 0;
        exploring.then(|| self.first())
    }

    fn choose(&mut self, tally: &Tally) -> Strategy {
        self.estimate(tally);
        let choice = self.next(tally.counts());
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

    /// Numbers from a line of Python, sqrt(ln(2KQL/delta)/(2n)): K = 5, T = 1e6, L = 20, delta = .05 at the first level, the first
    /// n below .3, which is 47, and at the second, 376; and K = 3, Q = 2, T = 2e4, L = 15, delta = .01 at 55, its first.
    #[test]
    fn widths_are_those_of_the_formula() {
        let free = Problem::free(["a", "b", "c", "d", "e"], 1_000_000, 0.3).delta(0.05);
        let mut rule = Plain::new(&Arc::new(
            free.cost("ignored", [0.0, 1.0], 0.5).build().unwrap(),
        ));
        for (count, expected) in [(47, 0.29704304509512297), (376, 0.10502057574553145)] {
            told(&mut rule, &[count; 5]);
            assert!(
                rule.widths
                    .iter()
                    .all(|width| (width - expected).abs() < 1e-14),
                "{count}: {:?}",
                rule.widths
            );
        }
        let hard = Problem::hard(["a", "b", "c"], 20_000, 0.3).cost("cost", [0.0, 1.0], 0.5);
        let mut rule = Plain::new(&Arc::new(
            hard.safe_with_margins([1.0, 0.0, 0.0], [0.25])
                .build()
                .unwrap(),
        ));
        told(&mut rule, &[55; 3]);
        assert!(
            rule.widths
                .iter()
                .all(|width| (width - 0.29845247888640347).abs() < 1e-14),
            "{:?}",
            rule.widths
        );
    }

    /// The first count is the smallest with a width below .3, or below .5 where the horizon has no room for that, and counts
    /// grow up to T/K. Numbers from a few lines of Python that try one count after another.
    #[test]
    fn levels_are_those_of_the_plan() {
        for (draft, levels) in [
            (Problem::free(["a", "b"], 1_000, 0.5), vec![47, 376]),
            (Problem::free(["a", "b"], 65, 0.5).growth(4), vec![16]),
            (Problem::free(["a", "b"], 200, 0.5), vec![45]),
            (Problem::free(["a", "b"], 64, 0.5).paper(), vec![16]),
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
        told(&mut rule, &[376, 47]);
        let (values, widths) = (rule.values.clone(), rule.widths.clone());
        let mut tally = Tally::new(2, 1);
        tally.add_sums(0, 400, &[400 << 53]);
        tally.add_sums(1, 376, &[376 << 53]);
        rule.choose(&tally);
        assert_eq!((rule.values[0], rule.widths[0]), (values[0], widths[0]));
        assert_eq!(rule.values[1], 1.0);
        assert!(rule.widths[1] < widths[1]);
    }
}
