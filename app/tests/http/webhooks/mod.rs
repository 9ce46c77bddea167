//! Webhooks against a receiver that fails, hangs and closes early, while servers are killed: every event arrives, with one id and
//! one body however often, and no decision waits for it.

mod events;
mod receiver;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use debora_cli::store::{Location, Purpose, copy};
use receiver::{Answer, Receiver};
use serde_json::{Value, json};

use crate::kit::binary::debora;
use crate::kit::client;
use crate::kit::schema::schema;
use crate::kit::scratch::Scratch;
use crate::kit::server::{Running, start};

/// Epochs of 1, 2, 4 .. rounds.
const SHORT: &str = "policy = 'soft'\nhorizon = 64\nrho = 0.9\ndelta = 0.1\nprofile = 'paper'\nactions = ['left', 'right']\n\
    [[cost]]\nname = 'price'\nthreshold = 0.9\n";

/// A server, and how it is asked.
struct Node {
    running: Running,
    store: String,
}

impl Node {
    fn start(store: &str) -> Self {
        let running = start(&mut command(store, "127.0.0.1:0")).unwrap();
        let store = store.to_owned();
        Self { running, store }
    }

    /// kill -9, and another at the same address.
    fn kill(&mut self) {
        self.running.child.kill().unwrap();
        self.running.child.wait().unwrap();
        let address = self.running.address.clone();
        self.running = start(&mut command(&self.store, &address)).unwrap();
    }

