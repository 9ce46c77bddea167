//! The pages: rendered on the server, refreshed by htmx, and the same without scripts.
//!
//! They hold no inline script or style, so that the browser can be told to run none. A key typed into the login form begins
//! a session, whose token is in a cookie that scripts cannot read and that other sites cannot send.

mod admin;
mod api;
mod assets;
mod audit;
mod compress;
mod diff;
mod epochs;
pub mod errors;
mod experiment;
mod figures;
mod list;
mod live;
mod login;
mod new;
mod papers;
mod parts;
mod text;

pub use admin::ShownKeys;
pub use api::KeptPages;
pub use experiment::rendered::Renderings;
pub use list::Lists;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest as _, Sha256};

pub use api::examples;
use errors::PageError;

use crate::calendar;
use crate::hex;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::routes::any;
use crate::store::Role;

/// What the browser may load: our own files alone. A spec's names are escaped; should one slip through, it still runs nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// htmx must not write styles into the page, nor evaluate text: the policy forbids both. Nor may it keep pages in the browser's
/// storage, where they would outlast a log-out: on the way back they are asked for again.
/// An answer that takes longer than its timeout counts as none, so that the page shows that it is stale.
const HTMX: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"historyCacheSize":0,"refreshOnHistoryMiss":true,"timeout":10000}"#;

/// All pages, by path. A list, since a router cannot be asked which routes it has, and the metrics must know.
pub fn routes() -> Vec<(&'static str, MethodRouter<AppState>)> {
    vec![
        ("/", get(any(list::show))),
        ("/new", get(any(new::show)).post(any(new::act))),
        ("/new/draft", post(any(new::draft))),
        ("/experiments/{id}", get(any(experiment::show))),
        ("/experiments/{id}/pause", post(any(admin::changes::pause))),
        (
            "/experiments/{id}/resume",
            post(any(admin::changes::resume)),
        ),
        ("/experiments/{id}/close", post(any(admin::changes::close))),
        ("/experiments/{id}/audit", get(any(audit::show))),
        ("/experiments/{id}/diff", get(any(diff::show))),
        (
            "/experiments/{id}/certificate",
            get(any(papers::certificate)),
        ),
        ("/experiments/{id}/seal", get(any(papers::seal))),
        ("/experiments/{id}/epochs", get(any(epochs::list::show))),
        (
            "/experiments/{id}/epochs/{epoch}",
            get(any(epochs::one::show)),
        ),
        ("/experiments/{id}/figures/{name}", get(any(figures::show))),
        (
            "/experiments/{id}/report.html",
            get(any(experiment::report::show)),
        ),
        ("/admin", get(any(admin::health::show))),
        (
            "/admin/keys",
            get(any(admin::keys::show)).post(any(admin::keys::make)),
        ),
        ("/admin/keys/{name}/revoke", post(any(admin::keys::revoke))),
        (
            "/admin/webhooks",
            get(any(admin::webhooks::show)).post(any(admin::webhooks::make)),
        ),
        (
            "/admin/webhooks/{name}/remove",
            post(any(admin::webhooks::remove)),
        ),
        (
            "/admin/webhooks/{name}/test",
            post(any(admin::webhooks::test)),
        ),
        ("/api", get(any(api::show))),
        ("/login", get(any(login::show)).post(any(login::enter))),
        ("/logout", post(any(login::leave))),
        ("/assets/{name}", get(any(assets::show))),
    ]
}

/// The router of all pages.
pub fn router() -> Router<AppState> {
    routes()
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| {
            router.route(path, methods)
        })
        .layer(from_fn(protect))
}

async fn protect(request: Request, next: Next) -> Response {
    let small = compress::takes_gzip(request.headers());
    let mut response = next.run(request).await;
    protected(response.headers_mut());
    if small {
        compress::compressed(response).await
    } else {
        response
    }
}

/// Tells the browser what to forbid.
fn protected(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// The caller of a page. A type of its own, as its refusal is a page, too.
struct Guest(Caller);

impl FromRequestParts<AppState> for Guest {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        Ok(Self(Caller::from_request_parts(parts, app).await?))
    }
}

/// A redirect to another page, after a form was sent.
fn see(path: &str) -> Response {
    // 303 turns the request into a GET, so that reloading the page does not send the form again.
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// The first digits of a SHA-256: enough to tell one text of ours from another.
fn short_hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// A whole page.
fn page(title: &str, guest: Option<&Guest>, content: &Markup) -> Html<String> {
    page_with(title, guest, &[], content)
}

/// The same of what does not change, and is kept: it says nothing of the time.
fn lasting_page(title: &str, guest: Option<&Guest>, content: &Markup) -> Html<String> {
    whole_page(title, guest, &[], content, &footer(None))
}

/// The same, with scripts of its own.
fn page_with(
    title: &str,
    guest: Option<&Guest>,
    scripts: &[&str],
    content: &Markup,
) -> Html<String> {
    let footer = footer(Some(calendar::now()));
    whole_page(title, guest, scripts, content, &footer)
}

fn whole_page(
    title: &str,
    guest: Option<&Guest>,
    scripts: &[&str],
    content: &Markup,
    footer: &Markup,
) -> Html<String> {
    let common = ["htmx.min.js", "idiomorph-ext.min.js", "debora.js"];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                title { (title) " · debora" }
                // Empty, or browsers ask for /favicon.ico.
                link rel="icon" href="data:,";
                @for name in ["pico.min.css", "debora.css"] {
                    link rel="stylesheet" href=(assets::address(name));
                }
                @for name in common.iter().chain(scripts) { script src=(assets::address(name)) defer {} }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                (header(guest))
                // Said aloud when it appears: the script unhides it when answers stop.
                p #stale.container role="alert" hidden { "" }
                main #content.container tabindex="-1" { (content) }
                (footer)
            }
        }
    };
    Html(page.into_string())
}

fn header(guest: Option<&Guest>) -> Markup {
    let caller = guest.map(|Guest(caller)| caller);
    let admin = caller.filter(|caller| caller.role == Role::Admin);
    html! {
        header.top {
            nav.container aria-label="Main" {
                a.brand href="/" { "debora" }
                // A stranger and an error have nowhere to go but home.
                @if caller.is_some() {
                    ul.places {
                        li { a href="/" { "Experiments" } }
                        // Others would be refused.
                        @if admin.is_some() { li { a href="/new" { "New experiment" } } }
                        li { a href="/api" { "API" } }
                        @if admin.is_some_and(|caller| caller.scope.is_none()) { li { a href="/admin" { "Admin" } } }
                    }
                }
                // Without keys there is nobody to log out.
                @if let Some(caller) = caller.filter(|caller| caller.keyed) {
                    form.leave method="post" action="/logout" {
                        bdi.small { (caller.name) }
                        button.outline.secondary { "Log out" }
                    }
                }
            }
        }
    }
}

fn footer(now: Option<i64>) -> Markup {
    let time = now.map(calendar::utc);
    let clock = time.as_ref().and_then(|time| time.split_once(' '));
    html! {
        footer.container.small {
            // The script writes the time of every answer here.
            @if let Some((_, clock)) = clock { span { "As of " time #updated { (clock) " UTC" } "." } }
            span { "debora " (env!("CARGO_PKG_VERSION")) }
        }
    }
}
