//! `GET /v1/experiments/{id}/log` and `/certificate`: what an auditor needs.

use axum::Json as Reply;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::log::certificate::{self, Certificate};
use crate::log::{self, BadCursor, LINES_MAX, LogPage, NEXT_HEADER};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::row;
use crate::service::http::extract::{Asked, Id};
use crate::service::request::Refusal;
use crate::store::Role;

/// Lines in a page unless said otherwise.
const LINES: usize = 1_000;

/// Where in the log, and how much of it.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Where {
    /// The cursor that the page before gave in the header `debora-next`; the beginning unless given.
    after: Option<String>,
    /// How many lines at most; 1,000 unless given.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u64>,
}

/// The log, as lines of JSON
///
/// Role read; the key is in it for role admin, and for all once the experiment is over. A page is at most `limit` lines; the
/// header `debora-next` has the cursor of the next page, and is absent on the last. All pages one after another are what
/// `debora audit` reads.
#[utoipa::path(get, path = "/v1/experiments/{id}/log", tag = "experiments",
    params(("id" = String, Path, description = "The experiment"), Where),
    responses((status = 200, description = "A page", body = String, content_type = "application/x-ndjson",
               headers(("debora-next" = String, description = "The cursor of the next page; absent on the last")))))]
pub async fn log(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    Asked(Where { after, limit }): Asked<Where>,
) -> Result<Response, ApiError> {
    caller.require(Role::Read)?;
    let limit = limit.unwrap_or(LINES as u64);
    if limit == 0 || limit > LINES_MAX as u64 {
        let message = format!("limit {limit} is outside 1 to {LINES_MAX}; read the log in pages");
        return Err(ApiError::unfit(message).against(format!("1 <= limit <= {LINES_MAX}"), limit));
    }
    let (asked, reveal) = (id.clone(), caller.role == Role::Admin);
    let page = app.read(move |store| {
        let page = log::page(store, &asked, after.as_deref(), limit as usize, reveal);
        match page.map_err(|error| error.downcast::<BadCursor>()) {
            Ok(page) => Ok(Ok(page.map(|page| written(&page)).transpose()?)),
            Err(Ok(bad)) => Ok(Err(bad)),
            Err(Err(error)) => Err(error),
        }
    });
    let page = page.await?.map_err(|bad| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "cursor", bad.to_string())
            .against("a cursor that a page gave", json!(bad.text))
    })?;
    let (lines, next) = page.ok_or(Refusal::NoExperiment { id })?;
    let mut response = ([(CONTENT_TYPE, "application/x-ndjson")], lines).into_response();
    if let Some(next) = next {
        let value = HeaderValue::from_str(&next).map_err(ApiError::store)?;
        response
            .headers_mut()
            .insert(HeaderName::from_static(NEXT_HEADER), value);
    }
    Ok(response)
}

/// A page's lines, and the cursor of the next.
fn written(page: &LogPage) -> anyhow::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    for line in &page.lines {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
    }
    Ok((bytes, page.next_cursor.clone()))
}

/// The certificate of an experiment that is over
///
/// Role read. What it was, what it found, its key, and how to check all of it; 409 `not_over` before the end.
#[utoipa::path(get, path = "/v1/experiments/{id}/certificate", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The certificate", body = Object),
              (status = 409, description = "Code `not_over`", body = ApiError)))]
pub async fn certificate(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Certificate>, ApiError> {
    caller.require(Role::Read)?;
    let asked = id.clone();
    if let Some(certificate) = app
        .read(move |store| certificate::of(store, &asked))
        .await?
    {
        return Ok(Reply(certificate));
    }
    let (_, progress) = row(&app, &id).await?;
    let message = format!("experiment {id:?} is not over: let it come to its horizon, or close it");
    let error = ApiError::new(StatusCode::CONFLICT, "not_over", message);
    Err(error.against("status done or closed", json!(progress.status)))
}
