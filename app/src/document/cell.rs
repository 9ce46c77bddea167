//! A table's cell as HTML shows it: a value of the library's, or something drawn for the page.

use debora::measure::answer::{AnswerCell, AnswerColumn};
use maud::{Markup, html};

use super::sentence;

/// What a cell shows.
#[derive(Clone, Debug)]
pub enum HtmlCell {
    /// A value, written as its column says.
    Value(AnswerCell),
    /// The value that a row is about.
    Strong(AnswerCell),
    /// A link, a sign, a form or a drawing.
    Drawn(Markup),
}

impl HtmlCell {
    /// A value that stands out.
    pub fn strong(value: impl Into<AnswerCell>) -> Self {
        Self::Strong(value.into())
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Value(AnswerCell::Empty))
    }

    pub(super) fn is_code(&self) -> bool {
        matches!(self, Self::Value(AnswerCell::Code(_)))
    }

    /// The value of a fact, which has no column.
    pub(super) fn of_fact(&self) -> Markup {
        self.markup(&AnswerColumn::words(""))
    }

    pub(super) fn markup(&self, column: &AnswerColumn) -> Markup {
        match self {
            Self::Value(value) => sentence(&column.text(value)),
            Self::Strong(value) => html! { strong { (sentence(&column.text(value))) } },
            Self::Drawn(markup) => markup.clone(),
        }
    }
}

impl From<Markup> for HtmlCell {
    fn from(markup: Markup) -> Self {
        Self::Drawn(markup)
    }
}

impl From<Option<Markup>> for HtmlCell {
    fn from(markup: Option<Markup>) -> Self {
        markup.map_or(Self::Value(AnswerCell::Empty), Self::Drawn)
    }
}

/// One by one: a conversion from all that a value can be made of would meet that from markup.
macro_rules! values {
    ($($kind:ty),*) => {$(
        impl From<$kind> for HtmlCell {
            fn from(value: $kind) -> Self {
                Self::Value(value.into())
            }
        }
    )*};
}

values!(
    AnswerCell,
    &str,
    String,
    &String,
    u32,
    u64,
    f64,
    Option<u32>,
    Option<f64>,
    Option<String>,
    Option<&str>
);
