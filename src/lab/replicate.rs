//! Pairs of runs: one policy key, two world keys. Were the decisions the same, and if not, where and why did they
//! diverge?
//!
//! ```text
//! pair j: policy key derive(key, j, 0),  world keys derive(world key, j, 0) and derive(world key, j, 1)
//! ```
//!
//! As rho is over keys too, each pair has its own. A pair is a function of its index, so pairs can be divided among threads
//! and machines and put together again in order: the result is the same bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::lab::LabError;
use crate::lab::epochs::{self, Stretch};
use crate::lab::metrics::{Meter, Run};
use crate::lab::players::{OwnPlayer, Player, Rival};
use crate::lab::rounds;
use crate::lab::threads;
use crate::lab::world::{Truth, World};
use crate::plan::Plan;
use crate::{Engine, Estimate, Key, Problem, Tally, WorldKey};

/// How rounds are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Simulator {
    /// Whole epochs at once.
    Epochs,
    /// One round after another.
    Rounds,
}

impl Simulator {
    fn play(
        self,
        player: &mut dyn Player,
        problem: &Problem,
        world: &dyn World,
        keys: (Key, WorldKey),
        observe: &mut dyn FnMut(Stretch),
        cancel: &AtomicBool,
    ) -> Result<Tally, LabError> {
        match self {
            Simulator::Epochs => epochs::simulate(player, problem, world, keys, observe),
            Simulator::Rounds => rounds::simulate(player, problem, world, keys, observe, cancel),
        }
    }
}

/// Who plays.
#[derive(Clone, Copy)]
pub enum Contestant<'a> {
    /// The policy of the problem.
    Debora,
    /// One of its rivals.
    Rival(&'static Rival),
    /// A player from outside the library.
    Own(&'a OwnPlayer),
}

impl Contestant<'_> {
    /// Whether it decides anew in every round: whole epochs gain nothing for a player whose stretches last one round.
    pub fn is_per_round(self) -> bool {
        match self {
            Contestant::Debora => false,
            Contestant::Rival(rival) => rival.per_round,
            Contestant::Own(own) => own.per_round,
        }
    }

    fn is_one_by_one(self) -> bool {
        matches!(self, Contestant::Own(own) if own.one_by_one)
    }
}

/// The changes of strategy that a pair's runs are first compared by. Players that diverge do so long before; the rare pair that
/// is equal so far is played again with all its changes.
const CHANGES_FIRST: usize = 100_000;

/// What is simulated: a plan, a world for each member of a pair, and the keys all pairs derive theirs from.
#[derive(Clone)]
pub struct Experiment {
    /// The problem and its constants.
    pub plan: Arc<Plan>,
    /// The world of the first and of the second run: the same one, unless a broken premise is to be shown.
    pub worlds: [Arc<dyn World>; 2],
    /// All policy keys derive from it.
    pub key: Key,
    /// All world keys derive from it.
    pub world_key: WorldKey,
    /// How rounds are simulated. Players that decide each round are always simulated round by round.
    pub simulator: Simulator,
    /// The rounds at which curves are read, in increasing order.
    pub checkpoints: Vec<u64>,
}

/// Where two runs diverged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PairDivergence {
    /// The first epoch with different strategies.
    pub epoch: u64,
    /// The first round with different strategies.
    pub round: u64,
    /// An estimate in force there that fell into another cell, the latest such; `None` if the player does not round,
    /// or if a look or a pick made the difference.
    pub estimate: Option<DivergedEstimate>,
}

/// An estimate that fell into different cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DivergedEstimate {
    /// The action.
    pub action: u32,
    /// The quantity; 0 is the reward.
    pub quantity: u32,
    /// The number of samples.
    pub count: u64,
    /// The grid's step, on the line.
    pub cell: f64,
    /// The mean at the edge between the two cells that is nearest to the first.
    pub edge: f64,
    /// The two means.
    pub means: [f64; 2],
    /// The two cells.
    pub indices: [i64; 2],
}

/// Two runs with one policy key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pair {
    /// Its number.
    pub index: u64,
    /// Where they diverged; `None` if all strategies were equal.
    // The name in the files of parts.
    #[serde(rename = "split")]
    pub divergence: Option<PairDivergence>,
    /// The two runs.
    pub runs: [Run; 2],
}

/// A run as the comparison needs it: strategies merged where neighbours are equal, and estimates epoch by epoch.
struct Path {
    /// How many strategies are kept: a player that mixes anew in every round would fill the memory.
    changes_max: usize,
    /// First round, and the probabilities that are not zero: action and bits.
    // As bits, since replicated strategies are equal to the last one. Zeros are left out: a strategy of many actions plays few.
    strategies: Vec<(u64, Vec<(u32, u64)>)>,
    /// The first round of each epoch.
    epochs: Vec<u64>,
    /// All estimates, in the order in which they were made.
    estimates: Vec<Estimate>,
}

