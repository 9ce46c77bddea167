//! A store in a PostgreSQL database, which several nodes may share.
//!
//! A node writes through one connection, since all its requests share one commit; a pool would have nothing to do. So it is
//! used on plain threads, and must not be called from within an asynchronous task.
//!
//! A connection that is lost is made again when the next transaction begins. The open one is lost with it: if it was just
//! being committed it was kept whole or not at all, and only looking tells which.

mod client;
mod handshake;
mod opening;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::{Context as _, Result};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, SimpleQueryMessage, SimpleQueryRow, Statement};

use super::Purpose;
use super::database::{Began, Columns, Database, Each, SqlTable, SqlValue};
use super::foreign;
use client::{Client, Parameters, Unsent};

pub use opening::{parse, redact};

/// As many rows are taken to be new until the server says otherwise. It then neither looks for each before it inserts it nor makes
/// sure afterwards, which is more than half of its work; for fewer rows that is less than the way to it that the savepoint takes.
const ROWS_TAKEN_FOR_NEW: usize = 64;

/// The server's clock in milliseconds, and when it was started in microseconds.
const LOOK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";

/// Whether a database has a store's tables.
pub fn is_made(url: &str) -> Result<bool> {
    let mut client = opening::connect(&parse(url)?, Purpose::Read)?;
    opening::is_made(&mut client)
}

/// A connection to a server.
pub struct PostgresServer {
    client: Client,
    address: opening::Address,
    purpose: Purpose,
    /// What the server has prepared for this connection, by its SQL.
    statements: BTreeMap<String, Statement>,
    in_transaction: bool,
    /// Whether a transaction could not be ended: BEGIN would join it.
    stuck: bool,
    /// Whether the transaction has a savepoint.
    saved: bool,
    /// What is sent with the next statement.
    waiting: Vec<Unsent>,
    /// Counts the connections, and the servers behind them.
    connection: u64,
    /// When the server behind the connection was started.
    server_start: Option<i64>,
}

impl PostgresServer {
    /// Connects to a server.
    pub fn open(url: &str, purpose: Purpose) -> Result<Self> {
        let address = parse(url)?;
        let mut client = opening::connect(&address, purpose)?;
        opening::prepare(&mut client, purpose)
            .with_context(|| format!("cannot open the store {}", redact(&address)))?;
        Ok(Self {
            client,
            address,
            purpose,
            statements: BTreeMap::new(),
            in_transaction: false,
            stuck: false,
            saved: false,
            waiting: Vec::new(),
            connection: 0,
            server_start: None,
        })
    }

    fn reconnect(&mut self) -> Result<()> {
        self.client = opening::connect(&self.address, self.purpose)?;
        self.connection += 1;
        self.statements.clear();
        self.stuck = false;
        Ok(())
    }

    /// Counts another server: a pooler's connection stays when the server behind it is restored, or a standby takes its place.
    fn note_server(&mut self, start: i64) {
        if self
            .server_start
            .replace(start)
            .is_some_and(|before| before != start)
        {
            self.connection += 1;
        }
    }

