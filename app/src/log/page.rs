//! The log, page by page, from the rows of a store.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use debora::{EpochRecord, Key};

use super::cursor::{BadCursor, Cursor, CursorMark, LogSection};
use super::line::{Heading, LOG_VERSION, LeaseLine, Line, OutsideOutcome};
use crate::hex;
use crate::log::{chain, check_values};
use crate::store::{
    DecisionKind, EpochRow, Event, ExperimentRow, JournalRow, Progress, Status, Store,
    UncountedOutcome,
};

/// The header in which the service gives the next page's cursor, as its body is all lines.
pub const NEXT_HEADER: &str = "debora-next";

/// How the last line begins of a log that could not be read to its end. No line of a log has this type.
pub const ERROR_LINE: &str = r#"{"type":"error","#;

/// The most lines in a page.
pub const LINES_MAX: usize = 10_000;

/// The most bytes in a page, give or take a few lines': a reader's time and memory are to be small, whatever is in the log.
const BYTES_MAX: usize = 1 << 20;

/// About what a line takes beside what differs in length, and a decision or a value in it.
const LINE_BYTES: usize = 128;
const DECISION_BYTES: usize = 3;
const VALUE_BYTES: usize = 20;

/// Outcomes read at once.
const OUTCOMES_A_READ: usize = 1_000;

/// Requests read at once: each may hold ten thousand actions.
const LEASES_A_READ: usize = 32;

/// Consecutive lines of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    /// The lines.
    pub lines: Vec<Line>,
    /// Where the next page begins; none after the last.
    pub next_cursor: Option<String>,
}

/// Up to `limit` lines from a cursor on, at most [`LINES_MAX`]; without a cursor, from the beginning. `None` if there is no
/// such experiment; a [`BadCursor`] if no page gave the cursor.
///
/// Salt and key are shown if `reveal` says so, and to everyone once all experiments that share the key are over. The reads must
/// see one state: call it within a transaction.
pub fn page(
    store: &mut Store,
    id: &str,
    cursor: Option<&str>,
    limit: usize,
    reveal: bool,
) -> Result<Option<LogPage>> {
    page_with(store, id, cursor, limit, reveal, true)
}

/// The same without the lines of outcomes, which are nearly all of a log: for those who follow what was decided.
pub fn page_of_decisions(
    store: &mut Store,
    id: &str,
    cursor: Option<&str>,
    limit: usize,
    reveal: bool,
) -> Result<Option<LogPage>> {
    page_with(store, id, cursor, limit, reveal, false)
}

fn page_with(
    store: &mut Store,
    id: &str,
    cursor: Option<&str>,
    limit: usize,
    reveal: bool,
    with_outcomes: bool,
) -> Result<Option<LogPage>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    // Lines are written as this program writes them, and hashes are over their text.
    check_values(&experiment)?;
    let at = match cursor {
        Some(text) => parsed(text, &progress)?,
        None => Cursor::at_epoch(0),
    };
    let actors = store.actors()?;
    let mut walk = PageWalk {
        store,
        experiment,
        progress,
        at: Some(at),
        row: None,
        lines: Vec::new(),
        actors,
        bytes: 0,
        with_outcomes,
    };
    if cursor.is_none() {
        let shown = reveal || is_revealed(walk.store, walk.experiment.key)?;
        walk.lines.push(walk.heading(shown));
    }
    // At least one line, or a page could be empty and its cursor the one it was asked with.
    let limit = limit.clamp(1, LINES_MAX);
    while walk.at.is_some() && walk.lines.len() < limit && walk.bytes < BYTES_MAX {
        walk.step(limit - walk.lines.len())?;
    }
    Ok(Some(LogPage {
        next_cursor: walk.at.map(|cursor| cursor.to_string()),
        lines: walk.lines,
    }))
}

fn parsed(text: &str, progress: &Progress) -> Result<Cursor> {
    let cursor: Cursor = text.parse()?;
    // Of another experiment perhaps, which is further: to follow it would look for epochs that are not there.
    ensure!(
        cursor.epoch <= progress.epoch,
        BadCursor {
            text: text.to_owned()
        }
    );
    Ok(cursor)
}

