//! Replicable mean: the middle of the grid cell that holds the sample mean, on a grid whose offset both runs share.
//!
//! ```text
//! index = floor((y - offset * cell) / cell),   middle = offset * cell + (index + 1/2) * cell
//! ```
//!
//! In profile tight y is the mean's place on the [line](crate::Plan) where variance is constant, in profile paper the mean
//! itself. Places d apart fall into different cells with probability min(1, d / cell) over a uniform offset, and the middle is
//! within half a cell of the place. Paper: Algorithm 1 (RepMean), with the width in place of delta in its line 1 and without
//! the maximum with 0 in its line 5 (docs/deviations.md, 1 and 2): the first, partial cell has index -1.
//!
//! Means come from a [`Tally`] of exact sums, so neither the order of the feedback nor its division into parts can move one.
//!
//! [`to_fixed`], [`FIXED_ONE`], [`cell_index`], [`cell_middle`] and [`round_to_cell`] are public for callers that add up a whole epoch themselves
//! ([`Engine::tell_epoch`](crate::Engine::tell_epoch)), and for those who recompute an estimate from a record.

use std::hint::select_unpredictable;

/// One, as a multiple of 2^-53.
pub const FIXED_ONE: u64 = 1 << 53;

/// A value of [0, 1] as a multiple of 2^-53, half to even.
#[inline]
pub fn to_fixed(unit: f64) -> u64 {
    debug_assert!((0.0..=1.0).contains(&unit));
    // From 2^52 on every double is an integer; below, adding 2^52 rounds to an integer, half to even. On processors without an
    // instruction for it, `round_ties_even` is a function call that costs more than the rest of telling a round. Both ways
    // are computed and one is chosen: feedback is random, and a branch on it would be mispredicted every other time.
    const INTEGERS: f64 = (1u64 << 52) as f64;
    let scaled = unit * FIXED_ONE as f64;
    // Doubles from 2^52 to 2^53 are integers whose bits follow one another: what is beyond 2^52 is read off, not converted.
    let beyond = |integer: f64| integer.to_bits().wrapping_sub(INTEGERS.to_bits());
    let rounded = beyond(scaled + INTEGERS);
    let whole = beyond(scaled).wrapping_add(1 << 52);
    select_unpredictable(scaled < INTEGERS, rounded, whole)
}

/// Counts per action and exact sums per action and quantity, in multiples of 2^-53. Merging is exact, in any order.
///
/// Floats would sum to other bits in another order, and next to a cell's edge a bit is another estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    quantities: usize,
    counts: Vec<u64>,
    sums: Vec<u128>,
}

impl Tally {
    /// An empty tally.
    pub fn new(actions: usize, quantities: usize) -> Self {
        Self {
            quantities,
            counts: vec![0; actions],
            sums: vec![0; actions * quantities],
        }
    }

    /// A tally of these counts and sums, which must fit each other in length.
    pub(crate) fn from_parts(quantities: usize, counts: Vec<u64>, sums: Vec<u128>) -> Self {
        assert_eq!(counts.len() * quantities, sums.len());
        Self {
            quantities,
            counts,
            sums,
        }
    }

    /// Adds one round's feedback, each value in multiples of 2^-53.
    #[inline]
    pub fn add(&mut self, action: u32, fixed: &[u64]) {
        let action = action as usize;
        self.counts[action] += 1;
        for (sum, &value) in self.sums[action * self.quantities..][..self.quantities]
            .iter_mut()
            .zip(fixed)
        {
            *sum += u128::from(value);
        }
    }

    /// Adds many rounds' feedback: rewards, and the costs of the first round, then of the second, and so on.
    pub(crate) fn add_many(&mut self, actions: &[u32], rewards: &[u64], costs: &[u64]) {
        let costs_each = self.quantities - 1;
        for (round, (&action, &reward)) in actions.iter().zip(rewards).enumerate() {
            let costs = &costs[round * costs_each..][..costs_each];
            let sums = &mut self.sums[action as usize * self.quantities..][..self.quantities];
            self.counts[action as usize] += 1;
            sums[0] += u128::from(reward);
            for (sum, &cost) in sums[1..].iter_mut().zip(costs) {
                *sum += u128::from(cost);
            }
        }
    }

