//! The stores that tests run on: a SQLite file, and the PostgreSQL server of `scripts/with-postgres`, whose clock is moved by
//! hand.

use std::sync::atomic::{AtomicU32, Ordering};

use debora_cli::store::Location;
use postgres::{Client, NoTls};

use crate::kit::scratch::Scratch;

/// A kind of store, and where fresh ones are made.
pub enum Store {
    Sqlite,
    Postgres(String),
}

/// Every kind.
pub fn stores() -> Vec<Store> {
    let url = std::env::var("DEBORA_TEST_POSTGRES");
    let url = url.expect(
        "DEBORA_TEST_POSTGRES is not set; run the tests as `scripts/with-postgres cargo test`",
    );
    vec![Store::Sqlite, Store::Postgres(url)]
}

impl Store {
    /// How many cases a property is tried with: commits on PostgreSQL go through another process.
    #[allow(dead_code)] // Not every test has properties.
    pub fn cases(&self, cases: u32) -> u32 {
        if self.is_shared() {
            cases.div_ceil(4)
        } else {
            cases
        }
    }

    /// Whether several nodes can serve it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Plays on a store, with an id that no other test has.
    pub fn fresh(&self, play: impl FnOnce(&Location, &str)) {
        static IDS: AtomicU32 = AtomicU32::new(0);
        let id = format!(
            "test-{}-{}",
            std::process::id(),
            IDS.fetch_add(1, Ordering::Relaxed)
        );
        match self {
            Self::Sqlite => {
                let folder = Scratch::new("play");
                play(&Location::Sqlite(folder.join("store.db")), &id);
            }
            Self::Postgres(url) => {
                let schema = id.replace('-', "_");
                let mut client = Client::connect(url, NoTls).unwrap();
                client.batch_execute(&scripted(&schema)).unwrap();
                // Before PostgreSQL's own functions.
                let path =
                    format!("options=-csearch_path%3D{schema}%2C{schema}_clock%2Cpg_catalog");
                let url = format!("{url}&{path}&application_name={schema}");
                play(&Location::Postgres(url), &id);
                let drop = format!("DROP SCHEMA {schema}, {schema}_clock CASCADE");
                client.batch_execute(&drop).unwrap();
            }
        }
    }
}

/// A schema, and beside it one in which the server's clock, and when it was started, are what a table says. An audit finds
/// tables that no store has, so it is not the store's.
fn scripted(schema: &str) -> String {
    let clock = format!("{schema}_clock");
    format!(
        "CREATE SCHEMA {schema};
        CREATE SCHEMA {clock};
        CREATE TABLE {clock}.script (clock BIGINT NOT NULL, started BIGINT NOT NULL);
        INSERT INTO {clock}.script VALUES (0, 0);
        CREATE FUNCTION {clock}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
            'SELECT pg_catalog.to_timestamp(clock / 1000.0) FROM {clock}.script';
        CREATE FUNCTION {clock}.pg_postmaster_start_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS
            'SELECT pg_catalog.to_timestamp(started) FROM {clock}.script';"
    )
}

/// What a test does to the database of a store, beside the nodes.
pub enum Server {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

impl Server {
    /// Of a store from [`Store::fresh`].
    pub fn of(location: &Location) -> Self {
        match location {
            Location::Sqlite(path) => Self::Sqlite(rusqlite::Connection::open(path).unwrap()),
            Location::Postgres(url) => Self::Postgres(Client::connect(url, NoTls).unwrap()),
        }
    }

    /// Runs statements.
    pub fn run(&mut self, sql: &str) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(sql).unwrap(),
            Self::Postgres(client) => client.batch_execute(sql).unwrap(),
        }
    }

    /// Sets its clock, in milliseconds, if it has one.
    pub fn set_clock(&mut self, milliseconds: i64) {
        if let Self::Postgres(_) = self {
            self.run(&format!("UPDATE script SET clock = {milliseconds}"));
        }
    }
}
