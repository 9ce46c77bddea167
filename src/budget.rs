//! Splits rho and delta into equal shares, one per estimate that could tell two runs apart; the shares sum to the whole.
//!
//! ```text
//! tight: shares = E J            entries estimated x levels; policy free estimates nothing and has no shares
//! paper: shares = 2 K L          free
//!        shares = 2 (m+1) K^2 L  soft and hard        L = max(1, ceil(log2 T))
//! ```
//!
//! Paper: line 1 of Algorithms 2 to 4. Algorithm 4 prints K where its own union bound needs K^2, and Algorithm 2 a natural
//! logarithm where its proof counts doublings (docs/deviations.md, 3 and 4).

use crate::problem::{Policy, Problem};

/// What each of `shares` estimates may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Of rho: the chance that this estimate differs between two runs.
    pub rho: f64,
    /// Of delta: the chance that this estimate misses its width.
    pub delta: f64,
    /// How many shares there are.
    pub shares: f64,
}

impl Share {
    fn new(problem: &Problem, shares: f64) -> Self {
        let (rho, delta) = (problem.rho(), problem.delta());
        let share = Self {
            rho: rho / shares,
            delta: delta / shares,
            shares,
        };
        // The promises are union bounds over the shares: what they exceed rho or delta by would be promised to nobody.
        for (part, whole) in [(share.rho, rho), (share.delta, delta)] {
            let sum = part * shares;
            assert!(
                (sum - whole).abs() <= 1e-12 * whole,
                "shares sum to {sum} of {whole}"
            );
        }
        share
    }

    /// A share when `levels` levels of each entry are estimated: what is known beforehand needs none.
    pub fn tight(problem: &Problem, levels: usize) -> Self {
        Self::new(problem, (problem.entries_estimated() * levels) as f64)
    }

    /// A share of the published constants, for a horizon of this many [`doublings`].
    pub fn paper(problem: &Problem, doublings: u32) -> Self {
        let actions = problem.actions().len() as f64;
        let doublings = f64::from(doublings);
        let shares = match problem.policy() {
            Policy::Free => 2.0 * actions * doublings,
            // Every epoch estimates all actions anew, and each action may end one epoch per doubling.
            Policy::Soft | Policy::Hard => {
                2.0 * problem.quantities_estimated() as f64 * actions * actions * doublings
            }
        };
        Self::new(problem, shares)
    }

    /// rho - 2 delta, the room the paper's widths divide by.
    pub fn room(self) -> f64 {
        self.rho - 2.0 * self.delta
    }
}

/// L = max(1, ceil(log2 horizon)).
pub fn doublings(horizon: u64) -> u32 {
    // By bits, as a logarithm may round to the wrong side of a power of two.
    (u64::BITS - (horizon - 1).leading_zeros()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doublings_is_the_rounded_up_binary_logarithm() {
        assert_eq!(
            [1, 2, 3, 4, 5, 1 << 20, (1 << 20) + 1].map(doublings),
            [1, 1, 2, 2, 3, 20, 21]
        );
    }

    /// Deviation 4. Algorithm 4 estimates (m+1) K numbers in each of up to K L epochs after the first, so its K shares short of K^2
    /// would spend more than rho; ours do not.
    #[test]
    fn shares_for_every_estimate_of_a_run_fit_the_budget_and_the_printed_ones_do_not() {
        for (actions, costs, horizon) in
            [(3, 1, 1_000u64), (5, 2, 1_000_000), (20, 3, 1_000_000_000)]
        {
            let mut draft =
                Problem::soft((0..actions).map(|a| format!("a{a}")), horizon, 0.3).paper();
            for cost in 0..costs {
                draft = draft.cost(format!("c{cost}"), [0.0, 1.0], 0.5);
            }
            let problem = draft.build().unwrap();
            let epochs = f64::from(doublings(horizon)) * actions as f64;
            let estimates = epochs * (actions * (costs + 1)) as f64;
            let share = Share::paper(&problem, doublings(horizon));
            let printed =
                0.3 / (2.0 * (costs + 1) as f64 * actions as f64 * f64::from(doublings(horizon)));
            assert!(
                estimates * share.rho <= 0.3 && estimates * share.delta <= 0.01,
                "{share:?} x {estimates}"
            );
            assert!(
                estimates * printed > 0.3,
                "{estimates} estimates of {printed} each"
            );
        }
    }
}
