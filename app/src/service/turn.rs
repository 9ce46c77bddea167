//! One experiment within a transaction: outcomes, imputation, the end of an epoch, then decisions and changes.

use anyhow::Result;
use debora::Engine;
use debora::record::Kind;

use crate::log::chain;
use crate::service::request::{Change, Granted, Refusal, Request};
use crate::service::resident::Resident;
use crate::service::transaction::{Answered, all_of};
use crate::store::{EpochRow, Event, Lease, OutcomeRow, Progress, Status, Store};

/// Leases searched for missing outcomes in one tick, so that a long backlog does not hold up the rest.
const LEASES_A_TICK: usize = 256;

/// The row of the epoch that an engine has just opened.
pub(super) fn opened(engine: &Engine, now: i64) -> Result<EpochRow> {
    let record = serde_json::to_string(engine.open_record())?;
    Ok(EpochRow {
        epoch: engine.epoch(),
        record,
        snapshot: Some(engine.to_bytes()),
        opened_at: now,
        closed_at: None,
        rounds_hash: None,
        hash: None,
    })
}

/// One experiment within a transaction.
pub(super) struct Turn<'a> {
    pub id: &'a str,
    pub store: &'a mut dyn Store,
    pub resident: &'a mut Resident,
    /// As it was locked.
    pub before: Progress,
    /// As it will be stored.
    pub progress: Progress,
    pub now: i64,
}

