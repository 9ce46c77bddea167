//! Rows as their tables hold them: which columns, in which order.

use anyhow::{Context as _, Result, ensure};
use debora::Key;

use super::codec::{self, stored, unstored};
use super::database::{Columns, SqlTable, SqlValue, values};
use super::{
    ApiKey, DecisionKind, EpochRow, Event, ExperimentLine, ExperimentRow, Lease, Locked,
    OutcomeRow, Progress, RowCounts, Session, StartRow, UncountedOutcome,
};

// Columns of the primary key come first, since what an insert says of each row is said by its key.
pub const EPOCHS: SqlTable = SqlTable {
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
pub const LEASES: SqlTable = SqlTable {
    name: "leases",
    columns: &[
        "experiment",
        "epoch",
        "overtime",
        "first",
        "rounds",
        "actions",
        "asked",
        "request_key",
        "at",
        "waited",
        "actor",
    ],
    keys: 4,
};
pub const OUTCOMES: SqlTable = SqlTable {
    name: "outcomes",
    columns: &["experiment", "round", "feedback", "imputed", "at", "actor"],
    keys: 2,
};
pub const UNCOUNTED: SqlTable = SqlTable {
    // A name of the first schema: to rename it would be a migration that changes nothing.
    name: "asides",
    columns: &[
        "experiment",
        "epoch",
        "overtime",
        "number",
        "feedback",
        "at",
        "actor",
        "position",
    ],
    keys: 4,
};

pub fn epoch_values(number: i64, row: &EpochRow) -> Result<Vec<SqlValue<'_>>> {
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
        stored(*epoch)?,
        record,
        snapshot,
        *opened_at,
        *closed_at,
        rounds_hash,
        hash,
        leases_hash,
        journal_end.map(stored).transpose()?,
        journal
    ]
    .into())
}

fn lease_values(number: i64, lease: &Lease) -> Result<Vec<SqlValue<'_>>> {
    let Lease {
        epoch,
        kind,
        first,
        actions,
        asked,
        request_key,
        at,
        waited,
        actor,
    } = lease;
    Ok(values![
        number,
        stored(*epoch)?,
        i64::from(kind.number()),
        stored(*first)?,
        // Beside the actions, whose bytes the database cannot count: the reach of a lease is looked for in SQL.
        stored(actions.len() as u64)?,
        codec::actions(actions)?,
        stored(*asked)?,
        request_key,
        *at,
        *waited,
        stored(*actor)?
    ]
    .into())
}

/// The rows of some leases.
pub fn all_values<'a>(number: i64, leases: &[&'a Lease]) -> Result<Vec<Vec<SqlValue<'a>>>> {
    leases
        .iter()
        .map(|lease| lease_values(number, lease))
        .collect()
}

pub fn outcome_values(number: i64, outcome: &OutcomeRow) -> Result<Vec<SqlValue<'_>>> {
    let OutcomeRow {
        round,
        reward,
        costs,
        imputed,
        at,
        actor,
    } = outcome;
    Ok(values![
        number,
        stored(*round)?,
        codec::feedback(*reward, costs),
        *imputed,
        *at,
        stored(*actor)?
    ]
    .into())
}

pub fn uncounted_values(experiment: i64, outcome: &UncountedOutcome) -> Result<Vec<SqlValue<'_>>> {
    let UncountedOutcome {
        epoch,
        kind,
        number,
        reward,
        costs,
        at,
        actor,
        position,
    } = outcome;
    Ok(values![
        experiment,
        stored(*epoch)?,
        i64::from(kind.number()),
        stored(*number)?,
        codec::feedback(*reward, costs),
        *at,
        stored(*actor)?,
        position.map(stored).transpose()?
    ]
    .into())
}

pub fn number(row: &dyn Columns, column: usize) -> Result<i64> {
    row.number(column)?
        .context("the store lacks a number that must be there")
}

pub fn text(row: &dyn Columns, column: usize) -> Result<&str> {
    row.text(column)?
        .context("the store holds no text where one must be")
}

fn bytes(row: &dyn Columns, column: usize) -> Result<&[u8]> {
    row.bytes(column)?
        .context("the store holds no bytes where some must be")
}

// Columns are read by place: the statements name them in this order, and to look each up by name costs every row.
pub fn read_experiment(row: &dyn Columns) -> Result<(ExperimentRow, Progress)> {
    let experiment = ExperimentRow {
        id: text(row, 0)?.into(),
        spec: text(row, 1)?.into(),
        key: Key::from_hex(text(row, 2)?).context("the store holds an invalid key")?,
        salt: codec::parse_salt(bytes(row, 3)?)?,
        created_at: number(row, 4)?,
        values_version: u32::try_from(number(row, 5)?)
            .context("the store holds an invalid values version")?,
        rule: u32::try_from(number(row, 6)?)
            .ok()
            .filter(|rule| (1..=2).contains(rule))
            .context("the store holds an experiment hashed by neither rule 1 nor rule 2")?,
    };
    Ok((experiment, codec::parse_progress(text(row, 7)?)?))
}

