//! The lines of a log, each one JSON object.

use debora::EpochRecord;
use serde::{Deserialize, Serialize};

use crate::store::{DecisionKind, Lease, Progress, UncountedOutcome};

/// The version of the lines and of the hashes over them.
pub const LOG_VERSION: u32 = 2;

/// The most rounds one request is given, and so the most actions in one line.
pub const ROUNDS_MAX: u64 = 10_000;

/// A line. Numbers are written so that they are read back bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
// Unknown fields are refused: an audit that skipped what it does not know would call a log equal that says more than it read.
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    /// What the experiment is.
    Experiment(Box<Heading>),
    /// An epoch begins.
    Epoch {
        /// When.
        opened_at: i64,
        /// The engine's record, with 0 rounds.
        record: Box<EpochRecord>,
    },
    /// What one request was given.
    Decisions(LeaseLine),
    /// What came of a round.
    Outcome {
        /// The round.
        round: u64,
        /// The reward, in the user's units.
        reward: f64,
        /// The costs, in the spec's order.
        costs: Vec<f64>,
        /// Whether it was put in, as nobody told it in time.
        imputed: bool,
        /// When.
        at: i64,
        /// Who told it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// What one request was given while the epoch waited: `first` is a serial.
    Overtime(LeaseLine),
    /// What came of a decision outside the horizon; never counted.
    #[serde(rename = "overtime_outcome")]
    OvertimeOutcome(OutsideOutcome),
    /// What one request was given that is held back from the experiment: `first` is a serial.
    Holdback(LeaseLine),
    /// What came of a decision that was held back; never counted.
    #[serde(rename = "holdback_outcome")]
    HoldbackOutcome(OutsideOutcome),
    /// The epoch ends.
    Closed {
        /// The epoch.
        epoch: u64,
        /// Its length: what its record has in place of 0.
        rounds: u64,
        /// SHA-256 over its rounds.
        rounds_hash: String,
        /// The hash before.
        previous: String,
        /// The newest hash of the chain.
        hash: String,
        /// When.
        closed_at: i64,
        /// SHA-256 over its leases.
        leases_hash: String,
        /// The position of the next uncounted outcome or event.
        journal_end: u64,
        /// The hash over those before.
        journal: String,
        /// Whether the experiment was closed before the epoch was complete.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        early: bool,
    },
    /// What came of a round after it was imputed; never counted.
    Late {
        /// The round.
        round: u64,
        /// The reward.
        reward: f64,
        /// The costs.
        costs: Vec<f64>,
        /// When.
        at: i64,
        /// Who told it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Its place among the uncounted outcomes and events, in the order stored.
        position: u64,
    },
    /// An administrative change.
    Event {
        /// When.
        at: i64,
        /// Who did it.
        actor: String,
        /// What: created, paused, resumed or closed.
        what: String,
        /// Why, if that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Its place among the uncounted outcomes and events, in the order stored.
        position: u64,
    },
    /// The counts at the end: always the last line.
    State {
        /// The row that every change rewrites.
        progress: Box<Progress>,
        /// Whether the experiment went on while the open epoch's lines were read: then the counts are ahead of them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        moved: bool,
    },
}

/// What an experiment is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// [`LOG_VERSION`].
    pub log: u32,
    /// Its name in addresses.
    pub id: String,
    /// The spec, as it was given.
    pub spec: String,
    /// SHA-256 of salt and key: published before the first decision.
    pub key_hash: String,
    /// 32 hexadecimal digits; once revealed.
    pub salt: Option<String>,
    /// 32 hexadecimal digits; once revealed.
    pub key: Option<String>,
    /// When it was created.
    pub created_at: i64,
    /// The version of the values that it was decided with.
    pub values_version: u32,
    /// The head before any epoch is closed.
    pub genesis: String,
}

/// A lease as its line has it: consecutive rounds, or serials, of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseLine {
    /// The epoch.
    pub epoch: u64,
    /// The first round, or serial.
    pub first: u64,
    /// The actions, by number from 0.
    pub actions: Vec<u32>,
    /// How many were asked for.
    pub asked: u64,
    /// What makes the request's repetition known.
    pub request_key: Option<String>,
    /// When.
    pub at: i64,
    /// What the store's waiting clock showed.
    pub waited: i64,
    /// Who asked, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// What came of a decision outside the horizon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideOutcome {
    /// The epoch.
    pub epoch: u64,
    /// The serial.
    pub serial: u64,
    /// The reward.
    pub reward: f64,
    /// The costs.
    pub costs: Vec<f64>,
    /// When.
    pub at: i64,
    /// Who told it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Its place among the uncounted outcomes and events, in the order stored.
    pub position: u64,
}

impl OutsideOutcome {
    /// As it was stored, but for its actor's number: hashes have the name.
    pub fn row(&self, kind: DecisionKind) -> UncountedOutcome {
        UncountedOutcome {
            epoch: self.epoch,
            kind,
            number: self.serial,
            reward: self.reward,
            costs: self.costs.clone(),
            at: self.at,
            actor: 0,
            position: self.position,
        }
    }
}

impl LeaseLine {
    /// Of a lease that this actor asked for.
    pub fn of(lease: Lease, actor: Option<String>) -> Self {
        let Lease {
            epoch,
            first,
            actions,
            asked,
            request_key,
            at,
            waited,
            ..
        } = lease;
        Self {
            epoch,
            first,
            actions,
            asked,
            request_key,
            at,
            waited,
            actor,
        }
    }

    /// As it was stored, but for its actor's number.
    pub fn lease(&self, kind: DecisionKind) -> Lease {
        Lease {
            epoch: self.epoch,
            kind,
            first: self.first,
            actions: self.actions.clone(),
            asked: self.asked,
            request_key: self.request_key.clone(),
            at: self.at,
            waited: self.waited,
            actor: 0,
        }
    }

    /// The round, or serial, after the last.
    pub fn end(&self) -> u64 {
        // Saturating, since a log may say anything: an audit compares the end with what it expects.
        self.first.saturating_add(self.actions.len() as u64)
    }
}

impl Line {
    /// Its type in the log.
    pub fn name(&self) -> &'static str {
        // These repeat serde's tags, which cannot be had without writing the whole line.
        match self {
            Self::Experiment(_) => "experiment",
            Self::Epoch { .. } => "epoch",
            Self::Decisions(_) => "decisions",
            Self::Outcome { .. } => "outcome",
            Self::Overtime(_) => "overtime",
            Self::OvertimeOutcome { .. } => "overtime_outcome",
            Self::Holdback(_) => "holdback",
            Self::HoldbackOutcome { .. } => "holdback_outcome",
            Self::Closed { .. } => "closed",
            Self::Late { .. } => "late",
            Self::Event { .. } => "event",
            Self::State { .. } => "state",
        }
    }
}
