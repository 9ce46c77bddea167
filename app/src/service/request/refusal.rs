//! Why nothing was done.

use debora::measure::words::listed;
use debora::spec::SpecError;

use super::NAME_MAX;
use crate::calendar::utc;
use crate::log::{OtherValues, ROUNDS_MAX};
use crate::service::keys::KEY_NAME_MAX;
use crate::service::limits::ESTIMATES_MAX;
use crate::service::webhooks::WebhookRefusal;
use crate::store::{ITSELF, KEYLESS};

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No such experiment.
    #[error("there is no experiment {id:?}; GET /v1/experiments lists them")]
    NoExperiment { id: String },
    /// An id with other characters, or too long.
    #[error("id {id:?} must be 1 to {NAME_MAX} lower-case letters, digits and dashes")]
    IdText { id: String },
    /// Another experiment has this id.
    #[error(
        "id {id:?} belongs to another experiment; choose another, or leave it out to have one drawn"
    )]
    IdTaken { id: String },
    /// A spec that cannot be read.
    #[error("{0}")]
    Spec(SpecError),
    /// A spec with `[world]`.
    #[error("the spec has a [world], but a live experiment's world is real; remove the section")]
    World,
    /// A spec with a key.
    #[error(
        "the spec gives the key, but everyone may read the spec; remove it, and send \"key\" beside the spec or let one be drawn"
    )]
    KeyInSpec,
    /// A name of the experiment, an action, the reward or a cost that is too long or has control characters.
    #[error(
        "the name {name:?} has {bytes} bytes; names must be 1 to {NAME_MAX} bytes long and contain no control characters: shorten \
         it, and keep what it stands for elsewhere"
    )]
    Name { name: String, bytes: usize },
    /// Too many actions for its costs.
    #[error(
        "{estimates} estimates, which are actions times quantities (the reward and the costs), are more than {ESTIMATES_MAX}; \
         use fewer actions, or fewer costs"
    )]
    Estimates { estimates: usize },
    /// A text that is too long.
    #[error("{what} has {bytes} bytes, and may have {most}; shorten it")]
    TooLong {
        what: &'static str,
        bytes: usize,
        most: usize,
    },
    /// A reason with control characters.
    #[error("the reason contains control characters; send plain text")]
    ReasonText,
    /// A blind plan.
    #[error("{0} Send \"blind\": true to run it anyway.")]
    Blind(String),
    /// Rounds outside 1 to the most.
    #[error(
        "n = {rounds} is outside 1 to {ROUNDS_MAX}; ask for at least one, and for more in several requests"
    )]
    Rounds { rounds: u64 },
    /// A request key that is empty, too long, or has control characters, which PostgreSQL cannot all keep.
    #[error(
        "request_key {request_key:?} must be 1 to {NAME_MAX} bytes long and contain no control characters"
    )]
    RequestKey { request_key: String },
    /// A request without a key, of an experiment that holds some back by theirs.
    #[error(
        "experiment {id:?} holds some requests back by their request_key, and this one has none; send a request_key, the same for \
         the same user"
    )]
    RequestKeyNeeded { id: String },
    /// A request key that was used for another number of rounds.
    #[error(
        "request_key {request_key:?} was used with n = {asked} before and now comes with n = {rounds}; use a fresh key for another request"
    )]
    RequestKeyUsed {
        request_key: String,
        asked: u64,
        rounds: u64,
    },
    /// An outcome that does not say which of its key's decisions it is of, or names one that the key was not given.
    #[error("outcome {place}: request_key {request_key:?} was given {rounds} decisions, {}", which(*index))]
    OutcomeIndex {
        place: usize,
        request_key: String,
        rounds: u64,
        index: Option<u64>,
    },
    /// The caller has seen a round that this store has not decided.
    #[error(
        "you have seen round {seen} of experiment {id:?} decided, but this store has decided {decided}: it is behind, as one restored or a copy is; nothing is handed out, since rounds would be decided twice. Bring back the store that decided them, or close this experiment"
    )]
    Behind { id: String, seen: u64, decided: u64 },
    /// The epoch is fully decided.
    #[error(
        "all rounds of epoch {epoch} are decided, and {outstanding} outcomes are outstanding; tell them, or ask again later"
    )]
    Waiting { epoch: u64, outstanding: u64 },
    /// It decides nothing while paused.
    #[error(
        "experiment {id:?} is paused; outcomes are still taken, and decisions continue once it is resumed"
    )]
    Paused { id: String },
    /// The store is behind what was acknowledged. It is paused.
    #[error("experiment {id:?} is paused: {lost}")]
    WentBack { id: String, lost: String },
    /// It was begun by a program with other values.
    #[error("{0}")]
    OtherValues(#[from] OtherValues),
    /// It was ended.
    #[error("experiment {id:?} is closed; it can no longer be changed")]
    Closed { id: String },
    /// All rounds are told.
    #[error(
        "all {horizon} rounds of experiment {id:?} are decided and told; deploy its recommendation"
    )]
    Done { id: String, horizon: u64 },
    /// A name that a key cannot have.
    #[error(
        "{name:?} cannot be a key's name; give up to {KEY_NAME_MAX} letters, digits and - _ . @, not one or two dots alone (and neither {KEYLESS:?}, which \
         stands for callers without a key, nor {ITSELF:?}, which is what the service calls itself)"
    )]
    KeyName { name: String },
    /// A key has, or had, this name.
    #[error("there is, or was, a key named {name:?}; choose another name")]
    KeyTaken { name: String },
    /// No key has this name.
    #[error("there is no key {name:?}; there are {}", if names.is_empty() { "no keys".into() } else { listed(names) })]
    NoKeyNamed { name: String, names: Vec<String> },
    /// It was revoked before.
    #[error("key {name:?} was already revoked at {} UTC", utc(*at))]
    KeyRevoked { name: String, at: i64 },
    /// Without this key nobody could make another.
    #[error(
        "key {name:?} is the last admin key for all experiments, and without one nobody could make another here; make another \
         first, or revoke it where the store is, with `debora keys revoke`"
    )]
    LastAdmin { name: String },
    /// The first key must be able to make others.
    #[error(
        "the first key must have role admin for all experiments, as every request needs a key from then on and nobody could \
         make another here; make it so, or use `debora keys add` where the store is"
    )]
    FirstKey,
    /// Someone else has made the first key meanwhile.
    #[error("there are API keys by now, so this needs one; log in, or send it")]
    KeyNeeded,
    /// Something about webhooks.
    #[error("{0}")]
    Webhook(WebhookRefusal),
    /// An outcome with a value that the problem refuses. None of the request's outcomes is recorded.
    #[error("outcome {index}: {error}")]
    Outcome { index: usize, error: debora::Error },
    /// The store failed. What was asked may or may not have happened: repeat it.
    #[error("the store failed; repeat the request")]
    Store { detail: String },
    /// It waited too long for the writer, or too much waits already. It was not carried out, and never will be.
    #[error("the service is overloaded, and the request was not carried out; repeat it later")]
    Busy,
    /// The service is shutting down.
    #[error("the service is shutting down; repeat the request elsewhere or later")]
    Stopping,
}

/// What is wrong with the number of a decision among those of its key.
fn which(index: Option<u64>) -> String {
    match index {
        None => "and the outcome does not say of which it is; give its index, from 0".to_owned(),
        Some(index) => {
            format!("and there is no index {index} among them; give one of theirs, from 0")
        }
    }
}
