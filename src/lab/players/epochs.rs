//! Epochs: one strategy until some action's count reaches its next target.
//!
//! What ucb-doubling, safe-mix, optimistic-lp and oplb have in common; a [`EpochRule`] says what differs. The last two share their
//! widths, too, and primal-dual has them as well:
//!
//! ```text
//! b(n) = sqrt(ln(2KQT/delta) / (2 max(n, 1)))      holds at every count up to T of every action and quantity, so at any time
//! ```

use super::Player;
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;
use crate::width::hoeffding;

/// What differs between the rivals that play in epochs.
pub(super) trait EpochRule: Send {
    /// The count at which an action that begins an epoch with `count` ends it, if it can. By default it doubles.
    fn target(&self, count: u64) -> Option<u64> {
        Some((2 * count).max(1))
    }

    /// The next epoch's strategy from everything told.
    fn choose(&mut self, tally: &Tally) -> Strategy;

    /// See [`Player::note`].
    fn note(&self) -> Option<String> {
        None
    }
}

/// A rival at play that keeps its strategy for an epoch.
pub(super) struct Epochs<R> {
    rule: R,
    tally: Tally,
    targets: Vec<Option<u64>>,
    strategy: Strategy,
}

impl<R: EpochRule> Epochs<R> {
    pub fn new(problem: &Problem, mut rule: R) -> Self {
        let tally = Tally::new(problem.actions().len(), problem.quantities());
        let strategy = rule.choose(&tally);
        let targets = tally
            .counts()
            .iter()
            .map(|&count| rule.target(count))
            .collect();
        Self {
            rule,
            tally,
            targets,
            strategy,
        }
    }
}

impl<R: EpochRule> Player for Epochs<R> {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn stop(&self, action: u32) -> Option<u64> {
        self.targets[action as usize]
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tally.merge(stretch);
        self.strategy = self.rule.choose(&self.tally);
        // Every action gets a target from its count, not only the one that ended the epoch: all may have moved.
        for (target, &count) in self.targets.iter_mut().zip(self.tally.counts()) {
            assert!(
                target.is_none_or(|target| count <= target),
                "{count} rounds of an action, past its stop {target:?}"
            );
            *target = self.rule.target(count);
        }
    }

    fn note(&self) -> Option<String> {
        self.rule.note()
    }
}

/// b, as a function of the count.
#[derive(Clone, Copy)]
pub(super) struct AnytimeWidth {
    at_one: f64,
}

impl AnytimeWidth {
    pub fn of(problem: &Problem) -> Self {
        // A union bound over every count up to T, which is why it holds whenever an epoch happens to end.
        let estimates =
            (problem.actions().len() * problem.quantities()) as f64 * problem.horizon() as f64;
        Self {
            at_one: hoeffding(problem.delta() / estimates, 1),
        }
    }

    #[inline]
    pub fn at(self, count: u64) -> f64 {
        self.at_one / libm::sqrt(count.max(1) as f64)
    }
}

/// What to say of epochs in which no strategy looked safe.
pub(super) fn infeasible_note(epochs: u64) -> Option<String> {
    (epochs > 0).then(|| {
        format!("no strategy looked safe in {epochs} epochs: the thresholds may be out of reach")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Alternate;

    impl EpochRule for Alternate {
        fn choose(&mut self, tally: &Tally) -> Strategy {
            Strategy::pure(u32::from(tally.counts()[0] > tally.counts()[1]), 2)
        }
    }

    #[test]
    fn epochs_double_counts() {
        let mut player = Epochs::new(
            &Problem::free(["a", "b"], 100, 0.3).build().unwrap(),
            Alternate,
        );
        for (action, rounds) in [
            (0, 1),
            (1, 1),
            (0, 1),
            (1, 1),
            (0, 2),
            (1, 2),
            (0, 4),
            (1, 4),
        ] {
            assert_eq!(player.strategy().only(), Some(action));
            let count = player.tally.counts()[action as usize];
            assert_eq!(player.stop(action), Some(count + rounds));
            let mut stretch = Tally::new(2, 1);
            stretch.add_sums(action, rounds, &[0]);
            player.tell(&stretch);
        }
    }

    /// Numbers from a line of Python.
    #[test]
    fn the_anytime_width_is_that_of_the_formula() {
        let limited = |costs: usize| {
            let draft = Problem::soft(["a", "b", "c"], 20_000, 0.3);
            let named = (0..costs).fold(draft, |draft, cost| {
                draft.cost(format!("cost {cost}"), [0.0, 1.0], 0.5)
            });
            AnytimeWidth::of(&named.build().unwrap())
        };
        assert!((limited(1).at(100) - 0.2914924046035524).abs() < 1e-14);
        assert!((limited(2).at(0) - 2.9494939817213037).abs() < 1e-14);
        assert_eq!(limited(2).at(0), limited(2).at(1));
    }
}
