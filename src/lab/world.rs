//! Simulated worlds: what an action gives, as a function of a world key, the action and the number of the pull.
//!
//! ```text
//! feedback of pull p of action a = f(world key, a, p),   p = 0, 1, ..
//! ```
//!
//! So two players on one world meet the same *stacks* of feedback, whatever the order in which they pull. Sums of many pulls
//! can be drawn at once; where that reads other random numbers than pull by pull it agrees in law, not in bits. Feedback is in
//! shares of the action's own range, means are on each quantity's scale: the same where all actions have one range. Rewards and costs of one pull are independent, except in a table, whose rows stay together.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::key::{Label, to_uniform};
use crate::lab::LabError;
use crate::lab::sample::{self, Stream};
use crate::mean::{FIXED_ONE, to_fixed};
use crate::problem::{Policy, Problem, Range};
use crate::strategy::Strategy;
use crate::{WorldKey, lp};

/// The most draws a world that cannot be summed may need: about a minute's work.
pub(crate) const DRAWS_MAX: u64 = 1_000_000_000;

/// Feedback of known law.
pub trait World: Send + Sync {
    /// True means on each quantity's scale: per quantity (0 is the reward), per action.
    fn means(&self) -> &[Vec<f64>];

    /// The feedback of pull number `pull` of `action`, one value per quantity, each in [0, 1], a share of the action's own range:
    /// others would be counted as something else. Of a known cost it is 0.
    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]);

    /// Sums of the feedback of `count` pulls from number `first` on, one per quantity, in multiples of 2^-53.
    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        // For worlds whose sums have no law of their own, such as beta: exact, and slow.
        let mut values = vec![0.0; sums.len()];
        sums.fill(0);
        for pull in first..first + count {
            self.pull(key, action, pull, &mut values);
            for (sum, &value) in sums.iter_mut().zip(&values) {
                *sum += u128::from(to_fixed(value));
            }
        }
    }

    /// Whether `pulls` takes time in proportion to its count.
    fn is_slow(&self) -> bool {
        true
    }

    /// What this pair meets, where pairs meet different worlds.
    fn of_pair(&self, _pair: u64) -> Option<Arc<dyn World>> {
        None
    }
}

/// What is true of a world: the best a strategy can do within the thresholds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Truth {
    /// The optimal safe strategy; `None` if no strategy keeps all thresholds. Policy free has no thresholds to keep.
    pub best: Option<Strategy>,
    /// Its expected reward.
    pub reward: Option<f64>,
    /// By how much the safe strategy's true margin falls short of the stated one, per limited cost; above 1e-9 it is a broken premise.
    pub margins_missing: Vec<f64>,
}

impl Truth {
    /// Solves for the optimal safe strategy.
    pub fn of(problem: &Problem, world: &dyn World) -> Self {
        let means = world.means();
        let thresholds = match problem.policy() {
            Policy::Free => &[],
            Policy::Soft | Policy::Hard => problem.thresholds(),
        };
        let limited = problem.limited().iter().take(thresholds.len());
        let rows: Vec<f64> = limited
            .flat_map(|&quantity| &means[quantity])
            .copied()
            .collect();
        // The same program that decides for debora, on the true means: regret is against what it could have played.
        let solution = lp::solve(&means[0], &rows, thresholds);
        let best = (solution.violation == 0.0).then(|| Strategy::new(solution.strategy));
        Self {
            reward: best.as_ref().map(|best| best.expectation(&means[0])),
            best,
            margins_missing: margins_missing(problem, means),
        }
    }
}

/// By how much the safe strategy's true cost exceeds the stated one, cost by cost; empty without a safe strategy.
fn margins_missing(problem: &Problem, means: &[Vec<f64>]) -> Vec<f64> {
    let Some(safe) = problem.safe() else {
        return Vec::new();
    };
    let limits = problem.thresholds().iter().zip(&safe.margins);
    let costs = problem.limited().iter().map(|&quantity| &means[quantity]);
    costs
        .zip(limits)
        .map(|(row, (threshold, margin))| safe.strategy.expectation(row) - (threshold - margin))
        .collect()
}

