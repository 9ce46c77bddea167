//! A parameter and the values it takes: `rho=0.05,0.1,0.3`, `horizon=1e4..1e9`.

use std::cmp::Ordering;

use crate::measure::MeasureError;
use crate::measure::sweep::decimal::Decimal;

/// The most values of one parameter: a range with a step that was mistyped should not fill the memory.
const VALUES_MAX: usize = 10_000;

/// What is short for a longer path.
const SHORT: [(&str, &str); 3] = [
    ("K", "actions"),
    ("gap", "world.gap"),
    ("world", "world.index"),
];

/// A parameter of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// As it was named.
    pub name: String,
    /// What it replaces in the spec, as [`Spec::parse_with`](crate::spec::Spec::parse_with) takes it.
    pub path: String,
    /// Its values in their order, numbers in one spelling each.
    pub values: Vec<String>,
}

impl Over {
    /// Reads `NAME=VALUES`: values between commas, or a range: `a..b` by factors of ten, `a..b*f` by factors of f, `a..b+s` by
    /// steps of s.
    ///
    /// ```
    /// use debora::measure::Over;
    /// assert_eq!(Over::parse("horizon=1e4..1e6")?.values, ["10000", "100000", "1000000"]);
    /// assert_eq!(Over::parse("K=2..16*2")?.values, ["2", "4", "8", "16"]);
    /// assert_eq!(Over::parse("rho=.1..0.3+.1")?.values, ["0.1", "0.2", "0.3"]);
    /// assert_eq!(Over::parse("policy=free,soft")?.values, ["free", "soft"]);
    /// # Ok::<(), debora::measure::MeasureError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, MeasureError> {
        let fault = |reason: &str| MeasureError::Over {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        let (name, values) = text.split_once('=').ok_or_else(|| {
            fault("give NAME=VALUES, such as rho=0.05,0.1,0.3 or horizon=1e4..1e9")
        })?;
        let mut all = Vec::new();
        for part in between_commas(values) {
            match part.split_once("..") {
                Some((from, to)) => all.extend(range(from, to).map_err(&fault)?),
                None => all.push(part.to_owned()),
            }
        }
        Self::of(name.trim(), all)
    }

    /// A parameter with these values.
    pub fn of(name: &str, values: Vec<String>) -> Result<Self, MeasureError> {
        let fault = |reason: String| MeasureError::Over {
            text: format!("{name}={}", values.join(",")),
            reason,
        };
        let one_spelling = |value: &String| {
            let value = value.trim();
            Decimal::parse(value).map_or(value.to_owned(), Decimal::text)
        };
        let same: Vec<String> = values.iter().map(one_spelling).collect();
        if same.is_empty() || same.iter().any(String::is_empty) {
            return Err(fault(
                "a value is empty; give at least one, and one between two commas".into(),
            ));
        }
        // Twice the same point would be twice the work, and two lines upon each other.
        if let Some((_, value)) = same
            .iter()
            .enumerate()
            .find(|(place, value)| same[..*place].contains(value))
        {
            return Err(fault(format!(
                "the value {value} is there twice; give it once"
            )));
        }
        let short = SHORT.iter().find(|(short, _)| *short == name);
        Ok(Self {
            name: name.to_owned(),
            path: short.map_or(name, |(_, path)| path).to_owned(),
            values: same,
        })
    }
}

/// At commas outside of brackets, braces and quotes: a value may be a list.
fn between_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth, mut quote) = (0, 0, None);
    for (place, letter) in text.char_indices() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(letter),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

fn range(from: &str, to: &str) -> Result<Vec<String>, &'static str> {
    let wrong = "a range is a..b by factors of ten, a..b*f by factors of f or a..b+s by steps of s, all numbers";
    let number = |text: &str| Decimal::parse(text.trim()).ok_or(wrong);
    let (to, step, is_factor) = match (to.split_once('*'), to.split_once('+')) {
        (Some((to, factor)), _) => (to, number(factor)?, true),
        // Not the plus of 1e+9, which is written 1e9.
        (None, Some((to, step))) => (to, number(step)?, false),
        (None, None) => (to, number("10")?, true),
    };
    let (mut value, last) = (number(from)?, number(to)?);
    let mut values = Vec::new();
    while value.compare(last).ok_or(wrong)? != Ordering::Greater {
        values.push(value.text());
        let next = if is_factor {
            value.times(step)
        } else {
            value.plus(step)
        };
        let next = next.ok_or(wrong)?;
        if next.compare(value) != Some(Ordering::Greater) {
            return Err(
                "a range must rise with every step; begin above 0 and give a factor above 1, or a step above 0",
            );
        }
        if values.len() == VALUES_MAX {
            return Err("a range has 10,000 values at most; take larger steps");
        }
        value = next;
    }
    if values.is_empty() {
        return Err("a range must not end before it begins");
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_parameters_have_their_messages() {
        let message = |text: &str| Over::parse(text).unwrap_err().to_string();
        for (text, reason) in [
            ("rho", "give NAME=VALUES"),
            ("rho=", "a value is empty"),
            ("rho=0.1,,0.2", "a value is empty"),
            ("rho=0.1,.1", "the value 0.1 is there twice"),
            ("horizon=1e9..1e4", "must not end before it begins"),
            ("horizon=0..5", "must rise with every step"),
            ("rho=0.1..0.3*1", "must rise with every step"),
            ("rho=a..b", "a range is a..b by factors of ten"),
            ("world=0..1e9+1", "10,000 values at most"),
        ] {
            let message = message(text);
            assert!(
                message.contains(reason) && message.contains(text.trim_end_matches('=')),
                "{message}"
            );
        }
    }

    #[test]
    fn values_may_be_lists_texts_and_paths() {
        let values = |text: &str| Over::parse(text).unwrap().values;
        assert_eq!(
            values("world.reward=[0.1, 0.2],[0.3, 0.4]"),
            ["[0.1, 0.2]", "[0.3, 0.4]"]
        );
        assert_eq!(values("name='a, b',c"), ["'a, b'", "c"]);
        assert_eq!(values("horizon=100,1e4..1e5"), ["100", "10000", "100000"]);
        assert_eq!(Over::parse("gap=0.1").unwrap().path, "world.gap");
    }
}
