//! Decimal numbers, exactly: the third step from 0.1 by 0.1 is 0.3, and 1e4 is written as Python's 10000.0 is.

use std::cmp::Ordering;

/// Longer ones are not numbers but names: keys have 32 digits.
const LETTERS_MAX: usize = 24;

/// `digits * 10^exponent`, without zeros at the end of the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// Reads 10000, 10_000, 1e4, 0.3 and .3.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LETTERS_MAX {
            return None;
        }
        let text = text.replace('_', "");
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (&*text, 0_i32),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        if digits.len() + part.len() == 0 || !is_digits(digits) || !is_digits(part) {
            return None;
        }
        // Far beyond doubles there is nothing to simulate, and exponents stay far from the end of their type.
        if exponent.abs() > 400 {
            return None;
        }
        let number = format!("{whole}{part}").parse().ok()?;
        Some(Self::new(number, exponent - part.len() as i32))
    }

    fn new(mut digits: i128, mut exponent: i32) -> Self {
        while digits != 0 && digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        let exponent = if digits == 0 { 0 } else { exponent };
        Self { digits, exponent }
    }

    /// Both with the smaller exponent; `None` where that needs more digits than there are.
    fn aligned(self, other: Self) -> Option<(i128, i128, i32)> {
        let exponent = self.exponent.min(other.exponent);
        let digits = |number: Self| {
            let more = 10_i128.checked_pow((number.exponent - exponent).unsigned_abs())?;
            number.digits.checked_mul(more)
        };
        Some((digits(self)?, digits(other)?, exponent))
    }

    pub fn plus(self, other: Self) -> Option<Self> {
        let (one, two, exponent) = self.aligned(other)?;
        Some(Self::new(one.checked_add(two)?, exponent))
    }

    pub fn times(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Self::new(digits, self.exponent + other.exponent))
    }

    pub fn compare(self, other: Self) -> Option<Ordering> {
        let (one, two, _) = self.aligned(other)?;
        Some(one.cmp(&two))
    }

    /// The text that every spelling of the number has: all its digits, up to the length at which zeros would be counted.
    pub fn text(self) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = self.digits.unsigned_abs().to_string();
        let after = -self.exponent;
        match usize::try_from(self.exponent) {
            Ok(zeros) if digits.len() + zeros <= 18 => {
                format!("{sign}{digits}{}", "0".repeat(zeros))
            }
            Err(_) if after <= 18 => {
                let padded = format!("{digits:0>width$}", width = after as usize + 1);
                let (whole, part) = padded.split_at(padded.len() - after as usize);
                format!("{sign}{whole}.{part}")
            }
            _ => format!("{sign}{digits}e{}", self.exponent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_one_text() {
        let text = |text: &str| Decimal::parse(text).map(Decimal::text);
        for (spelled, written) in [
            ("1e4", "10000"),
            ("10_000", "10000"),
            ("10000.0", "10000"),
            ("1.0e4", "10000"),
            (".3", "0.3"),
            ("-0.050", "-0.05"),
            ("0", "0"),
            ("0.0", "0"),
            ("1e30", "1e30"),
            ("3e-30", "3e-30"),
            ("9007199254740992", "9007199254740992"),
            ("1E-3", "0.001"),
        ] {
            assert_eq!(text(spelled).as_deref(), Some(written));
        }
        for wrong in [
            "",
            ".",
            "-",
            "soft",
            "1e",
            "0x10",
            "1.2.3",
            "inf",
            "nan",
            "+-1",
            "000102030405060708090a0b0c0d0e0f",
            "1e999",
        ] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn steps_are_exact() {
        let of = |text: &str| Decimal::parse(text).unwrap();
        assert_eq!(
            of("0.1")
                .plus(of("0.1"))
                .and_then(|two| two.plus(of("0.1"))),
            Some(of("0.3"))
        );
        assert_eq!(of("0.01").times(of("10")), Some(of(".1")));
        assert_eq!(of("1e30").compare(of("0.1")), Some(Ordering::Greater));
        assert_eq!(
            of("1e39")
                .times(of("1"))
                .and_then(|large| large.compare(of("1"))),
            None,
            "more digits than there are"
        );
    }
}
