//! Webhooks: who is told what, what became of it, a form for another, and two clicks to remove one.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use debora::measure::answer::row_for_each;
use debora::measure::words::{listed, whole};
use maud::{Markup, html};

use super::heading;
use crate::document::{HtmlTable, RowMark};
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::extract::Form;
use crate::service::http::keys::{KeyName, require_admin_of_all};
use crate::service::http::pages::compress::Secret;
use crate::service::http::pages::errors::PageError;
use crate::service::http::pages::{Guest, page, parts, see, text};
use crate::service::http::webhooks::{self, ListedWebhook, MadeWebhook, WAIT_SECONDS};
use crate::service::keys::{KEY_NAME_MAX, is_dots};
use crate::service::webhooks::{EventKind, FORMATS, NewWebhook};

/// What the form sends, as it was filled in.
#[derive(Default)]
struct WebhookDraft {
    name: String,
    url: String,
    format: String,
    ids: String,
    /// The names of the events that are chosen; all of them by default.
    events: Vec<String>,
    minutes: String,
}

impl WebhookDraft {
    fn new() -> Self {
        Self {
            format: FORMATS[0].into(),
            events: EventKind::ALL.map(|kind| kind.name().into()).to_vec(),
            minutes: (WAIT_SECONDS / 60).to_string(),
            ..Self::default()
        }
    }

    /// From the fields, of which one may come more than once.
    fn of(fields: Vec<(String, String)>) -> Self {
        let mut draft = Self::default();
        for (field, value) in fields {
            match field.as_str() {
                "name" => draft.name = value.trim().into(),
                "url" => draft.url = value.trim().into(),
                "format" => draft.format = value,
                "ids" => draft.ids = value,
                "event" => draft.events.push(value),
                "minutes" => draft.minutes = value.trim().into(),
                _ => {}
            }
        }
        draft
    }

    /// The webhook it asks for.
    fn asked(&self) -> Result<NewWebhook, ApiError> {
        let minutes: u64 = self.minutes.parse().map_err(|_| {
            ApiError::unfit("the minutes of waiting must be a whole number")
                .against("a whole number", self.minutes.as_str())
        })?;
        let separated = |sign: char| sign.is_whitespace() || sign == ',';
        let ids = self.ids.split(separated).filter(|id| !id.is_empty());
        let ids: Vec<String> = ids.map(String::from).collect();
        // All that there are now is all, also of those that a later version adds.
        let all = self.events.len() == EventKind::ALL.len();
        Ok(NewWebhook {
            name: self.name.clone(),
            url: self.url.clone(),
            format: self.format.clone(),
            template: None,
            events: (!all).then(|| self.events.clone()),
            experiments: (!ids.is_empty()).then_some(ids),
            wait: minutes.saturating_mul(60),
        })
    }
}

pub async fn show(State(app): State<AppState>, guest: Guest) -> Result<Html<String>, PageError> {
    require_admin_of_all(&guest.0)?;
    render(&app, &guest, &WebhookDraft::new(), None).await
}

