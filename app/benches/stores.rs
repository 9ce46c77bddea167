//! Durable writes per second of each store: `scripts/with-postgres cargo bench -p debora-cli --bench stores`.

mod raw;
#[path = "../tests/common/scratch.rs"]
mod scratch;

use std::time::Duration;

use debora_cli::store::{DecisionKind, Lease, Location, Purpose};
use scratch::Scratch;

const LEASES: u64 = 20_000;
const ROUNDS: u64 = 100;

/// Odd, and about 2^128 over the golden ratio: products with it come in no order.
const MIX: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

fn main() {
    let folder = Scratch::new("bench");
    measure("SQLite", &Location::Sqlite(folder.join("store.db")));
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
    let mut leases = |group: usize, order: &str, key: fn(u64) -> String| {
        let leases: Vec<Lease> = (first..first + LEASES)
            .map(|number| lease(number, key(number)))
            .collect();
        first += LEASES;
        let rate = LEASES as f64 / raw::lease_seconds(&mut *store, &leases, group);
        println!(
            "{name}: {rate:.0} leases/s of {ROUNDS} actions in commits of {group}, request keys {order}"
        );
    };
    for group in [1, 16, 64] {
        leases(group, "that grow", |number| format!("{number:032x}"));
    }
    leases(16, "of 64 clients that count", |number| {
        format!("{}-{number}", number % 64)
    });
    leases(16, "in no order", |number| {
        format!("{:032x}", u128::from(number).wrapping_mul(MIX))
    });
    for batch in [100, 1000, 10_000] {
        let outcomes = raw::outcomes_per_second(&mut *store, batch, time);
        println!("{name}: {outcomes:.0} outcomes/s in commits of {batch}");
    }
}

/// The lease of this number.
fn lease(number: u64, request_key: String) -> Lease {
    let actions = (0..ROUNDS).map(|round| (round % 10) as u32).collect();
    let (first, request_key) = (1 + number * ROUNDS, Some(request_key));
    Lease {
        epoch: 0,
        kind: DecisionKind::Round,
        first,
        actions,
        asked: ROUNDS,
        request_key,
        at: 1_700_000_000_000,
        waited: 1_000_000_000,
        actor: 1,
    }
}
