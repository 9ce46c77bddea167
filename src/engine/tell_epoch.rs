//! Telling a whole epoch at once, by its counts and sums: what a simulator draws, and what a service has added up.
//!
//! Everything is checked before anything changes. A tally that no sequence of rounds could have given is refused with the
//! action at fault, since an epoch closed at other counts would move every estimate after it.

use super::Engine;
use crate::Error;
use crate::mean::Tally;
use crate::record::EpochRecord;

impl Engine {
    /// Tells the whole open epoch at once: its counts and sums. None of its rounds may have been told, and the counts must end
    /// it exactly: one action at its target, or the horizon; in an epoch of permuted blocks, all actions played as planned.
    pub fn tell_epoch(&mut self, epoch: &Tally) -> Result<EpochRecord, Error> {
        self.check_untold()?;
        self.check_counts_read()?;
        self.check_shape(epoch)?;
        self.check_sums(epoch, epoch.impossible_sum())?;
        self.take_epoch(epoch)
    }

    /// The same for a tally that has no sums where it has no counts, as a simulator's: of many actions, an epoch plays few.
    pub(crate) fn tell_played(&mut self, epoch: &Tally) -> Result<EpochRecord, Error> {
        self.check_untold()?;
        self.check_shape(epoch)?;
        self.check_sums(epoch, epoch.impossible_sum_of_played())?;
        self.take_epoch(epoch)
    }

    fn take_epoch(&mut self, epoch: &Tally) -> Result<EpochRecord, Error> {
        match self.blocks {
            Some(_) => self.check_block_counts(epoch.counts())?,
            None => self.check_counts(epoch.counts())?,
        }
        // Some rounds may have been handed out before: only the rest is counted.
        for (action, &count) in (0..).zip(epoch.counts()) {
            let more = count - self.asked_in_epoch(action as usize);
            if more > 0 {
                self.count_as_asked(action, more);
            }
        }
        self.tally.merge(epoch);
        self.low_water = self.next_round();
        Ok(self.close_epoch())
    }

    /// How often an action was handed out in the open epoch.
    fn asked_in_epoch(&self, action: usize) -> u64 {
        self.asked[action] - self.open.counts[action]
    }

    fn name_of(&self, action: usize) -> String {
        self.problem().actions()[action].clone()
    }

    fn check_untold(&self) -> Result<(), Error> {
        if self.is_done() {
            return Err(Error::Done {
                horizon: self.problem().horizon(),
            });
        }
        // What was told is in the tally already and would count twice.
        let told = self.low_water - self.open.first_round + self.told_above.len() as u64;
        if told > 0 {
            return Err(Error::EpochBegun {
                epoch: self.open.epoch,
                told,
            });
        }
        Ok(())
    }

    fn check_shape(&self, epoch: &Tally) -> Result<(), Error> {
        let actions = epoch.counts().len();
        let quantities = epoch.quantities();
        let wanted_actions = self.problem().actions().len();
        let wanted_quantities = self.problem().quantities();
        if actions != wanted_actions || quantities != wanted_quantities {
            return Err(Error::TallyShape {
                actions,
                quantities,
                wanted_actions,
                wanted_quantities,
            });
        }
        Ok(())
    }

    /// Refuses the first sum that exceeds its count, if there is one.
    fn check_sums(&self, epoch: &Tally, impossible: Option<(usize, usize)>) -> Result<(), Error> {
        let Some((action, quantity)) = impossible else {
            return self.check_known(epoch);
        };
        Err(Error::TallySum {
            action: self.name_of(action),
            quantity,
            count: epoch.counts()[action],
        })
    }

