//! The caller of a request, and what the key allows: read < decide < admin, of all experiments or of some.
//!
//! A store without keys is open to everyone who can reach it, which `debora serve` allows on a loopback address alone. Once a
//! key was made, every request needs one. Only hashes are kept and compared: a key has 256 random bits, so the time that a
//! lookup takes reveals nothing about it. Programs send the key itself, the pages the token of a session that stands for it
//! (`session.rs`): neither is taken for the other.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use anyhow::Result;
use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, REFERER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::watch;

use crate::service::http::error::ApiError;
use crate::service::http::{AppState, session};
use crate::service::request::{Refusal, token_hash};
use crate::store::{ApiKey, ExperimentLine, KEYLESS, Role, Store};

/// How long a key that was added or revoked may go unnoticed, in milliseconds: another process does both, and reading the keys
/// for each request would cost more than the request.
pub const REFRESH_MILLISECONDS: i64 = 2_000;

/// How long they are taken for what is stored while the store does not answer. A database that is slow for some seconds then turns
/// away nobody for want of a look at the keys, and a key that was revoked meanwhile can do little: all it may ask for needs the store.
const STALE_MILLISECONDS: i64 = 10_000;

/// Where a key may stand as it is.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The caller of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name of the key.
    pub name: Arc<str>,
    /// What it allows.
    pub role: Role,
    /// The experiments it is for; `None` for all.
    pub scope: Option<Arc<[String]>>,
    /// Whether a key was needed.
    pub keyed: bool,
}

impl Caller {
    /// Refuses a caller whose role is below this.
    pub fn require(&self, needed: Role) -> Result<(), ApiError> {
        // Roles are ordered: each may do what the one before it may.
        if self.role >= needed {
            Ok(())
        } else {
            Err(ApiError::wrong_role(&self.name, self.role, needed))
        }
    }

    /// Refuses a caller who may not do this with the experiment.
    pub fn require_for(&self, needed: Role, id: &str) -> Result<(), ApiError> {
        self.require(needed)?;
        // As if it were not there, and before anything looks whether it is: not even the time that an answer takes tells.
        if self.sees(id) {
            Ok(())
        } else {
            Err(Refusal::NoExperiment { id: id.to_owned() }.into())
        }
    }

    /// Refuses a key that is for some experiments only, unless what is asked for is about one of them.
    pub fn require_scope(&self, id: Option<&str>) -> Result<(), ApiError> {
        match &self.scope {
            Some(scope) if !id.is_some_and(|id| self.sees(id)) => {
                let remedy = "give one of these ids, or use a key for all experiments";
                Err(ApiError::out_of_scope(&self.name, scope, remedy)
                    .against(format!("one of {scope:?}"), id))
            }
            _ => Ok(()),
        }
    }

    /// The experiments that the caller sees, in the order of their creation or in the opposite one, after one of them.
    pub fn lines(
        &self,
        store: &mut Store,
        after: Option<&str>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<ExperimentLine>> {
        // An experiment out of scope is as good as none, and after none comes nothing.
        if after.is_some_and(|id| !self.sees(id)) {
            return Ok(Vec::new());
        }
        store.lines(self.scope.as_deref(), after, newest_first, limit)
    }

    /// Refuses a key that is for some experiments only.
    pub fn require_all(&self) -> Result<(), ApiError> {
        self.scope.as_ref().map_or(Ok(()), |scope| {
            let remedy = "this is about all, so use a key for all experiments";
            Err(ApiError::out_of_scope(&self.name, scope, remedy)
                .against("a key for all experiments", &*self.name))
        })
    }

    /// Whether an experiment's key is shown to the caller before its end: anyone who has it can predict the decisions of all
    /// experiments that share it.
    pub fn sees_key_of(&self, store: &mut Store, id: &str) -> Result<bool> {
        if self.role < Role::Admin || self.scope.is_none() {
            return Ok(self.role == Role::Admin);
        }
        let Some((experiment, _)) = store.experiment(id)? else {
            return Ok(false);
        };
        // So for a key of some experiments, all that the key would tell of must be among them.
        let sharing = store.experiments_of_key(experiment.key)?;
        let mut open = sharing.iter().filter(|row| row.1.status.is_open());
        Ok(open.all(|row| self.sees(&row.0.id)))
    }

    /// Whether the key is for this experiment.
    pub fn sees(&self, id: &str) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|scope| scope.iter().any(|known| known == id))
    }
}

/// The store's keys as they were read last.
#[derive(Default)]
struct KnownKeys {
    read_at: Option<i64>,
    /// Whether everyone is let in.
    open: bool,
    /// By the hash of the key.
    callers: HashMap<String, Caller>,
}

