//! The transactions of the service against a plain model in memory, on every store: random groups of requests, clocks, ticks and restarts.
//!
//! The model is an engine told round by round, and maps. The service never tells an engine a round: it draws, folds and hands
//! over whole epochs. Every answer must be the model's, and at the end every count.

use std::collections::BTreeMap;
use std::sync::Barrier;

use debora::spec::{OnWait, Spec};
use debora::{Engine, Key, Kind, VALUES_VERSION};
use debora_cli::log::observed::Observed;
use debora_cli::service::clock::Moment;
use debora_cli::service::request::{
    Change, Create, Decide, DecisionId, Granted, MakeChange, Receipt, Refusal, Request, Tell,
    ToldOutcome, token_hash,
};
use debora_cli::service::sessions::{LogIn, LogOut};
use debora_cli::service::transaction::Executor;
use debora_cli::store::{DecisionKind, ExperimentRow, Location, Progress, Purpose, Status};
use proptest::prelude::*;

use crate::kit::requests::{ask, ask_by_key, tell, tick, to_change, told};
use crate::kit::stores::{Server, Store, stores};

/// Epochs of a few rounds: profile paper doubles from one on.
const SHORT: &str = r#"
policy = "soft"
horizon = 400
rho = 0.5
profile = "paper"
actions = ["a", "b", "c"]
[[cost]]
name = "price"
threshold = 0.4
[service]
on_wait = "serve"
outcome_wait = "6s"
impute = { reward = 0.25 }
"#;

/// Epochs of thousands of rounds, with estimates that count.
const LONG: &str = r#"
policy = "hard"
horizon = 200_000
rho = 0.9
delta = 0.4
actions = ["a", "b"]
[[cost]]
name = "price"
range = [0, 2]
threshold = 1.2
[safe]
strategy = { a = 1 }
cost = { price = 0.2 }
[service]
outcome_wait = "6s"
"#;

/// A clear test after 430 rounds each, at the earliest.
const CLEAR: &str = r#"
policy = "free"
horizon = 1e7
rho = 0.9
actions = ["a", "b"]
"#;

#[derive(Clone, Debug)]
enum Step {
    Decide {
        rounds: u64,
        key: Option<u8>,
    },
    /// Tells that many outstanding rounds, from the first or from the last, with this feedback.
    Tell {
        rounds: usize,
        backwards: bool,
        value: u8,
    },
    /// Tells any round at all, known or not.
    TellAny {
        round: u64,
        value: u8,
    },
    TellOvertime {
        epochs_ago: u64,
        serial: u64,
        value: u8,
    },
    Change(Change),
    Wait {
        seconds: i64,
    },
    Tick,
    Restart,
    /// Goes through that many epochs without ado.
    Run {
        epochs: u64,
    },
}

fn step(rounds: u64) -> impl Strategy<Value = Step> {
    let many = rounds as usize;
    prop_oneof![
        4 => (prop_oneof![Just(1), 1..=rounds], prop::option::of(0..40u8)).prop_map(|(rounds, key)| Step::Decide { rounds, key }),
        6 => (1..=many, any::<bool>(), 0..4u8).prop_map(|(rounds, backwards, value)| Step::Tell { rounds, backwards, value }),
        2 => (0..400u64, 0..4u8).prop_map(|(round, value)| Step::TellAny { round, value }),
        1 => (0..2u64, 0..6u64, 0..2u8).prop_map(|(epochs_ago, serial, value)| Step::TellOvertime { epochs_ago, serial, value }),
        1 => prop_oneof![3 => Just(Change::Pause), 6 => Just(Change::Resume)].prop_map(Step::Change),
        2 => prop_oneof![Just(1), Just(2), Just(6)].prop_map(|seconds| Step::Wait { seconds }),
        2 => Just(Step::Tick),
        1 => Just(Step::Restart),
        1 => (1..6u64).prop_map(|epochs| Step::Run { epochs }),
    ]
}

