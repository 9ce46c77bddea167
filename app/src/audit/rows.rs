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
pub fn check(store: &mut dyn Store, id: &str, auditor: &Auditor) -> Result<Check> {
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
fn observed(store: &mut dyn Store, id: &str, auditor: &Auditor) -> Result<Check> {
    let Some(Replay::Keyed { opening, .. }) = &auditor.replay else {
        return Ok(Ok(()));
    };
    // Nothing is kept before the first request, and of a store of an earlier version until it is served.
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
        let record = chain::record_text(&open.record, auditor.audited.values_version);
        equal(place, "the record", &row.record, &record)?;
        equal(place, "closed_at", &row.closed_at, &None)?;
        equal(place, "the hash of its rounds", &row.rounds_hash, &None)?;
        equal(place, "its hash", &row.hash, &None)?;
    }
    Ok(())
}

/// Rows of rounds that were never decided would be in the way of their outcomes.
fn strays(store: &mut dyn Store, id: &str, auditor: &Auditor) -> Result<Check> {
    let Some(open) = &auditor.open else {
        return Ok(Ok(()));
    };
    // The log ends where decisions end, so it shows nothing of rows beyond. Round 0 is before the first page, too.
    let next_round = auditor.counts.next_round;
    let first = store
        .outcomes(id, 0, 1)?
        .pop()
        .filter(|outcome| outcome.round == 0);
    let after = store.outcomes(id, next_round, 1)?.pop();
    if let Some(outcome) = first.or(after) {
        let place = format!("the outcome of round {}", outcome.round);
        return Ok(Err(differs(
            place,
            "it",
            "there",
            "of a round that was not decided",
        )));
    }
    for (overtime, from) in [(false, next_round), (true, open.next_serial)] {
        if let Some(lease) = store
            .leases(id, open.record.epoch, overtime, from, 1)?
            .pop()
        {
            let place = format!("epoch {}, the request of {}", lease.epoch, lease.first);
            return Ok(Err(differs(
                place,
                "it",
                "there",
                "beyond what was decided",
            )));
        }
    }
    Ok(Ok(()))
}