impl KnownKeys {
    fn is_within(&self, milliseconds: i64, now: i64) -> bool {
        // From 0: a clock that was set back must not keep a revoked key alive.
        self.read_at
            .is_some_and(|at| (0..milliseconds).contains(&(now - at)))
    }

    fn is_fresh(&self, now: i64) -> bool {
        self.is_within(REFRESH_MILLISECONDS, now)
    }

    fn holder(&self, token: &str) -> Option<Caller> {
        self.callers.get(&token_hash(token)).cloned()
    }

    /// The holder of the key of this name, unless it was revoked.
    fn named(&self, name: &str) -> Option<Caller> {
        // Searched: keys are few, and sessions are people's.
        let mut callers = self.callers.values();
        callers.find(|caller| &*caller.name == name).cloned()
    }
}

/// The keys, or why they could not be read; `None` while they are being read.
type KeysRead = watch::Receiver<Option<Result<Arc<KnownKeys>, ApiError>>>;

/// The keys in memory.
#[derive(Default)]
pub struct Access {
    known: RwLock<Arc<KnownKeys>>,
    /// Whether a key is needed, whatever the store says.
    keyed: AtomicBool,
    /// How they are being read, or were read last: once for all who wait, who share a failure, too.
    reading: Mutex<Option<KeysRead>>,
    /// How often this node has made or revoked a key.
    changes: AtomicU64,
}

impl Access {
    /// Has keys needed from here on.
    pub fn need_keys(&self) {
        self.keyed.store(true, Ordering::Relaxed);
    }

    /// Whether everyone is let in: there is no key, and never was one since the start. A store that lost its keys, because it was
    /// restored to a time before them, lets nobody in.
    fn is_open(&self, keys: &[ApiKey]) -> bool {
        // A revoked key counts: revoking the last one must not open the service to everyone.
        if !keys.is_empty() {
            self.need_keys();
        }
        let keyed = self.keyed.load(Ordering::Relaxed);
        if keyed && keys.is_empty() {
            tracing::error!(
                "the store has lost its API keys; nobody is let in until there are some (`debora keys add`)"
            );
        }
        !keyed
    }

    /// The caller who sends these headers, whose key is used by it.
    async fn caller(&self, app: &AppState, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let caller = self.identified(app, headers).await?;
        if caller.keyed {
            note_use(app, &caller);
        }
        Ok(caller)
    }

    async fn identified(&self, app: &AppState, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let known = self.fresh(app).await?;
        if known.open {
            return local(headers);
        }
        // The header alone counts if there is one: a script that sends a wrong key is to hear of it
        // even in a browser that is logged in. Providers of feature flags have either of the two.
        let bearer = headers.get(AUTHORIZATION).map(bearer);
        let plain = || Some(headers.get(API_KEY)?.to_str().ok());
        if let Some(token) = bearer.or_else(plain) {
            let token = token.ok_or_else(no_key)?;
            return known.holder(token).ok_or_else(|| {
                // Which of the two is not said: a stranger is not to learn which keys there were.
                ApiError::no_key("this API key is unknown or revoked; ask for another one")
            });
        }
        let token = session::token(headers).ok_or_else(no_key)?;
        let name = session::key_name(app, token).await?;
        name.and_then(|name| known.named(&name))
            .ok_or_else(|| ApiError::no_key("this session is over; log in again"))
    }

    /// Whether these headers bring a valid key, which where none is needed they never do.
    pub async fn has_key(&self, app: &AppState, headers: &HeaderMap) -> bool {
        let caller = self.caller(app, headers).await;
        caller.is_ok_and(|caller| caller.keyed)
    }

    /// The holder of this key, if it is valid.
    pub async fn holder(&self, app: &AppState, token: &str) -> Result<Option<Caller>, ApiError> {
        let holder = self.fresh(app).await?.holder(token);
        if let Some(holder) = &holder {
            note_use(app, holder);
        }
        Ok(holder)
    }

    /// Has the keys read anew before the next request: this node made or revoked one.
    pub fn forget(&self) {
        // First the count: a read that is under way may have begun before the change, and is not taken.
        self.changes.fetch_add(1, Ordering::SeqCst);
        *self.known.write().expect("no panic while reading keys") = Arc::default();
        *self.reading.lock().expect("no panic while reading keys") = None;
    }

