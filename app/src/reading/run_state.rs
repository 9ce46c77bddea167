//! What an experiment does, in a word.

use crate::store::Status;

/// What an experiment does. In the order in which they call for someone to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunState {
    /// An epoch is fully decided, and outcomes of it are missing.
    Waiting,
    /// It was paused.
    Paused,
    /// It decides.
    Running,
    /// It plays one action to the horizon.
    Committed,
    /// It was ended before its horizon.
    Closed,
    /// It reached its horizon.
    Done,
}

impl RunState {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Paused,
        Self::Running,
        Self::Committed,
        Self::Closed,
        Self::Done,
    ];

    /// What an experiment of this status does.
    pub fn new(status: Status, is_committed: bool, is_waiting: bool) -> Self {
        match status {
            Status::Paused => Self::Paused,
            Status::Closed => Self::Closed,
            Status::Done => Self::Done,
            // Before waiting: a run that has committed waits for nothing.
            Status::Running if is_committed => Self::Committed,
            Status::Running if is_waiting => Self::Waiting,
            Status::Running => Self::Running,
        }
    }

    /// Its word, which is also its class in the style sheet.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Running => "running",
            Self::Committed => "committed",
            Self::Closed => "closed",
            Self::Done => "done",
        }
    }
}
