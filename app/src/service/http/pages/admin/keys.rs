//! API keys: who may do what, who used which when, a form for another, and two clicks to revoke one.

use std::collections::BTreeSet;

use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use debora::measure::answer::row_for_each;
use debora::measure::words::{counted, listed};
use maud::{Markup, html};

use super::heading;
use super::shown::{self, ShownKey};
use crate::document::{HtmlCell, HtmlTable, RowMark};
use crate::hex;
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::{self, LISTED_MAX, Listed};
use crate::service::http::extract::{Form, StrangerForm};
use crate::service::http::keys::{self, KeyName, ListedKey, require_admin_of_all};
use crate::service::http::pages::compress::Secret;
use crate::service::http::pages::errors::PageError;
use crate::service::http::pages::{Guest, login, page, parts, see, text};
use crate::service::keys::{KEY_NAME_MAX, NewKey, is_dots};
use crate::service::random::random;
use crate::store::Role;

/// What the form sends, as it was filled in.
#[derive(Clone, Default)]
struct KeyDraft {
    name: String,
    role: String,
    /// Whether it is for some experiments only.
    some: bool,
    chosen: BTreeSet<String>,
    typed: String,
    /// What the form was rendered with.
    once: String,
}

impl KeyDraft {
    /// From the fields, of which one may come more than once.
    fn of(fields: Vec<(String, String)>) -> Self {
        let mut draft = Self::default();
        for (field, value) in fields {
            match field.as_str() {
                "name" => draft.name = value.trim().into(),
                "role" => draft.role = value,
                "scope" => draft.some = value == "some",
                "experiment" => drop(draft.chosen.insert(value)),
                "ids" => draft.typed = value,
                "once" => draft.once = value,
                _ => {}
            }
        }
        draft
    }

    /// The key it asks for.
    fn asked(&self) -> Result<NewKey, ApiError> {
        let role = [Role::Read, Role::Decide, Role::Admin]
            .into_iter()
            .find(|role| role.name() == self.role)
            .ok_or_else(|| {
                ApiError::unfit("choose what the key allows: read, decide or admin")
                    .against("read, decide or admin", self.role.as_str())
            })?;
        let separated = |sign: char| sign.is_whitespace() || sign == ',';
        let typed = self.typed.split(separated).filter(|id| !id.is_empty());
        let ids: BTreeSet<String> = typed.map(String::from).chain(self.chosen.clone()).collect();
        // Neither is guessed at: a key must not allow more than was meant, nor be of no use.
        if self.some == ids.is_empty() {
            let message = if self.some {
                "choose the experiments that the key is for, or type their ids"
            } else {
                "experiments are chosen, but the key is for all of them; choose \"some experiments only\", or none of them"
            };
            return Err(ApiError::unfit(message));
        }
        Ok(NewKey {
            name: self.name.clone(),
            role,
            experiments: self.some.then(|| ids.into_iter().collect()),
        })
    }
}

pub async fn show(State(app): State<AppState>, guest: Guest) -> Result<Html<String>, PageError> {
    require_admin_of_all(&guest.0)?;
    let draft = KeyDraft {
        // The first key must be able to make others; after that the least is a good beginning.
        role: if guest.0.keyed { "decide" } else { "admin" }.into(),
        ..KeyDraft::default()
    };
    render(&app, &guest, &draft, None).await
}

