//! How long missing outcomes are waited for: by a clock of the store's own, which no jump of another clock moves.
//!
//! ```text
//! a lease is stamped with  waited;   its rounds are due when  waited >= stamp + outcome_wait
//! with every tick          waited += min(elapsed, longest step), while something waits
//! ```
//!
//! The clock counts the milliseconds in which outcomes could be told. Time without a server adds nothing, and a process that was
//! stopped or a machine that slept adds one step at most. On a file, `elapsed` is the process's monotonic time. On a database that
//! nodes share, it is the database's time since any node moved the clock, and never more than this node's monotonic time since it
//! looked: so neither a clock that jumps, nor a node that is hours ahead, nor two nodes that tick at once hasten it.
//!
//! Nothing is early: the clock never gains on monotonic time, and a stamp is the most that it can show at that moment. What a
//! node cannot know, because others may just have moved the clock, is added to the stamp. A jump of the database's clock that is too
//! small to be told from a slow answer can hasten a node's step by the time between its ticks: [`Stopwatch::margin`] covers it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::calendar;
use crate::store::WaitingClock;

/// The longest step of the clock of a store that one server has.
const STEP_MAX: i64 = 10_000;

/// The longest where nodes share it: what one node may add without the others' knowing, and so what their stamps must allow for.
/// Nodes tick every second.
const SHARED_STEP_MAX: i64 = 2_000;

/// Clocks that differ by more over one step have jumped. Less may be a slow answer of the database.
const JUMP: i64 = 5_000;

/// Waits for the store from which on they are counted.
const WAIT_NOTED: Duration = Duration::from_secs(1);

/// How far the stored clock may be behind the one in memory: a crash makes what waits wait longer by so much. A tick, as a server
/// that is killed before it stores the clock never moves it on.
const UNSAVED_MAX: i64 = 1_000;

/// A moment, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970, for people and the log: it may jump.
    pub wall: i64,
    /// Since some moment of this process: it does not.
    pub monotonic: i64,
}

impl Moment {
    /// A moment at which both show the same, as benches and tests have it.
    pub fn both(milliseconds: i64) -> Self {
        Self {
            wall: milliseconds,
            monotonic: milliseconds,
        }
    }

    /// The moment at the end of a wait for the store, whose own time is of then: by both, a database that hangs is no jump.
    pub fn after_wait(self, waited: Duration) -> Self {
        // A short wait is far from a jump, and clocks that tests move by hand stay where they were put.
        let waited = Some(waited).filter(|waited| *waited >= WAIT_NOTED);
        let milliseconds = waited.unwrap_or_default().as_millis() as i64;
        Self {
            wall: self.wall + milliseconds,
            monotonic: self.monotonic + milliseconds,
        }
    }
}

/// What time it is. Passed in, so that tests can move it.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// The machine's clocks.
pub fn system() -> Clock {
    let begun = Instant::now();
    Arc::new(move || Moment {
        wall: calendar::now(),
        monotonic: begun.elapsed().as_millis() as i64,
    })
}

/// A node's view of the store's waiting clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    /// What it showed when this node looked or moved it on.
    waited: i64,
    /// What others may have been about to add.
    ahead: i64,
    looked: Moment,
    /// What of it is stored.
    stored: WaitingClock,
    /// Whether several nodes move it.
    shared: bool,
    /// Whether the clock of the day has jumped since.
    jumped: bool,
}

impl Stopwatch {
    /// As it is stored.
    pub fn of(stored: WaitingClock, now: Moment, shared: bool) -> Self {
        // Not counted from when it was stored: nobody may have been there to take outcomes.
        let unseen = if shared { SHARED_STEP_MAX } else { 0 };
        Self {
            waited: stored.waited,
            ahead: (now.wall - stored.read_at).clamp(0, unseen),
            looked: now,
            stored,
            shared,
            jumped: false,
        }
    }

    /// The most it can show: what leases are stamped with.
    pub fn most(&self, now: Moment) -> i64 {
        self.waited + self.ahead + self.elapsed(now).clamp(0, STEP_MAX)
    }

