//! Uncounted outcomes and events in the order in which they were stored: the hash over them, which every closed epoch names.

use std::collections::BTreeSet;

use super::{Auditor, Check, differs, equal};
use crate::log::chain::{self, Fact};
use crate::store::{DecisionKind, Event, UncountedOutcome};

/// The journal, as far as it was read, and what is still to be held against it.
#[derive(Default)]
pub struct Journal {
    /// The position after the last.
    pub next: u64,
    /// The hash over all so far.
    pub hash: String,
    /// What closed epochs say of it, in order: they were read before it.
    ends: std::collections::VecDeque<JournalEnd>,
    /// Whether the chain of epochs is at its end, so that what comes moves the head.
    pub over: bool,
    /// Whether an event closed the experiment.
    pub closed: bool,
    /// The next serials of overtime and of holdback when epochs were closed, from epoch 0 on.
    pub served: Vec<[u64; 2]>,
    /// The decisions that were told, to see whether one was told twice.
    told: BTreeSet<(DecisionKind, u64, u64)>,
}

/// What a closed epoch says of the journal.
pub struct JournalEnd {
    pub epoch: u64,
    pub end: u64,
    pub journal: String,
}

impl Journal {
    pub fn expect(&mut self, end: JournalEnd) {
        self.ends.push_back(end);
    }

    /// Checks the epochs that were closed before this position; all that are left, if there is none.
    fn check_ends(&mut self, before: Option<u64>) -> Check {
        while let Some(end) = self.ends.front() {
            if before.is_some_and(|position| end.end > position) {
                break;
            }
            let place = || format!("the end of epoch {}", end.epoch);
            equal(
                place,
                "the position of what comes next",
                &end.end,
                &self.next,
            )?;
            equal(
                place,
                "the hash of uncounted outcomes and events",
                &end.journal,
                &self.hash,
            )?;
            self.ends.pop_front();
        }
        Ok(())
    }

    /// Whether an uncounted outcome is the first of its decision.
    fn is_first(&mut self, outcome: &UncountedOutcome) -> bool {
        self.told
            .insert((outcome.kind, outcome.epoch, outcome.number))
    }
}

impl Auditor {
    /// Takes what comes next.
    fn enter(&mut self, place: &str, position: u64, fact: Fact<'_>) -> Check {
        if position < self.journal.next {
            let expected = format!("{} or more", self.journal.next);
            return Err(differs(place, "its position", position, expected));
        }
        self.journal.check_ends(Some(position))?;
        self.journal.hash = fact.journal(&self.journal.hash, position);
        self.journal.next = position + 1;
        // Only what no epoch's hash holds moves the head.
        if self.journal.over && self.journal.ends.is_empty() {
            self.head = chain::head_after(&self.head, &self.journal.hash);
            self.tick_off_head(&self.head.clone());
        }
        Ok(())
    }

    pub(super) fn enter_uncounted(
        &mut self,
        place: &str,
        outcome: &UncountedOutcome,
        actor: Option<&str>,
    ) -> Check {
        if !self.journal.is_first(outcome) {
            return Err(differs(place, "it", "told again", "told once"));
        }
        self.counts.rows.uncounted += 1;
        self.enter(place, outcome.position, Fact::Uncounted(outcome, actor))
    }

    pub(super) fn enter_event(&mut self, event: &Event) -> Check {
        self.counts.rows.events += 1;
        self.journal.closed |= event.what == "closed";
        self.enter("the events", event.position, Fact::Event(event))
    }

    /// A head that is said to be published must be the one that the chain had then.
    pub(super) fn check_published(&mut self, head: &str, position: u64) -> Check {
        self.journal.check_ends(Some(position))?;
        // What is left are the epochs that were closed after this event.
        let later = self.journal.ends.len();
        let newest = self.heads.len().checked_sub(later + 1);
        let newest = newest.map_or("none", |place| &self.heads[place]);
        equal(
            || "the events".into(),
            "the head that was published",
            &head,
            &newest,
        )
    }

    /// Checks that the journal goes as far as the last closed epoch says.
    pub(super) fn end_journal(&mut self) -> Check {
        self.journal.check_ends(None)
    }
}
