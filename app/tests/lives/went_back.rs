//! A database that goes back under a running node: restored in place, behind a connection that is made again, or behind a pooler
//! whose connection stays. What was acknowledged and is gone is said, and no hash is of outcomes that are not stored.

use debora_cli::audit::{Credentials, LogSource, Verdict, audit};
use debora_cli::service::clock::Moment;
use debora_cli::service::request::{
    Change, Create, Decide, DecisionId, Granted, MakeChange, Receipt, Refusal, Request, Tell, Tick,
    ToldOutcome,
};
use debora_cli::service::transaction::{Answered, Executor};
use debora_cli::store::{Event, Location, Progress, Purpose, StartRow, Status};

use crate::kit::stores::{Server, Store, stores};

/// Short epochs.
const SHORT: &str = r#"
policy = "soft"
horizon = 40
rho = 0.5
profile = "paper"
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.5
"#;

/// A first epoch of 1,848 rounds: more than are read at once.
const LONG: &str = r#"
policy = "soft"
horizon = 200_000
rho = 0.3
delta = 0.1
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.9
[service]
outcome_wait = "1h"
"#;

/// What changes as an experiment goes on.
const TABLES: [&str; 7] = [
    "progress",
    "epochs",
    "leases",
    "outcomes",
    "events",
    "starts",
    "waiting_clock",
];

/// How a node could notice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Notice {
    /// By what is stored alone.
    Rows,
    /// Its connection is lost.
    Connection,
    /// Its connection stays, and another server is behind it.
    Server,
}

const NOTICES: [Notice; 3] = [Notice::Rows, Notice::Connection, Notice::Server];

struct World<'a> {
    location: &'a Location,
    id: &'a str,
    server: Server,
    nodes: Vec<Executor>,
    time: i64,
}

impl<'a> World<'a> {
    fn new(location: &'a Location, id: &'a str, spec: &str) -> Self {
        let mut world = Self {
            location,
            id,
            server: Server::of(location),
            nodes: Vec::new(),
            time: 0,
        };
        world.start();
        let create = Request::Create(Create {
            id: id.into(),
            spec: spec.into(),
            key: None,
            blind: true,
            actor: "test".into(),
        });
        world.serve(0, create).unwrap();
        world
    }

    fn start(&mut self) {
        let store = self.location.open(Purpose::Serve).unwrap();
        let node = Executor::start(store, Moment::both(self.time)).unwrap();
        self.nodes.push(node);
    }

    fn serve(&mut self, node: usize, request: Request) -> Answered {
        let moment = Moment::both(self.time);
        self.nodes[node].serve(&[request], moment).remove(0)
    }

