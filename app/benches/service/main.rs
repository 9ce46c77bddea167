//! The service against its floors, in one run: a bare handler that answers as many bytes, and the store alone.
//!
//! ```sh
//! cargo bench -p debora-cli --bench service                              # SQLite, some seconds
//! cargo bench -p debora-cli --bench service -- single                    # one caller alone
//! cargo bench -p debora-cli --bench service -- connections               # rates by their number, as CSV
//! cargo bench -p debora-cli --bench service -- batches                   # rates by decisions a request, as CSV
//! DEBORA_BENCH_OUTCOMES=10000000 cargo bench -p debora-cli --bench service      # also memory and cold start
//! DEBORA_BENCH_STORE=postgres://... cargo bench -p debora-cli --bench service
//! ```

#[path = "../../tests/kit/binary.rs"]
mod binary;
mod load;
#[path = "../raw/mod.rs"]
mod raw;
#[path = "../../tests/kit/scratch.rs"]
mod scratch;
#[path = "../../tests/kit/server.rs"]
mod server;
mod single;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use binary::debora;
use debora::Key;
use debora_cli::service::clock::Moment;
use debora_cli::service::request::{
    Create, Decide, DecisionId, Granted, Request, Tell, ToldOutcome,
};
use debora_cli::service::transaction::Executor;
use debora_cli::store::{DecisionKind, Lease, Location, Progress, Purpose};
use load::{Measured, load};
use scratch::Scratch;
use server::{Running, start};
use single::FILE_SYNCS;

const CONNECTIONS: u64 = 64;
const ROUNDS: u64 = 100;
const BATCH: u64 = 1_000;
const TIME: Duration = Duration::from_secs(5);

/// Those who are compared take turns; of their rates and ratios the middle one counts. All turns fit into an epoch.
const TURNS: u64 = 9;
const TURN: Duration = Duration::from_millis(450);

/// With levels 64 times apart, epochs have 16 million rounds from the millionth round on: no request waits.
const SPEC: &str = r#"
policy = "soft"
horizon = 1_000_000_000_000
rho = 0.01
growth = 64
actions = ["small", "medium", "large"]
[[cost]]
name = "price"
threshold = 0.4
[[cost]]
name = "latency"
threshold = 0.4
"#;

/// The experiment that is served without HTTP.
const BESIDE: &str = "beside";

/// Rounds told before anything is measured.
const BEFORE: u64 = 1_000_000;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "bare") {
        return bare(arguments[place + 1].parse().expect("a number of bytes")).await;
    }
    let folder = Scratch::new("bench");
    let store = std::env::var("DEBORA_BENCH_STORE")
        .unwrap_or_else(|_| folder.join("store.db").display().to_string());
    let id = format!("bench-{}", std::process::id());

    // A store of its own: the service's keeps its experiments to itself. In PostgreSQL the bench's is named, as one is there.
    let raw = std::env::var("DEBORA_BENCH_RAW")
        .unwrap_or_else(|_| folder.join("raw.db").display().to_string());

    let is_named = |part: &str| arguments.iter().any(|argument| argument == part);
    if is_named("connections") {
        return by_connections(&folder).await;
    }
    if is_named("batches") {
        return by_batch(&folder).await;
    }
    if is_named("single") {
        return asking_alone(&store, &raw, &folder, &id);
    }
    let executor = folder.join("executor.db").display().to_string();
    asking(&store, &executor, &raw, &id).await;
    evaluating(&store, &id).await;
    let told = telling(&store, &raw, &id).await;
    let alone = folder.join("alone.db").display().to_string();
    let alone_raw = folder.join("alone-raw.db").display().to_string();
    asking_alone(&alone, &alone_raw, &folder, &id);
    if let Some(outcomes) = std::env::var("DEBORA_BENCH_OUTCOMES")
        .ok()
        .and_then(|outcomes| outcomes.parse().ok())
    {
        growing(&store, &id, told, outcomes).await;
    }
}

