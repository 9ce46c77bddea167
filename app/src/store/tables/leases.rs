//! Leases: decisions, one row per request.

use anyhow::{Result, bail};

use super::kind::DecisionKind;
use crate::store::Store;
use crate::store::codec::{self, encode_number, parse_number, saturate};
use crate::store::database::{Columns, SqlTable, SqlValue, bytes, number, values};

const LEASES: SqlTable = SqlTable {
    name: "leases",
    columns: &[
        "experiment",
        "epoch",
        "kind",
        "first",
        "rounds",
        "actions",
        "asked",
        "request_key",
        "at",
        "waited",
        "actor",
    ],
    keys: 4,
};

const LEASES_READ: &str =
    "SELECT epoch, kind, first, rounds, actions, asked, request_key, at, waited, actor FROM leases
    WHERE experiment = $1";

/// What one request was given: consecutive rounds of one epoch.
// One row per request, not per round: a request of ten thousand rounds would be ten thousand rows to write and to sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The epoch.
    pub epoch: u64,
    /// What the decisions count for.
    pub kind: DecisionKind,
    /// The first round, or serial.
    pub first: u64,
    /// The actions of this and the following rounds.
    pub actions: Vec<u32>,
    /// How many were asked for.
    pub asked: u64,
    /// What makes the request's repetition known.
    pub request_key: Option<String>,
    /// When.
    pub at: i64,
    /// What the store's [`WaitingClock`] showed.
    pub waited: i64,
    /// Who asked ([`Store::actor`]).
    pub actor: u64,
}

impl Store {
    /// What requests with these keys were given, in any order.
    pub fn leases_of(&mut self, id: &str, request_keys: &[&str]) -> Result<Vec<Lease>> {
        let Some(number) = self.number(id)? else {
            return Ok(Vec::new());
        };
        let sql = format!("{LEASES_READ} AND request_key = $2");
        let request_keys: Vec<_> = request_keys
            .iter()
            .map(|request_key| SqlValue::from(*request_key))
            .collect();
        self.rows_each(&sql, number, &request_keys, read_lease)
    }

    /// Leases of an epoch that end at or after this round (or serial, outside the horizon), in order.
    pub fn leases(
        &mut self,
        id: &str,
        epoch: u64,
        kind: DecisionKind,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Lease>> {
        // Leases do not overlap, so of those that start at or before `from` only the last may end after it.
        // Without that bound `first + rounds > $4` alone, which no index knows, would read the epoch from its beginning.
        let sql = format!(
            "{LEASES_READ} AND epoch = $2 AND kind = $3 AND first + rounds > $4
                AND first >= coalesce((SELECT max(first) FROM leases
                    WHERE experiment = $1 AND epoch = $2 AND kind = $3 AND first <= $4), 0)
                ORDER BY first LIMIT $5"
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
            read_lease,
        )
    }

    /// Adds leases.
    pub fn add_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<()> {
        self.write_to(id, |store, number| {
            let added = store.database.insert(&LEASES, &all_values(number, leases)?)?;
            // A round given twice would be two requests' decision: the lock on the progress should make it impossible, and
            // the primary key makes sure.
            let taken = leases.iter().zip(added).find(|(_, added)| !added);
            taken.map_or(Ok(()), |(lease, _)| {
                bail!(
                    "experiment {id:?} already has a lease that starts at {}, or one with the same request key",
                    lease.first
                )
            })
        })
    }

    /// The same if all of them are new. False if one starts where another does, or has its request key: then none is added.
    pub fn add_new_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<bool> {
        self.write_to(id, |store, number| {
            let rows = all_values(number, leases)?;
            let added = store.database.insert(&LEASES, &rows)?;
            if added.iter().all(|added| *added) {
                return Ok(true);
            }
            // One by one, and not back to a savepoint: every group would pay for that, and few have to go back.
            let sql = "DELETE FROM leases
                WHERE experiment = $1 AND epoch = $2 AND kind = $3 AND first = $4";
            for (row, _) in rows.iter().zip(added).filter(|(_, added)| *added) {
                store.database.execute(sql, &row[..LEASES.keys])?;
            }
            Ok(false)
        })
    }
}

fn lease_values(number: i64, lease: &Lease) -> Result<Vec<SqlValue<'_>>> {
    let Lease {
        epoch,
        kind,
        first,
        actions,
        asked,
        request_key,
        at,
        waited,
        actor,
    } = lease;
    Ok(values![
        number,
        encode_number(*epoch)?,
        i64::from(kind.number()),
        encode_number(*first)?,
        // Beside the actions, whose bytes the database cannot count: the reach of a lease is looked for in SQL.
        encode_number(actions.len() as u64)?,
        codec::encode_actions(actions)?,
        encode_number(*asked)?,
        request_key,
        *at,
        *waited,
        encode_number(*actor)?
    ]
    .into())
}

/// The rows of some leases.
fn all_values<'a>(number: i64, leases: &[&'a Lease]) -> Result<Vec<Vec<SqlValue<'a>>>> {
    leases
        .iter()
        .map(|lease| lease_values(number, lease))
        .collect()
}

fn read_lease(row: &dyn Columns) -> Result<Lease> {
    Ok(Lease {
        epoch: parse_number(number(row, 0)?)?,
        kind: codec::parse_kind(number(row, 1)?)?,
        first: parse_number(number(row, 2)?)?,
        actions: codec::parse_actions(bytes(row, 4)?, number(row, 3)?)?,
        asked: parse_number(number(row, 5)?)?,
        request_key: row.text(6)?.map(String::from),
        at: number(row, 7)?,
        waited: number(row, 8)?,
        actor: parse_number(number(row, 9)?)?,
    })
}
