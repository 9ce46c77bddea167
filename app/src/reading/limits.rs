//! Was the limit kept? Each cost's average in what was played, beside its threshold.
//!
//! The averages are facts; the interval is of the mean that the played strategies have, whose average over rounds a limit is
//! about. It is valid at any time, though strategies and thus means change ([`average_at_any_time`]).

use debora::Policy;
use debora::lab::observed::{MISS, average_at_any_time};
use debora::measure::words::{amount, counted, whole};
use debora::record::Interval;
use serde::Serialize;

use super::Reading;
use super::sums::{RoundSpan, mean_of};
use crate::log::observed::ToldSums;

/// Whether a limit was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitVerdict {
    /// All of the interval is within the threshold.
    Kept,
    /// All of it is above.
    Exceeded,
    /// The threshold lies in it: not known.
    Unknown,
}

impl LimitVerdict {
    /// All there are, the worst first.
    pub const ALL: [Self; 3] = [Self::Exceeded, Self::Unknown, Self::Kept];

    /// Its name in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Exceeded => "exceeded",
            Self::Unknown => "unknown",
        }
    }

    /// Its place among [`LimitVerdict::ALL`].
    pub fn severity(self) -> usize {
        let place = Self::ALL.iter().position(|verdict| *verdict == self);
        place.expect("all are there")
    }
}

/// What estimates say that some rounds cost on average.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ExpectedCost {
    /// By the estimates themselves.
    pub value: f64,
    /// At least this, with probability 1 - delta.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

/// The average of a cost over some rounds.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CostAverage {
    /// Rounds with an outcome, told or imputed.
    pub count: u64,
    /// Their average; none without a round.
    pub realised: Option<f64>,
    /// The average of those that were told.
    pub realised_told: Option<f64>,
    /// The average of the means of what was played lies in here, valid at any time.
    #[schema(value_type = Object)]
    pub interval: Interval,
    /// What the strategies that were played cost on average, by the estimates. None while an action that they play is not
    /// estimated, and under policy free.
    pub expected: Option<ExpectedCost>,
    /// Whether the limit was kept in these rounds.
    pub verdict: LimitVerdict,
    /// The same in words.
    pub sentence: String,
}

/// A cost and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LimitState {
    /// The cost's name.
    pub name: String,
    /// What its mean must not exceed; under policy free it is stated and decides nothing.
    pub threshold: f64,
    /// In all rounds.
    #[serde(flatten)]
    pub all: CostAverage,
    /// The average of overtime decisions that were told; they count for nothing else.
    pub realised_overtime: Option<f64>,
    /// In the rounds of the open epoch, or of the last.
    pub last_epoch: CostAverage,
}

/// Every cost's limit.
pub(super) fn compute(reading: &Reading) -> Vec<LimitState> {
    let problem = reading.problem();
    let [all, last_epoch] =
        [RoundSpan::All, RoundSpan::LastEpoch].map(|span| Spent::sum(reading, span));
    let limited = problem.limited().iter().zip(problem.limits());
    limited
        .map(|(&quantity, (cost, threshold))| LimitState {
            name: cost.name.clone(),
            threshold,
            all: all.average(quantity, threshold),
            realised_overtime: mean_of(problem, quantity, &reading.observed.overtime),
            last_epoch: last_epoch.average(quantity, threshold),
        })
        .collect()
}

impl LimitState {
    /// That outcomes contradict what policy hard promised, if they do.
    pub fn contradiction(&self, policy: Policy) -> Option<String> {
        let broken = policy == Policy::Hard && self.all.verdict == LimitVerdict::Exceeded;
        broken.then(|| {
            format!(
                "Policy hard promised to keep this limit, and the outcomes contradict it. {} By chance this happens in at most one \
                 of {} experiments: see whether costs have changed since the start, and whether the safe strategy is safe.",
                self.all.sentence,
                (1.0 / MISS).round()
            )
        })
    }
}

/// What some rounds cost.
struct Spent<'a> {
    reading: &'a Reading,
    told: ToldSums,
    counted: ToldSums,
    /// How often each action was expected to be played.
    plays: Vec<f64>,
}

