//! The interface for programs, as a page for people: written on the server from the OpenAPI document.
//!
//! Viewers that others publish were measured (docs/service.md): each is larger than a whole page may be, and shows nothing
//! without a script.

pub mod examples;
mod schema;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, HOST, VARY};
use axum::response::{Html, IntoResponse, Response};
use debora::measure::answer::{TableDraft, row_for_each};
use maud::{Markup, html};
use serde_json::Value;

use super::compress::{gzip, takes_gzip};
use super::errors::PageError;
use super::{Guest, lasting_page, parts};
use crate::document::{HtmlCell, HtmlTable, RowMark};
use crate::service::http::error::ApiError;
use crate::service::http::problems::{CODES, MEDIA_TYPE};
use crate::service::http::routes::OPENAPI;
use crate::service::http::{AppState, session};
use crate::service::recent::Recent;
use examples::{ADDRESS, EXAMPLES, Example};
use schema::{ApiDocument, prose};

static DOCUMENT: LazyLock<ApiDocument> =
    LazyLock::new(|| ApiDocument(serde_json::from_str(OPENAPI).expect("a document is JSON")));

/// Where an example is sent, and whether it needs a key.
struct Sender {
    address: String,
    keyed: bool,
}

impl Sender {
    fn of(headers: &HeaderMap, guest: Option<&Guest>) -> Self {
        // As the browser reached us, so that an example runs as it is copied. Not for strangers: each name that they make up would
        // be another page to write.
        let host = guest.and_then(|_| headers.get(HOST)?.to_str().ok());
        let scheme = if session::came_by_tls(headers) {
            "https"
        } else {
            "http"
        };
        Self {
            address: host.map_or(ADDRESS.into(), |host| format!("{scheme}://{host}")),
            keyed: guest.is_none_or(|guest| guest.0.keyed),
        }
    }
}

/// Pages kept: one for strangers, and one for each of those who asked last.
const WRITTEN_MAX: usize = 16;

/// The page as it is sent.
pub struct KeptPage {
    plain: Bytes,
    compressed: Bytes,
}

/// The pages that were asked for last. It is long and the same for all but its head, and who has no key may ask for it, too: so
/// it is written and compressed once.
pub struct KeptPages(Mutex<Recent<Arc<KeptPage>>>);

impl Default for KeptPages {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(WRITTEN_MAX)))
    }
}

impl KeptPages {
    fn lock(&self) -> MutexGuard<'_, Recent<Arc<KeptPage>>> {
        self.0.lock().expect("no panic while a page is kept")
    }

    fn of(&self, name: &str) -> Option<Arc<KeptPage>> {
        self.lock().get_mut(name).cloned()
    }

    fn keep(&self, name: &str, page: KeptPage) -> Arc<KeptPage> {
        let page = Arc::new(page);
        let mut kept = self.lock();
        kept.insert(name, Arc::clone(&page));
        kept.trim();
        page
    }
}

// For strangers, too: the document itself needs no key.
pub async fn show(
    State(app): State<AppState>,
    guest: Result<Guest, PageError>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let guest = guest.ok();
    let sender = Sender::of(&headers, guest.as_ref());
    let page = written(&app, guest, sender).await?;
    let vary = [(VARY, "accept-encoding")];
    Ok(if takes_gzip(&headers) {
        let gzip = [(CONTENT_ENCODING, "gzip")];
        (vary, gzip, Html(page.compressed.clone())).into_response()
    } else {
        (vary, Html(page.plain.clone())).into_response()
    })
}

async fn written(
    app: &AppState,
    guest: Option<Guest>,
    sender: Sender,
) -> Result<Arc<KeptPage>, ApiError> {
    // All that the page depends on.
    let caller = guest.as_ref().map(|Guest(caller)| {
        let all = caller.scope.is_none();
        (&caller.name, caller.role, all)
    });
    let name = format!("{:?}", (&sender.address, sender.keyed, caller));
    if let Some(page) = app.kept_pages.of(&name) {
        return Ok(page);
    }
    let shared = Arc::clone(app);
    let write = move || {
        // Asked again: many may have waited for the first.
        let kept = shared.kept_pages.of(&name);
        kept.unwrap_or_else(|| {
            let Html(text) = write(guest.as_ref(), &sender);
            let page = KeptPage {
                compressed: gzip(text.as_bytes()).into(),
                plain: text.into(),
            };
            shared.kept_pages.keep(&name, page)
        })
    };
    app.compute(write).await
}

