//! What somebody should look into: one list for every surface.

use super::{LimitState, Reading};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertKind {
    /// Policy hard promised to keep a limit, and outcomes contradict it.
    BrokenPromise,
    /// Outcomes are missing more often of some actions than of others.
    UnevenLoss,
}

impl AlertKind {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::BrokenPromise, Self::UnevenLoss];

    /// Its name in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::BrokenPromise => "broken_promise",
            Self::UnevenLoss => "uneven_loss",
        }
    }
}

/// Something that is wrong, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// What.
    pub kind: AlertKind,
    /// In words.
    pub sentence: String,
}

impl Reading {
    /// All that is wrong, the most important first.
    pub fn alerts(&self) -> Vec<Alert> {
        let ratio = self.sample_ratio();
        let uneven = ratio.mismatch.then(|| ratio.sentence.clone());
        let of_kind = |kind| move |sentence| Alert { kind, sentence };
        let broken = self
            .contradictions()
            .into_iter()
            .map(of_kind(AlertKind::BrokenPromise));
        let uneven = uneven.into_iter().map(of_kind(AlertKind::UnevenLoss));
        broken.chain(uneven).collect()
    }

    /// What contradicts the promise of policy hard, in sentences.
    pub fn contradictions(&self) -> Vec<String> {
        let contradiction = |limit: &LimitState| limit.contradiction(self.policy());
        self.limits().iter().filter_map(contradiction).collect()
    }
}
