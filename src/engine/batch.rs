//! Many rounds at once: the same decisions and the same tallies as one by one, in a fraction of the time.

use std::sync::Arc;

use super::Engine;
use super::tell::Standing;
use crate::Error;
use crate::blocks::Order;
use crate::key::Label;
use crate::record::{Decision, EpochRecord, ToldMany};

/// Rounds whose actions are drawn side by side: enough to keep the processor busy, few enough for the stack.
pub(super) const AHEAD: usize = 64;

/// The most decisions room is made for at once: a caller may ask for more than memory holds and than the epoch has.
const ROOM_MAX: usize = 1 << 20;

impl Engine {
    /// Hands out as many rounds as there is room for, fewer where the epoch ends: fills in their actions and returns how many.
    /// They follow one another from the round after those handed out before, and all belong to the open epoch.
    pub fn ask_into(&mut self, actions: &mut [u32]) -> usize {
        let mut rounds = 0;
        while rounds < actions.len() && !self.handed_out {
            let room = AHEAD.min(actions.len() - rounds);
            let ahead = &mut actions[rounds..][..room];
            if let Some(blocks) = self.blocks {
                blocks.draw(self.key, self.open.rounds, &mut self.asking);
            }
            // What lies beyond the epoch's end is not counted, and so was never handed out.
            let first = self.next_round();
            self.decide_many(first.., ahead);
            // Telling the last of them need not draw them again: with room for one round at a time, that holds for all.
            self.ahead.first = first;
            self.ahead.actions.clear();
            self.ahead.actions.extend_from_slice(ahead);
            for action in ahead {
                self.count_as_asked(*action, 1);
                rounds += 1;
                if self.handed_out {
                    break;
                }
            }
        }
        rounds
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
            let mut uniforms = [0.0; AHEAD];
            for (uniform, round) in uniforms[..some.len()].iter_mut().zip(&mut rounds) {
                *uniform = self.key.uniform(Label::Round, [round, 0, 0]);
            }
            for (action, uniform) in some.iter_mut().zip(uniforms) {
                *action = self.strategy.pick(uniform);
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
        let batch = Batch {
            rounds,
            rewards,
            costs,
            costs_each,
        };
        // The common case: a caller that tells everything, in order.
        if self.told_above.is_empty() && rounds.is_sorted_by(|one, next| one < next) {
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
            let row = fixed.row_mut(entry);
            self.problem()
                .to_fixed(batch.rewards[entry], batch.costs_of(entry), row)?;
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
        let plan = Arc::clone(&self.plan);
        let mut fixed = vec![0; batch.costs_each + 1];
        self.check_in_order(batch, &mut fixed)?;
        let already_told = batch
            .rounds
            .partition_point(|&round| round < self.low_water);
        let mut actions = [0; AHEAD];
        for first in (already_told..batch.rounds.len()).step_by(AHEAD) {
            let rounds = &batch.rounds[first..];
            let rounds = &rounds[..rounds.len().min(AHEAD)];
            self.draw_telling(rounds[0]);
            self.decide_many(rounds.iter().copied(), &mut actions[..rounds.len()]);
            for ((entry, &round), &action) in (first..).zip(rounds).zip(&actions) {
                // Judged a second time, which is cheaper than keeping every row.
                plan.problem
                    .to_fixed(batch.rewards[entry], batch.costs_of(entry), &mut fixed)
                    .expect("accepted above");
                self.record_action(round, action, &fixed);
            }
        }
        let recorded = (batch.rounds.len() - already_told) as u64;
        Ok(ToldMany {
            recorded,
            repeated: 0,
            already_told: already_told as u64,
            closed: self.close_if_recorded(recorded),
        })
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
    fn check_in_order(&self, batch: &Batch, fixed: &mut [u64]) -> Result<(), Error> {
        let asked = batch.rounds.first().is_none_or(|&first| first > 0)
            && batch.rounds.last() < Some(&self.next_round());
        if asked && self.problem().accepts(batch.rewards, batch.costs) {
            return Ok(());
        }
        for (entry, &round) in batch.rounds.iter().enumerate() {
            self.problem()
                .to_fixed(batch.rewards[entry], batch.costs_of(entry), fixed)?;
            self.check_asked(round)?;
        }
        Ok(())
    }
}

/// Rounds and their feedback, in the user's units, of lengths that fit each other.
struct Batch<'a> {
    rounds: &'a [u64],
    rewards: &'a [f64],
    costs: &'a [f64],
    costs_each: usize,
}

impl Batch<'_> {
    #[inline]
    fn costs_of(&self, entry: usize) -> &[f64] {
        &self.costs[entry * self.costs_each..][..self.costs_each]
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
