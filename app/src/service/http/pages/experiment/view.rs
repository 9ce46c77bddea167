//! All that the page of an experiment shows, read in one transaction: its state, its epochs, and how fast it goes.

use anyhow::Result;

use super::next::{self, NextStep};
use super::progress::{self, PlanProgress};
use crate::reading::Reading;
use crate::reading::epoch::EpochHead;
use crate::reading::pace::{DecisionPace, DecisionRate};
use crate::store::{Event, Progress, Status, Store};

/// The most epochs drawn, the last ones: more than experiments have, a few hundred, and a bound for the reader.
const EPOCHS_MAX: usize = 2_000;

/// The most events looked through for a reason: published heads are events, too.
const EVENTS_MAX: usize = 2_000;

/// What the page of an experiment shows.
pub struct ExperimentView {
    /// What is known of it.
    pub reading: Reading,
    /// What was played, epoch by epoch.
    pub epochs: Vec<EpochHead>,
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
}

impl ExperimentView {
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
        known.unwrap_or(self.reading.experiment.created_at)
    }
}

/// Reads all of it.
pub fn read(store: &mut Store, id: &str, now: i64) -> Result<Option<ExperimentView>> {
    let Some(reading) = Reading::read(store, id)? else {
        return Ok(None);
    };
    let epochs = epochs(store, id, &reading.progress)?;
    let stopped = stopped(store, id, reading.progress.status)?;
    let pace = DecisionPace::read(store, id, &reading.progress)?;
    let open = pace.filter(|_| reading.is_open());
    let rate = open.and_then(|pace| pace.until(now));
    Ok(Some(ExperimentView {
        next: next::find(&reading, rate.as_ref()),
        plan: progress::compare(&reading, &epochs),
        reading,
        epochs,
        rate,
        decided_at: pace.map(|pace| pace.last),
        stopped,
    }))
}

/// The epochs that have a decided round, in order.
pub fn epochs(store: &mut Store, id: &str, progress: &Progress) -> Result<Vec<EpochHead>> {
    let from = (progress.epoch + 1).saturating_sub(EPOCHS_MAX as u64);
    let rows = store.epochs(id, from, EPOCHS_MAX)?;
    let heads = rows.iter().map(|row| EpochHead::parse(row, progress));
    // An epoch that has just been opened has no round yet.
    heads
        .filter(|head| !matches!(head, Ok(head) if head.rounds == 0))
        .collect()
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
