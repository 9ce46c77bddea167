//! Many rounds at once: the same decisions and the same tallies as one by one, in a fraction of the time.

use std::sync::Arc;

use super::{Engine, Standing};
use crate::Error;
use crate::key::Label;
use crate::record::{Decision, ToldMany};

/// Rounds whose actions are drawn side by side.
const AHEAD: usize = 64;

impl Engine {
    /// Hands out as many rounds as there is room for, fewer where the epoch ends: fills in their actions and returns how many.
    /// They follow one another from the round after those handed out before, and all belong to the open epoch.
    pub fn ask_into(&mut self, actions: &mut [u32]) -> usize {
        let mut rounds = 0;
        while rounds < actions.len() && !self.ended {
            let (first, room) = (self.next_round(), AHEAD.min(actions.len() - rounds));
            let ahead = &mut actions[rounds..][..room];
            // What lies beyond the epoch's end is not counted, and so was never handed out.
            self.decide_many(first.., ahead);
            for action in ahead {
                self.count_as_asked(*action, 1);
                rounds += 1;
                if self.ended {
                    break;
                }
            }
            self.last = (self.next_round() - 1, actions[rounds - 1]);
        }
        rounds
    }

    /// Hands out up to `rounds` rounds, fewer where the epoch ends; none when waiting or done ([`Engine::ask`] says which).
    pub fn ask_many(&mut self, rounds: usize) -> Vec<Decision> {
        let left = self.problem().horizon() + 1 - self.next_round();
        let mut decisions = Vec::with_capacity(
            rounds
                .min(usize::try_from(left).unwrap_or(rounds))
                .min(1 << 20),
        );
        while decisions.len() < rounds && !self.ended {
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
        let mut rounds = rounds.into_iter();
        for some in actions.chunks_mut(AHEAD) {
            let mut uniforms = [0.0; AHEAD];
            for (uniform, round) in uniforms[..some.len()].iter_mut().zip(&mut rounds) {
                *uniform = self.key.uniform(Label::Round, [round, 0, 0]);
            }
            some.iter_mut()
                .zip(uniforms)
                .for_each(|(action, uniform)| *action = self.strategy.pick(uniform));
        }
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
        let quantities = self.problem().quantities();
        if rewards.len() != rounds.len() || costs.len() != rounds.len() * (quantities - 1) {
            let told = costs.len();
            return Err(Error::BatchLength {
                rounds: rounds.len(),
                rewards: rewards.len(),
                told,
                costs: quantities - 1,
            });
        }
        if self.told_above.is_empty() && rounds.is_sorted_by(|one, next| one < next) {
            return self.tell_in_order(rounds, rewards, costs);
        }
        let mut fixed = vec![0; rounds.len() * quantities];
        let mut told = ToldMany::default();
        let mut open: Vec<usize> = Vec::new();
        for (entry, (&round, row)) in rounds
            .iter()
            .zip(fixed.chunks_exact_mut(quantities))
            .enumerate()
        {
            self.problem().to_fixed(
                rewards[entry],
                &costs[entry * (quantities - 1)..][..quantities - 1],
                row,
            )?;
            match self.standing(round)? {
                Standing::Forgotten => told.already_told += 1,
                Standing::Told(before) if before == row => told.repeated += 1,
                Standing::Told(_) => return Err(Error::Conflict { round }),
                Standing::Open => open.push(entry),
            }
        }
        // Within the batch, too, a round may come again with equal feedback only. Sorting is stable: the first counts.
        open.sort_by_key(|&entry| rounds[entry]);
        let row = |entry: usize| &fixed[entry * quantities..][..quantities];
        let again = |pair: &&[usize]| rounds[pair[0]] == rounds[pair[1]];
        if let Some(pair) = open
            .windows(2)
            .filter(again)
            .find(|pair| row(pair[0]) != row(pair[1]))
        {
            return Err(Error::Conflict {
                round: rounds[pair[0]],
            });
        }
        told.repeated += open.len() as u64;
        open.dedup_by_key(|&mut entry| rounds[entry]);
        told.repeated -= open.len() as u64;
        told.recorded = open.len() as u64;
        open.iter()
            .for_each(|&entry| self.record(rounds[entry], row(entry)));
        told.closed = self.close_if_told().map(Box::new);
        Ok(told)
    }

    /// Tells many rounds in increasing order when none is told out of order: as no round can come twice, nothing need be kept
    /// between checking and telling, which saves a third of the time or more.
    fn tell_in_order(
        &mut self,
        rounds: &[u64],
        rewards: &[f64],
        costs: &[f64],
    ) -> Result<ToldMany, Error> {
        let plan = Arc::clone(&self.plan);
        let (problem, width) = (&plan.problem, plan.problem.quantities() - 1);
        let row = |entry: usize| &costs[entry * width..][..width];
        let mut fixed = vec![0; width + 1];
        let asked = rounds.first().is_none_or(|&first| first > 0)
            && rounds.last() < Some(&self.next_round());
        if !(asked && problem.accepts(rewards, costs)) {
            // Something is wrong: the first wrong entry is named.
            for (entry, &round) in rounds.iter().enumerate() {
                problem.to_fixed(rewards[entry], row(entry), &mut fixed)?;
                self.check_asked(round)?;
            }
        }
        let already_told = rounds.partition_point(|&round| round < self.low_water);
        let mut actions = [0; AHEAD];
        for (part, some) in (0..).zip(rounds[already_told..].chunks(AHEAD)) {
            self.decide_many(some.iter().copied(), &mut actions[..some.len()]);
            for ((entry, &round), &action) in
                (already_told + part * AHEAD..).zip(some).zip(&actions)
            {
                problem
                    .to_fixed(rewards[entry], row(entry), &mut fixed)
                    .expect("accepted above");
                self.record_action(round, action, &fixed);
            }
        }
        let (recorded, already_told) = ((rounds.len() - already_told) as u64, already_told as u64);
        Ok(ToldMany {
            recorded,
            repeated: 0,
            already_told,
            closed: self.close_if_told().map(Box::new),
        })
    }
}
