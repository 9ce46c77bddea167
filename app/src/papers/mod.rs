//! Documents for people, each one file that can be mailed, printed and kept: the seal of an experiment and its certificate.
//!
//! They hold no script and ask for nothing over the network. The service shows the same text within its pages.

pub mod certificate;
pub mod seal;

use debora::measure::answer::{Align, AnswerColumn, AnswerTable};
use debora::measure::words::amount;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// A text as a file of its own.
pub fn document(title: &str, content: &Markup) -> Markup {
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
            body { h1 { (title) } (content) }
        }
    }
}

/// Sentences as a list.
fn sentences(sentences: &[String]) -> Markup {
    html! { ul { @for sentence in sentences { li { (sentence) } } } }
}

/// Names and what they stand for.
fn facts(facts: &[(&str, Option<&str>)]) -> Markup {
    html! {
        dl.facts {
            // What there is not, such as the key of a spec alone, is left out here and explained in words.
            @for (name, value) in facts {
                @if let Some(value) = value { dt { (name) } dd.hash { (value) } }
            }
        }
    }
}

/// A table, with the side on which each column lines up.
fn columns<const N: usize>(heading: [(&str, Align); N], rows: Vec<Vec<String>>) -> AnswerTable {
    let column = |(name, align): (&str, Align)| AnswerColumn {
        name: name.to_owned(),
        align,
    };
    AnswerTable {
        columns: heading.map(column).into(),
        rows,
    }
}

fn between([low, high]: [f64; 2]) -> String {
    format!("{} to {}", amount(low), amount(high))
}
