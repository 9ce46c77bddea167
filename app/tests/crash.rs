//! The server is killed in the middle of everything, again and again, while clients repeat what was not answered.
//!
//! Afterwards nothing acknowledged may be missing, nothing may be there twice, and the decisions must be those of an engine
//! that nobody disturbed, told the same outcomes. `DEBORA_CRASH_KILLS` says how often (default 20; the results of 200 are
//! in docs/service.md).

#[path = "common/binary.rs"]
mod binary;
#[path = "common/scratch.rs"]
mod scratch;
#[path = "common/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use binary::debora;
use debora::key::Label;
use debora::spec::Spec;
use debora::{Ask, Engine, Key, WorldKey};
use debora_app::store::{Lease, Location, OutcomeRow, Purpose, Status};
use scratch::Scratch;
use serde_json::{Value, json};
use server::{Running, start};

const SPEC: &str = r#"
policy = "soft"
horizon = 60_000
rho = 0.9
delta = 0.4
growth = 2
actions = ["a", "b", "c"]
[[cost]]
name = "price"
threshold = 0.5
[service]
on_wait = "serve"
outcome_wait = "2s"
"#;

/// One outcome in this many is never told.
const NEVER: u64 = 500;

fn kills() -> u64 {
    std::env::var("DEBORA_CRASH_KILLS").map_or(20, |kills| {
        kills.parse().expect("DEBORA_CRASH_KILLS is a number")
    })
}

/// A fixed world: what an action gives in a round.
fn outcome(round: u64, action: u64) -> (f64, f64) {
    let uniform =
        |quantity: u64| WorldKey::from(5u64).uniform(Label::Feedback, [action, round, quantity]);
    let means = [[0.3, 0.2], [0.6, 0.5], [0.8, 0.9]][action as usize];
    (
        f64::from(u8::from(uniform(0) < means[0])),
        f64::from(u8::from(uniform(1) < means[1])),
    )
}

/// The service as its operator sees it: nodes at fixed addresses, which are there or not.
struct Cluster {
    store: String,
    nodes: Vec<Mutex<Running>>,
}

impl Cluster {
    fn start(store: String, nodes: usize) -> Self {
        let start = |_| Mutex::new(spawn(&store, "127.0.0.1:0"));
        let nodes = (0..nodes).map(start).collect();
        Self { store, nodes }
    }

    fn address(&self, node: usize) -> String {
        self.lock(node).address.clone()
    }

    fn lock(&self, node: usize) -> MutexGuard<'_, Running> {
        self.nodes[node % self.nodes.len()].lock().unwrap()
    }

    /// kill -9, and another server at the same address.
    fn kill(&self, node: usize) {
        let mut node = self.lock(node);
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        *node = spawn(&self.store, &node.address);
    }
}

