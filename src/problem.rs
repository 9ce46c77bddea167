//! The problem: actions, costs, thresholds, ranges, horizon, rho and delta. Checked once, when a [`Draft`] is built;
//! everything after may rely on it.
//!
//! Values come in the user's units (dollars, milliseconds) and are scaled to [0, 1] by their range:
//!
//! ```text
//! unit = (value - low) / (high - low)
//! ```
//!
//! A cost may have a range for each action. Its own scale is then their hull, from the least low end to the greatest high one:
//! thresholds, margins and violations are on it. What is sampled, averaged and rounded is the *entry* of an action, the share of
//! its own range; equal ends say that the cost is known.

mod draft;

use crate::Error;
use crate::mean::to_fixed;
use crate::strategy::Strategy;

pub use draft::Draft;
pub(crate) use draft::{ACTIONS_MAX, CAUTION, CAUTIONS, CHANCES, GROWTHS, SHARES, SafeKnown};

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
    /// The values it can take, over all actions.
    pub range: Range,
    /// Each action's own range; empty where all have the same.
    pub by_action: Vec<Range>,
}

impl Quantity {
    fn new(name: impl Into<String>, [low, high]: [f64; 2]) -> Self {
        Self {
            name: name.into(),
            range: Range { low, high },
            by_action: Vec::new(),
        }
    }

    pub(crate) fn with_ranges(name: impl Into<String>, ranges: CostRange) -> Self {
        let by_action = match ranges {
            CostRange::All(range) => return Self::new(name, range),
            CostRange::Each(ranges) => ranges.into_iter(),
        };
        let by_action: Vec<Range> = by_action.map(|[low, high]| Range { low, high }).collect();
        let hull = |hull: Range, range: &Range| Range {
            low: hull.low.min(range.low),
            high: hull.high.max(range.high),
        };
        let first = by_action.first().copied().unwrap_or(Range::UNIT);
        let range = by_action.iter().fold(first, hull);
        let differ = by_action.iter().any(|own| *own != range);
        Self {
            name: name.into(),
            range,
            // Said of each action alone or of all together, the same ranges are the same problem.
            by_action: if differ { by_action } else { Vec::new() },
        }
    }

    /// The values it can take under an action.
    #[inline]
    pub fn range_of(&self, action: u32) -> Range {
        self.by_action
            .get(action as usize)
            .copied()
            .unwrap_or(self.range)
    }

    /// Where an action's entries lie on the quantity's own scale.
    pub fn entry(&self, action: u32) -> Range {
        match self.by_action.get(action as usize) {
            None => Range::UNIT,
            Some(own) => Range {
                low: self.range.to_unit(own.low),
                high: self.range.to_unit(own.high),
            },
        }
    }

    /// The value that is known of an action beforehand, if one is.
    pub fn known(&self, action: u32) -> Option<f64> {
        let own = self.range_of(action);
        (own.low == own.high).then_some(own.low)
    }
}

/// A cost's range: one for all actions, or one for each.
#[derive(Clone, Debug, PartialEq)]
pub enum CostRange {
    /// For all actions.
    All([f64; 2]),
    /// For each action, in their order. Equal ends: the cost is known.
    Each(Vec<[f64; 2]>),
}

impl From<[f64; 2]> for CostRange {
    fn from(range: [f64; 2]) -> Self {
        Self::All(range)
    }
}

impl From<Vec<[f64; 2]>> for CostRange {
    fn from(ranges: Vec<[f64; 2]>) -> Self {
        Self::Each(ranges)
    }
}