/// Whether a key can be shown to everyone: it tells all decisions to come of every experiment that has it.
pub fn is_revealed(store: &mut Store, key: Key) -> Result<bool> {
    let sharing = store.experiments_of_key(key)?;
    Ok(sharing
        .iter()
        .all(|(_, progress)| !progress.status.is_open()))
}

/// How many rounds the newest head stands for.
pub fn closed_rounds(store: &mut Store, id: &str, progress: &Progress) -> Result<u64> {
    let row = store.epochs(id, progress.epoch, 1)?.into_iter().next();
    let row = row.with_context(|| format!("epoch {} is missing", progress.epoch))?;
    // The last epoch, complete or not, is closed with the experiment.
    if row.closed_at.is_some() {
        return Ok(progress.rounds());
    }
    let record: EpochRecord = serde_json::from_str(&row.record)?;
    Ok(record.first_round - 1)
}

/// A walk through the rows in the log's order.
struct PageWalk<'a> {
    store: &'a mut Store,
    experiment: ExperimentRow,
    progress: Progress,
    /// None after the last line.
    at: Option<Cursor>,
    /// The row of the epoch that the walk is in.
    row: Option<(EpochRow, EpochRecord)>,
    lines: Vec<Line>,
    /// The names of those who asked and told, by number.
    actors: BTreeMap<u64, String>,
    /// About how long the lines are.
    bytes: usize,
    /// Whether outcomes of rounds are shown.
    with_outcomes: bool,
}