/// The probabilities that are not zero: action and bits.
fn bits_of(probabilities: &[f64]) -> impl Iterator<Item = (u32, u64)> + '_ {
    let bits = probabilities
        .iter()
        .map(|probability| probability.to_bits());
    (0..).zip(bits).filter(|(_, bits)| *bits != 0)
}

impl Path {
    fn new(changes_max: usize) -> Self {
        Self {
            changes_max,
            strategies: Vec::new(),
            epochs: Vec::new(),
            estimates: Vec::new(),
        }
    }

    fn is_cut(&self) -> bool {
        self.strategies.len() == self.changes_max
    }

    fn add(&mut self, stretch: &Stretch) {
        let probabilities = stretch.player.strategy().probabilities();
        // Players that decide round by round hold one strategy for many stretches: a path of a million rounds stays short.
        if !self.is_cut() && !self.ends_with(probabilities) {
            let bits = bits_of(probabilities).collect();
            self.strategies.push((stretch.first_round, bits));
        }
        if let Some(record) = stretch.player.record() {
            self.epochs.push(stretch.first_round);
            self.estimates.extend(&record.estimates);
        }
    }

    fn ends_with(&self, probabilities: &[f64]) -> bool {
        self.strategies
            .last()
            .is_some_and(|(_, last)| last.iter().copied().eq(bits_of(probabilities)))
    }

    /// The first round at which the two paths hold different strategies.
    fn first_difference(&self, other: &Self) -> Option<u64> {
        let mut pairs = self.strategies.iter().zip(&other.strategies);
        if let Some((one, two)) = pairs.find(|(one, two)| one != two) {
            // A strategy that began earlier in one run differs there from the one before it in the other.
            return Some(one.0.min(two.0));
        }
        let shared = self.strategies.len().min(other.strategies.len());
        let longer = if self.strategies.len() > shared {
            self
        } else {
            other
        };
        longer.strategies.get(shared).map(|(round, _)| *round)
    }

    fn divergence(&self, other: &Self, plan: &Plan) -> Option<PairDivergence> {
        let round = self.first_difference(other)?;
        let epoch = self
            .epochs
            .partition_point(|first| *first <= round)
            .saturating_sub(1) as u64;
        Some(PairDivergence {
            epoch,
            round,
            estimate: self.diverged_estimate(other, epoch, plan),
        })
    }

    /// The strategies differ because estimates in force do: of those, the one made latest, as it made the runs diverge.
    fn diverged_estimate(&self, other: &Self, epoch: u64, plan: &Plan) -> Option<DivergedEstimate> {
        let theirs = other.in_force(epoch);
        let ours = self.in_force(epoch);
        let (one, two) = ours
            .iter()
            .filter_map(|(place, one)| Some((one, theirs.get(place)?)))
            // Estimates from other counts lie on other grids, where cells cannot be compared.
            .filter(|(one, two)| one.count == two.count && one.index != two.index)
            .max_by_key(|(one, _)| (one.epoch, Reverse((one.action, one.quantity))))?;
        Some(DivergedEstimate {
            action: one.action,
            quantity: one.quantity,
            count: one.count,
            cell: one.cell,
            edge: one.nearest_edge(two.index?, plan)?,
            means: [one.mean, two.mean],
            indices: [one.index?, two.index?],
        })
    }

    /// By action and quantity, the latest estimate made up to the start of an epoch.
    fn in_force(&self, epoch: u64) -> BTreeMap<(u32, u32), Estimate> {
        // Later entries replace earlier ones, as estimates are in the order in which they were made.
        self.estimates
            .iter()
            .filter(|estimate| estimate.epoch <= epoch)
            .map(|estimate| ((estimate.action, estimate.quantity), *estimate))
            .collect()
    }
}

impl Experiment {
    /// What a run meets: member 0 or 1 of a pair.
    pub fn world(&self, pair: u64, member: usize) -> Arc<dyn World> {
        let world = &self.worlds[member];
        world.of_pair(pair).unwrap_or_else(|| Arc::clone(world))
    }

    /// One run: member 0 or 1 of a pair.
    pub fn run(&self, contestant: Contestant, pair: u64, member: usize) -> Result<Run, LabError> {
        self.run_observed(contestant, pair, member, &mut |_| ())
    }

    /// One run, and what an observer sees of it.
    pub fn run_observed(
        &self,
        contestant: Contestant,
        pair: u64,
        member: usize,
        observe: &mut dyn FnMut(&Stretch),
    ) -> Result<Run, LabError> {
        self.run_until(contestant, (pair, member), observe, &AtomicBool::new(false))
    }

