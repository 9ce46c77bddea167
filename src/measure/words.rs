//! Numbers and lists as a person reads them.

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

/// A share of one as a percentage: 99.81 %. As many decimals as the share needs to differ from 0 and 1.
pub fn percent(share: f64) -> String {
    let away = share.min(1.0 - share).abs();
    // With two decimals for all, 99.9999 % would read as a certainty.
    let decimals = if away >= 0.0001 { 2 } else { 4 };
    format!("{} %", trimmed(format!("{:.decimals$}", 100.0 * share)))
}

/// A quantity to three significant digits, with separators above a thousand.
pub fn amount(value: f64) -> String {
    significant(value, 3)
}

/// A quantity to so many significant digits. From 10^digits on it is a whole number with separators: zeros in the place of
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
