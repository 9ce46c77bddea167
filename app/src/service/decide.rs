//! Decisions: the rounds that a request is given, and the same again for the same request key.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use debora::spec::OnWait;
use debora::{EpochRecord, Kind};
use sha2::{Digest as _, Sha256};

use crate::log::ROUNDS_MAX;
use crate::service::limits::{is_name, quoted};
use crate::service::request::{
    Decide, Decided, EpochLabels, Evaluate, FlagAdvice, Granted, Refusal, Request,
};
use crate::service::transaction::Answered;
use crate::service::turn::Turn;
use crate::store::{DecisionKind, Lease, Status};

/// What a request asks for: decisions, or a flag, which is one that is given also while others wait.
#[derive(Clone, Copy)]
struct DecisionAsk<'a> {
    rounds: u64,
    request_key: Option<&'a str>,
    seen: u64,
    actor: &'a str,
    flag: bool,
}

impl<'a> DecisionAsk<'a> {
    fn of(request: &'a Request) -> Option<Self> {
        match request {
            Request::Decide(Decide {
                rounds,
                request_key,
                seen,
                actor,
                ..
            }) => Some(Self {
                rounds: *rounds,
                request_key: request_key.as_deref(),
                seen: *seen,
                actor,
                flag: false,
            }),
            Request::Evaluate(Evaluate {
                request_key, actor, ..
            }) => Some(Self {
                rounds: 1,
                request_key: Some(request_key),
                seen: 0,
                actor,
                flag: true,
            }),
            _ => None,
        }
    }
}

/// The leases that a group's requests may be given again: those of their request keys from before, and those of this group.
struct GroupLeases<'a> {
    stored: BTreeMap<String, Decided>,
    /// The places of what is decided here. The decisions stay in their answers and are found there: every request would pay
    /// for a copy of its lease.
    fresh: Vec<usize>,
    by_key: BTreeMap<&'a str, usize>,
}

impl<'a> GroupLeases<'a> {
    fn add(&mut self, place: usize, key: Option<&'a str>) {
        self.fresh.push(place);
        self.by_key.extend(key.map(|key| (key, place)));
    }

    /// What a request with this key was given.
    fn find<'b>(&'b self, key: &str, answers: &'b [Option<Answered>]) -> Option<&'b Decided> {
        // A client that hears nothing asks again, and both requests may meet in one group.
        let here = || decided(&answers[*self.by_key.get(key)?]);
        self.stored.get(key).or_else(here)
    }

    fn leases<'b>(&self, answers: &'b [Option<Answered>]) -> Vec<&'b Lease> {
        self.fresh
            .iter()
            .filter_map(|&place| Some(&decided(&answers[place])?.lease))
            .collect()
    }
}

