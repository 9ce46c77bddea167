//! What is shown of the store: an experiment's log as JSON lines, the hashes over it, and its certificate.
//!
//! From the log alone, with the key, every decision can be recomputed. All of it is a function of rows: the service that wrote
//! them and the audit that checks them share this room, and neither needs the other.
//!
//! ```text
//! experiment
//!     epoch, decisions.., outcome.., overtime.., aside.., closed      for every epoch in order; of the open one, no `closed`
//! late.., event.., state
//! ```
//!
//! Lines are read in pages, while the experiment goes on. A page's cursor says where the next begins; what is closed never
//! changes, so its lines are the same whenever they are read. Of the open epoch the log shows what was decided when its
//! `epoch` line was written, and if the experiment went on before the last line, that line says so.

pub mod account;
pub mod certificate;
pub mod chain;
mod cursor;
pub mod kept;
mod line;
pub mod means;
pub mod observed;
mod page;
pub mod sample_ratio;
mod values;

pub use cursor::BadCursor;
pub use line::{Heading, LOG_VERSION, LeaseLine, Line, LoggedRecord, ROUNDS_MAX};
pub use page::{LINES_MAX, LogPage, NEXT_HEADER, page};
pub use values::{OtherValues, check_values};
