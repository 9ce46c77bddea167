//! Every store is this one, over its database: what is said to a database is said once.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

use super::codec::{self, bound, stored};
use super::database::{Columns, Database, SqlValue, values};
use super::tables::*;
use super::{
    ApiKey, EpochRow, Event, ExperimentRow, Lease, OutcomeRow, Progress, Store, UncountedOutcome,
};

/// A store in a database.
pub struct Sql<D> {
    database: D,
    /// The numbers of experiments seen so far, by their ids.
    numbers: BTreeMap<String, i64>,
    transaction: Transaction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement failed. PostgreSQL would undo the rest when asked to commit it, and say nothing; SQLite may have ended
    /// it by itself, on a full disk, and would write the rest one by one.
    Failed,
}

impl<D: Database> Sql<D> {
    /// A store in this database, whose tables are there.
    pub fn over(database: D) -> Self {
        Self {
            database,
            numbers: BTreeMap::new(),
            transaction: Transaction::None,
        }
    }

    /// Notes an error: what follows in the transaction is refused.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
        }
        result
    }

    /// All rows of a query.
    fn rows<T>(
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
    fn rows_each<T>(
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

    /// The number of an experiment.
    fn number(&mut self, id: &str) -> Result<Option<i64>> {
        if let Some(number) = self.numbers.get(id) {
            return Ok(Some(*number));
        }
        let sql = "SELECT number FROM experiments WHERE id = $1";
        let number = self.rows(sql, &values![id], |row| number(row, 0))?.pop();
        if let Some(number) = number {
            self.numbers.insert(id.to_owned(), number);
        }
        Ok(number)
    }

    /// The rows of an experiment from one on.
    fn page<T>(
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
    fn write<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match self.transaction {
            Transaction::None => bail!("no transaction is open; nothing was written"),
            Transaction::Failed => bail!("the transaction failed before; nothing was written"),
            Transaction::Open => {}
        }
        let result = write(self);
        self.note(result)
    }

    /// Writes about an experiment that is there.
    fn write_to<T>(
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

    fn add_epoch(&mut self, number: i64, row: &EpochRow) -> Result<()> {
        let added = self
            .database
            .insert(&EPOCHS, &[epoch_values(number, row)?])?;
        ensure!(added[0], "epoch {} is there already", row.epoch);
        Ok(())
    }
}

impl<D: Database> Store for Sql<D> {
    fn begin(&mut self) -> Result<()> {
        ensure!(
            self.transaction == Transaction::None,
            "a transaction is open already; commit it or roll it back first"
        );
        self.database
            .begin()
            .context("cannot begin a transaction of the store")?;
        self.transaction = Transaction::Open;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.transaction {
            Transaction::None => bail!("no transaction is open; nothing was committed"),
            Transaction::Failed => {
                self.rollback();
                bail!("the transaction failed before, so nothing of it was kept");
            }
            Transaction::Open => {}
        }
        let committed = self.database.commit().context("cannot commit to the store");
        if committed.is_err() {
            self.rollback();
        }
        self.transaction = Transaction::None;
        committed
    }

    fn rollback(&mut self) {
        if self.transaction != Transaction::None {
            self.database.rollback();
            // A number that was given within the transaction may be given again.
            self.numbers.clear();
            self.transaction = Transaction::None;
        }
    }

    fn experiments(&mut self) -> Result<Vec<(ExperimentRow, Progress)>> {
        let sql = "SELECT id, spec, key, salt, created_at, values_version, progress
            FROM experiments JOIN progress ON experiment = number ORDER BY number";
        self.rows(sql, &[], read_experiment)
    }

    fn experiment(&mut self, id: &str) -> Result<Option<(ExperimentRow, Progress)>> {
        let sql = "SELECT id, spec, key, salt, created_at, values_version, progress
            FROM experiments JOIN progress ON experiment = number WHERE id = $1";
        Ok(self.rows(sql, &values![id], read_experiment)?.pop())
    }

    fn lock(&mut self, id: &str) -> Result<Option<Progress>> {
        let sql = format!(
            "SELECT progress FROM progress WHERE experiment = $1{}",
            self.database.for_update()
        );
        Ok(self
            .page(id, &sql, &[], |row| codec::parse_progress(text(row, 0)?))?
            .pop())
    }

    fn epochs(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<EpochRow>> {
        let sql =
            "SELECT epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash FROM epochs
            WHERE experiment = $1 AND epoch >= $2 ORDER BY epoch LIMIT $3";
        self.page(
            id,
            sql,
            &values![bound(from), bound(limit as u64)],
            read_epoch,
        )
    }

    fn leases_of(&mut self, id: &str, request_keys: &[&str]) -> Result<Vec<Lease>> {
        let Some(number) = self.number(id)? else {
            return Ok(Vec::new());
        };
        let sql =
            "SELECT epoch, overtime, first, rounds, actions, asked, request_key, at FROM leases
            WHERE experiment = $1 AND request_key = $2";
        let request_keys: Vec<_> = request_keys
            .iter()
            .map(|request_key| SqlValue::from(*request_key))
            .collect();
        self.rows_each(sql, number, &request_keys, read_lease)
    }

    fn leases(
        &mut self,
        id: &str,
        epoch: u64,
        overtime: bool,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Lease>> {
        // Leases do not overlap, so of those that start at or before `from` only the last may end after it.
        let sql = "SELECT epoch, overtime, first, rounds, actions, asked, request_key, at FROM leases
            WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND first + rounds > $4 AND first >= coalesce((
                SELECT max(first) FROM leases WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND first <= $4
            ), 0) ORDER BY first LIMIT $5";
        self.page(
            id,
            sql,
            &values![bound(epoch), overtime, bound(from), bound(limit as u64)],
            read_lease,
        )
    }

    fn outcomes(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<OutcomeRow>> {
        let sql = "SELECT round, feedback, imputed, at FROM outcomes
            WHERE experiment = $1 AND round >= $2 ORDER BY round LIMIT $3";
        self.page(
            id,
            sql,
            &values![bound(from), bound(limit as u64)],
            read_outcome,
        )
    }

    fn uncounted(
        &mut self,
        id: &str,
        epoch: u64,
        overtime: bool,
        from: u64,
        limit: usize,
    ) -> Result<Vec<UncountedOutcome>> {
        let sql = "SELECT epoch, overtime, number, feedback, at FROM asides
            WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND number >= $4 ORDER BY number LIMIT $5";
        self.page(
            id,
            sql,
            &values![bound(epoch), overtime, bound(from), bound(limit as u64)],
            read_uncounted,
        )
    }

    fn events(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Event>> {
        let sql = "SELECT at, actor, what FROM events
            WHERE experiment = $1 AND number >= $2 ORDER BY number LIMIT $3";
        self.page(
            id,
            sql,
            &values![bound(from), bound(limit as u64)],
            read_event,
        )
    }

    fn create(
        &mut self,
        experiment: &ExperimentRow,
        progress: &Progress,
        opened: &EpochRow,
    ) -> Result<bool> {
        self.write(|store| {
            let sql = "INSERT INTO experiments (id, spec, key, salt, created_at, values_version)
                VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
            let ExperimentRow {
                id,
                spec,
                key,
                salt,
                created_at,
                values_version,
            } = experiment;
            let key = key.to_hex();
            let values = values![
                id,
                spec,
                &key,
                salt.as_slice(),
                *created_at,
                i64::from(*values_version)
            ];
            if store.database.execute(sql, &values)? == 0 {
                return Ok(false);
            }
            let number = store
                .number(id)?
                .context("the experiment that was added is not there")?;
            let sql = "INSERT INTO progress (experiment, progress) VALUES ($1, $2)";
            store
                .database
                .execute(sql, &values![number, &codec::progress(progress)?])?;
            store.add_epoch(number, opened)?;
            Ok(true)
        })
    }

    fn set_progress(&mut self, id: &str, progress: &Progress) -> Result<()> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET progress = $1 WHERE experiment = $2";
            store
                .database
                .execute(sql, &values![&codec::progress(progress)?, number])
                .map(drop)
        })
    }

    fn add_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<()> {
        self.write_to(id, |store, number| {
            let rows = leases
                .iter()
                .map(|lease| lease_values(number, lease))
                .collect::<Result<Vec<_>>>()?;
            let added = store.database.insert(&LEASES, &rows)?;
            let taken = leases.iter().zip(added).find(|(_, added)| !added);
            taken.map_or(Ok(()), |(lease, _)| {
                bail!(
                    "the lease from {} on of experiment {id:?} was given before, or its request's",
                    lease.first
                )
            })
        })
    }

    fn add_outcomes(
        &mut self,
        id: &str,
        outcomes: &[OutcomeRow],
    ) -> Result<Vec<Option<OutcomeRow>>> {
        self.write_to(id, |store, number| {
            let rows = outcomes.iter().map(|outcome| outcome_values(number, outcome)).collect::<Result<Vec<_>>>()?;
            let added = store.database.insert(&OUTCOMES, &rows)?;
            let taken: Vec<_> =
                rows.iter().zip(&added).filter(|(_, added)| !**added).map(|(row, _)| row[1].clone()).collect();
            let sql = "SELECT round, feedback, imputed, at FROM outcomes WHERE experiment = $1 AND round = $2";
            let first =
                if taken.is_empty() { Vec::new() } else { store.rows_each(sql, number, &taken, read_outcome)? };
            let mut first: BTreeMap<_, _> = first.into_iter().map(|outcome| (outcome.round, outcome)).collect();
            Ok(outcomes.iter().map(|outcome| first.remove(&outcome.round)).collect())
        })
    }

    fn add_uncounted(
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
            let sql = "SELECT epoch, overtime, number, feedback, at FROM asides
                WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND number = $4";
            let first = |(row, added): (&Vec<SqlValue<'_>>, bool)| match added {
                true => Ok(None),
                false => Ok(store
                    .rows(sql, &row[..UNCOUNTED.keys], read_uncounted)?
                    .pop()),
            };
            rows.iter().zip(added).map(first).collect()
        })
    }

    fn close_epoch(
        &mut self,
        id: &str,
        closed: &EpochRow,
        opened: Option<&EpochRow>,
    ) -> Result<()> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE epochs SET record = $1, closed_at = $2, rounds_hash = $3, hash = $4
                WHERE experiment = $5 AND epoch = $6 AND closed_at IS NULL";
            let EpochRow {
                epoch,
                record,
                closed_at,
                rounds_hash,
                hash,
                ..
            } = closed;
            let values = values![
                record,
                *closed_at,
                rounds_hash,
                hash,
                number,
                stored(*epoch)?
            ];
            let changed = store.database.execute(sql, &values)?;
            ensure!(
                changed == 1,
                "epoch {epoch} of experiment {id:?} is not open"
            );
            let Some(opened) = opened else { return Ok(()) };
            let sql = "UPDATE epochs SET snapshot = NULL WHERE experiment = $1 AND epoch = $2";
            store
                .database
                .execute(sql, &values![number, stored(*epoch)?])?;
            store.add_epoch(number, opened)
        })
    }

    fn add_event(&mut self, id: &str, event: &Event) -> Result<()> {
        self.write_to(id, |store, experiment| {
            let sql = "SELECT coalesce(max(number) + 1, 0) FROM events WHERE experiment = $1";
            let next = store.rows(sql, &values![experiment], |row| number(row, 0))?.pop();
            let sql = "INSERT INTO events (experiment, number, at, actor, what) VALUES ($1, $2, $3, $4, $5)";
            let values = values![experiment, next, event.at, &event.actor, &event.what];
            store.database.execute(sql, &values).map(drop)
        })
    }

    fn keys(&mut self) -> Result<Vec<ApiKey>> {
        let sql = "SELECT name, role, hash, created_at, revoked_at FROM api_keys ORDER BY name";
        self.rows(sql, &[], read_api_key)
    }

    fn set_key(&mut self, key: &ApiKey) -> Result<()> {
        self.write(|store| {
            let sql = "INSERT INTO api_keys (name, role, hash, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (name) DO UPDATE SET role = excluded.role, hash = excluded.hash,
                    created_at = excluded.created_at, revoked_at = excluded.revoked_at";
            let ApiKey { name, role, hash, created_at, revoked_at } = key;
            let values = values![name, codec::role(*role), hash, *created_at, *revoked_at];
            store.database.execute(sql, &values).map(drop)
        })
    }
}