/// Decisions in batches over many connections, beside a bare handler and the store alone: by turns, as machines are noisy.
async fn asking(store: &str, executor_store: &str, raw_store: &str, id: &str) {
    drop(begin(store, id));
    let mut executor = begin(executor_store, BESIDE);
    let server = serve(store);
    let address = server.address.clone();
    let path = format!("/v1/experiments/{id}/decisions");
    let mut yardstick = Location::parse(raw_store)
        .open(Purpose::Serve)
        .expect("a store");
    raw::create(&mut yardstick);
    let (mut service, mut bare) = (Measured::default(), Measured::default());
    let (mut turns, mut groups) = (Vec::new(), 0);
    let mut beside = None;
    for turn in 0..TURNS {
        let ask = move |connection: u64, number: u64| {
            Some(format!(
                r#"{{"n":{ROUNDS},"request_key":"{connection}-{turn}-{number}"}}"#
            ))
        };
        let (first, before) = (progress(store, id).next_round, commits(&address).await);
        let asked = load(&address, &path, CONNECTIONS, TURN, ask).await;
        let commits = commits(&address).await - before;
        let program = || Command::new(std::env::current_exe().expect("this program"));
        let other = beside.get_or_insert_with(|| {
            start(program().args(["bare", &asked.body.to_string()])).expect("a handler")
        });
        let answered = load(&other.address, "/", CONNECTIONS, TURN, ask).await;
        // The same requests in the same groups: transactions without HTTP, and the very rows without the logic.
        let (leases, group) = (
            leases(store, id, first),
            (asked.requests / commits.max(1)).max(1) as usize,
        );
        let seconds = [
            executor_seconds(&mut executor, &leases, group),
            raw::lease_seconds(&mut yardstick, &leases, group),
        ];
        let [at_executor, alone] = seconds.map(|seconds| leases.len() as f64 / seconds);
        turns.push([asked.rate(), answered.rate(), at_executor, alone]);
        groups += commits;
        service.add(asked);
        bare.add(answered);
    }
    drop(server);
    drop(beside);
    let middle = |of: fn(&[f64; 4]) -> f64| middle(turns.iter().map(of).collect());
    let group = service.requests as f64 / groups as f64;
    println!(
        "asking: {ROUNDS} decisions a request, {CONNECTIONS} connections, {} bytes an answer",
        service.body
    );
    row("bare handler", &bare, middle(|turn| turn[1]), 1.0);
    row(
        "service",
        &service,
        middle(|turn| turn[0]),
        middle(|turn| turn[0] / turn[1]),
    );
    let [at_executor, alone] = [middle(|turn| turn[2]), middle(|turn| turn[3])];
    println!(
        "  in groups of {group:.1}, requests/s: store alone {alone:.0}, with the logic {at_executor:.0}"
    );
    let [logic, served] = [
        middle(|turn| turn[2] / turn[3]),
        middle(|turn| turn[0] / turn[3]),
    ];
    println!("  of the store alone: the logic {logic:.2}, the service {served:.2}");
}

/// Seconds that an executor without HTTP takes for the requests that got these leases.
fn executor_seconds(executor: &mut Executor, leases: &[Lease], group: usize) -> f64 {
    let ask = |lease: &Lease| {
        Request::Decide(Decide {
            id: BESIDE.into(),
            rounds: lease.asked,
            request_key: lease.request_key.clone(),
            seen: 0,
            actor: "tester".into(),
        })
    };
    let begun = Instant::now();
    for group in leases.chunks(group) {
        let requests: Vec<Request> = group.iter().map(ask).collect();
        executor
            .serve(&requests, Moment::both(0))
            .into_iter()
            .for_each(|answer| drop(answer.expect("decisions")));
    }
    begun.elapsed().as_secs_f64()
}

