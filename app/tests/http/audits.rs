//! An experiment audited by its service: in the page and by programs, watched, stopped, passed, or with its first difference.

use std::io::Cursor;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use debora_cli::audit::{Log, Verdict, audit, finding};
use debora_cli::service::clock::Moment;
use debora_cli::service::http::{App, Shared, TIMEOUT};
use debora_cli::service::writer::Service;
use debora_cli::store::{Location, Purpose, Role};
use debora_cli::terminal::one_line;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::pages::{form, shows};
use crate::scratch::Scratch;
use crate::{House, KEY, Reply, SHORT, outcomes};

/// Decides and tells some rounds.
pub(crate) async fn play(house: &House, id: &str, leases: usize) {
    for _ in 0..leases {
        let decided = house.decide(id, 64).await;
        house.tell(id, &outcomes(&decided, 1.0, 0.01)).await;
    }
}

/// The finding of an audit by the interface, once it has ended.
async fn audited(house: &House, id: &str) -> Value {
    let path = format!("/v1/experiments/{id}/audit");
    house.post(&path, &json!({})).await.expect(200);
    house.app.state.audits.wait(Duration::from_secs(30)).await;
    let state = house.get(&path).await.expect(200);
    assert_eq!(state["running"], Value::Null, "{state}");
    state["last"].clone()
}

/// The words that `debora audit` has for the downloaded log.
async fn by_program(house: &House, id: &str) -> Vec<String> {
    let log = house
        .get(&format!("/v1/experiments/{id}/log/download"))
        .await;
    let mut log = Log::text(Box::new(Cursor::new(log.text())), None);
    let verdict: Verdict =
        audit(&mut log, None).unwrap_or_else(|error| panic!("{}", one_line(&error)));
    let text = serde_json::to_value(finding(&verdict)).unwrap();
    let sentences = text["items"][0]["paragraph"].as_array().unwrap();
    let words = |sentence: &Value| -> String {
        let spans = sentence.as_array().unwrap().iter();
        spans.map(|span| span["text"].as_str().unwrap()).collect()
    };
    sentences.iter().map(words).collect()
}

fn as_html(sentence: &str) -> String {
    sentence
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[tokio::test]
async fn an_audit_passes_in_the_page_and_by_the_interface() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 4).await;
    let before = house.get("/experiments/e/audit").await;
    shows(
        &before,
        200,
        &[
            "has not audited the experiment since it started",
            "Run the audit",
            "not that the server is honest",
            "debora audit http://127.0.0.1:8080/experiments/e",
            "debora audit e.jsonl --head",
            "/v1/experiments/e/log/download",
        ],
    );
    assert_eq!(
        house.get("/v1/experiments/e/audit").await.expect(200)["last"],
        Value::Null
    );
    let started = form(&house, "/experiments/e/audit", &[], "").await;
    assert_eq!(
        (started.status.as_u16(), &started.headers["location"]),
        (303, &"/experiments/e/audit".parse().unwrap())
    );
    house.wait(180_000);
    let page = house.get("/experiments/e/audit").await;
    let head = house.state("e").await["head"].as_str().unwrap().to_owned();
    shows(
        &page,
        200,
        &[
            "recomputed, all equal.",
            "3 min ago",
            &head,
            "up to epoch 4",
            "Run the audit again",
        ],
    );
    assert!(
        !page.text().contains("hx-get"),
        "what is over is not asked for again"
    );

    let last = audited(&house, "e").await;
    assert_eq!(
        (&last["verdict"], &last["head"], &last["difference"]),
        (&json!("equal"), &json!(head), &Value::Null)
    );
    assert_eq!(
        (&last["decisions"], &last["outcomes"], &last["epochs"]),
        (&json!(4), &json!(4), &json!(5))
    );
    assert_eq!(last["sentences"], json!(by_program(&house, "e").await));
    for path in ["/experiments/none/audit", "/v1/experiments/none/audit"] {
        assert_eq!(house.get(path).await.status, 404);
        assert_eq!(house.post(path, &json!({})).await.status, 404);
    }
}

