//! Progress: how far each experiment is, in the one row that every change of it locks and rewrites.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::kind::DecisionKind;
use crate::store::Store;
use crate::store::codec::{self, saturate};
use crate::store::database::{Columns, text, values};

/// Whether an experiment decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It decides and learns.
    Running,
    /// It learns from outcomes that come in, and decides nothing.
    Paused,
    /// It was ended before its horizon, and can no longer change.
    Closed,
    /// All rounds of the horizon have their outcomes.
    Done,
}

impl Status {
    /// Whether outcomes still change something: neither closed nor done.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// What changes as an experiment goes on, but for its growing lists: one row, rewritten.
// Kept small and rewritten whole: it is the row that nodes lock, so one read gives all that a request depends on.
// Unknown fields are refused: the last line of a log is this row, and an audit must not pass over what it does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Whether it decides.
    pub status: Status,
    /// The open epoch, or the last.
    pub epoch: u64,
    /// The next round to be decided.
    pub next_round: u64,
    /// Rounds decided, per action.
    pub decided: Vec<u64>,
    /// Rounds with an outcome, told or imputed, per action.
    pub outcomes: Vec<u64>,
    /// Rounds with an imputed outcome, per action.
    pub imputed: Vec<u64>,
    /// Those of them in closed epochs.
    pub imputed_before: Vec<u64>,
    /// Outcomes that came after their round was imputed.
    pub late: u64,
    /// Decisions outside the horizon, in all.
    pub overtime: u64,
    /// The serial of the open epoch's next one, from 1.
    pub next_serial: u64,
    /// Decisions held back from the experiment, in all.
    pub holdback: u64,
    /// The serial of the open epoch's next one, from 1.
    pub next_holdback: u64,
    /// No round below waits to be imputed.
    pub impute_from: u64,
    /// Epochs, closed or open, whose estimates left no strategy within the thresholds.
    pub infeasible: u64,
    /// The newest hash of the chain: of the last closed epoch, or of what came after the end; before, of the spec and the
    /// key's hash. 64 hexadecimal digits.
    pub head: String,
    /// SHA-256 over the strategies of all closed epochs, as the engine gives it.
    pub digest: String,
    /// The position of the next uncounted outcome or event.
    pub next_position: u64,
    /// The hash over those that have a position, as 64 hexadecimal digits; empty before the first.
    pub journal: String,
}

impl Progress {
    /// Rounds decided, over all actions.
    pub fn rounds(&self) -> u64 {
        self.next_round - 1
    }

    /// The next round to be decided, or the open epoch's next serial outside the horizon.
    pub fn next(&self, kind: DecisionKind) -> u64 {
        match kind {
            DecisionKind::Round => self.next_round,
            DecisionKind::Overtime => self.next_serial,
            DecisionKind::Holdback => self.next_holdback,
        }
    }

    /// Rounds of an action whose outcome somebody told: imputed ones are not among them.
    pub fn told(&self, action: usize) -> u64 {
        self.outcomes[action] - self.imputed[action]
    }

    /// Rounds that are decided and have no outcome.
    pub fn outstanding(&self) -> u64 {
        self.rounds() - self.outcomes.iter().sum::<u64>()
    }
}

/// An experiment's row as it is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// How far it is, as JSON: whoever wrote this text need not read it.
    pub progress: String,
    /// What the [`WaitingClock`] shows when a missing outcome may be due; `None` while nothing can be.
    pub due: Option<i64>,
    /// What was observed so far, as JSON; `None` if nobody has summed it up yet.
    pub observed: Option<String>,
}

impl Store {
    /// Its progress; within a transaction no other node changes it until the end.
    pub fn lock(&mut self, id: &str) -> Result<Option<Locked>> {
        let sql = format!(
            "SELECT progress, due, observed FROM progress WHERE experiment = $1{}",
            self.database.for_update()
        );
        Ok(self.page(id, &sql, &[], read_locked)?.pop())
    }

    /// What was observed so far, as JSON; `None` if nobody has summed it up yet.
    pub fn observed(&mut self, id: &str) -> Result<Option<String>> {
        let sql = "SELECT observed FROM progress WHERE experiment = $1";
        let read = |row: &dyn Columns| Ok(row.text(0)?.map(String::from));
        Ok(self.page(id, sql, &[], read)?.pop().flatten())
    }

    /// The ids of experiments where an outcome may be due by now, as the [`WaitingClock`] shows it; the longest due first.
    pub fn due(&mut self, waited: i64, limit: usize) -> Result<Vec<String>> {
        let sql = "SELECT id FROM progress JOIN experiments ON number = experiment
            WHERE due <= $1 ORDER BY due LIMIT $2";
        let values = values![waited, saturate(limit as u64)];
        self.rows(sql, &values, |row| Ok(text(row, 0)?.to_owned()))
    }

    /// Rewrites the progress, and returns the text that it is stored as.
    pub fn set_progress(&mut self, id: &str, progress: &Progress) -> Result<String> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET progress = $1 WHERE experiment = $2";
            let text = codec::encode_progress(progress)?;
            let values = values![&text, number];
            store.database.execute_by_commit(sql, &values)?;
            Ok(text)
        })
    }

    /// The same together with what was observed, in one statement: neither is ever ahead of the other.
    pub fn set_observed(
        &mut self,
        id: &str,
        progress: &Progress,
        observed: &str,
    ) -> Result<String> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET progress = $1, observed = $2 WHERE experiment = $3";
            let text = codec::encode_progress(progress)?;
            let values = values![&text, observed, number];
            store.database.execute_by_commit(sql, &values)?;
            Ok(text)
        })
    }

    /// Sets when an outcome may be due. Apart from the progress, which is rewritten far more often: the index would be, too.
    pub fn set_due(&mut self, id: &str, due: Option<i64>) -> Result<()> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET due = $1 WHERE experiment = $2";
            store.database.execute_by_commit(sql, &values![due, number])
        })
    }
}

fn read_locked(row: &dyn Columns) -> Result<Locked> {
    Ok(Locked {
        progress: text(row, 0)?.into(),
        due: row.number(1)?,
        observed: row.text(2)?.map(String::from),
    })
}
