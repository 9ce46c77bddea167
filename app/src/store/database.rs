//! What a database must do to carry a store: run statements, and insert many rows at once.
//!
//! Statements are written once for all databases, in the SQL that they share. Their values are `$1`, `$2`, .. in the order
//! in which they first appear, since SQLite counts them so.

use std::borrow::Cow;

use anyhow::{Context as _, Result};

/// A value on its way into a database. Each kind may be missing, and has a type even then.
// Typed even where it is missing: PostgreSQL must know what a NULL is a NULL of before it prepares the statement.
#[derive(Clone, Debug)]
pub enum SqlValue<'a> {
    Number(Option<i64>),
    Text(Option<&'a str>),
    Bytes(Option<Cow<'a, [u8]>>),
}

impl SqlValue<'_> {
    /// The number, of a value that is one.
    pub fn as_number(&self) -> Option<i64> {
        if let Self::Number(number) = self {
            *number
        } else {
            None
        }
    }

    /// The text, of a value that is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            *text
        } else {
            None
        }
    }

    /// The bytes, of a value that is some.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self {
            bytes.as_deref()
        } else {
            None
        }
    }
}

/// A row on its way out, by column from 0.
pub trait Columns {
    fn number(&self, column: usize) -> Result<Option<i64>>;
    fn text(&self, column: usize) -> Result<Option<&str>>;
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>>;
}

pub(super) fn number(row: &dyn Columns, column: usize) -> Result<i64> {
    row.number(column)?
        .context("the store lacks a number that must be there")
}

pub(super) fn text(row: &dyn Columns, column: usize) -> Result<&str> {
    row.text(column)?
        .context("the store holds no text where one must be")
}

pub(super) fn bytes(row: &dyn Columns, column: usize) -> Result<&[u8]> {
    row.bytes(column)?
        .context("the store holds no bytes where some must be")
}

/// Rows that are added many at a time.
pub struct SqlTable {
    pub name: &'static str,
    /// All columns; those of the primary key come first, and are numbers.
    pub columns: &'static [&'static str],
    pub keys: usize,
}

/// What is done with each row of an answer.
pub type Each<'a> = &'a mut dyn FnMut(&dyn Columns) -> Result<()>;

/// What is known when a transaction begins ([`super::Store::now`], [`super::Store::connection`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Began {
    pub now: Option<i64>,
    pub connection: u64,
}

/// One connection.
pub trait Database: Send {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<Began>;
    /// Ends it; its writes are on the disk when this returns.
    fn commit(&mut self) -> Result<()>;
    /// Ends it without its writes, whatever state it is in.
    fn rollback(&mut self);
    /// Ends the connection of a server that stops.
    fn close(self: Box<Self>) -> Result<()>;
    /// What makes a row that is read stay as it is until the transaction's end.
    fn for_update(&self) -> &'static str;
    /// The query for the bytes that all tables take.
    fn size(&self) -> &'static str;

    /// In what it differs from one that this program makes, but for rows ([`super::foreign`]).
    fn foreign(&mut self) -> Result<Vec<String>>;
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()>;
    /// Runs a query that ends in `= $2`, for `$1` and each of these in the place of `$2`; rows come in any order.
    fn query_each(
        &mut self,
        sql: &str,
        first: i64,
        seconds: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<()>;
    /// Runs a statement, and says how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64>;
    /// Runs a statement before the next one, at the latest with the commit, which fails if it does.
    fn execute_by_commit(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<()>;
    /// Inserts rows whose keys are distinct, and says of each whether it was new; one that was not changes nothing.
    fn insert(&mut self, table: &SqlTable, rows: &[Vec<SqlValue<'_>>]) -> Result<Vec<bool>>;
}

impl From<i64> for SqlValue<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for SqlValue<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for SqlValue<'_> {
    fn from(truth: bool) -> Self {
        Self::Number(Some(truth.into()))
    }
}

impl<'a> From<&'a str> for SqlValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<&'a String> for SqlValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<&'a Option<String>> for SqlValue<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self::Text(text.as_deref())
    }
}

impl<'a> From<&'a [u8]> for SqlValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(bytes.into()))
    }
}

impl From<Vec<u8>> for SqlValue<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes.into()))
    }
}

impl<'a> From<&'a Option<Vec<u8>>> for SqlValue<'a> {
    fn from(bytes: &'a Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes.as_deref().map(Cow::from))
    }
}

/// Values of several types in one list.
// A macro, since a function would need one type for all, or a `From` at each value.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::store::database::SqlValue::from($value)),*] };
}
pub(super) use values;
