//! The private extension `_debora` of the Python package `debora`: the library's types, in Python's clothes.

mod arrays;
mod background;
mod code_failure;
mod decision;
mod engine;
mod error;
mod measure;
mod own;
mod own_player;
mod own_world;
mod part;
mod plan;
mod problem;
mod record;
mod spec;
mod sweep;
mod value;

use pyo3::prelude::*;

/// The private extension of debora.
#[pymodule]
mod _debora {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::decision::{PyDecision, PyDecisions, PyToldMany};
    #[pymodule_export]
    use super::engine::PyEngine;
    #[pymodule_export]
    use super::error::{Conflict, Error, Waiting};
    #[pymodule_export]
    use super::measure::{PyMeasurement, simulate};
    #[pymodule_export]
    use super::part::PyPart;
    #[pymodule_export]
    use super::problem::PyProblem;
    #[pymodule_export]
    use super::spec::{PySpec, PyWorld};
    #[pymodule_export]
    use super::sweep::{PyGrid, PySwept};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // That of the program and the library: the three are released together.
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Changes whenever a draw, a constant, a strategy or a digest does.
    #[pymodule_export]
    const VALUES_VERSION: u32 = debora::VALUES_VERSION;
}
