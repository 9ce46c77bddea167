//! Sample-ratio check: do outcomes go missing more often after some actions than after others?
//!
//! Missing outcomes are imputed with fixed values, so that decisions replicate anyway. But if what is missing depends on
//! the action, an action is judged by what was put in for it. Let n_a rounds of action a be due, k_a of them told, and
//! n, k the sums. If every outcome is equally likely to be missing, then given k the told rounds are a sample without
//! replacement, and by Hoeffding (1963, Theorem 4 and Section 6)
//!
//! ```text
//! P( |k_a / n_a - k / n| >= t ) <= 2 exp(-2 n_a t^2),      p = min(1, K * min_a 2 exp(-2 n_a t_a^2))
//! ```
//!
//! bounds the chance that any of the K actions is as far off as the farthest one here. It holds exactly, for few rounds too.
//!
//! Rounds of closed epochs have all been waited for; rounds of the open one have not. An epoch may play one action alone, so
//! mixing the two would call every outcome still on its way a missing one. So there are two checks, of closed epochs (told
//! against imputed) and of the open one (told against decided, whose actions take turns at random), and p is twice the
//! smaller.

use debora::measure::words::{amount, percent, whole};
use serde::Serialize;
use utoipa::ToSchema;

use crate::store::Progress;

/// Below this the check speaks of a mismatch: one false alarm in a thousand looks, at most. The page looks again and again, so
/// the usual 0.05 would cry wolf.
const ALARM: f64 = 1e-3;

/// Told outcomes against decided rounds, action by action.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SampleRatio {
    /// If every outcome is equally likely to be missing, the chance of shares as far apart as these is at most this
    /// (Hoeffding's bound for sampling without replacement, over all actions; closed epochs and the open one).
    pub p_value: f64,
    /// Whether the p-value is below 0.001: outcomes seem to go missing more often after some actions.
    pub mismatch: bool,
    /// The same in words.
    pub sentence: String,
}

/// Rounds of one action: how many could have been told, and how many were.
#[derive(Clone, Copy)]
struct ToldShare {
    due: u64,
    told: u64,
}

impl ToldShare {
    fn fraction(self) -> f64 {
        self.told as f64 / self.due as f64
    }
}

/// Checks an experiment; `before` are its rounds per action before the open epoch.
pub fn check(actions: &[String], progress: &Progress, before: &[u64]) -> SampleRatio {
    let closed = closed_epochs(progress, before);
    let open = open_epoch(progress, before, &closed);
    let closed_bound = bound(&closed);
    let open_bound = bound(&open);
    // The sentence is about the check that is further off, which raises the alarm if there is one.
    let shares = if closed_bound <= open_bound {
        &closed
    } else {
        &open
    };
    // There are two checks, and either could give a false alarm: Bonferroni's factor.
    let p_value = (2.0 * closed_bound.min(open_bound)).min(1.0);
    let mismatch = p_value < ALARM;
    SampleRatio {
        p_value,
        mismatch,
        sentence: sentence(actions, shares, p_value, mismatch),
    }
}

/// Rounds of closed epochs: an outcome that is not imputed was told.
fn closed_epochs(progress: &Progress, before: &[u64]) -> Vec<ToldShare> {
    before
        .iter()
        .zip(&progress.imputed_before)
        .map(|(&rounds, imputed)| ToldShare {
            due: rounds,
            told: rounds - imputed,
        })
        .collect()
}

/// Rounds of the open epoch: what is not among those of closed ones.
fn open_epoch(progress: &Progress, before: &[u64], closed: &[ToldShare]) -> Vec<ToldShare> {
    let share = |action: usize| ToldShare {
        due: progress.decided[action] - before[action],
        told: progress.told(action) - closed[action].told,
    };
    (0..before.len()).map(share).collect()
}

