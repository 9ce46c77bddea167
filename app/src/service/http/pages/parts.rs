//! What several pages are made of.

use debora::measure::answer::{Answer, AnswerTable, Item, Sentence, Span, Tone};
use maud::{Markup, Render, html};

use crate::log::kept::LimitVerdict;

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

/// A sentence that may hold names: what is written from right to left stands apart, or the words and numbers around it would
/// change places.
pub fn sentence(text: &str) -> Markup {
    html! {
        @for (apart, part) in directed(text) {
            @if apart { bdi { (part) } } @else { (part) }
        }
    }
}

/// The parts of a text, and whether each is written from right to left. Names are not marked in sentences, which programs get, too:
/// a run of words that hold a letter of such a script is taken for one.
fn directed(text: &str) -> Vec<(bool, &str)> {
    let mut parts: Vec<(bool, usize, usize)> = Vec::new();
    let mut place = 0;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches([' ', ',', '.', ':', ';']);
        let apart = bare.contains(is_from_the_right);
        let ends = [place + bare.len(), place + word.len()];
        match parts.last_mut() {
            // A blank alone between two of them: both are of one name.
            Some((true, _, end))
                if apart && text[*end..place].trim().is_empty() && text[*end..place].len() <= 1 =>
            {
                *end = ends[0]
            }
            _ if apart => parts.push((true, place, ends[0])),
            _ => {}
        }
        place = ends[1];
    }
    let mut directed = Vec::new();
    let mut from = 0;
    for (_, begin, end) in parts {
        directed.extend([(false, &text[from..begin]), (true, &text[begin..end])]);
        from = end;
    }
    directed.push((false, &text[from..]));
    directed.retain(|(_, part)| !part.is_empty());
    directed
}

/// Letters of scripts that are written so, and the signs that change the direction of what follows.
fn is_from_the_right(letter: char) -> bool {
    matches!(letter,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A word in a colour of its own. The word says it all: colours are for those who see them.
pub fn badge(class: &str, word: &str) -> Markup {
    html! { span.badge.(class) { (word) } }
}

/// Whether a limit was kept: the class of its badge, and the words on it.
pub fn verdict(verdict: LimitVerdict) -> [&'static str; 2] {
    match verdict {
        LimitVerdict::Kept => ["kept", "kept"],
        LimitVerdict::Exceeded => ["exceeded", "exceeded"],
        LimitVerdict::Unknown => ["unknown", "not yet known"],
    }
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

/// A table that scrolls by itself where the page is narrower, by keyboard too.
pub fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
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

/// A few numbers, each under what it is.
pub fn numbers(entries: &[(&str, &dyn Render)]) -> Markup {
    html! {
        dl.numbers {
            @for (name, value) in entries { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// An answer as a terminal has it: what matters most first, a line for each sentence.
pub fn answer(answer: &Answer) -> Markup {
    html! {
        @for item in &answer.items {
            @match item {
                Item::Paragraph(sentences) => @for sentence in sentences { (spans(sentence)) },
                Item::Table(table) => (answer_table(table)),
                Item::Note(note) => p.small { (self::sentence(note)) },
            }
        }
    }
}

fn spans(sentence: &Sentence) -> Markup {
    html! { p { @for span in &sentence.0 { (self::span(span)) } } }
}

fn span(span: &Span) -> Markup {
    // A hash is the one faint thing in these answers: it may be broken anywhere, or a phone would have to scroll.
    html! {
        @match span.tone {
            Tone::Strong | Tone::Alarm => strong { (self::sentence(&span.text)) },
            Tone::Faint => span.hash { (span.text) },
            _ => (self::sentence(&span.text)),
        }
    }
}

fn answer_table(table: &AnswerTable) -> Markup {
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let drawn = html! {
        table {
            thead { tr { @for (place, name) in names.iter().enumerate() { th.number[place > 0] scope="col" { (name) } } } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            @if place == 0 { th scope="row" { bdi { (cell) } } } @else { td.number { (cell) } }
                        }
                    }
                }
            }
        }
    };
    scroll(&names.join(", "), &drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_written_from_the_right_stand_apart() {
        let shown = |text: &str| sentence(text).into_string();
        assert_eq!(
            shown("The best is \u{5d0}\u{5d1} 60 %, \u{5d2} \u{5d3} 30 % and <c> 10 %."),
            "The best is <bdi>\u{5d0}\u{5d1}</bdi> 60 %, <bdi>\u{5d2} \u{5d3}</bdi> 30 % and &lt;c&gt; 10 %."
        );
        // Two names after each other, and one that turns what follows around.
        assert_eq!(
            shown("\u{5d0}, \u{5d1} and a\u{202e}b."),
            "<bdi>\u{5d0}</bdi>, <bdi>\u{5d1}</bdi> and <bdi>a\u{202e}b</bdi>."
        );
        assert_eq!(shown("Of a & b: 1,000."), "Of a &amp; b: 1,000.");
    }
}
