//! Random worlds: means drawn by a key, so that a result can be over a hundred worlds and not about one.
//!
//! ```text
//! uniform   every reward uniform in its range
//! gap       one action at the middle + gap / 2, the others at the middle - gap / 2
//! stairs    the actions in a random order, each below the one before by gap, around the middle
//! sparse    one action in ten, uniform between the least + gap and the largest; the others at the least
//! ```
//!
//! A cost is uniform in its action's range, with room for a safe strategy: the actions of the stated safe strategy cost at most
//! what is stated of it; without one, an action drawn by the key has every limited cost in the lower half of what its threshold
//! allows. Feedback is one of the range's two ends.

use std::sync::Arc;

use crate::WorldKey;
use crate::key::{Label, to_uniform};
use crate::lab::LabError;
use crate::lab::world::{Bernoulli, World};
use crate::problem::Problem;

/// Of so many actions, one is not at the bottom of a sparse world.
const SPARSE: usize = 10;

/// The place of the action that keeps every threshold among a quantity's draws: behind all actions.
const SAFE: u64 = u64::MAX;

/// The law of a world's rewards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RewardLaw {
    /// All uniform.
    Uniform,
    /// One ahead of all others.
    Gap,
    /// One after the other.
    Stairs,
    /// Few above the bottom.
    Sparse,
}

impl RewardLaw {
    /// Its word in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Gap => "gap",
            Self::Stairs => "stairs",
            Self::Sparse => "sparse",
        }
    }

    /// Whether it needs a gap.
    pub fn has_gap(self) -> bool {
        self != Self::Uniform
    }
}

/// Worlds of one law: pair j meets number `first + j mod count`.
#[derive(Clone, Debug)]
pub struct RandomWorlds {
    problem: Problem,
    law: RewardLaw,
    /// On the unit scale.
    gap: f64,
    first: u64,
    count: u64,
    key: WorldKey,
    /// What pair 0 meets.
    world: Bernoulli,
}

impl RandomWorlds {
    /// Worlds `first` to `first + count - 1` of this key; `gap` in the reward's units, 0 of a law without one.
    pub fn new(
        problem: &Problem,
        law: RewardLaw,
        gap: f64,
        [first, count]: [u64; 2],
        key: WorldKey,
    ) -> Result<Self, LabError> {
        let unit_gap = gap / problem.quantity(0).range.span();
        check_gap(problem, law, gap, unit_gap)?;
        let means = means(problem, law, unit_gap, first, key);
        Ok(Self {
            problem: problem.clone(),
            law,
            gap: unit_gap,
            first,
            count: count.max(1),
            key,
            world: Bernoulli::of_shares(problem, means),
        })
    }
}

impl World for RandomWorlds {
    /// Those of the first world.
    fn means(&self) -> &[Vec<f64>] {
        self.world.means()
    }

    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        self.world.pull(key, action, pull, values);
    }

    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        self.world.pulls(key, action, first, count, sums);
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn of_pair(&self, pair: u64) -> Option<Arc<dyn World>> {
        if self.count == 1 {
            return None;
        }
        // Drawn when it is met: a list of all would be as long as the measurement.
        let number = self.first + pair % self.count;
        let means = means(&self.problem, self.law, self.gap, number, self.key);
        Some(Arc::new(Bernoulli::of_shares(&self.problem, means)))
    }
}

/// The most that rewards of this law lie apart must fit into their range.
fn check_gap(problem: &Problem, law: RewardLaw, gap: f64, unit_gap: f64) -> Result<(), LabError> {
    let steps = match law {
        RewardLaw::Uniform => return Ok(()),
        RewardLaw::Gap | RewardLaw::Sparse => 1,
        RewardLaw::Stairs => problem.actions().len() - 1,
    };
    // A little more than the room: 0.1 ten times is above 1.
    if gap > 0.0 && unit_gap * steps as f64 <= 1.0 + 1e-9 {
        return Ok(());
    }
    Err(LabError::WorldGap {
        law: law.name(),
        gap,
        most: 1.0 / steps as f64 * problem.quantity(0).range.span(),
    })
}

