//! Epochs: strategy and estimates when opened, rounds and hashes when closed.

use anyhow::{Result, ensure};

use crate::store::Store;
use crate::store::codec::{encode_number, parse_number, saturate};
use crate::store::database::{Columns, SqlTable, SqlValue, number, text, values};

// Columns of the primary key come first, since what an insert says of each row is said by its key.
const EPOCHS: SqlTable = SqlTable {
    name: "epochs",
    columns: &[
        "experiment",
        "epoch",
        "record",
        "snapshot",
        "opened_at",
        "closed_at",
        "rounds_hash",
        "hash",
        "leases_hash",
        "journal_end",
        "journal",
    ],
    keys: 2,
};

/// An epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochRow {
    /// Its number, from 0.
    pub epoch: u64,
    /// The engine's record as JSON: with 0 rounds while it is open.
    pub record: String,
    /// The engine at its opening, which holds the key; of the open epoch, and of the last.
    pub snapshot: Option<Vec<u8>>,
    /// When it was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// SHA-256 over its rounds, as 64 hexadecimal digits; once closed.
    pub rounds_hash: Option<String>,
    /// The newest hash of the chain when it was closed; once closed.
    pub hash: Option<String>,
    /// SHA-256 over its leases; once closed.
    pub leases_hash: Option<String>,
    /// The position of the next uncounted outcome or event when it was closed; once closed.
    pub journal_end: Option<u64>,
    /// The hash over those before; once closed.
    pub journal: Option<String>,
}

impl Store {
    /// Its epochs from this number on, in order.
    pub fn epochs(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<EpochRow>> {
        let sql =
            "SELECT epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash, leases_hash,
                journal_end, journal FROM epochs
            WHERE experiment = $1 AND epoch >= $2 ORDER BY epoch LIMIT $3";
        self.page(
            id,
            sql,
            &values![saturate(from), saturate(limit as u64)],
            read_epoch,
        )
    }

    /// Rewrites an open epoch as closed. If there is a next one, it is added and the closed one's snapshot dropped.
    pub fn close_epoch(
        &mut self,
        id: &str,
        closed: &EpochRow,
        opened: Option<&EpochRow>,
    ) -> Result<()> {
        self.write_to(id, |store, number| {
            // Of nodes that close an epoch at the same time one wins: the others find it closed, and fail.
            let sql = "UPDATE epochs SET record = $1, closed_at = $2, rounds_hash = $3, hash = $4,
                leases_hash = $5, journal_end = $6, journal = $7
                WHERE experiment = $8 AND epoch = $9 AND closed_at IS NULL";
            let epoch = encode_number(closed.epoch)?;
            let values = values![
                &closed.record,
                closed.closed_at,
                &closed.rounds_hash,
                &closed.hash,
                &closed.leases_hash,
                closed.journal_end.map(encode_number).transpose()?,
                &closed.journal,
                number,
                epoch
            ];
            let changed = store.database.execute(sql, &values)?;
            ensure!(
                changed == 1,
                "epoch {epoch} of experiment {id:?} is not open"
            );
            let Some(opened) = opened else { return Ok(()) };
            // Only the open epoch is ever continued, so older snapshots would be dead weight, and each holds the key.
            let sql = "UPDATE epochs SET snapshot = NULL WHERE experiment = $1 AND epoch = $2";
            store.database.execute(sql, &values![number, epoch])?;
            store.add_epoch(number, opened)
        })
    }

    pub(super) fn add_epoch(&mut self, number: i64, row: &EpochRow) -> Result<()> {
        let added = self
            .database
            .insert(&EPOCHS, &[epoch_values(number, row)?])?;
        ensure!(added[0], "epoch {} is there already", row.epoch);
        Ok(())
    }
}

fn epoch_values(number: i64, row: &EpochRow) -> Result<Vec<SqlValue<'_>>> {
    let EpochRow {
        epoch,
        record,
        snapshot,
        opened_at,
        closed_at,
        rounds_hash,
        hash,
        leases_hash,
        journal_end,
        journal,
    } = row;
    Ok(values![
        number,
        encode_number(*epoch)?,
        record,
        snapshot,
        *opened_at,
        *closed_at,
        rounds_hash,
        hash,
        leases_hash,
        journal_end.map(encode_number).transpose()?,
        journal
    ]
    .into())
}

fn read_epoch(row: &dyn Columns) -> Result<EpochRow> {
    Ok(EpochRow {
        epoch: parse_number(number(row, 0)?)?,
        record: text(row, 1)?.into(),
        snapshot: row.bytes(2)?.map(Vec::from),
        opened_at: number(row, 3)?,
        closed_at: row.number(4)?,
        rounds_hash: row.text(5)?.map(String::from),
        hash: row.text(6)?.map(String::from),
        leases_hash: row.text(7)?.map(String::from),
        journal_end: row.number(8)?.map(parse_number).transpose()?,
        journal: row.text(9)?.map(String::from),
    })
}