/// What the service is meant to be.
struct Model {
    engine: Engine,
    spec: Spec,
    status: Status,
    /// By request key: asked for, epoch, whether overtime, first, actions.
    given: BTreeMap<String, (u64, Given)>,
    /// Of outstanding rounds.
    decided_at: BTreeMap<u64, i64>,
    told: BTreeMap<u64, (f64, Vec<f64>, bool)>,
    late: BTreeMap<u64, Feedback>,
    overtime: BTreeMap<(u64, u64), Option<Feedback>>,
}

type Feedback = (f64, Vec<f64>);
type Given = (u64, bool, u64, Vec<u32>);

fn feedback(value: u8, costs: usize) -> (f64, Vec<f64>) {
    let reward = [0.0, 0.5, 1.0, -0.0][value as usize];
    (reward, vec![[0.25, 0.125, 1.0, 0.0][value as usize]; costs])
}

impl Model {
    fn tell_one(&mut self, decision: DecisionId, (reward, costs): (f64, Vec<f64>)) -> Receipt {
        let same = |told: &(f64, Vec<f64>)| {
            if *told == (reward, costs.clone()) {
                Receipt::Repeated
            } else {
                Receipt::Conflict
            }
        };
        match decision {
            // No spec here holds anything back: app/tests/http/holdback.rs has those.
            DecisionId::Holdback { .. } => Receipt::Unknown,
            DecisionId::Overtime { epoch, serial } => match self.overtime.get_mut(&(epoch, serial))
            {
                None => Receipt::Unknown,
                Some(Some(told)) => same(told),
                Some(told) => {
                    *told = Some((reward, costs));
                    Receipt::Overtime
                }
            },
            DecisionId::Round(round) => match self.told.get(&round) {
                Some((_, _, true)) => match self.late.get(&round) {
                    Some(told) => same(told),
                    None => {
                        self.late.insert(round, (reward, costs));
                        Receipt::Late
                    }
                },
                Some((before, before_costs, false)) => same(&(*before, before_costs.clone())),
                None if self.decided_at.remove(&round).is_some() => {
                    self.tell_engine(round, reward, costs, false);
                    Receipt::Recorded
                }
                None => Receipt::Unknown,
            },
        }
    }

    fn tell_engine(&mut self, round: u64, reward: f64, costs: Vec<f64>, imputed: bool) {
        self.engine.tell(round, reward, &costs).unwrap();
        self.told.insert(round, (reward, costs, imputed));
        if self.engine.is_done() {
            self.status = Status::Done;
        }
    }

    /// The service has imputed this many rounds, the oldest: none of them early, and none left that was due `slack` ago.
    fn tick(&mut self, now: i64, imputed: u64, slack: i64) {
        let wait = self.spec.service.outcome_wait.unwrap().as_millis() as i64;
        let open = matches!(self.status, Status::Running | Status::Paused);
        let due = |slack: i64| {
            let due = self
                .decided_at
                .values()
                .filter(|at| **at + wait + slack <= now);
            if open { due.count() as u64 } else { 0 }
        };
        // No more than some ten thousand at a time.
        assert!(
            imputed <= due(0) && imputed >= due(slack).min(10_000),
            "{imputed} of {} by {} at {now} {:?}",
            due(0),
            due(slack),
            self.decided_at
        );
        for _ in 0..imputed {
            let (round, _) = self.decided_at.pop_first().unwrap();
            let impute = self.spec.service.impute.clone();
            self.tell_engine(round, impute[0], impute[1..].to_vec(), true);
        }
    }

    fn decide(
        &mut self,
        rounds: u64,
        key: Option<&String>,
        now: i64,
    ) -> Result<Given, &'static str> {
        if let Some((asked, given)) = key.and_then(|key| self.given.get(key)) {
            return if *asked == rounds {
                Ok(given.clone())
            } else {
                Err("used")
            };
        }
        match self.status {
            Status::Running => {}
            Status::Paused => return Err("paused"),
            Status::Closed => return Err("closed"),
            Status::Done => return Err("done"),
        }
        let epoch = self.engine.epoch();
        let decisions = self.engine.ask_many(rounds as usize);
        let given = if decisions.is_empty() {
            if self.spec.service.on_wait == OnWait::Hold {
                return Err("waiting");
            }
            let first = self.overtime.keys().filter(|(of, _)| *of == epoch).count() as u64 + 1;
            let serials = first..first + rounds;
            self.overtime
                .extend(serials.clone().map(|serial| ((epoch, serial), None)));
            (
                epoch,
                true,
                first,
                serials
                    .map(|serial| self.engine.overtime(serial).action)
                    .collect(),
            )
        } else {
            self.decided_at
                .extend(decisions.iter().map(|decision| (decision.round, now)));
            (
                epoch,
                false,
                decisions[0].round,
                decisions.iter().map(|decision| decision.action).collect(),
            )
        };
        if let Some(key) = key {
            self.given.insert(key.clone(), (rounds, given.clone()));
        }
        Ok(given)
    }
}

