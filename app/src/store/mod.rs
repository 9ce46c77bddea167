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
pub mod database;
mod failure;
mod foreign;
mod location;
pub mod postgres;
pub mod schema;
pub mod sqlite;
mod statements;
mod tables;
mod transactions;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use codec::parse_progress;
use database::{Began, Database};
pub use failure::{Failure, FileMoved};
pub use location::{Location, Purpose};
pub use tables::actors::{ITSELF, KEYLESS};
pub use tables::clock::WaitingClock;
pub use tables::cursors::WebhookCursor;
pub use tables::epochs::EpochRow;
pub use tables::events::Event;
pub use tables::experiments::{ExperimentLine, ExperimentRow};
pub use tables::identity::StartRow;
pub use tables::journal::JournalRow;
pub use tables::keys::{ApiKey, Role};
pub use tables::kind::DecisionKind;
pub use tables::leases::Lease;
pub use tables::messages::WebhookMessage;
pub use tables::outcomes::OutcomeRow;
pub use tables::progress::{Locked, Progress, Status};
pub use tables::row_counts::RowCounts;
pub use tables::sessions::Session;
pub use tables::uncounted::UncountedOutcome;
pub use tables::webhooks::{Deliveries, Webhook, WebhookSecret};
use transactions::TransactionState;

/// The version of the schema that this program makes, the only one that it opens.
pub const SCHEMA_VERSION: u32 = 1;

/// One connection to a store, over any database. A node has one that writes, and others that read.
///
/// Transactions are in `transactions`, and what each table holds, with its statements, in the file of `tables` that has its
/// name. Times are milliseconds since 1970, passed in from outside.
// No method takes or gives a borrowed row: a reader's lines must outlive its connection's next statement.
pub struct Store {
    database: Box<dyn Database>,
    /// The numbers of experiments seen so far, by their ids.
    numbers: BTreeMap<String, i64>,
    /// The numbers of actors, by their names.
    actors: BTreeMap<String, u64>,
    /// Their names, by their numbers.
    names: BTreeMap<u64, Arc<str>>,
    transaction: TransactionState,
    began: Began,
}

impl Store {
    /// A store in this database, whose tables are there.
    pub fn over(database: impl Database + 'static) -> Self {
        Self {
            database: Box::new(database),
            numbers: BTreeMap::new(),
            actors: BTreeMap::new(),
            names: BTreeMap::new(),
            transaction: TransactionState::None,
            began: Began::default(),
        }
    }
}
