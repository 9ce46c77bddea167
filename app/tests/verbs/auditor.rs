//! An auditor who was not there, and has the seal that was published before, the certificate and the log: the commands of the
//! certificate work as they are printed, and a history that was written again is found out.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::kit::binary::debora;
use crate::kit::client;
use crate::kit::scratch::Scratch;
use crate::kit::server::{Running, start};

const SPEC: &str = "name = 'trial'\npolicy = 'soft'\nhorizon = 64\nrho = 0.9\ndelta = 0.1\nprofile = 'paper'\n\
    actions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5\n";

/// The key of both histories: the operator knows it.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A service, and the API key of its operator.
struct Operator {
    folder: Scratch,
    server: Running,
    api_key: String,
}

impl Operator {
    fn new() -> Self {
        let folder = Scratch::new("auditor");
        let store = folder.join("store.db").display().to_string();
        let arguments = [
            "keys", "add", "mara", "--role", "admin", "--json", "--store", &store,
        ];
        let added = debora(&arguments).output().unwrap();
        let added: Value = serde_json::from_slice(&added.stdout).unwrap();
        let listen = [
            "serve",
            "--store",
            &store,
            "--listen",
            "127.0.0.1:0",
            "--log",
            "off",
        ];
        Self {
            server: start(&mut debora(&listen)).unwrap(),
            api_key: added["key"].as_str().unwrap().to_owned(),
            folder,
        }
    }

    fn ask(&self, path: &str, body: Option<&Value>) -> Value {
        let path = format!("/v1/experiments{path}");
        let api_key = Some(self.api_key.as_str());
        let asked = client::ask(&self.server.address, &path, body, api_key);
        let (status, answer) = asked.unwrap();
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask(path, Some(body))
    }

    fn get(&self, path: &str) -> Value {
        self.ask(path, None)
    }

    fn create(&self) {
        self.post(
            "",
            &json!({ "id": "trial", "spec": SPEC, "key": KEY, "blind": true }),
        );
    }

    /// Plays this many rounds, all with one reward.
    fn play(&self, rounds: usize, reward: f64) {
        let mut played = 0;
        while played < rounds {
            let decided = self.post("/trial/decisions", &json!({ "n": rounds - played }));
            let outcome = |decision: &Value| json!({ "round": decision["round"], "reward": reward, "costs": [0.25] });
            let told: Vec<Value> = decided["decisions"]
                .as_array()
                .unwrap()
                .iter()
                .map(outcome)
                .collect();
            played += told.len();
            self.post("/trial/outcomes", &json!(told));
        }
    }

    /// The certificate's commands, and its folder: where an auditor keeps it.
    fn commands(&self) -> Vec<String> {
        let page = self.get("/trial/certificate.html");
        let page = page.as_str().unwrap();
        let blocks = page.split("<pre>").skip(1).take(3);
        let plain = |block: &str| {
            let text = block.split("</pre>").next().unwrap();
            text.replace("&quot;", "\"")
                .replace("&lt;", "<")
                .replace("&amp;", "&")
        };
        blocks.map(plain).collect()
    }

    /// Runs a command as it is printed.
    fn run(&self, command: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_debora")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", path);
        shell.env("DEBORA_API_KEY", &self.api_key);
        shell.current_dir(&*self.folder).output().unwrap()
    }
}

#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn the_three_commands_work_as_they_are_printed() {
    let operator = Operator::new();
    operator.create();
    let seal = operator.get("/trial/seal");
    operator.play(64, 1.0);
    let commands = operator.commands();
    let [fetch, audit, key] = &commands[..] else {
        panic!("{commands:?}")
    };
    said(&operator.run(fetch), 0);
    let audited = said(&operator.run(audit), 0);
    assert!(audited.contains("64 decisions in"), "{audited}");
    assert!(audited.contains("recomputed, all equal"), "{audited}");
    let hash = said(&operator.run(key), 0);
    assert_eq!(
        hash.trim(),
        seal["key_hash"],
        "the seal committed to this key"
    );
    // The head from which the sealed experiment starts is in the chain.
    let from_seal = format!(
        "debora audit trial.jsonl --head {}",
        seal["head"].as_str().unwrap()
    );
    said(&operator.run(&from_seal), 0);
    // And a log that says otherwise is not what the certificate certifies.
    let log = operator.folder.join("trial.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"reward\":1.0", "\"reward\":0.5", 1)).unwrap();
    let found = said(&operator.run(audit), 1);
    assert!(found.contains("a difference"), "{found}");
}

/// The operator has every key, and runs it again with better outcomes. Only what was published before gives it away.
#[test]
fn a_history_that_was_written_again_lacks_what_was_published() {
    let operator = Operator::new();
    operator.create();
    operator.play(40, 0.25);
    let published = operator.post("/trial/publish", &json!({ "where": "a journal" }));
    let sealed = operator.get("/trial/seal");
    operator.play(24, 0.25);
    let [fetch, ..] = &operator.commands()[..] else {
        panic!("no commands")
    };
    said(&operator.run(fetch), 0);
    let with_head = format!(
        "debora audit trial.jsonl --head {}",
        published["head"].as_str().unwrap()
    );
    said(&operator.run(&with_head), 0);

    let again = Operator::new();
    again.create();
    again.play(64, 1.0);
    let [fetch, audit, key] = &again.commands()[..] else {
        panic!("no commands")
    };
    said(&again.run(fetch), 0);
    said(&again.run(audit), 0);
    let hash = said(&again.run(key), 0);
    assert_ne!(hash.trim(), sealed["key_hash"], "its salt is another");
    let found = said(&again.run(&with_head), 1);
    assert!(found.contains("the published head"), "{found}");
}
