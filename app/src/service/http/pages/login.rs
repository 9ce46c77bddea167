//! Logging in with an API key, and out again.

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use maud::html;
use serde::Deserialize;

use super::{PageError, page, see};
use crate::service::http::extract::StrangerForm;
use crate::service::http::{AppState, session};
use crate::service::request::{Granted, Request, token_hash};

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
                small { "Made by " code { "debora keys add" } ". The browser keeps a token in its place, for 12 hours or until you log out or close it." }
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
    let Some(holder) = app.access.holder(&app, key).await? else {
        let refusal = "This API key is unknown or revoked.";
        return Ok((StatusCode::UNAUTHORIZED, form(refusal)).into_response());
    };
    let key_name = holder.name;
    let Granted::LoggedIn(token) = app.service.serve(Request::LogIn { key_name }).await? else {
        unreachable!("a log-in is answered with a token")
    };
    Ok(([(SET_COOKIE, session::begun(&token, &headers))], see("/")).into_response())
}

pub async fn leave(State(app): State<AppState>, headers: HeaderMap) -> Result<Response, PageError> {
    // In the store and not in this browser alone: a token that somebody copied must end, too.
    if let Some(token) = session::token(&headers)
        // Looked up first: strangers are not to have the writer commit nothing over and over.
        && session::key_name(&app, token).await?.is_some()
    {
        let hash = token_hash(token);
        app.service.serve(Request::LogOut { hash }).await?;
    }
    let cookies = session::ended().map(|cookie| (SET_COOKIE, cookie));
    Ok((AppendHeaders(cookies), see("/")).into_response())
}
