//! The journal: uncounted outcomes and events together, in the order in which they were stored.

use anyhow::Result;

use super::events::{EVENTS_READ, Event, read_event};
use super::uncounted::{UNCOUNTED_READ, UncountedOutcome, read_uncounted};
use crate::store::Store;
use crate::store::codec::saturate;
use crate::store::database::values;

/// What has a position in the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalRow {
    /// An uncounted outcome.
    Uncounted(UncountedOutcome),
    /// An event.
    Event(Event),
}

impl JournalRow {
    /// Its position.
    pub fn position(&self) -> u64 {
        match self {
            Self::Uncounted(outcome) => outcome.position,
            Self::Event(event) => event.position,
        }
    }
}

impl Store {
    /// Uncounted outcomes and events from this position on, in order.
    pub fn journal(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<JournalRow>> {
        let order = "AND position >= $2 ORDER BY position LIMIT $3";
        let values = values![saturate(from), saturate(limit as u64)];
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
}
