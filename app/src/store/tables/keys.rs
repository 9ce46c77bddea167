//! API keys, and what each allows.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::store::Store;
use crate::store::codec;
use crate::store::database::{Columns, number, text, values};

const KEYS_WRITE: &str =
    "INSERT INTO api_keys (name, role, hash, created_at, revoked_at, experiments, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// What a caller may do; each role may do what those before it may.
// The order of the variants is the order of rights: `>=` decides what a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look, without keys.
    Read,
    /// Ask for decisions and tell outcomes.
    Decide,
    /// Everything.
    Admin,
}

impl Role {
    /// Its name in stores, documents and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decide => "decide",
            Self::Admin => "admin",
        }
    }
}

/// An API key, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What it is called.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// SHA-256 of it, as 64 hexadecimal digits. It has 256 random bits, so a slow hash would add nothing.
    pub hash: String,
    /// When it was made.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
    /// The ids of the experiments it is for; `None` for all.
    pub experiments: Option<Vec<String>>,
    /// When it was last used, to the minute or so; `None` if it never was.
    pub last_used_at: Option<i64>,
}

impl Store {
    /// All API keys, revoked ones too, by name.
    pub fn keys(&mut self) -> Result<Vec<ApiKey>> {
        let sql = "SELECT name, role, hash, created_at, revoked_at, experiments, last_used_at
            FROM api_keys ORDER BY name";
        self.rows(sql, &[], read_api_key)
    }

    /// Adds a key. False, and nothing is written, if the name is taken.
    pub fn add_key(&mut self, key: &ApiKey) -> Result<bool> {
        // The database decides whether the name is free: two may add it at the same time.
        let sql = format!("{KEYS_WRITE} ON CONFLICT (name) DO NOTHING");
        self.write_key(&sql, key)
    }

    /// Adds a key, or replaces the one of that name but for its last use.
    pub fn set_key(&mut self, key: &ApiKey) -> Result<()> {
        // Without the last use: a server may have noted a later one since the key was read.
        let sql = format!(
            "{KEYS_WRITE} ON CONFLICT (name) DO UPDATE SET role = excluded.role,
                hash = excluded.hash, created_at = excluded.created_at,
                revoked_at = excluded.revoked_at, experiments = excluded.experiments"
        );
        self.write_key(&sql, key).map(drop)
    }

    /// Notes that a key was used; a later use that is noted already stays.
    pub fn set_key_used(&mut self, name: &str, at: i64) -> Result<()> {
        // Of two nodes the later use stays, whichever writes first.
        let sql = "UPDATE api_keys SET last_used_at = $1
            WHERE name = $2 AND (last_used_at IS NULL OR last_used_at < $1)";
        self.execute(sql, &values![at, name]).map(drop)
    }

    /// False if nothing was written.
    fn write_key(&mut self, sql: &str, key: &ApiKey) -> Result<bool> {
        let experiments = key.experiments.as_deref().map(codec::encode_ids);
        let values = values![
            &key.name,
            key.role.name(),
            &key.hash,
            key.created_at,
            key.revoked_at,
            &experiments,
            key.last_used_at
        ];
        self.execute(sql, &values)
    }
}

fn read_api_key(row: &dyn Columns) -> Result<ApiKey> {
    Ok(ApiKey {
        name: text(row, 0)?.into(),
        role: codec::parse_role(text(row, 1)?)?,
        hash: text(row, 2)?.into(),
        created_at: number(row, 3)?,
        revoked_at: row.number(4)?,
        experiments: row.text(5)?.map(codec::parse_ids),
        last_used_at: row.number(6)?,
    })
}
