//! Requests of every shape at every route of the description, most of them wrong: no answer may be a server's error, each
//! must be one that the description has, and the experiments must stay whole.
//!
//! `DEBORA_FUZZ_REQUESTS` says how many (default 4,000; 100,000 in `./check long`; an eighth of them on PostgreSQL, where a
//! commit goes through another process). The seed is fixed, and the request that fails is printed.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use debora::Key;
use debora::key::Label;
use debora_cli::service::clock::Moment;
use debora_cli::service::http::{App, Shared, TIMEOUT};
use debora_cli::service::writer::Service;
use debora_cli::store::Location;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::kit::alone::alone;
use crate::kit::binary::debora;
use crate::kit::schema::schema;
use crate::kit::scratch::Scratch;

const SPEC: &str = "policy = 'soft'\nhorizon = 5000\nrho = 0.5\nprofile = 'paper'\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5\n[service]\non_wait = 'serve'\noutcome_wait = '1s'";

/// Chance as a function of a number that counts up.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 += 1;
        Key::from(2026u64).block(Label::Feedback, [self.0, 0, 0])[0]
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    fn text(&mut self) -> String {
        let length = *self.pick(&[0, 1, 5, 5, 5, 40, 200]);
        let letters = [
            "a",
            "7",
            "-",
            "_",
            "é",
            "\u{0}",
            "\n",
            "\"",
            "\\",
            "%2e",
            "/",
            "..",
            "\u{1f600}",
            "'",
            ";",
            "<",
        ];
        (0..length).map(|_| *self.pick(&letters)).collect()
    }
}

/// A body, often right, made from its schema.
fn value(dice: &mut Dice, schema: &Value, document: &Value, depth: usize) -> Value {
    if dice.one_in(12) || depth > 6 {
        return anything(dice, depth);
    }
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return value(
            dice,
            &document["components"]["schemas"][name],
            document,
            depth + 1,
        );
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let chosen = dice.pick(choices).clone();
            return value(dice, &chosen, document, depth + 1);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => dice.pick(kinds).clone(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("object") => object(dice, schema, document, depth),
        Some("array") => {
            let count = *dice.pick(&[0, 1, 2, 3, 10]);
            (0..count)
                .map(|_| value(dice, &schema["items"], document, depth + 1))
                .collect()
        }
        Some("integer") => {
            json!(*dice.pick(&[
                0,
                1,
                2,
                3,
                10,
                100,
                4_999,
                5_000,
                5_001,
                10_000,
                1 << 53,
                i64::MAX as u64,
                u64::MAX
            ]))
        }
        Some("number") => json!(*dice.pick(&[0.0, 1.0, 0.5, -0.0, 0.25, 1.5, -1.0, 1e308, 5e-324])),
        Some("boolean") => json!(dice.one_in(2)),
        Some("null") => Value::Null,
        _ if dice.one_in(4) => json!(dice.text()),
        _ => json!(*dice.pick(&[
            "one",
            "key-1",
            "key-2",
            "",
            SPEC,
            "fuzz-0",
            "fuzz-1",
            "70000000000000000000000000000007"
        ])),
    }
}

fn object(dice: &mut Dice, schema: &Value, document: &Value, depth: usize) -> Value {
    let mut fields = Map::new();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let wanted = if required.contains(&name.as_str()) {
            !dice.one_in(15)
        } else {
            dice.one_in(2)
        };
        if wanted {
            fields.insert(name.clone(), value(dice, field, document, depth + 1));
        }
    }
    if let Some(field) = schema
        .get("additionalProperties")
        .filter(|field| field.is_object())
    {
        fields.insert(
            (*dice.pick(&["price", "prize", ""])).into(),
            value(dice, field, document, depth + 1),
        );
    }
    if dice.one_in(20) {
        fields.insert(dice.text(), anything(dice, depth));
    }
    Value::Object(fields)
}

