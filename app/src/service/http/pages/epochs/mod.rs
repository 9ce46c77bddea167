//! The epochs of an experiment: a list, and a page each.

mod grids;
pub mod list;
pub mod one;

use debora::measure::words::amount;
use debora::record::{HardRule, Kind};
use maud::{Markup, html};

use super::parts;

/// How an epoch's strategy was found, as a word.
fn kind_badge(kind: Kind, rule: Option<HardRule>) -> Markup {
    let (class, word) = match kind {
        Kind::Explore => ("waiting", "explore"),
        Kind::Estimate => ("good", "estimate"),
        Kind::Infeasible => ("bad", "infeasible"),
        Kind::Commit => ("committed", "commit"),
    };
    let rule = rule.map(|rule| match rule {
        HardRule::Mix => "mix",
        HardRule::Plan => "plan",
    });
    html! {
        (parts::badge(class, word))
        @if let Some(rule) = rule { " " span.small { (rule) } }
    }
}

/// A length of time, in the two units that matter.
fn duration(milliseconds: i64) -> String {
    // Clocks may be set back while an epoch is open.
    let milliseconds = milliseconds.max(0);
    let seconds = milliseconds / 1000;
    let pair = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    match seconds {
        0..60 => format!("{} s", amount(milliseconds as f64 / 1000.0)),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// A hash that takes little room and is copied whole.
fn hash(hash: &str) -> Markup {
    html! { code.hash.cut title=(hash) { (hash) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let second = 1_000;
        let lengths = [-5, 0, 1_234, 60 * second, 3_725 * second, 90_000 * second];
        assert_eq!(
            lengths.map(duration),
            ["0 s", "0 s", "1.23 s", "1 min", "1 h 2 min", "1 d 1 h"]
        );
    }
}