/// Starts a server. A database that is just restarting is waited for.
fn spawn(store: &str, listen: &str) -> Running {
    let begun = Instant::now();
    let arguments = [
        "serve", "--store", store, "--listen", listen, "--log", "error",
    ];
    loop {
        match start(debora(&arguments).stderr(Stdio::null())) {
            Ok(running) => return running,
            Err(said) => assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the server does not start: {said}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What clients were told, by experiment.
#[derive(Default)]
struct Acknowledged {
    /// By request key: overtime, epoch, first, actions.
    leases: BTreeMap<String, (bool, u64, u64, Vec<u64>)>,
    /// By round: the receipt.
    outcomes: BTreeMap<u64, String>,
}

struct Play {
    cluster: Cluster,
    key: Key,
    prefix: String,
    /// The experiment that is played: the next one once it is done.
    number: AtomicU64,
    stop: AtomicBool,
    retries: AtomicU64,
    receipts: AtomicU64,
    acknowledged: Mutex<BTreeMap<String, Acknowledged>>,
}

impl Play {
    /// Posts until there is an answer, to one node after the other.
    fn post(&self, agent: &ureq::Agent, first: usize, path: &str, body: &Value) -> (u16, Value) {
        for attempt in first.. {
            let url = format!("http://{}{path}", self.cluster.address(attempt));
            let request = agent.post(&url).content_type("application/json");
            let sent = request.send(body.to_string());
            if let Ok(mut response) = sent {
                let status = response.status().as_u16();
                // A server that is killed may leave half an answer.
                let text = response.body_mut().read_to_string().unwrap_or_default();
                if let (Ok(body), true) = (serde_json::from_str(&text), status < 500) {
                    return (status, body);
                }
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(5));
        }
        unreachable!("attempts do not end")
    }

    /// The experiment to play, made if it is not there.
    fn experiment(&self, agent: &ureq::Agent, number: u64) -> String {
        let id = format!("{}-{number}", self.prefix);
        let body = json!({ "id": id, "spec": SPEC, "key": self.key.to_hex(), "blind": true });
        let (status, answer) = self.post(agent, 0, "/v1/experiments", &body);
        assert!(status == 200 || status == 201, "{status} {answer}");
        id
    }

    /// A client: asks, tells each outcome twice, and some never.
    fn client(&self, client: usize) {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(5)));
        let agent = ureq::Agent::new_with_config(config.http_status_as_error(false).build());
        let mut number = u64::MAX;
        let mut id = String::new();
        for request in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let current = self.number.load(Ordering::Relaxed);
            if current != number {
                (number, id) = (current, self.experiment(&agent, current));
            }
            let request_key = format!("{client}-{request}");
            let rounds = 1 + (request * 7) % 60;
            let body = json!({ "n": rounds, "request_key": request_key });
            let (status, answer) = self.post(
                &agent,
                client + request,
                &format!("/v1/experiments/{id}/decisions"),
                &body,
            );
            if status != 200 {
                assert_eq!((status, &answer["code"]), (409, &json!("done")), "{answer}");
                let _ = self.number.compare_exchange(
                    number,
                    number + 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                continue;
            }
            let decisions = answer["decisions"].as_array().unwrap();
            self.note_lease(&id, request_key, &answer);
            self.tell(&agent, client + request, &id, decisions);
        }
    }

    fn note_lease(&self, id: &str, request_key: String, answer: &Value) {
        let decisions = answer["decisions"].as_array().unwrap();
        let overtime = answer["overtime"].as_bool().unwrap();
        let first = &decisions[0][if overtime { "overtime" } else { "round" }];
        let actions = decisions
            .iter()
            .map(|decision| decision["action"].as_u64().unwrap())
            .collect();
        let lease = (
            overtime,
            answer["epoch"].as_u64().unwrap(),
            first.as_u64().unwrap(),
            actions,
        );
        let mut all = self.acknowledged.lock().unwrap();
        let before = all
            .entry(id.to_owned())
            .or_default()
            .leases
            .insert(request_key, lease);
        assert!(before.is_none());
    }

    fn tell(&self, agent: &ureq::Agent, node: usize, id: &str, decisions: &[Value]) {
        let mut rounds = Vec::new();
        let mut outcomes = Vec::new();
        for decision in decisions {
            // Overtime is not told here: it cannot change anything that is checked below.
            let Some(round) = decision["round"].as_u64() else {
                continue;
            };
            if round % NEVER != 0 {
                let (reward, cost) = outcome(round, decision["action"].as_u64().unwrap());
                rounds.push(round);
                outcomes.push(json!({ "round": round, "reward": reward, "costs": [cost] }));
            }
        }
        if rounds.is_empty() {
            return;
        }
        for time in 0..2 {
            let path = format!("/v1/experiments/{id}/outcomes");
            let (status, answer) = self.post(agent, node + time, &path, &json!(outcomes));
            assert_eq!(status, 200, "{answer}");
            let receipts = answer["receipts"].as_array().unwrap();
            assert_eq!(receipts.len(), rounds.len());
            self.receipts
                .fetch_add(receipts.len() as u64, Ordering::Relaxed);
            let mut all = self.acknowledged.lock().unwrap();
            let noted = &mut all.get_mut(id).unwrap().outcomes;
            for (round, receipt) in rounds.iter().zip(receipts) {
                let receipt = receipt.as_str().unwrap();
                // The first answer may have been lost, so that "repeated" is the first seen.
                assert!(
                    matches!(receipt, "recorded" | "repeated" | "late"),
                    "round {round}: {receipt}"
                );
                assert!(
                    time == 0 || receipt == "repeated",
                    "round {round} told again: {receipt}"
                );
                noted.entry(*round).or_insert_with(|| receipt.to_owned());
            }
        }
    }
}

/// Kills under load, then checks. `disturb` is told how often it has been called.
fn crash(store: &str, nodes: usize, kills: u64, disturb: impl Fn(&Cluster, u64)) {
    let play = Play {
        cluster: Cluster::start(store.to_owned(), nodes),
        key: Key::from(11u128 << 64),
        prefix: format!("crash-{}", std::process::id()),
        number: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        retries: AtomicU64::new(0),
        receipts: AtomicU64::new(0),
        acknowledged: Mutex::default(),
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                scope.spawn({
                    let play = &play;
                    move || play.client(client)
                })
            })
            .collect();
        for kill in 0..kills {
            // Sometimes in the middle of a start, mostly after a stretch of work.
            let (begun, goal) = (
                Instant::now(),
                play.receipts.load(Ordering::Relaxed) + (kill * 37) % 500,
            );
            while play.receipts.load(Ordering::Relaxed) < goal
                && begun.elapsed() < Duration::from_secs(3)
            {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis((kill * 7) % 20));
            assert!(
                clients.iter().all(|client| !client.is_finished()),
                "a client has failed"
            );
            disturb(&play.cluster, kill);
        }
        play.stop.store(true, Ordering::Relaxed);
    });
    let acknowledged = std::mem::take(&mut *play.acknowledged.lock().unwrap());
    let mut sums = (0, 0, 0);
    for (id, noted) in &acknowledged {
        let (rounds, imputed) = check(&Location::of(store), id, play.key, noted);
        sums = (
            sums.0 + rounds,
            sums.1 + imputed,
            sums.2 + noted.leases.len(),
        );
    }
    println!(
        "{kills} kills over {nodes} node(s): {} experiments, {} rounds told ({} imputed), {} leases acknowledged, {} retries",
        acknowledged.len(),
        sums.0,
        sums.1,
        sums.2,
        play.retries.load(Ordering::Relaxed)
    );
    assert!(
        sums.0 > 50 * kills && play.retries.load(Ordering::Relaxed) > 0,
        "the server was hardly used"
    );
    drop(play.cluster);
    audited(store, acknowledged.keys());
}

