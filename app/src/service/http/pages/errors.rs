//! Errors for people: what happened, why, and what to do. Programs get the same error as JSON.
//!
//! ```text
//! error ─► of a page, or asked for by a browser? ─► 401: to the log-in and back ─► else: a page
//! ```
//!
//! In one place behind all routes: an address that is none, a form that cannot be read and a panic never reach a page's handler.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, REFERER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use maud::html;

use super::{page, parts, protected};
use crate::service::http::error::{ApiError, ErrorWords};
use crate::service::http::session;

/// An error of a page's handler.
pub struct PageError(pub ApiError);

/// Of an error that is shown as a page, whatever its caller says to accept.
#[derive(Clone)]
struct ForPeople;

impl<E: Into<ApiError>> From<E> for PageError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        response.extensions_mut().insert(ForPeople);
        response
    }
}

/// What must be known of a request to show its error.
pub struct Asked {
    wants_page: bool,
    /// Where its error leads back to: the address itself if it was only read.
    back: Option<String>,
    again: bool,
    in_session: bool,
}

impl Asked {
    /// `None` for programs' addresses, whose errors stay as they are.
    pub fn of(request: &Request) -> Option<Self> {
        let (uri, headers) = (request.uri(), request.headers());
        // First, as nearly all requests end here.
        if ["/v1/", "/ofrep/"]
            .iter()
            .any(|programs| uri.path().starts_with(programs))
        {
            return None;
        }
        let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let reads = request.method() == Method::GET;
        let back = if reads {
            uri.path_and_query().map(ToString::to_string)
        } else {
            page_before(headers)
        };
        Some(Self {
            wants_page: accepted.is_some_and(|accept| accept.contains("text/html")),
            back: back.filter(|path| is_local(path)),
            again: reads,
            in_session: session::token(headers).is_some(),
        })
    }
}

/// The path of the page that a form was on, if it was one of ours.
fn page_before(headers: &HeaderMap) -> Option<String> {
    let uri: Uri = headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
    let host = headers.get(HOST)?.to_str().ok()?;
    let ours = uri.authority().is_some_and(|authority| authority == host);
    ours.then(|| uri.path_and_query().map(ToString::to_string))?
}

/// Whether a path stays on this site.
pub fn is_local(path: &str) -> bool {
    // Browsers take two slashes for the beginning of a host, a backslash for a slash, and leave out line ends and tabs before
    // they look.
    let plain = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    path.starts_with('/') && !path.starts_with("//") && plain
}

/// The address of the log-in that leads back to a page.
fn log_in(back: Option<&str>) -> String {
    match back {
        Some(back) if back != "/" => {
            let query = serde_urlencoded::to_string([("next", back)]);
            format!("/login?{}", query.unwrap_or_default())
        }
        // Where everyone is led to anyway.
        _ => "/login".into(),
    }
}

/// An answer as a person should see it.
pub fn for_people(asked: Option<Asked>, response: Response) -> Response {
    let extensions = response.extensions();
    let for_people = extensions.get::<ForPeople>().is_some();
    let (Some(asked), Some(error)) = (
        asked.filter(|asked| for_people || asked.wants_page),
        extensions.get::<ErrorWords>().cloned(),
    ) else {
        return response;
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        return to_log_in(&asked, response);
    }
    let (mut head, _) = response.into_parts();
    let page = shown(head.status, &error, &asked).into_response();
    head.headers.remove(CONTENT_LENGTH);
    if let Some(kind) = page.headers().get(CONTENT_TYPE) {
        head.headers.insert(CONTENT_TYPE, kind.clone());
    }
    protected(&mut head.headers);
    Response::from_parts(head, page.into_body())
}

fn to_log_in(asked: &Asked, mut response: Response) -> Response {
    let location = HeaderValue::from_str(&log_in(asked.back.as_deref()));
    // Headers stay: a form that is refused has none that matter, and the protection of pages is among them.
    *response.status_mut() = StatusCode::SEE_OTHER;
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    [CONTENT_TYPE, CONTENT_LENGTH]
        .iter()
        .for_each(|name| drop(headers.remove(name)));
    headers.insert(
        LOCATION,
        location.unwrap_or(HeaderValue::from_static("/login")),
    );
    response
}

fn shown(status: StatusCode, error: &ErrorWords, asked: &Asked) -> Html<String> {
    let (title, advice) = words(status, error.code);
    let content = html! {
        h1 { (title) }
        (parts::alert(&sentence(&error.message), advice))
        ul.ways {
            // Only what reads can be asked for again by a link; a form is sent again from its page.
            @if asked.again && status.is_server_error() && let Some(back) = &asked.back {
                li { a href=(back) { "Try again" } }
            }
            @if !asked.again && let Some(back) = &asked.back { li { a href=(back) { "Back to the page" } } }
            li { a href="/" { "All experiments" } }
        }
        @if status == StatusCode::FORBIDDEN && asked.in_session {
            form.inline method="post" action="/logout" { button.secondary { "Log in with another key" } }
        }
        p.small { "Status " (status.as_u16()) ", code " code { (error.code) } "." }
    };
    page(title, None, &content)
}

/// With a capital letter: errors are parts of sentences to programs.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A title, and what to do.
fn words(status: StatusCode, code: &str) -> (&'static str, &'static str) {
    // By the code where it says more than the status.
    match (status.as_u16(), code) {
        (_, "no_experiment") => (
            "There is no such experiment",
            "Its id may be misspelt, or your key is not for it: the list has every experiment that you can see.",
        ),
        (404, _) => (
            "There is nothing here",
            "The address may be misspelt, or be of another version of the program.",
        ),
        (_, "wrong_role" | "out_of_scope") => (
            "Your key does not allow this",
            "Log in with a key that does, or ask an admin for one.",
        ),
        (_, "cross_origin") => (
            "A form of another site was refused",
            "Nothing was changed. Open the page here and use its form.",
        ),
        (403, _) => (
            "Access denied",
            "Without API keys only this very machine may look.",
        ),
        (405, _) => (
            "This address is not a page",
            "It is where a form is sent. Go to the page that has the form.",
        ),
        (408, _) => (
            "It took too long to arrive",
            "Nothing was changed. Send it again, on a better connection if there is one.",
        ),
        (409, _) => (
            "Not at this moment",
            "Nothing was changed. Look at where the experiment stands, and decide anew.",
        ),
        (413, _) => (
            "That is too much at once",
            "Nothing was changed. Send less.",
        ),
        (503, "busy") => (
            "Too much is asked at once",
            "Nothing was changed. Try again in a few seconds.",
        ),
        (503, _) => (
            "The service cannot answer",
            "If you were changing something, it may have been done: look before you do it again. /ready says what is wrong.",
        ),
        (500.., _) => (
            "Something broke",
            "Internal error; see the server log. If you were changing something, look before you do it again.",
        ),
        _ => (
            "That did not work",
            "Nothing was changed. Go back, change what is named above, and send it again.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_back_to_this_site_alone() {
        for path in [
            "/",
            "/experiments/e",
            "/?sort=name&before=e",
            "/a//b",
            "/@x",
        ] {
            assert!(is_local(path), "{path}");
        }
        for path in [
            "",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "///evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "evil.example",
            "/a b",
            "/é",
            "\\\\evil.example",
            "/x\\..\\",
        ] {
            assert!(!is_local(path), "{path}");
        }
        assert_eq!(
            log_in(Some("/experiments/e?a=1&b=2")),
            "/login?next=%2Fexperiments%2Fe%3Fa%3D1%26b%3D2"
        );
        assert_eq!([log_in(None), log_in(Some("/"))], ["/login", "/login"]);
    }
}
