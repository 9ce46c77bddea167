//! The service over HTTP: an [`App`] answers requests, which tests send without a socket.
//!
//! ```text
//! connection ─► observed ─► same origin? ─► route ─► who asks, what with ─► handler ─► Service
//! (server.rs)   (watch.rs)  (guard.rs)      (axum)   (access.rs, extract.rs)  (a file per part of the interface)
//! ```
//!
//! Handlers translate: the logic is the desk's. What goes wrong on the way becomes an [`error::ApiError`] in one place.

pub mod access;
pub mod decisions;
pub mod error;
pub mod experiments;
pub mod extract;
pub mod guard;
pub mod log;
pub mod metrics;
pub mod openapi;
pub mod outcomes;
pub mod pages;
pub mod server;
pub mod state;
pub mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use debora::Problem;
use debora::spec::Spec;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::service::request::Refusal;
use crate::service::writer::Service;
use crate::store::Store;
use access::Access;
use error::ApiError;
use metrics::Metrics;

/// How long a client may take to send a request, unless said otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads of the store at a time; each has a connection of its own.
const READERS: usize = 4;

/// What all bodies that are being read or worked on may take together.
const BODIES_KIBIBYTES: usize = 256 << 10;

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
    readers: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    cards: Mutex<BTreeMap<String, Arc<Card>>>,
}

/// A handle on it.
pub type Site = Arc<Shared>;

/// What never changes about an experiment, read once.
pub struct Card {
    /// What it is called.
    pub name: Option<String>,
    /// Its actions, costs and horizon.
    pub problem: Arc<Problem>,
}

impl Shared {
    /// Before the first request.
    pub fn new(service: Arc<Service>, timeout: Duration) -> Site {
        Arc::new(Self {
            metrics: Metrics::new(service.groups.clone()),
            service,
            access: Access::default(),
            timeout,
            readers: Arc::new(Semaphore::new(READERS)),
            bodies: Arc::new(Semaphore::new(BODIES_KIBIBYTES)),
            cards: Mutex::default(),
        })
    }

    /// Reads from the store, beside the writer.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut dyn Store) -> Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        // The permit goes with the work: who hangs up does not make room for another reader.
        let permit = Arc::clone(&self.readers)
            .acquire_owned()
            .await
            .map_err(ApiError::store)?;
        let service = Arc::clone(&self.service);
        let result = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            service.read(read)
        })
        .await;
        result.map_err(ApiError::store)?.map_err(ApiError::store)
    }

    /// An experiment's card.
    pub async fn card(self: &Arc<Self>, id: &str) -> Result<Arc<Card>, ApiError> {
        if let Some(card) = self.cards.lock().expect("no panic with the cards").get(id) {
            return Ok(Arc::clone(card));
        }
        let asked = id.to_owned();
        let row = self.read(move |store| store.experiment(&asked)).await?;
        let (experiment, _) = row.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?;
        self.card_of(id, &experiment.spec)
    }

    /// The card of an experiment whose spec is at hand.
    pub fn card_of(&self, id: &str, spec: &str) -> Result<Arc<Card>, ApiError> {
        let mut cards = self.cards.lock().expect("no panic with the cards");
        if let Some(card) = cards.get(id) {
            return Ok(Arc::clone(card));
        }
        let spec = Spec::parse(spec, id).map_err(ApiError::store)?;
        let card = Arc::new(Card {
            name: spec.name,
            problem: Arc::new(spec.problem),
        });
        cards.insert(id.to_owned(), Arc::clone(&card));
        Ok(card)
    }
}

/// The interface for programs, with its description.
fn interface() -> OpenApiRouter<Site> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(experiments::create, experiments::list))
        .routes(routes!(experiments::show))
        .routes(routes!(experiments::pause))
        .routes(routes!(experiments::resume))
        .routes(routes!(experiments::close))
        .routes(routes!(decisions::decide))
        .routes(routes!(outcomes::tell))
        .routes(routes!(state::state))
        .routes(routes!(log::log))
        .routes(routes!(log::certificate))
        .routes(routes!(watch::health))
        .routes(routes!(watch::metrics))
        .routes(routes!(openapi::openapi))
}

/// The whole service: a request goes in, an answer comes out.
#[derive(Clone)]
pub struct App {
    /// What all requests share.
    pub site: Site,
    router: Router,
}

impl App {
    /// Around what is shared.
    pub fn new(site: Site) -> Self {
        let (interface, _) = interface().split_for_parts();
        let router = interface
            .merge(pages::router())
            .fallback(async |uri: Uri| {
                let message = format!(
                    "there is nothing at {}; /openapi.json describes what there is",
                    uri.path()
                );
                ApiError::new(StatusCode::NOT_FOUND, "no_route", message)
            })
            .method_not_allowed_fallback(async |method: Method, uri: Uri| {
                let message = format!(
                    "{method} does not work at {}; the header Allow says what does",
                    uri.path()
                );
                ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
            })
            .with_state(Arc::clone(&site));
        Self { site, router }
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request) -> Response {
        watch::observed(&self.site, self.router.clone(), request).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::service::scratch::Scratch;

    #[tokio::test]
    async fn readers_are_few_even_if_who_asked_hangs_up() {
        let (_folder, location) = Scratch::new("readers");
        let service = Service::start(location, Arc::new(|| 0)).unwrap();
        let site = Shared::new(Arc::clone(&service), TIMEOUT);
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let read_slowly = |_| {
            let (site, gate) = (Arc::clone(&site), Arc::clone(&gate));
            tokio::spawn(async move {
                site.read(move |_| Ok(gate.lock().unwrap().recv()?))
                    .await
                    .is_ok()
            })
        };
        let slow: Vec<_> = (0..READERS).map(read_slowly).collect();
        while site.readers.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let another =
            || tokio::time::timeout(Duration::from_millis(50), site.read(|store| store.keys()));
        assert!(another().await.is_err());
        slow.iter().for_each(|reader| reader.abort());
        assert!(another().await.is_err());
        slow.iter().for_each(|_| open.send(()).unwrap());
        assert!(site.read(|store| store.keys()).await.is_ok());
        service.stop();
    }
}
