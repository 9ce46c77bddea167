//! How many experiments are in which state, and which of them were active last: found out page by page.
//!
//! A store may hold more experiments than can be looked at while somebody waits. So each look goes on where the last one stopped,
//! until its time is up; what is known is of the last walk through all of them, and says how old it is.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use anyhow::Result;

use crate::store::{ExperimentLine, Status, Store};

/// Experiments that the metrics show one by one: each takes a hundred lines or more.
pub const SHOWN_MAX: usize = 200;

/// Experiments read at once; time is looked at between two pages.
const PAGE: usize = 200;

/// All states, as they are counted.
pub const STATUSES: [(Status, &str); 4] = [
    (Status::Running, "running"),
    (Status::Paused, "paused"),
    (Status::Closed, "closed"),
    (Status::Done, "done"),
];

/// What was found.
#[derive(Clone, Default)]
pub struct Counted {
    /// How many experiments have each of [`STATUSES`].
    pub statuses: [u64; 4],
    /// The ids of those that are not over, the last active first; at most [`SHOWN_MAX`].
    pub shown: Vec<String>,
    /// When the walk ended, by monotonic time.
    pub at: i64,
}

/// Experiments that are not over, by the hash of their id: what they had done, and when that was first seen.
type Activity = BTreeMap<u64, (u64, i64)>;

/// A walk through all experiments.
#[derive(Default)]
struct Walk {
    /// The last one looked at.
    after: Option<String>,
    statuses: [u64; 4],
    open: Vec<(i64, String)>,
    activity: Activity,
}

#[derive(Default)]
struct CensusInner {
    walk: Walk,
    /// As the last walk found it.
    activity: Activity,
    counted: Option<Counted>,
}

/// The walks of this node.
#[derive(Default)]
pub struct Census(Mutex<CensusInner>);

impl Census {
    /// What is known; `None` before the first walk has ended.
    pub fn counted(&self) -> Option<Counted> {
        self.lock().counted.clone()
    }

    /// Goes on with the walk until it ends or its time is up. Times are wall and monotonic.
    pub fn go_on(&self, store: &mut Store, now: [i64; 2], end: Instant) -> Result<()> {
        // One at a time: another that finds it under way has nothing to add.
        let Ok(mut inner) = self.0.try_lock() else {
            return Ok(());
        };
        loop {
            let after = inner.walk.after.clone();
            let page = store.lines(None, after.as_deref(), true, PAGE)?;
            page.iter().for_each(|line| inner.note(line, now[0]));
            if page.len() < PAGE {
                inner.finish(now[1]);
                return Ok(());
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CensusInner> {
        self.0
            .lock()
            .expect("no panic while experiments are counted")
    }
}

impl CensusInner {
    fn note(&mut self, line: &ExperimentLine, now: i64) {
        let walk = &mut self.walk;
        walk.after = Some(line.id.clone());
        let status = line.progress.status;
        let place = STATUSES.iter().position(|(known, _)| *known == status);
        walk.statuses[place.expect("every status is counted")] += 1;
        if !status.is_open() {
            return;
        }
        let (id, done) = (hash(&line.id), done(line));
        let active_at = match self.activity.get(&id) {
            // Nothing stores when an experiment last changed, so it is the first look that finds it changed.
            Some((before, at)) => {
                if *before == done {
                    *at
                } else {
                    now
                }
            }
            None => line.created_at,
        };
        walk.activity.insert(id, (done, active_at));
        walk.open.push((active_at, line.id.clone()));
        // Now and then, so that a hundred thousand are never kept at once.
        if walk.open.len() >= 4 * SHOWN_MAX {
            last_active(&mut walk.open);
        }
    }

    fn finish(&mut self, now: i64) {
        let mut walk = std::mem::take(&mut self.walk);
        last_active(&mut walk.open);
        self.activity = walk.activity;
        self.counted = Some(Counted {
            statuses: walk.statuses,
            shown: walk.open.into_iter().map(|(_, id)| id).collect(),
            at: now,
        });
    }
}

fn last_active(open: &mut Vec<(i64, String)>) {
    // Stable: of those that were active at the same time the newest come first, as they were read.
    open.sort_by_key(|(active_at, _)| std::cmp::Reverse(*active_at));
    open.truncate(SHOWN_MAX);
}

/// What grows with everything that happens to an experiment.
fn done(line: &ExperimentLine) -> u64 {
    let progress = &line.progress;
    let outcomes: u64 = progress.outcomes.iter().sum();
    progress.rounds() + outcomes + progress.overtime + progress.next_position
}

fn hash(id: &str) -> u64 {
    // A number instead of the id, as there may be many; if two ids share it, one may be shown a little longer.
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
