//! Durable writes per second of each store: `scripts/with-postgres cargo bench -p debora-app --bench stores`.

mod raw;

use std::time::Duration;

use debora_app::store::{Location, Purpose};

fn main() {
    let folder = std::env::temp_dir().join(format!("debora-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new folder");
    measure("SQLite", &Location::Sqlite(folder.join("store.db")));
    std::fs::remove_dir_all(folder).expect("the folder goes");
    match std::env::var("DEBORA_TEST_POSTGRES") {
        Ok(url) => measure("PostgreSQL", &Location::Postgres(url)),
        Err(_) => println!("PostgreSQL: not measured; run this under scripts/with-postgres"),
    }
}

fn measure(name: &str, location: &Location) {
    let mut store = location.open(Purpose::Serve).expect("a new store");
    raw::create(&mut *store);
    let time = Duration::from_secs(5);
    for group in [1, 8, 64] {
        let commits = raw::lease_commits_per_second(&mut *store, group, 100, time);
        println!(
            "{name}: {commits:.0} commits/s of {group} leases of 100 actions: {:.0} leases/s",
            commits * group as f64
        );
    }
    for batch in [100, 1000, 10_000] {
        let outcomes = raw::outcomes_per_second(&mut *store, batch, time);
        println!("{name}: {outcomes:.0} outcomes/s in commits of {batch}");
    }
}
