//! `POST /ofrep/v1/evaluate/flags` and `.../flags/{id}`: experiments as feature flags, by the OpenFeature Remote Evaluation
//! Protocol (OFREP) 0.3.
//!
//! A flag is an experiment, the targeting key is the request key of a decision of one round, and value and variant are the
//! action's name. The decision is made where all are made, in the writer's transaction.

mod answer;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest as _, Path, Request as HttpRequest, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use crate::hex;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Json, Object};
use crate::service::http::trace;
use crate::service::limits::{is_name, quoted};
use crate::service::request::{Evaluate, FlagReply, Refusal, is_id};
use crate::store::Role;
pub use answer::{BulkFailure, EvaluatedFlag, FlagFailure, FlagMetadata, Flags};
use answer::{NO_TARGETING_KEY, failure, is_worth_repeating};

/// The most flags of a bulk evaluation: each is a decision, which whoever opens a page with them is given for good.
const FLAGS_MAX: usize = 100;

/// Whose flags are asked for.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct FlagRequest {
    /// Required by the protocol; without it there is no targeting key.
    #[cfg_attr(feature = "describe", schema(value_type = FlagContext, required))]
    context: Option<Object<FlagContext>>,
}

/// What is known of a user. Everything but the targeting key is ignored: a decision depends on no attribute.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct FlagContext {
    /// The request key of the decision: the same user keeps the same value.
    #[serde(rename = "targetingKey")]
    #[cfg_attr(
        feature = "describe",
        schema(min_length = 1, max_length = 128, required, nullable = false)
    )]
    targeting_key: Option<String>,
}

/// A flag's value for a user
///
/// Role decide. OFREP 0.3. The first time it is a decision for one round, which the user keeps, whatever becomes of the experiment;
/// in overtime while the experiment waits. While it is paused new users get the application's default, after its end what it
/// recommends. Tell the outcome by `request_key`.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/ofrep/v1/evaluate/flags/{id}", tag = "flags",
    params(("id" = String, Path, description = "The experiment")), request_body = FlagRequest,
    responses((status = 200, description = "Its value; without one the application uses its default", body = EvaluatedFlag),
        (status = 400, description = "`PARSE_ERROR`, `TARGETING_KEY_MISSING`, `INVALID_CONTEXT` or `GENERAL`", body = FlagFailure),
        (status = 404, description = "`FLAG_NOT_FOUND`", body = FlagFailure),
        (status = 429, description = "The service is busy; ask again after Retry-After", body = FlagFailure),
        (status = 503, description = "The store failed or the service stops; ask again after Retry-After", body = FlagFailure))))]
pub async fn evaluate(
    State(app): State<AppState>,
    caller: Result<Caller, ApiError>,
    path: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Response {
    let key = path.map_or_else(|_| String::new(), |Path(key)| key);
    let evaluated = evaluate_one(&app, caller, &key, request).await;
    evaluated.map_or_else(
        |error| failure(error, Some(&key)),
        |flag| axum::Json(flag).into_response(),
    )
}

async fn evaluate_one(
    app: &AppState,
    caller: Result<Caller, ApiError>,
    key: &str,
    request: HttpRequest,
) -> Result<EvaluatedFlag, ApiError> {
    let caller = caller?;
    // Before the body, as for decisions; and no experiment has another id, so it need not be looked for.
    caller.require_for(Role::Decide, key)?;
    if !is_id(key) {
        return Err(Refusal::NoExperiment { id: quoted(key) }.into());
    }
    let targeting_key = targeting_key(app, request).await?;
    Ok(decided(app, key.to_owned(), targeting_key, &caller).await?)
}

/// The values of all flags for a user
///
/// Role decide. OFREP 0.3. All experiments that the API key is for, at most 100: each gives the user a decision, so use a key for
/// those whose flags are needed. With the ETag of the last answer in If-None-Match, 304 says that nothing has changed.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/ofrep/v1/evaluate/flags", tag = "flags",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")), request_body = FlagRequest,
    responses((status = 200, description = "Their values", body = Flags,
            headers(("ETag" = String, description = "Of these values"))),
        (status = 304, description = "They are as they were"),
        (status = 400, description = "`PARSE_ERROR`, `TARGETING_KEY_MISSING`, `INVALID_CONTEXT` or `GENERAL`", body = BulkFailure),
        (status = 429, description = "The service is busy; ask again after Retry-After", body = BulkFailure),
        (status = 503, description = "The store failed or the service stops; ask again after Retry-After", body = BulkFailure))))]