    #[track_caller]
    fn ask(&self, path: &str, body: Option<&Value>) -> (u16, Value) {
        client::ask(&self.running.address, path, body, None).unwrap()
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(path, None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(path, Some(&body));
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    fn create(&self, id: &str, spec: &str) {
        let key = "70000000000000000000000000000007";
        let body = json!({ "id": id, "spec": spec, "key": key, "blind": true });
        self.post("/v1/experiments", body);
    }

    /// The webhook of this name, as it is listed.
    fn webhook(&self, name: &str) -> Value {
        let list = self.get("/v1/webhooks");
        let mut list = list["webhooks"].as_array().unwrap().iter();
        list.find(|webhook| webhook["name"] == name)
            .unwrap()
            .clone()
    }

    /// Decides, and tells what an action gives; how many rounds were decided.
    fn play(&self, id: &str, n: u64, outcome: impl Fn(u64) -> Option<(f64, f64)>) -> usize {
        let path = format!("/v1/experiments/{id}/decisions");
        let (status, answer) = self.ask(&path, Some(&json!({ "n": n })));
        if status != 200 {
            return 0;
        }
        let decisions = answer["decisions"].as_array().unwrap();
        let told = decisions.iter().filter_map(|decision| {
            let (reward, price) = outcome(decision["action"].as_u64().unwrap())?;
            let costs = if price < 0.0 {
                json!([])
            } else {
                json!([price])
            };
            Some(json!({ "round": decision["round"], "reward": reward, "costs": costs }))
        });
        let told: Vec<Value> = told.collect();
        if !told.is_empty() {
            self.post(&format!("/v1/experiments/{id}/outcomes"), json!(told));
        }
        decisions.len()
    }
}

fn command(store: &str, listen: &str) -> Command {
    let mut command = debora(&[
        "serve", "--store", store, "--listen", listen, "--log", "error",
    ]);
    command.stderr(Stdio::null());
    command
}

/// On both stores.
fn on_both(name: &str, test: impl Fn(&str) + Sync) {
    let folder = Scratch::new(name);
    let file = folder.join("store.db").display().to_string();
    let database = schema(name);
    thread::scope(|scope| {
        scope.spawn(|| test(&file));
        scope.spawn(|| test(&database));
    });
}

/// Types and epochs of messages.
fn kinds(taken: &BTreeMap<String, Value>) -> Vec<(String, u64)> {
    let kind = |body: &Value| {
        let kind = body["type"].as_str().unwrap().to_owned();
        (kind, body["data"]["epoch"].as_u64().unwrap())
    };
    let mut kinds: Vec<_> = taken.values().map(kind).collect();
    kinds.sort();
    kinds
}

/// What the record of an experiment that is done gives reason to tell.
fn expected(node: &Node, id: &str) -> Vec<(String, u64)> {
    let epochs = node.get(&format!("/v1/experiments/{id}/epochs?limit=100"));
    let epochs = epochs["epochs"].as_array().unwrap().len() as u64;
    let mut kinds: Vec<_> = (0..epochs)
        .map(|epoch| ("epoch.closed".to_owned(), epoch))
        .collect();
    kinds.push(("experiment.done".into(), epochs - 1));
    kinds
}

/// The receiver refuses every message in one way or another before it takes it, and the server is killed while some are on their
/// way, refused or not written yet.
#[test]
fn every_event_arrives_with_one_id_and_one_body_whatever_fails() {
    on_both("hooks_kill", |store| {
        // The first attempt is refused, hung up on or not answered, in turn; the second is taken.
        let failing = [Answer::Status(500), Answer::Close, Answer::Status(302)];
        let turn = std::sync::atomic::AtomicUsize::new(0);
        let receiver = Receiver::start(move |_, before| match before {
            0 => failing[turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3],
            _ => Answer::Status(200),
        });
        let mut node = Node::start(store);
        let body = json!({ "name": "ops", "url": receiver.url("/hook") });
        node.post("/v1/webhooks", body);
        node.create("e", SHORT);
        for _ in 0..4 {
            node.play("e", 64, |_| Some((0.5, 0.5)));
        }
        // Some are refused by now, and wait.
        receiver.wait("/hook", 10, |here| {
            (here.at("/hook").len() > 1).then_some(())
        });
        node.kill();
        while node.play("e", 64, |_| Some((0.5, 0.5))) > 0 {}
        // At once: the last ones are in the record alone.
        node.kill();
        let expected = expected(&node, "e");
        assert!(expected.len() > 5, "{expected:?}");
        let taken = receiver.wait("/hook", 45, |here| {
            let taken = here.taken("/hook");
            (taken.len() >= expected.len()).then_some(taken)
        });
        assert_eq!(kinds(&taken), expected);
        let mut bodies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for message in receiver.at("/hook") {
            let of_id = bodies.entry(message.id().to_owned()).or_default();
            of_id.insert(message.body);
        }
        assert!(
            bodies.values().all(|bodies| bodies.len() == 1),
            "{bodies:?}"
        );
        let begun = Instant::now();
        while node.webhook("ops")["pending"] != 0 {
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "{}",
                node.webhook("ops")
            );
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(receiver.at("/trap").len(), 0, "a redirect was followed");
    });
}

#[test]
fn two_nodes_send_each_message_once_if_nothing_fails() {
    let store = schema("hooks_two");
    // Slow, so that the other node looks while one sends.
    let receiver = Receiver::start(|_, _| {
        thread::sleep(Duration::from_millis(100));
        Answer::Status(200)
    });
    let nodes = [Node::start(&store), Node::start(&store)];
    let body = json!({ "name": "ops", "url": receiver.url("/hook"), "events": ["epoch.closed"] });
    nodes[0].post("/v1/webhooks", body);
    let ids = ["a", "b", "c", "d"];
    for (place, id) in ids.into_iter().enumerate() {
        nodes[place % 2].create(id, SHORT);
        while nodes[place % 2].play(id, 64, |_| Some((0.5, 0.5))) > 0 {}
    }
    let each = expected(&nodes[0], "a").len() - 1;
    receiver.wait("/hook", 20, |here| {
        (here.taken("/hook").len() == each * ids.len()).then_some(())
    });
    // Time for the other node to send it, too, if it would.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(receiver.at("/hook").len(), each * ids.len());
    assert_eq!(nodes[1].webhook("ops")["delivered"], each * ids.len());
}

#[test]
fn a_receiver_that_never_answers_holds_up_neither_decisions_nor_other_webhooks() {
    let folder = Scratch::new("hooks_dead");
    let store = folder.join("store.db").display().to_string();
    let receiver = Receiver::start(|path, _| match path {
        "/dead" => Answer::Silence,
        _ => Answer::Status(204),
    });
    let node = Node::start(&store);
    for name in ["dead", "live"] {
        let url = receiver.url(&format!("/{name}"));
        node.post("/v1/webhooks", json!({ "name": name, "url": url }));
    }
    node.create("e", SHORT);
    node.play("e", 64, |_| Some((0.5, 0.5)));
    receiver.wait("/dead", 10, |here| here.at("/dead").first().cloned());
    // While the dead one keeps its connection, everything else goes on.
    let begun = Instant::now();
    while node.play("e", 64, |_| Some((0.5, 0.5))) > 0 {}
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let expected = expected(&node, "e").len();
    receiver.wait("/live", 8, |here| {
        (here.at("/live").len() == expected).then_some(())
    });
    assert_eq!(node.webhook("live")["last_error"], Value::Null);
    let begun = Instant::now();
    while node.webhook("dead")["last_error"] != "no answer within 10 seconds" {
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "{}",
            node.webhook("dead")
        );
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(node.webhook("dead")["pending"], expected);
    // Its threads do not keep the server from stopping.
    let stopped = Command::new("kill")
        .arg(node.running.child.id().to_string())
        .status();
    assert!(stopped.unwrap().success());
    let mut node = node;
    let begun = Instant::now();
    assert!(node.running.child.wait().unwrap().success());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_receiver_that_is_gone_is_left_alone_and_a_redirect_is_a_failure() {
    let folder = Scratch::new("hooks_gone");
    let store = folder.join("store.db").display().to_string();
    let receiver = Receiver::start(|path, _| match path {
        "/gone?token=secret" => Answer::Status(410),
        "/moved" => Answer::Status(307),
        _ => Answer::Status(200),
    });
    let node = Node::start(&store);
    for (name, path) in [("gone", "/gone?token=secret"), ("moved", "/moved")] {
        node.post(
            "/v1/webhooks",
            json!({ "name": name, "url": receiver.url(path) }),
        );
        let id = node.post(&format!("/v1/webhooks/{name}/test"), json!({}))["id"].clone();
        let message = receiver.wait(path, 5, |here| here.at(path).first().cloned());
        assert_eq!(message.id(), id);
        assert_eq!(message.json()["type"], "webhook.test");
    }
    let begun = Instant::now();
    while node.webhook("gone")["disabled_at"].is_null()
        || node.webhook("moved")["last_error"] != "it answered 307, and redirects are not followed"
    {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{}",
            node.get("/v1/webhooks")
        );
        thread::sleep(Duration::from_millis(50));
    }
    let gone = node.webhook("gone");
    assert_eq!((&gone["failed"], &gone["pending"]), (&json!(1), &json!(0)));
    assert!(!node.get("/v1/webhooks").to_string().contains("secret"));
    let (status, refused) = node.ask("/v1/webhooks/gone/test", Some(&json!({})));
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("webhook_disabled"))
    );
    // What is over when a webhook is added again is not told to it.
    node.create("e", SHORT);
    while node.play("e", 64, |_| Some((0.5, 0.5))) > 0 {}
    node.post("/v1/webhooks/gone/remove", json!({}));
    node.post(
        "/v1/webhooks",
        json!({ "name": "gone", "url": receiver.url("/new") }),
    );
    node.create("f", SHORT);
    while node.play("f", 64, |_| Some((0.5, 0.5))) > 0 {}
    let expected = expected(&node, "f").len();
    receiver.wait("/new", 8, |here| {
        (here.at("/new").len() == expected).then_some(())
    });
    thread::sleep(Duration::from_secs(1));
    let other = receiver.at("/new").into_iter();
    assert_eq!(
        other
            .filter(|message| message.json()["data"]["experiment"] != "f")
            .count(),
        0
    );
    assert_eq!(receiver.at("/trap").len(), 0);
    assert_eq!(receiver.at("/gone?token=secret").len(), 1);
}

