//! pessimistic-optimistic: an optimistic best answer to prices that are virtual queues of tightened costs \[structure\].
//!
//! ```text
//! e_t = m^(3/4) sqrt(6/t),   V_t = s m^(1/4) sqrt(2t/3),   s = lambda_min if a safe strategy is known, else T^(-1/4)
//! play   argmax over a of  u(a) - sum_i (Q_i / V_t) (low_i(a) - alpha_i)        u, low_i: see `optimistic_lp.rs`
//! then   Q_i <- max(0, Q_i + g_i,t - alpha_i + e_t)
//! ```
//!
//! Source: after Liu, Li, Shi, Ying, *An Efficient Pessimistic-Optimistic Algorithm for Stochastic Linear Bandits with General
//! Constraints* (NeurIPS 2021); the powers of t, m and s are those of its bound, the factors 6 and 2/3 were not compared with the
//! printed ones. With an interval for each action in place of its LinUCB. Optimism is in the rewards, pessimism in
//! e_t, which asks for more than the limits do: after some time rounds below a threshold outweigh those above it, so it is
//! the signed violation that ends below 0. Decides round by round.

use super::primal_dual::{Pricing, price_max};
use crate::problem::Problem;

/// Q, and the constants that turn it into prices.
pub(super) struct Queues {
    queues: Vec<f64>,
    /// s.
    slater: f64,
    round: u64,
}

impl Queues {
    pub fn new(problem: &Problem) -> Self {
        Self {
            queues: vec![0.0; problem.thresholds().len()],
            slater: 1.0 / price_max(problem),
            round: 1,
        }
    }

    fn tightening(&self) -> f64 {
        let costs = self.queues.len() as f64;
        libm::sqrt(costs * libm::sqrt(costs)) * libm::sqrt(6.0 / self.round as f64)
    }

    fn scale(&self) -> f64 {
        let costs = self.queues.len() as f64;
        self.slater * libm::sqrt(libm::sqrt(costs)) * libm::sqrt(2.0 * self.round as f64 / 3.0)
    }
}

impl Pricing for Queues {
    fn renew(&mut self, prices: &mut [f64], excesses: impl Iterator<Item = f64>) {
        let tightening = self.tightening();
        for (queue, excess) in self.queues.iter_mut().zip(excesses) {
            *queue = (*queue + excess + tightening).max(0.0);
        }
        self.round += 1;
        // By the V of the round that is priced, which is the next one.
        let scale = self.scale();
        for (price, queue) in prices.iter_mut().zip(&self.queues) {
            *price = queue / scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a few lines of Python: m = 2, T = 10,000, so s = 0.1; excesses of 0.5 and -9, then -3 and 0.25.
    #[test]
    fn prices_are_queues_over_their_scale() {
        let problem = Problem::soft(["a", "b"], 10_000, 0.3)
            .cost("x", [0.0, 1.0], 0.5)
            .cost("y", [0.0, 1.0], 0.5)
            .build()
            .unwrap();
        let mut rule = Queues::new(&problem);
        let mut prices = [0.0; 2];
        rule.renew(&mut prices, [0.5, -9.0].into_iter());
        assert!(
            (prices[0] - 33.64118828780492).abs() < 1e-12 && prices[1] == 0.0,
            "{prices:?}"
        );
        rule.renew(&mut prices, [-3.0, 0.25].into_iter());
        assert!((prices[0] - 26.950316565986533).abs() < 1e-12, "{prices:?}");
        assert!((prices[1] - 18.80701696944217).abs() < 1e-12, "{prices:?}");
    }
}
