//! Whether the content is for a page, with links and choices, or for a file that stands alone.

use maud::{Markup, html};

use super::strategy::TimeAxis;

/// For whom the content is.
pub enum Shape {
    /// A page of the service.
    Page { id: String, along: TimeAxis },
    /// A file: an address of the service would lead nowhere.
    File,
}

impl Shape {
    /// The ways to the numbers of a figure or table.
    pub fn data(&self, name: &str) -> Markup {
        match self {
            Self::Page { id, .. } => {
                let to = |ending: &str| format!("/experiments/{id}/figures/{name}.{ending}");
                html! {
                    span.data { "Data: " a href=(to("csv")) { "CSV" } ", " a href=(to("json")) { "JSON" } "." }
                }
            }
            Self::File => html! {},
        }
    }
}
