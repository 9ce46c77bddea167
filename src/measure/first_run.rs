//! What happened in the first run over time: its strategies and estimates.

use serde::{Deserialize, Serialize};

use crate::lab::epochs::Stretch;
use crate::problem::{Problem, Range};
use crate::record::{ClearTest, Estimate};

/// A run as its observer saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstRun {
    /// First round, rounds and strategy of each stretch.
    pub strategies: Vec<(u64, u64, Vec<f64>)>,
    /// The latest estimate of each action and quantity.
    pub estimates: Vec<Estimate>,
    /// The clear tests made, in order.
    pub tests: Vec<ClearTest>,
    /// The world's true means, by quantity and action, on the unit scale. Files of earlier versions have none.
    #[serde(default)]
    pub truth: Vec<Vec<f64>>,
}

/// What a strategy is known to give of one quantity, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownMean {
    /// The quantity.
    pub name: String,
    /// Its mean lies in here.
    pub interval: [f64; 2],
    /// A cost's threshold.
    pub threshold: Option<f64>,
}

impl FirstRun {
    /// Before the first stretch, in a world of these means.
    pub fn new(truth: &[Vec<f64>]) -> Self {
        Self {
            truth: truth.to_vec(),
            ..Self::default()
        }
    }

    /// Adds a stretch.
    pub fn add(&mut self, stretch: &Stretch) {
        // All of them: a run has some hundred stretches however long it is.
        self.strategies.push((
            stretch.first_round,
            stretch.rounds,
            stretch.player.strategy().probabilities().to_vec(),
        ));
        let record = stretch.player.record();
        self.tests
            .extend(record.and_then(|record| record.test.clone()));
        for estimate in record.iter().flat_map(|record| &record.estimates) {
            // Older estimates no longer decide anything, and would make the file grow with the number of epochs.
            self.estimates
                .retain(|old| (old.action, old.quantity) != (estimate.action, estimate.quantity));
            self.estimates.push(*estimate);
        }
    }

    /// The latest estimate of a quantity of an action, if there is one.
    pub fn estimate(&self, action: usize, quantity: usize) -> Option<&Estimate> {
        self.estimates
            .iter()
            .find(|e| (e.action as usize, e.quantity as usize) == (action, quantity))
    }

    /// The last strategy; empty before the first stretch.
    pub fn last_strategy(&self) -> &[f64] {
        self.strategies
            .last()
            .map(|(.., strategy)| strategy.as_slice())
            .unwrap_or_default()
    }

    /// What the last strategy is known to give, quantity by quantity.
    pub fn known_means(&self, problem: &Problem) -> Vec<KnownMean> {
        // Nothing is known of what is not estimated: policy free decides without the costs.
        (0..problem.quantities_estimated())
            .map(|quantity| {
                let range = problem.quantity(quantity).range;
                KnownMean {
                    name: problem.quantity(quantity).name.clone(),
                    interval: self
                        .mean_interval(quantity, problem.means(quantity))
                        .map(|end| range.to_user(end)),
                    threshold: quantity.checked_sub(1).map(|cost| problem.threshold(cost)),
                }
            })
            .collect()
    }

    /// The last strategy's mean of a quantity, on the unit scale, where its means are declared to lie in `means`.
    fn mean_interval(&self, quantity: usize, means: Range) -> [f64; 2] {
        [0, 1].map(|end| {
            let bound = |action: usize| {
                let found = self.estimate(action, quantity);
                // Without an estimate all that is known is what was declared.
                let declared = [means.low, means.high];
                found.map_or(declared, |estimate| {
                    estimate
                        .interval()
                        .map(|end| end.clamp(means.low, means.high))
                })[end]
            };
            self.last_strategy()
                .iter()
                .enumerate()
                .map(|(action, x)| x * bound(action))
                .sum()
        })
    }
}
