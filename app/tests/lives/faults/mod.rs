//! The program on a disk that fails: power cuts, errors of every kind, and deaths while a store is first made.
//!
//! `disk.c` stands between the server and its files; `disk.rs` commands it, and `cut.rs` works out from its trace what a
//! power cut leaves. Few of each by default; `DEBORA_FAULTS` multiplies them (20 in `./check long`, whose results are in
//! docs/service.md).

mod cut;
mod disk;
mod errors;
mod first_start;
mod power;

use std::thread;
use std::time::{Duration, Instant};

use debora::Key;
use debora::key::Label;

/// So many in an ordinary run, more in a long one.
fn times(ordinary: u64) -> u64 {
    let factor = std::env::var("DEBORA_FAULTS").map_or(1, |factor| {
        factor.parse().expect("DEBORA_FAULTS is a number")
    });
    ordinary * factor
}

/// Waits for a condition; what is missing if it does not come.
fn wait_for(condition: impl Fn() -> bool, missing: impl Fn() -> String) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", missing());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Chance as a function of a number that counts up.
struct Dice {
    key: Key,
    thrown: u64,
}

impl Dice {
    fn new(key: u64) -> Self {
        Self {
            key: Key::from(key),
            thrown: 0,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.thrown += 1;
        self.key.block(Label::Feedback, [self.thrown, 0, 0])[0] % limit
    }
}
