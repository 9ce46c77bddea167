//! What can be asked of an experiment, what it answers, and why it refuses.
//!
//! ```text
//! Decide, Tell, .. ─► Request ─► the experiment's turn ─► Granted ─► what Decide, Tell, .. are answered with
//! ```
//!
//! What is asked of the store as a whole is a [`StoreRequest`](of_store::StoreRequest): it waits for no experiment's turn.

mod granted;
pub mod of_store;
mod refusal;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use debora::Key;
use sha2::{Digest as _, Sha256};

pub use granted::{Decided, EpochLabels, FlagAdvice, FlagReply, Granted, Receipt};
pub use refusal::{Refusal, RefusalLine};

use crate::hex;
use crate::log::ROUNDS_MAX;
use crate::service::random::random;
use crate::store::{DecisionKind, Progress, Status};

/// The longest request key and the longest id, in bytes: room for three UUIDs, and little to store with every lease.
pub const NAME_MAX: usize = 128;

/// Whether an experiment can have this id.
pub fn is_id(id: &str) -> bool {
    // What can stand in an address and in a file's name without being escaped.
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&id.len()) && id.bytes().all(allowed)
}

/// An id for an experiment that was given none.
pub fn draw_id() -> Result<String> {
    // 64 random bits: the ids of a million experiments collide with probability 3e-8.
    Ok(hex::encode(&random::<8>()?))
}

/// What a store keeps of a token.
pub fn token_hash(token: &str) -> String {
    // Nothing in memory or on the disk is worth stealing. Tokens have 256 random bits, so a slow hash would add nothing.
    hex::encode(&Sha256::digest(token))
}

/// A change of an experiment, or a question whose answer must be durable. Time is passed in beside it.
#[derive(Clone, Debug)]
pub enum Request {
    /// A new experiment.
    Create(Create),
    /// Decisions for up to so many rounds.
    Decide(Decide),
    /// A flag: one decision for good, answered in every state of the experiment.
    Evaluate(Evaluate),
    /// Outcomes.
    Tell(Tell),
    /// Outcomes, some of which say whose decision they are of and not which.
    TellKeyed(TellKeyed),
    /// An administrative change.
    Change(MakeChange),
    /// The newest head is published.
    Publish(Publish),
    /// Imputes what is due. A request like the others, so that it takes its turn with the writer.
    Tick(Tick),
}

/// A request with a type of its own for its answer.
pub trait ExperimentRequest: Into<Request> {
    /// What it is answered with.
    type Reply;

    /// The answer, if this is what was granted.
    fn reply(granted: Granted) -> Option<Self::Reply>;
}

/// Decisions for up to this many rounds.
#[derive(Clone, Debug)]
pub struct Decide {
    /// The experiment.
    pub id: String,
    /// How many, from 1 to [`ROUNDS_MAX`].
    pub rounds: u64,
    /// The same key gets the same rounds again.
    pub request_key: Option<String>,
    /// The highest round that the caller has seen decided; 0 if none.
    pub seen: u64,
    /// Who asks.
    pub actor: Arc<str>,
}

/// A flag: one decision for good.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// The experiment.
    pub id: String,
    /// Whose flag it is.
    pub request_key: String,
    /// Who asks.
    pub actor: Arc<str>,
}

/// Outcomes of decisions.
#[derive(Clone, Debug)]
pub struct Tell {
    /// The experiment.
    pub id: String,
    /// In any order.
    pub outcomes: Vec<ToldOutcome>,
    /// Who tells them.
    pub actor: Arc<str>,
}

/// Outcomes, some of which say whose decision they are of and not which.
#[derive(Clone, Debug)]
pub struct TellKeyed {
    /// The experiment.
    pub id: String,
    /// In any order; where a key says which, they have [`DecisionId::UNKNOWN`].
    pub outcomes: Vec<ToldOutcome>,
    /// Those that say whose.
    pub keyed: Vec<KeyedOutcome>,
    /// Who tells them.
    pub actor: Arc<str>,
}

/// An administrative change that somebody makes.
#[derive(Clone, Debug)]
pub struct MakeChange {
    /// The experiment.
    pub id: String,
    /// What to do.
    pub change: Change,
    /// Who does it.
    pub actor: String,
    /// Why, if that is said.
    pub reason: Option<String>,
}

/// Notes that the newest head is published.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The experiment.
    pub id: String,
    /// Where.
    pub address: String,
    /// Who does it.
    pub actor: String,
}

/// Imputes what is due in an experiment.
#[derive(Clone, Debug)]
pub struct Tick {
    /// The experiment.
    pub id: String,
}

/// Says of each request what it is answered with.
macro_rules! asks {
    ($($request:ident($ask:ident) -> $reply:ty { $($granted:pat => $value:expr),+ })+) => {$(
        impl From<$ask> for Request {
            fn from(ask: $ask) -> Self {
                Self::$request(ask)
            }
        }

        impl ExperimentRequest for $ask {
            type Reply = $reply;

            fn reply(granted: Granted) -> Option<Self::Reply> {
                match granted {
                    $($granted => Some($value),)+
                    _ => None,
                }
            }
        }
    )+};
}

asks! {
    // Whether this very experiment was there before.
    Create(Create) -> bool { Granted::Created { repeated } => repeated }
    Decide(Decide) -> Decided { Granted::Decided(decided) => decided }
    Evaluate(Evaluate) -> FlagReply {
        Granted::Decided(decided) => FlagReply::Decided(decided),
        Granted::Recommended(advice) => FlagReply::Advised(advice)
    }
    Tell(Tell) -> Vec<Receipt> { Granted::Told(receipts) => receipts }
    TellKeyed(TellKeyed) -> Vec<Receipt> { Granted::Told(receipts) => receipts }
    Change(MakeChange) -> Status { Granted::Changed(status) => status }
    // The head.
    Publish(Publish) -> String { Granted::Published { head } => head }
    // How many rounds were imputed.
    Tick(Tick) -> u64 { Granted::Ticked(rounds) => rounds }
}

impl Request {
    /// The experiment that it is about.
    pub fn id(&self) -> &str {
        match self {
            Self::Create(Create { id, .. })
            | Self::Decide(Decide { id, .. })
            | Self::Evaluate(Evaluate { id, .. })
            | Self::Tell(Tell { id, .. })
            | Self::TellKeyed(TellKeyed { id, .. })
            | Self::Change(MakeChange { id, .. })
            | Self::Publish(Publish { id, .. })
            | Self::Tick(Tick { id }) => id,
        }
    }

    /// Who asks or tells, if the rows that it writes are to say so.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Decide(Decide { actor, .. })
            | Self::Evaluate(Evaluate { actor, .. })
            | Self::Tell(Tell { actor, .. })
            | Self::TellKeyed(TellKeyed { actor, .. }) => Some(actor),
            // Events have the name itself: there are few.
            _ => None,
        }
    }

    /// About how many rows it reads or writes.
    pub fn rows(&self) -> u64 {
        match self {
            // One lease, in fact, but what a request costs grows with its rounds.
            // More are refused, so that asking for them takes nobody's room.
            Self::Decide(decide) => decide.rounds.min(ROUNDS_MAX),
            Self::Tell(tell) => tell.outcomes.len() as u64,
            // A lease is read for each of these.
            Self::TellKeyed(tell) => (tell.outcomes.len() + tell.keyed.len()) as u64,
            _ => 1,
        }
    }
}

/// What a new experiment is made of.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its name in addresses. The request can be repeated with the same one.
    pub id: String,
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
