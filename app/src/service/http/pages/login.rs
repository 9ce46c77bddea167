//! Logging in with an API key, and out again.

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use maud::html;
use serde::Deserialize;

use super::errors::{PageError, is_local};
use super::{Guest, page, parts, see};
use crate::service::http::error::ApiError;
use crate::service::http::extract::{QueryParams, StrangerForm};
use crate::service::http::{AppState, session};
use crate::service::request::token_hash;
use crate::service::sessions::{LogIn, LogOut};

/// Where to go afterwards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterLogin {
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    key: String,
    next: Option<String>,
}

/// The page to go to: what the address says is anybody's, so it must be on this site.
fn target(next: Option<&str>) -> &str {
    next.filter(|next| is_local(next)).unwrap_or("/")
}

pub async fn show(
    guest: Result<Guest, PageError>,
    QueryParams(AfterLogin { next }): QueryParams<AfterLogin>,
) -> Result<Response, PageError> {
    let next = target(next.as_deref());
    match guest {
        // Whoever is let in already, as everyone is where there are no keys, has nothing to type.
        Ok(_) => Ok(see(next)),
        Err(PageError(error)) if error.status == StatusCode::UNAUTHORIZED => {
            Ok(form("", next).into_response())
        }
        Err(error) => Err(error),
    }
}

fn form(refusal: &str, next: &str) -> Html<String> {
    let content = html! {
        h1 { "Log in" }
        @if !refusal.is_empty() { (parts::alert(refusal, "Check that all of it was pasted, or ask an admin for another.")) }
        @if next != "/" { p { "This page needs a key: " code.breaks { (next) } } }
        form.narrow method="post" action="/login" {
            label for="key" { "API key" }
            input #key type="password" name="key" autocomplete="current-password" placeholder="debora_…" required
                aria-describedby="key-help" aria-invalid=[(!refusal.is_empty()).then_some("true")];
            small #key-help {
                "Made by an admin under Admin, API keys, or by " code { "debora keys add" }
                ". The browser keeps a token in its place, for 12 hours or until you log out or close it."
            }
            @if next != "/" { input type="hidden" name="next" value=(next); }
            button { "Log in" }
        }
    };
    page("Log in", None, &content)
}

pub async fn enter(
    State(app): State<AppState>,
    headers: HeaderMap,
    StrangerForm(Login { key, next }): StrangerForm<Login>,
) -> Result<Response, PageError> {
    let next = target(next.as_deref());
    // Pasted keys often bring a space or a line end.
    let key = key.trim();
    let Some(holder) = app.access.holder(&app, key).await? else {
        let refusal = "This API key is unknown or revoked.";
        return Ok((StatusCode::UNAUTHORIZED, form(refusal, next)).into_response());
    };
    let cookie = begin(&app, &holder.name, &headers).await?;
    Ok(([(SET_COOKIE, cookie)], see(next)).into_response())
}

/// Begins a session of a key: the cookie for it.
pub async fn begin(
    app: &AppState,
    key_name: &str,
    headers: &HeaderMap,
) -> Result<HeaderValue, ApiError> {
    let key_name = key_name.into();
    let token = app.service.ask_store(LogIn { key_name }).await?;
    Ok(session::begun(&token, headers))
}

pub async fn leave(State(app): State<AppState>, headers: HeaderMap) -> Result<Response, PageError> {
    // In the store and not in this browser alone: a token that somebody copied must end, too.
    if let Some(token) = session::token(&headers)
        // Looked up first: strangers are not to have the writer commit nothing over and over.
        && session::key_name(&app, token).await?.is_some()
    {
        let hash = token_hash(token);
        app.service.ask_store(LogOut { hash }).await?;
    }
    let cookies = session::ended().map(|cookie| (SET_COOKIE, cookie));
    Ok((AppendHeaders(cookies), see("/login")).into_response())
}
