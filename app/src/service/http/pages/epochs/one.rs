//! One epoch: why its strategy is played, in words first, then in numbers and figures.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use debora::measure::answer::{AnswerTable, row_for_each};
use debora::measure::words::{amount, whole};
use maud::{Markup, html};
use serde::Deserialize;

use super::{grids, hash, kind_badge};
use crate::chart::{Axis, Chart, Mark};
use crate::document::{self, HtmlCell, HtmlTable, facts, numbers};
use crate::log::cursor_at_epoch;
use crate::reading::{TestState, share};
use crate::service::http::AppState;
use crate::service::http::epochs::detail::{ActionAt, ChainEntry, EpochDetail, LimitHere};
use crate::service::http::epochs::{EpochAddress, one_of};
use crate::service::http::error::ApiError;
use crate::service::http::extract::QueryParams;
use crate::service::http::pages::live::Live;
use crate::service::http::pages::parts::{self, Tab};
use crate::service::http::pages::{Guest, PageError, page, text};

/// Actions shown before the rest is folded.
pub const UNFOLDED: usize = 12;

/// What is shown in full.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeQuantity {
    /// The quantity whose estimates are all shown; 0 is the reward.
    quantity: Option<u32>,
}

pub async fn show(
    Shared(app): Shared<AppState>,
    guest: Guest,
    headers: HeaderMap,
    address: Result<EpochAddress, ApiError>,
    query: Result<QueryParams<WholeQuantity>, ApiError>,
) -> Result<Response, PageError> {
    let (address, QueryParams(query)) = (address?, query?);
    let detail = one_of(&app, &guest.0, &address).await?;
    let most = detail.quantities - 1;
    if let Some(quantity) = query.quantity.filter(|quantity| *quantity as usize > most) {
        let rule = format!("0 (the reward) to {most}");
        let message = format!("quantity {quantity} is not one of {rule}");
        return Err(ApiError::unfit(message).against(rule, quantity).into());
    }
    let name = detail.name.clone().unwrap_or_else(|| detail.id.clone());
    let content = shown(&detail, query.quantity);
    let here = format!("/experiments/{}/epochs/{}", detail.id, detail.entry.epoch);
    // What is closed never changes, but for the link to the next, which is there once it is closed.
    let live = match (detail.entry.closed_at, query.quantity) {
        (Some(_), _) => Live::over(&content),
        (None, None) => Live::new(&here, &content),
        (None, Some(quantity)) => Live::new(&format!("{here}?quantity={quantity}"), &content),
    };
    Ok(live.respond(&headers, || {
        let content = html! {
            (parts::heading(&detail.id, &name, Tab::Epochs))
            (live.markup)
        };
        let title = format!("Epoch {} of {name}", detail.entry.epoch);
        page(&title, Some(&guest), &content)
    }))
}

fn shown(detail: &EpochDetail, quantity: Option<u32>) -> Markup {
    html! {
        (around(detail))
        h2.epoch { "Epoch " (whole(detail.entry.epoch)) " " (kind_badge(detail.entry.kind, detail.entry.rule)) }
        section.status {
            @for (place, sentence) in detail.why.iter().enumerate() { p.first[place == 0] { (document::sentence(sentence)) } }
        }
        (about(detail))
        h2 { "Strategy" }
        (strategy(detail))
        @if !detail.limits.is_empty() { (limits(detail)) }
        @if let Some(test) = &detail.entry.test { (clear_test(test)) }
        (grids::shown(detail, quantity))
        (record(detail))
    }
}

/// The ways to the epochs before and after.
fn around(detail: &EpochDetail) -> Markup {
    let here = detail.entry.epoch;
    let to = |epoch: u64| format!("/experiments/{}/epochs/{epoch}", detail.id);
    html! {
        nav.around aria-label="Epochs" {
            @if here > 0 { a rel="prev" href=(to(here - 1)) { "← Epoch " (whole(here - 1)) } } @else { span {} }
            a href={ "/experiments/" (detail.id) "/epochs" } { "All epochs" }
            @if here + 1 < detail.count { a rel="next" href=(to(here + 1)) { "Epoch " (whole(here + 1)) " →" } } @else { span {} }
        }
    }
}