#[tokio::test]
async fn the_first_difference_is_told_as_the_program_tells_it() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 4).await;
    // A count of the last line: everything before it is equal.
    let mut store = house.location().open(Purpose::Write).unwrap();
    store.begin().unwrap();
    let (_, mut progress) = store.experiment("e").unwrap().unwrap();
    progress.late += 1;
    store.set_progress("e", &progress).unwrap();
    store.commit().unwrap();
    let last = audited(&house, "e").await;
    let told = by_program(&house, "e").await;
    assert_eq!(
        (&last["verdict"], &last["head"]),
        (&json!("different"), &Value::Null)
    );
    assert_eq!(last["sentences"], json!(told));
    assert!(
        told[0].contains("a difference.")
            && told[0].contains("is 1 as recorded, and 0 as recomputed"),
        "{told:?}"
    );
    assert_eq!(
        (
            &last["difference"]["recorded"],
            &last["difference"]["recomputed"]
        ),
        (&json!("1"), &json!("0"))
    );
    let (strong, rest) = told[0].split_once(" At ").unwrap();
    let words = [
        as_html(strong),
        as_html(rest),
        "Equal before it: 4 decisions.".into(),
        "status finding alarm".into(),
    ];
    shows(
        &house.get("/experiments/e/audit").await,
        200,
        &words.each_ref().map(|word| &**word),
    );
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_not_called_equal() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 1).await;
    // Its epoch is not there, so no page of the log goes beyond it.
    let mut store = house.location().open(Purpose::Write).unwrap();
    store.begin().unwrap();
    let (_, mut progress) = store.experiment("e").unwrap().unwrap();
    progress.epoch += 7;
    store.set_progress("e", &progress).unwrap();
    store.commit().unwrap();
    let last = audited(&house, "e").await;
    assert_eq!(
        (&last["verdict"], &last["head"]),
        (&json!("failed"), &Value::Null)
    );
    shows(
        &house.get("/experiments/e/audit").await,
        200,
        &["cannot be read to its end", "status finding alarm"],
    );
}

/// With the key that the service has, a reader's audit recomputes all; what it shows does not tell the key.
#[tokio::test]
async fn a_reader_may_audit_what_is_in_scope_and_learns_no_key() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 3).await;
    set_key(&house, "reader", Role::Read, None);
    house.wait(2_000);
    let as_reader = |method: &str, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", token("reader")));
        house.send(request.body(Body::empty()).unwrap())
    };
    as_reader("POST", "/v1/experiments/e/audit")
        .await
        .expect(200);
    house.app.state.audits.wait(Duration::from_secs(30)).await;
    let state = as_reader("GET", "/v1/experiments/e/audit").await;
    assert_eq!(state.expect(200)["last"]["verdict"], "equal");
    let page = as_reader("GET", "/experiments/e/audit").await;
    shows(
        &page,
        200,
        &[
            "all equal",
            "export DEBORA_API_KEY",
            "shown to role admin alone",
        ],
    );
    assert!(!page.text().contains(KEY) && !state.text().contains(KEY));
    let strangers = house.get("/v1/experiments/e/audit").await;
    strangers.refused(401, "no_key");
    assert_eq!(
        house.get("/experiments/e/audit").await.headers["location"],
        "/login?next=%2Fexperiments%2Fe%2Faudit"
    );
}

/// A service whose audits are held up where they look at the clock, once before and once after they read.
struct HeldHouse {
    app: App,
    service: Arc<Service>,
    /// Dropped to let all through.
    gate: Option<Sender<()>>,
    /// How many looks of an audit are let through.
    free: Arc<AtomicU64>,
    _folder: Scratch,
}

impl HeldHouse {
    fn new(free: u64) -> Self {
        let folder = Scratch::new("held");
        let (gate, closed) = channel();
        let closed = Mutex::new(closed);
        let free = Arc::new(AtomicU64::new(free));
        let left = Arc::clone(&free);
        let time = AtomicI64::new(1_700_000_000_000);
        let clock = Arc::new(move || {
            // The thread of the audit alone: the service must go on.
            if std::thread::current().name() == Some("audit")
                && left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |free| {
                        free.checked_sub(1)
                    })
                    .is_err()
            {
                let _ = closed.lock().unwrap().recv();
            }
            Moment::both(time.fetch_add(1, Ordering::Relaxed))
        });
        let service = Service::start(Location::Sqlite(folder.join("store.db")), clock).unwrap();
        let app = App::new(Shared::new(Arc::clone(&service), TIMEOUT));
        Self {
            app,
            service,
            gate: Some(gate),
            free,
            _folder: folder,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.ask_as("", method, path, body).await
    }

