//! Crowds against a calm run: many connections, many readers, many experiments, busy or idle, a webhook that is told ten messages
//! a second. Prints a table.
//!
//! ```sh
//! cargo bench -p debora-cli --bench crowds                                # ten seconds each
//! DEBORA_CROWD_SECONDS=60 cargo bench -p debora-cli --bench crowds        # as in docs/benchmarks.md
//! cargo bench -p debora-cli --bench crowds -- 47x readers                 # some of them
//! ```

#[path = "../../tests/kit/binary.rs"]
mod binary;
mod client;
#[path = "../../tests/kit/scratch.rs"]
mod scratch;
#[path = "../../tests/kit/server.rs"]
mod server;

use std::time::{Duration, Instant};

use binary::debora;
use client::{Client, Outcomes};
use debora_cli::service::clock;
use debora_cli::service::request::{Create, Decide, Request};
use debora_cli::service::transaction::Executor;
use debora_cli::store::{Location, Purpose};
use scratch::Scratch;
use server::{Running, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Rounds that a request asks for, and outcomes that the next one tells.
const ROUNDS: u64 = 10;

/// Between two messages to the webhook.
const MESSAGES_APART: Duration = Duration::from_millis(100);

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
struct Crowd {
    name: &'static str,
    shown: &'static str,
    connections: u64,
    /// Connections that read the log all the time.
    readers: u64,
    /// Experiments that are asked in turn.
    busy: u64,
    /// Experiments beside them whose first outcome is waited for.
    idle: u64,
    /// Whether a receiver is told of them.
    webhook: bool,
}

const CALM: Crowd = Crowd {
    name: "calm",
    shown: "calm",
    connections: 64,
    readers: 0,
    busy: 1,
    idle: 0,
    webhook: false,
};

const CROWDS: [Crowd; 6] = [
    Crowd {
        name: "5x",
        shown: "5 times as many",
        connections: 5 * 64,
        ..CALM
    },
    Crowd {
        name: "47x",
        shown: "47 times as many",
        connections: 47 * 64,
        ..CALM
    },
    Crowd {
        name: "readers",
        shown: "beside 200 readers of the log",
        readers: 200,
        ..CALM
    },
    Crowd {
        name: "busy",
        shown: "100 busy experiments",
        busy: 100,
        ..CALM
    },
    Crowd {
        name: "idle",
        shown: "beside 100,000 idle experiments",
        idle: 100_000,
        ..CALM
    },
    Crowd {
        name: "webhook",
        shown: "beside a webhook",
        webhook: true,
        ..CALM
    },
];

/// Requests a second, two latencies in milliseconds, and memory in megabytes.
type Figures = [f64; 4];

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
    let seconds = std::env::var("DEBORA_CROWD_SECONDS")
        .map_or(10, |seconds| seconds.parse().expect("a number of seconds"));
    println!(
        "{seconds} s each; {ROUNDS} decisions a request, then their outcomes; ratios to the calm runs before and after\n\n\
         | crowd | connections | requests/s | p50, ms | p99, ms | memory, MB | shed | unanswered | connections without an answer |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    let time = Duration::from_secs(seconds);
    // Other guests of the machine come and go: a crowd is compared with its neighbours in time.
    let mut calm = vec![CALM.measure(time / 3).await.figures()];
    for crowd in CROWDS {
        if chosen.is_empty() || chosen.iter().any(|name| name == crowd.name) {
            let mut measured = crowd.measure(time).await;
            calm.push(CALM.measure(time / 3).await.figures());
            let near = mean(&calm[calm.len() - 2..]);
            println!("{}", crowd.row(&mut measured, near));
        }
    }
    let [rate, p50, p99, memory] = mean(&calm);
    println!(
        "| calm, the mean of {} | 64 | {rate:.0} | {p50:.1} | {p99:.1} | {memory:.0} | | | |",
        calm.len()
    );
    let rates = || calm.iter().map(|figures| figures[0]);
    println!(
        "\ncalm runs had {:.0} to {:.0} requests a second",
        rates().fold(f64::MAX, f64::min),
        rates().fold(0.0, f64::max)
    );
}

fn mean(figures: &[Figures]) -> Figures {
    std::array::from_fn(|column| {
        figures.iter().map(|figures| figures[column]).sum::<f64>() / figures.len() as f64
    })
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

impl Crowd {
    async fn measure(&self, time: Duration) -> Measured {
        let folder = Scratch::new("crowds");
        let store = folder.join("store.db").display().to_string();
        create(&store, self.busy, self.idle);
        let server = serve(&store);
        if self.readers > 0 {
            // A log to read: pages of a short one cost nothing.
            self.crowd(&server.address, time / 4, 0).await;
        }
        let begun = Instant::now();
        let client = Client::new(&server.address, begun + time);
        let telling = self.webhook.then(|| tokio::spawn(tell_webhook(client)));
        let (asking, reading) = self.crowd(&server.address, time, self.readers).await;
        if let Some(telling) = telling {
            telling.await.expect("a webhook that is told");
        }
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

    fn row(&self, measured: &mut Measured, calm: Figures) -> String {
        let figures = measured.figures();
        let cells = figures.iter().zip(calm).map(|(figure, calm)| {
            if figure.is_nan() {
                // Nothing was carried out, so nothing has a latency.
                return String::new();
            }
            let ratio = figure / calm;
            let decimals = usize::from(*figure < 100.0);
            let decimals_ratio = if ratio < 0.1 { 4 } else { 2 };
            format!("{figure:.decimals$} ({ratio:.decimals_ratio$})")
        });
        let asking = &measured.asking;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut row = format!(
            "| {} | {} | {} | {} | {} | {} |",
            self.shown,
            self.connections,
            cells.collect::<Vec<_>>().join(" | "),
            percent(asking.share(asking.shed)),
            percent(asking.share(asking.unanswered)),
            percent(asking.starved as f64 / self.connections as f64)
        );
        if self.readers > 0 {
            let reading = &mut measured.reading;
            row += &format!(
                "\n| those readers | {} | {:.0} | {:.0} | {:.0} | | {} | {} | {} |",
                self.readers,
                reading.latencies.len() as f64 / measured.seconds,
                reading.latency(0.5),
                reading.latency(0.99),
                percent(reading.share(reading.shed)),
                percent(reading.share(reading.unanswered)),
                percent(reading.starved as f64 / self.readers as f64)
            );
        }
        row
    }
}

impl Measured {
    fn figures(&mut self) -> Figures {
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
    client.end()
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
    client.end()
}

/// Adds a webhook and sends it messages until the end: each is written, sent, and removed when it is taken.
async fn tell_webhook(mut client: Client) {
    let receiver = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = receiver.local_addr().expect("an address").port();
    tokio::spawn(receive(receiver));
    let webhook = format!(r#"{{"name":"ops","url":"http://127.0.0.1:{port}/"}}"#);
    client.send("POST", "/v1/webhooks", &webhook).await;
    while client
        .send("POST", "/v1/webhooks/ops/test", "")
        .await
        .is_some()
    {
        sleep(MESSAGES_APART).await;
    }
}

/// Takes every message.
async fn receive(receiver: TcpListener) {
    while let Ok((mut stream, _)) = receiver.accept().await {
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            // A message fits into the buffer, and comes whole or nearly so: none is looked at.
            while matches!(stream.read(&mut buffer).await, Ok(1..)) {
                let taken = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(taken).await;
                let _ = stream.shutdown().await;
            }
        });
    }
}

/// Makes experiments without HTTP: a server that had idle ones beside it would be measured before it starts.
fn create(store: &str, busy: u64, idle: u64) {
    let clock = clock::system();
    let store = Location::parse(store)
        .open(Purpose::Serve)
        .expect("a store");
    let mut executor = Executor::start(store, clock()).expect("a start");
    let busy = (0..busy).map(|number| format!("busy-{number}"));
    let idle = (0..idle).map(|number| format!("idle-{number}"));
    let ids: Vec<String> = busy.chain(idle).collect();
    let create = |id: &String| {
        Request::Create(Create {
            id: id.clone(),
            spec: SPEC.to_owned(),
            key: None,
            blind: true,
            actor: "bench".into(),
        })
    };
    // One outcome of each is outstanding: the wait for it has begun.
    let ask = |id: &String| {
        Request::Decide(Decide {
            id: id.clone(),
            rounds: 1,
            request_key: None,
            seen: 0,
            actor: "bench".into(),
        })
    };
    for group in ids.chunks(1_000) {
        for requests in [
            group.iter().map(create).collect(),
            group.iter().map(ask).collect::<Vec<_>>(),
        ] {
            for answer in executor.serve(&requests, clock()) {
                answer.expect("an experiment");
            }
        }
    }
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
