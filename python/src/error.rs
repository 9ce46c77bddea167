//! The library's errors as Python exceptions: one family under `ValueError`, with the library's sentences.

use debora::measure::MeasureError;
use debora::spec::SpecError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    debora,
    Error,
    PyValueError,
    "A wrong input. Nothing has changed when it is raised."
);
pyo3::create_exception!(
    debora,
    Waiting,
    Error,
    "All rounds of the epoch are handed out; ``outstanding`` of them are not told yet."
);
pyo3::create_exception!(
    debora,
    Conflict,
    Error,
    "A round was told before with other feedback; the first stays."
);

/// Asked for more while an epoch waits for its feedback.
pub fn waiting(py: Python<'_>, outstanding: u64) -> PyErr {
    let sentence = format!(
        "all rounds of the epoch are handed out and {outstanding} are not told yet; tell them first"
    );
    let error = Waiting::new_err(sentence);
    // On the exception itself: a loop that waits needs the number, not the sentence.
    match error.value(py).setattr("outstanding", outstanding) {
        Ok(()) => error,
        Err(error) => error,
    }
}

/// Any error of the library.
pub fn refused(error: debora::Error) -> PyErr {
    match error {
        // A class of its own: a caller may live with it, as the first feedback stays.
        debora::Error::Conflict { .. } => Conflict::new_err(error.to_string()),
        _ => Error::new_err(error.to_string()),
    }
}

/// An error in a spec, with its place.
pub fn spec_refused(error: SpecError) -> PyErr {
    Error::new_err(error.to_string())
}

/// An error in a measurement.
pub fn measure_refused(error: MeasureError) -> PyErr {
    Error::new_err(error.to_string())
}
