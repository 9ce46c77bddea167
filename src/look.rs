//! Looks: policy free asks on the way through its trial whether one action is clearly ahead, and commits to it if so.
//!
//! ```text
//! counts     min(n_f, ceil(n_f b^-(k+u))),  k = 0, 1, ..        u keyed once a run
//! lead       sqrt(n) (largest y - second largest y)             y = Y of the raw mean of n samples
//! threshold  t_0 (1 + w_k)                                      w_k keyed by the look
//! ```
//!
//! A lead above the threshold commits the run to the leader. Raw means are compared, through one keyed comparison a look whose
//! risk is in the budget: two runs meet the same counts and thresholds (docs/theory.md, "Try, look, pick").

use serde::Serialize;

use crate::Key;
use crate::key::Label;
use crate::line::MeanLine;
use crate::lp::first_largest;
use crate::mean::Tally;
use crate::plan::rounding::ceil;
use crate::record::{LookTest, Looks};

/// When looks are made and what they ask for, before the key is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LookRule {
    /// n_f.
    pub last: u64,
    /// b: how much counts grow from look to look.
    pub spacing: u32,
    /// t_0.
    pub threshold: f64,
    /// c.
    pub offset_c: f64,
}

/// A look: its number and the count at which it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LookAt {
    pub look: u32,
    pub count: u64,
}

impl LookRule {
    /// The looks of a draw of u, the first of the run first.
    pub fn looks(&self, offset: f64) -> Vec<LookAt> {
        let mut looks = Vec::new();
        for look in 0u32.. {
            let count = self.count(look, offset);
            if self.can_pass(count) {
                looks.push(LookAt { look, count });
            }
            if count == 1 {
                break;
            }
        }
        looks.reverse();
        // Small counts repeat where a factor of two is between them; only the count of one ever does, and no lead passes there.
        looks
    }

    fn count(&self, look: u32, offset: f64) -> u64 {
        let exponent = -(f64::from(look) + offset);
        let share = libm::pow(f64::from(self.spacing), exponent);
        ceil(self.last as f64 * share).clamp(1, self.last)
    }

    /// Whether any lead could be above the least threshold.
    fn can_pass(&self, count: u64) -> bool {
        let [least, most] = MeanLine::new(count, self.offset_c).ends();
        libm::sqrt(count as f64) * (most - least) > self.threshold
    }

    /// The least count at which any draw looks: counts are continuous in u, so that none above it is left out.
    pub fn least_count(&self) -> Option<u64> {
        if !self.can_pass(self.last) {
            return None;
        }
        let (mut low, mut high) = (1, self.last);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.can_pass(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(high)
    }

    /// The looks of a run.
    pub fn draw(&self, key: Key) -> (f64, Vec<LookAt>) {
        let offset = key.uniform(Label::Look, [0, 0, 0]);
        (offset, self.looks(offset))
    }

    /// The looks of a run, as its first record has them.
    pub fn drawn(&self, key: Key) -> Looks {
        let (offset, looks) = self.draw(key);
        Looks {
            offset,
            counts: looks.iter().map(|look| look.count).collect(),
        }
    }

    /// A look, on these sums of all actions.
    pub fn test(&self, key: Key, at: LookAt, sums: &[u128]) -> LookTest {
        let line = MeanLine::new(at.count, self.offset_c);
        let places: Vec<f64> = sums.iter().map(|&sum| line.of_sum(sum)).collect();
        let leader = first_largest(&places);
        let runner_up = runner_up(&places, leader);
        let lead = libm::sqrt(at.count as f64) * (places[leader] - places[runner_up]);
        // From index 1 on: index 0 says when looks are made, and must say nothing of what they ask for.
        let uniform = key.uniform(Label::Look, [u64::from(at.look) + 1, 0, 0]);
        let threshold = self.threshold * (1.0 + uniform);
        LookTest {
            look: at.look,
            count: at.count,
            means: means(sums, at.count),
            leader: leader as u32,
            runner_up: runner_up as u32,
            lead,
            uniform,
            threshold,
            passed: lead > threshold,
        }
    }
}

/// The means of these sums.
pub(crate) fn means(sums: &[u128], count: u64) -> Vec<f64> {
    sums.iter().map(|&sum| Tally::mean_of(sum, count)).collect()
}

/// The first of the largest places but the leader's.
fn runner_up(places: &[f64], leader: usize) -> usize {
    let others = (0..places.len()).filter(|&action| action != leader);
    let larger = |best: usize, next: usize| {
        if places[next] > places[best] {
            next
        } else {
            best
        }
    };
    others.reduce(larger).expect("two actions")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(last: u64) -> LookRule {
        LookRule {
            last,
            spacing: 8,
            threshold: 10.0,
            offset_c: 4.0,
        }
    }

    /// By hand: 10,000 / 8^(k + 1/2) is 3,535.5, 441.9, 55.2; at 56 samples a lead is at most 9.1, below every threshold.
    #[test]
    fn counts_are_spaced_by_the_same_factor_and_stop_where_none_can_pass() {
        let counts: Vec<_> = rule(10_000)
            .looks(0.5)
            .iter()
            .map(|look| (look.look, look.count))
            .collect();
        assert_eq!(counts, [(1, 442), (0, 3_536)]);
        let all: Vec<_> = rule(10_000)
            .looks(0.0)
            .iter()
            .map(|look| look.count)
            .collect();
        assert_eq!(all, [157, 1_250, 10_000]);
        assert_eq!(rule(20).looks(0.3), []);
    }

    #[test]
    fn the_first_of_equals_leads_and_the_first_of_the_others_follows() {
        assert_eq!(runner_up(&[0.5, 0.9, 0.9, 0.2], 1), 2);
        assert_eq!(runner_up(&[0.9, 0.2, 0.5, 0.5], 0), 2);
        let one = 1u128 << 53;
        let test = rule(10_000).test(
            Key::from(1u64),
            LookAt { look: 0, count: 4 },
            &[one, 2 * one, 2 * one],
        );
        assert_eq!(
            (test.leader, test.runner_up, test.lead, test.passed),
            (1, 2, 0.0, false)
        );
    }
}
