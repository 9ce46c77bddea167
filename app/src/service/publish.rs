//! Publishing a head: the log notes which head was given to whom, so that a later reader knows where to look for it.

use anyhow::Result;

use crate::log::{chain, published, published_head};
use crate::service::request::{Granted, Request};
use crate::service::transaction::Answered;
use crate::service::turn::Turn;
use crate::store::Event;

impl Turn<'_> {
    /// Notes what a group publishes: the newest head, after all that the group does.
    pub(super) fn publish(
        &mut self,
        group: &[&Request],
        answers: &mut [Option<Answered>],
    ) -> Result<()> {
        for (place, request) in group.iter().enumerate() {
            if let Request::Publish(publish) = request {
                let head = self.publish_at(&publish.address, &publish.actor)?;
                answers[place] = Some(Ok(Granted::Published { head }));
            }
        }
        Ok(())
    }

    fn publish_at(&mut self, address: &str, actor: &str) -> Result<String> {
        if let Some(noted) = self.published_before(address)? {
            return Ok(noted);
        }
        let head = self.progress.head.clone();
        let event = Event {
            at: self.time.at,
            actor: actor.to_owned(),
            what: published(&head),
            reason: Some(address.to_owned()),
            position: self.progress.next_position,
        };
        chain::enter_event(&event, &mut self.progress);
        self.store.add_event(self.id, &event)?;
        Ok(head)
    }

    /// The head that the last event says was published at this address, if nothing moved the head since.
    fn published_before(&mut self, address: &str) -> Result<Option<String>> {
        // Safe to repeat, as an answer may have been lost: the same head at the same address is one event.
        let last = self.store.events(self.id, 0, usize::MAX)?.pop();
        let last = last.filter(|event| event.reason.as_deref() == Some(address));
        let Some(noted) = last.as_ref().and_then(|event| published_head(&event.what)) else {
            return Ok(None);
        };
        // After the end the event itself moves the head.
        let after = chain::head_after(noted, &self.progress.journal);
        let same = [noted, &after].contains(&&*self.progress.head);
        Ok(same.then(|| noted.to_owned()))
    }
}
