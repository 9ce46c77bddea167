//! `/v1/keys`: who may do what, for admins of all experiments.

use axum::Json as Reply;
use axum::extract::{FromRequest as _, FromRequestParts};
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Json, Object};
use crate::service::keys::{AddKey, NewKey, RevokeKey};
use crate::store::{ApiKey, Role};

/// A key that is asked for.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewKeyBody {
    /// What it is called: in the log, with all that it asks, tells and changes. Never given again. Not one or two dots alone.
    #[cfg_attr(
        feature = "describe",
        schema(max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")
    )]
    pub name: String,
    /// What it allows; each role may do what those before it may.
    #[cfg_attr(feature = "describe", schema(value_type = KeyRole))]
    pub role: Role,
    /// The ids of the experiments it is for, which need not exist yet; default: all.
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    pub experiments: Option<Vec<String>>,
}

/// What a key allows: to look; to ask and tell, too; everything.
// Beside the store's Role, which knows nothing of HTTP.
#[cfg(feature = "describe")]
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "it only describes")]
pub enum KeyRole {
    Read,
    Decide,
    Admin,
}

/// A key that was made.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct MadeKey {
    /// What it is called.
    pub name: String,
    /// What it allows.
    #[cfg_attr(feature = "describe", schema(value_type = KeyRole))]
    pub role: Role,
    /// The experiments it is for; null for all.
    pub experiments: Option<Vec<String>>,
    /// The key, which is not shown again: only its hash is kept.
    pub key: String,
}

/// A key, without the key.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ListedKey {
    /// What it is called.
    pub name: String,
    /// What it allows.
    #[cfg_attr(feature = "describe", schema(value_type = KeyRole))]
    pub role: Role,
    /// The experiments it is for; null for all.
    pub experiments: Option<Vec<String>>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When it was last used, to the minute or so; null if it never was.
    pub last_used_at: Option<i64>,
    /// When it was revoked; null if it works.
    pub revoked_at: Option<i64>,
}

impl From<ApiKey> for ListedKey {
    fn from(key: ApiKey) -> Self {
        // The hash is left out: it only serves the comparison with a key that the service is shown.
        Self {
            name: key.name,
            role: key.role,
            experiments: key.experiments,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// All keys.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct KeyList {
    /// By name, revoked ones too.
    keys: Vec<ListedKey>,
}

/// A key that works no more.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct RevokedKey {
    /// What it is called.
    name: String,
}

/// The key in the address.
pub struct KeyName(pub String);

impl FromRequestParts<AppState> for KeyName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|Path(name)| Self(name)).map_err(|error| {
            ApiError::malformed(format!("the address cannot be read: {}", error.body_text()))
        })
    }
}

/// Refuses a caller who may not see who may do what.
pub fn require_admin_of_all(caller: &Caller) -> Result<(), ApiError> {
    caller.require(Role::Admin)?;
    caller.require_all()
}

/// What an admin of all experiments sends.
pub async fn body_of_admin<T: DeserializeOwned>(
    app: &AppState,
    caller: &Caller,
    request: HttpRequest,
) -> Result<T, ApiError> {
    // Before the body: what is refused by the head alone takes no memory from others.
    require_admin_of_all(caller)?;
    let Object(body) = Json::from_request(request, app).await?.read()?;
    Ok(body)
}

/// List the API keys
///
/// Role admin; a key for some experiments is refused. Without the keys themselves, of which only hashes are kept.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/keys", tag = "keys",
    responses((status = 200, description = "All keys, by name", body = KeyList))))]
pub async fn list(State(app): State<AppState>, caller: Caller) -> Result<Reply<KeyList>, ApiError> {
    require_admin_of_all(&caller)?;
    let keys = listed(&app).await?;
    Ok(Reply(KeyList { keys }))
}

/// All keys.
pub async fn listed(app: &AppState) -> Result<Vec<ListedKey>, ApiError> {
    let keys = app.read(|store| store.keys()).await?;
    Ok(keys.into_iter().map(ListedKey::from).collect())
}

/// Make an API key
///
/// Role admin; a key for some experiments is refused. The answer has the key, which is not shown again. Other nodes know it within
/// two seconds. The first key ends the time in which everyone on the machine is admin, so it must have role admin for all
/// experiments.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = NewKeyBody,
    responses((status = 201, description = "It is made", body = MadeKey))))]
pub async fn make(
    State(app): State<AppState>,
    caller: Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let NewKeyBody {
        name,
        role,
        experiments,
    } = body_of_admin(&app, &caller, request).await?;
    let new = NewKey {
        name,
        role,
        experiments,
    };
    let made = made(&app, &caller, new).await?;
    Ok((StatusCode::CREATED, Reply(made)).into_response())
}

/// Makes a key, if the caller may.
pub async fn made(app: &AppState, caller: &Caller, new: NewKey) -> Result<MadeKey, ApiError> {
    require_admin_of_all(caller)?;
    let add = AddKey {
        new: new.clone(),
        keyed: caller.keyed,
    };
    let key = app.service.ask_store(add).await?;
    app.access.forget();
    // The name and never the key: logs are read by more people than keys.
    tracing::info!(name = new.name, actor = &*caller.name, "a key was made");
    Ok(MadeKey {
        name: new.name,
        role: new.role,
        experiments: new.experiments,
        key,
    })
}

/// Revoke an API key
///
/// Role admin; a key for some experiments is refused. Its sessions end with it; other nodes refuse it within two seconds. The last
/// admin key for all experiments is not revoked here, as nobody could make another.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/keys/{name}/revoke", tag = "keys",
    params(("name" = String, Path, description = "The key")),
    responses((status = 200, description = "It is revoked", body = RevokedKey),
              (status = 404, description = "Code `no_such_key`", body = ApiError, content_type = "application/problem+json"))))]
pub async fn revoke(
    State(app): State<AppState>,
    caller: Caller,
    KeyName(name): KeyName,
) -> Result<Reply<RevokedKey>, ApiError> {
    revoked(&app, &caller, name.clone()).await?;
    Ok(Reply(RevokedKey { name }))
}

/// Revokes a key, if the caller may.
pub async fn revoked(app: &AppState, caller: &Caller, name: String) -> Result<(), ApiError> {
    require_admin_of_all(caller)?;
    let revoke = RevokeKey { name: name.clone() };
    app.service.ask_store(revoke).await?;
    app.access.forget();
    tracing::info!(name, actor = &*caller.name, "a key was revoked");
    Ok(())
}