impl Turn<'_> {
    /// Serves the requests of a group, and stores what they change.
    pub fn serve(&mut self, group: &[&Request]) -> Result<Vec<Answered>> {
        let mut answers: Vec<Option<Answered>> = group.iter().map(|_| None).collect();
        // Outcomes before decisions: they may close the epoch, and then nobody in the group has to
        // wait. Outcomes before imputation, too: one that arrives at the last moment counts.
        for (place, receipts) in self.tell(group)? {
            answers[place] = Some(receipts.map(Granted::Told));
        }
        for (place, request) in group.iter().enumerate() {
            if let Request::Tick { .. } = request {
                answers[place] = Some(Ok(Granted::Ticked(self.impute_due()?)));
            }
        }
        self.resident
            .catch_up(self.store, self.id, &self.progress)?;
        self.close_if_complete()?;
        self.decide_and_change(group, &mut answers)?;
        // A group of repetitions changes nothing, and then does not rewrite the row either.
        if self.progress != self.before {
            self.store.set_progress(self.id, &self.progress)?;
        }
        Ok(all_of(answers))
    }

    pub(super) fn change(&mut self, change: Change, actor: &str) -> Result<Answered> {
        let status = match (self.progress.status, change) {
            // Closing is safe to repeat, as its answer may have been lost.
            (Status::Closed, Change::Close) => Status::Closed,
            (Status::Closed, _) => return Ok(Err(self.refuse_closed())),
            (Status::Done, _) => return Ok(Err(self.refuse_done())),
            (_, Change::Pause) => Status::Paused,
            (_, Change::Resume) => Status::Running,
            (_, Change::Close) => Status::Closed,
        };
        // A repeated change is not another event: the log is to show what happened, not how often
        // it was asked for.
        if self.progress.status != status {
            self.progress.status = status;
            let event = Event {
                at: self.now,
                actor: actor.to_owned(),
                what: past_tense(change).to_owned(),
                reason: None,
            };
            self.store.add_event(self.id, &event)?;
        }
        Ok(Ok(Granted::Changed(status)))
    }

    /// The refusal of an experiment that was closed.
    pub(super) fn refuse_closed(&self) -> Refusal {
        Refusal::Closed {
            id: self.id.to_owned(),
        }
    }

    /// The refusal of an experiment that has reached its horizon.
    pub(super) fn refuse_done(&self) -> Refusal {
        Refusal::Done {
            id: self.id.to_owned(),
            horizon: self.resident.engine.problem().horizon(),
        }
    }

    /// Imputes the rounds whose outcome has been missing for longer than the rules wait; how many.
    fn impute_due(&mut self) -> Result<u64> {
        let Some(wait) = self.resident.rules.outcome_wait else {
            return Ok(0);
        };
        if !self.progress.status.is_open() {
            return Ok(0);
        }
        let due = self.now - wait.as_millis() as i64;
        let leases = self.store.leases(
            self.id,
            self.progress.epoch,
            false,
            self.progress.impute_from,
            LEASES_A_TICK,
        )?;
        let mut imputed = 0;
        // Stops at the first lease that is not due, even if a later one has an earlier time, as
        // nodes' clocks differ: a wrong clock may delay an imputation, and never hastens it.
        for lease in leases.iter().take_while(|lease| lease.at <= due) {
            imputed += self.impute_missing(lease)?;
        }
        Ok(imputed)
    }

    /// Imputes those of a lease's rounds that have no outcome.
    fn impute_missing(&mut self, lease: &Lease) -> Result<u64> {
        let rounds = lease.actions.len();
        let end = lease.first + rounds as u64;
        let mut told = vec![false; rounds];
        for outcome in self.store.outcomes(self.id, lease.first, rounds)? {
            // Where some are missing, the same number of outcomes reaches beyond the lease.
            if outcome.round < end {
                told[(outcome.round - lease.first) as usize] = true;
            }
        }
        let missing = (lease.first..end).zip(told).filter(|(_, told)| !told);
        let rows: Vec<OutcomeRow> = missing.map(|(round, _)| self.imputed(round)).collect();
        let before = self.store.add_outcomes(self.id, &rows)?;
        self.count(&rows, &before)?;
        // The next tick starts after this lease: all of its rounds have an outcome.
        self.progress.impute_from = end;
        Ok(rows.len() as u64)
    }

    /// The outcome that stands in for a missing one.
    fn imputed(&self, round: u64) -> OutcomeRow {
        let values = &self.resident.rules.impute;
        OutcomeRow {
            round,
            reward: values[0],
            costs: values[1..].to_vec(),
            imputed: true,
            at: self.now,
            // Nobody told it.
            actor: 0,
        }
    }

    /// Closes the open epoch if all its rounds have an outcome, and opens the next one unless the horizon is reached.
    fn close_if_complete(&mut self) -> Result<()> {
        if self.progress.status == Status::Done || !self.resident.is_complete(&self.progress) {
            return Ok(());
        }
        // A copy: the resident stands at the beginning of its epoch until the next one replaces it.
        let mut engine = self.resident.engine.clone();
        let epoch_sum = self
            .resident
            .whole_epoch_sum(self.store, self.id, &self.progress)?;
        let record = serde_json::to_string(&engine.tell_epoch(epoch_sum.tally())?)?;
        let rounds_hash = epoch_sum.rounds_hash();
        let hash = chain::epoch_hash(&self.progress.head, &record, &rounds_hash);
        let closed = EpochRow {
            epoch: self.progress.epoch,
            record,
            // The store keeps the time it was opened and, of the last epoch, the snapshot: a
            // finished experiment is read from it.
            snapshot: None,
            opened_at: self.now,
            closed_at: Some(self.now),
            rounds_hash: Some(rounds_hash),
            hash: Some(hash.clone()),
        };
        let next = if engine.is_done() {
            None
        } else {
            Some(opened(&engine, self.now)?)
        };
        self.store.close_epoch(self.id, &closed, next.as_ref())?;
        self.progress.head = hash;
        self.progress.digest = engine.digest();
        self.go_on_with(engine);
        Ok(())
    }

    /// Moves progress and resident on to the epoch that an engine has opened, or to the end.
    fn go_on_with(&mut self, engine: Engine) {
        self.progress.impute_from = self.progress.next_round;
        // The sample-ratio check tells closed epochs, which were waited for, from the open one.
        self.progress
            .imputed_before
            .clone_from(&self.progress.imputed);
        // Overtime is numbered within its epoch.
        self.progress.next_serial = 1;
        if engine.is_done() {
            self.progress.status = Status::Done;
            return;
        }
        self.progress.epoch = engine.epoch();
        self.progress.infeasible += u64::from(engine.open_record().kind == Kind::Infeasible);
        *self.resident = Resident::new(engine, self.resident.rules.clone());
    }
}

/// A change as an event in the log says it.
fn past_tense(change: Change) -> &'static str {
    match change {
        Change::Pause => "paused",
        Change::Resume => "resumed",
        Change::Close => "closed",
    }
}
