//! `GET /v1/experiments/{id}/head` and `POST .../publish`: what to give out of the operator's reach while an experiment runs.

use axum::Json as Reply;
use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use serde::{Deserialize, Serialize};

use crate::calendar::iso;
use crate::log::closed_rounds;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, Json, Object};
use crate::service::limits;
use crate::service::request::{Publish, Refusal};
use crate::store::{Role, Status, Store};

/// The newest head.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct NewestHead {
    /// The experiment.
    id: String,
    /// 64 hexadecimal digits, which stand for all that was stored up to the end of the last closed epoch; of an experiment that
    /// is over, for all.
    head: String,
    /// Complete epochs.
    epochs: u64,
    /// Rounds that it stands for.
    rounds: u64,
    /// When it was read, by the service's clock, as in 2026-11-15T22:04:42.999Z.
    at: String,
}

/// Where a head is published: for the log.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishBody {
    /// An address, a journal, a person: at most 1,000 bytes.
    #[cfg_attr(feature = "describe", schema(min_length = 1, max_length = 1000))]
    r#where: String,
}

/// A head that the log says is published.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct PublishedHead {
    /// The experiment.
    id: String,
    /// The head to publish.
    head: String,
}

/// The newest head
///
/// Role read. Publish it now and then, or keep it where the operator of the service cannot change it: `debora audit --head` then
/// finds any change of what was closed before.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/head", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The head", body = NewestHead))))]
pub async fn head(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<NewestHead>, ApiError> {
    caller.require_for(Role::Read, &id)?;
    let at = iso((app.service.clock)().wall);
    let asked = id.clone();
    let head = app.read(move |store| read(store, &asked, at)).await?;
    Ok(Reply(head.ok_or(Refusal::NoExperiment { id })?))
}

fn read(store: &mut Store, id: &str, at: String) -> anyhow::Result<Option<NewestHead>> {
    let Some((_, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    Ok(Some(NewestHead {
        id: id.to_owned(),
        rounds: closed_rounds(store, id, &progress)?,
        epochs: progress.epoch + u64::from(progress.status == Status::Done),
        head: progress.head,
        at,
    }))
}

/// Note that the newest head is published
///
/// Role admin. The answer has the head: publish it at the place that was named. The log says in an event who did it, when, which
/// head and where; `debora audit` checks that the head is in the chain. To repeat the request is safe.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/publish", tag = "experiments", request_body = PublishBody,
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It is in the log", body = PublishedHead))))]
pub async fn publish(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<Reply<PublishedHead>, ApiError> {
    // Before the body, as everywhere: what is refused anyway takes no memory from others.
    caller.require_for(Role::Admin, &id)?;
    let body = Json::from_request(request, &app).await?;
    let Object(PublishBody { r#where: address }) = body.read()?;
    limits::check_reason(&address)?;
    if address.trim().is_empty() {
        let message = "where is empty; say where the head is published, so that others find it";
        return Err(ApiError::unfit(message).against("a place", address));
    }
    let publish = Publish {
        id: id.clone(),
        address,
        actor: caller.name.to_string(),
    };
    let head = app.service.ask(publish).await?;
    tracing::info!(id, actor = &*caller.name, head, "a head was published");
    Ok(Reply(PublishedHead { id, head }))
}
