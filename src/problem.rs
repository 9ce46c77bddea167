//! The problem: actions, costs, thresholds, horizon, rho and delta. Checked here, once; everything after may rely on it.
//!
//! Values come in the user's units (dollars, milliseconds) and are scaled to [0, 1] by their range:
//!
//! ```text
//! unit = (value - low) / (high - low)
//! ```

use crate::Error;
use crate::mean::to_fixed;
use crate::strategy::Strategy;

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
    /// The name in spec files.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Free => "free",
            Policy::Soft => "soft",
            Policy::Hard => "hard",
        }
    }
}

/// Which constants a run uses (docs/theory.md has both).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Estimates at fixed counts growth^level: the guarantees of the paper with far fewer rounds.
    Tight {
        /// By what an action's count grows between two of its estimates.
        growth: u32,
    },
    /// The published constants, misprints corrected.
    Paper,
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
    /// How the user calls it.
    pub name: String,
    /// The values it can take.
    pub range: Range,
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

/// What is known of the safe strategy, per cost, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Costs(Vec<f64>),
    Margins(Vec<f64>),
}

/// A problem as the user states it, not yet checked. Begin with [`Problem::free`], [`Problem::soft`] or [`Problem::hard`].
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a draft is a problem only after build()"]
pub struct Draft {
    pub(crate) policy: Policy,
    pub(crate) actions: Vec<String>,
    pub(crate) horizon: u64,
    pub(crate) rho: f64,
    pub(crate) delta: f64,
    pub(crate) paper: bool,
    pub(crate) growth: Option<u32>,
    pub(crate) outside: Outside,
    pub(crate) reward: Quantity,
    pub(crate) costs: Vec<(Quantity, f64)>,
    pub(crate) safe: Option<(Vec<f64>, Known)>,
}

impl Draft {
    fn new(
        policy: Policy,
        actions: impl IntoIterator<Item = impl Into<String>>,
        horizon: u64,
        rho: f64,
    ) -> Self {
        let reward = Quantity {
            name: "reward".into(),
            range: Range {
                low: 0.0,
                high: 1.0,
            },
        };
        let actions = actions.into_iter().map(Into::into).collect();
        let (paper, growth, outside, costs, safe) =
            (false, None, Outside::Refuse, Vec::new(), None);
        Self {
            policy,
            actions,
            horizon,
            rho,
            delta: 0.01,
            paper,
            growth,
            outside,
            reward,
            costs,
            safe,
        }
    }

    /// The chance that bounds and safety fail; 0.01 unless said.
    pub fn delta(self, delta: f64) -> Self {
        Self { delta, ..self }
    }

    /// Use the published constants instead of the tight ones.
    pub fn paper(self) -> Self {
        Self {
            paper: true,
            ..self
        }
    }

    /// By what counts grow between estimates in profile tight; 8 unless said.
    pub fn growth(self, growth: u32) -> Self {
        Self {
            growth: Some(growth),
            ..self
        }
    }

    /// What happens to feedback outside its range; refused unless said.
    pub fn outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    /// The reward's name and range; "reward" in [0, 1] unless said.
    pub fn reward(self, name: impl Into<String>, range: [f64; 2]) -> Self {
        Self {
            reward: Quantity {
                name: name.into(),
                range: Range {
                    low: range[0],
                    high: range[1],
                },
            },
            ..self
        }
    }

    /// One more cost with its range and the threshold its mean must keep, all in the user's units.
    pub fn cost(mut self, name: impl Into<String>, range: [f64; 2], threshold: f64) -> Self {
        self.costs.push((
            Quantity {
                name: name.into(),
                range: Range {
                    low: range[0],
                    high: range[1],
                },
            },
            threshold,
        ));
        self
    }

    /// A strictly safe strategy (a probability per action) and its expected costs, or upper bounds on them.
    pub fn safe_with_costs(
        self,
        strategy: impl Into<Vec<f64>>,
        costs: impl Into<Vec<f64>>,
    ) -> Self {
        Self {
            safe: Some((strategy.into(), Known::Costs(costs.into()))),
            ..self
        }
    }

