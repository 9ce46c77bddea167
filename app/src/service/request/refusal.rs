//! Why nothing was done: every refusal, and one table of what each says.

use std::borrow::Cow;
use std::fmt;

use debora::measure::words::listed;
use debora::spec::SpecError;
use debora::{Error, VALUES_VERSION};
use serde_json::Value;

use super::NAME_MAX;
use crate::calendar::utc;
use crate::log::{OtherValues, ROUNDS_MAX};
use crate::service::keys::KEY_NAME_MAX;
use crate::service::limits::ESTIMATES_MAX;
use crate::service::webhooks::WebhookRefusal;
use crate::store::{ITSELF, KEYLESS};

/// Why nothing was done.
#[derive(Debug)]
pub enum Refusal {
    /// No such experiment.
    NoExperiment { id: String },
    /// An id with other characters, or too long.
    IdText { id: String },
    /// Another experiment has this id.
    IdTaken { id: String },
    /// A spec that cannot be read.
    Spec(SpecError),
    /// A spec with `[world]`.
    World,
    /// A spec with a key.
    KeyInSpec,
    /// A cost with a range for each action.
    RangesByAction { cost: String },
    /// A name of the experiment, an action, the reward or a cost that is too long or has control characters.
    Name { name: String, bytes: usize },
    /// Too many actions for its costs.
    Estimates { estimates: usize },
    /// A text that is too long.
    TooLong {
        what: &'static str,
        bytes: usize,
        most: usize,
    },
    /// A reason with control characters.
    ReasonText,
    /// A blind plan, with the warning that says so.
    Blind(String),
    /// Rounds outside 1 to the most.
    Rounds { rounds: u64 },
    /// A request key that is empty, too long, or has control characters, which PostgreSQL cannot all keep.
    RequestKey { request_key: String },
    /// A request without a key, of an experiment that holds some back by theirs.
    RequestKeyNeeded { id: String },
    /// A request key that was used for another number of rounds.
    RequestKeyUsed {
        request_key: String,
        asked: u64,
        rounds: u64,
    },
    /// An outcome that does not say which of its key's decisions it is of, or names one that the key was not given.
    OutcomeIndex {
        place: usize,
        request_key: String,
        rounds: u64,
        index: Option<u64>,
    },
    /// The caller has seen a round that this store has not decided.
    Behind { id: String, seen: u64, decided: u64 },
    /// The epoch is fully decided.
    Waiting { epoch: u64, outstanding: u64 },
    /// It decides nothing while paused.
    Paused { id: String },
    /// The store is behind what was acknowledged. It is paused.
    WentBack { id: String, lost: String },
    /// It was begun by a program with other values.
    OtherValues(OtherValues),
    /// It was ended.
    Closed { id: String },
    /// All rounds are told.
    Done { id: String, horizon: u64 },
    /// A name that a key cannot have.
    KeyName { name: String },
    /// A key has, or had, this name.
    KeyTaken { name: String },
    /// No key has this name.
    NoKeyNamed { name: String, names: Vec<String> },
    /// It was revoked before.
    KeyRevoked { name: String, at: i64 },
    /// Without this key nobody could make another.
    LastAdmin { name: String },
    /// The first key must be able to make others.
    FirstKey,
    /// Someone else has made the first key meanwhile.
    KeyNeeded,
    /// Something about webhooks.
    Webhook(WebhookRefusal),
    /// An outcome with a value that the problem refuses. None of the request's outcomes is recorded.
    Outcome { index: usize, error: Error },
    /// The store failed. What was asked may or may not have happened: repeat it.
    Store { detail: String },
    /// It waited too long for the writer, or too much waits already. It was not carried out, and never will be.
    Busy,
    /// The service is shutting down.
    Stopping,
}

