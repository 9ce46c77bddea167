//! Lines of the log that many requests give reason for: one in a while, with the number of those that were left out.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// When such a line was written last, and how many were left out since.
pub struct Seldom {
    interval: Duration,
    written: Mutex<(Option<Instant>, u64)>,
}

impl Seldom {
    /// At most one line in this time.
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            written: Mutex::new((None, 0)),
        }
    }

    /// How many were left out, if a line is to be written; counts one more otherwise.
    pub fn due(&self, now: Instant) -> Option<u64> {
        let mut written = self.written.lock().expect("no panic while counting");
        let (at, left_out) = &mut *written;
        if at.is_some_and(|at| now.duration_since(at) < self.interval) {
            *left_out += 1;
            return None;
        }
        *at = Some(now);
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_in_its_time_and_counts_the_others() {
        let (begun, seldom) = (Instant::now(), Seldom::new(Duration::from_secs(60)));
        let due =
            [0, 1, 59, 60, 61, 120].map(|seconds| seldom.due(begun + Duration::from_secs(seconds)));
        assert_eq!(due, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
