//! A service lives: nodes ask, tell, tick, die and start again at one database, in an order that follows from a seed.

use std::collections::BTreeSet;

use debora::Key;
use debora_cli::audit::{Credentials, LogSource, Verdict, audit};
use debora_cli::service::clock::Moment;
use debora_cli::service::request::{Change, Granted, Receipt, Refusal, Request};
use debora_cli::service::transaction::{Answered, Executor};
use debora_cli::store::Status;

use super::database::{Notice, SimulatedDatabase};
use super::model::{ID, Model, SPEC, Stored, WAIT, reward};
use crate::kit::dice::Dice;
use crate::kit::requests::{ask_by_key, create, tell, to_change, told};

const HOUR: i64 = 3_600_000;

/// Steps with trouble; after these the experiment goes on to its end without any.
const STEPS: u64 = 120;

/// An experiment that could not be read is looked at again after a minute, and each node may be late by some seconds.
const LATE_MAX: i64 = 80_000;

/// What is wrong on purpose, and must be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Planted {
    Nothing,
    /// The database acknowledges commits that it drops.
    DroppedCommits,
    /// Every clock that the service has runs at twice its speed.
    FastClocks,
}

/// What lives had, in numbers.
#[derive(Debug, Default)]
pub struct Had {
    pub failures: u64,
    pub starts: u64,
    pub goings_back: u64,
    pub told_of_going_back: u64,
    pub imputed: u64,
    pub late: u64,
}

/// A process, whose clocks are its own.
struct Node {
    executor: Option<Executor>,
    /// How far its clock of the day is ahead.
    ahead: i64,
    begun: i64,
    /// Rounds it handed out, unless it has said that they are lost.
    granted: BTreeSet<u64>,
}

/// One life.
pub struct Life<'a> {
    database: SimulatedDatabase,
    dice: Dice,
    planted: Planted,
    now: i64,
    /// What the clocks that the service has show.
    clocks: i64,
    database_ahead: i64,
    nodes: Vec<Node>,
    model: Model,
    /// Requests that nobody answered.
    unanswered: Vec<Request>,
    asked: u64,
    saved: Option<u64>,
    had: Had,
    /// What happened, for whoever looks for the cause.
    trace: &'a mut Vec<String>,
}

impl<'a> Life<'a> {
    pub fn new(seed: u64, planted: Planted, trace: &'a mut Vec<String>) -> Self {
        let database = SimulatedDatabase::new(2 * seed + 1);
        let mut life = Self {
            database,
            dice: Dice::new(2 * seed),
            planted,
            now: 1_700_000_000_000,
            clocks: 1_700_000_000_000,
            database_ahead: 0,
            nodes: Vec::new(),
            model: Model::default(),
            unanswered: Vec::new(),
            asked: 0,
            saved: None,
            had: Had::default(),
            trace,
        };
        life.advance(0);
        life.start_another();
        let create = create(ID, SPEC, Some(Key::from(seed)));
        life.serve(0, &create).unwrap();
        life
    }

    /// Lives: first with trouble, then to the horizon, then under an audit.
    pub fn live(mut self) -> Had {
        self.database.set_failing(true);
        if self.planted == Planted::DroppedCommits {
            self.database.lie();
        }
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.database.set_failing(false);
        self.nodes_are_up();
        self.run_to_the_end();
        self.audit();
        self.had.failures = self.database.failures();
        self.had.imputed = self.model.imputations;
        self.had
    }

    fn step(&mut self) {
        let node = self.below(self.nodes.len() as u64) as usize;
        match self.below(100) {
            0..25 => self.decide(node),
            25..55 => {
                let mut rounds = self.model.untold();
                // Of some nobody ever hears while there is trouble.
                rounds.retain(|round| round % 5 > 0);
                rounds.truncate(6);
                self.tell(node, rounds);
            }
            55..75 => self.pass(1, 4),
            75..80 => self.pass(20, 60),
            80..85 => self.repeat(node),
            85..89 => self.kill(node),
            89..91 => self.start_another(),
            91..94 => self.jump(node),
            94..96 => {
                self.note("save");
                self.saved = Some(self.database.save());
            }
            96..98 => self.go_back(),
            _ => self.pause_or_resume(node),
        }
        self.nodes_are_up();
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice.below(limit)
    }

