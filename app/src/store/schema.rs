//! The tables, and how a store of an earlier version is brought to this one.
//!
//! Experiments are named by a number within the tables, so that rows stay small. Numbers are 64-bit integers, lists are
//! little-endian bytes ([`super::codec`]). The SQL is SQLite's; [`for_postgres`] says it in PostgreSQL's words.

/// What is there before the first migration: a store of version 0.
pub const META: &str =
    "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('version', 0);";

/// Migration i leads from version i to i + 1, in one transaction. What is released is never edited: a change is one more.
// Tables whose key is all that they are searched by are WITHOUT ROWID: one tree instead of two. Epochs have large rows, for
// which SQLite advises against it, and experiments need the row's number.
pub const MIGRATIONS: [&str; super::SCHEMA_VERSION as usize] = [
    "
CREATE TABLE experiments (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL,
    key TEXT NOT NULL,
    salt BLOB NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE progress (experiment INTEGER NOT NULL PRIMARY KEY, progress TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    record TEXT NOT NULL,
    snapshot BLOB,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    rounds_hash TEXT,
    hash TEXT,
    PRIMARY KEY (experiment, epoch)
);
CREATE TABLE leases (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    overtime INTEGER NOT NULL,
    first INTEGER NOT NULL,
    rounds INTEGER NOT NULL,
    actions BLOB NOT NULL,
    asked INTEGER NOT NULL,
    request_key TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (experiment, epoch, overtime, first)
) WITHOUT ROWID;
CREATE UNIQUE INDEX lease_requests ON leases (experiment, request_key) WHERE request_key IS NOT NULL;
CREATE TABLE outcomes (
    experiment INTEGER NOT NULL,
    round INTEGER NOT NULL,
    feedback BLOB NOT NULL,
    imputed INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (experiment, round)
) WITHOUT ROWID;
CREATE TABLE asides (
    experiment INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    overtime INTEGER NOT NULL,
    number INTEGER NOT NULL,
    feedback BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (experiment, epoch, overtime, number)
) WITHOUT ROWID;
CREATE TABLE events (
    experiment INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    what TEXT NOT NULL,
    PRIMARY KEY (experiment, number)
) WITHOUT ROWID;
CREATE TABLE api_keys (
    name TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) WITHOUT ROWID;
",
    "
ALTER TABLE experiments ADD COLUMN values_version INTEGER NOT NULL DEFAULT 1;
",
    // Of what is there already, nobody knows who asked or told (actor 0), when it is due (0: to be looked at once), and how
    // long it has waited: it waits anew, as nothing may be imputed early. Nor does it have a position: rule 1 of the chain left
    // out what has one, and nobody knows the order it was stored in. What was observed is summed up when it is looked at.
    "
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
CREATE TABLE actors (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    key_name TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX experiment_keys ON experiments (key);
ALTER TABLE progress ADD COLUMN due INTEGER;
UPDATE progress SET due = 0;
ALTER TABLE progress ADD COLUMN observed TEXT;
CREATE INDEX progress_due ON progress (due) WHERE due IS NOT NULL;
ALTER TABLE leases ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN actor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN actor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asides ADD COLUMN actor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN reason TEXT;
ALTER TABLE experiments ADD COLUMN rule INTEGER NOT NULL DEFAULT 1;
ALTER TABLE epochs ADD COLUMN leases_hash TEXT;
ALTER TABLE epochs ADD COLUMN journal_end INTEGER;
ALTER TABLE epochs ADD COLUMN journal TEXT;
ALTER TABLE asides ADD COLUMN position INTEGER;
ALTER TABLE events ADD COLUMN position INTEGER;
CREATE INDEX aside_positions ON asides (experiment, position) WHERE position IS NOT NULL;
CREATE INDEX event_positions ON events (experiment, position) WHERE position IS NOT NULL;
ALTER TABLE api_keys ADD COLUMN experiments TEXT;
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
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
",
];

/// The same in PostgreSQL's words.
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
