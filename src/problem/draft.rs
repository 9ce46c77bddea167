//! A problem as the user states it, and every rule it must meet before it is one.

use std::ops::RangeInclusive;

use super::{HORIZON_MAX, Outside, Policy, Problem, Profile, Quantity, Range, Safe};
use crate::Error;
use crate::strategy::Strategy;

/// The most actions: each is numbered by a `u32` and named in every record, and what is drawn for all of them must stay an
/// exact count.
pub(crate) const ACTIONS_MAX: usize = 1 << 20;

/// What rho and delta can be. Far below 1e-100 shares would round to zero; and no horizon could serve such a rho anyway.
pub(crate) const CHANCES: std::ops::Range<f64> = 1e-100..1.0;

/// What growth can be.
pub(crate) const GROWTHS: RangeInclusive<u32> = 2..=64;

/// What is known of the safe strategy, per cost, in the user's units.
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
    pub(crate) costs: Vec<(Quantity, f64)>,
    pub(crate) means: Vec<(String, [f64; 2])>,
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
            means: Vec::new(),
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

    /// One more cost with its range and the threshold its mean must keep, all in the user's units.
    pub fn cost(mut self, name: impl Into<String>, range: [f64; 2], threshold: f64) -> Self {
        self.costs.push((Quantity::new(name, range), threshold));
        self
    }

    /// Declares that every action's mean of the reward or cost called `name` lies in `[low, high]`, in the user's units;
    /// by default in its whole range. A premise of every promise: means near an end of the range need fewer rounds.
    pub fn mean(mut self, name: impl Into<String>, mean: [f64; 2]) -> Self {
        self.means.push((name.into(), mean));
        self
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
    pub fn build(mut self) -> Result<Problem, Error> {
        self.check_scalars()?;
        self.check_profile()?;
        self.check_names()?;
        check_range(&self.reward)?;
        for (cost, threshold) in &self.costs {
            check_range(cost)?;
            check_threshold(cost, *threshold)?;
        }
        // Scaled once, here: everything after compares on the unit scale.
        let thresholds: Vec<f64> = self
            .costs
            .iter()
            .map(|(cost, threshold)| cost.range.to_unit(*threshold))
            .collect();
        let safe = self.checked_safe(&thresholds)?;
        self.sort_means();
        let means = self.checked_means()?;
        if let Some(safe) = &safe {
            self.check_safe_means(&means, &thresholds, safe)?;
        }
        Ok(Problem {
            profile: self.profile(),
            safe,
            means,
            thresholds,
            draft: self,
        })
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
                margins: unit_margins(known, &self.costs, thresholds)?,
            })),
            (Policy::Hard, None) => Err(Error::SafeMissing),
            (policy, Some(_)) => Err(Error::SafeUnused {
                policy: policy.name(),
            }),
            (_, None) => Ok(None),
        }
    }

    fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        std::iter::once(&self.reward).chain(self.costs.iter().map(|(cost, _)| cost))
    }

    /// Puts declared means in the order of the quantities: problems that say the same are equal, in whatever order they say it.
    fn sort_means(&mut self) {
        let names: Vec<String> = self
            .quantities()
            .map(|quantity| quantity.name.clone())
            .collect();
        self.means
            .sort_by_key(|(name, _)| names.iter().position(|known| known == name));
    }

    /// Where each quantity's means lie, on the unit scale.
    fn checked_means(&self) -> Result<Vec<Range>, Error> {
        let mut means = vec![Range::UNIT; self.costs.len() + 1];
        for (place, (name, [low, high])) in self.means.iter().enumerate() {
            if self.means[..place].iter().any(|(before, _)| before == name) {
                return Err(Error::MeanRepeated { name: name.clone() });
            }
            let Some((number, quantity)) = self
                .quantities()
                .enumerate()
                .find(|(_, quantity)| quantity.name == *name)
            else {
                return Err(Error::MeanUnknown { name: name.clone() });
            };
            let range = quantity.range;
            let unit = Range {
                low: range.to_unit(*low),
                high: range.to_unit(*high),
            };
            // Judged after scaling too: ends that the scale cannot tell apart would leave no room for a mean.
            if !(range.low <= *low && *high <= range.high && unit.low < unit.high) {
                return Err(Error::Mean {
                    name: name.clone(),
                    mean_low: *low,
                    mean_high: *high,
                    low: range.low,
                    high: range.high,
                });
            }
            means[number] = unit;
        }
        Ok(means)
    }

    /// The safe strategy's known cost must be one that its declared means allow.
    fn check_safe_means(
        &self,
        means: &[Range],
        thresholds: &[f64],
        safe: &Safe,
    ) -> Result<(), Error> {
        let limits = thresholds.iter().zip(&safe.margins);
        for (((cost, _), mean), (threshold, margin)) in
            self.costs.iter().zip(&means[1..]).zip(limits)
        {
            let known = threshold - margin;
            // .3 - .1 is not .2, as for margins.
            if mean.low > known + 1e-12 {
                return Err(Error::MeanAboveSafe {
                    name: cost.name.clone(),
                    mean_low: cost.range.to_user(mean.low),
                    known: cost.range.to_user(known),
                });
            }
        }
        Ok(())
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
        Ok(())
    }

    fn check_profile(&self) -> Result<(), Error> {
        let rho = self.rho;
        let delta = self.delta;
        match self.growth {
            Some(growth) if self.paper => Err(Error::GrowthWithPaper { growth }),
            Some(growth) if !GROWTHS.contains(&growth) => Err(Error::Growth { growth }),
            // The paper's widths divide by rho - 2 delta.
            _ if self.paper && 2.0 * delta >= rho => Err(Error::PaperDelta { rho, delta }),
            _ => Ok(()),
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

fn check_threshold(cost: &Quantity, threshold: f64) -> Result<(), Error> {
    let Range { low, high } = cost.range;
    if (low..=high).contains(&threshold) {
        return Ok(());
    }
    Err(Error::Threshold {
        name: cost.name.clone(),
        threshold,
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
fn unit_margins(
    known: &SafeKnown,
    costs: &[(Quantity, f64)],
    thresholds: &[f64],
) -> Result<Vec<f64>, Error> {
    let (SafeKnown::Costs(values) | SafeKnown::Margins(values)) = known;
    if values.len() != costs.len() {
        return Err(Error::MarginCount {
            got: values.len(),
            costs: costs.len(),
        });
    }
    let mut margins = Vec::with_capacity(values.len());
    for ((value, (cost, limit)), threshold) in values.iter().zip(costs).zip(thresholds) {
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
