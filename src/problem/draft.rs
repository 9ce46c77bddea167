//! A problem as the user states it, and every rule it must meet before it is one.

use std::ops::RangeInclusive;

use super::{
    Cost, CostRange, HORIZON_MAX, Outside, Policy, Problem, Profile, Quantity, Range, Safe,
};
use crate::Error;
use crate::strategy::Strategy;

/// The most actions: each is numbered by a `u32` and named in every record, and what is drawn for all of them must stay an
/// exact count.
pub(crate) const ACTIONS_MAX: usize = 1 << 20;

/// What rho and delta can be. Far below 1e-100 shares would round to zero; and no horizon could serve such a rho anyway.
pub(crate) const CHANCES: std::ops::Range<f64> = 1e-100..1.0;

/// What growth can be.
pub(crate) const GROWTHS: RangeInclusive<u32> = 2..=64;

/// What exploration's share of the horizon can be, both ends left out.
pub(crate) const SHARES: std::ops::Range<f64> = f64::from_bits(1)..1.0;

/// What caution can be.
pub(crate) const CAUTIONS: RangeInclusive<f64> = 0.0..=1.0;

/// Caution where none is given: half of an estimate's uncertainty counts against a cost.
pub(crate) const CAUTION: f64 = 0.5;

/// What is known of the safe strategy, per limited cost, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SafeKnown {
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
    pub(crate) costs: Vec<Cost>,
    pub(crate) explore: Option<f64>,
    pub(crate) caution: Option<f64>,
    pub(crate) safe: Option<(Vec<f64>, SafeKnown)>,
}

impl Draft {
    pub(super) fn new(
        policy: Policy,
        actions: impl IntoIterator<Item = impl Into<String>>,
        horizon: u64,
        rho: f64,
    ) -> Self {
        Self {
            policy,
            actions: actions.into_iter().map(Into::into).collect(),
            horizon,
            rho,
            delta: 0.01,
            paper: false,
            growth: None,
            outside: Outside::Refuse,
            reward: Quantity::new("reward", [0.0, 1.0]),
            costs: Vec::new(),
            explore: None,
            caution: None,
            safe: None,
        }
    }

    /// Safety fails with at most this probability, the printed bounds with at most twice that; default 0.01.
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

    /// The factor by which counts grow between estimates in profile tight; default 8.
    pub fn growth(self, growth: u32) -> Self {
        Self {
            growth: Some(growth),
            ..self
        }
    }

    /// What happens to feedback outside its range; by default it is refused.
    pub fn outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    /// The reward's name and range; default "reward" in [0, 1].
    pub fn reward(self, name: impl Into<String>, range: [f64; 2]) -> Self {
        Self {
            reward: Quantity::new(name, range),
            ..self
        }
    }

    /// One more cost with its range, for all actions or for each, and the threshold its mean must keep, all in the user's units.
    pub fn cost(
        mut self,
        name: impl Into<String>,
        range: impl Into<CostRange>,
        threshold: f64,
    ) -> Self {
        self.costs.push(Cost {
            quantity: Quantity::with_ranges(name, range.into()),
            threshold: Some(threshold),
        });
        self
    }

    /// One more cost that is only watched: tallied and shown, and limiting nothing.
    pub fn watch(mut self, name: impl Into<String>, range: impl Into<CostRange>) -> Self {
        self.costs.push(Cost {
            quantity: Quantity::with_ranges(name, range.into()),
            threshold: None,
        });
        self
    }

    /// The share of the horizon that exploration takes, in (0, 1), in place of the length that costs least: for those who want
    /// the best final choice.
    pub fn explore(self, share: f64) -> Self {
        Self {
            explore: Some(share),
            ..self
        }
    }

    /// How much of an estimate's uncertainty counts against a cost under policy soft, from 0 (rewards first) to 1 (limits
    /// first); default 1/2.
    pub fn caution(self, caution: f64) -> Self {
        Self {
            caution: Some(caution),
            ..self
        }
    }

    /// A strictly safe strategy (a probability per action) and its expected costs, or upper bounds on them.
    pub fn safe_with_costs(
        self,
        strategy: impl Into<Vec<f64>>,
        costs: impl Into<Vec<f64>>,
    ) -> Self {
        Self {
            safe: Some((strategy.into(), SafeKnown::Costs(costs.into()))),
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
            safe: Some((strategy.into(), SafeKnown::Margins(margins.into()))),
            ..self
        }
    }

