//! Small experiments, driven through transactions on a SQLite file, with a clock moved by hand.

use std::io::Cursor;

use debora::WorldKey;
use debora::key::Label;
use debora_cli::audit::{Credentials, Log, LogSource, Verdict, audit};
use debora_cli::log::{Line, page};
use debora_cli::service::clock::Moment;
use debora_cli::service::request::{
    Change, Create, Decide, DecisionId, Granted, MakeChange, Refusal, Request, Tell, Tick,
    ToldOutcome,
};
use debora_cli::service::transaction::Executor;
use debora_cli::store::{DecisionKind, Location, Progress, Purpose, Status, Store};

use crate::kit::scratch::Scratch;

/// Two costs, estimates that count, outcomes that are imputed, overtime.
pub const SOFT: &str = r#"
name = "two limits"
policy = "soft"
horizon = 150
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b"]
[[cost]]
name = "price"
range = [0, 2]
threshold = 1.2
[[cost]]
name = "latency"
threshold = 0.5
[service]
on_wait = "serve"
outcome_wait = "60s"
impute = { reward = 0.25 }
"#;

/// As short as estimates that count allow: one epoch explores, one plays what they say.
pub const SHORT: &str = r#"
policy = "soft"
horizon = 70
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.6
[service]
on_wait = "serve"
outcome_wait = "60s"
"#;

/// As short as many epochs allow.
pub const DOUBLING: &str = r#"
policy = "soft"
horizon = 28
rho = 0.9
profile = "paper"
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.4
[service]
on_wait = "serve"
outcome_wait = "60s"
"#;

/// The same with a third of all requests held back.
pub const HELD_BACK: &str = r#"
policy = "soft"
horizon = 28
rho = 0.9
profile = "paper"
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.4
[service]
on_wait = "serve"
outcome_wait = "60s"
holdback = { share = 0.3, action = "b" }
"#;

/// Two levels: actions are estimated after 54 rounds and after 108.
pub const LEVELS: &str = r#"
policy = "free"
horizon = 260
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b"]
[service]
on_wait = "serve"
"#;

/// A clear test after 64, 507 and 4,049 rounds of each action.
pub const CLEAR: &str = r#"
policy = "free"
horizon = 1e6
rho = 0.3
delta = 0.5
growth = 2
actions = ["a", "b"]
[service]
outcome_wait = "60s"
"#;

/// A safe strategy mixed in.
pub const HARD: &str = r#"
policy = "hard"
horizon = 200
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b"]
[reward]
name = "quality"
range = [-1, 1]
[[cost]]
name = "price"
threshold = 0.6
[safe]
strategy = { a = 1 }
cost = { price = 0.1 }
[service]
outcome_wait = "60s"
"#;

/// No limits, three actions, outcomes that are always waited for.
pub const FREE: &str = r#"
policy = "free"
horizon = 160
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b", "c"]
[service]
on_wait = "serve"
"#;

/// Epochs that double from one round on.
pub const PAPER: &str = r#"
policy = "soft"
horizon = 100
rho = 0.9
profile = "paper"
outside = "clip"
actions = ["a", "b", "c"]
[[cost]]
name = "price"
threshold = 0.4
[service]
on_wait = "serve"
outcome_wait = "60s"
"#;

/// When a trial begins.
const START: i64 = 1_000_000;

fn start(location: &Location, now: i64) -> Executor {
    Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(now)).unwrap()
}

/// An experiment, its executor and its clock.
pub struct Trial {
    pub folder: Scratch,
    pub location: Location,
    pub id: &'static str,
    executor: Option<Executor>,
    pub now: i64,
    costs: usize,
    /// Whether every request needs a key.
    keyed: bool,
    chance: WorldKey,
    draws: u64,
    /// Rounds, and overtime decisions, that may be told.
    open: Vec<DecisionId>,
}

impl Trial {
    /// A fresh experiment; `chance` drives the outcomes and the requests.
    pub fn new(spec: &str, key: u64, chance: u64) -> Self {
        let folder = Scratch::new("audit");
        let location = Location::Sqlite(folder.join("store.db"));
        let mut trial = Self {
            executor: Some(start(&location, START)),
            location,
            folder,
            id: "trial",
            now: START,
            costs: spec.matches("[[cost]]").count(),
            keyed: spec.contains("holdback"),
            chance: WorldKey::from(chance),
            draws: 0,
            open: Vec::new(),
        };
        let (id, key, actor) = (trial.id.into(), Some(key.into()), "tester".into());
        trial
            .ask(Request::Create(Create {
                id,
                spec: spec.into(),
                key,
                blind: true,
                actor,
            }))
            .unwrap();
        trial
    }

    pub fn ask(&mut self, request: Request) -> Result<Granted, Refusal> {
        self.executor
            .as_mut()
            .unwrap()
            .serve(&[request], Moment::both(self.now))
            .pop()
            .unwrap()
    }

    /// A number in [0, 1).
    pub fn draw(&mut self) -> f64 {
        self.draws += 1;
        self.chance.uniform(Label::Feedback, [self.draws, 0, 0])
    }

    pub fn change(&mut self, change: Change) {
        let (id, actor) = (self.id.into(), "tester".into());
        self.ask(Request::Change(MakeChange {
            id,
            change,
            actor,
            reason: None,
        }))
        .unwrap();
    }

