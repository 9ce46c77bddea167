//! ucb1: every action once, then the largest upper confidence bound, round by round \[published\].
//!
//! ```text
//! argmax  mean(a) + sqrt(2 ln t / n(a)),   t rounds so far, n(a) of them with action a
//! ```
//!
//! Source: Auer, Cesa-Bianchi, Fischer, *Finite-time Analysis of the Multiarmed Bandit Problem* (Machine Learning 47, 2002),
//! Figure 1, where t ("n" there) is the overall number of plays done so far.

use super::Player;
use crate::mean::{FIXED_ONE, Tally};
use crate::problem::Problem;
use crate::strategy::Strategy;

/// Rounds whose factors are computed together: a logarithm waits for its own steps, but not for those of another.
const TOGETHER: usize = 64;

pub(super) struct Ucb1 {
    strategy: Strategy,
    action: u32,
    rounds: u64,
    counts: Vec<u64>,
    /// Exact, in multiples of 2^-53.
    sums: Vec<u128>,
    /// The mean and 1/sqrt(n) of each action, renewed when it is played: a round then costs a product an action, not a root.
    known: Vec<(f64, f64)>,
    /// sqrt(2 ln t), which all actions share, for t from `roots_first` on.
    roots: Vec<f64>,
    roots_first: u64,
}

impl Ucb1 {
    pub fn new(problem: &Problem) -> Self {
        let actions = problem.actions().len();
        Self {
            strategy: Strategy::pure(0, actions),
            action: 0,
            rounds: 0,
            counts: vec![0; actions],
            sums: vec![0; actions],
            known: vec![(0.0, 0.0); actions],
            roots: Vec::with_capacity(TOGETHER),
            roots_first: 0,
        }
    }

    /// The factor of this round.
    fn root(&mut self) -> f64 {
        let place = (self.rounds - self.roots_first) as usize;
        if let Some(&root) = self.roots.get(place) {
            return root;
        }
        let root = |round: u64| libm::sqrt(2.0 * libm::log(round as f64));
        self.roots.clear();
        self.roots.extend((self.rounds..).take(TOGETHER).map(root));
        self.roots_first = self.rounds;
        self.roots[0]
    }

    /// The first largest index.
    fn best(&mut self) -> u32 {
        let root = self.root();
        let mut best = (0, f64::NEG_INFINITY);
        for (action, (mean, inverse_root)) in (0..).zip(&self.known) {
            let index = mean + root * inverse_root;
            if index > best.1 {
                best = (action, index);
            }
        }
        best.0
    }
}

impl Player for Ucb1 {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        let action = self.action as usize;
        assert_eq!(stretch.counts()[action], 1, "a stretch is one round");
        self.rounds += 1;
        self.counts[action] += 1;
        self.sums[action] += stretch.sums()[action * stretch.quantities()];
        let count = self.counts[action] as f64;
        self.known[action] = (
            self.sums[action] as f64 / count * (1.0 / FIXED_ONE as f64),
            1.0 / libm::sqrt(count),
        );
        // Every action once, in their order, before any is compared.
        let opening = self.rounds < self.counts.len() as u64;
        self.action = if opening {
            self.rounds as u32
        } else {
            self.best()
        };
        self.strategy.become_pure(self.action);
    }
}
