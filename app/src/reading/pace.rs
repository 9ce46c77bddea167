//! How fast an experiment decides: by the leases, which all nodes write and which outlive them, and not by what one has seen.

use anyhow::Result;

use crate::store::{DecisionKind, Progress, Store};

/// A rate is measured over at least this many milliseconds, if there was a decision so long before the last.
const SPAN_MIN: i64 = 60_000;

/// Without a decision for this many milliseconds, there is no rate.
const IDLE: i64 = 600_000;

/// How fast rounds are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRate {
    /// The last rounds, over which it was taken.
    pub rounds: u64,
    /// How many milliseconds they took.
    pub span: i64,
}

impl DecisionRate {
    /// Rounds a second.
    pub fn per_second(&self) -> f64 {
        self.rounds as f64 * 1e3 / self.span as f64
    }

    /// How long so many rounds take, in seconds.
    pub fn seconds(&self, rounds: u64) -> f64 {
        rounds as f64 / self.per_second()
    }
}

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
    /// Looks back 1, 8, 64, .. rounds, to one that was decided a minute before the last or earlier.
    pub fn read(store: &mut Store, id: &str, progress: &Progress) -> Result<Option<Self>> {
        let decided = progress.rounds();
        let mut epoch = progress.epoch;
        let mut pace: Option<Self> = None;
        let mut back = 1;
        loop {
            let round = decided.saturating_sub(back - 1).max(1);
            let lease = store
                .leases(id, epoch, DecisionKind::Round, round, 1)?
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
            // Before the last and not before now: whenever it is read, and by whichever page, it is the same.
            if pace.is_some_and(|pace| pace.last - pace.since >= SPAN_MIN) {
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

    /// The rate up to a moment; `None` if the last decision was too long before it.
    pub fn until(&self, until: i64) -> Option<DecisionRate> {
        // To the moment and not to the last decision, so that the rate falls while nobody asks.
        // Several may be decided within a millisecond, and clocks of two nodes differ.
        let span = (until - self.since).max(1_000);
        (until - self.last < IDLE).then_some(DecisionRate {
            rounds: self.rounds,
            span,
        })
    }
}
