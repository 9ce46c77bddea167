//! Windows of time in which operations on files fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::disk::{Disk, EIO, ENOSPC, EROFS, OPEN, SYNC, TRUNCATE, WRITE};
use super::{times, wait_for};
use crate::kit::client;
use crate::kit::play::{Cluster, disturbed};
use crate::kit::server::start;

/// What fails, with which error, and every how many times.
const WINDOWS: [(u32, u32, u32); 6] = [
    (ENOSPC, WRITE, 1),
    (EIO, SYNC, 1),
    (EROFS, WRITE | TRUNCATE | OPEN, 1),
    (EIO, WRITE, 1),
    (ENOSPC, WRITE, 3),
    (EIO, WRITE | SYNC | TRUNCATE | OPEN, 2),
];

/// The server answers 503 while the disk fails, and goes on by itself afterwards: nobody starts it again.
#[test]
fn errors_of_the_disk_are_answered_with_503_and_pass() {
    let disk = Arc::new(Disk::new());
    let launched = Arc::clone(&disk);
    let cluster = Cluster::start(&disk.store(), 1, move |listen| launched.serve(listen));
    disturbed(cluster, times(6), |play, window| {
        let (error, kinds, every) = WINDOWS[window as usize % WINDOWS.len()];
        let shown = format!("error {error} of kinds {kinds}, every {every}");
        let (refused, receipts) = (&play.refused, &play.receipts);
        let before = refused.load(Ordering::Relaxed);
        disk.fail(error, kinds, every);
        let is_refused = || refused.load(Ordering::Relaxed) > before;
        wait_for(is_refused, || format!("{shown}: nothing is refused"));
        // Some last for many requests, the shortest for one.
        thread::sleep(Duration::from_millis((window * 13) % 60));
        disk.heal();
        assert!(disk.failed() > 0);
        let before = receipts.load(Ordering::Relaxed);
        let goes_on = || receipts.load(Ordering::Relaxed) > before;
        wait_for(goes_on, || {
            format!("{shown}, healed; nothing is answered: {}", disk.said())
        });
    });
}

/// Live all the while, and ready when a commit would be kept.
#[test]
fn ready_says_what_the_disk_says() {
    let disk = Disk::new();
    let server = start(&mut disk.serve("127.0.0.1:0")).unwrap();
    for (error, kinds, code) in [
        (ENOSPC, WRITE, "disk_full"),
        (EIO, SYNC, "io_error"),
        (EIO, WRITE, "io_error"),
    ] {
        disk.fail(error, kinds, 1);
        let says_why = || get(&server.address, "/ready") == (503, code.into());
        wait_for(says_why, || {
            let said = get(&server.address, "/ready");
            format!("error {error} of kinds {kinds}: {said:?} is not {code}")
        });
        assert_eq!(get(&server.address, "/health").0, 200);
        disk.heal();
        let is_ready = || get(&server.address, "/ready").0 == 200;
        wait_for(is_ready, || format!("{code}, healed; not ready"));
    }
}

/// The status of an answer, and the code if it has one.
fn get(address: &str, path: &str) -> (u16, String) {
    let answered = client::ask(address, path, None, None);
    let (status, body) = answered.expect("a server that answers");
    let code = body["code"].as_str().unwrap_or_default();
    (status, code.to_owned())
}
