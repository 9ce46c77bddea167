//! The form that creates an experiment.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Guest, PageError, page, see};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{self, given_key};
use crate::service::http::extract::Form;
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

pub async fn show(guest: Guest) -> Result<Html<String>, PageError> {
    guest.0.require(Role::Admin)?;
    let draft = ExperimentForm {
        spec: EXAMPLE.into(),
        ..ExperimentForm::default()
    };
    Ok(whole_page(&guest, &draft, None))
}

fn whole_page(guest: &Guest, draft: &ExperimentForm, refusal: Option<&ApiError>) -> Html<String> {
    let content = html! { h1 { "New experiment" } (form(draft, refusal)) };
    page("New experiment", Some(guest), &content)
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
            let page = whole_page(&guest, &draft, Some(&error));
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
