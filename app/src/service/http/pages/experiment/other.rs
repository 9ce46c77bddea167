//! The page of an experiment that was decided with other values than this program has: what is recorded, without what only an
//! engine could tell.

use axum::response::{IntoResponse as _, Response};
use debora::VALUES_VERSION;
use debora::measure::answer::row_for_each;
use debora::measure::words::whole;
use debora::spec::Spec;
use maud::{Markup, html};

use super::parts::{self, Tab};
use super::view::epochs;
use super::{Guest, PageError, counts, page, text};
use crate::document::HtmlTable;
use crate::reading::OutcomeCounts;
use crate::reading::epoch::EpochHead;
use crate::service::http::AppState;
use crate::service::request::Refusal;
use crate::store::{ExperimentRow, Progress};

pub async fn show(app: &AppState, guest: &Guest, id: &str) -> Result<Response, PageError> {
    let asked = id.to_owned();
    let read = app.read_page(move |store| {
        let Some((experiment, progress)) = store.experiment(&asked)? else {
            return Ok(None);
        };
        // An older record may be one that this program cannot read; its counts are shown all the same.
        let played = epochs(store, &asked, &progress).unwrap_or_default();
        Ok(Some((experiment, progress, played)))
    });
    let read = read.await?;
    let (experiment, progress, played) =
        read.ok_or_else(|| Refusal::NoExperiment { id: id.to_owned() })?;
    let spec = Spec::parse(&experiment.spec, id).ok();
    let name = spec.as_ref().and_then(|spec| spec.name.clone());
    let name = name.unwrap_or_else(|| id.to_owned());
    let actions = spec.map(|spec| spec.problem.actions().to_vec());
    let content = html! {
        (parts::heading(id, &name, Tab::Overview))
        (version(&experiment, &progress))
        (counts::numbers(OutcomeCounts::from_progress(&progress)))
        (strategy(&actions.unwrap_or_default(), played.last()))
        p {
            a href={ "/v1/experiments/" (id) "/log/download" } { "Log" } " · "
            a href={ "/v1/experiments/" (id) "/head" } { "Head" }
        }
        details { summary { "Spec" } pre { (experiment.spec) } }
    };
    Ok(page(&name, Some(guest), &content).into_response())
}

fn version(experiment: &ExperimentRow, progress: &Progress) -> Markup {
    let version = experiment.values_version;
    let open = progress.status.is_open();
    let remedy = if open {
        format!(
            "Serve it with a debora that has values version {version}; `debora --version` tells."
        )
    } else {
        format!(
            "To have its estimates shown, serve the store with a debora that has values version {version}."
        )
    };
    let sentence = format!(
        "This experiment was decided with values version {version}, and this program has {VALUES_VERSION}: from the same key it \
         would decide otherwise. So only what is recorded is shown."
    );
    html! {
        section.status.(text::word(progress.status)) aria-label="The answer" {
            p.first { "It is " (text::word(progress.status)) "." }
        }
        (parts::alert(&sentence, &remedy))
    }
}

fn strategy(actions: &[String], last: Option<&EpochHead>) -> Markup {
    html! {
        @if let Some(epoch) = last.filter(|epoch| epoch.strategy.len() == actions.len()) {
            h2 { "The strategy of epoch " (whole(epoch.epoch)) }
            (HtmlTable::plain("The strategy", row_for_each(actions.iter().zip(&epoch.strategy))
                .words("Action", |(name, _)| *name)
                .probabilities("Probability", |(_, share)| **share)
                .table()))
        }
    }
}
