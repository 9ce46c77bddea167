//! One experiment within a transaction: outcomes, imputation, the end of an epoch, then decisions and changes.

use anyhow::Result;
use debora::Engine;
use debora::lab::sample_ratio::LastRound;
use debora::record::Kind;

use crate::log::chain::{self, EpochParts};
use crate::log::observed::Observed;
use crate::service::clock::{Moment, Stopwatch};
use crate::service::request::{Change, Granted, MakeChange, Refusal, Request};
use crate::service::resident::Resident;
use crate::service::transaction::{ActorNumbers, Answered, all_of};
use crate::store::{DecisionKind, EpochRow, Event, Lease, OutcomeRow, Progress, Status, Store};

/// Leases searched for missing outcomes in one tick, so that a long backlog does not hold up the rest.
const LEASES_A_TICK: usize = 256;

/// Rounds imputed in one tick, about, for the same reason.
const IMPUTED_A_TICK: u64 = 10_000;

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
        leases_hash: None,
        journal_end: None,
        journal: None,
    })
}

/// One experiment within a transaction.
pub(super) struct Turn<'a> {
    pub id: &'a str,
    pub store: &'a mut Store,
    pub resident: &'a mut Resident,
    /// As it was locked.
    pub before: Progress,
    /// As it will be stored.
    pub progress: Progress,
    /// The text that is stored of it.
    pub stored: String,
    /// When an outcome may be due, as it was locked and as it will be stored.
    pub due_before: Option<i64>,
    pub due: Option<i64>,
    /// What was observed: the text that was stored, and what it says, once a request changes it.
    pub observed_before: Option<String>,
    pub observed: Option<Observed>,
    pub time: TurnTime,
    /// Who asks and tells.
    pub actors: &'a ActorNumbers<'a>,
    /// The actions of rounds drawn for the whole group, and the first of these rounds.
    pub drawn: Vec<u32>,
    pub drawn_first: u64,
}

/// What time it is within a transaction.
#[derive(Clone, Copy)]
pub(super) struct TurnTime {
    /// For people and the log.
    pub at: i64,
    /// What leases are stamped with.
    pub stamp: i64,
    /// What is due by this has been waited for long enough.
    pub waited: i64,
    /// What is waited for in addition.
    pub margin: i64,
}

impl TurnTime {
    /// By the store's waiting clock.
    pub fn of(stopwatch: &Stopwatch, now: Moment) -> Self {
        Self {
            at: now.wall,
            stamp: stopwatch.most(now),
            waited: stopwatch.least(now),
            margin: stopwatch.margin(),
        }
    }
}

