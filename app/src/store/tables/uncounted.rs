//! Uncounted outcomes: late ones, and those of overtime and holdback; logged, never counted.

use anyhow::{Result, ensure};

use super::kind::DecisionKind;
use crate::store::Store;
use crate::store::codec::{self, encode_number, parse_number, saturate};
use crate::store::database::{Columns, SqlTable, SqlValue, bytes, number, values};

const UNCOUNTED: SqlTable = SqlTable {
    name: "uncounted",
    columns: &[
        "experiment",
        "epoch",
        "kind",
        "number",
        "feedback",
        "at",
        "actor",
        "position",
    ],
    keys: 4,
};

pub(super) const UNCOUNTED_READ: &str =
    "SELECT epoch, kind, number, feedback, at, actor, position FROM uncounted
    WHERE experiment = $1";

const UNCOUNTED_OF: &str = "epoch = $2 AND kind = $3";

/// An outcome that is logged and never counted.
#[derive(Clone, Debug, PartialEq)]
pub struct UncountedOutcome {
    /// The epoch of a decision outside the horizon; 0 of a late outcome, whose round tells it.
    pub epoch: u64,
    /// Of which decision. One of a round came after the round was imputed.
    pub kind: DecisionKind,
    /// The serial, or the round.
    pub number: u64,
    /// The reward.
    pub reward: f64,
    /// The costs.
    pub costs: Vec<f64>,
    /// When.
    pub at: i64,
    /// Who told it ([`Store::actor`]).
    pub actor: u64,
    /// Its place among the experiment's uncounted outcomes and events, in the order encode_number; some numbers are left out.
    pub position: u64,
}

impl Store {
    /// Uncounted outcomes from this round or serial on, in order: of an epoch's overtime or holdback, or the late ones, whose epoch is 0.
    pub fn uncounted(
        &mut self,
        id: &str,
        epoch: u64,
        kind: DecisionKind,
        from: u64,
        limit: usize,
    ) -> Result<Vec<UncountedOutcome>> {
        let sql = format!(
            "{UNCOUNTED_READ} AND {UNCOUNTED_OF} AND number >= $4 ORDER BY number LIMIT $5"
        );
        self.page(
            id,
            &sql,
            &values![
                saturate(epoch),
                i64::from(kind.number()),
                saturate(from),
                saturate(limit as u64)
            ],
            read_uncounted,
        )
    }

    /// Adds uncounted outcomes with distinct numbers. Where one is there already, it stays and is returned in its place.
    pub fn add_uncounted(
        &mut self,
        id: &str,
        outcomes: &[UncountedOutcome],
    ) -> Result<Vec<Option<UncountedOutcome>>> {
        self.write_to(id, |store, number| {
            let rows = outcomes
                .iter()
                .map(|outcome| uncounted_values(number, outcome))
                .collect::<Result<Vec<_>>>()?;
            let added = store.database.insert(&UNCOUNTED, &rows)?;
            // One by one: those that are told twice are few.
            let sql = format!("{UNCOUNTED_READ} AND {UNCOUNTED_OF} AND number = $4");
            let mut before = Vec::new();
            for (row, added) in rows.iter().zip(added) {
                before.push(match added {
                    true => None,
                    false => store
                        .rows(&sql, &row[..UNCOUNTED.keys], read_uncounted)?
                        .pop(),
                });
            }
            Ok(before)
        })
    }
}

fn uncounted_values(experiment: i64, outcome: &UncountedOutcome) -> Result<Vec<SqlValue<'_>>> {
    let UncountedOutcome {
        epoch,
        kind,
        number,
        reward,
        costs,
        at,
        actor,
        position,
    } = outcome;
    Ok(values![
        experiment,
        encode_number(*epoch)?,
        i64::from(kind.number()),
        encode_number(*number)?,
        codec::encode_feedback(*reward, costs),
        *at,
        encode_number(*actor)?,
        encode_number(*position)?
    ]
    .into())
}

pub(super) fn read_uncounted(row: &dyn Columns) -> Result<UncountedOutcome> {
    let (reward, costs) = codec::parse_feedback(bytes(row, 3)?)?;
    let (epoch, kind) = (
        parse_number(number(row, 0)?)?,
        codec::parse_kind(number(row, 1)?)?,
    );
    // No line shows it, so another number would be a change that nobody sees.
    ensure!(
        kind != DecisionKind::Round || epoch == 0,
        "the store holds a late outcome under epoch {epoch}, where only 0 can be"
    );
    Ok(UncountedOutcome {
        epoch,
        kind,
        number: parse_number(number(row, 2)?)?,
        reward,
        costs,
        at: number(row, 4)?,
        actor: parse_number(number(row, 5)?)?,
        position: parse_number(number(row, 6)?)?,
    })
}
