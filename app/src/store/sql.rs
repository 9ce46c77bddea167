//! The one store there is, over any database: each statement is written once.

mod outbox;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use debora::Key;

use super::codec::{self, bound, stored, unstored};
use super::database::{Began, Columns, Database, SqlValue, values};
use super::foreign;
use super::tables::*;
use super::{
    ApiKey, DecisionKind, EpochRow, Event, ExperimentLine, ExperimentRow, JournalRow, Lease,
    Locked, OutcomeRow, Progress, RowCounts, Session, StartRow, Store, UncountedOutcome,
    WaitingClock,
};

// Statements that several functions share. The table of uncounted outcomes is called `asides`: stores that exist have it.
const EXPERIMENTS: &str = "SELECT id, spec, key, salt, created_at, values_version, rule, progress
    FROM experiments JOIN progress ON experiment = number";
const LINES: &str = "SELECT number, id, created_at, progress
    FROM experiments JOIN progress ON experiment = number";
const OUTCOMES_READ: &str =
    "SELECT round, feedback, imputed, at, actor FROM outcomes WHERE experiment = $1";
const UNCOUNTED_READ: &str =
    "SELECT epoch, overtime, number, feedback, at, actor, position FROM asides
    WHERE experiment = $1";
const UNCOUNTED_OF: &str = "epoch = $2 AND overtime = $3";
const EVENTS_READ: &str = "SELECT at, actor, what, reason, position FROM events
    WHERE experiment = $1";
const LEASES_READ: &str =
    "SELECT epoch, overtime, first, rounds, actions, asked, request_key, at, waited, actor FROM leases
    WHERE experiment = $1";
const KEYS_WRITE: &str =
    "INSERT INTO api_keys (name, role, hash, created_at, revoked_at, experiments, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// A store in a database.
pub struct Sql {
    database: Box<dyn Database>,
    /// The numbers of experiments seen so far, by their ids.
    numbers: BTreeMap<String, i64>,
    /// The numbers of actors, by their names.
    actors: BTreeMap<String, u64>,
    /// Their names, by their numbers.
    names: BTreeMap<u64, Arc<str>>,
    transaction: TransactionState,
    began: Began,
}

/// Where a list of experiments begins, and which way it goes.
struct Bounds {
    after: i64,
    beyond: &'static str,
    order: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    None,
    Open,
    /// A statement failed. PostgreSQL would undo the rest when asked to commit it, and say nothing; SQLite may have ended
    /// it by itself, on a full disk, and would write the rest one by one.
    Failed,
}

impl Sql {
    /// A store in this database, whose tables are there.
    pub fn over(database: impl Database + 'static) -> Self {
        Self {
            database: Box::new(database),
            numbers: BTreeMap::new(),
            actors: BTreeMap::new(),
            names: BTreeMap::new(),
            transaction: TransactionState::None,
            began: Began::default(),
        }
    }

    /// Notes an error: what follows in the transaction is refused.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.transaction == TransactionState::Open {
            self.transaction = TransactionState::Failed;
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
        // Remembered for good: experiments are never removed, and every request would ask for it again.
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
            TransactionState::None => bail!("no transaction is open; nothing was written"),
            TransactionState::Failed => bail!("the transaction failed before; nothing was written"),
            TransactionState::Open => {}
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

    fn bounds(&mut self, after: Option<&str>, newest_first: bool) -> Result<Bounds> {
        let (first, last, beyond, order) = if newest_first {
            (i64::MAX, 0, "<", "DESC")
        } else {
            (0, i64::MAX, ">", "ASC")
        };
        let after = match after {
            // After one that is not there comes nothing.
            Some(id) => self.number(id)?.unwrap_or(last),
            None => first,
        };
        Ok(Bounds {
            after,
            beyond,
            order,
        })
    }

    fn forget_numbers(&mut self) {
        self.numbers.clear();
        self.actors.clear();
        self.names.clear();
    }

