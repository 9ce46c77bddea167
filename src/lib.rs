//! Replicable, constrained bandits.

mod error;
pub mod key;
pub mod lp;

pub use error::Error;
pub use key::{Key, WorldKey};
