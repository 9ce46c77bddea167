//! `POST /v1/experiments/{id}/decisions`: the next rounds.
//!
//! The answer is written straight into bytes: an epoch's decisions share their actions, whose part of the text is made once.

use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::behind;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Id, Json, Object};
use crate::service::http::trace;
use crate::service::limits::quoted;
use crate::service::request::{Decide, Decided, Refusal};
use crate::store::{DecisionKind, Role};

/// What is asked for.
#[derive(Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", schema(as = Ask))]
pub struct DecisionRequest {
    /// How many rounds at most.
    #[cfg_attr(feature = "describe", schema(minimum = 1, maximum = 10_000))]
    n: u64,
    /// With the same key the same rounds are given again, so that a request whose answer was lost can be repeated.
    #[cfg_attr(feature = "describe", schema(min_length = 1, max_length = 128))]
    request_key: Option<String>,
    /// The highest round that the client has seen decided. If the store has decided less, which happens to one restored or
    /// copied, the answer is 409 `behind`: it would decide these rounds a second time.
    #[serde(default)]
    #[cfg_attr(feature = "describe", schema(default = 0))]
    seen: u64,
}

/// Decisions of one epoch, in order.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", schema(as = Decisions))]
pub struct DecisionsBody {
    /// The epoch of all of them.
    pub epoch: u64,
    /// Whether they are outside the horizon: the epoch waits for outcomes, and its strategy serves on.
    pub overtime: bool,
    /// At least one, at most `n`; fewer where the epoch ends, or where the answer would exceed 8 MiB.
    pub decisions: Vec<DecisionBody>,
}

/// A decision.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "describe", schema(as = Decision))]
pub struct DecisionBody {
    /// The round, from 1; null outside the horizon.
    pub round: Option<u64>,
    /// Outside the horizon: the serial within the epoch, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    pub overtime: Option<u64>,
    /// Held back from the experiment: the serial within the epoch, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "describe", schema(nullable = false))]
    pub holdback: Option<u64>,
    /// The epoch, from 0.
    pub epoch: u64,
    /// The action to play: its number in the spec, from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// With which probability the epoch's strategy plays it; 1 of what is held back, where there is one action.
    pub probability: f64,
}

/// Decisions for the next rounds
///
/// Role decide. They are durable before they are answered, and no round is given twice except for the same `request_key`.
/// When the epoch is fully decided and outcomes are outstanding, the answer is 409 `waiting` with Retry-After, or overtime
/// decisions if the spec says `on_wait = "serve"`. If the spec has a `holdback`, a share of request keys gets its action instead,
/// always and even while waiting, and a request without a `request_key` is refused with 422 `request_key_needed`. The header
/// Idempotency-Key may stand for `request_key`.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/decisions", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")), request_body = DecisionRequest,
    responses((status = 200, description = "What to do", body = DecisionsBody))))]
pub async fn decide(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    // The head says all that this needs: a body that is refused anyway takes no memory from others.
    caller.require_for(Role::Decide, &id)?;
    let header = idempotency_key(request.headers())?;
    let body = Json::from_request(request, &app).await?;
    let Object(DecisionRequest {
        n,
        request_key,
        seen,
    }) = body.read()?;
    let request_key = one_key(request_key, header)?;
    let flag = trace::flag(&id);
    let decide = Decide {
        id,
        rounds: n,
        request_key,
        seen,
        actor: caller.name,
    };
    let decided = app.service.ask(decide).await.inspect_err(log_if_behind)?;
    trace::evaluated(flag.as_deref(), &decided);
    // Repetitions are answered and not counted: the metric is of rounds handed out.
    if !decided.repeated {
        app.metrics
            .decided(decided.lease.kind, decided.lease.actions.len() as u64);
    }
    Ok(([(CONTENT_TYPE, "application/json")], written(&decided)).into_response())
}

/// What the header Idempotency-Key says: a text in quotation marks, by the IETF's draft, or as it is, as most send it.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(value) = given.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|_| given.next().is_none());
    let key = text.and_then(|text| unquoted(text.trim()));
    key.map(Some).ok_or_else(|| {
        let message =
            "the header Idempotency-Key cannot be read; send it once, in ASCII, as text or in quotation marks";
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "request_key", message)
            .against("one text, or one string in quotation marks", text)
    })
}