    /// Since it was looked at, at most.
    fn elapsed(&self, now: Moment) -> i64 {
        let monotonic = now.monotonic - self.looked.monotonic;
        if self.shared {
            // Monotonic time stands still while a machine sleeps, and other nodes go on.
            monotonic.max(now.wall - self.looked.wall)
        } else {
            monotonic
        }
    }

    /// The least it can show: what is due by this is due.
    pub fn least(&self, now: Moment) -> i64 {
        if self.shared {
            self.waited
        } else {
            self.most(now)
        }
    }

    /// What is waited for in addition.
    pub fn margin(&self) -> i64 {
        if self.shared { 1_000 } else { 0 }
    }

    /// How far the clock of the day has gone ahead of monotonic time since the last look, if it has jumped.
    pub fn jump(&self, now: Moment) -> Option<i64> {
        let day = now.wall - self.looked.wall;
        let jump = day - (now.monotonic - self.looked.monotonic);
        (jump.abs() > JUMP).then_some(jump)
    }

    /// Goes on from where the clock of the day is after a jump.
    pub fn note_jump(&mut self, now: Moment) {
        self.looked.wall = now.wall - (now.monotonic - self.looked.monotonic);
        self.jumped = true;
    }

    /// Whether other nodes may have moved it further than this one can tell.
    pub fn is_stale(&self, now: Moment) -> bool {
        self.shared && (self.jumped || self.elapsed(now) > STEP_MAX)
    }

    /// Whether what is stored is behind what this node has seen stored.
    pub fn went_back(&self, stored: &WaitingClock) -> bool {
        stored.waited < self.stored.waited
    }

    /// One step on from what is stored, at a tick while something waits.
    pub fn step(&self, stored: WaitingClock, now: Moment) -> Self {
        let waited = if self.shared {
            stored.waited + self.shared_step(&stored, now)
        } else {
            self.most(now)
        };
        Self {
            waited,
            ahead: 0,
            looked: now,
            stored,
            shared: self.shared,
            jumped: false,
        }
    }

    fn shared_step(&self, stored: &WaitingClock, now: Moment) -> i64 {
        // A jump is not told from time that passed while this machine slept, and another node may have counted that.
        if self.jumped {
            return 0;
        }
        // By the database's clock no time is counted twice; by this node's, none that did not pass.
        let by_database = now.wall - stored.read_at;
        let by_own = self.waited + now.monotonic - self.looked.monotonic - stored.waited;
        by_database.min(by_own).clamp(0, SHARED_STEP_MAX)
    }

    /// At a tick while nothing waits: it stands still, so that an idle store is not written to.
    pub fn stand_still(&self, stored: WaitingClock, now: Moment) -> Self {
        if self.shared {
            // Looked at all the same: the next lease is stamped with the most that this node cannot rule out, and the longer
            // it has not looked, the later its rounds are due.
            Self::of(stored, now, true)
        } else {
            Self {
                looked: now,
                ..*self
            }
        }
    }

    /// What to store, if it is time to.
    pub fn unsaved(&self) -> Option<WaitingClock> {
        // A shared one always, even if it was not moved: the next step counts from when this one was made.
        let time_to = self.shared || self.waited >= self.stored.waited + UNSAVED_MAX;
        time_to.then(|| self.to_store())
    }

    /// What to store.
    pub fn to_store(&self) -> WaitingClock {
        let ahead = self.stored.read_at - self.looked.wall;
        WaitingClock {
            waited: self.waited,
            // A node that waited for the row has read the time before the one that had it. Further ahead than that is a jump, and
            // to wait until the time is reached again could take hours.
            read_at: if (0..JUMP).contains(&ahead) {
                self.stored.read_at
            } else {
                self.looked.wall
            },
        }
    }

    /// Once that is stored.
    pub fn saved(mut self, stored: WaitingClock) -> Self {
        self.stored = stored;
        self
    }
}

#[cfg(test)]
mod tests {
    use debora::WorldKey;
    use debora::key::Label;

    use super::*;