/// Means per quantity and action: on each quantity's scale, and as shares of the action's own range, which is what is drawn.
#[derive(Clone, Debug)]
struct WorldMeans {
    on_scale: Vec<Vec<f64>>,
    /// None where all actions have one range: then they are the same.
    shares: Option<Vec<Vec<f64>>>,
}

impl WorldMeans {
    /// Checks means given in the user's units, and scales them.
    fn new(problem: &Problem, means: &[Vec<f64>]) -> Result<Self, LabError> {
        check_length("quantities", means.len(), problem.quantities())?;
        let mut shares = Vec::with_capacity(means.len());
        for (quantity, row) in means.iter().enumerate() {
            check_length("actions", row.len(), problem.actions().len())?;
            let row = (0..).zip(row);
            let row: Result<Vec<f64>, LabError> = row
                .map(|(action, &mean)| share_of(problem, quantity, action, mean))
                .collect();
            shares.push(row?);
        }
        Ok(Self::of_shares(problem, shares))
    }

    fn of_shares(problem: &Problem, shares: Vec<Vec<f64>>) -> Self {
        if !problem.has_ranges_by_action() {
            return Self {
                on_scale: shares,
                shares: None,
            };
        }
        let rows = shares.iter().enumerate().map(|(quantity, row)| {
            let row = (0..).zip(row);
            row.map(|(action, &share)| problem.on_scale(quantity, action, share))
                .collect()
        });
        Self {
            on_scale: rows.collect(),
            shares: Some(shares),
        }
    }

    fn shares(&self) -> &[Vec<f64>] {
        self.shares.as_ref().unwrap_or(&self.on_scale)
    }
}

/// A value in the user's units as a share of its action's range.
fn share_of(problem: &Problem, quantity: usize, action: u32, value: f64) -> Result<f64, LabError> {
    let quantity = problem.quantity(quantity);
    let own = quantity.range_of(action);
    let Range { low, high } = own;
    // Never clipped, whatever the problem says of feedback: a world's means must be what its author wrote.
    if !(low..=high).contains(&value) {
        return Err(LabError::WorldValue {
            name: quantity.name.clone(),
            value,
            low,
            high,
        });
    }
    Ok(match quantity.known(action) {
        Some(_) => 0.0,
        None => own.to_unit(value),
    })
}

fn check_length(what: &'static str, got: usize, wanted: usize) -> Result<(), LabError> {
    if got == wanted {
        Ok(())
    } else {
        Err(LabError::WorldLength { what, got, wanted })
    }
}

/// Each quantity is one of its range's two ends.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    means: WorldMeans,
}

impl Bernoulli {
    /// Means in the user's units: per quantity, per action.
    pub fn new(problem: &Problem, means: &[Vec<f64>]) -> Result<Self, LabError> {
        Ok(Self {
            means: WorldMeans::new(problem, means)?,
        })
    }

    /// Means as shares of each action's own range, which are right already.
    pub(crate) fn of_shares(problem: &Problem, shares: Vec<Vec<f64>>) -> Self {
        Self {
            means: WorldMeans::of_shares(problem, shares),
        }
    }
}

impl World for Bernoulli {
    fn means(&self) -> &[Vec<f64>] {
        &self.means.on_scale
    }

    #[inline]
    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        // A word each: reading every quantity off one word would tie rewards to costs.
        for (block, (values, means)) in
            (0..).zip(values.chunks_mut(4).zip(self.means.shares().chunks(4)))
        {
            let words = key.block(Label::Feedback, [u64::from(action), pull, block]);
            for ((value, row), word) in values.iter_mut().zip(means).zip(words) {
                *value = f64::from(u8::from(to_uniform(word) < row[action as usize]));
            }
        }
    }

    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        let mut stream = Stream::new(key, Label::FeedbackSum, [u64::from(action), first]);
        for (sum, row) in sums.iter_mut().zip(self.means.shares()) {
            let ones = sample::binomial(&mut stream, count, row[action as usize]);
            *sum = u128::from(ones) * u128::from(FIXED_ONE);
        }
    }

    fn is_slow(&self) -> bool {
        false
    }
}

