//! One busy experiment beside many that wait for outcomes: its rate with them, as a ratio to its rate without.
//!
//! ```sh
//! cargo bench -p debora-app --bench idle
//! DEBORA_BENCH_IDLE=1000000 cargo bench -p debora-app --bench idle
//! ```

#[path = "../tests/common/scratch.rs"]
mod scratch;

use std::time::{Duration, Instant};

use debora_app::service::clock::{Clock, system};
use debora_app::service::request::{Create, Granted, Request};
use debora_app::service::transaction::Executor;
use debora_app::store::{Location, Purpose};
use scratch::Scratch;

const SPEC: &str = r#"
policy = "free"
horizon = 1e15
rho = 0.001
actions = ["a", "b"]
[service]
on_wait = "serve"
outcome_wait = "1h"
"#;

/// Requests that share a transaction, as 64 connections make them, and decisions of each.
const GROUP: usize = 16;
const ROUNDS: u64 = 10;

/// The two take turns, as machines are noisy; of their ratios the middle one counts.
const TURNS: usize = 9;
const TURN: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_secs(1);

fn main() {
    let idle = std::env::var("DEBORA_BENCH_IDLE").map_or(100_000, |idle| {
        idle.parse().expect("a number of experiments")
    });
    let folder = Scratch::new("idle");
    let clock = system();
    let mut alone = begin(&Location::Sqlite(folder.join("alone.db")), &clock);
    let crowded = Location::Sqlite(folder.join("crowded.db"));
    let mut beside = begin(&crowded, &clock);
    add_idle(&crowded, idle);
    let mut ratios: Vec<(f64, f64, f64)> = (0..TURNS)
        .map(|_| {
            let rates = (rate(&mut alone, &clock), rate(&mut beside, &clock));
            (rates.1 / rates.0, rates.0, rates.1)
        })
        .collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, alone, beside) = ratios[TURNS / 2];
    println!(
        "{alone:.0} decisions/s alone, {beside:.0} beside {idle} experiments that wait: ratio {ratio:.2}"
    );
}

fn begin(location: &Location, clock: &Clock) -> Executor {
    let store = location.open(Purpose::Serve).expect("a store");
    let mut executor = Executor::start(store, clock()).expect("a start");
    let create = Request::Create(Create {
        id: Some("busy".into()),
        spec: SPEC.into(),
        key: None,
        blind: true,
        actor: "bench".into(),
    });
    let created = executor.serve(&[create], clock()).remove(0);
    created.expect("an experiment");
    executor
}

/// Experiments that have handed out rounds, due in an hour.
fn add_idle(location: &Location, idle: usize) {
    let mut store = location.open(Purpose::Write).expect("a store");
    let (mut experiment, progress) = store.experiment("busy").expect("reads").expect("is there");
    let opened = store.epochs("busy", 0, 1).expect("reads").remove(0);
    for first in (0..idle).step_by(1_000) {
        store.begin().expect("begins");
        for number in first..idle.min(first + 1_000) {
            experiment.id = format!("idle-{number}");
            assert!(
                store
                    .create(&experiment, &progress, &opened)
                    .expect("creates")
            );
            let due = Some(3_600_000 + number as i64);
            store.set_due(&experiment.id, due).expect("is due");
        }
        store.commit().expect("commits");
    }
}

/// Decisions a second over one turn, with a tick every second as a server makes them.
fn rate(executor: &mut Executor, clock: &Clock) -> f64 {
    let ask = || Request::Decide {
        id: "busy".into(),
        rounds: ROUNDS,
        request_key: None,
    };
    let group: Vec<Request> = (0..GROUP).map(|_| ask()).collect();
    let (begun, mut ticked, mut decided) = (Instant::now(), Instant::now(), 0);
    executor.tick(clock()).expect("ticks");
    while begun.elapsed() < TURN {
        for answer in executor.serve(&group, clock()) {
            let Ok(Granted::Decided(given)) = answer else {
                panic!("no decisions")
            };
            decided += given.lease.actions.len();
        }
        if ticked.elapsed() >= TICK {
            executor.tick(clock()).expect("ticks");
            ticked = Instant::now();
        }
    }
    decided as f64 / begun.elapsed().as_secs_f64()
}
