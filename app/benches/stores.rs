//! Durable writes per second of each store: `scripts/with-postgres cargo bench -p debora-cli --bench stores`.
//!
//! With a store as its argument the program works for `scripts/stores-in-turns`: it does what a line of standard input asks for,
//! a tenth of a second or so, and answers with the seconds. Two programs that take such turns meet the same machine, however
//! its pace changes; two that run one after the other do not.

mod raw;
#[path = "../tests/kit/scratch.rs"]
mod scratch;

use std::io;
use std::time::Duration;

use debora_cli::store::{DecisionKind, Lease, Location, Purpose, Store};
use scratch::Scratch;

const LEASES: u64 = 20_000;
const ROUNDS: u64 = 100;

/// Odd, and about 2^128 over the golden ratio: products with it come in no order.
const MIX: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

fn main() {
    // Cargo adds a flag of its own.
    if let Some(store) = std::env::args().skip(1).find(|word| word != "--bench") {
        return take_turns(&Location::parse(&store));
    }
    let folder = Scratch::new("bench");
    measure("SQLite", &Location::Sqlite(folder.join("store.db")));
    match std::env::var("DEBORA_TEST_POSTGRES") {
        Ok(url) => measure("PostgreSQL", &Location::Postgres(url)),
        Err(_) => println!("PostgreSQL: not measured; run this under scripts/with-postgres"),
    }
}

/// A store with the experiment that is written to.
fn created(location: &Location) -> Store {
    let mut store = location.open(Purpose::Serve).expect("a new store");
    raw::create(&mut store);
    store
}

fn measure(name: &str, location: &Location) {
    let mut store = created(location);
    let time = Duration::from_secs(5);
    let mut first = 1;
    for (group, order) in [
        (1, "that grow"),
        (16, "that grow"),
        (64, "that grow"),
        (16, "of 64 clients that count"),
        (16, "in no order"),
    ] {
        let leases = next_leases(&mut first, LEASES, order);
        let rate = LEASES as f64 / raw::lease_seconds(&mut store, &leases, group);
        println!(
            "{name}: {rate:.0} leases/s of {ROUNDS} actions in commits of {group}, request keys {order}"
        );
    }
    for batch in [100, 1000, 10_000] {
        let outcomes = raw::outcomes_per_second(&mut store, batch, time);
        println!("{name}: {outcomes:.0} outcomes/s in commits of {batch}");
    }
}

/// Answers each line with the seconds that a lease or an outcome took.
fn take_turns(location: &Location) {
    let mut store = created(location);
    let mut first = 1;
    println!("ready");
    for line in io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<_> = line.splitn(4, ' ').collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let seconds = match words[..] {
            ["leases", group, count, order] => {
                let leases = next_leases(&mut first, number(count), order);
                raw::lease_seconds(&mut store, &leases, number(group) as usize)
                    / leases.len() as f64
            }
            ["outcomes", batch, milliseconds] => {
                let time = Duration::from_millis(number(milliseconds));
                1.0 / raw::outcomes_per_second(&mut store, number(batch), time)
            }
            _ => panic!("{line:?} is not a turn"),
        };
        println!("{seconds:e}");
    }
}

/// So many leases, whose request keys come in this order.
fn next_leases(first: &mut u64, count: u64, order: &str) -> Vec<Lease> {
    let numbers = *first..*first + count;
    *first += count;
    let key = |number: u64| match order {
        "that grow" => format!("{number:032x}"),
        "of 64 clients that count" => format!("{}-{number}", number % 64),
        "in no order" => format!("{:032x}", u128::from(number).wrapping_mul(MIX)),
        _ => panic!("{order:?} is not an order of request keys"),
    };
    numbers.map(|number| lease(number, key(number))).collect()
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
