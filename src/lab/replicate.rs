//! Pairs of runs: one policy key, two world keys. Were the decisions the same, and if not, where and why did they part?
//!
//! ```text
//! pair j: policy key derive(key, j, 0),  world keys derive(world key, j, 0) and derive(world key, j, 1)
//! ```
//!
//! As rho is over keys too, each pair has its own. A pair is a function of its index, so pairs can be shared out over threads
//! and machines and put together again in order: the result is the same bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::lab::LabError;
use crate::lab::epochs::{self, Stretch};
use crate::lab::metrics::{Meter, Run};
use crate::lab::players::{Player, Rival};
use crate::lab::rounds;
use crate::lab::world::{Truth, World};
use crate::plan::Plan;
use crate::{Engine, Estimate, Key, WorldKey};

/// How rounds are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Simulator {
    /// Whole epochs at once.
    Epochs,
    /// One round after another.
    Rounds,
}

/// Who plays.
#[derive(Clone, Copy)]
pub enum Contestant {
    /// The policy of the problem.
    Debora,
    /// One of its rivals.
    Rival(&'static Rival),
}

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

/// Where two runs parted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// The first epoch with different strategies.
    pub epoch: u64,
    /// The first round with different strategies.
    pub round: u64,
    /// An estimate in force there that fell into another cell, the latest such; none if the player does not round.
    pub estimate: Option<SplitEstimate>,
}

/// An estimate that fell into different cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitEstimate {
    /// The action.
    pub action: u32,
    /// The quantity; 0 is the reward.
    pub quantity: u32,
    /// The number of samples.
    pub count: u64,
    /// The grid's step.
    pub cell: f64,
    /// The edge between the two cells that is nearest to the first mean.
    pub edge: f64,
    /// The two means.
    pub means: [f64; 2],
    /// The two cells.
    pub indices: [i64; 2],
}

/// Two runs with one policy key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Its number.
    pub index: u64,
    /// Where they parted; none if all strategies were equal.
    pub split: Option<Split>,
    /// The two runs.
    pub runs: [Run; 2],
}

/// A run as the comparison needs it: strategies merged where neighbours are equal, and estimates epoch by epoch.
#[derive(Default)]
struct Path {
    /// First round and probability bits.
    strategies: Vec<(u64, Vec<u64>)>,
    /// The first round of each epoch.
    epochs: Vec<u64>,
    /// All estimates, in the order in which they were made.
    estimates: Vec<Estimate>,
}

impl Path {
    fn add(&mut self, stretch: &Stretch) {
        let probabilities = stretch.player.strategy().probabilities();
        let same = |bits: &Vec<u64>| {
            bits.iter()
                .zip(probabilities)
                .all(|(bits, x)| *bits == x.to_bits())
        };
        if !self.strategies.last().is_some_and(|(_, bits)| same(bits)) {
            self.strategies.push((
                stretch.first_round,
                probabilities.iter().map(|x| x.to_bits()).collect(),
            ));
        }
        if let Some(record) = stretch.player.record() {
            self.epochs.push(stretch.first_round);
            self.estimates.extend(&record.estimates);
        }
    }

    /// The first round at which the two paths hold different strategies.
    fn parts_from(&self, other: &Self) -> Option<u64> {
        let pairs = self.strategies.iter().zip(&other.strategies);
        if let Some((one, two)) = pairs.clone().find(|(one, two)| one != two) {
            // A strategy that began earlier in one run differs there from the one before it in the other.
            return Some(one.0.min(two.0));
        }
        let longer = if self.strategies.len() > other.strategies.len() {
            self
        } else {
            other
        };
        longer.strategies.get(pairs.len()).map(|(round, _)| *round)
    }

    fn split(&self, other: &Self) -> Option<Split> {
        let round = self.parts_from(other)?;
        let epoch = self
            .epochs
            .partition_point(|first| *first <= round)
            .saturating_sub(1) as u64;
        // The strategies differ because estimates in force do: of those, the ones made latest, as these parted the runs.
        let in_force = |path: &Self| {
            let mut latest = BTreeMap::new();
            for estimate in path
                .estimates
                .iter()
                .filter(|estimate| estimate.epoch <= epoch)
            {
                latest.insert((estimate.action, estimate.quantity), *estimate);
            }
            latest
        };
        let (ours, theirs) = (in_force(self), in_force(other));
        let both = ours
            .values()
            .filter_map(|one| Some((one, theirs.get(&(one.action, one.quantity))?)));
        let differing = both.filter(|(one, two)| one.count == two.count && one.index != two.index);
        let latest =
            differing.max_by_key(|(one, _)| (one.epoch, Reverse((one.action, one.quantity))));
        let estimate = latest.and_then(|(one, two)| {
            let indices = [one.index?, two.index?];
            // Cell z spans from (offset + z) cell to (offset + z + 1) cell.
            let edge = (one.offset
                + if indices[1] > indices[0] {
                    indices[0] + 1
                } else {
                    indices[0]
                } as f64)
                * one.cell;
            let Estimate {
                action,
                quantity,
                count,
                cell,
                ..
            } = *one;
            Some(SplitEstimate {
                action,
                quantity,
                count,
                cell,
                edge,
                means: [one.mean, two.mean],
                indices,
            })
        });
        Some(Split {
            epoch,
            round,
            estimate,
        })
    }
}

impl Experiment {
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
        let (problem, world) = (&self.plan.problem, &*self.worlds[member]);
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
        let mut play = |player: &mut dyn Player, simulator: Simulator| match simulator {
            Simulator::Epochs => epochs::simulate(player, problem, world, keys, &mut both),
            Simulator::Rounds => Ok(rounds::simulate(player, problem, world, keys, &mut both)),
        };
        match contestant {
            Contestant::Debora => {
                let mut engine = Engine::with_plan(Arc::clone(&self.plan), keys.0);
                let tally = play(&mut engine, self.simulator)?;
                Ok(meter.finish(
                    &tally,
                    engine.strategy().probabilities(),
                    Some(engine.digest()),
                ))
            }
            Contestant::Rival(rival) => {
                let mut player = rival.player(&self.plan, keys.0);
                let tally = play(
                    &mut *player,
                    if rival.per_round {
                        Simulator::Rounds
                    } else {
                        self.simulator
                    },
                )?;
                Ok(meter.finish(&tally, player.strategy().probabilities(), None))
            }
        }
    }

    /// Both runs of a pair, and where they parted.
    pub fn pair(&self, contestant: Contestant, index: u64) -> Result<Pair, LabError> {
        let mut paths = [Path::default(), Path::default()];
        let [one, two] = &mut paths;
        let first = self.run_observed(contestant, index, 0, &mut |stretch| one.add(stretch))?;
        let second = self.run_observed(contestant, index, 1, &mut |stretch| two.add(stretch))?;
        Ok(Pair {
            index,
            split: paths[0].split(&paths[1]),
            runs: [first, second],
        })
    }

    /// Pairs `indices`, in order, on all threads of the current pool.
    ///
    /// After each pair `progress` is told how many are done; once `cancel` is set the work stops with an error.
    pub fn pairs(
        &self,
        contestant: Contestant,
        indices: Range<u64>,
        progress: &(dyn Fn(u64) + Sync),
        cancel: &AtomicBool,
    ) -> Result<Vec<Pair>, LabError> {
        let done = AtomicU64::new(0);
        let pair = |index: u64| {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            let pair = self.pair(contestant, index)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(pair)
        };
        indices.into_par_iter().map(pair).collect()
    }
}
