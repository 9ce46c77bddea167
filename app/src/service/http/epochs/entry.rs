//! The epochs as a list: what each of them plays, and what changed.

use anyhow::{Context as _, Result, ensure};
use debora::Problem;
pub use debora::measure::words::share_to_tenths as share;
use debora::record::{Kind, LookTest, Rule};
use debora::spec::Spec;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::service::http::state::TestState;
use crate::store::{EpochRow, Progress, Status, Store};

/// Changes of a probability that are only rounding.
const ROUNDING: f64 = 1e-12;

/// Some epochs of an experiment.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct EpochList {
    /// The experiment.
    pub id: String,
    /// What it is called; none if its spec does not say.
    pub name: Option<String>,
    /// Whether it decides.
    pub status: Status,
    /// Its actions, in the spec's order.
    pub actions: Vec<String>,
    /// How many epochs it has so far.
    pub count: u64,
    /// Those asked for, in order.
    pub epochs: Vec<EpochEntry>,
    /// The number of the first that is not here.
    pub next: Option<u64>,
}

/// An epoch, as a list has it.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct EpochEntry {
    /// Its number, from 0.
    pub epoch: u64,
    /// How its strategy was found: explore, estimate, infeasible, commit or pick.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    pub kind: Kind,
    /// Which of its strategies a policy with limits plays: moderate, optimistic, plan or mix; none for the others.
    #[cfg_attr(feature = "describe", schema(value_type = Option<String>))]
    pub rule: Option<Rule>,
    /// Its first round.
    pub first_round: u64,
    /// How many rounds it has; of the open one, how many are decided.
    pub rounds: u64,
    /// When it was opened, in milliseconds since 1970.
    pub opened_at: i64,
    /// When it was closed; none while it is open.
    pub closed_at: Option<i64>,
    /// The actions that it plays, the most frequent first.
    pub shares: Vec<ShareState>,
    /// Where it differs from the epoch before, the largest change first; empty for the first.
    pub changes: Vec<ShareChange>,
    /// How many estimates were made at its start.
    pub estimates_made: u64,
    /// The clear test made at its start, if one was due.
    pub test: Option<TestState>,
    /// Its hash, which stands for all that was stored until it was closed; none while it is open.
    pub hash: Option<String>,
}

/// How often an action is played.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ShareState {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// Its probability.
    pub probability: f64,
}

/// An action's probability before and after.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct ShareChange {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// Its probability in the epoch before.
    pub before: f64,
    /// In this one.
    pub after: f64,
}

impl ShareChange {
    /// "40 % → 62 %"
    pub fn text(&self) -> String {
        format!("{} → {}", share(self.before), share(self.after))
    }
}

/// What a list needs of a record: its estimates, by far the longest part, are only counted.
#[derive(Deserialize)]
struct ListedRecord {
    first_round: u64,
    rounds: u64,
    kind: Kind,
    rule: Option<Rule>,
    strategy: Vec<f64>,
    test: Option<LookTest>,
    estimates: Vec<IgnoredAny>,
}

/// Reads the epochs from this number on; `None` if there is no such experiment.
pub fn read(store: &mut Store, id: &str, from: u64, limit: u64) -> Result<Option<EpochList>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    let spec = Spec::parse(&experiment.spec, id)?;
    // One earlier, for what changed since; beyond the last there is nothing, and PostgreSQL could not even be asked.
    let first = from.saturating_sub(1).min(progress.epoch + 1);
    let rows = store.epochs(id, first, limit as usize + 1)?;
    let mut epochs = entries(&rows, &spec.problem, &progress)?;
    epochs.retain(|entry| entry.epoch >= from);
    epochs.truncate(limit as usize);
    let next = epochs.last().map(|last| last.epoch + 1);
    Ok(Some(EpochList {
        id: experiment.id,
        name: spec.name,
        status: progress.status,
        actions: spec.problem.actions().to_vec(),
        count: progress.epoch + 1,
        next: next.filter(|next| *next <= progress.epoch),
        epochs,
    }))
}

/// Rows that follow each other, as a list has them.
pub fn entries(
    rows: &[EpochRow],
    problem: &Problem,
    progress: &Progress,
) -> Result<Vec<EpochEntry>> {
    let mut before: Option<Vec<f64>> = None;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let record: ListedRecord = serde_json::from_str(&row.record)
            .with_context(|| format!("the record of epoch {} cannot be read", row.epoch))?;
        check(row.epoch, record.strategy.len(), problem)?;
        let tested = record.test.as_ref();
        let places = tested.map_or([0, 0], |test| [test.leader, test.runner_up]);
        check_places(row.epoch, places, problem)?;
        entries.push(entry(row, &record, problem, before.as_deref(), progress));
        before = Some(record.strategy);
    }
    Ok(entries)
}

/// Refuses a record of another number of actions: names are looked up by place.
pub fn check(epoch: u64, actions: usize, problem: &Problem) -> Result<()> {
    ensure!(
        actions == problem.actions().len(),
        "the record of epoch {epoch} is damaged: it has {actions} probabilities, and the spec {} actions; run `debora \
         audit` to find out more",
        problem.actions().len()
    );
    Ok(())
}

fn check_places(epoch: u64, actions: [u32; 2], problem: &Problem) -> Result<()> {
    let known = |action: &u32| (*action as usize) < problem.actions().len();
    ensure!(
        actions.iter().all(known),
        "the clear test of epoch {epoch} is damaged: the spec lacks one of the actions {actions:?}; run `debora audit` to \
         find out more"
    );
    Ok(())
}

fn entry(
    row: &EpochRow,
    record: &ListedRecord,
    problem: &Problem,
    before: Option<&[f64]>,
    progress: &Progress,
) -> EpochEntry {
    let decided = progress.next_round.saturating_sub(record.first_round);
    EpochEntry {
        epoch: row.epoch,
        kind: record.kind,
        rule: record.rule,
        first_round: record.first_round,
        // The record of an open epoch has 0.
        rounds: row.closed_at.map_or(decided, |_| record.rounds),
        opened_at: row.opened_at,
        closed_at: row.closed_at,
        shares: shares(problem, &record.strategy),
        changes: before.map_or(Vec::new(), |before| {
            changes(problem, before, &record.strategy)
        }),
        estimates_made: record.estimates.len() as u64,
        test: record
            .test
            .as_ref()
            .map(|test| TestState::of(problem, test)),
        hash: row.hash.clone(),
    }
}

fn shares(problem: &Problem, strategy: &[f64]) -> Vec<ShareState> {
    let named = (0..).zip(problem.actions()).zip(strategy);
    let mut shares: Vec<ShareState> = named
        .filter(|(_, probability)| **probability > 0.0)
        .map(|((action, name), &probability)| ShareState {
            action,
            name: name.clone(),
            probability,
        })
        .collect();
    // Stable, so that equals stay in the spec's order.
    shares.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    shares
}

fn changes(problem: &Problem, before: &[f64], after: &[f64]) -> Vec<ShareChange> {
    let named = (0..).zip(problem.actions()).zip(before.iter().zip(after));
    let mut changes: Vec<ShareChange> = named
        .filter(|(_, (before, after))| (*after - *before).abs() > ROUNDING)
        .map(|((action, name), (&before, &after))| ShareChange {
            action,
            name: name.clone(),
            before,
            after,
        })
        .collect();
    let size = |change: &ShareChange| (change.after - change.before).abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes
}
