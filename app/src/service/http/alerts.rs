//! What somebody should look into: one list for the state, the list of experiments and an experiment's page.

use debora::Policy;

use crate::log::kept::{LimitState, contradictions};
use crate::log::sample_ratio::SampleRatio;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertKind {
    /// Policy hard promised to keep a limit, and outcomes contradict it.
    BrokenPromise,
    /// Outcomes are missing more often of some actions than of others.
    UnevenLoss,
}

/// Each in a sentence.
pub fn alerts(
    policy: Policy,
    limits: &[LimitState],
    sample_ratio: &SampleRatio,
) -> Vec<(AlertKind, String)> {
    let broken = contradictions(policy, limits).into_iter();
    let uneven = sample_ratio.mismatch.then(|| sample_ratio.sentence.clone());
    broken
        .map(|sentence| (AlertKind::BrokenPromise, sentence))
        .chain(uneven.map(|sentence| (AlertKind::UnevenLoss, sentence)))
        .collect()
}

/// The sentences alone.
pub fn sentences(alerts: Vec<(AlertKind, String)>) -> Vec<String> {
    alerts.into_iter().map(|(_, sentence)| sentence).collect()
}
