//! A person's stay on the pages: a cookie holds its token, the store the token's hash and the name of the key it stands for.
//!
//! Sessions are the store's, so that any node knows them, and are looked up for each request: a log-out holds at once, everywhere.

use axum::http::header::{COOKIE, FORWARDED, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};
use serde_json::Value;

use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::request::token_hash;
use crate::store::Store;

/// The cookie over plain HTTP, which a loopback address has.
const PLAIN_NAME: &str = "debora_session";

/// The cookie over TLS. Of a name with this prefix browsers know that the very host set it, and over TLS.
const SECURE_NAME: &str = "__Host-debora_session";

/// The headers in which proxies say by which scheme a request came; of a list the first counts, as each hop adds its own behind.
const SCHEMES: [&str; 5] = [
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-url-scheme",
    "x-scheme",
    "cloudfront-forwarded-proto",
];

/// The headers that are "on" if it came by TLS.
const SWITCHES: [&str; 2] = ["x-forwarded-ssl", "front-end-https"];

/// The token that comes with a request.
pub fn token(headers: &HeaderMap) -> Option<&str> {
    // Over TLS the other name is not taken: a neighbouring host, or anyone on the way of a plain request, can plant such a
    // cookie and so have a person work in a session of theirs.
    let plain = || cookie(headers, PLAIN_NAME).filter(|_| !came_by_tls(headers));
    cookie(headers, SECURE_NAME).or_else(plain)
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(found, _)| *found == name)
        .map(|(_, token)| token)
}

/// The name of the key that a token stands for, unless the session is over.
pub async fn key_name(app: &AppState, token: &str) -> Result<Option<String>, ApiError> {
    let hash = token_hash(token);
    let own = (app.service.clock)().wall;
    let read = move |store: &mut Store| {
        let session = store.session(&hash)?;
        // By the clock that set its end: a node that is ahead is not to end what others began.
        let now = store.now().unwrap_or(own);
        Ok(session.filter(|session| now < session.expires_at))
    };
    let session = app.read(read).await?;
    Ok(session.map(|session| session.key_name))
}

/// The cookie that begins a session.
pub fn begun(token: &str, headers: &HeaderMap) -> HeaderValue {
    // Without an age it ends with the browser, at the latest.
    if came_by_tls(headers) {
        set_cookie(SECURE_NAME, token, "; Secure")
    } else {
        // Where there is no TLS a browser would not keep a cookie marked so.
        set_cookie(PLAIN_NAME, token, "")
    }
}

/// The cookies that have a browser forget it, whichever it has.
pub fn ended() -> [HeaderValue; 2] {
    [
        set_cookie(PLAIN_NAME, "", "; Max-Age=0"),
        set_cookie(SECURE_NAME, "", "; Secure; Max-Age=0"),
    ]
}

fn set_cookie(name: &str, token: &str, more: &str) -> HeaderValue {
    // Scripts cannot read it, and other sites cannot have it sent.
    let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict{more}");
    HeaderValue::from_str(&cookie).expect("tokens are digits")
}

/// Whether a request came by TLS, to us or to a proxy, by any header that is known to say so.
///
/// Nobody gains by making one up: the cookie of whoever sends it is marked, or not taken.
pub fn came_by_tls(headers: &HeaderMap) -> bool {
    let is_https = |value: &str| value.trim().eq_ignore_ascii_case("https");
    let first = |value: &str| is_https(value.split(',').next().unwrap_or_default());
    let switched_on = |value: &str| value.trim().eq_ignore_ascii_case("on");
    // A browser's own word, with forms alone: it helps where a proxy says nothing.
    let page_is_safe = |value: &str| value.starts_with("https://");
    let has = |name: &str, holds: &dyn Fn(&str) -> bool| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(holds)
    };
    SCHEMES.iter().any(|name| has(name, &first))
        || SWITCHES.iter().any(|name| has(name, &switched_on))
        || has(FORWARDED.as_str(), &forwarded_by_tls)
        || has("cf-visitor", &visited_by_tls)
        || has(ORIGIN.as_str(), &page_is_safe)
}

/// `for=192.0.2.60;proto=https, for=10.0.0.1` (RFC 7239): the first hop's scheme.
fn forwarded_by_tls(value: &str) -> bool {
    let hop = value.split(',').next().unwrap_or_default();
    let mut pairs = hop.split(';').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, scheme)| {
        name.trim().eq_ignore_ascii_case("proto")
            && scheme
                .trim()
                .trim_matches('"')
                .eq_ignore_ascii_case("https")
    })
}

/// `{"scheme":"https"}`, as Cloudflare says it.
fn visited_by_tls(value: &str) -> bool {
    serde_json::from_str(value).is_ok_and(|visitor: Value| visitor["scheme"] == "https")
}
