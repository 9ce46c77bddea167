//! Crowds against a calm run: many connections, many readers, many experiments, busy or idle. Prints a table.
//!
//! ```sh
//! cargo bench -p debora-app --bench crowds                                # ten seconds each
//! DEBORA_CROWD_SECONDS=60 cargo bench -p debora-app --bench crowds        # as in docs/benchmarks.md
//! cargo bench -p debora-app --bench crowds -- calm readers                # some of them
//! ```

#[path = "../../tests/common/binary.rs"]
mod binary;
mod client;
#[path = "../../tests/common/scratch.rs"]
mod scratch;
#[path = "../../tests/common/server.rs"]
mod server;

use std::time::{Duration, Instant};

use binary::debora;
use client::{Client, Outcomes};
use debora_app::service::request::{Create, Request};
use debora_app::service::transaction::Executor;
use debora_app::store::{Location, Purpose};
use scratch::Scratch;
use server::{Running, start};

/// Rounds that a request asks for, and outcomes that the next one tells.
const ROUNDS: u64 = 10;

/// Connections of the calm run.
const CALM: u64 = 64;

/// Exploration alone has 86 billion rounds: no request waits for an epoch's end.
const SPEC: &str = r#"
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

/// Who comes, and what is there already.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    shown: &'static str,
    connections: u64,
    /// Connections that read the log all the time.
    readers: u64,
    /// Experiments that are asked in turn.
    busy: u64,
    /// Whether there are idle experiments beside them.
    idle: bool,
}

const ALONE: Scenario = Scenario {
    name: "calm",
    shown: "calm",
    connections: CALM,
    readers: 0,
    busy: 1,
    idle: false,
};

const SCENARIOS: [Scenario; 7] = [
    ALONE,
    Scenario {
        name: "5x",
        shown: "5 times as many",
        connections: 5 * CALM,
        ..ALONE
    },
    Scenario {
        name: "47x",
        shown: "47 times as many",
        connections: 47 * CALM,
        ..ALONE
    },
    Scenario {
        name: "readers",
        shown: "beside 200 readers of the log",
        readers: 200,
        ..ALONE
    },
    Scenario {
        name: "busy",
        shown: "100 busy experiments",
        busy: 100,
        ..ALONE
    },
    Scenario {
        name: "idle",
        shown: "beside idle experiments",
        idle: true,
        ..ALONE
    },
    // What other guests of the machine do to the figures: it should be as the first.
    Scenario {
        name: "again",
        shown: "calm again",
        ..ALONE
    },
];

/// What was measured.
struct Measured {
    asking: Outcomes,
    reading: Outcomes,
    seconds: f64,
    memory: f64,
}

#[tokio::main]
async fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    check_open_files();
    let seconds = number("DEBORA_CROWD_SECONDS", 10);
    println!(
        "{seconds} s each; {ROUNDS} decisions a request, then their outcomes; ratios to calm\n\n\
         | crowd | connections | requests/s | p50, ms | p99, ms | shed | unanswered | memory, MB |\n|---|---|---|---|---|---|---|---|"
    );
    let mut calm = None;
    for scenario in SCENARIOS {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == scenario.name) {
            continue;
        }
        let mut measured = scenario.measure(Duration::from_secs(seconds)).await;
        let figures = measured.figures();
        let calm = *calm.get_or_insert(figures);
        println!("{}", scenario.row(&measured, figures, calm));
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Each connection is an open file of this program and one of the server's, which inherits the limit.
fn check_open_files() {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let soft: u64 = soft.and_then(|soft| soft.parse().ok()).unwrap_or(u64::MAX);
    assert!(
        soft >= 4_096,
        "{soft} open files are too few; run `ulimit -n 4096` first"
    );
}

impl Scenario {
    async fn measure(&self, time: Duration) -> Measured {
        let folder = Scratch::new("crowds");
        let store = folder.join("store.db").display().to_string();
        let idle = if self.idle {
            number("DEBORA_CROWD_IDLE", 100_000)
        } else {
            0
        };
        create(&store, self.busy, idle);
        let server = serve(&store);
        if self.readers > 0 {
            // A log to read: pages of a short one cost nothing.
            self.crowd(&server.address, time / 4, 0).await;
        }
        let begun = Instant::now();
        let (asking, reading) = self.crowd(&server.address, time, self.readers).await;
        Measured {
            asking,
            reading,
            seconds: begun.elapsed().as_secs_f64(),
            memory: memory(server.child.id()),
        }
    }

