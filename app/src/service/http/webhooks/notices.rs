//! What there is to tell of an experiment: from its record, which never changes, and from what is known of it at the moment.
//!
//! A cursor says from which epoch on the record is to be told, and which alerts are told already: each is told when it begins, and
//! again only after it has ended. What is told is thus a fact of the record, whoever finds it and however late.

use anyhow::Result;
use debora::measure::answer::look_test;
use debora::measure::words::{counted, percent, whole};
use debora::record::Kind;
use debora::spec::Spec;
use debora::{Policy, Problem};
use serde_json::{Map, Value, json};

use crate::reading::epoch::EpochHead;
use crate::reading::{LimitVerdict, Reading, Shares};
use crate::service::webhooks::EventKind;
use crate::service::webhooks::message::Notice;
use crate::service::webhooks::outbox::Raise;
use crate::store::{DecisionKind, Progress, Status, Store, Webhook, WebhookCursor};

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
        let (spec, rows) = (experiment.spec.clone(), store.epochs(id, from, EPOCHS_MAX)?);
        // An experiment of another values version has a record, and this program can find no more of it.
        let reading = Reading::from_row(store, experiment, progress.clone()).ok();
        let parsed;
        let problem = match &reading {
            Some(reading) => reading.problem(),
            None => {
                parsed = Spec::parse(&spec, id)?.problem;
                &parsed
            }
        };
        let epochs = EpochHead::parse_all(&rows, &progress, problem)?;
        let more = epochs.len() == EPOCHS_MAX;
        // Of the last that was read, what follows is not known yet: it is told at the next look.
        let tellable = epochs.len() - usize::from(more);
        let closed = epochs[..tellable]
            .iter()
            .filter(|epoch| epoch.closed_at.is_some());
        let mut to_tell = Self {
            record: find_in_record(id, problem, &epochs, tellable),
            alerts: None,
            waiting: None,
            epoch: from + closed.count() as u64,
            ended: !more && !progress.status.is_open(),
            more,
        };
        if to_tell.ended {
            let at = epochs
                .last()
                .and_then(|epoch| epoch.closed_at)
                .unwrap_or(now);
            let done = done(&progress, reading.as_ref(), at, id);
            // Whatever epochs are told by then, this is not: a cursor at an end is not looked at again.
            to_tell.record.push((u64::MAX, done));
        }
        if let Some(reading) = &reading {
            to_tell.alerts = Some(find_alerts(reading, now));
            to_tell.waiting = find_waiting(store, reading, now)?;
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
fn find_in_record(
    id: &str,
    problem: &Problem,
    epochs: &[EpochHead],
    tellable: usize,
) -> Vec<(u64, Notice)> {
    let mut found = Vec::new();
    for (place, epoch) in epochs.iter().enumerate().take(tellable) {
        let Some(at) = epoch.closed_at else { break };
        let next = epochs.get(place + 1);
        let mut add = |kind, number, words, facts| {
            let notice = Notice {
                kind,
                experiment: id.to_owned(),
                what: String::new(),
                epoch: number,
                at,
                words,
                facts,
            };
            found.push((epoch.epoch, notice));
        };
        let (words, told) = closed(problem, epoch, next);
        add(EventKind::EpochClosed, epoch.epoch, words, told);
        // Told of the first such epoch: those after it are what was to be expected.
        let Some(next) = next.filter(|next| next.kind != epoch.kind) else {
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
            let shares = Shares::new(problem, &next.strategy);
            let told = facts([("strategy", json!(shares.by_name()))]);
            add(EventKind::Infeasible, next.epoch, words, told);
        }
    }
    found
}

fn closed(
    problem: &Problem,
    epoch: &EpochHead,
    next: Option<&EpochHead>,
) -> (String, Map<String, Value>) {
    let next = next.map(|next| (next.kind, Shares::new(problem, &next.strategy)));
    let then = next
        .as_ref()
        .map_or("It was the last.".into(), |(_, shares)| {
            format!("The next one plays {}.", mix(shares))
        });
    let mut told = facts([
        ("first_round", json!(epoch.first_round)),
        ("rounds", json!(epoch.rounds)),
        ("kind", json!(epoch.kind)),
    ]);
    if let Some((kind, shares)) = next {
        let next = json!({ "kind": kind, "strategy": shares.by_name() });
        told.insert("next".into(), next);
    }
    (
        format!(
            "Epoch {} is over after {}. {then}",
            epoch.epoch,
            counted(epoch.rounds, "round", "rounds")
        ),
        told,
    )
}

/// A strategy in words: its largest shares.
fn mix(shares: &Shares) -> String {
    let played = shares.played();
    let more = played.len().saturating_sub(NAMED_MAX);
    let named = played.iter().take(NAMED_MAX);
    let mut words: Vec<_> = named
        .map(|share| format!("{} {}", share.name, percent(share.probability)))
        .collect();
    if more > 0 {
        words.push(format!("{} more", whole(more as u64)));
    }
    words.join(", ")
}

fn done(progress: &Progress, reading: Option<&Reading>, at: i64, id: &str) -> Notice {
    let decided = counted(progress.rounds(), "round", "rounds");
    let words = match progress.status {
        Status::Done => format!("The experiment is done: all {decided} have their outcomes."),
        _ => format!("The experiment was closed after {decided}."),
    };
    let mut told = facts([
        ("status", json!(progress.status)),
        ("decided", json!(progress.rounds())),
    ]);
    if let Some(reading) = reading {
        let strategy = json!(reading.advice().current.shares.by_name());
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

/// What is wrong at the moment.
fn find_alerts(reading: &Reading, at: i64) -> Vec<Notice> {
    let notice = |kind, what: &str, words: String, facts| Notice {
        kind,
        experiment: reading.id().to_owned(),
        what: what.into(),
        epoch: reading.progress.epoch,
        at,
        words,
        facts,
    };
    let promised = reading.policy() == Policy::Hard;
    let mut found = Vec::new();
    for limit in reading.limits() {
        if limit.all.verdict != LimitVerdict::Exceeded {
            continue;
        }
        // Policy soft may exceed a limit while it learns, and somebody may want to know all the same.
        let broken = limit.contradiction(reading.policy());
        let words = broken.unwrap_or_else(|| limit.all.sentence.clone());
        let told = facts([
            ("cost", json!(limit.name)),
            ("threshold", json!(limit.threshold)),
            ("realised", json!(limit.all.realised)),
            ("promised", json!(promised)),
        ]);
        found.push(notice(EventKind::LimitExceeded, &limit.name, words, told));
    }
    let ratio = reading.sample_ratio();
    if ratio.mismatch {
        let words = ratio.sentence.clone();
        found.push(notice(EventKind::SampleRatio, "", words, Map::new()));
    }
    found
}

/// That outcomes are waited for, since the epoch's last round was decided.
fn find_waiting(store: &mut Store, reading: &Reading, at: i64) -> Result<Option<(Notice, i64)>> {
    if !reading.is_waiting() {
        return Ok(None);
    }
    let progress = &reading.progress;
    let (epoch, round) = (progress.epoch, progress.rounds());
    let last = store.leases(reading.id(), epoch, DecisionKind::Round, round, 1)?;
    let Some(last) = last.first() else {
        return Ok(None);
    };
    // By the clock that the lease has its time from. The waiting clock stands still where nothing is ever imputed.
    let waited = at - last.at;
    let outstanding = counted(progress.outstanding(), "outcome", "outcomes");
    let notice = Notice {
        kind: EventKind::Waiting,
        experiment: reading.id().to_owned(),
        what: String::new(),
        epoch,
        at,
        words: format!(
            "Epoch {epoch} is fully decided and has waited for {outstanding} for {}.",
            counted(waited.unsigned_abs() / 60_000, "minute", "minutes")
        ),
        facts: facts([
            ("outstanding", json!(progress.outstanding())),
            ("waited_seconds", json!(waited / 1_000)),
        ]),
    };
    Ok(Some((notice, waited)))
}
