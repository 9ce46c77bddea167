//! rse and rec: fourfold phases; commit to a clear winner, and (rse) drop clear losers, at randomised thresholds \[derived\].
//!
//! ```text
//! N_p = 4^p,  p = 1..P = max(1, ceil(log4 T));     e_reg = sqrt(ln(2KPT)/(2 N_p)),   e_rep = sqrt(ln(12KP/rho)/(2 N_p))
//! w_a = max(2 e_reg, 8 e_rep / (rho/3)),           w_e = max(2 e_reg, 8 e_rep / (rho/(3(K-1))))
//! D_i = best mean - mean_i;   commit if the smallest D of the others > w_a (1 + U_p0),   else drop i if D_i > w_e (1 + U_pi)
//! ```
//!
//! Source: after Komiyama, Ito, Yoshida, Koshino, *Replicability is Asymptotically Free in Multi-armed Bandits* (2024), RSE and
//! REC: same structure and rate, constants derived here. rec has the commit test only.
//!
//! Why rho: both runs' means are within e_rep throughout but with probability rho/3. Then a difference D moves by at most
//! 4 e_rep from run to run, and a threshold spread over w separates them with probability 4 e_rep/w, half a share. As w halves
//! from phase to phase, a gap is near the thresholds of two phases at most: rho/3 for commits, rho/3 for all drops.

use super::batched::BatchRule;
use crate::budget::doublings;
use crate::key::{Key, Label};
use crate::lp::first_largest;
use crate::problem::Problem;

pub(super) struct Phases {
    key: Key,
    /// P.
    phases: u32,
    /// w_a and w_e at one sample: both fall as 1/sqrt(N).
    commit: f64,
    /// None for rec.
    drop: Option<f64>,
}

impl Phases {
    pub fn rse(problem: &Problem, key: Key) -> Self {
        let others = (problem.actions().len() - 1) as f64;
        Self {
            drop: Some(threshold(problem, problem.rho() / (3.0 * others))),
            ..Self::rec(problem, key)
        }
    }

    pub fn rec(problem: &Problem, key: Key) -> Self {
        let commit = threshold(problem, problem.rho() / 3.0);
        Self {
            key,
            phases: phase_count(problem),
            commit,
            drop: None,
        }
    }

    /// Whether an action this far behind the best stays active.
    fn stays(&self, phase: u32, action: u32, difference: f64) -> bool {
        // Index 0 is the commit test's, so action i has index i + 1.
        self.drop
            .is_none_or(|drop| difference <= self.drawn(drop, phase, u64::from(action) + 1))
    }

    /// The threshold of a phase, on the draw for this index.
    fn drawn(&self, at_one: f64, phase: u32, index: u64) -> f64 {
        let indices = [u64::from(phase), index, 0];
        at_one * scale(phase) * (1.0 + self.key.uniform(Label::Threshold, indices))
    }
}

/// 1/sqrt(N_p) = 2^-p, exactly.
fn scale(phase: u32) -> f64 {
    // A power of two rounds nothing, where a root of a count could.
    libm::ldexp(1.0, -(phase as i32))
}

/// P; log4 is half of log2.
fn phase_count(problem: &Problem) -> u32 {
    doublings(problem.horizon()).div_ceil(2)
}

/// max(2 e_reg, 8 e_rep / share) at one sample.
fn threshold(problem: &Problem, share: f64) -> f64 {
    let tests = problem.actions().len() as f64 * f64::from(phase_count(problem));
    let regret = libm::sqrt(libm::log(2.0 * tests * problem.horizon() as f64) / 2.0);
    let repeat = libm::sqrt(libm::log(12.0 * tests / problem.rho()) / 2.0);
    (2.0 * regret).max(8.0 * repeat / share)
}

impl BatchRule for Phases {
    fn count(&self, batch: u32) -> Option<u64> {
        (batch <= self.phases).then(|| 1 << (2 * batch))
    }

    /// Committing asks for the smaller difference, as its share is the larger.
    fn smallest_gap(&self, batch: u32) -> f64 {
        self.commit * scale(batch)
    }

