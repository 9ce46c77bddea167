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
use crate::service::http::extract::Form;

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
    Form(Login { key }): Form<Login>,
) -> Result<Response, PageError> {
    let key = key.trim();
    if app.access.holder(&app, key).await?.is_none() {
        let refusal = "This API key is not known, or revoked.";
        return Ok((StatusCode::UNAUTHORIZED, form(refusal)).into_response());
    }
    // Behind a proxy that speaks TLS the cookie never travels without it.
    let secure = headers
        .get("x-forwarded-proto")
        .is_some_and(|scheme| scheme == "https");
    Ok(with_cookie(key, if secure { "; Secure" } else { "" }))
}

pub async fn leave() -> Response {
    with_cookie("", "; Max-Age=0")
}

fn with_cookie(key: &str, more: &str) -> Response {
    let cookie = format!("{COOKIE_NAME}={key}; Path=/; HttpOnly; SameSite=Strict{more}");
    let mut response = see("/");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
