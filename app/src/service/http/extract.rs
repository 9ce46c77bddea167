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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::counts::Shed;
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::limits::quoted;
use crate::service::request::{self, Refusal};

/// The longest body: 10,000 outcomes, the most in a request, with 800 bytes for each.
pub const BODY_BYTES_MAX: usize = 8 << 20;

/// The longest body that anyone may send: a login form has a key of 71 bytes.
const STRANGER_BYTES_MAX: usize = 4 << 10;

/// How long a body may bring nothing, at most: a client that is there sends at least something in five seconds.
const STALL_MAX: Duration = Duration::from_secs(5);

/// How much of a body that is refused is read and dropped: many clients look at the answer only after they have sent all of it,
/// and a connection closed before that shows them an error of the network instead.
const DROPPED_BYTES_MAX: usize = 64 << 20;

/// How long such a body may bring nothing: a client that sends no more waits for its answer as long.
const DROPPED_STALL: Duration = Duration::from_millis(500);

/// How much of a body takes nothing of what bodies share, so that long ones never hold up requests for decisions. What all of
/// these take together is bounded by the connections: 64 MiB by default.
const FREE_BYTES: usize = 64 << 10;

/// A body within its limits. While it is held, it counts towards what all bodies together may take.
pub struct Raw {
    bytes: Bytes,
    _budget: Option<Budget>,
}

/// A body of JSON.
pub struct Json(Raw);

/// A body of form fields.
pub struct Form<T>(pub T);

/// A short body of form fields, which takes nothing of what bodies share: for callers who are not known yet.
pub struct StrangerForm<T>(pub T);

impl Json {
    /// Reads it.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.0.bytes).map_err(|error| self.refused::<T>(&error))
    }

    fn refused<'a, T: Deserialize<'a>>(&'a self, error: &serde_json::Error) -> ApiError {
        if error.classify() != Category::Data {
            return ApiError::malformed(format!("the body is not JSON: {error}"));
        }
        // Read again for the path: to keep it on the way would cost every body that is right.
        let mut reader = serde_json::Deserializer::from_slice(&self.0.bytes);
        let again = serde_path_to_error::deserialize::<_, T>(&mut reader).err();
        let path = again.map(|error| error.path().to_string());
        let place = match path.as_deref() {
            // The whole.
            None | Some(".") => String::new(),
            Some(path) => format!(" at {:?}", quoted(path)),
        };
        ApiError::unfit(format!(
            "the body has missing, unknown or mistyped fields{place}: {error}"
        ))
    }

    /// Whether it begins as an object does.
    pub fn is_object(&self) -> bool {
        self.0.bytes.trim_ascii_start().starts_with(b"{")
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
        fields(&raw.bytes).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<AppState> for StrangerForm<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        expect(request.headers(), "application/x-www-form-urlencoded")?;
        let raw = within(request, app.timeout, STRANGER_BYTES_MAX, None).await?;
        fields(&raw.bytes).map(Self)
    }
}

fn fields<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_urlencoded::from_bytes(bytes).map_err(|error| {
        ApiError::unfit(format!(
            "the form has missing, unknown or mistyped fields: {error}"
        ))
    })
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

/// Reads a body. Its memory is taken from what all bodies share as it arrives, not as it is declared: a client that declares much
/// and sends nothing holds nothing.
async fn read(request: Request, app: &AppState) -> Result<Raw, ApiError> {
    let budget = Some(Budget::of(app));
    let raw = within(request, app.timeout, BODY_BYTES_MAX, budget).await;
    if raw.as_ref().is_err_and(|error| error.code == "busy") {
        app.service.counts.shed(Shed::Bodies);
    }
    raw
}

