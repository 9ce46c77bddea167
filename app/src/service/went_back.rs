//! A store that is behind what this node has seen committed: it was restored, or a standby that lagged took its place.

use anyhow::Result;

use crate::log::chain;
use crate::service::request::{Refusal, Request};
use crate::service::transaction::{Answered, Seen, Transaction};
use crate::store::{Event, ITSELF, Progress, Status};

impl Transaction<'_> {
    /// Pauses an experiment that lost what was acknowledged: somebody has to know before rounds are handed out again.
    pub(super) fn pause(
        &mut self,
        id: &str,
        mut stored: Seen,
        lost: &str,
        group: &[&Request],
    ) -> Result<Vec<Answered>> {
        tracing::error!(id, lost, "an experiment is behind what was acknowledged");
        // Its outcomes may be another history's.
        self.residents.remove(id);
        let progress = &mut stored.progress;
        if progress.status == Status::Running {
            progress.status = Status::Paused;
            let event = Event {
                at: self.time.at,
                actor: ITSELF.into(),
                what: "paused".into(),
                reason: Some(lost.to_owned()),
                position: progress.next_position,
            };
            chain::enter_event(&event, progress);
            stored.text = self.store.set_progress(id, progress)?;
            self.store.add_event(id, &event)?;
        }
        self.touched.push((id.to_owned(), stored));
        let refuse = |_: &&Request| {
            Err(Refusal::WentBack {
                id: id.to_owned(),
                lost: lost.to_owned(),
            })
        };
        Ok(group.iter().map(refuse).collect())
    }
}

/// What was committed, and is not in the store: in words, for the log and for whoever resumes the experiment.
pub fn lost(seen: &Progress, stored: &Progress) -> Option<String> {
    let lost: Vec<String> = [
        lost_epochs(seen, stored),
        lost_rounds(seen, stored),
        lost_outcomes(seen, stored),
        lost_overtime(seen, stored),
        lost_holdback(seen, stored),
        lost_facts(seen, stored),
        lost_end(seen, stored),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!lost.is_empty()).then(|| {
        format!(
            "acknowledged by this service and not in the store, which went back: {}; what is handed out again was handed out \
             before. Resume to go on from what is stored, or close the experiment",
            lost.join(", ")
        )
    })
}

/// Epochs that have a hash.
fn closed_epochs(progress: &Progress) -> u64 {
    // The last epoch stays the current one when it is closed.
    progress.epoch + u64::from(progress.status == Status::Done)
}

fn lost_epochs(seen: &Progress, stored: &Progress) -> Option<String> {
    let (before, after) = (closed_epochs(seen), closed_epochs(stored));
    if after < before {
        return Some(format!("the end of epoch {after}"));
    }
    // Another history may have as many epochs. What another node has stored since then may have moved the head on: of an
    // experiment that is over, every fact does.
    let went_on = stored.next_position > seen.next_position;
    (after == before && !went_on && stored.head != seen.head)
        .then(|| format!("the head {} after {before} epochs", seen.head))
}

fn lost_rounds(seen: &Progress, stored: &Progress) -> Option<String> {
    let (first, last) = (stored.next_round, seen.rounds());
    (first <= last).then(|| format!("rounds {first} to {last}"))
}

fn lost_outcomes(seen: &Progress, stored: &Progress) -> Option<String> {
    // By action: as many outcomes of other rounds are another history.
    let lost: u64 = seen
        .outcomes
        .iter()
        .zip(&stored.outcomes)
        .map(|(seen, stored)| seen.saturating_sub(*stored))
        .sum();
    (lost > 0).then(|| format!("{lost} outcomes"))
}

fn lost_overtime(seen: &Progress, stored: &Progress) -> Option<String> {
    let lost = seen.overtime.saturating_sub(stored.overtime);
    (lost > 0).then(|| format!("{lost} overtime decisions"))
}

fn lost_holdback(seen: &Progress, stored: &Progress) -> Option<String> {
    let lost = seen.holdback.saturating_sub(stored.holdback);
    (lost > 0).then(|| format!("{lost} decisions that were held back"))
}

fn lost_facts(seen: &Progress, stored: &Progress) -> Option<String> {
    let lost = seen.next_position > stored.next_position;
    // How many is not known: not every position is taken.
    lost.then(|| "late, overtime or holdback outcomes, or events".to_owned())
}

fn lost_end(seen: &Progress, stored: &Progress) -> Option<String> {
    let reopened = seen.status == Status::Closed && stored.status != Status::Closed;
    reopened.then(|| "that it was closed".to_owned())
}
