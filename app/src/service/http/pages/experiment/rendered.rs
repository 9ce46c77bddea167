//! What is rendered of an experiment, shared by those who look at it: however many pages are open, one a second is rendered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use maud::Markup;
use tokio::time::timeout;

use super::content::content;
use super::shape::Shape;
use super::strategy::TimeAxis;
use super::view::{self, ExperimentView};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::readers::WAIT_MAX;
use crate::service::recent::Recent;
use crate::service::request::Refusal;

/// How long a rendering is good for refreshes, in milliseconds. Pages ask every few seconds, so nobody notices.
const FRESH: i64 = 1_000;

/// How many are kept: each may be some hundred kilobytes.
const KEPT_MAX: usize = 64;

const BUSY: &str = "too many others look at this experiment; repeat the request later";

/// A rendering, and what it is of.
pub struct RenderedView {
    /// What was read.
    pub view: ExperimentView,
    /// What changes while the experiment goes on.
    pub content: Markup,
    at: i64,
    /// Which of its place's it is.
    number: u64,
}

/// One for each experiment and axis; whoever finds it locked waits for the rendering that is under way.
#[derive(Default)]
struct RenderingPlace {
    last: tokio::sync::Mutex<Option<Arc<RenderedView>>>,
    /// Renderings that were begun.
    begun: AtomicU64,
}

/// What was rendered last.
pub struct Renderings(Mutex<Recent<Arc<RenderingPlace>>>);

impl Default for Renderings {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(KEPT_MAX)))
    }
}

impl Renderings {
    fn place(&self, key: &str) -> Arc<RenderingPlace> {
        let mut places = self.0.lock().expect("no panic while finding a place");
        if let Some(place) = places.get_mut(key) {
            return Arc::clone(place);
        }
        let place = Arc::<RenderingPlace>::default();
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
    let asked = place.begun.load(Ordering::SeqCst);
    // As long as for a place among the readers: those behind would wait longer still.
    let last = timeout(WAIT_MAX, place.last.lock()).await;
    let mut last = last.map_err(|_| app.readers.pages.busy(BUSY))?;
    let now = (app.service.clock)().monotonic;
    let good = |last: &&Arc<RenderedView>| {
        // What was begun after this was asked for shows all that was done before, so that those who wait share one rendering.
        last.number > asked || (refresh && now - last.at < FRESH)
    };
    if let Some(last) = last.as_ref().filter(good) {
        return Ok(Arc::clone(last));
    }
    let number = place.begun.fetch_add(1, Ordering::SeqCst) + 1;
    let fresh = Arc::new(render(app, id, along, number).await?);
    *last = Some(Arc::clone(&fresh));
    Ok(fresh)
}

async fn render(
    app: &AppState,
    id: &str,
    along: TimeAxis,
    number: u64,
) -> Result<RenderedView, ApiError> {
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
            number,
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::http::{Shared, TIMEOUT};
    use crate::service::request::Create;
    use crate::service::writer::Service;
    use crate::store::Location;

    async fn app_with_an_experiment(folder: &Scratch) -> AppState {
        let location = Location::Sqlite(folder.join("store.db"));
        let service = Service::start(location, Arc::new(|| Moment::both(0))).unwrap();
        let create = Create {
            id: "e".into(),
            spec: "policy = 'free'\nhorizon = 1e6\nrho = 0.3\nactions = ['a', 'b']\n".into(),
            key: None,
            blind: true,
            actor: "test".into(),
        };
        let created = service.ask(create).await;
        assert!(created.is_ok());
        Shared::new(service, TIMEOUT)
    }

    type Opened = Result<Arc<RenderedView>, ApiError>;

    /// Opened by so many at once.
    async fn opened(app: &AppState, times: usize) -> Vec<Opened> {
        let open = |_| {
            let app = Arc::clone(app);
            tokio::spawn(async move { rendered(&app, "e", TimeAxis::default(), false).await })
        };
        let tasks: Vec<_> = (0..times).map(open).collect();
        let mut opened = Vec::new();
        for task in tasks {
            opened.push(task.await.unwrap());
        }
        opened
    }

    #[tokio::test]
    async fn many_who_open_a_page_at_once_share_its_rendering_and_who_comes_later_gets_another() {
        let folder = Scratch::new("rendered");
        let app = app_with_an_experiment(&folder).await;
        let number = |opened: &Opened| opened.as_ref().ok().map(|view| view.number);
        let numbers: Vec<_> = opened(&app, 30).await.iter().map(number).collect();
        // The first began before the others had asked, so theirs is the second.
        assert_eq!(numbers[0], Some(1));
        assert_eq!(numbers[1..], [Some(2); 29]);
        assert_eq!(number(&opened(&app, 1).await[0]), Some(3));
        app.service.stop().unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_long_for_a_page_that_is_not_rendered() {
        let folder = Scratch::new("rendered-busy");
        let app = app_with_an_experiment(&folder).await;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut gates = Vec::new();
        for _ in 0..(cores / 2).max(1) {
            let (open, gate) = channel::<()>();
            gates.push(open);
            let (app, (begin, begun)) = (Arc::clone(&app), tokio::sync::oneshot::channel());
            tokio::spawn(async move {
                let read = app.read_page(move |_| {
                    let _ = begin.send(());
                    Ok(gate.recv()?)
                });
                let _ = read.await;
            });
            begun.await.unwrap();
        }
        let begun = Instant::now();
        for refused in opened(&app, 8).await {
            assert!(refused.is_err_and(|error| error.code == "busy"));
        }
        // Waiting one after the other, they would take eight times as long.
        assert!(begun.elapsed() < 4 * WAIT_MAX, "{:?}", begun.elapsed());
        gates.iter().for_each(|gate| gate.send(()).unwrap());
        assert!(opened(&app, 1).await[0].is_ok());
        app.service.stop().unwrap();
    }
}
