//! The rows of a store. Times are milliseconds since 1970, passed in from outside.

use debora::Key;
use serde::{Deserialize, Serialize};

/// What an experiment is; never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentRow {
    /// Its name in addresses: lower-case letters, digits and dashes.
    pub id: String,
    /// The spec, as it was given.
    pub spec: String,
    /// The policy's key: secret until the experiment is over.
    pub key: Key,
    /// What the key is hashed with.
    pub salt: [u8; 16],
    /// When it was created.
    pub created_at: i64,
    /// The version of the values that it decides with.
    pub values_version: u32,
    /// The rule by which its first head was made: 1 of what is older than rule 2.
    pub rule: u32,
}

/// Whether an experiment decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It decides and learns.
    Running,
    /// It learns from outcomes that come in, and decides nothing.
    Paused,
    /// It was ended before its horizon, and can no longer change.
    Closed,
    /// All rounds of the horizon have their outcomes.
    Done,
}

impl Status {
    /// Whether outcomes still change something: neither closed nor done.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// What changes as an experiment goes on, but for its growing lists: one row, rewritten.
// Kept small and rewritten whole: it is the row that nodes lock, so one read gives all that a request depends on.
// Unknown fields are refused: the last line of a log is this row, and an audit must not pass over what it does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Whether it decides.
    pub status: Status,
    /// The open epoch, or the last.
    pub epoch: u64,
    /// The next round to be decided.
    pub next_round: u64,
    /// Rounds decided, per action.
    pub decided: Vec<u64>,
    /// Rounds with an outcome, told or imputed, per action. Stores and logs call it `told`, which here is what somebody told:
    /// see [`Progress::told`].
    #[serde(rename = "told")]
    pub outcomes: Vec<u64>,
    /// Rounds with an imputed outcome, per action.
    pub imputed: Vec<u64>,
    /// Those of them in closed epochs.
    pub imputed_before: Vec<u64>,
    /// Outcomes that came after their round was imputed.
    pub late: u64,
    /// Decisions outside the horizon, in all.
    pub overtime: u64,
    /// The serial of the open epoch's next one, from 1.
    pub next_serial: u64,
    /// Decisions held back from the experiment, in all.
    // Left out where there are none: what earlier programs wrote reads and hashes as it did.
    #[serde(default, skip_serializing_if = "is_none")]
    pub holdback: u64,
    /// The serial of the open epoch's next one, from 1.
    #[serde(default = "first_serial", skip_serializing_if = "is_first_serial")]
    pub next_holdback: u64,
    /// No round below waits to be imputed. Stores and logs call it `due_from`.
    #[serde(rename = "due_from")]
    pub impute_from: u64,
    /// Epochs, closed or open, whose estimates left no strategy within the thresholds.
    pub infeasible: u64,
    /// The newest hash of the chain: of the last closed epoch, or of what came after the end; before, of the spec and the
    /// key's hash. 64 hexadecimal digits.
    pub head: String,
    /// SHA-256 over the strategies of all closed epochs, as the engine gives it.
    pub digest: String,
    /// The position of the next uncounted outcome or event.
    #[serde(default)]
    pub next_position: u64,
    /// The hash over those that have a position, as 64 hexadecimal digits; empty before the first.
    #[serde(default)]
    pub journal: String,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

fn first_serial() -> u64 {
    1
}

fn is_first_serial(serial: &u64) -> bool {
    *serial == first_serial()
}

impl Progress {
    /// Rounds decided, over all actions.
    pub fn rounds(&self) -> u64 {
        self.next_round - 1
    }

    /// The next round to be decided, or the open epoch's next serial outside the horizon.
    pub fn next(&self, kind: DecisionKind) -> u64 {
        match kind {
            DecisionKind::Round => self.next_round,
            DecisionKind::Overtime => self.next_serial,
            DecisionKind::Holdback => self.next_holdback,
        }
    }

    /// Rounds of an action whose outcome somebody told: imputed ones are not among them.
    pub fn told(&self, action: usize) -> u64 {
        self.outcomes[action] - self.imputed[action]
    }

    /// Rounds that are decided and have no outcome.
    pub fn outstanding(&self) -> u64 {
        self.rounds() - self.outcomes.iter().sum::<u64>()
    }
}

/// What a list needs of an experiment: all but its spec, which may be a mebibyte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentLine {
    /// Its name in addresses.
    pub id: String,
    /// When it was created.
    pub created_at: i64,
    /// How far it is.
    pub progress: Progress,
}

/// An epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochRow {
    /// Its number, from 0.
    pub epoch: u64,
    /// The engine's record as JSON: with 0 rounds while it is open.
    pub record: String,
    /// The engine at its opening, which holds the key; of the open epoch, and of the last.
    pub snapshot: Option<Vec<u8>>,
    /// When it was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// SHA-256 over its rounds, as 64 hexadecimal digits; once closed.
    pub rounds_hash: Option<String>,
    /// The newest hash of the chain when it was closed; once closed.
    pub hash: Option<String>,
    /// SHA-256 over its leases; once closed. `None` if it was closed by rule 1.
    pub leases_hash: Option<String>,
    /// The position of the next uncounted outcome or event when it was closed. `None` if it was closed by rule 1.
    pub journal_end: Option<u64>,
    /// The hash over those before. `None` if it was closed by rule 1.
    pub journal: Option<String>,
}

/// What a decision counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionKind {
    /// A round of the horizon.
    Round,
    /// Outside the horizon, while its epoch waited: by the epoch's strategy, and counted nowhere.
    Overtime,
    /// Outside the experiment: the spec's one action for a share of requests, and counted nowhere.
    Holdback,
}

