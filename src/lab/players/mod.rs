//! Who can play: debora's policies and their rivals, through one small trait.
//!
//! A player holds a strategy for a *stretch* of rounds and says when it wants to be asked again: when an action's count
//! reaches a number, or after this many rounds. Within a stretch nothing depends on its feedback, so a simulator may draw it
//! as a whole.
//!
//! [`RIVALS`] lists the rivals, one file per family, each with its source and its equation. Their internal randomness is keyed
//! as the engine's is, so two runs with one key share it. An [`OwnPlayer`] is anyone's [`Player`] in the same race;
//! `examples/thompson.rs` has one in forty lines.

use std::sync::Arc;

use crate::key::Label;
use crate::strategy::Strategy;
use crate::{Engine, EpochRecord, Key, Plan, Policy, Tally};

use batched::Batched;
use epochs::Epochs;
use primal_dual::PrimalDual;

mod batched;
mod doss;
mod epochs;
mod esfandiari;
mod etc_grid;
mod exp3;
mod kl_ucb;
mod oplb;
mod optimistic_lp;
mod own;
mod pessimistic_optimistic;
mod plain;
mod primal_dual;
mod rse;
mod thompson;
mod ucb1;

// Public, as a player of one's own draws with them: the same bits on every machine, from the key that a pair shares.
pub use crate::lab::sample::{Stream, beta};
pub use own::OwnPlayer;

/// A bandit algorithm in a simulation.
pub trait Player: Send {
    /// The strategy of the open stretch.
    fn strategy(&self) -> &Strategy;

    /// The count, over the whole run, at which `action` ends the open stretch; `None` if it cannot.
    fn stop(&self, _action: u32) -> Option<u64> {
        None
    }

    /// The rounds after which the open stretch ends at the latest; `None` if only counts and the horizon end it.
    fn rounds_max(&self) -> Option<u64> {
        None
    }

    /// How often each action is played in the open stretch's first `rounds` rounds, where that is known beforehand; none
    /// where actions are drawn from the strategy, each by itself.
    fn planned_counts(&self, _rounds: u64) -> Option<Vec<u64>> {
        None
    }

    /// The action of a round of the open stretch; `key` is the run's.
    fn action(&mut self, round: u64, key: Key) -> u32 {
        drawn_action(self.strategy(), round, key)
    }

    /// Ends the open stretch with its counts and sums, and opens the next. Not called after the horizon's last round.
    fn tell(&mut self, stretch: &Tally);

    /// Ends the last stretch, whose last round is the horizon.
    fn finish(&mut self, _stretch: &Tally) {}

    /// The record of the open stretch, for players that estimate: debora's policies.
    fn record(&self) -> Option<&EpochRecord> {
        None
    }

    /// What a round of the open stretch may lose, by the player's own estimates and before what limits cost: debora's policies.
    fn span(&self) -> Option<f64> {
        None
    }

    /// What a reader of its row should know, such as that it never got past its first batch.
    fn note(&self) -> Option<String> {
        None
    }
}

/// The action that a strategy plays in a round, by inverse CDF.
fn drawn_action(strategy: &Strategy, round: u64, key: Key) -> u32 {
    match strategy.only() {
        Some(action) => action,
        None => strategy.pick(key.uniform(Label::Round, [round, 0, 0])),
    }
}

impl Player for Engine {
    fn strategy(&self) -> &Strategy {
        Engine::strategy(self)
    }

    fn stop(&self, action: u32) -> Option<u64> {
        self.target(action)
    }

    fn rounds_max(&self) -> Option<u64> {
        let rounds = self.last_round + 1 - self.open_record().first_round;
        self.blocks.map(|_| rounds)
    }

    fn planned_counts(&self, rounds: u64) -> Option<Vec<u64>> {
        self.blocks.map(|_| self.block_counts(rounds))
    }

    fn action(&mut self, round: u64, _key: Key) -> u32 {
        self.draw_telling(round);
        self.action_ahead(round)
    }

    fn tell(&mut self, stretch: &Tally) {
        let closed = self
            .tell_played(stretch)
            .expect("a simulator ends epochs exactly");
        self.recycle(closed);
    }

