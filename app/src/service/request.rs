//! What can be asked of the service, what it answers, and why it refuses.

use std::fmt;
use std::sync::{Arc, OnceLock};

use debora::Key;
use debora::measure::words::listed;
use debora::spec::SpecError;
use sha2::{Digest as _, Sha256};

use crate::calendar::utc;
use crate::hex;
use crate::log::{OtherValues, ROUNDS_MAX};
use crate::service::keys::{KEY_NAME_MAX, NewKey};
use crate::service::limits::{self, ESTIMATES_MAX};
use crate::service::webhooks::WebhookRefusal;
use crate::service::webhooks::outbox::{OutboxGranted, OutboxRequest};
use crate::store::{DecisionKind, ITSELF, KEYLESS, Lease, Progress, Status};

/// The longest request key and the longest id, in bytes: room for three UUIDs, and little to store with every lease.
pub const NAME_MAX: usize = 128;

/// Whether an experiment can have this id.
pub fn is_id(id: &str) -> bool {
    // What can stand in an address and in a file's name without being escaped.
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&id.len()) && id.bytes().all(allowed)
}

/// What a store keeps of a token.
pub fn token_hash(token: &str) -> String {
    // Nothing in memory or on the disk is worth stealing. Tokens have 256 random bits, so a slow hash would add nothing.
    hex::encode(&Sha256::digest(token))
}

/// A change, or a question whose answer must be durable. Time is passed in beside it.
#[derive(Clone, Debug)]
pub enum Request {
    /// A new experiment.
    Create(Create),
    /// Decisions for up to this many rounds.
    Decide {
        /// The experiment.
        id: String,
        /// How many, from 1 to [`ROUNDS_MAX`].
        rounds: u64,
        /// The same key gets the same rounds again.
        request_key: Option<String>,
        /// The highest round that the caller has seen decided; 0 if none.
        seen: u64,
        /// Who asks.
        actor: Arc<str>,
    },
    /// A flag: one decision for good, answered in every state of the experiment.
    Evaluate {
        /// The experiment.
        id: String,
        /// Whose flag it is.
        request_key: String,
        /// Who asks.
        actor: Arc<str>,
    },
    /// Outcomes.
    Tell {
        /// The experiment.
        id: String,
        /// In any order.
        outcomes: Vec<ToldOutcome>,
        /// Who tells them.
        actor: Arc<str>,
    },
    /// Outcomes, some of which say whose decision they are of and not which.
    TellKeyed {
        /// The experiment.
        id: String,
        /// In any order; where a key says which, they have [`DecisionId::UNKNOWN`].
        outcomes: Vec<ToldOutcome>,
        /// Those that say whose.
        keyed: Vec<KeyedOutcome>,
        /// Who tells them.
        actor: Arc<str>,
    },
    /// An administrative change.
    Change {
        /// The experiment.
        id: String,
        /// What to do.
        change: Change,
        /// Who does it.
        actor: String,
        /// Why, if that is said.
        reason: Option<String>,
    },
    /// The newest head is published.
    Publish {
        /// The experiment.
        id: String,
        /// Where.
        address: String,
        /// Who does it.
        actor: String,
    },
    /// A session of the pages begins.
    LogIn {
        /// The name of the key that it stands for.
        key_name: Arc<str>,
    },
    /// A session ends.
    LogOut {
        /// Of its token ([`token_hash`]).
        hash: String,
    },
    /// A new API key.
    AddKey {
        /// What it is to be.
        new: NewKey,
        /// Whether the caller has a key.
        keyed: bool,
    },
    /// An API key ends.
    RevokeKey {
        /// What it is called.
        name: String,
    },
    /// Something about webhooks.
    Outbox(OutboxRequest),
    /// Imputes what is due. A request like the others, so that it takes its turn with the writer.
    Tick {
        /// The experiment.
        id: String,
    },
}

impl Request {
    /// The experiment it is about; nothing for a new one whose id is to be drawn, for a session and for a key.
    pub fn id(&self) -> &str {
        match self {
            // New ones without an id share a group of their own, under an id that nothing can have.
            Self::Create(create) => create.id.as_deref().unwrap_or_default(),
            Self::LogIn { .. }
            | Self::LogOut { .. }
            | Self::AddKey { .. }
            | Self::RevokeKey { .. }
            | Self::Outbox(_) => "",
            Self::Decide { id, .. }
            | Self::Evaluate { id, .. }
            | Self::Tell { id, .. }
            | Self::TellKeyed { id, .. }
            | Self::Change { id, .. }
            | Self::Publish { id, .. }
            | Self::Tick { id } => id,
        }
    }

