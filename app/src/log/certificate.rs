//! The certificate of an experiment that is over: what it was, what it found, and all that is needed to check it.

use anyhow::{Context as _, Result};
use debora::spec::Spec;
use debora::{Engine, Key, Plan, Policy, Problem};
use serde::Serialize;

use crate::calendar::iso;
use crate::hex;
use crate::log::account::ToldAccount;
use crate::log::holdback::{self, HoldbackState};
use crate::log::kept::{self, LimitState};
pub use crate::log::known::{ActionShare, KnownQuantity, KnownStrategy, Recommended, threshold};
use crate::log::means::{self, ActionMean, IntervalMethods, METHODS};
use crate::log::observed::Observed;
use crate::log::sample_ratio::{self, SampleRatio};
use crate::log::seal::promised;
use crate::log::{chain, check_values};
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
    pub recommendation: Recommended,
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

/// An action's counts: decided = told + imputed + outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "describe", schema(as = ActionState))]
pub struct ActionCounts {
    /// Its number in the spec, from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// Rounds decided.
    pub decided: u64,
    /// Outcomes told; imputed ones are not among them.
    pub told: u64,
    /// Rounds whose outcome did not come in time.
    pub imputed: u64,
}

impl ActionCounts {
    /// Decided rounds without an outcome.
    pub fn outstanding(&self) -> u64 {
        // Saturating, as a damaged store may have told more than it decided: the audit says so.
        self.decided.saturating_sub(self.told + self.imputed)
    }

    /// Of every action, in the spec's order.
    pub fn of(problem: &Problem, progress: &Progress) -> Vec<Self> {
        let names = (0..).zip(problem.actions()).enumerate();
        names
            .map(|(place, (action, name))| Self {
                action,
                name: name.clone(),
                decided: progress.decided[place],
                told: progress.told(place),
                imputed: progress.imputed[place],
            })
            .collect()
    }
}

/// Why an experiment that is over does not show its key. Nobody is to learn from it which experiment it is.
const WITHHELD: &str = "Another experiment of this store has the same key and is not over: anyone with the key could predict \
    its decisions. The key is shown here once all of them are over.";

/// Whether a key can be shown to everyone: it tells all decisions to come of every experiment that has it.
pub fn is_revealed(store: &mut Store, key: Key) -> Result<bool> {
    let sharing = store.experiments_of_key(key)?;
    Ok(sharing
        .iter()
        .all(|(_, progress)| !progress.status.is_open()))
}

/// The certificate; `None` if there is no such experiment or it is not over. A shared key is shown if `reveal` says so, and to
/// everyone once all experiments that have it are over.
///
/// The reads must see one state: call it within a transaction.
pub fn of(store: &mut Store, id: &str, reveal: bool) -> Result<Option<Certificate>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    if progress.status.is_open() {
        return Ok(None);
    }
    // The recommendation is computed anew from the last snapshot, which belongs to its values version.
    check_values(&experiment)?;
    let last = store.epochs(id, progress.epoch, 1)?.into_iter().next();
    let last = last.with_context(|| {
        format!(
            "epoch {} of experiment {id} is missing from the store",
            progress.epoch
        )
    })?;
    let snapshot = last.snapshot.with_context(|| {
        format!("the last snapshot of experiment {id} is missing from the store")
    })?;
    let engine = Engine::from_bytes(&snapshot)?;
    let history = events(store, id)?;
    let ended_at = last.closed_at.or(closed_by_hand(&history));
    let ended_at = ended_at.with_context(|| {
        format!("the end of experiment {id} is missing from the events of the store")
    })?;
    let shown = reveal || is_revealed(store, experiment.key)?;
    let spec = Spec::parse(&experiment.spec, id)?;
    let observed = Observed::read(store, id, &progress, &engine)?;
    let account = ToldAccount::new(&engine, &progress, &observed, &spec.service)?;
    let certificate = document(experiment, spec, &account, ended_at, history);
    Ok(Some(if shown {
        certificate
    } else {
        certificate.withhold_key()
    }))
}

impl Certificate {
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

fn events(store: &mut Store, id: &str) -> Result<Vec<HistoryEntry>> {
    let events = store.events(id, 0, usize::MAX)?;
    Ok(events.into_iter().map(HistoryEntry::of).collect())
}

/// When an experiment was closed by hand, which leaves its last epoch open.
fn closed_by_hand(history: &[HistoryEntry]) -> Option<i64> {
    // Not the last event: heads may be published afterwards.
    let closed = history.iter().find(|entry| entry.what == "closed");
    closed.map(|entry| entry.at)
}

impl HistoryEntry {
    fn of(event: Event) -> Self {
        Self {
            at: event.at,
            time: iso(event.at),
            actor: event.actor,
            what: event.what,
            reason: event.reason,
        }
    }
}

fn document(
    experiment: ExperimentRow,
    mut spec: Spec,
    account: &ToldAccount<'_>,
    ended_at: i64,
    history: Vec<HistoryEntry>,
) -> Certificate {
    let ExperimentRow {
        id,
        spec: text,
        key,
        salt,
        created_at,
        values_version,
        ..
    } = experiment;
    let (engine, progress) = (account.engine, account.progress);
    // The spec of a live experiment has no key: the fingerprint is that of the key it was run with.
    spec.key = key;
    let limits = kept::of(account);
    let done = progress.status == Status::Done;
    let plan = Plan::of(spec.problem.clone());
    Certificate {
        fingerprint: Some(spec.fingerprint()),
        promised: promised(spec.name.as_deref().unwrap_or(&id), &plan),
        name: spec.name,
        status: progress.status,
        spec: text,
        key: Some(key.to_hex()),
        salt: Some(hex::encode(&salt)),
        key_withheld: None,
        key_hash: chain::key_hash(salt, key),
        values_version,
        // The number of the open epoch is how many are closed; of a finished experiment the last one is closed, too.
        epochs: progress.epoch + u64::from(done),
        rounds: progress.rounds(),
        horizon: spec.problem.horizon(),
        policy: spec.problem.policy(),
        recommendation: Recommended::of(engine),
        means: means::of(account),
        contradictions: kept::contradictions(spec.problem.policy(), &limits),
        limits,
        intervals: METHODS,
        sample_ratio: sample_ratio::check(account),
        told: progress.outcomes.iter().sum::<u64>() - progress.imputed.iter().sum::<u64>(),
        imputed: progress.imputed.iter().sum(),
        outstanding: progress.outstanding(),
        actions: ActionCounts::of(engine.problem(), progress),
        late: progress.late,
        overtime: progress.overtime,
        holdback: spec
            .service
            .holdback
            .map(|held_back| holdback::of(account, &held_back)),
        infeasible: progress.infeasible,
        created_at,
        ended_at,
        created: iso(created_at),
        ended: iso(ended_at),
        history,
        verify: verify(&id, &progress.head),
        digest: progress.digest.clone(),
        head: progress.head.clone(),
        id,
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
