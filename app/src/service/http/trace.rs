//! What the server's log says at level debug in the words of OpenTelemetry, so that its lines are found beside a caller's own.
//!
//! A request's line has the trace that the caller's `traceparent` names (W3C Trace Context). A decision's line is an event
//! `feature_flag.evaluation`: the experiment is the flag, and the action its variant. At other levels nothing is computed.

use axum::http::HeaderMap;

use crate::service::http::flags::EvaluatedFlag;
use crate::service::request::Decided;
use crate::store::DecisionKind;

/// Who evaluates.
const PROVIDER: &str = "debora";

/// Digits of a trace's number.
const DIGITS: usize = 32;

/// The number of the trace that a request belongs to.
pub fn trace_id(headers: &HeaderMap) -> Option<&str> {
    is_on().then_some(())?;
    let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
    let (version, id) = (parts.next()?, parts.next()?);
    // Nothing else of a caller's text gets into the log.
    let is_hex = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let fits = version.len() == 2 && id.len() == DIGITS && is_hex(version) && is_hex(id);
    // All zeros and version ff are said to be invalid.
    (fits && version != "ff" && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

/// Whether anything is written at all.
fn is_on() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// The name of an experiment, for [`evaluated`]; `None` if nothing is to be written.
pub fn flag(id: &str) -> Option<String> {
    is_on().then(|| id.to_owned())
}

/// Writes a line for each decision.
pub fn evaluated(flag: Option<&str>, decided: &Decided) {
    let Some(flag) = flag else { return };
    let lease = &decided.lease;
    // The key of the request stays out: it may name a person.
    for (number, action) in (lease.first..).zip(&lease.actions) {
        tracing::debug!(
            feature_flag.key = flag,
            feature_flag.result.variant = decided.labels.actions[*action as usize],
            // As OpenTelemetry spells OpenFeature's SPLIT.
            feature_flag.result.reason = if decided.repeated { "cached" } else { "split" },
            feature_flag.provider.name = PROVIDER,
            debora.epoch = lease.epoch,
            debora.round = (lease.kind == DecisionKind::Round).then_some(number),
            debora.overtime = (lease.kind == DecisionKind::Overtime).then_some(number),
            debora.holdback = (lease.kind == DecisionKind::Holdback).then_some(number),
            "feature_flag.evaluation"
        );
    }
}

/// Writes a line for a flag that is not a decision: of an experiment that is over or paused.
pub fn advised(flag: Option<&str>, evaluated: &EvaluatedFlag, epoch: u64) {
    let Some(flag) = flag else { return };
    tracing::debug!(
        feature_flag.key = flag,
        feature_flag.result.variant = evaluated.variant,
        feature_flag.result.reason = evaluated.reason.to_lowercase(),
        feature_flag.provider.name = PROVIDER,
        debora.epoch = epoch,
        "feature_flag.evaluation"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_trace_gets_into_the_log() {
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
        tracing::subscriber::with_default(subscriber.finish(), || {
            let id = "4bf92f3577b34da6a3ce929d0e0e4736";
            let found = |text: &str| {
                let headers =
                    HeaderMap::from_iter([("traceparent".parse().unwrap(), text.parse().unwrap())]);
                trace_id(&headers).map(str::to_owned)
            };
            assert_eq!(
                found(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(),
                Some(id)
            );
            // A later version may have more parts.
            assert_eq!(
                found(&format!("cc-{id}-00f067aa0ba902b7-01-more")).as_deref(),
                Some(id)
            );
            for text in [
                "",
                "00",
                "00-short-00f067aa0ba902b7-01",
                &format!("ff-{id}-00f067aa0ba902b7-01"),
                &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
                &format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
                &format!(
                    "00-{}-00f067aa0ba902b7-01",
                    "debora_secret_of_thirty_two_char"
                ),
            ] {
                assert_eq!(found(text), None, "{text}");
            }
        });
    }
}
