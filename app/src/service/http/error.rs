//! The answer when something cannot be done, as RFC 9457 has it: a stable code, a sentence, the rule and the value.
//!
//! 422 is wrong in itself, 409 at this moment. 503 is a limit of the service, worth repeating, and says when.
//! The one place where a refusal of the service becomes HTTP; what each says is in the table of refusals (request/refusal.rs).

use std::time::{Duration, Instant};

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::log::OtherValues;
use crate::service::http::problems::{self, MEDIA_TYPE};
use crate::service::request::Refusal;
use crate::service::seldom::Seldom;
use crate::store::Role;

/// Seconds after which a request that found the service busy or waiting is worth repeating. The header has whole seconds.
const RETRY_SECONDS: u16 = 1;

/// The most bytes of each text in an answer: what a request had of 8 MiB is not sent back, nor kept for a client that does not read.
const TEXT_BYTES_MAX: usize = 4_000;

/// Why a request was not done. Nothing has changed, unless the code is `store`, `stopping` or `internal`.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ApiError {
    /// As in the answer's head.
    #[serde(serialize_with = "problems::write_status")]
    #[schema(value_type = u16, example = 409)]
    pub status: StatusCode,
    /// Stable, in lower case and underscores; programs may rely on it.
    #[serde(flatten, serialize_with = "problems::write_kind")]
    #[schema(value_type = problems::ProblemKind)]
    pub code: &'static str,
    /// A sentence for a person: what, which value, what to do.
    #[serde(flatten, serialize_with = "problems::write_detail")]
    #[schema(value_type = problems::ProblemDetail)]
    pub message: Box<str>,
    /// The condition that was violated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    pub rule: Option<Box<str>>,
    /// The value that violated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, nullable = false)]
    // Boxed, as errors are returned through many functions.
    pub value: Option<Box<Value>>,
    /// Of a spec: what is at fault, and where.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub place: Option<Box<FaultPlace>>,
    /// While waiting: decided rounds without an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outstanding: Option<u64>,
    /// Seconds after which to ask again, as in the header Retry-After.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after: Option<u16>,
    /// For the log alone.
    #[serde(skip)]
    pub cause: Option<Box<str>>,
}

/// Where a spec, or a value beside it, is at fault.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct FaultPlace {
    /// The keys that lead to it, entries of lists by their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "cost.0.threshold")]
    pub field: Option<String>,
    /// The line of the spec, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<u64>,
    /// The character of that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub column: Option<u64>,
}

/// What an answer says that is an error: for the log of requests, and for the page that a person sees in its place.
#[derive(Clone)]
pub struct ErrorWords {
    /// What programs go by.
    pub code: &'static str,
    /// The sentence for a person.
    pub message: Box<str>,
}

