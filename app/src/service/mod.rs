//! Live experiments: decisions and outcomes over HTTP, durable before they are acknowledged.
//!
//! ```text
//! handler ─► Request ─► writer thread ─► Transaction ─► Store ─► commit ─► Granted
//!                       takes all that wait, one commit for all
//! ```
//!
//! An epoch's decisions depend only on key, strategy and round. So nodes that share a store need to agree on round numbers, on
//! outcomes and, a few hundred times in an experiment's life, on the next epoch: a lock on one row of progress is enough.

mod behind;
pub mod clock;
pub mod counts;
mod decide;
pub mod http;
pub mod key_uses;
pub mod keys;
pub mod limits;
pub mod node;
mod publish;
pub mod random;
mod recent;
pub mod request;
pub mod resident;
mod seldom;
pub mod sessions;
mod tell;
pub mod tick;
pub mod transaction;
mod turn;
pub mod webhooks;
mod went_back;
pub mod writer;
