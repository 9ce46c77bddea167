//! The content of the page as one file to keep, mail or print: no script, nothing loaded, the style within.

use axum::extract::State as Shared;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::content::content;
use super::rendered::viewed;
use super::shape::Shape;
use super::view::ExperimentView;
use super::{Guest, PageError, facts};
use crate::calendar::utc;
use crate::service::http::AppState;
use crate::service::http::extract::Id;
use crate::store::Role;

/// What the file may load, wherever it is opened.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The pages' own style, which the file must not ask for.
const STYLES: [&str; 3] = [
    include_str!("../../../../../assets/pico.min.css"),
    include_str!("../../../../../assets/figures.css"),
    include_str!("../../../../../assets/debora.css"),
];

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Response, PageError> {
    guest.0.require_for(Role::Read, &id)?;
    let view = viewed(&app, &id).await?;
    let page = document(&view, (app.service.clock)().wall);
    // To be saved: the policy of the pages, which stands in the answer's head, knows no style within a file.
    let disposition = format!("attachment; filename=\"{id}-report.html\"");
    Ok((
        [(CONTENT_DISPOSITION, disposition)],
        Html(page.into_string()),
    )
        .into_response())
}

fn document(view: &ExperimentView, now: i64) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Within the file, as nobody sends it with headers once it is saved.
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (view.reading.name()) " · debora" }
                @for style in STYLES { style { (PreEscaped(style)) } }
            }
            body {
                main.container {
                    h1 { bdi { (view.reading.name()) } }
                    p.small { "Report of " (utc(now)) " UTC, by debora " (env!("CARGO_PKG_VERSION")) ". What is shown is as of then." }
                    (content(view, &Shape::File))
                    h2 { "For the record" }
                    (facts(&view.reading))
                    h3 { "Spec" }
                    pre { (view.reading.experiment.spec) }
                }
            }
        }
    }
}
