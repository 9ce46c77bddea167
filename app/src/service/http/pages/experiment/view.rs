//! All that the page of an experiment shows, read in one transaction: its state, its epochs, and how fast it goes.

use anyhow::Result;
use debora::record::Kind;
use serde::Deserialize;

use super::next::{self, NextStep};
use super::progress::{self, PlanProgress};
use crate::service::http::pace::{DecisionPace, DecisionRate};
use crate::service::http::state::{State, read_whole};
use crate::store::{EpochRow, Event, ExperimentRow, Progress, Status, Store};

/// The most epochs drawn, the last ones: more than experiments have, a few hundred, and a bound for the reader.
const EPOCHS_MAX: usize = 2_000;

/// The most events looked through for a reason: published heads are events, too.
const EVENTS_MAX: usize = 2_000;

/// What the page of an experiment shows.
pub struct ExperimentView {
    /// Where it stands.
    pub state: State,
    /// What it is.
    pub experiment: ExperimentRow,
    /// What was played, epoch by epoch.
    pub epochs: Vec<PlayedEpoch>,
    /// How fast it decides; `None` once it is over, and without a decision in the last minutes.
    pub rate: Option<DecisionRate>,
    /// When the last round was decided.
    pub decided_at: Option<i64>,
    /// What comes next.
    pub next: NextStep,
    /// The plan beside what came of it.
    pub plan: PlanProgress,
    /// Who paused or closed it, and why, if it is paused or closed.
    pub stopped: Option<Event>,
    /// The chance that an estimate's interval misses, of all together.
    pub delta: f64,
}

impl ExperimentView {
    /// What it is called.
    pub fn name(&self) -> &str {
        self.state.name.as_deref().unwrap_or(&self.state.id)
    }

    /// Who paused or closed it, and why, as the end of a sentence that says which.
    pub fn stopped_by(&self) -> String {
        let Some(event) = &self.stopped else {
            return ".".into();
        };
        let reason = event.reason.as_ref();
        let why = reason.map_or(".".into(), |reason| format!(": {reason}"));
        format!(" by {}{why}", event.actor)
    }

    /// When something last happened to its rounds, as far as it is known: where a figure over time ends.
    pub fn last_at(&self) -> i64 {
        // Not now: a figure would move although nothing happens.
        let stopped = self.stopped.as_ref().map(|event| event.at);
        let epoch = self.epochs.last();
        let epoch = epoch.map(|epoch| epoch.closed_at.unwrap_or(epoch.opened_at));
        let known = [self.decided_at, stopped, epoch]
            .into_iter()
            .flatten()
            .max();
        known.unwrap_or(self.experiment.created_at)
    }
}

/// An epoch of which rounds are decided.
#[derive(Clone, Debug)]
pub struct PlayedEpoch {
    /// Its number, from 0.
    pub epoch: u64,
    /// How its strategy was found.
    pub kind: Kind,
    /// Its first round.
    pub first_round: u64,
    /// Its last round; of the open epoch, the last decided.
    pub last_round: u64,
    /// When it was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// The probability of each action.
    pub strategy: Vec<f64>,
}

/// What is read of a record: the estimates in it would be most of the work.
#[derive(Deserialize)]
struct RecordHead {
    first_round: u64,
    rounds: u64,
    kind: Kind,
    strategy: Vec<f64>,
}

/// Reads all of it.
pub fn read(store: &mut Store, id: &str, now: i64) -> Result<Option<ExperimentView>> {
    let Some(whole) = read_whole(store, id)? else {
        return Ok(None);
    };
    let epochs = epochs(store, id, &whole.progress)?;
    let stopped = stopped(store, id, whole.progress.status)?;
    let pace = DecisionPace::read(store, id, &whole.progress)?;
    let open = pace.filter(|_| whole.progress.status.is_open());
    let rate = open.and_then(|pace| pace.until(now));
    Ok(Some(ExperimentView {
        next: next::of(&whole, rate.as_ref()),
        plan: progress::of(&whole, &epochs),
        delta: whole.resident.engine.problem().delta(),
        state: whole.state,
        experiment: whole.experiment,
        epochs,
        rate,
        decided_at: pace.map(|pace| pace.last),
        stopped,
    }))
}

/// The epochs that have a decided round, in order.
pub fn epochs(store: &mut Store, id: &str, progress: &Progress) -> Result<Vec<PlayedEpoch>> {
    let from = (progress.epoch + 1).saturating_sub(EPOCHS_MAX as u64);
    let rows = store.epochs(id, from, EPOCHS_MAX)?;
    let played = rows
        .into_iter()
        .map(|row| PlayedEpoch::of(row, progress.rounds()));
    // An epoch that has just been opened has no round yet.
    played
        .filter(|epoch| !matches!(epoch, Ok(epoch) if epoch.last_round < epoch.first_round))
        .collect()
}

impl PlayedEpoch {
    fn of(row: EpochRow, decided: u64) -> Result<Self> {
        let head: RecordHead = serde_json::from_str(&row.record)?;
        let last_round = match row.closed_at {
            Some(_) => (head.first_round + head.rounds).saturating_sub(1),
            // Its record has 0 rounds while it is open.
            None => decided,
        };
        Ok(Self {
            epoch: row.epoch,
            kind: head.kind,
            first_round: head.first_round,
            last_round,
            opened_at: row.opened_at,
            closed_at: row.closed_at,
            strategy: head.strategy,
        })
    }

    /// How many rounds it has so far.
    pub fn rounds(&self) -> u64 {
        self.last_round + 1 - self.first_round
    }
}

/// The last event that stopped it, if it is stopped.
fn stopped(store: &mut Store, id: &str, status: Status) -> Result<Option<Event>> {
    let what = match status {
        Status::Paused => "paused",
        Status::Closed => "closed",
        Status::Running | Status::Done => return Ok(None),
    };
    let events = store.events(id, 0, EVENTS_MAX)?;
    Ok(events.into_iter().rfind(|event| event.what == what))
}