impl PageWalk<'_> {
    fn heading(&self, shown: bool) -> Line {
        let ExperimentRow {
            id,
            spec,
            key,
            salt,
            created_at,
            values_version,
        } = &self.experiment;
        Line::Experiment(Box::new(Heading {
            log: LOG_VERSION,
            id: id.clone(),
            spec: spec.clone(),
            salt: shown.then(|| hex::encode(salt)),
            key: shown.then(|| key.to_hex()),
            created_at: *created_at,
            values_version: *values_version,
            genesis: chain::head(&self.experiment),
            key_hash: chain::key_hash(*salt, *key),
        }))
    }

    /// Whom a row's number stands for.
    fn actor(&self, number: u64) -> Option<String> {
        // 0 is nobody. A name that is missing is damage, which the hashes show: it must not keep the rest from being read.
        self.actors.get(&number).cloned()
    }

    /// Writes up to `room` lines of one section.
    fn step(&mut self, room: usize) -> Result<()> {
        let mut cursor = self.at.take().expect("only called before the last line");
        match cursor.section {
            LogSection::Epoch => self.epoch(&mut cursor)?,
            LogSection::Decisions => self.leases(DecisionKind::Round, &mut cursor, room)?,
            LogSection::Overtime => self.leases(DecisionKind::Overtime, &mut cursor, room)?,
            LogSection::Holdback => self.leases(DecisionKind::Holdback, &mut cursor, room)?,
            LogSection::Outcomes if !self.with_outcomes => cursor.enter(LogSection::Overtime, 0),
            LogSection::Outcomes => self.outcomes(&mut cursor, room)?,
            LogSection::Closed => self.closed(&mut cursor)?,
            LogSection::Journal => self.journal(&mut cursor, room)?,
            LogSection::State => {
                // Then the counts are ahead of the lines, and the audit checks only that they are not behind.
                let moved = cursor.mark != Some(CursorMark::of(&self.progress));
                self.lines.push(Line::State {
                    progress: Box::new(self.progress.clone()),
                    moved,
                });
                return Ok(());
            }
        }
        self.at = Some(cursor);
        Ok(())
    }

    /// The row of an epoch, whose record must stand there as the engine wrote it: the hash is over its text.
    fn row(&mut self, epoch: u64) -> Result<&(EpochRow, EpochRecord)> {
        if self.row.as_ref().is_none_or(|(row, _)| row.epoch != epoch) {
            let row = self
                .store
                .epochs(&self.experiment.id, epoch, 1)?
                .into_iter()
                .find(|row| row.epoch == epoch);
            let row = row.with_context(|| format!("epoch {epoch} is missing"))?;
            let record: EpochRecord = serde_json::from_str(&row.record)
                .with_context(|| format!("the record of epoch {epoch} cannot be read"))?;
            // Another text for the same record would hash to something else than what the reader of the log computes.
            let written = chain::record_text(&record);
            ensure!(
                written == row.record,
                "the record of epoch {epoch} is damaged: debora would not write {}",
                row.record
            );
            self.row = Some((row, record));
        }
        Ok(self.row.as_ref().expect("read above"))
    }

    fn epoch(&mut self, cursor: &mut Cursor) -> Result<()> {
        let (row, record) = self.row(cursor.epoch)?;
        let length = row.record.len();
        let line = Line::Epoch {
            opened_at: row.opened_at,
            record: Box::new(record.clone().with_rounds(0)),
        };
        self.bytes += length;
        self.lines.push(line);
        // From here on the pages of the last epoch show the state of this moment, though it may go on between two of them.
        cursor.mark = (cursor.epoch == self.progress.epoch).then(|| CursorMark::of(&self.progress));
        cursor.enter(LogSection::Decisions, 0);
        Ok(())
    }

    fn leases(&mut self, kind: DecisionKind, cursor: &mut Cursor, room: usize) -> Result<()> {
        let limit = room.min(LEASES_A_READ);
        let leases = self.store.leases(
            &self.experiment.id,
            cursor.epoch,
            kind,
            cursor.position,
            limit,
        )?;
        let end = open(cursor).map_or(u64::MAX, |mark| match kind {
            DecisionKind::Round => mark.next_round,
            DecisionKind::Overtime => mark.next_serial,
            DecisionKind::Holdback => mark.next_holdback,
        });
        let mut shown = 0;
        for lease in leases.into_iter().take_while(|lease| lease.first < end) {
            shown += 1;
            cursor.position = lease.first + lease.actions.len() as u64;
            self.bytes += LINE_BYTES + DECISION_BYTES * lease.actions.len();
            let actor = self.actor(lease.actor);
            let lease = LeaseLine::of(lease, actor);
            self.lines.push(match kind {
                DecisionKind::Round => Line::Decisions(lease),
                DecisionKind::Overtime => Line::Overtime(lease),
                DecisionKind::Holdback => Line::Holdback(lease),
            });
        }
        // Fewer than asked for: there are no more, or those that follow came after the mark.
        if shown < limit {
            let first_round = self.row(cursor.epoch)?.1.first_round;
            match kind {
                DecisionKind::Round => cursor.enter(LogSection::Outcomes, first_round),
                DecisionKind::Overtime => cursor.enter(LogSection::Holdback, 0),
                DecisionKind::Holdback => cursor.enter(LogSection::Closed, 0),
            }
        }
        Ok(())
    }

    fn outcomes(&mut self, cursor: &mut Cursor, room: usize) -> Result<()> {
        // Outcomes know their round, not their epoch: the epoch's are those before its end.
        let record = &self.row(cursor.epoch)?.1;
        let closed_end = record.first_round.saturating_add(record.rounds);
        // The last epoch's may have no end: an experiment that was closed by hand left it as it was.
        let end = cursor
            .mark
            .as_ref()
            .map_or(closed_end, |mark| mark.next_round);
        let room = room.min(OUTCOMES_A_READ);
        let outcomes = self
            .store
            .outcomes(&self.experiment.id, cursor.position, room)?;
        let mut shown = 0;
        for outcome in outcomes
            .into_iter()
            .take_while(|outcome| outcome.round < end)
        {
            shown += 1;
            cursor.position = outcome.round + 1;
            self.bytes += LINE_BYTES + VALUE_BYTES * outcome.costs.len();
            self.lines.push(Line::Outcome {
                round: outcome.round,
                reward: outcome.reward,
                costs: outcome.costs,
                imputed: outcome.imputed,
                at: outcome.at,
                actor: self.actor(outcome.actor),
            });
        }
        if shown < room {
            cursor.enter(LogSection::Overtime, 0);
        }
        Ok(())
    }

    fn uncounted_line(&mut self, outcome: UncountedOutcome) -> Line {
        self.bytes += LINE_BYTES + VALUE_BYTES * outcome.costs.len();
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
        let actor = self.actor(actor);
        if kind == DecisionKind::Round {
            return Line::Late {
                round: number,
                reward,
                costs,
                at,
                actor,
                position,
            };
        }
        let outcome = OutsideOutcome {
            epoch,
            serial: number,
            reward,
            costs,
            at,
            actor,
            position,
        };
        match kind {
            DecisionKind::Holdback => Line::HoldbackOutcome(outcome),
            _ => Line::OvertimeOutcome(outcome),
        }
    }

    fn closed(&mut self, cursor: &mut Cursor) -> Result<()> {
        self.bytes += LINE_BYTES;
        let epoch = cursor.epoch;
        let previous = match epoch.checked_sub(1) {
            Some(before) => self.row(before)?.0.hash.clone().unwrap_or_default(),
            None => chain::head(&self.experiment),
        };
        // An epoch that was open at the mark stays open in this log, even if it has been closed in the meantime.
        if open(cursor).is_none() {
            // A finished experiment's last epoch was complete, one that was closed by hand left its last one as it was.
            let early = cursor.mark.is_some() && self.progress.status == Status::Closed;
            let (row, record) = self.row(epoch)?;
            let line = closed_line(row, record.rounds, previous, early);
            self.lines.extend(line);
        }
        match cursor.mark {
            // A cursor of the last epoch always has a mark.
            None if epoch >= self.progress.epoch => {
                return Err(BadCursor {
                    text: cursor.to_string(),
                }
                .into());
            }
            None => *cursor = Cursor::at_epoch(epoch + 1),
            Some(_) => cursor.enter(LogSection::Journal, 0),
        }
        Ok(())
    }

    fn event_line(&mut self, event: Event) -> Line {
        // Each may have a reason of a kilobyte; they are few.
        self.bytes += LINE_BYTES;
        Line::Event {
            at: event.at,
            actor: event.actor,
            what: event.what,
            reason: event.reason,
            position: event.position,
        }
    }

    /// Uncounted outcomes and events in the order in which they were stored.
    fn journal(&mut self, cursor: &mut Cursor, room: usize) -> Result<()> {
        // Up to the mark and no further: then the journal's hash is the state's, unless that moved.
        let end = cursor
            .mark
            .as_ref()
            .map_or(u64::MAX, |mark| mark.next_position);
        let room = room.min(OUTCOMES_A_READ);
        let rows = self
            .store
            .journal(&self.experiment.id, cursor.position, room)?;
        let mut shown = 0;
        for row in rows {
            let position = row.position();
            if position >= end {
                break;
            }
            shown += 1;
            cursor.position = position + 1;
            let line = match row {
                JournalRow::Uncounted(outcome) => self.uncounted_line(outcome),
                JournalRow::Event(event) => self.event_line(event),
            };
            self.lines.push(line);
        }
        if shown < room {
            cursor.enter(LogSection::State, 0);
        }
        Ok(())
    }
}

/// The line that ends an epoch; `None` while it is open.
fn closed_line(row: &EpochRow, rounds: u64, previous: String, early: bool) -> Option<Line> {
    Some(Line::Closed {
        epoch: row.epoch,
        rounds,
        rounds_hash: row.rounds_hash.clone()?,
        previous,
        hash: row.hash.clone()?,
        closed_at: row.closed_at?,
        leases_hash: row.leases_hash.clone()?,
        journal_end: row.journal_end?,
        journal: row.journal.clone()?,
        early,
    })
}

/// The mark of an epoch that the log shows as open.
fn open(cursor: &Cursor) -> Option<&CursorMark> {
    cursor.mark.as_ref().filter(|mark| mark.open)
}
