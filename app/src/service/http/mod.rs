//! The service over HTTP: an [`App`] answers requests, which tests send without a socket.
//!
//! ```text
//! connection ─► observed ─► same origin? ─► route ─► who asks, what with ─► handler ─► Service
//! (server.rs)   (watch.rs)  (guard.rs)      (axum)   (access.rs, extract.rs)  (a file per part of the interface)
//! ```
//!
//! Handlers only translate; what may happen is decided within the transaction. What goes wrong on the way becomes an
//! [`error::ApiError`] in one place.

pub mod access;
pub mod census;
pub mod decisions;
pub mod diffs;
pub mod download;
pub mod epochs;
pub mod error;
pub mod experiments;
pub mod extract;
pub mod flags;
pub mod gauges;
pub mod guard;
pub mod head;
mod json_path;
pub mod keys;
pub mod last_minute;
pub mod log;
pub mod metrics;
#[cfg(feature = "describe")]
pub mod openapi;
pub mod outcomes;
pub mod pages;
pub mod papers;
pub mod plan;
pub mod problems;
pub mod readers;
pub mod ready;
pub mod routes;
pub mod samples;
pub mod server;
pub mod session;
pub mod simulate;
pub mod spec_edit;
pub mod state;
pub mod stream;
pub mod summary;
pub mod trace;
pub mod watch;
pub mod webhooks;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use debora::Problem;
use debora::spec::Spec;
use tokio::sync::Semaphore;

use crate::service::recent::Recent;
use crate::service::request::Refusal;
use crate::service::writer::Service;
use crate::store::Store;
use access::Access;
use census::Census;
use error::ApiError;
use gauges::Gauges;
use last_minute::LastMinute;
use metrics::Metrics;
use pages::errors::{self, Asked};
use pages::{KeptPages, Lists, Renderings, ShownKeys};
use readers::Readers;
use ready::Readiness;
use summary::Summaries;

/// How long a client may take to send a request, by default: enough for the longest body at 2.3 Mbit/s.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// What all bodies that are being read or worked on may take together: 32 of the longest.
const BODIES_KIBIBYTES: usize = 256 << 10;

/// Specs kept in memory: those that were asked for last.
const INFOS_MAX: usize = 1_000;

/// What all handlers share.
pub struct Shared {
    /// The experiments.
    pub service: Arc<Service>,
    /// The keys.
    pub access: Access,
    /// What is counted.
    pub metrics: Metrics,
    /// How long a client may take to send a request.
    pub timeout: Duration,
    /// What was done in the last minute.
    pub last_minute: LastMinute,
    /// When it began, by monotonic time.
    begun_at: i64,
    readiness: Readiness,
    readers: Readers,
    summaries: Summaries,
    census: Census,
    gauges: Gauges,
    bodies: Arc<Semaphore>,
    infos: Mutex<Recent<Arc<ExperimentInfo>>>,
    renderings: Renderings,
    lists: Lists,
    shown_keys: ShownKeys,
    kept_pages: KeptPages,
}

/// A handle on it.
pub type AppState = Arc<Shared>;

/// What never changes about an experiment, read once.
pub struct ExperimentInfo {
    /// What it is called.
    pub name: Option<String>,
    /// Its actions, costs and horizon.
    pub problem: Arc<Problem>,
}

impl Shared {
    /// As it is before the first request.
    pub fn new(service: Arc<Service>, timeout: Duration) -> AppState {
        Arc::new(Self {
            metrics: Metrics::new(&service.counts),
            last_minute: LastMinute::default(),
            begun_at: (service.clock)().monotonic,
            readiness: Readiness::default(),
            readers: Readers::new(&service),
            summaries: Summaries::default(),
            census: Census::default(),
            gauges: Gauges::default(),
            service,
            access: Access::default(),
            timeout,
            bodies: Arc::new(Semaphore::new(BODIES_KIBIBYTES)),
            infos: Mutex::new(Recent::new(INFOS_MAX)),
            renderings: Renderings::default(),
            lists: Lists::default(),
            shown_keys: ShownKeys::default(),
            kept_pages: KeptPages::default(),
        })
    }

