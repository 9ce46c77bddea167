//! `GET /v1/experiments/{id}/diff`: two experiments beside each other, as `debora diff` compares their logs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Json as Reply;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::audit::{self, Diff, Log};
use crate::log::{self, LINES_MAX};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::row;
use crate::service::http::extract::{Id, QueryParams};
use crate::service::request::{self, Refusal};
use crate::store::Role;

/// How long a comparison may take: others wait for its place.
const COMPARE_MAX: Duration = Duration::from_secs(10);

/// The experiment to compare with.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DiffQuery {
    /// The other experiment's id.
    with: String,
}

/// Reading took longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("the logs are too long")]
struct LogsTooLong;

/// Where two experiments diverge, and why
///
/// Role read. Both must be in the caller's scope. What `debora diff --json` says: whether specs and keys agree, the first epoch and round where decisions
/// differ, and which estimate or test made them. Nothing is used that the logs do not show to the caller.
#[utoipa::path(get, path = "/v1/experiments/{id}/diff", tag = "experiments",
    params(("id" = String, Path, description = "The experiment"), DiffQuery),
    responses((status = 200, description = "The comparison", body = Object),
              (status = 422, description = "Codes `unfit` (it is the same experiment) and `logs_too_long`", body = ApiError, content_type = "application/problem+json")))]
pub async fn diff(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    query: Result<QueryParams<DiffQuery>, ApiError>,
) -> Result<Reply<Diff>, ApiError> {
    // Before the query: a key that is not for the experiment learns nothing from what is wrong with it.
    caller.require_for(Role::Read, &id)?;
    row(&app, &id).await?;
    let QueryParams(DiffQuery { with }) = query?;
    Ok(Reply(diff_of(&app, &caller, [&id, &with]).await?))
}

/// Compares two experiments that the caller may read.
pub async fn diff_of(app: &AppState, caller: &Caller, ids: [&str; 2]) -> Result<Diff, ApiError> {
    for id in ids {
        caller.require_for(Role::Read, id)?;
        if !request::is_id(id) {
            return Err(Refusal::NoExperiment { id: id.to_owned() }.into());
        }
        row(app, id).await?;
    }
    if ids[0] == ids[1] {
        let message = format!(
            "{:?} cannot be compared with itself; choose another",
            ids[0]
        );
        return Err(ApiError::unfit(message).against("two experiments", ids[1]));
    }
    within(app, caller, ids, COMPARE_MAX).await
}

/// Compares two experiments for a limited time.
async fn within(
    app: &AppState,
    caller: &Caller,
    ids: [&str; 2],
    most: Duration,
) -> Result<Diff, ApiError> {
    let logs = ids.map(|id| reader(app, caller, id, most));
    let compared = app.compare(move || {
        let [one, two] = logs;
        match audit::diff([Log::paged(one), Log::paged(two)]) {
            Err(error) if error.is::<LogsTooLong>() => Ok(None),
            diff => diff.map(Some),
        }
    });
    compared.await?.ok_or_else(|| too_long(ids, most))
}

/// Reads the log of an experiment without its outcomes, as the caller may see it, for a limited time.
fn reader(
    app: &AppState,
    caller: &Caller,
    id: &str,
    most: Duration,
) -> impl FnMut(Option<&str>) -> Result<Option<log::LogPage>> + use<> {
    let (service, caller, id) = (Arc::clone(&app.service), caller.clone(), id.to_owned());
    let mut begun = None;
    move |cursor| {
        // From the first page on: what waits for its place takes nothing from others.
        if begun.get_or_insert_with(Instant::now).elapsed() >= most {
            return Err(LogsTooLong.into());
        }
        service.read(|store| {
            let reveal = caller.sees_key_of(store, &id)?;
            log::page_of_decisions(store, &id, cursor, LINES_MAX, reveal)
        })
    }
}

fn too_long([one, two]: [&str; 2], most: Duration) -> ApiError {
    let seconds = most.as_secs();
    let message = format!(
        "the logs of {one:?} and {two:?} could not be compared within {seconds} seconds; download both, and run `debora diff` on them"
    );
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "logs_too_long", message)
        .against(format!("at most {seconds} seconds"), two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::http::{Shared, TIMEOUT};
    use crate::service::writer::Service;
    use crate::store::{KEYLESS, Location};

    #[tokio::test]
    async fn logs_that_take_too_long_are_left_to_the_program() {
        let folder = Scratch::new("diffs");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let app = Shared::new(Arc::clone(&service), TIMEOUT);
        let caller = Caller {
            name: KEYLESS.into(),
            role: Role::Admin,
            scope: None,
            keyed: false,
        };
        let refused = within(&app, &caller, ["a", "b"], Duration::ZERO).await;
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.status.as_u16(), refused.code),
            (422, "logs_too_long")
        );
        assert!(refused.message.contains("`debora diff`"), "{refused:?}");
        service.stop().unwrap();
    }
}