    /// Runs something, and once more if the connection turns out to be lost and no transaction is lost with it.
    fn run<T>(&mut self, run: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T> {
        match run(self) {
            Err(error) if !self.in_transaction && is_lost(&error) => {
                self.reconnect()?;
                Ok(run(self)?)
            }
            result => Ok(result?),
        }
    }

    /// Sends something after what waits ([`Client::send`]).
    fn send<T>(
        &mut self,
        last: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        self.client.send(&mem::take(&mut self.waiting), last)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        // Parsing and planning would be most of what a small statement costs, and one more way to the server and back.
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self
            .client
            .send(&[], async |client| client.prepare(sql).await)??;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn rows(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.run(|server| {
            let statement = server.prepare(sql)?;
            server.send(async |client| client.query(&statement, parameters).await)?
        })
    }

    /// Inserts rows that are taken to be new: whether they were. If not, none of them is there.
    fn insert_new(&mut self, sql: &str, columns: Parameters<'_>) -> Result<bool> {
        // One that is not released here is released by the commit.
        if mem::replace(&mut self.saved, true) {
            self.waiting.push(Unsent::Text("RELEASE before_rows"));
        }
        self.waiting.push(Unsent::Text("SAVEPOINT before_rows"));
        let statement = self.prepare(sql)?;
        match self.send(async |client| client.execute(&statement, columns).await)? {
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                self.client.batch_execute("ROLLBACK TO before_rows")?;
                Ok(false)
            }
            inserted => Ok(inserted.map(|_| true)?),
        }
    }
}

impl Database for PostgresServer {
    fn begin(&mut self) -> Result<Began> {
        // A reader's transaction stays at one commit; a writer's must see what others committed while it waited for a lock.
        let begin = match self.purpose {
            Purpose::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Purpose::Serve | Purpose::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        };
        // With the beginning, so that it costs no way to the server and back of its own.
        let sql = format!("{begin}; {LOOK}");
        // The server forgets the transaction with the connection.
        if self.stuck {
            self.reconnect()?;
        }
        let messages =
            self.run(|server| server.send(async |client| client.simple_query(&sql).await)?)?;
        self.in_transaction = true;
        self.saved = false;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.context("the server does not say what time it is")?;
        self.note_server(read_number(row, 1)?);
        Ok(Began {
            now: Some(read_number(row, 0)?),
            connection: self.connection,
        })
    }

    fn commit(&mut self) -> Result<()> {
        // Never repeated on a new connection: whether it was kept is not known, and there is nothing left to commit.
        // If what waited fails, the server undoes the transaction where it is asked to commit it.
        self.send(async |client| client.batch_execute("COMMIT").await)??;
        self.in_transaction = false;
        Ok(())
    }

    fn rollback(&mut self) {
        self.waiting.clear();
        self.stuck = self.client.batch_execute("ROLLBACK").is_err();
        self.in_transaction = false;
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Everything that matters is the server's.
        Ok(())
    }

    fn for_update(&self) -> &'static str {
        if self.purpose == Purpose::Read {
            // A transaction that only reads is refused locks.
            ""
        } else {
            " FOR UPDATE"
        }
    }

    fn size(&self) -> &'static str {
        // Of the schema, not of the database, which others may use as well.
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    }

    fn foreign(&mut self) -> Result<Vec<String>> {
        let mut objects = BTreeSet::new();
        self.query(foreign::IN_POSTGRES, &[], &mut |row| {
            objects.extend(row.text(0)?.map(String::from));
            Ok(())
        })?;
        foreign::in_postgres(&objects)
    }

    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
        self.rows(sql, &parameters(values))?
            .iter()
            .try_for_each(|row| each(row))
    }

    fn query_each(
        &mut self,
        sql: &str,
        first: i64,
        seconds: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<()> {
        if seconds.is_empty() {
            return Ok(());
        }
        let sql = sql
            .strip_suffix("= $2")
            .context("a query for each value must end in = $2")?;
        // One way to the server for all of them, not one for each.
        let seconds = column(seconds.iter());
        self.rows(&format!("{sql}= ANY($2)"), &[&first, &*seconds])?
            .iter()
            .try_for_each(|row| each(row))
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
        self.run(|server| {
            let statement = server.prepare(sql)?;
            let values = parameters(values);
            server.send(async |client| client.execute(&statement, &values).await)?
        })
    }

    fn execute_by_commit(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<()> {
        let statement = self.prepare(sql)?;
        let values = values.iter().map(to_parameter).collect();
        self.waiting.push(Unsent::Prepared(statement, values));
        Ok(())
    }

    fn insert(&mut self, table: &SqlTable, rows: &[Vec<SqlValue<'_>>]) -> Result<Vec<bool>> {
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        // One array per column: the statement is the same for any number of rows, so it is prepared once, and there is no
        // limit of 65,535 parameters to a statement as there would be with one for each value.
        let columns: Vec<_> = (0..first.len())
            .map(|index| column(rows.iter().map(|row| &row[index])))
            .collect();
        let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column).collect();
        let sql = insertion(table, first);
        if rows.len() >= ROWS_TAKEN_FOR_NEW && self.insert_new(&sql, &columns)? {
            return Ok(vec![true; rows.len()]);
        }
        let keys = table.columns[..table.keys].join(", ");
        let sql = format!("{sql} ON CONFLICT DO NOTHING RETURNING {keys}");
        let added = self.rows(&sql, &columns)?;
        if added.len() == rows.len() {
            return Ok(vec![true; rows.len()]);
        }
        // RETURNING gives the rows that were added in no promised order, so they are found again by their keys.
        let mut keys = BTreeSet::new();
        for row in &added {
            let key = (0..table.keys).map(|index| row.number(index));
            keys.insert(key.collect::<Result<Vec<_>>>()?);
        }
        // Removed as they are found: of two rows with one key, which is a mistake, only the first was added.
        let mut is_new = |row: &Vec<SqlValue<'_>>| {
            let key = row[..table.keys].iter().map(SqlValue::as_number);
            keys.remove(&key.collect::<Vec<_>>())
        };
        Ok(rows.iter().map(&mut is_new).collect())
    }
}

