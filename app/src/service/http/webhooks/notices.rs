//! What there is to tell of an experiment: from its record, which never changes, and from its state, as `/state` shows it.
//!
//! A cursor says from which epoch on the record is to be told, and which alerts are told already: each is told when it begins, and
//! again only after it has ended. What is told is thus a fact of the record, whoever finds it and however late.

use anyhow::{Context as _, Result};
use debora::measure::answer::look_test;
use debora::measure::words::{counted, percent, whole};
use debora::record::Kind;
use debora::spec::Spec;
use debora::{EpochRecord, Policy, Problem};
use serde_json::{Map, Value, json};

use crate::log::kept::{LimitVerdict, contradictions};
use crate::service::http::state::{self, State};
use crate::service::webhooks::EventKind;
use crate::service::webhooks::message::Notice;
use crate::service::webhooks::outbox::Raise;
use crate::store::{DecisionKind, EpochRow, Progress, Status, Store, Webhook, WebhookCursor};

/// Epochs read at a time; what is beyond them is read at the next look.
const EPOCHS_MAX: usize = 64;

/// Actions named of a strategy, and contradictions named of all.
const NAMED_MAX: usize = 3;

/// What an experiment gives reason to tell.
pub struct ToTell {
    /// Of the record, each with the epoch whose end brought it about.
    record: Vec<(u64, Notice)>,
    /// What is wrong at the moment; `None` if that cannot be read.
    alerts: Option<Vec<Notice>>,
    /// That outcomes are waited for, and for how many milliseconds they have been.
    waiting: Option<(Notice, i64)>,
    /// The first epoch that is not told.
    epoch: u64,
    /// Whether all is told, and nothing more will be.
    ended: bool,
    /// Whether there is more than was read.
    pub more: bool,
}

impl ToTell {
    /// Looks through an experiment from this epoch on.
    pub fn read(store: &mut Store, id: &str, from: u64, now: i64) -> Result<Option<Self>> {
        // The database's time if nodes share one, as the record's times are.
        let now = store.now().unwrap_or(now);
        let Some((experiment, progress)) = store.experiment(id)? else {
            return Ok(None);
        };
        let rows = store.epochs(id, from, EPOCHS_MAX)?;
        let problem = Spec::parse(&experiment.spec, id)?.problem;
        let more = rows.len() == EPOCHS_MAX;
        // Of the last that was read, what follows is not known yet: it is told at the next look.
        let tellable = if more { &rows[..EPOCHS_MAX - 1] } else { &rows };
        let closed = tellable.iter().filter(|row| row.closed_at.is_some());
        let mut to_tell = Self {
            record: of_record(id, &problem, &rows, tellable.len())?,
            alerts: None,
            waiting: None,
            epoch: from + closed.count() as u64,
            ended: !more && !progress.status.is_open(),
            more,
        };
        // An experiment of another values version has a record, and no state that this program can find.
        let state = state::read(store, id).ok().flatten();
        if to_tell.ended {
            let at = rows.last().and_then(|row| row.closed_at).unwrap_or(now);
            let done = done(&progress, state.as_ref(), at, id);
            // Whatever epochs are told by then, this is not: a cursor at an end is not looked at again.
            to_tell.record.push((u64::MAX, done));
        }
        if let Some(state) = &state {
            to_tell.alerts = Some(alerts(state, now));
            to_tell.waiting = waiting(store, state, &progress, now)?;
        }
        Ok(Some(to_tell))
    }

