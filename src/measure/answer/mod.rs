//! What was found, for people, as data: sentences that carry a tone, tables of typed cells, facts, figures.
//!
//! Colours, widths and line breaks are the reader's. The program lays an answer out for a terminal and as HTML, and Python for a
//! console and a notebook, each from these items; none has to take text apart.

mod gaps;
mod import;
mod pairs;
mod plan;
mod run;
mod sweep;
mod table;
mod trial;

use serde::Serialize;

pub use import::imported;
pub use pairs::measured;
pub use plan::{holdback, plan};
pub use run::run;
pub use sweep::swept;
pub use table::{
    Align, AnswerCell, AnswerColumn, AnswerTable, NumberFormat, TableDraft, row_for_each,
};
pub use trial::{look_test, picked};

/// Blocks in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// What matters most comes first.
    pub items: Vec<Item>,
}

/// One block of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    /// What the blocks up to the next heading are about.
    Heading(String),
    /// Sentences that belong together. Each says one thing, so a reader may give each a line.
    Paragraph(Vec<Sentence>),
    /// Sentences of equal weight, none of which builds on another.
    List(Vec<Sentence>),
    /// Terms, each with its value.
    Facts(Vec<(String, AnswerCell)>),
    /// A text as it stands elsewhere: a spec, or a command to type.
    Quotation(String),
    /// Rows under a heading.
    Table(AnswerTable),
    /// A drawing.
    Figure(AnswerFigure),
    /// What matters less, about the item before it.
    Note(String),
}

/// A drawing and what it shows. The drawing is for readers that show HTML; the caption is for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerFigure {
    /// SVG within HTML, with the legend.
    pub drawing: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// Where the numbers behind it are, as an address without the ending.
    pub data: Option<String>,
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

    /// The sentences of its paragraphs, one by one, without tones.
    pub fn sentences(&self) -> Vec<String> {
        let paragraphs = self.items.iter().filter_map(|item| match item {
            Item::Paragraph(sentences) => Some(sentences),
            _ => None,
        });
        let text = |sentence: &Sentence| sentence.0.iter().map(|span| &*span.text).collect();
        paragraphs.flatten().map(text).collect()
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.items.push(Item::Heading(text.into()));
    }

    /// Adds sentences of equal weight; without any, nothing.
    pub fn list(&mut self, sentences: impl IntoIterator<Item = impl Into<String>>) {
        let sentences: Vec<Sentence> = sentences.into_iter().map(Sentence::plain).collect();
        if !sentences.is_empty() {
            self.items.push(Item::List(sentences));
        }
    }

    /// Adds terms with their values. Those without a value are left out.
    pub fn facts<C: Into<AnswerCell>>(
        &mut self,
        facts: impl IntoIterator<Item = (impl Into<String>, C)>,
    ) {
        let facts = facts
            .into_iter()
            .map(|(term, value)| (term.into(), value.into()));
        let known = facts.filter(|(_, value)| *value != AnswerCell::Empty);
        self.items.push(Item::Facts(known.collect()));
    }

    /// Adds a text as it stands elsewhere.
    pub fn quotation(&mut self, text: impl Into<String>) {
        self.items.push(Item::Quotation(text.into()));
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
