//! Style and scripts, built into the program: a service behind a firewall has no other place to get them from.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::compress::{gzip, takes_gzip};
use super::{PageError, short_hash};
use crate::service::http::error::ApiError;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the pages.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    compressed: Vec<u8>,
    /// Its address, which changes with what it holds: a browser may keep it for good.
    address: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files: Vec<(_, _, &[u8])> = vec![
        (
            "pico.min.css",
            CSS,
            include_bytes!("../../../../assets/pico.min.css"),
        ),
        (
            "debora.css",
            CSS,
            concat!(
                include_str!("../../../../assets/figures.css"),
                include_str!("../../../../assets/debora.css")
            )
            .as_bytes(),
        ),
        (
            "htmx.min.js",
            SCRIPT,
            include_bytes!("../../../../assets/htmx.min.js"),
        ),
        (
            "idiomorph-ext.min.js",
            SCRIPT,
            include_bytes!("../../../../assets/idiomorph-ext.min.js"),
        ),
        (
            "debora.js",
            SCRIPT,
            include_bytes!("../../../../assets/debora.js"),
        ),
        (
            "new.js",
            SCRIPT,
            include_bytes!("../../../../assets/new.js"),
        ),
    ];
    files.into_iter().map(Asset::new).collect()
});

impl Asset {
    fn new((name, kind, bytes): (&'static str, &'static str, &'static [u8])) -> Self {
        Self {
            name,
            kind,
            bytes,
            compressed: gzip(bytes),
            address: format!("/assets/{name}?{}", short_hash(bytes)),
        }
    }
}

/// The address of a file that is among them.
pub fn address(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    &asset.expect("pages name files that there are").address
}

pub async fn show(Path(name): Path<String>, asked: HeaderMap) -> Result<Response, PageError> {
    let asset = ASSETS
        .iter()
        .find(|asset| asset.name == name)
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "no_route", "there is no such file"))?;
    let headers = [
        (CONTENT_TYPE, asset.kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (VARY, "accept-encoding"),
    ];
    if !takes_gzip(&asked) {
        return Ok((headers, asset.bytes).into_response());
    }
    let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
    Ok((headers, encoding, &*asset.compressed).into_response())
}
