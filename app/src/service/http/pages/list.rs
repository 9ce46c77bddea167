//! All experiments, and the form that creates one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use debora::Key;
use debora::measure::words::{percent, whole};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Guest, PageError, page, see, text};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{self, Listed};
use crate::service::http::extract::Form;
use crate::service::request::Create;
use crate::store::Role;

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

pub async fn show(State(app): State<AppState>, guest: Guest) -> Result<Html<String>, PageError> {
    guest.0.require(Role::Read)?;
    let draft = ExperimentForm {
        spec: EXAMPLE.into(),
        ..ExperimentForm::default()
    };
    render(&app, &guest, &draft, None).await
}

pub async fn create(
    State(app): State<AppState>,
    guest: Guest,
    Form(draft): Form<ExperimentForm>,
) -> Result<Response, PageError> {
    guest.0.require(Role::Admin)?;
    match created(&app, &guest, &draft).await {
        Ok(id) => Ok(see(&format!("/experiments/{id}"))),
        Err(error) if error.status.is_client_error() => {
            let page = render(&app, &guest, &draft, Some(&error)).await?;
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
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let key = given(&draft.key).map(|text| key(&text)).transpose()?;
    // Browsers send line ends as two characters; the spec is kept as it was typed.
    let spec = draft.spec.replace("\r\n", "\n");
    let create = Create {
        id: given(&draft.id),
        spec,
        key,
        blind: draft.blind.is_some(),
        actor: guest.0.name.clone(),
    };
    Ok(experiments::created(app, create).await?.0)
}

/// A whole number, or 32 hexadecimal digits.
fn key(text: &str) -> Result<Key, ApiError> {
    match text.parse::<u64>() {
        Ok(number) => Ok(Key::from(number)),
        Err(_) => Key::from_hex(text).map_err(|error| ApiError::unfit(error.to_string())),
    }
}

async fn render(
    app: &AppState,
    guest: &Guest,
    draft: &ExperimentForm,
    refusal: Option<&ApiError>,
) -> Result<Html<String>, PageError> {
    let experiments = experiments::listed(app).await?;
    let content = html! {
        h1 { "Experiments" }
        @if experiments.is_empty() {
            p { "There is none yet." }
        } @else {
            div.scroll { (table(&experiments)) }
        }
        @if guest.0.role == Role::Admin {
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
                @for experiment in experiments.iter().rev() {
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
                    input name="id" value=(draft.id) pattern="[a-z0-9\\-]+" maxlength="128" placeholder="drawn at random";
                }
                label {
                    "Key"
                    input name="key" value=(draft.key) autocomplete="off" placeholder="drawn at random";
                    small { "Give another team's to replicate its experiment." }
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
