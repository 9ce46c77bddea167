//! Poisson, binomial and hypergeometric laws as one: independent Poisson counts, conditioned on sums of them.
//!
//! ```text
//! f(k) = constant * product over cells of  mean^x / x!,    x = start + k  or  x = start - k
//! mean^x exp(-mean) / x! = exp(-stirling_error(x) - deviance(x, mean)) / sqrt(2 pi x)
//! ```
//!
//! A Poisson count is one cell; a binomial is two whose sum is n; a hypergeometric is the four of a two by two table
//! whose margins are known. The second line is the saddle-point form of C. Loader, *Fast and accurate computation of
//! binomial probabilities* (2000). The logarithms of factorials near 1e15 are near 3e16, so their differences keep
//! no digit; here the large parts have been cancelled on paper, and every number that is left is about as large as
//! the logarithm that is asked for.

use libm::log;
use std::f64::consts::TAU;

/// A count that rises or falls with k, and its expected value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    start: f64,
    rises: bool,
    mean: f64,
}

impl Cell {
    /// The count `start + k`.
    pub(super) fn rising(start: f64, mean: f64) -> Self {
        Self {
            start,
            rises: true,
            mean,
        }
    }

    /// The count `start - k`.
    pub(super) fn falling(start: f64, mean: f64) -> Self {
        Self {
            start,
            rises: false,
            mean,
        }
    }

    #[inline]
    fn count(&self, k: f64) -> f64 {
        if self.rises {
            self.start + k
        } else {
            self.start - k
        }
    }
}

/// A law on the integers 0..=last, strictly log-concave, known up to a constant factor. The mode may be off by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountLaw<const CELLS: usize> {
    pub(super) cells: [Cell; CELLS],
    pub(super) mode: f64,
    pub(super) last: f64,
}

/// exp(-exponent) / sqrt(square). The parts stay apart so that one function of `square` can serve several of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    pub(super) exponent: f64,
    pub(super) square: f64,
}

/// What rounding may do to a bound of ln f: 1e-15 a step, and ten standard deviations are 3e8 steps at 2^52.
const ROUNDING: f64 = 1e-6;

impl<const CELLS: usize> CountLaw<CELLS> {
    /// The product of the cells' Poisson probabilities at `k`, which is in 0..=last.
    #[inline]
    pub(super) fn weight(&self, k: f64) -> Weight {
        poisson_product(self.cells.map(|cell| (cell.count(k), cell.mean)))
    }

    /// ln(f(k) / f(mode)), for k in 0..=last.
    #[cold]
    pub(super) fn ln_change(&self, k: f64) -> f64 {
        let at_mode = self.weight(self.mode);
        let at_k = self.weight(k);
        // One logarithm of a quotient, where those of the two squares would cancel.
        at_mode.exponent - at_k.exponent + 0.5 * log(at_mode.square / at_k.square)
    }

    /// The factor of one more step away from the mode, `steps` steps away in the direction of `sign`, as numerator and
    /// denominator.
    #[inline]
    pub(super) fn ratio(&self, sign: f64, steps: f64) -> (f64, f64) {
        // Kept apart, so that the caller can take their difference: one less the quotient would cancel.
        let mut numerator = 1.0;
        let mut denominator = 1.0;
        for cell in &self.cells {
            let count = cell.count(self.mode + sign * steps);
            let grows = cell.rises == (sign > 0.0);
            let (top, bottom) = if grows {
                (cell.mean, count + 1.0)
            } else {
                (count, cell.mean)
            };
            numerator *= top;
            denominator *= bottom;
        }
        (numerator, denominator)
    }

    /// A number below ln(f(k) / f(mode)), `steps` steps away in the direction of `sign`, without a logarithm.
    ///
    /// On the way a cell that grows from a gives the factors mean / (a + i), i = 1..=steps, one that shrinks (a - i) /
    /// mean, i = 0..steps. ln is concave, so its mean over evenly spaced numbers is at most ln of their middle, and at
    /// least half the sum of ln at both ends.
    #[inline]
    pub(super) fn ln_change_below(&self, sign: f64, steps: f64) -> f64 {
        let half = 0.5 * (steps - 1.0);
        let grown = |count: f64| (count + 1.0 + half) * (count + 1.0 + half);
        let shrunk = |count: f64| count * (count + 1.0 - steps);
        let (factor, under) = self.mean_factor_squared(sign, grown, shrunk);
        0.5 * steps * ln_below(factor, under) - ROUNDING
    }

