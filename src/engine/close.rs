//! Closing an epoch and opening the next: what is due is estimated, and the policy finds a strategy from it.

use super::{Engine, NO_TARGET};
use crate::key::Label;
use crate::mean::round_to_cell;
use crate::policy::{self, View};
use crate::problem::{Policy, Profile};
use crate::record::{EpochRecord, Estimate, chain};
use crate::width::Width;

impl Engine {
    /// Closes the open epoch and, before the horizon, opens the next one.
    pub(super) fn close_epoch(&mut self) -> EpochRecord {
        assert_eq!(
            self.tally.counts(),
            self.asked,
            "every round handed out is told"
        );
        self.digest = chain(
            self.digest,
            self.open.epoch,
            self.open.rounds,
            &self.strategy,
        );
        // A target reached in the last round makes no estimate and no epoch.
        if self.is_done() {
            return self.open.clone();
        }
        let opened =
            EpochRecord::opening(self.open.epoch + 1, self.next_round(), self.asked.clone());
        let closed = std::mem::replace(&mut self.open, opened);
        self.estimate_due();
        self.open_epoch();
        closed
    }

    /// Estimates what is due at the start of the open epoch.
    fn estimate_due(&mut self) {
        let actions = self.asked.len();
        for action in 0..actions {
            if !self.is_due(action) {
                continue;
            }
            self.estimates.epochs[action] = Some(self.open.epoch);
            for quantity in 0..self.problem().quantities_estimated() {
                self.estimates.means[quantity * actions + action] =
                    self.tally.mean(action as u32, quantity);
            }
            self.round_means(action as u32);
        }
    }

    /// Tight: the action whose count hit a level from k0 on. Paper: the action just played (free, Algorithm 2, line 10), or
    /// all actions played so far (soft and hard, Algorithm 3, lines 9 to 12).
    fn is_due(&self, action: usize) -> bool {
        let count = self.asked[action];
        let problem = self.problem();
        if problem.profile() == Profile::Paper && problem.policy() != Policy::Free {
            return count > 0;
        }
        // The targets are still those of the epoch that was closed. Of the levels below k0 there is no estimate.
        count == self.targets[action] && self.plan.estimated_count(count) == Some(count)
    }

    /// Rounds the means of an action as of its last estimate.
    pub(crate) fn round_means(&mut self, action: u32) {
        let a = action as usize;
        let Some(epoch) = self.estimates.epochs[a] else {
            return;
        };
        for quantity in 0..self.problem().quantities_estimated() {
            let estimate = self.estimate(epoch, action, quantity as u32);
            self.estimates.values[quantity * self.asked.len() + a] = estimate.estimate;
            self.estimates.widths[a] = estimate.width;
            // A restored engine rounds older means too, and the open record shows only those made at its start.
            if epoch == self.open.epoch {
                self.open.estimates.push(estimate);
            }
        }
    }

    /// Algorithm 1: a function of plan, key and raw mean.
    pub(super) fn estimate(&self, epoch: u64, action: u32, quantity: u32) -> Estimate {
        let count = self
            .plan
            .estimated_count(self.open.counts[action as usize])
            .expect("an estimated action has a count");
        let offset = self.offset(epoch, action, quantity, count);
        let Width { width, cell } = self.plan.width(count);
        let mean = self.estimates.means[quantity as usize * self.asked.len() + action as usize];
        let (index, estimate) = round_to_cell(mean, cell, offset);
        Estimate {
            epoch,
            action,
            quantity,
            count,
            mean,
            offset,
            cell,
            index,
            estimate,
            width,
        }
    }

    /// The grid's shift for one estimate, in [0, 1).
    fn offset(&self, epoch: u64, action: u32, quantity: u32, count: u64) -> f64 {
        let action = u64::from(action);
        let quantity = u64::from(quantity);
        // The offset depends on action, quantity and level or epoch, never on the data: two runs must meet the same grid. One
        // offset per estimate, as an offset used before is not independent of the counts it led to (docs/deviations.md, 9).
        let indices = match self.problem().profile() {
            Profile::Tight { .. } => {
                let level = self.plan.level(count).expect("a level's count").level;
                [action, quantity, u64::from(level)]
            }
            Profile::Paper => [epoch, action, quantity],
        };
        self.key.uniform(Label::Offset, indices)
    }

    /// Finds the strategy and the targets of the open epoch.
    pub(crate) fn open_epoch(&mut self) {
        let choice = self.next_strategy();
        self.open.kind = choice.kind;
        self.open.candidate = choice.candidate.into_probabilities();
        self.open.sigma = choice.sigma;
        self.open.strategy = choice.strategy.probabilities().to_vec();
        self.strategy = choice.strategy;
        self.targets = self
            .open
            .counts
            .iter()
            .map(|&count| self.plan.target(count).unwrap_or(NO_TARGET))
            .collect();
        self.handed_out = false;
    }

    /// The one place where the three policies differ.
    fn next_strategy(&self) -> policy::NextStrategy {
        let problem = self.problem();
        let actions = problem.actions().len();
        let thresholds = problem.thresholds();
        let view = self.view();
        match problem.policy() {
            Policy::Free => policy::free(&view, actions),
            Policy::Soft => policy::soft(&view, actions, thresholds),
            Policy::Hard => {
                let safe = problem.safe().expect("policy hard has a safe strategy");
                policy::hard(&view, actions, thresholds, safe)
            }
        }
    }

    /// Optimistic rewards and costs.
    fn view(&self) -> View {
        if let Some(action) = self.plan.explored(&self.open.counts) {
            return View::Explore(action);
        }
        // Costs lie in [0, 1], and profile tight says so of their bounds. Profile paper keeps the published ones, which reach
        // far beyond.
        let (least, most) = match self.problem().profile() {
            Profile::Tight { .. } => (0.0, 1.0),
            Profile::Paper => (f64::NEG_INFINITY, f64::INFINITY),
        };
        View::of(&self.estimates.values, &self.estimates.widths, least, most)
    }
}