    fn finish(&mut self, stretch: &Tally) {
        // Not needed to decide, but the digest covers the last epoch, too.
        Player::tell(self, stretch);
    }

    fn record(&self) -> Option<&EpochRecord> {
        Some(self.open_record())
    }

    fn span(&self) -> Option<f64> {
        Engine::span(self)
    }
}

/// Where a player's constants come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Constants {
    /// As printed in its paper.
    Published,
    /// Derived here, with a proof sketch.
    Derived,
    /// The structure is published, the constants are derived here.
    #[serde(rename = "structure")]
    StructurePublished,
}

/// A rival: what to call it, where it comes from, and how to make one play.
#[derive(Debug)]
pub struct Rival {
    /// The name in reports and on the command line.
    pub name: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Where its constants come from.
    pub constants: Constants,
    /// The policies whose problems it can play.
    pub policies: &'static [Policy],
    /// Whether it decides anew in every round, so that a run takes time in proportion to the horizon.
    pub per_round: bool,
    /// Whether it plays only when it is named: a comparison without a wish stays short and quick.
    pub by_name: bool,
    // A function and not a trait object: the list of rivals is a constant.
    build: fn(&Arc<Plan>, Key) -> Box<dyn Player>,
}

impl Rival {
    /// The rival of this name.
    pub fn named(name: &str) -> Option<&'static Rival> {
        RIVALS.iter().find(|rival| rival.name == name)
    }

    /// Whether it can play the problems of this policy.
    pub fn plays(&self, policy: Policy) -> bool {
        self.policies.contains(&policy)
    }

    /// A run of it, before its first round. Of the plan it uses the problem alone.
    ///
    /// # Panics
    ///
    /// If it does not play the problem's policy: ask [`Rival::plays`] first.
    pub fn player(&self, plan: &Arc<Plan>, key: Key) -> Box<dyn Player> {
        let policy = plan.problem.policy();
        assert!(
            self.plays(policy),
            "{} does not play problems of policy {}",
            self.name,
            policy.name()
        );
        (self.build)(plan, key)
    }
}