impl DecisionKind {
    /// All there are, in the order of the log.
    pub const ALL: [Self; 3] = [Self::Round, Self::Overtime, Self::Holdback];

    /// Its number in stores and hashes, where overtime was a truth value once.
    pub fn number(self) -> u8 {
        match self {
            Self::Round => 0,
            Self::Overtime => 1,
            Self::Holdback => 2,
        }
    }

    /// Its name in answers and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Overtime => "overtime",
            Self::Holdback => "holdback",
        }
    }
}

/// What one request was given: consecutive rounds of one epoch.
// One row per request, not per round: a request of ten thousand rounds would be ten thousand rows to write and to sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The epoch.
    pub epoch: u64,
    /// What the decisions count for.
    pub kind: DecisionKind,
    /// The first round, or serial.
    pub first: u64,
    /// The actions of this and the following rounds.
    pub actions: Vec<u32>,
    /// How many were asked for.
    pub asked: u64,
    /// What makes the request's repetition known.
    pub request_key: Option<String>,
    /// When.
    pub at: i64,
    /// What the store's [`WaitingClock`] showed.
    pub waited: i64,
    /// Who asked ([`super::Store::actor`]).
    pub actor: u64,
}

/// What came of a round, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeRow {
    /// The round.
    pub round: u64,
    /// The reward.
    pub reward: f64,
    /// The costs.
    pub costs: Vec<f64>,
    /// Whether nobody told it: it was put in after the longest wait.
    pub imputed: bool,
    /// When.
    pub at: i64,
    /// Who told it ([`super::Store::actor`]).
    pub actor: u64,
}

/// An outcome that is logged and never counted.
#[derive(Clone, Debug, PartialEq)]
pub struct UncountedOutcome {
    /// The epoch of a decision outside the horizon; 0 of a late outcome, whose round tells it.
    pub epoch: u64,
    /// Of which decision. One of a round came after the round was imputed.
    pub kind: DecisionKind,
    /// The serial, or the round.
    pub number: u64,
    /// The reward.
    pub reward: f64,
    /// The costs.
    pub costs: Vec<f64>,
    /// When.
    pub at: i64,
    /// Who told it ([`super::Store::actor`]).
    pub actor: u64,
    /// Its place among the experiment's uncounted outcomes and events, in the order stored; some numbers are left out. `None`
    /// of what is older than rule 2.
    pub position: Option<u64>,
}

/// What stands for the name of a key where none is needed, on the loopback address.
pub const KEYLESS: &str = "loopback";

/// Who does what nobody asked for: the service itself.
pub const ITSELF: &str = "debora";

/// An administrative change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: i64,
    /// The name of the API key it was done with; [`KEYLESS`] without one.
    pub actor: String,
    /// What: created, paused, resumed or closed.
    pub what: String,
    /// Why, if that was said.
    pub reason: Option<String>,
    /// Its place among the experiment's uncounted outcomes and events ([`UncountedOutcome::position`]).
    pub position: Option<u64>,
}

/// What has a position.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalRow {
    /// An uncounted outcome.
    Uncounted(UncountedOutcome),
    /// An event.
    Event(Event),
}

impl JournalRow {
    /// Its position.
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Uncounted(outcome) => outcome.position,
            Self::Event(event) => event.position,
        }
    }
}

/// What a caller may do; each role may do what those before it may.
// The order of the variants is the order of rights: `>=` decides what a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look, without keys.
    Read,
    /// Ask for decisions and tell outcomes.
    Decide,
    /// Everything.
    Admin,
}

impl Role {
    /// Its name in stores, documents and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decide => "decide",
            Self::Admin => "admin",
        }
    }
}

/// An API key, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What it is called.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// SHA-256 of it, as 64 hexadecimal digits. It has 256 random bits, so a slow hash would add nothing.
    pub hash: String,
    /// When it was made.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
    /// The ids of the experiments it is for; `None` for all.
    pub experiments: Option<Vec<String>>,
    /// When it was last used, to the minute or so; `None` if it never was.
    pub last_used_at: Option<i64>,
}

/// A person's stay on the pages, from log-in to log-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of its token, as 64 hexadecimal digits.
    pub hash: String,
    /// The name of the API key it was begun with: what that allows, it allows.
    pub key_name: String,
    /// When it ends by itself.
    pub expires_at: i64,
}

/// A node that began to serve the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRow {
    /// Counts the starts, from 1.
    pub incarnation: u64,
    /// What tells the process from all others: 32 hexadecimal digits.
    pub node: String,
    /// When.
    pub at: i64,
}

/// How long this store has been served: what missing outcomes are waited for by. It never jumps, as no clock of a day is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingClock {
    /// Milliseconds in which outcomes could be told.
    pub waited: i64,
    /// When it was last moved on, by the clock that all nodes share.
    pub read_at: i64,
}

/// An experiment's row as it is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// How far it is, as JSON: whoever wrote this text need not read it.
    pub progress: String,
    /// What the [`WaitingClock`] shows when a missing outcome may be due; `None` while nothing can be.
    pub due: Option<i64>,
    /// What was observed so far, as JSON; `None` if nobody has summed it up yet.
    pub observed: Option<String>,
}

/// How many rows an experiment has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Epochs.
    pub epochs: u64,
    /// Leases, overtime and holdback too.
    pub leases: u64,
    /// Outcomes that count.
    pub outcomes: u64,
    /// Late outcomes, and those of overtime and holdback.
    pub uncounted: u64,
    /// Events.
    pub events: u64,
}
