//! The epoch loop of all three policies: ask for decisions, tell their feedback, close the epoch, go on.
//!
//! ```text
//! ask ─► Decision ─► (world or person) ─► tell ─► tally ─► last round told: close the epoch
//!   ▲                                                         │
//!   └── next strategy ◄─ policy ◄─ rounded means ◄────────────┘
//! ```
//!
//! Within an epoch the strategy is fixed, so its decisions and its end do not depend on its feedback: asking may run ahead to
//! the end of the epoch, and telling may come in any order. Paper: Algorithms 2 to 4; the comments name their lines.

mod batch;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Error;
use crate::key::{Key, Label};
use crate::mean::{Tally, round_to_cell};
use crate::plan::Plan;
use crate::policy::{self, View};
use crate::problem::{Policy, Problem, Profile};
use crate::record::{Ask, Decision, EpochRecord, Estimate, Interval, Recommendation, Told, chain};
use crate::strategy::Strategy;
use crate::width::Width;

/// No count of this action ends the epoch.
const NO_TARGET: u64 = u64::MAX;

/// One run of a policy: a pure function of problem, key and feedback.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) plan: Arc<Plan>,
    pub(crate) key: Key,
    /// Everything told.
    pub(crate) tally: Tally,
    pub(crate) estimates: Estimates,
    /// The open epoch, or the last one.
    pub(crate) open: EpochRecord,
    pub(crate) strategy: Strategy,
    /// The count at which each action ends the open epoch.
    targets: Vec<u64>,
    /// Rounds per action, handed out.
    pub(crate) asked: Vec<u64>,
    /// Whether the open epoch is fully handed out.
    pub(crate) ended: bool,
    /// All rounds below are told.
    pub(crate) low_water: u64,
    /// Told out of order: feedback of rounds above the low-water mark.
    pub(crate) told_above: BTreeMap<u64, Box<[u64]>>,
    /// Of all closed epochs.
    pub(crate) digest: [u8; 32],
    /// Room for one round's feedback.
    fixed: Vec<u64>,
    /// The round handed out last and its action: most often the next one told.
    last: (u64, u32),
}

/// The latest rounded means of every action.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    /// Per action: the epoch at whose start it was estimated, if it was.
    pub epochs: Vec<Option<u64>>,
    /// Per action: the width.
    widths: Vec<f64>,
    /// Per quantity and action: the raw and the rounded mean.
    pub means: Vec<f64>,
    values: Vec<f64>,
}

impl Engine {
    /// A run of this problem with this key, before its first round.
    pub fn new(problem: impl Into<Arc<Problem>>, key: Key) -> Self {
        Self::with_plan(Arc::new(Plan::of(problem)), key)
    }

    /// The same, for a plan that many runs share.
    pub fn with_plan(plan: Arc<Plan>, key: Key) -> Self {
        let problem = &plan.problem;
        let (actions, quantities) = (problem.actions().len(), problem.quantities());
        let entries = actions * problem.quantities_estimated();
        // Never-played actions of profile paper have estimate 1/2 and the width of one sample (docs/deviations.md, 7).
        let width = if problem.profile() == Profile::Paper {
            plan.width(0).width
        } else {
            f64::INFINITY
        };
        let estimates = Estimates {
            epochs: vec![None; actions],
            widths: vec![width; actions],
            means: vec![f64::NAN; entries],
            values: vec![0.5; entries],
        };
        let mut engine = Self {
            tally: Tally::new(actions, quantities),
            estimates,
            open: EpochRecord::opening(0, 1, vec![0; actions]),
            strategy: Strategy::pure(0, actions),
            targets: Vec::new(),
            asked: vec![0; actions],
            ended: false,
            low_water: 1,
            told_above: BTreeMap::new(),
            digest: [0; 32],
            fixed: vec![0; quantities],
            last: (0, 0),
            key,
            plan,
        };
        engine.open_epoch();
        engine
    }

