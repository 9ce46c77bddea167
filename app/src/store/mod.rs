//! What a live experiment leaves behind: rows, and where they are kept.
//!
//! ```text
//! experiment ── progress      one small row that every change of the experiment locks and rewrites
//!     ├── epochs              strategy and estimates when opened; rounds and hash when closed
//!     ├── leases              decisions, one row per request: first round, actions
//!     ├── outcomes            what was told or imputed, one row per round; the first stays
//!     ├── uncounted outcomes  logged, never counted: late outcomes, and outcomes of overtime and holdback
//!     └── events              who created, paused, resumed, closed it
//! beside them: the store's identity, its starts and its waiting clock, the names of actors, API keys, sessions,
//! webhooks and what waits to be sent to them
//! ```
//!
//! Stores know rows, not what they mean: what may happen is the same for all of them, and decided elsewhere. Everything is
//! written within a transaction, and a commit is on the disk when [`Store::commit`] returns.

mod codec;
pub mod copy;
mod database;
mod failure;
mod foreign;
pub mod outbox;
pub mod postgres;
pub mod rows;
pub mod schema;
mod sql;
pub mod sqlite;
mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use debora::Key;

pub use codec::parse_progress;
pub use failure::{Failure, FileMoved};
pub use outbox::{Deliveries, Outbox, Webhook, WebhookCursor, WebhookMessage, WebhookSecret};
pub use rows::{
    ApiKey, DecisionKind, EpochRow, Event, ExperimentLine, ExperimentRow, ITSELF, JournalRow,
    KEYLESS, Lease, Locked, OutcomeRow, Progress, Role, RowCounts, Session, StartRow, Status,
    UncountedOutcome, WaitingClock,
};
use sql::Sql;

/// The version of the schema that this program writes. Migrations lead here from every earlier one.
pub const SCHEMA_VERSION: u32 = 3;

/// One connection to a store. A node has one that writes, and others that read.
// No method takes or gives a borrowed row: a reader's lines must outlive its connection's next statement.
pub trait Store: Outbox + Send {
    /// Begins a transaction. Reads outside one see what is committed; writes outside one are errors.
    fn begin(&mut self) -> Result<()>;
    /// Makes the transaction's writes durable: they are on the disk when this returns. After an error the transaction is
    /// over, and was kept whole or not at all: not at all if something failed within it before.
    fn commit(&mut self) -> Result<()>;
    /// Forgets the transaction's writes, if one is open.
    fn rollback(&mut self);
    /// Ends a server's connection and leaves a file that is whole by itself; an error if it is not.
    fn close(self: Box<Self>) -> Result<()>;
    /// Changes a value that means nothing, for a commit that has something to make durable.
    fn touch(&mut self) -> Result<()>;
    /// The clock that all nodes share, in milliseconds since 1970, as it was when the transaction began. `None` where one server
    /// alone has the store, and its own clock serves.
    fn now(&self) -> Option<i64>;
    /// Another number than before if the connection was made again, or leads to another server: what was read and even committed
    /// before may not be there.
    fn connection(&self) -> u64;

    /// How much room its tables take, in bytes.
    fn size(&mut self) -> Result<u64>;
    /// What tells this store from others, and not from its copies: 32 hexadecimal digits. `None` before the first start.
    fn identity(&mut self) -> Result<Option<String>>;
    /// Sets it, unless it is set.
    fn set_identity(&mut self, identity: &str) -> Result<()>;
    /// Notes that a node starts to serve the store; gives the number of the start, one more than the last.
    fn add_start(&mut self, node: &str, at: i64) -> Result<u64>;
    /// The starts from this number on, in order.
    fn starts(&mut self, from: u64) -> Result<Vec<StartRow>>;
    /// How long the store has been served; within a transaction no other node changes it until the end.
    fn waiting_clock(&mut self) -> Result<WaitingClock>;
    /// Moves it on.
    fn set_waiting_clock(&mut self, clock: &WaitingClock) -> Result<()>;

