//! An experiment's sums, from the engine's snapshot, the progress and what was observed since: what means and limits are computed
//! from.

use debora::Problem;

use super::Reading;
use crate::log::observed::ToldSums;

/// The rounds that are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundSpan {
    /// All rounds of the experiment.
    All,
    /// Those of the open epoch, or of the last.
    LastEpoch,
}

impl Reading {
    /// Imputed rounds of an action before the open epoch.
    fn imputed_before(&self, action: usize) -> u64 {
        // By what was told, and not by the progress: at the end that counts the last epoch among those before.
        let told_before = self
            .progress
            .told(action)
            .saturating_sub(self.observed.open[action].count);
        self.engine.open_record().counts[action].saturating_sub(told_before)
    }

    /// Sums up what was told of an action.
    pub(super) fn sum_told(&self, action: usize) -> ToldSums {
        let quantities = self.imputed.len();
        let imputed = self.imputed_before(action);
        let before = self.engine.open_record().counts[action] - imputed;
        let sums = &self.engine.tally().sums()[action * quantities..][..quantities];
        let told_of = |(sum, value): (&u128, &u64)| {
            sum.saturating_sub(u128::from(imputed) * u128::from(*value))
        };
        let mut told = self.observed.open[action].clone();
        let sums: Vec<u128> = sums.iter().zip(&self.imputed).map(told_of).collect();
        told.add_many(before, &sums);
        told
    }

    /// Sums up what was told of all actions.
    pub(super) fn sum_all_told(&self, span: RoundSpan) -> ToldSums {
        let mut all = ToldSums::new(self.problem());
        for (action, open) in self.observed.open.iter().enumerate() {
            let told = match span {
                RoundSpan::All => self.sum_told(action),
                RoundSpan::LastEpoch => open.clone(),
            };
            all.add_many(told.count, &told.sums);
        }
        all
    }

    /// Sums up what was counted: what was told, and what was imputed where nothing was told in time.
    pub(super) fn sum_all_counted(&self, span: RoundSpan, told: &ToldSums) -> ToldSums {
        let mut all = told.clone();
        for (action, imputed) in self.progress.imputed.iter().enumerate() {
            let before = match span {
                RoundSpan::All => 0,
                RoundSpan::LastEpoch => self.imputed_before(action),
            };
            all.add_times(imputed.saturating_sub(before), &self.imputed);
        }
        all
    }

    /// How often the strategies were expected to play each action.
    pub(super) fn expected_plays(&self, span: RoundSpan) -> Vec<f64> {
        let (decided, _) = self.observed.open_epoch(&self.progress, &self.engine);
        let rounds = decided.iter().sum::<u64>() as f64;
        let strategy = self.engine.strategy().probabilities();
        let before = self.observed.expected.iter();
        strategy
            .iter()
            .zip(before)
            .map(|(probability, before)| {
                let before = match span {
                    RoundSpan::All => *before,
                    RoundSpan::LastEpoch => 0.0,
                };
                rounds * probability + before
            })
            .collect()
    }
}

/// The plain mean of a quantity, in the user's units; `None` of no outcome.
pub(super) fn mean_of(problem: &Problem, quantity: usize, told: &ToldSums) -> Option<f64> {
    let range = problem.quantity(quantity).range;
    (told.count > 0).then(|| range.to_user(told.sum(quantity) / told.count as f64))
}
