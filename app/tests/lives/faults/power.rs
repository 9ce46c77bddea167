//! Power cuts under load.

use std::cell::Cell;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::disk::{Disk, EIO, SYNC};
use super::{times, wait_for};
use crate::kit::client;
use crate::kit::dice::Dice;
use crate::kit::play::{Cluster, SPEC, disturbed};
use crate::kit::server::start;

/// Requests that are checked one by one.
const REQUESTS: u64 = 20;

/// Before every third cut syncs have begun to fail, so that a commit that failed is cut, too.
#[test]
fn power_cuts_lose_and_double_nothing() {
    let disk = Arc::new(Disk::new());
    let launched = Arc::clone(&disk);
    let cluster = Cluster::start(&disk.store(), 1, move |listen| launched.serve(listen));
    let dice = Mutex::new(Dice::new(1));
    disturbed(cluster, times(15), |play, cut| {
        if cut % 3 == 2 {
            disk.fail(EIO, SYNC, 2);
            wait_for(|| disk.failed() > 0, || "nothing is synced".into());
        }
        play.cluster.kill(0, || {
            disk.heal();
            disk.cut(&mut dice.lock().unwrap());
        });
    });
}

/// What was answered before a power cut and is not there after it: so many of the requests, or all if nothing starts. `end`
/// ends the server.
fn lost(disk: &Disk, before_asking: impl Fn(), end: impl Fn(&mut Child)) -> usize {
    let mut server = start(&mut disk.serve("127.0.0.1:0")).unwrap();
    let post = |address: &str, path: &str, body: Value| -> Option<Value> {
        let (status, answer) = client::ask(address, path, Some(&body), None).ok()?;
        (status < 300).then_some(answer)
    };
    let created = json!({ "id": "one", "spec": SPEC, "blind": true });
    post(&server.address, "/v1/experiments", created).unwrap();
    before_asking();
    let ask = |address: &str, number: u64| {
        let body = json!({ "n": 1 + number, "request_key": number.to_string() });
        post(address, "/v1/experiments/one/decisions", body)
    };
    let answered: Vec<Value> = (0..REQUESTS)
        .map(|number| ask(&server.address, number).unwrap())
        .collect();
    end(&mut server.child);
    server.child.wait().unwrap();
    disk.cut(&mut Dice::new(2));
    let Ok(server) = start(&mut disk.serve("127.0.0.1:0")) else {
        return answered.len();
    };
    // Backwards: in their old order, requests that were lost would be given the same rounds again.
    let asked_again = (0..REQUESTS)
        .rev()
        .map(|number| ask(&server.address, number));
    let differ = asked_again
        .zip(answered.iter().rev())
        .filter(|(again, first)| again.as_ref() != Some(first));
    differ.count()
}

/// What the test above can see: a disk that says it has synced, and has not.
#[test]
fn a_disk_that_lies_is_found_out() {
    let kill = |server: &mut Child| server.kill().unwrap();
    let honest = Disk::new();
    assert_eq!(lost(&honest, || {}, kill), 0);
    let liar = Disk::new();
    let lost = lost(&liar, || liar.lie(), kill);
    assert!(lost > 0, "nothing was synced, and nothing is missing");
}

/// A stop tidies up: a cut before any change that it makes must find everything still, or already, in place.
#[test]
fn a_power_cut_while_a_server_stops_loses_nothing() {
    let stop_until = |disk: &Disk, change: u32, server: &mut Child| {
        disk.die_at(change);
        let mut terminate = Command::new("kill");
        let sent = terminate.args(["-TERM", &server.id().to_string()]).status();
        assert!(sent.unwrap().success());
        server.wait().unwrap();
    };
    let (whole, changes) = (Disk::new(), Cell::new(0));
    let stop = |server: &mut Child| {
        stop_until(&whole, 0, server);
        changes.set(whole.changes());
    };
    assert_eq!(lost(&whole, || {}, stop), 0);
    let changes = changes.get();
    for change in 1..=changes {
        let disk = Disk::new();
        let die = |server: &mut Child| stop_until(&disk, change, server);
        let lost = lost(&disk, || {}, die);
        assert_eq!(lost, 0, "cut before change {change} of {changes} of a stop");
    }
}