    /// Adds many rounds of one action at once: how many, and their sums in multiples of 2^-53.
    pub fn add_sums(&mut self, action: u32, count: u64, sums: &[u128]) {
        let action = action as usize;
        self.counts[action] += count;
        for (sum, &more) in self.sums[action * self.quantities..][..self.quantities]
            .iter_mut()
            .zip(sums)
        {
            *sum += more;
        }
    }

    /// Empties the tally, in place.
    #[inline]
    pub fn clear(&mut self) {
        // A stretch of one round has one action to empty: with many actions, filling every sum would cost more than the round.
        for (count, sums) in self
            .counts
            .iter_mut()
            .zip(self.sums.chunks_exact_mut(self.quantities))
        {
            if *count > 0 {
                *count = 0;
                sums.fill(0);
            }
        }
    }

    /// Adds another tally of the same shape.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(
            (self.counts.len(), self.quantities),
            (other.counts.len(), other.quantities),
            "tallies of one shape"
        );
        // An epoch may leave actions out, and their rows of zeros need not be added.
        for (action, count, sums) in other.played() {
            self.add_sums(action as u32, count, sums);
        }
    }

    /// The actions that have a count, with it and their sums. Of many actions an epoch plays few, so that eight are passed over
    /// at once.
    fn played(&self) -> impl Iterator<Item = (usize, u64, &[u128])> {
        let (eights, rest) = self.counts.as_chunks::<8>();
        let rest = self.counts.len() - rest.len()..self.counts.len();
        let some = eights
            .iter()
            .enumerate()
            .filter(|(_, counts)| counts.iter().fold(0, |any, count| any | count) > 0);
        some.flat_map(|(place, _)| 8 * place..8 * place + 8)
            .chain(rest)
            .filter(|&action| self.counts[action] > 0)
            .map(|action| {
                let sums = &self.sums[action * self.quantities..][..self.quantities];
                (action, self.counts[action], sums)
            })
    }

    /// Number of quantities.
    pub fn quantities(&self) -> usize {
        self.quantities
    }

    /// Rounds per action.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The sums, quantity by quantity within action by action, in multiples of 2^-53.
    pub fn sums(&self) -> &[u128] {
        &self.sums
    }

    /// The first action and quantity whose sum exceeds its count, as no sum of values in [0, 1] does.
    pub(crate) fn impossible_sum(&self) -> Option<(usize, usize)> {
        let rows = self.sums.chunks_exact(self.quantities);
        for (action, (&count, sums)) in self.counts.iter().zip(rows).enumerate() {
            // An epoch leaves most of many actions out: all their sums are zero.
            if count == 0 && sums.iter().fold(0, |any, sum| any | sum) == 0 {
                continue;
            }
            if let Some(quantity) = sum_beyond(count, sums) {
                return Some((action, quantity));
            }
        }
        None
    }

    /// The same among the actions that have a count.
    pub(crate) fn impossible_sum_of_played(&self) -> Option<(usize, usize)> {
        self.played()
            .find_map(|(action, count, sums)| Some((action, sum_beyond(count, sums)?)))
    }

    /// The sum of a quantity of an action, in multiples of 2^-53.
    pub fn sum(&self, action: u32, quantity: usize) -> u128 {
        self.sums[action as usize * self.quantities + quantity]
    }

    /// The mean of a quantity of an action that was played, as a share of the action's range.
    pub fn mean(&self, action: u32, quantity: usize) -> f64 {
        Self::mean_of(self.sum(action, quantity), self.counts[action as usize])
    }

    /// The mean of this many values with this sum.
    pub(crate) fn mean_of(sum: u128, count: u64) -> f64 {
        // Scaled last, by a power of two, which rounds nothing: the order is part of the values.
        sum as f64 / count as f64 * (1.0 / FIXED_ONE as f64)
    }
}

/// The first of an action's sums that exceeds its count.
fn sum_beyond(count: u64, sums: &[u128]) -> Option<usize> {
    let most = u128::from(count) * u128::from(FIXED_ONE);
    sums.iter().position(|&sum| sum > most)
}

