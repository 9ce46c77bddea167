//! What flags are answered with, as the protocol has it.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use crate::service::http::error::ApiError;
use crate::service::request::{Decided, FlagAdvice};
use crate::store::{DecisionKind, Status};

/// The code of an error that only flags have.
pub const NO_TARGETING_KEY: &str = "targeting_key";

/// The variant where the application's own default holds. Providers insist on one.
const CODE_DEFAULT: &str = "default";

/// A flag's value.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EvaluatedFlag {
    /// The experiment.
    key: String,
    /// The name of the action; absent if the application is to use its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value: Option<String>,
    /// The same name; "default" without a value.
    pub variant: String,
    /// "SPLIT" if it was drawn, "STATIC" if everyone gets it, "DISABLED" without a value.
    #[schema(value_type = String, example = "SPLIT")]
    pub reason: &'static str,
    metadata: FlagMetadata,
}

/// Where a flag's value comes from.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub struct FlagMetadata {
    /// The round that was decided for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    round: Option<u64>,
    /// Outside the horizon: the serial within the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    serial: Option<u64>,
    /// The epoch, from 0.
    epoch: u64,
    /// With which probability the epoch's strategy plays the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    probability: Option<f64>,
    /// True outside the horizon: the experiment waited, and the outcome will not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    overtime: Option<bool>,
    /// True if the user is held back from the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    holdback: Option<bool>,
    /// Of an experiment that is over or paused: whether it recommends something to users whom it has given nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    recommendation: Option<bool>,
    /// Of an experiment that is over or paused: which of these it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<Status>,
}

impl EvaluatedFlag {
    /// What a user was given.
    pub fn decided(key: String, decided: &Decided) -> Self {
        let lease = &decided.lease;
        // A lease under this key was asked for one round, or the request would have been refused; and a store without its
        // action cannot be read.
        let action = lease.actions[0] as usize;
        let name = &decided.labels.actions[action];
        let is = |kind: DecisionKind| (lease.kind == kind).then_some(true);
        let round = is(DecisionKind::Round).map(|_| lease.first);
        // Of those who are held back, all get the action.
        let held_back = is(DecisionKind::Holdback);
        let probability = held_back.map_or(decided.labels.strategy[action], |_| 1.0);
        Self {
            key,
            value: Some(name.clone()),
            variant: name.clone(),
            reason: "SPLIT",
            metadata: FlagMetadata {
                round,
                serial: round.is_none().then_some(lease.first),
                epoch: lease.epoch,
                probability: Some(probability),
                overtime: is(DecisionKind::Overtime),
                holdback: held_back,
                ..FlagMetadata::default()
            },
        }
    }

    /// What an experiment that is over, or paused, says to those whom it has given nothing.
    pub fn advised(key: String, advice: &FlagAdvice) -> Self {
        let action = advice.action.map(|action| action as usize);
        let name = action.map(|action| advice.labels.actions[action].clone());
        let probability = action.map(|action| advice.labels.strategy[action]);
        Self {
            key,
            variant: name.clone().unwrap_or_else(|| CODE_DEFAULT.to_owned()),
            reason: match probability {
                None => "DISABLED",
                Some(1.0) => "STATIC",
                Some(_) => "SPLIT",
            },
            value: name,
            metadata: FlagMetadata {
                epoch: advice.epoch,
                probability,
                recommendation: Some(action.is_some()),
                status: Some(advice.status),
                ..FlagMetadata::default()
            },
        }
    }
}

/// The flags of a user.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Flags {
    /// In the order in which the experiments were created.
    pub flags: Vec<FlagOutcome>,
}

/// A flag's value, or why it has none.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum FlagOutcome {
    /// Its value.
    Evaluated(EvaluatedFlag),
    /// Why it has none.
    Failed(FlagFailure),
}

impl From<EvaluatedFlag> for FlagOutcome {
    fn from(flag: EvaluatedFlag) -> Self {
        Self::Evaluated(flag)
    }
}

impl From<FlagFailure> for FlagOutcome {
    fn from(failure: FlagFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Why a flag has no value.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct FlagFailure {
    /// The flag that was asked for.
    key: String,
    #[serde(flatten)]
    failure: BulkFailure,
}

impl FlagFailure {
    /// Of an error.
    pub fn of(error: &ApiError, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            failure: BulkFailure::of(error),
        }
    }
}

/// Why flags have no values.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkFailure {
    /// As OpenFeature has them.
    #[schema(value_type = String, example = "TARGETING_KEY_MISSING")]
    error_code: &'static str,
    /// A sentence for a person.
    #[schema(value_type = String)]
    error_details: Box<str>,
}

impl BulkFailure {
    fn of(error: &ApiError) -> Self {
        Self {
            error_code: error_code(error),
            error_details: error.message.clone(),
        }
    }
}

fn error_code(error: &ApiError) -> &'static str {
    match error.code {
        NO_TARGETING_KEY => "TARGETING_KEY_MISSING",
        "no_experiment" => "FLAG_NOT_FOUND",
        // JSON that does not fit can only be wrong about the context: there is nothing else in it.
        "unfit" | "request_key" => "INVALID_CONTEXT",
        "malformed" | "media_type" | "too_large" | "too_slow" => "PARSE_ERROR",
        _ => "GENERAL",
    }
}

/// Whether what went wrong passes by itself.
pub fn is_worth_repeating(error: &ApiError) -> bool {
    error.status.is_server_error()
}

/// The answer to a request for one flag, or for all, that failed.
pub fn failure(error: ApiError, key: Option<&str>) -> Response {
    // The protocol has no body for these, and ours says more.
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&error.status) {
        return error.into_response();
    }
    let body = match key {
        Some(key) => serde_json::to_vec(&FlagFailure::of(&error, key)),
        None => serde_json::to_vec(&BulkFailure::of(&error)),
    };
    let status = match error.status {
        // Providers keep away until Retry-After only for this one.
        _ if error.code == "busy" => StatusCode::TOO_MANY_REQUESTS,
        status if status.is_server_error() || status == StatusCode::NOT_FOUND => status,
        // All that is wrong with a request has this status in the protocol.
        _ => StatusCode::BAD_REQUEST,
    };
    // What the error itself answers has its headers, and its line in the log.
    let mut response = error.into_response();
    *response.status_mut() = status;
    *response.body_mut() = Body::from(body.expect("a failure is JSON"));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::service::request::Refusal;

    async fn answered(refusal: Refusal, key: Option<&str>) -> (u16, Option<String>, Value) {
        let response = failure(refusal.into(), key);
        let later = response.headers().get("retry-after");
        let later = later.map(|seconds| seconds.to_str().unwrap().to_owned());
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, later, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn providers_are_told_to_keep_away_from_a_busy_service() {
        for key in [Some("e"), None] {
            let (status, later, body) = answered(Refusal::Busy, key).await;
            assert_eq!((status, later.as_deref()), (429, Some("1")));
            assert_eq!(
                (&body["errorCode"], &body["key"]),
                (&json!("GENERAL"), &json!(key))
            );
            let (status, later, body) = answered(Refusal::Stopping, key).await;
            assert_eq!((status, later.as_deref()), (503, Some("1")));
            assert_eq!(body["errorCode"], "GENERAL");
        }
    }
}
