//! The problem: actions, costs, thresholds, declared means, horizon, rho and delta. Checked once, when a [`Draft`] is built;
//! everything after may rely on it.
//!
//! Values come in the user's units (dollars, milliseconds) and are scaled to [0, 1] by their range:
//!
//! ```text
//! unit = (value - low) / (high - low)
//! ```

mod draft;

use crate::Error;
use crate::mean::to_fixed;
use crate::strategy::Strategy;

pub use draft::Draft;
pub(crate) use draft::{ACTIONS_MAX, CHANCES, GROWTHS, SafeKnown};

/// The largest horizon: rounds up to here are exact as `f64`.
pub const HORIZON_MAX: u64 = 1 << 53;

/// The policy: which limits it keeps, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// DEBORA: maximises the reward alone. Costs, if named, are tallied and decide nothing.
    Free,
    /// DEBORA-S: average costs stay within their thresholds up to a violation that grows more slowly than the rounds.
    Soft,
    /// DEBORA-H: every round's strategy is safe, with probability 1 - delta, given a strictly safe strategy to start from.
    Hard,
}

impl Policy {
    /// The name in spec files and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Free => "free",
            Policy::Soft => "soft",
            Policy::Hard => "hard",
        }
    }
}

/// Which constants a run uses (docs/theory.md has both). Serialised by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Estimates at fixed counts, each growth times the one before: as replicable and as safe as the paper, with far fewer rounds.
    Tight {
        /// The factor by which an action's count grows between two of its estimates.
        growth: u32,
    },
    /// The published constants, misprints corrected.
    Paper,
}

impl Profile {
    /// The name in spec files and documents.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Tight { .. } => "tight",
            Profile::Paper => "paper",
        }
    }
}

// By hand, as documents give the growth a field of its own.
impl serde::Serialize for Profile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The least and the largest value a quantity can take, in the user's units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Range {
    /// The unit scale.
    pub const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// The length of the range.
    pub fn span(self) -> f64 {
        self.high - self.low
    }

    /// A value on the scale where the range is [0, 1].
    #[inline]
    pub fn to_unit(self, value: f64) -> f64 {
        // The commonest range needs no division, which would give the same bits.
        if self.low == 0.0 && self.high == 1.0 {
            value
        } else {
            (value - self.low) / self.span()
        }
    }

    /// The value that stands at `unit` on the scale where the range is [0, 1].
    pub fn to_user(self, unit: f64) -> f64 {
        self.low + unit * self.span()
    }
}

/// A name and a range: the reward, or a cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// What the user calls it.
    pub name: String,
    /// The values it can take.
    pub range: Range,
}

impl Quantity {
    fn new(name: impl Into<String>, [low, high]: [f64; 2]) -> Self {
        Self {
            name: name.into(),
            range: Range { low, high },
        }
    }
}

/// What happens to feedback outside its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// It is refused, and the round stays open.
    #[default]
    Refuse,
    /// It counts as the nearest end of the range.
    Clip,
}

/// A strictly safe strategy and its margins, on the unit scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Safe {
    /// The strategy, summing to one.
    pub strategy: Strategy,
    /// Per cost, a lower bound on the threshold less the strategy's cost.
    pub margins: Vec<f64>,
}

impl Safe {
    /// The smallest margin, if there is a cost to keep.
    pub fn margin_min(&self) -> Option<f64> {
        self.margins.iter().copied().reduce(f64::min)
    }
}

/// A checked problem. Thresholds and margins are on the unit scale, names and ranges in the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub(crate) draft: Draft,
    profile: Profile,
    /// Per quantity, where every action's mean is declared to lie.
    means: Vec<Range>,
    thresholds: Vec<f64>,
    safe: Option<Safe>,
}

impl Problem {
    /// A problem without limits: maximise the reward over `horizon` rounds, replicably with probability 1 - `rho`.
    pub fn free(
        actions: impl IntoIterator<Item = impl Into<String>>,
        horizon: u64,
        rho: f64,
    ) -> Draft {
        Draft::new(Policy::Free, actions, horizon, rho)
    }

