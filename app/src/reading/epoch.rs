//! What is read of an epoch's row: when it was, what it plays, and how that was found. Its estimates are by far the longest part of
//! its record, and are read only where they are shown.

use anyhow::{Context as _, Result, ensure};
use debora::record::{Kind, LookTest, Rule};
use debora::{Estimate, Problem};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::store::{EpochRow, Progress};

/// An epoch, but for its estimates.
#[derive(Clone, Debug)]
pub struct EpochHead {
    /// Its number, from 0.
    pub epoch: u64,
    /// How its strategy was found.
    pub kind: Kind,
    /// Which of its strategies a policy with limits plays; `None` for the others.
    pub rule: Option<Rule>,
    /// Its first round.
    pub first_round: u64,
    /// How many rounds it has; of the open one, how many are decided.
    pub rounds: u64,
    /// When it was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// The probability of each action.
    pub strategy: Vec<f64>,
    /// The look made at its start, if one was due.
    pub test: Option<LookTest>,
    /// How many estimates were made at its start.
    pub estimates_made: u64,
    /// Its hash; `None` while it is open.
    pub hash: Option<String>,
}

/// The parts of a record that a head has.
#[derive(Deserialize)]
struct RecordHead {
    first_round: u64,
    rounds: u64,
    kind: Kind,
    rule: Option<Rule>,
    strategy: Vec<f64>,
    test: Option<LookTest>,
    estimates: Vec<IgnoredAny>,
}

/// The other part.
#[derive(Deserialize)]
struct RecordEstimates {
    estimates: Vec<Estimate>,
}

impl EpochHead {
    /// Reads a row of an experiment that is so far.
    pub fn parse(row: &EpochRow, progress: &Progress) -> Result<Self> {
        let record: RecordHead = parse(row)?;
        let decided = progress.next_round.saturating_sub(record.first_round);
        Ok(Self {
            epoch: row.epoch,
            kind: record.kind,
            rule: record.rule,
            first_round: record.first_round,
            // The record of an open epoch has 0.
            rounds: row.closed_at.map_or(decided, |_| record.rounds),
            opened_at: row.opened_at,
            closed_at: row.closed_at,
            strategy: record.strategy,
            test: record.test,
            estimates_made: record.estimates.len() as u64,
            hash: row.hash.clone(),
        })
    }

    /// Reads rows of an experiment, and refuses what does not fit its problem.
    pub fn parse_all(
        rows: &[EpochRow],
        progress: &Progress,
        problem: &Problem,
    ) -> Result<Vec<Self>> {
        let heads = rows.iter().map(|row| {
            let head = Self::parse(row, progress)?;
            head.check(problem)?;
            Ok(head)
        });
        heads.collect()
    }

    /// Its last round; the one before its first while it has none.
    pub fn last_round(&self) -> u64 {
        (self.first_round + self.rounds).saturating_sub(1)
    }

    /// Refuses a head of other actions: names are looked up by place.
    fn check(&self, problem: &Problem) -> Result<()> {
        let (epoch, actions) = (self.epoch, problem.actions().len());
        check_probabilities(epoch, &self.strategy, problem)?;
        let tested = self.test.as_ref();
        let places = tested.map_or([0, 0], |test| [test.leader, test.runner_up]);
        ensure!(
            places.iter().all(|place| (*place as usize) < actions),
            "the clear test of epoch {epoch} is damaged: the spec lacks one of the actions {places:?}; run `debora audit` to \
             find out more"
        );
        Ok(())
    }
}

/// Refuses the strategy of another number of actions.
pub fn check_probabilities(epoch: u64, strategy: &[f64], problem: &Problem) -> Result<()> {
    let actions = problem.actions().len();
    ensure!(
        strategy.len() == actions,
        "the record of epoch {epoch} is damaged: it has {} probabilities, and the spec {actions} actions; run `debora \
         audit` to find out more",
        strategy.len()
    );
    Ok(())
}

/// The estimates made at the start of an epoch.
pub fn estimates_made(row: &EpochRow, problem: &Problem) -> Result<Vec<Estimate>> {
    let record: RecordEstimates = parse(row)?;
    for made in &record.estimates {
        let fits = (made.action as usize) < problem.actions().len()
            && (made.quantity as usize) < problem.quantities_estimated();
        // Names and widths are looked up by place, too.
        ensure!(
            fits,
            "an estimate of epoch {} is damaged: the spec has no action {} with quantity {}; run `debora audit` to find out more",
            made.epoch,
            made.action,
            made.quantity
        );
    }
    Ok(record.estimates)
}

fn parse<'a, T: Deserialize<'a>>(row: &'a EpochRow) -> Result<T> {
    serde_json::from_str(&row.record)
        .with_context(|| format!("the record of epoch {} cannot be read", row.epoch))
}
