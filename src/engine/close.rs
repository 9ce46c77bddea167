//! Closing an epoch and opening the next: what is due is estimated, and the policy finds a strategy from it.

use super::grounds::Grounds;
use super::{Engine, NO_TARGET};
use crate::blocks::Blocks;
use crate::key::Label;
use crate::mean::round_to_cell;
use crate::plan::Explore;
use crate::policy::{NextStrategy, Sight, View};
use crate::problem::{Policy, Profile};
use crate::record::{ClearTest, EpochRecord, Estimate, Kind, chain};
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
        let opened = self.record_to_open();
        let closed = std::mem::replace(&mut self.open, opened);
        self.open.test = self.clear_test();
        // A run that commits needs no estimate.
        if !self.is_committed() {
            self.estimate_due(&closed.counts);
        }
        self.open_epoch();
        closed
    }

    fn record_to_open(&mut self) -> EpochRecord {
        let record = self.spare.take();
        let mut record = record.unwrap_or_else(|| EpochRecord::opening(0, 1, Vec::new()));
        record.estimates.clear();
        refill(&mut record.counts, &self.asked);
        EpochRecord {
            epoch: self.open.epoch + 1,
            first_round: self.next_round(),
            rounds: 0,
            test: None,
            ..record
        }
    }

    /// Takes back the record of a closed epoch, whose memory then serves the epoch after the open one.
    pub(crate) fn recycle(&mut self, closed: EpochRecord) {
        self.spare = Some(closed);
    }

    /// The stage of the clear test that the open epoch's start ends, if it ends one.
    pub(crate) fn stage(&self) -> Option<usize> {
        let counts = &self.open.counts;
        // Counts may be equal again later, but then above n_f, which is the last stage.
        let together = counts.iter().all(|count| *count == counts[0]);
        together.then(|| self.plan.clear.as_ref()?.stage(counts[0]))?
    }

    /// The one place where raw means decide; what that may cost of rho is in the plan (docs/theory.md, "The clear test").
    fn clear_test(&self) -> Option<ClearTest> {
        let stage = self.stage()?;
        let actions = 0..self.asked.len() as u32;
        let means = actions.map(|action| self.tally.mean(action, 0)).collect();
        let clear = self.plan.clear.as_ref()?;
        Some(clear.test(self.key, stage, means))
    }

    /// Whether the clear test found an action ahead, so that nothing is left to decide.
    pub(crate) fn is_committed(&self) -> bool {
        self.open.test.as_ref().is_some_and(|test| test.passed)
    }

    /// Estimates what is due at the start of the open epoch; `before` are the counts at the start of the one before.
    fn estimate_due(&mut self, before: &[u64]) {
        let actions = self.asked.len();
        let problem = self.problem();
        let all_are = problem.profile() == Profile::Paper && problem.policy() != Policy::Free;
        for (action, &before) in before.iter().enumerate() {
            // An action that stood still has its estimate already, from the same samples.
            let played = self.asked[action] > before;
            if !(all_are || played) || !self.is_due(self.asked[action], all_are) {
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

    /// Tight: the actions whose counts hit a level. Paper: the action just played (free, Algorithm 2, line 10), or all
    /// actions played so far (soft and hard, Algorithm 3, lines 9 to 12).
    fn is_due(&self, count: u64, all_are: bool) -> bool {
        if all_are {
            return count > 0;
        }
        self.plan.estimated_count(count) == Some(count)
    }

    /// Rounds the means of an action as of its last estimate.
    pub(crate) fn round_means(&mut self, action: u32) {
        let a = action as usize;
        let Some(epoch) = self.estimates.epochs[a] else {
            return;
        };
        for quantity in 0..self.problem().quantities_estimated() {
            let estimate = self.estimate(epoch, action, quantity as u32);
            let entry = quantity * self.asked.len() + a;
            self.estimates.values[entry] = estimate.estimate;
            self.estimates.widths[entry] = estimate.width;
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
        // Profile paper lists levels too, as examples, but estimates at any count.
        let level = match self.problem().profile() {
            Profile::Tight { .. } => self.plan.level(count).map(|level| level.level),
            Profile::Paper => None,
        };
        let offset = self.offset(epoch, action, quantity, level);
        let Width { width, cell } = self.plan.width(quantity as usize, count);
        let mean = self.estimates.means[quantity as usize * self.asked.len() + action as usize];
        let (index, estimate) = round_to_cell(mean, cell, offset);
        Estimate {
            epoch,
            action,
            quantity,
            level,
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
    fn offset(&self, epoch: u64, action: u32, quantity: u32, level: Option<u32>) -> f64 {
        let action = u64::from(action);
        let quantity = u64::from(quantity);
        // The offset depends on action, quantity and level or epoch, never on the data: two runs must meet the same grid. One
        // offset per estimate, as an offset used before is not independent of the counts it led to (docs/deviations.md, 9).
        let indices = match level {
            Some(level) => [action, quantity, u64::from(level)],
            None => [epoch, action, quantity],
        };
        self.key.uniform(Label::Offset, indices)
    }

    /// Finds the strategy of the open epoch, and what ends it.
    pub(crate) fn open_epoch(&mut self) {
        let next = self.next_strategy();
        self.open.kind = next.kind;
        self.open.rule = next.rule;
        refill(&mut self.open.candidate, next.candidate().probabilities());
        self.open.sigma = next.sigma;
        refill(&mut self.open.strategy, next.strategy.probabilities());
        self.strategy = next.strategy;
        // Nothing follows a commitment, so that what is not in blocks was by count.
        let was_by_count = self.blocks.is_none() && !self.targets.is_empty();
        self.blocks = self.blocks_of_epoch();
        self.set_targets(was_by_count);
        let rounds = self.blocks.map_or(u64::MAX, |blocks| blocks.rounds());
        self.last_round = self
            .problem()
            .horizon()
            .min((self.open.first_round - 1).saturating_add(rounds));
        self.handed_out = false;
        // They were drawn from the last epoch's strategy.
        self.ahead.actions.clear();
    }

    /// The count at which each action ends the open epoch; `were_by_count` says whether those of the last epoch were such.
    fn set_targets(&mut self, were_by_count: bool) {
        self.targets.resize(self.open.counts.len(), NO_TARGET);
        if self.blocks.is_some() || self.open.kind == Kind::Commit {
            return self.targets.fill(NO_TARGET);
        }
        // In profile tight a target is the next level, until its action has reached it: most actions have theirs already.
        let kept = were_by_count && self.problem().profile() != Profile::Paper;
        for (target, &count) in self.targets.iter_mut().zip(&self.open.counts) {
            if !kept || *target <= count {
                *target = self.plan.target(count).unwrap_or(NO_TARGET);
            }
        }
    }

    fn blocks_of_epoch(&self) -> Option<Blocks> {
        match self.exploring()? {
            Explore::Blocks { each } => Some(Blocks {
                epoch: self.open.epoch,
                actions: self.asked.len() as u64,
                each,
            }),
            Explore::First | Explore::Below { .. } => None,
        }
    }

    /// What the open epoch explores, if it does.
    fn exploring(&self) -> Option<Explore> {
        self.grounds().exploring()
    }

    fn next_strategy(&mut self) -> NextStrategy {
        let mut solver = std::mem::take(&mut self.solver);
        let next = self.grounds().next_strategy(&mut solver);
        self.solver = solver;
        next
    }

    /// All that a policy may know, or that it explores.
    pub(super) fn view(&self) -> View {
        self.grounds().view(Sight::Whole)
    }

    fn grounds(&self) -> Grounds<'_> {
        Grounds {
            plan: &self.plan,
            counts: &self.open.counts,
            test: self.open.test.as_ref(),
            values: &self.estimates.values,
            widths: &self.estimates.widths,
        }
    }
}

/// Overwrites a vector in the memory it has.
fn refill<T: Copy>(target: &mut Vec<T>, values: &[T]) {
    target.clear();
    target.extend_from_slice(values);
}
