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
//!
//! One file for each thing an engine does: `ask`, `tell`, `batch` (many rounds at once), `tell_epoch` (a whole epoch at
//! once), `close` (estimates), `grounds` (the next strategy), `recommend`; and `why`, which explains a strategy afterwards.

mod ask;
mod batch;
mod close;
mod grounds;
mod recommend;
mod tell;
mod tell_epoch;
mod why;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::blocks::{Blocks, Order};
use crate::bounds::Bounds;
use crate::key::Key;
use crate::look::LookAt;
use crate::lp::Solver;
use crate::mean::Tally;
use crate::plan::Plan;
use crate::problem::{Problem, Profile};
use crate::record::{EpochRecord, Estimate};
use crate::strategy::Strategy;

pub use why::{LimitAt, Why};

/// The target of an action that cannot end the epoch: a count no horizon reaches, so that the hot path compares numbers
/// and not options.
const NO_TARGET: u64 = u64::MAX;

/// One run of a policy: a pure function of problem, key and feedback.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) plan: Arc<Plan>,
    pub(crate) key: Key,
    /// Everything told.
    pub(crate) tally: Tally,
    pub(crate) estimates: Estimates,
    /// When the run looks, the first look first; of policy free in profile tight.
    pub(crate) looks: Vec<LookAt>,
    /// Per action, the sum of rewards behind the open epoch's look or pick.
    pub(crate) trial_sums: Vec<u128>,
    /// The open epoch, or the last one.
    pub(crate) open: EpochRecord,
    pub(crate) strategy: Strategy,
    /// The count at which each action ends the open epoch.
    targets: Vec<u64>,
    /// The round that ends the open epoch at the latest.
    pub(crate) last_round: u64,
    /// The open epoch's order, if it is played in permuted blocks.
    pub(crate) blocks: Option<Blocks>,
    /// The blocks in use: asking runs ahead of telling, and each would throw out the other's.
    asking: Order,
    telling: Order,
    /// Rounds per action, handed out.
    pub(crate) asked: Vec<u64>,
    /// Whether the open epoch's counts were read from a snapshot and not compared with the draws yet.
    pub(crate) counts_on_trust: bool,
    /// Whether the open epoch is fully handed out.
    pub(crate) handed_out: bool,
    /// All rounds below are told.
    pub(crate) low_water: u64,
    /// Told out of order: feedback of rounds above the low-water mark.
    // Ordered, as the mark moves up over the first entries.
    pub(crate) told_above: BTreeMap<u64, Box<[u64]>>,
    /// Of all closed epochs.
    pub(crate) digest: [u8; 32],
    /// Room for one round's feedback.
    fixed: Vec<u64>,
    /// Actions drawn ahead of asking, or kept to be told.
    ahead: Ahead,
    /// Room for the linear programs that find strategies.
    solver: Solver,
    /// Room for the record of the next epoch.
    spare: Option<EpochRecord>,
}

/// The actions of rounds that follow one another in the open epoch: drawn side by side and handed out one by one, or handed out
/// together and still to be told. A function of key, strategy and round like all draws, so that nothing is lost if it is thrown
/// away.
#[derive(Clone, Debug, Default)]
struct Ahead {
    first: u64,
    actions: Vec<u32>,
}

impl Ahead {
    #[inline]
    fn action(&self, round: u64) -> Option<u32> {
        let place = usize::try_from(round.checked_sub(self.first)?).ok()?;
        self.actions.get(place).copied()
    }
}

/// The latest rounded means of every action.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    /// Per action: the epoch at whose start it was estimated, if it was.
    pub epochs: Vec<Option<u64>>,
    /// Per estimated quantity and action: the exact sum that was averaged, in multiples of 2^-53.
    pub sums: Vec<u128>,
    /// Per estimated quantity and action: the rounded mean, on the quantity's own scale.
    values: Vec<f64>,
    /// What strategies are found from.
    bounds: Bounds,
}

impl Estimates {
    /// What a run starts with, before any action is estimated.
    fn before(plan: &Plan) -> Self {
        let problem = &plan.problem;
        let actions = problem.actions().len();
        let mut estimates = Self {
            epochs: vec![None; actions],
            sums: vec![0; actions * problem.quantities_estimated()],
            values: vec![0.5; actions * problem.quantities_estimated()],
            bounds: Bounds::before(problem),
        };
        for (place, &quantity) in problem.estimated().iter().enumerate() {
            for action in 0..actions {
                estimates.begin(plan, (place, quantity), action);
            }
        }
        estimates
    }

    /// Notes what is taken of an entry before it is estimated.
    fn begin(&mut self, plan: &Plan, (place, quantity): (usize, usize), action: usize) {
        // Never-played actions of profile paper have estimate 1/2 and the width of one sample (docs/deviations.md, 7). In
        // profile tight no strategy looks at them: exploration ends only when every action is estimated.
        if plan.problem.profile() == Profile::Paper {
            let width = plan.width(0).width;
            self.bounds.set_plain(place, action, 0.5, width);
        }
        let quantity = plan.problem.quantity(quantity);
        if quantity.known(action as u32).is_some() {
            self.values[place * self.epochs.len() + action] = quantity.entry(action as u32).low;
        }
    }

