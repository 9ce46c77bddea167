//! What is hashed of the store: an experiment's log as JSON lines, the hashes over it, and what is sealed before it.
//!
//! From the log alone, with the key, every decision can be recomputed. All of it is a function of rows: the service that wrote
//! them and the audit that checks them share this room, and neither needs the other.
//!
//! ```text
//! experiment
//!     epoch, decisions.., outcome.., overtime.., holdback.., closed       for every epoch in order; of the open one, no `closed`
//! late, overtime_outcome, holdback_outcome and event..       as they were stored
//! state
//! ```
//!
//! Lines are read in pages, while the experiment goes on. A page's cursor says where the next begins; what is closed never
//! changes, so its lines are the same whenever they are read. Of the open epoch the log shows what was decided when its
//! `epoch` line was written, and if the experiment went on before the last line, that line says so.

pub mod chain;
mod cursor;
pub mod experiment;
mod line;
pub mod observed;
mod page;
mod published;
pub mod seal;
mod values;

pub use cursor::{BadCursor, cursor_at_epoch};
pub use line::{Heading, LOG_VERSION, LeaseLine, Line, OutsideOutcome, ROUNDS_MAX};
pub use page::{
    ERROR_LINE, LINES_MAX, LogPage, NEXT_HEADER, closed_rounds, is_revealed, page,
    page_of_decisions,
};
pub use published::{published, published_head};
pub use values::{OtherValues, check_values, check_values_version};
