//! How many rows an experiment has, and what a store holds that this program never makes.

use anyhow::Result;

use crate::store::codec::parse_number;
use crate::store::database::{Columns, number, text};
use crate::store::{Store, foreign};

/// How many rows an experiment has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Epochs.
    pub epochs: u64,
    /// Leases, overtime and holdback too.
    pub leases: u64,
    /// Outcomes that count.
    pub outcomes: u64,
    /// Late outcomes, and those of overtime and holdback.
    pub uncounted: u64,
    /// Events.
    pub events: u64,
}

impl Store {
    /// How many rows an experiment has, whether or not the other methods show them.
    pub fn row_counts(&mut self, id: &str) -> Result<RowCounts> {
        let count = |table| format!("(SELECT count(*) FROM {table} WHERE experiment = $1)");
        let tables = ["epochs", "leases", "outcomes", "uncounted", "events"];
        let sql = format!("SELECT {}", tables.map(count).join(", "));
        let counts = self.page(id, &sql, &[], read_row_counts)?.pop();
        Ok(counts.unwrap_or_default())
    }

    /// In what the store differs from one that this program makes: tables, columns, indices, triggers, views, and rows of no
    /// experiment. Each in words.
    pub fn foreign(&mut self) -> Result<Vec<String>> {
        let mut found = self.database.foreign()?;
        let strays = self.rows(&foreign::strays(), &[], |row| Ok(text(row, 0)?.to_owned()))?;
        found.extend(strays);
        Ok(found)
    }
}

fn read_row_counts(row: &dyn Columns) -> Result<RowCounts> {
    Ok(RowCounts {
        epochs: parse_number(number(row, 0)?)?,
        leases: parse_number(number(row, 1)?)?,
        outcomes: parse_number(number(row, 2)?)?,
        uncounted: parse_number(number(row, 3)?)?,
        events: parse_number(number(row, 4)?)?,
    })
}
