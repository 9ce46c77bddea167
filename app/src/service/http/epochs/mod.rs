//! `GET /v1/experiments/{id}/epochs`, `/epochs.csv` and `/epochs/{epoch}`: what was played, and why.
//!
//! They show what the log's `epoch` and `closed` lines hold, and what follows from it: whoever may read the log learns nothing
//! more of the key here.

mod csv;
pub mod detail;
pub mod entry;
mod words;

use axum::Json as Reply;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, QueryParams};
use crate::service::request::{Refusal, is_id};
use crate::store::Role;
use detail::EpochDetail;
use entry::{EpochList, EpochRange};

/// The most epochs in an answer: more than experiments have, a few hundred, and a bound for the reader.
pub const EPOCHS_MAX: u64 = 1_000;

/// Which epochs are listed.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", into_params(parameter_in = Query))]
pub struct EpochsQuery {
    /// The first; default 0.
    from: Option<u64>,
    /// How many at most; default 1,000.
    #[cfg_attr(feature = "describe", param(minimum = 1, maximum = 1_000))]
    limit: Option<u64>,
}

/// The epochs, in order
///
/// Role read. When each began and ended, how its strategy was found, what it plays and what changed. `next` is where the
/// next answer begins; null at the end.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/epochs", tag = "experiments",
    params(("id" = String, Path, description = "The experiment"), EpochsQuery),
    responses((status = 200, description = "The epochs", body = EpochList))))]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    QueryParams(query): QueryParams<EpochsQuery>,
) -> Result<Reply<EpochList>, ApiError> {
    let limit = query.limit.unwrap_or(EPOCHS_MAX);
    if limit == 0 || limit > EPOCHS_MAX {
        let message =
            format!("limit {limit} is outside 1 to {EPOCHS_MAX}; ask for the rest with from");
        return Err(ApiError::unfit(message).against(format!("1 <= limit <= {EPOCHS_MAX}"), limit));
    }
    let from = query.from.unwrap_or_default();
    let range = EpochRange::From(from, limit);
    Ok(Reply(list_of(&app, &caller, &id, range).await?))
}

/// The epochs as a table
///
/// Role read. A line an epoch, with the probability of each action in a column of its own; at most the first 1,000.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/epochs.csv", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The table", body = String, content_type = "text/csv"))))]
pub async fn table(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let list = list_of(&app, &caller, &id, EpochRange::From(0, EPOCHS_MAX)).await?;
    let headers = [(CONTENT_TYPE, "text/csv; charset=utf-8")];
    Ok((headers, csv::table(&list)).into_response())
}

/// One epoch
///
/// Role read. Why its strategy is played, in words and in numbers: what changed, every estimate in force with the cell that
/// held its mean, the clear test, what the limits allow, and its entry in the hash chain.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/epochs/{epoch}", tag = "experiments",
    params(("id" = String, Path, description = "The experiment"),
           ("epoch" = u64, Path, description = "Its number, from 0")),
    responses((status = 200, description = "The epoch", body = EpochDetail),
              (status = 404, description = "Codes `no_experiment`, `no_such_epoch`", body = ApiError, content_type = "application/problem+json"))))]
pub async fn one(
    State(app): State<AppState>,
    caller: Caller,
    address: EpochAddress,
) -> Result<Reply<EpochDetail>, ApiError> {
    Ok(Reply(one_of(&app, &caller, &address).await?))
}

/// Epochs of an experiment.
pub async fn list_of(
    app: &AppState,
    caller: &Caller,
    id: &str,
    range: EpochRange,
) -> Result<EpochList, ApiError> {
    caller.require_for(Role::Read, id)?;
    let asked = id.to_owned();
    let read = move |store: &mut crate::store::Store| entry::read(store, &asked, range);
    let list = app.read_page(read).await?;
    Ok(list.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?)
}

/// One epoch of an experiment.
pub async fn one_of(
    app: &AppState,
    caller: &Caller,
    address: &EpochAddress,
) -> Result<EpochDetail, ApiError> {
    let EpochAddress { id, epoch } = address;
    caller.require_for(Role::Read, id)?;
    let (asked, number) = (id.clone(), *epoch);
    let detail = app
        .read_page(move |store| detail::read(store, &asked, number))
        .await?;
    let found = detail.ok_or_else(|| Refusal::NoExperiment { id: id.clone() })?;
    found.ok_or_else(|| no_such_epoch(id, &epoch.to_string()))
}

/// The experiment and the epoch in the address.
pub struct EpochAddress {
    pub id: String,
    pub epoch: u64,
}

impl FromRequestParts<AppState> for EpochAddress {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        let Path((id, epoch)) = path.map_err(|error| {
            ApiError::malformed(format!("the address cannot be read: {}", error.body_text()))
        })?;
        if !is_id(&id) {
            return Err(Refusal::NoExperiment { id }.into());
        }
        match epoch.parse() {
            Ok(epoch) => Ok(Self { id, epoch }),
            // Whatever else was written there, no epoch has that number.
            Err(_) => Err(no_such_epoch(&id, &epoch)),
        }
    }
}

fn no_such_epoch(id: &str, epoch: &str) -> ApiError {
    let message = format!(
        "experiment {id:?} has no epoch {epoch:?}; /v1/experiments/{id}/epochs lists those it has, from 0"
    );
    ApiError::new(StatusCode::NOT_FOUND, "no_such_epoch", message)
        .against("the number of an epoch", epoch)
}
