//! What an experiment recommends, in the user's units and with names.

use debora::record::{Interval, Kind, Prospect};
use debora::{Engine, Problem};
use serde::Serialize;

/// The last strategy and the cautious one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommended {
    /// How the last strategy was found. While exploring it says nothing about which action is best.
    pub kind: Kind,
    /// The last strategy: the one that learns.
    #[serde(flatten)]
    pub current: KnownStrategy,
    /// The best strategy sure to keep every limit; `None` while nothing is estimated, or if no strategy is sure to.
    pub cautious: Option<KnownStrategy>,
}

/// A strategy, and what it is known to give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownStrategy {
    /// The probability of each action, in the order of `actions`.
    pub strategy: Vec<f64>,
    /// The same with names.
    pub shares: Vec<ActionShare>,
    /// What it gives: the reward, then the costs. All intervals hold together with probability 1 - delta, given that
    /// imputed outcomes are taken for what happened.
    pub quantities: Vec<KnownQuantity>,
}

/// How often a strategy plays an action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionShare {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// Its probability.
    pub probability: f64,
}

/// A quantity's expectation under a strategy, in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownQuantity {
    /// Its name.
    pub name: String,
    /// Where the expectation lies.
    pub interval: Interval,
    /// The threshold of a cost; under policy free it is stated and decides nothing.
    pub threshold: Option<f64>,
}

/// A cost's threshold in the user's units; `None` for the reward.
///
/// Policy free is no exception: what the spec says of a cost is shown, though it decides nothing there.
pub fn threshold(problem: &Problem, quantity: usize) -> Option<f64> {
    problem.threshold(quantity.checked_sub(1)?)
}

impl Recommended {
    /// What an engine recommends.
    pub fn of(engine: &Engine) -> Self {
        let problem = engine.problem();
        let recommendation = engine.recommendation();
        Self {
            kind: recommendation.kind,
            current: KnownStrategy::of(problem, recommendation.current),
            cautious: recommendation
                .cautious
                .map(|prospect| KnownStrategy::of(problem, prospect)),
        }
    }
}

impl KnownStrategy {
    fn of(problem: &Problem, prospect: Prospect) -> Self {
        let intervals = std::iter::once(prospect.reward).chain(prospect.costs);
        let quantities = intervals
            .enumerate()
            .map(|(quantity, interval)| KnownQuantity {
                name: problem.quantity(quantity).name.clone(),
                interval,
                threshold: threshold(problem, quantity),
            });
        let named = (0..).zip(problem.actions()).zip(&prospect.strategy);
        let shares = named.map(|((action, name), probability)| ActionShare {
            action,
            name: name.clone(),
            probability: *probability,
        });
        Self {
            shares: shares.collect(),
            strategy: prospect.strategy,
            quantities: quantities.collect(),
        }
    }
}