    const WAIT: i64 = 20_000;
    const HOUR: i64 = 3_600_000;

    struct Node {
        stopwatch: Stopwatch,
        /// How long its monotonic clock stood still.
        slept: i64,
        /// When it ticks next.
        ticks_at: i64,
        /// Until when it does nothing at all.
        absent_until: i64,
    }

    /// Nodes at one clock, with true time beside it. How early, and how late, what was waited for was due at most.
    struct Simulation {
        chance: WorldKey,
        draws: u64,
        time: i64,
        day_ahead: i64,
        stored: WaitingClock,
        nodes: Vec<Node>,
        /// Stamp, and true time.
        leases: Vec<(i64, i64)>,
        shortest: i64,
        longest: i64,
    }

    impl Simulation {
        fn new(chance: u64, nodes: usize, shared: bool) -> Self {
            let stored = WaitingClock {
                waited: 0,
                read_at: 0,
            };
            let node = |_| Node {
                stopwatch: Stopwatch::of(stored, Moment::both(0), shared),
                slept: 0,
                ticks_at: 0,
                absent_until: 0,
            };
            Self {
                chance: WorldKey::from(chance),
                draws: 0,
                time: 0,
                day_ahead: 0,
                stored,
                nodes: (0..nodes).map(node).collect(),
                leases: Vec::new(),
                shortest: i64::MAX,
                longest: 0,
            }
        }

        /// A whole number below this.
        fn draw(&mut self, below: i64) -> i64 {
            self.draws += 1;
            (self.chance.uniform(Label::Feedback, [self.draws, 0, 0]) * below as f64) as i64
        }

        /// Begins a transaction of a node.
        fn begin(&mut self, node: usize) -> Moment {
            let node = &mut self.nodes[node];
            let now = Moment {
                wall: self.time + self.day_ahead,
                monotonic: self.time - node.slept,
            };
            if node.stopwatch.jump(now).is_some() {
                node.stopwatch.note_jump(now);
            }
            now
        }

        fn lease(&mut self, node: usize) {
            let now = self.begin(node);
            let stopwatch = &mut self.nodes[node].stopwatch;
            if stopwatch.is_stale(now) {
                *stopwatch = Stopwatch::of(self.stored, now, true);
            }
            self.leases.push((stopwatch.most(now), self.time));
        }

        fn tick(&mut self, node: usize) {
            let now = self.begin(node);
            let stopwatch = &mut self.nodes[node].stopwatch;
            if self.leases.is_empty() {
                *stopwatch = stopwatch.stand_still(self.stored, now);
                return;
            }
            *stopwatch = stopwatch.step(self.stored, now);
            if let Some(stored) = stopwatch.unsaved() {
                self.stored = stored;
                *stopwatch = stopwatch.saved(stored);
            }
            let due = stopwatch.least(now) - WAIT - stopwatch.margin();
            let time = self.time;
            while self.leases.first().is_some_and(|(stamp, _)| *stamp <= due) {
                let waited = time - self.leases.remove(0).1;
                self.shortest = self.shortest.min(waited);
                self.longest = self.longest.max(waited);
            }
        }

        /// A tenth of a second. Every half minute the clock of the day jumps; every minute a node has trouble.
        fn step(&mut self, jump: i64, trouble: bool) {
            self.time += 100;
            if jump > 0 && self.draw(300) == 0 {
                self.day_ahead += self.draw(2 * jump) - jump;
            }
            for node in 0..self.nodes.len() {
                if self.time < self.nodes[node].absent_until {
                    continue;
                }
                // Now and then a crowd of leases, and a minute without any.
                if self.time % 100_000 < 40_000 && self.draw(20) == 0 {
                    self.lease(node);
                }
                if self.time >= self.nodes[node].ticks_at {
                    self.tick(node);
                    self.nodes[node].ticks_at = self.time + 1_000;
                }
                if trouble && self.draw(600) == 0 {
                    self.disturb(node);
                }
            }
        }

