//! One experiment within a transaction: what is decided, changed, imputed and closed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use debora::Engine;
use debora::record::Kind;
use debora::spec::OnWait;

use crate::log::{ROUNDS_MAX, chain};
use crate::service::request::{
    Answer, Change, Decided, DecisionId, EpochText, NAME_MAX, Refusal, Request, ToldOutcome,
};
use crate::service::resident::Resident;
use crate::service::transaction::Answered;
use crate::store::{EpochRow, Event, Lease, OutcomeRow, Progress, Status, Store};

/// Leases looked at for missing outcomes in one go, so that a long backlog does not hold up the rest.
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
    pub before: Progress,
    pub progress: Progress,
    pub now: i64,
}

impl Turn<'_> {
    pub fn serve(&mut self, group: &[&Request]) -> Result<Vec<Answered>> {
        let mut answers: Vec<Option<Answered>> = group.iter().map(|_| None).collect();
        for (place, receipts) in self.tell(group)? {
            answers[place] = Some(receipts.map(Answer::Told));
        }
        for (place, request) in group.iter().enumerate() {
            if let Request::Tick { .. } = request {
                answers[place] = Some(Ok(Answer::Ticked(self.impute_due()?)));
            }
        }
        self.resident
            .move_fold_on(self.store, self.id, &self.progress)?;
        self.close_if_complete()?;
        self.decide_and_change(group, &mut answers)?;
        if self.progress != self.before {
            self.store.set_progress(self.id, &self.progress)?;
        }
        Ok(answers
            .into_iter()
            .map(|answer| answer.expect("every request is answered"))
            .collect())
    }

    fn decide_and_change(
        &mut self,
        group: &[&Request],
        answers: &mut [Option<Answered>],
    ) -> Result<()> {
        let keys: Vec<&str> = group
            .iter()
            .filter_map(|request| match request {
                // What is no key must not reach the store: not every store could even be asked for it.
                Request::Decide {
                    request_key: Some(key),
                    ..
                } => Some(key.as_str()).filter(|key| is_request_key(key)),
                _ => None,
            })
            .collect();
        let mut known: BTreeMap<String, Decided> = BTreeMap::new();
        let stored = if keys.is_empty() {
            Vec::new()
        } else {
            self.store.leases_of(self.id, &keys)?
        };
        for lease in stored {
            let text = self.epoch_text_of(lease.epoch)?;
            known.insert(
                lease.request_key.clone().unwrap_or_default(),
                Decided {
                    lease,
                    text,
                    repeated: true,
                },
            );
        }
        // Places in the group: of what is decided here, and of the first request with a key.
        let (mut fresh, mut first): (Vec<usize>, BTreeMap<&str, usize>) = Default::default();
        for (place, request) in group.iter().enumerate() {
            match request {
                Request::Decide {
                    rounds,
                    request_key,
                    ..
                } => {
                    let given = |key: &str| {
                        known
                            .get(key)
                            .or_else(|| decided(&answers[*first.get(key)?]))
                    };
                    let answered = match request_key.as_deref().and_then(given) {
                        Some(before) => repeated(before, *rounds),
                        None => {
                            let answered = self.decide(*rounds, request_key.as_deref());
                            if answered.is_ok() {
                                fresh.push(place);
                                first.extend(request_key.as_deref().map(|key| (key, place)));
                            }
                            answered
                        }
                    };
                    answers[place] = Some(answered.map(Answer::Decided));
                }
                Request::Change { change, actor, .. } => {
                    answers[place] = Some(self.change(*change, actor)?)
                }
                _ => {}
            }
        }
        let leases: Vec<&Lease> = fresh
            .iter()
            .filter_map(|&place| Some(&decided(&answers[place])?.lease))
            .collect();
        self.store.add_leases(self.id, &leases)
    }

    /// What an epoch's decisions were drawn from.
    fn epoch_text_of(&mut self, epoch: u64) -> Result<Arc<EpochText>> {
        if epoch == self.resident.engine.epoch() {
            return Ok(Arc::clone(&self.resident.text));
        }
        let row = self.store.epochs(self.id, epoch, 1)?.into_iter().next();
        let record: debora::EpochRecord =
            serde_json::from_str(&row.map_or(String::new(), |row| row.record))?;
        let (actions, strategy) = (self.resident.text.actions.clone(), record.strategy);
        Ok(Arc::new(EpochText {
            actions,
            strategy,
            per_action: OnceLock::new(),
        }))
    }

    /// Hands out the next rounds, fewer where the epoch ends; beyond its end, overtime or nothing.
    fn decide(&mut self, rounds: u64, request_key: Option<&str>) -> Result<Decided, Refusal> {
        let (id, progress) = (self.id.to_owned(), &mut self.progress);
        if rounds == 0 || rounds > ROUNDS_MAX {
            return Err(Refusal::Rounds { rounds });
        }
        if let Some(request_key) = request_key.filter(|key| !is_request_key(key)) {
            return Err(Refusal::RequestKey {
                request_key: request_key.to_owned(),
            });
        }
        match progress.status {
            Status::Running => {}
            Status::Paused => return Err(Refusal::Paused { id }),
            Status::Closed => return Err(Refusal::Closed { id }),
            Status::Done => {
                return Err(Refusal::Done {
                    id,
                    horizon: self.resident.engine.problem().horizon(),
                });
            }
        }
        let overtime = self.resident.is_decided(progress);
        let first = if overtime {
            progress.next_serial
        } else {
            progress.next_round
        };
        let mut actions = Vec::with_capacity(rounds as usize);
        if overtime {
            if self.resident.rules.on_wait == OnWait::Hold {
                return Err(Refusal::Waiting {
                    epoch: progress.epoch,
                    outstanding: progress.outstanding(),
                });
            }
            actions.extend(
                (first..first + rounds).map(|serial| self.resident.engine.overtime(serial).action),
            );
            progress.next_serial += rounds;
            progress.overtime += rounds;
        } else {
            let engine = &self.resident.engine;
            actions.resize(
                rounds.min(engine.problem().horizon() + 1 - first) as usize,
                0,
            );
            engine.decide_many(first.., &mut actions);
            let ends = actions.iter().position(|&action| {
                progress.decided[action as usize] += 1;
                engine.target(action) == Some(progress.decided[action as usize])
            });
            actions.truncate(ends.map_or(actions.len(), |place| place + 1));
            progress.next_round += actions.len() as u64;
        }
        let request_key = request_key.map(str::to_owned);
        let lease = Lease {
            epoch: progress.epoch,
            overtime,
            first,
            actions,
            asked: rounds,
            request_key,
            at: self.now,
        };
        Ok(Decided {
            lease,
            text: Arc::clone(&self.resident.text),
            repeated: false,
        })
    }

    fn change(&mut self, change: Change, actor: &str) -> Result<Answered> {
        let id = || self.id.to_owned();
        let (to, what) = match (self.progress.status, change) {
            (Status::Closed, Change::Close) => return Ok(Ok(Answer::Changed(Status::Closed))),
            (Status::Closed, _) => return Ok(Err(Refusal::Closed { id: id() })),
            (Status::Done, _) => {
                return Ok(Err(Refusal::Done {
                    id: id(),
                    horizon: self.resident.engine.problem().horizon(),
                }));
            }
            (_, Change::Pause) => (Status::Paused, "paused"),
            (_, Change::Resume) => (Status::Running, "resumed"),
            (_, Change::Close) => (Status::Closed, "closed"),
        };
        if self.progress.status != to {
            self.progress.status = to;
            self.store.add_event(
                self.id,
                &Event {
                    at: self.now,
                    actor: actor.to_owned(),
                    what: what.to_owned(),
                },
            )?;
        }
        Ok(Ok(Answer::Changed(to)))
    }

    /// Imputes rounds whose outcome is longer overdue than the rules wait.
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
            self.progress.due_from,
            LEASES_A_TICK,
        )?;
        let mut imputed = 0;
        for lease in leases.iter().take_while(|lease| lease.at <= due) {
            let end = lease.first + lease.actions.len() as u64;
            let mut missing: BTreeSet<u64> = (lease.first..end).collect();
            for outcome in self
                .store
                .outcomes(self.id, lease.first, lease.actions.len())?
            {
                missing.remove(&outcome.round);
            }
            let values = &self.resident.rules.impute;
            let outcome = ToldOutcome {
                decision: DecisionId::Round(0),
                reward: values[0],
                costs: values[1..].to_vec(),
            };
            let rows: Vec<OutcomeRow> = missing
                .iter()
                .map(|&round| self.row(round, &outcome, true))
                .collect();
            let before = self.store.add_outcomes(self.id, &rows)?;
            self.count(&rows, &before)?;
            imputed += rows.len() as u64;
            self.progress.due_from = end;
        }
        Ok(imputed)
    }

    /// Closes the open epoch if all its rounds have an outcome, and opens the next one before the horizon.
    fn close_if_complete(&mut self) -> Result<()> {
        if self.progress.status == Status::Done || !self.resident.is_complete(&self.progress) {
            return Ok(());
        }
        let fold = self
            .resident
            .whole_fold(self.store, self.id, &self.progress)?
            .clone();
        let mut engine = self.resident.engine.clone();
        let record = serde_json::to_string(&engine.tell_epoch(fold.tally())?)?;
        let rounds_hash = fold.rounds_hash();
        let hash = chain::epoch_hash(&self.progress.head, &record, &rounds_hash);
        let done = engine.is_done();
        let closed = EpochRow {
            epoch: self.progress.epoch,
            record,
            // The store keeps when it was opened and, of the last epoch, the snapshot: a finished experiment is read from it.
            snapshot: None,
            opened_at: self.now,
            closed_at: Some(self.now),
            rounds_hash: Some(rounds_hash),
            hash: Some(hash.clone()),
        };
        let next = if done {
            None
        } else {
            Some(opened(&engine, self.now)?)
        };
        self.store.close_epoch(self.id, &closed, next.as_ref())?;
        self.progress.head = hash;
        self.progress.digest = engine.digest();
        self.progress.due_from = self.progress.next_round;
        self.progress
            .imputed_before
            .clone_from(&self.progress.imputed);
        self.progress.next_serial = 1;
        if done {
            self.progress.status = Status::Done;
            return Ok(());
        }
        self.progress.epoch = engine.epoch();
        self.progress.infeasible += u64::from(engine.open_record().kind == Kind::Infeasible);
        *self.resident = Resident::new(engine, self.resident.rules.clone());
        Ok(())
    }
}

/// The decisions in an answer.
fn decided(answer: &Option<Answered>) -> Option<&Decided> {
    if let Some(Ok(Answer::Decided(decided))) = answer {
        Some(decided)
    } else {
        None
    }
}

fn is_request_key(key: &str) -> bool {
    (1..=NAME_MAX).contains(&key.len()) && !key.chars().any(char::is_control)
}

/// A request whose key is known gets the same again, if it is the same request.
fn repeated(decided: &Decided, rounds: u64) -> Result<Decided, Refusal> {
    if decided.lease.asked == rounds {
        return Ok(Decided {
            repeated: true,
            ..decided.clone()
        });
    }
    let request_key = decided.lease.request_key.clone().unwrap_or_default();
    Err(Refusal::RequestKeyUsed {
        request_key,
        asked: decided.lease.asked,
        rounds,
    })
}
