//! The tables.
//!
//! Experiments are named by a number within the tables, so that rows stay small. Numbers are 64-bit integers, lists are
//! little-endian bytes ([`super::codec`]). The SQL is SQLite's; [`for_postgres`] says it in PostgreSQL's words.

use anyhow::{Result, bail};

use super::SCHEMA_VERSION;

/// Makes the tables, in one transaction with whatever marks the store as this program's.
// Tables whose key is all that they are searched by are WITHOUT ROWID: one tree instead of two. Epochs have large rows, for
// which SQLite advises against it, and experiments need the row's number.
pub const TABLES: &str = "
CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('schema', 1);
CREATE TABLE store (number INTEGER NOT NULL PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE starts (
    incarnation INTEGER NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE waiting_clock (
    number INTEGER NOT NULL PRIMARY KEY,
    waited INTEGER NOT NULL,
    read_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO waiting_clock (number, waited, read_at) VALUES (1, 0, 0);
CREATE TABLE experiments (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,
    key TEXT NOT NULL,
    salt BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    values_version INTEGER NOT NULL
);
CREATE INDEX experiment_keys ON experiments (key);
CREATE TABLE progress (
    experiment INTEGER NOT NULL PRIMARY KEY,
    progress TEXT NOT NULL,
    due INTEGER,
    observed TEXT
) WITHOUT ROWID;
CREATE INDEX progress_due ON progress (due) WHERE due IS NOT NULL;
CREATE TABLE epochs (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    record TEXT NOT NULL,
    snapshot BLOB,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    rounds_hash TEXT,
    hash TEXT,
    leases_hash TEXT,
    journal_end INTEGER,
    journal TEXT,
    PRIMARY KEY (experiment, epoch)
);
CREATE TABLE leases (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    first INTEGER NOT NULL,
    rounds INTEGER NOT NULL,
    actions BLOB NOT NULL,
    asked INTEGER NOT NULL,
    request_key TEXT,
    at INTEGER NOT NULL,
    waited INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    PRIMARY KEY (experiment, epoch, kind, first)
) WITHOUT ROWID;
CREATE UNIQUE INDEX lease_requests ON leases (experiment, request_key) WHERE request_key IS NOT NULL;
CREATE TABLE outcomes (
    experiment INTEGER NOT NULL,
    round INTEGER NOT NULL,
    feedback BLOB NOT NULL,
    imputed INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    PRIMARY KEY (experiment, round)
) WITHOUT ROWID;
CREATE TABLE uncounted (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    number INTEGER NOT NULL,
    feedback BLOB NOT NULL,
    at INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (experiment, epoch, kind, number)
) WITHOUT ROWID;
CREATE INDEX uncounted_positions ON uncounted (experiment, position);
CREATE TABLE events (
    experiment INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    what TEXT NOT NULL,
    reason TEXT,
    position INTEGER NOT NULL,
    PRIMARY KEY (experiment, number)
) WITHOUT ROWID;
CREATE INDEX event_positions ON events (experiment, position);
CREATE TABLE actors (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE api_keys (
    name TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    experiments TEXT,
    last_used_at INTEGER
) WITHOUT ROWID;
CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    key_name TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE webhooks (
    name TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    secret BLOB NOT NULL,
    format TEXT NOT NULL,
    template TEXT,
    events TEXT,
    experiments TEXT,
    wait INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    last_success_at INTEGER,
    last_error_at INTEGER,
    last_error TEXT
) WITHOUT ROWID;
CREATE TABLE webhook_cursors (
    experiment INTEGER NOT NULL,
    webhook TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    active TEXT NOT NULL,
    PRIMARY KEY (experiment, webhook)
) WITHOUT ROWID;
CREATE TABLE webhook_messages (
    webhook TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    raised INTEGER NOT NULL,
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (webhook, id)
) WITHOUT ROWID;
CREATE INDEX webhook_messages_due ON webhook_messages (webhook, due);
";

/// Refuses tables of another version than this program's.
pub fn check(version: Option<i64>) -> Result<()> {
    match version {
        Some(version) if version == i64::from(SCHEMA_VERSION) => Ok(()),
        Some(version) if version > i64::from(SCHEMA_VERSION) => bail!(
            "its schema has version {version}, and this program's has {SCHEMA_VERSION}; nothing was changed, use a newer debora"
        ),
        // A program that was never released made it. What it holds is not lost: that program still serves it.
        _ => bail!(
            "its schema is older than the first release; nothing was changed: serve it with the debora that made it, or begin a new store"
        ),
    }
}

/// A statement in PostgreSQL's words.
pub fn for_postgres(sql: &str) -> String {
    // In this order: the first contains the second.
    let words = [
        (
            "INTEGER PRIMARY KEY",
            "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        ),
        ("INTEGER", "BIGINT"),
        ("BLOB", "BYTEA"),
        (" WITHOUT ROWID", ""),
    ];
    words
        .into_iter()
        .fold(sql.to_owned(), |sql, (sqlite, postgres)| {
            sql.replace(sqlite, postgres)
        })
}