    /// The same above it. Two functions, as a draw seldom needs both.
    #[inline]
    pub(super) fn ln_change_above(&self, sign: f64, steps: f64) -> f64 {
        let half = 0.5 * (steps - 1.0);
        let grown = |count: f64| (count + 1.0) * (count + steps);
        let shrunk = |count: f64| (count - half) * (count - half);
        let (factor, under) = self.mean_factor_squared(sign, grown, shrunk);
        0.5 * steps * ln_above(factor, under) + ROUNDING
    }

    /// The square of the mean factor on the way, as a fraction, given the mean square of the counts that a cell meets from its
    /// count at the mode on. As a square, half the sum of two logarithms needs no root.
    #[inline]
    fn mean_factor_squared(
        &self,
        sign: f64,
        grown: impl Fn(f64) -> f64,
        shrunk: impl Fn(f64) -> f64,
    ) -> (f64, f64) {
        let [mut factor, mut under] = [1.0; 2];
        for cell in &self.cells {
            let count = cell.count(self.mode);
            let square = cell.mean * cell.mean;
            if cell.rises == (sign > 0.0) {
                factor *= square;
                under *= grown(count);
            } else {
                factor *= shrunk(count);
                under *= square;
            }
        }
        (factor, under)
    }
}

/// A number below ln(a / b), for a and b above 0: it is 2 (t + t^3/3 + t^5/5 + ...), t = (a - b) / (a + b), and all that
/// follows 2 t is between 0 and 2/3 t^3 / (1 - t^2).
#[inline]
pub(super) fn ln_below(a: f64, b: f64) -> f64 {
    let t = (a - b) / (a + b);
    if t < 0.0 {
        2.0 * t + ln_rest(t)
    } else {
        2.0 * t
    }
}

/// A number above it.
#[inline]
pub(super) fn ln_above(a: f64, b: f64) -> f64 {
    let t = (a - b) / (a + b);
    if t > 0.0 {
        2.0 * t + ln_rest(t)
    } else {
        2.0 * t
    }
}

#[inline]
fn ln_rest(t: f64) -> f64 {
    2.0 / 3.0 * t * t * t / (1.0 - t * t)
}

/// The product of the Poisson probabilities at (count, mean), each count an integer, each mean above 0. The squares of
/// four cells below 2^53 multiply to less than 1e67.
#[inline]
pub(super) fn poisson_product<const CELLS: usize>(cells: [(f64, f64); CELLS]) -> Weight {
    let mut product = Weight {
        exponent: 0.0,
        square: 1.0,
    };
    for (count, mean) in cells {
        // Stirling's formula has no value at 0, where the probability is exp(-mean).
        if count == 0.0 {
            product.exponent += mean;
        } else {
            product.exponent += stirling_error(count) + deviance(count, mean);
            product.square *= TAU * count;
        }
    }
    product
}

/// x ln(x / mean) + mean - x, for x and mean above 0: what the exponent of a Poisson probability at x lacks of its
/// largest. Loader's bd0.
///
/// # Numerics
///
/// Near the mean the three terms cancel, so it is summed as a series in v = (x - mean) / (x + mean), whose first term
/// is (x - mean) v. With |v| < 0.1 the eighth correction is below 2^-53 of it.
#[inline]
fn deviance(x: f64, mean: f64) -> f64 {
    const ODD_INVERSES: [f64; 8] = [
        1.0 / 3.0,
        1.0 / 5.0,
        1.0 / 7.0,
        1.0 / 9.0,
        1.0 / 11.0,
        1.0 / 13.0,
        1.0 / 15.0,
        1.0 / 17.0,
    ];
    let difference = x - mean;
    // Away from the mean the terms differ enough for the logarithm to keep its digits.
    if difference.abs() >= 0.1 * (x + mean) {
        return x * log(x / mean) - difference;
    }
    let v = difference / (x + mean);
    let square = v * v;
    let mut power = 2.0 * x * v;
    let mut sum = difference * v;
    for inverse in ODD_INVERSES {
        power *= square;
        let longer = sum + power * inverse;
        if longer == sum {
            break;
        }
        sum = longer;
    }
    sum
}