fn anything(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth > 6 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => json!(dice.word()),
        3 => json!(-(dice.below(1 << 40) as i64)),
        4 => json!(f64::from_bits(dice.word())),
        5 => json!(dice.text()),
        6 => (0..dice.below(4))
            .map(|_| anything(dice, depth + 1))
            .collect(),
        _ => (0..dice.below(4))
            .map(|_| (dice.text(), anything(dice, depth + 1)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// What is sent: sometimes not even JSON.
fn body(dice: &mut Dice, schema: &Value, document: &Value) -> Vec<u8> {
    let mut bytes = value(dice, schema, document, 0).to_string().into_bytes();
    match dice.below(24) {
        0 => bytes.truncate(dice.below(bytes.len() + 1)),
        1 => bytes = (0..dice.below(64)).map(|_| dice.word() as u8).collect(),
        2 => bytes = vec![b'['; 1 << dice.below(18)],
        3 => bytes = b"[{\"round\":1,\"reward\":NaN,\"costs\":[Infinity]}]".to_vec(),
        4 => bytes = b"[{\"round\":1,\"reward\":1e999,\"costs\":[0]}]".to_vec(),
        5 => bytes = b"{\"n\":-1}".to_vec(),
        6 => bytes = b"{\"n\":1.5,\"n\":2}".to_vec(),
        7 if dice.one_in(20) => bytes = vec![b' '; 16 << 20],
        _ => {}
    }
    bytes
}

/// A request to an operation; also what it was, in words.
fn request(
    dice: &mut Dice,
    path: &str,
    method: &str,
    operation: &Value,
    document: &Value,
    key: &str,
) -> (Request<Body>, String) {
    let id = match dice.below(10) {
        0 => percent(&dice.text()),
        1 => "nobody".into(),
        other => format!("fuzz-{}", other % 2),
    };
    let mut address = path.replace("{id}", if id.is_empty() { "%20" } else { &id });
    let epoch = match dice.below(3) {
        0 => percent(&dice.text()),
        _ => dice.below(20).to_string(),
    };
    address = address.replace("{epoch}", if epoch.is_empty() { "%20" } else { &epoch });
    // Never the fuzzer's own key: revoked, all the rest would be answered alike.
    let name = format!("n{}", percent(&dice.text()));
    address = address.replace("{name}", &name);
    let queries = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["in"] == "query");
    let mut separator = '?';
    for query in queries.cloned().collect::<Vec<_>>() {
        if dice.one_in(2) {
            let text = value(dice, &query["schema"], document, 0).to_string();
            address += &format!(
                "{separator}{}={}",
                query["name"].as_str().unwrap(),
                percent(text.trim_matches('"'))
            );
            separator = '&';
        }
    }
    let mut bytes = Vec::new();
    let mut builder = Request::builder()
        .method(method.to_uppercase().as_str())
        .uri(&address);
    if let Some(contents) = operation["requestBody"]["content"].as_object() {
        bytes = body(dice, &contents["application/json"]["schema"], document);
        let kind = if dice.one_in(25) {
            "text/plain"
        } else {
            "application/json"
        };
        builder = builder.header("content-type", kind);
    }
    builder = if dice.one_in(10) {
        let wrong = ["Bearer debora_00", "Basic x", "Bearer", "\u{7f}x"];
        builder.header("authorization", *dice.pick(&wrong))
    } else {
        builder.header("authorization", format!("Bearer {key}"))
    };
    let shown = format!(
        "{method} {address} {}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
    );
    match builder.body(Body::from(bytes)) {
        Ok(request) => (request, shown),
        // Not even an address or a header: no client can send that.
        Err(_) => (
            Request::get("/health").body(Body::empty()).unwrap(),
            "get /health".into(),
        ),
    }
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                (byte as char).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Resident memory in megabytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}

/// How many requests.
fn requests() -> u64 {
    std::env::var("DEBORA_FUZZ_REQUESTS").map_or(4_000, |count| count.parse().unwrap())
}

#[test]
fn no_request_is_the_servers_fault_on_sqlite() {
    let claim = concat!(
        module_path!(),
        "::no_request_is_the_servers_fault_on_sqlite"
    );
    // The memory that is compared is the whole process's.
    alone(claim, &[], || {
        let folder = Scratch::new("fuzz");
        let file = folder.join("store.db").display().to_string();
        Runtime::new().unwrap().block_on(fuzz(&file, requests()));
    });
}

#[test]
fn no_request_is_the_servers_fault_on_postgresql() {
    let claim = concat!(
        module_path!(),
        "::no_request_is_the_servers_fault_on_postgresql"
    );
    alone(claim, &[], || {
        let url = schema("fuzz");
        Runtime::new().unwrap().block_on(fuzz(&url, requests() / 8));
    });
}

async fn fuzz(store: &str, requests: u64) {
    let location = Location::parse(store);
    // The client of PostgreSQL blocks until it is connected.
    let start = || Service::start(location, Arc::new(|| Moment::both(1_700_000_000_000)));
    let service = tokio::task::block_in_place(start).unwrap();
    let app = App::new(Shared::new(Arc::clone(&service), TIMEOUT));
    for id in ["fuzz-0", "fuzz-1"] {
        let body = json!({ "id": id, "spec": SPEC, "blind": true, "key": "70000000000000000000000000000007" }).to_string();
        let create = Request::post("/v1/experiments").header("content-type", "application/json");
        let response = app.answer(create.body(Body::from(body)).unwrap()).await;
        assert_eq!(response.status(), StatusCode::CREATED);
    }
    let body = json!({ "name": "fuzzer", "role": "admin" }).to_string();
    let make = Request::post("/v1/keys").header("content-type", "application/json");
    let response = app.answer(make.body(Body::from(body)).unwrap()).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let made = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let made: Value = serde_json::from_slice(&made).unwrap();
    let key = made["key"].as_str().unwrap();
    let response = app
        .answer(Request::get("/openapi.json").body(Body::empty()).unwrap())
        .await;
    let document: Value =
        serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap();
    let operations: Vec<(String, String, Value)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods
                .as_object()
                .unwrap()
                .iter()
                .map(|(method, one)| (path.clone(), method.clone(), one.clone()))
        })
        // Closed, an experiment would answer all the rest alike: it is closed at the end.
        .filter(|(path, ..)| !path.ends_with("/close"))
        .collect();
    assert!(operations.len() > 10);

    let mut dice = Dice(0);
    let mut memory_early = 0.0;
    let mut statuses = std::collections::BTreeMap::<u16, u64>::new();
    for number in 0..requests {
        // Those with a body are where the surprises are.
        let mut place = dice.below(operations.len());
        if operations[place].2.get("requestBody").is_none() && !dice.one_in(3) {
            place = dice.below(operations.len());
        }
        let (path, method, operation) = &operations[place];
        let (request, shown) = request(&mut dice, path, method, operation, &document, key);
        let response = app.answer(request).await;
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let said = String::from_utf8_lossy(&bytes);
        *statuses.entry(status).or_default() += 1;
        assert!(status < 500, "request {number}: {status} {said}\n{shown}");
        if status >= 400 {
            let error: Value =
                serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{shown}: {said}"));
            // Flags have the errors of their protocol, apart from access and routes.
            let names = [("code", "message"), ("errorCode", "errorDetails")];
            let (code, words) = names[usize::from(error.get("errorCode").is_some())];
            assert!(
                code == "code" || path.starts_with("/ofrep/"),
                "{shown}: {said}"
            );
            let named = error[code].is_string()
                && error[words].as_str().is_some_and(|text| text.len() > 10);
            assert!(named, "request {number}: {status} {said}\n{shown}");
        }
        // An id may spell another route, or none.
        let elsewhere = shown.starts_with("get /health")
            || matches!(error_code(&bytes).as_str(), "no_route" | "method");
        let described = operation["responses"].get(status.to_string()).is_some();
        assert!(
            described || elsewhere,
            "request {number}: {status} is not described\n{shown}\n{said}"
        );
        if number == requests / 4 {
            memory_early = memory();
        }
    }
    let memory_late = memory();
    println!(
        "{requests} requests: {statuses:?}; {memory_early:.0} MB after a quarter, {memory_late:.0} MB at the end"
    );
    assert!(
        statuses[&200] > requests / 20,
        "hardly anything was right: {statuses:?}"
    );
    assert!(
        memory_late < memory_early + 64.0,
        "memory grew from {memory_early} to {memory_late} MB"
    );

    // Connections to PostgreSQL block when they are dropped, too.
    tokio::task::block_in_place(|| {
        service.stop().unwrap();
        drop((app, service));
    });
    let audit = debora(&["audit", store]).output().unwrap();
    let said = String::from_utf8_lossy(&audit.stdout);
    assert!(
        audit.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&audit.stderr)
    );
}

fn error_code(bytes: &[u8]) -> String {
    let error: Result<Value, _> = serde_json::from_slice(bytes);
    error
        .ok()
        .and_then(|error| error["code"].as_str().map(str::to_owned))
        .unwrap_or_default()
}