    /// The one row that a query gives, if any.
    fn one<T>(
        &mut self,
        sql: &str,
        values: &[SqlValue<'_>],
        read: fn(&dyn Columns) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, values, read)?.pop())
    }

    /// Writes one row or none: whether it did.
    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<bool> {
        self.write(|store| Ok(store.database.execute(sql, values)? == 1))
    }

    /// False if the id is taken.
    fn add_experiment(&mut self, experiment: &ExperimentRow) -> Result<bool> {
        // Two nodes may create one id at the same time: the database decides, not a look beforehand.
        let sql = "INSERT INTO experiments (id, spec, key, salt, created_at, values_version, rule)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
        let key = experiment.key.to_hex();
        let values = values![
            &experiment.id,
            &experiment.spec,
            &key,
            experiment.salt.as_slice(),
            experiment.created_at,
            i64::from(experiment.values_version),
            i64::from(experiment.rule)
        ];
        Ok(self.database.execute(sql, &values)? == 1)
    }

    /// False if nothing was written.
    fn write_key(&mut self, sql: &str, key: &ApiKey) -> Result<bool> {
        let experiments = key.experiments.as_deref().map(codec::ids);
        let values = values![
            &key.name,
            key.role.name(),
            &key.hash,
            key.created_at,
            key.revoked_at,
            &experiments,
            key.last_used_at
        ];
        self.execute(sql, &values)
    }

    fn add_epoch(&mut self, number: i64, row: &EpochRow) -> Result<()> {
        let added = self
            .database
            .insert(&EPOCHS, &[epoch_values(number, row)?])?;
        ensure!(added[0], "epoch {} is there already", row.epoch);
        Ok(())
    }
}

impl Store for Sql {
    fn begin(&mut self) -> Result<()> {
        ensure!(
            self.transaction == TransactionState::None,
            "a transaction is open already; commit it or roll it back first"
        );
        let began = self
            .database
            .begin()
            .context("cannot begin a transaction of the store")?;
        // Another server may number experiments and actors otherwise.
        if began.connection != self.began.connection {
            self.forget_numbers();
        }
        self.began = began;
        self.transaction = TransactionState::Open;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.transaction {
            TransactionState::None => bail!("no transaction is open; nothing was committed"),
            TransactionState::Failed => {
                self.rollback();
                bail!("the transaction failed before, so nothing of it was kept");
            }
            TransactionState::Open => {}
        }
        let committed = self.database.commit().context("cannot commit to the store");
        // SQLite leaves a transaction open whose commit failed: the next one would join it.
        if committed.is_err() {
            self.rollback();
        }
        self.transaction = TransactionState::None;
        committed
    }

