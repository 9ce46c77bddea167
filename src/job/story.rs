//! What happened in the first run over time: its strategies and estimates.

use serde::{Deserialize, Serialize};

use crate::lab::epochs::Stretch;
use crate::problem::Problem;
use crate::record::Estimate;

/// A run as its observer saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Story {
    /// First round, rounds and strategy of each stretch.
    pub strategies: Vec<(u64, u64, Vec<f64>)>,
    /// The latest estimate of each action and quantity.
    pub estimates: Vec<Estimate>,
}

/// What a strategy is known to give of one quantity, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The quantity.
    pub name: String,
    /// Its mean lies in here.
    pub interval: [f64; 2],
    /// A cost's threshold.
    pub threshold: Option<f64>,
}

impl Story {
    /// A story before its first stretch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stretch.
    pub fn add(&mut self, stretch: &Stretch) {
        self.strategies.push((
            stretch.first_round,
            stretch.rounds,
            stretch.player.strategy().probabilities().to_vec(),
        ));
        for estimate in stretch
            .player
            .record()
            .iter()
            .flat_map(|record| &record.estimates)
        {
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
    pub fn known(&self, problem: &Problem) -> Vec<Known> {
        let end = |quantity: usize, sign: f64| -> f64 {
            let bound = |action: usize| {
                let found = self.estimate(action, quantity);
                found.map_or(0.5 + 0.5 * sign, |e| {
                    (e.estimate + sign * e.width).clamp(0.0, 1.0)
                })
            };
            self.last_strategy()
                .iter()
                .enumerate()
                .map(|(action, x)| x * bound(action))
                .sum()
        };
        let known = |quantity: usize| {
            let range = problem.quantity(quantity).range;
            let threshold = quantity
                .checked_sub(1)
                .map(|cost| range.to_user(problem.thresholds()[cost]));
            let interval = [-1.0, 1.0].map(|sign| range.to_user(end(quantity, sign)));
            Known {
                name: problem.quantity(quantity).name.clone(),
                interval,
                threshold,
            }
        };
        (0..problem.quantities_estimated()).map(known).collect()
    }
}