/// The cell of a place on the grid with this cell width and offset in [0, 1).
pub fn cell_index(place: f64, cell: f64, offset: f64) -> i64 {
    libm::floor((place - offset * cell) / cell) as i64
}

/// The middle of a cell.
pub fn cell_middle(index: i64, cell: f64, offset: f64) -> f64 {
    offset * cell + (index as f64 + 0.5) * cell
}

/// The cell of `mean` on the plain line, and the estimate: the cell's middle. What profile paper rounds.
///
/// A cell as wide as the whole range tells nothing: then there is no index and the estimate is 1/2.
pub fn round_to_cell(mean: f64, cell: f64, offset: f64) -> (Option<i64>, f64) {
    if cell >= 1.0 {
        return (None, 0.5);
    }
    let index = cell_index(mean, cell, offset);
    let estimate = cell_middle(index, cell, offset).clamp(0.0, 1.0);
    (Some(index), estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_rounds_half_to_even() {
        let step = 2f64.powi(-53);
        assert_eq!(
            [0.0, 1.0, step, 0.5 * step, 1.5 * step, f64::MIN_POSITIVE].map(to_fixed),
            [0, 1 << 53, 1, 0, 2, 0]
        );
        // Where one way of rounding ends and the other begins, to the bit, and all over the range.
        let half = (0..64u64).map(|bits| f64::from_bits(0.5f64.to_bits() - 32 + bits));
        let spread = (0..2_000).map(|shift| 1.0 / (1.0 + f64::from(shift) * 1.37e13));
        let even = (0..=1_000).map(|part| f64::from(part) / 1_000.0);
        for value in half.chain(spread).chain(even).chain([-0.0]) {
            assert_eq!(
                to_fixed(value),
                (value * FIXED_ONE as f64).round_ties_even() as u64,
                "{value}"
            );
        }
    }

    #[test]
    fn the_first_partial_cell_has_index_minus_one() {
        assert_eq!(round_to_cell(0.05, 0.25, 0.5), (Some(-1), 0.0));
        assert_eq!(round_to_cell(0.125, 0.25, 0.5), (Some(0), 0.25));
        assert_eq!(round_to_cell(1.0, 0.25, 0.5), (Some(3), 1.0));
    }

    #[test]
    fn a_cell_as_wide_as_the_range_tells_nothing() {
        assert_eq!(round_to_cell(0.9, 1.0, 0.3), (None, 0.5));
    }

    /// Also where their number is no multiple of how many are passed over at once.
    #[test]
    fn merging_adds_every_action_that_was_played_and_no_other() {
        for actions in 1..=33usize {
            for every in 1..=12 {
                let mut tally = Tally::new(actions, 2);
                for action in (0..actions).step_by(every) {
                    tally.add_sums(action as u32, 1 + action as u64, &[action as u128, 7]);
                }
                let mut twice = tally.clone();
                twice.merge(&tally);
                for (action, sums) in twice.sums().chunks_exact(2).enumerate() {
                    let times = 2 * u64::from(action.is_multiple_of(every));
                    assert_eq!(twice.counts()[action], times * (1 + action as u64));
                    let row = [action as u128, 7].map(|sum| u128::from(times) * sum);
                    assert_eq!(sums, row, "{action} of {actions}");
                }
            }
        }
    }

    #[test]
    fn means_do_not_depend_on_the_order_of_merging() {
        let parts: Vec<Tally> = (1..=3u64)
            .map(|part| {
                let mut tally = Tally::new(2, 1);
                (0..part).for_each(|round| tally.add(1, &[to_fixed(0.1 * round as f64)]));
                tally
            })
            .collect();
        let merged = |order: [usize; 3]| {
            let mut tally = Tally::new(2, 1);
            order.iter().for_each(|&part| tally.merge(&parts[part]));
            tally
        };
        assert_eq!(merged([0, 1, 2]), merged([2, 0, 1]));
        assert_eq!(merged([0, 1, 2]).counts(), [0, 6]);
    }
}