    /// The plan, and through it the problem.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.plan.problem
    }

    /// The number of the open epoch, from 0; after the end, of the last.
    pub fn epoch(&self) -> u64 {
        self.open.epoch
    }

    /// The open epoch as far as it is handed out; after the end, the last.
    pub fn open_record(&self) -> &EpochRecord {
        &self.open
    }

    /// The strategy of the open epoch; after the end, of the last.
    pub fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    /// The count at which an action ends the open epoch, if it can.
    #[inline]
    pub fn target(&self, action: u32) -> Option<u64> {
        Some(self.targets[action as usize]).filter(|&target| target != NO_TARGET)
    }

    /// Whether all rounds of the open epoch are handed out.
    #[inline]
    pub fn is_handed_out(&self) -> bool {
        self.ended
    }

    /// Whether all rounds of the open epoch would be handed out once each action had been handed out so often, counted
    /// from the run's first round. For those who keep the counts elsewhere, as a service with several nodes does.
    pub fn is_handed_out_at(&self, counts: &[u64]) -> bool {
        // Algorithm 3, line 6: an epoch ends when an action's count reaches its target, or with the horizon.
        let at_target = counts
            .iter()
            .zip(&self.targets)
            .any(|(count, target)| count == target);
        at_target || counts.iter().sum::<u64>() >= self.problem().horizon()
    }

    /// Everything told so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The latest estimate of each quantity of each action that has one.
    pub fn estimates(&self) -> impl Iterator<Item = Estimate> + '_ {
        let estimated = (0..)
            .zip(&self.estimates.epochs)
            .filter_map(|(action, epoch)| Some((action, (*epoch)?)));
        let quantities = 0..self.problem().quantities_estimated() as u32;
        estimated.flat_map(move |(action, epoch)| {
            quantities
                .clone()
                .map(move |q| self.estimate(epoch, action, q))
        })
    }

    /// SHA-256 over the strategy bits and lengths of all closed epochs, as 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        self.digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Whether all rounds of the horizon are told.
    pub fn is_done(&self) -> bool {
        self.low_water > self.problem().horizon()
    }

    /// The next round to be handed out.
    pub fn next_round(&self) -> u64 {
        self.open.first_round + self.open.rounds
    }

    /// Hands out the next round.
    #[inline]
    pub fn ask(&mut self) -> Ask {
        if self.ended {
            return if self.is_done() {
                Ask::Done
            } else {
                Ask::Waiting {
                    outstanding: self.outstanding_count(),
                }
            };
        }
        Ask::Decision(self.hand_out())
    }

    #[inline]
    fn hand_out(&mut self) -> Decision {
        let decision = self.decide(self.next_round());
        self.last = (decision.round, decision.action);
        self.count_as_asked(decision.action, 1);
        decision
    }

    /// Algorithm 3, line 6, for one action: an epoch ends when an action's count reaches its target, or with the horizon.
    #[inline]
    pub(crate) fn count_as_asked(&mut self, action: u32, rounds: u64) {
        let count = &mut self.asked[action as usize];
        *count += rounds;
        self.open.rounds += rounds;
        self.ended |= *count == self.targets[action as usize]
            || self.next_round() > self.plan.problem.horizon();
    }

    /// Algorithm 3, line 16: what the open epoch's strategy does in a round, whether it is handed out or not. Nothing advances.
    #[inline]
    pub fn decide(&self, round: u64) -> Decision {
        self.draw(round, Label::Round, [round, 0, 0])
    }

    /// What the open epoch's strategy does for a request beyond its rounds; `serial`, from 1, stands in for the round.
    ///
    /// Such a decision is outside the horizon and no estimate counts it, so replicability stands, and so does safety.
    pub fn overtime(&self, serial: u64) -> Decision {
        self.draw(serial, Label::Overtime, [self.open.epoch, serial, 0])
    }

    #[inline]
    fn draw(&self, round: u64, label: Label, indices: [u64; 3]) -> Decision {
        let action = match self.strategy.only() {
            Some(action) => action,
            None => self.strategy.pick(self.key.uniform(label, indices)),
        };
        let probability = self.strategy.probabilities()[action as usize];
        Decision {
            round,
            epoch: self.open.epoch,
            action,
            probability,
        }
    }

    /// The decision of a round of the open epoch that was handed out, again.
    pub fn decision(&self, round: u64) -> Result<Decision, Error> {
        self.check_asked(round)?;
        if round < self.open.first_round {
            return Err(Error::RoundGone {
                round,
                first: self.open.first_round,
            });
        }
        Ok(self.decide(round))
    }

    /// The rounds that are handed out and not told, in order.
    pub fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
        (self.low_water..self.next_round()).filter(|round| !self.told_above.contains_key(round))
    }

    /// How many rounds are handed out and not told.
    pub fn outstanding_count(&self) -> u64 {
        self.next_round() - self.low_water - self.told_above.len() as u64
    }

    /// Tells a round's reward and costs, in the user's units.
    #[inline]
    pub fn tell(&mut self, round: u64, reward: f64, costs: &[f64]) -> Result<Told, Error> {
        let mut fixed = std::mem::take(&mut self.fixed);
        let told = self.tell_into(round, reward, costs, &mut fixed);
        self.fixed = fixed;
        told
    }

    #[inline]
    fn tell_into(
        &mut self,
        round: u64,
        reward: f64,
        costs: &[f64],
        fixed: &mut [u64],
    ) -> Result<Told, Error> {
        self.plan.problem.to_fixed(reward, costs, fixed)?;
        match self.standing(round)? {
            Standing::Forgotten => Ok(Told::AlreadyTold),
            Standing::Told(before) if before == fixed => Ok(Told::Repeated),
            Standing::Told(_) => Err(Error::Conflict { round }),
            Standing::Open => {
                self.record(round, fixed);
                Ok(self
                    .close_if_told()
                    .map_or(Told::Recorded, |record| Told::Closed(Box::new(record))))
            }
        }
    }

    #[inline]
    fn check_asked(&self, round: u64) -> Result<(), Error> {
        let (horizon, next) = (self.problem().horizon(), self.next_round());
        if round == 0 || round > horizon {
            return Err(Error::RoundUnknown { round, horizon });
        }
        if round >= next {
            return Err(Error::RoundNotAsked { round, next });
        }
        Ok(())
    }

    #[inline]
    fn standing(&self, round: u64) -> Result<Standing<'_>, Error> {
        self.check_asked(round)?;
        if round < self.low_water {
            return Ok(Standing::Forgotten);
        }
        Ok(self
            .told_above
            .get(&round)
            .map_or(Standing::Open, |fixed| Standing::Told(fixed)))
    }

    #[inline]
    fn record(&mut self, round: u64, fixed: &[u64]) {
        let action = if self.last.0 == round {
            self.last.1
        } else {
            self.decide(round).action
        };
        self.record_action(round, action, fixed);
    }

    #[inline]
    fn record_action(&mut self, round: u64, action: u32, fixed: &[u64]) {
        self.tally.add(action, fixed);
        if round != self.low_water {
            self.told_above.insert(round, fixed.into());
            return;
        }
        self.low_water += 1;
        while self
            .told_above
            .first_key_value()
            .is_some_and(|(&round, _)| round == self.low_water)
        {
            self.told_above.pop_first();
            self.low_water += 1;
        }
    }

    #[inline]
    fn close_if_told(&mut self) -> Option<EpochRecord> {
        (self.ended && self.low_water == self.next_round()).then(|| self.close_epoch())
    }

    /// Tells the whole open epoch at once: its counts and sums. None of its rounds may have been told, and the counts must end
    /// it exactly: one action at its target, or the horizon.
    pub fn tell_epoch(&mut self, epoch: &Tally) -> Result<EpochRecord, Error> {
        self.check_epoch(epoch)?;
        for (action, &count) in (0..).zip(epoch.counts()) {
            let asked = self.asked[action as usize] - self.open.counts[action as usize];
            self.count_as_asked(action, count - asked);
        }
        self.tally.merge(epoch);
        self.low_water = self.next_round();
        Ok(self.close_epoch())
    }

    fn check_epoch(&self, epoch: &Tally) -> Result<(), Error> {
        let (problem, told) = (
            self.problem(),
            self.low_water - self.open.first_round + self.told_above.len() as u64,
        );
        if self.is_done() {
            return Err(Error::Done {
                horizon: problem.horizon(),
            });
        }
        if told > 0 {
            return Err(Error::EpochBegun {
                epoch: self.open.epoch,
                told,
            });
        }
        let (actions, quantities) = (epoch.counts().len(), epoch.quantities());
        let (wanted_actions, wanted_quantities) = (problem.actions().len(), problem.quantities());
        if (actions, quantities) != (wanted_actions, wanted_quantities) {
            return Err(Error::TallyShape {
                actions,
                quantities,
                wanted_actions,
                wanted_quantities,
            });
        }
        let name = |action: usize| problem.actions()[action].clone();
        if let Some((action, quantity)) = epoch.impossible_sum() {
            return Err(Error::TallySum {
                action: name(action),
                quantity,
                count: epoch.counts()[action],
            });
        }
        let mut ender = None;
        let mut rounds = 0u64;
        for (a, &count) in epoch.counts().iter().enumerate() {
            let wrong = |rule: String| {
                Err(Error::TallyCount {
                    action: name(a),
                    count,
                    rule,
                })
            };
            let asked = self.asked[a] - self.open.counts[a];
            if count < asked || (self.ended && count > asked) {
                let rule = if self.ended { "exactly" } else { "at least" };
                return wrong(format!("{rule} the {asked} handed out"));
            }
            if count > 0 && self.strategy.probabilities()[a] == 0.0 {
                return wrong("none, as its probability is 0".into());
            }
            let needed = self.targets[a].saturating_sub(self.open.counts[a]);
            if count > needed || (count == needed && ender.is_some()) {
                let ender: usize = ender.unwrap_or(a);
                let target = self.targets[ender] - self.open.counts[ender];
                return Err(Error::TallyLong {
                    action: name(a),
                    count,
                    ender: name(ender),
                    target,
                });
            }
            if count == needed {
                ender = Some(a);
            }
            rounds = rounds.saturating_add(count);
        }
        let left = problem.horizon() + 1 - self.open.first_round;
        match ender {
            _ if rounds > left => Err(Error::TallyBeyond { rounds, left }),
            None if rounds < left => Err(Error::TallyShort { rounds, left }),
            _ => Ok(()),
        }
    }

    /// Closes the open epoch and, before the horizon, opens the next one.
    fn close_epoch(&mut self) -> EpochRecord {
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
    ///
    /// Tight: the action whose count hit a level from k0 on. Paper: the action just played (free, Algorithm 2, line 10), or
    /// all actions played so far (soft and hard, Algorithm 3, lines 9 to 12).
    fn estimate_due(&mut self) {
        let all =
            self.problem().profile() == Profile::Paper && self.problem().policy() != Policy::Free;
        for action in 0..self.asked.len() {
            let count = self.asked[action];
            let hit = count == self.targets[action];
            if (all && count > 0) || (hit && self.plan.estimated_count(count) == Some(count)) {
                self.estimates.epochs[action] = Some(self.open.epoch);
                for quantity in 0..self.problem().quantities_estimated() {
                    self.estimates.means[quantity * self.asked.len() + action] =
                        self.tally.mean(action as u32, quantity);
                }
                self.round_means(action as u32);
            }
        }
    }

    /// Rounds the means of an action as of its last estimate.
    pub(crate) fn round_means(&mut self, action: u32) {
        let (a, actions) = (action as usize, self.asked.len());
        let Some(epoch) = self.estimates.epochs[a] else {
            return;
        };
        for quantity in 0..self.problem().quantities_estimated() {
            let estimate = self.estimate(epoch, action, quantity as u32);
            self.estimates.values[quantity * actions + a] = estimate.estimate;
            self.estimates.widths[a] = estimate.width;
            if epoch == self.open.epoch {
                self.open.estimates.push(estimate);
            }
        }
    }

    /// Algorithm 1: a function of plan, key and raw mean.
    fn estimate(&self, epoch: u64, action: u32, quantity: u32) -> Estimate {
        let count = self
            .plan
            .estimated_count(self.open.counts[action as usize])
            .expect("an estimated action has a count");
        let (a, q) = (u64::from(action), u64::from(quantity));
        // The offset depends on action, quantity and level or epoch, never on the data: two runs must meet the same grid.
        let indices = match self.problem().profile() {
            Profile::Tight { .. } => [
                a,
                q,
                u64::from(self.plan.level(count).expect("a level's count").level),
            ],
            Profile::Paper => [epoch, a, q],
        };
        let offset = self.key.uniform(Label::Offset, indices);
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

    /// Finds the strategy and the targets of the open epoch.
    pub(crate) fn open_epoch(&mut self) {
        let problem = Arc::clone(&self.plan.problem);
        let (actions, thresholds) = (problem.actions().len(), problem.thresholds());
        let view = self.view();
        let choice = match problem.policy() {
            Policy::Free => policy::free(&view, actions),
            Policy::Soft => policy::soft(&view, actions, thresholds),
            Policy::Hard => policy::hard(
                &view,
                actions,
                thresholds,
                problem.safe().expect("policy hard is safe"),
            ),
        };
        self.open.kind = choice.kind;
        self.open.candidate = choice.candidate.into_probabilities();
        self.open.sigma = choice.sigma;
        self.open.strategy = choice.strategy.probabilities().to_vec();
        self.strategy = choice.strategy;
        let target = |&count: &u64| self.plan.target(count).unwrap_or(NO_TARGET);
        self.targets = self.open.counts.iter().map(target).collect();
        self.ended = false;
    }

    /// Optimistic rewards and costs; profile tight keeps costs within [0, 1].
    fn view(&self) -> View {
        if let Some(action) = self.plan.explored(&self.open.counts) {
            return View::Explore(action);
        }
        let tight = self.problem().profile() != Profile::Paper;
        let (least, most) = if tight {
            (0.0, 1.0)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        View::of(&self.estimates.values, &self.estimates.widths, least, most)
    }

    /// The current strategy and what it is known to give: what to deploy when the experiment ends.
    pub fn recommendation(&self) -> Recommendation {
        let actions = self.asked.len();
        let interval = |quantity: usize| {
            let bound = |end: f64| -> Vec<f64> {
                (0..actions)
                    .map(|a| match self.estimates.epochs[a] {
                        Some(_) if quantity < self.problem().quantities_estimated() => {
                            let value = self.estimates.values[quantity * actions + a];
                            (value + (2.0 * end - 1.0) * self.estimates.widths[a]).clamp(0.0, 1.0)
                        }
                        _ => end,
                    })
                    .collect()
            };
            let range = self.problem().quantity(quantity).range;
            let at = |end: f64| range.to_user(self.strategy.expectation(&bound(end)));
            Interval {
                low: at(0.0),
                high: at(1.0),
            }
        };
        Recommendation {
            strategy: self.strategy.probabilities().to_vec(),
            kind: self.open.kind,
            reward: interval(0),
            costs: (1..self.problem().quantities()).map(interval).collect(),
        }
    }
}

/// What is known of a round that was handed out.
enum Standing<'a> {
    /// Not told.
    Open,
    /// Told, above the low-water mark.
    Told(&'a [u64]),
    /// Told, below the low-water mark.
    Forgotten,
}