/// ln x! less Stirling's formula, ln sqrt(2 pi x) + x ln x - x, for an integer x above 0. Loader's stirlerr.
///
/// # Numerics
///
/// To 15 from a table, computed with 50 digits; beyond, five terms of the asymptotic series 1/(12 x) - 1/(360 x^3) +
/// ..., whose sixth is below 2e-16 there.
#[inline]
fn stirling_error(x: f64) -> f64 {
    const TABLE: [f64; 15] = [
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_3,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_093,
        0.016_644_691_189_821_193,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
        0.007_573_675_487_951_841,
        0.006_942_840_107_209_53,
        0.006_408_994_188_004_207,
        0.005_951_370_112_758_848,
        0.005_554_733_551_962_801,
    ];
    // Here five terms of the series are not enough.
    if x <= 15.0 {
        return TABLE[x as usize - 1];
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = 1.0 / 1260.0 - square * (1.0 / 1680.0 - square * (1.0 / 1188.0));
    inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * series))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against values computed with 50 digits.
    #[test]
    fn deviances_keep_their_digits() {
        for (x, mean, exact) in [
            (1.0, 1.5, 0.09453489189183562),
            (3.0, 2.5, 0.04696467038186388),
            (10.0, 10.0, 0.0),
            (1000.0, 900.25, 5.332776453152435),
            (1e15, 999999966445568.0, 0.5629499660142896),
            (1000000134217728.0, 1e15, 9.007198851765747),
            (5.0, 40.0, 24.60279229160082),
            (1e6, 1.0, 12815511.557964275),
        ] {
            let value = deviance(x, mean);
            assert!(
                (value - exact).abs() <= 4.0 * f64::EPSILON * exact,
                "{x}, {mean}: {value}, {exact}"
            );
        }
    }

    /// Against values computed with 50 digits.
    #[test]
    fn stirling_errors_are_right_to_the_last_bit_of_one() {
        for (x, exact) in [
            (1.0, 0.08106146679532726),
            (15.0, 0.005554733551962801),
            (16.0, 0.0052076559196096404),
            (17.0, 0.004901395948434738),
            (40.0, 0.0020832899383024218),
            (1000.0, 8.333333055555635e-5),
            (1e15, 8.333333333333333e-17),
        ] {
            let value = stirling_error(x);
            assert!(
                (value - exact).abs() <= f64::EPSILON,
                "{x}: {value}, {exact}"
            );
        }
    }

    /// Binomial(60, 0.4), whose coefficients are exact integers.
    #[test]
    fn changes_are_those_of_the_binomial_law() {
        let law = CountLaw {
            cells: [Cell::rising(0.0, 24.0), Cell::falling(60.0, 36.0)],
            mode: 24.0,
            last: 60.0,
        };
        let mut coefficients = vec![1u64];
        for k in 0..60 {
            coefficients
                .push((u128::from(coefficients[k]) * (60 - k as u128) / (k as u128 + 1)) as u64);
        }
        for (k, &coefficient) in coefficients.iter().enumerate() {
            let odds = libm::pow(0.4 / 0.6, k as f64 - 24.0);
            let exact = log(coefficient as f64 / coefficients[24] as f64 * odds);
            let change = law.ln_change(k as f64);
            assert!(
                (change - exact).abs() < 1e-13 * (1.0 + exact.abs()),
                "k = {k}: {change}, {exact}"
            );
        }
    }

    /// Against values computed with 60 digits; differences of `lgamma` would be off by 10 and more.
    #[test]
    fn changes_keep_their_digits_at_1e15() {
        let close =
            |change: f64, exact: f64| assert!((change - exact).abs() < 1e-13, "{change}, {exact}");
        let law = CountLaw {
            cells: [Cell::rising(0.0, 1e15)],
            mode: 1e15,
            last: f64::INFINITY,
        };
        close(law.ln_change(1e15 + 3e7), -0.4500000104999998);
        close(law.ln_change(1e15 - 1e8), -5.000000116666673);
        let law = CountLaw {
            cells: [Cell::rising(0.0, 2.5e14), Cell::falling(1e15, 7.5e14)],
            mode: 2.5e14,
            last: 1e15,
        };
        close(law.ln_change(2.5e14 + 1e7), -0.26666667762962926);
        close(law.ln_change(2.5e14 - 5e7), -6.66666689629632);
        let (falls, rises) = (Cell::falling(5e14, 2.5e14), Cell::rising(0.0, 2.5e14));
        let law = CountLaw {
            cells: [rises, falls, falls, rises],
            mode: 2.5e14,
            last: 5e14,
        };
        close(law.ln_change(2.5e14 + 1e7), -0.7999999999999986);
        close(law.ln_change(2.5e14 - 3e7), -7.200000000000003);
    }

    #[test]
    fn a_logarithm_is_between_its_bounds() {
        for step in 1..1000 {
            let a = f64::from(step) / 100.0;
            let (low, high) = (ln_below(a, 1.0), ln_above(a, 1.0));
            assert!(
                low <= log(a) + 1e-15 && high >= log(a) - 1e-15,
                "{a}: {low}, {high}"
            );
            assert!(
                high - low <= 0.1 * (a - 1.0).abs().powi(3) / a.min(1.0).powi(3),
                "{a}: {low}, {high}"
            );
        }
    }
}
