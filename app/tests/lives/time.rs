//! Missing outcomes are waited for as long as the rules say, whatever the clocks do: nothing early, nothing blocked.
//!
//! True time is the test's. Each node has a clock of the day and a monotonic one, and PostgreSQL has its own; all of them are moved
//! by hand. At every tick each imputed round must have been waited for, and each that has been waited for must be imputed.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use debora_cli::service::clock::Moment;
use debora_cli::service::request::{
    Change, Create, Decide, DecisionId, Granted, MakeChange, Request, Tell, ToldOutcome,
};
use debora_cli::service::tick::Ticked;
use debora_cli::service::transaction::Executor;
use debora_cli::store::{Location, Progress, Purpose, Status};

use crate::kit::stores::{Server, Store, stores};

/// One long epoch.
const SPEC: &str = r#"
policy = "free"
horizon = 1e7
rho = 0.9
actions = ["a", "b"]
[service]
outcome_wait = "30s"
"#;

const WAIT: i64 = 30_000;
const HOUR: i64 = 3_600_000;

struct Node {
    executor: Executor,
    /// How far its clock of the day is ahead of true time.
    ahead: i64,
    /// How far its monotonic clock is behind: when it was started, and how long its machine slept.
    behind: i64,
    frozen: bool,
}

impl Node {
    fn moment(&self, time: i64) -> Moment {
        Moment {
            wall: time + self.ahead,
            monotonic: time - self.behind,
        }
    }
}

/// Rounds that wait: how many, when they were decided, and when they must be imputed at the latest.
struct Waiting {
    rounds: u64,
    decided_at: i64,
    deadline: i64,
}

struct World<'a> {
    location: &'a Location,
    id: &'a str,
    server: Server,
    time: i64,
    database_ahead: i64,
    nodes: Vec<Node>,
    waiting: VecDeque<Waiting>,
    imputed: u64,
}

impl<'a> World<'a> {
    /// An experiment, and a node.
    fn new(location: &'a Location, id: &'a str) -> Self {
        let mut world = Self {
            location,
            id,
            server: Server::of(location),
            time: 1_700_000_000_000,
            database_ahead: 0,
            nodes: Vec::new(),
            waiting: VecDeque::new(),
            imputed: 0,
        };
        world.set_database_ahead(0);
        world.start(0);
        create(&mut world.nodes[0], world.time, &[id.into()], SPEC);
        world
    }

    fn start(&mut self, ahead: i64) {
        let moment = Moment {
            wall: self.time + ahead,
            monotonic: 0,
        };
        let store = self.location.open(Purpose::Serve).unwrap();
        self.nodes.push(Node {
            executor: Executor::start(store, moment).unwrap(),
            ahead,
            behind: self.time,
            frozen: false,
        });
    }

    fn set_database_ahead(&mut self, ahead: i64) {
        self.database_ahead = ahead;
        self.server.set_clock(self.time + ahead);
    }

    /// All clocks of the day jump.
    fn jump(&mut self, by: i64) {
        self.nodes.iter_mut().for_each(|node| node.ahead += by);
        self.set_database_ahead(self.database_ahead + by);
    }

    fn decide(&mut self, node: usize, rounds: u64) {
        let node = &mut self.nodes[node];
        let ask = Request::Decide(Decide {
            id: self.id.into(),
            rounds,
            request_key: None,
            seen: 0,
            actor: "tester".into(),
        });
        let answer = node.executor.serve(&[ask], node.moment(self.time)).pop();
        assert!(
            matches!(answer, Some(Ok(Granted::Decided(_)))),
            "{answer:?}"
        );
        // Nodes that share a store allow for what the others may have done.
        let late = match self.location {
            Location::Sqlite(_) => 1_000,
            Location::Postgres(_) => 6_000,
        };
        self.waiting.push_back(Waiting {
            rounds,
            decided_at: self.time,
            deadline: self.time + WAIT + late,
        });
    }

