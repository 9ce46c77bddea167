//! Deaths while a store is first made: the next start must heal what they leave.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::disk::Disk;
use crate::play::SPEC;
use crate::server::start;
use crate::{Dice, times};

/// Starts a server and has it decide; what went wrong.
fn serve(disk: &Disk) -> Result<(), String> {
    let started = start(&mut disk.serve("127.0.0.1:0"));
    let server = started.map_err(|error| format!("{error} {}", disk.said()))?;
    let post = |path: &str, body: String| {
        let request = ureq::post(format!("http://{}/v1/experiments{path}", server.address));
        let sent = request.content_type("application/json").send(body);
        sent.map(drop).map_err(|error| error.to_string())
    };
    let created = json!({ "id": "one", "spec": SPEC, "blind": true });
    post("", created.to_string())?;
    post("/one/decisions", r#"{"n": 3}"#.into())
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
        if let Err(error) = serve(&disk) {
            failed.push(format!("before change {change} of {changes}: {error}"));
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

/// Kills from outside, at random moments of the time that a start takes.
#[test]
fn a_kill_at_any_moment_while_a_store_is_made_heals() {
    // The command first: it waits for the library, which may have to be compiled.
    let disk = Disk::new();
    let mut command = disk.serve("127.0.0.1:0");
    let begun = Instant::now();
    drop(start(&mut command).unwrap());
    let start_micros = begun.elapsed().as_micros() as u64;
    let (kills, mut dice) = (times(10), Dice::new(4));
    let mut failed = Vec::new();
    for kill in 0..kills {
        let disk = Disk::new();
        let mut command = disk.serve("127.0.0.1:0");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let micros = dice.below(start_micros);
        thread::sleep(Duration::from_micros(micros));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Err(error) = serve(&disk) {
            failed.push(format!("kill {kill} after {micros} us: {error}"));
        }
    }
    println!("{kills} kills within {start_micros} us of a first start");
    assert!(failed.is_empty(), "{failed:#?}");
}
