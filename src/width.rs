//! Confidence widths and grid cells as functions of a count and a share of the budget.
//!
//! ```text
//! tight, all on the line:  l         = ln(2/delta_s),   c = max(1, l/2)
//!                          spread(n) = 1/sqrt(pi n)             >= E|difference of two runs|
//!                          radius(n) = 1.03 sqrt(l/(2n))        exceeded with probability at most delta_s
//!                          cell(n)   = spread(n) / rho_s
//!                          width(n)  = radius(n) + cell(n)/2    half a cell for rounding
//! paper:                   width(n)  = sqrt(2 ln(2/delta') / max(n,1)) / s       s = rho' - 2 delta' (the paper's zeta)
//!                          cell(n)   = 2 width(n) / (1 + s)
//! ```
//!
//! `ln` is libm's: the standard one may differ in the last bit across platforms, and next to a grid edge that bit is an
//! action.

use std::f64::consts::PI;

use crate::budget::Share;

/// What the radius needs above sqrt(l/(2n)): 1.020 is the least that every mean from n = 30 on allows, and a hundredth is room
/// (docs/theory.md, "The line").
pub const RADIUS: f64 = 1.03;

/// Half-length of the confidence interval after `count` samples, and the grid's cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    /// The estimate is this close to the true mean.
    pub width: f64,
    /// The grid's step.
    pub cell: f64,
}

/// Profile tight: the cell spends exactly rho_s.
pub fn tight(share: Share, count: u64) -> Width {
    let cell = spread(count) / share.rho;
    Width {
        width: radius(share.delta, count) + cell / 2.0,
        cell,
    }
}

/// c, the line's offset: it pays for the skewness of means near 0 and 1.
pub fn offset_c(delta: f64) -> f64 {
    (libm::log(2.0 / delta) / 2.0).max(1.0)
}

/// How far two runs' means of `count` samples lie apart on the line on average, at most.
pub fn spread(count: u64) -> f64 {
    1.0 / libm::sqrt(PI * count as f64)
}

/// How far a mean of `count` samples lies from the truth on the line but for probability `delta`.
pub fn radius(delta: f64, count: u64) -> f64 {
    RADIUS * hoeffding(delta, count)
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

/// What the plain mean of `count` samples of [0, 1] misses with probability at most `delta`.
pub fn hoeffding(delta: f64, count: u64) -> f64 {
    libm::sqrt(libm::log(2.0 / delta) / (2.0 * count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    /// The comparison of docs/theory.md: width = C / sqrt(n) with C = 47,518 in profile paper and 20.7 in profile tight, whose
    /// plan has two levels there.
    #[test]
    fn tight_widths_are_a_thousandth_of_the_published_ones() {
        let draft = || {
            Problem::soft(["a", "b", "c", "d", "e"], 1_000_000, 0.3)
                .delta(0.05)
                .cost("g", [0.0, 1.0], 0.5)
        };
        let published = paper(Share::paper(&draft().paper().build().unwrap(), 20), 1).width;
        let share = Share::tight(&draft().build().unwrap(), 2);
        let ours = tight(share, 1).width;
        assert_eq!(published.round(), 47_518.0);
        assert_eq!((10.0 * ours).round(), 207.0);
    }
}