    /// A strictly safe strategy and by how much it stays below each threshold, or lower bounds on that.
    pub fn safe_with_margins(
        self,
        strategy: impl Into<Vec<f64>>,
        margins: impl Into<Vec<f64>>,
    ) -> Self {
        Self {
            safe: Some((strategy.into(), Known::Margins(margins.into()))),
            ..self
        }
    }

    /// Checks every rule.
    pub fn build(self) -> Result<Problem, Error> {
        self.check_scalars()?;
        self.check_names()?;
        check_range(&self.reward)?;
        for (cost, threshold) in &self.costs {
            check_range(cost)?;
            let Range { low, high } = cost.range;
            if !(low..=high).contains(threshold) {
                return Err(Error::Threshold {
                    name: cost.name.clone(),
                    threshold: *threshold,
                    low,
                    high,
                });
            }
        }
        let profile = if self.paper {
            Profile::Paper
        } else {
            Profile::Tight {
                growth: self.growth.unwrap_or(8),
            }
        };
        let thresholds: Vec<f64> = self
            .costs
            .iter()
            .map(|(cost, threshold)| cost.range.to_unit(*threshold))
            .collect();
        let safe = match (self.policy, &self.safe) {
            (Policy::Hard, Some((strategy, known))) => {
                let strategy = safe_strategy(strategy, &self.actions)?;
                Some(Safe {
                    strategy,
                    margins: unit_margins(known, &self.costs, &thresholds)?,
                })
            }
            (Policy::Hard, None) => return Err(Error::SafeMissing),
            (policy, Some(_)) => {
                return Err(Error::SafeUnused {
                    policy: policy.name(),
                });
            }
            (_, None) => None,
        };
        Ok(Problem {
            draft: self,
            profile,
            thresholds,
            safe,
        })
    }

    fn check_scalars(&self) -> Result<(), Error> {
        let Self {
            horizon,
            rho,
            delta,
            ..
        } = *self;
        // Far below 1e-100 shares would round to zero; and no horizon could serve such a rho anyway.
        let inside = |value: f64| (1e-100..1.0).contains(&value);
        if self.actions.len() < 2 || self.actions.len() > 1 << 20 {
            return Err(Error::Actions {
                count: self.actions.len(),
            });
        }
        if horizon == 0 || horizon > HORIZON_MAX {
            return Err(Error::Horizon { horizon });
        }
        if !inside(rho) {
            return Err(Error::Rho { rho });
        }
        if !inside(delta) {
            return Err(Error::Delta { delta });
        }
        match self.growth {
            Some(growth) if self.paper => Err(Error::GrowthWithPaper { growth }),
            Some(growth) if !(2..=64).contains(&growth) => Err(Error::Growth { growth }),
            _ if self.paper && 2.0 * delta >= rho => Err(Error::PaperDelta { rho, delta }),
            _ => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), Error> {
        let actions: Vec<&str> = self.actions.iter().map(String::as_str).collect();
        let quantities =
            std::iter::once(&self.reward).chain(self.costs.iter().map(|(cost, _)| cost));
        let quantities: Vec<&str> = quantities.map(|quantity| quantity.name.as_str()).collect();
        for (what, names) in [("action", actions), ("quantity", quantities)] {
            if let Some(number) = names.iter().position(|name| name.is_empty()) {
                return Err(Error::NameEmpty { what, number });
            }
            let mut sorted = names;
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::NameRepeated {
                    what,
                    name: pair[0].to_owned(),
                });
            }
        }
        Ok(())
    }
}

fn check_range(quantity: &Quantity) -> Result<(), Error> {
    let Range { low, high } = quantity.range;
    // The span must be a normal number: scaling by a subnormal one would lose what feedback says.
    if low.is_finite() && high.is_finite() && low < high && quantity.range.span().is_normal() {
        return Ok(());
    }
    Err(Error::Range {
        name: quantity.name.clone(),
        low,
        high,
    })
}