/// The text of a string in quotation marks (RFC 9651), or a text that has none.
fn unquoted(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(text.to_owned());
    };
    let mut plain = String::new();
    let mut signs = quoted.strip_suffix('"')?.chars();
    while let Some(sign) = signs.next() {
        plain.push(match sign {
            // Only these two are escaped, and have to be.
            '\\' => signs.next().filter(|sign| ['"', '\\'].contains(sign))?,
            '"' => return None,
            sign => sign,
        });
    }
    Some(plain)
}

/// The request key, which may be given in the body, in the header, or as the same in both.
fn one_key(body: Option<String>, header: Option<String>) -> Result<Option<String>, ApiError> {
    match (body, header) {
        (Some(body), Some(header)) if body != header => {
            let (body, header) = (quoted(&body), quoted(&header));
            let message = format!(
                "request_key is {body:?} and the header Idempotency-Key is {header:?}; send one of them, or the same in both"
            );
            Err(
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "request_key", message)
                    .against(format!("{body:?}, as request_key"), header),
            )
        }
        (body, header) => Ok(body.or(header)),
    }
}

/// One client may be wrong about what it has seen; if it is not, the operator must know before anyone else does.
fn log_if_behind(refusal: &Refusal) {
    if let Refusal::Behind { id, seen, decided } = refusal {
        behind::warn(id, *seen, *decided);
    }
}

/// [`DecisionsBody`] as JSON.
///
/// By hand: written by serde, the names and probabilities of 100 decisions would be formatted 100 times, and the answer is a
/// quarter of a handler's work as it is (docs/benchmarks.md).
pub fn written(decided: &Decided) -> Vec<u8> {
    let lease = &decided.lease;
    let endings = decided.labels.per_action.get_or_init(|| endings(decided));
    let head = format!(
        "{{\"epoch\":{},\"overtime\":{},\"decisions\":[",
        lease.epoch,
        lease.kind == DecisionKind::Overtime
    );
    let number = match lease.kind {
        DecisionKind::Round => "{\"round\":",
        DecisionKind::Overtime => "{\"round\":null,\"overtime\":",
        DecisionKind::Holdback => "{\"round\":null,\"holdback\":",
    };
    let mut opening = Opening::new(number, lease.first);
    // As if each had the digits of the last: a long answer may begin with fewer.
    let last = lease.first.saturating_add(lease.actions.len() as u64);
    let longest = number.len() + 1 + last.checked_ilog10().unwrap_or_default() as usize;
    let length: usize = lease
        .actions
        .iter()
        .map(|&action| longest + endings[action as usize].len())
        .sum();
    let mut bytes = vec![0; head.len() + length + OPENING_MAX];
    let mut end = head.len();
    bytes[..end].copy_from_slice(head.as_bytes());
    for &action in &lease.actions {
        // All of it, whatever its length: what is too much is written over. A fixed number of bytes takes no call.
        bytes[end..end + OPENING_MAX].copy_from_slice(&opening.text);
        end += opening.length;
        let ending = endings[action as usize].as_bytes();
        bytes[end..end + ending.len()].copy_from_slice(ending);
        end += ending.len();
        opening.count_up();
    }
    // The comma after the last one: there is at least one, or the request would have been refused.
    bytes.truncate(end - 1);
    bytes.extend_from_slice(b"]}");
    bytes
}

/// The most bytes before a decision's epoch: the 25 before an overtime serial, and the 20 digits of the largest number.
const OPENING_MAX: usize = 48;

/// How a decision's text begins: up to its number, which counts up.
struct Opening {
    text: [u8; OPENING_MAX],
    length: usize,
}

impl Opening {
    fn new(before: &str, number: u64) -> Self {
        let begun = format!("{before}{number}");
        let mut text = [0; OPENING_MAX];
        text[..begun.len()].copy_from_slice(begun.as_bytes());
        Self {
            text,
            length: begun.len(),
        }
    }

