//! etc-grid: try all actions equally often, round each mean once, play the largest to the horizon \[derived\].
//!
//! ```text
//! m    = ceil((T/(4 rho sqrt(pi)))^(2/3)), at most T/(2K)         rounds of each action
//! cell = K/(rho sqrt(pi m))                                       on the plain line, an offset for each action
//! ```
//!
//! Why rho: two runs' means of m samples differ by at most 1/sqrt(pi m) on average, so that each of K estimates differs with
//! probability rho/K at most. The ten lines with the same promise that everything else has to beat.

use super::epochs::EpochRule;
use crate::key::{Key, Label};
use crate::lp::first_largest;
use crate::mean::{Tally, round_to_cell};
use crate::problem::Problem;
use crate::strategy::Strategy;

pub(super) struct EtcGrid {
    key: Key,
    /// m.
    each: u64,
    cell: f64,
}

impl EtcGrid {
    pub fn new(problem: &Problem, key: Key) -> Self {
        let (horizon, rho) = (problem.horizon() as f64, problem.rho());
        let actions = problem.actions().len() as u64;
        let root_pi = libm::sqrt(std::f64::consts::PI);
        let best = libm::ceil(libm::pow(horizon / (4.0 * rho * root_pi), 2.0 / 3.0)) as u64;
        let each = best.min(problem.horizon() / (2 * actions)).max(1);
        Self {
            key,
            each,
            cell: actions as f64 / (rho * root_pi * libm::sqrt(each as f64)),
        }
    }

    fn estimate(&self, tally: &Tally, action: u32) -> f64 {
        let offset = self.key.uniform(Label::Offset, [0, u64::from(action), 0]);
        round_to_cell(tally.mean(action, 0), self.cell, offset).1
    }
}

impl EpochRule for EtcGrid {
    fn target(&self, _: u64) -> Option<u64> {
        None
    }

    fn blocks_each(&self, counts: &[u64]) -> Option<u64> {
        (counts[0] == 0).then_some(self.each)
    }

    fn choose(&mut self, tally: &Tally) -> Strategy {
        let actions = tally.counts().len();
        if tally.counts()[0] == 0 {
            return Strategy::uniform(actions, |_| true);
        }
        let estimates: Vec<f64> = (0..actions as u32)
            .map(|action| self.estimate(tally, action))
            .collect();
        Strategy::pure(first_largest(&estimates) as u32, actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a line of Python: T = 1e6, rho = .1, K = 5.
    #[test]
    fn constants_are_those_of_the_formula() {
        let problem = |horizon| {
            Problem::free(["a", "b", "c", "d", "e"], horizon, 0.1)
                .build()
                .unwrap()
        };
        let rule = EtcGrid::new(&problem(1_000_000), Key::from(1u64));
        assert_eq!(rule.each, 12_577);
        assert!((rule.cell - 0.251_544).abs() < 1e-5, "{}", rule.cell);
        assert_eq!(EtcGrid::new(&problem(100), Key::from(1u64)).each, 10);
    }
}