    /// Whether time alone may bring something about.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// What of it a webhook is to be told; `None` if nothing has changed for it.
    pub fn raise(
        &self,
        id: &str,
        webhook: &Webhook,
        before: Option<WebhookCursor>,
        identity: &str,
    ) -> Option<Raise> {
        let cursor = before.clone().unwrap_or_default();
        let record = self.record.iter();
        let mut told: Vec<&Notice> = record
            .filter(|(epoch, _)| *epoch >= cursor.epoch)
            .map(|(_, notice)| notice)
            .collect();
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|(_, waited)| *waited >= webhook.wait);
        let mut active = cursor.active.clone();
        if let Some(alerts) = &self.alerts {
            let alerts = alerts.iter().chain(waiting.map(|(notice, _)| notice));
            let alerts: Vec<_> = alerts.filter(|notice| wants(webhook, notice)).collect();
            let is_new = |notice: &&Notice| !cursor.active.lines().any(|line| line == key(notice));
            told.extend(alerts.iter().copied().filter(is_new));
            let keys: Vec<_> = alerts.into_iter().map(key).collect();
            active = keys.join("\n");
        }
        let after = WebhookCursor {
            webhook: webhook.name.clone(),
            // Another webhook may have been behind this one when the experiment was read.
            epoch: self.epoch.max(cursor.epoch),
            ended: self.ended,
            active,
        };
        let messages = told.into_iter().filter(|notice| wants(webhook, notice));
        (before.as_ref() != Some(&after)).then(|| Raise {
            experiment: id.to_owned(),
            before,
            after,
            messages: messages
                .map(|notice| (notice.id(identity), notice.body(webhook)))
                .collect(),
        })
    }
}

fn wants(webhook: &Webhook, notice: &Notice) -> bool {
    let events = webhook.events.as_ref();
    events.is_none_or(|events| events.iter().any(|event| event == notice.kind.name()))
}

/// What an alert is known by while it lasts.
fn key(notice: &Notice) -> String {
    match notice.kind {
        // Of each epoch it is another: the last one's outcomes have come.
        EventKind::Waiting => format!("{} {}", notice.kind.name(), notice.epoch),
        kind => format!("{} {}", kind.name(), notice.what),
    }
}

fn facts<const N: usize>(facts: [(&str, Value); N]) -> Map<String, Value> {
    let facts = facts.into_iter();
    facts.map(|(name, value)| (name.into(), value)).collect()
}

/// What the ends of epochs brought about.
fn of_record(
    id: &str,
    problem: &Problem,
    rows: &[EpochRow],
    tellable: usize,
) -> Result<Vec<(u64, Notice)>> {
    let parse = |row: &EpochRow| {
        let record = serde_json::from_str::<EpochRecord>(&row.record);
        record.with_context(|| format!("the record of epoch {} cannot be read", row.epoch))
    };
    let mut found = Vec::new();
    for (place, row) in rows.iter().enumerate().take(tellable) {
        let Some(at) = row.closed_at else { break };
        let record = parse(row)?;
        let next = rows.get(place + 1).map(parse).transpose()?;
        let mut add = |kind, epoch, words, facts| {
            let notice = Notice {
                kind,
                experiment: id.to_owned(),
                what: String::new(),
                epoch,
                at,
                words,
                facts,
            };
            found.push((row.epoch, notice));
        };
        let (words, told) = closed(problem, &record, next.as_ref());
        add(EventKind::EpochClosed, row.epoch, words, told);
        // Told of the first such epoch: those after it are what was to be expected.
        let Some(next) = next.filter(|next| next.kind != record.kind) else {
            continue;
        };
        if let (Kind::Commit, Some(test)) = (next.kind, &next.test) {
            let action = &problem.actions()[test.leader as usize];
            let words = format!(
                "{} {action} is played to the horizon; the experiment can be closed without loss.",
                look_test(problem, test)
            );
            let told = facts([("action", json!(action))]);
            add(EventKind::Committed, next.epoch, words, told);
        }
        if next.kind == Kind::Infeasible {
            let words = "By the estimates no strategy keeps every limit.".into();
            let told = facts([("strategy", by_name(problem, &next.strategy))]);
            add(EventKind::Infeasible, next.epoch, words, told);
        }
    }
    Ok(found)
}

fn closed(
    problem: &Problem,
    record: &EpochRecord,
    next: Option<&EpochRecord>,
) -> (String, Map<String, Value>) {
    let rounds = counted(record.rounds, "round", "rounds");
    let epoch = record.epoch;
    let then = next.map_or("It was the last.".into(), |next| {
        format!("The next one plays {}.", mix(problem, &next.strategy))
    });
    let mut told = facts([
        ("first_round", json!(record.first_round)),
        ("rounds", json!(record.rounds)),
        ("kind", json!(record.kind)),
    ]);
    if let Some(next) = next {
        let next = json!({ "kind": next.kind, "strategy": by_name(problem, &next.strategy) });
        told.insert("next".into(), next);
    }
    (
        format!("Epoch {epoch} is over after {rounds}. {then}"),
        told,
    )
}

