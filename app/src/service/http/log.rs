//! `GET /v1/experiments/{id}/log` and `/certificate`: what an auditor needs.

use axum::Json as Reply;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::log::{self, BadCursor, LINES_MAX, LogPage, NEXT_HEADER};
use crate::reading::certificate::{Certificate, Certification};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, QueryParams};
use crate::service::request::Refusal;
use crate::store::{Role, Store};

/// Lines in a page by default.
const LINES: usize = 1_000;

/// Which page of the log: where it begins, and how long it is.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", into_params(parameter_in = Query))]
pub struct LogPageQuery {
    /// The cursor that the page before gave in the header `debora-next`; default: the beginning.
    after: Option<String>,
    /// How many lines at most; default 1,000.
    #[cfg_attr(feature = "describe", param(minimum = 1, maximum = 10_000))]
    limit: Option<u64>,
}

/// The log, as lines of JSON
///
/// Role read; the key is in it for role admin, if all open experiments that have it are within the caller's scope, and for all once
/// every experiment that has it is over. A page is at most `limit` lines, and
/// about a mebibyte; the header `debora-next` has the cursor of the next page, and is absent on the last. `debora audit` reads all
/// pages, in order.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/log", tag = "experiments",
    params(("id" = String, Path, description = "The experiment"), LogPageQuery),
    responses((status = 200, description = "A page", body = String, content_type = "application/x-ndjson",
               headers(("debora-next" = String, description = "The cursor of the next page; absent on the last"))))))]
pub async fn log(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    QueryParams(LogPageQuery { after, limit }): QueryParams<LogPageQuery>,
) -> Result<Response, ApiError> {
    caller.require_for(Role::Read, &id)?;
    let limit = limit.unwrap_or(LINES as u64);
    if limit == 0 || limit > LINES_MAX as u64 {
        let message = format!("limit {limit} is outside 1 to {LINES_MAX}; read the log in pages");
        return Err(ApiError::unfit(message).against(format!("1 <= limit <= {LINES_MAX}"), limit));
    }
    let page = page_of(&app, &caller, &id, after, limit as usize).await?;
    let mut response = ([(CONTENT_TYPE, "application/x-ndjson")], page.lines).into_response();
    // The cursor goes into a header and not into the lines: pages joined in order are the log that is audited.
    if let Some(next) = page.next {
        let value = HeaderValue::from_str(&next).map_err(ApiError::store)?;
        response
            .headers_mut()
            .insert(HeaderName::from_static(NEXT_HEADER), value);
    }
    Ok(response)
}

/// A page as it is sent: its lines, and the cursor of the next one.
pub struct WrittenPage {
    pub lines: Vec<u8>,
    pub next: Option<String>,
}

/// A page of an experiment's log.
pub async fn page_of(
    app: &AppState,
    caller: &Caller,
    id: &str,
    after: Option<String>,
    limit: usize,
) -> Result<WrittenPage, ApiError> {
    let (asked, asking) = (id.to_owned(), caller.clone());
    let read = move |store: &mut Store| {
        let reveal = asking.sees_key_of(store, &asked)?;
        read_page(store, &asked, after.as_deref(), limit, reveal)
    };
    let page = app.read_page(read).await?;
    let none = || Refusal::NoExperiment { id: id.to_owned() };
    Ok(page.map_err(bad_cursor)?.ok_or_else(none)?)
}

/// A page of the log; `None` if there is no such experiment.
///
/// A bad cursor is the caller's mistake and every other error ours, so they are told apart here.
fn read_page(
    store: &mut Store,
    id: &str,
    after: Option<&str>,
    limit: usize,
    reveal: bool,
) -> anyhow::Result<Result<Option<WrittenPage>, BadCursor>> {
    match log::page(store, id, after, limit, reveal) {
        Ok(page) => Ok(Ok(page.as_ref().map(written).transpose()?)),
        Err(error) => error.downcast::<BadCursor>().map(Err),
    }
}

fn written(page: &LogPage) -> anyhow::Result<WrittenPage> {
    // Written while the store is read, on a thread that may block: a page can be megabytes.
    let mut lines = Vec::new();
    for line in &page.lines {
        serde_json::to_writer(&mut lines, line)?;
        lines.push(b'\n');
    }
    Ok(WrittenPage {
        lines,
        next: page.next_cursor.clone(),
    })
}

fn bad_cursor(bad: BadCursor) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "cursor", bad.to_string())
        .against("a cursor that a page gave", json!(bad.text))
}

/// The certificate of an experiment that is over
///
/// Role read. What it was, what it found, its key, and how to check all of it; 409 `not_over` before the end. While another
/// experiment that has the same key is not over, `key`, `salt` and `fingerprint` are null, and
/// `key_withheld` says why, for all but role admin with that experiment in its scope.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/certificate", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The certificate", body = Object),
              (status = 409, description = "Code `not_over`", body = ApiError, content_type = "application/problem+json"))))]
pub async fn certificate(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Box<Certificate>>, ApiError> {
    Ok(Reply(certificate_of(&app, &caller, &id).await?))
}

/// The certificate of an experiment; refused while it goes on.
pub async fn certificate_of(
    app: &AppState,
    caller: &Caller,
    id: &str,
) -> Result<Box<Certificate>, ApiError> {
    match certification(app, caller, id).await? {
        Certification::Over(certificate) => Ok(certificate),
        Certification::Open(open) => {
            let status = open.1.status;
            let message =
                format!("experiment {id:?} is not over; let it reach its horizon, or close it");
            let error = ApiError::new(StatusCode::CONFLICT, "not_over", message);
            Err(error.against("status done or closed", json!(status)))
        }
    }
}

/// What there is of an experiment to certify.
pub async fn certification(
    app: &AppState,
    caller: &Caller,
    id: &str,
) -> Result<Certification, ApiError> {
    caller.require_for(Role::Read, id)?;
    let (asked, asking) = (id.to_owned(), caller.clone());
    let read = move |store: &mut Store| {
        let reveal = asking.sees_key_of(store, &asked)?;
        Certificate::read(store, &asked, reveal)
    };
    let read = app.read_page(read).await?;
    Ok(read.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?)
}
