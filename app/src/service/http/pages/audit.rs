//! How to audit an experiment elsewhere: three commands, and what each of them proves.
//!
//! The server does not audit itself. What it says of itself convinces nobody: the audit belongs to whoever needs to be convinced.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Html;
use maud::{Markup, html};

use super::parts::{self, Tab};
use super::{Guest, PageError, page, papers};
use crate::papers::certificate::LogAddress;
use crate::service::http::AppState;
use crate::service::http::experiments::row;
use crate::service::http::extract::Id;
use crate::service::http::papers::log_address;
use crate::store::Role;

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Html<String>, PageError> {
    guest.0.require_for(Role::Read, &id)?;
    let (experiment, progress) = row(&app, &id).await?;
    let name = app.info_of(&id, &experiment.spec)?.name.clone();
    let name = name.unwrap_or_else(|| id.clone());
    let content = html! {
        (parts::heading(&id, &name, Tab::Audit))
        (meaning())
        (by_address(&id, &log_address(&guest.0, &headers)))
        (by_log(&id, &progress.head))
        (by_store(&id))
        h2 { "To download" }
        (papers::downloads(&id, !progress.status.is_open()))
    };
    Ok(page(&format!("Audit of {name}"), Some(&guest), &content))
}

fn meaning() -> Markup {
    html! {
        p {
            "An audit starts from the spec and the key and draws every decision again, rounds every estimate, solves for every "
            "strategy, counts everything and hashes everything, epoch by epoch. It ends with all equal or with the first difference."
        }
        p {
            "Run it on a machine that the operator of this server does not control. A server that audits itself proves that what it "
            "stores is consistent, not that it is honest."
        }
        p.small { "Values, times and request keys of the open epoch are in no hash until the epoch is closed." }
    }
}

fn by_address(id: &str, address: &LogAddress) -> Markup {
    let LogAddress { service, keyed } = address;
    html! {
        h2 { "From this server's address" }
        pre {
            @if *keyed { "export DEBORA_API_KEY=debora_..\n" }
            "debora audit " (service) "/experiments/" (id)
        }
        p {
            "Proves that the log this server shows you follows from its spec, its key and its outcomes. Whoever can rewrite the whole "
            "store can still show a log of another past, with hashes to match."
        }
        @if *keyed {
            p.small { "Before the end only role admin sees the key; without it, hashes and counts are checked, and nothing is drawn again." }
        }
    }
}

fn by_log(id: &str, head: &str) -> Markup {
    html! {
        h2 { "From the log, with a head noted earlier" }
        pre { "debora audit " (id) ".jsonl --head " (head) }
        p {
            "Proves in addition that nothing before that head has changed since it was noted. The head in this command is the newest: "
            "publish it, or note it where the operator of this server cannot change it. The log is downloaded below."
        }
    }
}

fn by_store(id: &str) -> Markup {
    html! {
        h2 { "From the store, or a backup of it" }
        pre { "debora audit STORE --experiment " (id) }
        p {
            "Proves in addition that the store has no rows that its log does not show. " code { "STORE" }
            " is what the server was started with, or a copy by " code { "debora backup copy.db" } ", which contains every key."
        }
    }
}
