//! Whether the service can commit, found out by committing something.
//!
//! Nothing less tells: a disk that is full or read-only, and a file that was deleted, can still be read. One commit a second is
//! all that it costs, however many ask.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::node::StoreStart;
use crate::service::transaction::Probed;
use crate::service::writer::Service;

/// How long an answer holds: those who watch ask every few seconds.
const FRESH: Duration = Duration::from_secs(1);

/// What the last probe found.
#[derive(Default)]
pub struct Readiness(Mutex<Option<(Instant, Option<Probed>)>>);

impl Readiness {
    /// Whether it can commit, as of a second ago at most; `None` if there is no writer.
    pub async fn ask(&self, service: &Service) -> Option<Probed> {
        // Held while one probes: the others wait for it and take its answer.
        let mut last = self.0.lock().await;
        if let Some((at, probed)) = &*last
            && at.elapsed() < FRESH
        {
            return probed.clone();
        }
        let probed = service.probe().await;
        *last = Some((Instant::now(), probed.clone()));
        let ready = matches!(probed, Some(Ok(_)));
        service.counts.ready.set(ready.into());
        probed
    }
}

/// That the service can commit.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Ready {
    /// "ready".
    #[schema(value_type = String, example = "ready")]
    status: &'static str,
    /// The program's version.
    #[schema(value_type = String)]
    version: &'static str,
    /// The version of the values: two services with the same one decide alike.
    values_version: u32,
    /// Which store it writes to.
    store: StoreStart,
}

/// Whether the service can commit
///
/// It has just written to its store, at most a second ago. Needs no key. While it says no, requests that change something are
/// refused, and nothing that was not committed is acknowledged.
#[utoipa::path(get, path = "/ready", tag = "service", security(()),
    responses((status = 200, description = "It can commit", body = Ready),
              (status = 503, description = "Codes `disk_full`, `read_only`, `io_error`, `store_gone`, `store_replaced`, \
               `database_away`, `stuck`, `store`, `stopping`, `busy`", body = ApiError, content_type = "application/problem+json")))]
pub async fn ready(State(app): State<AppState>) -> Result<axum::Json<Ready>, ApiError> {
    let unready =
        |code, message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
    match app.readiness.ask(&app.service).await {
        Some(Ok(store)) => Ok(axum::Json(Ready {
            status: "ready",
            version: env!("CARGO_PKG_VERSION"),
            values_version: debora::VALUES_VERSION,
            store,
        })),
        Some(Err(failure)) => Err(unready(failure.code(), failure.sentence())),
        None => Err(unready(
            "stopping",
            "the service is shutting down, or its writer has ended; ask another node, or start it again",
        )),
    }
}
