//! Confidence widths and grid cells as functions of a count and a share of the budget.
//!
//! ```text
//! tight: cell(n)  = 1 / (rho_s sqrt(pi n))                         two means of n samples are 1/sqrt(pi n) apart on average
//!        width(n) = sqrt(ln(2/delta_s) / (2 n)) + cell(n)/2        Hoeffding, and half a cell for rounding
//! paper: width(n) = sqrt(2 ln(2/delta') / max(n,1)) / s            s = rho' - 2 delta' (the paper's zeta)
//!        cell(n)  = 2 width(n) / (1 + s)
//! ```
//!
//! `ln` is libm's: the standard one may differ in the last bit across platforms, and next to a grid edge that bit is an
//! action.

use crate::budget::Share;

/// Half-length of the confidence interval after `count` samples, and the grid's cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    /// The estimate is this close to the true mean.
    pub width: f64,
    /// The grid's step.
    pub cell: f64,
}

/// Profile tight: the cell spends exactly rho_s, as means of n samples differ by 1/sqrt(pi n) or less in expectation.
pub fn tight(share: Share, count: u64) -> Width {
    // The mean distance of two means, not a bound on it that holds with high probability: no logarithm is divided by a share.
    let cell = 1.0 / (share.rho * libm::sqrt(std::f64::consts::PI * count as f64));
    Width {
        width: hoeffding(share.delta, count) + cell / 2.0,
        cell,
    }
}

/// Profile paper: the equation for zeta below Algorithm 2, with the cell of Impagliazzo et al.'s Theorem 2.3 for accuracy `width`.
///
/// The paper prints 2 delta / (1 + rho - 2 delta) for the cell, a grid that never gets finer (docs/deviations.md, 1).
pub fn paper(share: Share, count: u64) -> Width {
    // The printed min(N, 1) is a misprint: an action never played has the width of one sample (docs/deviations.md, 12).
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

    /// The comparison of docs/theory.md: width = C / sqrt(n) with C = 47,518 in profile paper and 30 in profile tight.
    #[test]
    fn tight_widths_are_a_thousandth_of_the_published_ones() {
        let draft = || {
            Problem::soft(["a", "b", "c", "d", "e"], 1_000_000, 0.3)
                .delta(0.05)
                .cost("g", [0.0, 1.0], 0.5)
        };
        let published = paper(Share::paper(&draft().paper().build().unwrap(), 20), 1).width;
        let ours = tight(Share::tight(&draft().build().unwrap(), 1), 1).width;
        assert_eq!(published.round(), 47_518.0);
        assert!(ours < 30.0, "{ours}");
    }
}
