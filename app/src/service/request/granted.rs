//! What an experiment answers.

use std::sync::{Arc, OnceLock};

use crate::service::limits;
use crate::store::{Lease, Status};

/// What was done.
#[derive(Clone, Debug)]
pub enum Granted {
    /// The experiment is there.
    Created {
        /// Whether this very experiment was there before.
        repeated: bool,
    },
    /// Decisions; the same again for the same request key.
    Decided(Decided),
    /// The flag of somebody whom an experiment that is over, or paused, has given nothing.
    Recommended(FlagAdvice),
    /// A receipt for each outcome, in the order told.
    Told(Vec<Receipt>),
    /// The status after an administrative change.
    Changed(Status),
    /// The log says that this head is published.
    Published {
        /// The head.
        head: String,
    },
    /// How many rounds were imputed.
    Ticked(u64),
}

/// Decisions, with what is needed to answer them.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The rounds and actions.
    pub lease: Lease,
    /// The names and probabilities that go with their actions.
    pub labels: Arc<EpochLabels>,
    /// Whether they were handed out before.
    pub repeated: bool,
}

/// What a flag is answered with.
#[derive(Clone, Debug)]
pub enum FlagReply {
    /// A decision; the same again for the same request key.
    Decided(Decided),
    /// What an experiment says that is over, or paused.
    Advised(FlagAdvice),
}

/// What an experiment that is over, or paused, says to those whom it has given nothing.
#[derive(Clone, Debug)]
pub struct FlagAdvice {
    /// The action to play; `None` if nothing is recommended.
    pub action: Option<u32>,
    /// The last epoch.
    pub epoch: u64,
    /// Its actions and its strategy, which is what is recommended.
    pub labels: Arc<EpochLabels>,
    /// How it ended, or that it is paused.
    pub status: Status,
}

/// What an epoch's answers say beside the number of an action, shared by all of them. Decisions are not drawn from this, but
/// from the engine's strategy.
#[derive(Clone, Debug)]
pub struct EpochLabels {
    /// The names of the actions.
    pub actions: Vec<String>,
    /// The probability of each.
    pub strategy: Vec<f64>,
    /// The most decisions in an answer.
    pub decisions_max: u64,
    /// The part of an answer's text that only depends on the action, made by the first answer that needs it.
    pub per_action: OnceLock<Vec<String>>,
}

impl EpochLabels {
    /// Of a strategy over actions with these names.
    pub fn new(actions: Vec<String>, strategy: Vec<f64>) -> Self {
        Self {
            decisions_max: limits::decisions_max(&actions),
            actions,
            strategy,
            per_action: OnceLock::new(),
        }
    }

    /// Of one action alone.
    pub fn certain(actions: Vec<String>, action: u32) -> Self {
        let numbers = 0..actions.len() as u32;
        let strategy = numbers.map(|number| f64::from(u8::from(number == action)));
        let strategy = strategy.collect();
        Self::new(actions, strategy)
    }
}

/// What became of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Receipt {
    /// It counts.
    Recorded,
    /// The same was told before; it counts once.
    Repeated,
    /// Something else was told before; the first stays.
    Conflict,
    /// No such round was decided.
    Unknown,
    /// Its round had been imputed: it is logged and does not count.
    Late,
    /// Its decision was outside the horizon: it is logged and does not count.
    Overtime,
    /// Its decision was held back from the experiment: it is logged, and only compared with it.
    Holdback,
}

impl Receipt {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::Repeated,
        Self::Conflict,
        Self::Unknown,
        Self::Late,
        Self::Overtime,
        Self::Holdback,
    ];

    /// Its name, as it is answered.
    pub fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Repeated => "repeated",
            Self::Conflict => "conflict",
            Self::Unknown => "unknown",
            Self::Late => "late",
            Self::Overtime => "overtime",
            Self::Holdback => "holdback",
        }
    }
}
