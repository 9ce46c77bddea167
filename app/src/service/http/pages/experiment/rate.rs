//! How fast an experiment decides now, from the times that are stored with its decisions: the same after a restart and on every
//! node.
//!
//! ```text
//! rate = rounds since a moment / time since that moment,   the newest moment a minute ago or longer, and 100 rounds back
//! ```
//!
//! The time runs to now and not to the last decision, so that the rate falls while nobody asks.

use anyhow::Result;

use super::view::PlayedEpoch;
use crate::store::Store;

/// The shortest time that a rate is taken over: requests come in bursts.
const SPAN_MIN: i64 = 60_000;

/// How many rounds back the first moment is looked for, and by what the next is further back.
const ROUNDS_MIN: u64 = 100;
const STEP: u64 = 10;

/// How fast rounds are decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecisionRate {
    /// Rounds a second.
    pub per_second: f64,
    /// The last rounds, over which it was taken.
    pub rounds: u64,
    /// When the last round was decided.
    pub last_at: i64,
}

impl DecisionRate {
    /// Of an experiment that was played so far; `None` before its first round, and while no time has passed.
    pub fn read(
        store: &mut dyn Store,
        id: &str,
        epochs: &[PlayedEpoch],
        now: i64,
    ) -> Result<Option<Self>> {
        let Some(open) = epochs.last() else {
            return Ok(None);
        };
        let decided = open.last_round;
        let last = store.leases(id, open.epoch, false, decided, 1)?;
        let last_at = last.first().map_or(open.opened_at, |lease| lease.at);
        let (round, at) = moment(store, id, epochs, now)?;
        let seconds = (now - at) as f64 / 1_000.0;
        let rounds = decided + 1 - round;
        // A clock that was set back gives no rate.
        Ok((seconds > 0.0).then(|| Self {
            per_second: rounds as f64 / seconds,
            rounds,
            last_at,
        }))
    }

    /// How long so many rounds take, in seconds.
    pub fn seconds(&self, rounds: u64) -> f64 {
        rounds as f64 / self.per_second
    }
}

/// A round and when it was decided: the newest that is old enough, else the first.
fn moment(store: &mut dyn Store, id: &str, epochs: &[PlayedEpoch], now: i64) -> Result<(u64, i64)> {
    let [before @ .., open] = epochs else {
        return Ok((1, now));
    };
    let mut back = ROUNDS_MIN;
    // In steps of ten, each one row: a long epoch has as many leases as requests.
    while back < open.rounds() {
        let from = open.last_round + 1 - back;
        for lease in store.leases(id, open.epoch, false, from, 1)? {
            if now - lease.at >= SPAN_MIN {
                return Ok((lease.first, lease.at));
            }
        }
        back *= STEP;
    }
    let old_enough = |epoch: &&PlayedEpoch| {
        now - epoch.opened_at >= SPAN_MIN && open.last_round + 1 - epoch.first_round >= ROUNDS_MIN
    };
    let mut epochs = before.iter().chain([open]);
    let found = epochs.clone().rfind(old_enough);
    let epoch = found.or_else(|| epochs.next()).unwrap_or(open);
    Ok((epoch.first_round, epoch.opened_at))
}
