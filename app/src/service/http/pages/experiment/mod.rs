//! One experiment: the answer in words first, then what to do, what comes next, numbers and figures.

mod alerts;
mod answer;
mod content;
mod counts;
pub mod data;
mod limits;
mod means;
mod next;
mod other;
mod progress;
mod rate;
pub mod rendered;
pub mod report;
mod shape;
mod strategy;
mod view;

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};

use super::live::{self, Live};
use super::parts::{self, Tab};
use super::{Guest, PageError, page, see, text};
use crate::service::http::AppState;
use crate::service::http::experiments::change;
use crate::service::http::extract::{Id, QueryParams};
use crate::service::http::state::State;
use crate::service::request::Change;
use crate::store::{Role, Status};
use rendered::rendered;
use strategy::TimeAxis;
use view::ExperimentView;

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
    QueryParams(along): QueryParams<TimeAxis>,
) -> Result<Response, PageError> {
    guest.0.require_for(Role::Read, &id)?;
    let rendered = match rendered(&app, &id, along, live::is_refresh(&headers)).await {
        Err(error) if error.code == "other_values" => return other::show(&app, &guest, &id).await,
        rendered => rendered?,
    };
    let view = &rendered.view;
    let over = !view.state.status.is_open();
    let live = if over {
        Live::over(&rendered.content)
    } else {
        Live::new(
            &format!("/experiments/{id}{}", along.query()),
            &rendered.content,
        )
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&id, view.name(), Tab::Overview))
            (live.markup)
            @if guest.0.role == Role::Admin && !over { (buttons(&view.state)) }
            (documents(view))
        };
        page(view.name(), Some(&guest), &content)
    }))
}

pub async fn pause(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Pause).await
}

pub async fn resume(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Resume).await
}

pub async fn close(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Close).await
}

async fn changed(
    app: &AppState,
    guest: &Guest,
    id: String,
    what: Change,
) -> Result<Response, PageError> {
    // The same function as the interface's, which checks the role: the buttons are only a courtesy.
    change(app, &guest.0, id.clone(), what, None).await?;
    Ok(see(&format!("/experiments/{id}")))
}

fn buttons(state: &State) -> Markup {
    let to = |what: &str| format!("/experiments/{}/{what}", state.id);
    html! {
        div.actions {
            @if state.status == Status::Paused {
                form method="post" action=(to("resume")) { button { "Resume" } }
            } @else {
                form method="post" action=(to("pause")) { button.secondary { "Pause" } }
            }
            // Two clicks, as it cannot be undone; without a script, which a dialog would need.
            details {
                summary role="button" class="outline secondary" { "Close" }
                p {
                    "This ends the experiment for good: it decides and learns nothing more, and its key is published "
                    "(if other experiments have the same key, once all of them are over)."
                    @if state.committed.is_some() { " As it has committed, nothing is lost by it." }
                }
                form method="post" action=(to("close")) { button.contrast { "Close it" } }
            }
        }
    }
}

fn documents(view: &ExperimentView) -> Markup {
    let id = &view.state.id;
    let to = |what: &str| format!("/v1/experiments/{id}/{what}");
    html! {
        h2 { "For the record" }
        p {
            // There is no certificate before the end, as it reveals the key.
            @if !view.state.status.is_open() { a href={ "/experiments/" (id) "/certificate" } { "Certificate" } " · " }
            a href={ "/experiments/" (id) "/seal" } { "Seal" } " · "
            a href={ "/experiments/" (id) "/report.html" } { "Report" } " · "
            a href=(to("log/download")) { "Log" } " · " a href=(to("state")) { "State" } " · "
            a href=(to("head")) { "Head" }
        }
        (facts(view))
        details { summary { "Spec" } pre { (view.experiment.spec) } }
    }
}

/// What identifies it.
fn facts(view: &ExperimentView) -> Markup {
    let key_hash = crate::log::chain::key_hash(view.experiment.salt, view.experiment.key);
    html! {
        dl.facts {
            dt { "Id" } dd { code { (view.state.id) } }
            dt { "Created" } dd { (text::time(view.experiment.created_at)) }
            dt { "Key hash" } dd.hash { (key_hash) }
            dt { "Decisions" } dd.hash { (view.state.digest) }
            dt { "Head" } dd.hash { (view.state.head) }
        }
    }
}
