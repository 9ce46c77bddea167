//! `POST /v1/experiments/{id}/outcomes`: what came of decisions.

use std::borrow::Cow;
use std::fmt;

use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use axum::http::StatusCode;
use debora::{Error, Problem};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, Json, Object};
use crate::service::limits::{is_name, quoted};
use crate::service::request::{
    DecisionId, KeyedOutcome, Receipt, Refusal, Tell, TellKeyed, ToldOutcome,
};
use crate::store::Role;

/// The most outcomes in one request: 10,000 take the writer 20 ms, and others wait for it.
pub const OUTCOMES_MAX: usize = 10_000;

/// What came of a decision: of a `round`, of the `overtime` or `holdback` decision with this serial in this `epoch`, or of the
/// decision that a `request_key` was given.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Outcome<'a> {
    /// The round; absent or null outside the horizon.
    #[cfg_attr(feature = "describe", schema(minimum = 1))]
    round: Option<u64>,
    /// Of an overtime or holdback decision: its epoch.
    epoch: Option<u64>,
    /// Of an overtime decision: its serial.
    #[cfg_attr(feature = "describe", schema(minimum = 1))]
    overtime: Option<u64>,
    /// Of whatever decision was given to this key.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "describe", schema(value_type = Option<String>, min_length = 1, max_length = 128))]
    request_key: Option<Cow<'a, str>>,
    /// Which of the decisions that the key was given, from 0; may be absent if that is one.
    index: Option<u64>,
    /// Of a holdback decision: its serial.
    #[cfg_attr(feature = "describe", schema(minimum = 1))]
    holdback: Option<u64>,
    /// In the spec's units.
    reward: f64,
    /// In the spec's units: by name, or in the spec's order. May be absent if the spec has no costs.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "describe", schema(value_type = CostsShape))]
    costs: GivenCosts<'a>,
}

/// Costs by name, or in the spec's order.
#[cfg(feature = "describe")]
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
pub enum CostsShape {
    /// By name.
    Named(std::collections::BTreeMap<String, f64>),
    /// In the spec's order.
    Listed(Vec<f64>),
}

/// What `CostsShape` describes, borrowed from the body where it can be.
enum GivenCosts<'a> {
    Named(Vec<(Cow<'a, str>, f64)>),
    Listed(Vec<f64>),
}

impl Default for GivenCosts<'_> {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for GivenCosts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CostsVisitor)
    }
}

struct CostsVisitor;

impl<'de> Visitor<'de> for CostsVisitor {
    type Value = GivenCosts<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("costs by name, as {\"price\": 0.01}, or a list in the spec's order")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        // A list and not a map: a name that is given twice must be noticed, not overwritten.
        let mut costs = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            costs.push((name.0, map.next_value()?));
        }
        Ok(GivenCosts::Named(costs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut costs = Vec::new();
        while let Some(cost) = list.next_element()? {
            costs.push(cost);
        }
        Ok(GivenCosts::Listed(costs))
    }
}

/// A cost's name. A wrapper, as serde borrows a `Cow` only where a field says so.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A receipt for each outcome, and how many of each there are.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Receipts {
    /// In the order in which the outcomes were sent.
    pub receipts: Vec<Receipt>,
    /// How many of each.
    pub counts: ReceiptCounts,
}

/// How many outcomes have each receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "describe", schema(as = Counts))]
pub struct ReceiptCounts {
    /// They count.
    pub recorded: u64,
    /// The same was told before; it counts once.
    pub repeated: u64,
    /// Something else was told before; the first stays.
    pub conflict: u64,
    /// No such round was decided.
    pub unknown: u64,
    /// Their rounds had been imputed: they are logged and do not count.
    pub late: u64,
    /// Of decisions outside the horizon: they are logged and do not count.
    pub overtime: u64,
    /// Of decisions that were held back: they are logged, and only compared with the experiment.
    pub holdback: u64,
}

impl ReceiptCounts {
    fn of(receipts: &[Receipt]) -> Self {
        let mut counts = Self::default();
        for receipt in receipts {
            *counts.of_one(*receipt) += 1;
        }
        counts
    }

