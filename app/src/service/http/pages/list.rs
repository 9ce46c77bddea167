//! All experiments: where each stands, kept up to date; sorted, filtered and searched by the address.
//!
//! A page has the newest thousand, or those before one of them, and is sorted and filtered as a whole. A search goes through page
//! after page until it has a thousand or its time is up; where it stopped, a link goes on.

mod line;
mod view;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::measure::answer::row_for_each;
use debora::measure::words::{counted, listed, whole};
use maud::{Markup, html};

use self::line::ListLine;
use self::view::{Column, ListView, ViewQuery};
use super::live::{self, Live};
use super::{Guest, PageError, page};
use crate::document::{HtmlTable, RowMark};
use crate::reading::RunState;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::LISTED_MAX;
use crate::service::http::extract::QueryParams;
use crate::service::http::summary::{BUDGET, FACTS_MAX};
use crate::service::recent::Recent;
use crate::store::{ExperimentLine, Role, Store};

/// How long a search reads names that it does not know yet.
const SEARCH: Duration = Duration::from_millis(200);

/// How long a list is good for refreshes, in milliseconds: less than the time between two.
const FRESH: i64 = 3_000;

/// How many lists are kept: each may be a megabyte.
const LISTS_MAX: usize = 16;

/// A page of the list.
struct Found {
    lines: Vec<ListLine>,
    /// Experiments looked at.
    looked: usize,
    /// The last of them, if there are older ones.
    next: Option<String>,
}

pub async fn show(
    State(app): State<AppState>,
    guest: Guest,
    headers: HeaderMap,
    QueryParams(query): QueryParams<ViewQuery>,
) -> Result<Response, PageError> {
    guest.0.require(Role::Read)?;
    let view = ListView::of(query)?;
    let content = shared_content(&app, &guest.0, &view, live::is_refresh(&headers)).await?;
    let live = Live::new(&view.address(), &content);
    Ok(live.respond(&headers, || {
        let content = html! {
            h1 { "Experiments" }
            (controls(&view))
            (live.markup)
        };
        page("Experiments", Some(&guest), &content)
    }))
}

/// The list as it is or, for a refresh, as another who sees the same was given it: however many keep it open, it is written once in
/// a while.
async fn shared_content(
    app: &AppState,
    caller: &Caller,
    view: &ListView,
    refresh: bool,
) -> Result<Arc<Markup>, ApiError> {
    let key = format!("{:?} {:?} {}", caller.role, caller.scope, view.address());
    let now = (app.service.clock)();
    if let Some(list) = app.lists.fresh(&key, now.monotonic).filter(|_| refresh) {
        return Ok(list);
    }
    let (shared, caller, asked) = (Arc::clone(app), caller.clone(), view.clone());
    let read = move |store: &mut Store| {
        let found = find(&shared, store, &caller, &asked, now.wall)?;
        // On this thread, which gives way to all others.
        Ok(Arc::new(content(&caller, &asked, found)))
    };
    let list = app.read_page(read).await?;
    app.lists.keep(&key, now.monotonic, &list);
    Ok(list)
}

/// Lists as they were written last.
pub struct Lists(Mutex<Recent<(i64, Arc<Markup>)>>);

impl Default for Lists {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(LISTS_MAX)))
    }
}

impl Lists {
    fn fresh(&self, key: &str, now: i64) -> Option<Arc<Markup>> {
        let mut lists = self.0.lock().expect("no panic while finding a list");
        let (at, list) = lists.get_mut(key)?;
        (now - *at < FRESH).then(|| Arc::clone(list))
    }

    fn keep(&self, key: &str, now: i64, list: &Arc<Markup>) {
        let mut lists = self.0.lock().expect("no panic while keeping a list");
        lists.insert(key, (now, Arc::clone(list)));
        lists.trim();
    }
}

