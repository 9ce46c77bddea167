//! Many rounds at once: the same decisions and the same tallies as one by one, in a fraction of the time.

use super::tell::Standing;
use super::{Ahead, Engine};
use crate::Error;
use crate::blocks::Order;
use crate::key::Label;
use crate::record::{Decision, EpochRecord, ToldMany};

/// Rounds whose actions are drawn side by side: enough to keep the processor busy, few enough for the stack.
pub(super) const AHEAD: usize = 64;

/// Actions handed out in batches that are kept until they are told, at most: 4 MB, however long the run. Those of other rounds
/// are drawn again, which takes longer than all else that telling does.
const KEPT_MAX: usize = 1 << 20;

/// The most decisions room is made for at once: a caller may ask for more than memory holds and than the epoch has.
const ROOM_MAX: usize = 1 << 20;

impl Engine {
    /// Hands out as many rounds as there is room for, fewer where the epoch ends: fills in their actions and returns how many.
    /// They follow one another from the round after those handed out before, and all belong to the open epoch.
    pub fn ask_into(&mut self, actions: &mut [u32]) -> usize {
        let first = self.next_round();
        let mut rounds = 0;
        while rounds < actions.len() && !self.handed_out {
            let room = AHEAD.min(actions.len() - rounds);
            let ahead = &mut actions[rounds..][..room];
            if let Some(blocks) = self.blocks {
                blocks.draw(self.key, self.open.rounds, &mut self.asking);
            }
            // What lies beyond the epoch's end is not counted, and so was never handed out.
            self.decide_many(self.next_round().., ahead);
            rounds += self.count_many_as_asked(ahead);
        }
        self.keep(first, &actions[..rounds]);
        rounds
    }

    /// Counts rounds as handed out, up to the one that ends the epoch; returns how many.
    fn count_many_as_asked(&mut self, actions: &[u32]) -> usize {
        let many = actions.len() as u64;
        if self.goes_on_for(many) {
            for &action in actions {
                self.asked[action as usize] += 1;
            }
            self.open.rounds += many;
            return actions.len();
        }
        for (place, &action) in (1..).zip(actions) {
            self.count_as_asked(action, 1);
            if self.handed_out {
                return place;
            }
        }
        actions.len()
    }

    /// Whether so many more rounds cannot end the epoch, whatever their actions. Found only where that is quick, and then a
    /// round need not be compared with its action's target.
    fn goes_on_for(&self, rounds: u64) -> bool {
        let short_of_target = |action: u32| {
            let action = action as usize;
            self.targets[action] - self.asked[action] > rounds
        };
        self.strategy.is_simple()
            && self.next_round() + rounds <= self.last_round
            && self.strategy.played().all(short_of_target)
    }

    /// Keeps the actions of rounds just handed out, after those kept before if these are still to be told.
    fn keep(&mut self, first: u64, actions: &[u32]) {
        let kept = &mut self.ahead;
        let follow = kept.first + kept.actions.len() as u64 == first;
        if !follow || self.low_water == first || kept.actions.len() + actions.len() > KEPT_MAX {
            kept.first = first;
            kept.actions.clear();
        }
        // Of more rounds than are kept, the first are told first.
        let room = KEPT_MAX - kept.actions.len();
        kept.actions
            .extend_from_slice(&actions[..actions.len().min(room)]);
    }

    /// Hands out up to `rounds` rounds, fewer where the epoch ends; none when waiting or done ([`Engine::ask`] says which).
    pub fn ask_many(&mut self, rounds: usize) -> Vec<Decision> {
        let left = self.problem().horizon() + 1 - self.next_round();
        // The horizon bounds the rounds left, where the epoch's end is not known before its rounds are drawn.
        let room = rounds
            .min(usize::try_from(left).unwrap_or(rounds))
            .min(ROOM_MAX);
        let mut decisions = Vec::with_capacity(room);
        while decisions.len() < rounds && !self.handed_out {
            decisions.push(self.hand_out());
        }
        decisions
    }

    /// The actions of rounds of the open epoch, as [`Self::decide`] has them. Drawn side by side they take half the time they
    /// take one after another, as no draw waits for what the last one picked.
    #[inline]
    pub fn decide_many(&self, rounds: impl IntoIterator<Item = u64>, actions: &mut [u32]) {
        if let Some(action) = self.strategy.only() {
            return actions.fill(action);
        }
        if self.blocks.is_some() {
            return self.decide_in_blocks(rounds, actions);
        }
        let mut rounds = rounds.into_iter();
        for some in actions.chunks_mut(AHEAD) {
            let mut words = [0; AHEAD];
            for (word, round) in words[..some.len()].iter_mut().zip(&mut rounds) {
                [*word, ..] = self.key.block(Label::Round, [round, 0, 0]);
            }
            for (action, word) in some.iter_mut().zip(words) {
                *action = self.strategy.pick_by_word(word);
            }
        }
    }

