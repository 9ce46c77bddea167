//! The certificate of an experiment that is over: what it was, what it found, and all that is needed to check it.

use anyhow::{Context as _, Result};
use debora::measure::words::amount;
use debora::record::{Interval, Kind, Prospect};
use debora::spec::Spec;
use debora::{Engine, Key, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use crate::hex;
use crate::log::account::ToldAccount;
use crate::log::kept::{self, LimitState};
use crate::log::means::{self, ActionMean, IntervalMethods, METHODS};
use crate::log::observed::Observed;
use crate::log::sample_ratio::{self, SampleRatio};
use crate::log::{chain, check_values};
use crate::store::{Event, ExperimentRow, Progress, Status, Store};

/// Events read at once.
const CHUNK: usize = 1_000;

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
    /// What to deploy.
    pub recommendation: Recommended,
    /// Rounds per action.
    pub actions: Vec<ActionCounts>,
    /// Every mean as it was observed, beside the estimate that replicates.
    pub means: Vec<ActionMean>,
    /// Every cost's average beside its threshold: was the limit kept?
    pub limits: Vec<LimitState>,
    /// How the intervals of `means` and `limits` are made.
    pub intervals: IntervalMethods,
    /// Whether outcomes went missing more often after some actions than after others.
    pub sample_ratio: SampleRatio,
    /// Outcomes that came after their round was imputed; they do not count.
    pub late: u64,
    /// Decisions outside the horizon; they do not count.
    pub overtime: u64,
    /// Epochs whose estimates left no strategy within the thresholds.
    pub infeasible: u64,
    /// Declared means that the estimates contradict: then nothing that this certificate says is promised.
    pub false_means: Vec<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// When it ended.
    pub ended_at: i64,
    /// How to check it.
    pub verify: String,
}

/// The last strategy and the cautious one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommended {
    /// How the last strategy was found. While exploring it says nothing about which action is best.
    pub kind: Kind,
    /// The last strategy: the one that learns.
    #[serde(flatten)]
    pub current: KnownStrategy,
    /// The best strategy sure to keep every limit; `None` while nothing is estimated, or if no strategy is sure to.
    pub cautious: Option<KnownStrategy>,
}

/// A strategy, and what it is known to give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownStrategy {
    /// The probability of each action, in the order of `actions`.
    pub strategy: Vec<f64>,
    /// What it gives: the reward, then the costs. All intervals hold together with probability 1 - delta, given that
    /// imputed outcomes are taken for what happened.
    pub quantities: Vec<KnownQuantity>,
}

/// A quantity's expectation under a strategy, in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownQuantity {
    /// Its name.
    pub name: String,
    /// Where the expectation lies.
    pub interval: Interval,
    /// The threshold of a cost; under policy free it is stated and decides nothing.
    pub threshold: Option<f64>,
}

/// An action's counts: decided = told + imputed + outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ActionState)]
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
pub fn is_revealed(store: &mut dyn Store, key: Key) -> Result<bool> {
    let sharing = store.experiments_of_key(key)?;
    Ok(sharing
        .iter()
        .all(|(_, progress)| !progress.status.is_open()))
}