    /// Time that may not count.
    fn excuse(&mut self, milliseconds: i64) {
        for waiting in &mut self.waiting {
            waiting.deadline += milliseconds;
        }
    }

    /// Time passes, and nobody does anything.
    fn skip(&mut self, milliseconds: i64) {
        self.time += milliseconds;
        self.server.set_clock(self.time + self.database_ahead);
    }

    /// Time passes, and each node ticks every second, one half a second after the other.
    fn pass(&mut self, seconds: i64) {
        for half in 0..2 * seconds {
            self.skip(500);
            for (place, node) in self.nodes.iter_mut().enumerate() {
                if (half as usize + place) % 2 == 1 && !node.frozen {
                    self.imputed += tick(node, self.time);
                }
            }
            self.check();
        }
    }

    #[track_caller]
    fn check(&mut self) {
        while let Some(first) = self.waiting.front_mut() {
            let imputed = first.rounds.min(self.imputed);
            let waited = self.time - first.decided_at;
            assert!(imputed == 0 || waited >= WAIT, "imputed after {waited} ms");
            first.rounds -= imputed;
            self.imputed -= imputed;
            if first.rounds > 0 {
                assert!(self.time <= first.deadline, "waiting for {waited} ms");
                return;
            }
            self.waiting.pop_front();
        }
        assert_eq!(self.imputed, 0);
    }

    /// Until nothing waits.
    #[track_caller]
    fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.pass(1);
        }
        let progress = self.progress();
        assert_eq!(progress.outstanding(), 0);
    }

    fn progress(&self) -> Progress {
        let mut store = self.location.open(Purpose::Read).unwrap();
        store.experiment(self.id).unwrap().unwrap().1
    }
}

/// Ticks as long as there is more, as a server does.
fn tick(node: &mut Node, time: i64) -> u64 {
    let mut imputed = 0;
    loop {
        let ticked = node.executor.tick(node.moment(time)).unwrap();
        imputed += ticked.imputed;
        if !ticked.more {
            return imputed;
        }
    }
}

