//! What a run may cost at most, from the plan alone and, more sharply, from what was played.
//!
//! ```text
//! d(n) = min(1, (1 + 2c/n) 2 width(n)),  1 below n_f          the span of an action with n samples, at most
//! N    = K F(T/K) + sqrt(T ln(1/delta)/2)                     F(n) = sum of d at the level of count p - 1, p = 1..n
//! soft  regret <= 4 N,  violation <= N        hard  regret <= (1 + 1/margin) N,  violation 0        no limits: regret <= N
//! free  regret <= K n_f + (T - K n_f) loss                    loss: see `Trial::loss_after`
//! ```
//!
//! Each with probability 1 - 2 delta, and at most T. As d never rises from pull to pull F is concave, and spreading the rounds
//! evenly over the actions is worst. Source: docs/theory.md, "Bounds".

use super::Plan;
use crate::problem::{Policy, Profile};
use crate::width;

impl Plan {
    /// Sets the bounds, which fail with probability `failures` times delta.
    pub(super) fn set_bounds(&mut self, failures: f64) {
        (self.regret_bound, self.violation_bound) = self.bounds_at(self.problem.horizon());
        self.bound_probability = (1.0 - failures * self.problem.delta()).max(0.0);
    }

    /// Bounds on regret and violation after this many rounds of the run, each with probability `bound_probability`.
    pub fn bounds_at(&self, round: u64) -> (f64, Option<f64>) {
        let rounds = round as f64;
        match (self.problem.profile(), self.problem.policy()) {
            (Profile::Tight { .. }, Policy::Free) => (self.free_bound(rounds), None),
            (Profile::Tight { .. }, _) => {
                let (regret, violation) = self.of_spans(self.spans_at_most(rounds), rounds);
                (regret, Some(violation))
            }
            (Profile::Paper, policy) => self.paper_bounds(rounds, policy),
        }
    }

    /// Regret and violation at most after these rounds, of strategies whose spans sum to `spans`, the draws' chance included:
    /// what a run's record says, once it is over.
    pub fn bounds_of_spans(&self, spans: f64, rounds: u64) -> (f64, f64) {
        let rounds = rounds as f64;
        // Free draws nothing that counts: its exploration has fixed counts, and then it plays one action.
        if self.problem.policy() == Policy::Free {
            return (spans.min(rounds), 0.0);
        }
        self.of_spans(spans + self.drawn(rounds), rounds)
    }

    fn of_spans(&self, sum: f64, rounds: f64) -> (f64, f64) {
        let problem = &self.problem;
        let limited = !problem.thresholds().is_empty();
        let factor = match problem.margin_min() {
            // Mixing with the safe strategy costs at most span.x / margin.
            Some(margin) => 1.0 + 1.0 / margin,
            // What the moderate rule gives up is at most three spans.
            None if limited && problem.policy() == Policy::Soft => 4.0,
            None => 1.0,
        };
        let violation = match problem.policy() {
            Policy::Soft if limited => sum.min(rounds),
            _ => 0.0,
        };
        ((factor * sum).min(rounds), violation)
    }

    /// N: the sum of the played strategies' spans at most.
    fn spans_at_most(&self, rounds: f64) -> f64 {
        let actions = self.problem.actions().len() as f64;
        actions * self.span_sum(rounds / actions) + self.drawn(rounds)
    }

    /// F, linear between integers.
    fn span_sum(&self, pulls: f64) -> f64 {
        let first = self
            .levels
            .first()
            .map_or(f64::INFINITY, |first| first.count as f64);
        let mut sum = pulls.min(first);
        for (k, level) in self.levels.iter().enumerate() {
            let end = self
                .levels
                .get(k + 1)
                .map_or(f64::INFINITY, |next| next.count as f64);
            let slope = 1.0 + 2.0 * self.offset_c.unwrap_or(0.0) / level.count as f64;
            let span = (slope * 2.0 * level.width).min(1.0);
            sum += span * (pulls.min(end) - level.count as f64).max(0.0);
        }
        sum
    }

    /// Azuma and Hoeffding over the draws of actions: sqrt(T ln(1/delta)/2).
    fn drawn(&self, rounds: f64) -> f64 {
        libm::sqrt(rounds * libm::log(1.0 / self.problem.delta()) / 2.0)
    }

    fn free_bound(&self, rounds: f64) -> f64 {
        let Some(trial) = &self.trial else {
            return rounds;
        };
        let actions = self.problem.actions().len() as f64;
        let tried = rounds.min(actions * trial.count as f64);
        tried + (rounds - tried) * trial.loss_after(self.problem.delta())
    }

    /// Section "Bounds of profile paper" of docs/deviations.md.
    fn paper_bounds(&self, rounds: f64, policy: Policy) -> (f64, Option<f64>) {
        let actions = self.problem.actions().len() as f64;
        let drawn = match policy {
            Policy::Free => 0.0,
            Policy::Soft | Policy::Hard => {
                libm::sqrt(2.0 * rounds * libm::log(4.0 / self.problem.delta()))
            }
        };
        let share = self.share.expect("profile paper has shares");
        let sum = 2.0
            * std::f64::consts::SQRT_2
            * width::paper(share, 1).width
            * (2.0 * libm::sqrt(actions * rounds) + drawn);
        let factor = self
            .problem
            .margin_min()
            .map_or(1.0, |margin| 1.0 + 1.0 / margin);
        let violation = match policy {
            Policy::Free => None,
            Policy::Soft => Some(sum.min(rounds)),
            Policy::Hard => Some(0.0),
        };
        ((factor * sum).min(rounds), violation)
    }
}