/// Reads a body of at most `most` bytes, which takes its memory from a budget if there is one.
async fn within(
    request: Request,
    timeout: Duration,
    most: usize,
    mut budget: Option<Budget>,
) -> Result<Raw, ApiError> {
    let declared = declared_length(request.headers());
    // A client that asks before it sends is refused right away, and sends nothing.
    let asks_first = request.headers().contains_key(EXPECT);
    let mut body = request.into_body();
    let collected = if declared.is_some_and(|length| length > most) {
        Err(too_large(most))
    } else {
        let collected = collect(&mut body, timeout, most, budget.as_mut());
        let collected = tokio::time::timeout(timeout, collected).await;
        collected.unwrap_or_else(|_| Err(too_slow(timeout)))
    };
    let error = match collected {
        Ok(bytes) => {
            let _budget = budget;
            return Ok(Raw { bytes, _budget });
        }
        Err(error) => error,
    };
    // What was read is gone, and its memory with it: the rest, which may take long to come, takes none.
    drop(budget);
    // What has stopped arriving is not worth waiting for.
    if error.status != StatusCode::REQUEST_TIMEOUT && !asks_first {
        let _ = tokio::time::timeout(timeout, drop_rest(body)).await;
    }
    Err(error)
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// What a body takes of the memory that all bodies share.
struct Budget {
    shared: Arc<Semaphore>,
    /// In kibibytes: the semaphore counts in 32 bits.
    taken: OwnedSemaphorePermit,
}

impl Budget {
    /// Nothing so far.
    fn of(app: &AppState) -> Self {
        let shared = Arc::clone(&app.bodies);
        let taken = Arc::clone(&shared).try_acquire_many_owned(0);
        Self {
            taken: taken.expect("the semaphore is never closed"),
            shared,
        }
    }

    /// Takes what is missing for this many bytes. Refused at once if it is not there: to wait would hold up a client that can
    /// go elsewhere.
    fn cover(&mut self, bytes: usize) -> Result<(), ApiError> {
        let counted = bytes.saturating_sub(FREE_BYTES).div_ceil(1024);
        let missing = counted.saturating_sub(self.taken.num_permits());
        let more = Arc::clone(&self.shared).try_acquire_many_owned(missing as u32);
        self.taken.merge(more.map_err(|_| too_many_bodies())?);
        Ok(())
    }
}

async fn collect(
    body: &mut Body,
    timeout: Duration,
    most: usize,
    mut budget: Option<&mut Budget>,
) -> Result<Bytes, ApiError> {
    let mut bytes = Vec::new();
    let stall = timeout.min(STALL_MAX);
    while let Some(frame) = tokio::time::timeout(stall, body.frame())
        .await
        .map_err(|_| too_slow(stall))?
    {
        let frame =
            frame.map_err(|_| ApiError::malformed("the body broke off; repeat the request"))?;
        // Frames that are not data are trailers, which mean nothing here.
        let data = frame.data_ref().map_or(&[][..], |data| data);
        // A body sent in chunks declares no length, so it is counted as it arrives.
        if bytes.len() + data.len() > most {
            return Err(too_large(most));
        }
        if let Some(budget) = &mut budget {
            budget.cover(bytes.len() + data.len())?;
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.into())
}

/// Reads what follows and drops it, as long as it keeps coming.
async fn drop_rest(mut body: Body) {
    let mut dropped = 0;
    while dropped <= DROPPED_BYTES_MAX
        && let Ok(Some(Ok(frame))) = tokio::time::timeout(DROPPED_STALL, body.frame()).await
    {
        dropped += frame.data_ref().map_or(0, Bytes::len);
    }
}

fn too_many_bodies() -> ApiError {
    ApiError::busy(format!(
        "the service is reading as many long bodies as it can hold; repeat the request later, or send at most {FREE_BYTES} bytes"
    ))
}

fn too_slow(limit: Duration) -> ApiError {
    let seconds = limit.as_secs_f64();
    let message =
        format!("nothing more of the body arrived within {seconds} seconds; repeat the request");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
}

fn too_large(most: usize) -> ApiError {
    let message = format!("the body is longer than {most} bytes; send less at a time");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        .against(format!("at most {most} bytes"), serde_json::Value::Null)
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
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    use hyper::body::Frame;

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
        let ask = |bytes: usize| read(Request::new(Body::from(" ".repeat(bytes))), &app);
        let take = |kibibytes: usize| {
            Arc::clone(&app.bodies)
                .try_acquire_many_owned(kibibytes as u32)
                .unwrap()
        };
        let long = FREE_BYTES + 1025;
        // Full, and with room for the first of two kibibytes.
        for others in [BODIES_KIBIBYTES, BODIES_KIBIBYTES - 1] {
            let others = take(others);
            let refused = ask(long).await.err().unwrap();
            assert_eq!(
                (refused.status.as_u16(), refused.code, refused.retry_after),
                (503, "busy", Some(1))
            );
            // What requests for decisions need is always there.
            assert!(ask(FREE_BYTES).await.is_ok());
            drop(others);
        }
        let one = ask(long).await.ok().unwrap();
        assert_eq!(app.bodies.available_permits(), BODIES_KIBIBYTES - 2);
        drop(one);
        assert_eq!(app.bodies.available_permits(), BODIES_KIBIBYTES);
        service.stop().unwrap();
    }

    /// A body in frames, which at its end notes what is left of the memory.
    struct Frames {
        frames: Vec<Bytes>,
        shared: Arc<Semaphore>,
        left: Arc<AtomicUsize>,
    }

    impl hyper::body::Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let left = self.shared.available_permits();
            self.left.store(left, Ordering::Relaxed);
            Poll::Ready(self.frames.pop().map(|frame| Ok(Frame::data(frame))))
        }
    }

    #[tokio::test]
    async fn a_body_that_is_refused_holds_nothing_while_its_rest_is_dropped() {
        let folder = Scratch::new("refused-bodies");
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let app = Shared::new(Arc::clone(&service), Duration::from_millis(50));
        let left = Arc::new(AtomicUsize::new(0));
        let spaces = |bytes| Bytes::from(vec![b' '; bytes]);
        let body = Frames {
            // The second is too much, and the third is what is dropped.
            frames: vec![spaces(1), spaces(BODY_BYTES_MAX), spaces(2 * FREE_BYTES)],
            shared: Arc::clone(&app.bodies),
            left: Arc::clone(&left),
        };
        let refused = read(Request::new(Body::new(body)), &app).await;
        assert_eq!(refused.err().unwrap().code, "too_large");
        assert_eq!(left.load(Ordering::Relaxed), BODIES_KIBIBYTES);
        service.stop().unwrap();
    }
}
