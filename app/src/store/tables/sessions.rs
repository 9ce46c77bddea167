//! Sessions: a person's stay on the pages.

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::parse_number;
use crate::store::database::{Columns, number, text, values};

/// A person's stay on the pages, from log-in to log-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of its token, as 64 hexadecimal digits.
    pub hash: String,
    /// The name of the API key it was begun with: what that allows, it allows.
    pub key_name: String,
    /// When it ends by itself.
    pub expires_at: i64,
}

impl Store {
    /// The session whose token has this hash.
    pub fn session(&mut self, hash: &str) -> Result<Option<Session>> {
        let sql = "SELECT hash, key_name, expires_at FROM sessions WHERE hash = $1";
        self.one(sql, &values![hash], read_session)
    }

    /// How many sessions expire after this time.
    pub fn session_count(&mut self, after: i64) -> Result<u64> {
        let sql = "SELECT count(*) FROM sessions WHERE expires_at > $1";
        let count = self.one(sql, &values![after], |row| parse_number(number(row, 0)?))?;
        Ok(count.unwrap_or_default())
    }

    /// Adds a session.
    pub fn add_session(&mut self, session: &Session) -> Result<()> {
        let sql = "INSERT INTO sessions (hash, key_name, expires_at) VALUES ($1, $2, $3)";
        let values = values![&session.hash, &session.key_name, session.expires_at];
        self.execute(sql, &values).map(drop)
    }

    /// Ends a session, if it is there.
    pub fn end_session(&mut self, hash: &str) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE hash = $1";
        self.execute(sql, &values![hash]).map(drop)
    }

    /// Ends all that expire at this time or before.
    pub fn end_sessions(&mut self, expired_at: i64) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE expires_at <= $1";
        self.execute(sql, &values![expired_at]).map(drop)
    }

    /// Ends all of a key but this many, the oldest first.
    pub fn end_oldest_sessions(&mut self, key_name: &str, kept: usize) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE key_name = $1 AND hash NOT IN
            (SELECT hash FROM sessions WHERE key_name = $1 ORDER BY expires_at DESC LIMIT $2)";
        self.execute(sql, &values![key_name, kept as i64]).map(drop)
    }
}

fn read_session(row: &dyn Columns) -> Result<Session> {
    Ok(Session {
        hash: text(row, 0)?.into(),
        key_name: text(row, 1)?.into(),
        expires_at: number(row, 2)?,
    })
}
