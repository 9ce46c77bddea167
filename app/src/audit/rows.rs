//! What a store has beside the log: snapshots, and rows that no log shows.

use anyhow::Result;

use super::replay::Replay;
use super::{Auditor, Check, differs, equal};
use crate::log::chain;
use crate::log::observed::Observed;
use crate::store::{EpochRow, Store};

/// Epochs read at once.
const CHUNK: usize = 64;

/// Checks an experiment whose log has been found equal.
pub fn check(store: &mut Store, id: &str, auditor: &Auditor) -> Result<Check> {
    let mut from = 0;
    loop {
        let rows = store.epochs(id, from, CHUNK)?;
        for row in &rows {
            if let Err(difference) = check_epoch(row, auditor) {
                return Ok(Err(difference));
            }
        }
        match rows.last() {
            // By the number, not by how many: a row may be missing, or one too many.
            Some(row) => from = row.epoch + 1,
            None => break,
        }
    }
    let strays = strays(store, id, auditor)?;
    if strays.is_err() {
        return Ok(strays);
    }
    observed(store, id, auditor)
}

/// The sums that are kept beside the progress, which people look at.
fn observed(store: &mut Store, id: &str, auditor: &Auditor) -> Result<Check> {
    let Some(Replay::Keyed { opening, .. }) = &auditor.replay else {
        return Ok(Ok(()));
    };
    // Nothing is kept before the first request.
    let (Some(text), Some((_, progress))) = (store.observed(id)?, store.experiment(id)?) else {
        return Ok(Ok(()));
    };
    let stored = Observed::parse(&text, opening.problem())?;
    let recomputed = Observed::recomputed(&stored, store, id, &progress, opening)?;
    let place = || "the observed sums".to_owned();
    // As text: a field that nobody knows, or another spelling of a number, is a change too.
    Ok(equal(place, "what was told", &text, &recomputed.text()?))
}

fn check_epoch(row: &EpochRow, auditor: &Auditor) -> Check {
    let place = || format!("the row of epoch {}", row.epoch);
    let (Some(open), Some(Replay::Keyed { opening, .. })) = (&auditor.open, &auditor.replay) else {
        return Ok(());
    };
    let last = open.record.epoch;
    if row.epoch > last {
        return Err(differs(
            place(),
            "the epoch",
            "there",
            format_args!("not there, after {last}"),
        ));
    }
    // A server continues from the snapshot, not from the log: a changed one would steer all decisions to come.
    // What a snapshot holds is secret, and too long to be shown.
    let snapshot = (row.epoch == last).then(|| opening.to_bytes());
    if row.snapshot != snapshot {
        let length = |bytes: &Option<Vec<u8>>| {
            bytes
                .as_ref()
                .map_or("none".into(), |bytes| format!("{} bytes", bytes.len()))
        };
        let recomputed = format!("other ones ({})", length(&snapshot));
        return Err(differs(
            place(),
            "the snapshot",
            length(&row.snapshot),
            recomputed,
        ));
    }
    if row.epoch == last && !open.closed {
        let record = chain::record_text(&open.record);
        equal(place, "the record", &row.record, &record)?;
        equal(place, "closed_at", &row.closed_at, &None)?;
        equal(place, "the hash of its rounds", &row.rounds_hash, &None)?;
        equal(place, "its hash", &row.hash, &None)?;
        equal(place, "the hash of its requests", &row.leases_hash, &None)?;
        equal(place, "journal_end", &row.journal_end, &None)?;
        equal(place, "the journal", &row.journal, &None)?;
    }
    Ok(())
}

/// Rows that no line shows: beyond what was decided they would be in the way of what comes, and anywhere they hide something.
fn strays(store: &mut Store, id: &str, auditor: &Auditor) -> Result<Check> {
    let found = store.row_counts(id)?;
    let shown = &auditor.counts.rows;
    let tables = [
        ("epochs", found.epochs, shown.epochs),
        ("leases", found.leases, shown.leases),
        ("outcomes", found.outcomes, shown.outcomes),
        ("uncounted", found.uncounted, shown.uncounted),
        ("events", found.events, shown.events),
    ];
    for (table, found, shown) in tables {
        let place = || format!("the table {table}");
        if let Err(difference) = equal(place, "the number of rows", &found, &shown) {
            return Ok(Err(difference));
        }
    }
    // Numbered from 0 without a gap, as a server numbers the next by them: none is beyond their number.
    if let Some(event) = store.events(id, shown.events, 1)?.pop() {
        let place = "the table events";
        return Ok(Err(differs(place, "a number", "too large", event.what)));
    }
    // A trigger or a view could show a server something else than an audit, and a column could hold what no line has.
    let hidden = store.foreign()?;
    Ok(match hidden.first() {
        Some(hidden) => Err(differs("the store", hidden, "there", "not there")),
        None => Ok(()),
    })
}
