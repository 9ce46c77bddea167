//! Was the limit kept? Each cost's average in what was played, beside its threshold.
//!
//! The averages are facts; the interval is of the mean that the played strategies have, whose average over rounds a limit is
//! about. It holds at any time one looks, though strategies and thus means change ([`average_at_any_time`]).

use debora::Policy;
use debora::lab::observed::{MISS, average_at_any_time};
use debora::measure::words::{amount, counted, whole};
use debora::record::Interval;
use serde::Serialize;

use crate::log::account::ToldAccount;
use crate::log::observed::ToldSums;

/// Whether a limit was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitVerdict {
    /// All of the interval is within the threshold.
    Kept,
    /// All of it is above.
    Exceeded,
    /// The threshold lies in it: not known.
    Unknown,
}

/// What estimates say that some rounds cost on average.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ExpectedCost {
    /// By the estimates themselves.
    pub value: f64,
    /// At least this, with probability 1 - delta.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

/// The average of a cost over some rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct CostAverage {
    /// Rounds with an outcome, told or imputed.
    pub count: u64,
    /// Their average; none without a round.
    pub realised: Option<f64>,
    /// The average of those that were told.
    pub realised_told: Option<f64>,
    /// The average of the means of what was played lies in here, at any time one looks.
    #[cfg_attr(feature = "describe", schema(value_type = Object))]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
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

/// Every cost's.
pub fn of(account: &ToldAccount<'_>) -> Vec<LimitState> {
    let problem = account.engine.problem();
    problem
        .limited()
        .iter()
        .zip(problem.limits())
        .map(|(&quantity, (_, threshold))| {
            let range = problem.quantity(quantity).range;
            let average = |told: &ToldSums| {
                (told.count > 0).then(|| range.to_user(told.sum(quantity) / told.count as f64))
            };
            LimitState {
                name: problem.quantity(quantity).name.clone(),
                threshold,
                all: in_rounds(account, (quantity, threshold), false),
                realised_overtime: average(&account.observed.overtime),
                last_epoch: in_rounds(account, (quantity, threshold), true),
            }
        })
        .collect()
}

/// What a hard experiment promised and its outcomes contradict, in sentences.
pub fn contradictions(policy: Policy, limits: &[LimitState]) -> Vec<String> {
    let broken = limits
        .iter()
        .filter(|limit| policy == Policy::Hard && limit.all.verdict == LimitVerdict::Exceeded);
    broken
        .map(|limit| {
            format!(
                "Policy hard promised to keep this limit, and the outcomes contradict it. {} By chance this happens in at most one \
                 of {} experiments: see whether costs have changed since the start, and whether the safe strategy is safe.",
                limit.all.sentence,
                (1.0 / MISS).round()
            )
        })
        .collect()
}

fn in_rounds(
    account: &ToldAccount<'_>,
    (quantity, threshold): (usize, f64),
    open_epoch: bool,
) -> CostAverage {
    let problem = account.engine.problem();
    let range = problem.quantity(quantity).range;
    let (all, told) = (
        account.all_counted(open_epoch),
        account.all_told(open_epoch),
    );
    let average = |told: &ToldSums| {
        (told.count > 0).then(|| range.to_user(told.sum(quantity) / told.count as f64))
    };
    let interval = average_at_any_time(all.count, all.sum(quantity), MISS);
    let [low, high] = interval.map(|end| range.to_user(end));
    let mut average = CostAverage {
        count: all.count,
        realised: average(&all),
        realised_told: average(&told),
        interval: Interval { low, high },
        expected: expected(account, quantity, open_epoch),
        verdict: verdict(all.count, [low, high], threshold),
        // Written from the rest of it.
        sentence: String::new(),
    };
    let name = &problem.quantity(quantity).name;
    average.sentence = average.words(name, threshold, all.count - told.count);
    average
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

/// What the strategies played cost by the estimates, each within its interval.
fn expected(account: &ToldAccount<'_>, quantity: usize, open_epoch: bool) -> Option<ExpectedCost> {
    let weights = account.expected(open_epoch);
    let mut sums = [0.0; 3];
    let mut known = 0.0;
    for estimate in account.engine.estimates() {
        if estimate.quantity as usize == quantity {
            let weight = weights[estimate.action as usize];
            known += weight;
            let [low, high] = estimate.interval();
            for (sum, of_action) in sums.iter_mut().zip([estimate.estimate, low, high]) {
                *sum += weight * of_action;
            }
        }
    }
    let all: f64 = weights.iter().sum();
    // Not by the sums, whose last digits differ: an action with a weight of its own and no estimate is a gap.
    let is_known = all > 0.0 && known > all * (1.0 - 1e-9);
    let range = account.engine.problem().quantity(quantity).range;
    let [value, low, high] = sums.map(|sum| range.to_user((sum / all).clamp(0.0, 1.0)));
    is_known.then_some(ExpectedCost { value, low, high })
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
