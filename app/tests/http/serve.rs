//! `debora serve` itself, on a real socket: where it listens, how it ends, whom it refuses, whom it cuts off.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Deref;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use debora_cli::hex;
use debora_cli::store::{ApiKey, Location, Purpose, Role};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::kit::binary::debora;
use crate::kit::client;
use crate::kit::scratch::Scratch;
use crate::kit::server::{Running, start};

const SPEC: &str = "policy = 'soft'\nhorizon = 64\nrho = 0.9\ndelta = 0.1\nprofile = 'paper'\nactions = ['a', 'b']\n\
    [[cost]]\nname = 'price'\nthreshold = 0.5\n";

const KEY: &str = "debora_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A folder that is removed at the end.
struct Folder(Scratch);

impl Folder {
    fn new() -> Self {
        Self(Scratch::new("serve"))
    }

    fn store(&self) -> String {
        self.0.join("store.db").display().to_string()
    }

    fn add_key(&self) {
        let location = Location::parse(&self.store());
        let mut store = location.open(Purpose::Serve).unwrap();
        let hash = hex::encode(&Sha256::digest(KEY));
        let key = ApiKey {
            name: "ops".into(),
            role: Role::Admin,
            hash,
            created_at: 0,
            revoked_at: None,
            experiments: None,
            last_used_at: None,
        };
        store.begin().unwrap();
        store.set_key(&key).unwrap();
        store.commit().unwrap();
    }
}

/// A server that is running, and what is asked of it.
struct Server(Running);

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = debora(&["serve"]);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Server {
    fn start(store: &str, arguments: &[&str]) -> Self {
        Self::run(command(
            &[&["--store", store, "--listen", "127.0.0.1:0"], arguments].concat(),
        ))
    }

    fn run(mut command: Command) -> Self {
        Self(start(&mut command).unwrap())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        client::ask(&self.address, path, Some(body), Some(KEY)).unwrap()
    }

    fn create(&self) {
        let created = self.post(
            "/v1/experiments",
            &json!({ "spec": SPEC, "id": "e", "key": "70000000000000000000000000000007", "blind": true }),
        );
        assert_eq!(created.0, 201, "{created:?}");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    fn stop(self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        self.ended()
    }

    /// With which code it ended, and what it had written on standard error.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        self.0
            .child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (self.0.child.wait().unwrap().code(), log)
    }
}

#[test]
fn it_says_where_it_listens_and_ends_with_0_when_asked() {
    let folder = Folder::new();
    for (signal, json) in [("TERM", false), ("INT", true)] {
        let server = Server::start(&folder.store(), if json { &["--json"] } else { &[] });
        if json {
            let line: Value = serde_json::from_str(&server.line).unwrap();
            assert_eq!(line["store"], folder.store());
            assert_eq!(line["incarnation"], 2);
        } else {
            let line = format!(
                "listening on http://{}, store {}, identity ",
                server.address,
                folder.store()
            );
            assert!(server.line.starts_with(&line), "{}", server.line);
            assert!(
                server.line.ends_with(", incarnation 1\n"),
                "{}",
                server.line
            );
        }
        assert!(!server.address.ends_with(":0"), "{}", server.address);
        let health = ureq::get(format!("http://{}/health", server.address))
            .call()
            .unwrap();
        assert_eq!(health.status(), 200);
        let (code, log) = server.stop(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("stopped as asked"), "{log}");
        assert!(log.contains("A proxy in front needs keys"), "{log}");
    }
    folder.add_key();
    let (_, log) = Server::start(&folder.store(), &[]).stop("TERM");
    assert!(!log.contains("proxy"), "{log}");
}

