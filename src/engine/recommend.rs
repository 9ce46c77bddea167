//! What to deploy when the experiment ends: the cautious strategy and, beside it, the current one, with what they are known to
//! give.
//!
//! ```text
//! cautious = argmax low_0.x   over   high_i.x <= alpha_i
//! ```
//!
//! It keeps every limit with probability 1 - delta. Under hard limits the safe strategy, whose cost is known, is one more
//! action of the program, so that there always is an answer. Source: docs/theory.md, "What to deploy".

use super::Engine;
use crate::bounds::MeanPlace;
use crate::line::MeanLine;
use crate::lp::{self, Solver};
use crate::policy::{self, View};
use crate::problem::{Policy, Profile, Safe};
use crate::record::{Interval, Kind, Prospect, Recommendation};
use crate::strategy::Strategy;
use crate::width::radius;

/// Part of a strategy, by which the safe strategy may be told apart: its cost is known better than its actions' costs.
struct Mixture<'a> {
    /// What every action adds, in all 1 - sigma.
    own: Vec<f64>,
    sigma: f64,
    safe: Option<&'a Safe>,
}

impl Engine {
    /// The current strategy and the cautious one, with what they are known to give: what to deploy when the experiment ends.
    pub fn recommendation(&self) -> Recommendation {
        let open = &self.open;
        let current = Mixture {
            own: open
                .candidate
                .iter()
                .map(|probability| (1.0 - open.sigma) * probability)
                .collect(),
            sigma: open.sigma,
            safe: self.problem().safe(),
        };
        Recommendation {
            kind: open.kind,
            current: self.prospect(self.strategy.probabilities().to_vec(), &current),
            cautious: self.cautious().map(|mixture| {
                let strategy = mixture.probabilities();
                self.prospect(strategy, &mixture)
            }),
        }
    }

    fn cautious(&self) -> Option<Mixture<'_>> {
        let problem = self.problem();
        let safe = problem.safe();
        // What was committed to or picked is what the run is sure of.
        if self.open.decided().is_some() {
            return Some(Mixture::plain(self.strategy.probabilities().to_vec()));
        }
        let View::Estimate(bounds) = self.grounds().view() else {
            return safe.map(|safe| Mixture::only_safe(safe, self.asked.len()));
        };
        let (rewards, high) = (&bounds.reward_low, &bounds.high);
        let thresholds = problem.thresholds();
        match (problem.policy(), safe) {
            (_, Some(safe)) => {
                let (own, sigma) =
                    policy::best_with_safe(rewards, high, thresholds, safe, &mut Solver::default());
                Some(Mixture {
                    own,
                    sigma,
                    safe: Some(safe),
                })
            }
            (Policy::Free, None) => {
                let best = lp::first_largest(rewards) as u32;
                let pure = Strategy::pure(best, rewards.len());
                Some(Mixture::plain(pure.into_probabilities()))
            }
            (_, None) => {
                let solution = lp::solve(rewards, high, thresholds);
                // The least violation is still one: then no strategy is sure to keep the limits.
                (solution.violation <= 0.0).then(|| Mixture::plain(solution.strategy))
            }
        }
    }

    fn prospect(&self, strategy: Vec<f64>, mixture: &Mixture) -> Prospect {
        Prospect {
            strategy,
            reward: self.expected(mixture, 0),
            costs: (1..self.problem().quantities())
                .map(|quantity| self.expected(mixture, quantity))
                .collect(),
        }
    }

    /// The interval of a strategy's expectation of a quantity, in the user's units.
    fn expected(&self, mixture: &Mixture, quantity: usize) -> Interval {
        let bounds: Vec<[f64; 2]> = (0..self.asked.len())
            .map(|action| self.bounds_of(action, quantity))
            .collect();
        let at = |end: usize| {
            let own: f64 = bounds
                .iter()
                .zip(&mixture.own)
                .map(|(b, x)| b[end] * x)
                .sum();
            let Some(safe) = mixture.safe else { return own };
            let plays = safe.strategy.probabilities();
            let mut known: f64 = bounds.iter().zip(plays).map(|(b, x)| b[end] * x).sum();
            // The premise of hard limits says more about the safe strategy's cost than its actions' estimates may.
            let mut limited = self.problem().limited().iter();
            let limit = limited.position(|&limited| limited == quantity);
            if let (Some(cost), 1) = (limit, end) {
                known = known.min(self.problem().thresholds()[cost] - safe.margins[cost]);
            }
            own + mixture.sigma * known
        };
        let range = self.problem().quantity(quantity).range;
        let low = at(0);
        Interval {
            low: range.to_user(low),
            // Off the clean event the premise may contradict the estimates; an interval must not be inside out.
            high: range.to_user(at(1).max(low)),
        }
    }

    /// What is known of a mean, on its quantity's own scale.
    fn bounds_of(&self, action: usize, quantity: usize) -> [f64; 2] {
        if quantity == 0 && self.open.decided().is_some() {
            return self.reward_tried(action);
        }
        let entry = self.problem().quantity(quantity).entry(action as u32);
        let mut estimated = self.problem().estimated().iter();
        let place = estimated.position(|&estimated| estimated == quantity);
        let estimate = self.estimates.epochs[action]
            .and_then(|epoch| self.estimate(epoch, action as u32, place?));
        match estimate {
            Some(estimate) => estimate
                .interval()
                .map(|end| entry.low + entry.span() * end),
            // Without an estimate all that is known is the range; of a known value, that it is one.
            None => [entry.low, entry.high],
        }
    }

    pub(super) fn span_of_round(&self) -> Option<f64> {
        if self.problem().profile() == Profile::Paper {
            return None;
        }
        if self.exploring().is_some() {
            return Some(1.0);
        }
        let Some((kind, played)) = self.open.decided() else {
            let span = self.strategy.expectation(&self.estimates.bounds.span);
            return Some(span);
        };
        // A commitment is to the best action but for a chance that the budget of delta holds.
        if kind == Kind::Commit {
            return Some(0.0);
        }
        let highs = (0..self.asked.len()).map(|action| self.reward_tried(action)[1]);
        let [low, _] = self.reward_tried(played as usize);
        Some((highs.fold(0.0, f64::max) - low).clamp(0.0, 1.0))
    }

    /// What the trial's samples say of a reward: all actions together with probability 1 - delta.
    fn reward_tried(&self, action: usize) -> [f64; 2] {
        let trial = self.plan.trial.as_ref().expect("policy free has a trial");
        let count = self.open.counts[action];
        let line = MeanLine::new(count, trial.offset_c);
        let share = self.problem().delta() / self.asked.len() as f64;
        let place = MeanPlace {
            line,
            middle: line.of_sum(self.trial_sums[action]),
            width: radius(share, count),
        };
        [-1.0, 1.0].map(|widths| place.at(widths))
    }
}

impl<'a> Mixture<'a> {
    fn plain(own: Vec<f64>) -> Self {
        Self {
            own,
            sigma: 0.0,
            safe: None,
        }
    }

    fn only_safe(safe: &'a Safe, actions: usize) -> Self {
        Self {
            own: vec![0.0; actions],
            sigma: 1.0,
            safe: Some(safe),
        }
    }

    fn probabilities(&self) -> Vec<f64> {
        let Some(safe) = self.safe else {
            return self.own.clone();
        };
        let plays = safe.strategy.probabilities();
        self.own
            .iter()
            .zip(plays)
            .map(|(own, safe)| own + self.sigma * safe)
            .collect()
    }
}
