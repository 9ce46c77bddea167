//! What a store says of itself: which it is, how often it was started, how large it is.

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{parse_number, saturate};
use crate::store::database::{Columns, number, text, values};

/// A node that began to serve the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRow {
    /// Counts the starts, from 1.
    pub incarnation: u64,
    /// What tells the process from all others: 32 hexadecimal digits.
    pub node: String,
    /// When.
    pub at: i64,
}

impl Store {
    /// How much room its tables take, in bytes.
    pub fn size(&mut self) -> Result<u64> {
        let size = self.one(self.database.size(), &[], |row| {
            parse_number(number(row, 0)?)
        })?;
        Ok(size.unwrap_or_default())
    }

    /// What tells this store from others, and not from its copies: 32 hexadecimal digits. `None` before the first start.
    pub fn identity(&mut self) -> Result<Option<String>> {
        let sql = "SELECT identity FROM store";
        self.one(sql, &[], |row| Ok(text(row, 0)?.to_owned()))
    }

    /// Sets it, unless it is set.
    pub fn set_identity(&mut self, identity: &str) -> Result<()> {
        // Of nodes that start at the same time the first one's stays.
        let sql =
            "INSERT INTO store (number, identity) VALUES (1, $1) ON CONFLICT (number) DO NOTHING";
        self.execute(sql, &values![identity]).map(drop)
    }

    /// Notes that a node starts to serve the store; gives the number of the start, one more than the last.
    pub fn add_start(&mut self, node: &str, at: i64) -> Result<u64> {
        // The clock's row is locked for its own sake and for this: nodes that start together take turns.
        self.waiting_clock()?;
        let last = "SELECT coalesce(max(incarnation), 0) FROM starts";
        let last = self.one(last, &[], |row| number(row, 0))?;
        let next = last.unwrap_or_default() + 1;
        let sql = "INSERT INTO starts (incarnation, node, at) VALUES ($1, $2, $3)";
        self.execute(sql, &values![next, node, at])?;
        parse_number(next)
    }

    /// The starts from this number on, in order.
    pub fn starts(&mut self, from: u64) -> Result<Vec<StartRow>> {
        let sql = "SELECT incarnation, node, at FROM starts WHERE incarnation >= $1
            ORDER BY incarnation";
        self.rows(sql, &values![saturate(from)], read_start)
    }
}

fn read_start(row: &dyn Columns) -> Result<StartRow> {
    Ok(StartRow {
        incarnation: parse_number(number(row, 0)?)?,
        node: text(row, 1)?.into(),
        at: number(row, 2)?,
    })
}
