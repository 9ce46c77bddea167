//! Errors by RFC 9457: every code with its status and its title, which never change, and the address that explains it.
//!
//! The page of the interface lists them all, so that the `type` of an error leads to its line.

use axum::http::StatusCode;
use serde::{Serialize, Serializer};

/// How an error is declared.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Of an error without a code of its own, which RFC 9457 gives to what its status says in full.
const BLANK: &str = "about:blank";

/// Every code: its status, and what happened in general.
pub const CODES: &[(u16, &str, &str)] = &[
    (400, "malformed", "It cannot be read"),
    (401, "no_key", "A key is needed"),
    (403, "cross_origin", "A page of another site asks"),
    (403, "forwarded", "A proxy has forwarded it"),
    (403, "not_local", "It is not asked on this machine"),
    (403, "out_of_scope", "The key is for other experiments"),
    (403, "wrong_role", "The key's role does not allow it"),
    (404, "no_experiment", "There is no such experiment"),
    (404, "no_route", "There is nothing at this address"),
    (404, "no_such_epoch", "There is no such epoch"),
    (404, "no_such_key", "There is no such key"),
    (404, "no_such_round", "The round was never decided"),
    (404, "no_such_webhook", "There is no such webhook"),
    (405, "method", "The method does not work here"),
    (408, "too_slow", "It took too long to arrive"),
    (409, "behind", "The store is behind the client"),
    (409, "closed", "The experiment is closed"),
    (409, "done", "The experiment is done"),
    (409, "id_taken", "The id is taken"),
    (409, "key_revoked", "The key is revoked"),
    (409, "key_taken", "The key's name is taken"),
    (409, "last_admin", "It is the last admin key"),
    (409, "not_over", "The experiment is not over"),
    (409, "other_values", "The experiment has other values"),
    (409, "paused", "The experiment is paused"),
    (409, "request_key_used", "The request key is used"),
    (409, "waiting", "Outcomes are waited for"),
    (409, "webhook_disabled", "The webhook is disabled"),
    (409, "webhook_taken", "The webhook's name is taken"),
    (409, "webhooks", "There are too many webhooks"),
    (413, "too_large", "The body is too large"),
    (413, "too_many", "It has too many items"),
    (415, "media_type", "It is not declared as what it must be"),
    (422, "blind", "The plan is blind"),
    (422, "cursor", "The cursor is invalid"),
    (422, "estimates", "It has too many estimates"),
    (422, "first_key", "The first key must be an admin's"),
    (422, "id_text", "The id is invalid"),
    (422, "index", "Which decision it is of is not clear"),
    (422, "key_in_spec", "The spec has a key"),
    (422, "key_name", "The key's name is invalid"),
    (422, "logs_too_long", "The logs are too long"),
    (422, "name", "A name is invalid"),
    (422, "outcome", "An outcome is invalid"),
    (422, "reason", "The reason is invalid"),
    (422, "request_key", "The request key is invalid"),
    (422, "request_key_needed", "A request key is needed"),
    (422, "rounds", "The number of rounds is invalid"),
    (422, "spec", "The spec is invalid"),
    (422, "targeting_key", "A targeting key is needed"),
    (422, "too_long", "A text is too long"),
    (422, "too_many_flags", "There are too many flags"),
    (422, "unfit", "A field is unknown, missing or mistyped"),
    (422, "webhook", "The webhook is invalid"),
    (422, "world", "The spec has a world"),
    (500, "internal", "The program made a mistake"),
    (503, "busy", "Too much is asked at once"),
    (503, "database_away", "The database is away"),
    (503, "disk_full", "The disk is full"),
    (503, "io_error", "The disk fails"),
    (503, "read_only", "The store is read-only"),
    (503, "stopping", "The service is stopping"),
    (503, "store", "The store fails"),
    (503, "store_gone", "The store is gone"),
    (503, "store_replaced", "The store was replaced"),
    (503, "stuck", "The store does not answer"),
];

/// What kind of error it is.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ProblemKind {
    /// Where it is explained, an address of this service; `about:blank` if the status says it all.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "describe", schema(example = "/api#error-no_experiment"))]
    reference: String,
    /// What happened in general; the same for all errors with this code.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    title: &'static str,
    /// What happened, for programs; it never changes.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    code: &'static str,
}

/// What happened in this case.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ProblemDetail<'a> {
    /// A sentence for a person: what, which value, what to do.
    detail: &'a str,
    /// The same, for programs that know no problem details.
    message: &'a str,
}

/// The status and the title of a code.
pub fn known(code: &str) -> Option<(u16, &'static str)> {
    let found = CODES.iter().find(|(_, known, _)| *known == code)?;
    Some((found.0, found.2))
}

/// Writes a code with its type and title.
pub fn write_kind<S: Serializer>(code: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    let (reference, title) = match known(code) {
        Some((_, title)) => (format!("/api#error-{code}"), title),
        None => (BLANK.into(), "Error"),
    };
    let kind = ProblemKind {
        reference,
        title,
        code,
    };
    kind.serialize(serializer)
}

/// Writes a sentence by both of its names.
pub fn write_detail<S: Serializer>(message: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let detail = message;
    ProblemDetail { detail, message }.serialize(serializer)
}

/// Writes a status as its number.
pub fn write_status<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_in_order() {
        let order = |pair: &[(u16, &str, &str)]| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1);
        assert!(CODES.windows(2).all(order));
        let codes: std::collections::BTreeSet<_> = CODES.iter().map(|line| line.1).collect();
        assert_eq!(codes.len(), CODES.len());
    }
}
