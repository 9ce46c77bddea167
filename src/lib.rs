//! Replicable, constrained bandits.

mod error;
pub mod key;
/// Experiments: simulated worlds and what a policy does in them.
pub mod lab;
pub mod lp;

pub use error::Error;
pub use key::{Key, WorldKey};
