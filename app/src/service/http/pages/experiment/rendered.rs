//! What is rendered of an experiment, shared by those who look at it: however many pages are open, one a second is rendered.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use maud::Markup;

use super::content::content;
use super::shape::Shape;
use super::strategy::TimeAxis;
use super::view::{self, ExperimentView};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::recent::Recent;
use crate::service::request::Refusal;

/// How long a rendering is good for refreshes, in milliseconds. Pages ask every few seconds, so nobody notices.
const FRESH: i64 = 1_000;

/// How many are kept: each may be some hundred kilobytes.
const KEPT_MAX: usize = 64;

/// A rendering, and what it is of.
pub struct RenderedView {
    /// What was read.
    pub view: ExperimentView,
    /// What changes while the experiment goes on.
    pub content: Markup,
    at: i64,
}

/// One place for each experiment and axis; whoever finds it locked waits for the rendering that is under way.
type Place = Arc<tokio::sync::Mutex<Option<Arc<RenderedView>>>>;

/// What was rendered last.
pub struct Renderings(Mutex<Recent<Place>>);

impl Default for Renderings {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(KEPT_MAX)))
    }
}

impl Renderings {
    fn place(&self, key: &str) -> Place {
        let mut places = self.0.lock().expect("no panic while finding a place");
        if let Some(place) = places.get_mut(key) {
            return Arc::clone(place);
        }
        let place = Place::default();
        places.insert(key, Arc::clone(&place));
        places.trim();
        place
    }
}

/// The content of an experiment's page. A refresh may get what another was given within the last second; who opens the page gets
/// it as it is, since a change that was made by a form must show.
pub async fn rendered(
    app: &AppState,
    id: &str,
    along: TimeAxis,
    refresh: bool,
) -> Result<Arc<RenderedView>, ApiError> {
    let place = app.renderings.place(&format!("{id}{}", along.query()));
    let mut last = place.lock().await;
    let now = (app.service.clock)().monotonic;
    if let Some(last) = last
        .as_ref()
        .filter(|last| refresh && now - last.at < FRESH)
    {
        return Ok(Arc::clone(last));
    }
    let fresh = Arc::new(render(app, id, along).await?);
    *last = Some(Arc::clone(&fresh));
    Ok(fresh)
}

async fn render(app: &AppState, id: &str, along: TimeAxis) -> Result<RenderedView, ApiError> {
    let moment = (app.service.clock)();
    let asked = id.to_owned();
    let rendered = app.read_page(move |store| {
        let Some(view) = view::read(store, &asked, moment.wall)? else {
            return Ok(None);
        };
        let shape = Shape::Page { id: asked, along };
        // On this thread, which gives way to all others.
        let content = content(&view, &shape);
        Ok(Some(RenderedView {
            view,
            content,
            at: moment.monotonic,
        }))
    });
    let rendered = rendered.await?;
    rendered.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() }.into())
}

/// What there is of an experiment, for a file or its numbers.
pub async fn viewed(app: &AppState, id: &str) -> Result<ExperimentView, ApiError> {
    let now = (app.service.clock)().wall;
    let asked = id.to_owned();
    let view = app.read_page(move |store| view::read(store, &asked, now));
    let view = view.await?;
    view.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() }.into())
}

/// That there is nothing of this name.
pub fn no_figure() -> ApiError {
    let message = "there are no such numbers; the page of the experiment links to those there are";
    ApiError::new(StatusCode::NOT_FOUND, "no_route", message)
}