    /// Who asks or tells, if the rows that it writes are to say so.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Decide { actor, .. }
            | Self::Evaluate { actor, .. }
            | Self::Tell { actor, .. }
            | Self::TellKeyed { actor, .. } => Some(actor),
            // Events have the name itself: there are few.
            _ => None,
        }
    }

    /// About how many rows it reads or writes.
    pub fn rows(&self) -> u64 {
        match self {
            // One lease, in fact, but what a request costs grows with its rounds.
            // More are refused, so that asking for them takes nobody's room.
            Self::Decide { rounds, .. } => (*rounds).min(ROUNDS_MAX),
            Self::Tell { outcomes, .. } => outcomes.len() as u64,
            // A lease is read for each of these.
            Self::TellKeyed {
                outcomes, keyed, ..
            } => (outcomes.len() + keyed.len()) as u64,
            _ => 1,
        }
    }
}

/// What a new experiment is made of.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its name in addresses; drawn by default. With an id the request can be repeated.
    pub id: Option<String>,
    /// The spec, without world and key.
    pub spec: String,
    /// The key; drawn by default.
    pub key: Option<Key>,
    /// Whether a blind plan is accepted.
    pub blind: bool,
    /// Who does it.
    pub actor: String,
}

/// An administrative change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Decide nothing until resumed; outcomes are still taken.
    Pause,
    /// Decide again.
    Resume,
    /// End before the horizon, for good.
    Close,
}

/// What came of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldOutcome {
    /// Which decision.
    pub decision: DecisionId,
    /// The reward, in the user's units.
    pub reward: f64,
    /// The costs, in the spec's order.
    pub costs: Vec<f64>,
}

/// A decision's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionId {
    /// A round of the horizon.
    Round(u64),
    /// A decision served while its epoch waited.
    Overtime {
        /// The epoch.
        epoch: u64,
        /// The serial, from 1.
        serial: u64,
    },
    /// A decision that was held back from the experiment.
    Holdback {
        /// The epoch in whose time it was served.
        epoch: u64,
        /// The serial, from 1.
        serial: u64,
    },
}

impl DecisionId {
    /// Of a decision outside the horizon: its kind, epoch and serial.
    pub fn uncounted(self) -> Option<(DecisionKind, u64, u64)> {
        match self {
            Self::Round(_) => None,
            Self::Overtime { epoch, serial } => Some((DecisionKind::Overtime, epoch, serial)),
            Self::Holdback { epoch, serial } => Some((DecisionKind::Holdback, epoch, serial)),
        }
    }

    /// A decision that is never made: rounds count from 1.
    pub const UNKNOWN: Self = Self::Round(0);
}

/// An outcome that says whose decision it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedOutcome {
    /// Its place among the request's outcomes.
    pub place: usize,
    /// The request key that the decision was given to.
    pub request_key: String,
    /// Which of the decisions that the key was given, from 0; may be left out if that is one.
    pub index: Option<u64>,
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Round(round) => write!(f, "round {round}"),
            Self::Overtime { epoch, serial } => write!(f, "overtime {serial} of epoch {epoch}"),
            Self::Holdback { epoch, serial } => write!(f, "holdback {serial} of epoch {epoch}"),
        }
    }
}

/// What was done.
#[derive(Clone, Debug)]
pub enum Granted {
    /// The experiment is there.
    Created {
        /// Its name.
        id: String,
        /// Whether this very experiment was there before.
        repeated: bool,
    },
    /// Decisions; the same again for the same request key.
    Decided(Decided),
    /// The flag of somebody whom an experiment that is over, or paused, has given nothing.
    Recommended(FlagAdvice),
    /// A receipt for each outcome, in the order told.
    Told(Vec<Receipt>),
    /// The status after an administrative change.
    Changed(Status),
    /// The log says that this head is published.
    Published {
        /// The head.
        head: String,
    },
    /// The token of a session, which is stored nowhere: 64 hexadecimal digits.
    LoggedIn(String),
    /// The session is over.
    LoggedOut,
    /// An API key, which is stored nowhere.
    KeyAdded(String),
    /// The API key is revoked.
    KeyRevoked,
    /// What was asked about webhooks is done.
    Outbox(OutboxGranted),
    /// How many rounds were imputed.
    Ticked(u64),
}

/// Decisions, with what is needed to answer them.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The rounds and actions.
    pub lease: Lease,
    /// The names and probabilities that go with their actions.
    pub labels: Arc<EpochLabels>,
    /// Whether they were handed out before.
    pub repeated: bool,
}

/// What an experiment that is over, or paused, says to those whom it has given nothing.
#[derive(Clone, Debug)]
pub struct FlagAdvice {
    /// The action to play; `None` if nothing is recommended.
    pub action: Option<u32>,
    /// The last epoch.
    pub epoch: u64,
    /// Its actions and its strategy, which is what is recommended.
    pub labels: Arc<EpochLabels>,
    /// How it ended, or that it is paused.
    pub status: Status,
}

