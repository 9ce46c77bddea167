//! Do outcomes go missing more often after some actions than after others? In words, for those who look.
//!
//! Missing outcomes are imputed with fixed values, so that decisions replicate anyway. But if what is missing depends on the
//! action, an action is judged by what was put in for it. The checks are [`debora::lab::sample_ratio`]'s.

use debora::lab::sample_ratio::{ALARM, SampleCheck};
use debora::measure::words::{amount, percent, whole};
use serde::Serialize;

use super::Reading;
use crate::log::observed::counts;

/// Told outcomes against decided rounds, and decided rounds against the strategy, action by action.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SampleRatio {
    /// If it does not depend on the action whether and when an outcome is told, the chance that this experiment *ever* shows a
    /// value as small as this is at most this: it may be looked at after every outcome.
    pub p_value: f64,
    /// Whether the p-value is or was below `false_alarm_rate`: outcomes seem to go missing more often after some actions.
    pub mismatch: bool,
    /// The chance of a false alarm over the whole experiment, at most.
    pub false_alarm_rate: f64,
    /// The same in words.
    pub sentence: String,
}

/// Checks an experiment.
pub(super) fn compute(reading: &Reading) -> SampleRatio {
    let (decided, told) = reading
        .observed
        .open_epoch(&reading.progress, &reading.engine);
    let open = counts(&reading.engine, &decided, &told);
    let verdict = reading.observed.checks.verdict(open);
    let mismatch = verdict.p_value < ALARM;
    let told_in_all: u64 = (0..told.len())
        .map(|action| reading.progress.told(action))
        .sum();
    let sentence = match (mismatch, verdict.check) {
        // Nothing is spread like anything else, and its p-value is 1.
        (false, _) if told_in_all == 0 => {
            "No outcomes yet, so missing ones cannot be checked.".to_owned()
        }
        (false, _) => format!(
            "Outcomes arrive evenly across actions (p = {}, valid at any time).",
            amount(verdict.p_value)
        ),
        (true, SampleCheck::Decided) => biased(reading, verdict.action),
        (true, _) => missing(reading, verdict.action, verdict.p_value),
    };
    SampleRatio {
        p_value: verdict.p_value,
        mismatch,
        false_alarm_rate: ALARM,
        sentence: sentence + &unchecked(reading),
    }
}

fn missing(reading: &Reading, action: usize, p_value: f64) -> String {
    let progress = &reading.progress;
    let told = |action: usize| (progress.told(action), progress.decided[action]);
    let share = |(told, decided): (u64, u64)| percent(told as f64 / decided.max(1) as f64);
    let all = (0..progress.decided.len())
        .map(told)
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    format!(
        "Whether an outcome goes missing depends on the action: after {:?} {} of {} were told ({}), over all actions {}. By chance \
         any experiment shows as much with probability at most {}; find out why before trusting the estimates.",
        reading.problem().actions()[action],
        whole(told(action).0),
        whole(told(action).1),
        share(told(action)),
        share(all),
        amount(p_value)
    )
}

fn biased(reading: &Reading, action: usize) -> String {
    format!(
        "Decisions are not spread over the actions as the strategies say: {:?} was decided {} times. The service draws them, so \
         the counts that are stored are wrong, or the program is; run `debora audit` to find out which.",
        reading.problem().actions()[action],
        whole(reading.progress.decided[action])
    )
}

/// What an earlier version closed without keeping what was missing in which epoch.
fn unchecked(reading: &Reading) -> String {
    match reading.observed.checked_from {
        0 => String::new(),
        from => {
            format!(" Epochs before {from} were closed by an earlier version and are not checked.")
        }
    }
}