/// What a concentration can be. Below, nearly every draw is 0 or 1; above, the spread is lost in rounding.
pub(crate) const CONCENTRATIONS: RangeInclusive<f64> = 1e-6..=1e12;

/// Each quantity has a beta law with a given mean; the larger the concentration, the closer to it.
#[derive(Clone, Debug)]
pub struct Beta {
    means: WorldMeans,
    concentration: f64,
}

impl Beta {
    /// Means in the user's units: per quantity, per action. The law of a mean m is Beta(c m, c (1 - m)).
    pub fn new(
        problem: &Problem,
        means: &[Vec<f64>],
        concentration: f64,
    ) -> Result<Self, LabError> {
        if !CONCENTRATIONS.contains(&concentration) {
            return Err(LabError::Concentration { concentration });
        }
        Ok(Self {
            means: WorldMeans::new(problem, means)?,
            concentration,
        })
    }
}

impl World for Beta {
    fn means(&self) -> &[Vec<f64>] {
        &self.means.on_scale
    }

    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        let mut stream = Stream::new(key, Label::Feedback, [u64::from(action), pull]);
        for (value, row) in values.iter_mut().zip(self.means.shares()) {
            let mean = row[action as usize];
            *value = sample::beta(
                &mut stream,
                self.concentration * mean,
                self.concentration * (1.0 - mean),
            );
        }
    }
}

/// Finitely many values with their probabilities, per quantity and action.
#[derive(Clone, Debug)]
pub struct Discrete {
    means: Vec<Vec<f64>>,
    /// Per quantity, per action: values in multiples of 2^-53, and their probabilities.
    // A strategy is what picks by probabilities, whether actions or values.
    laws: Vec<Vec<(Vec<u64>, Strategy)>>,
}

/// The law of one quantity of one action: values in the user's units and their probabilities.
pub type Law = (Vec<f64>, Vec<f64>);

impl Discrete {
    /// Laws per quantity, per action. Probabilities sum to 1 within 1e-9 and are renormalised.
    pub fn new(problem: &Problem, laws: &[Vec<Law>]) -> Result<Self, LabError> {
        check_length("quantities", laws.len(), problem.quantities())?;
        let mut scaled = Vec::new();
        for (quantity, row) in laws.iter().enumerate() {
            check_length("actions", row.len(), problem.actions().len())?;
            scaled.push(
                (0..)
                    .zip(row)
                    .map(|(action, law)| Self::law(problem, (quantity, action), law))
                    .collect::<Result<Vec<_>, LabError>>()?,
            );
        }
        // From the rounded values, which are what is drawn: a mean of the stated ones would differ by up to 2^-54.
        let shares = scaled
            .iter()
            .map(|row| row.iter().map(mean_of_law).collect())
            .collect();
        Ok(Self {
            means: WorldMeans::of_shares(problem, shares).on_scale,
            laws: scaled,
        })
    }

    fn law(
        problem: &Problem,
        (quantity, action): (usize, u32),
        (values, probabilities): &Law,
    ) -> Result<(Vec<u64>, Strategy), LabError> {
        check_length("probabilities", probabilities.len(), values.len())?;
        let sum: f64 = probabilities.iter().sum();
        let in_order = probabilities
            .iter()
            .all(|probability| (0.0..=1.0).contains(probability));
        if !in_order || (sum - 1.0).abs() > 1e-9 {
            return Err(LabError::WorldProbabilities {
                name: problem.quantity(quantity).name.clone(),
                sum,
            });
        }
        let values = values
            .iter()
            .map(|&value| share_of(problem, quantity, action, value).map(to_fixed))
            .collect::<Result<_, _>>()?;
        let law = Strategy::new(probabilities.iter().map(|p| p / sum).collect());
        Ok((values, law))
    }
}

fn mean_of_law((values, law): &(Vec<u64>, Strategy)) -> f64 {
    let values: Vec<f64> = values
        .iter()
        .map(|&value| value as f64 / FIXED_ONE as f64)
        .collect();
    law.expectation(&values)
}

