//! Windows of time in which operations on files fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{Disk, EIO, ENOSPC, EROFS, OPEN, SYNC, TRUNCATE, WRITE};
use crate::play::{Cluster, disturbed};
use crate::times;

/// What fails, with which error, and every how many times.
const WINDOWS: [(u32, u32, u32); 6] = [
    (ENOSPC, WRITE, 1),
    (EIO, SYNC, 1),
    (EROFS, WRITE | TRUNCATE | OPEN, 1),
    (EIO, WRITE, 1),
    (ENOSPC, WRITE, 3),
    (EIO, WRITE | SYNC | TRUNCATE | OPEN, 2),
];

/// Waits until a count has grown.
fn wait_for_more(count: &AtomicU64, what: &str) {
    let (begun, before) = (Instant::now(), count.load(Ordering::Relaxed));
    while count.load(Ordering::Relaxed) <= before {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The server answers 503 while the disk fails, and goes on by itself afterwards: nobody starts it again.
#[test]
fn errors_of_the_disk_are_answered_with_503_and_pass() {
    let disk = Arc::new(Disk::new());
    let launched = Arc::clone(&disk);
    let cluster = Cluster::start(&disk.store(), 1, move |listen| launched.serve(listen));
    disturbed(cluster, times(6), |play, window| {
        let (error, kinds, every) = WINDOWS[window as usize % WINDOWS.len()];
        let shown = format!("error {error} of kinds {kinds}, every {every}");
        disk.fail(error, kinds, every);
        wait_for_more(&play.refused, &format!("{shown}: nothing is refused"));
        // Some last for many requests, the shortest for one.
        thread::sleep(Duration::from_millis((window * 13) % 60));
        disk.heal();
        assert!(disk.failed() > 0);
        wait_for_more(
            &play.receipts,
            &format!(
                "{shown}: it passed, and nothing is answered: {}",
                disk.said()
            ),
        );
    });
}
