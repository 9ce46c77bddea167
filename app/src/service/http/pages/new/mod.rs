//! `/new`: an experiment is written, planned while it is typed, tried out, and created.
//!
//! One form with two sides, fields and text ([`draft`]). With a script the page sends it to `/new/draft` while one types, and
//! takes what comes back; without one, every button sends it to `/new`.

mod draft;
mod fields;
mod form;
mod plan;
mod rows;
mod simulation;

use std::collections::BTreeMap;

use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::{Guest, PageError, page_with, see};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{self, drawn_unless, given_key};
use crate::service::http::extract::Form;
use crate::service::http::plan::{Planned, planned, readable};
use crate::service::http::simulate::{GuessedMeans, PAIRS, SimulatedPairs, simulated};
use crate::service::limits;
use crate::service::request::Create;
use crate::store::Role;
use draft::SpecDraft;

/// All that the page shows.
struct NewPage {
    draft: SpecDraft,
    /// The plan, or what is wrong with the spec.
    planned: Result<Planned, ApiError>,
    /// What the guessed means gave, if that was asked for.
    simulated: Option<Result<SimulatedPairs, ApiError>>,
    /// Why nothing was created.
    refusal: Option<ApiError>,
}

pub async fn show(State(app): State<AppState>, guest: Guest) -> Result<Html<String>, PageError> {
    guest.0.require(Role::Admin)?;
    let view = NewPage::of(&app, SpecDraft::example, "").await?;
    whole_page(&app, guest, view).await
}

/// A button of the form, for browsers without a script; and the one that creates, for all.
pub async fn act(
    State(app): State<AppState>,
    guest: Guest,
    request: Request,
) -> Result<Response, PageError> {
    guest.0.require(Role::Admin)?;
    let (posted, asked) = received(&app, request).await?;
    let mut view = NewPage::of(&app, || SpecDraft::posted(posted), &asked).await?;
    // A form that asks for nothing else was sent to be carried out.
    if !["", "create"].contains(&&*asked) {
        return Ok(whole_page(&app, guest, view).await?.into_response());
    }
    match created(&app, &guest, &view.draft).await {
        Ok(id) => Ok(see(&format!("/experiments/{id}"))),
        // Shown with what was typed: on a page of its own it would be lost.
        Err(error) if error.status.is_client_error() => {
            view.refusal = Some(error);
            let page = whole_page(&app, guest, view).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// The form as it is after a change, for the script.
pub async fn draft(
    State(app): State<AppState>,
    guest: Guest,
    request: Request,
) -> Result<Html<String>, PageError> {
    guest.0.require(Role::Admin)?;
    let (posted, asked) = received(&app, request).await?;
    let view = NewPage::of(&app, || SpecDraft::posted(posted), &asked).await?;
    let form = app.compute(move || form::form(&view).into_string()).await?;
    Ok(Html(form))
}

/// What a form sends, by name.
type Posted = BTreeMap<String, String>;

/// What was typed, and which button was pressed.
async fn received(app: &AppState, request: Request) -> Result<(Posted, String), PageError> {
    let Form(pairs) = Form::<Vec<(String, String)>>::from_request(request, app).await?;
    let mut posted: Posted = pairs.into_iter().collect();
    let asked = posted.remove("do").unwrap_or_default();
    Ok((posted, asked))
}

/// Rendered where it was read, too: thousands of rows take a while.
async fn whole_page(
    app: &AppState,
    guest: Guest,
    view: NewPage,
) -> Result<Html<String>, PageError> {
    let render = move || {
        let content = form::content(&view);
        page_with("New experiment", Some(&guest), &["new.js"], &content)
    };
    Ok(app.compute(render).await?)
}

impl NewPage {
    /// The page after a button was pressed. A draft is read where plans are made: its text may be a megabyte.
    async fn of(
        app: &AppState,
        draft: impl FnOnce() -> SpecDraft + Send + 'static,
        asked: &str,
    ) -> Result<Self, ApiError> {
        let pressed = asked.to_owned();
        let mut view = app
            .compute(move || Self::planned(draft(), &pressed))
            .await?;
        if asked == "simulate" {
            view.simulated = Some(view.simulate(app).await);
        }
        Ok(view)
    }

    fn planned(mut draft: SpecDraft, asked: &str) -> Self {
        draft.act(asked);
        let mut view = Self {
            planned: planned_live(&draft.spec),
            draft,
            simulated: None,
            refusal: None,
        };
        if asked == "remedy" {
            view.remedy();
        }
        view
    }

    /// Applies what makes a blind plan see.
    fn remedy(&mut self) {
        let remedy = self
            .planned
            .as_ref()
            .ok()
            .and_then(|planned| planned.remedy.as_ref());
        if let Some(spec) = remedy.and_then(|remedy| remedy.spec.clone()) {
            self.draft.replace(&spec);
            self.planned = planned_live(&self.draft.spec);
        }
    }

    async fn simulate(&self, app: &AppState) -> Result<SimulatedPairs, ApiError> {
        let means = guessed(&self.draft)?;
        simulated(app, self.draft.spec.clone(), means, PAIRS).await
    }
}

/// The plan of a live experiment: what creating it would refuse is refused here.
fn planned_live(spec: &str) -> Result<Planned, ApiError> {
    limits::check_live(&readable(spec)?)?;
    planned(spec, None)
}

/// The means as they were typed, by the names of actions and quantities.
fn guessed(draft: &SpecDraft) -> Result<GuessedMeans, ApiError> {
    let mut means = GuessedMeans::new();
    for (action, row) in draft.means.iter().enumerate() {
        let name = draft.get(&format!("actions.{action}"));
        for (quantity, typed) in row.iter().enumerate() {
            let of = draft.quantity(quantity);
            let mean = typed.trim().parse::<f64>().map_err(|_| {
                ApiError::unfit(format!("the mean {typed:?} of {of:?} of {name:?} is not a number; write one such as 0.5"))
            })?;
            means.entry(name.to_owned()).or_default().insert(of, mean);
        }
    }
    Ok(means)
}

async fn created(app: &AppState, guest: &Guest, draft: &SpecDraft) -> Result<String, ApiError> {
    // What a field holds, if anything: a form sends empty fields, too.
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let key = given(&draft.key)
        .map(|text| given_key(&text).map_err(|error| ApiError::unfit(error).at("key")))
        .transpose()?;
    let typed = given(&draft.id);
    guest
        .0
        .require_scope(typed.as_deref())
        .map_err(|error| error.at("id"))?;
    let is_drawn = typed.is_none();
    // Drawn with the form: sent twice, it asks for the same experiment.
    let id = typed.or_else(|| given(&draft.drawn));
    let create = Create {
        id: drawn_unless(id)?,
        spec: draft.spec.clone(),
        key,
        blind: draft.blind,
        actor: guest.0.name.to_string(),
    };
    let id = create.id.clone();
    let mut other = create.clone();
    match experiments::created(app, create).await {
        // Another text in a form that has created one already: another experiment.
        Err(error) if is_drawn && error.code == "id_taken" => {
            other.id = drawn_unless(None)?;
            let id = other.id.clone();
            experiments::created(app, other).await.map(|_| id)
        }
        created => created.map(|_| id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_can_be_created_as_it_is() {
        let planned = planned_live(&SpecDraft::example().spec).unwrap();
        assert!(planned.remedy.is_none() && planned.warnings.is_empty());
    }
}