/// A cost as the user states it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its name and its range.
    pub quantity: Quantity,
    /// The limit on its mean, in the user's units; without one it is watched: tallied, and limiting nothing.
    pub threshold: Option<f64>,
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
    /// Per limited cost, a lower bound on the threshold less the strategy's cost.
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
    /// The quantities that are estimated, by number.
    estimated: Vec<usize>,
    /// Estimates a level takes.
    entries: usize,
    /// The costs that have a threshold, by their quantity's number.
    limited: Vec<usize>,
    /// Theirs, in their order.
    thresholds: Vec<f64>,
    by_action: bool,
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

    /// The share of the horizon that exploration is asked to take, if it is.
    pub fn explore(&self) -> Option<f64> {
        self.draft.explore
    }

    /// How much of an estimate's uncertainty counts against a cost, from 0 to 1; of policy soft.
    pub fn caution(&self) -> f64 {
        self.draft.caution.unwrap_or(CAUTION)
    }

    /// Number of quantities told per round: the reward and each cost.
    pub fn quantities(&self) -> usize {
        self.draft.costs.len() + 1
    }

    /// The quantities that decide, by number: the reward and, but for policy free, the limited costs. Profile tight's policy
    /// free decides by raw rewards and estimates none.
    pub fn estimated(&self) -> &[usize] {
        &self.estimated
    }

    /// Number of quantities that decide.
    pub fn quantities_estimated(&self) -> usize {
        self.estimated.len()
    }

    /// Number of estimates a level takes: an entry for each action and quantity that decides, but for known ones.
    pub fn entries_estimated(&self) -> usize {
        self.entries
    }

    /// Name and range of a quantity; 0 is the reward.
    pub fn quantity(&self, quantity: usize) -> &Quantity {
        match quantity.checked_sub(1) {
            None => &self.draft.reward,
            Some(cost) => &self.draft.costs[cost].quantity,
        }
    }

    /// A share of an action's own range, on the quantity's scale.
    pub fn on_scale(&self, quantity: usize, action: u32, share: f64) -> f64 {
        let quantity = self.quantity(quantity);
        if quantity.by_action.is_empty() {
            return share;
        }
        let entry = quantity.entry(action);
        entry.low + entry.span() * share
    }

    /// Whether some cost has a range for each action.
    pub fn has_ranges_by_action(&self) -> bool {
        self.by_action
    }

    /// The costs that have a threshold, by their quantity's number. Policy free does not look at it.
    pub fn limited(&self) -> &[usize] {
        &self.limited
    }

    /// Their thresholds on the unit scale, in the same order.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// The limited costs and their thresholds in the user's units.
    pub fn limits(&self) -> impl Iterator<Item = (&Quantity, f64)> {
        self.draft.limited()
    }

    /// A cost's threshold in the user's units, if it has one; costs are numbered from 0.
    pub fn threshold(&self, cost: usize) -> Option<f64> {
        // The value is returned as it was given: scaled to the unit interval and back it might differ in the last bit.
        self.draft.costs[cost].threshold
    }

    /// The safe strategy, under policy hard.
    pub fn safe(&self) -> Option<&Safe> {
        self.safe.as_ref()
    }

    /// The smallest margin of the safe strategy, if there is a cost to keep.
    pub fn margin_min(&self) -> Option<f64> {
        self.safe.as_ref()?.margin_min()
    }

    /// One round's feedback as multiples of 2^-53 of its action's ranges, written into `fixed`: the reward, then the costs. A
    /// known cost may be left out by telling NaN.
    ///
    /// The one place where feedback is judged: what this refuses, every way of telling refuses.
    #[inline]
    pub fn to_fixed(
        &self,
        action: u32,
        reward: f64,
        costs: &[f64],
        fixed: &mut [u64],
    ) -> Result<(), Error> {
        // By the room given, which is this problem's number of quantities: engines keep it between rounds.
        if costs.len() + 1 != fixed.len() {
            return Err(Error::CostCount {
                got: costs.len(),
                costs: fixed.len() - 1,
            });
        }
        fixed[0] = self.within(&self.draft.reward, self.draft.reward.range, reward)?;
        for ((entry, cost), &value) in fixed[1..].iter_mut().zip(&self.draft.costs).zip(costs) {
            *entry = if self.by_action {
                self.cost_to_fixed(&cost.quantity, action, value)?
            } else {
                self.within(&cost.quantity, cost.quantity.range, value)?
            };
        }
        Ok(())
    }

    /// Whether feedback could be some action's: what can be said where the action is not known any more.
    pub(crate) fn check_feedback(&self, reward: f64, costs: &[f64]) -> Result<(), Error> {
        let wanted = self.draft.costs.len();
        if costs.len() != wanted {
            return Err(Error::CostCount {
                got: costs.len(),
                costs: wanted,
            });
        }
        self.within(&self.draft.reward, self.draft.reward.range, reward)?;
        for (cost, &value) in self.draft.costs.iter().zip(costs) {
            let may_be_known = cost
                .quantity
                .by_action
                .iter()
                .any(|own| own.low == own.high);
            if !(may_be_known && value.is_nan()) {
                self.within(&cost.quantity, cost.quantity.range, value)?;
            }
        }
        Ok(())
    }

    /// Whether many rounds' feedback can be told, whatever their actions: rewards, and the costs of the first round, then of the
    /// second, and so on. Of a problem without ranges by action.
    pub(crate) fn accepts(&self, rewards: &[f64], costs: &[f64]) -> bool {
        let costs_accepted = match self.cost_range() {
            Some(range) => self.accepts_all(range, costs),
            // Without costs there are no rows, but a row's length must not be 0.
            None => costs
                .chunks_exact(self.draft.costs.len().max(1))
                .all(|row| {
                    let mut values = row.iter().zip(&self.draft.costs);
                    values.all(|(value, cost)| self.accepts_all(cost.quantity.range, &[*value]))
                }),
        };
        costs_accepted && self.accepts_all(self.draft.reward.range, rewards)
    }

    /// The range that all costs share, if they do: then what holds for one value holds for a row of any length.
    fn cost_range(&self) -> Option<Range> {
        let (first, others) = self.draft.costs.split_first()?;
        let range = first.quantity.range;
        let shared = others.iter().all(|cost| cost.quantity.range == range);
        shared.then_some(range)
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
        let ranges = self
            .draft
            .costs
            .iter()
            .map(|cost| cost.quantity.range)
            .cycle();
        for ((entry, value), range) in fixed_costs.iter_mut().zip(costs).zip(ranges) {
            *entry = to_fixed_within(range, *value);
        }
    }

    fn cost_to_fixed(&self, cost: &Quantity, action: u32, value: f64) -> Result<u64, Error> {
        let Some(known) = cost.known(action) else {
            return self.within(cost, cost.range_of(action), value);
        };
        // Nothing is left to learn of it, so that it need not be told.
        if value.is_nan() || value == known {
            return Ok(0);
        }
        Err(Error::KnownDiffers {
            name: cost.name.clone(),
            action: self.actions()[action as usize].clone(),
            value,
            known,
        })
    }

    #[inline]
    fn within(&self, quantity: &Quantity, range: Range, value: f64) -> Result<u64, Error> {
        let Range { low, high } = range;
        if (low..=high).contains(&value) {
            return Ok(to_fixed(range.to_unit(value)));
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
