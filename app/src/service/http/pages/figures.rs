//! The figures, by the program's own plots. As images: an image cannot run a script, whatever a name in a spec says.

use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use debora::EpochRecord;
use maud::{Markup, html};

use super::{Guest, PageError};
use crate::report::plots::{self, DrawnMean, Figure};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::state::{self, EstimateState, State};
use crate::service::request::is_id;
use crate::store::{Role, Store};

/// The most actions in a figure: the colours of more cannot be told apart.
const ACTIONS_MAX: usize = 24;

/// The most epochs drawn: more than experiments have, a few hundred, and a bound for the reader.
const EPOCHS_MAX: usize = 2_000;

/// The figures of a page.
pub fn shown(state: &State) -> Markup {
    let quantities = quantities(state);
    html! {
        @if state.actions.len() <= ACTIONS_MAX && state.decided > 0 {
            div.figures {
                (figure(state, "strategy", state.decided, "The strategy over time: the probability of each action."))
                @for (place, (name, threshold)) in quantities.iter().enumerate() {
                    @let words = if threshold.is_some() { "; dashed: the threshold" } else { "" };
                    @let caption = format!(
                        "{name}: each action's estimate with its cell and the interval of its true mean; thin, beside it: what was \
                         observed{words}."
                    );
                    (figure(state, &format!("estimates-{place}"), state.epoch, &caption))
                }
            }
        }
    }
}

/// A figure in the page's colours, light or dark.
fn figure(state: &State, name: &str, version: u64, caption: &str) -> Markup {
    // The address has the version, so that the browser asks again when the figure changes, and keeps
    // it until then.
    let to = |colours: &str| {
        format!(
            "/experiments/{}/figures/{name}-{colours}.svg?{version}",
            state.id
        )
    };
    html! {
        figure {
            picture {
                source srcset=(to("dark")) media="(prefers-color-scheme: dark)";
                img src=(to("light")) alt=(caption) width="640" height="360";
            }
            figcaption { (caption) }
        }
    }
}

/// The estimated quantities, with their thresholds.
fn quantities(state: &State) -> Vec<(String, Option<f64>)> {
    // In the order of their estimates, which is the spec's; a figure's number is its place here.
    let mut quantities: Vec<(String, Option<f64>)> = Vec::new();
    for estimate in &state.estimates {
        if quantities
            .iter()
            .all(|(name, _)| *name != estimate.quantity)
        {
            quantities.push((estimate.quantity.clone(), estimate.threshold));
        }
    }
    quantities
}

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, PageError> {
    guest.0.require(Role::Read)?;
    let (what, dark) = parse(&name).ok_or_else(no_figure)?;
    // The id is checked here: this address has two parts, so the extractor of ids does not see it.
    if !is_id(&id) || !guest.0.sees(&id) {
        return Err(no_figure().into());
    }
    let subject = app
        .read_page(move |store| subject(store, &id, &what))
        .await?
        .ok_or_else(no_figure)?;
    // Drawn after reading: others wait for the connection.
    let figure = tokio::task::spawn_blocking(move || subject.figure())
        .await
        .map_err(ApiError::store)?;
    let svg = if dark { figure.dark } else { figure.light };
    // Private: a proxy in between must not show it to callers without a key.
    let headers = [
        (CONTENT_TYPE, "image/svg+xml"),
        (CACHE_CONTROL, "private, max-age=600"),
    ];
    Ok((headers, svg).into_response())
}

fn no_figure() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no_route", "there is no such figure")
}

/// What a figure's file name, such as `estimates-0-dark.svg`, asks for, and whether in dark colours.
fn parse(name: &str) -> Option<(String, bool)> {
    let (what, colours) = name.strip_suffix(".svg")?.rsplit_once('-')?;
    match colours {
        "light" => Some((what.to_owned(), false)),
        "dark" => Some((what.to_owned(), true)),
        _ => None,
    }
}

/// What a figure shows.
enum Subject {
    /// Against the logarithm of the round, each epoch from its first to its last.
    Strategy {
        actions: Vec<String>,
        rounds: Vec<f64>,
        strategies: Vec<Vec<f64>>,
    },
    /// A quantity's, action by action.
    Estimates {
        quantity: String,
        actions: Vec<String>,
        means: Vec<DrawnMean>,
        threshold: Option<f64>,
    },
}

impl Subject {
    fn figure(&self) -> Figure {
        match self {
            Self::Strategy {
                actions,
                rounds,
                strategies,
            } => plots::strategy_over_time(actions, rounds, strategies),
            Self::Estimates {
                quantity,
                actions,
                means,
                threshold,
            } => plots::estimates("estimates", quantity, actions, means, *threshold),
        }
    }
}

/// What the figure of this name, `strategy` or `estimates-0`, shows.
fn subject(store: &mut dyn Store, id: &str, name: &str) -> anyhow::Result<Option<Subject>> {
    let state = state::read(store, id)?
        .filter(|state| state.actions.len() <= ACTIONS_MAX && state.decided > 0);
    let Some(state) = state else { return Ok(None) };
    match name.strip_prefix("estimates-") {
        Some(place) => Ok(place
            .parse()
            .ok()
            .and_then(|place| estimates(&state, place))),
        None if name == "strategy" => strategy(store, &state).map(Some),
        None => Ok(None),
    }
}

fn strategy(store: &mut dyn Store, state: &State) -> anyhow::Result<Subject> {
    let mut rounds = Vec::new();
    let mut strategies = Vec::new();
    for row in store.epochs(&state.id, 0, EPOCHS_MAX)? {
        let record: EpochRecord = serde_json::from_str(&row.record)?;
        let length = if row.closed_at.is_some() {
            record.rounds
        } else {
            state.decided + 1 - record.first_round
        };
        // An epoch that has just been opened has no width to draw.
        if length == 0 {
            continue;
        }
        // Just short of the next epoch's first round, so that the step between them looks like one.
        let first = record.first_round as f64;
        let last = first + length as f64 - 0.01;
        for round in [first, last] {
            rounds.push(round.log10());
            strategies.push(record.strategy.clone());
        }
    }
    let actions = state
        .actions
        .iter()
        .map(|action| action.name.clone())
        .collect();
    Ok(Subject::Strategy {
        actions,
        rounds,
        strategies,
    })
}

/// A quantity's estimates, of the actions that have one.
fn estimates(state: &State, place: usize) -> Option<Subject> {
    let (quantity, threshold) = quantities(state).into_iter().nth(place)?;
    let of_it = state
        .estimates
        .iter()
        .filter(|estimate| estimate.quantity == quantity);
    let (actions, means) = of_it
        .map(|estimate| (estimate.name.clone(), drawn(state, estimate)))
        .unzip();
    Some(Subject::Estimates {
        quantity,
        actions,
        means,
        threshold,
    })
}

fn drawn(state: &State, estimate: &EstimateState) -> DrawnMean {
    let mean = state
        .means
        .iter()
        .find(|mean| mean.action == estimate.action && mean.quantity == estimate.quantity);
    let cell = mean.and_then(|mean| mean.estimate.as_ref());
    let told = mean.map(|mean| &mean.observed);
    DrawnMean {
        estimate: estimate.estimate,
        interval: [estimate.low, estimate.high],
        cell: cell.map_or([estimate.estimate; 2], |mean| {
            [mean.cell.low, mean.cell.high]
        }),
        // An estimate may be of imputed rounds alone: then nothing was observed.
        observed: told.and_then(|told| Some([told.interval.low, told.mean?, told.interval.high])),
    }
}