#[test]
fn every_flag_is_an_environment_variable_too() {
    let folder = Folder::new();
    let mut command = command(&[]);
    command
        .env("DEBORA_STORE", folder.store())
        .env("DEBORA_LISTEN", "localhost:0")
        .env("DEBORA_LOG", "off");
    command
        .env("DEBORA_TIMEOUT", "1")
        .env("DEBORA_CONNECTIONS", "2")
        .env("DEBORA_GRACE", "1");
    command.env("DEBORA_THREADS", "1").env("DEBORA_JSON", "1");
    let server = Server::run(command);
    let line: Value = serde_json::from_str(&server.line).unwrap();
    assert_eq!(line["store"], folder.store());
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
}

fn refused(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command(arguments).output().unwrap();
    assert_eq!(
        (status.code(), stdout.len()),
        (Some(2), 0),
        "{}",
        String::from_utf8_lossy(&stdout)
    );
    String::from_utf8(stderr).unwrap()
}

#[test]
fn an_address_that_others_reach_needs_a_key() {
    let folder = Folder::new();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let message = refused(&["--store", &folder.store(), "--listen", listen]);
        assert!(
            message.contains("has no API key") && message.contains("debora keys add"),
            "{message}"
        );
    }
    folder.add_key();
    let server = Server::run(command(&[
        "--store",
        &folder.store(),
        "--listen",
        "0.0.0.0:0",
    ]));
    server.create();
    let (code, _) = server.stop("TERM");
    assert_eq!(code, Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_with_the_reason() {
    let folder = Folder::new();
    let message = refused(&["--store", &folder.store(), "--listen", "nowhere"]);
    assert!(
        message.contains("\"nowhere\" is not an address"),
        "{message}"
    );
    let message = refused(&["--store", &folder.store(), "--force"]);
    assert!(message.contains("leave out --out and --force"), "{message}");
    let server = Server::start(&folder.store(), &[]);
    let taken = refused(&["--store", &folder.store(), "--listen", "127.0.0.1:0"]);
    assert!(taken.contains("store.db"), "{taken}");
    let other = Folder::new();
    let message = refused(&["--store", &other.store(), "--listen", &server.address]);
    assert!(message.contains("cannot listen on"), "{message}");
    assert!(
        std::fs::read_dir(&*other.0).unwrap().next().is_none(),
        "a store that nobody serves"
    );
    let message = refused(&[
        "--store",
        "postgres://ops:hunter2@127.0.0.1:1/db",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert!(!message.contains("hunter2"), "{message}");
}

/// The answer to a request that is in flight when the server is asked to end arrives whole.
#[test]
fn requests_in_flight_are_finished() {
    let folder = Folder::new();
    let server = Server::start(&folder.store(), &[]);
    server.create();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let body = "{\"n\":1}";
    let head = "POST /v1/experiments/e/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    write!(
        stream,
        "{head}Content-Length: {}\r\n\r\n{}",
        body.len(),
        &body[..3]
    )
    .unwrap();
    // Others that have asked for nothing do not hold it up.
    let _idle = TcpStream::connect(&server.address).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        TcpStream::connect(&server.address).is_err(),
        "nobody is let in from then on"
    );
    stream.write_all(&body.as_bytes()[3..]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"round\":1"),
        "{answer}"
    );
    let begun = Instant::now();
    assert_eq!(server.ended().0, Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

/// A body that nobody read would be taken for the next request; the client is told that the connection ends instead.
#[test]
fn a_connection_ends_in_good_order_after_a_refused_body() {
    let folder = Folder::new();
    let server = Server::start(&folder.store(), &[]);
    let send = |head: &str, body: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).unwrap_or(0);
        let _ = stream.write_all(body.as_bytes());
        let length = if length > 0 {
            length
        } else {
            stream.read(&mut answer).unwrap()
        };
        String::from_utf8(answer[..length].to_vec())
            .unwrap()
            .to_lowercase()
    };
    let refused = send("PUT /v1/experiments", "{}");
    assert!(
        refused.starts_with("http/1.1 405") && refused.contains("connection: close"),
        "{refused}"
    );
    let served = send("GET /health", "");
    assert!(
        served.starts_with("http/1.1 200") && !served.contains("connection: close"),
        "{served}"
    );
    assert_eq!(server.stop("TERM").0, Some(0));
}

