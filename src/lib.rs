//! Replicable, constrained bandits.

pub mod budget;
mod engine;
mod error;
pub mod key;
#[cfg(feature = "lab")]
pub mod lab;
pub mod lp;
pub mod mean;
pub mod plan;
mod policy;
pub mod problem;
pub mod record;
mod snapshot;
pub mod strategy;
pub mod width;

pub use engine::Engine;
pub use error::Error;
pub use key::{Key, WorldKey};
pub use mean::Tally;
pub use plan::Plan;
pub use problem::{Policy, Problem, Profile};
pub use record::{Ask, Decision, EpochRecord, Estimate, Kind, Recommendation, Told, ToldMany};
pub use strategy::Strategy;
