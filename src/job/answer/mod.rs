//! What was found, in words: lines of any length and tables, which [`wrapped`](crate::job::words::wrapped) fits to a page.

mod pairs;
mod plan;
mod run;

pub use pairs::measured;
pub use plan::plan;
pub use run::run;
