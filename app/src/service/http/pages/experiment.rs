//! One experiment: where it stands, in words first, then in numbers, then in figures.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::Policy;
use debora::measure::words::{amount, listed, percent, whole};
use debora::record::{Interval, Kind};
use maud::{Markup, html};

use super::admin::changes;
use super::live::Live;
use super::parts::{self, Tab};
use super::{Guest, PageError, figures, page, text};
use crate::log::kept::contradictions;
use crate::log::means::ActionMean;
use crate::service::http::AppState;
use crate::service::http::experiments::row;
use crate::service::http::extract::Id;
use crate::service::http::state::{self, CautiousState, Expected, State};
use crate::service::request::Refusal;
use crate::store::{ExperimentRow, Role, Status};

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, PageError> {
    guest.0.require_for(Role::Read, &id)?;
    let asked = id.clone();
    let state = app
        .read_page(move |store| state::read(store, &asked))
        .await?;
    let state = state.ok_or_else(|| Refusal::NoExperiment { id: id.clone() })?;
    let (experiment, _) = row(&app, &id).await?;
    let name = state.name.clone().unwrap_or(id);
    let over = !state.status.is_open();
    let address = format!("/experiments/{}", state.id);
    let live = if over {
        Live::over(&live(&state))
    } else {
        Live::new(&address, &live(&state))
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&state.id, &name, Tab::Overview))
            (live.markup)
            @if guest.0.role == Role::Admin && !over { (changes::forms(&state)) }
            (documents(&experiment, &state, over))
        };
        page(&name, Some(&guest), &content)
    }))
}

fn live(state: &State) -> Markup {
    // Waiting has a colour of its own: it is the one state that calls for someone to act.
    let class = if state.waiting {
        "waiting"
    } else {
        text::word(state.status)
    };
    let sentences = text::sentences(state);
    html! {
        section.status.(class) {
            @for (place, sentence) in sentences.iter().enumerate() { p.first[place == 0] { (sentence) } }
            progress value=(state.decided) max=(state.horizon) {}
        }
        // Shown in either case: that the check was passed is worth knowing, too.
        @if state.sample_ratio.mismatch {
            p.alarm { (state.sample_ratio.sentence) }
        } @else {
            p.small { (state.sample_ratio.sentence) }
        }
        @for sentence in &state.false_means { p.alarm { (sentence) } }
        @for sentence in contradictions(state.policy, &state.limits) { p.alarm { (sentence) } }
        // Before the end the strategy is that of the epoch, and not advice, unless nothing can change it.
        h2 {
            @if state.status == Status::Done || state.kind == Kind::Commit { "What to deploy" } @else { "The strategy" }
        }
        div.scroll { (strategy(state)) }
        (expected(state.policy, &state.recommendation.expected))
        @if let Some(cautious) = &state.recommendation.cautious { (self::cautious(state.policy, cautious)) }
        @if !state.limits.is_empty() { (limits(state)) }
        h2 { "What is known" }
        @if state.kind == Kind::Commit {
            p { "No mean is estimated: a run that commits needs none, and only its leader is still played." }
        } @else if state.estimates.is_empty() {
            p { "Nothing yet: no action has been played often enough for an estimate." }
        } @else {
            div.scroll { (estimates(state)) }
        }
        @if state.decided > 0 { (observed(state)) }
        (figures::shown(state))
    }
}

fn strategy(state: &State) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Action" } th.number { "Probability" } th.number { "Decided" } th.number { "Told" }
                    th.number { "Imputed" }
                }
            }
            tbody {
                @for (action, (_, probability)) in state.actions.iter().zip(&state.strategy.0) {
                    tr {
                        td { (action.name) }
                        td.number { (percent(*probability)) }
                        td.number { (whole(action.decided)) }
                        td.number { (whole(action.told)) }
                        td.number { (whole(action.imputed)) }
                    }
                }
            }
        }
    }
}

/// The strategy for those who would rather be sure than learn.
fn cautious(policy: Policy, cautious: &CautiousState) -> Markup {
    // Of many actions it plays a few.
    let shares: Vec<String> = cautious
        .strategy
        .0
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{name} {}", percent(*share)))
        .collect();
    html! {
        p { "The cautious strategy, the best that is sure to keep every limit: " (listed(&shares)) "." }
        (expected(policy, &cautious.expected))
    }
}

