//! Publishing a head: the log notes which head was given to whom, so that a later reader knows where to look for it.

use anyhow::Result;

use crate::log::published;
use crate::service::request::Granted;
use crate::service::transaction::Answered;
use crate::service::turn::Turn;
use crate::store::Event;

impl Turn<'_> {
    /// Notes that the newest head is published at this address.
    pub(super) fn publish(&mut self, address: &str, actor: &str) -> Result<Answered> {
        let head = self.progress.head.clone();
        let event = Event {
            at: self.time.at,
            actor: actor.to_owned(),
            what: published(&head),
            reason: Some(address.to_owned()),
        };
        // Safe to repeat, as an answer may have been lost: the same head at the same address is one event.
        let events = self.store.events(self.id, 0, usize::MAX)?;
        let same = |noted: &Event| (&noted.what, &noted.reason) == (&event.what, &event.reason);
        if !events.iter().any(same) {
            self.store.add_event(self.id, &event)?;
        }
        Ok(Ok(Granted::Published { head }))
    }
}
