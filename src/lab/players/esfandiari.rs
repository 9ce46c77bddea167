//! esfandiari-1 and esfandiari-2: batches of growing length, each dropping the actions that have fallen behind.
//!
//! ```text
//! B = max(2, ceil(ln T)),   q = T^(1/B),   c_i = floor(q) + .. + floor(q^i),   beta floor(q^i) pulls an action in batch i < B
//! 1: mu = replicable mean, accuracy tau = min(1, sqrt(ln(2KTB)/c_i));        drop a if mu_a < max mu - 2 tau
//! 2: mu = plain mean,  Ut = sqrt(2 ln(2KTB)/(beta c_i)),  U = sqrt(2 ln(2KTB)/c_i),  Ubar uniform on [U/2, U];
//!                                                                            drop a if mu_a + Ut < max mu - Ubar
//! ```
//!
//! Source: Esfandiari, Kalavasis, Karbasi, Krause, Mirrokni, Velegkas, *Replicable Bandits* (ICLR 2023), Algorithms 1 and 2.
//!
//! - esfandiari-1 \[structure\]: as printed (beta = 1) the pulls cannot feed its estimator; beta is what makes them do, and the
//!   grid is that of profile paper.
//! - esfandiari-2 \[published\]: beta as printed. The last batch plays the smallest surviving action, since the printed argmax
//!   of plain means does not replicate.
//! - esfandiari-2-proved \[structure\]: the beta for which rho is proved. On the event that both runs' means are within Ut, an
//!   action's decision differs with probability 8 Ut/U = 8/sqrt(beta) in the at most two batches whose U its gap is near.
//!   The printed beta gives about 16 rho this way.

use super::batched::BatchRule;
use crate::key::{Key, Label};
use crate::lp::first_largest;
use crate::mean::round_to_cell;
use crate::problem::Problem;

/// The batches, and ln(2KTB).
struct Batches {
    /// c_1 .. c_(B-1).
    sums: Vec<u64>,
    /// Pulls of an action per unit of c.
    beta: u64,
    log: f64,
}

impl Batches {
    fn new(problem: &Problem, beta: u64) -> Self {
        let horizon = problem.horizon() as f64;
        let batches = batch_count(problem);
        let mut sums = Vec::new();
        let mut sum = 0;
        // Batch B is the rest of the rounds, and has no count of its own.
        for i in 1..batches {
            sum += floor(libm::pow(horizon, f64::from(i) / f64::from(batches)));
            sums.push(sum);
        }
        Self {
            sums,
            beta,
            log: log_term(problem),
        }
    }

    fn count(&self, batch: u32) -> Option<u64> {
        self.sums
            .get(batch as usize - 1)
            .map(|sum| sum.saturating_mul(self.beta))
    }

    /// sqrt(ln(2KTB) / c_i), of which both algorithms' widths are multiples.
    fn root(&self, batch: u32) -> f64 {
        libm::sqrt(self.log / self.sums[batch as usize - 1] as f64)
    }
}

/// The integer at or below a value. One that is an integer, such as 8^(1/3) or (20/.1)^2, may come a few last bits too small.
fn floor(value: f64) -> u64 {
    libm::floor(value * (1.0 + 1e-14)) as u64
}

/// B.
fn batch_count(problem: &Problem) -> u32 {
    (libm::ceil(libm::log(problem.horizon() as f64)) as u32).max(2)
}

/// 2KTB.
fn events(problem: &Problem) -> f64 {
    2.0 * problem.actions().len() as f64
        * problem.horizon() as f64
        * f64::from(batch_count(problem))
}

fn log_term(problem: &Problem) -> f64 {
    libm::log(events(problem))
}

/// Algorithm 1: replicable means.
pub(super) struct Means {
    batches: Batches,
    key: Key,
    /// rho' - 2 d: what is left of an estimate's share of rho for the grid.
    room: f64,
    /// The action with the largest estimate, at first action 0.
    leader: u32,
}

impl Means {
    pub fn new(problem: &Problem, key: Key) -> Self {
        let share =
            problem.rho() / (problem.actions().len() as f64 * f64::from(batch_count(problem)));
        // The chance that ln(2KTB) stands for; where rho is tiny it would exceed the share itself, and a quarter of that
        // leaves half for the grid.
        let miss = (1.0 / events(problem)).min(share / 4.0);
        let room = share - 2.0 * miss;
        // Accuracy tau takes 2 ln(2/d) / (tau room)^2 samples; an action has beta c_i, and c_i >= ln(2KTB) / tau^2. (While
        // tau is cut to 1 it has fewer; but then the grid is one cell.)
        let beta =
            libm::ceil(2.0 * libm::log(2.0 / miss) / (log_term(problem) * room * room)) as u64;
        Self {
            batches: Batches::new(problem, beta),
            key,
            room,
            leader: 0,
        }
    }

