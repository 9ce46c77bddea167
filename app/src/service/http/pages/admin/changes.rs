//! Pausing, resuming and closing an experiment, with the reason that its log gives.

use axum::extract::{FromRequest as _, Request, State as Shared};
use axum::response::Response;
use debora::record::Kind;
use maud::{Markup, html};
use serde::Deserialize;

use crate::reading::Reading;
use crate::service::http::AppState;
use crate::service::http::experiments::change;
use crate::service::http::extract::{Form, Id};
use crate::service::http::pages::errors::PageError;
use crate::service::http::pages::{Guest, see};
use crate::service::limits::REASON_BYTES_MAX;
use crate::service::request::Change;
use crate::store::{Role, Status};

/// What the forms send.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeReason {
    #[serde(default)]
    reason: String,
}

pub async fn pause(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
    request: Request,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Pause, request).await
}

pub async fn resume(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
    request: Request,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Resume, request).await
}

pub async fn close(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
    request: Request,
) -> Result<Response, PageError> {
    changed(&app, &guest, id, Change::Close, request).await
}

async fn changed(
    app: &AppState,
    guest: &Guest,
    id: String,
    what: Change,
    request: Request,
) -> Result<Response, PageError> {
    // Before the body: what is refused by the head alone takes no memory from others.
    guest.0.require_for(Role::Admin, &id)?;
    let Form(ChangeReason { reason }) = Form::<ChangeReason>::from_request(request, app).await?;
    // A form sends an empty field, too; and line ends as two characters, which a reason may not have.
    let reason = Some(reason.trim().replace("\r\n", "\n")).filter(|reason| !reason.is_empty());
    change(app, &guest.0, id.clone(), what, reason).await?;
    Ok(see(&format!("/experiments/{id}")))
}

/// The forms of an experiment that is not over.
pub fn forms(reading: &Reading) -> Markup {
    let paused = reading.progress.status == Status::Paused;
    let id = reading.id();
    html! {
        section.changes aria-label="Change this experiment" {
            h2 { @if paused { "Resume or close" } @else { "Pause or close" } }
            div.actions {
                @if paused {
                    (form(id, "resume", "Resume", "It decides again, from where it stopped. Its log will say who resumed it, when and why.", ""))
                } @else {
                    (form(id, "pause", "Pause", "It decides nothing until it is resumed; outcomes are still taken. Its log will say who paused it, when and why.", "secondary"))
                }
                (form(id, "close", "Close", closing(reading.kind() == Kind::Commit), "contrast"))
            }
        }
    }
}

fn closing(committed: bool) -> &'static str {
    if committed {
        "This ends the experiment for good: it decides and learns nothing more, and its key is published (if other experiments have \
         the same key, once all of them are over). As it has committed, nothing is lost by it."
    } else {
        "This ends the experiment for good: it decides and learns nothing more, and its key is published (if other experiments have \
         the same key, once all of them are over)."
    }
}

/// Two clicks each, the second after what it means; without a script, which a dialog would need.
fn form(id: &str, what: &str, word: &str, meaning: &str, class: &str) -> Markup {
    let field = format!("{what}-reason");
    html! {
        details {
            summary role="button" class="outline secondary" { (word) " …" }
            form method="post" action={ "/experiments/" (id) "/" (what) } {
                p { (meaning) }
                label for=(field) { "Reason, for the log " span.small { "(optional)" } }
                // Bytes are what is limited, and of characters there are never more.
                textarea #(field) name="reason" rows="2" maxlength=(REASON_BYTES_MAX) {}
                button class=(class) { (word) " it" }
            }
        }
    }
}
