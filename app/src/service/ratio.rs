//! Sample-ratio check: do outcomes go missing more often after some actions than after others?
//!
//! Missing outcomes are imputed with fixed values, so that decisions replicate all the same. But if what is missing depends on
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
//! Rounds of closed epochs have all been waited for; rounds of the open one have not. An epoch that explores plays one action
//! alone, so mixing the two would call every outcome still on its way a missing one. So there are two checks, of closed
//! epochs (told against imputed) and of the open one (told against decided, whose actions take turns at random), and p is
//! twice the smaller.

use debora::job::words::{amount, percent, whole};
use serde::Serialize;
use utoipa::ToSchema;

use crate::store::Progress;

/// Below this the check speaks of a mismatch: one false alarm in a thousand looks, at most.
const ALARM: f64 = 1e-3;

/// Told outcomes against decided rounds, action by action.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SampleRatio {
    /// If every outcome is equally likely to be missing, the chance of shares as far apart as these is at most this
    /// (Hoeffding's bound for sampling without replacement, over all actions; closed epochs and the open one).
    pub p_value: f64,
    /// Whether the p-value is below 0.001: outcomes seem to go missing by action.
    pub mismatch: bool,
    /// The same in words.
    pub sentence: String,
}

/// Rounds of one action: how many could have been told, and how many were.
#[derive(Clone, Copy)]
struct Share {
    due: u64,
    told: u64,
}

impl Share {
    fn of(self) -> f64 {
        self.told as f64 / self.due as f64
    }
}

/// Checks an experiment; `before` are its rounds per action before the open epoch.
pub fn check(actions: &[String], progress: &Progress, before: &[u64]) -> SampleRatio {
    let counts = |action: usize| {
        let (settled, imputed) = (before[action], progress.imputed_before[action]);
        let told = progress.told[action] - progress.imputed[action];
        let closed = Share { due: settled, told: settled - imputed };
        (closed, Share { due: progress.decided[action] - settled, told: told - closed.told })
    };
    let (closed, open): (Vec<Share>, Vec<Share>) = (0..actions.len()).map(counts).unzip();
    let (first, second) = (farthest(&closed), farthest(&open));
    let (p, shares, action) =
        if first.0 <= second.0 { (first.0, &closed, first.1) } else { (second.0, &open, second.1) };
    let p_value = (2.0 * p).min(1.0);
    let mismatch = p_value < ALARM;
    let sentence = match action {
        Some(action) if mismatch => {
            let (all, share) = (total(shares), shares[action]);
            format!(
                "Outcomes are missing unevenly: {} of {} rounds of {:?} were told ({}), of all actions {}. By chance that has \
                 probability {} or less; find out why before trusting the estimates.",
                whole(share.told),
                whole(share.due),
                actions[action],
                percent(share.of()),
                percent(all.of()),
                amount(p_value)
            )
        }
        _ => format!("Told outcomes are spread over the actions as decisions are (p {}).", amount(p_value)),
    };
    SampleRatio { p_value, mismatch, sentence }
}

fn total(shares: &[Share]) -> Share {
    Share { due: shares.iter().map(|share| share.due).sum(), told: shares.iter().map(|share| share.told).sum() }
}

/// The bound of the action that is farthest off, over all actions, and which one it is.
fn farthest(shares: &[Share]) -> (f64, Option<usize>) {
    let all = total(shares);
    let bound = |share: &Share| 2.0 * (-2.0 * share.due as f64 * (share.of() - all.of()).powi(2)).exp();
    let played = shares.iter().enumerate().filter(|(_, share)| share.due > 0);
    let least = played.map(|(action, share)| (bound(share), action)).min_by(|one, two| one.0.total_cmp(&two.0));
    least.map_or((1.0, None), |(bound, action)| ((shares.len() as f64 * bound).min(1.0), Some(action)))
}
