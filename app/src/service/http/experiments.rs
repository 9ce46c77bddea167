//! Experiments: create, list, show, pause, resume, close.

use std::fmt;
use std::sync::Arc;

use axum::Json as Reply;
use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use debora::measure::json;
use debora::{Key, Plan};
use hyper::body::Body as _;
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::hex;
use crate::log::{chain, check_values};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, Json, Object, QueryParams};
use crate::service::http::summary::Facts;
use crate::service::limits;
use crate::service::request::{Change, Create, MakeChange, Refusal, draw_id};
use crate::store::{ExperimentLine, ExperimentRow, Progress, Role, Status, Store};

/// The most experiments in a list.
pub const LISTED_MAX: usize = 1_000;

/// A new experiment.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewExperiment {
    /// The spec file's text (TOML), without `[world]` and `key`.
    spec: String,
    /// Its name in addresses; default: drawn at random. If it is given, the request can be repeated.
    #[cfg_attr(
        feature = "describe",
        schema(min_length = 1, max_length = 128, pattern = "^[a-z0-9-]+$")
    )]
    id: Option<String>,
    /// The policy's key, as `openssl rand -hex 16` draws one; default: drawn at random. Give another team's to replicate its
    /// experiment. The first 16 digits must not all be zeros: such a key is a whole number, which others find by trying.
    #[cfg_attr(feature = "describe", schema(value_type = Option<String>, pattern = "^[0-9a-fA-F]{32}$"))]
    key: Option<KeyText>,
    /// Accept a plan that can never compare anything at this horizon.
    #[serde(default)]
    blind: bool,
}

/// A key that is given with an experiment.
pub struct KeyText(Key);

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = KeyText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(KEY_RULE)
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<KeyText, E> {
        Err(E::invalid_type(Unexpected::Other("a number"), &self))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<KeyText, E> {
        // A whole number of more than 64 bits comes as this.
        self.visit_u64(0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<KeyText, E> {
        given_key(text).map(KeyText).map_err(E::custom)
    }
}

const KEY_RULE: &str = "a text of 32 hexadecimal digits, such as `openssl rand -hex 16` prints";

/// The key that a text gives, or why it cannot be one.
pub fn given_key(text: &str) -> Result<Key, String> {
    // The text is not quoted back: it is nearly a secret, and errors end up in logs.
    let key = Key::from_hex(text).map_err(|_| format!("this is not {KEY_RULE}"))?;
    // Such a key is what a spec file's whole number becomes. Estimates are published, each with its grid's offset, and whoever
    // tries one number after the other finds the one that fits: it took seconds, and told all decisions to come.
    if text.starts_with("0000000000000000") {
        return Err(format!(
            "the first 16 digits of this key are zeros: it is a whole number, which can be recovered from what is published \
             while the experiment runs; give {KEY_RULE}, or leave it out to have one drawn"
        ));
    }
    Ok(key)
}

/// An experiment that is there.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Created {
    /// Its name in addresses.
    id: String,
    /// SHA-256 of salt and key, as 64 hexadecimal digits: publish it, and the key cannot be changed afterwards.
    key_hash: String,
    /// Where it is.
    address: String,
}

/// A line of the list.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Listed {
    /// Its name in addresses.
    pub id: String,
    /// What it is called.
    pub name: Option<String>,
    /// Whether it decides.
    pub status: Status,
    /// The open epoch, or the last.
    pub epoch: u64,
    /// Rounds decided.
    pub decided: u64,
    /// Rounds in all.
    pub horizon: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

impl Listed {
    fn of(line: ExperimentLine, facts: &Facts) -> Self {
        Self {
            name: facts.name.clone(),
            status: line.progress.status,
            epoch: line.progress.epoch,
            decided: line.progress.rounds(),
            horizon: facts.horizon,
            created_at: line.created_at,
            id: line.id,
        }
    }
}

/// Which of the experiments.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", into_params(parameter_in = Query))]
pub struct ListQuery {
    /// Those created after the one with this id, which is the `next` of the page before; default: from the first.
    after: Option<String>,
    /// How many at most; default 1,000.
    #[cfg_attr(feature = "describe", param(minimum = 1, maximum = 1_000))]
    limit: Option<u64>,
}

/// Some of the experiments.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct List {
    /// The oldest first.
    pub experiments: Vec<Listed>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    pub next: Option<String>,
}

