//! Why a store cannot be written, in the few kinds that are mended in different ways.

use rusqlite::ErrorCode;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The disk has no room.
    DiskFull,
    /// It may be read and not written: a file system, or a database that only follows another.
    ReadOnly,
    /// The disk or its file system failed.
    Io,
    /// The store's file is not there any more.
    Gone,
    /// Another file stands in its place.
    Replaced,
    /// The database does not answer.
    Away,
    /// Another holds what is needed, or an answer takes too long.
    Stuck,
    /// Anything else: the server's log says what.
    Other,
}

impl Failure {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::DiskFull,
        Self::ReadOnly,
        Self::Io,
        Self::Gone,
        Self::Replaced,
        Self::Away,
        Self::Stuck,
        Self::Other,
    ];

    /// Its stable name: programs may rely on it.
    pub fn code(self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
            Self::Io => "io_error",
            Self::Gone => "store_gone",
            Self::Replaced => "store_replaced",
            Self::Away => "database_away",
            Self::Stuck => "stuck",
            Self::Other => "store",
        }
    }

    /// What is wrong and what to do, without anything secret.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::DiskFull => "the store's disk is full; make room, and it goes on by itself",
            Self::ReadOnly => {
                "the store is read-only; make it writable, or point to the database that leads"
            }
            Self::Io => {
                "the store's disk or file system fails; see the server log, and check the disk"
            }
            Self::Gone => {
                "the store's file was deleted or moved away; stop the server, put it back whole, and start again"
            }
            Self::Replaced => {
                "another file, or another store, was put in the place of the store's; stop the server, put the right one there, and start again"
            }
            Self::Away => "the database does not answer; see the server log",
            Self::Stuck => {
                "the store takes too long to commit; is something else holding it, or is its disk stuck?"
            }
            Self::Other => "the store cannot be written; see the server log",
        }
    }

    /// The kind of an error of a store.
    pub fn classify(error: &anyhow::Error) -> Self {
        // The deepest that is known: what stands above it says what was being done, and not what is wrong.
        error
            .chain()
            .filter_map(|cause| {
                let sqlite = cause.downcast_ref().and_then(of_sqlite);
                let postgres = || cause.downcast_ref().map(of_postgres);
                let moved = || cause.downcast_ref::<FileMoved>().map(FileMoved::kind);
                sqlite.or_else(postgres).or_else(moved)
            })
            .last()
            .unwrap_or(Self::Other)
    }
}

fn of_sqlite(error: &rusqlite::Error) -> Option<Failure> {
    Some(match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Failure::DiskFull,
        ErrorCode::ReadOnly => Failure::ReadOnly,
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Failure::Io,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Failure::Stuck,
        _ => Failure::Other,
    })
}

fn of_postgres(error: &tokio_postgres::Error) -> Failure {
    // Without a code it is not the server that speaks: the connection broke, or none came about.
    let Some(code) = error.code() else {
        return Failure::Away;
    };
    match code.code() {
        "53100" => Failure::DiskFull,
        "25006" => Failure::ReadOnly,
        "58030" => Failure::Io,
        // Time-outs of statements, of locks, and of a transaction that was left idle.
        "57014" | "55P03" | "25P03" => Failure::Stuck,
        // Shutting down, starting up, connection failures, too many connections.
        code if ["57P", "08"].iter().any(|class| code.starts_with(class)) || code == "53300" => {
            Failure::Away
        }
        _ => Failure::Other,
    }
}

/// A store that is not where it was opened: what is written to it would be lost.
#[derive(Debug, thiserror::Error)]
pub enum FileMoved {
    /// There is nothing.
    #[error("{0} was deleted or moved away; what is written is lost when the server ends")]
    Gone(String),
    /// There is another.
    #[error("{0} is another file than the one that was opened; put the right one back")]
    Replaced(String),
    /// The database holds another store.
    #[error(
        "the database holds the store of identity {found:?}, and this server was started on that of identity {expected}; put the \
         right one back, or start the server again to serve this one"
    )]
    OtherStore { expected: String, found: String },
}

impl FileMoved {
    fn kind(&self) -> Failure {
        match self {
            Self::Gone(_) => Failure::Gone,
            Self::Replaced(_) | Self::OtherStore { .. } => Failure::Replaced,
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn errors_are_told_apart_below_what_was_being_done() {
        let sqlite = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            Failure::classify(&anyhow!(error).context("cannot commit to the store"))
        };
        assert_eq!(sqlite(ffi::SQLITE_FULL), Failure::DiskFull);
        assert_eq!(sqlite(ffi::SQLITE_READONLY), Failure::ReadOnly);
        assert_eq!(sqlite(ffi::SQLITE_IOERR_WRITE), Failure::Io);
        assert_eq!(sqlite(ffi::SQLITE_IOERR_FSYNC), Failure::Io);
        assert_eq!(sqlite(ffi::SQLITE_BUSY), Failure::Stuck);
        assert_eq!(sqlite(ffi::SQLITE_CORRUPT), Failure::Other);
        let moved = Err::<(), _>(FileMoved::Gone("a.db".into())).context("cannot begin");
        assert_eq!(Failure::classify(&moved.unwrap_err()), Failure::Gone);
        assert_eq!(Failure::classify(&anyhow!("anything")), Failure::Other);
    }

    #[test]
    fn a_database_that_is_not_there_is_away() {
        let nobody = postgres::Client::connect("host=127.0.0.1 port=1 user=a", postgres::NoTls);
        let error = anyhow!(nobody.err().unwrap());
        assert_eq!(Failure::classify(&error), Failure::Away);
    }

    #[test]
    fn codes_are_distinct() {
        let codes: std::collections::BTreeSet<_> = Failure::ALL.map(Failure::code).into();
        assert_eq!(codes.len(), Failure::ALL.len());
    }
}
