//! An experiment's sums, put together from the engine's snapshot, the progress and what was observed since: what means and limits
//! are shown from.

use anyhow::Result;
use debora::Engine;
use debora::spec::ServiceSpec;

use crate::log::observed::{Observed, ToldSums};
use crate::store::Progress;

/// An experiment's sums, put together: for whoever shows means.
pub struct ToldAccount<'a> {
    /// At the beginning of the open epoch.
    pub engine: &'a Engine,
    /// How far it is.
    pub progress: &'a Progress,
    /// What was told since.
    pub observed: &'a Observed,
    /// What stands in for a missing outcome, in multiples of 2^-53.
    imputed: Vec<u64>,
}

impl<'a> ToldAccount<'a> {
    /// Of an experiment with these rules.
    pub fn new(
        engine: &'a Engine,
        progress: &'a Progress,
        observed: &'a Observed,
        rules: &ServiceSpec,
    ) -> Result<Self> {
        let problem = engine.problem();
        let mut imputed = vec![0; problem.quantities()];
        problem.to_fixed(0, rules.impute[0], &rules.impute[1..], &mut imputed)?;
        Ok(Self {
            engine,
            progress,
            observed,
            imputed,
        })
    }

    /// Imputed rounds of an action before the open epoch.
    fn imputed_before(&self, action: usize) -> u64 {
        // By what was told, and not by the progress: at the end that counts the last epoch among those before.
        let told_before = self
            .progress
            .told(action)
            .saturating_sub(self.observed.open[action].count);
        self.engine.open_record().counts[action].saturating_sub(told_before)
    }

    /// What was told of an action.
    pub fn told(&self, action: usize) -> ToldSums {
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

    /// What was told of all actions, in the whole experiment or in the open epoch alone.
    pub fn all_told(&self, open_epoch: bool) -> ToldSums {
        let mut all = ToldSums::new(self.engine.problem());
        for (action, open) in self.observed.open.iter().enumerate() {
            let told = if open_epoch {
                open.clone()
            } else {
                self.told(action)
            };
            all.add_many(told.count, &told.sums);
        }
        all
    }

    /// What was counted: told, or imputed where nothing was told in time.
    pub fn all_counted(&self, open_epoch: bool) -> ToldSums {
        let mut all = self.all_told(open_epoch);
        for (action, imputed) in self.progress.imputed.iter().enumerate() {
            let before = if open_epoch {
                self.imputed_before(action)
            } else {
                0
            };
            all.add_times(imputed.saturating_sub(before), &self.imputed);
        }
        all
    }

    /// How often each action was expected to be played so far, or in the open epoch alone.
    pub fn expected(&self, open_epoch: bool) -> Vec<f64> {
        let (decided, _) = self.observed.open_epoch(self.progress, self.engine);
        let rounds = decided.iter().sum::<u64>() as f64;
        let strategy = self.engine.strategy().probabilities();
        let before = self.observed.expected.iter();
        strategy
            .iter()
            .zip(before)
            .map(|(probability, before)| {
                rounds * probability + if open_epoch { 0.0 } else { *before }
            })
            .collect()
    }
}
