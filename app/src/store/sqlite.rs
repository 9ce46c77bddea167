//! A store in one SQLite file: the default.
//!
//! The write-ahead log is synced at every commit (`synchronous = FULL`), so a commit costs one write of the disk however
//! much is in it: that is why requests share one. Readers see the last commit and hold nobody up.

mod closing;
pub mod copying;
mod lock;
mod opening;
mod presence;

use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, Row, Statement, params_from_iter};

use super::Purpose;
use super::database::{Began, Columns, Database, Each, SqlTable, SqlValue};
use super::foreign;
use presence::Presence;

/// Rows that one statement inserts: it stays in the tree where its last row went, and the next one begins at the root. As many as
/// a group of requests often has; 64 store outcomes no faster, and leave such a group to be inserted one by one.
const ROWS_TOGETHER: usize = 16;

/// A connection to a file.
pub struct SqliteFile {
    connection: closing::OpenFile,
    begin: &'static str,
    /// Looked after while a server has the file open.
    presence: Option<Presence>,
    /// Held while a server has the file open.
    _lock: Option<lock::Lock>,
}

impl SqliteFile {
    /// Opens a file.
    pub fn open(path: &Path, purpose: Purpose) -> Result<Self> {
        let (connection, lock) = opening::open(path, purpose)?;
        // A transaction that turns to writing after it has read may be refused for good, so a writer's begins as one.
        let begin = if purpose == Purpose::Read {
            "BEGIN"
        } else {
            "BEGIN IMMEDIATE"
        };
        Ok(Self {
            connection,
            begin,
            // Those who write beside the server for a moment have nothing to acknowledge for hours.
            presence: lock.as_ref().map(|_| Presence::note(path)).transpose()?,
            _lock: lock,
        })
    }

    fn check_presence(&mut self) -> Result<()> {
        self.presence.as_mut().map_or(Ok(()), Presence::check)
    }
}

impl Database for SqliteFile {
    fn begin(&mut self) -> Result<Began> {
        self.execute(self.begin, &[])?;
        if let Err(moved) = self.check_presence() {
            self.rollback();
            return Err(moved);
        }
        // A file is one server's: its own clock serves, and nothing comes between.
        Ok(Began::default())
    }

    fn commit(&mut self) -> Result<()> {
        self.execute("COMMIT", &[])?;
        // Looked at once more before anyone hears of it: the file may have gone in between.
        self.check_presence()
    }

    fn rollback(&mut self) {
        if !self.connection.is_autocommit() {
            // It fails only where SQLite has rolled back by itself.
            let _ = self.execute("ROLLBACK", &[]);
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        // Looked at before the log is moved and removed, which is no success if the file is not where it was.
        let present = self.check_presence().context(
            "the store was not left in one file; before you start a server on it or copy it, put it back with what lies beside it",
        );
        // The lock goes last: nobody else may open the file before it is whole.
        let closed = self.connection.close();
        present.and(closed)
    }

    fn for_update(&self) -> &'static str {
        // A writer's transaction has the file to itself.
        ""
    }

    fn size(&self) -> &'static str {
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    }

    fn foreign(&mut self) -> Result<Vec<String>> {
        foreign::in_sqlite(&self.connection)
    }

    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
        run(&mut *self.connection.prepare_cached(sql)?, values, each)
    }

    fn query_each(
        &mut self,
        sql: &str,
        first: i64,
        seconds: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<()> {
        // SQLite is in this process: a statement that is run again costs a search of the tree, and no way to a server.
        let mut statement = self.connection.prepare_cached(sql)?;
        seconds
            .iter()
            .try_for_each(|second| run(&mut statement, &[first.into(), second.clone()], each))
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
        Ok(self
            .connection
            .prepare_cached(sql)?
            .execute(params_from_iter(values))? as u64)
    }

    fn execute_by_commit(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<()> {
        // There is no way to a server to be saved.
        self.execute(sql, values).map(drop)
    }

    fn insert(&mut self, table: &SqlTable, rows: &[Vec<SqlValue<'_>>]) -> Result<Vec<bool>> {
        let mut added = Vec::with_capacity(rows.len());
        let (groups, rest) = rows.as_chunks::<ROWS_TOGETHER>();
        if !groups.is_empty() {
            // FAIL keeps what went before. To undo it, SQLite would copy every page before it writes to it.
            let sql = write_insertion("INSERT OR FAIL", table, ROWS_TOGETHER);
            let mut together = self.connection.prepare_cached(&sql)?;
            for group in groups {
                let inserted = self.insert_together(&mut together, group)?;
                added.extend(vec![true; inserted]);
                self.insert_each(table, &group[inserted..], &mut added)?;
            }
        }
        self.insert_each(table, rest, &mut added)?;
        Ok(added)
    }
}

impl SqliteFile {
    /// Inserts rows up to the first that is refused, and says how many. Why it is refused is for [`Self::insert_each`] to say.
    fn insert_together(
        &self,
        together: &mut Statement<'_>,
        rows: &[Vec<SqlValue<'_>>],
    ) -> Result<usize> {
        match together.execute(params_from_iter(rows.iter().flatten())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(self.connection.changes() as usize)
            }
            inserted => Ok(inserted?),
        }
    }

    /// Inserts rows one by one, and says of each whether it was new.
    fn insert_each(
        &self,
        table: &SqlTable,
        rows: &[Vec<SqlValue<'_>>],
        added: &mut Vec<bool>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = write_insertion("INSERT", table, 1) + " ON CONFLICT DO NOTHING";
        let mut statement = self.connection.prepare_cached(&sql)?;
        for row in rows {
            added.push(statement.execute(params_from_iter(row))? == 1);
        }
        Ok(())
    }
}

/// The statement that inserts this many rows.
fn write_insertion(verb: &str, table: &SqlTable, rows: usize) -> String {
    // Places without numbers: the text is made for every group of requests, and to print them takes most of its time.
    let row = format!("({})", repeat_listed("?", table.columns.len()));
    format!(
        "{verb} INTO {} ({}) VALUES {}",
        table.name,
        table.columns.join(", "),
        repeat_listed(&row, rows)
    )
}

/// "?, ?, ?".
fn repeat_listed(text: &str, times: usize) -> String {
    let mut list = format!("{text}, ").repeat(times);
    list.truncate(list.len() - ", ".len());
    list
}

fn run(statement: &mut Statement<'_>, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        each(row)?;
    }
    Ok(())
}

impl rusqlite::ToSql for SqlValue<'_> {
    // Called for every value of every row, from whichever unit its statement is compiled in.
    #[inline]
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            SqlValue::Number(number) => number.map(ValueRef::Integer),
            SqlValue::Text(text) => text.map(|text| ValueRef::Text(text.as_bytes())),
            SqlValue::Bytes(bytes) => bytes.as_deref().map(ValueRef::Blob),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

impl Columns for Row<'_> {
    fn number(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.get_ref(column)?.as_i64_or_null()?)
    }

    fn text(&self, column: usize) -> Result<Option<&str>> {
        Ok(self.get_ref(column)?.as_str_or_null()?)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>> {
        Ok(self.get_ref(column)?.as_blob_or_null()?)
    }
}