    /// With a key.
    async fn ask_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = self
            .app
            .answer(request.body(Body::from(body.to_string())).unwrap())
            .await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    }

    async fn create(&self, id: &str) {
        let body = json!({ "spec": SHORT, "id": id, "key": KEY, "blind": true });
        self.ask("POST", "/v1/experiments", &body).await.expect(201);
        let path = format!("/v1/experiments/{id}/decisions");
        self.ask("POST", &path, &json!({ "n": 1 }))
            .await
            .expect(200);
    }

    async fn quiet(&self) {
        self.app.state.audits.wait(Duration::from_secs(30)).await;
    }
}

impl Drop for HeldHouse {
    fn drop(&mut self) {
        self.gate = None;
        let _ = self.service.stop();
    }
}

#[tokio::test]
async fn an_audit_is_watched_and_stopped_and_one_runs_at_a_time() {
    let mut house = HeldHouse::new(0);
    house.create("e").await;
    house.create("other").await;
    let start = house
        .ask("POST", "/v1/experiments/e/audit", &json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&start["running"]["share"], &start["last"]),
        (&json!(0.0), &Value::Null)
    );
    // Asked again, it is the same one; decisions are made meanwhile, as the audit holds nothing.
    house
        .ask("POST", "/v1/experiments/e/audit", &json!({}))
        .await
        .expect(200);
    house
        .ask(
            "POST",
            "/v1/experiments/other/outcomes",
            &json!([{ "round": 1, "reward": 1, "costs": { "price": 0.01 } }]),
        )
        .await
        .expect(200);
    let page = house.ask("GET", "/experiments/e/audit", &Value::Null).await;
    shows(
        &page,
        200,
        &[
            "Being audited: 0 %",
            "hx-get=\"/experiments/e/audit\"",
            "Stop it",
            "Look again",
            "<progress",
        ],
    );
    let other = house
        .ask("GET", "/experiments/other/audit", &Value::Null)
        .await;
    shows(
        &other,
        200,
        &["Another experiment is being audited", "<button disabled>"],
    );
    let yours = house
        .ask("POST", "/v1/experiments/other/audit", &json!({}))
        .await
        .refused(429, "yours_runs");
    assert!(yours["detail"].as_str().unwrap().contains("\"e\""));
    // Stopping the other's stops nothing here.
    house
        .ask("POST", "/v1/experiments/other/audit/stop", &json!({}))
        .await
        .expect(200);
    let stopping = house
        .ask("POST", "/v1/experiments/e/audit/stop", &json!({}))
        .await
        .expect(200);
    assert!(stopping["running"].is_object(), "{stopping}");
    house.gate = None;
    house.quiet().await;
    let last = house
        .ask("GET", "/v1/experiments/e/audit", &Value::Null)
        .await
        .expect(200)["last"]
        .clone();
    assert_eq!(
        (&last["verdict"], &last["decisions"], &last["head"]),
        (&json!("stopped"), &json!(0), &Value::Null)
    );
    house
        .ask("POST", "/v1/experiments/other/audit", &json!({}))
        .await
        .expect(200);
    house.quiet().await;
    let other = house
        .ask("GET", "/v1/experiments/other/audit", &Value::Null)
        .await
        .expect(200);
    assert_eq!(other["last"]["verdict"], "equal");
}

