//! Experiments: create, list, show, pause, resume, close.

use std::fmt;

use axum::Json as Reply;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use debora::measure::json;
use debora::{Key, Plan};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::hex;
use crate::log::{chain, check_values};
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, Json, Object};
use crate::service::http::{AppState, ExperimentInfo};
use crate::service::request::{Change, Create, Granted, Refusal, Request};
use crate::store::{ExperimentRow, Progress, Role, Status};

/// A new experiment.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExperiment {
    /// The spec file's text (TOML), without `[world]` and `key`.
    spec: String,
    /// Its name in addresses; default: drawn at random. If it is given, the request can be repeated.
    #[schema(min_length = 1, max_length = 128, pattern = "^[a-z0-9-]+$")]
    id: Option<String>,
    /// The policy's key; default: drawn at random. Give another team's to replicate its experiment.
    #[schema(value_type = Option<KeyShape>)]
    key: Option<KeyText>,
    /// Accept a plan that can never compare anything at this horizon.
    #[serde(default)]
    blind: bool,
}

/// A key.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum KeyShape {
    /// A whole number.
    Number(u64),
    /// 32 hexadecimal digits.
    Digits(String),
}

/// A key as JSON gives it. As `KeyShape` describes it, but read by hand: an untagged enum could not say what is wrong.
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
        formatter.write_str(
            "a key: a whole number from 0 to 2^64 - 1, or 32 hexadecimal digits in quotes",
        )
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<KeyText, E> {
        Ok(KeyText(Key::from(number)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<KeyText, E> {
        // The text is not quoted back: it is nearly a secret, and errors end up in logs.
        Key::from_hex(text)
            .map(KeyText)
            .map_err(|_| E::invalid_value(Unexpected::Other("another text"), &self))
    }
}

/// An experiment that is there.
#[derive(Serialize, ToSchema)]
pub struct Created {
    /// Its name in addresses.
    id: String,
    /// SHA-256 of salt and key, as 64 hexadecimal digits: publish it, and the key cannot be changed afterwards.
    key_hash: String,
    /// Where it is.
    address: String,
}

/// A line of the list.
#[derive(Serialize, ToSchema)]
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
    pub fn of(experiment: &ExperimentRow, progress: &Progress, info: &ExperimentInfo) -> Self {
        Self {
            id: experiment.id.clone(),
            name: info.name.clone(),
            status: progress.status,
            epoch: progress.epoch,
            decided: progress.rounds(),
            horizon: info.problem.horizon(),
            created_at: experiment.created_at,
        }
    }
}

/// All experiments.
#[derive(Serialize, ToSchema)]
pub struct List {
    /// The oldest first.
    experiments: Vec<Listed>,
}

/// What an experiment is.
#[derive(Serialize, ToSchema)]
pub struct Shown {
    #[serde(flatten)]
    listed: Listed,
    /// The spec, as it was given.
    spec: String,
    /// SHA-256 of salt and key.
    key_hash: String,
    /// Every constant of the run, as `debora plan --json` gives them.
    #[schema(value_type = Object)]
    plan: Value,
    /// The policy's key: for role admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// What the key is hashed with: for role admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    salt: Option<String>,
}

/// A status after a change.
#[derive(Serialize, ToSchema)]
pub struct Changed {
    /// The experiment.
    id: String,
    /// Its status.
    status: Status,
}

/// Create an experiment
///
/// Role admin. With an `id` the request can be repeated: the same spec and key give 200 instead of 201, others 409.
#[utoipa::path(post, path = "/v1/experiments", tag = "experiments", request_body = NewExperiment,
    responses((status = 201, description = "It is there", body = Created),
              (status = 200, description = "This very experiment was there before", body = Created)))]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    body: Json,
) -> Result<Response, ApiError> {
    caller.require(Role::Admin)?;
    let Object(new): Object<NewExperiment> = body.read()?;
    let create = Create {
        id: new.id,
        spec: new.spec,
        key: new.key.map(|key| key.0),
        blind: new.blind,
        actor: caller.name,
    };
    let (id, repeated) = created(&app, create).await?;
    // Read back: if it was there before, its key is the one that was drawn then.
    let (experiment, _) = row(&app, &id).await?;
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

/// Has an experiment created: its id, and whether it was there before.
pub async fn created(app: &AppState, create: Create) -> Result<(String, bool), ApiError> {
    let actor = create.actor.clone();
    let Granted::Created { id, repeated } = app.service.serve(Request::Create(create)).await?
    else {
        unreachable!("creating is answered with an experiment")
    };
    // At level info, unlike requests: an administrator's doings are always worth a line.
    tracing::info!(id, actor, repeated, "an experiment was created");
    Ok((id, repeated))
}

/// List the experiments
///
/// Role read.
#[utoipa::path(get, path = "/v1/experiments", tag = "experiments",
    responses((status = 200, description = "All of them", body = List)))]
