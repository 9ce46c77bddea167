//! The names of those who ask and tell, by the numbers that stand for them in rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::store::Store;
use crate::store::codec::parse_number;
use crate::store::database::{Columns, number, text, values};

/// Who does what nobody asked for: the service itself.
pub const ITSELF: &str = "debora";

/// What stands for the name of a key where none is needed, on the loopback address.
pub const KEYLESS: &str = "loopback";

impl Store {
    /// The number that stands for somebody's name in leases and outcomes, given when it is first asked for; from 1. In rows, 0 is
    /// nobody.
    pub fn actor(&mut self, name: &str) -> Result<u64> {
        // Remembered, as experiments' numbers are: nearly every request has one.
        if let Some(number) = self.actors.get(name) {
            return Ok(*number);
        }
        let sql = "INSERT INTO actors (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
        self.execute(sql, &values![name])?;
        let sql = "SELECT number FROM actors WHERE name = $1";
        let number = self.one(sql, &values![name], |row| parse_number(number(row, 0)?))?;
        let number = number.with_context(|| format!("the actor {name:?} is not there"))?;
        self.actors.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The name that a number stands for; `None` for 0. An error if it stands for nobody.
    pub fn actor_name(&mut self, number: u64) -> Result<Option<Arc<str>>> {
        if number == 0 || self.names.contains_key(&number) {
            return Ok(self.names.get(&number).cloned());
        }
        // All of them, as there are few: one statement serves every row that is hashed until a fresh name is met.
        let names = self.actors()?.into_iter();
        self.names = names.map(|(number, name)| (number, name.into())).collect();
        let name = self.names.get(&number).cloned();
        name.map(Some)
            .with_context(|| format!("the store has no actor {number}"))
    }

    /// The names, by number.
    pub fn actors(&mut self) -> Result<BTreeMap<u64, String>> {
        let read =
            |row: &dyn Columns| Ok((parse_number(number(row, 0)?)?, text(row, 1)?.to_owned()));
        let actors = self.rows("SELECT number, name FROM actors", &[], read)?;
        Ok(actors.into_iter().collect())
    }
}
