//! `GET /v1/experiments/{id}/seal`, `/seal.html` and `/certificate.html`: documents to publish, print and keep.

use axum::Json as Reply;
use axum::extract::State;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HOST, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{Html, IntoResponse as _, Response};
use maud::Markup;

use crate::log::seal::Seal;
use crate::papers::certificate::LogAddress;
use crate::papers::{self, document};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::row;
use crate::service::http::extract::Id;
use crate::service::http::log::certificate_of;
use crate::service::request::Refusal;
use crate::store::{Progress, Role};

/// What the browser may load: nothing. The style is in the file itself, as it may be mailed or moved alone.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// By which a proxy says that its side of the connection is encrypted.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What is fixed before the first decision
///
/// Role read. Spec, plan, what will be seen and when, thresholds, premises, key commitment, values version and the head that the
/// chain starts from. Publish it before the first decision. The same bytes whenever it is asked for.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/seal", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The seal", body = Object))))]
pub async fn seal(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<Seal>, ApiError> {
    Ok(Reply(seal_of(&app, &caller, &id).await?.0))
}

/// The seal as a page
///
/// Role read. One file without scripts, which loads nothing: for people, to print and to mail.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/seal.html", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The seal", body = String, content_type = "text/html"))))]
pub async fn seal_page(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let (seal, _) = seal_of(&app, &caller, &id).await?;
    let page = document(&papers::seal::title(&seal), &papers::seal::answer(&seal));
    Ok(file(page, &format!("{id}-seal.html")))
}

/// The certificate as a page
///
/// Role read. What was promised, what happened, what to deploy, who did what, and how to verify it: one file without scripts,
/// which loads nothing. 409 `not_over` before the end.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/certificate.html", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The certificate", body = String, content_type = "text/html"),
              (status = 409, description = "Code `not_over`", body = ApiError, content_type = "application/problem+json"))))]
pub async fn certificate(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let certificate = certificate_of(&app, &caller, &id).await?;
    let answer = papers::certificate::answer(&certificate, &log_address(&caller, &headers));
    let page = document(&papers::certificate::title(&certificate), &answer);
    Ok(file(page, &format!("{id}-certificate.html")))
}

/// The seal of an experiment, and how far the experiment is.
pub async fn seal_of(
    app: &AppState,
    caller: &Caller,
    id: &str,
) -> Result<(Seal, Progress), ApiError> {
    caller.require_for(Role::Read, id)?;
    let (experiment, progress) = row(app, id).await?;
    let seal = Seal::of(&experiment).map_err(ApiError::store)?;
    Ok((seal.map_err(Refusal::from)?, progress))
}

/// Where the caller found the service.
pub fn log_address(caller: &Caller, headers: &HeaderMap) -> LogAddress {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = match text(FORWARDED_PROTO) {
        Some("https") => "https",
        _ => "http",
    };
    LogAddress {
        service: format!(
            "{scheme}://{}",
            text(HOST).filter(is_plain).unwrap_or("127.0.0.1:8080")
        ),
        keyed: caller.keyed,
    }
}

/// Whether a host can stand in a command that somebody will paste into a shell.
fn is_plain(host: &&str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
    host.bytes().all(plain) && host.parse::<Authority>().is_ok()
}

/// A page as a file of this name.
fn file(page: Markup, name: &str) -> Response {
    let disposition = HeaderValue::from_str(&format!("inline; filename=\"{name}\""));
    let headers = [
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            CONTENT_DISPOSITION,
            disposition.expect("ids are plain characters"),
        ),
    ];
    (headers, Html(page.into_string())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_brings_its_own_command() {
        for host in ["debora.example", "127.0.0.1:8080", "[::1]:80", "a-b:1"] {
            assert!(is_plain(&host), "{host}");
        }
        for host in [
            "",
            "a;b",
            "$(id)",
            "a b",
            "a/b",
            "user@host",
            "`id`",
            "a:b:c",
        ] {
            assert!(!is_plain(&host), "{host}");
        }
    }
}