    fn decide(&mut self, node: usize, rounds: u64) -> Result<Vec<u64>, Refusal> {
        let ask = Request::Decide(Decide {
            id: self.id.into(),
            rounds,
            request_key: None,
            seen: 0,
            actor: "tester".into(),
        });
        match self.serve(node, ask)? {
            Granted::Decided(decided) => {
                let lease = decided.lease;
                Ok((lease.first..).take(lease.actions.len()).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn tell(&mut self, node: usize, rounds: &[u64], reward: f64) -> Result<Vec<Receipt>, Refusal> {
        let outcome = |round: &u64| ToldOutcome {
            decision: DecisionId::Round(*round),
            reward,
            costs: vec![0.25],
        };
        let tell = Request::Tell(Tell {
            id: self.id.into(),
            outcomes: rounds.iter().map(outcome).collect(),
            actor: "tester".into(),
        });
        match self.serve(node, tell)? {
            Granted::Told(receipts) => Ok(receipts),
            other => panic!("{other:?}"),
        }
    }

    fn change(&mut self, change: Change) {
        let (id, actor) = (self.id.into(), "ann".into());
        self.serve(
            0,
            Request::Change(MakeChange {
                id,
                change,
                actor,
                reason: None,
            }),
        )
        .unwrap();
    }

    fn save(&mut self) {
        for table in TABLES {
            let sql = format!("CREATE TABLE saved_{table} AS SELECT * FROM {table}");
            self.server.run(&sql);
        }
    }

    fn restore(&mut self, notice: Notice) {
        let restored = TABLES.map(|table| {
            format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved_{table};")
        });
        self.server
            .run(&format!("BEGIN; {} COMMIT;", restored.concat()));
        match notice {
            Notice::Rows => {}
            Notice::Connection => self.server.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = current_setting('application_name')
                    AND pid <> pg_backend_pid()",
            ),
            Notice::Server => self.server.run("UPDATE script SET started = started + 1"),
        }
    }

    fn progress(&self) -> Progress {
        let mut store = self.location.open(Purpose::Read).unwrap();
        store.experiment(self.id).unwrap().unwrap().1
    }

    fn events(&self) -> Vec<Event> {
        let mut store = self.location.open(Purpose::Read).unwrap();
        store.events(self.id, 0, 9).unwrap()
    }

    fn starts(&self) -> Vec<StartRow> {
        let mut store = self.location.open(Purpose::Read).unwrap();
        store.starts(0).unwrap()
    }

    /// Decides and tells until the horizon.
    fn run_to_the_end(&mut self) {
        let progress = self.progress();
        let outstanding: Vec<u64> = (1..progress.next_round).collect();
        self.tell(0, &outstanding, 1.0).unwrap();
        loop {
            match self.decide(0, 7) {
                Ok(rounds) => drop(self.tell(0, &rounds, 1.0).unwrap()),
                Err(Refusal::Done { .. }) => return,
                Err(refusal) => panic!("{refusal}"),
            }
        }
    }

    /// Recomputes everything from what is stored.
    #[track_caller]
    fn audit(&mut self) {
        // The audit finds tables that no store has.
        for table in TABLES {
            let sql = format!("DROP TABLE IF EXISTS saved_{table}");
            self.server.run(&sql);
        }
        let source = LogSource::Store(self.location.clone());
        let mut log = source.open(Some(self.id), &Credentials::default()).unwrap();
        match audit(&mut log, None).unwrap() {
            Verdict::Equal(_) => {}
            Verdict::Different(audited, difference) => panic!("{difference}, after {audited:?}"),
        }
    }
}

/// Plays on every store, in every way in which its nodes could notice that it went back.
fn on_every_store(spec: &str, play: impl Fn(&mut World<'_>, Notice)) {
    for store in stores() {
        let notices = if store.is_shared() {
            &NOTICES[..]
        } else {
            &NOTICES[..1]
        };
        for &notice in notices {
            store.fresh(|location, id| play(&mut World::new(location, id, spec), notice));
        }
    }
}

fn on_a_shared_store(spec: &str, play: impl Fn(&mut World<'_>)) {
    let store = stores().into_iter().find(Store::is_shared);
    let store = store.expect("a shared store");
    store.fresh(|location, id| play(&mut World::new(location, id, spec)));
}

fn lost(refusal: Result<Vec<u64>, Refusal>) -> String {
    match refusal {
        Err(Refusal::WentBack { lost, .. }) => lost,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_experiment_that_lost_rounds_is_paused_with_the_reason() {
    on_every_store(LONG, |world, notice| {
        world.decide(0, 6).unwrap();
        world.tell(0, &[1, 2, 3], 1.0).unwrap();
        world.save();
        world.decide(0, 4).unwrap();
        world.tell(0, &[4, 8, 9, 10], 1.0).unwrap();
        world.restore(notice);
        let reason = lost(world.decide(0, 1));
        assert!(
            reason.contains("rounds 7 to 10, 4 outcomes"),
            "{notice:?}: {reason}"
        );
        // Nothing was handed out, and the log says why it stands still.
        let event = world.events().pop().unwrap();
        assert_eq!(
            (event.actor.as_str(), event.what.as_str()),
            ("debora", "paused")
        );
        assert_eq!(event.reason, Some(reason));
        assert_eq!(world.progress().next_round, 7);
        let refusal = world.decide(0, 1).unwrap_err();
        assert!(matches!(refusal, Refusal::Paused { .. }), "{refusal}");
        let receipts = world.tell(0, &[4, 8], 0.5).unwrap();
        assert_eq!(receipts, [Receipt::Recorded, Receipt::Unknown]);
        world.change(Change::Resume);
        assert_eq!(world.decide(0, 2).unwrap(), [7, 8]);
        world.audit();
    });
}

#[test]
fn a_lost_end_of_an_epoch_is_found_and_the_audit_confirms_what_follows() {
    on_every_store(SHORT, |world, notice| {
        let rounds = world.decide(0, 9).unwrap();
        world.save();
        world.tell(0, &rounds, 0.0).unwrap();
        assert_eq!(world.progress().epoch, 1);
        world.restore(notice);
        let reason = lost(world.decide(0, 1));
        assert!(
            reason.contains("the end of epoch 0"),
            "{notice:?}: {reason}"
        );
        world.change(Change::Resume);
        world.run_to_the_end();
        assert_eq!(world.progress().status, Status::Done);
        world.audit();
    });
}

#[test]
fn another_history_of_the_same_length_is_found() {
    on_every_store(SHORT, |world, notice| {
        let rounds = world.decide(0, 9).unwrap();
        world.tell(0, &rounds, 0.0).unwrap();
        let head = world.progress().head;
        let other = "0".repeat(64);
        // Both tables, as a history of its own would have it.
        for table in [
            "progress SET progress = replace(progress",
            "epochs SET hash = replace(hash",
        ] {
            let sql = format!("UPDATE {table}, '{head}', '{other}')");
            world.server.run(&sql);
        }
        world.save();
        world.restore(notice);
        let reason = lost(world.decide(0, 1));
        assert!(
            reason.contains(&format!("the head {head} after 1 epochs")),
            "{reason}"
        );
    });
}

/// Node 0 has added up outcomes that a restored database does not have; node 1 has gone on from there, and further.
#[test]
fn no_hash_is_of_outcomes_that_are_not_stored() {
    for notice in NOTICES {
        on_a_shared_store(LONG, |world| {
            world.decide(0, 600).unwrap();
            world.save();
            world.decide(0, 600).unwrap();
            // Something waits for its outcome, so the waiting clock moves on, and is seen to go back.
            world.time += 1_000;
            world.server.set_clock(world.time);
            world.nodes[0].due(Moment::both(world.time)).unwrap();
            let told: Vec<u64> = (1..=1_200).collect();
            world.tell(0, &told, 1.0).unwrap();
            world.restore(notice);
            world.start();
            world.decide(1, 700).unwrap();
            let told: Vec<u64> = (1..=1_300).collect();
            world.tell(1, &told, 0.0).unwrap();
            world.nodes[0].due(Moment::both(world.time)).unwrap();
            let rounds = world.decide(0, 1_000).unwrap();
            world.tell(0, &rounds, 0.0).unwrap();
            assert_eq!(world.progress().epoch, 1, "{notice:?}");
            world.audit();
        });
    }
}

#[test]
fn a_start_that_is_gone_is_noted_again() {
    on_a_shared_store(SHORT, |world| {
        world.save();
        world.start();
        let name = world.starts().pop().unwrap().node;
        world.restore(Notice::Connection);
        assert!(world.starts().iter().all(|start| start.node != name));
        world.decide(1, 1).unwrap();
        let start = world.starts().pop().unwrap();
        assert_eq!((start.incarnation, start.node), (2, name));
        // Once.
        world.decide(1, 1).unwrap_err();
        assert_eq!(world.starts().len(), 2);
    });
}

#[test]
fn another_store_in_the_place_of_the_one_that_was_started_is_not_written_to() {
    on_a_shared_store(LONG, |world| {
        world.decide(0, 6).unwrap();
        let starts = world.starts();
        world.save();
        world.server.run("UPDATE store SET identity = 'another'");
        world.restore(Notice::Connection);
        let Err(Refusal::Store { detail }) = world.decide(0, 1) else {
            panic!("another store was served")
        };
        assert!(
            detail.contains("holds the store of identity \"another\""),
            "{detail}"
        );
        assert_eq!((world.progress().next_round, world.starts()), (7, starts));
    });
}

#[test]
fn a_finished_experiment_that_is_not_finished_in_the_store_is_paused() {
    on_every_store(SHORT, |world, notice| {
        world.save();
        world.change(Change::Close);
        world.restore(notice);
        let reason = lost(world.decide(0, 1));
        assert!(reason.contains("that it was closed"), "{reason}");
        assert_eq!(world.progress().status, Status::Paused);
    });
}

/// Each node hashes what it hands out itself and reads the rest: whoever closes an epoch, the hash is the same.
#[test]
fn nodes_that_take_turns_keep_one_chain() {
    let spec = format!("{SHORT}[service]\non_wait = 'serve'\noutcome_wait = '60s'\n");
    on_a_shared_store(&spec, |world| {
        world.start();
        let mut heads = vec![world.progress().head];
        for turn in 0.. {
            // Some nodes are started anew in the middle of an epoch.
            if turn % 7 == 3 {
                world.nodes.remove(turn % 2);
                world.start();
            }
            let rounds = match world.decide(turn % 2, 3) {
                Ok(_) => (1..world.progress().next_round).collect::<Vec<u64>>(),
                Err(Refusal::Done { .. }) => break,
                Err(refusal) => panic!("{refusal}"),
            };
            world.tell((turn + 1) % 2, &rounds, 1.0).unwrap();
            heads.push(world.progress().head);
        }
        assert!(world.progress().epoch > 3);
        world.audit();
        heads.dedup();
        assert_eq!(heads.len() as u64, world.progress().epoch + 2);
    });
}

/// Late outcomes move the head of an experiment that is over: what another node was told is not a loss.
#[test]
fn what_another_node_stores_after_the_end_is_not_lost() {
    let spec = format!("{SHORT}[service]\noutcome_wait = '2s'\n");
    on_a_shared_store(&spec, |world| {
        world.start();
        // Two rounds that nobody tells until all is over.
        for round in 1..=2 {
            assert_eq!(world.decide(0, 1).unwrap(), [round]);
            while world.progress().imputed.iter().sum::<u64>() < round {
                world.time += 1_000;
                world.server.set_clock(world.time);
                for node in 0..2 {
                    let moment = Moment::both(world.time);
                    world.nodes[node].due(moment).unwrap();
                }
                let id = world.id.into();
                world.serve(0, Request::Tick(Tick { id })).unwrap();
            }
        }
        loop {
            match world.decide(0, 7) {
                Ok(rounds) => drop(world.tell(0, &rounds, 1.0).unwrap()),
                Err(Refusal::Done { .. }) => break,
                Err(refusal) => panic!("{refusal}"),
            }
        }
        let ended = world.progress();
        for (node, round) in [(1, 1), (0, 2)] {
            let receipts = world.tell(node, &[round], 1.0);
            assert_eq!(receipts.unwrap(), [Receipt::Late]);
        }
        let after = world.progress();
        assert_eq!((ended.late, after.late), (0, 2));
        assert_ne!(ended.head, after.head);
        world.audit();
    });
}