/// Every rival: replicable ones first, then those without limits, with soft and with hard limits.
pub static RIVALS: &[Rival] = &[
    Rival {
        name: "esfandiari-1",
        source: "Esfandiari et al., Replicable Bandits, ICLR 2023, Algorithm 1",
        constants: Constants::StructurePublished,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            Box::new(Batched::new(
                &plan.problem,
                esfandiari::Means::new(&plan.problem, key),
            ))
        },
    },
    Rival {
        name: "esfandiari-2",
        source: "Esfandiari et al., Replicable Bandits, ICLR 2023, Algorithm 2, last batch corrected",
        constants: Constants::Published,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            Box::new(Batched::new(
                &plan.problem,
                esfandiari::Thresholds::printed(&plan.problem, key),
            ))
        },
    },
    Rival {
        name: "esfandiari-2-proved",
        source: "Esfandiari et al., Replicable Bandits, ICLR 2023, Algorithm 2, with the beta that proves rho",
        constants: Constants::StructurePublished,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            Box::new(Batched::new(
                &plan.problem,
                esfandiari::Thresholds::proved(&plan.problem, key),
            ))
        },
    },
    Rival {
        name: "rse",
        source: "after Komiyama et al., Replicability is Asymptotically Free in Multi-armed Bandits, 2024, RSE",
        constants: Constants::Derived,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            Box::new(Batched::new(
                &plan.problem,
                rse::Phases::rse(&plan.problem, key),
            ))
        },
    },
    Rival {
        name: "rec",
        source: "after Komiyama et al., Replicability is Asymptotically Free in Multi-armed Bandits, 2024, REC",
        constants: Constants::Derived,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            Box::new(Batched::new(
                &plan.problem,
                rse::Phases::rec(&plan.problem, key),
            ))
        },
    },
    Rival {
        name: "etc-grid",
        source: "this project: try, round each mean once, play the largest; what the rest of debora is to beat",
        constants: Constants::Derived,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            let rule = etc_grid::EtcGrid::new(&plan.problem, key);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
    Rival {
        name: "ucb1",
        source: "Auer et al., Finite-time Analysis of the Multiarmed Bandit Problem, 2002",
        constants: Constants::Published,
        policies: &[Policy::Free],
        per_round: true,
        by_name: false,
        build: |plan, _| Box::new(ucb1::Ucb1::new(&plan.problem)),
    },
    Rival {
        name: "ucb-doubling",
        source: "this project: the action with the largest plain mean and Hoeffding width, at growing counts, after a trial in blocks",
        constants: Constants::Derived,
        policies: &[Policy::Free],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            let rule = plain::Plain::new(&plan.problem);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
    Rival {
        name: "thompson",
        source: "Agrawal and Goyal, Analysis of Thompson Sampling for the Multi-armed Bandit Problem, COLT 2012, Algorithm 2",
        constants: Constants::Published,
        policies: &[Policy::Free],
        per_round: true,
        by_name: true,
        build: |plan, key| Box::new(thompson::Thompson::new(&plan.problem, key)),
    },
    Rival {
        name: "kl-ucb",
        source: "Garivier and Cappé, The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond, COLT 2011, with c = 0",
        constants: Constants::Published,
        policies: &[Policy::Free],
        per_round: true,
        by_name: true,
        build: |plan, _| Box::new(kl_ucb::KlUcb::new(&plan.problem)),
    },
    Rival {
        name: "exp3",
        source: "Auer et al., The Nonstochastic Multiarmed Bandit Problem, 2002, with the gamma of Corollary 3.2 for g = T",
        constants: Constants::Published,
        policies: &[Policy::Free],
        per_round: true,
        by_name: true,
        build: |plan, _| Box::new(exp3::Exp3::new(&plan.problem)),
    },
    Rival {
        name: "optimistic-lp",
        source: "Efroni et al., Exploration-Exploitation in Constrained MDPs, 2020, OptCMDP with one state",
        constants: Constants::StructurePublished,
        policies: &[Policy::Soft],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            let rule = optimistic_lp::OptimisticLp::new(&plan.problem);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
    Rival {
        name: "primal-dual",
        source: "after Castiglioni et al., Online Optimization with Long-Term Constraints, NeurIPS 2022",
        constants: Constants::StructurePublished,
        // Under hard limits it uses the safe strategy's margin, and need not keep any round safe.
        policies: &[Policy::Soft, Policy::Hard],
        per_round: true,
        by_name: false,
        build: |plan, _| {
            let rule = primal_dual::Projected::new(&plan.problem);
            Box::new(PrimalDual::new(&plan.problem, rule))
        },
    },
    Rival {
        name: "doss",
        source: "Gangrade et al., Safe Linear Bandits over Unknown Polytopes, COLT 2024, DOSS on the simplex",
        constants: Constants::StructurePublished,
        policies: &[Policy::Soft],
        per_round: true,
        by_name: true,
        build: |plan, key| {
            let rule = doss::Doss::new(&plan.problem);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
    Rival {
        name: "pessimistic-optimistic",
        source: "after Liu et al., An Efficient Pessimistic-Optimistic Algorithm for Stochastic Linear Bandits, NeurIPS 2021",
        constants: Constants::StructurePublished,
        policies: &[Policy::Soft],
        per_round: true,
        by_name: true,
        build: |plan, _| {
            let rule = pessimistic_optimistic::Queues::new(&plan.problem);
            Box::new(PrimalDual::new(&plan.problem, rule))
        },
    },
    Rival {
        name: "oplb",
        source: "Pacchiano et al., Stochastic Bandits with Linear Constraints, AISTATS 2021, multi-armed, extended",
        constants: Constants::Derived,
        policies: &[Policy::Hard],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            let rule = oplb::Oplb::new(&plan.problem);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
    Rival {
        name: "safe-mix",
        source: "policy hard of profile tight with plain means and Hoeffding widths on the plain line",
        constants: Constants::Derived,
        policies: &[Policy::Hard],
        per_round: false,
        by_name: false,
        build: |plan, key| {
            let rule = plain::Plain::new(&plan.problem);
            Box::new(Epochs::new(&plan.problem, key, rule))
        },
    },
];
