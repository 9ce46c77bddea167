//! The epochs of an experiment: a list, and a page each.

mod grids;
pub mod list;
pub mod one;

use debora::record::{Kind, Rule};
use maud::{Markup, html};

use super::parts;

/// How an epoch's strategy was found, as a word.
fn kind_badge(kind: Kind, rule: Option<Rule>) -> Markup {
    let (class, word) = match kind {
        Kind::Explore => ("waiting", "explore"),
        Kind::Estimate => ("good", "estimate"),
        Kind::Infeasible => ("bad", "infeasible"),
        Kind::Commit => ("committed", "commit"),
        Kind::Pick => ("committed", "pick"),
    };
    let rule = rule.map(|rule| match rule {
        Rule::Moderate => "moderate",
        Rule::Optimistic => "optimistic",
        Rule::Mix => "mix",
        Rule::Plan => "plan",
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
