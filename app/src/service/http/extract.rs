//! Bodies, ids and queries, read with limits: every way in which that can fail is an [`ApiError`].

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use tokio::sync::OwnedSemaphorePermit;

use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::request::{self, Refusal};

/// The longest body: 10,000 outcomes, the most in a request, with 800 bytes for each.
pub const BODY_BYTES_MAX: usize = 8 << 20;

/// How much of a body that is too long is read and dropped: many clients look at the answer only after they have sent all of it,
/// and a connection closed before that shows them an error of the network instead.
const DROPPED_BYTES_MAX: usize = 64 << 20;

/// A body within its limits. While it is held, it counts towards what all bodies together may take.
pub struct Raw {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

/// A body of JSON.
pub struct Json(Raw);

/// A body of form fields.
pub struct Form<T>(pub T);

impl Json {
    /// Reads it.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.0.bytes).map_err(|error| match error.classify() {
            Category::Data => ApiError::unfit(format!(
                "the body has missing, unknown or mistyped fields{}: {error}",
                self.misfit::<T>()
            )),
            _ => ApiError::malformed(format!("the body is not JSON: {error}")),
        })
    }

    /// Where the first wrong field is, as words to put behind, if the place is known.
    fn misfit<'a, T: Deserialize<'a>>(&'a self) -> String {
        // Read a second time, keeping track of the path: bodies that fit are not to pay for it.
        let mut again = serde_json::Deserializer::from_slice(&self.0.bytes);
        serde_path_to_error::deserialize::<_, T>(&mut again)
            .err()
            .map(|failed| failed.path().to_string())
            .filter(|path| path != ".")
            .map_or(String::new(), |path| format!(" at {path:?}"))
    }
}

impl FromRequest<AppState> for Json {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        expect(request.headers(), "application/json")?;
        Ok(Self(read(request, app).await?))
    }
}

impl<T: DeserializeOwned> FromRequest<AppState> for Form<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        expect(request.headers(), "application/x-www-form-urlencoded")?;
        let raw = read(request, app).await?;
        let form = serde_urlencoded::from_bytes(&raw.bytes);
        form.map(Self).map_err(|error| {
            ApiError::unfit(format!(
                "the form has missing, unknown or mistyped fields: {error}"
            ))
        })
    }
}

/// Refuses a body that is declared as anything but `wanted`.
fn expect(headers: &HeaderMap, wanted: &str) -> Result<(), ApiError> {
    // Guessing would open a hole: a page of another site may send plain text without the browser
    // asking first, and must not have it read as JSON.
    let text = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    let message = format!("the body is declared as {kind:?}; send Content-Type: {wanted}");
    Err(
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", message)
            .against(wanted, kind),
    )
}

async fn read(request: Request, app: &AppState) -> Result<Raw, ApiError> {
    let declared = declared_length(request.headers());
    // A client that asks before it sends is refused right away, and sends nothing.
    let asks_first = request.headers().contains_key(EXPECT);
    let body = request.into_body();
    if declared.is_some_and(|length| length > BODY_BYTES_MAX) {
        if !asks_first {
            drop_rest(body, app.timeout).await;
        }
        return Err(too_large());
    }
    let permit = reserve(declared.unwrap_or(BODY_BYTES_MAX), app).await?;
    match tokio::time::timeout(app.timeout, collect(body)).await {
        Ok(bytes) => Ok(Raw {
            bytes: bytes?,
            _permit: permit,
        }),
        Err(_) => Err(too_slow(app.timeout)),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Waits until there is memory for this many bytes.
async fn reserve(bytes: usize, app: &AppState) -> Result<OwnedSemaphorePermit, ApiError> {
    // In kibibytes: the semaphore counts in 32 bits. At least one, so that many small bodies are
    // bounded, too.
    let kibibytes = bytes.div_ceil(1024).max(1) as u32;
    let permit = Arc::clone(&app.bodies).acquire_many_owned(kibibytes);
    let granted = tokio::time::timeout(app.timeout, permit).await;
    granted.ok().and_then(Result::ok).ok_or_else(|| {
        let message =
            "the service is reading as many bodies as it can hold; repeat the request later";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).retry()
    })
}

async fn collect(mut body: Body) -> Result<Bytes, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| ApiError::malformed("the body broke off; repeat the request"))?;
        // Frames that are not data are trailers, which mean nothing here.
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        // A body sent in chunks declares no length, so it is counted as it arrives.
        if bytes.len() > BODY_BYTES_MAX {
            drop(bytes);
            drop_frames(&mut body).await;
            return Err(too_large());
        }
    }
    Ok(bytes.into())
}

async fn drop_rest(mut body: Body, timeout: Duration) {
    let _ = tokio::time::timeout(timeout, drop_frames(&mut body)).await;
}

async fn drop_frames(body: &mut Body) {
    let mut dropped = 0;
    while let Some(Ok(frame)) = body.frame().await {
        dropped += frame.data_ref().map_or(0, Bytes::len);
        if dropped > DROPPED_BYTES_MAX {
            return;
        }
    }
}

fn too_slow(timeout: Duration) -> ApiError {
    let seconds = timeout.as_secs_f64();
    let message = format!("the body did not arrive within {seconds} seconds; repeat the request");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
}

fn too_large() -> ApiError {
    let message =
        format!("the body is longer than {BODY_BYTES_MAX} bytes; split it into several requests");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).against(
        format!("at most {BODY_BYTES_MAX} bytes"),
        serde_json::Value::Null,
    )
}

/// A struct that must be a JSON object: what is derived would also take a list of its fields' values.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// The experiment in the address.
pub struct Id(pub String);

impl FromRequestParts<AppState> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(id) = path.map_err(|error| {
            ApiError::malformed(format!("the address cannot be read: {}", error.body_text()))
        })?;
        // No experiment has another id, and PostgreSQL cannot even be asked for a zero byte.
        if request::is_id(&id) {
            Ok(Self(id))
        } else {
            Err(Refusal::NoExperiment { id }.into())
        }
    }
}

/// The query: what stands after the question mark.
pub struct QueryParams<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, app).await;
        query.map(|query| Self(query.0)).map_err(|error| {
            ApiError::unfit(format!(
                "the query has missing, unknown or mistyped fields: {}",
                error.body_text()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::http::{BODIES_KIBIBYTES, Shared};
    use crate::service::writer::Service;
    use crate::store::Location;

    #[tokio::test]
    async fn more_bodies_than_can_be_held_are_asked_to_come_back() {
        let folder = Scratch::new("bodies");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let app = Shared::new(Arc::clone(&service), Duration::from_millis(50));
        let ask = || read(Request::new(Body::from("{}")), &app);
        let others = Arc::clone(&app.bodies)
            .acquire_many_owned(BODIES_KIBIBYTES as u32 - 1)
            .await
            .unwrap();
        let refused = ask().await.err().unwrap();
        assert_eq!(
            (refused.status.as_u16(), refused.code, refused.retry_after),
            (503, "busy", Some(1))
        );
        drop(others);
        assert_eq!(ask().await.ok().unwrap().bytes, "{}");
        assert_eq!(app.bodies.available_permits(), BODIES_KIBIBYTES);
        service.stop();
    }
}
