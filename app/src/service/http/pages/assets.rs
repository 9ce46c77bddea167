//! Style and script, built into the program: a service behind a firewall has no other place to get them from.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::PageError;
use crate::service::http::error::ApiError;

const CSS: &str = "text/css; charset=utf-8";

const FILES: [(&str, &str, &[u8]); 3] = [
    (
        "pico.min.css",
        CSS,
        include_bytes!("../../../../assets/pico.min.css"),
    ),
    (
        "debora.css",
        CSS,
        include_bytes!("../../../../assets/debora.css"),
    ),
    (
        "htmx.min.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../../assets/htmx.min.js"),
    ),
];

pub async fn show(Path(name): Path<String>) -> Result<Response, PageError> {
    let file = FILES.into_iter().find(|(known, ..)| *known == name);
    let (_, kind, bytes) = file
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "no_route", "there is no such file"))?;
    // An hour, as the names stay the same when the program is replaced by a newer one.
    Ok((
        [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "public, max-age=3600"),
        ],
        bytes,
    )
        .into_response())
}
