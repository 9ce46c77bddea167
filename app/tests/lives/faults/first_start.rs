//! Deaths while a store is first made: the next start must heal what they leave.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::disk::Disk;
use super::times;
use crate::kit::client;
use crate::kit::dice::Dice;
use crate::kit::play::{self, SPEC};
use crate::kit::scratch::Scratch;
use crate::kit::server::start;

/// Starts a server and has it decide; what went wrong.
fn decide(command: &mut Command) -> Result<(), String> {
    let server = start(command)?;
    let post = |path: &str, body: Value| {
        let path = format!("/v1/experiments{path}");
        match client::ask(&server.address, &path, Some(&body), None) {
            Ok((200..300, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    let created = json!({ "id": "one", "spec": SPEC, "blind": true });
    post("", created)?;
    post("/one/decisions", json!({ "n": 3 }))
}

/// How many changes of files a first start makes until the server listens.
fn changes() -> u32 {
    let disk = Disk::new();
    disk.die_at(0);
    let server = start(&mut disk.serve("127.0.0.1:0")).unwrap();
    let changes = disk.changes();
    drop(server);
    changes
}

/// A server dies before each change in turn, by a kill or by a power cut; where the next one does not serve.
fn deaths(cut: bool) -> Vec<String> {
    let changes = changes();
    assert!(changes > 5, "a store is made by {changes} changes");
    let mut failed = Vec::new();
    for change in 1..=changes {
        // In an ordinary run every other change has a kill, and those between them a cut.
        if times(1) == 1 && change % 2 == u32::from(cut) {
            continue;
        }
        let disk = Disk::new();
        disk.die_at(change);
        if let Ok(mut server) = start(&mut disk.serve("127.0.0.1:0")) {
            // It died only after it had said where it listens.
            server.child.wait().unwrap();
        }
        if cut {
            disk.cut(&mut Dice::new(u64::from(change)));
        }
        disk.die_at(0);
        if let Err(error) = decide(&mut disk.serve("127.0.0.1:0")) {
            let said = disk.said();
            failed.push(format!(
                "before change {change} of {changes}: {error} {said}"
            ));
        }
    }
    failed
}

#[test]
fn a_kill_before_any_change_while_a_store_is_made_heals() {
    let failed = deaths(false);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_power_cut_before_any_change_while_a_store_is_made_heals() {
    let failed = deaths(true);
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Kills from outside, on a true disk, at random moments between the first file and the line that says where it listens.
#[test]
fn a_kill_at_any_moment_while_a_store_is_made_heals() {
    let making = micros_of_making();
    let (kills, mut dice) = (times(20), Dice::new(4));
    let mut failed = Vec::new();
    for kill in 0..kills {
        let folder = Scratch::new("first");
        let store = folder.join("store.db").display().to_string();
        let mut server = spawn(&store);
        let micros = dice.below(making);
        thread::sleep(Duration::from_micros(micros));
        server.kill().unwrap();
        server.wait().unwrap();
        if let Err(error) = decide(&mut play::serve(&store, "127.0.0.1:0")) {
            failed.push(format!("kill {kill} after {micros} us: {error}"));
        }
    }
    println!("{kills} kills within the {making} us in which a store is made");
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Starts a server and waits for the first file of its store.
fn spawn(store: &str) -> Child {
    let mut command = play::serve(store, "127.0.0.1:0");
    let server = command.stdout(Stdio::piped()).spawn().unwrap();
    let folder = Path::new(store).parent().unwrap();
    while fs::read_dir(folder).unwrap().next().is_none() {
        thread::yield_now();
    }
    server
}

/// How long a store is in the making.
fn micros_of_making() -> u64 {
    let folder = Scratch::new("first");
    let mut server = spawn(&folder.join("store.db").display().to_string());
    let begun = Instant::now();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let micros = begun.elapsed().as_micros() as u64;
    server.kill().unwrap();
    server.wait().unwrap();
    micros
}
