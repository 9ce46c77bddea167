//! What became of decided rounds: told, imputed, or outstanding.
//!
//! ```text
//! decided = told + imputed + outstanding
//! ```

use debora::Problem;
use serde::Serialize;

use crate::store::Progress;

/// What became of an experiment's rounds, and what happened beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Rounds decided.
    pub decided: u64,
    /// Outcomes told; imputed ones are not among them.
    pub told: u64,
    /// Rounds whose outcome did not come in time.
    pub imputed: u64,
    /// Decided rounds without an outcome.
    pub outstanding: u64,
    /// Outcomes that came after their round was imputed; they do not count.
    pub late: u64,
    /// Decisions outside the horizon; they do not count.
    pub overtime: u64,
}

impl OutcomeCounts {
    /// Adds up the counts of all actions.
    pub fn from_progress(progress: &Progress) -> Self {
        let outcomes: u64 = progress.outcomes.iter().sum();
        let imputed: u64 = progress.imputed.iter().sum();
        let decided = progress.rounds();
        Self {
            decided,
            // Saturating, as a damaged store may have more of them: the audit says so.
            told: outcomes.saturating_sub(imputed),
            imputed,
            outstanding: decided.saturating_sub(outcomes),
            late: progress.late,
            overtime: progress.overtime,
        }
    }

    /// Every count with its heading, as pages have them.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("Decided", self.decided),
            ("Told", self.told),
            ("Outstanding", self.outstanding),
            ("Imputed", self.imputed),
            ("Late", self.late),
            ("Overtime", self.overtime),
        ]
    }
}

/// An action's counts: decided = told + imputed + outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "describe", schema(as = ActionState))]
pub struct ActionCounts {
    /// Its number in the spec, from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// Rounds decided.
    pub decided: u64,
    /// Outcomes told; imputed ones are not among them.
    pub told: u64,
    /// Rounds whose outcome did not come in time.
    pub imputed: u64,
}

impl ActionCounts {
    /// Counts for every action, in the spec's order.
    pub(super) fn for_actions(problem: &Problem, progress: &Progress) -> Vec<Self> {
        let names = (0..).zip(problem.actions()).enumerate();
        names
            .map(|(place, (action, name))| Self {
                action,
                name: name.clone(),
                decided: progress.decided[place],
                told: progress.told(place),
                imputed: progress.imputed[place],
            })
            .collect()
    }

    /// Decided rounds without an outcome.
    pub fn outstanding(&self) -> u64 {
        // Saturating, as a damaged store may have told more than it decided: the audit says so.
        self.decided.saturating_sub(self.told + self.imputed)
    }
}
