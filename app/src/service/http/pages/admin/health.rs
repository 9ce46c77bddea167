//! How the service is: in words first, then in numbers. Nothing secret.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::measure::answer::{AnswerCell, row_for_each};
use debora::measure::words::{counted, significant};
use maud::{Markup, html};

use super::heading;
use crate::document::{HtmlCell, HtmlTable, facts, numbers};
use crate::service::http::AppState;
use crate::service::http::keys::require_admin_of_all;
use crate::service::http::pages::errors::PageError;
use crate::service::http::pages::live::Live;
use crate::service::http::pages::{Guest, page, text};
use crate::service::transaction::Probed;
use crate::store::{Location, SCHEMA_VERSION, StartRow, Store, WaitingClock};

/// The starts that are listed.
const STARTS_SHOWN: u64 = 10;

/// What the store says of itself.
struct StoreHealth {
    size: u64,
    starts: Vec<StartRow>,
    clock: WaitingClock,
    sessions: u64,
    keys: u64,
}

fn read(store: &mut Store, incarnation: u64, own: i64) -> anyhow::Result<StoreHealth> {
    let now = store.now().unwrap_or(own);
    let keys = store.keys()?;
    Ok(StoreHealth {
        size: store.size()?,
        starts: store.starts((incarnation + 1).saturating_sub(STARTS_SHOWN))?,
        clock: store.waiting_clock()?,
        sessions: store.session_count(now)?,
        keys: keys.iter().filter(|key| key.revoked_at.is_none()).count() as u64,
    })
}

pub async fn show(
    State(app): State<AppState>,
    guest: Guest,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    require_admin_of_all(&guest.0)?;
    let probed = app.readiness.ask(&app.service).await;
    let own = (app.service.clock)().wall;
    let incarnation = app.service.start.incarnation;
    // Shown without it, too: a page about health that fails with the store would be of little use.
    let store = app
        .read(move |store| read(store, incarnation, own))
        .await
        .ok();
    let live = Live::new("/admin", &content(&app, probed.as_ref(), store.as_ref()));
    let page = || {
        let content = html! { (heading("Health", "/admin")) (live.markup) };
        page("Health", Some(&guest), &content)
    };
    Ok(live.respond(&headers, page))
}

fn content(app: &AppState, probed: Option<&Probed>, store: Option<&StoreHealth>) -> Markup {
    html! {
        (verdict(app, probed, store))
        h2 { "This server" }
        (load(app))
        h2 { "The store" }
        (about(app, store))
        @if let Some(store) = store { (starts(&store.starts, app.service.start.incarnation)) }
        p.small {
            "For monitors: " a href="/health" { "/health" } ", " a href="/ready" { "/ready" } " and " a href="/metrics" { "/metrics" } "."
        }
    }
}

/// All in a sentence.
fn verdict(app: &AppState, probed: Option<&Probed>, store: Option<&StoreHealth>) -> Markup {
    let shed = app.last_minute.shed();
    // The gravest alone: what else is wrong most often follows from it.
    let trouble = match probed {
        None => "the writer has ended, or the service is stopping: nothing can be changed. Start it again.".into(),
        Some(Err(failure)) => format!(
            "nothing can be committed: {}. Requests that change something are refused until then; what was acknowledged is stored.",
            failure.sentence()
        ),
        Some(Ok(_)) if store.is_none() => {
            "the store takes commits, but a look at it got no answer within a second: too much is asked of it.".into()
        }
        Some(Ok(_)) if shed > 0 => format!(
            "the store takes commits, but {} in the last minute refused for lack of room. Ask for more decisions and tell more \
             outcomes at once, or start another server on PostgreSQL.",
            counted(shed, "request was", "requests were")
        ),
        Some(Ok(_)) => String::new(),
    };
    html! {
        @if trouble.is_empty() {
            div.status.running {
                p.first { "All is well: the store takes commits, and nothing was refused for lack of room in the last minute." }
            }
        } @else {
            div.alarm role="note" { p { strong { "Not well: " } (trouble) } }
        }
    }
}

fn load(app: &AppState) -> Markup {
    let uptime = (app.service.clock)().monotonic - app.begun_at;
    let rate = app.last_minute.decisions_a_second();
    let shed = app.service.counts.shed_total();
    html! {
        (numbers([
            ("Up for", HtmlCell::from(text::span(minutes(uptime)))),
            ("Decisions a second, of the last minute", rate.map_or("–".into(), HtmlCell::from)),
            ("Decisions since the start", app.metrics.decisions().into()),
            ("Refused for lack of room", shed.into()),
            ("Open connections", app.metrics.connections.get().into()),
        ]))
    }
}

fn about(app: &AppState, store: Option<&StoreHealth>) -> Markup {
    let service = &app.service;
    let kind = match service.location {
        Location::Sqlite(_) => "SQLite file, for one server",
        Location::Postgres(_) => "PostgreSQL, shared by several servers",
    };
    let place = html! { code { (service.location) } };
    let program = format!(
        "debora {}, values version {}",
        env!("CARGO_PKG_VERSION"),
        debora::VALUES_VERSION
    );
    facts([
        ("Kind", HtmlCell::from(kind)),
        ("Place", place.into()),
        ("Schema", format!("version {SCHEMA_VERSION}").into()),
        ("Size", store.map(|store| bytes(store.size)).into()),
        ("Waiting clock", store.map(waited).into()),
        ("API keys", store.map(access).into()),
        (
            "Identity",
            AnswerCell::Code(service.start.identity.clone()).into(),
        ),
        ("Incarnation", service.start.incarnation.into()),
        ("Program", program.into()),
    ])
}

fn waited(store: &StoreHealth) -> String {
    let waited = text::span(minutes(store.clock.waited));
    format!("{waited} in which missing outcomes were waited for")
}

fn access(store: &StoreHealth) -> String {
    let keys = match store.keys {
        0 => "none that works".to_owned(),
        keys => counted(keys, "key works", "keys work"),
    };
    let sessions = counted(store.sessions, "session is", "sessions are");
    format!("{keys}, {sessions} open")
}

fn starts(starts: &[StartRow], own: u64) -> Markup {
    let server = |start: &StartRow| {
        let this = if start.incarnation == own {
            " (this one)"
        } else {
            ""
        };
        AnswerCell::Code(format!("{}{this}", start.node))
    };
    // The latest first: that is the one that is asked about.
    let table = row_for_each(starts.iter().rev())
        .words("Start", |start| start.incarnation)
        .words("When", |start| text::time(start.at))
        .words("Server", |start| server(start));
    html! {
        h3 { "The last starts" }
        p.small { "A start that you do not know of, or fewer than you have seen, means that a copy of the store was served." }
        (HtmlTable::plain("The last starts", table.table()).class("short"))
    }
}

/// To whole minutes: with seconds the page would change at every look.
fn minutes(milliseconds: i64) -> i64 {
    milliseconds / 60_000 * 60_000
}

/// A size in the unit that leaves one to three digits before the point.
pub fn bytes(size: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let mut amount = size as f64;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < units.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{} {}", significant(amount, 3), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 999, 4_096, 12_345_678].map(bytes),
            ["0 bytes", "999 bytes", "4.1 kB", "12.3 MB"]
        );
    }
}
