//! Replicable, constrained bandits: choose among actions with unknown rewards and costs, round after round, so that two
//! runs with the same key, each on its own fresh data, take the **same decisions** with probability at least 1 - rho, while
//! average costs stay within their thresholds.
//!
//! The idea: only *rounded* means decide. Each mean is rounded to the middle of a grid cell, and the grid's offset comes
//! from the key, not from the data. Two means of n samples are about 1/sqrt(n) apart, so on a grid that is wide against
//! that they almost always fall into the same cell; equal cells give equal strategies, equal actions, equal counts, and so
//! on to the horizon. (One comparison of raw means is allowed, the clear test of policy free: its threshold is keyed, and
//! what it may cost is in the budget.)
//!
//! ```
//! use debora::{Ask, Engine, Key, Problem};
//!
//! let problem = Problem::soft(["small", "large"], 20_000, 0.5).cost("price", [0.0, 0.02], 0.008).build()?;
//! let mut engine = Engine::new(problem, Key::from(42u64));
//! while let Ask::Decision(decision) = engine.ask() {
//!     // Your world answers here: a reward in [0, 1] and a price in dollars.
//!     let (reward, price) = [(0.5, 0.001), (0.75, 0.015)][decision.action as usize];
//!     engine.tell(decision.round, reward, &[price])?;
//! }
//! let recommendation = engine.recommendation();
//! assert!(recommendation.current.strategy[1] > 0.3, "{recommendation:?}");
//! assert!(recommendation.current.costs[0].low <= 0.008);
//! # Ok::<(), debora::Error>(())
//! ```
//!
//! Where to read next: [`Problem`] for what can be asked, [`Plan`] for what a run will cost before it starts, [`Engine`] for
//! asking and telling, `spec` for experiments written down in a file. How it works, bottom up: [`key`], [`mean`], `budget`
//! and `width` (private), [`plan`], `lp` (private), [`Engine`]. The proofs are in `docs/theory.md`, the differences from the
//! paper in `docs/deviations.md`.
//!
//! Values are part of the product: the same problem, key and feedback give the same decisions on every machine, in every
//! version with the same [`VALUES_VERSION`].

mod blocks;
mod bounds;
mod budget;
mod engine;
mod error;
#[doc(hidden)]
pub mod internals;
pub mod key;
#[cfg(feature = "lab")]
pub mod lab;
pub mod line;
mod look;
mod lp;
pub mod mean;
#[cfg(feature = "spec")]
pub mod measure;
mod pick;
pub mod plan;
mod policy;
pub mod problem;
pub mod record;
mod snapshot;
#[cfg(feature = "spec")]
pub mod spec;
pub mod strategy;
mod width;

pub use engine::{Engine, LimitAt, Why};
pub use error::Error;
pub use key::{Key, WorldKey};
pub use mean::Tally;
pub use plan::Plan;
pub use problem::{Policy, Problem, Profile};
pub use record::{Ask, Decision, EpochRecord, Estimate, Kind, Recommendation, Told, ToldMany};
pub use strategy::Strategy;

/// Changes whenever a draw, a constant, a strategy or a digest does; the changelog says what and why.
pub const VALUES_VERSION: u32 = 3;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
