//! The library's errors as Python exceptions: one family under `ValueError`, with the library's sentences.

use std::ffi::CString;

use debora::measure::MeasureError;
use debora::spec::SpecError;
use pyo3::exceptions::{PyUserWarning, PyValueError};
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

/// What a spec made of arguments has in place of a file. Its text was written here, and nobody has seen its lines.
pub const ARGUMENTS: &str = "<arguments>";

/// An error in a spec, with its place if that is a file's or a text's.
pub fn spec_refused(error: SpecError) -> PyErr {
    // A value given beside the file is an argument, too, and the message names it.
    if error.origin() == ARGUMENTS || error.origin().starts_with("override ") {
        return Error::new_err(error.message().to_owned());
    }
    Error::new_err(error.to_string())
}

/// An error in a measurement.
pub fn measure_refused(error: MeasureError) -> PyErr {
    match error {
        MeasureError::Spec(error) => spec_refused(error),
        error => Error::new_err(error.to_string()),
    }
}

/// Warns of a plan under which nothing will ever be compared: decisions that ignore the data look replicable.
pub fn warn_if_blind(py: Python<'_>, plan: &debora::Plan) -> PyResult<()> {
    if !plan.blind {
        return Ok(());
    }
    warn(py, &debora::measure::warnings(plan, None).join("\n"))
}

/// Python's own way of saying what is allowed and probably not meant.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    let message = CString::new(message.replace('\0', " ")).expect("no zero is left");
    PyErr::warn(py, &category, &message, 1)
}
