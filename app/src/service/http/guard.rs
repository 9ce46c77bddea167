//! What is refused before a handler sees it, and what is answered when a handler panics.

use std::any::Any;
use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use tower::Service as _;

use crate::service::http::error::ApiError;

/// What a browser says about where a request comes from.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Has a request answered by its route, unless it is a change that a page of another site asks for. A panic is answered, too.
///
/// Browsers say where such requests come from; other programs have no page, and say nothing.
pub async fn guarded(mut router: Router, request: Request) -> Response {
    // Reading is harmless: the browser shows the answer to a page of another site only if we allow it.
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if let Some(origin) = elsewhere(request.headers()).filter(|_| !reads) {
        let message = format!(
            "a page of {origin:?} cannot change anything here; use the pages of this service"
        );
        let error = ApiError::new(StatusCode::FORBIDDEN, "cross_origin", message);
        return error
            .against("a page of this service", origin)
            .into_response();
    }
    // A router is always ready and never fails, so it is called without asking whether it is ready.
    let mut answer = pin!(router.call(request));
    poll_fn(|context| {
        // Without this a panic would end the connection, and the client would not know whether to
        // repeat its request. Nothing half-changed is seen again: handlers only share what is locked.
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Ok(panicked(panic))))
    })
    .await
    .unwrap_or_else(|never: Infallible| match never {})
}

/// Where a request comes from, if that is a page of another site.
fn elsewhere(headers: &HeaderMap) -> Option<String> {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let origin = headers.get(ORIGIN).map(text);
    // Preferred where the browser sends it, which it does on safe connections: it stays right
    // behind a proxy that changes the host. "none" is an address that was typed, or a bookmark.
    if let Some(site) = headers.get(SITE).map(text) {
        let here = ["same-origin", "none"].contains(&site.as_str());
        return if here { None } else { origin.or(Some(site)) };
    }
    origin.filter(|origin| authority(origin) != headers.get(HOST).map(text))
}

/// The host and port of an origin. "null", which sandboxed pages send, has none and is like no host.
fn authority(origin: &str) -> Option<String> {
    let uri = origin.parse::<Uri>().ok()?;
    Some(uri.authority()?.as_str().to_owned())
}

/// Answers for a handler that panicked, which is a bug of ours.
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    // For the log alone: a panic's text may hold what the caller must not see.
    let detail = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    let message =
        "internal error; see the server log (the request may or may not have been carried out)";
    let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
    ApiError {
        cause: Some(detail.unwrap_or("a panic").into()),
        ..error
    }
    .into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;

    use super::*;

    #[test]
    fn requests_from_elsewhere_are_told_apart() {
        let from = |pairs: &[(&'static str, &'static str)]| {
            elsewhere(
                &pairs
                    .iter()
                    .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                    .collect(),
            )
        };
        let (host, site) = (("host", "a.example"), "sec-fetch-site");
        assert_eq!(from(&[host]), None);
        assert_eq!(from(&[host, ("origin", "https://a.example")]), None);
        assert_eq!(
            from(&[
                ("host", "inner:8080"),
                ("origin", "https://a.example"),
                (site, "same-origin")
            ]),
            None
        );
        for origin in [
            "https://b.example",
            "https://a.example:8080",
            "null",
            "https://a.example.b.example",
        ] {
            assert_eq!(from(&[host, ("origin", origin)]).as_deref(), Some(origin));
        }
        assert!(from(&[host, ("origin", "https://a.example"), (site, "cross-site")]).is_some());
        assert!(from(&[host, (site, "same-site")]).is_some());
    }

    #[tokio::test]
    async fn a_panic_is_answered_and_its_text_is_not() {
        async fn fails() -> StatusCode {
            tokio::task::yield_now().await;
            panic!("index {} out of range", 7)
        }
        let response = guarded(
            Router::new().route("/", get(fails)),
            Request::new(Body::empty()),
        )
        .await;
        assert_eq!(response.status(), 500);
        let body = axum::body::to_bytes(response.into_body(), 10_000)
            .await
            .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(
            body["code"] == "internal" && !body.to_string().contains("index 7"),
            "{body}"
        );
    }
}
