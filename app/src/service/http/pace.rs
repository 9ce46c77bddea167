//! How fast an experiment decides: by the leases, which all nodes write and which outlive them, and not by what one has seen.

use anyhow::Result;

use crate::store::{ExperimentLine, Store};

/// A rate is measured over at least this many milliseconds, if there was a decision so long ago.
const SPAN_MIN: i64 = 60_000;

/// Without a decision for this many milliseconds, there is no rate.
const IDLE: i64 = 600_000;

/// Rounds decided since a time.
#[derive(Clone, Copy)]
pub struct DecisionPace {
    /// How many.
    rounds: u64,
    /// When the first of them was decided.
    since: i64,
    /// When the last was.
    pub last: i64,
}

impl DecisionPace {
    /// Looks back 1, 8, 64, .. rounds, to one that was decided a minute ago or before.
    pub fn read(store: &mut dyn Store, line: &ExperimentLine, now: i64) -> Result<Option<Self>> {
        let decided = line.progress.rounds();
        let mut epoch = line.progress.epoch;
        let mut pace: Option<Self> = None;
        let mut back = 1;
        loop {
            let round = decided.saturating_sub(back - 1).max(1);
            let lease = store
                .leases(&line.id, epoch, false, round, 1)?
                .into_iter()
                .next();
            if let Some(lease) = &lease {
                pace = Some(Self {
                    // A damaged store may hold a lease beyond the last round.
                    rounds: (decided + 1).saturating_sub(lease.first),
                    since: lease.at,
                    last: pace.map_or(lease.at, |pace| pace.last),
                });
            }
            if pace.is_some_and(|pace| now - pace.since >= SPAN_MIN) {
                break;
            }
            // The round may be of the epoch before: then this one's first lease was found, or none.
            let earlier = lease.is_none_or(|lease| lease.first > round);
            match (earlier, epoch) {
                (true, 1..) => epoch -= 1,
                _ if round == 1 => break,
                _ => back *= 8,
            }
        }
        Ok(pace)
    }

    /// How many rounds were decided, and within how many milliseconds; `None` if the last one was too long ago.
    pub fn until(&self, until: i64) -> Option<(u64, i64)> {
        // Several may be decided within a millisecond, and clocks of two nodes differ.
        let span = (until - self.since).max(1_000);
        (until - self.last < IDLE).then_some((self.rounds, span))
    }
}
