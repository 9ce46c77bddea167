//! Asking: hands out rounds, each with the action its number and the key say.

use super::Engine;
use crate::Error;
use crate::key::Label;
use crate::record::{Ask, Decision};

impl Engine {
    /// Hands out the next round.
    #[inline]
    pub fn ask(&mut self) -> Ask {
        if !self.handed_out {
            return Ask::Decision(self.hand_out());
        }
        if self.is_done() {
            return Ask::Done;
        }
        Ask::Waiting {
            outstanding: self.outstanding_count(),
        }
    }

    #[inline]
    pub(super) fn hand_out(&mut self) -> Decision {
        let decision = self.decide(self.next_round());
        self.last = (decision.round, decision.action);
        self.count_as_asked(decision.action, 1);
        decision
    }

    /// Algorithm 3, line 6, for one action: an epoch ends when an action's count reaches its target, or with the horizon.
    #[inline]
    pub(crate) fn count_as_asked(&mut self, action: u32, rounds: u64) {
        let count = &mut self.asked[action as usize];
        *count += rounds;
        self.open.rounds += rounds;
        // Only the action just counted can have reached its target: comparing all of them would cost K a round.
        self.handed_out |= *count == self.targets[action as usize]
            || self.next_round() > self.plan.problem.horizon();
    }

    /// Algorithm 3, line 16: what the open epoch's strategy does in a round, whether it is handed out or not. Nothing advances.
    #[inline]
    pub fn decide(&self, round: u64) -> Decision {
        self.draw(round, Label::Round, [round, 0, 0])
    }

    /// What the open epoch's strategy does for a request beyond its rounds; `serial`, from 1, stands in for the round.
    ///
    /// Such a decision is outside the horizon and no estimate counts it, so replicability stands, and so does safety.
    pub fn overtime(&self, serial: u64) -> Decision {
        // A label of its own: drawn as rounds, these would use up the numbers of rounds still to come.
        self.draw(serial, Label::Overtime, [self.open.epoch, serial, 0])
    }

    #[inline]
    fn draw(&self, round: u64, label: Label, indices: [u64; 3]) -> Decision {
        // No state advances with a draw, so a strategy of one action may skip it.
        let action = match self.strategy.only() {
            Some(action) => action,
            None => self.strategy.pick(self.key.uniform(label, indices)),
        };
        let probability = self.strategy.probabilities()[action as usize];
        Decision {
            round,
            epoch: self.open.epoch,
            action,
            probability,
        }
    }

    /// The decision of a round of the open epoch that was handed out, again.
    pub fn decision(&self, round: u64) -> Result<Decision, Error> {
        self.check_asked(round)?;
        if round < self.open.first_round {
            // Strategies of closed epochs are not kept, so that an engine's size does not grow with the run.
            return Err(Error::RoundGone {
                round,
                first: self.open.first_round,
            });
        }
        Ok(self.decide(round))
    }

    #[inline]
    pub(super) fn check_asked(&self, round: u64) -> Result<(), Error> {
        let horizon = self.problem().horizon();
        if round == 0 || round > horizon {
            return Err(Error::RoundUnknown { round, horizon });
        }
        let next = self.next_round();
        if round >= next {
            return Err(Error::RoundNotAsked { round, next });
        }
        Ok(())
    }
}