/// The statement that inserts rows such as this one.
fn insertion(table: &SqlTable, row: &[SqlValue<'_>]) -> String {
    let arrays: Vec<_> = (1..)
        .zip(row)
        .map(|(place, value)| format!("${place}::{}[]", type_of(value)))
        .collect();
    format!(
        "INSERT INTO {} ({}) SELECT * FROM UNNEST({})",
        table.name,
        table.columns.join(", "),
        arrays.join(", ")
    )
}

/// Whether an error is the connection's: the server says that it ends or is not up (class 57P), or says nothing.
fn is_lost(error: &Error) -> bool {
    // A statement that the server refused has a code: to repeat that one would only be refused again.
    error
        .code()
        .is_none_or(|code| code.code().starts_with("57P"))
}

/// The values of one column, as an array.
fn column<'a>(
    values: impl Iterator<Item = &'a SqlValue<'a>> + Clone,
) -> Box<dyn ToSql + Sync + 'a> {
    // All values of a column have one type, missing ones too, so the first tells it.
    match values.clone().next() {
        Some(SqlValue::Bytes(_)) => Box::new(values.map(SqlValue::as_bytes).collect::<Vec<_>>()),
        Some(SqlValue::Text(_)) => Box::new(values.map(SqlValue::as_text).collect::<Vec<_>>()),
        _ => Box::new(values.map(SqlValue::as_number).collect::<Vec<_>>()),
    }
}

/// A value that outlives what it was made of.
fn to_parameter(value: &SqlValue<'_>) -> Box<dyn ToSql + Send + Sync> {
    match value {
        SqlValue::Number(number) => Box::new(*number),
        SqlValue::Text(text) => Box::new(text.map(str::to_owned)),
        SqlValue::Bytes(bytes) => Box::new(bytes.as_deref().map(<[u8]>::to_vec)),
    }
}

/// A number in the text that simple queries are answered in.
fn read_number(row: &SimpleQueryRow, column: usize) -> Result<i64> {
    let text = row.try_get(column)?;
    let number = text.and_then(|text| text.parse().ok());
    number.with_context(|| format!("the server answers {text:?} where a number must be"))
}

fn type_of(value: &SqlValue<'_>) -> &'static str {
    match value {
        SqlValue::Number(_) => "BIGINT",
        SqlValue::Text(_) => "TEXT",
        SqlValue::Bytes(_) => "BYTEA",
    }
}

fn parameters<'a>(values: &'a [SqlValue<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let parameter = |value: &'a SqlValue<'a>| -> &'a (dyn ToSql + Sync) {
        match value {
            SqlValue::Number(number) => number,
            SqlValue::Text(text) => text,
            SqlValue::Bytes(bytes) => bytes,
        }
    };
    values.iter().map(parameter).collect()
}

impl Columns for Row {
    fn number(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.try_get(column)?)
    }

    fn text(&self, column: usize) -> Result<Option<&str>> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>> {
        Ok(self.try_get(column)?)
    }
}
