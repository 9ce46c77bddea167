//! doss: in every round the best strategy under optimistic rewards and costs \[structure\].
//!
//! ```text
//! x_t = argmax u.x   over   l_i.x <= alpha_i;       u, l_i: see `optimistic_lp.rs`
//! ```
//!
//! Source: Gangrade, Chen, Saligrama, *Safe Linear Bandits over Unknown Polytopes* (COLT 2024), DOSS, "doubly optimistic". On the
//! simplex, with an interval for each action in place of its ellipsoids, it is optimistic-lp decided anew in every round.

use std::sync::Arc;

use super::epochs::EpochRule;
use super::optimistic_lp::OptimisticLp;
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;

pub(super) struct Doss(OptimisticLp);

impl Doss {
    pub fn new(problem: &Arc<Problem>) -> Self {
        Self(OptimisticLp::new(problem))
    }
}

impl EpochRule for Doss {
    fn target(&self, _: u64) -> Option<u64> {
        None
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn choose(&mut self, tally: &Tally) -> Strategy {
        self.0.choose(tally)
    }

    fn note(&self) -> Option<String> {
        self.0.note()
    }
}
