//! What asking and telling give: decisions, singly or as arrays, and what telling did.

use debora::EpochRecord;
use numpy::{PyArray1, PyArrayMethods as _};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use crate::record::epoch_record;

/// What to do in a round.
#[pyclass(name = "Decision", module = "debora", frozen)]
pub struct PyDecision {
    /// The round, from 1.
    #[pyo3(get)]
    pub round: u64,
    /// The epoch it belongs to, from 0.
    #[pyo3(get)]
    pub epoch: u64,
    /// The number of the action to play, from 0.
    #[pyo3(get)]
    pub action: u32,
    /// With which probability the epoch's strategy plays it.
    #[pyo3(get)]
    pub probability: f64,
    pub names: Py<PyTuple>,
}

#[pymethods]
impl PyDecision {
    /// The action's name.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.names.bind(py).get_item(self.action as usize)
    }

    fn __eq__(&self, other: &Self) -> bool {
        let all = |one: &Self| (one.round, one.epoch, one.action, one.probability);
        all(self) == all(other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self {
            round,
            epoch,
            action,
            probability,
            ..
        } = self;
        let name = self.name(py)?.repr()?;
        Ok(format!(
            "Decision(round={round}, epoch={epoch}, action={action}, name={name}, probability={probability:?})"
        ))
    }
}

/// Decisions of consecutive rounds of one epoch: as arrays, or one by one.
#[pyclass(name = "Decisions", module = "debora", frozen)]
pub struct PyDecisions {
    /// The epoch they belong to.
    #[pyo3(get)]
    pub epoch: u64,
    /// The rounds, in order.
    #[pyo3(get)]
    pub rounds: Py<PyArray1<u64>>,
    /// The number of the action to play in each round.
    #[pyo3(get)]
    pub actions: Py<PyArray1<u32>>,
    /// With which probability the epoch's strategy plays it.
    #[pyo3(get)]
    pub probabilities: Py<PyArray1<f64>>,
    /// Of all actions.
    pub names: Py<PyTuple>,
}

#[pymethods]
impl PyDecisions {
    /// The name of the action to play in each round.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let actions = self.actions.bind(py).readonly();
        let name = |action: &u32| self.names.bind(py).get_item(*action as usize);
        actions.as_slice()?.iter().map(name).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.rounds.bind(py).len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<PyDecision> {
        let length = self.__len__(py)?;
        // From the end if negative, as in every sequence.
        let place = if index < 0 {
            index + length as isize
        } else {
            index
        };
        let place = usize::try_from(place).ok().filter(|place| *place < length);
        let place = place.ok_or_else(|| {
            PyIndexError::new_err(format!(
                "decision {index} does not exist; there are {length}"
            ))
        })?;
        Ok(PyDecision {
            round: self.rounds.bind(py).readonly().as_slice()?[place],
            epoch: self.epoch,
            action: self.actions.bind(py).readonly().as_slice()?[place],
            probability: self.probabilities.bind(py).readonly().as_slice()?[place],
            names: self.names.clone_ref(py),
        })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let decisions = (0..self.__len__(py)? as isize).map(|place| self.__getitem__(py, place));
        let decisions: Vec<PyDecision> = decisions.collect::<PyResult<_>>()?;
        decisions.into_pyobject(py)?.try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Decisions({} rounds of epoch {})",
            self.__len__(py)?,
            self.epoch
        ))
    }
}

/// What telling many rounds did.
#[pyclass(name = "ToldMany", module = "debora", frozen)]
pub struct PyToldMany {
    /// Rounds whose feedback counts.
    #[pyo3(get)]
    pub recorded: u64,
    /// Rounds told before with the same feedback.
    #[pyo3(get)]
    pub repeated: u64,
    /// Rounds told before whose feedback is no longer remembered.
    #[pyo3(get)]
    pub already_told: u64,
    pub record: Option<Box<EpochRecord>>,
}

#[pymethods]
impl PyToldMany {
    /// The epoch's record, if these were its last rounds.
    #[getter]
    fn closed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Made when it is asked for: with many actions it takes longer than to tell their rounds.
        let closed = self.record.as_ref();
        closed.map(|closed| epoch_record(py, closed)).transpose()
    }

    fn __repr__(&self) -> String {
        let Self {
            recorded,
            repeated,
            already_told,
            record,
        } = self;
        // A record's own text would be longer than all the rest.
        let closed = record.as_ref().map_or("None", |_| "an EpochRecord");
        format!(
            "ToldMany(recorded={recorded}, repeated={repeated}, already_told={already_told}, closed={closed})"
        )
    }
}
