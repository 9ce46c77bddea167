//! The audit of an experiment: run it, watch it, see it pass or the first difference, and how to run it elsewhere.

use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::measure::words::{counted, percent, significant};
use maud::{Markup, html};

use super::live::Live;
use super::parts::{self, Tab};
use super::{Guest, PageError, page, papers, see, text};
use crate::papers::certificate::LogAddress;
use crate::service::http::AppState;
use crate::service::http::audits::{self, AuditFinding, AuditProgress, AuditState};
use crate::service::http::experiments::row;
use crate::service::http::extract::Id;
use crate::service::http::papers::log_address;

/// How long the answer to the button waits for the audit to end: most are over by then, and show their finding at once.
const GLANCE: Duration = Duration::from_millis(500);

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, PageError> {
    let state = audits::state_of(&app, &guest.0, &id).await?;
    let name = app.info(&id).await?.name.clone();
    let name = name.unwrap_or_else(|| id.clone());
    let (_, progress) = row(&app, &id).await?;
    let now = (app.service.clock)().wall;
    let shown = live(&state, now);
    // An audit that has ended does not change by itself.
    let live = if state.running.is_some() {
        Live::new(&format!("/experiments/{id}/audit"), &shown)
    } else {
        Live::over(&shown)
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&id, &name, Tab::Audit))
            (live.markup)
            (meaning())
            (elsewhere(&id, &log_address(&guest.0, &headers), &progress.head))
            h2 { "To download" }
            (papers::downloads(&id, !progress.status.is_open()))
        };
        page(&format!("Audit of {name}"), Some(&guest), &content)
    }))
}

pub async fn start(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    audits::begun(&app, &guest.0, &id).await?;
    app.audits.wait(GLANCE).await;
    Ok(see(&format!("/experiments/{id}/audit")))
}

pub async fn stop(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    audits::stopped(&app, &guest.0, &id).await?;
    app.audits.wait(GLANCE).await;
    Ok(see(&format!("/experiments/{id}/audit")))
}

fn live(state: &AuditState, now: i64) -> Markup {
    let address = format!("/experiments/{}/audit", state.id);
    html! {
        @match &state.running {
            Some(running) => (under_way(running, &address)),
            None => {
                @match &state.last {
                    Some(last) => (found(last, now)),
                    None => section.status { p.first { "This server has not audited the experiment since it started." } },
                }
                form.run method="post" action=(address) {
                    button disabled[state.other_running] {
                        @if state.last.is_some() { "Run the audit again" } @else { "Run the audit" }
                    }
                }
                @if state.other_running {
                    p.small { "Another experiment is being audited, and one is audited at a time. " a href=(address) { "Look again" } }
                }
            }
        }
    }
}

fn under_way(running: &AuditProgress, address: &str) -> Markup {
    let epochs = counted(running.epochs, "epoch", "epochs");
    let decisions = counted(running.decisions, "decision", "decisions");
    let outcomes = counted(running.outcomes, "outcome", "outcomes");
    html! {
        section.status.running role="status" {
            p.first {
                "Being audited: " (percent(running.share)) " is checked and equal so far, " (decisions) " and " (outcomes) " in "
                (epochs) "."
            }
            progress value=(running.share) max="1" aria-label="Checked so far" {}
        }
        div.actions {
            form method="post" action={ (address) "/stop" } { button.secondary { "Stop it" } }
            // For those without scripts: with them the page follows by itself.
            a role="button" class="outline secondary" href=(address) { "Look again" }
        }
    }
}

fn found(last: &AuditFinding, now: i64) -> Markup {
    let class = match last.verdict {
        "equal" => "running",
        "different" | "failed" => "alarm",
        _ => "waiting",
    };
    html! {
        section.status.finding.(class) {
            (parts::answer(&last.answer))
            p.small {
                "Audited " (text::age(now - last.ended_at)) " ago (" (text::time(last.ended_at)) "), within " (significant(last.seconds, 2))
                " s, up to epoch " (last.epochs.saturating_sub(1)) "."
            }
        }
    }
}

fn meaning() -> Markup {
    html! {
        h2 { "What it shows" }
        p {
            "An audit starts from the spec and the key and draws every decision again, rounds every estimate, solves for every "
            "strategy, counts everything and hashes everything, epoch by epoch. It ends with all equal or with the first difference."
        }
        h2 { "What it does not show" }
        p {
            "Run here, by the server that is audited, it proves that what is stored is consistent, not that the server is honest: "
            "whoever controls the server could have it answer anything, and whoever can rewrite the whole store can rehash it. "
            "Anyone who needs to be convinced should run it elsewhere, with a head that was published or noted down while the "
            "experiment ran."
        }
        p {
            "Values, times and request keys of the open epoch are in no hash yet, and rows that no log shows are checked by an "
            "audit of the store alone."
        }
    }
}

/// The commands, as they can be pasted.
fn elsewhere(id: &str, address: &LogAddress, head: &str) -> Markup {
    let LogAddress { service, keyed } = address;
    html! {
        h2 { "Run it elsewhere" }
        p { "On any machine that has debora, by this server's address:" }
        pre {
            @if *keyed { "export DEBORA_API_KEY=debora_..\n" }
            "debora audit " (service) "/experiments/" (id)
        }
        @if *keyed {
            p.small { "Before the end the key is shown to role admin alone; with another, hashes and counts are checked, and nothing is drawn again." }
        }
        p { "Or from the log, downloaded below, with a head that you noted before:" }
        pre { "debora audit " (id) ".jsonl --head " (head) }
        p.small { "The head in this command is the newest. Note it where the operator of this server cannot change it." }
    }
}
