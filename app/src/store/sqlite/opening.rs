//! How a file is opened: looked at first, so that one that is not ours, or of a newer version, is left as it is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::super::{Purpose, SCHEMA_VERSION, schema};

/// Marks a file as a store of this program ("debo").
const APPLICATION_ID: i32 = 0x6465_626f;

/// How long to wait for another writer. A server's transactions take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The statements of the trait fit.
const STATEMENTS_CACHED: usize = 64;

/// A server's right to a file, until it is dropped or the process ends, however it ends.
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave it to a process that another thread is just starting.
        let _ = self.0.unlock();
    }
}

/// A connection, and the lock of a server.
pub fn open(path: &Path, purpose: Purpose) -> Result<(Connection, Option<Lock>)> {
    let shown = path.display();
    let opened = match purpose {
        Purpose::Serve => serve(path),
        Purpose::Write | Purpose::Read => {
            beside(path, purpose).map(|connection| (connection, None))
        }
    };
    let (connection, lock) = opened.with_context(|| format!("cannot open the store {shown}"))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    Ok((connection, lock))
}

/// Opens what is there.
fn beside(path: &Path, purpose: Purpose) -> Result<Connection> {
    ensure!(
        path.exists(),
        "it does not exist; `debora serve --store {}` creates it",
        path.display()
    );
    // Looked at without the right to write first: a file that is not ours must not even get a log beside it.
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if purpose == Purpose::Read && is_fixed(&connection, path) {
        let uri = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        connection = connect(Path::new(&fixed_address(path)?), uri)?;
    }
    match version(&connection)? {
        Some(SCHEMA_VERSION) => {}
        Some(older) => bail!(
            "its version is {older}, and this program needs {SCHEMA_VERSION}; `debora serve` upgrades it (make a copy first)"
        ),
        None => bail!(
            "it is empty; `debora serve --store {}` makes it a store",
            path.display()
        ),
    }
    if purpose == Purpose::Read {
        return Ok(connection);
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sync_fully(&connection)?;
    Ok(connection)
}

/// Whether a file is in a folder where SQLite cannot create the log that it asks for. While there is none, no server has it
/// open, so it can be read as it is.
fn is_fixed(connection: &Connection, path: &Path) -> bool {
    let looked = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let code = looked.err().and_then(|error| error.sqlite_error_code());
    matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
        && !beside_file(path, "-wal").exists()
}

/// The address that tells SQLite that a file does not change.
fn fixed_address(path: &Path) -> Result<String> {
    let path = path
        .to_str()
        .context("its name is not UTF-8; choose another")?;
    // Signs with a meaning in addresses; % first, as the others bring it in.
    let escaped = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    Ok(format!("file:{escaped}?immutable=1"))
}

/// The file with this ending beside another.
fn beside_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Makes the file if it is missing, locks it against a second server and brings it to this version.
fn serve(path: &Path) -> Result<(Connection, Option<Lock>)> {
    if path.exists() {
        // Refused before the lock and the log are made beside a file that belongs to others.
        version(&connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)?;
    } else {
        make(path)?;
    }
    // Two names of one file must meet at one lock.
    let path = fs::canonicalize(path)?;
    let lock = lock(&path)?;
    let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sync_fully(&connection)?;
    migrate(&mut connection)?;
    // Kept in the file itself: readers and later servers find it so.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    ensure!(
        mode == "wal",
        "this file system does not allow a write-ahead log (the journal is {mode}); use a local one"
    );
    Ok((connection, Some(lock)))
}

/// A new store that keeps its journal in memory and syncs nothing: safe only as a whole, once it is synced from outside.
pub fn empty(path: &Path) -> Result<Connection> {
    make(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// An empty file that only its owner reads: it will hold the experiments' keys.
pub fn make(path: &Path) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    Ok(())
}

/// Takes the lock beside the file.
fn lock(path: &Path) -> Result<Lock> {
    // A file of its own: to close a second handle of the store's file would drop the locks that SQLite holds on it (POSIX).
    let name = beside_file(path, ".lock");
    let shown = name.display();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name);
    let file = file.with_context(|| format!("cannot create the lock {shown}"))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "another server has it open (it holds the lock {shown}); stop that server, use another file, or let both share a PostgreSQL store"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {shown}"))
        }
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    // Each connection is used by one thread at a time, which the types see to.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// A commit returns when its part of the log is on the disk.
fn sync_fully(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS alone a plain fsync stops at the disk's cache; elsewhere these change nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(())
}

/// The version of a store; `None` for an empty file. An error if the file is not ours, or newer than this program.
fn version(connection: &Connection) -> Result<Option<u32>> {
    // In one transaction: another server may be making the tables between two looks.
    let connection = connection.unchecked_transaction()?;
    let id: i32 = match connection.pragma_query_value(None, "application_id", |row| row.get(0)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            bail!("it is not a SQLite file; choose another name")
        }
        id => id?,
    };
    let tables: u32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (id, tables) == (0, 0) {
        return Ok(None);
    }
    ensure!(
        id == APPLICATION_ID,
        "it is a SQLite file of another program (application id {id}); choose another name"
    );
    let version: u32 =
        connection.query_row("SELECT value FROM meta WHERE name = 'version'", [], |row| {
            row.get(0)
        })?;
    ensure!(
        version <= SCHEMA_VERSION,
        "its version is {version}, and this program knows versions up to {SCHEMA_VERSION}; nothing was changed, use a newer debora"
    );
    Ok(Some(version))
}

/// Brings a file to this version, each step in one transaction.
fn migrate(connection: &mut Connection) -> Result<()> {
    if version(connection)?.is_none() {
        let transaction = connection.transaction()?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.execute_batch(schema::META)?;
        transaction.commit()?;
    }
    let version = version(connection)?.context("the store has no version")?;
    for (step, sql) in schema::MIGRATIONS.iter().enumerate().skip(version as usize) {
        let transaction = connection.transaction()?;
        // Each step shares a transaction with its number: a server that is killed here finds the version of the tables it has.
        transaction.execute_batch(sql)?;
        transaction.execute(
            "UPDATE meta SET value = ?1 WHERE name = 'version'",
            [step as i64 + 1],
        )?;
        transaction.commit().with_context(|| {
            format!("cannot bring the store from version {step} to {}", step + 1)
        })?;
    }
    Ok(())
}