fn write(guest: Option<&Guest>, sender: &Sender) -> Html<String> {
    let tags = by_tag(&DOCUMENT);
    let content = html! {
        h1 { "API" }
        (introduction(sender))
        (contents(&tags))
        @for (tag, operations) in &tags {
            h2 #{ "tag-" (tag) } { (title(tag)) }
            @for operation in operations { (operation.section(sender)) }
        }
        h2 #errors { "Errors" }
        (errors())
        h2 #schemas { "What is sent and answered" }
        @for (name, schema) in DOCUMENT.schemas() { (DOCUMENT.section(name, schema)) }
    };
    lasting_page("API", guest, &content)
}

fn introduction(sender: &Sender) -> Markup {
    html! {
        p {
            "Bodies are JSON, and so are answers unless it is said otherwise. What is answered is durable. " a href="/openapi.json" { "openapi.json" }
            " is the same for programs (OpenAPI 3.1)."
        }
        @if sender.keyed {
            p {
                "Requests need a key, sent as " code { "Authorization: Bearer debora_…" } "; the examples take it from the variable "
                code { "DEBORA_KEY" } ". Each operation says which role it needs: read, decide or admin, each of which may do what "
                "those before it may."
            }
        } @else {
            p { "This service has no keys, so requests need none. Once there is one, each operation needs the role that it names." }
        }
        p {
            "What cannot be done is answered with " (schema::link("ApiError")) " (" code { (MEDIA_TYPE) } ", RFC 9457): a stable "
            a href="#errors" { "code" } ", a sentence with the remedy, the rule and the value. 422 is wrong in itself, 409 at this moment. "
            "503 is over a limit of the service, or its store fails: worth repeating, after the seconds in "
            code { "Retry-After" } "."
        }
    }
}

/// Every code, at the place that the `type` of an error leads to.
fn errors() -> Markup {
    let table = row_for_each(CODES)
        .words("Code", |(_, code, _)| html! { code { (code) } })
        .words("Status", |(status, ..)| status.to_string())
        .words("Title", |(.., title)| *title);
    let marks = CODES.iter().map(|(_, code, _)| RowMark {
        id: Some(format!("error-{code}")),
        ..RowMark::default()
    });
    let table = HtmlTable::plain("Errors", table.table());
    table.marked(marks).markup()
}

/// One thing that can be asked for.
struct Operation<'a> {
    method: String,
    path: &'a str,
    text: &'a Value,
}