/// Begun and stopped by keys of these places: an admin, a reader, and another reader, who may not stop it.
async fn is_stopped_by(begins: usize, stops: usize) {
    // Held from its first look at the clock, until the gate is dropped.
    let mut house = HeldHouse::new(0);
    house.create("e").await;
    house.create("further").await;
    let mut tokens: Vec<String> = Vec::new();
    for (name, role) in [("boss", "admin"), ("one", "read"), ("other", "read")] {
        let key = json!({ "name": name, "role": role });
        let boss = tokens.first().cloned().unwrap_or_default();
        let made = house.ask_as(&boss, "POST", "/v1/keys", &key).await;
        tokens.push(made.expect(201)["key"].as_str().unwrap().to_owned());
    }
    let start = "/v1/experiments/e/audit";
    let stop = "/v1/experiments/e/audit/stop";
    // Somebody who asks for one that is under way has not begun it.
    for token in [&tokens[begins], &tokens[2]] {
        let begun = house.ask_as(token, "POST", start, &json!({})).await;
        begun.expect(200);
    }
    let further = "/v1/experiments/further/audit";
    let yours = house
        .ask_as(&tokens[begins], "POST", further, &json!({}))
        .await;
    let yours = yours.refused(429, "yours_runs");
    assert!(yours["detail"].as_str().unwrap().contains("\"e\""));
    let busy = house.ask_as(&tokens[2], "POST", further, &json!({})).await;
    let busy = busy.refused(503, "busy");
    assert!(
        !busy.to_string().contains("\"e\""),
        "which one it is may not be for the caller: {busy}"
    );
    let refused = house.ask_as(&tokens[2], "POST", stop, &json!({})).await;
    let refused = refused.refused(403, "wrong_role");
    assert!(refused.to_string().contains("began"), "{refused}");
    for (place, has_button) in [(2, false), (stops, true)] {
        let page = "/experiments/e/audit";
        let page = house
            .ask_as(&tokens[place], "GET", page, &Value::Null)
            .await;
        assert_eq!(page.text().contains("Stop it"), has_button);
    }
    let stopped = house.ask_as(&tokens[stops], "POST", stop, &json!({})).await;
    stopped.expect(200);
    house.gate = None;
    house.quiet().await;
    let state = house.ask_as(&tokens[0], "GET", start, &Value::Null).await;
    assert_eq!(state.expect(200)["last"]["verdict"], "stopped");
}

#[tokio::test]
async fn a_reader_stops_only_the_audit_that_it_began_and_an_admin_any() {
    for (begins, stops) in [(1, 1), (1, 0), (0, 0)] {
        is_stopped_by(begins, stops).await;
    }
}

#[tokio::test]
async fn progress_counts_what_is_checked() {
    // Held at its second look at the clock: all is read by then.
    let mut house = HeldHouse::new(1);
    house.create("e").await;
    house
        .ask("POST", "/v1/experiments/e/audit", &json!({}))
        .await
        .expect(200);
    let running = loop {
        let state = house
            .ask("GET", "/v1/experiments/e/audit", &Value::Null)
            .await
            .expect(200);
        if house.free.load(Ordering::SeqCst) == 0 && state["running"]["decisions"] == 1 {
            break state["running"].clone();
        }
        tokio::task::yield_now().await;
    };
    // One decision, and no outcome to be checked.
    assert_eq!(
        (&running["epochs"], &running["outcomes"], &running["share"]),
        (&json!(1), &json!(0), &json!(1.0))
    );
    // The experiment goes on meanwhile, and so does what is to be checked: the first epoch ends with its outcome.
    let outcome = json!([{ "round": 1, "reward": 1, "costs": { "price": 0.01 } }]);
    let outcomes = "/v1/experiments/e/outcomes";
    house.ask("POST", outcomes, &outcome).await.expect(200);
    let state = house
        .ask("GET", "/v1/experiments/e/audit", &Value::Null)
        .await
        .expect(200);
    assert_eq!(state["running"]["share"], 0.5);
    house.gate = None;
    house.quiet().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_the_audit_and_begins_none() {
    let mut house = HeldHouse::new(1);
    house.gate = None;
    house.create("e").await;
    house
        .ask("POST", "/v1/experiments/e/audit", &json!({}))
        .await
        .expect(200);
    house.app.state.audits.end().await;
    let state = house
        .ask("GET", "/v1/experiments/e/audit", &Value::Null)
        .await
        .expect(200);
    assert_eq!(state["running"], Value::Null);
    house
        .ask("POST", "/v1/experiments/e/audit", &json!({}))
        .await
        .refused(503, "stopping");
}
