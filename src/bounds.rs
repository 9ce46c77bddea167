//! What is known of every action from its latest estimates: the ends that strategies are found from.
//!
//! ```text
//! low_i, high_i = cost i at yhat -+ width        mid_i = cost i at yhat + caution width
//! index         = reward at yhat + width, plus max(0, yhat + width - y1), at most low_0 + 1
//! span          = the largest of index - low_0 and high_i - low_i
//! ```
//!
//! Costs are on their own scale, where an action's entry v is low end + span v; a known cost is its low end, and its span 0. In
//! profile paper r +- width and g_i +- width on the plain line, unclipped. Source: docs/theory.md, "The strategy of an epoch".

use crate::line::MeanLine;
use crate::problem::{Problem, Range};
use crate::strategy::Strategy;

/// Per action; per limited cost and action, row by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// Optimistic rewards.
    pub index: Vec<f64>,
    /// Pessimistic rewards.
    pub reward_low: Vec<f64>,
    /// Optimistic costs.
    pub low: Vec<f64>,
    /// Moderate costs.
    pub mid: Vec<f64>,
    /// Pessimistic costs.
    pub high: Vec<f64>,
    /// How much is in doubt.
    pub span: Vec<f64>,
}

/// A mean's place on the line and how far from it the truth may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanPlace {
    pub line: MeanLine,
    pub middle: f64,
    pub width: f64,
}

impl MeanPlace {
    /// The mean so many widths above the middle.
    pub fn at(&self, widths: f64) -> f64 {
        self.line.mean(self.middle + widths * self.width)
    }
}

impl Bounds {
    /// What is known before any estimate: all that ranges allow.
    pub fn before(problem: &Problem) -> Self {
        let actions = problem.actions().len();
        let limited = &problem.estimated()[1..];
        let entries = || {
            limited.iter().flat_map(|&quantity| {
                let quantity = problem.quantity(quantity);
                (0..actions as u32).map(move |action| quantity.entry(action))
            })
        };
        Self {
            index: vec![1.0; actions],
            reward_low: vec![0.0; actions],
            low: entries().map(|entry| entry.low).collect(),
            mid: entries().map(|entry| entry.high).collect(),
            high: entries().map(|entry| entry.high).collect(),
            span: vec![1.0; actions],
        }
    }

    /// Notes a reward on the line.
    pub fn set_reward(&mut self, action: usize, place: MeanPlace) {
        let [_, most] = place.line.ends();
        let low = place.at(-1.0);
        // Beyond the line's end the mean is 1 for all: the excess only orders actions whose reward may be 1.
        let excess = (place.middle + place.width - most).max(0.0);
        self.reward_low[action] = low;
        self.index[action] = (place.at(1.0) + excess).min(low + 1.0);
    }

    /// Notes a cost on the line, by its number among the limited ones; `entry` is where its action's range lies.
    pub fn set_cost(
        &mut self,
        cost: usize,
        action: usize,
        place: MeanPlace,
        entry: Range,
        caution: f64,
    ) {
        let at = cost * self.index.len() + action;
        let on_scale = |mean: f64| entry.low + entry.span() * mean;
        self.low[at] = on_scale(place.at(-1.0));
        self.mid[at] = on_scale(place.at(caution));
        self.high[at] = on_scale(place.at(1.0));
    }

    /// Notes a reward (quantity 0) or a cost on the plain line.
    pub fn set_plain(&mut self, quantity: usize, action: usize, estimate: f64, width: f64) {
        let (low, high) = (estimate - width, estimate + width);
        let Some(cost) = quantity.checked_sub(1) else {
            self.reward_low[action] = low;
            self.index[action] = high;
            return;
        };
        let at = cost * self.index.len() + action;
        (self.low[at], self.mid[at], self.high[at]) = (low, estimate, high);
    }

    /// What a strategy costs, each action at its end among these: a limited cost, by its number.
    pub fn cost_of(&self, strategy: &Strategy, ends: &[f64], cost: usize) -> f64 {
        let actions = self.index.len();
        strategy.expectation(&ends[cost * actions..][..actions])
    }

    /// Finds the span of an action from its ends.
    pub fn set_span(&mut self, action: usize) {
        let actions = self.index.len();
        let rows = self.low.chunks(actions).zip(self.high.chunks(actions));
        let of_costs = rows.map(|(low, high)| high[action] - low[action]);
        let of_reward = self.index[action] - self.reward_low[action];
        self.span[action] = of_costs.fold(of_reward, f64::max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        let ranges = vec![[0.0, 1.0], [2.0, 2.0], [1.0, 4.0]];
        let draft = Problem::soft(["a", "b", "c"], 1_000, 0.3).watch("seen", [0.0, 1.0]);
        draft.cost("price", ranges, 1.0).build().unwrap()
    }

    #[test]
    fn costs_are_on_their_own_scale_and_a_known_one_is_its_low_end() {
        let mut bounds = Bounds::before(&problem());
        assert_eq!(
            (bounds.low.clone(), bounds.high.clone()),
            (vec![0.0, 0.5, 0.25], vec![0.25, 0.5, 1.0])
        );
        let line = MeanLine::new(100, 1.0);
        let place = MeanPlace {
            line,
            middle: line.of_mean(0.5),
            width: 0.1,
        };
        bounds.set_cost(0, 2, place, problem().quantity(2).entry(2), 0.5);
        let ends = [bounds.low[2], bounds.mid[2], bounds.high[2]];
        let wanted = [-1.0, 0.5, 1.0].map(|widths| 0.25 + 0.75 * place.at(widths));
        assert_eq!(ends, wanted);
        bounds.set_reward(2, place);
        bounds.set_span(2);
        let larger = (place.at(1.0) - place.at(-1.0)).max(ends[2] - ends[0]);
        assert_eq!(bounds.span[2], larger);
    }

    /// Both may earn 1; the one further beyond the end comes first, by less than what it may earn at least allows.
    #[test]
    fn actions_whose_reward_may_be_one_are_ordered_by_their_excess() {
        let line = MeanLine::new(100, 1.0);
        let [least, most] = line.ends();
        let mut bounds = Bounds::before(&problem());
        for (action, middle) in [(0, most - 0.05), (1, most - 0.02), (2, least)] {
            let width = if action == 2 { 2.0 } else { 0.1 };
            bounds.set_reward(
                action,
                MeanPlace {
                    line,
                    middle,
                    width,
                },
            );
        }
        assert!((bounds.index[0] - 1.05).abs() < 1e-12 && (bounds.index[1] - 1.08).abs() < 1e-12);
        assert_eq!((bounds.reward_low[2], bounds.index[2]), (0.0, 1.0));
    }
}
