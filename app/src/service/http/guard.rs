//! What is refused before a handler sees it, and what is answered when one fails.

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

/// Has a request answered by its route, unless it is a change that a page from elsewhere asks for; a panic is answered, too.
///
/// Browsers say where such requests come from; other programs do not.
pub async fn guarded(mut router: Router, request: Request) -> Response {
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if let Some(origin) = elsewhere(request.headers()).filter(|_| !reads) {
        let message = format!(
            "a page of {origin:?} may not change anything here; use the pages of this service"
        );
        let error = ApiError::new(StatusCode::FORBIDDEN, "cross_origin", message);
        return error
            .against("a page of this service", origin)
            .into_response();
    }
    // A router is always ready, and never fails.
    let mut answer = pin!(router.call(request));
    poll_fn(|context| {
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
    // Said by the browser itself where the connection is safe, and right behind a proxy, too, which may change the host.
    if let Some(site) = headers.get(SITE).map(text) {
        let here = ["same-origin", "none"].contains(&site.as_str());
        return if here { None } else { origin.or(Some(site)) };
    }
    let authority =
        |origin: &String| Some(origin.parse::<Uri>().ok()?.authority()?.as_str().to_owned());
    origin.filter(|origin| authority(origin) != headers.get(HOST).map(text))
}

/// Answers for a handler that panicked, which is a bug of ours.
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let detail = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    let message = "the service made a mistake, and its log says more; the request may or may not have been done";
    let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
    ApiError {
        detail: Some(detail.unwrap_or("a panic").into()),
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
