//! For those who run the service: is it well, and who may do what. Only admins of all experiments see them.

pub mod changes;
pub mod health;
pub mod keys;
mod shown;
pub mod webhooks;

pub use shown::ShownKeys;

use maud::{Markup, html};

/// The title of one of these pages, and the ways between them.
fn heading(title: &str, here: &str) -> Markup {
    let tabs = [
        ("Health", "/admin"),
        ("API keys", "/admin/keys"),
        ("Webhooks", "/admin/webhooks"),
    ];
    html! {
        h1 { (title) }
        nav.tabs aria-label="Admin" {
            @for (text, path) in tabs {
                a href=(path) aria-current=[(path == here).then_some("page")] { (text) }
            }
        }
    }
}
