//! Epochs: one strategy until some action's count reaches its next target.
//!
//! What etc-grid, ucb-doubling, safe-mix, optimistic-lp, doss and oplb have in common; a [`EpochRule`] says what differs. The last three
//! share their widths, too, and primal-dual and pessimistic-optimistic have them as well:
//!
//! ```text
//! b(n) = sqrt(ln(2KQT/delta) / (2 max(n, 1)))      holds at every count up to T of every action and quantity, so at any time
//! ```

use super::{Player, drawn_action};
use crate::Key;
use crate::blocks::{Blocks, Order};
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;
use crate::width::hoeffding;

/// What differs between the rivals that play in epochs.
pub(super) trait EpochRule: Send {
    /// The count at which an action that begins an epoch with `count` ends it, if it can; by default twice as many.
    fn target(&self, count: u64) -> Option<u64> {
        Some((2 * count).max(1))
    }

    /// The next epoch's strategy from everything told.
    fn choose(&mut self, tally: &Tally) -> Strategy;

    /// The rounds after which an epoch ends at the latest, if anything but counts ends it.
    fn rounds_max(&self) -> Option<u64> {
        None
    }

    /// How often an epoch that begins with these counts plays each action, if it explores in permuted blocks.
    fn blocks_each(&self, _counts: &[u64]) -> Option<u64> {
        None
    }

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
    key: Key,
    epoch: u64,
    first_round: u64,
    blocks: Option<Blocks>,
    order: Order,
}

impl<R: EpochRule> Epochs<R> {
    pub fn new(problem: &Problem, key: Key, mut rule: R) -> Self {
        let tally = Tally::new(problem.actions().len(), problem.quantities());
        let strategy = rule.choose(&tally);
        let mut player = Self {
            targets: vec![None; tally.counts().len()],
            rule,
            tally,
            strategy,
            key,
            epoch: 0,
            first_round: 1,
            blocks: None,
            order: Order::default(),
        };
        player.set_ends();
        player
    }

    /// Finds what ends the open epoch.
    fn set_ends(&mut self) {
        let counts = self.tally.counts();
        self.blocks = self.rule.blocks_each(counts).map(|each| Blocks {
            epoch: self.epoch,
            actions: counts.len() as u64,
            each,
        });
        for (target, &count) in self.targets.iter_mut().zip(counts) {
            assert!(
                target.is_none_or(|target| count <= target),
                "{count} rounds of an action, past its stop {target:?}"
            );
            *target = match self.blocks {
                None => self.rule.target(count),
                // All actions come to their counts together, with the last round.
                Some(_) => None,
            };
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

    fn rounds_max(&self) -> Option<u64> {
        let rounds = self.blocks.map(|blocks| blocks.rounds());
        rounds.or(self.rule.rounds_max())
    }

    fn planned_counts(&self, rounds: u64) -> Option<Vec<u64>> {
        self.blocks.map(|blocks| blocks.counts(self.key, rounds))
    }

    fn action(&mut self, round: u64, key: Key) -> u32 {
        let Some(blocks) = self.blocks else {
            return drawn_action(&self.strategy, round, key);
        };
        let index = round - self.first_round;
        blocks.draw(self.key, index, &mut self.order);
        blocks
            .action(index, &self.order)
            .expect("the block just drawn")
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tally.merge(stretch);
        self.epoch += 1;
        self.first_round = self.tally.counts().iter().sum::<u64>() + 1;
        self.strategy = self.rule.choose(&self.tally);
        self.set_ends();
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
        let estimates = (problem.actions().len() * (problem.limited().len() + 1)) as f64
            * problem.horizon() as f64;
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
            Key::from(1u64),
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
