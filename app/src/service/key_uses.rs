//! When keys were used last: noted in memory with every request, and stored by a tick, at most once a minute for each key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::service::clock::Moment;

/// How often the use of a key is stored. A page shows it to the minute, and a write for every request would cost a commit.
const STORED_EVERY: i64 = 60_000;

/// A key, and when it was used.
pub type KeyUse = (Arc<str>, i64);

/// The uses that this node has seen. All copies note together.
#[derive(Clone, Default)]
pub struct KeyUses(Arc<Mutex<BTreeMap<Arc<str>, LastUse>>>);

struct LastUse {
    at: i64,
    /// The use that was stored last, and when that was by monotonic time.
    stored: Option<(i64, i64)>,
}

impl LastUse {
    fn is_due(&self, now: i64) -> bool {
        self.stored
            .is_none_or(|(use_at, at)| self.at > use_at && now - at >= STORED_EVERY)
    }
}

impl KeyUses {
    /// Notes a use.
    pub fn note(&self, name: &Arc<str>, at: i64) {
        let mut uses = self.0.lock().expect("no panic while noting uses");
        match uses.get_mut(name) {
            Some(last) => last.at = at,
            None => {
                let last = LastUse { at, stored: None };
                uses.insert(Arc::clone(name), last);
            }
        }
    }

    /// What is to be stored by now; at the end, everything.
    pub(super) fn due(&self, now: Moment, at_end: bool) -> Vec<KeyUse> {
        // Half an eternity later everything is due, and nothing overflows.
        let now = if at_end { i64::MAX / 2 } else { now.monotonic };
        let uses = self.0.lock().expect("no panic while noting uses");
        let due = uses.iter().filter(|(_, last)| last.is_due(now));
        due.map(|(name, last)| (Arc::clone(name), last.at))
            .collect()
    }

    /// Notes what was stored.
    pub(super) fn stored(&self, stored: &[KeyUse], now: Moment) {
        let mut uses = self.0.lock().expect("no panic while noting uses");
        for (name, at) in stored {
            if let Some(last) = uses.get_mut(name) {
                last.stored = Some((*at, now.monotonic));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_stored_at_once_then_once_a_minute_and_the_last_one_at_the_end() {
        let uses = KeyUses::default();
        let name: Arc<str> = "ops".into();
        // What is stored at these times, if the key is used at each of them.
        let mut stored = Vec::new();
        for now in [0, 1_000, 59_999, 60_000, 61_000] {
            uses.note(&name, now);
            let due = uses.due(Moment::both(now), false);
            stored.extend(due.iter().map(|(_, at)| *at));
            uses.stored(&due, Moment::both(now));
        }
        assert_eq!(stored, [0, 60_000]);
        // The last use of a minute is not lost: it is stored when the next one is due, or at the end.
        let last = vec![(name, 61_000)];
        assert_eq!(uses.due(Moment::both(119_999), false), []);
        assert_eq!(uses.due(Moment::both(120_000), false), last);
        assert_eq!(uses.due(Moment::both(62_000), true), last);
        uses.stored(&last, Moment::both(120_000));
        assert_eq!(uses.due(Moment::both(900_000), true), []);
    }
}
