//! Tables as data: a column says once how its cells line up and how its numbers are written, and a cell holds the value itself.
//!
//! So one table serves a terminal, a page and a file of numbers: people get three digits, programs get all.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::measure::words::{percent, share_to_tenths, significant, whole};

/// A table; every row has a cell for each column. Readers with cells of their own, such as drawings, have another `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerTable<C = AnswerCell> {
    /// Name, alignment and number format of each column.
    pub columns: Vec<AnswerColumn>,
    /// Cell by cell.
    pub rows: Vec<Vec<C>>,
}

/// A table in the making: each column is described with what it shows of an item.
#[derive(Debug)]
pub struct TableDraft<T, C = AnswerCell> {
    items: Vec<T>,
    table: AnswerTable<C>,
}

/// What a column shows, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerColumn {
    /// Its heading.
    pub name: String,
    /// Where its cells line up.
    pub align: Align,
    /// How its numbers are written for people.
    #[serde(skip)]
    pub format: NumberFormat,
}

/// The side on which cells line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
    /// Drawings, which take the room that is left.
    Wide,
}

/// How numbers are written for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// To this many significant digits.
    Digits(i32),
    /// Shares of one, as percentages with the decimals that they need.
    Percent,
    /// Shares of one, to a tenth of a percent.
    Tenths,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerCell {
    /// There is none.
    Empty,
    /// Words.
    Text(String),
    /// What is copied rather than read, such as a hash.
    Code(String),
    /// How many.
    Count(u64),
    /// A quantity, with all its digits.
    Number(f64),
}

impl AnswerColumn {
    /// A column of words.
    pub fn words(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            align: Align::Left,
            format: NumberFormat::Digits(3),
        }
    }

    fn of_numbers(name: impl Into<String>, format: NumberFormat) -> Self {
        Self {
            align: Align::Right,
            format,
            ..Self::words(name)
        }
    }

    /// A cell of this column as people read it.
    pub fn text(&self, cell: &AnswerCell) -> String {
        match (cell, self.format) {
            (AnswerCell::Empty, _) => String::new(),
            (AnswerCell::Text(text) | AnswerCell::Code(text), _) => text.clone(),
            (AnswerCell::Count(count), _) => whole(*count),
            (AnswerCell::Number(number), NumberFormat::Digits(digits)) => {
                significant(*number, digits)
            }
            (AnswerCell::Number(share), NumberFormat::Percent) => percent(*share),
            (AnswerCell::Number(share), NumberFormat::Tenths) => share_to_tenths(*share),
        }
    }
}

/// A table with a row for each of these, and no column yet.
pub fn row_for_each<T, C>(items: impl IntoIterator<Item = T>) -> TableDraft<T, C> {
    let items: Vec<T> = items.into_iter().collect();
    let rows = items.iter().map(|_| Vec::new()).collect();
    let columns = Vec::new();
    TableDraft {
        items,
        table: AnswerTable { columns, rows },
    }
}

impl<T, C> TableDraft<T, C> {
    fn column<V: Into<C>>(mut self, column: AnswerColumn, cell: impl Fn(&T) -> V) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.push(cell(item).into());
        }
        self.table.columns.push(column);
        self
    }

    /// A column of words.
    #[must_use]
    pub fn words<V: Into<C>>(self, name: impl Into<String>, cell: impl Fn(&T) -> V) -> Self {
        self.column(AnswerColumn::words(name), cell)
    }

    /// A column of counts and quantities, the latter to three digits.
    #[must_use]
    pub fn numbers<V: Into<C>>(self, name: impl Into<String>, cell: impl Fn(&T) -> V) -> Self {
        self.digits(3, name, cell)
    }

    /// A column of quantities to this many digits.
    #[must_use]
    pub fn digits<V: Into<C>>(
        self,
        digits: i32,
        name: impl Into<String>,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        let column = AnswerColumn::of_numbers(name, NumberFormat::Digits(digits));
        self.column(column, cell)
    }

    /// A column of shares of one.
    #[must_use]
    pub fn shares<V: Into<C>>(self, name: impl Into<String>, cell: impl Fn(&T) -> V) -> Self {
        self.column(AnswerColumn::of_numbers(name, NumberFormat::Percent), cell)
    }

    /// A column of probabilities that are compared with each other.
    #[must_use]
    pub fn probabilities<V: Into<C>>(
        self,
        name: impl Into<String>,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        self.column(AnswerColumn::of_numbers(name, NumberFormat::Tenths), cell)
    }

    /// A column of drawings.
    #[must_use]
    pub fn drawings<V: Into<C>>(self, name: impl Into<String>, cell: impl Fn(&T) -> V) -> Self {
        let column = AnswerColumn {
            align: Align::Wide,
            ..AnswerColumn::words(name)
        };
        self.column(column, cell)
    }

    /// More columns, if they have something to show.
    #[must_use]
    pub fn when(self, holds: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if holds { columns(self) } else { self }
    }

    /// The table.
    pub fn table(self) -> AnswerTable<C> {
        self.table
    }
}

impl AnswerTable {
    /// Its cells as people read them.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let texts = |row: &Vec<AnswerCell>| {
            let cells = self.columns.iter().zip(row);
            cells.map(|(column, cell)| column.text(cell)).collect()
        };
        self.rows.iter().map(texts).collect()
    }
}

/// As texts: whoever gets an answer as data lays it out, and has the values in the document beside it.
impl Serialize for AnswerTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serializer.serialize_struct("AnswerTable", 2)?;
        table.serialize_field("columns", &self.columns)?;
        table.serialize_field("rows", &self.texts())?;
        table.end()
    }
}

impl Serialize for AnswerCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Of a fact, which has no column.
        AnswerColumn::words("").text(self).serialize(serializer)
    }
}

impl AnswerCell {
    /// A value that a reader looks for, and should not take for forgotten where there is none.
    pub fn or_none(value: Option<impl Into<Self>>) -> Self {
        value.map_or("none".into(), Into::into)
    }
}

/// Each kind of value becomes the cell that shows it.
macro_rules! cells {
    ($($kind:ty => $cell:ident),*) => {$(
        impl From<$kind> for AnswerCell {
            fn from(value: $kind) -> Self {
                Self::$cell(value.into())
            }
        }
    )*};
}

cells!(&str => Text, String => Text, &String => Text, u32 => Count, u64 => Count, f64 => Number);

impl<T: Into<AnswerCell>> From<Option<T>> for AnswerCell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}