/// What an experiment is.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Shown {
    #[serde(flatten)]
    listed: Listed,
    /// The spec, as it was given.
    spec: String,
    /// SHA-256 of salt and key.
    key_hash: String,
    /// Every constant of the run, as `debora plan --json` gives them.
    #[cfg_attr(feature = "describe", schema(value_type = Object))]
    plan: Value,
    /// The policy's key: for role admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    key: Option<String>,
    /// What the key is hashed with: for role admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    salt: Option<String>,
}

/// Why something is changed: for the log.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReasonBody {
    /// At most 1,000 bytes.
    #[cfg_attr(feature = "describe", schema(max_length = 1000))]
    reason: Option<String>,
}

/// The reason, if the request has a body.
async fn reason(request: HttpRequest, app: &AppState) -> Result<Option<String>, ApiError> {
    // Most changes come without a reason, and then without a body and its type.
    if request.body().is_end_stream() {
        return Ok(None);
    }
    let body = Json::from_request(request, app).await?;
    let Object(ReasonBody { reason }) = body.read()?;
    Ok(reason)
}

/// A status after a change.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Changed {
    /// The experiment.
    id: String,
    /// Its status.
    status: Status,
}

/// Create an experiment
///
/// Role admin. With an `id` the request can be repeated: the same spec and key give 200 instead of 201, others 409. A key for
/// some experiments can create these alone, so it must give the `id`.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments", tag = "experiments", request_body = NewExperiment,
    responses((status = 201, description = "It is there", body = Created),
              (status = 200, description = "This very experiment was there before", body = Created))))]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    caller.require(Role::Admin)?;
    let body = Json::from_request(request, &app).await?;
    let Object(new): Object<NewExperiment> = body.read()?;
    caller.require_scope(new.id.as_deref())?;
    let id = drawn_unless(new.id)?;
    let create = Create {
        id: id.clone(),
        spec: new.spec,
        key: new.key.map(|key| key.0),
        blind: new.blind,
        actor: caller.name.to_string(),
    };
    let repeated = created(&app, create).await?;
    // Read back: if it was there before, its key is the one that was drawn then.
    let read = row(&app, &id).await;
    // Not `busy`, which would say that nothing was done.
    let (experiment, _) = read.map_err(|error| ApiError::store(error.message))?;
    let address = format!("/v1/experiments/{id}");
    let location = HeaderValue::from_str(&address).expect("ids are plain characters");
    // So that a client which repeats a lost request can tell whether it made the experiment.
    let status = if repeated {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let created = Created {
        id,
        key_hash: chain::key_hash(experiment.salt, experiment.key),
        address,
    };
    Ok((status, [(LOCATION, location)], Reply(created)).into_response())
}

/// The id that was given, or one that is drawn.
pub fn drawn_unless(given: Option<String>) -> Result<String, ApiError> {
    given.map_or_else(draw_id, Ok).map_err(ApiError::store)
}

/// Has an experiment created; whether it was there before.
pub async fn created(app: &AppState, create: Create) -> Result<bool, ApiError> {
    let (id, actor) = (create.id.clone(), create.actor.clone());
    let repeated = app.service.ask(create).await?;
    // At level info, unlike requests: an administrator's doings are always worth a line.
    tracing::info!(id, actor, repeated, "an experiment was created");
    Ok(repeated)
}

/// List the experiments
///
/// Role read. At most 1,000 at a time: `next` is what to send as `after` for those that follow. A key for some experiments sees
/// these alone.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments", tag = "experiments", params(ListQuery),
    responses((status = 200, description = "A page of them", body = List))))]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    QueryParams(ListQuery { after, limit }): QueryParams<ListQuery>,
) -> Result<Reply<List>, ApiError> {
    caller.require(Role::Read)?;
    let limit = limit.unwrap_or(LISTED_MAX as u64);
    if limit == 0 || limit > LISTED_MAX as u64 {
        let message = format!("limit {limit} is outside 1 to {LISTED_MAX}; list them in pages");
        return Err(ApiError::unfit(message).against(format!("1 <= limit <= {LISTED_MAX}"), limit));
    }
    let page = listed(&app, &caller, after, limit as usize, false).await?;
    Ok(Reply(page))
}

