//! A node at its store: how it starts, and how it finds out that the store is not the one it began with.
//!
//! The store keeps each start. A connection that was made again may lead to a store that was restored, or to a standby that was
//! behind: what is in memory is dropped, and a start that is gone is noted again.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::hex;
use crate::service::clock::{Moment, Stopwatch};
use crate::service::counts::Counts;
use crate::service::key_uses::KeyUses;
use crate::service::random::random;
use crate::service::recent::Recent;
use crate::service::transaction::Executor;
use crate::store::{FileMoved, Store};

/// Experiments kept in memory between groups: those that were asked for last.
const RESIDENTS_MAX: usize = 1_000;

/// Which store a server was started on, and the number of the start.
///
/// A copy has the identity of its original, and both count their starts: whoever noted the two of the one that was served last can
/// tell a copy that is behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct StoreStart {
    /// What tells the store from others, and not from its copies: 32 hexadecimal digits.
    pub identity: String,
    /// Counts the starts of servers on it. Fewer than were seen before: this is a copy that is behind.
    pub incarnation: u64,
}

/// One start of a server.
#[derive(Clone)]
pub struct NodeStart {
    /// What tells the process from all others.
    name: String,
    pub start: StoreStart,
    /// The connection by which the start was last seen to be there.
    pub connection: u64,
}

impl NodeStart {
    /// Notes a start, within a transaction. The first one gives the store its identity.
    fn begin(store: &mut Store, at: i64) -> Result<Self> {
        if store.identity()?.is_none() {
            store.set_identity(&hex::encode(&random::<16>()?))?;
        }
        // Read again: of nodes that start a store together the first one's stays.
        let identity = store.identity()?.context("the store has no identity")?;
        let name = hex::encode(&random::<16>()?);
        Ok(Self {
            start: StoreStart {
                identity,
                incarnation: store.add_start(&name, at)?,
            },
            connection: store.connection(),
            name,
        })
    }

    /// Looks for the start on another connection, within a transaction; notes it again if it is not there.
    pub fn confirmed(&self, store: &mut Store, at: i64) -> Result<Self> {
        let expected = self.start.identity.clone();
        let found = store.identity()?.unwrap_or_default();
        ensure!(found == expected, FileMoved::OtherStore { expected, found });
        let starts = store.starts(self.start.incarnation)?;
        // By its name too: after a store went back, another node's start may have the number.
        let is_there = starts.first().is_some_and(|start| start.node == self.name);
        let mut confirmed = self.clone();
        confirmed.connection = store.connection();
        if !is_there {
            confirmed.start.incarnation = self.start_again(store, at)?;
        }
        Ok(confirmed)
    }

    fn start_again(&self, store: &mut Store, at: i64) -> Result<u64> {
        let incarnation = store.add_start(&self.name, at)?;
        tracing::error!(
            lost = self.start.incarnation,
            incarnation,
            "the store has lost the start of this server: it was restored, or a standby that was behind took its place; \
             experiments that lost what was acknowledged are paused as they are asked for"
        );
        Ok(incarnation)
    }
}

impl Executor {
    /// Begins to serve an open store.
    pub fn start(mut store: Store, moment: Moment) -> Result<Self> {
        store.begin()?;
        let now = time_of(&store, moment);
        let node =
            NodeStart::begin(&mut store, now.wall).context("cannot note the start in the store")?;
        let shared = store.now().is_some();
        let stopwatch = Stopwatch::of(store.waiting_clock()?, now, shared);
        store.commit()?;
        Ok(Self {
            store,
            residents: Recent::new(RESIDENTS_MAX),
            seen: Recent::new(RESIDENTS_MAX),
            stopwatch,
            node,
            counts: Counts::default(),
            key_uses: KeyUses::default(),
        })
    }

    /// Begins a transaction, and gives the time that its rows get.
    pub(super) fn begin(&mut self, moment: Moment) -> Result<Moment> {
        let asked = Instant::now();
        self.store.begin()?;
        while self.store.connection() != self.node.connection {
            self.confirm_start(moment.after_wait(asked.elapsed()))?;
            self.store.begin()?;
        }
        let now = time_of(&self.store, moment.after_wait(asked.elapsed()));
        if let Some(jump) = self.stopwatch.jump(now) {
            self.stopwatch.note_jump(now);
            tracing::error!(
                jump_seconds = jump as f64 / 1e3,
                time = now.wall,
                monotonic = now.monotonic,
                "the clock has jumped, or the machine has slept; missing outcomes are waited for by monotonic time, so \
                 nothing is imputed early, and imputation may come a few seconds later"
            );
        }
        Ok(now)
    }

    /// What was read or even committed on another connection may not be there on this one.
    fn confirm_start(&mut self, moment: Moment) -> Result<()> {
        self.residents.clear();
        let now = time_of(&self.store, moment);
        let confirmed = self.read_start(now);
        // Only what was committed is known to be stored.
        (self.node, self.stopwatch) = self.or_rollback(confirmed)?;
        Ok(())
    }

    fn read_start(&mut self, now: Moment) -> Result<(NodeStart, Stopwatch)> {
        let node = self.node.confirmed(&mut self.store, now.wall)?;
        let shared = self.store.now().is_some();
        let stopwatch = Stopwatch::of(self.store.waiting_clock()?, now, shared);
        self.store.commit()?;
        Ok((node, stopwatch))
    }

    pub(super) fn or_rollback<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.store.rollback();
        }
        result
    }
}

/// The moment with the time that all nodes share, if there is one.
fn time_of(store: &Store, moment: Moment) -> Moment {
    Moment {
        wall: store.now().unwrap_or(moment.wall),
        ..moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::request::{Create, Decide, Request};
    use crate::store::{Location, Purpose};

    /// A group may have more experiments than are kept: all of them are served, and only then dropped.
    #[test]
    fn experiments_in_memory_are_bounded() {
        let folder = Scratch::new("residents");
        let location = Location::Sqlite(folder.join("store.db"));
        let store = location.open(Purpose::Serve).unwrap();
        let mut executor = Executor::start(store, Moment::both(0)).unwrap();
        let create = |number: usize| {
            Request::Create(Create {
                id: format!("e-{number}"),
                spec: "policy = 'free'\nhorizon = 9\nrho = 0.5\nactions = ['a', 'b']".into(),
                key: None,
                blind: true,
                actor: "test".into(),
            })
        };
        let decide = |number: usize| {
            Request::Decide(Decide {
                id: format!("e-{number}"),
                rounds: 1,
                request_key: None,
                seen: 0,
                actor: "tester".into(),
            })
        };
        let many = 0..RESIDENTS_MAX + 9;
        let requests: Vec<_> = many.clone().map(create).chain(many.map(decide)).collect();
        let answers = executor.serve(&requests, Moment::both(0));
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(executor.residents.count(), RESIDENTS_MAX / 2);
        assert_eq!(executor.seen.count(), RESIDENTS_MAX / 2);
        // One that was dropped is read again.
        let again = executor.serve(&[decide(0)], Moment::both(0));
        assert!(again[0].is_ok(), "{again:?}");
    }
}