impl Turn<'_> {
    /// Decides and changes in the order of the requests: a pause holds for the requests after it.
    pub(super) fn decide_and_change(
        &mut self,
        group: &[&Request],
        answers: &mut [Option<Answered>],
    ) -> Result<()> {
        self.draw_ahead(group);
        if self.decide_as_new(group, answers)? {
            return Ok(());
        }
        let stored = self.stored_decisions(group)?;
        let leases = self.answer_in_order(group, stored, answers)?;
        // In one statement for the whole group, which costs the store far less than one for each.
        self.store.add_leases(self.id, &leases.leases(answers))?;
        self.note_leases(&leases, group, answers);
        Ok(())
    }

    /// Decides as if every request key were new, which nearly all are: whether that was right. If not, nothing has happened.
    ///
    /// The store finds a key that was used before as it adds the lease; to look for each of them first takes it as long again.
    fn decide_as_new(
        &mut self,
        group: &[&Request],
        answers: &mut [Option<Answered>],
    ) -> Result<bool> {
        // Flags are asked for again and again, and an event that a change has stored cannot be taken back.
        let may_be_new =
            |request: &&Request| !matches!(request, Request::Evaluate(_) | Request::Change(_));
        let asked = || group.iter().map(|request| DecisionAsk::of(request));
        let keyed =
            |asked: Option<DecisionAsk<'_>>| asked.is_some_and(|asked| asked.request_key.is_some());
        if !group.iter().all(may_be_new) || !asked().any(keyed) {
            return Ok(false);
        }
        let before = (self.progress.clone(), self.due);
        let leases = self.answer_in_order(group, BTreeMap::new(), answers)?;
        // What a request was given stays in every state, so one that is refused may have been given something before.
        let mut asks = asked()
            .zip(answers.iter())
            .filter(|(asked, _)| asked.is_some());
        let granted = asks.all(|(_, answer)| decided(answer).is_some());
        if granted
            && self
                .store
                .add_new_leases(self.id, &leases.leases(answers))?
        {
            self.note_leases(&leases, group, answers);
            return Ok(true);
        }
        (self.progress, self.due) = before;
        for (answer, _) in answers
            .iter_mut()
            .zip(asked())
            .filter(|(_, asked)| asked.is_some())
        {
            *answer = None;
        }
        Ok(false)
    }

    /// Answers requests for decisions and changes one after another.
    fn answer_in_order<'a>(
        &mut self,
        group: &[&'a Request],
        stored: BTreeMap<String, Decided>,
        answers: &mut [Option<Answered>],
    ) -> Result<GroupLeases<'a>> {
        let mut leases = GroupLeases {
            stored,
            fresh: Vec::new(),
            by_key: BTreeMap::new(),
        };
        for (place, request) in group.iter().enumerate() {
            // Outcomes and ticks come before all decisions (`Turn`), as they may close the epoch.
            if let Some(asked) = DecisionAsk::of(request) {
                let key = asked.request_key;
                let answered = match key.and_then(|key| leases.find(key, answers)) {
                    _ if asked.seen > self.progress.rounds() => Err(self.refuse_behind(asked.seen)),
                    // In every state: what a caller, or a flag, was given stays.
                    Some(before) => repeat(before, asked.rounds).map(Granted::Decided),
                    None if asked.flag && self.progress.status != Status::Running => {
                        Ok(Granted::Recommended(self.advise(key.unwrap_or_default())))
                    }
                    None => self
                        .decide(asked)
                        .inspect(|_| leases.add(place, key))
                        .map(Granted::Decided),
                };
                answers[place] = Some(answered);
            } else if let Request::Change(change) = request {
                answers[place] = Some(self.change(change)?);
            }
        }
        Ok(leases)
    }

    /// Hashes leases that were just written.
    fn note_leases(
        &mut self,
        leases: &GroupLeases<'_>,
        group: &[&Request],
        answers: &[Option<Answered>],
    ) {
        for &place in &leases.fresh {
            if let Some(decided) = decided(&answers[place]) {
                self.resident
                    .note_lease(&decided.lease, group[place].actor(), &self.progress);
            }
        }
    }

    /// What the group's request keys were given before, by key.
    fn stored_decisions(&mut self, group: &[&Request]) -> Result<BTreeMap<String, Decided>> {
        // An invalid key must not reach the store, which could fail on it, and the group with it.
        let keys: Vec<&str> = group
            .iter()
            .filter_map(|request| DecisionAsk::of(request)?.request_key)
            .filter(|key| is_name(key))
            .collect();
        let mut stored = BTreeMap::new();
        if keys.is_empty() {
            return Ok(stored);
        }
        let actions = self.resident.labels.actions.len();
        for lease in self.store.leases_of(self.id, &keys)? {
            // Names and probabilities are taken by these numbers. That there is one, the store's reader makes sure of.
            let unknown = lease.actions.iter().find(|&&one| one as usize >= actions);
            if let Some(unknown) = unknown {
                bail!(
                    "experiment {}: the store holds action {unknown} in epoch {}, and there are {actions}",
                    self.id,
                    lease.epoch
                );
            }
            let before = Decided {
                labels: self.labels_of(&lease)?,
                lease,
                repeated: true,
            };
            let key = before.lease.request_key.clone().unwrap_or_default();
            stored.insert(key, before);
        }
        Ok(stored)
    }

    /// What the answer of a lease says beside the numbers of actions.
    fn labels_of(&mut self, lease: &Lease) -> Result<Arc<EpochLabels>> {
        let epoch = lease.epoch;
        if epoch == self.resident.engine.epoch() {
            return Ok(Arc::clone(self.resident.labels_of(lease.kind)));
        }
        let actions = self.resident.labels.actions.clone();
        if lease.kind == DecisionKind::Holdback {
            return Ok(Arc::new(EpochLabels::certain(actions, lease.actions[0])));
        }
        // Closed epochs are not kept in memory: few requests are repeated that late.
        let rows = self.store.epochs(self.id, epoch, 1)?;
        let row = rows.first().with_context(|| {
            format!(
                "epoch {epoch} of experiment {} is missing from the store",
                self.id
            )
        })?;
        let record: EpochRecord = serde_json::from_str(&row.record)?;
        Ok(Arc::new(EpochLabels::new(actions, record.strategy)))
    }

    /// Hands out the next rounds, fewer where the epoch ends; beyond its end, overtime or nothing. To a request that is held back,
    /// the action for those.
    fn decide(&mut self, asked: DecisionAsk<'_>) -> Result<Decided, Refusal> {
        let DecisionAsk {
            rounds,
            request_key,
            ..
        } = asked;
        check_request(rounds, request_key)?;
        let kind = self.kind_of(asked)?;
        // What is outside the horizon has a numbering of its own: a round of the horizon spent on it would be missing from the
        // estimates.
        let first = self.progress.next(kind);
        // Fewer than asked for where the epoch ends, or where the answer would grow too long.
        let given = rounds.min(self.resident.labels.decisions_max);
        let actions = match kind {
            DecisionKind::Round => self.draw_rounds(given),
            DecisionKind::Overtime => self.draw_overtime(given),
            DecisionKind::Holdback => self.hold_back(given),
        };
        let lease = Lease {
            epoch: self.progress.epoch,
            kind,
            first,
            actions,
            asked: rounds,
            request_key: request_key.map(str::to_owned),
            at: self.time.at,
            waited: self.time.stamp,
            actor: self.actors[asked.actor],
        };
        self.await_outcomes(&lease);
        Ok(Decided {
            lease,
            labels: Arc::clone(self.resident.labels_of(kind)),
            repeated: false,
        })
    }

    /// What a request's decisions will count for.
    fn kind_of(&self, asked: DecisionAsk<'_>) -> Result<DecisionKind, Refusal> {
        self.check_running()?;
        // Before the wait: what is held back waits for no outcome.
        if self.is_held_back(asked.request_key)? {
            return Ok(DecisionKind::Holdback);
        }
        if !self.resident.is_decided(&self.progress) {
            return Ok(DecisionKind::Round);
        }
        // A flag that was answered with nothing now would be another once the wait is over, so it is given overtime whatever the
        // spec says to others: that counts for nothing, and stays.
        if asked.flag || self.resident.rules.on_wait == OnWait::Serve {
            return Ok(DecisionKind::Overtime);
        }
        Err(Refusal::Waiting {
            epoch: self.progress.epoch,
            outstanding: self.progress.outstanding(),
        })
    }

    fn is_held_back(&self, request_key: Option<&str>) -> Result<bool, Refusal> {
        let Some(holdback) = &self.resident.rules.holdback else {
            return Ok(false);
        };
        // Without a key nobody could tell later on which side a request belongs, and whoever asks could choose.
        let key = request_key.ok_or_else(|| Refusal::RequestKeyNeeded {
            id: self.id.to_owned(),
        })?;
        Ok(self.resident.engine.holds_back(key, holdback.share))
    }

    /// The flag of somebody whom an experiment that is over, or paused, has given nothing. Nothing is stored: it is a function
    /// of the experiment's id, its last strategy and the key.
    fn advise(&self, request_key: &str) -> FlagAdvice {
        let engine = &self.resident.engine;
        // Exploration plays what it knows nothing of, and where no strategy keeps the limits none is recommended. To pause is to
        // give nobody anything: whoever comes meanwhile gets the first decision afterwards.
        let known = !matches!(engine.open_record().kind, Kind::Explore | Kind::Infeasible)
            && self.progress.status != Status::Paused;
        let pick = || engine.strategy().pick(uniform(self.id, request_key));
        FlagAdvice {
            action: known.then(pick),
            epoch: self.progress.epoch,
            labels: Arc::clone(&self.resident.labels),
            status: self.progress.status,
        }
    }

    fn refuse_behind(&self, seen: u64) -> Refusal {
        Refusal::Behind {
            id: self.id.to_owned(),
            seen,
            decided: self.progress.rounds(),
        }
    }

    fn check_running(&self) -> Result<(), Refusal> {
        match self.progress.status {
            Status::Running => Ok(()),
            Status::Paused => Err(Refusal::Paused {
                id: self.id.to_owned(),
            }),
            Status::Closed => Err(self.refuse_closed()),
            Status::Done => Err(self.refuse_done()),
        }
    }

    /// Draws the rounds that all of a group's requests may be given: they follow one another, and where one request ends and the
    /// next begins lies mostly within a block, whose order would be drawn for both.
    fn draw_ahead(&mut self, group: &[&Request]) {
        let asked = group.iter().filter_map(|request| DecisionAsk::of(request));
        let rounds: u64 = asked.map(|asked| asked.rounds.min(ROUNDS_MAX)).sum();
        let gives_none =
            self.progress.status != Status::Running || self.resident.is_decided(&self.progress);
        if rounds == 0 || gives_none {
            return;
        }
        self.drawn_first = self.progress.next_round;
        self.drawn = self.draw_from(self.drawn_first, rounds);
    }

    /// The actions of rounds, up to the last that the epoch can have.
    fn draw_from(&self, first: u64, rounds: u64) -> Vec<u32> {
        let engine = &self.resident.engine;
        // An epoch of permuted blocks ends by its rounds, one of drawn actions by their counts.
        let left = (engine.last_round() + 1).saturating_sub(first);
        let mut actions = vec![0; rounds.min(left) as usize];
        // All at once, even those beyond the count that ends the epoch: a decision is a function of the
        // round, so nothing has to be undone; drawn side by side they take half the time, and a block's
        // order is drawn once.
        engine.decide_many(first.., &mut actions);
        actions
    }

    /// The actions of the next rounds, up to the end of the epoch.
    fn draw_rounds(&mut self, rounds: u64) -> Vec<u32> {
        let first = self.progress.next_round;
        let engine = &self.resident.engine;
        let left = (engine.last_round() + 1).saturating_sub(first);
        let start = first.saturating_sub(self.drawn_first) as usize;
        let end = start + rounds.min(left) as usize;
        // Not there if the group itself has resumed the experiment.
        let mut actions = match self.drawn.get(start..end) {
            Some(drawn) => drawn.to_vec(),
            None => self.draw_from(first, rounds),
        };
        let mut handed_out = 0;
        for &action in &actions {
            let decided = &mut self.progress.decided[action as usize];
            *decided += 1;
            handed_out += 1;
            // The round that brings an action to its target is the epoch's last.
            if engine.target(action) == Some(*decided) {
                break;
            }
        }
        actions.truncate(handed_out);
        self.progress.next_round += handed_out as u64;
        actions
    }

    /// The actions of the next overtime decisions: by the same strategy, so safety stands under hard constraints.
    fn draw_overtime(&mut self, rounds: u64) -> Vec<u32> {
        let first = self.progress.next_serial;
        let serials = first..first + rounds;
        self.progress.next_serial += rounds;
        self.progress.overtime += rounds;
        serials
            .map(|serial| self.resident.engine.overtime(serial).action)
            .collect()
    }

    /// The actions of the next decisions that are held back: one for all.
    fn hold_back(&mut self, rounds: u64) -> Vec<u32> {
        let holdback = self.resident.rules.holdback.as_ref();
        let action = holdback.expect("only called with one").action;
        self.progress.next_holdback += rounds;
        self.progress.holdback += rounds;
        vec![action; rounds as usize]
    }
}

