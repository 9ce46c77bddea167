//! An answer laid out as text.

use debora::measure::answer::{Answer, AnswerCell, AnswerColumn, Item, Sentence, Tone};

use crate::terminal::Ink;
use crate::terminal::untrusted::escaped;
use crate::terminal::wrap::broken;

/// The answer as a terminal shows it: blank lines between paragraphs and tables, each sentence on a line of its own.
pub fn laid_out(answer: &Answer, ink: Ink) -> String {
    let mut text = String::new();
    for item in &answer.items {
        // A note belongs to what stands above it.
        if !text.is_empty() && !matches!(item, Item::Note(_)) {
            text.push('\n');
        }
        text += &block(item, ink);
    }
    text
}

fn block(item: &Item, ink: Ink) -> String {
    match item {
        Item::Heading(heading) => lines(&[Sentence::of(Tone::Strong, heading)], ink),
        Item::Paragraph(sentences) | Item::List(sentences) => lines(sentences, ink),
        Item::Facts(facts) => {
            let named = facts.iter().map(|(term, value)| named(term, value));
            lines(&Vec::from_iter(named), ink)
        }
        // As it is, but for what a terminal would obey.
        Item::Quotation(text) => {
            let lines = text.lines().map(|line| escaped(line) + "\n");
            lines.collect()
        }
        Item::Table(table) => super::table(table),
        Item::Figure(figure) => lines(&[Sentence::plain(&figure.caption)], ink),
        Item::Note(note) => ink.faint(&format!("  {}\n", escaped(note))),
    }
}

fn named(term: &str, value: &AnswerCell) -> Sentence {
    let tone = match value {
        AnswerCell::Code(_) => Tone::Faint,
        _ => Tone::Plain,
    };
    let value = AnswerColumn::words("").text(value);
    Sentence::plain(format!("{term} ")).and(tone, value)
}

/// Each sentence on lines of its own.
fn lines(sentences: &[Sentence], ink: Ink) -> String {
    let lines = sentences
        .iter()
        .map(|sentence| broken(&toned(sentence, ink)));
    lines.map(|lines| lines.join("\n") + "\n").collect()
}

fn toned(sentence: &Sentence, ink: Ink) -> String {
    let spans = sentence.0.iter();
    // Before the tone is added: what an answer quotes must not bring escape sequences or line breaks of its own.
    spans
        .map(|span| ink.toned(span.tone, &escaped(&span.text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use debora::measure::answer::{Tone, row_for_each};

    use super::*;

    #[test]
    fn notes_stand_close_and_paragraphs_apart() {
        let mut answer = Answer::with_warnings(&["careful".into()]);
        answer.paragraph([
            Sentence::plain("a: ").and(Tone::Strong, "yes"),
            Sentence::plain("b."),
        ]);
        answer.table(row_for_each([1_u64]).words("x", |x| *x).table());
        answer.note("more");
        assert_eq!(
            laid_out(&answer, Ink::none()),
            "careful\n\na: yes\nb.\n\n  x\n  1\n  more\n"
        );
        let wide = "cell ".repeat(30);
        let mut wide_table = Answer::default();
        wide_table.table(row_for_each([&wide]).words("x", |x| *x).table());
        let lines = laid_out(&wide_table, Ink::none());
        assert!(
            lines.ends_with(&format!("  {}\n", wide.trim_end())),
            "rows are not wrapped"
        );
        let coloured = laid_out(&answer, Ink::terminal());
        assert!(coloured.contains("\n\na: \x1b[1myes\x1b[0m\nb.\n"));
        assert!(coloured.starts_with("\x1b[1;31mcareful\x1b[0m\n"));
    }
}
