//! A store that is behind what its clients have seen: a copy that was put back, or one that is served beside its original.

use std::time::{Duration, Instant};

use crate::service::seldom::Seldom;

/// A store that is behind is told of with every request.
static WARNED: Seldom = Seldom::new(Duration::from_secs(60));

/// Warns that a client has seen a round that the store never decided.
pub fn warn(id: &str, seen: u64, decided: u64) {
    if WARNED.due(Instant::now()).is_some() {
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