/// A backup of PostgreSQL is written row by row.
#[test]
fn a_copy_has_webhooks_and_all_that_waits_for_them() {
    let database = schema("hooks_copy");
    let receiver = Receiver::start(|_, _| Answer::Status(500));
    let node = Node::start(&database);
    let template = json!({ "name": "ops", "url": receiver.url("/hook"), "format": "slack", "template": "{words}",
        "events": ["epoch.closed", "experiment.done"], "experiments": ["e"], "wait_seconds": 7 });
    node.post("/v1/webhooks", template);
    node.create("e", SHORT);
    while node.play("e", 64, |_| Some((0.5, 0.5))) > 0 {}
    let pending = expected(&node, "e").len();
    let begun = Instant::now();
    while node.webhook("ops")["pending"] != pending || node.webhook("ops")["last_error"].is_null() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{}",
            node.webhook("ops")
        );
        thread::sleep(Duration::from_millis(50));
    }
    drop(node);
    let folder = Scratch::new("hooks_copy");
    let (from, to) = (Location::parse(&database), folder.join("copy.db"));
    copy::to_file(&from, &to).unwrap();
    let held = [from, Location::Sqlite(to)].map(|location| {
        let mut store = location.open(Purpose::Read).unwrap();
        store.begin().unwrap();
        let messages = store.messages("ops", i64::MAX, i64::MAX, 100).unwrap();
        (
            store.webhooks().unwrap(),
            store.cursors("e").unwrap(),
            messages,
        )
    });
    assert_eq!(held[0].2.len(), pending);
    assert!(held[0].1[0].ended, "{:?}", held[0].1);
    assert_eq!(held[0], held[1]);
}