    /// Adds one to the number: rounds follow each other, and formatting each of them takes longer.
    fn count_up(&mut self) {
        for place in (0..self.length).rev() {
            match self.text[place] {
                b'9' => self.text[place] = b'0',
                b'0'..=b'8' => {
                    self.text[place] += 1;
                    return;
                }
                // All digits were nines and are zeros by now: 99 becomes 00, and then 100.
                _ => {
                    self.text[self.length] = b'0';
                    self.length += 1;
                    self.text[place + 1] = b'1';
                    return;
                }
            }
        }
    }
}

/// What follows a decision's number, for each action.
fn endings(decided: &Decided) -> Vec<String> {
    let epoch = decided.lease.epoch;
    let strategy = decided.labels.strategy.iter();
    let actions = decided.labels.actions.iter().zip(strategy).enumerate();
    actions
        .map(|(action, (name, &probability))| {
            // Both are written as JSON values: a name is the user's text and may hold quotes, and a probability has
            // to come back bit for bit.
            let name = Value::from(name.as_str());
            let probability = Value::from(probability);
            format!(
                ",\"epoch\":{epoch},\"action\":{action},\"name\":{name},\"probability\":{probability}}},"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::service::request::EpochLabels;
    use crate::store::Lease;

    fn decided(kind: DecisionKind) -> Decided {
        let actions = vec!["a \"b\"\n".into(), "c".into()];
        let labels = EpochLabels::new(actions, vec![1.0 / 3.0, 1.0]);
        let (actions, request_key) = (vec![1, 0, 1], None);
        let lease = Lease {
            epoch: 7,
            kind,
            first: 98,
            actions,
            asked: 3,
            request_key,
            at: 0,
            waited: 0,
            actor: 0,
        };
        Decided {
            lease,
            labels: Arc::new(labels),
            repeated: false,
        }
    }

    #[test]
    fn what_is_written_is_what_the_description_says() {
        for kind in DecisionKind::ALL {
            let read: DecisionsBody = serde_json::from_slice(&written(&decided(kind))).unwrap();
            assert_eq!(
                (read.epoch, read.overtime, read.decisions.len()),
                (7, kind == DecisionKind::Overtime, 3)
            );
            let one = &read.decisions[1];
            let number = |of| (of == kind).then_some(99);
            assert_eq!(
                [one.round, one.overtime, one.holdback],
                DecisionKind::ALL.map(number)
            );
            assert_eq!(
                (one.action, one.name.as_str(), one.epoch),
                (0, "a \"b\"\n", 7)
            );
            assert_eq!(one.probability.to_bits(), (1.0f64 / 3.0).to_bits());
            assert_eq!(
                [
                    read.decisions[2].round,
                    read.decisions[2].overtime,
                    read.decisions[2].holdback
                ]
                .into_iter()
                .flatten()
                .next(),
                Some(100)
            );
        }
    }

    #[test]
    fn numbers_may_gain_digits_within_an_answer() {
        let mut decided = decided(DecisionKind::Round);
        (decided.lease.first, decided.lease.actions) = (1, vec![0; 10_001]);
        let read: DecisionsBody = serde_json::from_slice(&written(&decided)).unwrap();
        let rounds: Vec<_> = read.decisions.iter().filter_map(|one| one.round).collect();
        assert_eq!(rounds, Vec::from_iter(1..=10_001));
    }

    #[test]
    fn counting_up_a_text_is_counting() {
        let mut opening = Opening::new("8:", 0);
        for number in 0..11_000 {
            let expected = format!("8:{number}").into_bytes();
            assert_eq!(opening.text[..opening.length], expected);
            opening.count_up();
        }
        for before in [
            "{\"round\":",
            "{\"round\":null,\"overtime\":",
            "{\"round\":null,\"holdback\":",
        ] {
            let largest = format!("{before}{}", u64::MAX).into_bytes();
            let opening = Opening::new(before, u64::MAX);
            assert_eq!(opening.text[..opening.length], largest);
        }
    }
}
