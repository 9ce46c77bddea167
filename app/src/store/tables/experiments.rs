//! Experiments: what each is, which never changes.

use anyhow::{Context as _, Result};
use debora::Key;

use super::epochs::EpochRow;
use super::progress::Progress;
use crate::store::Store;
use crate::store::codec::{self, saturate};
use crate::store::database::{Columns, SqlValue, bytes, number, text, values};

const EXPERIMENTS: &str = "SELECT id, spec, key, salt, created_at, values_version, progress
    FROM experiments JOIN progress ON experiment = number";

const LINES: &str = "SELECT number, id, created_at, progress
    FROM experiments JOIN progress ON experiment = number";

/// What an experiment is; never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentRow {
    /// Its name in addresses: lower-case letters, digits and dashes.
    pub id: String,
    /// The spec, as it was given.
    pub spec: String,
    /// The policy's key: secret until the experiment is over.
    pub key: Key,
    /// What the key is hashed with.
    pub salt: [u8; 16],
    /// When it was created.
    pub created_at: i64,
    /// The version of the values that it decides with.
    pub values_version: u32,
}

/// What a list needs of an experiment: all but its spec, which may be a mebibyte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentLine {
    /// Its name in addresses.
    pub id: String,
    /// When it was created.
    pub created_at: i64,
    /// How far it is.
    pub progress: Progress,
}

/// Where a list of experiments begins, and which way it goes.
struct Bounds {
    after: i64,
    beyond: &'static str,
    order: &'static str,
}

impl Store {
    /// Experiments in the order in which they were created, or in the opposite one: those after this one, or from the first.
    pub fn experiments(
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
        self.rows(
            &sql,
            &values![after, saturate(limit as u64)],
            read_experiment,
        )
    }

    /// The same without specs; of some ids alone, if they are given.
    pub fn lines(
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
            self.rows(&sql, &values![after, saturate(limit as u64)], read_line)?
        };
        Ok(lines
            .into_iter()
            .map(|(_, line)| line)
            .take(limit)
            .collect())
    }

    /// The experiments that share a key.
    pub fn experiments_of_key(&mut self, key: Key) -> Result<Vec<(ExperimentRow, Progress)>> {
        let sql = format!("{EXPERIMENTS} WHERE key = $1 ORDER BY number");
        self.rows(&sql, &values![&key.to_hex()], read_experiment)
    }

    /// One experiment.
    pub fn experiment(&mut self, id: &str) -> Result<Option<(ExperimentRow, Progress)>> {
        let sql = format!("{EXPERIMENTS} WHERE id = $1");
        Ok(self.rows(&sql, &values![id], read_experiment)?.pop())
    }

    /// Adds an experiment, with its first epoch. False, and nothing is written, if the id is taken.
    pub fn create(
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
                .execute(sql, &values![number, &codec::encode_progress(progress)?])?;
            store.add_epoch(number, opened)?;
            Ok(true)
        })
    }

    /// False if the id is taken.
    fn add_experiment(&mut self, experiment: &ExperimentRow) -> Result<bool> {
        // Two nodes may create one id at the same time: the database decides, not a look beforehand.
        let sql = "INSERT INTO experiments (id, spec, key, salt, created_at, values_version)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
        let key = experiment.key.to_hex();
        let values = values![
            &experiment.id,
            &experiment.spec,
            &key,
            experiment.salt.as_slice(),
            experiment.created_at,
            i64::from(experiment.values_version)
        ];
        Ok(self.database.execute(sql, &values)? == 1)
    }

    /// The number of an experiment.
    pub(in crate::store) fn number(&mut self, id: &str) -> Result<Option<i64>> {
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
}

// Columns are read by place: the statements name them in this order, and to look each up by name costs every row.
fn read_experiment(row: &dyn Columns) -> Result<(ExperimentRow, Progress)> {
    let experiment = ExperimentRow {
        id: text(row, 0)?.into(),
        spec: text(row, 1)?.into(),
        key: Key::from_hex(text(row, 2)?).context("the store holds an invalid key")?,
        salt: codec::parse_salt(bytes(row, 3)?)?,
        created_at: number(row, 4)?,
        values_version: u32::try_from(number(row, 5)?)
            .context("the store holds an invalid values version")?,
    };
    Ok((experiment, codec::parse_progress(text(row, 6)?)?))
}

fn read_line(row: &dyn Columns) -> Result<(i64, ExperimentLine)> {
    let line = ExperimentLine {
        id: text(row, 1)?.into(),
        created_at: number(row, 2)?,
        progress: codec::parse_progress(text(row, 3)?)?,
    };
    Ok((number(row, 0)?, line))
}
