//! The epochs as a list: what each of them plays, and what changed.

use anyhow::Result;
use debora::Problem;
use debora::record::{Kind, Rule};
use debora::spec::Spec;
use serde::Serialize;

use crate::reading::epoch::EpochHead;
use crate::reading::{ActionShare, Shares, TestState, share};
use crate::store::{Status, Store};

/// Changes of a probability that are only rounding.
const ROUNDING: f64 = 1e-12;

/// Some epochs of an experiment.
#[derive(Serialize, utoipa::ToSchema)]
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
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct EpochEntry {
    /// Its number, from 0.
    pub epoch: u64,
    /// How its strategy was found: explore, estimate, infeasible, commit or pick.
    #[schema(value_type = String)]
    pub kind: Kind,
    /// Which of its strategies a policy with limits plays: moderate, optimistic, plan or mix; none for the others.
    #[schema(value_type = Option<String>)]
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
    pub shares: Vec<ActionShare>,
    /// Where it differs from the epoch before, the largest change first; empty for the first.
    pub changes: Vec<ShareChange>,
    /// How many estimates were made at its start.
    pub estimates_made: u64,
    /// The look made at its start, if one was due.
    pub test: Option<TestState>,
    /// Its hash, which stands for all that was stored until it was closed; none while it is open.
    pub hash: Option<String>,
}

/// An action's probability before and after.
#[derive(Clone, Serialize, utoipa::ToSchema)]
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

/// Which epochs are read.
#[derive(Clone, Copy, Debug)]
pub enum EpochRange {
    /// Those from this number on, so many at most.
    From(u64, u64),
    /// The last before this number, or of all, so many at most.
    Before(Option<u64>, u64),
}

impl EpochRange {
    /// The first, and how many at most, of so many.
    fn first_and_limit(self, count: u64) -> (u64, u64) {
        match self {
            Self::From(from, limit) => (from, limit),
            Self::Before(before, limit) => {
                let end = before.unwrap_or(count);
                let from = end.saturating_sub(limit);
                (from, (end - from).max(1))
            }
        }
    }
}

/// Reads epochs of an experiment; `None` if there is no such experiment.
pub fn read(store: &mut Store, id: &str, range: EpochRange) -> Result<Option<EpochList>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    let spec = Spec::parse(&experiment.spec, id)?;
    let count = progress.epoch + 1;
    let (from, limit) = range.first_and_limit(count);
    // One earlier, for what changed since; beyond the last there is nothing, and PostgreSQL could not even be asked.
    let first = from.saturating_sub(1).min(count);
    let rows = store.epochs(id, first, limit as usize + 1)?;
    let heads = EpochHead::parse_all(&rows, &progress, &spec.problem)?;
    let mut epochs = entries(&heads, &spec.problem);
    epochs.retain(|entry| entry.epoch >= from);
    epochs.truncate(limit as usize);
    let next = epochs.last().map(|last| last.epoch + 1);
    Ok(Some(EpochList {
        id: experiment.id,
        name: spec.name,
        status: progress.status,
        actions: spec.problem.actions().to_vec(),
        count,
        next: next.filter(|next| *next < count),
        epochs,
    }))
}

/// Epochs that follow each other, as a list has them.
pub fn entries(heads: &[EpochHead], problem: &Problem) -> Vec<EpochEntry> {
    let before = std::iter::once(None).chain(heads.iter().map(Some));
    let pairs = heads.iter().zip(before);
    pairs
        .map(|(head, before)| EpochEntry::new(head, before, problem))
        .collect()
}

impl EpochEntry {
    fn new(head: &EpochHead, before: Option<&EpochHead>, problem: &Problem) -> Self {
        Self {
            epoch: head.epoch,
            kind: head.kind,
            rule: head.rule,
            first_round: head.first_round,
            rounds: head.rounds,
            opened_at: head.opened_at,
            closed_at: head.closed_at,
            shares: Shares::played_by(problem, &head.strategy),
            changes: before.map_or(Vec::new(), |before| {
                changes(problem, &before.strategy, &head.strategy)
            }),
            estimates_made: head.estimates_made,
            test: head.test.as_ref().map(|test| TestState::new(problem, test)),
            hash: head.hash.clone(),
        }
    }
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