        /// A node's ticks fail for a while, or it is stopped, or its machine sleeps.
        fn disturb(&mut self, node: usize) {
            let (duration, kind) = (self.draw(30_000), self.draw(3));
            let node = &mut self.nodes[node];
            match kind {
                0 => node.ticks_at += duration,
                1 => node.absent_until = self.time + duration,
                _ => {
                    node.absent_until = self.time + duration;
                    node.slept += duration;
                }
            }
        }
    }

    fn simulated(nodes: usize, shared: bool, jump: i64, trouble: bool) -> (i64, i64) {
        let (mut shortest, mut longest) = (i64::MAX, 0);
        for chance in 0..8 {
            let mut simulation = Simulation::new(chance, nodes, shared);
            (0..20_000).for_each(|_| simulation.step(jump, trouble));
            assert!(simulation.longest > 0);
            shortest = shortest.min(simulation.shortest);
            longest = longest.max(simulation.longest);
        }
        (shortest, longest)
    }

    /// The database jumps right after another node's lease, while the clock lags: this node must not catch up with it.
    #[test]
    fn a_database_that_hangs_is_not_a_clock_that_jumps() {
        let stored = WaitingClock {
            waited: 0,
            read_at: 0,
        };
        let stopwatch = Stopwatch::of(stored, Moment::both(0), true);
        let asked = Moment::both(1_000);
        // What the database says when it wakes.
        let wall = 49_000;
        let at_once = Moment { wall, ..asked };
        assert_eq!(stopwatch.jump(at_once), Some(48_000));
        let waited = Moment {
            wall,
            ..asked.after_wait(Duration::from_secs(48))
        };
        assert_eq!(stopwatch.jump(waited), None);
    }

    #[test]
    fn a_jump_adds_nothing_to_a_shared_clock() {
        let mut simulation = Simulation::new(0, 2, true);
        simulation.lease(0);
        (0..2).for_each(|node| simulation.tick(node));
        simulation.time = 10_000;
        simulation.tick(0);
        let waited = simulation.stored.waited;
        assert_eq!(waited, SHARED_STEP_MAX);
        simulation.day_ahead = HOUR;
        simulation.tick(1);
        assert_eq!(simulation.stored.waited, waited);
        simulation.time += 1_000;
        simulation.tick(1);
        assert_eq!(simulation.stored.waited, waited + 1_000);
    }

    #[test]
    fn a_machine_that_slept_stamps_what_other_nodes_may_have_counted() {
        let mut simulation = Simulation::new(0, 1, true);
        simulation.time = 4_000;
        simulation.nodes[0].slept = 3_900;
        simulation.lease(0);
        assert_eq!(simulation.leases, [(4_000, 4_000)]);
    }

    /// Whatever others may have been about to add, and not the whole idle time.
    #[test]
    fn a_lease_after_an_idle_time_is_stamped_with_little_more_than_the_clock_shows() {
        let mut simulation = Simulation::new(0, 1, true);
        for second in 1..=9 {
            simulation.time = 1_000 * second;
            simulation.tick(0);
        }
        simulation.time += 500;
        simulation.lease(0);
        assert_eq!(simulation.leases, [(SHARED_STEP_MAX + 500, 9_500)]);
    }

    #[test]
    fn undisturbed_clocks_are_late_by_seconds() {
        let (shortest, longest) = simulated(1, false, 0, false);
        assert!(shortest >= WAIT && longest <= WAIT + 1_000, "{longest}");
        let (shortest, longest) = simulated(3, true, 0, false);
        assert!(shortest >= WAIT && longest <= WAIT + 6_000, "{longest}");
    }

    #[test]
    fn nothing_is_early_or_blocked_whatever_jumps_freezes_or_sleeps() {
        for (nodes, shared) in [(1, false), (1, true), (3, true)] {
            for jump in [0, 3 * HOUR, 4_000] {
                let (shortest, longest) = simulated(nodes, shared, jump, true);
                // Several absences of up to 30 s each may fall into one wait.
                assert!(
                    shortest >= WAIT && longest <= WAIT + 100_000,
                    "{nodes} nodes, jumps of {jump}: {shortest} to {longest}"
                );
            }
        }
    }
}
