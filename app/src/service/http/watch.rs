//! For those who keep the service running: health, metrics, and at level debug a line in the server's log for each request.
//!
//! A line has the route, never the address, as a query may hold a secret. Keys, cookies and bodies are not in it either; of the
//! caller's headers it has the number of the trace.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::service::http::access::Caller;
use crate::service::http::error::{ApiError, ErrorWords};
use crate::service::http::guard::guarded;
use crate::service::http::metrics::{RequestLabels, method_name};
use crate::service::http::routes::INTERFACE;
use crate::service::http::{AppState, Shared, gauges, pages, samples, trace};
use crate::store::Role;

/// What nearly all requests ask for. Routes are searched in order, so these come first.
const BUSY: [&str; 2] = [
    "/v1/experiments/{id}/decisions",
    "/v1/experiments/{id}/outcomes",
];

/// All routes, as they are counted: those of the description, and the pages.
static ROUTES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    // Sorted, a fixed name stands before a parameter in its place; a path with two methods is one route.
    let described: BTreeSet<&str> = INTERFACE.iter().map(|(_, path)| *path).collect();
    // The pages are not described: they are for people, and change as they please.
    let pages = pages::routes().into_iter().map(|(path, _)| path);
    let others = described.into_iter().chain(pages);
    let others = others.filter(|route| !BUSY.contains(route));
    BUSY.into_iter().chain(others).collect()
});

/// That the service is alive.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Health {
    /// "ok".
    #[cfg_attr(feature = "describe", schema(value_type = String, example = "ok"))]
    status: &'static str,
    /// The program's version.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    version: &'static str,
    /// The version of the values: two services with the same one decide alike.
    values_version: u32,
}

/// Whether the service is alive
///
/// It answers, and its writer is there; if not, start it again. Whether it can commit, `/ready` says. Needs no key.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/health", tag = "service", security(()),
    responses((status = 200, description = "It is alive", body = Health))))]
pub async fn health(State(app): State<AppState>) -> Result<axum::Json<Health>, ApiError> {
    // The store is not asked: to start again a process whose disk is full would not help it.
    // A writer that panicked leaves a process that reads and never writes: it must be started anew.
    if !app.service.is_serving() {
        let message = "the writer has stopped; restart the service";
        return Err(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            message,
        ));
    }
    Ok(axum::Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        values_version: debora::VALUES_VERSION,
    }))
}

/// Metrics for Prometheus
///
/// Role read; a key for some experiments is refused. Requests by route and status with their latency, decisions, outcomes by receipt,
/// and the 200 experiments that were active last: rounds, strategy, limits and alerts. As OpenMetrics if Accept names it.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, description = "Prometheus's text format, or OpenMetrics", body = String, content_type = "text/plain"))))]
pub async fn metrics(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // The names of routes and the load are nobody else's business: a scraper has a key with role read.
    caller.require(Role::Read)?;
    caller.require_all()?;
    // Looked at for the gauge, which would otherwise tell of the last time that somebody asked.
    app.readiness.ask(&app.service).await;
    let text = app.metrics.text(gauges::read(&app).await);
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    // Prometheus asks for it by name; whoever does not may know the older format alone.
    if accepted.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        return Ok(([(CONTENT_TYPE, kind)], text).into_response());
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], samples::plain(&text)).into_response())
}

/// Has a request answered, counts it and writes a line about it.
pub async fn observed(app: &Shared, router: Router, request: Request) -> Response {
    let start = Instant::now();
    // Before the router takes the request, which would know the route, too: a layer within it
    // costs each request ten allocations (docs/benchmarks.md).
    let method = method_name(request.method());
    let route = route(request.uri().path());
    let trace_id = trace::trace_id(request.headers()).map(str::to_owned);
    let mut response = guarded(router, request).await;
    // On every answer rather than on those with a key or a cookie in them: none is worth keeping, and none can be forgotten.
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let status = response.status().as_u16();
    let taken = start.elapsed();
    let code = response
        .extensions()
        .get::<ErrorWords>()
        .map(|error| error.code);
    tracing::debug!(
        method,
        route,
        status,
        code,
        trace_id,
        microseconds = taken.as_micros() as u64,
        "request"
    );
    app.metrics.ended(
        RequestLabels {
            method,
            route,
            status,
        },
        taken.as_secs_f64(),
    );
    response
}

/// The route that a path belongs to.
fn route(path: &str) -> &'static str {
    let mut routes = ROUTES.iter().copied();
    // One name for all unknown paths: each label is kept for good, and paths can be made up without end.
    routes.find(|route| fits(route, path)).unwrap_or("other")
}

fn fits(route: &str, path: &str) -> bool {
    // By bytes: searching for a character costs each request as much as counting it.
    let mut parts = route.as_bytes().split(|&byte| byte == b'/');
    let mut segments = path.as_bytes().split(|&byte| byte == b'/');
    let all = parts.all(|part| {
        segments
            .next()
            .is_some_and(|segment| fits_part(part, segment))
    });
    all && segments.next().is_none()
}

fn fits_part(part: &[u8], segment: &[u8]) -> bool {
    part == segment || (part.starts_with(b"{") && !segment.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_belongs_to_its_route() {
        assert_eq!(ROUTES[..2], BUSY);
        assert_eq!(ROUTES.len(), 58);
        for name in ROUTES.iter() {
            let path = name
                .replace("{id}", "some-trial")
                .replace("{name}", "regret.svg");
            assert_eq!(route(&path), *name);
        }
        for path in [
            "",
            "/v1",
            "/v1/experiments/",
            "/v1/experiments/a/decisions/",
            "/v1/experiments/a/b/decisions",
            "/nope",
        ] {
            assert_eq!(route(path), "other", "{path}");
        }
    }
}
