//! What was found, for people, as data: sentences that carry a tone, and tables.
//!
//! Colours, widths and line breaks are the reader's. The program lays an answer out for a terminal and for its report, and
//! Python for a console and a notebook, each from these items; none has to take text apart.

mod gaps;
mod import;
mod pairs;
mod plan;
mod run;
mod sweep;
mod trial;

use serde::Serialize;

pub use import::imported;
pub use pairs::measured;
pub use plan::{holdback, plan};
pub use run::run;
pub use sweep::swept;
pub use trial::{look_test, picked};

/// Paragraphs, tables and notes, in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// What matters most comes first.
    pub items: Vec<Item>,
}

/// One block of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    /// Sentences that belong together. Each says one thing, so a reader may give each a line.
    Paragraph(Vec<Sentence>),
    /// Rows under a heading.
    Table(AnswerTable),
    /// What matters less, about the item before it.
    Note(String),
}

/// A sentence, stretch by stretch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence(pub Vec<Span>);

/// Words in one tone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// How it is said.
    pub tone: Tone,
    /// The words.
    pub text: String,
}

/// How words are meant to be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// As they are.
    Plain,
    /// The answer itself.
    Strong,
    /// A warning or a broken promise.
    Alarm,
    /// What matters less.
    Faint,
}

/// A table; every row has a cell for each column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerTable {
    /// Name and alignment of each column.
    pub columns: Vec<AnswerColumn>,
    /// Cell by cell.
    pub rows: Vec<Vec<String>>,
}

/// A column's heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerColumn {
    /// What it shows.
    pub name: String,
    /// Where its cells line up.
    pub align: Align,
}

/// The side on which cells line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

impl Answer {
    /// An answer that begins with what a person must know first: a paragraph for each warning.
    pub fn with_warnings(warnings: &[String]) -> Self {
        let mut answer = Self::default();
        // A paragraph for each: they are about different things, and none may be overlooked.
        for warning in warnings {
            answer.paragraph([Sentence::of(Tone::Alarm, warning)]);
        }
        answer
    }

    /// Adds sentences that belong together; without any, nothing.
    pub fn paragraph(&mut self, sentences: impl IntoIterator<Item = Sentence>) {
        let sentences: Vec<Sentence> = sentences.into_iter().collect();
        // Callers pass what may turn out to be nothing, and a reader would show an empty paragraph as a gap.
        if !sentences.is_empty() {
            self.items.push(Item::Paragraph(sentences));
        }
    }

    /// Its sentences, one by one, without tones; tables and notes are left out.
    pub fn sentences(&self) -> Vec<String> {
        let paragraphs = self.items.iter().filter_map(|item| match item {
            Item::Paragraph(sentences) => Some(sentences),
            _ => None,
        });
        let text = |sentence: &Sentence| sentence.0.iter().map(|span| &*span.text).collect();
        paragraphs.flatten().map(text).collect()
    }

    /// Adds a table.
    pub fn table(&mut self, table: AnswerTable) {
        self.items.push(Item::Table(table));
    }

    /// Adds a note to the item before it.
    pub fn note(&mut self, text: impl Into<String>) {
        self.items.push(Item::Note(text.into()));
    }
}

impl Sentence {
    /// A sentence in one tone.
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self(Vec::new()).and(tone, text)
    }

    /// A sentence as it is.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::of(Tone::Plain, text)
    }

    /// More words of the same sentence.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        self.0.push(Span { tone, text });
        self
    }
}

impl AnswerTable {
    /// A table whose first column names what the numbers in the others are about.
    pub fn of_numbers<S: Into<String>>(
        heading: impl IntoIterator<Item = S>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let columns: Vec<AnswerColumn> = heading
            .into_iter()
            .enumerate()
            .map(|(place, name)| AnswerColumn {
                name: name.into(),
                align: if place == 0 {
                    Align::Left
                } else {
                    Align::Right
                },
            })
            .collect();
        // Readers index cells by column: a row of another length is a mistake made here.
        assert!(rows.iter().all(|row| row.len() == columns.len()));
        Self { columns, rows }
    }
}
