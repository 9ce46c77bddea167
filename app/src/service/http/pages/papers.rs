//! The seal and the certificate, within the pages: the same text as the files that can be kept.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Html;
use maud::{Markup, html};

use super::{Guest, PageError, page};
use crate::papers;
use crate::service::http::AppState;
use crate::service::http::extract::Id;
use crate::service::http::log::certificate_of;
use crate::service::http::papers::{log_address, seal_of};

pub async fn certificate(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Html<String>, PageError> {
    let certificate = certificate_of(&app, &guest.0, &id).await?;
    let content = papers::certificate::content(&certificate, &log_address(&guest.0, &headers));
    let title = papers::certificate::title(&certificate);
    Ok(page(
        &title,
        Some(&guest),
        &framed(&id, "certificate", &content),
    ))
}

pub async fn seal(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Html<String>, PageError> {
    let seal = seal_of(&app, &guest.0, &id).await?;
    let content = papers::seal::content(&seal);
    let title = papers::seal::title(&seal);
    Ok(page(&title, Some(&guest), &framed(&id, "seal", &content)))
}

/// With the way back, and to the files.
fn framed(id: &str, name: &str, content: &Markup) -> Markup {
    html! {
        p.small {
            a href={ "/experiments/" (id) } { "The experiment" } " · "
            a href={ "/v1/experiments/" (id) "/" (name) ".html" } { "To print or keep" } " · "
            a href={ "/v1/experiments/" (id) "/" (name) } { "JSON" } " · "
            a href={ "/v1/experiments/" (id) "/log/download" } { "Log" }
        }
        (content)
    }
}