pub async fn list(State(app): State<AppState>, caller: Caller) -> Result<Reply<List>, ApiError> {
    caller.require(Role::Read)?;
    Ok(Reply(List {
        experiments: listed(&app).await?,
    }))
}

/// All experiments, the oldest first.
pub async fn listed(app: &AppState) -> Result<Vec<Listed>, ApiError> {
    let rows = app
        .read(|store| store.experiments(None, usize::MAX))
        .await?;
    // One experiment that cannot be parsed fails the list: to leave it out would hide the damage.
    rows.iter()
        .map(|(experiment, progress)| {
            let info = app.info_of(&experiment.id, &experiment.spec)?;
            Ok(Listed::of(experiment, progress, &info))
        })
        .collect()
}

/// An experiment's rows.
pub async fn row(app: &AppState, id: &str) -> Result<(ExperimentRow, Progress), ApiError> {
    let asked = id.to_owned();
    let row = app.read(move |store| store.experiment(&asked)).await?;
    Ok(row.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?)
}

/// Show an experiment
///
/// Role read; the key and its salt are shown to role admin alone, and in the certificate.
#[utoipa::path(get, path = "/v1/experiments/{id}", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "What it is", body = Shown)))]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Shown>, ApiError> {
    caller.require(Role::Read)?;
    let (experiment, progress) = row(&app, &id).await?;
    let info = app.info_of(&id, &experiment.spec)?;
    // Anyone who has the key can predict decisions, so role read and role decide do not see it.
    let revealed = caller.role == Role::Admin;
    Ok(Reply(Shown {
        listed: Listed::of(&experiment, &progress, &info),
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
#[utoipa::path(post, path = "/v1/experiments/{id}/pause", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It is paused", body = Changed)))]
pub async fn pause(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Changed>, ApiError> {
    change(&app, &caller, id, Change::Pause).await.map(Reply)
}

/// Resume an experiment
///
/// Role admin. It decides again.
#[utoipa::path(post, path = "/v1/experiments/{id}/resume", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It is running", body = Changed)))]
pub async fn resume(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Changed>, ApiError> {
    change(&app, &caller, id, Change::Resume).await.map(Reply)
}

/// Close an experiment
///
/// Role admin. It ends before its horizon, for good; there is a certificate of it.
#[utoipa::path(post, path = "/v1/experiments/{id}/close", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It is closed", body = Changed)))]
pub async fn close(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Changed>, ApiError> {
    change(&app, &caller, id, Change::Close).await.map(Reply)
}

/// Makes an administrative change, if the caller may.
pub async fn change(
    app: &AppState,
    caller: &Caller,
    id: String,
    change: Change,
) -> Result<Changed, ApiError> {
    caller.require(Role::Admin)?;
    let request = Request::Change {
        id: id.clone(),
        change,
        actor: caller.name.clone(),
    };
    let Granted::Changed(status) = app.service.serve(request).await? else {
        unreachable!("a change is answered with a status")
    };
    tracing::info!(
        id,
        actor = caller.name,
        ?status,
        "an experiment was changed"
    );
    Ok(Changed { id, status })
}
