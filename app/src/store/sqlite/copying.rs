//! Copies of a store: one file, nothing beside it, consistent while the original is written to.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::super::{Purpose, Store};
use super::{SqliteFile, opening};

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which store it is a copy of; `None` if that was never served.
    pub identity: Option<String>,
    /// How often that had been started.
    pub incarnation: u64,
    pub experiments: u64,
    pub outcomes: u64,
}

/// Copies a file as one reader sees it; its server goes on meanwhile.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let (connection, _) = opening::open(from, Purpose::Read)?;
    // Made first, for its owner's eyes alone: SQLite would make it readable for all, and it will hold keys.
    opening::make(to)?;
    // This writes another file, but SQLite does not make that difference.
    connection.pragma_update(None, "query_only", false)?;
    connection.execute(
        "VACUUM INTO ?1",
        [to.to_str()
            .context("the name of the copy is not UTF-8; choose another")?],
    )?;
    Ok(())
}

/// A new file to write a copy to. It is thrown away if that fails, so nothing is synced on the way.
pub fn empty(path: &Path) -> Result<Store> {
    let connection = opening::empty(path)?;
    Ok(Store::over(SqliteFile {
        connection,
        begin: "BEGIN IMMEDIATE",
        presence: None,
        _lock: None,
    }))
}

/// Checks a copy from the first page to the last, and counts what it holds.
pub fn check(path: &Path) -> Result<Held> {
    let (connection, _) = opening::open(path, Purpose::Read)?;
    // The copy is what will be needed on a bad day, so it is read to its last page on a good one.
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    ensure!(found == "ok", "the copy is damaged: {found}");
    let sql =
        "SELECT (SELECT identity FROM store), (SELECT coalesce(max(incarnation), 0) FROM starts),
        (SELECT count(*) FROM experiments), (SELECT count(*) FROM outcomes)";
    let held = connection.query_row(sql, [], |row| {
        let number = |column| row.get(column).map(i64::unsigned_abs);
        Ok(Held {
            identity: row.get(0)?,
            incarnation: number(1)?,
            experiments: number(2)?,
            outcomes: number(3)?,
        })
    })?;
    Ok(held)
}