    /// The same in an epoch of permuted blocks: rounds that follow one another share a block's order.
    fn decide_in_blocks(&self, rounds: impl IntoIterator<Item = u64>, actions: &mut [u32]) {
        let (mut order, mut first) = (Order::default(), 0);
        for (action, round) in actions.iter_mut().zip(rounds) {
            // Mostly of the block of the round before, which is seen without a division.
            let place = round.wrapping_sub(first);
            *action = match order.at(place).filter(|_| round <= self.last_round) {
                Some(action) => action,
                None => self.decide_in_block(round, &mut order, &mut first),
            };
        }
    }

    /// The action of one round; if that takes the order of its block, also the first round of the block.
    fn decide_in_block(&self, round: u64, order: &mut Order, first: &mut u64) -> u32 {
        let action = self.block_action(round, order);
        let index = round.wrapping_sub(self.open.first_round);
        if let Some(place) = self.blocks.and_then(|blocks| blocks.place(index, order)) {
            *first = round - place;
        }
        action.unwrap_or_else(|| self.decide(round).action)
    }

    /// Tells many rounds: a reward each, and the costs of the first round, then of the second, and so on.
    ///
    /// Either all are told or, on an error, none.
    pub fn tell_many(
        &mut self,
        rounds: &[u64],
        rewards: &[f64],
        costs: &[f64],
    ) -> Result<ToldMany, Error> {
        let costs_each = self.problem().quantities() - 1;
        if rewards.len() != rounds.len() || costs.len() != rounds.len() * costs_each {
            return Err(Error::BatchLength {
                rounds: rounds.len(),
                rewards: rewards.len(),
                told: costs.len(),
                costs: costs_each,
            });
        }
        self.check_before_closing(rounds.len() as u64)?;
        let batch = Batch {
            rounds,
            rewards,
            costs,
            costs_each,
        };
        // The common case: a caller that tells everything, in order.
        let plain = self.told_above.is_empty() && !self.problem().has_ranges_by_action();
        if plain && rounds.is_sorted_by(|one, next| one < next) {
            self.tell_in_order(&batch)
        } else {
            self.tell_in_any_order(&batch)
        }
    }

    fn tell_in_any_order(&mut self, batch: &Batch) -> Result<ToldMany, Error> {
        let mut fixed = FixedRows::new(batch);
        let mut told = ToldMany::default();
        let mut untold: Vec<usize> = Vec::new();
        for (entry, &round) in batch.rounds.iter().enumerate() {
            let (reward, costs) = (batch.rewards[entry], batch.costs_of(entry));
            let Some(action) = self.action_to_tell(round, reward, costs)? else {
                told.already_told += 1;
                continue;
            };
            let row = fixed.row_mut(entry);
            self.problem().to_fixed(action, reward, costs, row)?;
            match self.standing(round)? {
                Standing::Forgotten => told.already_told += 1,
                Standing::Told(before) if before == row => told.repeated += 1,
                Standing::Told(_) => return Err(Error::Conflict { round }),
                Standing::Open => untold.push(entry),
            }
        }
        // From here on nothing can fail but a conflict within the batch, which is found before anything is told.
        told.repeated += drop_repeated(&mut untold, batch.rounds, &fixed)?;
        told.recorded = untold.len() as u64;
        for &entry in &untold {
            self.record(batch.rounds[entry], fixed.row(entry));
        }
        told.closed = self.close_if_recorded(told.recorded);
        Ok(told)
    }

    /// Tells many rounds in increasing order when none is told out of order: as no round can come twice, nothing need be kept
    /// between checking and telling, which saves a third of the time or more.
    fn tell_in_order(&mut self, batch: &Batch) -> Result<ToldMany, Error> {
        self.check_in_order(batch)?;
        let already_told = batch
            .rounds
            .partition_point(|&round| round < self.low_water);
        let mut actions = [0; AHEAD];
        let mut rewards = [0; AHEAD];
        let mut costs = vec![0; AHEAD * batch.costs_each];
        for part in batch.split_at(already_told).1.parts() {
            let actions = &mut actions[..part.rounds.len()];
            self.actions_told(part.rounds, actions);
            let fixed = [&mut rewards[..], &mut costs];
            let problem = &self.plan.problem;
            problem.accepted_to_fixed([part.rewards, part.costs], fixed);
            self.record_part(part.rounds, actions, [&rewards, &costs]);
        }
        let recorded = (batch.rounds.len() - already_told) as u64;
        Ok(ToldMany {
            recorded,
            repeated: 0,
            already_told: already_told as u64,
            closed: self.close_if_recorded(recorded),
        })
    }

    /// The actions of rounds in increasing order: as they were handed out, or drawn again.
    fn actions_told(&mut self, rounds: &[u64], actions: &mut [u32]) {
        if let Some(kept) = self.ahead.actions_of(rounds) {
            return actions.copy_from_slice(kept);
        }
        self.draw_telling(rounds[0]);
        self.decide_many(rounds.iter().copied(), actions);
    }