    fn tau(&self, batch: u32) -> f64 {
        self.batches.root(batch).min(1.0)
    }

    fn cell(&self, batch: u32) -> f64 {
        2.0 * self.tau(batch) / (1.0 + self.room)
    }
}

impl BatchRule for Means {
    fn count(&self, batch: u32) -> Option<u64> {
        self.batches.count(batch)
    }

    /// A grid of one cell gives every action the same estimate; any finer one may tell two actions apart.
    fn smallest_gap(&self, batch: u32) -> f64 {
        self.cell(batch)
    }

    fn keep(&mut self, batch: u32, active: &[u32], means: &[f64]) -> Vec<u32> {
        let estimates: Vec<f64> = active
            .iter()
            .zip(means)
            .map(|(&action, &mean)| {
                // By batch and action, never by data, as debora's own offsets are.
                let indices = [u64::from(batch), u64::from(action), 0];
                let offset = self.key.uniform(Label::Offset, indices);
                round_to_cell(mean, self.cell(batch), offset).1
            })
            .collect();
        let best = first_largest(&estimates);
        self.leader = active[best];
        let least = estimates[best] - 2.0 * self.tau(batch);
        active
            .iter()
            .zip(&estimates)
            .filter(|(_, estimate)| **estimate >= least)
            .map(|(&action, _)| action)
            .collect()
    }

    fn last(&self, _: &[u32]) -> Vec<u32> {
        vec![self.leader]
    }
}

/// Algorithm 2: plain means and random thresholds.
pub(super) struct Thresholds {
    batches: Batches,
    key: Key,
}

impl Thresholds {
    /// With the printed beta = floor(max(K^2/rho^2, 2304)).
    pub fn printed(problem: &Problem, key: Key) -> Self {
        let ratio = problem.actions().len() as f64 / problem.rho();
        Self {
            batches: Batches::new(problem, floor((ratio * ratio).max(2304.0))),
            key,
        }
    }

    /// With beta = ceil((16 K / (rho - 2/T))^2). If rho is not above 2/T there is none, and no batch fits.
    pub fn proved(problem: &Problem, key: Key) -> Self {
        // 2/T covers the chance that a mean is not within Ut, in either run.
        let room = (problem.rho() - 2.0 / problem.horizon() as f64).max(0.0);
        let ratio = 16.0 * problem.actions().len() as f64 / room;
        Self {
            batches: Batches::new(problem, libm::ceil(ratio * ratio) as u64),
            key,
        }
    }

    /// U.
    fn threshold_max(&self, batch: u32) -> f64 {
        std::f64::consts::SQRT_2 * self.batches.root(batch)
    }

    /// Ut.
    fn width(&self, batch: u32) -> f64 {
        self.threshold_max(batch) / libm::sqrt(self.batches.beta as f64)
    }
}

impl BatchRule for Thresholds {
    fn count(&self, batch: u32) -> Option<u64> {
        self.batches.count(batch)
    }

    fn smallest_gap(&self, batch: u32) -> f64 {
        self.threshold_max(batch) / 2.0 + self.width(batch)
    }

    fn keep(&mut self, batch: u32, active: &[u32], means: &[f64]) -> Vec<u32> {
        let uniform = self.key.uniform(Label::Threshold, [u64::from(batch), 0, 0]);
        let threshold = self.threshold_max(batch) * (1.0 + uniform) / 2.0;
        let least = means[first_largest(means)] - threshold;
        let width = self.width(batch);
        active
            .iter()
            .zip(means)
            .filter(|(_, mean)| **mean + width >= least)
            .map(|(&action, _)| action)
            .collect()
    }

