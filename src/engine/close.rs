//! Closing an epoch and opening the next: what is due is estimated, and the policy finds a strategy from it.

use super::grounds::Grounds;
use super::{Engine, NO_TARGET};
use crate::blocks::Blocks;
use crate::bounds::MeanPlace;
use crate::key::Label;
use crate::mean::{Tally, cell_index, cell_middle, round_to_cell};
use crate::pick::pick;
use crate::plan::{Explore, Plan};
use crate::policy::NextStrategy;
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
        let opened = self.record_to_open();
        let closed = std::mem::replace(&mut self.open, opened);
        if self.ends_part_of_trial() {
            let actions = 0..self.asked.len() as u32;
            self.trial_sums = actions.map(|action| self.tally.sum(action, 0)).collect();
            self.look_and_pick();
        }
        self.estimate_due(&closed.counts);
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
            looks: None,
            test: None,
            pick: None,
            ..record
        }
    }

    /// Takes back the record of a closed epoch, whose memory then serves the epoch after the open one.
    pub(crate) fn recycle(&mut self, closed: EpochRecord) {
        self.spare = Some(closed);
    }

    /// Whether the open epoch's start ends a part of the trial of policy free: a look is due there, or the pick.
    pub(crate) fn ends_part_of_trial(&self) -> bool {
        // Nothing follows what was decided, so every epoch but the first ends one.
        self.plan.trial.is_some() && self.open.epoch > 0
    }

    /// The one place where raw means decide; what that may cost of rho is in the plan (docs/theory.md, "Try, look, pick").
    pub(crate) fn look_and_pick(&mut self) {
        let trial = self.plan.trial.as_ref().expect("policy free has a trial");
        let count = self.open.counts[0];
        let look = self.looks.iter().find(|look| look.count == count);
        self.open.test = look.map(|&at| trial.rule.test(self.key, at, &self.trial_sums));
        if count == trial.count && self.open.decided().is_none() {
            let (offset_c, scale) = (trial.offset_c, trial.scale);
            self.open.pick = Some(pick(self.key, count, offset_c, scale, &self.trial_sums));
        }
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
            for place in 0..self.problem().quantities_estimated() {
                let quantity = self.problem().estimated()[place];
                self.estimates.sums[place * actions + action] =
                    self.tally.sum(action as u32, quantity);
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
        for place in 0..self.problem().quantities_estimated() {
            let Some(estimate) = self.estimate(epoch, action, place) else {
                continue;
            };
            self.estimates.note(&self.plan, place, &estimate);
            // A restored engine rounds older means too, and the open record shows only those made at its start.
            if epoch == self.open.epoch {
                self.open.estimates.push(estimate);
            }
        }
        self.estimates.bounds.set_span(a);
    }

    /// Algorithm 1: a function of plan, key and exact sum. None of an entry that is known beforehand. `place` is the quantity's
    /// among the estimated ones.
    pub(super) fn estimate(&self, epoch: u64, action: u32, place: usize) -> Option<Estimate> {
        let quantity = self.problem().estimated()[place];
        if self.problem().quantity(quantity).known(action).is_some() {
            return None;
        }
        let count = self
            .plan
            .estimated_count(self.open.counts[action as usize])
            .expect("an estimated action has a count");
        // Profile paper lists levels too, as examples, but estimates at any count.
        let level = match self.problem().profile() {
            Profile::Tight { .. } => self.plan.level(count).map(|level| level.level),
            Profile::Paper => None,
        };
        let offset = self.offset(epoch, action, quantity as u32, level);
        let Width { width, cell } = self.plan.width(count);
        let sum = self.estimates.sums[place * self.asked.len() + action as usize];
        let estimate = Estimate {
            epoch,
            action,
            quantity: quantity as u32,
            level,
            count,
            mean: Tally::mean_of(sum, count),
            offset,
            cell,
            index: None,
            width,
            estimate: 0.0,
            low: 0.0,
            high: 0.0,
        };
        Some(rounded(&self.plan, estimate, sum))
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
        // Nothing follows what was decided for good, so that what is not in blocks was by count.
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
        if self.blocks.is_some() || self.open.decided().is_some() {
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
            Explore::Blocks => Some(Blocks {
                epoch: self.open.epoch,
                actions: self.asked.len() as u64,
                each: self.tried_until() - self.open.counts[0],
            }),
            Explore::First | Explore::Below { .. } => None,
        }
    }

    /// The count that permuted blocks bring all actions to: the next look's, or exploration's last.
    fn tried_until(&self) -> u64 {
        let count = self.open.counts[0];
        let next = self.looks.iter().find(|look| look.count > count);
        next.map_or(self.plan.explored_count(), |look| look.count)
    }

    /// What the open epoch explores, if it does.
    pub(crate) fn exploring(&self) -> Option<Explore> {
        self.grounds().exploring()
    }

    fn next_strategy(&mut self) -> NextStrategy {
        let mut solver = std::mem::take(&mut self.solver);
        let next = self.grounds().next_strategy(&mut solver);
        self.solver = solver;
        next
    }

    pub(super) fn grounds(&self) -> Grounds<'_> {
        Grounds {
            plan: &self.plan,
            counts: &self.open.counts,
            decided: self.open.decided(),
            bounds: &self.estimates.bounds,
        }
    }
}

/// An estimate with its cell and what follows from that; `sum` is of its samples, in multiples of 2^-53.
fn rounded(plan: &Plan, estimate: Estimate, sum: u128) -> Estimate {
    let Estimate {
        cell,
        offset,
        width,
        mean,
        ..
    } = estimate;
    let Some(line) = plan.line(estimate.count) else {
        let (index, middle) = round_to_cell(mean, cell, offset);
        return Estimate {
            index,
            estimate: middle,
            low: middle - width,
            high: middle + width,
            ..estimate
        };
    };
    let index = Some(cell_index(line.of_sum(sum), cell, offset));
    let estimate = Estimate { index, ..estimate };
    let place = place_of(plan, &estimate).expect("an estimate on the line");
    Estimate {
        estimate: place.at(0.0),
        low: place.at(-1.0),
        high: place.at(1.0),
        ..estimate
    }
}

/// Where an estimate's cell has its middle on the line; none in profile paper, which has no such line.
pub(super) fn place_of(plan: &Plan, estimate: &Estimate) -> Option<MeanPlace> {
    Some(MeanPlace {
        line: plan.line(estimate.count)?,
        middle: cell_middle(estimate.index?, estimate.cell, estimate.offset),
        width: estimate.width,
    })
}

/// Overwrites a vector in the memory it has.
fn refill<T: Copy>(target: &mut Vec<T>, values: &[T]) {
    target.clear();
    target.extend_from_slice(values);
}
