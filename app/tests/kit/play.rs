//! Clients that never give up, while a service is disturbed: what they were told must be what is stored.
//!
//! Four clients ask with request keys, repeat what was not answered, tell each outcome twice and some never. Afterwards
//! nothing acknowledged may be missing, nothing may be there twice, and the decisions must be those of an engine that nobody
//! disturbed, told the same outcomes.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use debora::Key;
use debora_cli::store::Location;
use serde_json::{Value, json};

use crate::kit::binary::debora;
use crate::kit::kept::{Acknowledged, audited, check, outcome};
use crate::kit::server::{Running, start};

/// Short epochs, limits, and outcomes that are imputed soon.
pub const SPEC: &str = r#"
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

/// The service as its operator sees it: nodes at fixed addresses, which are there or not.
pub struct Cluster {
    store: String,
    /// The command of a server that listens at an address.
    launch: Box<dyn Fn(&str) -> Command + Sync>,
    nodes: Vec<Mutex<Running>>,
}

impl Cluster {
    pub fn start(
        store: &str,
        nodes: usize,
        launch: impl Fn(&str) -> Command + Sync + 'static,
    ) -> Self {
        let start = |_| Mutex::new(spawn(&launch, "127.0.0.1:0"));
        let nodes = (0..nodes).map(start).collect();
        Self {
            store: store.to_owned(),
            launch: Box::new(launch),
            nodes,
        }
    }

    fn address(&self, node: usize) -> String {
        self.lock(node).address.clone()
    }

    fn lock(&self, node: usize) -> MutexGuard<'_, Running> {
        self.nodes[node % self.nodes.len()].lock().unwrap()
    }

    /// kill -9, what happens then, and another server at the same address.
    pub fn kill(&self, node: usize, then: impl FnOnce()) {
        let mut node = self.lock(node);
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        then();
        *node = spawn(&*self.launch, &node.address);
    }
}

/// The command of a server.
pub fn serve(store: &str, listen: &str) -> Command {
    let mut command = debora(&[
        "serve", "--store", store, "--listen", listen, "--log", "error",
    ]);
    command.stderr(Stdio::null());
    command
}

/// Starts a server. A database that is just restarting is waited for.
fn spawn(launch: impl Fn(&str) -> Command, listen: &str) -> Running {
    let begun = Instant::now();
    loop {
        match start(&mut launch(listen)) {
            Ok(running) => return running,
            Err(said) => assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the server does not start: {said}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The service, its clients and what they know.
pub struct Play {
    pub cluster: Cluster,
    key: Key,
    prefix: String,
    /// The experiment that is played: the next one once it is done.
    number: AtomicU64,
    stop: AtomicBool,
    retries: AtomicU64,
    /// Receipts that clients got.
    pub receipts: AtomicU64,
    /// Requests that were answered with 503: none may be answered with another server's error.
    pub refused: AtomicU64,
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
                assert!(status == 503 || status < 500, "{path}: {status} {text}");
                let refused = u64::from(status == 503);
                self.refused.fetch_add(refused, Ordering::Relaxed);
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

/// Disturbs a service under load, so many times, then checks. `disturb` is told how often it has been called.
pub fn disturbed(cluster: Cluster, times: u64, disturb: impl Fn(&Play, u64)) {
    let play = Play {
        cluster,
        key: Key::from(11u128 << 64),
        prefix: format!("play-{}", std::process::id()),
        number: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        retries: AtomicU64::new(0),
        receipts: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        acknowledged: Mutex::default(),
    };
    let (store, nodes) = (play.cluster.store.clone(), play.cluster.nodes.len());
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                scope.spawn({
                    let play = &play;
                    move || play.client(client)
                })
            })
            .collect();
        for time in 0..times {
            // Sometimes in the middle of a start, mostly after a stretch of work.
            let (begun, goal) = (
                Instant::now(),
                play.receipts.load(Ordering::Relaxed) + (time * 37) % 500,
            );
            while play.receipts.load(Ordering::Relaxed) < goal
                && begun.elapsed() < Duration::from_secs(3)
            {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis((time * 7) % 20));
            assert!(
                clients.iter().all(|client| !client.is_finished()),
                "a client has failed"
            );
            disturb(&play, time);
        }
        play.stop.store(true, Ordering::Relaxed);
    });
    let acknowledged = std::mem::take(&mut *play.acknowledged.lock().unwrap());
    let mut sums = (0, 0, 0);
    for (id, noted) in &acknowledged {
        let (rounds, imputed) = check(&Location::parse(&store), id, play.key, noted);
        sums = (
            sums.0 + rounds,
            sums.1 + imputed,
            sums.2 + noted.leases.len(),
        );
    }
    println!(
        "disturbed {times} times, {nodes} node(s): {} experiments, {} rounds told ({} imputed), {} leases acknowledged, {} requests repeated, {} refused",
        acknowledged.len(),
        sums.0,
        sums.1,
        sums.2,
        play.retries.load(Ordering::Relaxed),
        play.refused.load(Ordering::Relaxed)
    );
    assert!(
        sums.0 > 50 * times && play.retries.load(Ordering::Relaxed) > 0,
        "the server was hardly used"
    );
    drop(play.cluster);
    audited(&store, acknowledged.keys());
}