impl World for Discrete {
    fn means(&self) -> &[Vec<f64>] {
        &self.means
    }

    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        let mut stream = Stream::new(key, Label::Feedback, [u64::from(action), pull]);
        for (value, row) in values.iter_mut().zip(&self.laws) {
            let (support, law) = &row[action as usize];
            *value = support[law.pick(stream.uniform()) as usize] as f64 / FIXED_ONE as f64;
        }
    }

    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        let mut stream = Stream::new(key, Label::FeedbackSum, [u64::from(action), first]);
        for (sum, row) in sums.iter_mut().zip(&self.laws) {
            let (support, law) = &row[action as usize];
            let mut counts = vec![0; support.len()];
            sample::multinomial(&mut stream, count, law.probabilities(), &mut counts);
            *sum = support
                .iter()
                .zip(&counts)
                .map(|(&value, &count)| u128::from(value) * u128::from(count))
                .sum();
        }
    }

    fn is_slow(&self) -> bool {
        false
    }
}

/// Recorded feedback: each pull draws a row of its action, with replacement, reward and costs of a row staying together.
#[derive(Clone, Debug)]
pub struct Recorded {
    means: Vec<Vec<f64>>,
    /// Per action, row after row, one value per quantity, in multiples of 2^-53.
    rows: Vec<Vec<u64>>,
}

impl Recorded {
    /// Rows of an action (by number) and one value per quantity, in the user's units.
    pub fn new(
        problem: &Problem,
        recorded: impl IntoIterator<Item = (u32, Vec<f64>)>,
    ) -> Result<Self, LabError> {
        let actions = problem.actions().len();
        let quantities = problem.quantities();
        let mut rows = vec![Vec::new(); actions];
        for (action, values) in recorded {
            // Flat, one allocation an action: tables have millions of rows.
            let room = rows
                .get_mut(action as usize)
                .ok_or(LabError::TableAction { action, actions })?;
            check_length("values in a row", values.len(), quantities)?;
            for (quantity, &value) in values.iter().enumerate() {
                room.push(to_fixed(share_of(problem, quantity, action, value)?));
            }
        }
        if let Some(action) = rows.iter().position(Vec::is_empty) {
            return Err(LabError::TableEmpty {
                action: problem.actions()[action].clone(),
            });
        }
        let shares = (0..quantities)
            .map(|quantity| {
                rows.iter()
                    .map(|rows| mean_of_column(rows, quantity, quantities))
                    .collect()
            })
            .collect();
        Ok(Self {
            means: WorldMeans::of_shares(problem, shares).on_scale,
            rows,
        })
    }

    fn rows_of(&self, action: u32) -> std::slice::ChunksExact<'_, u64> {
        self.rows[action as usize].chunks_exact(self.means.len())
    }
}

/// The mean of a quantity over rows of this many quantities.
fn mean_of_column(rows: &[u64], quantity: usize, quantities: usize) -> f64 {
    let sum: u128 = rows
        .iter()
        .skip(quantity)
        .step_by(quantities)
        .map(|&value| u128::from(value))
        .sum();
    sum as f64 / FIXED_ONE as f64 / (rows.len() / quantities) as f64
}

impl World for Recorded {
    fn means(&self) -> &[Vec<f64>] {
        &self.means
    }

    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        let mut rows = self.rows_of(action);
        let word = key.block(Label::Feedback, [u64::from(action), pull, 0])[0];
        // Each row with probability 1/rows up to 2^-64.
        let row = ((u128::from(word) * rows.len() as u128) >> 64) as usize;
        let row = rows.nth(row).expect("a row below their number");
        values
            .iter_mut()
            .zip(row)
            .for_each(|(value, &fixed)| *value = fixed as f64 / FIXED_ONE as f64);
    }

    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        let mut stream = Stream::new(key, Label::FeedbackSum, [u64::from(action), first]);
        // How often each row comes up among this many draws with replacement, all rows alike.
        let mut counts = vec![0; self.rows_of(action).len()];
        sample::multinomial(&mut stream, count, &vec![1.0; counts.len()], &mut counts);
        sums.fill(0);
        for (row, &count) in self
            .rows_of(action)
            .zip(&counts)
            .filter(|(_, count)| **count > 0)
        {
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, &value)| *sum += u128::from(value) * u128::from(count));
        }
    }

    fn is_slow(&self) -> bool {
        false
    }
}