/// As shares of each action's own range: per quantity, per action.
fn means(problem: &Problem, law: RewardLaw, gap: f64, number: u64, key: WorldKey) -> Vec<Vec<f64>> {
    // A draw has the numbers of world, quantity and action: a world of more actions begins with the same ones.
    let words = |quantity: usize, action: u64| {
        key.block(Label::RandomWorld, [number, quantity as u64, action])
    };
    let draw = |quantity: usize, action: u64| to_uniform(words(quantity, action)[0]);
    let actions = problem.actions().len();
    // Two each: a draw that decides which actions are ahead is no longer uniform among those that are.
    let [order, heights] = [0, 1].map(|word| {
        let draws = (0..actions).map(|action| to_uniform(words(0, action as u64)[word]));
        draws.collect::<Vec<f64>>()
    });
    let mut means = vec![of_law(law, gap, &order, &heights)];
    let cheap = cheap_actions(problem, draw(0, SAFE));
    for quantity in 1..problem.quantities() {
        let mean = |action: usize| {
            let entry = problem.quantity(quantity).entry(action as u32);
            if entry.span() == 0.0 {
                return 0.0;
            }
            let most = if cheap[action] {
                affordable(problem, quantity)
            } else {
                1.0
            };
            // Of the action's own range, what is affordable; none of it may be.
            let high = entry.to_unit(most).clamp(0.0, 1.0);
            high * draw(quantity, action as u64)
        };
        means.push((0..actions).map(mean).collect());
    }
    means
}

fn of_law(law: RewardLaw, gap: f64, order: &[f64], heights: &[f64]) -> Vec<f64> {
    let middle = 0.5;
    let actions = order.len();
    let ranks = ranks(order);
    let mean = |action: usize| match (law, ranks[action]) {
        (RewardLaw::Uniform, _) => order[action],
        (RewardLaw::Gap, 0) => middle + gap / 2.0,
        (RewardLaw::Gap, _) => middle - gap / 2.0,
        (RewardLaw::Stairs, rank) => middle + gap * ((actions - 1) as f64 / 2.0 - rank as f64),
        (RewardLaw::Sparse, rank) if rank < actions.div_ceil(SPARSE) => {
            gap + (1.0 - gap) * heights[action]
        }
        (RewardLaw::Sparse, _) => 0.0,
    };
    (0..actions)
        .map(mean)
        // Half a gap beside a rounded middle may be beyond the end by a bit.
        .map(|mean| mean.clamp(0.0, 1.0))
        .collect()
}

/// How many draws are larger; of equals the first comes first.
fn ranks(draws: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_by(|&one, &other| draws[other].total_cmp(&draws[one]));
    let mut ranks = vec![0; draws.len()];
    for (rank, action) in order.into_iter().enumerate() {
        ranks[action] = rank;
    }
    ranks
}

/// Which actions keep every threshold: those of the stated safe strategy, or one drawn.
fn cheap_actions(problem: &Problem, draw: f64) -> Vec<bool> {
    let actions = problem.actions().len();
    match problem.safe() {
        Some(safe) => {
            let played = safe.strategy.probabilities().iter();
            played.map(|probability| *probability > 0.0).collect()
        }
        None => {
            let able: Vec<usize> = (0..actions)
                .filter(|&action| can_keep(problem, action))
                .collect();
            let one = match able.len() {
                0 => (draw * actions as f64) as usize,
                some => able[(draw * some as f64) as usize],
            };
            (0..actions).map(|action| action == one).collect()
        }
    }
}

/// Whether an action's ranges let it keep every threshold.
fn can_keep(problem: &Problem, action: usize) -> bool {
    let mut limits = problem.limited().iter().zip(problem.thresholds());
    limits.all(|(&quantity, &threshold)| {
        problem.quantity(quantity).entry(action as u32).low <= threshold
    })
}

/// The most that such an action may cost, on the cost's scale; a watched cost has no limit.
fn affordable(problem: &Problem, quantity: usize) -> f64 {
    let mut limited = problem.limited().iter();
    let Some(cost) = limited.position(|&limited| limited == quantity) else {
        return 1.0;
    };
    let threshold = problem.thresholds()[cost];
    match problem.safe() {
        // As stated: what is known of a safe strategy must be true in every world.
        Some(safe) => threshold - safe.margins[cost],
        None => threshold / 2.0,
    }
}