fn by_name(problem: &Problem, strategy: &[f64]) -> Value {
    let shares = problem.actions().iter().zip(strategy);
    shares
        .map(|(name, share)| (name.clone(), json!(share)))
        .collect()
}

/// A strategy in words: its largest shares.
fn mix(problem: &Problem, strategy: &[f64]) -> String {
    let mut shares: Vec<_> = problem.actions().iter().zip(strategy).collect();
    shares.retain(|(_, share)| **share > 0.0);
    // Stable, so that equals stay in the spec's order.
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let more = shares.len().saturating_sub(NAMED_MAX);
    let named = shares.iter().take(NAMED_MAX);
    let mut words: Vec<_> = named
        .map(|(name, share)| format!("{name} {}", percent(**share)))
        .collect();
    if more > 0 {
        words.push(format!("{} more", whole(more as u64)));
    }
    words.join(", ")
}

fn done(progress: &Progress, state: Option<&State>, at: i64, id: &str) -> Notice {
    let decided = counted(progress.rounds(), "round", "rounds");
    let words = match progress.status {
        Status::Done => format!("The experiment is done: all {decided} have their outcomes."),
        _ => format!("The experiment was closed after {decided}."),
    };
    let mut told = facts([
        ("status", json!(progress.status)),
        ("decided", json!(progress.rounds())),
    ]);
    if let Some(state) = state {
        let strategy = json!(state.recommendation.strategy);
        told.insert("recommendation".into(), strategy);
    }
    Notice {
        kind: EventKind::Done,
        experiment: id.to_owned(),
        what: String::new(),
        epoch: progress.epoch,
        at,
        words,
        facts: told,
    }
}

/// What is wrong, as the state shows it.
fn alerts(state: &State, at: i64) -> Vec<Notice> {
    let notice = |kind, what: &str, words: String, facts| Notice {
        kind,
        experiment: state.id.clone(),
        what: what.into(),
        epoch: state.epoch,
        at,
        words,
        facts,
    };
    let promised = state.policy == Policy::Hard;
    let mut found = Vec::new();
    for limit in &state.limits {
        if limit.all.verdict != LimitVerdict::Exceeded {
            continue;
        }
        // Policy soft may exceed a limit while it learns, and somebody may want to know all the same.
        let broken = contradictions(state.policy, std::slice::from_ref(limit)).pop();
        let words = broken.unwrap_or_else(|| limit.all.sentence.clone());
        let told = facts([
            ("cost", json!(limit.name)),
            ("threshold", json!(limit.threshold)),
            ("realised", json!(limit.all.realised)),
            ("promised", json!(promised)),
        ]);
        found.push(notice(EventKind::LimitExceeded, &limit.name, words, told));
    }
    if state.sample_ratio.mismatch {
        let words = state.sample_ratio.sentence.clone();
        found.push(notice(EventKind::SampleRatio, "", words, Map::new()));
    }
    found
}

/// That outcomes are waited for, since the epoch's last round was decided.
fn waiting(
    store: &mut Store,
    state: &State,
    progress: &Progress,
    at: i64,
) -> Result<Option<(Notice, i64)>> {
    if !state.waiting {
        return Ok(None);
    }
    let last = store.leases(
        &state.id,
        progress.epoch,
        DecisionKind::Round,
        progress.rounds(),
        1,
    )?;
    let Some(last) = last.first() else {
        return Ok(None);
    };
    // By the clock that the lease has its time from. The waiting clock stands still where nothing is ever imputed.
    let waited = at - last.at;
    let outstanding = counted(state.outstanding, "outcome", "outcomes");
    let notice = Notice {
        kind: EventKind::Waiting,
        experiment: state.id.clone(),
        what: String::new(),
        epoch: state.epoch,
        at,
        words: format!(
            "Epoch {} is fully decided and has waited for {outstanding} for {}.",
            state.epoch,
            counted(waited.unsigned_abs() / 60_000, "minute", "minutes")
        ),
        facts: facts([
            ("outstanding", json!(state.outstanding)),
            ("waited_seconds", json!(waited / 1_000)),
        ]),
    };
    Ok(Some((notice, waited)))
}