impl ApiError {
    /// An error without rule and value.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<Box<str>>) -> Self {
        // Where tests see it alone: a line that is missing is no reason to answer nothing.
        debug_assert_eq!(
            problems::known(code).map(|(status, _)| status),
            Some(status.as_u16()),
            "{code:?} has no line in problems.rs, or another status"
        );
        // Here rather than where they are made, so that none is without it.
        Self {
            status,
            code,
            message: shortened(message.into()),
            rule: None,
            value: None,
            place: None,
            outstanding: None,
            retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_SECONDS),
            cause: None,
        }
    }

    /// With the condition that was violated, and the value that did it.
    pub fn against(self, rule: impl Into<Box<str>>, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::String(text) => Value::String(shortened(text.into()).into()),
            value => value,
        };
        Self {
            rule: Some(shortened(rule.into())),
            value: Some(Box::new(value)),
            ..self
        }
    }

    /// With the field at fault.
    pub fn at(self, field: impl Into<String>) -> Self {
        let place = FaultPlace {
            field: Some(field.into()),
            ..FaultPlace::default()
        };
        Self {
            place: Some(Box::new(place)),
            ..self
        }
    }

    /// With the time after which to ask again.
    pub fn retry(self) -> Self {
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..self
        }
    }

    /// What could not be read: an experiment of another values version is told by name, all else is the store's failure.
    pub fn unread(error: anyhow::Error) -> Self {
        match error.downcast::<OtherValues>() {
            Ok(other) => Refusal::from(other).into(),
            Err(error) => Self::store(error),
        }
    }

    /// The store could not be read; the caller learns no more than that.
    pub fn store(detail: impl std::fmt::Display) -> Self {
        Refusal::Store {
            detail: format!("{detail:#}"),
        }
        .into()
    }

    /// There is no room for the request at the moment; nothing was done.
    pub fn busy(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// A body or an address that cannot be read at all.
    pub fn malformed(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// Fields that are unknown, missing, or of another type.
    pub fn unfit(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unfit", message)
    }

    /// A request without a valid key.
    pub fn no_key(message: impl Into<Box<str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "no_key", message)
            // The value stays out: a key with a slip in it is still nearly a key, and errors get logged.
            .against("Authorization: Bearer debora_...", Value::Null)
    }

    /// A key for some experiments, used for what is not about one of them.
    pub fn out_of_scope(name: &str, scope: &[String], remedy: &str) -> Self {
        let message = format!("the key {name:?} is for the experiments {scope:?} alone; {remedy}");
        Self::new(StatusCode::FORBIDDEN, "out_of_scope", message)
    }

    /// A key that does not allow it.
    pub fn wrong_role(name: &str, role: Role, needed: Role) -> Self {
        // As JSON names them, so that the sentence and the value say the same.
        let role = json!(role);
        let needed = json!(needed);
        let has = role.as_str().unwrap_or_default();
        let needs = needed.as_str().unwrap_or_default();
        let message =
            format!("the key {name:?} has role {has}, and this needs {needs}; use another key");
        Self::new(StatusCode::FORBIDDEN, "wrong_role", message)
            .against(format!("role {needs} or more"), has)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let line = refusal.line();
        let status = StatusCode::from_u16(line.status).expect("the table has statuses of HTTP");
        let mut error = Self::new(status, line.code, line.to_string());
        if let Some(field) = line.field {
            error = error.at(field);
        }
        if let Some((rule, value)) = line.broken {
            error = error.against(rule, value);
        }
        // What no line of the table can hold.
        match refusal {
            Refusal::Spec(fault) => Self {
                place: Some(Box::new(FaultPlace {
                    field: fault.field().map(str::to_owned),
                    line: fault.line(),
                    column: fault.column(),
                })),
                ..error
            },
            Refusal::Waiting { outstanding, .. } => Self {
                outstanding: Some(outstanding),
                ..error.retry()
            },
            Refusal::Store { detail } => Self {
                cause: Some(detail.into()),
                ..error
            },
            _ => error,
        }
    }
}

/// A text within its limit.
fn shortened(text: Box<str>) -> Box<str> {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    // Out of its middle: the beginning says what, and the end what to do.
    let beginning = text.floor_char_boundary(TEXT_BYTES_MAX / 2);
    let end = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX / 2);
    format!("{} ... {}", &text[..beginning], &text[end..]).into()
}

/// While the store fails every request does, and its disk, most often the log's too, may be the one that is full.
static STORE_FAILED: Seldom = Seldom::new(Duration::from_secs(1));

fn log(code: &str, detail: &str) {
    // The others are bugs, each of which is worth its line.
    let due = if code == "store" {
        STORE_FAILED.due(Instant::now())
    } else {
        Some(0)
    };
    if let Some(left_out) = due {
        tracing::error!(code, detail, left_out, "a request failed");
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Some(cause) = &self.cause {
            log(self.code, cause);
        }
        let mut response = (self.status, axum::Json(&self)).into_response();
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // RFC 9110 asks for it, and generic clients find out by it how to send a key.
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(ErrorWords {
            code: self.code,
            message: self.message,
        });
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Every code there is, as every error is made by `new`.
    #[test]
    fn what_is_worth_repeating_says_when_and_nothing_else_does() {
        for (status, code, title) in problems::CODES {
            let status = StatusCode::from_u16(*status).unwrap();
            let error = ApiError::new(status, code, "what happened; what to do");
            let body = json!(error);
            let expected = json!({
                "type": format!("/api#error-{code}"), "title": title, "status": status.as_u16(), "code": code,
                "detail": "what happened; what to do", "message": "what happened; what to do",
            });
            for (field, value) in expected.as_object().unwrap() {
                assert_eq!(&body[field], value, "{code}");
            }
            let response = error.into_response();
            let headers = response.headers();
            assert_eq!(headers[CONTENT_TYPE], MEDIA_TYPE);
            let repeated = status == StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(headers.contains_key(RETRY_AFTER), repeated, "{code}");
            assert_eq!(body["retry_after"] == 1, repeated, "{code}");
        }
        let waiting = ApiError::from(Refusal::Waiting {
            epoch: 0,
            outstanding: 7,
        });
        assert!(waiting.into_response().headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn a_store_that_fails_writes_a_line_a_second_however_many_ask() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
        let begun = Instant::now();
        tracing::subscriber::with_default(subscriber.finish(), || {
            for _ in 0..1_000 {
                drop(ApiError::store("disk full").into_response());
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let most = 1 + begun.elapsed().as_secs() as usize;
        assert!(text.lines().count() <= most, "{text}");
    }
}