fn name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Waiting { .. } => "waiting",
        Refusal::Paused { .. } => "paused",
        Refusal::Closed { .. } => "closed",
        Refusal::Done { .. } => "done",
        Refusal::RequestKeyUsed { .. } => "used",
        other => panic!("{other}"),
    }
}

/// The service and the model, side by side.
struct Play<'a> {
    location: &'a Location,
    id: String,
    executor: Option<Executor>,
    server: Server,
    model: Model,
    now: i64,
}

/// Begins to serve a store.
fn start(location: &Location, now: i64) -> Executor {
    Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(now)).unwrap()
}

impl<'a> Play<'a> {
    fn new(location: &'a Location, id: &str, text: &str) -> Self {
        let key = Key::from(9u64);
        let spec = Spec::parse(text, "spec").unwrap();
        let mut executor = start(location, 0);
        let create = Create {
            id: id.into(),
            spec: text.into(),
            key: Some(key),
            blind: true,
            actor: "test".into(),
        };
        for repeated in [false, true] {
            let answer = executor
                .serve(&[Request::Create(create.clone())], Moment::both(0))
                .swap_remove(0)
                .unwrap();
            assert!(matches!(answer, Granted::Created { repeated: before } if before == repeated));
        }
        let model = Model {
            engine: Engine::new(spec.problem.clone(), key),
            spec,
            status: Status::Running,
            given: BTreeMap::new(),
            decided_at: BTreeMap::new(),
            told: BTreeMap::new(),
            late: BTreeMap::new(),
            overtime: BTreeMap::new(),
        };
        Self {
            location,
            id: id.into(),
            executor: Some(executor),
            server: Server::of(location),
            model,
            now: 0,
        }
    }

    fn wait(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds;
        while self.now < end {
            // The longest step of the waiting clock where nodes share it.
            self.now = end.min(self.now + 2_000);
            self.server.set_clock(self.now);
            let executor = self.executor.as_mut().unwrap();
            executor.due(Moment::both(self.now)).unwrap();
        }
    }

    /// By how much a tick may be late: nodes that share a store allow for what the others may have done.
    fn slack(&self) -> i64 {
        match self.location {
            Location::Sqlite(_) => 0,
            Location::Postgres(_) => 5_000,
        }
    }

    fn told(&self, decision: DecisionId, value: u8) -> ToldOutcome {
        let (reward, costs) = feedback(value, self.model.spec.problem.quantities() - 1);
        ToldOutcome {
            decision,
            reward,
            costs,
        }
    }