    fn rollback(&mut self) {
        if self.transaction != TransactionState::None {
            self.database.rollback();
            // A number that was given within the transaction may be given again.
            self.forget_numbers();
            self.transaction = TransactionState::None;
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.rollback();
        self.database.close()
    }

    fn touch(&mut self) -> Result<()> {
        // Another value each time: SQLite writes no page whose bytes stay the same, and its commit would prove nothing.
        let sql = "INSERT INTO meta (name, value) VALUES ('touched', 0)
            ON CONFLICT (name) DO UPDATE SET value = 1 - meta.value";
        self.execute(sql, &[]).map(drop)
    }

    fn now(&self) -> Option<i64> {
        self.began.now
    }

    fn connection(&self) -> u64 {
        self.began.connection
    }

    fn size(&mut self) -> Result<u64> {
        let size = self.one(self.database.size(), &[], |row| unstored(number(row, 0)?))?;
        Ok(size.unwrap_or_default())
    }

    fn identity(&mut self) -> Result<Option<String>> {
        let sql = "SELECT identity FROM store";
        self.one(sql, &[], |row| Ok(text(row, 0)?.to_owned()))
    }

    fn set_identity(&mut self, identity: &str) -> Result<()> {
        // Of nodes that start at the same time the first one's stays.
        let sql =
            "INSERT INTO store (number, identity) VALUES (1, $1) ON CONFLICT (number) DO NOTHING";
        self.execute(sql, &values![identity]).map(drop)
    }

    fn add_start(&mut self, node: &str, at: i64) -> Result<u64> {
        // The clock's row is locked for its own sake and for this: nodes that start together take turns.
        self.waiting_clock()?;
        let last = "SELECT coalesce(max(incarnation), 0) FROM starts";
        let last = self.one(last, &[], |row| number(row, 0))?;
        let next = last.unwrap_or_default() + 1;
        let sql = "INSERT INTO starts (incarnation, node, at) VALUES ($1, $2, $3)";
        self.execute(sql, &values![next, node, at])?;
        unstored(next)
    }

    fn starts(&mut self, from: u64) -> Result<Vec<StartRow>> {
        let sql = "SELECT incarnation, node, at FROM starts WHERE incarnation >= $1
            ORDER BY incarnation";
        self.rows(sql, &values![bound(from)], read_start)
    }

    fn waiting_clock(&mut self) -> Result<WaitingClock> {
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

    fn set_waiting_clock(&mut self, clock: &WaitingClock) -> Result<()> {
        let sql = "UPDATE waiting_clock SET waited = $1, read_at = $2 WHERE number = 1";
        self.execute(sql, &values![clock.waited, clock.read_at])
            .map(drop)
    }

    fn experiments(
        &mut self,
        after: Option<&str>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<(ExperimentRow, Progress)>> {
        let Bounds {
            after,
            beyond,
            order,
        } = self.bounds(after, newest_first)?;
        let sql =
            format!("{EXPERIMENTS} WHERE number {beyond} $1 ORDER BY number {order} LIMIT $2");
        self.rows(&sql, &values![after, bound(limit as u64)], read_experiment)
    }

    fn lines(
        &mut self,
        among: Option<&[String]>,
        after: Option<&str>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<ExperimentLine>> {
        let Bounds {
            after,
            beyond,
            order,
        } = self.bounds(after, newest_first)?;
        let lines = if let Some(ids) = among {
            let sql = format!("{LINES} WHERE number {beyond} $1 AND id = $2");
            let ids: Vec<_> = ids.iter().map(SqlValue::from).collect();
            let mut lines = self.rows_each(&sql, after, &ids, read_line)?;
            lines.sort_by_key(|(number, _)| if newest_first { -number } else { *number });
            lines
        } else {
            let sql = format!("{LINES} WHERE number {beyond} $1 ORDER BY number {order} LIMIT $2");
            self.rows(&sql, &values![after, bound(limit as u64)], read_line)?
        };
        Ok(lines
            .into_iter()
            .map(|(_, line)| line)
            .take(limit)
            .collect())
    }

    fn experiments_of_key(&mut self, key: Key) -> Result<Vec<(ExperimentRow, Progress)>> {
        let sql = format!("{EXPERIMENTS} WHERE key = $1 ORDER BY number");
        self.rows(&sql, &values![&key.to_hex()], read_experiment)
    }

    fn experiment(&mut self, id: &str) -> Result<Option<(ExperimentRow, Progress)>> {
        let sql = format!("{EXPERIMENTS} WHERE id = $1");
        Ok(self.rows(&sql, &values![id], read_experiment)?.pop())
    }

    fn lock(&mut self, id: &str) -> Result<Option<Locked>> {
        let sql = format!(
            "SELECT progress, due, observed FROM progress WHERE experiment = $1{}",
            self.database.for_update()
        );
        Ok(self.page(id, &sql, &[], read_locked)?.pop())
    }

    fn observed(&mut self, id: &str) -> Result<Option<String>> {
        let sql = "SELECT observed FROM progress WHERE experiment = $1";
        let read = |row: &dyn Columns| Ok(row.text(0)?.map(String::from));
        Ok(self.page(id, sql, &[], read)?.pop().flatten())
    }

    fn due(&mut self, waited: i64, limit: usize) -> Result<Vec<String>> {
        let sql = "SELECT id FROM progress JOIN experiments ON number = experiment
            WHERE due <= $1 ORDER BY due LIMIT $2";
        let values = values![waited, bound(limit as u64)];
        self.rows(sql, &values, |row| Ok(text(row, 0)?.to_owned()))
    }

    fn epochs(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<EpochRow>> {
        let sql =
            "SELECT epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash, leases_hash,
                journal_end, journal FROM epochs
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
        let sql = format!("{LEASES_READ} AND request_key = $2");
        let request_keys: Vec<_> = request_keys
            .iter()
            .map(|request_key| SqlValue::from(*request_key))
            .collect();
        self.rows_each(&sql, number, &request_keys, read_lease)
    }

    fn leases(
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
            "{LEASES_READ} AND epoch = $2 AND overtime = $3 AND first + rounds > $4
                AND first >= coalesce((SELECT max(first) FROM leases
                    WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND first <= $4), 0)
                ORDER BY first LIMIT $5"
        );
        self.page(
            id,
            &sql,
            &values![
                bound(epoch),
                i64::from(kind.number()),
                bound(from),
                bound(limit as u64)
            ],
            read_lease,
        )
    }

    fn outcomes(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<OutcomeRow>> {
        let sql = format!("{OUTCOMES_READ} AND round >= $2 ORDER BY round LIMIT $3");
        self.page(
            id,
            &sql,
            &values![bound(from), bound(limit as u64)],
            read_outcome,
        )
    }

    fn uncounted(
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
                bound(epoch),
                i64::from(kind.number()),
                bound(from),
                bound(limit as u64)
            ],
            read_uncounted,
        )
    }

    fn events(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Event>> {
        let sql = format!("{EVENTS_READ} AND number >= $2 ORDER BY number LIMIT $3");
        self.page(
            id,
            &sql,
            &values![bound(from), bound(limit as u64)],
            read_event,
        )
    }

    fn journal(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<JournalRow>> {
        let order = "AND position >= $2 ORDER BY position LIMIT $3";
        let values = values![bound(from), bound(limit as u64)];
        let outcomes = format!("{UNCOUNTED_READ} {order}");
        let outcomes = self.page(id, &outcomes, &values, read_uncounted)?;
        let events = self.page(id, &format!("{EVENTS_READ} {order}"), &values, read_event)?;
        let outcomes = outcomes.into_iter().map(JournalRow::Uncounted);
        let mut rows: Vec<_> = outcomes
            .chain(events.into_iter().map(JournalRow::Event))
            .collect();
        rows.sort_by_key(JournalRow::position);
        // Each table gave as many as were asked for: those beyond may have others between them.
        rows.truncate(limit);
        Ok(rows)
    }

    fn row_counts(&mut self, id: &str) -> Result<RowCounts> {
        let count = |table| format!("(SELECT count(*) FROM {table} WHERE experiment = $1)");
        let tables = ["epochs", "leases", "outcomes", "asides", "events"];
        let sql = format!("SELECT {}", tables.map(count).join(", "));
        let counts = self.page(id, &sql, &[], read_row_counts)?.pop();
        Ok(counts.unwrap_or_default())
    }

    fn foreign(&mut self) -> Result<Vec<String>> {
        let mut found = self.database.foreign()?;
        let strays = self.rows(&foreign::strays(), &[], |row| Ok(text(row, 0)?.to_owned()))?;
        found.extend(strays);
        Ok(found)
    }

    fn create(
        &mut self,
        experiment: &ExperimentRow,
        progress: &Progress,
        opened: &EpochRow,
    ) -> Result<bool> {
        self.write(|store| {
            if !store.add_experiment(experiment)? {
                return Ok(false);
            }
            let number = store
                .number(&experiment.id)?
                .context("the experiment that was added is not there")?;
            let sql = "INSERT INTO progress (experiment, progress) VALUES ($1, $2)";
            store
                .database
                .execute(sql, &values![number, &codec::progress(progress)?])?;
            store.add_epoch(number, opened)?;
            Ok(true)
        })
    }

    fn set_progress(&mut self, id: &str, progress: &Progress) -> Result<String> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET progress = $1 WHERE experiment = $2";
            let text = codec::progress(progress)?;
            let values = values![&text, number];
            store.database.execute_by_commit(sql, &values)?;
            Ok(text)
        })
    }

    fn set_observed(&mut self, id: &str, progress: &Progress, observed: &str) -> Result<String> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET progress = $1, observed = $2 WHERE experiment = $3";
            let text = codec::progress(progress)?;
            let values = values![&text, observed, number];
            store.database.execute_by_commit(sql, &values)?;
            Ok(text)
        })
    }

    fn set_due(&mut self, id: &str, due: Option<i64>) -> Result<()> {
        self.write_to(id, |store, number| {
            let sql = "UPDATE progress SET due = $1 WHERE experiment = $2";
            store.database.execute_by_commit(sql, &values![due, number])
        })
    }

    fn add_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<()> {
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

    fn add_new_leases(&mut self, id: &str, leases: &[&Lease]) -> Result<bool> {
        self.write_to(id, |store, number| {
            let rows = all_values(number, leases)?;
            let added = store.database.insert(&LEASES, &rows)?;
            if added.iter().all(|added| *added) {
                return Ok(true);
            }
            // One by one, and not back to a savepoint: every group would pay for that, and few have to go back.
            let sql = "DELETE FROM leases
                WHERE experiment = $1 AND epoch = $2 AND overtime = $3 AND first = $4";
            for (row, _) in rows.iter().zip(added).filter(|(_, added)| *added) {
                store.database.execute(sql, &row[..LEASES.keys])?;
            }
            Ok(false)
        })
    }

    fn add_outcomes(
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

    fn close_epoch(
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
            let epoch = stored(closed.epoch)?;
            let values = values![
                &closed.record,
                closed.closed_at,
                &closed.rounds_hash,
                &closed.hash,
                &closed.leases_hash,
                closed.journal_end.map(stored).transpose()?,
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

    fn add_event(&mut self, id: &str, event: &Event) -> Result<()> {
        self.write_to(id, |store, experiment| {
            // The next number without a gap: a sequence of the database would skip one when a transaction fails, and an audit
            // could not tell that from a row that was removed.
            let sql = "SELECT coalesce(max(number) + 1, 0) FROM events WHERE experiment = $1";
            let next = store
                .rows(sql, &values![experiment], |row| number(row, 0))?
                .pop();
            let sql = "INSERT INTO events (experiment, number, at, actor, what, reason, position)
                VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let values = values![
                experiment,
                next,
                event.at,
                &event.actor,
                &event.what,
                &event.reason,
                event.position.map(stored).transpose()?
            ];
            store.database.execute(sql, &values).map(drop)
        })
    }

    fn keys(&mut self) -> Result<Vec<ApiKey>> {
        let sql = "SELECT name, role, hash, created_at, revoked_at, experiments, last_used_at
            FROM api_keys ORDER BY name";
        self.rows(sql, &[], read_api_key)
    }

    fn add_key(&mut self, key: &ApiKey) -> Result<bool> {
        // The database decides whether the name is free: two may add it at the same time.
        let sql = format!("{KEYS_WRITE} ON CONFLICT (name) DO NOTHING");
        self.write_key(&sql, key)
    }

    fn set_key(&mut self, key: &ApiKey) -> Result<()> {
        // Without the last use: a server may have noted a later one since the key was read.
        let sql = format!(
            "{KEYS_WRITE} ON CONFLICT (name) DO UPDATE SET role = excluded.role,
                hash = excluded.hash, created_at = excluded.created_at,
                revoked_at = excluded.revoked_at, experiments = excluded.experiments"
        );
        self.write_key(&sql, key).map(drop)
    }

    fn set_key_used(&mut self, name: &str, at: i64) -> Result<()> {
        // Of two nodes the later use stays, whichever writes first.
        let sql = "UPDATE api_keys SET last_used_at = $1
            WHERE name = $2 AND (last_used_at IS NULL OR last_used_at < $1)";
        self.execute(sql, &values![at, name]).map(drop)
    }

    fn actor(&mut self, name: &str) -> Result<u64> {
        // Remembered, as experiments' numbers are: nearly every request has one.
        if let Some(number) = self.actors.get(name) {
            return Ok(*number);
        }
        let sql = "INSERT INTO actors (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
        self.execute(sql, &values![name])?;
        let sql = "SELECT number FROM actors WHERE name = $1";
        let number = self.one(sql, &values![name], |row| unstored(number(row, 0)?))?;
        let number = number.with_context(|| format!("the actor {name:?} is not there"))?;
        self.actors.insert(name.to_owned(), number);
        Ok(number)
    }

    fn actor_name(&mut self, number: u64) -> Result<Option<Arc<str>>> {
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

    fn actors(&mut self) -> Result<BTreeMap<u64, String>> {
        let read = |row: &dyn Columns| Ok((unstored(number(row, 0)?)?, text(row, 1)?.to_owned()));
        let actors = self.rows("SELECT number, name FROM actors", &[], read)?;
        Ok(actors.into_iter().collect())
    }

    fn session(&mut self, hash: &str) -> Result<Option<Session>> {
        let sql = "SELECT hash, key_name, expires_at FROM sessions WHERE hash = $1";
        self.one(sql, &values![hash], read_session)
    }

    fn session_count(&mut self, after: i64) -> Result<u64> {
        let sql = "SELECT count(*) FROM sessions WHERE expires_at > $1";
        let count = self.one(sql, &values![after], |row| unstored(number(row, 0)?))?;
        Ok(count.unwrap_or_default())
    }

    fn add_session(&mut self, session: &Session) -> Result<()> {
        let sql = "INSERT INTO sessions (hash, key_name, expires_at) VALUES ($1, $2, $3)";
        let values = values![&session.hash, &session.key_name, session.expires_at];
        self.execute(sql, &values).map(drop)
    }

    fn end_session(&mut self, hash: &str) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE hash = $1";
        self.execute(sql, &values![hash]).map(drop)
    }

    fn end_sessions(&mut self, expired_at: i64) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE expires_at <= $1";
        self.execute(sql, &values![expired_at]).map(drop)
    }

    fn end_oldest_sessions(&mut self, key_name: &str, kept: usize) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE key_name = $1 AND hash NOT IN
            (SELECT hash FROM sessions WHERE key_name = $1 ORDER BY expires_at DESC LIMIT $2)";
        self.execute(sql, &values![key_name, kept as i64]).map(drop)
    }
}
