//! kl-ucb: every action once, then the largest mean that its rewards do not rule out, round by round \[published\].
//!
//! ```text
//! argmax  max {q : n(a) kl(mean(a), q) <= ln t},   kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)),   t the round
//! ```
//!
//! Source: Garivier, Cappé, *The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond* (COLT 2011), Algorithm 1. Its bound
//! is ln t + c ln ln t: the proof has c = 3, and for practice the paper recommends c = 0, which is what plays here.

use super::Player;
use crate::mean::{FIXED_ONE, Tally};
use crate::problem::Problem;
use crate::strategy::Strategy;

/// Halvings of the interval from the mean to 1: beyond it indices are equal.
const HALVINGS: u32 = 40;

/// What is known of an action.
#[derive(Clone, Default)]
struct Known {
    count: u64,
    /// Exact, in multiples of 2^-53.
    sum: u128,
    mean: f64,
    /// p ln p + (1-p) ln(1-p) at the mean: all of kl that q does not change.
    entropy: f64,
}

pub(super) struct KlUcb {
    known: Vec<Known>,
    round: u64,
    strategy: Strategy,
    action: u32,
}

impl KlUcb {
    pub fn new(problem: &Problem) -> Self {
        let actions = problem.actions().len();
        Self {
            known: vec![Known::default(); actions],
            round: 1,
            strategy: Strategy::pure(0, actions),
            action: 0,
        }
    }

    /// The first largest index.
    fn best(&self) -> u32 {
        let bound = libm::log(self.round as f64);
        // The action just played is often the best again, and one look at it spares the others the search for their index.
        let mut best = (self.action, self.known[self.action as usize].index(bound));
        for (action, known) in (0..).zip(&self.known) {
            if action == self.action || !known.allows(best.1, bound) {
                continue;
            }
            let index = known.index(bound);
            if index > best.1 || (index == best.1 && action < best.0) {
                best = (action, index);
            }
        }
        best.0
    }
}

impl Known {
    fn add(&mut self, fixed: u128) {
        self.count += 1;
        self.sum += fixed;
        self.mean = self.sum as f64 / self.count as f64 * (1.0 / FIXED_ONE as f64);
        self.entropy =
            times_log(self.mean, self.mean) + times_log(1.0 - self.mean, 1.0 - self.mean);
    }

    /// Whether q is at most the index.
    fn allows(&self, q: f64, bound: f64) -> bool {
        let kl = self.entropy - times_log(self.mean, q) - times_log(1.0 - self.mean, 1.0 - q);
        q <= self.mean || self.count as f64 * kl <= bound
    }

    fn index(&self, bound: f64) -> f64 {
        let (mut low, mut high) = (self.mean, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.allows(middle, bound) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// p ln q, which is 0 at p = 0 whatever q is.
fn times_log(p: f64, q: f64) -> f64 {
    if p > 0.0 { p * libm::log(q) } else { 0.0 }
}

impl Player for KlUcb {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        let action = self.action as usize;
        assert_eq!(stretch.counts()[action], 1, "a stretch is one round");
        self.known[action].add(stretch.sums()[action * stretch.quantities()]);
        self.round += 1;
        // Every action once, in their order, before any is compared.
        let opening = self.round <= self.known.len() as u64;
        self.action = if opening {
            self.round as u32 - 1
        } else {
            self.best()
        };
        self.strategy.become_pure(self.action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Label};

    /// The last of a million and one points that the definition allows, with the standard library's logarithms.
    fn index_by_brute_force(count: u64, ones: u64, bound: f64) -> f64 {
        let p = ones as f64 / count as f64;
        let kl = |q: f64| {
            let part = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).ln() };
            part(p, q) + part(1.0 - p, 1.0 - q)
        };
        let points = (0..=1_000_000u32).map(|step| f64::from(step) / 1e6);
        let allowed = points.filter(|&q| q >= p && count as f64 * kl(q) <= bound);
        allowed.fold(p, f64::max)
    }

    fn known(count: u64, ones: u64) -> Known {
        let mut known = Known::default();
        (0..count).for_each(|pull| known.add(u128::from(pull < ones) << 53));
        known
    }

    #[test]
    fn the_index_is_the_largest_mean_not_ruled_out() {
        for (count, ones, round) in [
            (1, 0, 2),
            (1, 1, 3),
            (10, 0, 100),
            (10, 3, 40),
            (50, 49, 1_000),
            (2_000, 700, 5_000),
        ] {
            let bound = f64::ln(round as f64);
            let index = known(count, ones).index(bound);
            let wanted = index_by_brute_force(count, ones, bound);
            assert!(
                (index - wanted).abs() <= 1.1e-6,
                "{ones} of {count} in round {round}: {index}, by brute force {wanted}"
            );
        }
    }

    /// The spared searches change nothing: the choice is that of all indices side by side.
    #[test]
    fn the_action_is_the_first_with_the_largest_index() {
        let problem = Problem::free(["a", "b", "c", "d"], 2_000, 0.3)
            .build()
            .unwrap();
        let mut player = KlUcb::new(&problem);
        let mut played = [0; 4];
        for round in 1..2_000u64 {
            let action = player.action as usize;
            played[action] += 1;
            let coin = Key::from(5u64).uniform(Label::Threshold, [round, 0, 0]);
            let mut stretch = Tally::new(4, 1);
            let one = coin < [0.3, 0.5, 0.55, 0.5][action];
            stretch.add_sums(action as u32, 1, &[u128::from(one) << 53]);
            player.tell(&stretch);
            if round < 4 {
                assert_eq!(u64::from(player.action), round);
                continue;
            }
            let bound = libm::log(player.round as f64);
            let indices: Vec<f64> = player
                .known
                .iter()
                .map(|known| known.index(bound))
                .collect();
            let largest = indices.iter().copied().fold(0.0, f64::max);
            let first = indices.iter().position(|&index| index == largest);
            assert_eq!(first, Some(player.action as usize), "{round}: {indices:?}");
        }
        assert!(
            played[2] > played[0] && played.iter().all(|&count| count > 10),
            "{played:?}"
        );
    }
}
