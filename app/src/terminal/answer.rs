//! An answer laid out as text.

use debora::measure::answer::{Answer, Item, Sentence};

use crate::terminal::Ink;
use crate::terminal::table::aligned;
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
        match item {
            Item::Paragraph(sentences) => {
                for sentence in sentences {
                    text += &(broken(&toned(sentence, ink)).join("\n") + "\n");
                }
            }
            Item::Table(table) => text += &aligned(table),
            Item::Note(note) => text += &ink.faint(&format!("  {}\n", escaped(note))),
        }
    }
    text
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
    use debora::measure::answer::{AnswerTable, Tone};

    use super::*;

    #[test]
    fn notes_stand_close_and_paragraphs_apart() {
        let mut answer = Answer::with_warnings(&["careful".into()]);
        answer.paragraph([
            Sentence::plain("a: ").and(Tone::Strong, "yes"),
            Sentence::plain("b."),
        ]);
        answer.table(AnswerTable::of_numbers(["x"], vec![vec!["1".into()]]));
        answer.note("more");
        assert_eq!(
            laid_out(&answer, Ink::none()),
            "careful\n\na: yes\nb.\n\n  x\n  1\n  more\n"
        );
        let wide = "cell ".repeat(30);
        let mut wide_table = Answer::default();
        wide_table.table(AnswerTable::of_numbers(["x"], vec![vec![wide.clone()]]));
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