fn find(
    app: &AppState,
    store: &mut Store,
    caller: &Caller,
    view: &ListView,
    now: i64,
) -> Result<Found> {
    let begun = Instant::now();
    let end = begun + SEARCH;
    let mut last = Some(view.before.clone()).filter(|id| !id.is_empty());
    let (mut rows, mut looked) = (Vec::new(), 0);
    let more = loop {
        // One more than is shown tells whether there are older ones.
        let mut page = caller.lines(store, last.as_deref(), true, LISTED_MAX + 1)?;
        let more = page.len() > LISTED_MAX;
        page.truncate(LISTED_MAX);
        let mut page = page.into_iter();
        for row in page.by_ref() {
            let facts = app.summaries.facts(store, &row.id)?;
            last = Some(row.id.clone());
            looked += 1;
            if view.finds(&row.id, facts.name.as_deref()) {
                rows.push((row, facts));
            }
            let late = !view.text.is_empty() && Instant::now() >= end;
            if late || rows.len() == LISTED_MAX {
                break;
            }
        }
        let stopped = page.len() > 0;
        let full = rows.len() == LISTED_MAX || looked >= FACTS_MAX || Instant::now() >= end;
        if stopped || !more || full {
            break stopped || more;
        }
    };
    let changed: Vec<&ExperimentLine> = rows.iter().map(|(row, _)| row).collect();
    app.summaries.refresh(store, &changed, now, begun + BUDGET);
    let lines = rows.into_iter().map(|(row, facts)| ListLine {
        summary: app.summaries.of(&row.id),
        row,
        facts,
        now,
    });
    Ok(Found {
        lines: lines.collect(),
        looked,
        next: last.filter(|_| more),
    })
}

/// The search, the filters and the order, as a form: without scripts it is sent by its button.
fn controls(view: &ListView) -> Markup {
    let sorts = Column::ALL.map(|column| {
        let [name, heading, first] = column.words();
        (name, format!("{heading}, {first}"))
    });
    html! {
        search {
            // What is under way for the list would otherwise replace the answer with an older one.
            form.controls action="/" hx-get="/" hx-target="#live" hx-select="#live" hx-swap="morph" hx-ext="morph"
                hx-trigger="input delay:250ms, submit" hx-sync="#live:replace" hx-replace-url="true" {
                label { "Search" input type="search" name="q" value=(view.text) placeholder="name or id" autocomplete="off"; }
                label {
                    "State"
                    select name="state" {
                        option value="" { "all" }
                        @for state in RunState::ALL {
                            option value=(state.word()) selected[view.state == Some(state)] { (state.word()) }
                        }
                    }
                }
                label {
                    "Sorted by"
                    select name="sort" {
                        @for (name, words) in &sorts {
                            option value=(name) selected[!view.reversed && view.column.words()[0] == *name] { (words) }
                        }
                        // An order that only the headings give must not be lost when something is searched for.
                        @if view.reversed {
                            option value=(view.sort()) selected { (view.column.words()[1]) ", the other way" }
                        }
                    }
                }
                label.check { input type="checkbox" name="alerts" value="yes" checked[view.alerts]; "With alerts alone" }
                button.outline { "Apply" }
            }
        }
    }
}

fn content(caller: &Caller, view: &ListView, found: Found) -> Markup {
    let Found {
        mut lines,
        looked,
        next,
    } = found;
    let (all, totals) = (lines.len(), totals(&lines));
    let unread = unread(&lines);
    lines.retain(|line| view.keeps(line));
    view.sort_lines(&mut lines);
    html! {
        @if all == 0 && view.text.is_empty() {
            (nothing(caller, view))
        } @else {
            p.totals { (totals) }
            p.small aria-live="polite" { (shown(view, [lines.len(), all, looked], unread)) }
            @if !lines.is_empty() { (table(view, &lines)) }
        }
        @if let Some(last) = next {
            p { a href=(view.before(&last).address()) { @if view.text.is_empty() { "Older experiments" } @else { "Search older experiments" } } }
        }
        @if !view.before.is_empty() { p { a href=(view.before("").address()) { "The newest experiments" } } }
    }
}

