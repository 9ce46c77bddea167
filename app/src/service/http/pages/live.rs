//! A part of a page that keeps itself up to date.
//!
//! It asks for its own page again and takes the part that changes, so there is no second rendering to keep alike. It says what
//! it shows, by a hash: if that is still so, the answer is empty and nothing on the page moves. What is over does not change, and
//! is not asked for again.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::short_hash;

/// The header that says what the browser shows.
const SHOWN: &str = "x-shown";

/// Whether this is such a request, and not somebody who opens the page.
pub fn is_refresh(asked: &HeaderMap) -> bool {
    asked.contains_key(SHOWN)
}

/// The part, with its hash.
pub struct Live {
    hash: String,
    /// To be placed within the page, once.
    pub markup: Markup,
}

impl Live {
    /// Asks for `address`, the page's own with its query, every few seconds.
    pub fn new(address: &str, content: &Markup) -> Self {
        let hash = short_hash(content.0.as_bytes());
        let shown = format!(r#"{{"{SHOWN}":"{hash}"}}"#);
        // Morphed and not replaced: focus, open details and what the pointer rests on stay.
        let markup = html! {
            div #live hx-get=(address) hx-trigger="every 5s" hx-select="#live" hx-swap="morph" hx-ext="morph" hx-headers=(shown) {
                (content)
            }
        };
        Self { hash, markup }
    }

    /// Of what is over.
    pub fn over(content: &Markup) -> Self {
        Self {
            hash: short_hash(content.0.as_bytes()),
            markup: html! { div #live { (content) } },
        }
    }

    /// The page, or nothing if the browser shows this already.
    pub fn respond(&self, asked: &HeaderMap, page: impl FnOnce() -> Html<String>) -> Response {
        // htmx leaves the page alone at this status.
        if asked.get(SHOWN).is_some_and(|shown| shown == &self.hash) {
            StatusCode::NO_CONTENT.into_response()
        } else {
            page().into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_already_is_not_sent_again() {
        let [one, other] =
            ["1 round", "2 rounds"].map(|text| Live::new("/x?a=1&b=2", &html! { p { (text) } }));
        let mut asked = HeaderMap::new();
        asked.insert(SHOWN, one.hash.parse().unwrap());
        let status = |live: &Live| live.respond(&asked, || Html(String::new())).status();
        assert_eq!(
            [status(&one), status(&other)],
            [StatusCode::NO_CONTENT, StatusCode::OK]
        );
        assert!(one.markup.0.contains("hx-get=\"/x?a=1&amp;b=2\""));
    }
}
