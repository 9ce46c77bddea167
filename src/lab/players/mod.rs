//! Who can play: debora's policies and their rivals, through one small trait.
//!
//! A player holds a strategy for a *stretch* of rounds and says when it wants to be asked again: when an action's count
//! reaches a number, or after so many rounds. Within a stretch nothing depends on its feedback, so a simulator may draw it
//! as a whole.

use crate::strategy::Strategy;
use crate::{Engine, EpochRecord, Tally};

/// A bandit algorithm in a simulation.
pub trait Player: Send {
    /// The strategy of the open stretch.
    fn strategy(&self) -> &Strategy;

    /// The count, over the whole run, at which `action` ends the open stretch; none if it cannot.
    fn stop(&self, action: u32) -> Option<u64>;

    /// The rounds after which the open stretch ends at the latest; none if only counts and the horizon end it.
    fn rounds_max(&self) -> Option<u64> {
        None
    }

    /// Ends the open stretch with its counts and sums, and opens the next. Not called after the horizon's last round.
    fn tell(&mut self, stretch: &Tally);

    /// Ends the last stretch, whose last round is the horizon.
    fn finish(&mut self, _stretch: &Tally) {}

    /// The record of the open stretch, for players that estimate: debora's policies.
    fn record(&self) -> Option<&EpochRecord> {
        None
    }

    /// What a reader of its row should know, such as that it never got past its first batch.
    fn note(&self) -> Option<String> {
        None
    }
}

impl Player for Engine {
    fn strategy(&self) -> &Strategy {
        Engine::strategy(self)
    }

    fn stop(&self, action: u32) -> Option<u64> {
        self.target(action)
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tell_epoch(stretch).expect("a simulator ends epochs exactly");
    }

    fn finish(&mut self, stretch: &Tally) {
        Player::tell(self, stretch);
    }

    fn record(&self) -> Option<&EpochRecord> {
        Some(self.open_record())
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
    Structure,
}

/// A rival: who it is, and how to make one.
pub struct Rival {
    /// Its name in specs and tables.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where its constants come from.
    pub constants: Constants,
    /// The policies whose problems it can play.
    pub policies: &'static [crate::Policy],
    /// Whether it decides every round anew.
    pub per_round: bool,
    build: fn(&std::sync::Arc<crate::Plan>, crate::Key) -> Box<dyn Player>,
}

impl Rival {
    /// A player for this plan, with this policy key.
    pub fn player(&self, plan: &std::sync::Arc<crate::Plan>, key: crate::Key) -> Box<dyn Player> {
        (self.build)(plan, key)
    }
}