pub async fn evaluate_all(
    State(app): State<AppState>,
    caller: Result<Caller, ApiError>,
    headers: HeaderMap,
    request: HttpRequest,
) -> Response {
    match evaluate_each(&app, caller, request).await {
        Ok(flags) => tagged(&flags, &headers),
        Err(error) => failure(error, None),
    }
}

async fn evaluate_each(
    app: &AppState,
    caller: Result<Caller, ApiError>,
    request: HttpRequest,
) -> Result<Flags, ApiError> {
    let caller = caller?;
    caller.require(Role::Decide)?;
    let targeting_key = targeting_key(app, request).await?;
    let ids = flags_of(app, &caller).await?;
    // Sent together, so that they share a transaction and its commit.
    let mut asked = JoinSet::new();
    for (place, id) in ids.iter().cloned().enumerate() {
        let (app, key, caller) = (app.clone(), targeting_key.clone(), caller.clone());
        asked.spawn(async move { (place, decided(&app, id, key, &caller).await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    let flags = answers.into_iter().zip(&ids).map(|((_, answer), id)| {
        match answer.map_err(ApiError::from) {
            Ok(flag) => Ok(flag.into()),
            // Of this flag alone, and for as long as it lasts. What passes must not take the place of a value that the client has.
            Err(error) if !is_worth_repeating(&error) => Ok(FlagFailure::of(&error, id).into()),
            Err(error) => Err(error),
        }
    });
    Ok(Flags {
        flags: flags.collect::<Result<_, _>>()?,
    })
}

/// The flags that a caller sees, in the order of their creation: an answer is the same whenever it is asked for.
async fn flags_of(app: &AppState, caller: &Caller) -> Result<Vec<String>, ApiError> {
    let asking = caller.clone();
    let lines = app
        .read(move |store| asking.lines(store, None, false, FLAGS_MAX + 1))
        .await?;
    if lines.len() > FLAGS_MAX {
        let name = &caller.name;
        let message = format!(
            "the key {name:?} sees more than {FLAGS_MAX} experiments, and each would give the user a decision; use a key for those \
             whose flags are needed (`debora keys add NAME --role decide --experiment ID`)"
        );
        return Err(
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_flags", message)
                .against(format!("at most {FLAGS_MAX} experiments"), lines.len()),
        );
    }
    Ok(lines.into_iter().map(|line| line.id).collect())
}

/// Whose flags a request asks for.
async fn targeting_key(app: &AppState, request: HttpRequest) -> Result<String, ApiError> {
    let body = Json::from_request(request, app).await?;
    let Object(FlagRequest { context }) = body.read()?;
    let key = context.and_then(|Object(context)| context.targeting_key);
    let key = key.filter(|key| !key.is_empty()).ok_or_else(|| {
        // An anonymous user cannot be recognised, and would get another value with every request.
        let message = "the context has no targetingKey; set it to what identifies the user";
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, NO_TARGETING_KEY, message)
    })?;
    if !is_name(&key) {
        let request_key = quoted(&key);
        return Err(Refusal::RequestKey { request_key }.into());
    }
    Ok(key)
}

async fn decided(
    app: &AppState,
    id: String,
    request_key: String,
    caller: &Caller,
) -> Result<EvaluatedFlag, Refusal> {
    let flag = trace::flag(&id);
    let evaluate = Evaluate {
        id: id.clone(),
        request_key,
        actor: caller.name.clone(),
    };
    match app.service.ask(evaluate).await? {
        FlagReply::Decided(decided) => {
            // As decisions are counted: repetitions are not.
            if !decided.repeated {
                app.metrics.decided(decided.lease.kind, 1);
            }
            trace::evaluated(flag.as_deref(), &decided);
            Ok(EvaluatedFlag::decided(id, &decided))
        }
        FlagReply::Advised(advice) => {
            let evaluated = EvaluatedFlag::advised(id, &advice);
            trace::advised(flag.as_deref(), &evaluated, advice.epoch);
            Ok(evaluated)
        }
    }
}

/// An answer with its tag, or word that the client has it.
fn tagged(flags: &Flags, headers: &HeaderMap) -> Response {
    let body = serde_json::to_vec(flags).expect("flags are JSON");
    // A hash of what is answered: the same on every node and after a restart.
    let tag = format!("\"{}\"", &hex::encode(&Sha256::digest(&body))[..32]);
    if has(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    let kind = (CONTENT_TYPE, "application/json".to_owned());
    ([kind, (ETAG, tag)], body).into_response()
}

/// Whether a client says that it has what this tag stands for.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = lists.flat_map(|list| list.to_str().unwrap_or_default().split(','));
    // Proxies that compress an answer make its tag a weak one.
    tags.any(|known| known.trim().trim_start_matches("W/") == tag)
}
