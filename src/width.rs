//! Confidence widths and grid cells as functions of a count and a share of the budget.
//!
//! ```text
//! tight: V         = max p(1 - p) over the declared means                        1/4 if 1/2 is among them
//!        spread(n) = min(1/sqrt(pi n), sqrt((4 V n + 2)/pi) / n)                 >= E|difference of two means of n samples|
//!        radius(n) = min(sqrt(l/(2n)), l/(3n) + sqrt((l/(3n))^2 + 2 V l/n))      l = ln(2/delta_s): Hoeffding, Bernstein
//!        cell(n)   = spread(n) / rho_s
//!        width(n)  = radius(n) + cell(n)/2                                       half a cell for rounding
//! paper: width(n)  = sqrt(2 ln(2/delta') / max(n,1)) / s                         s = rho' - 2 delta' (the paper's zeta)
//!        cell(n)   = 2 width(n) / (1 + s)
//! ```
//!
//! `ln` is libm's: the standard one may differ in the last bit across platforms, and next to a grid edge that bit is an
//! action.

use std::f64::consts::PI;

use crate::budget::Share;
use crate::problem::Range;

/// Half-length of the confidence interval after `count` samples, and the grid's cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    /// The estimate is this close to the true mean.
    pub width: f64,
    /// The grid's step.
    pub cell: f64,
}

/// Profile tight, for a quantity whose means are declared to lie in `means`: the cell spends exactly rho_s.
pub fn tight(share: Share, means: Range, count: u64) -> Width {
    let variance = variance_max(means);
    let cell = spread(variance, count) / share.rho;
    Width {
        width: radius(variance, share.delta, count) + cell / 2.0,
        cell,
    }
}

/// The largest variance of a value in [0, 1] whose mean lies in `means`: p(1 - p), largest at the end nearest to 1/2.
pub fn variance_max(means: Range) -> f64 {
    let nearest = 0.5f64.clamp(means.low, means.high);
    nearest * (1.0 - nearest)
}

/// What two means of `count` samples differ by on average, at most.
pub fn spread(variance: f64, count: u64) -> f64 {
    let count = count as f64;
    let any = 1.0 / libm::sqrt(PI * count);
    // At variance 1/4 the second form is the larger by its 2, which the first, exact at p = 1/2, does not need.
    any.min(libm::sqrt((4.0 * variance * count + 2.0) / PI) / count)
}

/// What the mean of `count` samples misses with probability at most `delta`.
pub fn radius(variance: f64, delta: f64, count: u64) -> f64 {
    let count = count as f64;
    let l = libm::log(2.0 / delta);
    let third = l / (3.0 * count);
    let bernstein = third + libm::sqrt(third * third + 2.0 * variance * l / count);
    hoeffding(delta, count as u64).min(bernstein)
}

/// Profile paper: the equation for zeta below Algorithm 2, with the cell of Impagliazzo et al.'s Theorem 2.3 for accuracy `width`.
///
/// The paper prints 2 delta / (1 + rho - 2 delta) for the cell, a grid that never gets finer (docs/deviations.md, 1).
pub fn paper(share: Share, count: u64) -> Width {
    let width = libm::sqrt(2.0 * libm::log(2.0 / share.delta) / count.max(1) as f64) / share.room();
    Width {
        width,
        cell: 2.0 * width / (1.0 + share.room()),
    }
}

/// What the mean of `count` samples of [0, 1] misses with probability at most `delta`.
pub fn hoeffding(delta: f64, count: u64) -> f64 {
    libm::sqrt(libm::log(2.0 / delta) / (2.0 * count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;
    use crate::budget::Portion;

    /// The comparison of docs/theory.md: width = C / sqrt(n) with C = 47,518 in profile paper and 20.6 in profile tight, whose
    /// plan has two levels there.
    #[test]
    fn tight_widths_are_a_thousandth_of_the_published_ones() {
        let draft = || {
            Problem::soft(["a", "b", "c", "d", "e"], 1_000_000, 0.3)
                .delta(0.05)
                .cost("g", [0.0, 1.0], 0.5)
        };
        let published = paper(Share::paper(&draft().paper().build().unwrap(), 20), 1).width;
        let share = Share::tight(&draft().build().unwrap(), 2, Portion::WHOLE);
        let ours = tight(share, Range::UNIT, 1).width;
        assert_eq!(published.round(), 47_518.0);
        assert_eq!((10.0 * ours).round(), 206.0);
    }
}
