//! When players and worlds written in Python fail.
//!
//! The library's traits have no errors: when Python's code fails, the player holds its last strategy to the horizon, nothing
//! else is begun, and whoever waits for the measurement gets the exception.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use pyo3::prelude::*;

use crate::background::Watch;

/// The first exception of Python's code in a measurement, which ends it.
#[derive(Default)]
pub struct CodeFailure {
    error: Mutex<Option<PyErr>>,
    /// What is set to stop the work, and what is read while Python's code runs.
    watched: OnceLock<(Arc<AtomicBool>, Arc<RwLock<()>>)>,
}

impl CodeFailure {
    /// From here on a failure sets the watch's `cancel`, and players stop once it is set.
    pub fn watch(&self, watch: &Watch) {
        let watched = || (Arc::clone(&watch.cancel), Arc::clone(&watch.inside));
        self.watched.get_or_init(watched);
    }

    pub fn set(&self, py: Python<'_>, error: PyErr, place: &str) {
        // Notes are shown below an exception, which stays what it is; Python 3.10 has none.
        let _ = error.value(py).call_method1("add_note", (place,));
        self.error
            .lock()
            .expect("no panic here")
            .get_or_insert(error);
        if let Some((cancel, _)) = self.watched.get() {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Runs Python's code, unless something has failed or somebody has interrupted.
    pub fn attach<T>(&self, work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
        let Some((cancel, inside)) = self.watched.get() else {
            return Python::try_attach(work);
        };
        // First inside, then the look: whoever sets `cancel` and then finds nobody inside knows that nobody will be.
        let _inside = inside.read().ok()?;
        let goes_on = !cancel.load(Ordering::Relaxed);
        goes_on.then(|| Python::try_attach(work)).flatten()
    }

    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().expect("no panic here").take()
    }
}