fn expected(policy: Policy, expected: &[Expected]) -> Markup {
    html! {
        ul {
            @for expected in expected {
                li {
                    "Its " strong { (expected.quantity) } " is on average between " (amount(expected.low)) " and "
                    (amount(expected.high))
                    @if let Some(threshold) = expected.threshold {
                        "; the threshold is " (amount(threshold))
                        @if policy == Policy::Free { ", which policy free does not keep" }
                    }
                    "."
                }
            }
        }
    }
}

fn estimates(state: &State) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Action" } th { "Quantity" } th.number { "Estimate" } th.number { "Interval" }
                    th.number { "Threshold" } th.number { "Rounds" }
                }
            }
            tbody {
                @for estimate in &state.estimates {
                    tr {
                        td { (estimate.name) }
                        td { (estimate.quantity) }
                        td.number { (amount(estimate.estimate)) }
                        td.number { (amount(estimate.low)) " to " (amount(estimate.high)) }
                        td.number { (estimate.threshold.map(amount).unwrap_or_default()) }
                        td.number { (whole(estimate.count)) }
                    }
                }
            }
        }
    }
}

fn limits(state: &State) -> Markup {
    html! {
        h2 { "Were the limits kept?" }
        @for limit in &state.limits {
            p { (limit.all.sentence) }
            // An epoch that has just begun has nothing to say.
            @if limit.last_epoch.count > 0 { p.small { "In epoch " (state.epoch) ": " (limit.last_epoch.sentence) } }
            @if let Some(average) = limit.realised_overtime {
                p.small { "Overtime decisions cost " (amount(average)) " of " (limit.name) " on average." }
            }
        }
    }
}

/// What was told, beside the estimates: with intervals that hold whenever the page is looked at.
fn observed(state: &State) -> Markup {
    html! {
        h2 { "What was observed" }
        p.small {
            "Plain means of what was told. Each interval holds its true mean at every look, but for a chance of "
            (percent(state.intervals.miss)) "."
        }
        div.scroll { table {
            thead {
                tr {
                    th { "Action" } th { "Quantity" } th.number { "Observed" } th.number { "Interval" } th.number { "Told" }
                    th.number { "Estimate" } th.number { "Cell" }
                }
            }
            tbody { @for mean in &state.means { (mean_row(mean)) } }
        } }
    }
}

fn mean_row(mean: &ActionMean) -> Markup {
    let span =
        |interval: &Interval| format!("{} to {}", amount(interval.low), amount(interval.high));
    html! {
        // The reason stands where the numbers differ, and takes no room until it is asked for.
        tr title=(mean.why) {
            td { (mean.name) }
            td { (mean.quantity) }
            td.number { (mean.observed.mean.map(amount).unwrap_or_default()) }
            td.number { (span(&mean.observed.interval)) }
            td.number { (whole(mean.observed.count)) }
            @if let Some(estimate) = &mean.estimate {
                td.number { (amount(estimate.value)) }
                td.number { (span(&estimate.cell)) }
            } @else {
                td.number {} td.number {}
            }
        }
        // Where the cell does not even hold what was observed, the reason is not left to a pointer that hovers.
        @if mean.is_surprising() { tr { td colspan="7" { small { (mean.why) } } } }
    }
}

fn documents(experiment: &ExperimentRow, state: &State, over: bool) -> Markup {
    let to = |what: &str| format!("/v1/experiments/{}/{what}", state.id);
    let key_hash = crate::log::chain::key_hash(experiment.salt, experiment.key);
    html! {
        h2 { "For the record" }
        p {
            // There is no certificate before the end, as it reveals the key.
            @if over { a href={ "/experiments/" (state.id) "/certificate" } { "Certificate" } " · " }
            a href={ "/experiments/" (state.id) "/seal" } { "Seal" } " · "
            a href=(to("log/download")) { "Log" } " · " a href=(to("state")) { "State" } " · "
            a href=(to("head")) { "Head" }
        }
        dl.facts {
            dt { "Id" } dd { code { (state.id) } }
            dt { "Created" } dd { (text::time(experiment.created_at)) }
            dt { "Key hash" } dd.hash { (key_hash) }
            dt { "Decisions" } dd.hash { (state.digest) }
            dt { "Head" } dd.hash { (state.head) }
        }
        details { summary { "Spec" } pre { (experiment.spec) } }
    }
}
