//! All experiments.

use axum::extract::State;
use axum::response::Html;
use debora::measure::words::{percent, whole};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Guest, PageError, page, text};
use crate::service::http::AppState;
use crate::service::http::experiments::{self, LISTED_MAX, List, Listed};
use crate::service::http::extract::QueryParams;
use crate::store::Role;

/// Which experiments: those created before this one, or the newest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    before: Option<String>,
}

pub async fn show(
    State(app): State<AppState>,
    guest: Guest,
    QueryParams(Before { before }): QueryParams<Before>,
) -> Result<Html<String>, PageError> {
    guest.0.require(Role::Read)?;
    let List { experiments, next } =
        experiments::listed(&app, &guest.0, before, LISTED_MAX, true).await?;
    let content = html! {
        h1 { "Experiments" }
        @if experiments.is_empty() {
            p { "There are no experiments yet." }
        } @else {
            div.scroll { (table(&experiments)) }
            @if let Some(last) = next { p { a href={ "/?before=" (last) } { "Older experiments" } } }
        }
    };
    Ok(page("Experiments", Some(&guest), &content))
}

fn table(experiments: &[Listed]) -> Markup {
    html! {
        table.list {
            thead { tr { th { "Experiment" } th { "Status" } th.number { "Epoch" } th { "Rounds" } th.wide { "Created" } } }
            tbody {
                // The newest first: the interface lists the oldest first, but people look for the latest.
                @for experiment in experiments {
                    tr {
                        td {
                            a href={ "/experiments/" (experiment.id) } {
                                (experiment.name.as_ref().unwrap_or(&experiment.id))
                            }
                            @if experiment.name.is_some() { br; span.small { (experiment.id) } }
                        }
                        td { (text::word(experiment.status)) }
                        td.number { (whole(experiment.epoch)) }
                        td {
                            (whole(experiment.decided)) " of " (whole(experiment.horizon))
                            " (" (percent(experiment.decided as f64 / experiment.horizon as f64)) ")"
                            progress value=(experiment.decided) max=(experiment.horizon) {}
                        }
                        td.small.wide { (text::time(experiment.created_at)) }
                    }
                }
            }
        }
    }
}