    fn last(&self, active: &[u32]) -> Vec<u32> {
        // Not the best by its mean, as printed: which of two close means is larger would differ from run to run.
        vec![active[0]]
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

    /// Lengths from integers: floor(q^i) is the largest n with n^B <= T^i.
    #[test]
    fn batches_grow_by_q_and_exact_powers_are_not_missed() {
        let sums = [
            2, 9, 28, 79, 217, 589, 1_589, 4_271, 11_467, 30_773, 82_567, 221_516, 594_275,
        ];
        assert_eq!(Batches::new(&problem(5, 1_000_000, 0.3), 1).sums, sums);
        let sums = Batches::new(&problem(20, 1_000_000_000_000, 0.1), 1).sums;
        // B = 28, so q^7 = 1e3, q^14 = 1e6 and q^21 = 1e9.
        assert_eq!(
            (sums.len(), [6, 13, 20].map(|i| sums[i] - sums[i - 1])),
            (27, [1_000, 1_000_000, 1_000_000_000])
        );
        assert_eq!(
            (sums[26], Batches::new(&problem(2, 8, 0.5), 1).sums),
            (594_284_482_543, vec![2, 6])
        );
        assert_eq!(Batches::new(&problem(3, 1, 0.5), 1).sums, [1]);
    }

    /// Numbers from a few lines of Python.
    #[test]
    fn betas_are_those_of_the_formulas() {
        let key = Key::from(0u64);
        let betas = |actions, horizon, rho| {
            let problem = problem(actions, horizon, rho);
            let (printed, proved) = (
                Thresholds::printed(&problem, key),
                Thresholds::proved(&problem, key),
            );
            [
                Means::new(&problem, key).batches.beta,
                printed.batches.beta,
                proved.batches.beta,
            ]
        };
        assert_eq!(betas(5, 1_000_000, 0.3), [112_914, 2_304, 71_113]);
        assert_eq!(betas(2, 10_000_000, 0.3), [26_565, 2_304, 11_378]);
        assert_eq!(
            betas(20, 1_000_000_000_000, 0.1),
            [63_974_591, 40_000, 10_240_001]
        );
        assert_eq!(betas(2, 8, 0.5), [590, 2_304, 16_384]);
        // Here d is rho'/4, and below rho = 2/T nothing is proved.
        assert_eq!(
            betas(2, 100_000, 0.00001),
            [50_232_360_828_584, 40_000_000_000, u64::MAX]
        );
        assert_eq!(betas(3, 4, 0.5), [1_359, 2_304, u64::MAX]);
    }

    #[test]
    fn widths_are_those_of_the_formulas() {
        let (problem, key) = (problem(5, 1_000_000, 0.3), Key::from(0u64));
        let means = Means::new(&problem, key);
        assert!(close(means.room, 0.0042857) && means.tau(1) == 1.0 && means.cell(1) > 1.0);
        assert!(
            close(means.tau(4), 0.48727027018872404) && close(means.cell(4), 0.9703817752034588)
        );
        let (printed, proved) = (
            Thresholds::printed(&problem, key),
            Thresholds::proved(&problem, key),
        );
        assert!(
            close(printed.threshold_max(4), 0.689104224642096)
                && close(proved.threshold_max(1), 4.330952895215276)
        );
        assert!(
            close(printed.width(4), 0.014356338013376999)
                && close(proved.width(4), 0.0025841065224710127)
        );
    }

    /// Literal tau and cell of batch 6; the cell's middle is found by walking the grid.
    #[test]
    fn means_drops_what_is_two_tau_behind_and_plays_the_leader_last() {
        let (tau, cell) = (0.17845380516599638, 0.3553845388139977);
        let middle = |key: Key, action: u32, mean: f64| {
            let mut edge = (key.uniform(Label::Offset, [6, u64::from(action), 0]) - 1.0) * cell;
            while edge + cell <= mean {
                edge += cell;
            }
            (edge + cell / 2.0).clamp(0.0, 1.0)
        };
        let (mut dropped, mut kept) = (0, 0);
        for seed in 0..200u64 {
            let key = Key::from(seed);
            let mut rule = Means::new(&problem(5, 1_000_000, 0.3), key);
            let (active, means) = ([0, 3], [0.3, 0.3 + 0.003 * seed as f64]);
            let estimates = [middle(key, 0, means[0]), middle(key, 3, means[1])];
            let leads = estimates[1] > estimates[0];
            let behind = (estimates[1] - estimates[0]).abs() > 2.0 * tau;
            let leader = if leads { 3 } else { 0 };
            let wanted = if behind {
                vec![leader]
            } else {
                active.to_vec()
            };
            assert_eq!(
                (rule.keep(6, &active, &means), rule.last(&active)),
                (wanted, vec![leader]),
                "seed {seed}"
            );
            *(if behind { &mut dropped } else { &mut kept }) += 1;
        }
        assert!(dropped > 20 && kept > 20, "{dropped} dropped, {kept} kept");
    }

    /// Literal U and Ut of batch 4, printed beta.
    #[test]
    fn thresholds_drops_at_the_drawn_threshold_and_plays_the_lowest_survivor_last() {
        for seed in 0..50u64 {
            let key = Key::from(seed);
            let mut rule = Thresholds::printed(&problem(5, 1_000_000, 0.3), key);
            let u = key.uniform(Label::Threshold, [4, 0, 0]);
            let gap = 0.689104224642096 * (0.5 + 0.5 * u) + 0.014356338013376999;
            let (active, best) = ([1, 2, 4], 0.9);
            assert_eq!(
                rule.keep(4, &active, &[best - gap - 1e-9, best - gap + 1e-9, best]),
                [2, 4],
                "seed {seed}"
            );
        }
        assert_eq!(
            Thresholds::printed(&problem(5, 1_000_000, 0.3), Key::from(0u64)).last(&[2, 4]),
            [2]
        );
    }
}
