//! The epochs of an experiment: a list, and a page each.

mod grids;
pub mod list;
pub mod one;

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

/// A hash that takes little room and is copied whole.
fn hash(hash: &str) -> Markup {
    html! { code.hash.cut title=(hash) { (hash) } }
}
