//! The list of epochs, the newest first.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::measure::answer::row_for_each;
use debora::measure::words::{counted, whole};
use maud::{Markup, html};
use serde::Deserialize;

use super::{hash, kind_badge};
use crate::document::HtmlTable;
use crate::reading::share;
use crate::service::http::AppState;
use crate::service::http::epochs::entry::{EpochEntry, EpochList, EpochRange};
use crate::service::http::epochs::list_of;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, QueryParams};
use crate::service::http::pages::live::Live;
use crate::service::http::pages::parts::{self, Tab};
use crate::service::http::pages::{Guest, PageError, page, text};

/// Epochs on a page: with their strategies they stay far below what a phone loads at once.
const EPOCHS_A_PAGE: u64 = 250;

/// Actions named in a cell; the epoch's own page has all of them.
const NAMED: usize = 3;

/// Which epochs are shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochsBefore {
    /// Those before this one; default: the newest.
    before: Option<u64>,
}

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    id: Result<Id, ApiError>,
    query: Result<QueryParams<EpochsBefore>, ApiError>,
) -> Result<Response, PageError> {
    let (Id(id), QueryParams(query)) = (id?, query?);
    let range = EpochRange::Before(query.before, EPOCHS_A_PAGE);
    let list = list_of(&app, &guest.0, &id, range).await?;
    let name = list.name.clone().unwrap_or_else(|| id.clone());
    let content = shown(&list);
    let address = match query.before {
        None => format!("/experiments/{id}/epochs"),
        Some(before) => format!("/experiments/{id}/epochs?before={before}"),
    };
    // What is closed never changes, so earlier pages have nothing to ask for.
    let live = if list.status.is_open() && query.before.is_none() {
        Live::new(&address, &content)
    } else {
        Live::over(&content)
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&list.id, &name, Tab::Epochs))
            (live.markup)
        };
        page(&format!("Epochs of {name}"), Some(&guest), &content)
    }))
}

fn shown(list: &EpochList) -> Markup {
    let data = format!("/v1/experiments/{}/epochs", list.id);
    let first = list.epochs.first().map_or(0, |entry| entry.epoch);
    html! {
        p {
            (counted(list.count, "epoch", "epochs")) " so far, the newest first. Within an epoch the strategy is fixed; at its end "
            "outcomes are estimated and the next strategy is found. Every number has a page that says why."
        }
        (table(list))
        @if first > 0 {
            p { a href={ "/experiments/" (list.id) "/epochs?before=" (first) } { "Earlier epochs" } }
        }
        p.small { "Data: " a href={ (data) ".csv" } { "CSV" } ", " a href=(data) { "JSON" } "." }
    }
}

fn table(list: &EpochList) -> Markup {
    // Only policy free makes the test, and only while it explores.
    let tested = list.epochs.iter().any(|entry| entry.test.is_some());
    let table = row_for_each(list.epochs.iter().rev())
        .words("Epoch", |entry| {
            html! { a href={ "/experiments/" (list.id) "/epochs/" (entry.epoch) } { "Epoch " (whole(entry.epoch)) } }
        })
        .words("Found by", |entry| html! { span { (kind_badge(entry.kind, entry.rule)) } })
        .numbers("Rounds", |entry| entry.rounds)
        .numbers("From round", |entry| entry.first_round)
        .words("Opened", |entry| text::time(entry.opened_at))
        .numbers("Took", |entry| match entry.closed_at {
            Some(closed) => text::span(closed - entry.opened_at),
            None => "open".into(),
        })
        .words("Plays", |entry| plays(entry))
        .words("Changed", |entry| changed(entry))
        .when(tested, |table| table.words("Look", |entry| test(entry)))
        .words("Hash", |entry| entry.hash.as_deref().map(hash));
    let table = HtmlTable::cards("The epochs", table.table());
    table.class("cards epochs").markup()
}

fn test(entry: &EpochEntry) -> Option<Markup> {
    let test = entry.test.as_ref()?;
    let word = if test.passed { "passed" } else { "not passed" };
    Some(html! { span title=(test.sentence) { (word) } })
}

fn plays(entry: &EpochEntry) -> Markup {
    let more = entry.shares.len().saturating_sub(NAMED);
    html! {
        ul.shares {
            @for played in entry.shares.iter().take(NAMED) {
                li { bdi title=(played.name) { (played.name) } " " span.share { (share(played.probability)) } }
            }
            @if more > 0 { li.small { "and " (whole(more as u64)) " more" } }
        }
    }
}

fn changed(entry: &EpochEntry) -> Markup {
    let more = entry.changes.len().saturating_sub(NAMED);
    html! {
        @if entry.changes.is_empty() {
            @if entry.epoch > 0 { span.small { "nothing" } }
        } @else {
            ul.shares {
                @for change in entry.changes.iter().take(NAMED) {
                    li { bdi title=(change.name) { (change.name) } " " span.share { (change.text()) } }
                }
                @if more > 0 { li.small { "and " (whole(more as u64)) " more" } }
            }
        }
    }
}
