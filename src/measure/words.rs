//! Numbers and lists as a person reads them.

/// How far a share may be from a rounded one by the rounding of its sums.
const SUMS_OFF: f64 = 1e-12;

/// 9981 as 9,981.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of one as a percentage: 99.81 %. It has as many decimals as the share needs to differ from 0 and 1, but at most 14.
pub fn percent(share: f64) -> String {
    let decimals = percent_decimals(share.min(1.0 - share).abs());
    format!("{} %", trimmed(format!("{:.decimals$}", 100.0 * share)))
}

/// A share of one to a tenth of a percent: enough to compare two.
pub fn share_to_tenths(share: f64) -> String {
    let rounded = (share * 1e3).round() / 1e3;
    // What is nearly certain or nearly impossible must not read as if it were.
    percent(
        if (rounded == 0.0 || rounded == 1.0) && (share - rounded).abs() > SUMS_OFF {
            share
        } else {
            rounded
        },
    )
}

/// The decimals that tell a percentage from 0 and 100, given its share's distance from 0 and 1.
fn percent_decimals(distance: f64) -> usize {
    // With two decimals for all, 99.9999 % would read as a certainty.
    if distance >= 1e-4 || distance == 0.0 {
        2
    } else if distance >= 1e-6 {
        4
    } else {
        // No double below 1 is closer to it than 2^-53, or 1.1e-14 %, so 14 decimals show any that is not 1. Shares closer
        // to 0 exist, but a row of zeros would not tell a reader more than "0 %" does.
        (-libm::log10(100.0 * distance)).ceil().min(14.0) as usize
    }
}

/// A quantity to three significant digits, with separators above a thousand.
pub fn amount(value: f64) -> String {
    significant(value, 3)
}

/// A quantity to this many significant digits. From 10^digits on it is a whole number with separators: zeros in the place of
/// known digits would look rounded.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    // Bounds that do not exist are infinite.
    if !value.is_finite() {
        return "none".into();
    }
    let size = value.abs();
    // Outside of this a reader would count zeros.
    if !(1e-5..1e15).contains(&size) {
        return format!("{value:.*e}", (digits - 1) as usize);
    }
    if size >= libm::pow(10.0, f64::from(digits)) {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", whole(size.round() as u64));
    }
    let magnitude = libm::log10(size).floor() as i32;
    // Five more than the digits, for the zeros of 1e-5 behind the point.
    let decimals = (digits - 1 - magnitude).clamp(0, digits + 5) as usize;
    trimmed(format!("{value:.decimals$}"))
}

/// Without zeros at the end of the decimals.
fn trimmed(number: String) -> String {
    if !number.contains('.') {
        return number;
    }
    number
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// "1 pair", "2 pairs".
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", whole(number), if number == 1 { one } else { many })
}

/// "a", "a and b", "a, b and c".
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 12, 999, 1_000, 100_000_000].map(whole),
            ["0", "12", "999", "1,000", "100,000,000"]
        );
        assert_eq!(
            [0.9981, 1.0, 0.0, 0.9, 0.999_999].map(percent),
            ["99.81 %", "100 %", "0 %", "90 %", "99.9999 %"]
        );
        assert_eq!(
            [1.0 - 1e-7, 1e-7, 3e-8, 1.0 - f64::EPSILON / 2.0, 1e-300].map(percent),
            [
                "99.99999 %",
                "0.00001 %",
                "0.000003 %",
                "99.99999999999999 %",
                "0 %"
            ]
        );
        let amounts = [
            0.0, 0.003, 0.012345, 1.5, 123.456, 98_304.2, -2_000.0, 1e-7, 1e18,
        ]
        .map(amount);
        assert_eq!(
            amounts,
            [
                "0", "0.003", "0.0123", "1.5", "123", "98,304", "-2,000", "1.00e-7", "1.00e18"
            ]
        );
        let precise =
            [0.0031616, 0.75, 1234.5678, 1_234_567.8, 1e-9].map(|value| significant(value, 6));
        assert_eq!(
            precise,
            ["0.0031616", "0.75", "1234.57", "1,234,568", "1.00000e-9"]
        );
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(counted(1, "pair", "pairs"), "1 pair");
    }
}