    /// The keys as they were in the store at most two seconds ago, or ten if it does not answer.
    async fn fresh(&self, app: &AppState) -> Result<Arc<KnownKeys>, ApiError> {
        let now = (app.service.clock)().monotonic;
        let known = self.current();
        if known.is_fresh(now) {
            return Ok(known);
        }
        let mut reading = self.reading(app, now);
        let read = reading.wait_for(Option::is_some).await;
        // Dropped without a result only if the read panicked.
        let read = read.ok().and_then(|read| read.clone());
        match read.unwrap_or_else(|| Err(ApiError::store("the keys were not read"))) {
            Err(error) if error.code == "busy" && known.is_within(STALE_MILLISECONDS, now) => {
                Ok(known)
            }
            read => read,
        }
    }

    /// The read of the keys that is under way; begun if there is none.
    fn reading(&self, app: &AppState, now: i64) -> KeysRead {
        let mut reading = self.reading.lock().expect("no panic while reading keys");
        // A read that has ended since this request looked is as good as one that begins now, unless it failed.
        if let Some(reading) = reading.as_ref().filter(|reading| is_useful(reading, now)) {
            return reading.clone();
        }
        let (sender, receiver) = watch::channel(None);
        let app = Arc::clone(app);
        // A task of its own: those who wait for it must not depend on the client who came first.
        tokio::spawn(async move {
            let _ = sender.send(Some(app.access.read(&app, now).await));
        });
        *reading = Some(receiver.clone());
        receiver
    }

    async fn read(&self, app: &AppState, now: i64) -> Result<Arc<KnownKeys>, ApiError> {
        let changes = self.changes.load(Ordering::SeqCst);
        let keys = app.read(|store| store.keys()).await?;
        let known = Arc::new(KnownKeys {
            read_at: Some(now),
            open: self.is_open(&keys),
            callers: callers(keys),
        });
        let mut current = self.known.write().expect("no panic while reading keys");
        if self.changes.load(Ordering::SeqCst) == changes {
            *current = Arc::clone(&known);
        }
        Ok(known)
    }

    fn current(&self) -> Arc<KnownKeys> {
        Arc::clone(&self.known.read().expect("no panic while reading keys"))
    }
}

fn note_use(app: &AppState, caller: &Caller) {
    let now = (app.service.clock)().wall;
    app.service.key_uses.note(&caller.name, now);
}

/// Whether a read is under way, or found what is fresh.
fn is_useful(reading: &KeysRead, now: i64) -> bool {
    match &*reading.borrow() {
        // Its task is there, or it would never end.
        None => reading.has_changed().is_ok(),
        Some(read) => read.as_ref().is_ok_and(|known| known.is_fresh(now)),
    }
}

fn callers(keys: Vec<ApiKey>) -> HashMap<String, Caller> {
    let valid = keys.into_iter().filter(|key| key.revoked_at.is_none());
    valid
        .map(|key| {
            (
                key.hash,
                Caller {
                    name: key.name.into(),
                    role: key.role,
                    scope: key.experiments.map(Arc::from),
                    keyed: true,
                },
            )
        })
        .collect()
}

fn bearer(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, token) = authorization.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn no_key() -> ApiError {
    ApiError::no_key("this service needs an API key; send it as Authorization: Bearer debora_...")
}

/// The caller where no key is needed: anyone, but only by a local name of this machine, and without a proxy in between.
///
/// Another site can have its own name point here (DNS rebinding), and its pages would then be admin; so would all clients of a
/// proxy.
fn local(headers: &HeaderMap) -> Result<Caller, ApiError> {
    if let Some(name) = headers.keys().map(HeaderName::as_str).find(is_forwarding) {
        let message = format!(
            "this request came through a proxy (it has the header {name:?}), and without API keys everyone behind it would be \
             admin; make a key with `debora keys add NAME --role admin --store STORE`"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, "forwarded", message)
            .against("no forwarding header", name));
    }
    // A request without a host is not a browser's: they always send it. Behind a proxy that passes on its own address as the host
    // and says nothing of itself, a browser still says which page it shows.
    let hosts = [HOST, ORIGIN, REFERER].into_iter().filter_map(|header| {
        let text = headers.get(header)?.to_str().unwrap_or_default();
        Some(text.split_once("://").map_or(text, |(_, rest)| rest))
    });
    let mut names = hosts.map(|host| host.split('/').next().unwrap_or_default());
    if let Some(host) = names.find(|host| !is_local(host)) {
        let message = format!(
            "without API keys only requests to a loopback address, and of pages on one, are answered, and this one is of {host:?}; make a \
             key with `debora keys add NAME --role admin --store STORE`"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, "not_local", message)
            .against("a loopback host", host));
    }
    Ok(Caller {
        name: KEYLESS.into(),
        role: Role::Admin,
        scope: None,
        keyed: false,
    })
}