    /// Experiments in the order in which they were created, or in the opposite one: those after this one, or from the first.
    fn experiments(
        &mut self,
        after: Option<&str>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<(ExperimentRow, Progress)>>;
    /// The same without specs; of some ids alone, if they are given.
    fn lines(
        &mut self,
        among: Option<&[String]>,
        after: Option<&str>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<ExperimentLine>>;
    /// The experiments that share a key.
    fn experiments_of_key(&mut self, key: Key) -> Result<Vec<(ExperimentRow, Progress)>>;
    /// One experiment.
    fn experiment(&mut self, id: &str) -> Result<Option<(ExperimentRow, Progress)>>;
    /// Its progress; within a transaction no other node changes it until the end.
    fn lock(&mut self, id: &str) -> Result<Option<Locked>>;
    /// What was observed so far, as JSON; `None` if nobody has summed it up yet.
    fn observed(&mut self, id: &str) -> Result<Option<String>>;
    /// The ids of experiments where an outcome may be due by now, as the [`WaitingClock`] shows it; the longest due first.
    fn due(&mut self, waited: i64, limit: usize) -> Result<Vec<String>>;
    /// Its epochs from this number on, in order.
    fn epochs(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<EpochRow>>;
    /// What requests with these keys were given, in any order.
    fn leases_of(&mut self, id: &str, request_keys: &[&str]) -> Result<Vec<Lease>>;
    /// Leases of an epoch that end at or after this round (or serial, outside the horizon), in order.
    fn leases(
        &mut self,
        id: &str,
        epoch: u64,
        kind: DecisionKind,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Lease>>;
    /// Outcomes from this round on, in order.
    fn outcomes(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<OutcomeRow>>;
    /// Uncounted outcomes from this round or serial on, in order: of an epoch's overtime or holdback, or the late ones, whose epoch is 0.
    fn uncounted(
        &mut self,
        id: &str,
        epoch: u64,
        kind: DecisionKind,
        from: u64,
        limit: usize,
    ) -> Result<Vec<UncountedOutcome>>;
    /// Events from this number on, in order; the first is 0.
    fn events(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Event>>;
    /// Uncounted outcomes and events from this position on, in order; those without a position are not among them.
    fn journal(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<JournalRow>>;
    /// How many rows an experiment has, whether or not the other methods show them.
    fn row_counts(&mut self, id: &str) -> Result<RowCounts>;
    /// In what the store differs from one that this program makes: tables, columns, indices, triggers, views, and rows of no
    /// experiment. Each in words.
    fn foreign(&mut self) -> Result<Vec<String>>;

    /// Adds an experiment, with its first epoch. False, and nothing is written, if the id is taken.
    fn create(
        &mut self,
        experiment: &ExperimentRow,
        progress: &Progress,
        opened: &EpochRow,
    ) -> Result<bool>;
    /// Rewrites the progress, and returns the text that it is stored as.
    fn set_progress(&mut self, id: &str, progress: &Progress) -> Result<String>;
    /// The same together with what was observed, in one statement: neither is ever ahead of the other.
    fn set_observed(&mut self, id: &str, progress: &Progress, observed: &str) -> Result<String>;
    /// Sets when an outcome may be due. Apart from the progress, which is rewritten far more often: the index would be, too.
    fn set_due(&mut self, id: &str, due: Option<i64>) -> Result<()>;
    /// Adds leases.
    fn add_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<()>;
    /// The same if all of them are new. False if one starts where another does, or has its request key: then none is added.
    fn add_new_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<bool>;
    /// Adds outcomes of distinct rounds. Where a round has one already, that one stays and is returned in its place.
    fn add_outcomes(
        &mut self,
        id: &str,
        outcomes: &[OutcomeRow],
    ) -> Result<Vec<Option<OutcomeRow>>>;
    /// Adds uncounted outcomes with distinct numbers. Where one is there already, it stays and is returned in its place.
    fn add_uncounted(
        &mut self,
        id: &str,
        outcomes: &[UncountedOutcome],
    ) -> Result<Vec<Option<UncountedOutcome>>>;
    /// Rewrites an open epoch as closed. If there is a next one, it is added and the closed one's snapshot dropped.
    fn close_epoch(&mut self, id: &str, closed: &EpochRow, opened: Option<&EpochRow>)
    -> Result<()>;
    /// Adds an event; the store numbers it.
    fn add_event(&mut self, id: &str, event: &Event) -> Result<()>;

    /// The number that stands for somebody's name in leases and outcomes, given when it is first asked for; from 1. In rows, 0 is
    /// nobody.
    fn actor(&mut self, name: &str) -> Result<u64>;
    /// The name that a number stands for; `None` for 0. An error if it stands for nobody.
    fn actor_name(&mut self, number: u64) -> Result<Option<Arc<str>>>;
    /// The names, by number.
    fn actors(&mut self) -> Result<BTreeMap<u64, String>>;

    /// All API keys, revoked ones too, by name.
    fn keys(&mut self) -> Result<Vec<ApiKey>>;
    /// Adds a key. False, and nothing is written, if the name is taken.
    fn add_key(&mut self, key: &ApiKey) -> Result<bool>;
    /// Adds a key, or replaces the one of that name but for its last use.
    fn set_key(&mut self, key: &ApiKey) -> Result<()>;
    /// Notes that a key was used; a later use that is noted already stays.
    fn set_key_used(&mut self, name: &str, at: i64) -> Result<()>;
    /// The session whose token has this hash.
    fn session(&mut self, hash: &str) -> Result<Option<Session>>;
    /// How many sessions expire after this time.
    fn session_count(&mut self, after: i64) -> Result<u64>;
    /// Adds a session.
    fn add_session(&mut self, session: &Session) -> Result<()>;
    /// Ends a session, if it is there.
    fn end_session(&mut self, hash: &str) -> Result<()>;
    /// Ends all that expire at this time or before.
    fn end_sessions(&mut self, expired_at: i64) -> Result<()>;
    /// Ends all of a key but this many, the oldest first.
    fn end_oldest_sessions(&mut self, key_name: &str, kept: usize) -> Result<()>;
}

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(std::path::PathBuf),
    /// A PostgreSQL server: `postgres://...` or `postgresql://...`.
    Postgres(String),
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To serve: made if it is missing, brought to this version. A file is locked against a second server.
    Serve,
    /// To write beside a server, or without one.
    Write,
    /// To read, beside a server or without one. Nothing is made or changed.
    Read,
}

impl Location {
    /// From what was typed.
    pub fn of(text: &str) -> Self {
        // Anything else is a file, even what looks like another address: a file that cannot be opened says so. But what libpq
        // also takes, host=.. password=.., would be a file whose name is a secret: it is refused as an address.
        let postgres = [
            "postgres://",
            "postgresql://",
            "host=",
            "dbname=",
            "user=",
            "password=",
            "port=",
        ]
        .iter()
        .any(|beginning| text.starts_with(beginning));
        if postgres {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(text.into())
        }
    }

    /// Whether there is a store. A file that is there counts as one until it is opened.
    pub fn is_made(&self) -> Result<bool> {
        match self {
            Self::Sqlite(path) => Ok(path.exists()),
            Self::Postgres(url) => postgres::is_made(url),
        }
    }

    /// Opens a connection.
    pub fn open(&self, purpose: Purpose) -> Result<Box<dyn Store>> {
        Ok(Box::new(match self {
            Self::Sqlite(path) => Sql::over(sqlite::SqliteFile::open(path, purpose)?),
            Self::Postgres(url) => Sql::over(postgres::PostgresServer::open(url, purpose)?),
        }))
    }
}

impl fmt::Display for Location {
    /// Without what may be secret in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            // Put together from what is known to be harmless; to cut the secret out of the text could miss some of it.
            Self::Postgres(url) => match postgres::parse(url) {
                Ok(address) => f.write_str(&postgres::shown(&address)),
                Err(_) => f.write_str("postgres://"),
            },
        }
    }
}

impl fmt::Debug for Location {
    /// As it is displayed: what is secret stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}