    /// Askers and readers for some time.
    async fn crowd(&self, address: &str, time: Duration, readers: u64) -> (Outcomes, Outcomes) {
        let end = Instant::now() + time;
        // Keys of one run must not be those of another on the same store.
        let run = time.as_millis();
        let askers: Vec<_> = (0..self.connections)
            .map(|asker| tokio::spawn(ask(Client::new(address, end), asker, self.busy, run)))
            .collect();
        let readers: Vec<_> = (0..readers)
            .map(|_| tokio::spawn(read(Client::new(address, end))))
            .collect();
        let (mut asking, mut reading) = (Outcomes::default(), Outcomes::default());
        for asker in askers {
            asking.add(asker.await.expect("a client that ends"));
        }
        for reader in readers {
            reading.add(reader.await.expect("a client that ends"));
        }
        (asking, reading)
    }

    fn row(&self, measured: &Measured, figures: [f64; 4], calm: [f64; 4]) -> String {
        let percent = |count| format!("{:.1} %", 100.0 * measured.asking.share(count));
        let cells: Vec<String> = (figures.iter().zip(calm))
            .map(|(figure, calm)| {
                format!(
                    "{figure:.*} ({:.2})",
                    usize::from(*figure < 100.0),
                    figure / calm
                )
            })
            .collect();
        let mut row = format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.shown,
            self.connections + self.readers,
            cells[0],
            cells[1],
            cells[2],
            percent(measured.asking.shed),
            percent(measured.asking.unanswered),
            cells[3]
        );
        if self.readers > 0 {
            let reading = &measured.reading;
            row += &format!(
                "\n\npages of the log: {:.0} a second, {:.0} % shed, {:.0} % unanswered\n",
                reading.latencies.len() as f64 / measured.seconds,
                100.0 * reading.share(reading.shed),
                100.0 * reading.share(reading.unanswered)
            );
        }
        row
    }
}

impl Measured {
    /// Requests a second, two latencies and memory.
    fn figures(&mut self) -> [f64; 4] {
        [
            self.asking.latencies.len() as f64 / self.seconds,
            self.asking.latency(0.5),
            self.asking.latency(0.99),
            self.memory,
        ]
    }
}

/// Asks with request keys and tells what was given, until the end.
async fn ask(mut client: Client, asker: u64, busy: u64, run: u128) -> Outcomes {
    for number in 0.. {
        let path = format!("/v1/experiments/busy-{}", (asker + number) % busy);
        let body = format!(r#"{{"n":{ROUNDS},"request_key":"{run}-{number}-{asker}"}}"#);
        let Some(answer) = client
            .send("POST", &format!("{path}/decisions"), &body)
            .await
        else {
            break;
        };
        let told = outcomes(&answer);
        if client
            .send("POST", &format!("{path}/outcomes"), &told)
            .await
            .is_none()
        {
            break;
        }
    }
    client.outcomes
}

/// Outcomes for the rounds of an answer.
fn outcomes(answer: &str) -> String {
    let rounds = answer.split(r#""round":"#).skip(1);
    let one = |rest: &str| {
        let round = rest.split(',').next().expect("a round");
        format!(r#"{{"round":{round},"reward":1,"costs":[0.25]}}"#)
    };
    format!("[{}]", rounds.map(one).collect::<Vec<_>>().join(","))
}

/// Reads pages of the log until the end.
async fn read(mut client: Client) -> Outcomes {
    while client
        .send("GET", "/v1/experiments/busy-0/log?limit=10000", "")
        .await
        .is_some()
    {}
    client.outcomes
}

/// Makes experiments without HTTP: a server that had idle ones beside it would be measured before it starts.
fn create(store: &str, busy: u64, idle: u64) {
    let mut executor = Executor::new(Location::of(store).open(Purpose::Serve).expect("a store"));
    let busy = (0..busy).map(|number| format!("busy-{number}"));
    let idle = (0..idle).map(|number| format!("idle-{number}"));
    let ids: Vec<String> = busy.chain(idle).collect();
    let create = |id: &String| {
        Request::Create(Create {
            id: Some(id.clone()),
            spec: SPEC.to_owned(),
            key: None,
            blind: true,
            actor: "bench".into(),
        })
    };
    // One outcome of each is outstanding: the wait for it has begun.
    let ask = |id: &String| Request::Decide {
        id: id.clone(),
        rounds: 1,
        request_key: None,
    };
    let at = now();
    for group in ids.chunks(1_000) {
        for requests in [
            group.iter().map(create).collect(),
            group.iter().map(ask).collect::<Vec<_>>(),
        ] {
            for answer in executor.serve(&requests, at) {
                answer.expect("an experiment");
            }
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock").as_millis() as i64
}

fn serve(store: &str) -> Running {
    let mut command = debora(&["serve", "--store", store, "--listen", "127.0.0.1:0"]);
    start(command.args(["--log", "off"])).expect("a server")
}

/// The most resident memory that a process has had, in megabytes.
fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<f64>()
            .ok()
    });
    kilobytes.expect("its size") / 1024.0
}
