//! Logging in with an API key, and out again.

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::html;
use serde::Deserialize;

use super::{PageError, page, see};
use crate::service::http::AppState;
use crate::service::http::access::COOKIE_NAME;
use crate::service::http::extract::StrangerForm;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    key: String,
}

pub async fn show() -> Html<String> {
    form("")
}

fn form(refusal: &str) -> Html<String> {
    let content = html! {
        h1 { "Log in" }
        @if !refusal.is_empty() { p.alarm { (refusal) } }
        form method="post" action="/login" {
            label {
                "API key"
                input type="password" name="key" autocomplete="current-password" placeholder="debora_…" required;
                small { "Made by " code { "debora keys add" } ". It stays in this browser until you log out or close it." }
            }
            button { "Log in" }
        }
    };
    page("Log in", None, &content)
}

pub async fn enter(
    State(app): State<AppState>,
    headers: HeaderMap,
    StrangerForm(Login { key }): StrangerForm<Login>,
) -> Result<Response, PageError> {
    // Pasted keys often bring a space or a line end.
    let key = key.trim();
    if app.access.holder(&app, key).await?.is_none() {
        let refusal = "This API key is unknown or revoked.";
        return Ok((StatusCode::UNAUTHORIZED, form(refusal)).into_response());
    }
    // Behind a proxy that speaks TLS the cookie is to travel over TLS alone. On loopback, which
    // has none, a browser would not keep a cookie marked so.
    let secure = headers
        .get("x-forwarded-proto")
        .is_some_and(|scheme| scheme == "https");
    Ok(with_cookie(key, if secure { "; Secure" } else { "" }))
}

pub async fn leave() -> Response {
    // The cookie is all there is of a session: the server keeps none that could be forgotten.
    with_cookie("", "; Max-Age=0")
}

fn with_cookie(key: &str, more: &str) -> Response {
    // Scripts cannot read it and other sites cannot have it sent. Without an age it ends with the
    // browser: a key is too powerful to lie around.
    let cookie = format!("{COOKIE_NAME}={key}; Path=/; HttpOnly; SameSite=Strict{more}");
    let mut response = see("/");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