/// Whether a header is one that proxies add.
fn is_forwarding(name: &&str) -> bool {
    // The registered ones, and those of the common proxies and content networks. A proxy that adds none cannot be noticed.
    name.starts_with("x-forwarded-")
        || [
            "forwarded",
            "via",
            "x-forwarded",
            "x-real-ip",
            "x-client-ip",
            "x-cluster-client-ip",
            "x-original-forwarded-for",
            "true-client-ip",
            "client-ip",
            "cf-connecting-ip",
            "cf-ray",
            "cf-visitor",
            "cdn-loop",
            "cloudfront-forwarded-proto",
            "fastly-client-ip",
            "fly-client-ip",
            "front-end-https",
            "wl-proxy-client-ip",
            "x-appengine-user-ip",
            "x-azure-clientip",
            "x-envoy-external-address",
            "x-original-host",
            "x-scheme",
            "x-url-scheme",
        ]
        .contains(name)
}

/// Whether a host, with or without a port, is a name of the machine itself.
fn is_local(host: &str) -> bool {
    // What follows the last colon is a port only if it is a number: `[::1]` has colons of its own.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        app.access.caller(app, &parts.headers).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;
    use std::sync::mpsc::{Sender, channel};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::http::{Shared, TIMEOUT};
    use crate::service::writer::Service;
    use crate::store::{Location, Purpose};

    /// Looks that do not end, in every place that there is, until what is given back is dropped.
    async fn hang(app: &AppState) -> Sender<()> {
        let (open, gate) = channel::<()>();
        let (gate, began) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicI64::new(0)));
        for _ in 0..4 {
            let (gate, began) = (Arc::clone(&gate), Arc::clone(&began));
            let app = Arc::clone(app);
            tokio::spawn(async move {
                let stuck = app.read(move |_| {
                    began.fetch_add(1, Ordering::Relaxed);
                    let gate = gate.lock().unwrap_or_else(|dropped| dropped.into_inner());
                    Ok(gate.recv()?)
                });
                let _ = stuck.await;
            });
        }
        while began.load(Ordering::Relaxed) < 4 {
            tokio::task::yield_now().await;
        }
        open
    }

    fn set_key(location: &Location, revoked_at: Option<i64>) {
        let mut store = location.open(Purpose::Write).unwrap();
        store.begin().unwrap();
        let key = ApiKey {
            name: "ops".into(),
            role: Role::Admin,
            hash: token_hash("debora_1"),
            created_at: 0,
            revoked_at,
            experiments: None,
            last_used_at: None,
        };
        store.set_key(&key).unwrap();
        store.commit().unwrap();
    }

    #[tokio::test]
    async fn a_store_that_hangs_keeps_nobody_and_keys_are_known_for_ten_seconds() {
        let folder = Scratch::new("hanging");
        let location = Location::Sqlite(folder.join("store.db"));
        let clock = Arc::new(AtomicI64::new(0));
        let read_clock = Arc::clone(&clock);
        let now = Arc::new(move || Moment::both(read_clock.load(Ordering::Relaxed)));
        let service = Service::start(location.clone(), now).unwrap();
        set_key(&location, None);
        let app = Shared::new(Arc::clone(&service), TIMEOUT);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, "Bearer debora_1".parse().unwrap())]);
        let ask = |at: i64| {
            clock.store(at, Ordering::Relaxed);
            let (app, headers) = (Arc::clone(&app), headers.clone());
            tokio::spawn(async move { app.access.caller(&app, &headers).await })
        };
        assert!(ask(0).await.unwrap().is_ok());
        let open = hang(&app).await;
        let begun = Instant::now();
        let crowd: Vec<_> = (0..50).map(|_| ask(9_999)).collect();
        for known in crowd {
            assert!(known.await.unwrap().is_ok());
        }
        let crowd: Vec<_> = (0..50).map(|_| ask(10_000)).collect();
        for told in crowd {
            assert_eq!(told.await.unwrap().unwrap_err().code, "busy");
        }
        // Each crowd waits once, and not one after the other.
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        set_key(&location, Some(1));
        drop(open);
        // As soon as the store answers, what is revoked is refused.
        let refused = loop {
            let answer = ask(10_000).await.unwrap().unwrap_err();
            if answer.code != "busy" {
                break answer;
            }
        };
        assert_eq!(refused.code, "no_key");
        service.stop().unwrap();
    }

    #[test]
    fn only_names_of_the_machine_itself_are_local() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "10.0.0.1",
            "[::2]:8080",
            "127.0.0.1.example.org:80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