/// What an epoch's answers say beside the number of an action, shared by all of them. Decisions are not drawn from this, but
/// from the engine's strategy.
#[derive(Clone, Debug)]
pub struct EpochLabels {
    /// The names of the actions.
    pub actions: Vec<String>,
    /// The probability of each.
    pub strategy: Vec<f64>,
    /// The most decisions in an answer.
    pub decisions_max: u64,
    /// The part of an answer's text that only depends on the action, made by the first answer that needs it.
    pub per_action: OnceLock<Vec<String>>,
}

impl EpochLabels {
    /// Of a strategy over actions with these names.
    pub fn new(actions: Vec<String>, strategy: Vec<f64>) -> Self {
        Self {
            decisions_max: limits::decisions_max(&actions),
            actions,
            strategy,
            per_action: OnceLock::new(),
        }
    }

    /// Of one action alone.
    pub fn certain(actions: Vec<String>, action: u32) -> Self {
        let numbers = 0..actions.len() as u32;
        let strategy = numbers.map(|number| f64::from(u8::from(number == action)));
        let strategy = strategy.collect();
        Self::new(actions, strategy)
    }
}

/// What became of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Receipt {
    /// It counts.
    Recorded,
    /// The same was told before; it counts once.
    Repeated,
    /// Something else was told before; the first stays.
    Conflict,
    /// No such round was decided.
    Unknown,
    /// Its round had been imputed: it is logged and does not count.
    Late,
    /// Its decision was outside the horizon: it is logged and does not count.
    Overtime,
    /// Its decision was held back from the experiment: it is logged, and only compared with it.
    Holdback,
}