/// Operations by what they are about, in the order of the paths.
fn by_tag(document: &ApiDocument) -> Vec<(&str, Vec<Operation<'_>>)> {
    let mut tags: Vec<(&str, Vec<Operation<'_>>)> = Vec::new();
    for (path, item) in document.0["paths"].as_object().into_iter().flatten() {
        for (method, text) in item.as_object().into_iter().flatten() {
            let tag = text["tags"][0].as_str().unwrap_or("other");
            let method = method.to_uppercase();
            let place = tags.binary_search_by_key(&tag, |(known, _)| known);
            let place = place.unwrap_or_else(|place| {
                tags.insert(place, (tag, Vec::new()));
                place
            });
            tags[place].1.push(Operation { method, path, text });
        }
    }
    tags
}

fn title(tag: &str) -> String {
    let mut letters = tag.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn contents(tags: &[(&str, Vec<Operation<'_>>)]) -> Markup {
    html! {
        nav.contents aria-label="Operations" {
            @for (tag, operations) in tags {
                section {
                    h2 { (title(tag)) }
                    ul {
                        @for operation in operations {
                            li { a href={ "#" (operation.anchor()) } { (operation.summary()) } }
                        }
                    }
                }
            }
        }
    }
}

impl Operation<'_> {
    fn summary(&self) -> &str {
        self.text["summary"].as_str().unwrap_or(self.path)
    }

    /// Its name in addresses.
    fn anchor(&self) -> String {
        // Of method and path, which are unique, as names of operations are not.
        let plain = |sign: char| {
            if sign.is_ascii_alphanumeric() {
                sign
            } else {
                '-'
            }
        };
        let text = format!("{}{}", self.method.to_lowercase(), self.path);
        text.chars().map(plain).collect()
    }

    fn section(&self, sender: &Sender) -> Markup {
        html! {
            article.operation id=(self.anchor()) {
                h3 {
                    (self.summary()) " "
                    a.here href={ "#" (self.anchor()) } aria-label={ "Link to: " (self.summary()) } { "#" }
                }
                p.request { (parts::badge(&self.method.to_lowercase(), &self.method)) " " code { (self.path) } }
                (prose(self.text["description"].as_str().unwrap_or_default()))
                @for example in EXAMPLES.iter().filter(|example| example.is_of(&self.method, self.path)) { (shown(example, sender)) }
                // All of it unfolded would be a hundred screens.
                details {
                    summary { "Fields and answers" }
                    (self.parameters())
                    (self.body())
                    (self.answers())
                }
            }
        }
    }

    fn parameters(&self) -> Markup {
        let parameters = self.text["parameters"].as_array();
        html! {
            @if let Some(parameters) = parameters.filter(|parameters| !parameters.is_empty()) {
                h4 { "Within the address" }
                (DOCUMENT.parameters(parameters))
            }
        }
    }

    fn body(&self) -> Markup {
        let body = &self.text["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        html! {
            @if !schema.is_null() {
                h4 { "Body" }
                p {
                    (DOCUMENT.kind(schema))
                    @if body["required"] != true { ", optional" }
                }
                (DOCUMENT.fields_of(schema))
            }
        }
    }

    fn answers(&self) -> Markup {
        let answers = self.text["responses"].as_object().into_iter().flatten();
        let (errors, answers): (Vec<_>, Vec<_>) = answers.partition(|(_, answer)| is_error(answer));
        html! {
            h4 { "Answers" }
            (HtmlTable::plain("Answers", when(answers).words("Body", |(_, answer)| body(answer)).table()))
            // Unfolded when one meets them: there are many, and most are common to all operations.
            @if !errors.is_empty() {
                details {
                    summary { "Errors: " (errors.iter().map(|(status, _)| status.as_str()).collect::<Vec<_>>().join(", ")) }
                    (HtmlTable::plain("Errors", when(errors).table()))
                }
            }
        }
    }
}

fn is_error(answer: &Value) -> bool {
    let schema = &answer["content"][MEDIA_TYPE]["schema"];
    schema["$ref"] == "#/components/schemas/ApiError"
}

fn when<'a>(
    answers: Vec<(&'a String, &'a Value)>,
) -> TableDraft<(&'a String, &'a Value), HtmlCell> {
    row_for_each(answers)
        .words("Status", |(status, _)| *status)
        .words("When", |(_, answer)| {
            prose(answer["description"].as_str().unwrap_or_default())
        })
}

fn body(answer: &Value) -> Markup {
    let content = answer["content"].as_object().into_iter().flatten();
    html! {
        @for (kind, content) in content {
            @if kind == "application/json" { (DOCUMENT.kind(&content["schema"])) } @else { (kind) }
        }
    }
}

fn shown(example: &Example, sender: &Sender) -> Markup {
    let command = example.command(&sender.address, sender.keyed);
    html! {
        h4 { "Example" }
        // By keyboard, too: what is long scrolls.
        pre tabindex="0" aria-label={ "Example, answered with " (example.status) } { code { (command) } }
        p.small { "Answered with " (example.status) "." }
    }
}
