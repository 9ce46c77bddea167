//! Long work beside the interpreter: on threads of its own, watched for Ctrl-C and progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals and progress are looked at: at once for people, seldom for the machine.
const TICK: Duration = Duration::from_millis(50);

/// What the work tells and is told.
#[derive(Default)]
pub struct Watch {
    pub done: AtomicU64,
    /// Shared with code that cannot borrow it, such as players made later.
    pub cancel: Arc<AtomicBool>,
    /// Read by whoever runs Python's code on a thread of the work.
    pub inside: Arc<RwLock<()>>,
}

/// Does the work on a thread of its own, and calls `progress` as it goes.
///
/// When the caller is interrupted the work is told to stop, and nobody waits for more of it than Python's code.
pub fn beside<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<(&Bound<'_, PyAny>, u64)>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::clone(&watch);
    // A panic drops the sender, which is noticed below.
    std::thread::Builder::new()
        .spawn(move || {
            // If the caller was interrupted, nobody listens.
            let _ = sender.send(work(&shared));
        })
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let mut told = 0;
    let receiver = std::sync::Mutex::new(receiver);
    loop {
        // Other threads of Python run while this one waits.
        let received = py.detach(|| receiver.lock().expect("one reader").recv_timeout(TICK));
        let mut outcome = py.check_signals();
        let done = watch.done.load(Ordering::Relaxed);
        if let (Ok(()), Some((progress, total))) = (&outcome, progress)
            && done > told
        {
            outcome = report(progress, told, done, total);
            told = done;
        }
        if let Err(error) = outcome {
            watch.cancel.store(true, Ordering::Relaxed);
            outside(py, &watch.inside)?;
            return Err(error);
        }
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the measurement broke off; this is a bug of debora",
                ));
            }
        }
    }
}

/// Waits until no thread of the work runs Python's code, or for another signal: code that never returns holds nobody for ever.
///
/// The interpreter, when it ends, ends each thread that asks for its lock, and with it the process: Rust cannot be unwound so.
fn outside(py: Python<'_>, inside: &RwLock<()>) -> PyResult<()> {
    while inside.try_write().is_err() {
        py.detach(|| std::thread::sleep(TICK / 10));
        py.check_signals()?;
    }
    Ok(())
}

/// Calls `progress(done, total)`, or moves on a bar that has `update` and `total`, as those of tqdm do.
fn report(progress: &Bound<'_, PyAny>, told: u64, done: u64, total: u64) -> PyResult<()> {
    if progress.hasattr("update")? {
        if told == 0 {
            progress.setattr("total", total)?;
        }
        progress.call_method1("update", (done - told,))?;
    } else {
        progress.call1((done, total))?;
    }
    Ok(())
}