    fn of_one(&mut self, receipt: Receipt) -> &mut u64 {
        match receipt {
            Receipt::Recorded => &mut self.recorded,
            Receipt::Repeated => &mut self.repeated,
            Receipt::Conflict => &mut self.conflict,
            Receipt::Unknown => &mut self.unknown,
            Receipt::Late => &mut self.late,
            Receipt::Overtime => &mut self.overtime,
            Receipt::Holdback => &mut self.holdback,
        }
    }
}

/// Outcomes of decisions
///
/// Role decide. In any order, at most 10,000 a request, and safe to repeat: each gets a receipt, and what is `recorded` is
/// durable. If a value is refused, none of the request is recorded. If no round of the request was ever decided in this
/// experiment, the answer is 404 `no_such_round`.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/outcomes", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")), request_body = Vec<Outcome>,
    responses((status = 200, description = "What became of each", body = Receipts))))]
pub async fn tell(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<axum::Json<Receipts>, ApiError> {
    // Before the body: what is refused by the head alone takes no memory from others.
    caller.require_for(Role::Decide, &id)?;
    let body = Json::from_request(request, &app).await?;
    let (outcomes, keyed) = read_outcomes(&app, &id, &body).await?;
    let first = outcomes.first().map(|outcome| named(outcome, &keyed));
    // Nothing borrows from it here, and others may be waiting for the memory.
    drop(body);
    let (id_told, actor) = (id.clone(), caller.name);
    let told = if keyed.is_empty() {
        let tell = Tell {
            id: id_told,
            outcomes,
            actor,
        };
        app.service.ask(tell).await
    } else {
        let tell = TellKeyed {
            id: id_told,
            outcomes,
            keyed,
            actor,
        };
        app.service.ask(tell).await
    };
    let receipts = told?;
    let mut counts = ReceiptCounts::of(&receipts);
    for receipt in Receipt::ALL {
        app.metrics.told(receipt, *counts.of_one(receipt));
    }
    // One unknown round is a receipt among others. If all are unknown, the client is telling the
    // wrong experiment, and must not take it for success.
    if let Some(first) = first.filter(|_| counts.unknown == receipts.len() as u64) {
        return Err(no_such_round(&id, &first, receipts.len()));
    }
    Ok(axum::Json(Receipts { receipts, counts }))
}

async fn read_outcomes(
    app: &AppState,
    id: &str,
    body: &Json,
) -> Result<(Vec<ToldOutcome>, Vec<KeyedOutcome>), ApiError> {
    if body.is_object() {
        let message = "the body is an object; send a list of outcomes, of a single one too: [{\"round\": 1, ..}]";
        return Err(ApiError::unfit(message));
    }
    let outcomes: Vec<Object<Outcome>> = body.read()?;
    if outcomes.len() > OUTCOMES_MAX {
        return Err(too_many(outcomes.len()));
    }
    // Names are resolved here and values checked later, by the writer's engine: it has to do that
    // anyway, and this thread needs no more than the spec.
    let info = app.info(id).await?;
    let mut keyed = Vec::new();
    let told = outcomes.into_iter().enumerate().map(|(place, outcome)| {
        keyed.extend(keyed_outcome(place, &outcome.0)?);
        told_outcome(place, outcome.0, &info.problem)
    });
    let told = told.collect::<Result<_, _>>()?;
    Ok((told, keyed))
}

/// Whose decision an outcome is of, if it says that.
fn keyed_outcome(place: usize, outcome: &Outcome) -> Result<Option<KeyedOutcome>, ApiError> {
    let Some(key) = &outcome.request_key else {
        return Ok(None);
    };
    // Here, as no store is to be asked for what it cannot hold.
    if !is_name(key) {
        let request_key = quoted(key);
        return Err(Refusal::RequestKey { request_key }.into());
    }
    Ok(Some(KeyedOutcome {
        place,
        request_key: key.clone().into_owned(),
        index: outcome.index,
    }))
}

/// The request's first outcome, as an error names it.
fn named(first: &ToldOutcome, keyed: &[KeyedOutcome]) -> String {
    let key = keyed.first().filter(|keyed| keyed.place == 0);
    key.map_or_else(
        || first.decision.to_string(),
        |keyed| format!("the decision of request_key {:?}", keyed.request_key),
    )
}

fn too_many(outcomes: usize) -> ApiError {
    let message =
        format!("{outcomes} outcomes are too many for one request; send at most {OUTCOMES_MAX}");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", message)
        .against(format!("at most {OUTCOMES_MAX} outcomes"), outcomes)
}

fn no_such_round(id: &str, first: &str, outcomes: usize) -> ApiError {
    let what = match outcomes {
        1 => format!("{first} was"),
        2 => format!("{first} and 1 other were"),
        _ => format!("{first} and {} others were", outcomes - 1),
    };
    let belong = if outcomes == 1 {
        "does it belong"
    } else {
        "do they belong"
    };
    let message = format!(
        "nothing was recorded: {what} never decided in experiment {id:?}; {belong} to another experiment?"
    );
    ApiError::new(StatusCode::NOT_FOUND, "no_such_round", message)
        .against("a decision of this experiment", first)
}

fn told_outcome(
    index: usize,
    outcome: Outcome,
    problem: &Problem,
) -> Result<ToldOutcome, ApiError> {
    let decision = decision_id(index, &outcome, problem.horizon())?;
    let costs = match outcome.costs {
        GivenCosts::Listed(costs) => costs,
        GivenCosts::Named(named) => by_order(index, &named, problem)?,
    };
    Ok(ToldOutcome {
        decision,
        reward: outcome.reward,
        costs,
    })
}

/// Which decision an outcome is of: its round or, outside the horizon, epoch and serial.
fn decision_id(index: usize, outcome: &Outcome, horizon: u64) -> Result<DecisionId, ApiError> {
    let serials = (outcome.overtime, outcome.holdback);
    match (outcome.round, outcome.epoch, serials) {
        // The writer finds it.
        (None, None, (None, None)) if outcome.request_key.is_some() => Ok(DecisionId::UNKNOWN),
        _ if outcome.request_key.is_some() || outcome.index.is_some() => {
            Err(ApiError::unfit(format!(
                "outcome {index}: give its round, or its request_key and, where that was given several decisions, an index; not both"
            )))
        }
        (Some(round), None, (None, None)) if (1..=horizon).contains(&round) => {
            Ok(DecisionId::Round(round))
        }
        // Beyond the horizon it can never be decided, so it is refused and not just unknown.
        (Some(round), None, (None, None)) => Err(Refusal::Outcome {
            index,
            error: Error::RoundUnknown { round, horizon },
        }
        .into()),
        (None, Some(epoch), (Some(serial), None)) => Ok(DecisionId::Overtime { epoch, serial }),
        (None, Some(epoch), (None, Some(serial))) => Ok(DecisionId::Holdback { epoch, serial }),
        _ => Err(ApiError::unfit(format!(
            "outcome {index}: give its round, its request_key or, for an overtime decision, epoch and overtime, or, for one that \
             was held back, epoch and holdback"
        ))),
    }
}

/// Named costs in the spec's order: each of them once.
fn by_order(
    index: usize,
    named: &[(Cow<'_, str>, f64)],
    problem: &Problem,
) -> Result<Vec<f64>, ApiError> {
    let costs = problem.quantities() - 1;
    let names = || (1..=costs).map(|cost| problem.quantity(cost).name.as_str());
    // Before the number of them: where one is misspelt, its name says more than the count.
    if let Some((name, _)) = named
        .iter()
        .find(|(name, _)| names().all(|known| known != name))
    {
        let names: Vec<&str> = names().collect();
        let name = quoted(name);
        let message = format!("outcome {index}: there is no cost {name:?}; the spec has {names:?}");
        return Err(ApiError::unfit(message).against(format!("one of {names:?}"), name));
    }
    if named.len() != costs {
        let error = Error::CostCount {
            got: named.len(),
            costs,
        };
        return Err(Refusal::Outcome { index, error }.into());
    }
    names().map(|name| value_of(index, name, named)).collect()
}

/// The value of a cost that is given once.
fn value_of(index: usize, name: &str, named: &[(Cow<'_, str>, f64)]) -> Result<f64, ApiError> {
    let mut found = named.iter().filter(|(given, _)| given == name);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Ok(*value),
        // The count is right, so where one is missing another is given twice.
        _ => {
            let message = format!(
                "outcome {index}: cost {name:?} is missing or repeated; give each cost once"
            );
            Err(ApiError::unfit(message).against("each cost once", name))
        }
    }
}