fn about(detail: &EpochDetail) -> Markup {
    let entry = &detail.entry;
    // An epoch that has just been opened has no last round.
    let rounds = match entry.rounds {
        0 => "none yet".to_owned(),
        rounds => format!(
            "{} to {}",
            whole(entry.first_round),
            whole(entry.first_round + rounds - 1)
        ),
    };
    let took = entry.closed_at.map_or("open".to_owned(), |closed| {
        text::span(closed - entry.opened_at)
    });
    numbers([
        ("Rounds", HtmlCell::from(entry.rounds)),
        ("From and to", rounds.into()),
        ("Opened", text::time(entry.opened_at).into()),
        ("Took", took.into()),
        ("Estimates made", entry.estimates_made.into()),
    ])
}

/// Every action before and after, those that are played first.
fn strategy(detail: &EpochDetail) -> Markup {
    let mut actions: Vec<&ActionAt> = detail.actions.iter().collect();
    // Stable: equals stay in the spec's order.
    actions.sort_by(|one, other| largest(other).total_cmp(&largest(one)));
    let (first, rest) = actions.split_at(actions.len().min(UNFOLDED));
    html! {
        (strategy_table("Strategy", detail, first))
        @if !rest.is_empty() {
            details {
                summary { (whole(rest.len() as u64)) " more actions, none of them played more often" }
                (strategy_table("More of the strategy", detail, rest))
            }
        }
        @if detail.actions.iter().any(|at| at.index.is_some()) {
            p.small {
                "The index is what is maximised: the most that the mean of the reward may be by its estimate. It may lie beyond "
                "the range."
            }
        }
    }
}

/// How often an action is played, or was.
pub fn largest(at: &ActionAt) -> f64 {
    at.after.max(at.before.unwrap_or_default())
}

fn strategy_table(label: &str, detail: &EpochDetail, actions: &[&ActionAt]) -> Markup {
    let indexed = detail.actions.iter().any(|at| at.index.is_some());
    let follows = detail.entry.epoch > 0;
    let mixed = detail.sigma > 0.0;
    let played = if follows { "After" } else { "Played" };
    let table = row_for_each(actions)
        .words("Action", |at| &at.name)
        // A column that would be empty in every row is left out.
        .when(follows, |table| {
            table.probabilities("Before", |at| at.before)
        })
        .probabilities(played, |at| HtmlCell::strong(at.after))
        .when(follows, |table| table.numbers("Change", |at| change(at)))
        .when(mixed, |table| {
            table.probabilities("Unmixed", |at| at.candidate)
        })
        .when(indexed, |table| table.numbers("Index", |at| at.index));
    HtmlTable::cards(label, table.table()).markup()
}

fn change(at: &ActionAt) -> String {
    let Some(before) = at.before else {
        return String::new();
    };
    let change = at.after - before;
    match change {
        _ if change.abs() < 1e-12 => "none".into(),
        _ if change > 0.0 => format!("+{}", share(change)),
        _ => format!("−{}", share(-change)),
    }
}

/// What the limits allow: which of them shape the strategy.
fn limits(detail: &EpochDetail) -> Markup {
    let hard = detail.limits.iter().any(|limit| limit.most.is_some());
    // While it explores no estimate says what anything costs.
    let hoped = detail.limits.iter().any(|limit| limit.least.is_some());
    let moderate = detail.limits.iter().any(|limit| limit.moderate.is_some());
    html! {
        h2 { "Limits" }
        p.small {
            @if hoped {
                "By the estimates: what is played costs that if they are exact. At least: "
                @if moderate { "its cost" } @else { "the best strategy's cost" }
                " if each of its actions costs the least that its estimates allow. "
            }
            @if moderate {
                "With caution: the same if each costs as much more than estimated as the spec's caution has it. "
            }
            @if hard {
                "At most: what is played may cost that much, each cost being the most that its estimates allow, "
                "and the safe strategy what its margin says."
            }
        }
        (HtmlTable::cards("Limits", limits_table(detail, [hoped, moderate, hard])))
    }
}