#[test]
fn what_no_webhook_can_be_is_refused_with_its_rule() {
    let folder = Scratch::new("hooks_refused");
    let node = Node::start(&folder.join("store.db").display().to_string());
    let add = |change: Value| {
        let mut body = json!({ "name": "ops", "url": "https://hooks.example/a" });
        let fields = body.as_object_mut().unwrap();
        fields.extend(change.as_object().unwrap().clone());
        let (status, answer) = node.ask("/v1/webhooks", Some(&body));
        (
            status,
            answer["code"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let unfit = (422, "webhook".to_owned());
    for url in [
        "",
        "hooks.example",
        "ftp://hooks.example/",
        "https://ann:pass@hooks.example/",
        "/a",
    ] {
        assert_eq!(add(json!({ "url": url })), unfit, "{url}");
    }
    for change in [
        json!({ "format": "xml" }),
        json!({ "template": "{words}" }),
        json!({ "format": "slack", "template": "{experiment}: {words} {epoch}" }),
        json!({ "format": "slack", "template": "{experiment}: {words" }),
        json!({ "format": "slack", "template": " " }),
        json!({ "events": [] }),
        json!({ "events": ["webhook.test"] }),
        json!({ "wait_seconds": 0 }),
    ] {
        assert_eq!(add(change.clone()), unfit, "{change}");
    }
    assert_eq!(add(json!({ "name": ".." })), (422, "key_name".into()));
    assert_eq!(
        add(json!({ "experiments": ["E"] })),
        (422, "id_text".into())
    );
    assert_eq!(add(json!({})), (201, String::new()));
    assert_eq!(add(json!({})), (409, "webhook_taken".into()));
    for number in 1..32 {
        assert_eq!(add(json!({ "name": format!("ops-{number}") })).0, 201);
    }
    assert_eq!(add(json!({ "name": "more" })), (409, "webhooks".into()));
    let (status, answer) = node.ask("/v1/webhooks/none/remove", Some(&json!({})));
    assert_eq!((status, &answer["code"]), (404, &json!("no_such_webhook")));
}
