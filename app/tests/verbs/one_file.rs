//! A store that nobody has open is one file: what a stopped server leaves, what commands leave beside no server, and how a copy
//! that is behind is noticed.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::binary::debora;
use crate::kit::client;
use crate::kit::scratch::Scratch;
use crate::kit::server::{Running, start};

const SPEC: &str =
    "policy = 'free'\nhorizon = 100000\nrho = 0.1\ndelta = 0.01\nactions = ['a', 'b']\n";

/// A folder with a store.
struct Folder(Scratch);

impl Folder {
    fn new() -> Self {
        Self(Scratch::new("one-file"))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&*self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn serve(&self, name: &str) -> Running {
        let mut command = debora(&["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
        command.args(["--store", &self.path(name)]);
        start(command.stderr(Stdio::piped())).unwrap()
    }

    /// What a command says that must succeed.
    fn said(&self, arguments: &[&str]) -> String {
        let output = debora(arguments).current_dir(&*self.0).output().unwrap();
        let words = String::from_utf8(output.stdout).unwrap();
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {words}{why}");
        words
    }
}

fn post(server: &Running, path: &str, body: &Value) -> Value {
    let path = format!("/v1/experiments{path}");
    let (status, answer) = client::ask(&server.address, &path, Some(body), None).unwrap();
    assert!(status < 300, "{path}: {status} {answer}");
    answer
}

/// Creates an experiment; decides and tells this many rounds.
fn play(server: &Running, batches: u64) {
    post(server, "", &json!({ "spec": SPEC, "id": "e" }));
    for _ in 0..batches {
        decide_and_tell(server);
    }
}

/// A hundred rounds; the first of them.
fn decide_and_tell(server: &Running) -> u64 {
    let decided = post(server, "/e/decisions", &json!({ "n": 100 }));
    let decisions = decided["decisions"].as_array().unwrap();
    let told: Vec<_> = decisions
        .iter()
        .map(|decision| json!({ "round": decision["round"], "reward": 0.5 }))
        .collect();
    post(server, "/e/outcomes", &json!(told));
    decisions[0]["round"].as_u64().unwrap()
}

/// Asks a server to stop: its exit code, and what it logged.
fn stop(mut server: Running) -> (Option<i32>, String) {
    let pid = server.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.unwrap().success());
    let mut log = String::new();
    let mut stderr = server.child.stderr.take().unwrap();
    stderr.read_to_string(&mut log).unwrap();
    (server.child.wait().unwrap().code(), log)
}

#[test]
fn a_copy_of_a_stopped_servers_file_is_a_whole_copy() {
    let folder = Folder::new();
    let server = folder.serve("store.db");
    play(&server, 20);
    // A reader's connection that is kept for the next one.
    let state = format!("http://{}/v1/experiments/e/state", server.address);
    assert_eq!(ureq::get(state).call().unwrap().status(), 200);
    assert!(folder.names().contains(&"store.db-wal".to_owned()));
    let (code, log) = stop(server);
    // That there are no API keys is said at the start, and nothing else.
    assert!(code == Some(0) && log.lines().count() == 1, "{log}");
    assert_eq!(folder.names(), ["store.db"]);

    fs::copy(folder.path("store.db"), folder.path("copy.db")).unwrap();
    let audited = folder.said(&["audit", "copy.db"]);
    assert!(audited.contains("all equal"), "{audited}");
    let copy = folder.serve("copy.db");
    let told = audited
        .split(" decisions")
        .next()
        .unwrap()
        .trim_start_matches("e: ");
    let told: u64 = told.replace(',', "").parse().unwrap();
    assert_eq!(decide_and_tell(&copy), told + 1, "{audited}");
    assert_eq!(stop(copy).0, Some(0));
    folder.said(&["keys", "add", "ann", "--role", "read", "--store", "copy.db"]);
    folder.said(&["keys", "list", "--store", "copy.db"]);
    folder.said(&["backup", "--store", "copy.db", "backup.db"]);
    folder.said(&["audit", "backup.db"]);
    assert_eq!(folder.names(), ["backup.db", "copy.db", "store.db"]);
}

/// Identity and incarnation, from a server's first line.
fn start_of(server: &Running) -> (String, u64) {
    let (_, start) = server.line.split_once("identity ").unwrap();
    let (identity, incarnation) = start.split_once(", incarnation ").unwrap();
    assert!(identity.len() == 32 && identity.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (identity.to_owned(), incarnation.trim().parse().unwrap())
}

fn head(server: &Running) -> String {
    let url = format!("http://{}/v1/experiments/e/state", server.address);
    let text = ureq::get(url).call().unwrap().body_mut().read_to_string();
    let state: Value = serde_json::from_str(&text.unwrap()).unwrap();
    state["head"].as_str().unwrap().to_owned()
}

#[test]
fn a_copy_that_is_behind_is_noticed() {
    let folder = Folder::new();
    let server = folder.serve("store.db");
    let (identity, incarnation) = start_of(&server);
    assert_eq!(incarnation, 1);
    play(&server, 1);
    let backup = folder.said(&["backup", "--store", "store.db", "copy.db"]);
    let words = format!("the same store (identity {identity}, incarnation 1)");
    assert!(backup.contains(&words), "{backup}");
    let before = head(&server);
    while head(&server) == before {
        decide_and_tell(&server);
    }
    let published = head(&server);
    assert_eq!(stop(server).0, Some(0));

    let arguments = ["audit", "copy.db", "--head", &published];
    let audit = debora(&arguments).current_dir(&*folder.0).output().unwrap();
    let words = String::from_utf8(audit.stdout).unwrap().replace('\n', " ");
    assert_eq!(audit.status.code(), Some(1), "{words}");
    assert!(
        words.contains("This store is behind what was published")
            && words.contains("or it is another"),
        "{words}"
    );
    folder.said(&["audit", "store.db", "--head", &published]);
    folder.said(&["audit", "copy.db", "--head", &before]);

    let copy = folder.serve("copy.db");
    assert_eq!(start_of(&copy), (identity, 2), "one store, another start");
    for round in [100, 101, 999, 1000] {
        let told = json!([{ "round": 1, "reward": 0.5 }, { "round": round, "reward": 0.5 }]);
        post(&copy, "/e/outcomes", &told);
    }
    // Those who ask are told, and the log says it once, whatever it was that told.
    let decisions = format!("http://{}/v1/experiments/e/decisions", copy.address);
    for _ in 0..3 {
        let asked = ureq::post(&decisions).content_type("application/json");
        let refused = asked.send(json!({ "n": 1, "seen": 999 }).to_string());
        assert!(matches!(refused, Err(ureq::Error::StatusCode(409))));
    }
    let (code, log) = stop(copy);
    assert_eq!(code, Some(0));
    let warnings: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a client has seen"))
        .collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("seen=101 decided=100"), "{log}");
}

#[test]
fn a_stop_that_cannot_leave_one_file_says_so() {
    let folder = Folder::new();
    let server = folder.serve("store.db");
    play(&server, 1);
    let reader = rusqlite::Connection::open(folder.path("store.db")).unwrap();
    let count = "BEGIN; SELECT count(*) FROM outcomes";
    reader.execute_batch(count).unwrap();
    decide_and_tell(&server);
    let (code, log) = stop(server);
    assert_eq!(code, Some(2), "{log}");
    for words in [
        "durable",
        "store.db-wal: do not copy",
        "another program is reading",
        "start a server on it and stop it again",
    ] {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
    drop(reader);
    assert_eq!(stop(folder.serve("store.db")).0, Some(0));
    assert_eq!(folder.names(), ["store.db"]);
}

/// What was moved away is not left in one file, whatever else went well.
#[test]
fn a_stop_without_its_file_says_so() {
    let folder = Folder::new();
    for replaced in [false, true] {
        let server = folder.serve("store.db");
        let _ = fs::copy(folder.path("store.db"), folder.path("other.db"));
        fs::rename(folder.path("store.db"), folder.path("aside.db")).unwrap();
        if replaced {
            fs::rename(folder.path("other.db"), folder.path("store.db")).unwrap();
        }
        let (code, log) = stop(server);
        assert_eq!(code, Some(2), "{log}");
        let what = if replaced {
            "another file"
        } else {
            "moved away"
        };
        for words in ["not left in one file", "put it back", what] {
            assert!(log.contains(words), "{words:?} is not in {log}");
        }
        fs::rename(folder.path("aside.db"), folder.path("store.db")).unwrap();
    }
}