/// The decisions in an answer.
fn decided(answer: &Option<Answered>) -> Option<&Decided> {
    if let Some(Ok(Granted::Decided(decided))) = answer {
        Some(decided)
    } else {
        None
    }
}

/// A number in [0, 1) for a key, its own in each experiment.
fn uniform(id: &str, request_key: &str) -> f64 {
    // By SHA-256, which is the same everywhere and for ever. The zero byte is in neither text.
    let digest = Sha256::new()
        .chain_update(id)
        .chain_update([0])
        .chain_update(request_key)
        .finalize();
    let word = digest[..8]
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    (word >> 11) as f64 * 2f64.powi(-53)
}

fn check_request(rounds: u64, request_key: Option<&str>) -> Result<(), Refusal> {
    if rounds == 0 || rounds > ROUNDS_MAX {
        return Err(Refusal::Rounds { rounds });
    }
    match request_key {
        Some(key) if !is_name(key) => Err(Refusal::RequestKey {
            request_key: quoted(key),
        }),
        _ => Ok(()),
    }
}

/// A request whose key is known gets the same again, if it is the same request.
fn repeat(before: &Decided, rounds: u64) -> Result<Decided, Refusal> {
    // Another n with a used key is a bug of the client: two requests share a key, and if both got
    // the rounds of the first, both would carry them out.
    if before.lease.asked != rounds {
        return Err(Refusal::RequestKeyUsed {
            request_key: before.lease.request_key.clone().unwrap_or_default(),
            asked: before.lease.asked,
            rounds,
        });
    }
    Ok(Decided {
        repeated: true,
        ..before.clone()
    })
}
