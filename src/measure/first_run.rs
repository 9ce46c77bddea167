//! What happened in the first run over time: its strategies and estimates.

use serde::{Deserialize, Serialize};

use crate::lab::epochs::Stretch;
use crate::problem::Problem;
use crate::record::{Estimate, LookTest, Pick};

/// Above what debora's runs have, some hundred however long they are. A player that decides anew in every round has one for
/// each; thinned they are no more than 100 a power of e and what has come since.
const STRETCHES_MAX: usize = 1 << 14;

/// A run as its observer saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstRun {
    /// First round, rounds and strategy of each stretch; of many short ones, their mean strategy.
    pub strategies: Vec<(u64, u64, Vec<f64>)>,
    /// The latest estimate of each action and quantity.
    pub estimates: Vec<Estimate>,
    /// The looks made, in order.
    pub tests: Vec<LookTest>,
    /// The pick, if it was made.
    pub pick: Option<Pick>,
    /// The world's true means, by quantity and action, on each quantity's scale.
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
        self.strategies.push((
            stretch.first_round,
            stretch.rounds,
            stretch.player.strategy().probabilities().to_vec(),
        ));
        if self.strategies.len() == STRETCHES_MAX {
            self.thin();
        }
        let record = stretch.player.record();
        self.tests
            .extend(record.and_then(|record| record.test.clone()));
        self.pick = record
            .and_then(|record| record.pick.clone())
            .or(self.pick.take());
        for estimate in record.iter().flat_map(|record| &record.estimates) {
            // Older estimates no longer decide anything, and would make the file grow with the number of epochs.
            self.estimates
                .retain(|old| (old.action, old.quantity) != (estimate.action, estimate.quantity));
            self.estimates.push(*estimate);
        }
    }

    /// Joins neighbours that together last less than a hundredth of the rounds before them, into their mean strategy.
    fn thin(&mut self) {
        let mut kept: Vec<(u64, u64, Vec<f64>)> = Vec::new();
        for (first, rounds, strategy) in self.strategies.drain(..) {
            match kept.last_mut() {
                // By the logarithm, as figures have it: early rounds are few, and each shows.
                Some(last) if (last.1 + rounds) * 100 < last.0 => {
                    let share = rounds as f64 / (last.1 + rounds) as f64;
                    let probabilities = last.2.iter_mut().zip(&strategy);
                    probabilities.for_each(|(mean, x)| *mean += share * (x - *mean));
                    last.1 += rounds;
                }
                _ => kept.push((first, rounds, strategy)),
            }
        }
        self.strategies = kept;
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
        // Nothing is known of what is not estimated: policy free decides without the costs, and in profile tight by raw rewards.
        let estimated = |quantity: &usize| {
            let mut estimates = self.estimates.iter();
            estimates.any(|estimate| estimate.quantity as usize == *quantity)
        };
        let quantities = problem.estimated().iter().copied().filter(estimated);
        quantities
            .map(|quantity| {
                let range = problem.quantity(quantity).range;
                KnownMean {
                    name: problem.quantity(quantity).name.clone(),
                    interval: self
                        .mean_interval(problem, quantity)
                        .map(|end| range.to_user(end)),
                    threshold: quantity
                        .checked_sub(1)
                        .and_then(|cost| problem.threshold(cost)),
                }
            })
            .collect()
    }

    /// The last strategy's mean of a quantity, on its own scale.
    fn mean_interval(&self, problem: &Problem, quantity: usize) -> [f64; 2] {
        [0, 1].map(|end| {
            let bound = |action: usize| {
                let found = self.estimate(action, quantity);
                // Without an estimate all that is known is the range.
                let share = found.map_or([0.0, 1.0], Estimate::interval)[end];
                problem.on_scale(quantity, action as u32, share)
            };
            self.last_strategy()
                .iter()
                .enumerate()
                .map(|(action, x)| x * bound(action))
                .sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred thousand stretches of one round that alternate: what is kept covers every round once, early ones as they were,
    /// later ones by their mean, and is short.
    #[test]
    fn many_short_stretches_are_thinned_by_the_logarithm_of_the_round() {
        let mut run = FirstRun::default();
        let rounds = 100_000;
        for round in 1..=rounds {
            run.strategies
                .push((round, 1, vec![(round % 2) as f64, (1 - round % 2) as f64]));
            if run.strategies.len() == STRETCHES_MAX {
                run.thin();
            }
        }
        run.thin();
        let kept = &run.strategies;
        assert!(kept.len() < 1_000, "{}", kept.len());
        assert!(kept[..100].iter().all(|(_, rounds, _)| *rounds == 1));
        let mut next = 1;
        for (first, rounds, strategy) in kept {
            assert_eq!(*first, next);
            next += rounds;
            assert!((strategy[0] + strategy[1] - 1.0).abs() < 1e-12);
        }
        assert_eq!(next, rounds + 1);
        let (_, lasts, last) = &kept[kept.len() - 2];
        assert!(
            *lasts > 100 && (last[0] - 0.5).abs() < 0.01,
            "{lasts} {last:?}"
        );
    }
}