/// A distribution within 1e-9, renormalised.
fn safe_strategy(probabilities: &[f64], actions: &[String]) -> Result<Strategy, Error> {
    if probabilities.len() != actions.len() {
        return Err(Error::SafeLength {
            got: probabilities.len(),
            actions: actions.len(),
        });
    }
    let wrong = |(_, probability): &(&String, &f64)| !(0.0..=1.0).contains(*probability);
    if let Some((action, &probability)) = actions.iter().zip(probabilities).find(wrong) {
        return Err(Error::SafeProbability {
            action: action.clone(),
            probability,
        });
    }
    let sum: f64 = probabilities.iter().sum();
    if (sum - 1.0).abs() > 1e-9 {
        return Err(Error::SafeSum { sum });
    }
    Ok(Strategy::new(
        probabilities
            .iter()
            .map(|probability| probability / sum)
            .collect(),
    ))
}

/// Margins on the unit scale: 0 < margin <= threshold.
fn unit_margins(
    known: &Known,
    costs: &[(Quantity, f64)],
    thresholds: &[f64],
) -> Result<Vec<f64>, Error> {
    let (Known::Costs(values) | Known::Margins(values)) = known;
    if values.len() != costs.len() {
        return Err(Error::MarginCount {
            got: values.len(),
            costs: costs.len(),
        });
    }
    let margin = |(value, (cost, limit)): (&f64, &(Quantity, f64)), threshold: &f64| {
        // Departs from the paper: lambda is the margin, not the cost, of the safe strategy (docs/deviations.md, 5).
        let margin = if matches!(known, Known::Costs(_)) {
            limit - value
        } else {
            *value
        };
        let unit = margin / cost.range.span();
        // .3 - .1 is not .2: a margin may exceed what it can be by rounding.
        if unit > 0.0 && unit <= threshold * (1.0 + 1e-12) {
            Ok(unit.min(*threshold))
        } else {
            Err(Error::Margin {
                name: cost.name.clone(),
                margin,
                most: limit - cost.range.low,
            })
        }
    };
    values
        .iter()
        .zip(costs)
        .zip(thresholds)
        .map(|(value, threshold)| margin(value, threshold))
        .collect()
}

/// A strictly safe strategy and its margins, on the unit scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Safe {
    /// The strategy, summing to one.
    pub strategy: Strategy,
    /// Per cost, a lower bound on the threshold less the strategy's cost.
    pub margins: Vec<f64>,
}

/// A checked problem. Thresholds and margins are on the unit scale, names and ranges in the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub(crate) draft: Draft,
    profile: Profile,
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

    /// Each cost's threshold on the unit scale.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// A cost's threshold in the user's units; costs are numbered from 0.
    pub fn threshold(&self, cost: usize) -> f64 {
        // As it was given: scaled to the unit interval and back it might differ in the last bit.
        self.draft.costs[cost].1
    }

    /// The safe strategy, under policy hard.
    pub fn safe(&self) -> Option<&Safe> {
        self.safe.as_ref()
    }

    /// The smallest margin of the safe strategy, if there is a cost to keep.
    pub fn margin_min(&self) -> Option<f64> {
        self.safe.as_ref()?.margins.iter().copied().reduce(f64::min)
    }

    /// One round's feedback as multiples of 2^-53 on the unit scale, written into `fixed`: the reward, then the costs.
    ///
    /// The one place where feedback is judged: what this refuses, every way of telling refuses.
    #[inline]
    pub fn to_fixed(&self, reward: f64, costs: &[f64], fixed: &mut [u64]) -> Result<(), Error> {
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
        let clipped = self.draft.outside == Outside::Clip;
        let accepted = |quantity: &Quantity, value: &f64| {
            (quantity.range.low..=quantity.range.high).contains(value)
                || (clipped && !value.is_nan())
        };
        let row = |row: &[f64]| {
            row.iter()
                .zip(&self.draft.costs)
                .all(|(value, (cost, _))| accepted(cost, value))
        };
        rewards
            .iter()
            .all(|reward| accepted(&self.draft.reward, reward))
            && costs.chunks_exact(self.draft.costs.len().max(1)).all(row)
    }

    #[inline]
    fn quantity_to_fixed(&self, quantity: &Quantity, value: f64) -> Result<u64, Error> {
        let Range { low, high } = quantity.range;
        if (low..=high).contains(&value) {
            return Ok(to_fixed(quantity.range.to_unit(value)));
        }
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
