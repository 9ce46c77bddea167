//! What a plan finds: a difference of two means is *found*, or *seen*, if a run acts on it with probability .9.
//!
//! ```text
//! free in profile tight   the lead picked with probability .9, on the line
//! soft and hard           twice the width at the last level, on the line: the intervals of two such means do not meet
//! paper                   twice the width at T/K samples, on the plain line
//! ```
//!
//! On the line the same distance is a smaller difference of means near 0 and 1 than near 1/2.

use super::Plan;
use crate::line::MeanLine;
use crate::problem::{Policy, Profile};

/// How far two means must lie apart to be told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// None on the plain line.
    line: Option<MeanLine>,
    apart: f64,
}

impl Plan {
    /// What this plan finds; none if it is blind.
    pub fn sight(&self) -> Option<Sight> {
        match (self.problem.profile(), self.problem.policy()) {
            (Profile::Tight { .. }, Policy::Free) => {
                let trial = self.trial.as_ref()?;
                Some(Sight {
                    line: Some(trial.line()),
                    apart: trial.picked_lead,
                })
            }
            (Profile::Tight { .. }, _) => {
                let level = self.levels.last()?;
                Some(Sight {
                    line: self.line(level.count),
                    apart: 2.0 * level.width,
                })
            }
            (Profile::Paper, _) => Some(Sight {
                line: None,
                apart: self.detectable?,
            }),
        }
    }
}

impl Sight {
    /// Whether two means, as shares of their range, are told apart.
    pub fn tells_apart(&self, one: f64, other: f64) -> bool {
        self.ease(one, other) >= 1.0
    }

    /// How many times the least distance two means lie apart.
    pub fn ease(&self, one: f64, other: f64) -> f64 {
        let apart = match &self.line {
            Some(line) => line.of_mean(one) - line.of_mean(other),
            None => one - other,
        };
        apart.abs() / self.apart
    }

    /// The least difference from a mean that is found, towards 1/2; none if the range has no room for it.
    pub fn least_difference(&self, mean: f64) -> Option<f64> {
        let Some(line) = &self.line else {
            return (self.apart < 1.0).then_some(self.apart);
        };
        let [least, most] = line.ends();
        // Of a mean above 1/2 the same as of its mirror image.
        let mean = mean.min(1.0 - mean);
        let other = line.of_mean(mean) + self.apart;
        (self.apart < most - least && other <= most).then(|| line.mean(other) - mean)
    }

    /// The least difference of two means around 1/2 that is found.
    pub fn around_half(&self) -> Option<f64> {
        let found = match &self.line {
            Some(line) => line.difference_at_half(self.apart),
            None => Some(self.apart),
        };
        found.filter(|&found| found < 1.0)
    }
}
