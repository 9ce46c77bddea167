//! What a decision counts for.

/// What a decision counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionKind {
    /// A round of the horizon.
    Round,
    /// Outside the horizon, while its epoch waited: by the epoch's strategy, and counted nowhere.
    Overtime,
    /// Outside the experiment: the spec's one action for a share of requests, and counted nowhere.
    Holdback,
}

impl DecisionKind {
    /// All there are, in the order of the log.
    pub const ALL: [Self; 3] = [Self::Round, Self::Overtime, Self::Holdback];

    /// Its number in stores and hashes.
    pub fn number(self) -> u8 {
        match self {
            Self::Round => 0,
            Self::Overtime => 1,
            Self::Holdback => 2,
        }
    }

    /// Its name in answers and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Overtime => "overtime",
            Self::Holdback => "holdback",
        }
    }
}
