//! Feedback on its way in: arrays read in place where they can be, converted where they must be.

use numpy::{
    PyArray1, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple};

use crate::error::{Error, refused};

/// Costs of one round that need no room on the heap: few problems have more, and telling takes a fraction of a microsecond.
const ROOM: usize = 8;

/// The costs of one round.
pub struct RoundCosts {
    room: [f64; ROOM],
    more: Vec<f64>,
    length: usize,
}

impl RoundCosts {
    fn new() -> Self {
        Self {
            room: [0.0; ROOM],
            more: Vec::new(),
            length: 0,
        }
    }

    fn push(&mut self, cost: f64) {
        match self.room.get_mut(self.length) {
            Some(place) => *place = cost,
            None => {
                if self.more.is_empty() {
                    // From the ninth on all of them are on the heap, so that they are one slice.
                    self.more.extend(self.room);
                }
                self.more.push(cost);
            }
        }
        self.length += 1;
    }

    pub fn as_slice(&self) -> &[f64] {
        if self.more.is_empty() {
            &self.room[..self.length]
        } else {
            &self.more
        }
    }

    /// A number, a sequence in the order of the costs, or a dictionary by their names.
    pub fn read(value: Option<&Bound<'_, PyAny>>, problem: &debora::Problem) -> PyResult<Self> {
        let mut costs = Self::new();
        let Some(value) = value else { return Ok(costs) };
        // The common types first, each by a cast: an iterator would be a call into Python for every number.
        if let Ok(tuple) = value.cast::<PyTuple>() {
            costs.extend(tuple.iter())?;
        } else if let Ok(list) = value.cast::<PyList>() {
            costs.extend(list.iter())?;
        } else if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            costs.push(value.extract()?);
        } else if let Ok(named) = value.cast::<PyDict>() {
            costs.extend(in_order(named, problem)?)?;
        } else if let Ok(many) = value.try_iter() {
            for cost in many {
                costs.push(cost?.extract()?);
            }
        } else {
            // A number of another kind, such as numpy's; or nothing of the sort, and Python says what.
            costs.push(value.extract()?);
        }
        Ok(costs)
    }

    fn extend<'py>(&mut self, costs: impl IntoIterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        for cost in costs {
            self.push(cost.extract()?);
        }
        Ok(())
    }
}

/// What a dictionary holds for each cost, in the order of the problem.
fn in_order<'py>(
    named: &Bound<'py, PyDict>,
    problem: &debora::Problem,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let names: Vec<&str> = (1..problem.quantities())
        .map(|quantity| problem.quantity(quantity).name.as_str())
        .collect();
    if let Some(name) = named
        .keys()
        .iter()
        .find(|name| !names.iter().any(|known| name.eq(*known).unwrap_or(false)))
    {
        return Err(Error::new_err(format!(
            "no cost {}; there are {names:?}",
            name.repr()?
        )));
    }
    let find = |(place, name): (usize, &&str)| {
        if let Some(value) = named.get_item(name)? {
            return Ok(value);
        }
        // What is known of an action need not be told; the engine says so where it is not.
        let own = &problem.quantity(place + 1).by_action;
        if own.iter().any(|range| range.low == range.high) {
            return Ok(PyFloat::new(named.py(), f64::NAN).into_any());
        }
        Err(Error::new_err(format!(
            "no value for cost {name:?}; give one for each"
        )))
    };
    names.iter().enumerate().map(find).collect()
}

/// A round's number: whole and above 0.
pub fn to_round(value: &Bound<'_, PyAny>, problem: &debora::Problem) -> PyResult<u64> {
    match value.extract::<u64>() {
        Ok(round) => Ok(round),
        // Whole, but below 0 or beyond 2^64.
        Err(_) if value.is_instance_of::<PyInt>() => {
            let (round, horizon) = (value.str()?, problem.horizon());
            Err(Error::new_err(format!(
                "round {round} does not exist; rounds are 1 to {horizon}"
            )))
        }
        Err(error) => Err(error),
    }
}

/// Calls `debora._arrays`, which converts what cannot be read in place.
fn converted<'py>(
    name: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    // In Python, as numpy converts there in a line what would be pages here.
    py.import("debora._arrays")?.getattr(name)?.call1(arguments)
}

/// Rounds: one dimension, any whole numbers that are not negative.
pub fn rounds<'py>(value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, u64>> {
    match value.cast::<PyArray1<u64>>() {
        Ok(array) if array.is_c_contiguous() && array.is_aligned() => Ok(array.readonly()),
        _ => Ok(converted("rounds", (value,), value.py())?
            .cast::<PyArray1<u64>>()?
            .readonly()),
    }
}

/// Rewards: one dimension, any numbers.
pub fn rewards<'py>(value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, f64>> {
    match value.cast::<PyArray1<f64>>() {
        Ok(array) if array.is_c_contiguous() && array.is_aligned() => Ok(array.readonly()),
        _ => Ok(converted("values", (value, "rewards", 1), value.py())?
            .cast::<PyArray1<f64>>()?
            .readonly()),
    }
}

/// Costs of many rounds: a row for each round and a column for each cost, or an array for each name. None without costs.
pub fn costs<'py>(
    value: Option<&Bound<'py, PyAny>>,
    problem: &debora::Problem,
) -> PyResult<Option<PyReadonlyArray2<'py, f64>>> {
    let Some(value) = value else { return Ok(None) };
    let wanted = problem.quantities() - 1;
    // By name, costs may come in any order, and are then laid side by side in the problem's.
    let array = match value.cast::<PyDict>() {
        Ok(named) if named.is_empty() && wanted == 0 => return Ok(None),
        Ok(named) => converted("columns", (in_order(named, problem)?,), value.py())?,
        Err(_) => value.clone(),
    };
    let array = match array.cast::<numpy::PyArray2<f64>>() {
        Ok(array) if array.is_c_contiguous() && array.is_aligned() => array.readonly(),
        _ => converted("values", (array, "costs", 2), value.py())?
            .cast::<numpy::PyArray2<f64>>()?
            .readonly(),
    };
    // Here and not by the engine, which would see one long list and could blame the number of rounds.
    let width = array.shape()[1];
    if width != wanted {
        return Err(refused(debora::Error::CostCount {
            got: width,
            costs: wanted,
        }));
    }
    Ok(Some(array))
}
