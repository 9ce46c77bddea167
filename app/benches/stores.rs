//! Durable writes per second of each store: `scripts/with-postgres cargo bench -p debora-app --bench stores`.

mod raw;

use std::time::Duration;

use debora_app::store::{Lease, Location, Purpose};

const LEASES: u64 = 20_000;
const ROUNDS: u64 = 100;

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
    let mut first = 1;
    for group in [1, 8, 64] {
        let leases: Vec<Lease> = (0..LEASES).map(|index| lease(first + index * ROUNDS)).collect();
        first += LEASES * ROUNDS;
        let rate = LEASES as f64 / raw::lease_seconds(&mut *store, &leases, group);
        println!("{name}: {rate:.0} leases/s of {ROUNDS} actions in commits of {group}");
    }
    for batch in [100, 1000, 10_000] {
        let outcomes = raw::outcomes_per_second(&mut *store, batch, time);
        println!("{name}: {outcomes:.0} outcomes/s in commits of {batch}");
    }
}

/// A lease with a request key as clients make them: in no order.
fn lease(first: u64) -> Lease {
    let actions = (0..ROUNDS).map(|round| (round % 10) as u32).collect();
    let request_key = Some(format!("{:016x}", first.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    Lease { epoch: 0, overtime: false, first, actions, asked: ROUNDS, request_key, at: 1_700_000_000_000 }
}
