//! Two experiments beside each other: where they diverge, and the estimate that made them, drawn on its grid.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use debora::measure::answer::row_for_each;
use debora::measure::words::{amount, counted};
use maud::{Markup, html};
use serde::Deserialize;

use super::parts::{self, Tab};
use super::{Guest, PageError, page};
use crate::audit::{self, Diff, DivergingEstimate};
use crate::chart::{Axis, Chart, Mark, legend};
use crate::document::{self, HtmlTable};
use crate::log::is_revealed;
use crate::service::http::AppState;
use crate::service::http::diffs::diff_of;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{LISTED_MAX, listed, row};
use crate::service::http::extract::{Id, QueryParams};
use crate::store::{Role, Store};

/// Estimates that are drawn: of hundreds of actions the first tell enough.
const DRAWN_MAX: usize = 20;

/// What to compare with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct With {
    with: Option<String>,
}

/// An experiment that can be chosen.
struct OtherExperiment {
    id: String,
    name: Option<String>,
    /// Whether it has the same key, as far as the caller may know.
    same_key: bool,
}

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
    query: Result<QueryParams<With>, ApiError>,
) -> Result<Response, PageError> {
    guest.0.require_for(Role::Read, &id)?;
    let (experiment, _) = row(&app, &id).await?;
    let QueryParams(With { with }) = query?;
    // As typed: people copy blanks with what they mean.
    let with = with
        .as_deref()
        .map(str::trim)
        .filter(|with| !with.is_empty());
    let compared = match with {
        Some(with) => match diff_of(&app, &guest.0, [&id, with]).await {
            Err(error) if !error.status.is_client_error() => return Err(error.into()),
            compared => Some(compared),
        },
        None => None,
    };
    let name = app.info_of(&id, &experiment.spec)?.name.clone();
    let name = name.unwrap_or_else(|| id.clone());
    let choices = choices(&app, &guest, &id).await?;
    let status = match &compared {
        // Said above the form, with what was typed, where it can be mended.
        Some(Err(error)) => error.status,
        _ => StatusCode::OK,
    };
    let content = html! {
        (parts::heading(&id, &name, Tab::Compare))
        @match &compared {
            Some(Ok(diff)) => (result(diff, &id)),
            Some(Err(error)) => (parts::alert(&error.message, "")),
            None => p {
                "Compared with another experiment of the same spec and key: do both decide the same? If not, from which round on, and "
                "which estimate fell into another cell of the grid that they share?"
            },
        }
        (form(&id, with, &choices))
    };
    let page = page(&format!("Compare {name}"), Some(&guest), &content);
    Ok((status, page).into_response())
}

/// What can be chosen, those with the same key first.
async fn choices(
    app: &AppState,
    guest: &Guest,
    id: &str,
) -> Result<Vec<OtherExperiment>, ApiError> {
    let list = listed(app, &guest.0, None, LISTED_MAX, true).await?;
    let (asked, caller) = (id.to_owned(), guest.0.clone());
    let read = move |store: &mut Store| {
        let Some((experiment, _)) = store.experiment(&asked)? else {
            return Ok(Vec::new());
        };
        // Which experiments share a secret key is as secret as the key.
        if !caller.sees_key_of(store, &asked)? && !is_revealed(store, experiment.key)? {
            return Ok(Vec::new());
        }
        let sharing = store.experiments_of_key(experiment.key)?;
        Ok(sharing
            .into_iter()
            .map(|(row, _)| row.id)
            .collect::<Vec<_>>())
    };
    let sharing = app.read_page(read).await?;
    let others = list.experiments.into_iter().filter(|other| other.id != id);
    let mut choices: Vec<OtherExperiment> = others
        .map(|other| OtherExperiment {
            same_key: sharing.contains(&other.id),
            id: other.id,
            name: other.name,
        })
        .collect();
    // Stable: within each group the newest stay first.
    choices.sort_by_key(|choice| !choice.same_key);
    Ok(choices)
}

fn form(id: &str, with: Option<&str>, choices: &[OtherExperiment]) -> Markup {
    html! {
        h2 { @if with.is_some() { "Compare with another" } @else { "Compare with" } }
        @if choices.is_empty() {
            p { "There is no other experiment that you can read." }
        } @else {
            form.compare method="get" action={ "/experiments/" (id) "/diff" } {
                label for="with" {
                    "Experiment, by its id"
                    @if choices.iter().any(|choice| choice.same_key) { "; those with the same key come first" }
                }
                // A list that is searched while typing, without scripts; with a thousand entries nobody scrolls.
                input #with name="with" list="others" value=[with] autocomplete="off" spellcheck="false" required;
                datalist #others {
                    @for choice in choices { option value=(choice.id) { (described(choice)) } }
                }
                button { "Compare" }
            }
        }
    }
}