    /// A problem with soft limits: average costs within their thresholds, up to a sublinear violation.
    pub fn soft(
        actions: impl IntoIterator<Item = impl Into<String>>,
        horizon: u64,
        rho: f64,
    ) -> Draft {
        Draft::new(Policy::Soft, actions, horizon, rho)
    }

    /// A problem with hard limits: every round safe; needs a strictly safe strategy.
    pub fn hard(
        actions: impl IntoIterator<Item = impl Into<String>>,
        horizon: u64,
        rho: f64,
    ) -> Draft {
        Draft::new(Policy::Hard, actions, horizon, rho)
    }

    /// The same problem over another number of rounds.
    pub fn with_horizon(&self, horizon: u64) -> Result<Self, Error> {
        // Built anew, as the horizon has a rule of its own; the other rules hold again.
        Draft {
            horizon,
            ..self.draft.clone()
        }
        .build()
    }

    /// The same problem without declared means.
    pub(crate) fn without_means(&self) -> Self {
        Self {
            draft: Draft {
                means: Vec::new(),
                ..self.draft.clone()
            },
            means: vec![Range::UNIT; self.means.len()],
            ..self.clone()
        }
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.draft.policy
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The actions' names.
    pub fn actions(&self) -> &[String] {
        &self.draft.actions
    }

    /// The number of rounds.
    pub fn horizon(&self) -> u64 {
        self.draft.horizon
    }

    /// The chance of differing decisions.
    pub fn rho(&self) -> f64 {
        self.draft.rho
    }

    /// The chance of failing bounds.
    pub fn delta(&self) -> f64 {
        self.draft.delta
    }

    /// What happens to feedback outside its range.
    pub fn outside(&self) -> Outside {
        self.draft.outside
    }

    /// Number of quantities told per round: the reward and each cost.
    pub fn quantities(&self) -> usize {
        self.draft.costs.len() + 1
    }

    /// Number of quantities that are estimated per action: policy free decides without the costs.
    pub fn quantities_estimated(&self) -> usize {
        if self.policy() == Policy::Free {
            1
        } else {
            self.quantities()
        }
    }

    /// Name and range of a quantity; 0 is the reward.
    pub fn quantity(&self, quantity: usize) -> &Quantity {
        match quantity.checked_sub(1) {
            None => &self.draft.reward,
            Some(cost) => &self.draft.costs[cost].0,
        }
    }

    /// Where a quantity's mean is declared to lie for every action, on the unit scale; all of it if nothing is declared.
    pub fn means(&self, quantity: usize) -> Range {
        self.means[quantity]
    }

    /// Each cost's threshold on the unit scale.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// A cost's threshold in the user's units; costs are numbered from 0.
    pub fn threshold(&self, cost: usize) -> f64 {
        // The value is returned as it was given: scaled to the unit interval and back it might differ in the last bit.
        self.draft.costs[cost].1
    }

    /// The safe strategy, under policy hard.
    pub fn safe(&self) -> Option<&Safe> {
        self.safe.as_ref()
    }

    /// The smallest margin of the safe strategy, if there is a cost to keep.
    pub fn margin_min(&self) -> Option<f64> {
        self.safe.as_ref()?.margin_min()
    }

    /// One round's feedback as multiples of 2^-53 on the unit scale, written into `fixed`: the reward, then the costs.
    ///
    /// The one place where feedback is judged: what this refuses, every way of telling refuses.
    #[inline]
    pub fn to_fixed(&self, reward: f64, costs: &[f64], fixed: &mut [u64]) -> Result<(), Error> {
        // By the room given, which is this problem's number of quantities: engines keep it between rounds.
        if costs.len() + 1 != fixed.len() {
            return Err(Error::CostCount {
                got: costs.len(),
                costs: fixed.len() - 1,
            });
        }
        fixed[0] = self.quantity_to_fixed(&self.draft.reward, reward)?;
        for ((entry, (cost, _)), &value) in fixed[1..].iter_mut().zip(&self.draft.costs).zip(costs)
        {
            *entry = self.quantity_to_fixed(cost, value)?;
        }
        Ok(())
    }

    /// Whether many rounds' feedback can be told: rewards, and the costs of the first round, then of the second, and so on.
    pub(crate) fn accepts(&self, rewards: &[f64], costs: &[f64]) -> bool {
        let costs_accepted = match self.cost_range() {
            Some(range) => self.accepts_all(range, costs),
            // Without costs there are no rows, but a row's length must not be 0.
            None => costs
                .chunks_exact(self.draft.costs.len().max(1))
                .all(|row| {
                    let mut values = row.iter().zip(&self.draft.costs);
                    values.all(|(value, (cost, _))| self.accepts_all(cost.range, &[*value]))
                }),
        };
        costs_accepted && self.accepts_all(self.draft.reward.range, rewards)
    }

    /// The range that all costs share, if they do: then what holds for one value holds for a row of any length.
    fn cost_range(&self) -> Option<Range> {
        let ((first, _), others) = self.draft.costs.split_first()?;
        let shared = others.iter().all(|(cost, _)| cost.range == first.range);
        shared.then_some(first.range)
    }

    #[inline]
    fn accepts_all(&self, range: Range, values: &[f64]) -> bool {
        let Range { low, high } = range;
        let clipped = self.draft.outside == Outside::Clip;
        // To the end even if one is refused, which is rare: without a branch several values are compared at once. Nothing can
        // be made of NaN, which has no nearest end.
        values.iter().fold(true, |all, &value| {
            all & (((low <= value) & (value <= high)) | (clipped & !value.is_nan()))
        })
    }

    /// Many rounds' rewards and costs as multiples of 2^-53, each as [`Self::to_fixed`] has it. [`Self::accepts`] them.
    pub(crate) fn accepted_to_fixed(&self, [rewards, costs]: [&[f64]; 2], fixed: [&mut [u64]; 2]) {
        let [fixed_rewards, fixed_costs] = fixed;
        to_fixed_all(self.draft.reward.range, rewards, fixed_rewards);
        if let Some(range) = self.cost_range() {
            return to_fixed_all(range, costs, fixed_costs);
        }
        let ranges = self.draft.costs.iter().map(|(cost, _)| cost.range).cycle();
        for ((entry, value), range) in fixed_costs.iter_mut().zip(costs).zip(ranges) {
            *entry = to_fixed_within(range, *value);
        }
    }

    #[inline]
    fn quantity_to_fixed(&self, quantity: &Quantity, value: f64) -> Result<u64, Error> {
        let Range { low, high } = quantity.range;
        if (low..=high).contains(&value) {
            return Ok(to_fixed(quantity.range.to_unit(value)));
        }
        // An infinite value has a nearest end, too.
        if self.draft.outside == Outside::Clip && !value.is_nan() {
            return Ok(to_fixed(if value < low { 0.0 } else { 1.0 }));
        }
        Err(Error::Outside {
            name: quantity.name.clone(),
            value,
            low,
            high,
        })
    }
}

/// Accepted values of one range as multiples of 2^-53.
fn to_fixed_all(range: Range, values: &[f64], fixed: &mut [u64]) {
    let entries = fixed.iter_mut().zip(values);
    // The commonest range in a loop of its own: several values are converted at once.
    if range == Range::UNIT {
        entries.for_each(|(entry, value)| *entry = to_fixed_within(Range::UNIT, *value));
    } else {
        entries.for_each(|(entry, value)| *entry = to_fixed_within(range, *value));
    }
}

/// What is beyond an end is told as that end, to the bit: an end's unit is exactly 0 or 1.
#[inline]
fn to_fixed_within(range: Range, value: f64) -> u64 {
    to_fixed(range.to_unit(value.clamp(range.low, range.high)))
}
