//! What to deploy, in the user's units and with names.

use debora::record::{Interval, Kind, Prospect};
use debora::{Engine, Problem};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::Shares;

/// The strategies to choose from when the experiment ends: the last one, and the cautious one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// How the last strategy was found. While exploring it says nothing about which action is best.
    pub kind: Kind,
    /// The last strategy: the one that learns.
    #[serde(flatten)]
    pub current: AdvisedStrategy,
    /// The best strategy sure to keep every limit; `None` while nothing is estimated, or if no strategy is sure to.
    pub cautious: Option<AdvisedStrategy>,
}

/// A strategy, and what it is known to give.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvisedStrategy {
    /// The probability of each action.
    pub shares: Shares,
    /// What it gives: the reward, then the costs. All intervals hold together with probability 1 - delta, given that
    /// imputed outcomes are taken for what happened.
    pub quantities: Vec<AdvisedQuantity>,
}

/// A quantity's expectation under a strategy, in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdvisedQuantity {
    /// Its name.
    pub name: String,
    /// Where the expectation lies.
    pub interval: Interval,
    /// The threshold of a cost; under policy free it is stated and decides nothing.
    pub threshold: Option<f64>,
}

impl Advice {
    /// What an engine recommends.
    pub fn from_engine(engine: &Engine) -> Self {
        let named = |prospect| AdvisedStrategy::new(engine.problem(), prospect);
        let recommendation = engine.recommendation();
        Self {
            kind: recommendation.kind,
            current: named(recommendation.current),
            cautious: recommendation.cautious.map(named),
        }
    }
}

impl AdvisedStrategy {
    fn new(problem: &Problem, prospect: Prospect) -> Self {
        let intervals = std::iter::once(prospect.reward).chain(prospect.costs);
        let quantities = intervals
            .enumerate()
            .map(|(quantity, interval)| AdvisedQuantity {
                name: problem.quantity(quantity).name.clone(),
                interval,
                threshold: quantity
                    .checked_sub(1)
                    .and_then(|cost| problem.threshold(cost)),
            });
        Self {
            quantities: quantities.collect(),
            shares: Shares::new(problem, &prospect.strategy),
        }
    }
}

/// As certificates have it.
impl Serialize for AdvisedStrategy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shares = self.shares.all().iter();
        // Twice, as a program that reads it has the actions' numbers anyway, and a person wants their names.
        let strategy: Vec<f64> = shares.map(|share| share.probability).collect();
        let mut fields = serializer.serialize_struct("AdvisedStrategy", 3)?;
        fields.serialize_field("strategy", &strategy)?;
        fields.serialize_field("shares", &self.shares)?;
        fields.serialize_field("quantities", &self.quantities)?;
        fields.end()
    }
}
