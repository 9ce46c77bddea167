//! The seal and the certificate, within the pages: the same text as the files that can be kept.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Html;
use debora::measure::words::whole;
use maud::{Markup, html};

use super::parts::{self, Tab};
use super::{Guest, PageError, page};
use crate::document::blocks;
use crate::papers;
use crate::reading::certificate::Certification;
use crate::service::http::extract::Id;
use crate::service::http::log::certification;
use crate::service::http::papers::{log_address, seal_of};
use crate::service::http::{AppState, ExperimentInfo};
use crate::store::{Progress, Status};

/// The documents that are shown within the pages.
#[derive(PartialEq, Eq)]
enum Paper {
    Certificate,
    Seal,
}

pub async fn certificate(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Html<String>, PageError> {
    let certificate = match certification(&app, &guest.0, &id).await? {
        Certification::Over(certificate) => certificate,
        // Not an error to a person, who followed a link.
        Certification::Open(open) => {
            let (experiment, progress) = *open;
            let info = app.info_of(&id, &experiment.spec)?;
            return Ok(not_over(&guest, &id, &info, &progress));
        }
    };
    let content = blocks(&papers::certificate::answer(
        &certificate,
        &log_address(&guest.0, &headers),
    ));
    let title = papers::certificate::title(&certificate);
    let name = certificate.name.as_deref().unwrap_or(&id);
    Ok(page(
        &title,
        Some(&guest),
        &framed(&id, name, Paper::Certificate, true, &content),
    ))
}

pub async fn seal(
    Shared(app): Shared<AppState>,
    guest: Guest,
    Id(id): Id,
) -> Result<Html<String>, PageError> {
    let (seal, progress) = seal_of(&app, &guest.0, &id).await?;
    let content = blocks(&papers::seal::answer(&seal));
    let title = papers::seal::title(&seal);
    let name = seal.name.as_deref().unwrap_or(&id);
    let over = !progress.status.is_open();
    Ok(page(
        &title,
        Some(&guest),
        &framed(&id, name, Paper::Seal, over, &content),
    ))
}

/// When there will be a certificate.
fn not_over(guest: &Guest, id: &str, info: &ExperimentInfo, progress: &Progress) -> Html<String> {
    let name = info.name.as_deref().unwrap_or(id);
    let content = html! {
        section.status.(super::text::word(progress.status)) {
            p.first { "There is no certificate yet: the experiment is not over." }
            p { (remaining(progress, info.problem.horizon())) }
            p {
                "A certificate names the key, with which every decision can be predicted. Until then the "
                a href={ "/experiments/" (id) "/seal" } { "seal" }
                " says what is fixed, and an " a href={ "/experiments/" (id) "/audit" } { "audit" } " checks what has happened."
            }
        }
    };
    let title = format!("Certificate of {name}");
    page(
        &title,
        Some(guest),
        &framed(id, name, Paper::Certificate, false, &content),
    )
}

fn remaining(progress: &Progress, horizon: u64) -> String {
    let decided = format!(
        "{} of {} rounds are decided",
        whole(progress.rounds()),
        whole(horizon)
    );
    let left = horizon - progress.rounds();
    let end = if left == 0 {
        "it will be there once their outcomes are told or imputed".to_owned()
    } else {
        "it will be there once all are decided and have their outcomes, or when an admin closes the experiment".to_owned()
    };
    // Paused, nothing brings the end nearer by itself.
    let paused = match progress.status {
        Status::Paused => {
            " The experiment is paused: until it is resumed, nothing more is decided."
        }
        _ => "",
    };
    format!("{decided}; {end}.{paused}")
}

/// A document under the experiment's name, with all files below it.
fn framed(id: &str, name: &str, here: Paper, over: bool, content: &Markup) -> Markup {
    html! {
        (parts::heading(id, name, Tab::Papers))
        (parts::choices("Documents", &[
            ("Certificate", format!("/experiments/{id}/certificate"), here == Paper::Certificate),
            ("Seal", format!("/experiments/{id}/seal"), here == Paper::Seal),
        ]))
        article.paper { (content) }
        h2 { "To download" }
        (downloads(id, over))
    }
}

/// All that can be kept of an experiment, each with what it is for.
pub fn downloads(id: &str, over: bool) -> Markup {
    let to = |what: &str| format!("/v1/experiments/{id}/{what}");
    let page = |what: &str| format!("/experiments/{id}/{what}");
    html! {
        dl.downloads {
            dt { a href=(to("log/download")) { "Log" } }
            dd { "All that happened, line by line: what " code { "debora audit" } " and " code { "debora diff" } " read." }
            dt { a href=(page("seal")) { "Seal" } " " span.kinds { a href=(to("seal.html")) { "HTML" } " " a href=(to("seal")) { "JSON" } } }
            dd { "What is fixed before the first decision, to be published before it." }
            dt {
                // No link to what is not there yet: the tab above says when it will be.
                @if over {
                    a href=(page("certificate")) { "Certificate" } " "
                    span.kinds { a href=(to("certificate.html")) { "HTML" } " " a href=(to("certificate")) { "JSON" } }
                } @else {
                    "Certificate"
                }
            }
            dd {
                "What was promised, what happened, what to deploy, and how to verify it"
                @if over { ": to print, sign and keep." } @else { ". There is one once the experiment is over." }
            }
            dt { a href=(page("report.html")) { "Report" } }
            dd { "The overview with its figures as one file, as it is at this moment." }
        }
    }
}
