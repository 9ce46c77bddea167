//! When players and worlds written in Python fail.
//!
//! The library's traits have no errors: when Python's code fails, the player holds its last strategy to the horizon, nothing
//! else is begun, and whoever waits for the measurement gets the exception.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::prelude::*;

/// The first exception of Python's code in a measurement, which ends it.
#[derive(Default)]
pub struct CodeFailure {
    error: Mutex<Option<PyErr>>,
    cancel: OnceLock<Arc<AtomicBool>>,
}

impl CodeFailure {
    /// From here on a failure sets `cancel`, and players stop once it is set.
    pub fn watch(&self, cancel: &Arc<AtomicBool>) {
        self.cancel.get_or_init(|| Arc::clone(cancel));
    }

    pub fn set(&self, py: Python<'_>, error: PyErr, place: &str) {
        // Notes are shown below an exception, which stays what it is; Python 3.10 has none.
        let _ = error.value(py).call_method1("add_note", (place,));
        self.error
            .lock()
            .expect("no panic here")
            .get_or_insert(error);
        if let Some(cancel) = self.cancel.get() {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Whether to go on: nothing has failed, and nobody has interrupted.
    pub fn is_quiet(&self) -> bool {
        !self
            .cancel
            .get()
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().expect("no panic here").take()
    }
}