    fn note(&mut self, what: impl Into<String>) {
        self.trace.push(what.into());
    }

    /// Time goes on, and nobody does anything.
    fn advance(&mut self, milliseconds: i64) {
        let fast = self.planted == Planted::FastClocks;
        self.now += milliseconds;
        self.clocks += milliseconds * if fast { 2 } else { 1 };
        self.database.set_clock(self.clocks + self.database_ahead);
    }

    fn moment(&self, node: usize) -> Moment {
        let node = &self.nodes[node];
        Moment {
            wall: self.clocks + node.ahead,
            monotonic: self.clocks - node.begun,
        }
    }

    fn start_another(&mut self) {
        if self.nodes.len() < 3 {
            self.nodes.push(Node {
                executor: None,
                ahead: 0,
                begun: self.clocks,
                granted: BTreeSet::new(),
            });
            self.start(self.nodes.len() - 1);
        }
    }

    fn start(&mut self, node: usize) {
        let moment = self.moment(node);
        let started = Executor::start(self.database.connect(), moment);
        self.had.starts += u64::from(started.is_ok());
        self.note(format!("start {node}: {}", started.is_ok()));
        self.nodes[node].executor = started.ok();
    }

    /// Those that could not start try again.
    fn nodes_are_up(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].executor.is_none() {
                self.start(node);
            }
        }
    }

    fn kill(&mut self, node: usize) {
        let (moment, gently) = (self.moment(node), self.below(2) == 0);
        self.note(format!("kill {node}, gently: {gently}"));
        let mut executor = self.nodes[node].executor.take();
        if let (Some(executor), true) = (&mut executor, gently) {
            // What a failure leaves of it is what a kill leaves.
            let _ = executor.stop(moment);
        }
        self.nodes[node].granted.clear();
        self.nodes[node].begun = self.clocks;
    }

    fn serve(&mut self, node: usize, request: &Request) -> Answered {
        let moment = self.moment(node);
        let Some(executor) = &mut self.nodes[node].executor else {
            let detail = "this node is down".into();
            return Err(Refusal::Store { detail });
        };
        let answered = executor
            .serve(std::slice::from_ref(request), moment)
            .remove(0);
        if let Err(Refusal::WentBack { lost, .. }) = &answered {
            self.trace.push(format!("{node} says: {lost}"));
            self.had.told_of_going_back += 1;
            self.nodes[node].granted.clear();
        }
        answered
    }

    fn decide(&mut self, node: usize) {
        self.asked += 1;
        let key = format!("key {}", self.asked);
        let request = ask_by_key(ID, 1 + self.below(8), Some(key));
        self.ask(node, request);
    }

    /// What was not answered is asked again, at any node.
    fn repeat(&mut self, node: usize) {
        if let Some(request) = self.unanswered.pop() {
            self.note("repeat");
            self.ask(node, request);
        }
    }

    fn ask(&mut self, node: usize, request: Request) {
        match self.serve(node, &request) {
            Ok(Granted::Decided(decided)) => {
                let lease = &decided.lease;
                let last = lease.first + lease.actions.len() as u64 - 1;
                self.note(format!(
                    "{node} grants {} to {last}, again: {}",
                    lease.first, decided.repeated
                ));
                if !decided.repeated {
                    let granted = &mut self.nodes[node].granted;
                    assert!(
                        granted.last().is_none_or(|before| *before < lease.first),
                        "node {node} grants round {} again, and has not said that it was lost",
                        lease.first
                    );
                    granted.extend(lease.first..=last);
                }
                self.model.granted(lease);
            }
            Err(Refusal::Store { .. }) => {
                self.note(format!("{node} does not answer"));
                self.unanswered.push(request);
            }
            // A pause is short, or little else would happen.
            Err(Refusal::Paused { .. }) if self.below(2) == 0 => self.pause_or_resume(node),
            answered => self.expect_refusal(answered),
        }
    }

    fn tell(&mut self, node: usize, rounds: Vec<u64>) {
        if rounds.is_empty() {
            return;
        }
        let outcome = |round: &u64| told(*round, reward(*round), [0.25]);
        match self.serve(node, &tell(ID, rounds.iter().map(outcome))) {
            Ok(Granted::Told(receipts)) => {
                self.note(format!("{node} is told {rounds:?}: {receipts:?}"));
                for (round, receipt) in rounds.into_iter().zip(receipts) {
                    self.had.late += u64::from(receipt == Receipt::Late);
                    self.model.answered(round, receipt);
                }
            }
            Err(Refusal::Store { .. }) => {
                self.note(format!("{node} may have been told {rounds:?}"))
            }
            answered => self.expect_refusal(answered),
        }
    }

    fn expect_refusal(&self, answered: Answered) {
        match answered {
            Err(
                Refusal::Waiting { .. }
                | Refusal::Paused { .. }
                | Refusal::Done { .. }
                | Refusal::WentBack { .. },
            ) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Time goes on, and each node ticks every second.
    fn pass(&mut self, least: u64, most: u64) {
        let seconds = least + self.below(most - least + 1);
        self.note(format!("{seconds} s"));
        for _ in 0..seconds {
            self.advance(1_000);
            if (0..self.nodes.len()).any(|node| self.tick(node)) {
                self.check();
            }
        }
    }

    /// Whether something was imputed.
    fn tick(&mut self, node: usize) -> bool {
        let moment = self.moment(node);
        let mut imputed = 0;
        while let Some(executor) = &mut self.nodes[node].executor {
            match executor.tick(moment) {
                Ok(ticked) => {
                    imputed += ticked.imputed;
                    if !ticked.more {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        imputed > 0
    }

    /// A clock of the day jumps: a node's, or the database's.
    fn jump(&mut self, node: usize) {
        let by = [3 * HOUR, -3 * HOUR, 4_000, -4_000][self.below(4) as usize];
        if self.below(3) == 0 {
            self.note(format!("the database's clock jumps by {by} ms"));
            self.database_ahead += by;
            self.advance(0);
        } else {
            self.note(format!("the clock of {node} jumps by {by} ms"));
            self.nodes[node].ahead += by;
        }
    }

    fn go_back(&mut self) {
        let Some(saved) = self.saved else { return };
        let notices = [Notice::Rows, Notice::Connection, Notice::Server];
        let notice = notices[self.below(3) as usize];
        self.note(format!("the database goes back: {notice:?}"));
        self.database.go_back(saved, notice);
        self.had.goings_back += 1;
        self.model.go_back(&self.stored());
    }

    fn pause_or_resume(&mut self, node: usize) {
        let status = self.stored().progress.status;
        let change = match status {
            Status::Running => Change::Pause,
            Status::Paused => Change::Resume,
            Status::Done | Status::Closed => return,
        };
        self.note(format!("{node}: {change:?}"));
        // Whoever gets no answer looks again.
        let _ = self.serve(node, &to_change(ID, change));
    }

    fn stored(&self) -> Stored {
        Stored::read(&self.database.location())
    }

    fn check(&mut self) {
        let stored = self.stored();
        self.model.check(&stored, self.now, WAIT);
    }

    fn run_to_the_end(&mut self) {
        self.note("no trouble from here on");
        for turn in 0..1_000 {
            let node = turn % self.nodes.len();
            match self.stored().progress.status {
                Status::Done => return,
                Status::Paused => self.pause_or_resume(node),
                _ => self.finish_what_waits(node),
            }
            self.check();
        }
        panic!("no end");
    }

    /// Tells all that was granted; what nobody was told of is imputed in time.
    fn finish_what_waits(&mut self, node: usize) {
        self.decide(node);
        self.tell(node, self.model.untold());
        let progress = self.stored().progress;
        if progress.status == Status::Running && progress.outstanding() > 0 {
            let seconds = ((WAIT + LATE_MAX) / 1_000) as u64;
            self.pass(seconds, seconds);
            let progress = self.stored().progress;
            assert_eq!(progress.outstanding(), 0, "still outstanding");
        }
    }

    /// Recomputes everything from what is stored.
    fn audit(&self) {
        let source = LogSource::Store(self.database.location());
        let mut log = source.open(Some(ID), &Credentials::default()).unwrap();
        match audit(&mut log, None).unwrap() {
            Verdict::Equal(_) => {}
            Verdict::Different(audited, difference) => panic!("{difference}, after {audited:?}"),
        }
    }
}
