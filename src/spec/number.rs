//! Numbers as people type them: `.3`, `3.`, `1e3`, `10_000`, `10_000.5`.
//!
//! TOML asks for a digit on both sides of a point, so a spec file has to have them. What is typed beside it need not.

use crate::problem::HORIZON_MAX;

/// The number that a text is; `None` for anything else, infinities and NaN included.
///
/// ```
/// # use debora::spec::number;
/// assert_eq!([".3", "-.5", "3.", "1e3", "10_000"].map(number), [0.3, -0.5, 3.0, 1e3, 1e4].map(Some));
/// assert_eq!(["", ".", "_1", "1__0", "1_", "nan", "inf", "1,5"].map(number), [None; 8]);
/// ```
pub fn number(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit = |place: usize| bytes.get(place).is_some_and(u8::is_ascii_digit);
    // As in TOML, an underscore stands between two digits.
    let fits = |(place, byte): (usize, &u8)| match byte {
        b'_' => place > 0 && digit(place - 1) && digit(place + 1),
        _ => byte.is_ascii_digit() || b"+-.eE".contains(byte),
    };
    if !bytes.iter().enumerate().all(fits) {
        return None;
    }
    let number: f64 = text.replace('_', "").parse().ok()?;
    number.is_finite().then_some(number)
}

/// The whole number, 0 or more, that a text is.
///
/// ```
/// # use debora::spec::whole_number;
/// assert_eq!(["7", "1e3", "10_000", "2.5e1"].map(whole_number), [7, 1000, 10_000, 25].map(Some));
/// assert_eq!(["-1", "1.5", "1e16", "many"].map(whole_number), [None; 4]);
/// ```
pub fn whole_number(text: &str) -> Option<u64> {
    let number = number(text)?;
    // All digits of one that is written out; the spelling of a float above 2^53 is no longer its value.
    if let Ok(whole) = text.replace('_', "").parse() {
        return Some(whole);
    }
    let whole = (0.0..=HORIZON_MAX as f64).contains(&number) && number.trunc() == number;
    whole.then_some(number as u64)
}

/// A TOML value with a 0 before each point that lacks one, outside of quotes: `[.3, -.5]` as `[0.3, -0.5]`.
pub(super) fn with_zeros(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut quote = None;
    for letter in value.chars() {
        match quote {
            None if ['"', '\''].contains(&letter) => quote = Some(letter),
            Some(open) if open == letter => quote = None,
            _ => {}
        }
        // After a letter, a digit or a quote it is part of a number or of a dotted key.
        let begins = text.ends_with(|before: char| "[,=+- \t".contains(before)) || text.is_empty();
        if letter == '.' && quote.is_none() && begins {
            text.push('0');
        }
        text.push(letter);
    }
    text
}