/// One decision after another over one connection, beside commits of the same rows and writes of as many bytes: by turns.
fn asking_alone(store: &str, raw_store: &str, folder: &Path, id: &str) {
    drop(begin(store, id));
    let server = serve(store);
    let path = format!("/v1/experiments/{id}/decisions");
    let mut yardstick = Location::parse(raw_store)
        .open(Purpose::Serve)
        .expect("a store");
    raw::create(&mut yardstick);
    let names = ["service", "store alone"];
    let names: Vec<&str> = names
        .into_iter()
        .chain(FILE_SYNCS.map(|way| way.name))
        .collect();
    let mut turns: Vec<Vec<f64>> = Vec::new();
    let mut slowest = vec![Vec::new(); names.len()];
    for turn in 0..TURNS {
        let first = progress(store, id).next_round;
        let asked = single::request_latencies(&server.address, &path, TURN, |number| {
            format!(r#"{{"n":1,"request_key":"alone-{turn}-{number:08}"}}"#)
        });
        let committed = single::commit_latencies(&mut yardstick, &leases(store, id, first));
        let file = folder.join("appended");
        let synced = FILE_SYNCS.map(|way| way.latencies(&file, TURN / 3));
        let mut middles = Vec::new();
        for (place, mut latencies) in [asked, committed].into_iter().chain(synced).enumerate() {
            latencies.sort();
            let at = |share: usize| latencies[latencies.len() * share / 100].as_secs_f64() * 1e3;
            middles.push(at(50));
            slowest[place].push(at(99));
        }
        turns.push(middles);
    }
    drop(server);
    println!("asking alone: 1 decision a request, 1 connection; middle of {TURNS} turns");
    for (place, name) in names.iter().enumerate() {
        let of = |of: &dyn Fn(&Vec<f64>) -> f64| middle(turns.iter().map(of).collect());
        println!(
            "  {name:<20} p50 {:.3} ms   p99 {:.2} ms   service {:.2} times",
            of(&|turn| turn[place]),
            middle(slowest[place].clone()),
            of(&|turn| turn[0] / turn[place])
        );
    }
}

/// The heading of what is plotted.
const CSV: &str = "series,x,y";

/// Decisions a second over more and more connections.
async fn by_connections(folder: &Path) {
    println!("{CSV}");
    for connections in [1, 4, 16, 64, 256] {
        let rate = decisions_per_second(folder, connections, ROUNDS).await;
        println!("asking by connections (decisions/s),{connections},{rate:.0}");
    }
}

/// Decisions a second in larger and larger requests.
async fn by_batch(folder: &Path) {
    println!("{CSV}");
    for rounds in [1, 10, 100, 1_000] {
        let rate = decisions_per_second(folder, CONNECTIONS, rounds).await;
        println!("asking by batch (decisions/s),{rounds},{rate:.0}");
    }
}

/// The middle of some turns on a store of its own: in one epoch there is no room for all that is compared.
async fn decisions_per_second(folder: &Path, connections: u64, rounds: u64) -> f64 {
    let store = folder.join(format!("{connections}-{rounds}.db"));
    let store = store.display().to_string();
    drop(begin(&store, "scaled"));
    let server = serve(&store);
    let path = "/v1/experiments/scaled/decisions";
    let mut rates = Vec::new();
    for turn in 0..5 {
        let ask = move |connection: u64, number: u64| {
            let key = format!("{connection}-{turn}-{number}");
            Some(format!(r#"{{"n":{rounds},"request_key":"{key}"}}"#))
        };
        let time = Duration::from_millis(300);
        let asked = load(&server.address, path, connections, time, ask).await;
        rates.push(asked.rate() * rounds as f64);
    }
    middle(rates)
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Flags beside decisions of one round with a request key, by turns: what the protocol of flags costs.
async fn evaluating(store: &str, id: &str) {
    let server = serve(store);
    let address = server.address.clone();
    let decisions = format!("/v1/experiments/{id}/decisions");
    let flags = format!("/ofrep/v1/evaluate/flags/{id}");
    let (mut asked, mut evaluated) = (Measured::default(), Measured::default());
    let mut ratios = Vec::new();
    for turn in 0..TURNS {
        let ask = move |connection: u64, number: u64| {
            let key = format!("ask-{turn}-{number:08}-{connection:02}");
            Some(format!(r#"{{"n":1,"request_key":"{key}"}}"#))
        };
        let evaluate = move |connection: u64, number: u64| {
            let key = format!("tag-{turn}-{number:08}-{connection:02}");
            Some(format!(r#"{{"context":{{"targetingKey":"{key}"}}}}"#))
        };
        // Each is first in every other turn: whatever slows down in the course of a turn meets both.
        let (plain, flag) = if turn % 2 == 0 {
            let plain = load(&address, &decisions, CONNECTIONS, TURN, ask).await;
            (
                plain,
                load(&address, &flags, CONNECTIONS, TURN, evaluate).await,
            )
        } else {
            let flag = load(&address, &flags, CONNECTIONS, TURN, evaluate).await;
            (
                load(&address, &decisions, CONNECTIONS, TURN, ask).await,
                flag,
            )
        };
        ratios.push([plain.rate(), flag.rate()]);
        asked.add(plain);
        evaluated.add(flag);
    }
    drop(server);
    let middle = |of: fn(&[f64; 2]) -> f64| middle(ratios.iter().map(of).collect());
    println!("evaluating: 1 decision a request, {CONNECTIONS} connections");
    let [plain, flag] = [middle(|turn| turn[0]), middle(|turn| turn[1])];
    row("decisions", &asked, plain, 1.0);
    row("flags", &evaluated, flag, flag / plain);
    // Two ways to the middle: where they differ, the machine was not quiet.
    println!(
        "  a flag takes {:.2} times as long as a decision by the middle rates, {:.2} times in the middle turn",
        plain / flag,
        middle(|turn| turn[0] / turn[1])
    );
}

/// Outcomes in batches, beside the store alone. How many were told.
async fn telling(store: &str, raw_store: &str, id: &str) -> u64 {
    let server = serve(store);
    let address = server.address.clone();
    let path = format!("/v1/experiments/{id}/outcomes");
    let connections = 8;
    let before = told_through(store, id);
    let tell = move |connection: u64, number: u64| {
        Some(outcomes(
            before + (number * connections + connection) * BATCH,
        ))
    };
    let service = load(&address, &path, connections, TIME, tell).await;
    drop(server);
    let told = told_through(store, id);
    let mut yardstick = Location::parse(raw_store)
        .open(Purpose::Serve)
        .expect("a store");
    let raw = raw::outcomes_per_second(&mut yardstick, BATCH, TIME);
    let rate = service.rate() * BATCH as f64;
    println!("telling: {BATCH} outcomes a request, {connections} connections");
    row("service", &service, service.rate(), rate / raw);
    println!(
        "  {rate:.0} outcomes/s; store alone {raw:.0} in batches of {BATCH}; service {:.2} of it",
        rate / raw
    );
    told
}

/// Memory while outcomes grow, and a cold start with all of them.
async fn growing(store: &str, id: &str, told: u64, outcomes_all: u64) {
    let server = serve(store);
    let address = server.address.clone();
    let path = format!("/v1/experiments/{id}/outcomes");
    println!("growing to {outcomes_all} outcomes");
    let mut from = told;
    for step in 1..=4 {
        let to = (outcomes_all * step / 4 / BATCH * BATCH).max(from);
        ask_until(store, &address, id, to).await;
        let tell = move |connection: u64, number: u64| {
            let first = from + (number * 8 + connection) * BATCH;
            (first < to).then(|| outcomes(first))
        };
        let measured = load(&address, &path, 8, Duration::MAX / 4, tell).await;
        from = to;
        let memory = memory(server.child.id());
        println!(
            "  {to:>9} outcomes: {memory:.1} MB resident, {:.0} outcomes/s",
            measured.rate() * BATCH as f64
        );
    }
    drop(server);
    let begun = Instant::now();
    let server = serve(store);
    let address = server.address.clone();
    let path = format!("/v1/experiments/{id}/decisions");
    load(&address, &path, 1, Duration::MAX / 4, |_, number| {
        (number == 0).then(|| r#"{"n":1}"#.to_owned())
    })
    .await;
    println!(
        "  cold start to the first decision: {:.2} s",
        begun.elapsed().as_secs_f64()
    );
    drop(server);
}

fn row(name: &str, measured: &Measured, rate: f64, ratio: f64) {
    println!(
        "  {name:<12} {rate:>10.0} requests/s   ratio {ratio:.2}   p50 {:.2} ms   p99 {:.2} ms",
        measured.latency(0.5),
        measured.latency(0.99)
    );
}

/// A batch of outcomes for consecutive rounds; rounds are numbered from 1.
fn outcomes(before: u64) -> String {
    let one = |round: u64| {
        format!(
            r#"{{"round":{round},"reward":{},"costs":[0.25,0.{}]}}"#,
            round % 2,
            round % 1_000
        )
    };
    let all: Vec<String> = (before + 1..=before + BATCH).map(one).collect();
    format!("[{}]", all.join(","))
}

/// Makes the experiment and goes through its short epochs.
fn begin(store: &str, id: &str) -> Executor {
    let mut executor = Executor::start(
        Location::parse(store)
            .open(Purpose::Serve)
            .expect("a store"),
        Moment::both(0),
    )
    .expect("starts");
    let spec = SPEC.to_owned();
    let create = Create {
        id: id.to_owned(),
        spec,
        key: Some(Key::from(1u64)),
        blind: true,
        actor: "bench".into(),
    };
    executor
        .serve(&[Request::Create(create)], Moment::both(0))
        .swap_remove(0)
        .expect("an experiment");
    let mut told = 0;
    while told < BEFORE {
        let ask = Request::Decide(Decide {
            id: id.to_owned(),
            rounds: 10_000,
            request_key: None,
            seen: 0,
            actor: "tester".into(),
        });
        let Ok(Granted::Decided(decided)) = executor.serve(&[ask], Moment::both(0)).swap_remove(0)
        else {
            panic!("no decisions")
        };
        let (first, count) = (decided.lease.first, decided.lease.actions.len() as u64);
        let one = |round: u64| ToldOutcome {
            decision: DecisionId::Round(round),
            reward: (round % 2) as f64,
            costs: vec![0.25, 0.5],
        };
        let tell = Request::Tell(Tell {
            id: id.to_owned(),
            outcomes: (first..first + count).map(one).collect(),
            actor: "tester".into(),
        });
        executor
            .serve(&[tell], Moment::both(0))
            .swap_remove(0)
            .expect("receipts");
        told = first + count - 1;
    }
    executor
}

/// Asks until this round is decided.
async fn ask_until(store: &str, address: &str, id: &str, round: u64) {
    let decided = progress(store, id).next_round - 1;
    let path = format!("/v1/experiments/{id}/decisions");
    let ask = move |_, number: u64| {
        (decided + number * 10_000 < round).then(|| r#"{"n":10000}"#.to_owned())
    };
    load(address, &path, 1, Duration::MAX / 4, ask).await;
}

/// How many transactions the server has committed.
async fn commits(address: &str) -> u64 {
    let mut text = String::new();
    let url = format!("http://{address}/metrics");
    let read =
        tokio::task::spawn_blocking(move || ureq::get(url).call()?.body_mut().read_to_string())
            .await;
    text += &read.expect("a reader").expect("metrics");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("debora_groups_total"));
    line.and_then(|count| count.trim().parse::<f64>().ok())
        .expect("a count of groups") as u64
}

fn told_through(store: &str, id: &str) -> u64 {
    progress(store, id).outcomes.iter().sum()
}

fn progress(store: &str, id: &str) -> Progress {
    let mut store = Location::parse(store).open(Purpose::Read).expect("a store");
    store
        .experiment(id)
        .expect("a store")
        .expect("an experiment")
        .1
}

/// The leases from this round on.
fn leases(store: &str, id: &str, first: u64) -> Vec<Lease> {
    let mut store = Location::parse(store).open(Purpose::Read).expect("a store");
    let epoch = store
        .experiment(id)
        .expect("a store")
        .expect("an experiment")
        .1
        .epoch;
    store
        .leases(id, epoch, DecisionKind::Round, first, usize::MAX)
        .expect("leases")
}

/// A handler that does nothing but answer this many bytes.
async fn bare(bytes: usize) {
    let body = "x".repeat(bytes);
    let handler = axum::routing::post(move |_: axum::body::Bytes| async move { body });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    println!(
        "listening on http://{}",
        listener.local_addr().expect("an address")
    );
    axum::serve(listener, axum::Router::new().route("/", handler))
        .await
        .expect("a server");
}

fn serve(store: &str) -> Running {
    let mut command = debora(&["serve", "--store", store, "--listen", "127.0.0.1:0"]);
    start(command.args(["--log", "error"])).expect("a server")
}

/// Resident memory in megabytes.
fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("its size");
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<f64>()
        .expect("a number")
        / 1024.0
}
