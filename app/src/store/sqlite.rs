//! A store in one SQLite file: the default.
//!
//! The write-ahead log is synced at every commit (`synchronous = FULL`), so a commit costs one write of the disk however
//! much is in it: that is why requests share one. Readers see the last commit and hold nobody up.

mod opening;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use debora::Key;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use super::codec::{self, bound, stored, unstored};
use super::{ApiKey, Aside, EpochRow, Event, Experiment, Lease, Outcome, Progress, Purpose, Store};

/// A connection to a file.
pub struct Sqlite {
    connection: Connection,
    /// The numbers of experiments seen so far, by their ids.
    numbers: BTreeMap<String, i64>,
    /// How a transaction begins: a writer's with the right to write, which a later change of mind may not get.
    begin: &'static str,
    /// Whether a write of the open transaction failed.
    failed: bool,
    /// Held while a server has the file open.
    _lock: Option<File>,
}

impl Sqlite {
    /// Opens a file.
    pub fn open(path: &Path, purpose: Purpose) -> Result<Self> {
        let (connection, lock) = opening::open(path, purpose)?;
        let begin = if purpose == Purpose::Read { "BEGIN" } else { "BEGIN IMMEDIATE" };
        Ok(Self { connection, numbers: BTreeMap::new(), begin, failed: false, _lock: lock })
    }

    /// The number of an experiment.
    fn number(&mut self, id: &str) -> Result<Option<i64>> {
        if let Some(number) = self.numbers.get(id) {
            return Ok(Some(*number));
        }
        let mut statement = self.connection.prepare_cached("SELECT number FROM experiments WHERE id = ?1")?;
        let number = statement.query_row([id], |row| row.get(0)).optional()?;
        if let Some(number) = number {
            self.numbers.insert(id.to_owned(), number);
        }
        Ok(number)
    }

    /// All rows of a query.
    fn rows<T>(&self, sql: &str, params: impl Params, read: fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    /// Runs a statement, and says how many rows it changed.
    fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// Writes about an experiment, within a transaction that fails as a whole.
    fn write<T>(&mut self, id: &str, write: impl FnOnce(&Self, i64) -> Result<T>) -> Result<T> {
        self.write_any(|store| {
            let number = store.number(id)?.with_context(|| format!("the store has no experiment {id:?}"))?;
            write(store, number)
        })
    }

    /// Writes, within a transaction that fails as a whole.
    fn write_any<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // On a full disk SQLite ends the transaction by itself, and what follows would be written one by one.
        ensure!(!self.connection.is_autocommit(), "no transaction is open; nothing was written");
        let result = write(self);
        self.failed |= result.is_err();
        result
    }

    fn add_epoch(&self, number: i64, row: &EpochRow) -> Result<()> {
        let sql = "INSERT INTO epochs (experiment, epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let EpochRow { epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash } = row;
        self.execute(sql, params![number, stored(*epoch)?, record, snapshot, opened_at, closed_at, rounds_hash, hash])?;
        Ok(())
    }

    fn add_lease(&self, number: i64, lease: &Lease) -> Result<()> {
        let sql = "INSERT INTO leases (experiment, epoch, overtime, first, rounds, actions, asked, request_key, at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let Lease { epoch, overtime, first, actions, asked, request_key, at } = lease;
        let (epoch, first, asked) = (stored(*epoch)?, stored(*first)?, stored(*asked)?);
        let (rounds, actions) = (stored(actions.len() as u64)?, codec::actions(actions)?);
        self.execute(sql, params![number, epoch, overtime, first, rounds, actions, asked, request_key, at])?;
        Ok(())
    }

    fn add_outcome(&self, number: i64, outcome: &Outcome) -> Result<Option<Outcome>> {
        let sql = "INSERT INTO outcomes (experiment, round, feedback, imputed, at)
            VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        let (round, feedback) = (stored(outcome.round)?, codec::feedback(outcome.reward, &outcome.costs));
        if self.execute(sql, params![number, round, feedback, outcome.imputed, outcome.at])? == 1 {
            return Ok(None);
        }
        let sql = "SELECT round, feedback, imputed, at FROM outcomes WHERE experiment = ?1 AND round = ?2";
        Ok(self.rows(sql, params![number, round], read_outcome)?.pop())
    }

    fn add_aside(&self, number: i64, aside: &Aside) -> Result<Option<Aside>> {
        let sql = "INSERT INTO asides (experiment, epoch, overtime, number, feedback, at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
        let Aside { epoch, overtime, number: serial, reward, costs, at } = aside;
        let (epoch, serial) = (stored(*epoch)?, stored(*serial)?);
        if self.execute(sql, params![number, epoch, overtime, serial, codec::feedback(*reward, costs), at])? == 1 {
            return Ok(None);
        }
        let sql = "SELECT epoch, overtime, number, feedback, at FROM asides
            WHERE experiment = ?1 AND epoch = ?2 AND overtime = ?3 AND number = ?4";
        Ok(self.rows(sql, params![number, epoch, overtime, serial], read_aside)?.pop())
    }
}