fn described(choice: &OtherExperiment) -> String {
    let name = choice.name.as_deref().unwrap_or(&choice.id);
    if choice.same_key {
        format!("{name} (same key)")
    } else {
        name.to_owned()
    }
}

fn result(diff: &Diff, id: &str) -> Markup {
    let class = if diff.divergence.is_none() {
        "running"
    } else {
        "waiting"
    };
    let [_, other] = &diff.experiments;
    let estimates = diff
        .divergence
        .iter()
        .flat_map(|one| &one.diverging_estimates);
    let estimates: Vec<&DivergingEstimate> = estimates.collect();
    html! {
        section.status.finding.(class) { (document::blocks(&audit::compared(diff))) }
        @if !estimates.is_empty() { (drawn(&estimates)) }
        p.small {
            a href={ "/v1/experiments/" (id) "/diff?with=" (other) } { "JSON" } ". The same elsewhere, of two logs: "
            code { "debora diff " (id) ".jsonl " (other) ".jsonl" } ". "
            a href={ "/experiments/" (other) } { "The other experiment" } "."
        }
    }
}

fn drawn(estimates: &[&DivergingEstimate]) -> Markup {
    let more = estimates.len().saturating_sub(DRAWN_MAX) as u64;
    let signs = [
        (legend::block("c0 band"), "A's cell"),
        (legend::block("c1 band"), "B's cell"),
        (legend::dot("c0"), "A's mean"),
        (legend::dot("c1"), "B's mean"),
    ];
    html! {
        h2 { "The estimates that differ" }
        (estimates_table(estimates))
        (legend::legend(signs.map(|(marks, name)| (marks, name.to_owned())).into()))
        p.small {
            "Estimates are rounded to the middle of the cell that holds the mean. Two means on either side of an edge, however "
            "close, become two estimates."
            @if more > 0 { " " (counted(more, "more estimate is", "more estimates are")) " not drawn; the JSON document has all." }
        }
    }
}

fn estimates_table(estimates: &[&DivergingEstimate]) -> Markup {
    let quantity = |[first, second]: &[String; 2]| {
        html! { bdi { (first) } @if first != second { " (B: " bdi { (second) } ")" } }
    };
    let table = row_for_each(estimates.iter().take(DRAWN_MAX))
        .words("Action", |estimate| &estimate.name)
        .words("Quantity", |estimate| quantity(&estimate.quantities))
        .numbers("Made in epoch", |estimate| estimate.epoch)
        .numbers("Samples", |estimate| estimate.count)
        .numbers("Mean in A", |estimate| estimate.means[0])
        .numbers("Mean in B", |estimate| estimate.means[1])
        .drawings("Cells of the grid", |estimate| strip(estimate).strip());
    HtmlTable::cards("Estimates in different cells", table.table()).markup()
}

/// The means in their cells, on the grid that both share: in numbers of cells, as either side may have units of its own.
fn strip(estimate: &DivergingEstimate) -> Chart {
    let [one, two] = estimate.cells;
    let (low, high) = (one.min(two), one.max(two));
    let mut marks = vec![cell(one, "c0 band"), cell(two, "c1 band")];
    // Cells far apart have many edges between them: those of the two cells are what matters.
    let edges = [low, low + 1, high, high + 1].map(|edge| Mark::Upright {
        class: "muted".into(),
        x: edge as f64,
    });
    marks.extend(edges);
    // At different heights, as two means may be next to each other.
    let means = [("c0", 0.68), ("c1", 0.32)].into_iter().enumerate();
    marks.extend(means.map(|(side, (class, height))| Mark::Dot {
        class: class.into(),
        at: (place(estimate, side), height),
    }));
    let [a, b] = estimate.means.map(amount);
    Chart {
        label: format!("A's mean {a} in cell {one}, B's mean {b} in cell {two}"),
        x: Axis::linear("", low as f64 - 0.1, high as f64 + 1.1),
        y: Axis::shares(),
        marks,
        tips: Vec::new(),
    }
}

fn cell(number: i64, class: &str) -> Mark {
    Mark::Block {
        class: class.into(),
        x: [number as f64, number as f64 + 1.0],
        y: [0.0, 1.0],
    }
}

/// Where a side's mean stands on the grid: its distance is from the edge towards the other side's cell.
fn place(estimate: &DivergingEstimate, side: usize) -> f64 {
    let (own, other) = (estimate.cells[side], estimate.cells[1 - side]);
    let away = estimate.distances_in_cells[side];
    if own < other {
        own as f64 + 1.0 - away
    } else {
        own as f64 + away
    }
}
