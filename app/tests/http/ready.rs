//! `/health` and `/ready` while the store fails in every way that can be brought about, and what is acknowledged meanwhile.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use debora_cli::service::clock::Moment;
use debora_cli::service::http::samples::Families;
use debora_cli::service::http::{App, Shared, TIMEOUT};
use debora_cli::service::writer::Service;
use debora_cli::store::Location;
use serde_json::{Value, json};

use crate::kit::client;
use crate::kit::schema::schema;
use crate::kit::scratch::Scratch;
use crate::kit::server::start;

const SPEC: &str = "policy = 'free'\nhorizon = 1000000\nrho = 0.9\nactions = ['a', 'b']\n\
    [service]\non_wait = 'serve'\n";

/// A service with an experiment "e".
struct Node {
    app: App,
    service: Arc<Service>,
}

impl Node {
    async fn new(location: Location) -> Self {
        let node = Self::start(location);
        node.create().await;
        node
    }

    /// Not from within a task, if the store is PostgreSQL's.
    fn start(location: Location) -> Self {
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let app = App::new(Shared::new(Arc::clone(&service), TIMEOUT));
        Self { app, service }
    }

    async fn create(&self) {
        let body = json!({ "id": "e", "spec": SPEC, "blind": true });
        assert_eq!(self.post("/v1/experiments", &body).await.0, 201);
    }

    async fn send(&self, request: Request<Body>) -> (u16, Value) {
        let response = self.app.answer(request).await;
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// The first round of the next decision, if there is one.
    async fn decide(&self) -> Option<u64> {
        let path = "/v1/experiments/e/decisions";
        let (status, body) = self.post(path, &json!({ "n": 1 })).await;
        assert!(status == 200 || status == 503, "{body}");
        body["decisions"][0]["round"].as_u64()
    }

    /// Waits until /ready says this, past the second that an answer holds.
    #[track_caller]
    fn becomes(&self, code: &str) -> impl Future<Output = ()> {
        let code = code.to_owned();
        async move {
            let begun = Instant::now();
            loop {
                let (status, body) = self.get("/ready").await;
                let said = body["status"].as_str().or(body["code"].as_str());
                if said == Some(&code) {
                    assert_eq!(status, if code == "ready" { 200 } else { 503 });
                    break;
                }
                assert!(
                    begun.elapsed() < Duration::from_secs(10),
                    "{body}, not {code}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            // Whatever happens to the store, to start the process again is not the remedy.
            assert_eq!(self.get("/health").await.0, 200);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.service.stop().unwrap();
    }
}

/// Commits into a file that nobody will find again are not acknowledged, whichever of the files it is; nor are those of a server
/// whose lock is gone, beside which another may start.
#[tokio::test]
async fn a_store_that_is_deleted_or_replaced_acknowledges_nothing() {
    for name in ["store.db", "store.db-wal", "store.db-shm", "store.db.lock"] {
        let folder = Scratch::new("ready");
        let node = Node::new(Location::Sqlite(folder.join("store.db"))).await;
        let (path, aside) = (folder.join(name), folder.join("aside"));
        node.becomes("ready").await;
        assert_eq!(node.decide().await, Some(1));
        fs::rename(&path, &aside).unwrap();
        assert_eq!(node.decide().await, None, "{name}");
        node.becomes("store_gone").await;
        fs::copy(&aside, &path).unwrap();
        assert_eq!(node.decide().await, None, "{name}");
        node.becomes("store_replaced").await;
        fs::rename(&aside, &path).unwrap();
        node.becomes("ready").await;
        let metrics = node.app.state.metrics.text(Families::default());
        for line in [
            "debora_ready 1",
            "debora_failed_transactions_total{reason=\"store_gone\"}",
            "debora_failed_transactions_total{reason=\"store_replaced\"}",
        ] {
            assert!(metrics.contains(line), "{metrics}");
        }
        // Rounds that were decided without an answer are lost, and none is given twice.
        assert!(node.decide().await > Some(1));
    }
}

#[tokio::test]
async fn a_store_that_another_holds_is_stuck_until_it_is_let_go() {
    let folder = Scratch::new("stuck");
    let path = folder.join("store.db");
    let node = Node::new(Location::Sqlite(path.clone())).await;
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    node.becomes("stuck").await;
    other.execute_batch("ROLLBACK").unwrap();
    node.becomes("ready").await;
    assert_eq!(node.decide().await, Some(1));
}

#[tokio::test]
async fn a_service_without_a_writer_is_neither_ready_nor_alive() {
    let folder = Scratch::new("stopped");
    let node = Node::new(Location::Sqlite(folder.join("store.db"))).await;
    node.service.stop().unwrap();
    for path in ["/ready", "/health"] {
        let (status, body) = node.get(path).await;
        assert_eq!((status, &body["code"]), (503, &json!("stopping")));
    }
}

/// The database is reached through a link, which is taken away.
#[test]
fn a_database_that_is_away_is_waited_for() {
    let (folder, name) = (Scratch::new("away"), format!("away_{}", std::process::id()));
    let address = schema("ready");
    let (before, after) = address.split_once("host=").unwrap();
    let (socket, rest) = after.split_once('&').unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink(socket, &link).unwrap();
    let linked = format!(
        "{before}host={}&{rest}&application_name={name}",
        link.display()
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let node = Node::start(Location::Postgres(linked));
    runtime.block_on(async {
        node.create().await;
        node.becomes("ready").await;
    });
    fs::remove_file(&link).unwrap();
    let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    client.execute(sql, &[&name]).unwrap();
    runtime.block_on(async {
        node.becomes("database_away").await;
        assert_eq!(node.decide().await, None);
        std::os::unix::fs::symlink(socket, &link).unwrap();
        node.becomes("ready").await;
        assert!(node.decide().await.is_some());
    });
}

/// A limit on the size of files is a disk without room, and can be lifted.
#[test]
fn a_full_disk_is_told_and_heals_and_loses_nothing() {
    let folder = Scratch::new("full");
    let store = folder.join("store.db").display().to_string();
    // A write beyond the limit is to fail instead of ending the process.
    let script = "trap '' XFSZ; ulimit -S -f 300; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_debora")]);
    command.args(["serve", "--store", &store, "--listen", "127.0.0.1:0"]);
    let running = start(command.stderr(Stdio::null())).unwrap();
    let ask = |path: &str, body: Option<Value>| {
        client::ask(&running.address, path, body.as_ref(), None).unwrap()
    };
    let status = |path: &str| ask(path, None).0;
    let create = json!({ "id": "e", "spec": SPEC, "blind": true });
    assert_eq!(ask("/v1/experiments", Some(create)).0, 201);
    let decide = |n: u64| {
        let (status, body) = ask("/v1/experiments/e/decisions", Some(json!({ "n": n })));
        assert!([200, 503].contains(&status));
        body["decisions"].as_array().map(Vec::len)
    };
    assert_eq!(status("/ready"), 200);
    let mut acknowledged = 0;
    // Until not even the smallest request finds room.
    for n in [10_000, 1] {
        while let Some(decisions) = decide(n) {
            acknowledged += decisions;
            assert!(acknowledged < 1_000_000, "the limit is not reached");
        }
    }
    let begun = Instant::now();
    while status("/ready") != 503 {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(status("/health"), 200);
    let lifted = Command::new("prlimit")
        .args([
            format!("--pid={}", running.child.id()),
            "--fsize=unlimited:".into(),
        ])
        .status();
    assert!(lifted.unwrap().success());
    let begun = Instant::now();
    while status("/ready") != 200 {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    assert!(acknowledged > 0 && decide(1).is_some());
}
