//! The pages: how long each takes and weighs, with a thousand experiments and with a million outcomes, and what open ones cost
//! those who ask for decisions. Prints two tables.
//!
//! ```sh
//! cargo bench -p debora-cli --bench pages                                 # ten seconds for each run of decisions
//! DEBORA_PAGES_SECONDS=30 cargo bench -p debora-cli --bench pages         # as in docs/benchmarks.md
//! cargo bench -p debora-cli --bench pages -- / /experiments/large         # some pages
//! ```

#[path = "../../tests/kit/binary.rs"]
mod binary;
mod browser;
#[path = "../crowds/client.rs"]
mod client;
#[path = "../../tests/kit/scratch.rs"]
mod scratch;
#[path = "../../tests/kit/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binary::debora;
use client::{Client, Outcomes};
use debora_cli::service::clock;
use debora_cli::service::request::{
    Create, Decide, DecisionId, Granted, Request, Tell, ToldOutcome,
};
use debora_cli::service::transaction::Executor;
use debora_cli::store::{Location, Purpose};
use scratch::Scratch;
use server::{Running, start};

/// Experiments in the list, beside the large and the busy one.
const EXPERIMENTS: usize = 998;

/// Outcomes of the large one.
const OUTCOMES: usize = 1_000_000;

/// How often each page is loaded.
const LOADS: usize = 50;

/// Pages that are open at once.
const OPEN: u32 = 32;

/// Runs of decisions, alone and beside them.
const RUNS: u32 = 4;

/// Connections that ask and tell.
const CONNECTIONS: u64 = 64;

/// Every page that a person may keep open or come across, and what a machine does.
const PAGES: [&str; 13] = [
    "/",
    "/?q=checkout&sort=alerts",
    "/experiments/large",
    "/experiments/large/epochs",
    "/experiments/large/epochs/0",
    "/experiments/large/audit",
    "/experiments/large/diff",
    "/experiments/large/certificate",
    "/experiments/large/seal",
    "/new",
    "/admin",
    "/api",
    "/metrics",
];

/// Those that are kept open, in turn.
const KEPT_OPEN: [&str; 3] = ["/", "/experiments/busy", "/?sort=rate&state=running"];

/// Exploration alone has billions of rounds: no request waits for an epoch's end.
const SPEC: &str = r#"
name = "checkout button"
policy = "soft"
horizon = 1_000_000_000_000_000
rho = 0.0001
delta = 0.0001
growth = 64
actions = ["small", "medium", "large"]
[[cost]]
name = "price"
threshold = 0.4
[service]
outcome_wait = "1h"
"#;

/// Epochs that end: the large experiment has a history.
const SPEC_LARGE: &str = r#"
name = "model routing"
policy = "soft"
horizon = 2_000_000
rho = 0.3
actions = ["small", "medium", "large"]
[[cost]]
name = "price"
threshold = 0.4
"#;

#[tokio::main]
async fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word.starts_with('/'))
        .collect();
    let seconds = std::env::var("DEBORA_PAGES_SECONDS")
        .map_or(10, |seconds| seconds.parse().expect("a number of seconds"));
    let folder = Scratch::new("pages");
    let store = folder.join("store.db").display().to_string();
    fill(&store);
    list_cold(&store);
    let server = serve(&store);
    println!(
        "| page | work, ms | median, ms | slowest of {LOADS}, ms | bytes | with what it loads |\n|---|---|---|---|---|---|"
    );
    for path in PAGES {
        if chosen.is_empty() || chosen.iter().any(|word| word == path) {
            println!("{}", row(&server, path));
        }
    }
    beside_pages(&server.address, Duration::from_secs(seconds)).await;
}

/// The list as the first request after a start sees it, and how many it takes until every line is read.
fn list_cold(store: &str) {
    let server = serve(store);
    let before = busy(&server);
    let first = browser::load(&server.address, "/", "");
    let work = busy(&server) - before;
    let (mut requests, mut slowest) = (1, first.taken);
    let mut page = first.text;
    while page.contains("still being read") {
        let next = browser::load(&server.address, "/", "");
        (requests, slowest, page) = (requests + 1, slowest.max(next.taken), next.text);
    }
    println!(
        "the list after a start: {:.1} ms of work, {:.1} ms in all; every line is read after {requests} requests, the slowest of {:.1} ms\n",
        milliseconds(work),
        milliseconds(first.taken),
        milliseconds(slowest)
    );
}