fn create(node: &mut Node, time: i64, ids: &[String], spec: &str) {
    let create = |id: &String| {
        Request::Create(Create {
            id: id.clone(),
            spec: spec.into(),
            key: None,
            blind: true,
            actor: "test".into(),
        })
    };
    let requests: Vec<_> = ids.iter().map(create).collect();
    let answers = node.executor.serve(&requests, node.moment(time));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

/// Plays on every store.
fn on_every_store(play: impl Fn(&mut World<'_>)) {
    for store in stores() {
        store.fresh(|location, id| play(&mut World::new(location, id)));
    }
}

fn on_a_shared_store(play: impl Fn(&mut World<'_>)) {
    let store = stores().into_iter().find(Store::is_shared);
    let store = store.expect("a shared store");
    store.fresh(|location, id| play(&mut World::new(location, id)));
}

#[test]
fn outcomes_are_waited_for_as_long_as_the_rules_say() {
    on_every_store(|world| {
        for _ in 0..10 {
            world.decide(0, 3);
            world.pass(4);
        }
        world.finish();
    });
}

#[test]
fn a_clock_that_jumps_by_hours_hastens_nothing_and_blocks_nothing() {
    for jump in [3 * HOUR, -3 * HOUR, 4_000, -4_000] {
        on_every_store(|world| {
            world.decide(0, 3);
            world.pass(12);
            world.jump(jump);
            // A lease whose time of day is in the future, or in the past.
            world.decide(0, 3);
            // What is lost over a jump.
            world.excuse(5_000);
            world.pass(6);
            world.jump(-jump);
            world.excuse(5_000);
            world.decide(0, 3);
            world.finish();
        });
    }
}

#[test]
fn nodes_wait_as_one_however_far_their_clocks_are_apart() {
    on_a_shared_store(|world| {
        world.start(2 * HOUR);
        world.start(-2 * HOUR);
        for turn in 0..12 {
            world.decide(turn % 3, 2);
            world.pass(2);
        }
        world.finish();
    });
}

#[test]
fn a_node_that_was_frozen_hastens_nothing() {
    on_a_shared_store(|world| {
        world.start(0);
        world.nodes[1].frozen = true;
        world.pass(40);
        world.decide(0, 3);
        world.pass(20);
        // Its view of the waiting clock is old: a lease by that would be due too early.
        world.decide(1, 3);
        world.nodes[1].frozen = false;
        world.pass(20);
        // And one whose machine slept, so that its monotonic clock knows of nothing.
        world.nodes[1].frozen = true;
        world.pass(40);
        world.nodes[1].behind += 40_000;
        world.nodes[1].frozen = false;
        world.decide(1, 3);
        world.finish();
    });
}

#[test]
fn a_frozen_server_or_a_sleeping_machine_adds_one_step() {
    for asleep in [false, true] {
        on_every_store(|world| {
            world.decide(0, 3);
            world.pass(12);
            world.skip(HOUR);
            if asleep {
                world.nodes[0].behind += HOUR;
            }
            world.excuse(HOUR);
            world.pass(5);
            // An hour and 17 s after the decision, of which at most 27 s count.
            assert_eq!(world.progress().outstanding(), 3);
            world.finish();
        });
    }
}

#[test]
fn a_restart_goes_on_from_what_was_waited_for() {
    for killed in [false, true] {
        on_every_store(|world| {
            world.decide(0, 3);
            world.pass(12);
            let mut node = world.nodes.remove(0);
            if !killed {
                node.executor.stop(node.moment(world.time)).unwrap();
            }
            drop(node);
            world.skip(HOUR);
            // What a kill may lose of the clock.
            world.excuse(HOUR + if killed { 6_000 } else { 1_000 });
            world.start(-HOUR / 2);
            world.pass(12);
            assert_eq!(world.progress().outstanding(), 3);
            world.finish();
        });
    }
}

/// Of many experiments, only those with something due are looked at.
#[test]
fn experiments_with_nothing_due_cost_a_tick_nothing() {
    on_every_store(|world| {
        let node = &mut world.nodes[0];
        let ids: Vec<_> = (0..200)
            .map(|number| format!("{}-{number}", world.id))
            .collect();
        create(node, world.time, &ids, SPEC);
        world.decide(0, 3);
        world.pass(28);
        let node = &mut world.nodes[0];
        let mut due = Vec::new();
        while due.is_empty() {
            world.time += 1_000;
            world.server.set_clock(world.time);
            due = node.executor.due(node.moment(world.time)).unwrap();
        }
        assert_eq!(due, [world.id]);
        world.finish();
        let node = &mut world.nodes[0];
        let ticked = node.executor.tick(node.moment(world.time)).unwrap();
        assert_eq!(ticked, Ticked::default());
    });
}

/// Once an experiment is over, nothing of it is in the index.
#[test]
fn an_experiment_that_is_over_waits_for_nothing() {
    on_every_store(|world| {
        let node = &mut world.nodes[0];
        let done = format!("{}-done", world.id);
        let short = "profile = 'paper'\nhorizon = 1\n";
        let spec = SPEC.replace("horizon = 1e7\n", short);
        create(node, world.time, std::slice::from_ref(&done), &spec);
        world.decide(0, 3);
        let node = &mut world.nodes[0];
        let mut serve = |request| {
            node.executor
                .serve(&[request], node.moment(world.time))
                .remove(0)
        };
        let ask = Request::Decide(Decide {
            id: done.clone(),
            rounds: 1,
            request_key: None,
            seen: 0,
            actor: "tester".into(),
        });
        serve(ask).unwrap();
        let mut reader = world.location.open(Purpose::Read).unwrap();
        let mut due = |id: &str| reader.lock(id).unwrap().unwrap().due.is_some();
        assert!(due(world.id) && due(&done));
        let outcomes = vec![ToldOutcome {
            decision: DecisionId::Round(1),
            reward: 1.0,
            costs: Vec::new(),
        }];
        let id = done.clone();
        serve(Request::Tell(Tell {
            id,
            outcomes,
            actor: "tester".into(),
        }))
        .unwrap();
        let close = Request::Change(MakeChange {
            id: world.id.into(),
            change: Change::Close,
            actor: "test".into(),
            reason: None,
        });
        serve(close).unwrap();
        assert!(!due(world.id) && !due(&done));
        assert_eq!(
            reader.experiment(&done).unwrap().unwrap().1.status,
            Status::Done
        );
    });
}

/// Stores from before due times were kept have 0 in their place: each is looked at once.
#[test]
fn what_is_marked_as_due_is_looked_at_once() {
    on_every_store(|world| {
        let node = &mut world.nodes[0];
        let (patient, closed) = (
            format!("{}-patient", world.id),
            format!("{}-closed", world.id),
        );
        create(
            node,
            world.time,
            std::slice::from_ref(&patient),
            &SPEC.replace("outcome_wait", "# outcome_wait"),
        );
        create(node, world.time, std::slice::from_ref(&closed), SPEC);
        let close = Request::Change(MakeChange {
            id: closed.clone(),
            change: Change::Close,
            actor: "test".into(),
            reason: None,
        });
        let closed_now = node.executor.serve(&[close], node.moment(world.time));
        assert!(closed_now[0].is_ok(), "{closed_now:?}");
        world.decide(0, 3);
        let mut writer = world.location.open(Purpose::Write).unwrap();
        writer.begin().unwrap();
        for id in [world.id, &patient, &closed] {
            writer.set_due(id, Some(0)).unwrap();
        }
        writer.commit().unwrap();
        world.pass(1);
        let mut due = |id: &str| writer.lock(id).unwrap().unwrap().due;
        assert_eq!((due(&patient), due(&closed)), (None, None));
        assert!(due(world.id).is_some_and(|due| due >= WAIT));
        world.finish();
    });
}

/// More than one tick looks at, all due before the one that can be imputed.
#[test]
fn experiments_that_cannot_be_read_hold_up_no_other() {
    on_every_store(|world| {
        world.decide(0, 3);
        let mut writer = world.location.open(Purpose::Write).unwrap();
        writer.begin().unwrap();
        let (experiment, progress) = writer.experiment(world.id).unwrap().unwrap();
        let opened = writer.epochs(world.id, 0, 1).unwrap().remove(0);
        for number in 0..70 {
            let mut damaged = experiment.clone();
            damaged.id = format!("{}-{number}", world.id);
            damaged.spec = "damaged".into();
            assert!(writer.create(&damaged, &progress, &opened).unwrap());
            writer.set_due(&damaged.id, Some(0)).unwrap();
        }
        writer.commit().unwrap();
        world.pass(1);
        let node = &mut world.nodes[0];
        // Not again for a minute.
        assert!(
            node.executor
                .due(node.moment(world.time))
                .unwrap()
                .is_empty()
        );
        world.finish();
    });
}

#[test]
fn an_idle_store_is_not_written_to_and_a_waiting_one_now_and_then() {
    on_every_store(|world| {
        let location = world.location.clone();
        let stored = || {
            let mut store = location.open(Purpose::Write).unwrap();
            store.waiting_clock().unwrap().waited
        };
        world.pass(30);
        assert_eq!(stored(), 0);
        world.decide(0, 3);
        world.pass(25);
        assert!((15_000..=27_000).contains(&stored()), "{}", stored());
        world.finish();
    });
}

/// Lines written to the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_jump_is_logged_once() {
    on_every_store(|world| {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            world.decide(0, 3);
            world.pass(5);
            assert!(lines.0.lock().unwrap().is_empty());
            world.jump(2 * HOUR);
            world.excuse(2_000);
            world.pass(5);
        });
        let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(lines.matches("ERROR").count(), 1, "{lines}");
        assert!(lines.contains("jump_seconds=7200"), "{lines}");
    });
}
