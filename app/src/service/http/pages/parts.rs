//! What several pages are made of.

use maud::{Markup, html};

pub use crate::document::{blocks as answer, scroll, sentence};
use crate::reading::LimitVerdict;

/// The pages of an experiment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Overview,
    Epochs,
    Audit,
    Compare,
    Papers,
}

/// An experiment's name, and the ways between its pages.
pub fn heading(id: &str, name: &str, here: Tab) -> Markup {
    let tabs = [
        (Tab::Overview, "Overview", ""),
        (Tab::Epochs, "Epochs", "/epochs"),
        (Tab::Audit, "Audit", "/audit"),
        (Tab::Compare, "Compare", "/diff"),
        (Tab::Papers, "Certificate", "/certificate"),
    ];
    html! {
        h1 { bdi { (name) } }
        nav.tabs aria-label="This experiment" {
            @for (tab, text, path) in tabs {
                a href={ "/experiments/" (id) (path) } aria-current=[(tab == here).then_some("page")] { (text) }
            }
        }
    }
}

/// A word in a colour of its own. The word says it all: colours are for those who see them.
pub fn badge(class: &str, word: &str) -> Markup {
    html! { span.badge.(class) { (word) } }
}

/// Whether a limit was kept: the class of its badge, and the words on it.
pub fn verdict(verdict: LimitVerdict) -> [&'static str; 2] {
    let words = match verdict {
        LimitVerdict::Unknown => "not known",
        known => known.word(),
    };
    [verdict.word(), words]
}

/// Something to look into, and what to do about it.
pub fn alert(sentence: &str, remedy: &str) -> Markup {
    html! {
        div.alarm role="note" {
            p { strong { (self::sentence(sentence)) } }
            @if !remedy.is_empty() { p { (self::sentence(remedy)) } }
        }
    }
}

/// One of several views, as links: they work without scripts, and the address keeps the choice.
pub fn choices(label: &str, options: &[(&str, String, bool)]) -> Markup {
    html! {
        nav.choices aria-label=(label) {
            @for (text, address, chosen) in options {
                a href=(address) aria-current=[chosen.then_some("true")] { (text) }
            }
        }
    }
}

/// A figure with what it shows in words, and the numbers behind it: `data` is their address without the ending.
pub fn figure(drawing: &Markup, legend: &Markup, caption: &str, data: &str) -> Markup {
    html! {
        figure {
            (drawing)
            (legend)
            figcaption {
                (caption) " "
                span.data { "Data: " a href={ (data) ".csv" } { "CSV" } ", " a href={ (data) ".json" } { "JSON" } "." }
            }
        }
    }
}