fn sentence(actions: &[String], shares: &[ToldShare], p_value: f64, mismatch: bool) -> String {
    match least(shares) {
        Some(action) if mismatch => format!(
            "Whether an outcome goes missing depends on the action: after {:?} {} of {} were told ({}), over all actions {}. \
             This would happen by chance with probability at most {}; find out why before trusting the estimates.",
            actions[action],
            whole(shares[action].told),
            whole(shares[action].due),
            percent(shares[action].fraction()),
            percent(total(shares).fraction()),
            amount(p_value)
        ),
        // Whether or not it is small: the reader is to see that there is a check, and its result.
        _ => format!(
            "Told outcomes are spread over the actions as decisions are (p {}).",
            amount(p_value)
        ),
    }
}

fn total(shares: &[ToldShare]) -> ToldShare {
    ToldShare {
        due: shares.iter().map(|share| share.due).sum(),
        told: shares.iter().map(|share| share.told).sum(),
    }
}

/// K * min_a 2 exp(-2 n_a t_a^2), at most 1.
fn bound(shares: &[ToldShare]) -> f64 {
    let all = total(shares).fraction();
    let least = shares
        .iter()
        // Nothing is known of an action that was not played, and its share would be 0 / 0.
        .filter(|share| share.due > 0)
        .map(|share| tail(share, all))
        .fold(1.0, f64::min);
    // The union is over all actions, unplayed ones too: K must not depend on the data.
    (shares.len() as f64 * least).min(1.0)
}

/// The chance that one action's share is as far from that of all as it is here.
fn tail(share: &ToldShare, all: f64) -> f64 {
    // `exp` of the standard library will do: nothing is decided by it, and it is only shown.
    2.0 * (-2.0 * share.due as f64 * (share.fraction() - all).powi(2)).exp()
}

/// The action of which the smallest share was told.
fn least(shares: &[ToldShare]) -> Option<usize> {
    let played = shares.iter().enumerate().filter(|(_, share)| share.due > 0);
    played
        .min_by(|one, two| one.1.fraction().total_cmp(&two.1.fraction()))
        .map(|(action, _)| action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(counts: &[(u64, u64)]) -> Vec<ToldShare> {
        counts
            .iter()
            .map(|&(due, told)| ToldShare { due, told })
            .collect()
    }

    /// Against the exact law: k of n told, spread as a sample without replacement, by enumeration.
    #[test]
    fn the_bound_holds_exactly() {
        let choose = |n: u64, k: u64| {
            (0..k)
                .map(|i| (n - i) as f64 / (i + 1) as f64)
                .product::<f64>()
        };
        for (first, second) in [(1u64, 1u64), (3, 5), (10, 2), (12, 30)] {
            for told in 0..=first + second {
                let (least, most) = (told.saturating_sub(second), told.min(first));
                let law: Vec<(f64, f64)> = (least..=most)
                    .map(|k| {
                        let chance = choose(first, k) * choose(second, told - k)
                            / choose(first + second, told);
                        (bound(&shares(&[(first, k), (second, told - k)])), chance)
                    })
                    .collect();
                for &(p, _) in &law {
                    let chance: f64 = law
                        .iter()
                        .filter(|(other, _)| *other <= p)
                        .map(|(_, chance)| chance)
                        .sum();
                    assert!(
                        chance <= p + 1e-9,
                        "{first} {second} {told}: {chance} > {p}"
                    );
                }
            }
        }
    }

    #[test]
    fn nothing_due_is_no_alarm_and_a_lopsided_loss_is_one() {
        assert_eq!(bound(&shares(&[(0, 0), (0, 0)])), 1.0);
        assert_eq!(bound(&shares(&[(500, 500), (0, 0)])), 1.0);
        assert_eq!(bound(&shares(&[(1000, 800), (500, 400)])), 1.0);
        assert!(bound(&shares(&[(1000, 1000), (1000, 800)])) < 1e-7);
        assert_eq!(least(&shares(&[(0, 0), (10, 9), (10, 8)])), Some(2));
    }
}
