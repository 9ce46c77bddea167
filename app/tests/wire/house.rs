//! A service of which everything is fixed: its clock is moved by hand, and its random bytes are counted out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use debora_cli::service::clock::Moment;
use debora_cli::service::http::{App, Shared, TIMEOUT};
use debora_cli::service::random;
use debora_cli::service::writer::Service;
use debora_cli::store::Location;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::kit::scratch::Scratch;
use crate::masked::{in_lines, masked};

/// When it all begins: a November evening in 2023.
const BEGINNING: i64 = 1_700_000_000_000;

/// Headers that are as they must be for whoever sends the answer, and say nothing of it.
const UNTOLD: [&str; 2] = ["content-length", "content-security-policy"];

/// The service, and the folder that its store is in.
pub struct House {
    pub folder: Scratch,
    clock: Arc<AtomicI64>,
    service: Arc<Service>,
    app: App,
    /// The API keys, by name.
    keys: Mutex<BTreeMap<String, String>>,
}

/// What is asked.
#[derive(Clone, Default)]
pub struct Question<'a> {
    method: Method,
    path: &'a str,
    /// The name of the caller's key; none if that is empty.
    who: &'a str,
    /// Name and value of each header.
    headers: Vec<(&'a str, String)>,
    body: String,
}

impl<'a> Question<'a> {
    pub fn get(path: &'a str, who: &'a str) -> Self {
        Self {
            path,
            who,
            ..Self::default()
        }
    }

    /// With a body of JSON.
    pub fn post(path: &'a str, who: &'a str, body: &Value) -> Self {
        Self {
            method: Method::POST,
            body: body.to_string(),
            ..Self::get(path, who)
        }
        .with("content-type", "application/json")
    }

    /// What a browser sends from a form.
    pub fn form(path: &'a str, who: &'a str, fields: &[(&str, &str)]) -> Self {
        Self {
            method: Method::POST,
            body: serde_urlencoded::to_string(fields).expect("fields"),
            ..Self::get(path, who)
        }
        .with("content-type", "application/x-www-form-urlencoded")
        .with("accept", "text/html")
    }

    /// Method and path.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn with(mut self, header: &'a str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }
}

/// What is answered, and to what.
pub struct Answer {
    asked: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    bytes: Bytes,
}

impl House {
    /// Without an experiment, and open to everyone.
    pub fn new() -> Self {
        random::fixed::from(counted);
        let folder = Scratch::new("wire");
        let clock = Arc::new(AtomicI64::new(BEGINNING));
        let location = Location::Sqlite(folder.join("store.db"));
        let time = Arc::clone(&clock);
        let now = Arc::new(move || Moment::both(time.load(Ordering::Relaxed)));
        let service = Service::start(location, now).expect("a service");
        let app = App::new(Shared::new(Arc::clone(&service), TIMEOUT));
        Self {
            folder,
            clock,
            service,
            app,
            keys: Mutex::default(),
        }
    }

    /// Notes an API key under the name that questions give.
    pub fn note_key(&self, name: &str, key: &str) {
        let mut keys = self.keys.lock().expect("no panic while a key is noted");
        keys.insert(name.to_owned(), key.to_owned());
    }

    fn key(&self, name: &str) -> Option<String> {
        let keys = self.keys.lock().expect("no panic while a key is noted");
        keys.get(name).cloned()
    }

    /// Lets time pass, and has done what is due by then.
    pub async fn wait(&self, milliseconds: i64) {
        // The waiting clock takes ten seconds at a step.
        for _ in 0..milliseconds / 10_000 {
            self.clock.fetch_add(10_000, Ordering::Relaxed);
            self.service.tick().await.expect("a tick");
        }
        self.clock
            .fetch_add(milliseconds % 10_000, Ordering::Relaxed);
    }

    pub async fn ask(&self, question: &Question<'_>) -> Answer {
        let mut request = Request::builder()
            .method(question.method.clone())
            .uri(question.path);
        for (name, value) in &question.headers {
            request = request.header(*name, value);
        }
        if let Some(key) = self.key(question.who) {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request
            .body(Body::from(question.body.clone()))
            .expect("a request");
        let (parts, body) = self.app.answer(request).await.into_parts();
        Answer {
            asked: question.to_string(),
            status: parts.status,
            headers: parts.headers,
            bytes: to_bytes(body, usize::MAX).await.expect("a body"),
        }
    }

    /// The answer as it is kept.
    pub fn told(&self, answer: &Answer) -> String {
        let body = in_lines(&masked(&answer.text(), &self.folder));
        format!("{}\n{body}\n", self.told_without_body(answer))
    }

    /// The same of an answer whose body is a file of this tree.
    pub fn told_without_body(&self, answer: &Answer) -> String {
        let mut headers: Vec<_> = answer
            .headers
            .iter()
            .filter(|(name, _)| !UNTOLD.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        headers.sort();
        let (asked, status) = (&answer.asked, answer.status);
        format!("{asked}\n{status}\n{}", headers.concat())
    }

    /// Leaves the store whole in its file.
    pub fn stop(&self) {
        self.service.stop().expect("a store that is left whole");
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.to_vec()).expect("text")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.who.is_empty() {
            "nobody"
        } else {
            self.who
        };
        write!(f, "{} {} by {who}", self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(f, ", {name}: {value}")?;
        }
        // What a form sends is long, and what was read of it is in the answer.
        if self.body.starts_with('{') {
            write!(f, "\n{}", self.body)?;
        }
        Ok(())
    }
}

/// Bytes that differ at each draw, and are the same in each run.
fn counted(bytes: &mut [u8]) {
    static DRAWS: AtomicU64 = AtomicU64::new(0);
    let draw = DRAWS.fetch_add(1, Ordering::Relaxed);
    let hash = Sha256::digest(draw.to_le_bytes());
    bytes
        .iter_mut()
        .zip(hash)
        .for_each(|(byte, drawn)| *byte = drawn);
}
