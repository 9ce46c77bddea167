//! What is refused before a handler sees it, and what is answered when one fails.

use std::any::Any;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::service::http::error::ApiError;

/// Refuses changes that a page from elsewhere asks for. Browsers name the origin of such requests; other programs do not.
pub async fn same_origin(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default().to_owned());
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if let Some(origin) = origin.filter(|origin| !reads && authority(origin).as_deref() != host) {
        let message = format!("a page of {origin:?} may not change anything here; use the pages of this service");
        let error = ApiError::new(StatusCode::FORBIDDEN, "cross_origin", message);
        return error.against("Origin = Host", origin).into_response();
    }
    next.run(request).await
}

fn authority(origin: &str) -> Option<String> {
    Some(origin.parse::<Uri>().ok()?.authority()?.as_str().to_owned())
}

/// Answers for a handler that panicked, which is a bug of ours.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let detail = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let message = "the service made a mistake, and its log says more; the request may or may not have been done";
    let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
    ApiError { detail: Some(detail.unwrap_or("a panic").into()), ..error }.into_response()
}