    /// What a step asks of the service, if it does.
    fn request(&mut self, step: &Step) -> Option<Request> {
        let id = self.id.clone();
        let outcomes = match *step {
            Step::Decide { rounds, key } => {
                return Some(ask_by_key(
                    id,
                    rounds,
                    key.map(|key| format!("request {key}")),
                ));
            }
            Step::Change(change) => {
                return Some(to_change(id, change));
            }
            Step::Tick => return Some(tick(id)),
            Step::Tell {
                rounds,
                backwards,
                value,
            } => {
                let mut outstanding: Vec<u64> = self.model.decided_at.keys().copied().collect();
                if backwards {
                    outstanding.reverse();
                }
                let some = outstanding.into_iter().take(rounds);
                some.map(|round| self.told(DecisionId::Round(round), value))
                    .collect()
            }
            // Twice within one request, the second time perhaps with another value.
            Step::TellAny { round, value } => [value, value / 2]
                .map(|value| self.told(DecisionId::Round(round), value))
                .to_vec(),
            Step::TellOvertime {
                epochs_ago,
                serial,
                value,
            } => {
                let epoch = self.model.engine.epoch().saturating_sub(epochs_ago);
                vec![self.told(DecisionId::Overtime { epoch, serial }, value)]
            }
            Step::Wait { seconds } => {
                self.wait(1_000 * seconds);
                return None;
            }
            Step::Restart => {
                // The file is locked until the first is gone.
                let mut executor = self.executor.take().unwrap();
                executor.stop(Moment::both(self.now)).unwrap();
                drop(executor);
                self.executor = Some(start(self.location, self.now));
                return None;
            }
            Step::Run { epochs } => {
                for value in 0..epochs {
                    self.group(&[Step::Decide {
                        rounds: 10_000,
                        key: None,
                    }]);
                    self.group(&[Step::Tell {
                        rounds: usize::MAX,
                        backwards: false,
                        value: (value % 4) as u8,
                    }]);
                }
                return None;
            }
        };
        Some(tell(id, outcomes))
    }

    /// Serves a group: outcomes come first, then ticks, then the rest in order.
    fn group(&mut self, steps: &[Step]) {
        let requests: Vec<Request> = steps.iter().filter_map(|step| self.request(step)).collect();
        let answers = self
            .executor
            .as_mut()
            .unwrap()
            .serve(&requests, Moment::both(self.now));
        for (request, answer) in requests.iter().zip(&answers) {
            if let Request::Tell(Tell { outcomes, .. }) = request {
                let Ok(Granted::Told(receipts)) = answer else {
                    panic!("{request:?}: {answer:?}")
                };
                for (outcome, receipt) in outcomes.iter().zip(receipts) {
                    let expected = self
                        .model
                        .tell_one(outcome.decision, (outcome.reward, outcome.costs.clone()));
                    assert_eq!(*receipt, expected, "{outcome:?}");
                }
            }
        }
        for (request, answer) in requests.iter().zip(&answers) {
            if let Request::Tick(_) = request {
                let Ok(Granted::Ticked(imputed)) = answer else {
                    panic!("{answer:?}")
                };
                self.model.tick(self.now, *imputed, self.slack());
            }
        }
        for (request, answer) in requests.iter().zip(&answers) {
            match request {
                Request::Decide(Decide {
                    rounds,
                    request_key,
                    ..
                }) => {
                    let expected = self.model.decide(*rounds, request_key.as_ref(), self.now);
                    let got = match answer {
                        Ok(Granted::Decided(decided)) => {
                            let lease = &decided.lease;
                            Ok((
                                lease.epoch,
                                lease.kind == DecisionKind::Overtime,
                                lease.first,
                                lease.actions.clone(),
                            ))
                        }
                        Err(refusal) => Err(name(refusal)),
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(got, expected, "{request:?}");
                }
                Request::Change(MakeChange { change, .. }) if self.model.status != Status::Done => {
                    self.model.status = if *change == Change::Pause {
                        Status::Paused
                    } else {
                        Status::Running
                    };
                    assert!(
                        matches!(answer, Ok(Granted::Changed(status)) if *status == self.model.status),
                        "{answer:?}"
                    );
                }
                _ => {}
            }
        }
    }
}

/// Plays groups of steps on a store and on the model, from some epoch on.
fn play(location: &Location, id: &str, text: &str, epochs: u64, groups: &[Vec<Step>]) {
    let mut play = Play::new(location, id, text);
    play.group(&[Step::Run { epochs }]);
    groups.iter().for_each(|group| play.group(group));
    check_rows(location, id, &play.model);
}

/// Every count and every outcome in the store is the model's.
fn check_rows(location: &Location, id: &str, model: &Model) {
    let mut store = location.open(Purpose::Read).unwrap();
    let (_, progress) = store.experiment(id).unwrap().unwrap();
    assert_eq!(progress.status, model.status);
    assert_eq!(
        (progress.epoch, &progress.digest),
        (model.engine.epoch(), &model.engine.digest())
    );
    assert_eq!(
        progress.outcomes.iter().sum::<u64>(),
        model.told.len() as u64
    );
    assert_eq!(progress.outcomes, model.engine.tally().counts());
    assert_eq!(
        progress.imputed.iter().sum::<u64>() as usize,
        model.told.values().filter(|told| told.2).count()
    );
    assert_eq!(
        progress.next_round - 1,
        model.told.len() as u64 + model.decided_at.len() as u64
    );
    assert_eq!(
        (progress.late, progress.overtime),
        (model.late.len() as u64, model.overtime.len() as u64)
    );
    let outcomes = store.outcomes(id, 0, usize::MAX).unwrap();
    let stored: Vec<_> = outcomes
        .into_iter()
        .map(|row| (row.round, (row.reward, row.costs, row.imputed)))
        .collect();
    assert_eq!(stored, model.told.clone().into_iter().collect::<Vec<_>>());
}

fn groups(rounds: u64, steps: usize) -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step(rounds), 1..4), 1..steps)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn every_answer_is_the_models_over_many_short_epochs() {
    for store in stores() {
        proptest!(config(store.cases(48)), |(groups in groups(24, 120))| {
            store.fresh(|location, id| play(location, id, SHORT, 0, &groups));
        });
    }
}