/// Experiments that a caller sees, in the order of their creation or in the opposite one, after one of them.
pub async fn listed(
    app: &AppState,
    caller: &Caller,
    after: Option<String>,
    limit: usize,
    newest_first: bool,
) -> Result<List, ApiError> {
    let shared = Arc::clone(app);
    let caller = caller.clone();
    let read = move |store: &mut Store| {
        // One more than is shown tells whether there is a next page.
        let mut lines = caller.lines(store, after.as_deref(), newest_first, limit + 1)?;
        let more = lines.len() > limit;
        lines.truncate(limit);
        let next = lines.last().filter(|_| more).map(|line| line.id.clone());
        let mut experiments = Vec::new();
        // One experiment that cannot be parsed fails the list: to leave it out would hide the damage.
        for line in lines {
            let facts = shared.summaries.facts(store, &line.id)?;
            experiments.push(Listed::of(line, &facts));
        }
        Ok(List { experiments, next })
    };
    app.read_page(read).await
}

/// An experiment's rows.
pub async fn row(app: &AppState, id: &str) -> Result<(ExperimentRow, Progress), ApiError> {
    let asked = id.to_owned();
    let row = app.read(move |store| store.experiment(&asked)).await?;
    Ok(row.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?)
}

/// Show an experiment
///
/// Role read; the key and its salt are shown to role admin alone, if all open experiments that have it are within the caller's
/// scope, and in the certificate.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "What it is", body = Shown))))]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Shown>, ApiError> {
    caller.require_for(Role::Read, &id)?;
    let asked = id.clone();
    // A spec and a plan may be a megabyte each, so this is read, and counted, with the pages.
    let read = move |store: &mut Store| {
        let revealed = caller.sees_key_of(store, &asked)?;
        Ok((store.experiment(&asked)?, revealed))
    };
    let (row, revealed) = app.read_page(read).await?;
    let (experiment, progress) = row.ok_or_else(|| Refusal::NoExperiment { id: id.clone() })?;
    let info = app.info_of(&id, &experiment.spec)?;
    let line = ExperimentLine {
        id,
        created_at: experiment.created_at,
        progress,
    };
    Ok(Reply(Shown {
        listed: Listed::of(line, &Facts::of(&info)),
        key_hash: chain::key_hash(experiment.salt, experiment.key),
        // The plan of other values is not what the experiment runs by.
        plan: match check_values(&experiment) {
            Ok(()) => json::plan(&Plan::of(info.problem.clone()), None),
            Err(_) => Value::Null,
        },
        key: revealed.then(|| experiment.key.to_hex()),
        salt: revealed.then(|| hex::encode(&experiment.salt)),
        spec: experiment.spec,
    }))
}

// A function for each of the three, as each operation has a description of its own.

/// Pause an experiment
///
/// Role admin. It decides nothing until it is resumed; outcomes are still taken.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/pause", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")), request_body = Option<ReasonBody>,
    responses((status = 200, description = "It is paused", body = Changed))))]
pub async fn pause(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<Reply<Changed>, ApiError> {
    asked(&app, &caller, id, Change::Pause, request).await
}

/// Resume an experiment
///
/// Role admin. It decides again.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/resume", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")), request_body = Option<ReasonBody>,
    responses((status = 200, description = "It is running", body = Changed))))]
pub async fn resume(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<Reply<Changed>, ApiError> {
    asked(&app, &caller, id, Change::Resume, request).await
}

/// Close an experiment
///
/// Role admin. It ends before its horizon, for good; there is a certificate of it.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/close", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")), request_body = Option<ReasonBody>,
    responses((status = 200, description = "It is closed", body = Changed))))]
pub async fn close(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<Reply<Changed>, ApiError> {
    asked(&app, &caller, id, Change::Close, request).await
}

async fn asked(
    app: &AppState,
    caller: &Caller,
    id: String,
    what: Change,
    request: HttpRequest,
) -> Result<Reply<Changed>, ApiError> {
    // Before the body: what is refused by the head alone takes no memory from others.
    caller.require_for(Role::Admin, &id)?;
    let reason = reason(request, app).await?;
    change(app, caller, id, what, reason).await.map(Reply)
}

/// Makes an administrative change, if the caller may.
pub async fn change(
    app: &AppState,
    caller: &Caller,
    id: String,
    change: Change,
    reason: Option<String>,
) -> Result<Changed, ApiError> {
    caller.require_for(Role::Admin, &id)?;
    // Here and not within the transaction: it depends on nothing stored.
    reason.as_deref().map_or(Ok(()), limits::check_reason)?;
    let change = MakeChange {
        id: id.clone(),
        change,
        actor: caller.name.to_string(),
        reason,
    };
    let status = app.service.ask(change).await?;
    tracing::info!(
        id,
        actor = &*caller.name,
        ?status,
        "an experiment was changed"
    );
    Ok(Changed { id, status })
}
