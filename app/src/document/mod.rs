//! Answers as HTML: the one renderer for the report, the papers and the pages.
//!
//! What is shown is described as data, by the library's answers and by tables with a cell for each item and column; classes,
//! headings, labels and the direction of names are made here. The text renderer of the same data is `terminal`.

mod cell;
mod data;
mod direction;
mod table;

use debora::measure::answer::{Answer, AnswerFigure, Item, Sentence, Span, Tone};
use maud::{Markup, PreEscaped, html};

pub use cell::HtmlCell;
pub use data::{csv, json, word};
pub use direction::sentence;
pub use table::{HtmlTable, RowMark, scroll, values_table};

/// An answer, block by block.
pub fn blocks(answer: &Answer) -> Markup {
    html! { @for item in &answer.items { (block(item)) } }
}

fn block(item: &Item) -> Markup {
    match item {
        Item::Heading(text) => html! { h2 { (text) } },
        Item::Paragraph(sentences) => html! { @for one in sentences { (paragraph(one)) } },
        Item::List(sentences) => html! {
            ul.sentences { @for one in sentences { li { (words(one)) } } }
        },
        Item::Facts(entries) => facts(entries.iter().map(|(term, value)| (&**term, value.clone()))),
        Item::Quotation(text) => html! { pre { (text) } },
        Item::Table(table) => values_table(table),
        Item::Figure(drawn) => figure(drawn),
        Item::Note(text) => html! { p.small { (sentence(text)) } },
    }
}

fn paragraph(sentence: &Sentence) -> Markup {
    let alarming = sentence.0.iter().all(|span| span.tone == Tone::Alarm);
    html! { p class=[alarming.then_some("alarm")] { (words(sentence)) } }
}

fn words(sentence: &Sentence) -> Markup {
    html! { @for span in &sentence.0 { (toned(span)) } }
}

fn toned(span: &Span) -> Markup {
    match span.tone {
        Tone::Plain => sentence(&span.text),
        Tone::Strong | Tone::Alarm => html! { strong { (sentence(&span.text)) } },
        // A hash is the one faint thing in answers: it may be broken anywhere, or a phone would have to scroll.
        Tone::Faint => html! { span.hash { (span.text) } },
    }
}

/// Terms and what they stand for. Those without a value are left out.
pub fn facts<'a, C: Into<HtmlCell>>(entries: impl IntoIterator<Item = (&'a str, C)>) -> Markup {
    let entries = entries
        .into_iter()
        .map(|(term, value)| (term, value.into()));
    html! {
        dl.facts {
            @for (term, value) in entries.filter(|(_, value)| !value.is_empty()) {
                dt { (term) }
                dd class=[value.is_code().then_some("hash")] { (value.of_fact()) }
            }
        }
    }
}

/// A few numbers, each under what it is.
pub fn numbers<'a>(entries: impl IntoIterator<Item = (&'a str, impl Into<HtmlCell>)>) -> Markup {
    html! {
        dl.numbers {
            @for (name, value) in entries { div { dt { (name) } dd { (value.into().of_fact()) } } }
        }
    }
}

/// A figure with what it shows in words, and where the numbers behind it are.
pub fn figure(figure: &AnswerFigure) -> Markup {
    html! {
        figure {
            (PreEscaped(&figure.drawing))
            figcaption {
                (figure.caption)
                @if let Some(data) = &figure.data {
                    " " span.data { "Data: " a href={ (data) ".csv" } { "CSV" } ", " a href={ (data) ".json" } { "JSON" } "." }
                }
            }
        }
    }
}