impl Turn<'_> {
    /// Serves the requests of a group, and stores what they change.
    pub fn serve(&mut self, group: &[&Request]) -> Result<Vec<Answered>> {
        let mut answers: Vec<Option<Answered>> = group.iter().map(|_| None).collect();
        // Before an outcome is stored: sums that are made again from rows must not have those that are added to them here.
        if self.observed_before.is_none() {
            self.observed()?;
        }
        // Outcomes before decisions: they may close the epoch, and then nobody in the group has to
        // wait. Outcomes before imputation, too: one that arrives at the last moment counts.
        for (place, receipts) in self.tell(group)? {
            answers[place] = Some(receipts.map(Granted::Told));
        }
        for (place, request) in group.iter().enumerate() {
            if let Request::Tick(_) = request {
                answers[place] = Some(Ok(Granted::Ticked(self.impute_due()?)));
            }
        }
        self.resident
            .catch_up(self.store, self.id, &self.progress)?;
        self.look_for_missing()?;
        self.close_if_complete()?;
        self.decide_and_change(group, &mut answers)?;
        // Last, as the group may have been given rounds before it was closed: nothing is stored of the epoch after its hash.
        if self.progress.status == Status::Closed && self.before.status != Status::Closed {
            self.close_early()?;
        }
        self.publish(group, &mut answers)?;
        // A group of repetitions changes nothing, and then does not rewrite the row either.
        if let Some(observed) = self.observed.take() {
            let text = observed.text()?;
            self.stored = self.store.set_observed(self.id, &self.progress, &text)?;
            self.resident.observed = Some((text, observed));
        } else if self.progress != self.before {
            self.stored = self.store.set_progress(self.id, &self.progress)?;
        }
        // At the end of an epoch it stays: to look once at leases that are told costs less than to write the row twice.
        if !self.progress.status.is_open() {
            self.due = None;
        }
        if self.due != self.due_before {
            self.store.set_due(self.id, self.due)?;
        }
        Ok(all_of(answers))
    }

    /// What was observed, to be changed.
    pub(super) fn observed(&mut self) -> Result<&mut Observed> {
        if self.observed.is_none() {
            let kept = self.resident.observed.take();
            let engine = &self.resident.engine;
            self.observed = Some(match (&self.observed_before, kept) {
                // Another node may have stored another text meanwhile.
                (Some(text), Some((kept, observed))) if *text == kept => observed,
                (Some(text), _) => Observed::parse(text, engine.problem())?,
                (None, _) => Observed::of_rows(self.store, self.id, &self.before, engine)?,
            });
        }
        Ok(self.observed.as_mut().expect("read above"))
    }

    /// Checks, now and then, whether what is missing from the open epoch depends on actions.
    fn look_for_missing(&mut self) -> Result<()> {
        // Nothing was told or imputed, or it is not the time: most requests do not look.
        let outcomes = self.progress.outcomes.iter().sum();
        let due = |observed: &Observed| observed.checks.is_due(outcomes);
        if !self.progress.status.is_open() || !self.observed.as_ref().is_some_and(due) {
            return Ok(());
        }
        let last = self.last_round()?;
        let engine = &self.resident.engine;
        if let Some(observed) = &mut self.observed {
            observed.look(&self.progress, engine, last);
        }
        Ok(())
    }

    /// The last round of an epoch that is all handed out.
    fn last_round(&mut self) -> Result<Option<LastRound>> {
        let round = self.progress.rounds();
        if round == 0 || !self.resident.is_decided(&self.progress) {
            return Ok(None);
        }
        let mut action = [0];
        self.resident.engine.decide_many([round], &mut action);
        let outcome = self.store.outcomes(self.id, round, 1)?.pop();
        Ok(Some(LastRound {
            action: action[0] as usize,
            told: outcome.is_some_and(|outcome| !outcome.imputed),
        }))
    }

    pub(super) fn change(&mut self, asked: &MakeChange) -> Result<Answered> {
        let status = match (self.progress.status, asked.change) {
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
            let event = Event {
                at: self.time.at,
                actor: asked.actor.clone(),
                what: past_tense(asked.change).to_owned(),
                reason: asked.reason.clone(),
                position: self.progress.next_position,
            };
            // Before the status: the event that ends an experiment is in the hash over its end.
            chain::enter_event(&event, &mut self.progress);
            self.store.add_event(self.id, &event)?;
            self.progress.status = status;
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

    /// What the waiting clock shows when a lease's missing outcomes are due; `None` if they are waited for without end.
    fn due_of(&self, lease: &Lease) -> Option<i64> {
        let wait = self.resident.rules.outcome_wait?;
        Some(lease.waited + wait.as_millis() as i64 + self.time.margin)
    }

    /// Notes a lease that was handed out.
    pub(super) fn await_outcomes(&mut self, lease: &Lease) {
        // An earlier one is due earlier; and the row that is indexed is written once for many leases.
        if self.due.is_none() && lease.kind == DecisionKind::Round {
            self.due = self.due_of(lease);
        }
    }

    /// Imputes the rounds whose outcome has been missing for longer than the rules wait; how many.
    fn impute_due(&mut self) -> Result<u64> {
        self.due = None;
        if !self.progress.status.is_open() || self.progress.outstanding() == 0 {
            return Ok(0);
        }
        // What is added up has its outcomes: without this, all leases of a busy experiment would be read again.
        let from = self.progress.impute_from.max(self.resident.next_untold());
        let epoch = self.progress.epoch;
        let leases = self
            .store
            .leases(self.id, epoch, DecisionKind::Round, from, LEASES_A_TICK)?;
        let mut imputed = 0;
        for lease in &leases {
            // Stops at the first lease that is not due, even if a later one has an earlier stamp, as a restart may leave it:
            // that may delay an imputation, and never hastens it.
            let due = self.due_of(lease);
            if due.is_none_or(|due| due > self.time.waited) || imputed >= IMPUTED_A_TICK {
                self.due = due;
                return Ok(imputed);
            }
            imputed += self.impute_missing(lease)?;
        }
        // There may be more leases: then the next tick goes on at once.
        if leases.len() == LEASES_A_TICK {
            self.due = Some(self.time.waited);
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
            at: self.time.at,
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
        let rounds_hash = epoch_sum.rounds_hash().to_hex();
        let closed = self.closed(record, rounds_hash, false)?;
        let next = if engine.is_done() {
            None
        } else {
            Some(opened(&engine, self.time.at)?)
        };
        self.store.close_epoch(self.id, &closed, next.as_ref())?;
        self.progress.digest = engine.digest();
        self.observed()?;
        if let Some(observed) = &mut self.observed {
            observed.close(&self.progress, &self.resident.engine, engine.is_done());
        }
        self.go_on_with(engine);
        Ok(())
    }

    /// Ends the chain of an experiment that was closed by hand with what its open epoch has so far.
    fn close_early(&mut self) -> Result<()> {
        let record = self.resident.engine.open_record();
        let rounds = self.progress.next_round - record.first_round;
        let record = serde_json::to_string(&record.clone().with_rounds(rounds))?;
        let rounds_hash = self
            .resident
            .rounds_hash_so_far(self.store, self.id, &self.progress)?;
        let closed = self.closed(record, rounds_hash, true)?;
        // No epoch follows: the store keeps the snapshot, which the certificate is made from.
        self.store.close_epoch(self.id, &closed, None)
    }

    /// The row of the open epoch as it is closed, whose hash becomes the head.
    fn closed(&mut self, record: String, rounds_hash: String, early: bool) -> Result<EpochRow> {
        let leases_hash = self
            .resident
            .leases_hash(self.store, self.id, &self.progress)?;
        let parts = EpochParts {
            record: &record,
            opened_at: self.resident.opened_at,
            closed_at: self.time.at,
            rounds_hash: &rounds_hash,
            leases_hash: &leases_hash,
            journal_end: self.progress.next_position,
            journal: &self.progress.journal,
            early,
        };
        self.progress.head = parts.hash(&self.progress.head);
        Ok(EpochRow {
            epoch: self.progress.epoch,
            record,
            // The store keeps the time it was opened and, of the last epoch, the snapshot: a
            // finished experiment is read from it.
            snapshot: None,
            opened_at: self.resident.opened_at,
            closed_at: Some(self.time.at),
            rounds_hash: Some(rounds_hash),
            hash: Some(self.progress.head.clone()),
            leases_hash: Some(leases_hash),
            journal_end: Some(self.progress.next_position),
            journal: Some(self.progress.journal.clone()),
        })
    }

    /// Moves progress and resident on to the epoch that an engine has opened, or to the end.
    fn go_on_with(&mut self, engine: Engine) {
        self.progress.impute_from = self.progress.next_round;
        // What the log's last line shows of closed epochs: earlier versions judged by it what was missing.
        self.progress
            .imputed_before
            .clone_from(&self.progress.imputed);
        // What is outside the horizon is numbered within its epoch.
        (self.progress.next_serial, self.progress.next_holdback) = (1, 1);
        if engine.is_done() {
            self.progress.status = Status::Done;
            return;
        }
        self.progress.epoch = engine.epoch();
        self.progress.infeasible += u64::from(engine.open_record().kind == Kind::Infeasible);
        *self.resident = Resident::new(engine, self.resident.rules.clone(), self.time.at);
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
