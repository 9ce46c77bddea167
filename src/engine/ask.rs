//! Asking: hands out rounds, each with the action its number and the key say.

use sha2::{Digest as _, Sha256};

use super::batch::AHEAD;
use super::{Ahead, Engine};
use crate::Error;
use crate::blocks::Order;
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
        if let Some(blocks) = self.blocks {
            blocks.draw(self.key, self.open.rounds, &mut self.asking);
        }
        let round = self.next_round();
        let action = self.action_ahead(round);
        self.count_as_asked(action, 1);
        self.decision_of(round, action)
    }

    /// Like [`Self::decide`], for callers that continue with the rounds after it.
    #[inline]
    pub(crate) fn action_ahead(&mut self, round: u64) -> u32 {
        self.ahead.action(round).unwrap_or_else(|| {
            self.draw_ahead(round);
            self.ahead.actions[0]
        })
    }

    /// Draws the actions of a round and of those after it: as many as the epoch had before it, so that a single question
    /// is answered at once.
    #[inline(never)]
    fn draw_ahead(&mut self, round: u64) {
        // A simulator may ask about any round.
        let index = round.saturating_sub(self.open.first_round);
        // Within one block, as another's order would have to be drawn again.
        let left = self.blocks.map_or(u64::MAX, |blocks| blocks.left(index));
        let room = left.min(1 + index).min(AHEAD as u64) as usize;
        let mut actions = std::mem::take(&mut self.ahead.actions);
        actions.resize(room, 0);
        // What lies beyond the epoch's end is never handed out.
        self.decide_many(round.., &mut actions);
        self.ahead = Ahead {
            first: round,
            actions,
        };
    }

    /// Algorithm 3, line 6, for one action: an epoch ends when an action's count reaches its target, or with its last round.
    #[inline]
    pub(crate) fn count_as_asked(&mut self, action: u32, rounds: u64) {
        let count = &mut self.asked[action as usize];
        *count += rounds;
        self.open.rounds += rounds;
        // Only the action just counted can have come to its target: comparing all of them would cost K a round.
        self.handed_out |=
            *count == self.targets[action as usize] || self.next_round() > self.last_round;
    }

    /// Algorithm 3, line 16: what the open epoch's strategy does in a round, whether it is handed out or not. Nothing advances.
    ///
    /// While exploring in permuted blocks, the first call in a block draws its order; [`Self::decide_many`] draws it once.
    #[inline]
    pub fn decide(&self, round: u64) -> Decision {
        match self.block_action(round, &mut Order::default()) {
            Some(action) => self.decision_of(round, action),
            None => self.draw(round, Label::Round, [round, 0, 0]),
        }
    }

    /// The action of a round of an epoch in permuted blocks; none in others, and beyond the epoch's end. `spare` is drawn if
    /// neither order at hand is of the round's block.
    #[inline]
    pub(super) fn block_action(&self, round: u64, spare: &mut Order) -> Option<u32> {
        let blocks = self.blocks?;
        let index = round.checked_sub(self.open.first_round)?;
        if round > self.last_round {
            return None;
        }
        let drawn = [&self.asking, &self.telling]
            .into_iter()
            .find_map(|order| blocks.action(index, order));
        drawn.or_else(|| {
            blocks.draw(self.key, index, spare);
            blocks.action(index, spare)
        })
    }

    /// What the open epoch's strategy does for a request beyond its rounds; `serial`, from 1, stands in for the round.
    ///
    /// Such a decision is outside the horizon and no estimate counts it, so replicability stands, and so does safety.
    pub fn overtime(&self, serial: u64) -> Decision {
        // A label of its own: drawn as rounds, these would use up the numbers of rounds still to come.
        self.draw(serial, Label::Overtime, [self.open.epoch, serial, 0])
    }

    /// Whether a request is among the share that is held back, outside the experiment.
    ///
    /// A function of the key and the request key alone, so that whoever asks again, however late, is in or out as before.
    pub fn holds_back(&self, request_key: &str, share: f64) -> bool {
        // Hashed, as a counter has no room for a text; 16 bytes, so that nobody finds two keys that share a draw.
        let hash = u128::from_le_bytes(
            Sha256::digest(request_key)[..16]
                .try_into()
                .expect("a hash has 32 bytes"),
        );
        let indices = [hash as u64, (hash >> 64) as u64, 0];
        // Both are multiples of powers of two that a double holds exactly, so the comparison rounds nothing.
        self.key.uniform(Label::Holdback, indices) < share
    }

    #[inline]
    fn draw(&self, round: u64, label: Label, indices: [u64; 3]) -> Decision {
        // No state advances with a draw, so a strategy of one action may skip it.
        let action = match self.strategy.only() {
            Some(action) => action,
            None => {
                let [word, ..] = self.key.block(label, indices);
                self.strategy.pick_by_word(word)
            }
        };
        self.decision_of(round, action)
    }

    #[inline]
    fn decision_of(&self, round: u64, action: u32) -> Decision {
        Decision {
            round,
            epoch: self.open.epoch,
            action,
            // Also of a permuted block: the uniform strategy is every round's marginal.
            probability: self.strategy.probabilities()[action as usize],
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

#[cfg(test)]
mod tests {
    use crate::{Engine, Key, Problem};

    fn engine(key: u64) -> Engine {
        let problem = Problem::free(["a", "b"], 1_000, 0.5).build().unwrap();
        Engine::new(problem, Key::from(key))
    }

    /// Literals, from a program of its own: who is held back is a value that this library promises, as every draw is.
    #[test]
    fn who_is_held_back_never_changes() {
        let engine = engine(42);
        let held_back: Vec<u32> = (0..40)
            .filter(|user| engine.holds_back(&format!("user-{user}"), 0.3))
            .collect();
        assert_eq!(held_back, [12, 14, 16, 24, 32, 34]);
    }

    /// 20,000 request keys, key 7, tolerance 0.02: false alarm below 1e-6 (Hoeffding); a share that is off by 0.04 is seen.
    #[test]
    fn a_share_of_request_keys_is_held_back_and_a_larger_one_holds_them_back_too() {
        let engine = engine(7);
        let keys: Vec<String> = (0..20_000).map(|user| format!("user-{user}")).collect();
        for share in [0.05, 0.3, 0.9] {
            let held_back = keys.iter().filter(|key| engine.holds_back(key, share));
            let found = held_back.clone().count() as f64 / keys.len() as f64;
            assert!((found - share).abs() < 0.02, "{found} of {share}");
            let more = |key: &&String| engine.holds_back(key, share + 0.05);
            assert_eq!(held_back.clone().filter(more).count(), held_back.count());
        }
    }
}
