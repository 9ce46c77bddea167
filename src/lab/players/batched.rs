//! Batched elimination: bring every active action to a count, drop what has lost, and go on with the rest.
//!
//! What esfandiari-1, esfandiari-2, rse and rec have in common; a [`BatchRule`] says what differs. A batch begins only if it fits
//! into the rounds left. After the last one, or as soon as one action is active, the rule's last actions share the rounds
//! left: the counts of taking turns round by round, but in one block an action, so that a stretch is long.

use super::Player;
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;

/// What differs between the batched rivals.
pub(super) trait BatchRule: Send {
    /// The count to which batch `batch`, from 1, brings every active action; `None` after the last batch.
    fn count(&self, batch: u32) -> Option<u64>;

    /// The smallest gap that can matter: differences of means up to this have no effect on what follows the batch, whatever
    /// the key.
    fn smallest_gap(&self, batch: u32) -> f64;

    /// The actions that stay active after a batch, given the mean of each active action; one at least.
    fn keep(&mut self, batch: u32, active: &[u32], means: &[f64]) -> Vec<u32>;

    /// The actions that share the rounds after the last batch.
    fn last(&self, active: &[u32]) -> Vec<u32>;
}

/// A batched rival at play. All its strategies are pure: one action after another.
pub(super) struct Batched<R> {
    rule: R,
    horizon: u64,
    tally: Tally,
    active: Vec<u32>,
    /// The open batch, from 1.
    batch: u32,
    /// The turns of the open batch that are not over, each an action and the count that ends it; the open turn is last.
    turns: Vec<(u32, u64)>,
    strategy: Strategy,
    note: Option<String>,
}

impl<R: BatchRule> Batched<R> {
    pub fn new(problem: &Problem, rule: R) -> Self {
        let actions = problem.actions().len();
        let mut player = Self {
            note: note(problem, &rule),
            rule,
            horizon: problem.horizon(),
            tally: Tally::new(actions, problem.quantities()),
            active: (0..actions as u32).collect(),
            batch: 1,
            turns: Vec::new(),
            strategy: Strategy::pure(0, actions),
        };
        player.open_batch();
        player
    }

    /// Lines up the turns of the open batch, or those of the rounds after the last.
    fn open_batch(&mut self) {
        let counts = self.tally.counts();
        let left = self.horizon - counts.iter().sum::<u64>();
        // A batch that would not end is not begun: its counts would compare actions of unequal evidence.
        let fitting = self
            .rule
            .count(self.batch)
            .filter(|&count| self.missing(count) <= left);
        self.turns = match fitting {
            Some(count) if self.active.len() > 1 => {
                self.active.iter().map(|&action| (action, count)).collect()
            }
            _ => self.last_turns(left),
        };
        // The open turn is the last, so that it can be popped.
        self.turns.reverse();
        self.open_turn();
    }

    /// The rounds that bring every active action to a count.
    fn missing(&self, count: u64) -> u64 {
        // Counts of late batches may be beyond any horizon, and their sum beyond 64 bits.
        self.active
            .iter()
            .map(|&action| count - self.tally.counts()[action as usize])
            .fold(0, u64::saturating_add)
    }

    /// The turns of the rounds after the last batch: equal but for one round, the earlier actions getting more.
    fn last_turns(&self, left: u64) -> Vec<(u32, u64)> {
        let last = self.rule.last(&self.active);
        let sharing = last.len() as u64;
        // With fewer rounds than actions some have no round, and so no turn.
        last.iter()
            .zip(0..sharing.min(left))
            .map(|(&action, place)| {
                let rounds = left / sharing + u64::from(place < left % sharing);
                (action, self.tally.counts()[action as usize] + rounds)
            })
            .collect()
    }

    fn open_turn(&mut self) {
        let &(action, _) = self
            .turns
            .last()
            .expect("a batch has turns while rounds are left");
        self.strategy.become_pure(action);
    }
}

impl<R: BatchRule> Player for Batched<R> {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn stop(&self, action: u32) -> Option<u64> {
        self.turns
            .last()
            .filter(|(turn, _)| *turn == action)
            .map(|(_, count)| *count)
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tally.merge(stretch);
        let (action, count) = self.turns.pop().expect("a turn is open");
        assert_eq!(
            self.tally.counts()[action as usize],
            count,
            "a turn of action {action} ends at its count"
        );
        // Nothing is looked at within a batch, so only its end decides.
        if self.turns.is_empty() {
            let means: Vec<f64> = self
                .active
                .iter()
                .map(|&action| self.tally.mean(action, 0))
                .collect();
            self.active = self.rule.keep(self.batch, &self.active, &means);
            self.batch += 1;
            self.open_batch();
        } else {
            self.open_turn();
        }
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

/// Says so if the run cannot compare anything: its first batch does not fit, or no batch that fits sees a difference.
fn note(problem: &Problem, rule: &impl BatchRule) -> Option<String> {
    let horizon = problem.horizon();
    let actions = problem.actions().len() as u32;
    // Up to the first batch that sees a difference nothing is dropped, so every batch has all actions.
    let rounds = |batch: u32| {
        rule.count(batch)
            .map(|count| count.saturating_mul(u64::from(actions)))
    };
    let first = rounds(1).filter(|&first| first > horizon);
    if let Some(first) = first {
        let played = match rule.last(&Vec::from_iter(0..actions))[..] {
            [action] => format!("action {action} is played throughout"),
            _ => "all actions share the rounds".to_owned(),
        };
        return Some(format!(
            "the first batch needs {first} rounds, more than the {horizon} of the horizon: {played}"
        ));
    }
    let used = |&batch: &u32| rounds(batch).is_some_and(|rounds| rounds < horizon);
    let sees = (1..)
        .take_while(used)
        .any(|batch| rule.smallest_gap(batch) < 1.0);
    (!sees).then(|| format!("no batch that fits into {horizon} rounds can tell two actions apart"))
}
