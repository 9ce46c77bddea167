//! A player of one's own, in the race like any rival: the lab asks for its name and for how to make one.
//!
//! ```
//! use std::sync::{Arc, atomic::AtomicBool};
//! use debora::lab::players::{OwnPlayer, Player};
//! use debora::lab::replicate::{Contestant, Experiment, Simulator};
//! use debora::lab::{metrics, summary::Summary, world::Bernoulli};
//! use debora::{Key, Plan, Problem, Strategy, Tally, WorldKey};
//!
//! /// Plays all actions alike, to the horizon.
//! struct Uniform(Strategy);
//!
//! impl Player for Uniform {
//!     fn strategy(&self) -> &Strategy {
//!         &self.0
//!     }
//!     fn tell(&mut self, _: &Tally) {}
//! }
//!
//! let problem = Problem::free(["a", "b"], 1_000_000, 0.1).build()?;
//! let world = Arc::new(Bernoulli::new(&problem, &[vec![0.4, 0.6]])?);
//! let uniform = OwnPlayer::new("uniform", |plan, _| {
//!     let actions = plan.problem.actions().len();
//!     Box::new(Uniform(Strategy::uniform(actions, |_| true)))
//! });
//! let experiment = Experiment {
//!     worlds: [world.clone(), world],
//!     key: Key::from(42u64),
//!     world_key: WorldKey::from(7u64),
//!     simulator: Simulator::Epochs,
//!     checkpoints: metrics::checkpoints(problem.horizon()),
//!     plan: Arc::new(Plan::of(problem)),
//! };
//! let pairs = experiment.pairs(Contestant::Own(&uniform), 0..10, &|_| (), &AtomicBool::new(false))?;
//! let summary = Summary::of(&experiment.plan, &pairs);
//! assert_eq!(summary.identical_rate, 1.0);
//! assert!((summary.regret.unwrap().spread.mean - 100_000.0).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::sync::Arc;

use super::Player;
use crate::{Key, Plan};

/// Makes a player before its first round, from the plan and the pair's policy key.
type Make = dyn Fn(&Arc<Plan>, Key) -> Box<dyn Player> + Send + Sync;

/// A player from outside the library: what to call it, and how to make one play.
#[derive(Clone)]
pub struct OwnPlayer {
    /// The name in reports; not that of a rival.
    pub name: String,
    /// Whether it decides anew in every round, so that whole stretches gain nothing.
    pub per_round: bool,
    /// Whether its pairs are played one after another, on one thread.
    pub one_by_one: bool,
    make: Arc<Make>,
}

impl OwnPlayer {
    /// A player that `make` makes: once for each run, with the key that both runs of a pair have. A pair's runs are compared by
    /// their strategies, so a player that draws must draw from this key.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn(&Arc<Plan>, Key) -> Box<dyn Player> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            per_round: false,
            one_by_one: false,
            make: Arc::new(make),
        }
    }

    /// The same, simulated round by round.
    #[must_use]
    pub fn per_round(self) -> Self {
        Self {
            per_round: true,
            ..self
        }
    }

    /// The same on one thread: for code under a lock, such as that of an interpreter, which threads would only hand around.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self {
            one_by_one: true,
            ..self
        }
    }

    /// A run of it, before its first round.
    pub fn player(&self, plan: &Arc<Plan>, key: Key) -> Box<dyn Player> {
        (self.make)(plan, key)
    }
}

impl fmt::Debug for OwnPlayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnPlayer")
            .field("name", &self.name)
            .field("per_round", &self.per_round)
            .finish_non_exhaustive()
    }
}
