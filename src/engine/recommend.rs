//! What to deploy when the experiment ends: the current strategy, with what it is known to give.

use super::Engine;
use crate::record::{Interval, Recommendation};

impl Engine {
    /// The current strategy and what it is known to give: what to deploy when the experiment ends.
    pub fn recommendation(&self) -> Recommendation {
        Recommendation {
            strategy: self.strategy.probabilities().to_vec(),
            kind: self.open.kind,
            reward: self.expected(0),
            costs: (1..self.problem().quantities())
                .map(|quantity| self.expected(quantity))
                .collect(),
        }
    }

    /// The interval of the strategy's expectation of a quantity, in the user's units.
    fn expected(&self, quantity: usize) -> Interval {
        let actions = 0..self.asked.len();
        let (low, high): (Vec<f64>, Vec<f64>) = actions
            .map(|action| self.bounds_of(action, quantity).into())
            .unzip();
        let range = self.problem().quantity(quantity).range;
        Interval {
            low: range.to_user(self.strategy.expectation(&low)),
            high: range.to_user(self.strategy.expectation(&high)),
        }
    }

    /// What is known of a mean, on the unit scale.
    fn bounds_of(&self, action: usize, quantity: usize) -> [f64; 2] {
        match self.estimates.epochs[action] {
            Some(epoch) if quantity < self.problem().quantities_estimated() => self
                .estimate(epoch, action as u32, quantity as u32)
                .interval(),
            // Without an estimate all that is known is the range, and policy free does not estimate costs.
            _ => [0.0, 1.0],
        }
    }
}
