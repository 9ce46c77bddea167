//! The clock that missing outcomes are waited for by.

use anyhow::{Context as _, Result};

use crate::store::Store;
use crate::store::database::{Columns, number, values};

/// How long this store has been served: what missing outcomes are waited for by. It never jumps, as no clock of a day is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingClock {
    /// Milliseconds in which outcomes could be told.
    pub waited: i64,
    /// When it was last moved on, by the clock that all nodes share.
    pub read_at: i64,
}

impl Store {
    /// How long the store has been served; within a transaction no other node changes it until the end.
    pub fn waiting_clock(&mut self) -> Result<WaitingClock> {
        let sql = format!(
            "SELECT waited, read_at FROM waiting_clock WHERE number = 1{}",
            self.database.for_update()
        );
        let read = |row: &dyn Columns| {
            Ok(WaitingClock {
                waited: number(row, 0)?,
                read_at: number(row, 1)?,
            })
        };
        self.one(&sql, &[], read)?
            .context("the store has no waiting clock")
    }

    /// Moves it on.
    pub fn set_waiting_clock(&mut self, clock: &WaitingClock) -> Result<()> {
        let sql = "UPDATE waiting_clock SET waited = $1, read_at = $2 WHERE number = 1";
        self.execute(sql, &values![clock.waited, clock.read_at])
            .map(drop)
    }
}
