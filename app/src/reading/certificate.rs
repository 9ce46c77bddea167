//! The certificate of an experiment that is over: what it was, what it found, and all that is needed to check it.

use anyhow::{Context as _, Result};
use debora::{Plan, Policy};
use serde::Serialize;

use super::{
    ActionCounts, ActionMean, Advice, HoldbackState, IntervalMethods, LimitState, METHODS, Reading,
    SampleRatio,
};
use crate::calendar::iso;
use crate::hex;
use crate::log::seal::promised;
use crate::log::{chain, is_revealed};
use crate::store::{Event, ExperimentRow, Progress, Status, Store};

/// The final document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The experiment's name in addresses.
    pub id: String,
    /// What its spec calls it.
    pub name: Option<String>,
    /// Whether it reached its horizon (done) or was ended before (closed).
    pub status: Status,
    /// The spec, as it was given.
    pub spec: String,
    /// 64 hexadecimal digits that stand for all it depended on: problem, key and rules. Two specs that mean the same have the
    /// same. `None` while the key is withheld, which it could be checked against.
    pub fingerprint: Option<String>,
    /// The key, secret until the end: 32 hexadecimal digits; `None` while it is withheld.
    pub key: Option<String>,
    /// What the key was hashed with: 32 hexadecimal digits; `None` while the key is withheld.
    pub salt: Option<String>,
    /// Why the key is withheld, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_withheld: Option<&'static str>,
    /// SHA-256 of salt and key, published before the first decision.
    pub key_hash: String,
    /// The version of the values that it was decided with.
    pub values_version: u32,
    /// Closed epochs.
    pub epochs: u64,
    /// Rounds decided.
    pub rounds: u64,
    /// Rounds there could be.
    pub horizon: u64,
    /// SHA-256 over the strategies of all closed epochs: with one key, equal digests mean equal decisions.
    pub digest: String,
    /// The hash of the last closed epoch, which holds all before it.
    pub head: String,
    /// What was promised before it began, and what it takes, in sentences; warnings first.
    pub promised: Vec<String>,
    /// Whether and how limits are kept.
    pub policy: Policy,
    /// What to deploy.
    pub recommendation: Advice,
    /// What was observed of each action and quantity, beside the estimate that decided.
    pub means: Vec<ActionMean>,
    /// Whether each limit was kept.
    pub limits: Vec<LimitState>,
    /// How the intervals of `means` and `limits` are made.
    pub intervals: IntervalMethods,
    /// Whether outcomes went missing more often after some actions than after others.
    pub sample_ratio: SampleRatio,
    /// What contradicts a promise, in sentences.
    pub contradictions: Vec<String>,
    /// Rounds per action.
    pub actions: Vec<ActionCounts>,
    /// Outcomes told, of all actions.
    pub told: u64,
    /// Rounds whose outcome did not come in time.
    pub imputed: u64,
    /// Decided rounds whose outcome nobody told before the end.
    pub outstanding: u64,
    /// Outcomes that came after their round was imputed; they do not count.
    pub late: u64,
    /// Decisions outside the horizon; they do not count.
    pub overtime: u64,
    /// What was held back, and what the experiment gained over it; absent if the spec holds nothing back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holdback: Option<HoldbackState>,
    /// Epochs whose estimates left no strategy within the thresholds.
    pub infeasible: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// When it ended.
    pub ended_at: i64,
    /// When it was created, as ISO 8601.
    pub created: String,
    /// When it ended.
    pub ended: String,
    /// Who created, paused, resumed and closed it, and published its heads.
    pub history: Vec<HistoryEntry>,
    /// How to check it.
    pub verify: String,
}

/// An administrative change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// When, as ISO 8601.
    pub time: String,
    /// Who: the name of an API key.
    pub actor: String,
    /// What.
    pub what: String,
    /// Why, or where it was published, if that was said.
    pub reason: Option<String>,
}

/// Why an experiment that is over does not show its key. Nobody is to learn from it which experiment it is.
const WITHHELD: &str = "Another experiment of this store has the same key and is not over: anyone with the key could predict \
    its decisions. The key is shown here once all of them are over.";

/// What there is of an experiment: a certificate once it is over.
pub enum Certification {
    /// It is over.
    Over(Box<Certificate>),
    /// It goes on.
    Open(Box<(ExperimentRow, Progress)>),
}