#[test]
fn every_answer_is_the_models_over_long_epochs() {
    for store in stores() {
        proptest!(config(store.cases(12)), |(groups in groups(4_000, 60))| {
            store.fresh(|location, id| play(location, id, LONG, 8, &groups));
        });
    }
}

/// Two executors at one database, as two nodes, until the engine says so: whoever decides, the decisions are one node's.
fn decide_as_one(
    text: &str,
    until: fn(&Engine) -> bool,
    feedback: fn(u64, u32) -> (f64, Vec<f64>),
) -> (Engine, Progress) {
    let store = stores().into_iter().find(Store::is_shared);
    let mut end = None;
    store.expect("a shared store").fresh(|location, id| {
        let key = Key::from(9u64);
        let mut executors = [(); 2].map(|()| start(location, 0));
        let create = Create {
            id: id.into(),
            spec: text.into(),
            key: Some(key),
            blind: true,
            actor: "test".into(),
        };
        let mut serve = |node: usize, request: Request| {
            let answer = executors[node % 2]
                .serve(&[request], Moment::both(0))
                .swap_remove(0);
            answer.unwrap()
        };
        serve(0, Request::Create(create));
        let mut engine = Engine::new(Spec::parse(text, "spec").unwrap().problem, key);
        let mut turn = 0;
        while !until(&engine) {
            let expected = engine.ask_many(7);
            let ask = ask(id, 7);
            let Granted::Decided(decided) = serve(turn, ask) else {
                panic!("not decisions")
            };
            let actions: Vec<u32> = expected.iter().map(|decision| decision.action).collect();
            assert_eq!(
                (decided.lease.kind, decided.lease.actions),
                (DecisionKind::Round, actions)
            );
            for decision in expected {
                turn += 1;
                let (reward, costs) = feedback(decision.round, decision.action);
                engine.tell(decision.round, reward, &costs).unwrap();
                let outcomes = vec![told(decision.round, reward, costs)];
                let tell = tell(id, outcomes);
                let Granted::Told(receipts) = serve(turn, tell) else {
                    panic!("not receipts")
                };
                assert_eq!(receipts, [Receipt::Recorded]);
            }
        }
        let mut store = location.open(Purpose::Read).unwrap();
        let (_, progress) = store.experiment(id).unwrap().unwrap();
        // Each node has added to what the other stored: nothing is missing from the sums, and nothing in them twice.
        let open = &store.epochs(id, progress.epoch, 1).unwrap()[0];
        let beginning = Engine::from_bytes(open.snapshot.as_ref().unwrap()).unwrap();
        let stored = Observed::read(&mut store, id, &progress, &beginning).unwrap();
        let summed_up = Observed::of_rows(&mut store, id, &progress, &beginning).unwrap();
        assert_eq!(stored.open, summed_up.open);
        end = Some((engine, progress));
    });
    end.expect("it was played")
}