impl Store for Sqlite {
    fn begin(&mut self) -> Result<()> {
        self.failed = false;
        self.connection.prepare_cached(self.begin)?.execute([]).context("cannot begin to write to the store")?;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if self.failed {
            self.rollback();
            bail!("a write of this transaction failed, so nothing of it was kept");
        }
        let committed = self.execute("COMMIT", []);
        if committed.is_err() {
            self.rollback();
        }
        committed.map(drop).context("cannot commit to the store; nothing of the transaction was kept")
    }

    fn rollback(&mut self) {
        self.failed = false;
        // A number that was given within the transaction may be given again.
        self.numbers.clear();
        if !self.connection.is_autocommit() {
            // It fails only if SQLite has rolled back by itself.
            let _ = self.execute("ROLLBACK", []);
        }
    }

    fn experiments(&mut self) -> Result<Vec<(Experiment, Progress)>> {
        let sql = "SELECT id, spec, key, salt, created_at, progress
            FROM experiments JOIN progress ON experiment = number ORDER BY number";
        self.rows(sql, [], read_experiment)
    }

    fn experiment(&mut self, id: &str) -> Result<Option<(Experiment, Progress)>> {
        let sql = "SELECT id, spec, key, salt, created_at, progress
            FROM experiments JOIN progress ON experiment = number WHERE id = ?1";
        Ok(self.rows(sql, [id], read_experiment)?.pop())
    }

    fn lock(&mut self, id: &str) -> Result<Option<Progress>> {
        // A writer's transaction has the whole file to itself.
        let Some(number) = self.number(id)? else { return Ok(None) };
        let sql = "SELECT progress FROM progress WHERE experiment = ?1";
        Ok(self.rows(sql, [number], |row| codec::parse_progress(row.get_ref(0)?.as_str()?))?.pop())
    }

    fn epochs(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<EpochRow>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash FROM epochs
            WHERE experiment = ?1 AND epoch >= ?2 ORDER BY epoch LIMIT ?3";
        self.rows(sql, params![number, bound(from), bound(limit as u64)], read_epoch)
    }

