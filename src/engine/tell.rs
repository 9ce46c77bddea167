//! Telling one round: its feedback is checked, tallied, and remembered for as long as it could come again.

use super::Engine;
use crate::Error;
use crate::record::{EpochRecord, Told};

/// What is known of a round that was handed out.
pub(super) enum Standing<'a> {
    /// Not told.
    Open,
    /// Told, above the low-water mark.
    Told(&'a [u64]),
    /// Told, below the low-water mark.
    Forgotten,
}

impl Engine {
    /// Tells a round's reward and costs, in the user's units.
    #[inline]
    pub fn tell(&mut self, round: u64, reward: f64, costs: &[f64]) -> Result<Told, Error> {
        // The buffer is lent out and taken back, so that telling a round allocates nothing.
        let mut fixed = std::mem::take(&mut self.fixed);
        let told = self.tell_into(round, reward, costs, &mut fixed);
        self.fixed = fixed;
        told
    }

    #[inline]
    fn tell_into(
        &mut self,
        round: u64,
        reward: f64,
        costs: &[f64],
        fixed: &mut [u64],
    ) -> Result<Told, Error> {
        let Some(action) = self.action_to_tell(round, reward, costs)? else {
            return Ok(Told::AlreadyTold);
        };
        self.plan.problem.to_fixed(action, reward, costs, fixed)?;
        self.check_before_closing(1)?;
        match self.standing(round)? {
            Standing::Forgotten => Ok(Told::AlreadyTold),
            Standing::Told(before) if before == fixed => Ok(Told::Repeated),
            Standing::Told(_) => Err(Error::Conflict { round }),
            Standing::Open => {
                self.record(round, fixed);
                Ok(self
                    .close_if_told()
                    .map_or(Told::Recorded, |record| Told::Closed(Box::new(record))))
            }
        }
    }

    /// The action whose ranges a round's feedback is judged by; any where all actions have the same. None of an earlier epoch's
    /// round, whose action is not known any more.
    #[inline]
    pub(super) fn action_to_tell(
        &mut self,
        round: u64,
        reward: f64,
        costs: &[f64],
    ) -> Result<Option<u32>, Error> {
        if !self.problem().has_ranges_by_action() {
            return Ok(Some(0));
        }
        self.check_asked(round)?;
        if round < self.open.first_round {
            self.problem().check_feedback(reward, costs)?;
            return Ok(None);
        }
        let action = self.ahead.action(round).unwrap_or_else(|| {
            self.draw_telling(round);
            self.decide(round).action
        });
        Ok(Some(action))
    }

    #[inline]
    pub(super) fn standing(&self, round: u64) -> Result<Standing<'_>, Error> {
        self.check_asked(round)?;
        if round < self.low_water {
            return Ok(Standing::Forgotten);
        }
        Ok(self
            .told_above
            .get(&round)
            .map_or(Standing::Open, |fixed| Standing::Told(fixed)))
    }

    #[inline]
    pub(super) fn record(&mut self, round: u64, fixed: &[u64]) {
        // Only so many actions are kept, so that memory does not grow with the rounds in flight; all others are drawn again.
        let action = self.ahead.action(round).unwrap_or_else(|| {
            self.draw_telling(round);
            self.decide(round).action
        });
        self.record_action(round, action, fixed);
    }

    /// Keeps the order of a round's block, as the next round told is most often of the same block.
    #[inline]
    pub(crate) fn draw_telling(&mut self, round: u64) {
        if let Some(blocks) = self.blocks
            && let Some(index) = round.checked_sub(self.open.first_round)
            && blocks.action(index, &self.asking).is_none()
        {
            blocks.draw(self.key, index, &mut self.telling);
        }
    }

    #[inline]
    pub(super) fn record_action(&mut self, round: u64, action: u32, fixed: &[u64]) {
        self.tally.add(action, fixed);
        // Feedback in order needs no memory: below the low-water mark the answer is "already told", whatever is told.
        if round != self.low_water {
            self.told_above.insert(round, fixed.into());
            return;
        }
        self.low_water += 1;
        while self
            .told_above
            .first_key_value()
            .is_some_and(|(&round, _)| round == self.low_water)
        {
            self.told_above.pop_first();
            self.low_water += 1;
        }
    }

    /// So many rounds told may close the epoch, which counts that a snapshot brought must not do.
    #[inline]
    pub(super) fn check_before_closing(&mut self, rounds: u64) -> Result<(), Error> {
        if self.counts_on_trust && self.handed_out && self.outstanding_count() <= rounds {
            self.check_counts_read()?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn close_if_told(&mut self) -> Option<EpochRecord> {
        (self.handed_out && self.low_water == self.next_round()).then(|| self.close_epoch())
    }
}