/// The certificate; `None` if there is no such experiment or it is not over. A shared key is shown if `reveal` says so, and to
/// everyone once all experiments that have it are over.
///
/// The reads must see one state: call it within a transaction.
pub fn of(store: &mut dyn Store, id: &str, reveal: bool) -> Result<Option<Certificate>> {
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
    // An experiment that was closed by hand leaves its last epoch open; then its last event is its end.
    let ended_at = match last.closed_at {
        Some(closed_at) => closed_at,
        None => last_event(store, id)?.at,
    };
    let shown = reveal || is_revealed(store, experiment.key)?;
    let observed = Observed::read(store, id, &progress, &engine)?;
    let certificate = document(experiment, progress, &engine, &observed, ended_at)?;
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

fn last_event(store: &mut dyn Store, id: &str) -> Result<Event> {
    // Stores read forwards only, and an experiment has few events: a method of the trait for the last one is not worth it.
    let (mut from, mut last) = (0, None);
    loop {
        let events = store.events(id, from, CHUNK)?;
        from += events.len() as u64;
        let complete = events.len() < CHUNK;
        last = events.into_iter().next_back().or(last);
        if complete {
            return last.with_context(|| {
                format!("the events of experiment {id} are missing from the store")
            });
        }
    }
}

fn document(
    experiment: ExperimentRow,
    progress: Progress,
    engine: &Engine,
    observed: &Observed,
    ended_at: i64,
) -> Result<Certificate> {
    let ExperimentRow {
        id,
        spec: text,
        key,
        salt,
        created_at,
        values_version,
    } = experiment;
    let mut spec = Spec::parse(&text, &id)?;
    // The spec of a live experiment has no key: the fingerprint is that of the key it was run with.
    spec.key = key;
    let done = progress.status == Status::Done;
    let account = ToldAccount::new(engine, &progress, observed, &spec.service)?;
    Ok(Certificate {
        fingerprint: Some(spec.fingerprint()),
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
        recommendation: Recommended::of(engine),
        actions: ActionCounts::of(engine.problem(), &progress),
        means: means::of(&account),
        limits: kept::of(&account),
        intervals: METHODS,
        sample_ratio: sample_ratio::check(&account),
        late: progress.late,
        overtime: progress.overtime,
        infeasible: progress.infeasible,
        false_means: false_means(engine),
        created_at,
        ended_at,
        verify: verify(&id, &progress.head),
        digest: progress.digest,
        head: progress.head,
        id,
    })
}

/// A cost's threshold in the user's units; `None` for the reward.
///
/// Policy free is no exception: what the spec says of a cost is shown, though it decides nothing there.
pub fn threshold(problem: &Problem, quantity: usize) -> Option<f64> {
    Some(problem.threshold(quantity.checked_sub(1)?))
}

/// The declared means that estimates contradict: their intervals lie outside, so unless an event of probability delta
/// happened the premise is false.
pub fn false_means(engine: &Engine) -> Vec<String> {
    let mut sentences = Vec::new();
    for estimate in engine.estimates() {
        let quantity = estimate.quantity as usize;
        let declared = engine.problem().means(quantity);
        let [low, high] = estimate.interval();
        // An interval that reaches into the declared means says nothing against them.
        if high >= declared.low && low <= declared.high {
            continue;
        }
        let name = &engine.problem().quantity(quantity).name;
        let action = &engine.problem().actions()[estimate.action as usize];
        let [low, high, declared_low, declared_high] = [low, high, declared.low, declared.high]
            .map(|unit| amount(engine.problem().quantity(quantity).range.to_user(unit)));
        sentences.push(format!(
            "The declared mean of {name} is false: {name} of {action:?} lies between {low} and {high}, and {declared_low} to \
             {declared_high} is declared. Nothing is promised then; start again with a wider range."
        ));
    }
    sentences
}

impl Recommended {
    /// What an engine recommends.
    pub fn of(engine: &Engine) -> Self {
        let problem = engine.problem();
        let recommendation = engine.recommendation();
        Self {
            kind: recommendation.kind,
            current: KnownStrategy::of(problem, recommendation.current),
            cautious: recommendation
                .cautious
                .map(|prospect| KnownStrategy::of(problem, prospect)),
        }
    }
}

impl KnownStrategy {
    fn of(problem: &Problem, prospect: Prospect) -> Self {
        let intervals = std::iter::once(prospect.reward).chain(prospect.costs);
        let quantities = intervals
            .enumerate()
            .map(|(quantity, interval)| KnownQuantity {
                name: problem.quantity(quantity).name.clone(),
                interval,
                threshold: threshold(problem, quantity),
            });
        Self {
            strategy: prospect.strategy,
            quantities: quantities.collect(),
        }
    }
}

fn verify(id: &str, head: &str) -> String {
    format!(
        "Take the log of experiment {id} (GET /v1/experiments/{id}/log, all pages, in order) and run `debora audit \
         LOG --head {head}`. It recomputes every decision, estimate, strategy and hash from spec, key and outcomes, and \
         checks that SHA-256(salt, key) is the key_hash that was published before the first decision. Anyone who can \
         rewrite the whole log can also make new hashes: compare the head with one that was published or noted down while the \
         experiment went on. docs/audit.md says how every hash is made, so that another program can check it."
    )
}
