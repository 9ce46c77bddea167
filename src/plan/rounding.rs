//! Whole numbers of real settings: what lies within a last bit of a whole number is that number.
//!
//! ```text
//! floor(v) = floor(v (1 + 2^-48)),    ceil(v) = ceil(v (1 - 2^-48))
//! ```
//!
//! So that round settings (T = 1e6, rho = .1) do not hang on the last bit of a power or a quotient.

/// 2^-48: sixteen times the rounding of a double, and far below one in any count that fits a horizon of people.
const NEAR: f64 = 1.0 / (1u64 << 48) as f64;

/// The floor of a number, 0 or more.
pub(crate) fn floor(value: f64) -> u64 {
    libm::floor(value * (1.0 + NEAR)) as u64
}

/// The ceiling of a number, 0 or more.
pub(crate) fn ceil(value: f64) -> u64 {
    libm::ceil(value * (1.0 - NEAR)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_bit_below_or_above_is_a_whole_number() {
        let next = |value: f64, bits: i64| f64::from_bits((value.to_bits() as i64 + bits) as u64);
        assert_eq!(
            (floor(next(1000.0, -3)), ceil(next(1000.0, 3))),
            (1000, 1000)
        );
        assert_eq!((floor(999.999), ceil(1000.001)), (999, 1001));
        // Thirty bits away is another number.
        assert_eq!(
            (floor(next(1000.0, -60)), ceil(next(1000.0, 60))),
            (999, 1001)
        );
    }
}