impl Receipt {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::Repeated,
        Self::Conflict,
        Self::Unknown,
        Self::Late,
        Self::Overtime,
        Self::Holdback,
    ];

    /// Its name, as it is answered.
    pub fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Repeated => "repeated",
            Self::Conflict => "conflict",
            Self::Unknown => "unknown",
            Self::Late => "late",
            Self::Overtime => "overtime",
            Self::Holdback => "holdback",
        }
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No such experiment.
    #[error("there is no experiment {id:?}; GET /v1/experiments lists them")]
    NoExperiment { id: String },
    /// An id with other characters, or too long.
    #[error("id {id:?} must be 1 to {NAME_MAX} lower-case letters, digits and dashes")]
    IdText { id: String },
    /// Another experiment has this id.
    #[error(
        "id {id:?} belongs to another experiment; choose another, or leave it out to have one drawn"
    )]
    IdTaken { id: String },
    /// A spec that cannot be read.
    #[error("{0}")]
    Spec(SpecError),
    /// A spec with `[world]`.
    #[error("the spec has a [world], but a live experiment's world is real; remove the section")]
    World,
    /// A spec with a key.
    #[error(
        "the spec gives the key, but everyone may read the spec; remove it, and send \"key\" beside the spec or let one be drawn"
    )]
    KeyInSpec,
    /// A name of the experiment, an action, the reward or a cost that is too long or has control characters.
    #[error(
        "the name {name:?} has {bytes} bytes; names must be 1 to {NAME_MAX} bytes long and contain no control characters: shorten \
         it, and keep what it stands for elsewhere"
    )]
    Name { name: String, bytes: usize },
    /// Too many actions for its costs.
    #[error(
        "{estimates} estimates, which are actions times quantities (the reward and the costs), are more than {ESTIMATES_MAX}; \
         use fewer actions, or fewer costs"
    )]
    Estimates { estimates: usize },
    /// A text that is too long.
    #[error("{what} has {bytes} bytes, and may have {most}; shorten it")]
    TooLong {
        what: &'static str,
        bytes: usize,
        most: usize,
    },
    /// A reason with control characters.
    #[error("the reason contains control characters; send plain text")]
    ReasonText,
    /// A blind plan.
    #[error("{0} Send \"blind\": true to run it anyway.")]
    Blind(String),
    /// Rounds outside 1 to the most.
    #[error(
        "n = {rounds} is outside 1 to {ROUNDS_MAX}; ask for at least one, and for more in several requests"
    )]
    Rounds { rounds: u64 },
    /// A request key that is empty, too long, or has control characters, which PostgreSQL cannot all keep.
    #[error(
        "request_key {request_key:?} must be 1 to {NAME_MAX} bytes long and contain no control characters"
    )]
    RequestKey { request_key: String },
    /// A request without a key, of an experiment that holds some back by theirs.
    #[error(
        "experiment {id:?} holds some requests back by their request_key, and this one has none; send a request_key, the same for \
         the same user"
    )]
    RequestKeyNeeded { id: String },
    /// A request key that was used for another number of rounds.
    #[error(
        "request_key {request_key:?} was used with n = {asked} before and now comes with n = {rounds}; use a fresh key for another request"
    )]
    RequestKeyUsed {
        request_key: String,
        asked: u64,
        rounds: u64,
    },
    /// An outcome that does not say which of its key's decisions it is of, or names one that the key was not given.
    #[error("outcome {place}: request_key {request_key:?} was given {rounds} decisions, {}", which(*index))]
    OutcomeIndex {
        place: usize,
        request_key: String,
        rounds: u64,
        index: Option<u64>,
    },
    /// The caller has seen a round that this store has not decided.
    #[error(
        "you have seen round {seen} of experiment {id:?} decided, but this store has decided {decided}: it is behind, as one restored or a copy is; nothing is handed out, since rounds would be decided twice. Bring back the store that decided them, or close this experiment"
    )]
    Behind { id: String, seen: u64, decided: u64 },
    /// The epoch is fully decided.
    #[error(
        "all rounds of epoch {epoch} are decided, and {outstanding} outcomes are outstanding; tell them, or ask again later"
    )]
    Waiting { epoch: u64, outstanding: u64 },
    /// It decides nothing while paused.
    #[error(
        "experiment {id:?} is paused; outcomes are still taken, and decisions continue once it is resumed"
    )]
    Paused { id: String },
    /// The store is behind what was acknowledged. It is paused.
    #[error("experiment {id:?} is paused: {lost}")]
    WentBack { id: String, lost: String },
    /// It was begun by a program with other values.
    #[error("{0}")]
    OtherValues(#[from] OtherValues),
    /// It was ended.
    #[error("experiment {id:?} is closed; it can no longer be changed")]
    Closed { id: String },
    /// All rounds are told.
    #[error(
        "all {horizon} rounds of experiment {id:?} are decided and told; deploy its recommendation"
    )]
    Done { id: String, horizon: u64 },
    /// A name that a key cannot have.
    #[error(
        "{name:?} cannot be a key's name; give up to {KEY_NAME_MAX} letters, digits and - _ . @, not one or two dots alone (and neither {KEYLESS:?}, which \
         stands for callers without a key, nor {ITSELF:?}, which is what the service calls itself)"
    )]
    KeyName { name: String },
    /// A key has, or had, this name.
    #[error("there is, or was, a key named {name:?}; choose another name")]
    KeyTaken { name: String },
    /// No key has this name.
    #[error("there is no key {name:?}; there are {}", if names.is_empty() { "no keys".into() } else { listed(names) })]
    NoKeyNamed { name: String, names: Vec<String> },
    /// It was revoked before.
    #[error("key {name:?} was already revoked at {} UTC", utc(*at))]
    KeyRevoked { name: String, at: i64 },
    /// Without this key nobody could make another.
    #[error(
        "key {name:?} is the last admin key for all experiments, and without one nobody could make another here; make another \
         first, or revoke it where the store is, with `debora keys revoke`"
    )]
    LastAdmin { name: String },
    /// The first key must be able to make others.
    #[error(
        "the first key must have role admin for all experiments, as every request needs a key from then on and nobody could \
         make another here; make it so, or use `debora keys add` where the store is"
    )]
    FirstKey,
    /// Someone else has made the first key meanwhile.
    #[error("there are API keys by now, so this needs one; log in, or send it")]
    KeyNeeded,
    /// Something about webhooks.
    #[error("{0}")]
    Webhook(WebhookRefusal),
    /// An outcome with a value that the problem refuses. None of the request's outcomes is recorded.
    #[error("outcome {index}: {error}")]
    Outcome { index: usize, error: debora::Error },
    /// The store failed. What was asked may or may not have happened: repeat it.
    #[error("the store failed; repeat the request")]
    Store { detail: String },
    /// It waited too long for the writer, or too much waits already. It was not carried out, and never will be.
    #[error("the service is overloaded, and the request was not carried out; repeat it later")]
    Busy,
    /// The service is shutting down.
    #[error("the service is shutting down; repeat the request elsewhere or later")]
    Stopping,
}

/// What is wrong with the number of a decision among those of its key.
fn which(index: Option<u64>) -> String {
    match index {
        None => "and the outcome does not say of which it is; give its index, from 0".to_owned(),
        Some(index) => {
            format!("and there is no index {index} among them; give one of theirs, from 0")
        }
    }
}

/// The progress of a fresh experiment.
pub(super) fn beginning(actions: usize, head: String, digest: String) -> Progress {
    Progress {
        status: Status::Running,
        // Epochs count from 0 and rounds from 1, as in the papers.
        epoch: 0,
        next_round: 1,
        decided: vec![0; actions],
        outcomes: vec![0; actions],
        imputed: vec![0; actions],
        imputed_before: vec![0; actions],
        late: 0,
        overtime: 0,
        next_serial: 1,
        holdback: 0,
        next_holdback: 1,
        impute_from: 1,
        infeasible: 0,
        head,
        digest,
        next_position: 0,
        journal: String::new(),
    }
}