#[test]
fn two_nodes_decide_as_one() {
    let (engine, progress) = decide_as_one(SHORT, Engine::is_done, |round, _| {
        feedback((round % 3) as u8, 1)
    });
    assert_eq!(
        (progress.status, progress.digest),
        (Status::Done, engine.digest())
    );
}

/// Each name's first use locks it until the commit, so nodes that met names in different orders would wait for each other.
#[test]
fn nodes_that_meet_new_names_at_once_do_not_wait_in_a_circle() {
    let store = stores().into_iter().find(Store::is_shared);
    store.expect("a shared store").fresh(|location, id| {
        let start = &Barrier::new(2);
        let node = &|node: usize| {
            let mut executor =
                Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(0)).unwrap();
            let own = format!("{id}-{node}");
            let create = Create {
                id: own.clone(),
                spec: SHORT.into(),
                key: None,
                blind: true,
                actor: "test".into(),
            };
            executor.serve(&[Request::Create(create)], Moment::both(0));
            let mut failures = Vec::new();
            for meeting in 0..20 {
                let mut names: Vec<String> = (0..8)
                    .map(|name| format!("{id}-{meeting}-{name}"))
                    .collect();
                if node == 1 {
                    names.reverse();
                }
                let ask = |name: &String| {
                    Request::Decide(Decide {
                        id: own.clone(),
                        rounds: 1,
                        request_key: None,
                        seen: 0,
                        actor: name.as_str().into(),
                    })
                };
                let group: Vec<Request> = names.iter().map(ask).collect();
                start.wait();
                // Kept for later: a node that stops here would leave the other one waiting.
                failures.extend(
                    executor
                        .serve(&group, Moment::both(0))
                        .into_iter()
                        .filter_map(store_failure),
                );
            }
            failures
        };
        let failures = std::thread::scope(|scope| {
            let nodes = [0, 1].map(|number| scope.spawn(move || node(number)));
            nodes.map(|node| node.join().unwrap())
        });
        assert_eq!(failures, [vec![], vec![]] as [Vec<String>; 2]);
    });
}

fn store_failure(answer: Result<Granted, Refusal>) -> Option<String> {
    match answer {
        Err(Refusal::Store { detail }) => Some(detail),
        _ => None,
    }
}

#[test]
fn a_session_begun_at_one_node_is_ended_at_another() {
    let store = stores().into_iter().find(Store::is_shared);
    store.expect("a shared store").fresh(|location, _| {
        let mut nodes = [(); 2].map(|()| {
            Executor::start(location.open(Purpose::Serve).unwrap(), Moment::both(0)).unwrap()
        });
        let log_in = LogIn {
            key_name: "ann".into(),
        };
        let token = nodes[0].serve_store(log_in, Moment::both(5)).unwrap();
        let hash = token_hash(&token);
        let stored = || {
            let mut reader = location.open(Purpose::Read).unwrap();
            reader.session(&hash).unwrap()
        };
        let session = stored().expect("any node finds it");
        assert_eq!(
            (session.key_name.as_str(), session.expires_at),
            // By the database's clock, which stands at 0, and not by the node's.
            ("ann", 12 * 3_600_000)
        );
        let hash = hash.clone();
        nodes[1]
            .serve_store(LogOut { hash }, Moment::both(5))
            .unwrap();
        assert_eq!(stored(), None);
    });
}

/// Permuted blocks up to the first stage, whose lead of 1 passes any threshold, and 200 rounds of the commitment.
#[test]
fn two_nodes_explore_in_blocks_and_commit_as_one() {
    let (engine, progress) = decide_as_one(
        CLEAR,
        |engine| engine.open_record().kind == Kind::Commit && engine.open_record().rounds >= 200,
        |_, action| (f64::from(action), Vec::new()),
    );
    let record = engine.open_record();
    assert_eq!((progress.epoch, &progress.digest), (1, &engine.digest()));
    assert!(record.counts[0] == record.counts[1] && record.strategy == [0.0, 1.0]);
    // No outcome is awaited any more, and none is lost: both nodes have counted them.
    assert_eq!(progress.outcomes, engine.tally().counts());
}

