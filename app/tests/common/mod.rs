//! The stores that tests run on: a SQLite file, and the PostgreSQL server of `scripts/with-postgres`.

use std::sync::atomic::{AtomicU32, Ordering};

mod scratch;

use debora_app::store::Location;
use scratch::Scratch;

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
            Self::Postgres(url) => play(&Location::Postgres(url.clone()), &id),
        }
    }
}