    /// One run, which stops with an error once `cancel` is set. Only rounds one by one take long enough to look at it.
    pub fn run_until(
        &self,
        contestant: Contestant,
        (pair, member): (u64, usize),
        observe: &mut dyn FnMut(&Stretch),
        cancel: &AtomicBool,
    ) -> Result<Run, LabError> {
        let problem = &self.plan.problem;
        let world = &*self.world(pair, member);
        // Both members have one policy key, and each its own world: that is what a pair is.
        let keys = (
            self.key.derive(pair, 0),
            self.world_key.derive(pair, member as u64),
        );
        let truth = Truth::of(problem, world);
        let mut meter = Meter::new(problem, world, &truth, &self.checkpoints);
        let mut both = |stretch: Stretch| {
            meter.add(&stretch);
            observe(&stretch);
        };
        let simulator = if contestant.is_per_round() {
            Simulator::Rounds
        } else {
            self.simulator
        };
        let mut player: Box<dyn Player> = match contestant {
            Contestant::Debora => {
                let mut engine = Engine::with_plan(Arc::clone(&self.plan), keys.0);
                let tally = simulator.play(&mut engine, problem, world, keys, &mut both, cancel)?;
                let digest = Some(engine.digest());
                let strategy = engine.strategy().probabilities();
                return Ok(meter.finish(&self.plan, &tally, strategy, digest));
            }
            Contestant::Rival(rival) => rival.player(&self.plan, keys.0),
            Contestant::Own(own) => own.player(&self.plan, keys.0),
        };
        let tally = simulator.play(&mut *player, problem, world, keys, &mut both, cancel)?;
        let run = meter.finish(&self.plan, &tally, player.strategy().probabilities(), None);
        Ok(Run {
            note: player.note(),
            ..run
        })
    }

    /// Both runs of a pair, and where they diverged.
    pub fn pair(&self, contestant: Contestant, index: u64) -> Result<Pair, LabError> {
        self.pair_until(contestant, index, &AtomicBool::new(false))
    }

    fn pair_until(
        &self,
        contestant: Contestant,
        index: u64,
        cancel: &AtomicBool,
    ) -> Result<Pair, LabError> {
        let (pair, is_cut) = self.pair_compared(contestant, index, CHANGES_FIRST, cancel)?;
        // Equal in all that was kept, and there was more.
        if is_cut && pair.divergence.is_none() {
            let (pair, _) = self.pair_compared(contestant, index, usize::MAX, cancel)?;
            return Ok(pair);
        }
        Ok(pair)
    }

    /// A pair, compared by its first changes of strategy, and whether a run had more of them.
    fn pair_compared(
        &self,
        contestant: Contestant,
        index: u64,
        changes_max: usize,
        cancel: &AtomicBool,
    ) -> Result<(Pair, bool), LabError> {
        // Compared as they are played, so that no run's records are kept longer than its pair.
        let mut paths = [Path::new(changes_max), Path::new(changes_max)];
        let [one, two] = &mut paths;
        let mut first = |stretch: &Stretch| one.add(stretch);
        let first = self.run_until(contestant, (index, 0), &mut first, cancel)?;
        let mut second = |stretch: &Stretch| two.add(stretch);
        let second = self.run_until(contestant, (index, 1), &mut second, cancel)?;
        let pair = Pair {
            index,
            divergence: paths[0].divergence(&paths[1], &self.plan),
            runs: [first, second],
        };
        Ok((pair, paths.iter().any(Path::is_cut)))
    }

    /// Pairs `indices`, in order, on one thread for each core.
    ///
    /// After each pair `progress` is told how many are done; once `cancel` is set the work stops with an error.
    pub fn pairs(
        &self,
        contestant: Contestant,
        indices: Range<u64>,
        progress: &(dyn Fn(u64) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Vec<Pair>, LabError> {
        self.pairs_on(threads::cores(), contestant, indices, progress, cancel)
    }

    /// The same on this many threads, which makes no difference to the result.
    pub fn pairs_on(
        &self,
        threads: usize,
        contestant: Contestant,
        indices: Range<u64>,
        progress: &(dyn Fn(u64) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Vec<Pair>, LabError> {
        let done = AtomicU64::new(0);
        let played = |index: u64| {
            // Before a pair as well as within it: pairs by whole epochs are too short to look.
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            let pair = self.pair_until(contestant, index, cancel)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(pair)
        };
        let threads = if contestant.is_one_by_one() {
            1
        } else {
            threads
        };
        threads::in_order(threads, indices, played)
    }
}
