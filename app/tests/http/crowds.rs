//! `debora serve` under a crowd, on real sockets: too many connections, bodies that never come, readers that never read.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use debora_cli::hex;
use debora_cli::store::{ApiKey, Location, Purpose, Role};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::kit::binary::debora;
use crate::kit::scratch::Scratch;
use crate::kit::server::{Running, start};

const SPEC: &str = "policy = 'free'\nhorizon = 1000000\nrho = 0.9\nactions = ['a', 'b']\n";

const KEY: &str = "debora_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// What the service must answer within, whatever the crowd does. A debug build on a busy machine needs some of it.
const SOON: Duration = Duration::from_secs(3);

/// A server with a key and an experiment "e".
struct Crowded {
    running: Running,
    _folder: Scratch,
}

impl Crowded {
    fn new(arguments: &[&str]) -> Self {
        let folder = Scratch::new("crowds");
        let store = folder.join("store.db").display().to_string();
        add_key(&store);
        let mut command = debora(&["serve", "--store", &store, "--listen", "127.0.0.1:0"]);
        command.args(arguments).stderr(Stdio::null());
        let crowded = Self {
            running: start(&mut command).unwrap(),
            _folder: folder,
        };
        let body = json!({ "id": "e", "spec": SPEC, "blind": true }).to_string();
        let created = crowded.ask(&request("POST /v1/experiments", KEY, &body));
        assert!(created.starts_with("HTTP/1.1 201"), "{created}");
        crowded
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.running.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    }

    /// A connection that has its place and keeps it.
    fn hold(&self) -> TcpStream {
        let mut stream = self.connect();
        let head = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        assert!(stream.read(&mut answer).unwrap() > 0);
        stream
    }

    /// The answer to a request that has a connection of its own.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn decide(&self) -> String {
        let decisions = "POST /v1/experiments/e/decisions";
        self.ask(&request(decisions, KEY, "{\"n\":1}"))
    }

    fn metric(&self, line: &str) -> bool {
        let text = self.ask(&request("GET /metrics", KEY, ""));
        text.contains(line)
    }
}

fn add_key(store: &str) {
    let mut store = Location::parse(store).open(Purpose::Serve).unwrap();
    store.begin().unwrap();
    let key = ApiKey {
        name: "ops".into(),
        role: Role::Admin,
        hash: hex::encode(&Sha256::digest(KEY)),
        created_at: 0,
        revoked_at: None,
        experiments: None,
        last_used_at: None,
    };
    store.set_key(&key).unwrap();
    store.commit().unwrap();
}

fn request(line: &str, key: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn connections_beyond_the_limit_are_told_at_once_and_some_are_served() {
    let crowded = Crowded::new(&["--connections", "50"]);
    let held: Vec<_> = (0..50).map(|_| crowded.hold()).collect();
    // The reserve: those who watch, and those with a key.
    let list = "GET /v1/experiments";
    for key in ["", "debora_wrong"] {
        let told = crowded.ask(&request(list, key, "")).to_lowercase();
        assert!(
            told.starts_with("http/1.1 503") && told.contains("retry-after: 1"),
            "{told}"
        );
        assert!(told.contains("\"code\":\"busy\""), "{told}");
    }
    for (line, key) in [("GET /health", ""), ("GET /ready", ""), (list, KEY)] {
        let served = crowded.ask(&request(line, key, "")).to_lowercase();
        assert!(
            served.starts_with("http/1.1 200") && served.contains("connection: close"),
            "{served}"
        );
    }
    assert!(crowded.decide().starts_with("HTTP/1.1 200"));
    // More than the reserve holds, and silent: they take none of it.
    let few: Vec<_> = (0..40).map(|_| crowded.connect()).collect();
    let health = crowded.ask(&request("GET /health", "", ""));
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(crowded.decide().starts_with("HTTP/1.1 200"));
    // More than are heard at all: those behind are told without it.
    let silent: Vec<_> = (0..60).map(|_| crowded.connect()).collect();
    let told = crowded.ask("");
    assert!(
        told.starts_with("HTTP/1.1 503") && told.contains("all connections are taken"),
        "{told}"
    );
    drop((few, silent, held));
    let begun = Instant::now();
    while !crowded
        .ask(&request(list, "", ""))
        .starts_with("HTTP/1.1 401")
    {
        assert!(begun.elapsed() < SOON, "places are not given back");
    }
    assert!(crowded.metric("debora_shed_total{reason=\"connections\"}"));
}

/// A body is given memory as it arrives: what clients declare and do not send holds nobody up.
#[test]
fn bodies_that_never_come_hold_nobody_up() {
    let crowded = Crowded::new(&["--timeout", "4"]);
    let open = |head: String| {
        let mut stream = crowded.connect();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let form = |length: usize| {
        let kind = "application/x-www-form-urlencoded";
        format!(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\nkey="
        )
    };
    let outcomes = format!(
        "POST /v1/experiments/e/outcomes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n["
    );
    let silent: Vec<_> = (0..40)
        .flat_map(|_| {
            [
                open(form(8_000_000)),
                open(form(4_000)),
                open(outcomes.clone()),
            ]
        })
        .collect();
    for _ in 0..5 {
        let begun = Instant::now();
        let decided = crowded.decide();
        assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
    for (place, mut stream) in silent.into_iter().enumerate() {
        let mut answer = [0; 12];
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.read_exact(&mut answer).unwrap();
        // A stranger's body is small, or refused by its length; the others are waited for in vain.
        let status: &[u8] = if place % 3 == 0 { b"413" } else { b"408" };
        assert_eq!(&answer[9..], status);
    }
}

#[test]
fn a_client_that_never_reads_its_answers_loses_its_place() {
    let crowded = Crowded::new(&["--timeout", "1", "--connections", "1"]);
    // Asked for until no answer fits into any buffer on the way.
    let line = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut deaf = crowded.connect();
    deaf.set_write_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let cut_off = (0..100_000)
        .map(|_| deaf.write_all(line.as_bytes()))
        .find_map(Result::err);
    let kind = cut_off.map(|error| error.kind());
    assert!(
        matches!(
            kind,
            Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
        ),
        "{kind:?}"
    );
    let begun = Instant::now();
    while !crowded
        .ask(&request("GET /v1/experiments", "", ""))
        .starts_with("HTTP/1.1 401")
    {
        assert!(begun.elapsed() < SOON, "the place is not given back");
    }
}