    /// Looks at some rows of the store, beside the writer.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.readers.look.read(read).await
    }

    /// Reads much of the store: in a lane of its own, and with what time the others leave.
    pub async fn read_page<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.readers.pages.read(read).await
    }

    /// Does what reads for seconds: one at a time, with what time the others leave.
    pub async fn compare<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.readers.diffs.run(work).await
    }

    /// Computes what needs no store, such as a plan: one at a time, with what time the others leave.
    pub async fn compute<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.readers.plans.run(move || Ok(work())).await
    }

    /// The same for what takes a second: one at a time, behind everything else.
    pub async fn simulate<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.readers.simulations.run(move || Ok(work())).await
    }

    /// Looks at the counters and drops what was kept for a while, once a second.
    pub fn sample(&self) {
        let now = (self.service.clock)().monotonic;
        self.shown_keys.trim(now);
        let shed = self.service.counts.shed_total();
        self.last_minute.note(now, self.metrics.decisions(), shed);
    }

    /// What never changes about an experiment.
    pub async fn info(self: &Arc<Self>, id: &str) -> Result<Arc<ExperimentInfo>, ApiError> {
        if let Some(info) = self.known_info(id) {
            return Ok(info);
        }
        let asked = id.to_owned();
        let row = self.read(move |store| store.experiment(&asked)).await?;
        let (experiment, _) = row.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?;
        self.info_of(id, &experiment.spec)
    }

    /// The same, of an experiment whose spec is at hand.
    pub fn info_of(&self, id: &str, spec: &str) -> Result<Arc<ExperimentInfo>, ApiError> {
        self.parsed(id, spec).map_err(ApiError::store)
    }

    /// The same, where the store is read.
    pub fn parsed(&self, id: &str, spec: &str) -> Result<Arc<ExperimentInfo>> {
        // Every request that tells needs it, and it never changes.
        if let Some(info) = self.known_info(id) {
            return Ok(info);
        }
        let spec = Spec::parse(spec, id)?;
        let info = Arc::new(ExperimentInfo {
            name: spec.name,
            problem: Arc::new(spec.problem),
        });
        let mut infos = self.lock_infos();
        infos.insert(id, Arc::clone(&info));
        infos.trim();
        drop(infos);
        Ok(info)
    }

    fn known_info(&self, id: &str) -> Option<Arc<ExperimentInfo>> {
        self.lock_infos().get_mut(id).cloned()
    }

    fn lock_infos(&self) -> MutexGuard<'_, Recent<Arc<ExperimentInfo>>> {
        self.infos.lock().expect("no panic while reading specs")
    }
}

/// The whole service: a request goes in, an answer comes out.
#[derive(Clone)]
pub struct App {
    /// What all requests share.
    pub state: AppState,
    router: Router,
}

impl App {
    /// With what all requests share.
    pub fn new(state: AppState) -> Self {
        let router = routes::interface()
            .merge(pages::router())
            .fallback(no_route)
            .method_not_allowed_fallback(wrong_method)
            .with_state(Arc::clone(&state));
        Self { state, router }
    }

    /// Answers a request. Without a socket, so that tests can ask.
    pub async fn answer(&self, request: Request) -> Response {
        let asked = Asked::of(&request);
        let response = watch::observed(&self.state, self.router.clone(), request).await;
        errors::for_people(asked, response)
    }
}

async fn no_route(uri: Uri) -> ApiError {
    // The path alone: a query may hold a secret, and errors end up in logs.
    let path = uri.path();
    let message = format!("there is nothing at {path}; /openapi.json describes what there is");
    ApiError::new(StatusCode::NOT_FOUND, "no_route", message)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = uri.path();
    let message =
        format!("{method} does not work at {path}; the header Allow lists the methods that do");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}
