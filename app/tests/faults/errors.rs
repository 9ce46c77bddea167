//! Windows of time in which operations on files fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::disk::{Disk, EIO, ENOSPC, EROFS, OPEN, SYNC, TRUNCATE, WRITE};
use crate::play::{Cluster, disturbed};
use crate::{times, wait_for};

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
