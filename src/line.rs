//! The line where variance is constant: a mean as an angle, on which rates near 0 and 1 are as sharp as they really are.
//!
//! ```text
//! Y(v) = atan2(sqrt(n v + c), sqrt(n - n v + c))      in [y0, y1],  y0 = atan2(sqrt c, sqrt(n + c)),  y1 = pi/2 - y0
//! B(y) = clamp(((n + 2c) sin^2(min(max(y, y0), y1)) - c)/n, 0, 1)                   its inverse
//! ```
//!
//! For n samples with mean v and an offset c >= 1. The variance of Y is at most 1/(4n) whatever the mean is, so one cell and
//! one width serve every rate (docs/theory.md, "The line").
//!
//! # Numerics
//!
//! Sums are whole numbers, so n - n v is a difference of integers and loses nothing near 1. atan2, sin and sqrt are libm's.

use std::f64::consts::FRAC_PI_2;

use crate::mean::FIXED_ONE;

/// The line for means of one count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanLine {
    count: u64,
    offset_c: f64,
    least: f64,
}

impl MeanLine {
    /// The line for means of `count` samples, moved by `offset_c`.
    pub fn new(count: u64, offset_c: f64) -> Self {
        let least = libm::atan2(libm::sqrt(offset_c), libm::sqrt(count as f64 + offset_c));
        Self {
            count,
            offset_c,
            least,
        }
    }

    /// y0 and y1: where the means 0 and 1 lie.
    pub fn ends(&self) -> [f64; 2] {
        [self.least, FRAC_PI_2 - self.least]
    }

    /// Y of the mean whose `count` samples have this sum, in multiples of 2^-53.
    pub fn of_sum(&self, sum: u128) -> f64 {
        let whole = u128::from(self.count) * u128::from(FIXED_ONE);
        let ones = sum as f64 * (1.0 / FIXED_ONE as f64);
        // Subtracted as integers: near a mean of 1 a difference of doubles would have no digits left.
        let zeros = (whole - sum) as f64 * (1.0 / FIXED_ONE as f64);
        self.angle(ones, zeros)
    }

    /// Y of a mean. For what is shown; what decides is found from sums.
    pub fn of_mean(&self, mean: f64) -> f64 {
        let count = self.count as f64;
        self.angle(count * mean, count * (1.0 - mean))
    }

    fn angle(&self, ones: f64, zeros: f64) -> f64 {
        libm::atan2(
            libm::sqrt(ones + self.offset_c),
            libm::sqrt(zeros + self.offset_c),
        )
    }

    /// B: the mean at a place of the line.
    pub fn mean(&self, y: f64) -> f64 {
        let [least, most] = self.ends();
        let sine = libm::sin(y.max(least).min(most));
        let count = self.count as f64;
        let spread = (count + 2.0 * self.offset_c) * (sine * sine);
        ((spread - self.offset_c) / count).clamp(0.0, 1.0)
    }

    /// The difference of means around 1/2 that lie this far apart on the line: (1 + 2c/n) sin(x); none beyond the line's ends.
    pub fn difference_at_half(&self, apart: f64) -> Option<f64> {
        let [least, most] = self.ends();
        (apart < most - least)
            .then(|| (1.0 + 2.0 * self.offset_c / self.count as f64) * libm::sin(apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sum of small counts, and rates a thousandth of the way from the ends of large ones.
    #[test]
    fn the_inverse_gives_the_mean_back() {
        for (count, offset_c) in [(1u64, 1.0), (7, 1.0), (64, 4.5), (1_000_000, 12.0)] {
            let line = MeanLine::new(count, offset_c);
            for part in 0..=1_000u64 {
                let mean = part as f64 / 1_000.0;
                let sum = (mean * count as f64 * FIXED_ONE as f64) as u128;
                let back = line.mean(line.of_sum(sum));
                assert!((back - mean).abs() < 1e-9, "{count} {mean}: {back}");
                assert!((line.of_mean(mean) - line.of_sum(sum)).abs() < 1e-9);
            }
            let [least, most] = line.ends();
            let whole = u128::from(count) * u128::from(FIXED_ONE);
            assert_eq!((line.of_sum(0), line.mean(least - 1.0)), (least, 0.0));
            assert!((line.of_sum(whole) - most).abs() < 1e-15);
            assert_eq!(line.mean(most + 1.0), 1.0);
        }
    }

    /// One sample short of all ones, at a count where 1 - mean has lost most of its digits as a double.
    #[test]
    fn means_next_to_one_keep_their_digits() {
        let count = 1u64 << 50;
        let line = MeanLine::new(count, 1.0);
        let whole = u128::from(count) * u128::from(FIXED_ONE);
        let short = |by: u128| FRAC_PI_2 - line.of_sum(whole - by * u128::from(FIXED_ONE));
        for by in [1u128, 2, 3, 10] {
            let exact = libm::atan(libm::sqrt(
                (by as f64 + 1.0) / (count as f64 - by as f64 + 1.0),
            ));
            assert!(
                (short(by) / exact - 1.0).abs() < 1e-8,
                "{by}: {}",
                short(by)
            );
        }
    }
}
