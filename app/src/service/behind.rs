//! A store that is behind what its clients have seen: a copy that was put back, or one that is served beside its original.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// At most one warning in this time: a store that is behind is told of with every request.
const INTERVAL: Duration = Duration::from_secs(60);

static WARNED: Mutex<Option<Instant>> = Mutex::new(None);

/// Warns that a client has seen a round that the store never decided.
pub fn warn(id: &str, seen: u64, decided: u64) {
    if is_due(
        &mut WARNED.lock().expect("no panic while warning"),
        Instant::now(),
    ) {
        tracing::warn!(
            id,
            seen,
            decided,
            "a client has seen a round that was never decided here: if it is not the client's mistake, this store is behind, a copy \
             that was put back or is served beside its original; stop the server, and compare `debora audit --head` with a head \
             that was published"
        );
    }
}

fn is_due(warned: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = warned.is_none_or(|warned| now.duration_since(warned) >= INTERVAL);
    if is_due {
        *warned = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_given_once_a_minute() {
        let (begun, mut warned) = (Instant::now(), None);
        let due = [0, 1, 59, 60, 61, 120]
            .map(|seconds| is_due(&mut warned, begun + Duration::from_secs(seconds)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
