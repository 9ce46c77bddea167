//! The interface for programs: one list of routes, and the text that describes them.
//!
//! The text is `app/openapi.json`. The feature `describe` makes it of the handlers and their types, for the tests alone
//! (`openapi.rs`): what the program needs is the text, and making it would cost each build of it seconds.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::{
    AppState, decisions, diffs, download, epochs, experiments, flags, head, keys, log, outcomes,
    papers, plan, ready, simulate, state, watch, webhooks,
};

/// The description, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../../../openapi.json");

/// Makes of the list what serves it, what counts it and what describes it, so that none of them can lack a route.
macro_rules! interface {
    ($($method:ident $path:literal $($handler:ident)::+;)+) => {
        /// Method and path of each.
        pub const INTERFACE: &[(&str, &str)] = &[$((stringify!($method), $path)),+];

        /// What answers them.
        pub fn interface() -> Router<AppState> {
            Router::new()$(.route($path, axum::routing::$method(any($($handler)::+))))+
        }

        /// The description of each, and of what it takes and answers.
        #[cfg(feature = "describe")]
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($($handler)::+),+))]
        pub struct Described;
    };
}

// Each path stands at its handler, too, where the description takes it from; a test compares the two.
interface! {
    post "/v1/experiments" experiments::create;
    get "/v1/experiments" experiments::list;
    get "/v1/experiments/{id}" experiments::show;
    post "/v1/experiments/{id}/pause" experiments::pause;
    post "/v1/experiments/{id}/resume" experiments::resume;
    post "/v1/experiments/{id}/close" experiments::close;
    post "/v1/plan" plan::plan;
    post "/v1/simulate" simulate::simulate;
    post "/v1/experiments/{id}/decisions" decisions::decide;
    post "/v1/experiments/{id}/outcomes" outcomes::tell;
    post "/ofrep/v1/evaluate/flags/{id}" flags::evaluate;
    post "/ofrep/v1/evaluate/flags" flags::evaluate_all;
    get "/v1/experiments/{id}/state" state::state;
    get "/v1/experiments/{id}/head" head::head;
    post "/v1/experiments/{id}/publish" head::publish;
    get "/v1/experiments/{id}/epochs" epochs::list;
    get "/v1/experiments/{id}/epochs.csv" epochs::table;
    get "/v1/experiments/{id}/epochs/{epoch}" epochs::one;
    get "/v1/experiments/{id}/log" log::log;
    get "/v1/experiments/{id}/log/download" download::download;
    get "/v1/experiments/{id}/certificate" log::certificate;
    get "/v1/experiments/{id}/certificate.html" papers::certificate;
    get "/v1/experiments/{id}/seal" papers::seal;
    get "/v1/experiments/{id}/seal.html" papers::seal_page;
    get "/v1/experiments/{id}/diff" diffs::diff;
    get "/v1/keys" keys::list;
    post "/v1/keys" keys::make;
    post "/v1/keys/{name}/revoke" keys::revoke;
    get "/v1/webhooks" webhooks::list;
    post "/v1/webhooks" webhooks::make;
    post "/v1/webhooks/{name}/remove" webhooks::remove;
    post "/v1/webhooks/{name}/test" webhooks::test;
    get "/health" watch::health;
    get "/ready" ready::ready;
    get "/metrics" watch::metrics;
    get "/openapi.json" openapi;
}

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler of any type.
#[derive(Clone)]
pub struct AnyHandler(Arc<dyn Fn(Request, AppState) -> Answering + Send + Sync>);

/// The handler as one of any type: what serves a route is compiled once, and not for each handler.
pub fn any<T>(handler: impl Handler<T, AppState, Future = Answering>) -> AnyHandler {
    AnyHandler(Arc::new(move |request, state| {
        handler.clone().call(request, state)
    }))
}

impl Handler<(), AppState> for AnyHandler {
    type Future = Answering;

    fn call(self, request: Request, state: AppState) -> Answering {
        (self.0)(request, state)
    }
}

/// This document
///
/// Needs no key.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/openapi.json", tag = "service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"))))]
pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
