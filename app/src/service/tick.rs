//! Ticks: the waiting clock moves on, and what is due by it is imputed, a bounded number of experiments at a time.

use anyhow::Result;

use crate::service::clock::{Moment, Stopwatch};
use crate::service::key_uses::KeyUse;
use crate::service::request::{Granted, Request, Tick};
use crate::service::transaction::Executor;

/// Experiments that are looked at in one tick, in one transaction. Requests are served before the next, and wait for so many.
const EXPERIMENTS_A_TICK: usize = 16;

/// When an experiment that cannot be read is looked at again, by the waiting clock.
const POSTPONED: i64 = 60_000;

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Rounds imputed.
    pub imputed: u64,
    /// Whether more may be due.
    pub more: bool,
}

impl Executor {
    /// Imputes what is due, in the experiments that have been due for longest.
    pub fn tick(&mut self, moment: Moment) -> Result<Ticked> {
        let ids = self.due(moment)?;
        if ids.is_empty() {
            return Ok(Ticked::default());
        }
        let ticks = ids.into_iter().map(|id| Tick { id }.into());
        let requests: Vec<Request> = ticks.collect();
        let answers = self.serve(&requests, moment);
        let (mut imputed, mut failed) = (0, Vec::new());
        for (request, answer) in requests.iter().zip(answers) {
            match answer {
                Ok(Granted::Ticked(rounds)) => imputed += rounds,
                Ok(_) => {}
                Err(refusal) => {
                    let (id, detail) = (request.id(), format!("{refusal:?}"));
                    tracing::error!(id, detail, "what is due cannot be imputed");
                    failed.push(id);
                }
            }
        }
        self.postpone(&failed, moment)?;
        Ok(Ticked {
            imputed,
            more: true,
        })
    }

    /// Moves the waiting clock on, and gives the experiments that may have something due by it.
    pub fn due(&mut self, moment: Moment) -> Result<Vec<String>> {
        let now = self.begin(moment)?;
        let uses = self.key_uses.due(now, false);
        let read = self.step_clock(now, false).and_then(|stopwatch| {
            let due = self.store.due(stopwatch.least(now), EXPERIMENTS_A_TICK)?;
            self.store_uses(&uses)?;
            Ok((stopwatch, due))
        });
        // Only what was committed is known to be stored.
        let (stopwatch, due) = self.or_rollback(read)?;
        self.stopwatch = stopwatch;
        self.key_uses.stored(&uses, now);
        Ok(due)
    }

    /// Stores when keys were used, and commits. Here, as nobody waits for the answer to a tick.
    fn store_uses(&mut self, uses: &[KeyUse]) -> Result<()> {
        for (name, at) in uses {
            self.store.set_key_used(name, *at)?;
        }
        self.store.commit()
    }

    /// Stores the waiting clock, so that the next start goes on from there.
    pub fn stop(&mut self, moment: Moment) -> Result<()> {
        let now = self.begin(moment)?;
        let uses = self.key_uses.due(now, true);
        let stored = self.step_clock(now, true).and_then(|stopwatch| {
            self.store_uses(&uses)?;
            Ok(stopwatch)
        });
        self.stopwatch = self.or_rollback(stored)?;
        Ok(())
    }

    /// One step of the clock, stored if it is time to, or at the end.
    fn step_clock(&mut self, now: Moment, at_end: bool) -> Result<Stopwatch> {
        let stored = self.store.waiting_clock()?;
        // An index has the answer, so an idle store costs nothing however many experiments it has.
        if self.store.due(i64::MAX, 1)?.is_empty() {
            return Ok(self.stopwatch.stand_still(stored, now));
        }
        if self.stopwatch.went_back(&stored) {
            tracing::error!(
                "the store's waiting clock went back: it was restored, or a standby that was behind took its place; \
                 what is in memory is read again"
            );
            self.residents.clear();
        }
        let stopwatch = self.stopwatch.step(stored, now);
        let unsaved = if at_end {
            Some(stopwatch.to_store())
        } else {
            stopwatch.unsaved()
        };
        match unsaved {
            None => Ok(stopwatch),
            Some(clock) => {
                self.store.set_waiting_clock(&clock)?;
                Ok(stopwatch.saved(clock))
            }
        }
    }

    /// Has experiments looked at later, so that those that cannot be read do not stand before the others for ever.
    fn postpone(&mut self, ids: &[&str], moment: Moment) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let now = self.begin(moment)?;
        let due = self.stopwatch.least(now) + POSTPONED;
        let postponed = ids
            .iter()
            .try_for_each(|id| self.store.set_due(id, Some(due)))
            .and_then(|()| self.store.commit());
        self.or_rollback(postponed)
    }
}