    pub fn decide(&mut self, rounds: u64) {
        let drawn = self.draw() < 0.5;
        let request_key = (drawn || self.keyed).then(|| format!("request {}", self.draws));
        match self.ask(Request::Decide(Decide {
            id: self.id.into(),
            rounds,
            request_key,
            seen: 0,
            actor: "tester".into(),
        })) {
            Ok(Granted::Decided(decided)) => {
                let lease = decided.lease;
                let numbers = (lease.first..).take(lease.actions.len());
                let epoch = lease.epoch;
                let of = |serial| match lease.kind {
                    DecisionKind::Round => DecisionId::Round(serial),
                    DecisionKind::Overtime => DecisionId::Overtime { epoch, serial },
                    DecisionKind::Holdback => DecisionId::Holdback { epoch, serial },
                };
                self.open.extend(numbers.map(of));
            }
            Ok(answer) => panic!("{answer:?}"),
            Err(
                Refusal::Waiting { .. }
                | Refusal::Paused { .. }
                | Refusal::Closed { .. }
                | Refusal::Done { .. },
            ) => {}
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// Tells one of the open decisions, whichever chance picks.
    pub fn tell(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let place = (self.draw() * self.open.len() as f64) as usize;
        let of = self.open.swap_remove(place);
        let reward = self.draw();
        let costs = (0..self.costs).map(|_| self.draw()).collect();
        let told = self.ask(Request::Tell(Tell {
            id: self.id.into(),
            outcomes: vec![ToldOutcome {
                decision: of,
                reward,
                costs,
            }],
            actor: "tester".into(),
        }));
        assert!(
            matches!(told, Ok(Granted::Told(_)) | Err(Refusal::Closed { .. })),
            "{told:?}"
        );
    }

    /// Lets time pass, as a server that ticks does.
    pub fn wait(&mut self, milliseconds: i64) {
        for _ in 0..milliseconds / 1_000 {
            self.now += 1_000;
            let executor = self.executor.as_mut().unwrap();
            executor.due(Moment::both(self.now)).unwrap();
        }
    }

    pub fn tick(&mut self) {
        // A long backlog takes several.
        loop {
            let ticked = self
                .ask(Request::Tick(Tick { id: self.id.into() }))
                .unwrap();
            if matches!(ticked, Granted::Ticked(0)) {
                return;
            }
        }
    }

    /// One thing that happens in an experiment's life.
    pub fn step(&mut self) {
        self.wait(1_000);
        match (self.draw() * 20.0) as u32 {
            0..5 => {
                let rounds = 1 + (self.draw() * 6.0) as u64;
                self.decide(rounds);
            }
            5..16 => (0..3).for_each(|_| self.tell()),
            16 => {
                self.wait(30_000);
                self.tick();
            }
            17 => {
                self.wait(70_000);
                self.tick();
            }
            18 if self.draw() < 0.3 => {
                if self.status() == Status::Running {
                    self.change(Change::Pause);
                }
            }
            _ => {
                if self.status() == Status::Paused {
                    self.change(Change::Resume);
                }
            }
        }
    }

    /// Until the horizon. Outcomes that are never imputed are all told in the end.
    pub fn run_to_the_end(&mut self) {
        for step in 0..10_000 {
            if self.status() == Status::Done {
                return;
            }
            self.step();
            if step % 50 == 49 {
                while !self.open.is_empty() {
                    self.tell();
                }
            }
        }
        panic!("no end");
    }

    pub fn progress(&self) -> Progress {
        self.location
            .open(Purpose::Read)
            .unwrap()
            .experiment(self.id)
            .unwrap()
            .unwrap()
            .1
    }

    pub fn status(&self) -> Status {
        self.progress().status
    }

    /// Opens the store again, as a restarted server does.
    pub fn restart(&mut self) {
        self.executor = None;
        self.executor = Some(start(&self.location, self.now));
    }

    /// Lets go of the store.
    pub fn stop(&mut self) {
        self.executor = None;
    }

    /// The whole log in pages of this many lines.
    pub fn log(&self, limit: usize, reveal: bool) -> Vec<Line> {
        let mut store = self.location.open(Purpose::Read).unwrap();
        let mut lines = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = page(&mut store, self.id, cursor.as_deref(), limit, reveal)
                .unwrap()
                .unwrap();
            assert!(page.lines.len() <= limit);
            lines.extend(page.lines);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return lines,
            }
        }
    }

    /// Audits the store.
    pub fn audit(&self) -> anyhow::Result<Verdict> {
        let source = LogSource::Store(self.location.clone());
        audit(
            &mut source.open(Some(self.id), &Credentials::default())?,
            None,
        )
    }

    /// Whether an epoch is not closed.
    pub fn is_open_epoch(&self, epoch: u64) -> bool {
        let progress = self.progress();
        progress.status.is_open() && epoch == progress.epoch
    }

    /// Whether a round belongs to an epoch that is not closed.
    pub fn in_open_epoch(&self, round: u64) -> bool {
        let progress = self.progress();
        let row = self
            .reader()
            .epochs(self.id, progress.epoch, 1)
            .unwrap()
            .remove(0);
        let record: debora::EpochRecord = serde_json::from_str(&row.record).unwrap();
        progress.status.is_open() && round >= record.first_round
    }

    /// Whether the request that got this first round was the last of its epoch.
    pub fn ends_epoch(&self, epoch: u64, first: u64) -> bool {
        self.reader()
            .leases(self.id, epoch, DecisionKind::Round, first, 2)
            .unwrap()
            .len()
            == 1
    }

    /// Reads the store beside the executor.
    pub fn reader(&self) -> Store {
        self.location.open(Purpose::Read).unwrap()
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.executor = None;
    }
}

/// Lines as a file has them.
pub fn text(lines: &[Line]) -> String {
    lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect()
}

/// Audits a log.
pub fn audit_text(text: &str, head: Option<&str>) -> anyhow::Result<Verdict> {
    audit(&mut read(text), head)
}

/// A log from its text.
pub fn read(text: &str) -> Log {
    Log::text(Box::new(Cursor::new(text.to_owned())), None)
}