fn row(server: &Running, path: &str) -> String {
    let load = || browser::load(&server.address, path, "");
    let before = busy(server);
    let mut times: Vec<_> = (0..LOADS).map(|_| load().taken).collect();
    let work = (busy(server) - before) / LOADS as u32;
    times.sort();
    let page = load();
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    let loaded: usize = browser::assets(&page.text)
        .iter()
        .map(|path| browser::load(&server.address, path, "").bytes)
        .sum();
    format!(
        "| `{path}` | {:.1} | {:.1} | {:.1} | {} | {} |",
        milliseconds(work),
        milliseconds(times[LOADS / 2]),
        milliseconds(times[LOADS - 1]),
        page.bytes,
        page.bytes + loaded
    )
}

/// How long the server's threads have worked so far, as the scheduler counts it: other guests of the machine do not.
fn busy(server: &Running) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).expect("Linux");
    let nanoseconds = tasks.map(|task| {
        let path = task.expect("a thread").path().join("schedstat");
        // A thread may have ended since.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let first = text.split(' ').next().map(str::parse::<u64>);
        first.and_then(Result::ok).unwrap_or(0)
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn milliseconds(taken: Duration) -> f64 {
    taken.as_secs_f64() * 1e3
}

/// Decisions over some runs.
#[derive(Default)]
struct Decisions {
    outcomes: Outcomes,
    rates: Vec<f64>,
}

impl Decisions {
    fn rate(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }

    fn row(&mut self, name: &str, alone: f64) -> String {
        let rate = self.rate();
        let outcomes = &mut self.outcomes;
        format!(
            "| {name} | {:.0} ({:.3}) | {:.0?} | {:.1} | {:.1} | {:.1} % |",
            rate,
            rate / alone,
            self.rates,
            outcomes.latency(0.5),
            outcomes.latency(0.99),
            100.0 * outcomes.share(outcomes.shed)
        )
    }
}

/// Decisions alone and beside open pages, in turn: other guests of the machine come and go.
async fn beside_pages(address: &str, time: Duration) {
    let (mut alone, mut beside) = (Decisions::default(), Decisions::default());
    let mut opened = Vec::new();
    // Not counted: it warms the server up.
    decisions(&mut Decisions::default(), address, time / 4, 0).await;
    for run in 0..RUNS {
        decisions(&mut alone, address, time, 2 * run + 1).await;
        let over = Arc::new(AtomicBool::new(false));
        let pages: Vec<_> = (0..OPEN).map(|page| open(address, page, &over)).collect();
        decisions(&mut beside, address, time, 2 * run + 2).await;
        over.store(true, Ordering::Relaxed);
        let taken = pages
            .into_iter()
            .flat_map(|page| page.join().expect("a page that ends"));
        opened.extend(taken);
    }
    opened.sort();
    let rate = alone.rate();
    println!(
        "\n| decisions | requests/s | in each run | p50, ms | p99, ms | shed |\n|---|---|---|---|---|---|\n{}\n{}\n\n\
         the pages asked {} times; half of the answers took less than {:.1} ms, and 99 % less than {:.1} ms",
        alone.row("alone", rate),
        beside.row(&format!("beside {OPEN} open pages"), rate),
        opened.len(),
        milliseconds(opened[opened.len() / 2]),
        milliseconds(opened[opened.len() * 99 / 100]),
    );
}

fn open(
    address: &str,
    page: u32,
    over: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<Vec<Duration>> {
    let (address, over) = (address.to_owned(), Arc::clone(over));
    let path = KEPT_OPEN[page as usize % KEPT_OPEN.len()];
    // People open them at different times.
    let offset = Duration::from_secs(5) * page / OPEN;
    std::thread::spawn(move || browser::keep_open(&address, path, offset, &over))
}

async fn decisions(decisions: &mut Decisions, address: &str, time: Duration, run: u32) {
    let begun = Instant::now();
    let askers: Vec<_> = (0..CONNECTIONS)
        .map(|asker| tokio::spawn(ask(Client::new(address, begun + time), asker, run)))
        .collect();
    let mut outcomes = Outcomes::default();
    for asker in askers {
        outcomes.add(asker.await.expect("a client that ends"));
    }
    let answers = outcomes.latencies.len() as f64;
    decisions
        .rates
        .push(answers / begun.elapsed().as_secs_f64());
    decisions.outcomes.add(outcomes);
}

/// Asks for ten rounds and tells what came of them, until the end.
async fn ask(mut client: Client, asker: u64, run: u32) -> Outcomes {
    for number in 0.. {
        let body = format!(r#"{{"n":10,"request_key":"{run}-{number}-{asker}"}}"#);
        let Some(answer) = client
            .send("POST", "/v1/experiments/busy/decisions", &body)
            .await
        else {
            break;
        };
        let rounds = answer.split(r#""round":"#).skip(1);
        let told = rounds.map(|rest| {
            let round = rest.split(',').next().expect("a round");
            format!(r#"{{"round":{round},"reward":1,"costs":[0.25]}}"#)
        });
        let told = format!("[{}]", told.collect::<Vec<_>>().join(","));
        if client
            .send("POST", "/v1/experiments/busy/outcomes", &told)
            .await
            .is_none()
        {
            break;
        }
    }
    client.end()
}

/// Makes the experiments without HTTP, which would take minutes.
fn fill(store: &str) {
    let clock = clock::system();
    let opened = Location::parse(store)
        .open(Purpose::Serve)
        .expect("a store");
    let mut executor = Executor::start(opened, clock()).expect("a start");
    let small = (0..EXPERIMENTS).map(|number| format!("e-{number}"));
    let ids: Vec<String> = small.chain(["busy".into()]).collect();
    let create = |id: &str, spec: &str| {
        Request::Create(Create {
            id: id.to_owned(),
            spec: spec.to_owned(),
            key: None,
            blind: true,
            actor: "bench".into(),
        })
    };
    // Names that differ, or the list would be compressed better than any real one.
    let named = |(number, id): (u64, &String)| {
        let name = format!("checkout {:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        create(id, &SPEC.replace("checkout button", &name))
    };
    let mut requests: Vec<_> = (0..).zip(&ids).map(named).collect();
    requests.push(create("large", SPEC_LARGE));
    for answer in executor.serve(&requests, clock()) {
        answer.expect("an experiment");
    }
    for id in &ids {
        play(&mut executor, id, 24);
    }
    let mut told = 0;
    while told < OUTCOMES {
        told += play(&mut executor, "large", 10_000);
    }
}

/// Decides some rounds and tells their outcomes: how many.
fn play(executor: &mut Executor, id: &str, rounds: u64) -> usize {
    let clock = clock::system();
    let ask = Request::Decide(Decide {
        id: id.to_owned(),
        rounds,
        request_key: None,
        seen: 0,
        actor: "bench".into(),
    });
    let answer = executor.serve(&[ask], clock()).pop().expect("an answer");
    let Ok(Granted::Decided(decided)) = answer else {
        panic!("{id} gave no decisions");
    };
    let outcome = |(place, action): (usize, &u32)| ToldOutcome {
        decision: DecisionId::Round(decided.lease.first + place as u64),
        // Rewards apart, so that the estimates tell the actions apart, and a price that is above its limit at times.
        reward: f64::from(*action) * 0.4 + (place % 5) as f64 * 0.04,
        costs: vec![f64::from(*action) * 0.25 + (place % 7) as f64 * 0.03],
    };
    let outcomes: Vec<_> = decided
        .lease
        .actions
        .iter()
        .enumerate()
        .map(outcome)
        .collect();
    let count = outcomes.len();
    let tell = Request::Tell(Tell {
        id: id.to_owned(),
        outcomes,
        actor: "bench".into(),
    });
    executor
        .serve(&[tell], clock())
        .pop()
        .expect("an answer")
        .expect("receipts");
    count
}

fn serve(store: &str) -> Running {
    let mut command = debora(&["serve", "--store", store, "--listen", "127.0.0.1:0"]);
    start(command.args(["--log", "off"])).expect("a server")
}
