//! Experiments: simulated worlds, exact simulation at any horizon, rivals, replication. Uses the library, never used by it.

pub mod players;
pub mod sample;
