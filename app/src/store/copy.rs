//! A copy of any store into another, row by row, as one reader's transaction sees it.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::sqlite::copying::{self, Held};
use super::{DecisionKind, EpochRow, ExperimentRow, Lease, Location, Progress, Purpose, Store};

/// Rows read at a time.
const PAGE: usize = 10_000;

/// Copies a store into a file that is not there yet, while it is served, and checks the copy.
pub fn to_file(location: &Location, to: &Path) -> Result<Held> {
    match location {
        Location::Sqlite(from) => copying::copy(from, to)?,
        // Row by row, since a backup is a file that `debora serve` can open, whatever the store was.
        Location::Postgres(_) => {
            copy(&mut location.open(Purpose::Read)?, &mut copying::empty(to)?)?
        }
    }
    copying::check(to)
}

/// Copies everything into a store that is empty.
pub fn copy(from: &mut Store, to: &mut Store) -> Result<()> {
    // One transaction each: the copy is of one moment, though it may take minutes, and whole or not there at all.
    from.begin()?;
    to.begin()?;
    copy_store(from, to)?;
    let actors = copy_actors(from, to)?;
    for (experiment, progress) in from.experiments(None, false, usize::MAX)? {
        copy_experiment(from, to, &experiment, &progress, &actors)?;
    }
    for key in from.keys()? {
        to.set_key(&key)?;
    }
    copy_webhooks(from, to)?;
    from.rollback();
    to.commit()
}

/// What the store says of itself. A copy is the same store, as it was at this moment; sessions are not taken along, as their
/// browsers know another address.
fn copy_store(from: &mut Store, to: &mut Store) -> Result<()> {
    if let Some(identity) = from.identity()? {
        to.set_identity(&identity)?;
    }
    for start in from.starts(0)? {
        to.add_start(&start.node, start.at)?;
    }
    to.set_waiting_clock(&from.waiting_clock()?)
}

/// Webhooks, and what waits to be sent to them; how far each experiment was looked through comes with the experiment.
fn copy_webhooks(from: &mut Store, to: &mut Store) -> Result<()> {
    for webhook in from.webhooks()? {
        to.add_webhook(&webhook)?;
        for message in from.messages(&webhook.name, i64::MAX, i64::MAX, usize::MAX)? {
            to.add_message(&message)?;
        }
    }
    Ok(())
}

/// Numbers of actors in one store, by those in the other: PostgreSQL leaves gaps between them.
type Actors = Vec<(u64, u64)>;

fn copy_actors(from: &mut Store, to: &mut Store) -> Result<Actors> {
    // In the order of their numbers, by which they are searched for.
    let mut actors = Actors::from([(0, 0)]);
    for (number, name) in from.actors()? {
        actors.push((number, to.actor(&name)?));
    }
    Ok(actors)
}

/// Numbers actors as the other store does.
fn renumber<'a>(rows: impl Iterator<Item = &'a mut u64>, actors: &Actors) -> Result<()> {
    for actor in rows {
        let place = actors.binary_search_by_key(actor, |(number, _)| *number);
        let place = place
            .ok()
            .with_context(|| format!("the store has no actor {actor}"))?;
        *actor = actors[place].1;
    }
    Ok(())
}

fn copy_experiment(
    from: &mut Store,
    to: &mut Store,
    experiment: &ExperimentRow,
    progress: &Progress,
    actors: &Actors,
) -> Result<()> {
    let id = &experiment.id;
    copy_epochs(from, to, experiment, progress)?;
    if let Some(locked) = from.lock(id)? {
        if let Some(due) = locked.due {
            to.set_due(id, Some(due))?;
        }
        if let Some(observed) = &locked.observed {
            to.set_observed(id, progress, observed)?;
        }
    }
    pages(
        |first| from.outcomes(id, first, PAGE),
        |rows| {
            renumber(rows.iter_mut().map(|row| &mut row.actor), actors)?;
            to.add_outcomes(id, rows).map(drop)
        },
        |row| row.round + 1,
    )?;
    for epoch in 0..=progress.epoch {
        for kind in DecisionKind::ALL {
            pages(
                |first| from.leases(id, epoch, kind, first, PAGE),
                |rows| {
                    renumber(rows.iter_mut().map(|lease| &mut lease.actor), actors)?;
                    to.add_leases(id, &rows.iter().collect::<Vec<_>>())
                },
                |lease: &Lease| lease.first + lease.actions.len() as u64,
            )?;
            // Late outcomes have epoch 0 and are found there, whichever epoch their rounds are of.
            pages(
                |first| from.uncounted(id, epoch, kind, first, PAGE),
                |rows| {
                    renumber(rows.iter_mut().map(|outcome| &mut outcome.actor), actors)?;
                    to.add_uncounted(id, rows).map(drop)
                },
                |outcome| outcome.number + 1,
            )?;
        }
    }
    for cursor in from.cursors(id)? {
        to.move_cursor(id, None, &cursor)?;
    }
    from.events(id, 0, usize::MAX)?
        .iter()
        .try_for_each(|event| to.add_event(id, event))
}

/// Epochs come into a store as they do in life: opened, and closed when the next one is opened.
fn copy_epochs(
    from: &mut Store,
    to: &mut Store,
    experiment: &ExperimentRow,
    progress: &Progress,
) -> Result<()> {
    let mut last: Option<EpochRow> = None;
    for epoch in 0..=progress.epoch {
        for row in from.epochs(&experiment.id, epoch, 1)? {
            // As it was opened: a row is added open, and what closed it comes with `close_epoch`.
            let open = EpochRow {
                closed_at: None,
                rounds_hash: None,
                hash: None,
                leases_hash: None,
                journal_end: None,
                journal: None,
                ..row.clone()
            };
            match &last {
                None => to.create(experiment, progress, &open).map(drop)?,
                Some(closed) => to.close_epoch(&experiment.id, closed, Some(&open))?,
            }
            last = Some(row);
        }
    }
    match last.filter(|row| row.closed_at.is_some()) {
        Some(closed) => to.close_epoch(&experiment.id, &closed, None),
        None => Ok(()),
    }
}

/// Reads page after page and adds each.
fn pages<T>(
    mut read: impl FnMut(u64) -> Result<Vec<T>>,
    mut add: impl FnMut(&mut [T]) -> Result<()>,
    next: impl Fn(&T) -> u64,
) -> Result<()> {
    let mut first = 0;
    loop {
        let mut rows = read(first)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        first = next(last);
        add(&mut rows)?;
    }
}
