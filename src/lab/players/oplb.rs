//! oplb: in doubling epochs, the best mixture with the safe strategy, by optimistic rewards and pessimistic costs \[derived\].
//!
//! ```text
//! ur = rbar + (1 + 2/lambda_min) b,   uc_i = min(1, gbar_i + b),   unplayed: rbar = b = 1/2, uc_i = 1;    b: see `epochs.rs`
//! max  ur.z + s (ur.x_safe)   over   z >= 0, s >= 0,  sum z + s = 1,  uc_i.z + s (alpha_i - lambda_i) <= alpha_i
//! play z + s x_safe
//! ```
//!
//! Source: Pacchiano, Ghavamzadeh, Bartlett, Jiang, *Stochastic Bandits with Linear Constraints* (AISTATS 2021; extended 2024),
//! the multi-armed case; extended here to a mixed safe strategy and m constraints, and solved at doublings instead of every
//! round, which the widths allow: they hold at any time.
//!
//! Why 1 + 2/lambda_min: mixed with weight 1/(1 + y), y = 2 b.x*/lambda_min, the best safe x* meets even the pessimistic
//! limits, and then (ur.x*)/(1 + y) >= (r.x* + y)/(1 + y) >= r.x*. So the program's value is never below the best reward.

use std::sync::Arc;

use super::epochs::{AnytimeWidth, EpochRule};
use crate::lp::Solver;
use crate::mean::Tally;
use crate::policy;
use crate::problem::Problem;
use crate::strategy::Strategy;

pub(super) struct Oplb {
    problem: Arc<Problem>,
    width: AnytimeWidth,
    /// 1 + 2/lambda_min; 1 if there is no cost to keep.
    optimism: f64,
    solver: Solver,
}

impl Oplb {
    pub fn new(problem: &Arc<Problem>) -> Self {
        let optimism = problem
            .margin_min()
            .map_or(1.0, |margin| 1.0 + 2.0 / margin);
        Self {
            width: AnytimeWidth::of(problem),
            problem: Arc::clone(problem),
            optimism,
            solver: Solver::default(),
        }
    }

    /// ur(a).
    fn reward_high(&self, tally: &Tally, action: u32) -> f64 {
        match tally.counts()[action as usize] {
            // Mean and width 1/2: the range itself, widened like any other interval.
            0 => 0.5 + self.optimism * 0.5,
            count => tally.mean(action, 0) + self.optimism * self.width.at(count),
        }
    }

    /// uc_i(a), by the number of its quantity.
    fn cost_high(&self, tally: &Tally, action: u32, quantity: usize) -> f64 {
        let share = match tally.counts()[action as usize] {
            0 => 1.0,
            count => (tally.mean(action, quantity) + self.width.at(count)).min(1.0),
        };
        self.problem.on_scale(quantity, action, share)
    }
}

impl EpochRule for Oplb {
    fn choose(&mut self, tally: &Tally) -> Strategy {
        let actions = 0..tally.counts().len() as u32;
        let safe = self
            .problem
            .safe()
            .expect("policy hard has a safe strategy");
        let rewards: Vec<f64> = actions
            .clone()
            .map(|action| self.reward_high(tally, action))
            .collect();
        let limited = self.problem.limited().iter();
        let costs: Vec<f64> = limited
            .flat_map(|&quantity| actions.clone().map(move |action| (action, quantity)))
            .map(|(action, quantity)| self.cost_high(tally, action, quantity))
            .collect();
        let thresholds = self.problem.thresholds();
        let solver = &mut self.solver;
        let (mut mixture, weight) =
            policy::best_with_safe(&rewards, &costs, thresholds, safe, solver);
        for (probability, safe) in mixture.iter_mut().zip(safe.strategy.probabilities()) {
            *probability += weight * safe;
        }
        Strategy::new(mixture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K = 2, Q = 2, T = 1e4, delta = .05: b(64) = .334 and b(400) = .134 from Python, the program solved by hand.
    #[test]
    fn the_strategy_mixes_as_much_as_pessimism_asks() {
        let problem =
            Problem::hard(["a", "b"], 10_000, 0.3)
                .delta(0.05)
                .cost("cost", [0.0, 1.0], 0.5);
        let mut rule = Oplb::new(&Arc::new(
            problem
                .safe_with_margins([0.5, 0.5], [0.25])
                .build()
                .unwrap(),
        ));
        // Unplayed, all columns are worth .5 + 9/2, and of equals action 0 gets what its cost of 1 lets it: 1/3.
        assert_eq!(rule.reward_high(&Tally::new(2, 2), 1), 5.0);
        let chosen = rule.choose(&Tally::new(2, 2));
        assert!(
            (chosen.probabilities()[0] - (1.0 / 3.0 + 1.0 / 3.0)).abs() < 1e-12,
            "{chosen:?}"
        );

        let mut tally = Tally::new(2, 2);
        tally.add_sums(0, 400, &[360 << 53, 40 << 53]);
        tally.add_sums(1, 64, &[32 << 53, 64 << 53]);
        let highs = [0, 1].map(|action| {
            (
                rule.reward_high(&tally, action),
                rule.cost_high(&tally, action, 1),
            )
        });
        assert!((highs[0].0 - (0.9 + 9.0 * 0.13362968507787673)).abs() < 1e-12);
        assert!((highs[1].0 - (0.5 + 9.0 * 0.33407421269469184)).abs() < 1e-12);
        assert!((highs[0].1 - (0.1 + 0.13362968507787673)).abs() < 1e-12 && highs[1].1 == 1.0);
        // Action 1 is worth most, and the safe strategy (2.80, at a cost of .25) is worth more beside it than action 0
        // (2.10, at .23): z = (0, 1/3) and s = 2/3 spend the limit of .5.
        let chosen = rule.choose(&tally);
        assert!(
            (chosen.probabilities()[1] - (1.0 / 3.0 + 1.0 / 3.0)).abs() < 1e-12,
            "{chosen:?}"
        );
    }
}
