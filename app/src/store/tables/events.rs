//! Events: who created, paused, resumed, closed an experiment.

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{encode_number, parse_number, saturate};
use crate::store::database::{Columns, number, text, values};

pub(super) const EVENTS_READ: &str = "SELECT at, actor, what, reason, position FROM events
    WHERE experiment = $1";

/// An administrative change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: i64,
    /// The name of the API key it was done with; [`super::actors::KEYLESS`] without one.
    pub actor: String,
    /// What: created, paused, resumed or closed.
    pub what: String,
    /// Why, if that was said.
    pub reason: Option<String>,
    /// Its place among the experiment's uncounted outcomes and events ([`super::uncounted::UncountedOutcome::position`]).
    pub position: u64,
}

impl Store {
    /// Events from this number on, in order; the first is 0.
    pub fn events(&mut self, id: &str, from: u64, limit: usize) -> Result<Vec<Event>> {
        let sql = format!("{EVENTS_READ} AND number >= $2 ORDER BY number LIMIT $3");
        self.page(
            id,
            &sql,
            &values![saturate(from), saturate(limit as u64)],
            read_event,
        )
    }

    /// Adds an event; the store numbers it.
    pub fn add_event(&mut self, id: &str, event: &Event) -> Result<()> {
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
                encode_number(event.position)?
            ];
            store.database.execute(sql, &values).map(drop)
        })
    }
}

pub(super) fn read_event(row: &dyn Columns) -> Result<Event> {
    Ok(Event {
        at: number(row, 0)?,
        actor: text(row, 1)?.into(),
        what: text(row, 2)?.into(),
        reason: row.text(3)?.map(String::from),
        position: parse_number(number(row, 4)?)?,
    })
}