/// PostgreSQL cannot even be asked for a text with NUL: the request is refused before, and its group goes on.
#[test]
fn a_bad_request_key_fails_nobody_else() {
    for store in stores() {
        store.fresh(|location, id| {
            let mut play = Play::new(location, id, SHORT);
            let ask = |key: &str| ask_by_key(id, 1, Some(key.into()));
            let answers = play.executor.as_mut().unwrap().serve(
                &[ask("a\0"), ask(&"k".repeat(200)), ask("b")],
                Moment::both(play.now),
            );
            assert!(
                matches!(answers[0], Err(Refusal::RequestKey { .. })),
                "{answers:?}"
            );
            assert!(
                matches!(answers[1], Err(Refusal::RequestKey { .. })),
                "{answers:?}"
            );
            assert!(matches!(answers[2], Ok(Granted::Decided(_))), "{answers:?}");
        });
    }
}

/// What is stored is the measure, not what came first in the group.
#[test]
fn overtime_told_again_is_judged_by_what_is_stored() {
    for store in stores() {
        store.fresh(|location, id| {
            let mut play = Play::new(location, id, SHORT);
            play.group(&[
                Step::Decide {
                    rounds: 1,
                    key: None,
                },
                Step::Decide {
                    rounds: 2,
                    key: None,
                },
            ]);
            let tell = |play: &Play<'_>, values: &[u8]| {
                let of = DecisionId::Overtime {
                    epoch: 0,
                    serial: 1,
                };
                let outcomes = values.iter().map(|&value| play.told(of, value));
                tell(id, outcomes)
            };
            for (values, expected) in [
                (
                    &[1, 1, 0][..],
                    [Receipt::Overtime, Receipt::Repeated, Receipt::Conflict],
                ),
                (
                    &[0, 0, 1][..],
                    [Receipt::Conflict, Receipt::Conflict, Receipt::Repeated],
                ),
            ] {
                let request = tell(&play, values);
                let answer = play
                    .executor
                    .as_mut()
                    .unwrap()
                    .serve(&[request], Moment::both(0))
                    .swap_remove(0);
                assert!(
                    matches!(&answer, Ok(Granted::Told(receipts)) if receipts[..] == expected),
                    "{answer:?}"
                );
            }
        });
    }
}

/// An experiment whose counts cannot be is refused, one of other values too, and the others of their group are served.
#[test]
fn a_damaged_experiment_fails_nobody_else() {
    for store in stores() {
        store.fresh(|location, id| {
            let mut play = Play::new(location, id, SHORT);
            let other = format!("{id}-damaged");
            let create =
                Create { id: other.clone(), spec: SHORT.into(), key: None, blind: true, actor: "t".into() };
            let executor = play.executor.as_mut().unwrap();
            executor.serve(&[Request::Create(create)], Moment::both(0)).swap_remove(0).unwrap();
            let mut writer = location.open(Purpose::Write).unwrap();
            writer.begin().unwrap();
            let (_, mut progress) = writer.experiment(&other).unwrap().unwrap();
            progress.outcomes.pop();
            writer.set_progress(&other, &progress).unwrap();
            let later = format!("{id}-later");
            let (experiment, progress) = writer.experiment(id).unwrap().unwrap();
            let experiment = ExperimentRow { id: later.clone(), values_version: VALUES_VERSION + 1, ..experiment };
            let opened = writer.epochs(id, 0, 1).unwrap().remove(0);
            assert!(writer.create(&experiment, &progress, &opened).unwrap());
            writer.commit().unwrap();
            let ask = |id: &str| ask(id, 1);
            let answers = executor.serve(&[ask(&other), ask(id), ask(&later)], Moment::both(0));
            assert!(
                matches!(&answers[0], Err(Refusal::Store { detail }) if detail.contains("impossible")),
                "{answers:?}"
            );
            let Err(Refusal::OtherValues(other)) = &answers[2] else {
                panic!("{answers:?}")
            };
            assert!(other.to_string().contains("use a debora that has 3"), "{other}");
            assert!(matches!(answers[1], Ok(Granted::Decided(_))), "{answers:?}");
        });
    }
}