    /// Records rounds in increasing order, none of which is told.
    fn record_part(&mut self, rounds: &[u64], actions: &[u32], [rewards, costs]: [&[u64]; 2]) {
        if rounds[0] == self.low_water && follow_one_another(rounds) {
            // As nothing is told above the mark, it moves on by as many.
            self.tally.add_many(actions, rewards, costs);
            self.low_water += rounds.len() as u64;
            return;
        }
        let costs_each = self.tally.quantities() - 1;
        let mut row = Vec::new();
        for (entry, (&round, &action)) in rounds.iter().zip(actions).enumerate() {
            row.clear();
            row.push(rewards[entry]);
            row.extend(&costs[entry * costs_each..][..costs_each]);
            self.record_action(round, action, &row);
        }
    }

    fn close_if_recorded(&mut self, recorded: u64) -> Option<Box<EpochRecord>> {
        // The last epoch of a run stays fully told: without this, telling nothing new would close it again.
        if recorded == 0 {
            return None;
        }
        self.close_if_told().map(Box::new)
    }

    /// Rounds in order are all known if the first and the last are, and one pass over the values sees whether all are in
    /// range. Only if that fails is every entry looked at by itself, so that the error names the first wrong one.
    fn check_in_order(&self, batch: &Batch) -> Result<(), Error> {
        let asked = batch.rounds.first().is_none_or(|&first| first > 0)
            && batch.rounds.last() < Some(&self.next_round());
        let problem = self.problem();
        let accepted = |part: Batch| problem.accepts(part.rewards, part.costs);
        if asked && batch.parts().all(accepted) {
            return Ok(());
        }
        let mut fixed = vec![0; problem.quantities()];
        for (entry, &round) in batch.rounds.iter().enumerate() {
            // Of a problem whose actions all have the same ranges.
            problem.to_fixed(0, batch.rewards[entry], batch.costs_of(entry), &mut fixed)?;
            self.check_asked(round)?;
        }
        Ok(())
    }
}

/// Whether rounds in increasing order leave none out.
fn follow_one_another(rounds: &[u64]) -> bool {
    rounds[rounds.len() - 1] - rounds[0] == rounds.len() as u64 - 1
}

impl Ahead {
    /// The actions of rounds in increasing order, if they follow one another and are all here.
    fn actions_of(&self, rounds: &[u64]) -> Option<&[u32]> {
        let first = usize::try_from(rounds[0].checked_sub(self.first)?).ok()?;
        let actions = self.actions.get(first..)?.get(..rounds.len())?;
        follow_one_another(rounds).then_some(actions)
    }
}

/// Rounds and their feedback, in the user's units, of lengths that fit each other.
#[derive(Clone, Copy)]
struct Batch<'a> {
    rounds: &'a [u64],
    rewards: &'a [f64],
    costs: &'a [f64],
    costs_each: usize,
}

impl<'a> Batch<'a> {
    #[inline]
    fn costs_of(&self, entry: usize) -> &[f64] {
        &self.costs[entry * self.costs_each..][..self.costs_each]
    }

    /// Its first entries, and the others.
    fn split_at(self, entries: usize) -> (Self, Self) {
        let (rounds, later_rounds) = self.rounds.split_at(entries);
        let (rewards, later_rewards) = self.rewards.split_at(entries);
        let (costs, later_costs) = self.costs.split_at(entries * self.costs_each);
        let part = |rounds, rewards, costs| Self {
            rounds,
            rewards,
            costs,
            costs_each: self.costs_each,
        };
        (
            part(rounds, rewards, costs),
            part(later_rounds, later_rewards, later_costs),
        )
    }

    /// The entries in order, some at a time.
    fn parts(self) -> impl Iterator<Item = Batch<'a>> {
        let mut left = self;
        std::iter::from_fn(move || {
            let (part, later) = left.split_at(left.rounds.len().min(AHEAD));
            left = later;
            (!part.rounds.is_empty()).then_some(part)
        })
    }
}

/// The feedback of a batch in multiples of 2^-53, row after row: kept, as a later entry may be refused.
struct FixedRows {
    quantities: usize,
    values: Vec<u64>,
}

impl FixedRows {
    fn new(batch: &Batch) -> Self {
        let quantities = batch.costs_each + 1;
        Self {
            quantities,
            values: vec![0; batch.rounds.len() * quantities],
        }
    }

    fn row(&self, entry: usize) -> &[u64] {
        &self.values[entry * self.quantities..][..self.quantities]
    }

    fn row_mut(&mut self, entry: usize) -> &mut [u64] {
        &mut self.values[entry * self.quantities..][..self.quantities]
    }
}

/// Puts entries in the order of their rounds and drops what is told twice within the batch; returns how many that are. As
/// everywhere, a round may come again with equal feedback only.
fn drop_repeated(untold: &mut Vec<usize>, rounds: &[u64], fixed: &FixedRows) -> Result<u64, Error> {
    // Sorting is stable: of equal rounds the first counts.
    untold.sort_by_key(|&entry| rounds[entry]);
    for pair in untold.windows(2) {
        let round = rounds[pair[0]];
        if round == rounds[pair[1]] && fixed.row(pair[0]) != fixed.row(pair[1]) {
            return Err(Error::Conflict { round });
        }
    }
    let before = untold.len();
    untold.dedup_by_key(|&mut entry| rounds[entry]);
    Ok((before - untold.len()) as u64)
}