pub fn read_line(row: &dyn Columns) -> Result<(i64, ExperimentLine)> {
    let line = ExperimentLine {
        id: text(row, 1)?.into(),
        created_at: number(row, 2)?,
        progress: codec::parse_progress(text(row, 3)?)?,
    };
    Ok((number(row, 0)?, line))
}

pub fn read_epoch(row: &dyn Columns) -> Result<EpochRow> {
    Ok(EpochRow {
        epoch: unstored(number(row, 0)?)?,
        record: text(row, 1)?.into(),
        snapshot: row.bytes(2)?.map(Vec::from),
        opened_at: number(row, 3)?,
        closed_at: row.number(4)?,
        rounds_hash: row.text(5)?.map(String::from),
        hash: row.text(6)?.map(String::from),
        leases_hash: row.text(7)?.map(String::from),
        journal_end: row.number(8)?.map(unstored).transpose()?,
        journal: row.text(9)?.map(String::from),
    })
}

pub fn read_lease(row: &dyn Columns) -> Result<Lease> {
    Ok(Lease {
        epoch: unstored(number(row, 0)?)?,
        kind: codec::kind(number(row, 1)?)?,
        first: unstored(number(row, 2)?)?,
        actions: codec::parse_actions(bytes(row, 4)?, number(row, 3)?)?,
        asked: unstored(number(row, 5)?)?,
        request_key: row.text(6)?.map(String::from),
        at: number(row, 7)?,
        waited: number(row, 8)?,
        actor: unstored(number(row, 9)?)?,
    })
}

pub fn read_outcome(row: &dyn Columns) -> Result<OutcomeRow> {
    let (reward, costs) = codec::parse_feedback(bytes(row, 1)?)?;
    Ok(OutcomeRow {
        round: unstored(number(row, 0)?)?,
        reward,
        costs,
        imputed: codec::truth(number(row, 2)?)?,
        at: number(row, 3)?,
        actor: unstored(number(row, 4)?)?,
    })
}

pub fn read_uncounted(row: &dyn Columns) -> Result<UncountedOutcome> {
    let (reward, costs) = codec::parse_feedback(bytes(row, 3)?)?;
    let (epoch, kind) = (unstored(number(row, 0)?)?, codec::kind(number(row, 1)?)?);
    // No line shows it, so another number would be a change that nobody sees.
    ensure!(
        kind != DecisionKind::Round || epoch == 0,
        "the store holds a late outcome under epoch {epoch}, where only 0 can be"
    );
    Ok(UncountedOutcome {
        epoch,
        kind,
        number: unstored(number(row, 2)?)?,
        reward,
        costs,
        at: number(row, 4)?,
        actor: unstored(number(row, 5)?)?,
        position: row.number(6)?.map(unstored).transpose()?,
    })
}

pub fn read_event(row: &dyn Columns) -> Result<Event> {
    Ok(Event {
        at: number(row, 0)?,
        actor: text(row, 1)?.into(),
        what: text(row, 2)?.into(),
        reason: row.text(3)?.map(String::from),
        position: row.number(4)?.map(unstored).transpose()?,
    })
}

pub fn read_row_counts(row: &dyn Columns) -> Result<RowCounts> {
    Ok(RowCounts {
        epochs: unstored(number(row, 0)?)?,
        leases: unstored(number(row, 1)?)?,
        outcomes: unstored(number(row, 2)?)?,
        uncounted: unstored(number(row, 3)?)?,
        events: unstored(number(row, 4)?)?,
    })
}

pub fn read_api_key(row: &dyn Columns) -> Result<ApiKey> {
    Ok(ApiKey {
        name: text(row, 0)?.into(),
        role: codec::parse_role(text(row, 1)?)?,
        hash: text(row, 2)?.into(),
        created_at: number(row, 3)?,
        revoked_at: row.number(4)?,
        experiments: row.text(5)?.map(codec::parse_ids),
        last_used_at: row.number(6)?,
    })
}

pub fn read_session(row: &dyn Columns) -> Result<Session> {
    Ok(Session {
        hash: text(row, 0)?.into(),
        key_name: text(row, 1)?.into(),
        expires_at: number(row, 2)?,
    })
}

pub fn read_start(row: &dyn Columns) -> Result<StartRow> {
    Ok(StartRow {
        incarnation: unstored(number(row, 0)?)?,
        node: text(row, 1)?.into(),
        at: number(row, 2)?,
    })
}

pub fn read_locked(row: &dyn Columns) -> Result<Locked> {
    Ok(Locked {
        progress: text(row, 0)?.into(),
        due: row.number(1)?,
        observed: row.text(2)?.map(String::from),
    })
}
