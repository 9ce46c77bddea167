//! What rho promises of two experiments with one spec and one key, and whether what happened to them is within it.
//!
//! The promise is about pairs: of all pairs with one spec and one key whose outcomes come from the same distributions, at most a
//! share rho diverges before the horizon. One pair that diverges does not break it, unless nothing in its data explains why.

use serde::Serialize;

use super::diff::Diff;

/// Means that are less probable than this where both see the same distributions are taken for a sign that they do not.
const CHANCE_MIN: f64 = 1e-3;

/// What is promised of a pair, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairPromise {
    /// The share of pairs that may diverge.
    pub rho: f64,
    /// Whether the pair is within the promise.
    pub standing: PairStanding,
}

/// How a pair stands to the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairStanding {
    /// They have not diverged.
    Together,
    /// They have, as a share rho of all pairs may.
    Within,
    /// They have, and whether they share a key is not known.
    UnknownKey,
    /// They have, and the means differ by more than outcomes of the same distributions make probable.
    OtherOutcomes,
    /// They have, though no estimate and no test differs: one of the logs is wrong.
    Unexplained,
    /// Specs or keys differ.
    NothingPromised,
}

impl PairPromise {
    /// Before anything is compared.
    pub(super) fn before(rho: f64) -> Self {
        let standing = PairStanding::Together;
        Self { rho, standing }
    }
}

/// What is promised of two experiments that have been compared.
pub(super) fn of(diff: &Diff) -> PairPromise {
    PairPromise {
        standing: standing(diff),
        ..diff.promise
    }
}

fn standing(diff: &Diff) -> PairStanding {
    // Premises first: without them nothing that happened is for or against the promise.
    if !diff.specs.is_empty() || diff.same_key == Some(false) {
        return PairStanding::NothingPromised;
    }
    let Some(divergence) = &diff.divergence else {
        return PairStanding::Together;
    };
    let tests = divergence.diverging_test.iter();
    let picks = divergence.diverging_pick.iter();
    let picks = picks.map(|pick| pick.chance_max);
    let tests = tests.map(|test| test.chance_max).chain(picks);
    let estimates = divergence.diverging_estimates.iter();
    let chances = tests.chain(estimates.map(|estimate| estimate.chance_max));
    match (chances.reduce(f64::min), diff.same_key) {
        (Some(chance), _) if chance < CHANCE_MIN => PairStanding::OtherOutcomes,
        (Some(_), Some(true)) => PairStanding::Within,
        (None, Some(true)) => PairStanding::Unexplained,
        _ => PairStanding::UnknownKey,
    }
}

/// How probable it is at most that any of `looks` pairs of means, over so many values in [0, 1] each, is this far apart although
/// they have one expectation.
///
/// ```text
/// P(|difference| >= d) <= 2 exp(-2 d^2 / (1/n + 1/m)),   Hoeffding
/// ```
pub(super) fn chance_max(apart: f64, counts: [u64; 2], looks: u64) -> f64 {
    let spread: f64 = counts.iter().map(|count| 1.0 / *count as f64).sum();
    // Times the looks: the pair that is shown is the one that differs, not one that was chosen before.
    (looks as f64 * 2.0 * (-2.0 * apart * apart / spread).exp()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_that_are_far_apart_are_improbable() {
        assert_eq!(chance_max(0.0, [100, 100], 1), 1.0);
        let once = chance_max(0.3, [100, 100], 1);
        assert!((once - 2.0 * (-9.0f64).exp()).abs() < 1e-12, "{once}");
        assert!((chance_max(0.3, [100, 100], 5) - 5.0 * once).abs() < 1e-12);
    }
}
