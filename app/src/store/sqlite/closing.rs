//! How a file is closed: with nothing beside it, so that a copy of the one file is a whole copy.
//!
//! What is committed lies in the log beside the file (`-wal`) until it is moved into it. SQLite does that when the last
//! connection ends, and says nothing if it cannot: a server therefore does it itself, and says so.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// How long a server that stops waits for another program's reader. One that has not ended by then is an audit or a backup,
/// which may take minutes.
const READER_WAIT: Duration = Duration::from_secs(2);

/// A connection to a file, and where that is.
pub struct OpenFile {
    connection: Connection,
    path: PathBuf,
    writes: bool,
}

impl OpenFile {
    /// One that changes nothing, not even when it is closed.
    pub fn over(connection: Connection, path: &Path) -> Self {
        Self {
            connection,
            path: path.into(),
            writes: false,
        }
    }

    /// The same for one that writes.
    pub fn for_writing(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Moves the log into the file, then closes it.
    pub fn close(self) -> Result<()> {
        let log = beside_file(&self.path, "-wal");
        let closed = self.empty_log();
        drop(self);
        closed.with_context(|| {
            format!(
                "all that was answered is durable, but part of it is only in {}: do not copy or move the store without that file; \
                 to make it one file, start a server on it and stop it again",
                log.display()
            )
        })
    }

    fn empty_log(&self) -> Result<()> {
        self.connection.busy_timeout(READER_WAIT)?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: bool = self.connection.query_row(sql, [], |row| row.get(0))?;
        ensure!(
            !busy,
            "another program is reading the store, and did not end within {} s",
            READER_WAIT.as_secs()
        );
        Ok(())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A log that holds something is a server's, or what a killed one left: evidence that a reader leaves as it is. An
        // empty one was made for this connection, or left by a server that stopped beside it, and goes when it is the last.
        let keeps = !self.writes && !is_empty(&beside_file(&self.path, "-wal"));
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps);
    }
}

impl Deref for OpenFile {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for OpenFile {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// The file with this ending beside another.
pub fn beside_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn is_empty(log: &Path) -> bool {
    log.metadata().is_ok_and(|log| log.len() == 0)
}