    /// Notes an estimate; `place` is its quantity's among the estimated ones.
    fn note(&mut self, plan: &Plan, place: usize, estimate: &Estimate) {
        let action = estimate.action as usize;
        let entry = plan
            .problem
            .quantity(estimate.quantity as usize)
            .entry(estimate.action);
        let on_scale = entry.low + entry.span() * estimate.estimate;
        self.values[place * self.epochs.len() + action] = on_scale;
        let Some(at) = close::place_of(plan, estimate) else {
            let width = estimate.width;
            return self
                .bounds
                .set_plain(place, action, estimate.estimate, width);
        };
        match place.checked_sub(1) {
            None => self.bounds.set_reward(action, at),
            Some(cost) => {
                let caution = plan.problem.caution();
                self.bounds.set_cost(cost, action, at, entry, caution);
            }
        }
    }
}

impl Engine {
    /// A run of this problem with this key, before its first round.
    pub fn new(problem: impl Into<Arc<Problem>>, key: Key) -> Self {
        Self::with_plan(Arc::new(Plan::of(problem)), key)
    }

    /// The same, for a plan that many runs share.
    pub fn with_plan(plan: Arc<Plan>, key: Key) -> Self {
        let actions = plan.problem.actions().len();
        let quantities = plan.problem.quantities();
        let mut engine = Self {
            tally: Tally::new(actions, quantities),
            estimates: Estimates::before(&plan),
            looks: Vec::new(),
            trial_sums: Vec::new(),
            open: EpochRecord::opening(0, 1, vec![0; actions]),
            strategy: Strategy::pure(0, actions),
            targets: Vec::new(),
            last_round: 0,
            blocks: None,
            asking: Order::default(),
            telling: Order::default(),
            asked: vec![0; actions],
            counts_on_trust: false,
            handed_out: false,
            low_water: 1,
            told_above: BTreeMap::new(),
            digest: [0; 32],
            fixed: vec![0; quantities],
            ahead: Ahead::default(),
            solver: Solver::default(),
            spare: None,
            key,
            plan,
        };
        if let Some(trial) = &engine.plan.trial {
            (_, engine.looks) = trial.rule.draw(key);
            engine.open.looks = Some(trial.rule.drawn(key));
        }
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

    /// What a round of the open epoch may lose, as a share of the reward's range: 1 while exploring, the strategy's span by the
    /// estimates after it, and after a pick what the trial's samples leave open. None in profile paper.
    pub fn span(&self) -> Option<f64> {
        self.span_of_round()
    }

    /// The count at which an action ends the open epoch, if it can.
    #[inline]
    pub fn target(&self, action: u32) -> Option<u64> {
        Some(self.targets[action as usize]).filter(|&target| target != NO_TARGET)
    }

    /// Whether all rounds of the open epoch are handed out.
    #[inline]
    pub fn is_handed_out(&self) -> bool {
        self.handed_out
    }

    /// Whether all rounds of the open epoch would be handed out once each action had been handed out so often, counted
    /// from the run's first round. For those who keep the counts elsewhere, as a service with several nodes does.
    pub fn is_handed_out_at(&self, counts: &[u64]) -> bool {
        // Algorithm 3, line 6: an epoch ends when an action's count reaches its target, or with its last round.
        let at_target = counts
            .iter()
            .zip(&self.targets)
            .any(|(count, target)| count == target);
        at_target || counts.iter().sum::<u64>() >= self.last_round
    }

    /// Whether the open epoch is played in permuted blocks; else each of its actions is drawn.
    pub fn is_in_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// The round that ends the open epoch at the latest: of permuted blocks their last, else the horizon's.
    pub fn last_round(&self) -> u64 {
        self.last_round
    }

    /// Everything told so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The latest estimate of each entry that has one.
    pub fn estimates(&self) -> impl Iterator<Item = Estimate> + '_ {
        (0..)
            .zip(&self.estimates.epochs)
            .filter_map(|(action, epoch)| Some((action, (*epoch)?)))
            .flat_map(move |(action, epoch)| {
                (0..self.problem().quantities_estimated())
                    .filter_map(move |place| self.estimate(epoch, action, place))
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

    /// The rounds that are handed out and not told, in order.
    pub fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
        (self.low_water..self.next_round()).filter(|round| !self.told_above.contains_key(round))
    }

    /// How many rounds are handed out and not told.
    pub fn outstanding_count(&self) -> u64 {
        // Without walking over them: every request that has to wait is told this number.
        self.next_round() - self.low_water - self.told_above.len() as u64
    }
}