fn limits_table(detail: &EpochDetail, [hoped, moderate, hard]: [bool; 3]) -> AnswerTable<HtmlCell> {
    let expected = |place: usize| {
        detail
            .expected
            .get(place + 1)
            .map(|expected| expected.value)
    };
    row_for_each(detail.limits.iter().enumerate())
        .words("Cost", |(_, limit)| &limit.name)
        .numbers("Threshold", |(_, limit)| limit.threshold)
        .when(hoped, |table| {
            table
                .numbers("By the estimates", |(place, _)| expected(*place))
                .numbers("At least", |(_, limit)| limit.least)
        })
        .when(moderate, |table| {
            table.numbers("With caution", |(_, limit)| limit.moderate)
        })
        .when(hard, |table| {
            table.numbers("At most", |(_, limit)| limit.most)
        })
        .when(hoped || hard, |table| {
            // The last digits of a sum would make it 1e-17.
            let slack = |limit: &LimitHere| if limit.tight { Some(0.0) } else { limit.slack };
            table.numbers("Slack", |(_, limit)| slack(limit))
        })
        .words("Binds", |(_, limit)| binds(limit))
        .table()
}

fn binds(limit: &LimitHere) -> Markup {
    html! {
        span {
            @if limit.exceeded { (parts::badge("bad", "cannot be kept")) }
            @else if limit.tight { (parts::badge("waiting", "binds")) }
            @else { "no" }
        }
    }
}

/// The lead beside what it was compared with.
fn clear_test(test: &TestState) -> Markup {
    // A little beyond the longer of the two, so that both ends are seen.
    let end = 1.15 * test.lead.max(test.threshold);
    let chart = Chart {
        label: test.sentence.clone(),
        x: Axis::linear("lead", 0.0, end),
        y: Axis::shares(),
        marks: vec![
            Mark::Block {
                class: "c0".into(),
                x: [0.0, test.lead],
                y: [0.2, 0.8],
            },
            Mark::Upright {
                class: "threshold".into(),
                x: test.threshold,
            },
        ],
        tips: Vec::new(),
    };
    html! {
        h2 { "The look" }
        figure.test {
            (chart.scale())
            (chart.strip())
            figcaption {
                "Bar: the lead of " bdi { (test.leader) } " over " bdi { (test.runner_up) } " in mean reward, " (amount(test.lead))
                ". Dashed: the threshold that the key drew, " (amount(test.threshold)) ". "
                @if test.passed { "The lead is above it, so the leader is played to the horizon." }
                @else { "The lead is not above it, so nothing follows from it." }
            }
        }
    }
}

/// Where all this is written down.
fn record(detail: &EpochDetail) -> Markup {
    let entry = &detail.entry;
    // The log begins with a line of its own, which has no cursor.
    let log = match entry.epoch {
        0 => format!("/v1/experiments/{}/log", detail.id),
        epoch => format!(
            "/v1/experiments/{}/log?after={}",
            detail.id,
            cursor_at_epoch(epoch)
        ),
    };
    html! {
        h2 { "For the record" }
        p {
            a href=(log) { "The log from this epoch on" } " · "
            a href={ "/v1/experiments/" (detail.id) "/epochs/" (entry.epoch) } { "This epoch as JSON" }
        }
        @match (&detail.chain, &entry.hash) {
            (Some(chain), Some(made)) => (chained(chain, made)),
            _ => p.small { "The epoch is open: it gets its hash when it is closed." },
        }
    }
}

fn chained(chain: &ChainEntry, made: &str) -> Markup {
    html! {
        p.small {
            "The hash is over the hash before, the epoch's record with its strategy and estimates, when it was opened and closed, "
            "its rounds with their outcomes, the requests they were given to, and all that happened beside them. "
            @if chain.early { "The experiment was closed before the epoch was complete. " }
            "Whoever knows it can tell whether any of this was changed, or anything before."
        }
        (facts([
            ("Hash", Some(hash(made))),
            ("Hash before", Some(hash(&chain.previous))),
            ("Over its rounds", Some(hash(&chain.rounds_hash))),
            ("Over its requests", Some(hash(&chain.leases_hash))),
            ("Over what else happened", (!chain.journal.is_empty()).then(|| hash(&chain.journal))),
        ]))
    }
}
