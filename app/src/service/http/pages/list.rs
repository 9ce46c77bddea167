//! All experiments, and the form that creates one.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use debora::measure::words::{percent, whole};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Guest, PageError, page, see, text};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{self, LISTED_MAX, List, Listed, given_key};
use crate::service::http::extract::{Form, QueryParams};
use crate::service::request::Create;
use crate::store::Role;

/// What the form starts with: a small experiment that can be created as it is, and shows what a spec may say.
const EXAMPLE: &str = r#"name    = "model routing"
policy  = "soft"                 # free | soft | hard
horizon = 1_000_000
rho     = 0.1
actions = ["small", "large"]

[reward]
name = "quality"

[[cost]]
name      = "price"
range     = [0.0, 0.02]
threshold = 0.008

[service]
on_wait      = "hold"            # or "serve"
outcome_wait = "7d"
"#;

/// What the form sends.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentForm {
    spec: String,
    id: String,
    key: String,
    blind: Option<String>,
}

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
    let draft = ExperimentForm {
        spec: EXAMPLE.into(),
        ..ExperimentForm::default()
    };
    render(&app, &guest, &draft, None, before).await
}

pub async fn create(
    State(app): State<AppState>,
    guest: Guest,
    request: Request,
) -> Result<Response, PageError> {
    guest.0.require(Role::Admin)?;
    let Form(draft) = Form::<ExperimentForm>::from_request(request, &app).await?;
    match created(&app, &guest, &draft).await {
        Ok(id) => Ok(see(&format!("/experiments/{id}"))),
        // Shown above the form, with what was typed: on a page of its own the spec would be lost.
        Err(error) if error.status.is_client_error() => {
            let page = render(&app, &guest, &draft, Some(&error), None).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

async fn created(
    app: &AppState,
    guest: &Guest,
    draft: &ExperimentForm,
) -> Result<String, ApiError> {
    let key = given(&draft.key)
        .map(|text| given_key(&text).map_err(ApiError::unfit))
        .transpose()?;
    // Browsers send line ends as two characters. The chain hashes the spec, so it must be the same
    // whether it was sent by a form or by a program.
    let spec = draft.spec.replace("\r\n", "\n");
    let id = given(&draft.id);
    guest.0.require_scope(id.as_deref())?;
    let create = Create {
        id,
        spec,
        key,
        blind: draft.blind.is_some(),
        actor: guest.0.name.to_string(),
    };
    Ok(experiments::created(app, create).await?.0)
}

/// What a field holds, if anything: a form sends empty fields, too.
fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

async fn render(
    app: &AppState,
    guest: &Guest,
    draft: &ExperimentForm,
    refusal: Option<&ApiError>,
    before: Option<String>,
) -> Result<Html<String>, PageError> {
    let List { experiments, next } =
        experiments::listed(app, &guest.0, before, LISTED_MAX, true).await?;
    let content = html! {
        h1 { "Experiments" }
        @if experiments.is_empty() {
            p { "There are no experiments yet." }
        } @else {
            div.scroll { (table(&experiments)) }
            @if let Some(last) = next { p { a href={ "/?before=" (last) } { "Older experiments" } } }
        }
        // Others could fill it in and would be refused.
        @if guest.0.role == Role::Admin {
            // The first thing to do where there is nothing to see.
            details open[experiments.is_empty() || refusal.is_some()] {
                summary role="button" class="outline" { "New experiment" }
                (form(draft, refusal))
            }
        }
    };
    Ok(page("Experiments", Some(guest), &content))
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

fn form(draft: &ExperimentForm, refusal: Option<&ApiError>) -> Markup {
    html! {
        form method="post" action="/experiments" {
            @if let Some(refusal) = refusal { pre.alarm { (refusal.message) } }
            label {
                "Spec"
                textarea.spec name="spec" spellcheck="false" required { (draft.spec) }
            }
            div.grid {
                label {
                    "Id"
                    // The browser checks what the service would refuse, before anything is sent.
                    input name="id" value=(draft.id) pattern="[a-z0-9\\-]+" maxlength="128" placeholder="drawn at random";
                }
                label {
                    "Key"
                    // Not kept by the browser: it is secret until the experiment is over.
                    input name="key" value=(draft.key) autocomplete="off" maxlength="32" placeholder="drawn at random";
                    small { "Enter another team's key to replicate its experiment." }
                }
            }
            label {
                input type="checkbox" name="blind" value="yes" checked[draft.blind.is_some()];
                "Run it even if the horizon is too short to ever compare the actions"
            }
            button { "Create" }
        }
    }
}

#[cfg(test)]
mod tests {
    use debora::Plan;
    use debora::spec::Spec;

    #[test]
    fn the_example_can_be_created_as_it_is() {
        let spec = Spec::parse(super::EXAMPLE, "example").unwrap();
        assert!(!Plan::of(spec.problem).blind && spec.world.is_none() && !spec.key_given);
    }
}