/// How long it takes until the server ends a connection, and what it says before.
fn until_cut_off(address: &str, sent: &str) -> (Duration, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    let (begun, mut answer) = (Instant::now(), String::new());
    stream.read_to_string(&mut answer).unwrap();
    (begun.elapsed(), answer)
}

#[test]
fn slow_clients_are_cut_off() {
    let folder = Folder::new();
    let server = Server::start(&folder.store(), &["--timeout", "1", "--connections", "2"]);
    server.create();
    let body = "POST /v1/experiments/e/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: 7\r\n\r\n{\"n\"";
    for (sent, said) in [
        ("", ""),
        ("GET / HTTP/1.1\r\nHost: loc", ""),
        (body, "HTTP/1.1 408"),
    ] {
        let (taken, answer) = until_cut_off(&server.address, sent);
        assert!(
            (0.8..10.0).contains(&taken.as_secs_f64()),
            "{sent:?}: {taken:?}"
        );
        assert!(answer.starts_with(said), "{sent:?}: {answer}");
    }
    // Two slow ones hold all places, and others are served once they are gone.
    let _slow = [
        TcpStream::connect(&server.address).unwrap(),
        TcpStream::connect(&server.address).unwrap(),
    ];
    let decide = || server.post("/v1/experiments/e/decisions", &json!({ "n": 1 }));
    let begun = Instant::now();
    let served = loop {
        let (status, _) = decide();
        if status != 503 || begun.elapsed() > Duration::from_secs(10) {
            break status;
        }
    };
    assert_eq!(served, 200);
    assert_eq!(server.stop("TERM").0, Some(0));
}

#[test]
fn secrets_are_never_in_the_log() {
    let folder = Folder::new();
    folder.add_key();
    let server = Server::start(&folder.store(), &["--log", "trace"]);
    server.create();
    server.post(
        "/v1/experiments/e/decisions",
        &json!({ "n": 1, "request_key": "order-4711" }),
    );
    let (status, made) = server.post("/v1/keys", &json!({ "name": "night", "role": "read" }));
    assert_eq!(status, 201, "{made}");
    let made = made["key"].as_str().unwrap();
    let login = format!("http://{}/login", server.address);
    // Without following the redirect, whose answer has no cookie.
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .max_redirects(0)
        .build()
        .into();
    let entered = agent.post(login).send_form([("key", KEY)]).unwrap();
    let cookie = entered.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let token = cookie.split_once('=').unwrap().1;
    let query = format!("http://{}/v1/experiments/e?token={KEY}", server.address);
    assert!(ureq::get(query).header("cookie", cookie).call().is_ok());
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(
        log.contains("request method=\"POST\" route=\"/v1/experiments/{id}/decisions\" status=200"),
        "{log}"
    );
    let hash = hex::encode(&Sha256::digest(KEY));
    assert!(log.contains("a key was made name=\"night\""), "{log}");
    let made_hash = hex::encode(&Sha256::digest(made));
    for secret in [
        &KEY[7..],
        &hash,
        &made[7..],
        &made_hash,
        token,
        "order-4711",
        "token=",
        "horizon",
    ] {
        assert!(!log.contains(secret), "{secret} is in\n{log}");
    }
}

#[test]
fn a_client_that_has_seen_more_than_the_store_is_in_the_log() {
    let folder = Folder::new();
    folder.add_key();
    let server = Server::start(&folder.store(), &[]);
    server.create();
    let body = json!({ "n": 1, "seen": 9 });
    let (status, _) = server.post("/v1/experiments/e/decisions", &body);
    assert_eq!(status, 409);
    let (_, log) = server.stop("TERM");
    let line = log
        .lines()
        .find(|line| line.contains("a client has seen a round"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains("WARN") && line.contains("seen=9 decided=0"),
        "{line}"
    );
}
