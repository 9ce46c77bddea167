//! Outcomes that count: told or imputed, one row per round; the first stays.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{self, encode_number, parse_number, saturate};
use crate::store::database::{Columns, SqlTable, SqlValue, bytes, number, values};

const OUTCOMES: SqlTable = SqlTable {
    name: "outcomes",
    columns: &["experiment", "round", "feedback", "imputed", "at", "actor"],
    keys: 2,
};

const OUTCOMES_READ: &str =
    "SELECT round, feedback, imputed, at, actor FROM outcomes WHERE experiment = $1";

/// What came of a round, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeRow {
    /// The round.
    pub round: u64,
    /// The reward.
    pub reward: f64,
    /// The costs.
    pub costs: Vec<f64>,
    /// Whether nobody told it: it was put in after the longest wait.
    pub imputed: bool,
    /// When.
    pub at: i64,
    /// Who told it ([`Store::actor`]).
    pub actor: u64,
}

impl Store {
    /// Outcomes from this round on, in order.
    pub fn outcomes(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<OutcomeRow>> {
        let sql = format!("{OUTCOMES_READ} AND round >= $2 ORDER BY round LIMIT $3");
        self.page(
            id,
            &sql,
            &values![saturate(from), saturate(limit as u64)],
            read_outcome,
        )
    }

    /// Adds outcomes of distinct rounds. Where a round has one already, that one stays and is returned in its place.
    pub fn add_outcomes(
        &mut self,
        id: &str,
        outcomes: &[OutcomeRow],
    ) -> Result<Vec<Option<OutcomeRow>>> {
        self.write_to(id, |store, number| {
            let rows = outcomes
                .iter()
                .map(|outcome| outcome_values(number, outcome))
                .collect::<Result<Vec<_>>>()?;
            let added = store.database.insert(&OUTCOMES, &rows)?;
            let taken: Vec<_> = rows
                .iter()
                .zip(&added)
                .filter(|(_, added)| !**added)
                .map(|(row, _)| row[1].clone())
                .collect();
            // Nearly always nothing: outcomes are told once. Then there is nothing to read either.
            if taken.is_empty() {
                return Ok(vec![None; outcomes.len()]);
            }
            let sql = format!("{OUTCOMES_READ} AND round = $2");
            let before = store.rows_each(&sql, number, &taken, read_outcome)?;
            let mut before: BTreeMap<_, _> = before
                .into_iter()
                .map(|outcome| (outcome.round, outcome))
                .collect();
            Ok(outcomes
                .iter()
                .map(|outcome| before.remove(&outcome.round))
                .collect())
        })
    }
}

fn outcome_values(number: i64, outcome: &OutcomeRow) -> Result<Vec<SqlValue<'_>>> {
    let OutcomeRow {
        round,
        reward,
        costs,
        imputed,
        at,
        actor,
    } = outcome;
    Ok(values![
        number,
        encode_number(*round)?,
        codec::encode_feedback(*reward, costs),
        *imputed,
        *at,
        encode_number(*actor)?
    ]
    .into())
}

fn read_outcome(row: &dyn Columns) -> Result<OutcomeRow> {
    let (reward, costs) = codec::parse_feedback(bytes(row, 1)?)?;
    Ok(OutcomeRow {
        round: parse_number(number(row, 0)?)?,
        reward,
        costs,
        imputed: codec::parse_truth(number(row, 2)?)?,
        at: number(row, 3)?,
        actor: parse_number(number(row, 4)?)?,
    })
}