/// A line of the table.
pub struct RefusalLine<'a> {
    /// 422 for what is wrong in itself, 409 for what is wrong at this moment, 503 for what is worth repeating as it is:
    /// clients may go by it without the code.
    pub status: u16,
    /// What programs go by; it never changes.
    pub code: &'static str,
    /// What is wrong, and with which value.
    pub sentence: Cow<'a, str>,
    /// What to do about it; empty where the sentence says that.
    pub remedy: Cow<'a, str>,
    /// The condition that was violated, and the value that did it.
    pub broken: Option<(Cow<'static, str>, Value)>,
    /// The field at fault.
    pub field: Option<&'a str>,
}

impl<'a> RefusalLine<'a> {
    /// A line without rule and field.
    pub fn new(
        status: u16,
        code: &'static str,
        sentence: impl Into<Cow<'a, str>>,
        remedy: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            status,
            code,
            sentence: sentence.into(),
            remedy: remedy.into(),
            broken: None,
            field: None,
        }
    }

    fn against(self, rule: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        Self {
            broken: Some((rule.into(), value.into())),
            ..self
        }
    }

    fn at(self, field: &'a str) -> Self {
        Self {
            field: Some(field),
            ..self
        }
    }
}

impl fmt::Display for RefusalLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        if self.remedy.is_empty() {
            return Ok(());
        }
        // A whole sentence is followed by another.
        let joint = if self.sentence.ends_with('.') {
            " "
        } else {
            "; "
        };
        write!(f, "{joint}{}", self.remedy)
    }
}

