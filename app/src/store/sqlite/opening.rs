//! How a file is opened: looked at first, so that one that is not ours, or of a newer version, is left as it is.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::closing::{OpenFile, beside_file};
use super::lock::Lock;

use super::super::{Purpose, schema};

/// Marks a file as a store of this program ("debo").
const APPLICATION_ID: i32 = 0x6465_626f;

/// How long to wait for another writer. A server's transactions take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The statements of the trait fit.
const STATEMENTS_CACHED: usize = 64;

/// A connection, and the lock of a server.
pub fn open(path: &Path, purpose: Purpose) -> Result<(OpenFile, Option<Lock>)> {
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
fn beside(path: &Path, purpose: Purpose) -> Result<OpenFile> {
    ensure!(
        path.exists(),
        "it does not exist; `debora serve --store {}` creates it",
        path.display()
    );
    let path = &real(path)?;
    let mut connection = look_at(path)?;
    if purpose == Purpose::Read && is_fixed(&connection, path) {
        let uri = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        connection = connect(Path::new(&fixed_address(path)?), uri)?;
    }
    ensure!(
        is_made(&connection)?,
        "it is empty; `debora serve --store {}` makes it a store",
        path.display()
    );
    if purpose == Purpose::Read {
        return Ok(connection);
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sync_fully(&connection)?;
    Ok(connection.for_writing())
}

/// Where a file really is: two names of one must meet at one lock, and SQLite keeps a log beside the file, not beside a link.
fn real(path: &Path) -> Result<PathBuf> {
    Ok(fs::canonicalize(path)?)
}

/// A connection that changes no row.
fn look_at(path: &Path) -> Result<OpenFile> {
    // To look at a file whose writer was killed is to undo its last transaction. That is for its own program to do.
    ensure!(
        !beside_file(path, "-journal").exists() || is_ours_or_blank(path)?,
        "it belongs to another program, whose journal lies beside it; choose another name"
    );
    // With the right to write: a reader without it cannot undo what a killed server left half done, nor remove the log that
    // SQLite makes beside the file for it.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Even a mistake of ours cannot write through a reader's connection.
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Whether a file has this program's mark, or no mark yet, in the bytes where SQLite keeps it.
fn is_ours_or_blank(path: &Path) -> Result<bool> {
    // Not through SQLite, which would undo the half-written transaction first. To close the file drops the locks that this
    // process has on it, but a store that it serves has a log and not a journal.
    let mut header = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut header)?;
    let mark = APPLICATION_ID.to_be_bytes();
    Ok(header.iter().all(|byte| *byte == 0) || header.get(68..72) == Some(&mark))
}

/// Whether a file is in a folder where SQLite cannot create the log that it asks for. While there is none, no server has it
/// open, so it can be read as it is, unless a journal says that it is half written.
fn is_fixed(connection: &Connection, path: &Path) -> bool {
    let looked = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let code = looked.err().and_then(|error| error.sqlite_error_code());
    matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
        && ["-wal", "-journal"]
            .iter()
            .all(|ending| !beside_file(path, ending).exists())
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

/// Makes the file if it is missing, locks it against a second server and makes its tables if there are none.
fn serve(path: &Path) -> Result<(OpenFile, Option<Lock>)> {
    if !path.exists() {
        make(path)
            .context("it cannot be made; is its folder there, and may this user write to it?")?;
    }
    ensure!(
        !path.is_dir(),
        "it is a folder; give the name of a file in it, such as {}",
        path.join("debora.db").display()
    );
    let path = real(path)?;
    // Refused before the lock is made beside a file that belongs to others.
    let looking = look_at(&path)?;
    is_made(&looking)?;
    drop(looking);
    let lock = Lock::take(&path)?;
    let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sync_fully(&connection)?;
    make_tables(&mut connection)?;
    // Kept in the file itself: readers and later servers find it so.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    ensure!(
        mode == "wal",
        "this file system does not allow a write-ahead log (the journal is {mode}); use a local one"
    );
    Ok((connection.for_writing(), Some(lock)))
}

/// A new store that keeps its journal in memory and syncs nothing: safe only as a whole, once it is synced from outside.
pub fn empty(path: &Path) -> Result<OpenFile> {
    make(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    make_tables(&mut connection)?;
    Ok(connection.for_writing())
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

fn connect(path: &Path, flags: OpenFlags) -> Result<OpenFile> {
    // Each connection is used by one thread at a time, which the types see to.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(OpenFile::over(connection, path))
}

/// A commit returns when its part of the log is on the disk.
fn sync_fully(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS alone a plain fsync stops at the disk's cache; elsewhere these change nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(())
}

/// Whether the file has tables: not while it is empty. An error if they are not ours, or of another version.
fn is_made(connection: &Connection) -> Result<bool> {
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
        return Ok(false);
    }
    ensure!(
        id == APPLICATION_ID,
        "it is a SQLite file of another program (application id {id}); choose another name"
    );
    // NULL, and not an error, where no row has that name.
    let sql = "SELECT max(value) FROM meta WHERE name = 'schema'";
    schema::check(connection.query_row(sql, [], |row| row.get(0))?)?;
    Ok(true)
}

/// Makes the tables of an empty file.
fn make_tables(connection: &mut Connection) -> Result<()> {
    if is_made(connection)? {
        return Ok(());
    }
    // In one transaction with the mark: a server that is killed here leaves a file that is empty.
    let transaction = connection.transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.execute_batch(schema::TABLES)?;
    transaction.commit().context("cannot make the tables")
}