    /// Refuses a sum above zero where the value is known: its entries are all zero.
    fn check_known(&self, epoch: &Tally) -> Result<(), Error> {
        if !self.problem().has_ranges_by_action() {
            return Ok(());
        }
        for quantity in 1..epoch.quantities() {
            let cost = self.problem().quantity(quantity);
            for action in 0..epoch.counts().len() {
                let known = cost.known(action as u32).is_some();
                if known && epoch.sum(action as u32, quantity) > 0 {
                    return Err(Error::TallyKnown {
                        action: self.name_of(action),
                        name: cost.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The counts of an epoch of permuted blocks are known before it begins.
    fn check_block_counts(&self, counts: &[u64]) -> Result<(), Error> {
        let planned = self.block_counts(self.last_round + 1 - self.open.first_round);
        for (action, (&count, &planned)) in counts.iter().zip(&planned).enumerate() {
            if count != planned {
                return Err(Error::TallyCount {
                    action: self.name_of(action),
                    count,
                    rule: format!(
                        "exactly {planned}, as exploration plays all actions equally often"
                    ),
                });
            }
        }
        Ok(())
    }

    /// How often each action is played in the first rounds of an epoch of permuted blocks.
    pub(crate) fn block_counts(&self, rounds: u64) -> Vec<u64> {
        let blocks = self.blocks.expect("an epoch of permuted blocks");
        blocks.counts(self.key, rounds)
    }

    /// The counts must be those of rounds that end the epoch with their last: exactly one action at its target and none
    /// beyond it, or as many rounds as are left.
    fn check_counts(&self, counts: &[u64]) -> Result<(), Error> {
        let mut ender = None;
        let mut rounds = 0u64;
        for (action, &count) in counts.iter().enumerate() {
            // Targets lie ahead, so that what was neither played nor handed out is right.
            if count == 0 && self.asked[action] == self.open.counts[action] {
                continue;
            }
            self.check_count(action, count)?;
            let needed = self.rounds_to_target(action);
            // Two actions cannot both be at their targets: the epoch ended when the first of them reached its own.
            if count > needed || (count == needed && ender.is_some()) {
                let ender = ender.unwrap_or(action);
                return Err(Error::TallyLong {
                    action: self.name_of(action),
                    count,
                    ender: self.name_of(ender),
                    target: self.rounds_to_target(ender),
                });
            }
            if count == needed {
                ender = Some(action);
            }
            // Counts come from outside: their sum may exceed what a number holds.
            rounds = rounds.saturating_add(count);
        }
        let left = self.problem().horizon() + 1 - self.open.first_round;
        match ender {
            _ if rounds > left => Err(Error::TallyBeyond { rounds, left }),
            None if rounds < left => Err(Error::TallyShort { rounds, left }),
            _ => Ok(()),
        }
    }

    /// How many rounds of an action end the open epoch, from its start.
    fn rounds_to_target(&self, action: usize) -> u64 {
        self.targets[action].saturating_sub(self.open.counts[action])
    }

    /// One action's count must cover what was handed out and be possible under the strategy.
    fn check_count(&self, action: usize, count: u64) -> Result<(), Error> {
        let asked = self.asked_in_epoch(action);
        let rule = if count < asked || (self.handed_out && count > asked) {
            let bound = if self.handed_out {
                "exactly"
            } else {
                "at least"
            };
            format!("{bound} the {asked} handed out")
        } else if count > 0 && self.strategy.probabilities()[action] == 0.0 {
            "none, as its probability is 0".into()
        } else {
            return Ok(());
        };
        Err(Error::TallyCount {
            action: self.name_of(action),
            count,
            rule,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Problem};

    /// A world of one's own may add up wrongly, too.
    #[test]
    fn what_a_simulator_tells_is_refused_like_anyone_elses() {
        let problem = Problem::free(["a", "b"], 1_000, 0.3).build().unwrap();
        let mut engine = Engine::new(problem, Key::from(1u64));
        let mut tally = Tally::new(2, 1);
        for (action, count) in (0..).zip(engine.block_counts(engine.last_round)) {
            tally.add_sums(
                action,
                count,
                &[u128::from(count + u64::from(action)) << 53],
            );
        }
        let refused = engine.tell_played(&tally).unwrap_err();
        assert!(
            matches!(refused, Error::TallySum { quantity: 0, .. }),
            "{refused}"
        );
        assert_eq!(Err(refused), engine.tell_epoch(&tally));
    }
}
