//! The clear test of policy free: commit to an action that is clearly ahead, before anything is estimated.
//!
//! ```text
//! stages m_1 < .. < m_P = n_f,   m_(p-1) = ceil(m_p / 8) >= max(64, 15 ln K, 1/rho^2),   P >= 3
//! D = (largest mean - second largest) sqrt(m_p)
//! p < P:  t = c1 + (1.2/rho) u                  c0 = sqrt(ln((K-1) P / min(delta/2, rho/40)))
//! p = P:  t = c0 + (1.5/rho) ln(1 + 3.75 u)     c1 = max(c0, (c0 + 2.34/rho + 3 + sqrt(1 + ln(K-1))) / 2.8)
//! D > t: the leader is played to the horizon
//! ```
//!
//! u is keyed by the stage, so two runs face one threshold. Raw means decide here and nowhere else, through one keyed
//! comparison a stage whose risk is in the budget (docs/theory.md, "The clear test").

use serde::Serialize;

use crate::Key;
use crate::key::Label;
use crate::record::ClearTest;

/// By what counts grow from stage to stage. The proof needs sqrt(8) > 2.8: a world that one stage leaves in doubt is clear
/// at the next.
const STAGE_GROWTH: u64 = 8;

/// The stages and constants of the clear test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Clear {
    /// The counts after which the test is made, in increasing order; the last is the first estimated count.
    pub stages: Vec<u64>,
    /// What the lead must exceed for the leader to be right, but for a chance that the budget holds.
    pub c0: f64,
    /// Where the thresholds before the last stage begin.
    pub c1: f64,
    #[serde(skip)]
    rho: f64,
}

impl Clear {
    /// The test on the way to `last` samples of each of `actions` actions; none if it would have fewer than three stages.
    pub(crate) fn of(actions: usize, rho: f64, delta: f64, last: u64) -> Option<Self> {
        let actions = actions as f64;
        // Below 64 and 15 ln K the bound on E|D1 - D2| is not proved; below 1/rho^2 hardly any lead could reach a threshold.
        let least = (1.0 / (rho * rho)).max(15.0 * libm::log(actions)).max(64.0);
        let smaller =
            |count: &u64| Some(count.div_ceil(STAGE_GROWTH)).filter(|&n| n as f64 >= least);
        let mut stages: Vec<u64> = std::iter::successors(Some(last), smaller).collect();
        if stages.len() < 3 {
            return None;
        }
        stages.reverse();
        let others = actions - 1.0;
        let wrong = (delta / 2.0).min(rho / 40.0);
        let c0 = libm::sqrt(libm::log(others * stages.len() as f64 / wrong));
        let doubt = c0 + 2.34 / rho + 3.0 + libm::sqrt(1.0 + libm::log(others));
        let c1 = c0.max(doubt / 2.8);
        Some(Self {
            stages,
            c0,
            c1,
            rho,
        })
    }

    /// The stage, from 0, that ends when every action has `count` samples.
    pub(crate) fn stage(&self, count: u64) -> Option<usize> {
        self.stages.binary_search(&count).ok()
    }

    /// The threshold of a stage at `uniform` in [0, 1).
    pub(crate) fn threshold(&self, stage: usize, uniform: f64) -> f64 {
        if stage + 1 < self.stages.len() {
            self.c1 + 1.2 / self.rho * uniform
        } else {
            // Sparser towards small thresholds, where the estimates behind the test may differ too: the distribution G has
            // G' = rho (.2 + .75 G)/1.125.
            self.c0 + 1.5 / self.rho * libm::log(1.0 + 3.75 * uniform)
        }
    }

    /// The test at the end of a stage, on the raw means of all actions.
    pub(crate) fn test(&self, key: Key, stage: usize, means: Vec<f64>) -> ClearTest {
        let leader = first_largest(&means, None);
        let runner_up = first_largest(&means, Some(leader));
        let count = self.stages[stage];
        let lead = (means[leader] - means[runner_up]) * libm::sqrt(count as f64);
        let uniform = key.uniform(Label::Clear, [stage as u64, 0, 0]);
        let threshold = self.threshold(stage, uniform);
        ClearTest {
            stage: stage as u32,
            count,
            means,
            leader: leader as u32,
            runner_up: runner_up as u32,
            lead,
            uniform,
            threshold,
            passed: lead > threshold,
        }
    }
}

/// The first of the largest values, `but` left out.
fn first_largest(values: &[f64], but: Option<usize>) -> usize {
    let others = (0..values.len()).filter(|&place| Some(place) != but);
    let larger = |best: usize, next: usize| {
        if values[next] > values[best] {
            next
        } else {
            best
        }
    };
    others.reduce(larger).expect("two actions")
}
