//! The order in which the lines of a log follow each other.

use std::fmt;

use crate::log::Line;

/// How far a log has been read; lines come in this order, epoch after epoch.
// In the order of the variants, which `may_precede` compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKind {
    #[default]
    Start,
    Experiment,
    Epoch,
    Decisions,
    Outcomes,
    Overtime,
    Holdback,
    Closed,
    Journal,
    State,
}

impl LineKind {
    /// The kind of a line.
    pub fn of(line: &Line) -> Self {
        match line {
            Line::Experiment(_) => Self::Experiment,
            Line::Epoch { .. } => Self::Epoch,
            Line::Decisions(_) => Self::Decisions,
            Line::Outcome { .. } => Self::Outcomes,
            Line::Overtime(_) => Self::Overtime,
            Line::Holdback(_) => Self::Holdback,
            Line::Closed { .. } => Self::Closed,
            Line::Late { .. }
            | Line::OvertimeOutcome(_)
            | Line::HoldbackOutcome(_)
            | Line::Event { .. } => Self::Journal,
            Line::State { .. } => Self::State,
        }
    }

    /// Whether several of them may follow each other.
    fn repeats(self) -> bool {
        matches!(
            self,
            Self::Decisions | Self::Outcomes | Self::Overtime | Self::Holdback | Self::Journal
        )
    }

    /// Whether a line of another kind may follow.
    pub fn may_precede(self, next: Self) -> bool {
        match (self, next) {
            // An epoch begins after the experiment's line or the end of the epoch before: the open one is the last.
            (Self::Start, next) => next == Self::Experiment,
            (Self::Experiment | Self::Closed, Self::Epoch) => true,
            (Self::Experiment, _) => false,
            (_, Self::Epoch) => false,
            // Any kind may be missing: an epoch may have no overtime, an experiment no late outcome.
            (at, next) => next > at || (next == at && at.repeats()),
        }
    }
}

impl fmt::Display for LineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "the beginning",
            Self::Experiment => "experiment",
            Self::Epoch => "epoch",
            Self::Decisions => "decisions",
            Self::Outcomes => "outcomes",
            Self::Overtime => "overtime",
            Self::Holdback => "holdback",
            Self::Closed => "closed",
            Self::Journal => "what has a position",
            Self::State => "state",
        })
    }
}
