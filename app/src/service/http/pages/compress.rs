//! Pages travel compressed: a list of a thousand experiments is tenfold smaller.

use std::io::Write as _;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;

/// What fits into one packet is not worth the work.
const WORTH_BYTES: u64 = 1_400;

/// Of a page that shows a secret beside text that others can choose: the size of what is compressed would tell of the secret.
#[derive(Clone)]
pub struct Secret;

/// Whether a browser takes it.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    // With a weight of zero it is refused, which nobody does in earnest; then any weight is an answer.
    codings.any(|coding| coding.split(';').next().unwrap_or("").trim() == "gzip")
}

/// The bytes, compressed.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    // The fourth of nine levels: beyond it, pages take longer and get hardly smaller.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// The same answer, compressed if it is worth it.
pub async fn compressed(response: Response) -> Response {
    if !is_worth(&response) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let body = body.collect().await;
    let bytes = body
        .expect("a body whose size is known is in memory")
        .to_bytes();
    // Away from the threads that serve requests: a large page takes milliseconds.
    let smaller = tokio::task::spawn_blocking(move || gzip(&bytes)).await;
    let smaller = smaller.expect("compressing does not panic");
    head.headers.remove(CONTENT_LENGTH);
    head.headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers
        .insert(VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(head, Body::from(smaller))
}

fn is_worth(response: &Response) -> bool {
    let headers = response.headers();
    let is_text = headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes();
        kind.starts_with(b"text/") || kind.starts_with(b"application/json")
    });
    // A body of unknown size is a stream, which must not be held up.
    let long = (response.body().size_hint().exact()).is_some_and(|bytes| bytes >= WORTH_BYTES);
    let secret = response.extensions().get::<Secret>().is_some();
    is_text && long && !secret && !headers.contains_key(CONTENT_ENCODING)
}
