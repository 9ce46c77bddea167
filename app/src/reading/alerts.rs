//! What somebody should look into: one list for every surface.

use debora::measure::words::amount;

use super::{LimitState, Reading};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertKind {
    /// Policy hard promised to keep a limit, and outcomes contradict it.
    BrokenPromise,
    /// Outcomes are missing more often of some actions than of others.
    UnevenLoss,
    /// A declared mean is not where it was said to be.
    FalseMean,
}

impl AlertKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::BrokenPromise, Self::UnevenLoss, Self::FalseMean];

    /// Its name in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::BrokenPromise => "broken_promise",
            Self::UnevenLoss => "uneven_loss",
            Self::FalseMean => "false_mean",
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
        let [broken, false_means] = [self.contradictions(), self.false_means()];
        let of_kind = |kind| move |sentence| Alert { kind, sentence };
        let broken = broken.into_iter().map(of_kind(AlertKind::BrokenPromise));
        let uneven = uneven.into_iter().map(of_kind(AlertKind::UnevenLoss));
        let false_means = false_means.into_iter().map(of_kind(AlertKind::FalseMean));
        broken.chain(uneven).chain(false_means).collect()
    }

    /// What contradicts the promise of policy hard, in sentences.
    pub fn contradictions(&self) -> Vec<String> {
        let contradiction = |limit: &LimitState| limit.contradiction(self.policy());
        self.limits().iter().filter_map(contradiction).collect()
    }

    /// The declared means that estimates contradict: their intervals lie outside, so unless an event of probability delta
    /// happened the premise is false.
    pub fn false_means(&self) -> Vec<String> {
        let problem = self.problem();
        let mut sentences = Vec::new();
        for estimate in self.engine.estimates() {
            let quantity = estimate.quantity as usize;
            let declared = problem.means(quantity);
            let [low, high] = estimate.interval();
            // An interval that reaches into the declared means says nothing against them.
            if high >= declared.low && low <= declared.high {
                continue;
            }
            let name = &problem.quantity(quantity).name;
            let action = &problem.actions()[estimate.action as usize];
            let [low, high, declared_low, declared_high] = [low, high, declared.low, declared.high]
                .map(|unit| amount(problem.quantity(quantity).range.to_user(unit)));
            sentences.push(format!(
                "The declared mean of {name} is false: {name} of {action:?} lies between {low} and {high}, and {declared_low} to \
                 {declared_high} is declared. Nothing is promised then; start again with a wider range."
            ));
        }
        sentences
    }
}
