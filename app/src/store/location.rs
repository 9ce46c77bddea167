//! Where a store is, and what it is opened for.

use std::fmt;

use anyhow::Result;

use super::Store;
use super::postgres::{self, PostgresServer};
use super::sqlite::SqliteFile;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(std::path::PathBuf),
    /// A PostgreSQL server: `postgres://...` or `postgresql://...`.
    Postgres(String),
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To serve: made if it is missing, brought to this version. A file is locked against a second server.
    Serve,
    /// To write beside a server, or without one.
    Write,
    /// To read, beside a server or without one. Nothing is made or changed.
    Read,
}

impl Location {
    /// From what was typed.
    pub fn parse(text: &str) -> Self {
        // Anything else is a file, even what looks like another address: a file that cannot be opened says so. But what libpq
        // also takes, host=.. password=.., would be a file whose name is a secret: it is refused as an address.
        let postgres = [
            "postgres://",
            "postgresql://",
            "host=",
            "dbname=",
            "user=",
            "password=",
            "port=",
        ]
        .iter()
        .any(|beginning| text.starts_with(beginning));
        if postgres {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(text.into())
        }
    }

    /// Whether there is a store. A file that is there counts as one until it is opened.
    pub fn is_made(&self) -> Result<bool> {
        match self {
            Self::Sqlite(path) => Ok(path.exists()),
            Self::Postgres(url) => postgres::is_made(url),
        }
    }

    /// Opens a connection.
    pub fn open(&self, purpose: Purpose) -> Result<Store> {
        Ok(match self {
            Self::Sqlite(path) => Store::over(SqliteFile::open(path, purpose)?),
            Self::Postgres(url) => Store::over(PostgresServer::open(url, purpose)?),
        })
    }
}

impl fmt::Display for Location {
    /// Without what may be secret in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            // Put together from what is known to be harmless; to cut the secret out of the text could miss some of it.
            Self::Postgres(url) => match postgres::parse(url) {
                Ok(address) => f.write_str(&postgres::redact(&address)),
                Err(_) => f.write_str("postgres://"),
            },
        }
    }
}

impl fmt::Debug for Location {
    /// As it is displayed: what is secret stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}
