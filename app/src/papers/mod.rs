//! Documents for people, each one file that can be mailed, printed and kept: the seal of an experiment and its certificate.
//!
//! They hold no script and ask for nothing over the network. The service shows the same text within its pages.

pub mod certificate;
pub mod seal;

use debora::measure::answer::Answer;
use debora::measure::words::amount;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::blocks;

/// An answer as a file of its own.
pub fn document(title: &str, answer: &Answer) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                // Inside the file, which may be mailed or moved alone.
                style { (PreEscaped(include_str!("paper.css"))) }
            }
            body { h1 { (title) } (blocks(answer)) }
        }
    }
}

fn between([low, high]: [f64; 2]) -> String {
    format!("{} to {}", amount(low), amount(high))
}
