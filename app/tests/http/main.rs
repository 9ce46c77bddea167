//! The service: over HTTP without a socket, as a router, a SQLite file and a clock that is moved by hand; as a server on a real
//! socket; and the stores below it.

mod access;
mod admin;
mod api_page;
mod comparison;
mod crowds;
mod documents;
mod epochs;
mod errors;
mod experiment_page;
mod experiments;
mod flags;
mod holdback;
mod interface;
mod keys;
#[path = "../kit/mod.rs"]
mod kit;
mod limits;
mod list;
mod metrics;
mod missing;
mod new;
mod observed;
mod pages;
mod planning;
mod ready;
mod record;
mod restarts;
mod serve;
mod stores;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use debora_cli::service::clock::Moment;
use debora_cli::service::http::{App, Shared, TIMEOUT};
use debora_cli::service::writer::Service;
use debora_cli::store::Location;
use serde_json::{Value, json};

use crate::kit::scratch::Scratch;

/// The key of every experiment that a test creates.
const KEY: &str = "70000000000000000000000000000007";

/// Epochs of 1, 2, 4 .. rounds: profile paper doubles from one on, and explores for hundreds of them.
const SHORT: &str = r#"
name = "short epochs"
policy = "soft"
horizon = 64
rho = 0.9
delta = 0.1
profile = "paper"
actions = ["left", "right"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.01
"#;

/// The same with rules for waiting.
fn short_with(service: &str) -> String {
    format!("{SHORT}\n[service]\n{service}\n")
}

/// A service on a file of its own.
struct House {
    folder: Scratch,
    clock: Arc<AtomicI64>,
    service: Arc<Service>,
    app: App,
}

/// An answer.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes.to_vec()).unwrap()
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// The body of an error that must have this status and code, and a sentence.
    #[track_caller]
    fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{body}");
        assert!(
            body["message"]
                .as_str()
                .is_some_and(|message| message.len() > 10),
            "{body}"
        );
        self.is_problem(&body);
        body
    }

    /// Whether an error is as RFC 9457 has it, with a time to ask again where it is worth repeating.
    #[track_caller]
    fn is_problem(&self, body: &Value) {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let code = body["code"].as_str().unwrap();
        assert_eq!(body["type"], format!("/api#error-{code}"));
        assert_eq!(body["status"], self.status.as_u16());
        assert!(body["title"].as_str().is_some_and(|title| title.len() > 5));
        assert_eq!(body["detail"], body["message"]);
        let later = self.headers.get("retry-after").map(|seconds| {
            let seconds = seconds.to_str().unwrap();
            seconds.parse::<u16>().expect("whole seconds")
        });
        let repeated = self.status.as_u16() == 503 || code == "waiting";
        assert_eq!(later.is_some(), repeated, "{body}");
        assert_eq!(body["retry_after"], json!(later), "{body}");
    }
}

impl House {
    fn new() -> Self {
        let folder = Scratch::new("http");
        let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
        let (service, app) = open(&folder, &clock);
        Self {
            folder,
            clock,
            service,
            app,
        }
    }

    fn location(&self) -> Location {
        Location::Sqlite(self.folder.join("store.db"))
    }

    /// Stops the service and starts another one on the same file.
    fn restart(&mut self) {
        self.service.stop().unwrap();
        (self.service, self.app) = open(&self.folder, &self.clock);
    }

    fn wait(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds, Ordering::Relaxed);
    }

    async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.app.answer(request).await;
        let (parts, body) = response.into_parts();
        Reply {
            status: parts.status,
            headers: parts.headers,
            bytes: to_bytes(body, usize::MAX).await.unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, &body.to_string()).await
    }

    async fn post_text(&self, path: &str, body: &str) -> Reply {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.to_owned().into()).unwrap())
            .await
    }

    /// Creates an experiment with a known key.
    async fn create(&self, id: &str, spec: &str) {
        let body = json!({ "spec": spec, "id": id, "key": KEY, "blind": true });
        self.post("/v1/experiments", &body).await.expect(201);
    }

    async fn decide(&self, id: &str, n: u64) -> Value {
        self.post(
            &format!("/v1/experiments/{id}/decisions"),
            &json!({ "n": n }),
        )
        .await
        .expect(200)
    }

    async fn tell(&self, id: &str, outcomes: &Value) -> Value {
        self.post(&format!("/v1/experiments/{id}/outcomes"), outcomes)
            .await
            .expect(200)
    }

    async fn state(&self, id: &str) -> Value {
        self.get(&format!("/v1/experiments/{id}/state"))
            .await
            .expect(200)
    }
}

fn open(folder: &std::path::Path, clock: &Arc<AtomicI64>) -> (Arc<Service>, App) {
    let clock = Arc::clone(clock);
    let now = Arc::new(move || Moment::both(clock.load(Ordering::Relaxed)));
    let service = Service::start(Location::Sqlite(folder.join("store.db")), now).unwrap();
    (
        Arc::clone(&service),
        App::new(Shared::new(service, TIMEOUT)),
    )
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.service.stop();
    }
}

/// Outcomes of decisions, all alike.
fn outcomes(decisions: &Value, reward: f64, price: f64) -> Value {
    let outcome = |decision: &Value| json!({ "round": decision["round"], "reward": reward, "costs": { "price": price } });
    decisions["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(outcome)
        .collect()
}