/// How many experiments are in which state, in words.
fn totals(lines: &[ListLine]) -> String {
    let count = |state| {
        lines
            .iter()
            .filter(|line| line.run_state() == Some(state))
            .count()
    };
    let words = RunState::ALL.map(|state| (count(state), state));
    let said = words.iter().filter(|(count, _)| *count > 0);
    let mut said: Vec<_> = said
        .map(|(count, state)| match state {
            RunState::Waiting => format!("{count} waiting for outcomes"),
            state => format!("{count} {}", state.word()),
        })
        .collect();
    let alerts: usize = lines.iter().filter_map(ListLine::alerts_count).sum();
    if alerts > 0 {
        said.push(counted(alerts as u64, "alert", "alerts"));
    }
    // Counted apart: of these it is not known whether they wait, or have alerts.
    let unread = unread(lines);
    let mut totals = format!("{}.", listed(&said));
    if said.is_empty() {
        totals = if unread > 0 { "" } else { "None." }.into();
    }
    if unread > 0 {
        totals += &format!(
            " {} still being read: states and alerts are not all known yet.",
            counted(unread as u64, "experiment is", "experiments are")
        );
    }
    totals
}

fn unread(lines: &[ListLine]) -> usize {
    lines.iter().filter(|line| line.summary.is_none()).count()
}

/// What part of the experiments the table shows, and what was looked at for it.
fn shown(view: &ListView, [shown, all, looked]: [usize; 3], unread: usize) -> String {
    // What is not read yet may match a filter as well.
    let so_far = match unread {
        0 => "",
        _ => " so far",
    };
    let mut words = match (shown, all) {
        (0, _) => format!("No experiment matches{so_far}."),
        (shown, all) if shown < all => format!(
            "Showing {} of {}{so_far}.",
            whole(shown as u64),
            whole(all as u64)
        ),
        (_, all) => format!(
            "Showing {}.",
            counted(all as u64, "experiment", "experiments")
        ),
    };
    if !view.text.is_empty() {
        words += &format!(
            " {} searched.",
            counted(looked as u64, "experiment was", "experiments were")
        );
    }
    words
}

/// What to do where there is nothing to see.
fn nothing(caller: &Caller, view: &ListView) -> Markup {
    html! {
        @if !view.before.is_empty() {
            p { "There are no older experiments." }
        } @else {
            p { "There are no experiments yet." }
            @if let Some(scope) = &caller.scope {
                p { "Your key is for " (listed(scope)) " alone." }
            }
            @if caller.role == Role::Admin {
                p { a href="/new" role="button" { "Create the first one" } }
                p.small { "Programs create them with POST /v1/experiments: " a href="/api" { "the API" } "." }
            } @else {
                p { "Someone whose key has role admin creates them." }
            }
        }
    }
}

fn table(view: &ListView, lines: &[ListLine]) -> Markup {
    let table = row_for_each(lines)
        .words("Experiment", |line| line.named())
        .words("State", |line| line.state())
        .words("Progress", |line| line.progress())
        .numbers("Rate", |line| line.rate())
        .words("Epoch", |line| line.epoch())
        .words("Leader", |line| line.leading())
        .words("Limits", |line| line.limits())
        .words("Alerts", |line| line.alerted())
        .numbers("Age", |line| line.age());
    // Known by its id when the list is refreshed, so that rows move rather than change into one another.
    let marks = lines.iter().map(|line| RowMark {
        id: Some(format!("x-{}", line.row.id)),
        ..RowMark::default()
    });
    let table = HtmlTable::cards("Experiments", table.table());
    let mut table = table.class("cards list").marked(marks);
    for (place, column) in Column::ALL.into_iter().enumerate() {
        let [_, heading, first] = column.words();
        let address = view.sorted_by(column).address();
        let link = html! { a href=(address) title={ "Sort: " (first) } { (heading) } };
        table = table
            .head(place, link)
            .sorted(place, view.direction(column));
    }
    table.markup()
}