pub async fn make(
    State(app): State<AppState>,
    guest: Result<Guest, PageError>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, PageError> {
    let guest = match guest {
        Ok(guest) => guest,
        Err(refusal) => return repeated(&app, &headers, request, refusal).await,
    };
    require_admin_of_all(&guest.0)?;
    let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, &app).await?;
    let draft = KeyDraft::of(fields);
    let made = match draft.asked() {
        Ok(new) => shown::made(&app, &guest.0, draft.once.clone(), new).await,
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => answer(&app, Some(&guest), &headers, &made).await,
        Err(error) if error.status == StatusCode::UNAUTHORIZED => Err(error.into()),
        // Above the form, with what was filled in.
        Err(error) if error.status.is_client_error() => {
            let page = render(&app, &guest, &draft, Some(&error)).await?;
            Ok((error.status, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// The answer to somebody without a key, who may have just made the first.
async fn repeated(
    app: &AppState,
    headers: &HeaderMap,
    request: Request,
    refusal: PageError,
) -> Result<Response, PageError> {
    let Ok(StrangerForm(fields)) = StrangerForm::from_request(request, app).await else {
        return Err(refusal);
    };
    let draft = KeyDraft::of(fields);
    let Ok(new) = draft.asked() else {
        return Err(refusal);
    };
    match shown::first(app, &draft.once, &new).await {
        Some(made) => answer(app, None, headers, &made).await,
        None => Err(refusal),
    }
}

/// The one page that shows a key. An answer to the form and not a page of its own: no address leads to it again.
async fn answer(
    app: &AppState,
    guest: Option<&Guest>,
    headers: &HeaderMap,
    made: &ShownKey,
) -> Result<Response, PageError> {
    let mut response = page("A key was made", guest, &content(made)).into_response();
    response.extensions_mut().insert(Secret);
    // From here on a key is needed, and the one who made the first is not to be shut out by it.
    if made.first {
        let cookie = login::begin(app, &made.made.name, headers).await?;
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

fn content(ShownKey { made, first, .. }: &ShownKey) -> Markup {
    html! {
        (heading("A key was made", ""))
        p { "Key " strong { (made.name) } " has role " (made.role.name()) " for " (scope(made.experiments.as_deref())) "." }
        div.status.done {
            p.first { "Copy it now: it is not shown again, since only its hash is kept." }
            p.secret { code #key { (made.key) } }
            button.secondary type="button" data-copy=(made.key) hidden { "Copy" }
        }
        @if *first {
            p {
                "It is the first key. From now on every request needs one, and you are logged in with this one. Programs that ask "
                "and tell need one, too: make each its own, with role decide."
            }
        }
        p { "Programs send it as " code { "Authorization: Bearer debora_…" } "; people log in with it. Whoever has it can do what it allows." }
        p { a href="/admin/keys" { "All keys" } }
    }
}

pub async fn revoke(
    State(app): State<AppState>,
    guest: Guest,
    KeyName(name): KeyName,
) -> Result<Response, PageError> {
    keys::revoked(&app, &guest.0, name).await?;
    Ok(see("/admin/keys"))
}

async fn render(
    app: &AppState,
    guest: &Guest,
    draft: &KeyDraft,
    refusal: Option<&ApiError>,
) -> Result<Html<String>, PageError> {
    let keys = keys::listed(app).await?;
    let list = experiments::listed(app, &guest.0, None, LISTED_MAX, true).await?;
    let content = html! {
        (heading("API keys", "/admin/keys"))
        @if keys.is_empty() { (open_to_all()) } @else { (table(&keys, &guest.0.name)) }
        h2 #make { @if keys.is_empty() { "Make the first key" } @else { "Make a key" } }
        @if let Some(refusal) = refusal { (parts::alert(&refusal.message, "No key was made.")) }
        (form(draft, &hex::encode(&random::<16>().map_err(ApiError::store)?), &list.experiments))
    };
    Ok(page("API keys", Some(guest), &content))
}

fn open_to_all() -> Markup {
    let sentence = "There are no API keys: everyone who can reach this address is admin.";
    let remedy = "The first key ends that: every request then needs a key, of programs and of people. It must have role admin for \
        all experiments, and whoever makes it here is logged in with it. Programs that ask and tell get 401 until they have one, too.";
    parts::alert(sentence, remedy)
}

fn scope(experiments: Option<&[String]>) -> String {
    experiments.map_or("all experiments".into(), listed)
}

fn table(keys: &[ListedKey], own: &str) -> Markup {
    let valid = keys.iter().filter(|key| key.revoked_at.is_none()).count();
    let time = |at: Option<i64>, none: &str| at.map_or(none.to_owned(), text::time);
    let table = row_for_each(keys)
        .words("Name", |key| named(key, key.name == own))
        .words("Role", |key| key.role.name())
        .words("For", |key| scope(key.experiments.as_deref()))
        .words("Made", |key| text::time(key.created_at))
        .words("Last used", |key| time(key.last_used_at, "never"))
        .words("Revoked", |key| match key.revoked_at {
            Some(at) => HtmlCell::from(text::time(at)),
            None => revoking(key, key.name == own).into(),
        });
    let marks = keys.iter().map(|key| RowMark {
        is_past: key.revoked_at.is_some(),
        ..RowMark::default()
    });
    html! {
        p {
            (counted(valid as u64, "key works", "keys work"))
            @if valid < keys.len() { ", " (counted((keys.len() - valid) as u64, "is", "are")) " revoked" }
            ". A use is noted within a minute."
        }
        (HtmlTable::cards("API keys", table.table()).marked(marks))
    }
}

fn named(key: &ListedKey, own: bool) -> Markup {
    html! { bdi { (key.name) } @if own { " " span.small { "(yours)" } } }
}

/// Two clicks, as it cannot be undone; without a script, which a dialog would need.
fn revoking(key: &ListedKey, own: bool) -> Markup {
    // Browsers take them out of addresses: the form would be sent elsewhere.
    if is_dots(&key.name) {
        return html! { "On the server's machine: " code { "debora keys revoke " (key.name) } };
    }
    html! {
        details.revoke {
            summary { "Revoke" span.unseen { " " (key.name) } " …" }
            p {
                "Every server refuses it within two seconds, and sessions begun with it end. It cannot be undone, and the name is not "
                "given again."
                @if own { " It is the key that you are logged in with: you will be logged out." }
            }
            form method="post" action={ "/admin/keys/" (key.name) "/revoke" } { button.contrast { "Revoke it" } }
        }
    }
}

fn form(draft: &KeyDraft, once: &str, experiments: &[Listed]) -> Markup {
    let roles = [
        (Role::Read, "sees states and logs"),
        (Role::Decide, "also asks for decisions and tells outcomes"),
        (
            Role::Admin,
            "does everything and sees the experiments' keys",
        ),
    ];
    html! {
        form.narrow method="post" action="/admin/keys" {
            input type="hidden" name="once" value=(once);
            label for="name" { "Name" }
            // The browser checks what the service would refuse, before anything is sent.
            input #name name="name" value=(draft.name) required maxlength=(KEY_NAME_MAX) pattern="(?!\\.{1,2}$)[A-Za-z0-9._@\\-]+" autocomplete="off"
                aria-describedby="name-help";
            small #name-help { "Who or what uses it, such as router or ann@example.org: the log names it with all that it does. Letters, digits and - _ . @" }
            fieldset {
                legend { "Role" }
                @for (role, meaning) in roles {
                    label {
                        input type="radio" name="role" value=(role.name()) checked[draft.role == role.name()] required;
                        (role.name()) span.small { " " (meaning) }
                    }
                }
            }
            fieldset {
                legend { "For" }
                label { input type="radio" name="scope" value="all" checked[!draft.some]; "all experiments" }
                label { input type="radio" name="scope" value="some" checked[draft.some]; "some experiments only; it sees only these" }
            }
            (scopes(draft, experiments))
            button { "Make the key" }
        }
    }
}

fn scopes(draft: &KeyDraft, experiments: &[Listed]) -> Markup {
    html! {
        details open[draft.some] {
            summary { "Which experiments" }
            @if !experiments.is_empty() {
                label for="experiment" { "Chosen from those that there are" }
                select #experiment name="experiment" multiple size=(experiments.len().clamp(2, 8)) {
                    @for experiment in experiments {
                        option value=(experiment.id) selected[draft.chosen.contains(&experiment.id)] {
                            (experiment.id) @if let Some(name) = &experiment.name { " (" (name) ")" }
                        }
                    }
                }
            }
            label for="ids" { "Or their ids, also of those to come" }
            input #ids name="ids" value=(draft.typed) autocomplete="off" aria-describedby="ids-help";
            small #ids-help { "Separated by spaces." }
        }
    }
}
