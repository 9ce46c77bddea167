//! Experiments: simulated worlds, exact simulation at any horizon, rivals, replication. Uses the library, never used by it.
//!
//! ```
//! use std::sync::{Arc, atomic::AtomicBool};
//! use debora::lab::{metrics, replicate::{Contestant, Experiment, Simulator}, summary::Summary, world::Bernoulli};
//! use debora::{Key, Plan, Problem, WorldKey};
//!
//! let problem = Problem::free(["a", "b", "c"], 1_000_000_000, 0.1).build()?;
//! let world = Arc::new(Bernoulli::new(&problem, &[vec![0.4, 0.5, 0.6]])?);
//! let experiment = Experiment {
//!     worlds: [world.clone(), world],
//!     key: Key::from(42u64),
//!     world_key: WorldKey::from(7u64),
//!     simulator: Simulator::Epochs,
//!     checkpoints: metrics::checkpoints(problem.horizon()),
//!     plan: Arc::new(Plan::of(problem)),
//! };
//! let pairs = experiment.pairs(Contestant::Debora, 0..100, &|_| (), &AtomicBool::new(false))?;
//! let summary = Summary::of(&experiment.plan, &pairs);
//! assert!(summary.interval[1] >= summary.promised);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod epochs;
mod error;
pub mod metrics;
pub mod missing;
pub mod observed;
pub mod part;
pub mod players;
pub mod random;
pub mod replicate;
pub mod rounds;
mod sample;
pub mod sample_ratio;
pub mod summary;
pub(crate) mod threads;
pub mod world;

pub use error::LabError;

/// The samplers, for the library's own tests and benchmarks, which judge them by exact laws in release mode. Hidden, and free
/// to change in any version.
#[doc(hidden)]
pub mod internals {
    pub use super::epochs::draw_counts;
    pub use super::sample::*;
}