    fn leases_of(&mut self, id: &str, request_keys: &[&str]) -> Result<Vec<Lease>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT epoch, overtime, first, rounds, actions, asked, request_key, at FROM leases
            WHERE experiment = ?1 AND request_key = ?2";
        let mut found = Vec::new();
        for request_key in request_keys {
            found.extend(self.rows(sql, params![number, request_key], read_lease)?);
        }
        Ok(found)
    }

    fn leases(&mut self, id: &str, epoch: u64, overtime: bool, from: u64, limit: usize) -> Result<Vec<Lease>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        // Leases do not overlap, so only the last that starts at or before `from` may also end after it.
        let sql = "SELECT epoch, overtime, first, rounds, actions, asked, request_key, at FROM leases
            WHERE experiment = ?1 AND epoch = ?2 AND overtime = ?3 AND first + rounds > ?4 AND first >= coalesce((
                SELECT max(first) FROM leases WHERE experiment = ?1 AND epoch = ?2 AND overtime = ?3 AND first <= ?4
            ), 0) ORDER BY first LIMIT ?5";
        self.rows(sql, params![number, bound(epoch), overtime, bound(from), bound(limit as u64)], read_lease)
    }

    fn outcomes(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Outcome>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT round, feedback, imputed, at FROM outcomes
            WHERE experiment = ?1 AND round >= ?2 ORDER BY round LIMIT ?3";
        self.rows(sql, params![number, bound(from), bound(limit as u64)], read_outcome)
    }

    fn asides(&mut self, id: &str, epoch: u64, overtime: bool, from: u64, limit: usize) -> Result<Vec<Aside>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT epoch, overtime, number, feedback, at FROM asides
            WHERE experiment = ?1 AND epoch = ?2 AND overtime = ?3 AND number >= ?4 ORDER BY number LIMIT ?5";
        self.rows(sql, params![number, bound(epoch), overtime, bound(from), bound(limit as u64)], read_aside)
    }

    fn events(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Event>> {
        let Some(number) = self.number(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT at, actor, what FROM events
            WHERE experiment = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
        self.rows(sql, params![number, bound(from), bound(limit as u64)], |row| {
            Ok(Event { at: row.get(0)?, actor: row.get(1)?, what: row.get(2)? })
        })
    }

    fn create(&mut self, experiment: &Experiment, progress: &Progress, opened: &EpochRow) -> Result<bool> {
        self.write_any(|store| {
            let sql = "INSERT INTO experiments (id, spec, key, salt, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (id) DO NOTHING";
            let Experiment { id, spec, key, salt, created_at } = experiment;
            if store.execute(sql, params![id, spec, key.to_hex(), salt, created_at])? == 0 {
                return Ok(false);
            }
            let number = store.connection.last_insert_rowid();
            let sql = "INSERT INTO progress (experiment, progress) VALUES (?1, ?2)";
            store.execute(sql, params![number, codec::progress(progress)?])?;
            store.add_epoch(number, opened)?;
            Ok(true)
        })
    }

    fn set_progress(&mut self, id: &str, progress: &Progress) -> Result<()> {
        self.write(id, |store, number| {
            let sql = "UPDATE progress SET progress = ?2 WHERE experiment = ?1";
            store.execute(sql, params![number, codec::progress(progress)?]).map(drop)
        })
    }

    fn add_leases(&mut self, id: &str, leases: &[Lease]) -> Result<()> {
        self.write(id, |store, number| leases.iter().try_for_each(|lease| store.add_lease(number, lease)))
    }

    fn add_outcomes(&mut self, id: &str, outcomes: &[Outcome]) -> Result<Vec<Option<Outcome>>> {
        self.write(id, |store, number| outcomes.iter().map(|outcome| store.add_outcome(number, outcome)).collect())
    }

    fn add_asides(&mut self, id: &str, asides: &[Aside]) -> Result<Vec<Option<Aside>>> {
        self.write(id, |store, number| asides.iter().map(|aside| store.add_aside(number, aside)).collect())
    }

    fn close_epoch(&mut self, id: &str, closed: &EpochRow, opened: Option<&EpochRow>) -> Result<()> {
        self.write(id, |store, number| {
            let sql = "UPDATE epochs SET record = ?3, closed_at = ?4, rounds_hash = ?5, hash = ?6,
                snapshot = CASE WHEN ?7 THEN NULL ELSE snapshot END
                WHERE experiment = ?1 AND epoch = ?2 AND closed_at IS NULL";
            let EpochRow { epoch, record, closed_at, rounds_hash, hash, .. } = closed;
            let values = params![number, stored(*epoch)?, record, closed_at, rounds_hash, hash, opened.is_some()];
            ensure!(store.execute(sql, values)? == 1, "epoch {epoch} of experiment {id:?} is not open");
            opened.map_or(Ok(()), |opened| store.add_epoch(number, opened))
        })
    }

    fn add_event(&mut self, id: &str, event: &Event) -> Result<()> {
        self.write(id, |store, number| {
            let sql = "INSERT INTO events (experiment, number, at, actor, what)
                SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4 FROM events WHERE experiment = ?1";
            store.execute(sql, params![number, event.at, event.actor, event.what]).map(drop)
        })
    }

    fn keys(&mut self) -> Result<Vec<ApiKey>> {
        let sql = "SELECT name, role, hash, created_at, revoked_at FROM api_keys ORDER BY name";
        self.rows(sql, [], |row| {
            let role = codec::parse_role(row.get_ref(1)?.as_str()?)?;
            Ok(ApiKey { name: row.get(0)?, role, hash: row.get(2)?, created_at: row.get(3)?, revoked_at: row.get(4)? })
        })
    }

    fn set_key(&mut self, key: &ApiKey) -> Result<()> {
        self.write_any(|store| {
            let sql = "INSERT INTO api_keys (name, role, hash, created_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (name) DO UPDATE SET role = excluded.role, hash = excluded.hash,
                    created_at = excluded.created_at, revoked_at = excluded.revoked_at";
            let ApiKey { name, role, hash, created_at, revoked_at } = key;
            store.execute(sql, params![name, codec::role(*role), hash, created_at, revoked_at]).map(drop)
        })
    }
}

fn read_experiment(row: &Row<'_>) -> Result<(Experiment, Progress)> {
    let experiment = Experiment {
        id: row.get(0)?,
        spec: row.get(1)?,
        key: Key::from_hex(row.get_ref(2)?.as_str()?)?,
        salt: codec::parse_salt(row.get_ref(3)?.as_blob()?)?,
        created_at: row.get(4)?,
    };
    Ok((experiment, codec::parse_progress(row.get_ref(5)?.as_str()?)?))
}

fn read_epoch(row: &Row<'_>) -> Result<EpochRow> {
    Ok(EpochRow {
        epoch: unstored(row.get(0)?)?,
        record: row.get(1)?,
        snapshot: row.get(2)?,
        opened_at: row.get(3)?,
        closed_at: row.get(4)?,
        rounds_hash: row.get(5)?,
        hash: row.get(6)?,
    })
}

fn read_lease(row: &Row<'_>) -> Result<Lease> {
    Ok(Lease {
        epoch: unstored(row.get(0)?)?,
        overtime: row.get(1)?,
        first: unstored(row.get(2)?)?,
        actions: codec::parse_actions(row.get_ref(4)?.as_blob()?, row.get(3)?)?,
        asked: unstored(row.get(5)?)?,
        request_key: row.get(6)?,
        at: row.get(7)?,
    })
}

fn read_outcome(row: &Row<'_>) -> Result<Outcome> {
    let (reward, costs) = codec::parse_feedback(row.get_ref(1)?.as_blob()?)?;
    Ok(Outcome { round: unstored(row.get(0)?)?, reward, costs, imputed: row.get(2)?, at: row.get(3)? })
}

fn read_aside(row: &Row<'_>) -> Result<Aside> {
    let (reward, costs) = codec::parse_feedback(row.get_ref(3)?.as_blob()?)?;
    let (epoch, number) = (unstored(row.get(0)?)?, unstored(row.get(2)?)?);
    Ok(Aside { epoch, overtime: row.get(1)?, number, reward, costs, at: row.get(4)? })
}
