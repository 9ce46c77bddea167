//! One experiment: the answer in words first, then what to do, what comes next, numbers and figures.

mod alerts;
mod answer;
mod content;
mod counts;
pub mod data;
mod holdback;
mod limits;
mod means;
mod next;
mod other;
mod progress;
pub mod rendered;
pub mod report;
mod shape;
mod strategy;
mod view;

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};

use super::admin::changes;
use super::live::{self, Live};
use super::parts::{self, Tab};
use super::{Guest, PageError, page, text};
use crate::log::chain::key_hash;
use crate::reading::Reading;
use crate::service::http::AppState;
use crate::service::http::extract::{Id, QueryParams};
use crate::store::Role;
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
    let over = !view.reading.is_open();
    let live = if over {
        // It does not change any more, and is not asked for again.
        Live::over(&rendered.content)
    } else {
        Live::new(
            &format!("/experiments/{id}{}", along.query()),
            &rendered.content,
        )
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&id, view.reading.name(), Tab::Overview))
            (live.markup)
            // What is advised to others, they can ask for.
            @if over {}
            @else if guest.0.role == Role::Admin { (changes::forms(&view.reading)) }
            @else { p.small { "Someone whose key has role admin can pause, resume or close it." } }
            (documents(view))
        };
        page(view.reading.name(), Some(&guest), &content)
    }))
}

fn documents(view: &ExperimentView) -> Markup {
    let id = view.reading.id();
    let to = |what: &str| format!("/v1/experiments/{id}/{what}");
    html! {
        h2 { "For the record" }
        p {
            // There is no certificate before the end, as it reveals the key.
            @if !view.reading.is_open() { a href={ "/experiments/" (id) "/certificate" } { "Certificate" } " · " }
            a href={ "/experiments/" (id) "/seal" } { "Seal" } " · "
            a href={ "/experiments/" (id) "/report.html" } { "Report" } " · "
            a href=(to("log/download")) { "Log" } " · " a href=(to("state")) { "State" } " · "
            a href=(to("head")) { "Head" }
        }
        (facts(&view.reading))
        details { summary { "Spec" } pre { (view.reading.experiment.spec) } }
    }
}

/// What identifies it.
fn facts(reading: &Reading) -> Markup {
    let (experiment, progress) = (&reading.experiment, &reading.progress);
    let key_hash = key_hash(experiment.salt, experiment.key);
    html! {
        dl.facts {
            dt { "Id" } dd { code { (experiment.id) } }
            dt { "Created" } dd { (text::time(experiment.created_at)) }
            dt { "Key hash" } dd.hash { (key_hash) }
            dt { "Decisions" } dd.hash { (progress.digest) }
            dt { "Head" } dd.hash { (progress.head) }
        }
    }
}
