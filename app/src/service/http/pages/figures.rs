//! The numbers behind the figures and tables of an experiment's page: `/experiments/{id}/figures/{name}.csv` and `.json`.

use axum::extract::{Path, State as Shared};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::experiment::data;
use super::experiment::rendered::{no_figure, viewed};
use super::{Guest, PageError};
use crate::document::{csv, json};
use crate::service::http::AppState;
use crate::service::request::is_id;
use crate::store::Role;

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, PageError> {
    guest.0.require(Role::Read)?;
    // The id is checked here: this address has two parts, so the extractor of ids does not see it.
    if !is_id(&id) || !guest.0.sees(&id) {
        return Err(no_figure().into());
    }
    let (name, ending) = name.rsplit_once('.').ok_or_else(no_figure)?;
    let view = viewed(&app, &id).await?;
    let table = data::table(&view, name).ok_or_else(no_figure)?;
    let (kind, text) = match ending {
        "csv" => ("text/csv; charset=utf-8", csv(&table, "\r\n")),
        "json" => ("application/json", json(&table)),
        _ => return Err(no_figure().into()),
    };
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}
