//! The plan, as it was before the first round, beside what has come of it.

use debora::Policy;
use debora::measure::words::{amount, percent, whole as grouped};
use debora::record::Kind;

use super::text;
use crate::reading::Reading;
use crate::reading::epoch::EpochHead;
use crate::reading::pace::DecisionRate;
use crate::store::Status;

/// What was planned, beside what is.
pub struct PlanProgress {
    /// Whether the plan can never compare two actions.
    pub is_blind: bool,
    /// The smallest horizon that is not blind, if one is known.
    pub horizon_needed: Option<u64>,
    /// Any rho above this would not be blind either.
    pub rho_needed: Option<f64>,
    /// How many rounds there are.
    horizon: u64,
    /// The round that ends exploration by the plan, and the share of the horizon that it is.
    exploration: Option<(u64, f64)>,
    /// Whether that is only to be expected.
    is_about: bool,
    /// The round that ended it.
    explored: Option<u64>,
    /// The reward's name, and the gap in it that is seen at the horizon and by now.
    reward: String,
    gap_planned: Option<f64>,
    gap_now: Option<f64>,
    epochs_max: u64,
    /// Policy soft: by how much a cost may exceed its threshold on average by the end, as a share of its range.
    pub excess_max: Option<f64>,
}

/// A line of the table: what, as planned, as it is.
pub type PlanLine = (String, String, String);

/// Compares plan and progress of an experiment that played these epochs.
pub fn compare(reading: &Reading, epochs: &[EpochHead]) -> PlanProgress {
    let plan = reading.engine.plan();
    let reward = plan.problem.quantity(0);
    let exploration = plan.exploration_rounds.filter(|_| !plan.blind);
    PlanProgress {
        is_blind: plan.blind,
        horizon_needed: plan.horizon_needed,
        rho_needed: plan.rho_needed,
        horizon: plan.problem.horizon(),
        exploration: exploration.map(|rounds| (rounds, plan.exploration_share())),
        is_about: plan.problem.policy() == Policy::Hard,
        explored: explored(reading, epochs),
        gap_planned: plan.detectable.map(|gap| gap * reward.range.span()),
        gap_now: gap_now(reading, &reward.name, reward.range.span()),
        reward: reward.name.clone(),
        epochs_max: plan.epochs_max,
        excess_max: plan
            .violation_bound
            .map(|bound| bound / plan.problem.horizon() as f64),
    }
}

/// The round that ended exploration.
fn explored(reading: &Reading, epochs: &[EpochHead]) -> Option<u64> {
    // The open epoch may have no round yet, and is then not among those played.
    let begun = epochs.iter().find(|epoch| epoch.kind != Kind::Explore);
    match begun {
        Some(epoch) => Some(epoch.first_round - 1),
        None => (reading.kind() != Kind::Explore).then_some(reading.progress.rounds()),
    }
}

/// The gap that is seen between any two actions: twice the largest width. None while an action has no estimate that says more
/// than the range.
fn gap_now(reading: &Reading, reward: &str, span: f64) -> Option<f64> {
    let widths = reading
        .means_of(reward)
        .map(|mean| mean.estimate.as_ref().map(|estimate| estimate.width));
    let widest = widths.reduce(|one, other| Some(one?.max(other?)))??;
    Some(2.0 * widest).filter(|gap| *gap < span)
}

impl PlanProgress {
    /// The lines of the table.
    pub fn lines(&self, reading: &Reading, rate: Option<&DecisionRate>) -> Vec<PlanLine> {
        let decided = reading.progress.rounds() as f64 / self.horizon as f64;
        let mut lines = vec![
            (
                "Exploration ends".into(),
                self.exploration_planned(),
                self.exploration_now(reading),
            ),
            (
                format!("Gap in {} that is seen", self.reward),
                self.gap_planned.map_or("none".into(), |gap| {
                    format!("{} at the horizon", amount(gap))
                }),
                self.gap_text(reading),
            ),
            (
                "Rounds".into(),
                grouped(self.horizon),
                format!(
                    "{} ({})",
                    grouped(reading.progress.rounds()),
                    percent(decided)
                ),
            ),
            (
                "Epochs".into(),
                format!("at most {}", grouped(self.epochs_max)),
                grouped(reading.progress.epoch + 1),
            ),
        ];
        // Without one nobody can say when.
        if let Some(rate) = rate {
            lines.push(self.horizon_line(reading, rate));
        }
        lines
    }

    fn horizon_line(&self, reading: &Reading, rate: &DecisionRate) -> PlanLine {
        let left = self.horizon.saturating_sub(reading.progress.rounds());
        // At a standstill the rate says how fast it was, not how fast it will be.
        let now = if left == 0 {
            "all are decided".into()
        } else if reading.progress.status == Status::Paused {
            "not before it is resumed".into()
        } else if reading.is_waiting() {
            "not before the outstanding outcomes are known".into()
        } else {
            format!(
                "in about {} at the current rate",
                text::duration(rate.seconds(left))
            )
        };
        (
            "Horizon reached".into(),
            format!("after {} rounds", grouped(self.horizon)),
            now,
        )
    }

    fn gap_text(&self, reading: &Reading) -> String {
        match self.gap_now {
            Some(gap) => amount(gap),
            None if reading.kind() == Kind::Commit => "not needed: the clear test decided".into(),
            None if reading.is_open() => "none yet".into(),
            None => "none".into(),
        }
    }

    fn exploration_planned(&self) -> String {
        let Some((round, share)) = self.exploration else {
            return "never: the plan is blind".into();
        };
        let about = if self.is_about { "about " } else { "" };
        format!(
            "{about}with round {} ({} of the horizon)",
            grouped(round),
            percent(share)
        )
    }

    fn exploration_now(&self, reading: &Reading) -> String {
        match self.explored {
            Some(round) if reading.kind() == Kind::Commit => {
                format!("ended with round {}, by a commitment", grouped(round))
            }
            Some(round) => format!("ended with round {}", grouped(round)),
            None if reading.is_open() => "not yet".into(),
            None => "never: it was over before".into(),
        }
    }
}