    /// Checks every rule.
    pub fn build(self) -> Result<Problem, Error> {
        self.check_scalars()?;
        self.check_profile()?;
        self.check_names()?;
        check_range(&self.reward)?;
        for cost in &self.costs {
            self.check_ranges(&cost.quantity)?;
            check_threshold(cost)?;
        }
        let limited: Vec<usize> = (1..)
            .zip(&self.costs)
            .filter(|(_, cost)| cost.threshold.is_some())
            .map(|(quantity, _)| quantity)
            .collect();
        // Scaled once, here: everything after compares on the unit scale. One above the range never binds.
        let thresholds: Vec<f64> = self
            .limited()
            .map(|(quantity, threshold)| quantity.range.to_unit(threshold).min(1.0))
            .collect();
        let safe = self.checked_safe(&thresholds)?;
        let mut estimated = vec![0];
        if self.policy != Policy::Free {
            estimated.extend(&limited);
        }
        Ok(Problem {
            profile: self.profile(),
            entries: self.entries(&estimated),
            by_action: self.has_ranges_by_action(),
            safe,
            estimated,
            limited,
            thresholds,
            draft: self,
        })
    }

    /// The costs that have a threshold, with it.
    pub(crate) fn limited(&self) -> impl Iterator<Item = (&Quantity, f64)> {
        self.costs
            .iter()
            .filter_map(|cost| Some((&cost.quantity, cost.threshold?)))
    }

    /// How many entries of these quantities have to be estimated.
    fn entries(&self, quantities: &[usize]) -> usize {
        let actions = self.actions.len();
        let of_cost = |&number: &usize| {
            let known = |own: &&Range| own.low == own.high;
            let own = &self.costs[number - 1].quantity.by_action;
            actions - own.iter().filter(known).count()
        };
        // All rewards, and of each cost what is not known.
        actions + quantities[1..].iter().map(of_cost).sum::<usize>()
    }

    fn has_ranges_by_action(&self) -> bool {
        let mut costs = self.costs.iter();
        costs.any(|cost| !cost.quantity.by_action.is_empty())
    }

    fn profile(&self) -> Profile {
        if self.paper {
            return Profile::Paper;
        }
        // A smaller growth renews estimates more often, but every level takes its share of rho; 4 and 16 were tried and are
        // not better.
        let growth = self.growth.unwrap_or(8);
        Profile::Tight { growth }
    }

    fn checked_safe(&self, thresholds: &[f64]) -> Result<Option<Safe>, Error> {
        match (self.policy, &self.safe) {
            (Policy::Hard, Some((strategy, known))) => Ok(Some(Safe {
                strategy: safe_strategy(strategy, &self.actions)?,
                margins: unit_margins(known, self.limited(), thresholds)?,
            })),
            (Policy::Hard, None) => Err(Error::SafeMissing),
            (policy, Some(_)) => Err(Error::SafeUnused {
                policy: policy.name(),
            }),
            (_, None) => Ok(None),
        }
    }

    fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        std::iter::once(&self.reward).chain(self.costs.iter().map(|cost| &cost.quantity))
    }

    /// Ends in order, equal ones only where a range is an action's own; and a hull that is a range itself.
    fn check_ranges(&self, cost: &Quantity) -> Result<(), Error> {
        let own = &cost.by_action;
        if !own.is_empty() && own.len() != self.actions.len() {
            return Err(Error::RangeCount {
                name: cost.name.clone(),
                got: own.len(),
                actions: self.actions.len(),
            });
        }
        for &range in own {
            let Range { low, high } = range;
            let known = low == high && low.is_finite();
            if !known {
                check_ends(&cost.name, range)?;
            }
        }
        check_range(cost)
    }

    fn check_scalars(&self) -> Result<(), Error> {
        let count = self.actions.len();
        if !(2..=ACTIONS_MAX).contains(&count) {
            return Err(Error::Actions { count });
        }
        let horizon = self.horizon;
        if !(1..=HORIZON_MAX).contains(&horizon) {
            return Err(Error::Horizon { horizon });
        }
        if !CHANCES.contains(&self.rho) {
            return Err(Error::Rho { rho: self.rho });
        }
        if !CHANCES.contains(&self.delta) {
            return Err(Error::Delta { delta: self.delta });
        }
        match (self.explore, self.caution) {
            (Some(explore), _) if !SHARES.contains(&explore) => Err(Error::Explore { explore }),
            (_, Some(caution)) if !CAUTIONS.contains(&caution) => Err(Error::Caution { caution }),
            (_, Some(_)) if self.policy != Policy::Soft => Err(Error::CautionUnused {
                policy: self.policy.name(),
            }),
            _ => Ok(()),
        }
    }

    fn check_profile(&self) -> Result<(), Error> {
        let rho = self.rho;
        let delta = self.delta;
        if self.paper {
            self.check_paper()?;
        }
        match self.growth {
            Some(growth) if self.paper => Err(Error::GrowthWithPaper { growth }),
            Some(growth) if !GROWTHS.contains(&growth) => Err(Error::Growth { growth }),
            // The paper's widths divide by rho - 2 delta.
            _ if self.paper && 2.0 * delta >= rho => Err(Error::PaperDelta { rho, delta }),
            _ => Ok(()),
        }
    }

    /// The published algorithms know neither of these.
    fn check_paper(&self) -> Result<(), Error> {
        if let Some(explore) = self.explore {
            return Err(Error::ExploreWithPaper { explore });
        }
        let by_action = |cost: &&Cost| !cost.quantity.by_action.is_empty();
        match self.costs.iter().find(by_action) {
            Some(cost) => Err(Error::RangesWithPaper {
                name: cost.quantity.name.clone(),
            }),
            None => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), Error> {
        let actions: Vec<&str> = self.actions.iter().map(String::as_str).collect();
        let quantities: Vec<&str> = self
            .quantities()
            .map(|quantity| quantity.name.as_str())
            .collect();
        // Reward and costs have one namespace: they are columns of a table and keys of documents side by side.
        for (what, names) in [("action", actions), ("quantity", quantities)] {
            if let Some(number) = names.iter().position(|name| name.is_empty()) {
                return Err(Error::NameEmpty { what, number });
            }
            // Sorted, as comparing each with each is out of reach for a million actions.
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
    check_ends(&quantity.name, quantity.range)
}

fn check_ends(name: &str, range: Range) -> Result<(), Error> {
    let Range { low, high } = range;
    // The span must be a normal number: scaling by a subnormal one would lose what feedback says.
    if low.is_finite() && high.is_finite() && low < high && range.span().is_normal() {
        return Ok(());
    }
    Err(Error::Range {
        name: name.to_owned(),
        low,
        high,
    })
}

fn check_threshold(cost: &Cost) -> Result<(), Error> {
    let Range { low, high } = cost.quantity.range;
    match cost.threshold {
        // One above the range is a limit that never binds; one below it cannot be kept.
        Some(threshold) if !(threshold >= low && threshold.is_finite()) => Err(Error::Threshold {
            name: cost.quantity.name.clone(),
            threshold,
            low,
            high,
        }),
        _ => Ok(()),
    }
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
    // People write thirds as 0.333333333: the engine needs the sum to hold to rounding, so what is close enough is scaled.
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
fn unit_margins<'a>(
    known: &SafeKnown,
    limited: impl Iterator<Item = (&'a Quantity, f64)>,
    thresholds: &[f64],
) -> Result<Vec<f64>, Error> {
    let (SafeKnown::Costs(values) | SafeKnown::Margins(values)) = known;
    if values.len() != thresholds.len() {
        return Err(Error::MarginCount {
            got: values.len(),
            costs: thresholds.len(),
        });
    }
    let mut margins = Vec::with_capacity(values.len());
    for ((value, (cost, limit)), threshold) in values.iter().zip(limited).zip(thresholds) {
        // A limit above the range is the range's end, and so is the most that a margin can be.
        let limit = limit.min(cost.range.high);
        // Departs from the paper: lambda is the margin, not the cost, of the safe strategy (docs/deviations.md, 5).
        let margin = match known {
            SafeKnown::Costs(_) => limit - value,
            SafeKnown::Margins(_) => *value,
        };
        let unit = margin / cost.range.span();
        // .3 - .1 is not .2: a margin may exceed what it can be by rounding.
        if !(unit > 0.0 && unit <= threshold * (1.0 + 1e-12)) {
            return Err(Error::Margin {
                name: cost.name.clone(),
                margin,
                most: limit - cost.range.low,
            });
        }
        margins.push(unit.min(*threshold));
    }
    Ok(margins)
}