impl<'a> Spent<'a> {
    fn sum(reading: &'a Reading, span: RoundSpan) -> Self {
        let told = reading.sum_all_told(span);
        Self {
            counted: reading.sum_all_counted(span, &told),
            plays: reading.expected_plays(span),
            told,
            reading,
        }
    }

    fn average(&self, quantity: usize, threshold: f64) -> CostAverage {
        let problem = self.reading.problem();
        let range = problem.quantity(quantity).range;
        let count = self.counted.count;
        let interval = average_at_any_time(count, self.counted.sum(quantity), MISS);
        let [low, high] = interval.map(|end| range.to_user(end));
        let mut average = CostAverage {
            count,
            realised: mean_of(problem, quantity, &self.counted),
            realised_told: mean_of(problem, quantity, &self.told),
            interval: Interval { low, high },
            expected: self.expected(quantity),
            verdict: verdict(count, [low, high], threshold),
            // Written from the rest of it.
            sentence: String::new(),
        };
        let name = &problem.quantity(quantity).name;
        average.sentence = average.words(name, threshold, count - self.told.count);
        average
    }

    /// What the strategies played cost by the estimates, each within its interval.
    fn expected(&self, quantity: usize) -> Option<ExpectedCost> {
        let mut sums = [0.0; 3];
        let mut known = 0.0;
        for estimate in self.reading.engine.estimates() {
            if estimate.quantity as usize == quantity {
                let plays = self.plays[estimate.action as usize];
                known += plays;
                let [low, high] = estimate.interval();
                for (sum, of_action) in sums.iter_mut().zip([estimate.estimate, low, high]) {
                    *sum += plays * of_action;
                }
            }
        }
        let all: f64 = self.plays.iter().sum();
        // Not by the sums, whose last digits differ: an action with a weight of its own and no estimate is a gap.
        let is_known = all > 0.0 && known > all * (1.0 - 1e-9);
        let range = self.reading.problem().quantity(quantity).range;
        let [value, low, high] = sums.map(|sum| range.to_user((sum / all).clamp(0.0, 1.0)));
        is_known.then_some(ExpectedCost { value, low, high })
    }
}

fn verdict(count: u64, [low, high]: [f64; 2], threshold: f64) -> LimitVerdict {
    match threshold {
        // Of no round the interval is the range, and a threshold at its end would be kept.
        _ if count == 0 => LimitVerdict::Unknown,
        threshold if high <= threshold => LimitVerdict::Kept,
        threshold if low > threshold => LimitVerdict::Exceeded,
        _ => LimitVerdict::Unknown,
    }
}

impl CostAverage {
    fn words(&self, name: &str, threshold: f64, imputed: u64) -> String {
        let Some(realised) = self.realised else {
            return format!("Whether {name} is kept is not known: no round has an outcome.");
        };
        let Interval { low, high } = self.interval;
        let mut facts = format!(
            "on average {} in {}",
            amount(realised),
            counted(self.count, "round", "rounds")
        );
        if imputed > 0 {
            // What was put in is no observation, and by default it is the worst value.
            let told = self.realised_told.map(amount);
            facts += &match told {
                Some(told) => format!(" ({} imputed; the others {told})", whole(imputed)),
                None => " (all imputed)".to_owned(),
            };
        }
        let [low, high, limit] = [low, high, threshold].map(amount);
        match self.verdict {
            LimitVerdict::Kept => format!(
                "The limit of {name} was kept: {facts}, and the mean of what was played is at most {high}, within the threshold of \
                 {limit}."
            ),
            LimitVerdict::Exceeded => format!(
                "The limit of {name} was exceeded by {}: {facts}, and the mean of what was played is at least {low}, above the \
                 threshold of {limit}.",
                amount(realised - threshold)
            ),
            LimitVerdict::Unknown => format!(
                "Whether the limit of {name} was kept is not known: {facts}, {} the threshold of {limit}, and the mean of what \
                 was played is between {low} and {high}.",
                if realised <= threshold {
                    "within"
                } else {
                    "above"
                }
            ),
        }
    }
}