impl Refusal {
    /// Its line of the table.
    pub fn line(&self) -> RefusalLine<'_> {
        use RefusalLine as Line;
        match self {
            Self::NoExperiment { id } => Line::new(
                404,
                "no_experiment",
                format!("there is no experiment {id:?}"),
                "GET /v1/experiments lists them",
            )
            .against("the id of an experiment", id.as_str()),
            Self::IdText { id } => Line::new(
                422,
                "id_text",
                format!("id {id:?} must be 1 to {NAME_MAX} lower-case letters, digits and dashes"),
                "",
            )
            .against(
                format!("1 to {NAME_MAX} lower-case letters, digits and dashes"),
                id.as_str(),
            ),
            Self::IdTaken { id } => Line::new(
                409,
                "id_taken",
                format!("id {id:?} belongs to another experiment"),
                "choose another, or leave it out to have one drawn",
            )
            .against("an id of its own", id.as_str()),
            Self::Spec(error) => Line::new(422, "spec", error.to_string(), ""),
            Self::World => Line::new(
                422,
                "world",
                "the spec has a [world], but a live experiment's world is real",
                "remove the section",
            )
            .against("no [world]", "[world]")
            .at("world"),
            Self::KeyInSpec => Line::new(
                422,
                "key_in_spec",
                "the spec gives the key, but everyone may read the spec",
                "remove it, and send \"key\" beside the spec or let one be drawn",
            )
            .against("no key in the spec", "key")
            .at("key"),
            Self::RangesByAction { cost } => Line::new(
                422,
                "ranges_by_action",
                format!("cost {cost:?} has a range for each action, which live experiments do not take"),
                "give one range for all actions; simulations, the library and Python take one for each",
            )
            .at("cost"),
            Self::Name { name, bytes } => Line::new(
                422,
                "name",
                format!(
                    "the name {name:?} has {bytes} bytes; names must be 1 to {NAME_MAX} bytes long and contain no control characters"
                ),
                "shorten it, and keep what it stands for elsewhere",
            )
            .against(
                format!("1 to {NAME_MAX} bytes without control characters"),
                name.as_str(),
            ),
            Self::Estimates { estimates } => Line::new(
                422,
                "estimates",
                format!(
                    "{estimates} estimates, which are actions times quantities (the reward and the costs), are more than {ESTIMATES_MAX}"
                ),
                "use fewer actions, or fewer costs",
            )
            .against(
                format!("actions times quantities <= {ESTIMATES_MAX}"),
                *estimates,
            )
            .at("actions"),
            Self::TooLong { what, bytes, most } => Line::new(
                422,
                "too_long",
                format!("{what} has {bytes} bytes, and may have {most}"),
                "shorten it",
            )
            .against(format!("at most {most} bytes"), *bytes),
            Self::ReasonText => Line::new(
                422,
                "reason",
                "the reason contains control characters",
                "send plain text",
            )
            .against("no control characters but line ends", Value::Null),
            Self::Blind(warning) => Line::new(
                422,
                "blind",
                warning,
                "Send \"blind\": true to run it anyway.",
            )
            .against("a plan that is not blind", false)
            .at("horizon"),
            Self::Rounds { rounds } => Line::new(
                422,
                "rounds",
                format!("n = {rounds} is outside 1 to {ROUNDS_MAX}"),
                "ask for at least one, and for more in several requests",
            )
            .against(format!("1 <= n <= {ROUNDS_MAX}"), *rounds),
            Self::RequestKey { request_key } => Line::new(
                422,
                "request_key",
                format!(
                    "request_key {request_key:?} must be 1 to {NAME_MAX} bytes long and contain no control characters"
                ),
                "",
            )
            .against(
                format!("1 to {NAME_MAX} bytes without control characters"),
                request_key.as_str(),
            ),
            Self::RequestKeyNeeded { id } => Line::new(
                422,
                "request_key_needed",
                format!(
                    "experiment {id:?} holds some requests back by their request_key, and this one has none"
                ),
                "send a request_key, the same for the same user",
            )
            .against("a request_key", Value::Null),
            Self::RequestKeyUsed {
                request_key,
                asked,
                rounds,
            } => Line::new(
                409,
                "request_key_used",
                format!(
                    "request_key {request_key:?} was used with n = {asked} before and now comes with n = {rounds}"
                ),
                "use a fresh key for another request",
            )
            .against(format!("n = {asked}, as before"), *rounds),
            Self::OutcomeIndex {
                place,
                request_key,
                rounds,
                index,
            } => {
                let (which, remedy) = which(*index);
                Line::new(
                    422,
                    "index",
                    format!("outcome {place}: request_key {request_key:?} was given {rounds} decisions, {which}"),
                    remedy,
                )
                .against(format!("0 <= index < {rounds}"), *index)
            }
            Self::Behind { id, seen, decided } => Line::new(
                409,
                "behind",
                format!(
                    "you have seen round {seen} of experiment {id:?} decided, but this store has decided {decided}: it is behind, as \
                     one restored or a copy is; nothing is handed out, since rounds would be decided twice."
                ),
                "Bring back the store that decided them, or close this experiment",
            )
            .against(format!("seen <= {decided}"), *seen),
            // No rule is violated: the same request is right as soon as the outcomes are told.
            Self::Waiting { epoch, outstanding } => Line::new(
                409,
                "waiting",
                format!("all rounds of epoch {epoch} are decided, and {outstanding} outcomes are outstanding"),
                "tell them, or ask again later",
            ),
            Self::Paused { id } => Line::new(
                409,
                "paused",
                format!("experiment {id:?} is paused"),
                "outcomes are still taken, and decisions continue once it is resumed",
            )
            .against("status running", "paused"),
            Self::WentBack { id, lost } => Line::new(
                409,
                "paused",
                format!("experiment {id:?} is paused: {lost}"),
                "",
            )
            .against("status running", "paused"),
            Self::OtherValues(other) => Line::new(409, "other_values", other.to_string(), "")
                .against(format!("values version {VALUES_VERSION}"), other.version),
            Self::Closed { id } => Line::new(
                409,
                "closed",
                format!("experiment {id:?} is closed"),
                "it can no longer be changed",
            )
            .against("status running or paused", "closed"),
            Self::Done { id, horizon } => Line::new(
                409,
                "done",
                format!("all {horizon} rounds of experiment {id:?} are decided and told"),
                "deploy its recommendation",
            )
            .against("status running or paused", "done"),
            Self::KeyName { name } => Line::new(
                422,
                "key_name",
                format!("{name:?} cannot be a key's name"),
                format!(
                    "give up to {KEY_NAME_MAX} letters, digits and - _ . @, not one or two dots alone (and neither {KEYLESS:?}, which \
                     stands for callers without a key, nor {ITSELF:?}, which is what the service calls itself)"
                ),
            )
            .against(
                format!("1 to {KEY_NAME_MAX} letters, digits and - _ . @"),
                name.as_str(),
            ),
            Self::KeyTaken { name } => Line::new(
                409,
                "key_taken",
                format!("there is, or was, a key named {name:?}"),
                "choose another name",
            )
            .against("a name of its own", name.as_str()),
            Self::NoKeyNamed { name, names } => {
                let there = if names.is_empty() {
                    "no keys".into()
                } else {
                    listed(names)
                };
                Line::new(
                    404,
                    "no_such_key",
                    format!("there is no key {name:?}"),
                    format!("there are {there}"),
                )
                .against("the name of a key", name.as_str())
            }
            Self::KeyRevoked { name, at } => Line::new(
                409,
                "key_revoked",
                format!("key {name:?} was already revoked at {} UTC", utc(*at)),
                "",
            )
            .against("a key that is not revoked", name.as_str()),
            Self::LastAdmin { name } => Line::new(
                409,
                "last_admin",
                format!(
                    "key {name:?} is the last admin key for all experiments, and without one nobody could make another here"
                ),
                "make another first, or revoke it where the store is, with `debora keys revoke`",
            )
            .against("another admin key", name.as_str()),
            Self::FirstKey => Line::new(
                422,
                "first_key",
                "the first key must have role admin for all experiments, as every request needs a key from then on and nobody could \
                 make another here",
                "make it so, or use `debora keys add` where the store is",
            )
            .against("role admin, for all experiments", Value::Null),
            // The value stays out, as of every request without a valid key.
            Self::KeyNeeded => Line::new(
                401,
                "no_key",
                "there are API keys by now, so this needs one",
                "log in, or send it",
            )
            .against("Authorization: Bearer debora_...", Value::Null),
            Self::Webhook(refusal) => refusal.line(),
            Self::Outcome { index, error } => {
                let line = Line::new(422, "outcome", format!("outcome {index}: {error}"), "");
                Line {
                    broken: broken_by(error),
                    ..line
                }
            }
            // The detail may hold an address or a file's name of the server, so it goes to its log.
            Self::Store { .. } => {
                Line::new(503, "store", "the store failed", "repeat the request")
            }
            Self::Busy => Line::new(
                503,
                "busy",
                "the service is overloaded, and the request was not carried out",
                "repeat it later",
            ),
            Self::Stopping => Line::new(
                503,
                "stopping",
                "the service is shutting down",
                "repeat the request elsewhere or later",
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line().fmt(f)
    }
}

impl std::error::Error for Refusal {}

impl From<OtherValues> for Refusal {
    fn from(other: OtherValues) -> Self {
        Self::OtherValues(other)
    }
}

/// What is wrong with the number of a decision among those of its key, and what to give.
fn which(index: Option<u64>) -> (String, &'static str) {
    match index {
        None => (
            "and the outcome does not say of which it is".into(),
            "give its index, from 0",
        ),
        Some(index) => (
            format!("and there is no index {index} among them"),
            "give one of theirs, from 0",
        ),
    }
}

/// The rule and the value of an outcome that the problem refuses.
fn broken_by(error: &Error) -> Option<(Cow<'static, str>, Value)> {
    match error {
        Error::Outside {
            name,
            value,
            low,
            high,
        } => Some((
            format!("{low:?} <= {name} <= {high:?}").into(),
            (*value).into(),
        )),
        Error::CostCount { got, costs } => Some((format!("{costs} costs").into(), (*got).into())),
        Error::RoundUnknown { round, horizon } => {
            Some((format!("1 <= round <= {horizon}").into(), (*round).into()))
        }
        // The others cannot come of an outcome; their sentence says it all.
        _ => None,
    }
}