/// Compares what is stored with what was acknowledged, and with an engine that nobody disturbed.
fn check(location: &Location, id: &str, key: Key, noted: &Acknowledged) -> (u64, u64) {
    let mut store = location.open(Purpose::Read).unwrap();
    store.begin().unwrap();
    let (_, progress) = store.experiment(id).unwrap().unwrap();
    let mut leases: Vec<Lease> = Vec::new();
    for epoch in 0..=progress.epoch {
        for overtime in [false, true] {
            leases.extend(store.leases(id, epoch, overtime, 0, usize::MAX).unwrap());
        }
    }
    let outcomes = store.outcomes(id, 0, usize::MAX).unwrap();
    store.rollback();

    for (request_key, (overtime, epoch, first, actions)) in &noted.leases {
        let found: Vec<&Lease> = leases
            .iter()
            .filter(|lease| lease.request_key.as_ref() == Some(request_key))
            .collect();
        assert_eq!(
            found.len(),
            1,
            "{id}: {request_key} has {} leases",
            found.len()
        );
        let lease = found[0];
        let given: Vec<u64> = lease
            .actions
            .iter()
            .map(|&action| u64::from(action))
            .collect();
        assert_eq!(
            (lease.overtime, lease.epoch, lease.first, &given),
            (*overtime, *epoch, *first, actions)
        );
    }
    let stored: BTreeMap<u64, &OutcomeRow> = outcomes
        .iter()
        .map(|outcome| (outcome.round, outcome))
        .collect();
    assert_eq!(stored.len(), outcomes.len());
    for (round, receipt) in &noted.outcomes {
        let found = stored
            .get(round)
            .unwrap_or_else(|| panic!("{id}: round {round} was acknowledged and is gone"));
        assert!(
            receipt == "repeated" || found.imputed == (receipt == "late"),
            "{id}: round {round} was {receipt}"
        );
    }

    let mut engine = Engine::new(Spec::parse(SPEC, "spec").unwrap().problem, key);
    let mut told = outcomes.iter();
    for lease in leases.iter().filter(|lease| !lease.overtime) {
        for (round, action) in (lease.first..).zip(&lease.actions) {
            loop {
                match engine.ask() {
                    Ask::Decision(decision) => {
                        assert_eq!(
                            (decision.round, decision.action, decision.epoch),
                            (round, *action, lease.epoch)
                        );
                        break;
                    }
                    // The next round is of the next epoch: the outcomes of this one lead there.
                    _ => {
                        let outcome = told.next().expect("an epoch that ended has its outcomes");
                        engine
                            .tell(outcome.round, outcome.reward, &outcome.costs)
                            .unwrap();
                    }
                }
            }
        }
    }
    for outcome in told {
        engine
            .tell(outcome.round, outcome.reward, &outcome.costs)
            .unwrap();
        let action = leases
            .iter()
            .filter(|lease| !lease.overtime)
            .find_map(|lease| {
                lease
                    .actions
                    .get(usize::try_from(outcome.round.checked_sub(lease.first)?).ok()?)
            });
        let expected = self::outcome(outcome.round, u64::from(*action.unwrap()));
        assert!(
            outcome.imputed || (outcome.reward, outcome.costs[0]) == expected,
            "{id}: {outcome:?}"
        );
    }
    assert_eq!(engine.tally().counts(), progress.outcomes);
    assert_eq!(
        (engine.digest(), engine.is_done()),
        (progress.digest, progress.status == Status::Done)
    );
    (
        outcomes.len() as u64,
        outcomes.iter().filter(|outcome| outcome.imputed).count() as u64,
    )
}

fn audited<'a>(store: &str, ids: impl Iterator<Item = &'a String>) {
    for id in ids {
        let output = debora(&["audit", store, "--experiment", id])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("all equal"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_killed_server_on_sqlite_loses_and_doubles_nothing() {
    let folder = Scratch::new("crash");
    let store: PathBuf = folder.join("store.db");
    crash(&store.display().to_string(), 1, kills(), |cluster, _| {
        cluster.kill(0)
    });
}

/// Every fifth time the database itself is stopped at once and started again.
#[test]
fn killed_nodes_on_postgresql_lose_and_double_nothing() {
    let variable = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set; use scripts/with-postgres"))
    };
    let (url, restart) = (
        variable("DEBORA_TEST_POSTGRES"),
        variable("DEBORA_TEST_POSTGRES_RESTART"),
    );
    crash(&url, 2, kills(), |cluster, kill| {
        if kill % 5 == 4 {
            assert!(
                Command::new(&restart)
                    .stdout(Stdio::null())
                    .status()
                    .unwrap()
                    .success()
            );
        } else {
            cluster.kill((kill % 2) as usize);
        }
    });
}
