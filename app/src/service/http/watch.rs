//! For those who keep the service running: health, metrics, a line in the log for each request at level debug.
//!
//! The log has the route, never the address: a query may hold what is secret. Keys, cookies and bodies are not in it either.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::service::http::Site;
use crate::service::http::access::Caller;
use crate::service::http::error::{ApiError, Code};
use crate::service::http::guard::guarded;
use crate::service::http::metrics::{Ended, method_name};
use crate::store::Role;

/// That the service works.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// "ok".
    #[schema(value_type = String, example = "ok")]
    status: &'static str,
    /// The program's version.
    #[schema(value_type = String)]
    version: &'static str,
    /// The version of the values: two services with the same one decide alike.
    values_version: u32,
}

/// Whether the service can answer
///
/// It reads from the store, and the writer is there. Needs no key.
#[utoipa::path(get, path = "/health", tag = "service", security(()),
    responses((status = 200, description = "It works", body = Health)))]
pub async fn health(State(site): State<Site>) -> Result<axum::Json<Health>, ApiError> {
    site.read(|store| store.keys()).await?;
    if !site.service.is_serving() {
        let message = "the writer has stopped; the service must be started again";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message).retry());
    }
    let (version, values_version) = (env!("CARGO_PKG_VERSION"), debora::VALUES_VERSION);
    Ok(axum::Json(Health { status: "ok", version, values_version }))
}

/// Counters for Prometheus
///
/// Role read. Requests by route and status with their latency, decisions, outcomes by receipt.
#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(site): State<Site>, caller: Caller) -> Result<Response, ApiError> {
    caller.require(Role::Read)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], site.metrics.text()).into_response())
}

/// Counts a request and writes a line about it. The one layer around all routes: each costs as much as parsing a request.
pub async fn observe(State(site): State<Site>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = method_name(request.method());
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or("other".to_owned(), |path| path.as_str().to_owned());
    let response = guarded(request, next).await;
    let (status, taken) = (response.status().as_u16(), start.elapsed());
    let code = response.extensions().get::<Code>().map(|code| code.0);
    tracing::debug!(method, route, status, code, microseconds = taken.as_micros() as u64, "request");
    site.metrics.ended(Ended { method, route, status }, taken.as_secs_f64());
    response
}
