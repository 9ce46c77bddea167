//! Work divided among threads, its results in order.
//!
//! Each thread takes the next index until none is left, so that a long piece of work holds up nobody. What comes out does not
//! depend on the number of threads, nor on which of them did what.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// As many threads as the machine runs at once.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// `work` of each index, on this many threads, of which the caller's is one. An error ends the work; of several, the one of the
/// lowest index is returned. A panic goes on in the caller's thread.
pub fn in_order<T: Send, E: Send>(
    threads: usize,
    indices: Range<u64>,
    work: impl Fn(u64) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicU64::new(indices.start);
    let take = || {
        let after = |index: u64| (index < indices.end).then(|| index + 1);
        next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after)
            .ok()
    };
    let share = || {
        let mut done = Vec::new();
        while let Some(index) = take() {
            let result = work(index);
            if result.is_err() {
                // Nothing is left for the others.
                next.store(indices.end, Ordering::Relaxed);
            }
            done.push((index, result));
        }
        done
    };
    let count = indices.end.saturating_sub(indices.start);
    let others = (threads as u64).min(count).saturating_sub(1);
    let shares = thread::scope(|scope| {
        // One that cannot be started leaves its work to those that can.
        let others: Vec<_> = (0..others)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, share).ok())
            .collect();
        let mut shares = vec![share()];
        for other in others {
            let joined = other.join();
            shares.push(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        shares
    });
    // Indices are taken in order, so that those of the results are the first ones, without a hole.
    let mut results = Vec::new();
    results.resize_with(shares.iter().map(Vec::len).sum(), || None);
    for (index, result) in shares.into_iter().flatten() {
        results[(index - indices.start) as usize] = Some(result);
    }
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn results_are_in_order_and_each_is_made_once() {
        for threads in [0, 1, 2, 7, 1_000] {
            for indices in [0..0, 5..6, 3..103] {
                let made = Mutex::new(Vec::new());
                let results = in_order(threads, indices.clone(), |index| {
                    made.lock().unwrap().push(index);
                    Ok::<_, ()>(index * index)
                });
                let expected: Vec<_> = indices.clone().map(|index| index * index).collect();
                assert_eq!(results, Ok(expected));
                let mut made = made.into_inner().unwrap();
                made.sort_unstable();
                assert!(made.into_iter().eq(indices));
            }
        }
    }

    #[test]
    fn work_is_done_on_as_many_threads_as_are_asked_for() {
        // All of them must be there at once, or none gets on.
        let barrier = std::sync::Barrier::new(3);
        let on = in_order(3, 0..3, |_| {
            barrier.wait();
            Ok::<_, ()>(format!("{:?}", thread::current().id()))
        });
        assert_eq!(on.unwrap().into_iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn the_first_error_ends_the_work() {
        for threads in [1, 4] {
            let done = AtomicU64::new(0);
            let failed = in_order(threads, 0..1_000_000, |index| {
                done.fetch_add(1, Ordering::Relaxed);
                if index < 100 { Ok(()) } else { Err(index) }
            });
            assert_eq!(failed, Err(100), "{threads} threads");
            assert!(done.into_inner() < 1_000, "{threads} threads");
        }
    }

    #[test]
    #[should_panic(expected = "on another thread")]
    fn a_panic_is_the_callers() {
        let (caller, barrier) = (thread::current().id(), std::sync::Barrier::new(2));
        let _ = in_order(2, 0..2, |_| {
            barrier.wait();
            assert!(thread::current().id() == caller, "on another thread");
            Ok::<_, ()>(())
        });
    }
}