    fn keep(&mut self, batch: u32, active: &[u32], means: &[f64]) -> Vec<u32> {
        let best = first_largest(means);
        let others = (0..means.len()).filter(|&place| place != best);
        let smallest = others
            .map(|place| means[best] - means[place])
            .fold(f64::INFINITY, f64::min);
        // Committing first: an action that beats all others ends the search, whatever could be dropped.
        if smallest > self.drawn(self.commit, batch, 0) {
            return vec![active[best]];
        }
        active
            .iter()
            .zip(means)
            .filter(|&(&action, mean)| self.stays(batch, action, means[best] - mean))
            .map(|(&action, _)| action)
            .collect()
    }

    fn last(&self, active: &[u32]) -> Vec<u32> {
        active.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(actions: usize, horizon: u64, rho: f64) -> Problem {
        Problem::free((0..actions).map(|a| format!("a{a}")), horizon, rho)
            .build()
            .unwrap()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12 * right.abs()
    }

    #[test]
    fn phases_are_fourfold() {
        let rule = Phases::rse(&problem(2, 1_000, 0.5), Key::from(0u64));
        assert_eq!(
            (1..=6)
                .map_while(|phase| rule.count(phase))
                .collect::<Vec<_>>(),
            [4, 16, 64, 256, 1_024]
        );
        let counts = [1, 2, 4, 5, 16, 17, 4_096, 4_097, 1 << 53]
            .map(|horizon| phase_count(&problem(2, horizon, 0.5)));
        assert_eq!(counts, [1, 1, 1, 2, 2, 3, 6, 7, 27]);
    }

    /// Numbers from a few lines of Python: w_a and w_e at phase 9, and 2 e_reg at phase 1 (a share of 1e9 leaves only that).
    #[test]
    fn thresholds_are_those_of_the_formulas() {
        for (actions, horizon, commit, drop) in [
            (2, 10_000_000, 0.28952524794064394, 0.28952524794064394),
            (5, 1_000_000, 0.3046054068000633, 1.2184216272002533),
        ] {
            let rule = Phases::rse(&problem(actions, horizon, 0.3), Key::from(0u64));
            assert!(
                close(rule.commit * scale(9), commit) && close(rule.drop.unwrap() * scale(9), drop)
            );
            assert!(close(rule.smallest_gap(9), commit));
        }
        assert!(close(
            threshold(&problem(5, 1_000_000, 0.3), 1e9) * scale(1),
            2.0 * 1.5174271293851465
        ));
    }

    /// Literal w_a and w_e of K = 5, T = 1e6, rho = .3, phase 9 and 11.
    #[test]
    fn a_clear_winner_is_committed_to_and_clear_losers_are_dropped() {
        let problem = problem(5, 1_000_000, 0.3);
        let (mut sees_commit, mut sees_drop) = (false, false);
        for seed in 0..100u64 {
            let key = Key::from(seed);
            let (mut rse, mut rec) = (Phases::rse(&problem, key), Phases::rec(&problem, key));
            let draw =
                |phase: u64, index: u64| 1.0 + key.uniform(Label::Threshold, [phase, index, 0]);
            let commit = 0.3046054068000633 * draw(9, 0);
            if commit < 0.99 {
                sees_commit = true;
                for rule in [&mut rse, &mut rec] {
                    assert_eq!(
                        rule.keep(9, &[0, 3, 4], &[1.0 - commit - 1e-9, 1.0, 0.0]),
                        [3],
                        "seed {seed}"
                    );
                    let undecided =
                        rule.keep(9, &[0, 3, 4], &[1.0 - commit + 1e-9, 1.0, 1.0 - commit]);
                    assert_eq!(undecided, [0, 3, 4], "seed {seed}");
                }
            }
            // Phase 11, where w_e is a quarter of that of phase 9; actions 0 and 2 differ from the best by nothing.
            let [one, four] = [1, 4].map(|action| 1.2184216272002533 / 4.0 * draw(11, action + 1));
            if one < 0.99 && four < 0.99 {
                sees_drop = true;
                let means = [1.0, 1.0 - one - 1e-9, 1.0, 1.0 - four + 1e-9];
                assert_eq!(
                    rse.keep(11, &[0, 1, 2, 4], &means),
                    [0, 2, 4],
                    "seed {seed}"
                );
                assert_eq!(
                    rec.keep(11, &[0, 1, 2, 4], &means),
                    [0, 1, 2, 4],
                    "seed {seed}"
                );
            }
        }
        assert!(sees_commit && sees_drop);
    }
}
