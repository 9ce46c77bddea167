//! Copies of a store: one file, nothing beside it, consistent while the original is written to.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::super::Purpose;
use super::{Sqlite, SqliteFile, opening};

/// What a copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub experiments: u64,
    pub outcomes: u64,
}

/// Copies a file as one reader sees it; its server goes on meanwhile.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let (connection, _) = opening::open(from, Purpose::Read)?;
    // Made first, for its owner's eyes alone: SQLite would make it readable for all, and it will hold keys.
    opening::make(to)?;
    connection.execute(
        "VACUUM INTO ?1",
        [to.to_str()
            .context("the name of the copy is not UTF-8; choose another")?],
    )?;
    Ok(())
}

/// A new file to write a copy to. It is thrown away if that fails, so nothing is synced on the way.
pub fn empty(path: &Path) -> Result<Sqlite> {
    let connection = opening::empty(path)?;
    Ok(Sqlite::over(SqliteFile {
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
    let sql = "SELECT (SELECT count(*) FROM experiments), (SELECT count(*) FROM outcomes)";
    let (experiments, outcomes) = connection.query_row(sql, [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?;
    Ok(Held {
        experiments: experiments.unsigned_abs(),
        outcomes: outcomes.unsigned_abs(),
    })
}