pub async fn make(
    State(app): State<AppState>,
    guest: Guest,
    request: Request,
) -> Result<Response, PageError> {
    require_admin_of_all(&guest.0)?;
    let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, &app).await?;
    let draft = WebhookDraft::of(fields);
    let made = match draft.asked() {
        Ok(new) => webhooks::made(&app, &guest.0, new).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => {
            let content = content(&made);
            let mut response = page("A webhook was added", Some(&guest), &content).into_response();
            response.extensions_mut().insert(Secret);
            Ok(response)
        }
        // Above the form, with what was filled in.
        Err(error)
            if error.status.is_client_error() && error.status != StatusCode::UNAUTHORIZED =>
        {
            let page = render(&app, &guest, &draft, Some(&error)).await?;
            Ok((error.status, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

fn content(made: &MadeWebhook) -> Markup {
    html! {
        (heading("A webhook was added", ""))
        p { "Webhook " strong { (made.name) } " is told what happens from now on. Its messages are signed with this secret:" }
        div.status.done {
            p.first { "Copy it now, if the receiver checks signatures: it is not shown again." }
            p.secret { code #key { (made.secret) } }
            button.secondary type="button" data-copy=(made.secret) hidden { "Copy" }
        }
        p { a href="/admin/webhooks" { "All webhooks" } }
    }
}

pub async fn remove(
    State(app): State<AppState>,
    guest: Guest,
    KeyName(name): KeyName,
) -> Result<Response, PageError> {
    webhooks::removed(&app, &guest.0, name).await?;
    Ok(see("/admin/webhooks"))
}

pub async fn test(
    State(app): State<AppState>,
    guest: Guest,
    KeyName(name): KeyName,
) -> Result<Response, PageError> {
    webhooks::tested(&app, &guest.0, name).await?;
    Ok(see("/admin/webhooks"))
}

async fn render(
    app: &AppState,
    guest: &Guest,
    draft: &WebhookDraft,
    refusal: Option<&ApiError>,
) -> Result<Html<String>, PageError> {
    let webhooks = webhooks::listed(app).await?;
    let content = html! {
        (heading("Webhooks", "/admin/webhooks"))
        p { "A webhook is an address that is told when an epoch ends, an experiment is over, or something is wrong with one." }
        @if webhooks.is_empty() { p { "There are none." } } @else { (table(&webhooks)) }
        h2 #add { "Add a webhook" }
        @if let Some(refusal) = refusal { (parts::alert(&refusal.message, "No webhook was added.")) }
        (form(draft))
    };
    Ok(page("Webhooks", Some(guest), &content))
}

fn table(webhooks: &[ListedWebhook]) -> Markup {
    let table = row_for_each(webhooks)
        .words("Name", |webhook| &webhook.name)
        .words("To", |webhook| {
            format!("{} ({})", webhook.url, webhook.format)
        })
        .words("Told", |webhook| told(webhook))
        .words("Pending", |webhook| pending(webhook))
        .words("Last taken", |webhook| {
            webhook.last_success_at.map_or("never".into(), text::time)
        })
        .words("Last failure", |webhook| failure(webhook))
        .words("Do", |webhook| doing(webhook));
    let marks = webhooks.iter().map(|webhook| RowMark {
        is_past: webhook.disabled_at.is_some(),
        ..RowMark::default()
    });
    let table = HtmlTable::cards("Webhooks", table.table());
    html! { (table.marked(marks)) }
}

fn told(webhook: &ListedWebhook) -> String {
    let events = webhook.events.as_deref();
    let experiments = webhook.experiments.as_deref();
    format!(
        "{} of {}",
        events.map_or("all events".into(), listed),
        experiments.map_or("all experiments".into(), listed)
    )
}

fn pending(webhook: &ListedWebhook) -> String {
    let pending = whole(webhook.pending);
    match webhook.failed {
        0 => pending,
        failed => format!("{pending}, {} given up", whole(failed)),
    }
}

fn failure(webhook: &ListedWebhook) -> String {
    let Some(at) = webhook.last_error_at else {
        return "none".into();
    };
    let error = webhook.last_error.as_ref();
    let error = error.map_or(String::new(), |error| format!(": {error}"));
    text::time(at) + &error
}

fn doing(webhook: &ListedWebhook) -> Markup {
    // Browsers take dots out of addresses: the form would be sent elsewhere. No webhook can be called so.
    debug_assert!(!is_dots(&webhook.name));
    let action = |what| format!("/admin/webhooks/{}/{what}", webhook.name);
    html! {
        @if webhook.disabled_at.is_none() {
            form method="post" action=(action("test")) {
                button.secondary { "Send a test" span.unseen { " to " (webhook.name) } }
            }
        }
        // Two clicks, without a script, which a dialog would need.
        details.revoke {
            summary { "Remove" span.unseen { " " (webhook.name) } " …" }
            p { "It is told nothing more, and what waits for it is dropped." }
            form method="post" action=(action("remove")) { button.contrast { "Remove it" } }
        }
    }
}

fn form(draft: &WebhookDraft) -> Markup {
    html! {
        form.narrow method="post" action="/admin/webhooks" {
            label for="name" { "Name" }
            input #name name="name" value=(draft.name) required maxlength=(KEY_NAME_MAX) pattern="(?!\\.{1,2}$)[A-Za-z0-9._@\\-]+" autocomplete="off"
                aria-describedby="name-help";
            small #name-help { "Such as ops or slack. Letters, digits and - _ . @" }
            label for="url" { "Address" }
            input #url name="url" value=(draft.url) type="url" required autocomplete="off" aria-describedby="url-help";
            small #url-help { "http or https. What follows the host is not shown again, as it may be secret." }
            fieldset {
                legend { "Messages" }
                @for (format, meaning) in [(FORMATS[0], "JSON, signed by the convention of Standard Webhooks"), (FORMATS[1], "a text, as Slack and others take it")] {
                    label {
                        input type="radio" name="format" value=(format) checked[draft.format == format] required;
                        (format) span.small { " " (meaning) }
                    }
                }
            }
            fieldset {
                legend { "Events" }
                @for kind in EventKind::ALL {
                    label {
                        input type="checkbox" name="event" value=(kind.name()) checked[draft.events.iter().any(|name| name == kind.name())];
                        (kind.name())
                    }
                }
            }
            label for="minutes" { "Minutes that outcomes may be waited for" }
            input #minutes name="minutes" value=(draft.minutes) inputmode="numeric" required;
            label for="ids" { "Experiments" }
            input #ids name="ids" value=(draft.ids) autocomplete="off" aria-describedby="ids-help";
            small #ids-help { "Their ids, separated by spaces; empty for all." }
            button { "Add the webhook" }
        }
    }
}