impl Certificate {
    /// The certificate of an experiment; `None` if there is no such experiment. A shared key is shown if `reveal` says so, and to
    /// everyone once all experiments that have it are over.
    ///
    /// The reads must see one state: call it within a transaction.
    pub fn read(store: &mut Store, id: &str, reveal: bool) -> Result<Option<Certification>> {
        let Some((experiment, progress)) = store.experiment(id)? else {
            return Ok(None);
        };
        if progress.status.is_open() {
            return Ok(Some(Certification::Open(Box::new((experiment, progress)))));
        }
        let shown = reveal || is_revealed(store, experiment.key)?;
        let reading = Reading::from_row(store, experiment, progress)?;
        let certificate = Self::write(&reading, history(store, id)?)?;
        let certificate = if shown {
            certificate
        } else {
            certificate.withhold_key()
        };
        Ok(Some(Certification::Over(Box::new(certificate))))
    }

    fn write(reading: &Reading, history: Vec<HistoryEntry>) -> Result<Self> {
        let (id, key) = (reading.id(), reading.experiment.key);
        let (experiment, progress) = (&reading.experiment, &reading.progress);
        let ended_at = reading.closed_at.or(closed_by_hand(&history));
        let ended_at = ended_at.with_context(|| {
            format!("the end of experiment {id} is missing from the events of the store")
        })?;
        let outcomes = reading.outcomes();
        let plan = Plan::of(reading.spec.problem.clone());
        // The spec of a live experiment has no key: the fingerprint is that of the key it was run with.
        let mut keyed = reading.spec.clone();
        keyed.key = key;
        Ok(Self {
            id: id.to_owned(),
            name: reading.spec.name.clone(),
            status: progress.status,
            spec: experiment.spec.clone(),
            fingerprint: Some(keyed.fingerprint()),
            key: Some(key.to_hex()),
            salt: Some(hex::encode(&experiment.salt)),
            key_withheld: None,
            key_hash: chain::key_hash(experiment.salt, key),
            values_version: experiment.values_version,
            // The number of the open epoch is how many are closed; of a finished experiment the last one is closed, too.
            epochs: progress.epoch + u64::from(progress.status == Status::Done),
            rounds: outcomes.decided,
            horizon: reading.problem().horizon(),
            digest: progress.digest.clone(),
            head: progress.head.clone(),
            promised: promised(reading.name(), &plan),
            policy: reading.policy(),
            recommendation: reading.advice().clone(),
            means: reading.means().to_vec(),
            limits: reading.limits().to_vec(),
            intervals: METHODS,
            sample_ratio: reading.sample_ratio().clone(),
            contradictions: reading.contradictions(),
            actions: reading.actions(),
            told: outcomes.told,
            imputed: outcomes.imputed,
            outstanding: outcomes.outstanding,
            late: outcomes.late,
            overtime: outcomes.overtime,
            holdback: reading.holdback().cloned(),
            infeasible: progress.infeasible,
            created_at: experiment.created_at,
            ended_at,
            created: iso(experiment.created_at),
            ended: iso(ended_at),
            history,
            verify: verify(id, &progress.head),
        })
    }

    fn withhold_key(self) -> Self {
        Self {
            // A hash without salt: whole numbers, which were keys once, are found by trying.
            fingerprint: None,
            key: None,
            salt: None,
            key_withheld: Some(WITHHELD),
            ..self
        }
    }
}

fn history(store: &mut Store, id: &str) -> Result<Vec<HistoryEntry>> {
    let events = store.events(id, 0, usize::MAX)?;
    Ok(events.into_iter().map(HistoryEntry::from).collect())
}

/// When an experiment was closed by hand, which leaves its last epoch open.
fn closed_by_hand(history: &[HistoryEntry]) -> Option<i64> {
    // Not the last event: heads may be published afterwards.
    let closed = history.iter().find(|entry| entry.what == "closed");
    closed.map(|entry| entry.at)
}

impl From<Event> for HistoryEntry {
    fn from(event: Event) -> Self {
        Self {
            at: event.at,
            time: iso(event.at),
            actor: event.actor,
            what: event.what,
            reason: event.reason,
        }
    }
}

fn verify(id: &str, head: &str) -> String {
    format!(
        "Take the log of experiment {id} (GET /v1/experiments/{id}/log/download) and run `debora audit LOG --head {head}`. It recomputes every decision, estimate, strategy and hash from spec, key and outcomes, and \
         checks that SHA-256(salt, key) is the key_hash that was published before the first decision. Anyone who can \
         rewrite the whole log can also make new hashes: compare the head with one that was published or noted down while the \
         experiment went on. docs/audit.md says how every hash is made, so that another program can check it."
    )
}
