//! How the tables run their statements: reads from any connection, writes within a transaction that can still be committed.

use anyhow::{Context as _, Result, bail};

use super::Store;
use super::database::{Columns, SqlValue, values};
use super::transactions::TransactionState;

impl Store {
    /// All rows of a query.
    pub(super) fn rows<T>(
        &mut self,
        sql: &str,
        values: &[SqlValue<'_>],
        read: fn(&dyn Columns) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let result = self.database.query(sql, values, &mut |row| {
            found.push(read(row)?);
            Ok(())
        });
        self.note(result)?;
        Ok(found)
    }

    /// All rows of a query for each of some values.
    pub(super) fn rows_each<T>(
        &mut self,
        sql: &str,
        number: i64,
        values: &[SqlValue<'_>],
        read: fn(&dyn Columns) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let result = self.database.query_each(sql, number, values, &mut |row| {
            found.push(read(row)?);
            Ok(())
        });
        self.note(result)?;
        Ok(found)
    }

    /// The one row that a query gives, if any.
    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        values: &[SqlValue<'_>],
        read: fn(&dyn Columns) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, values, read)?.pop())
    }

    /// The rows of an experiment from one on.
    pub(super) fn page<T>(
        &mut self,
        id: &str,
        sql: &str,
        values: &[SqlValue<'_>],
        read: fn(&dyn Columns) -> Result<T>,
    ) -> Result<Vec<T>> {
        let Some(number) = self.number(id)? else {
            return Ok(Vec::new());
        };
        self.rows(sql, &[&values![number], values].concat(), read)
    }

    /// Writes, if a transaction is open that can still be committed.
    pub(super) fn write<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match self.transaction {
            TransactionState::None => bail!("no transaction is open; nothing was written"),
            TransactionState::Failed => bail!("the transaction failed before; nothing was written"),
            TransactionState::Open => {}
        }
        let result = write(self);
        self.note(result)
    }

    /// Writes about an experiment that is there.
    pub(super) fn write_to<T>(
        &mut self,
        id: &str,
        write: impl FnOnce(&mut Self, i64) -> Result<T>,
    ) -> Result<T> {
        self.write(|store| {
            let number = store
                .number(id)?
                .with_context(|| format!("the store has no experiment {id:?}"))?;
            write(store, number)
        })
    }

    /// Writes one row or none: whether it did.
    pub(super) fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<bool> {
        self.write(|store| Ok(store.database.execute(sql, values)? == 1))
    }

    /// Notes an error: what follows in the transaction is refused.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.transaction == TransactionState::Open {
            self.transaction = TransactionState::Failed;
        }
        result
    }
}
