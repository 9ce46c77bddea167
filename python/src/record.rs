//! The library's records as objects of the classes in `debora._records`, which are filled from a record's own JSON by name:
//! attributes, documents and traces say the same, and no field is copied by hand.

use debora::{Engine, EpochRecord, Problem};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::value::to_python;

/// The class of `debora._records` with this name.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("debora._records")?.getattr(name)
}

/// A list of objects of a class, from the JSON of their records.
pub fn records<'py>(py: Python<'py>, name: &str, documents: &Value) -> PyResult<Bound<'py, PyAny>> {
    class(py, name)?.call_method1("read_all", (to_python(py, documents)?,))
}

/// An epoch's record.
pub fn epoch_record<'py>(py: Python<'py>, record: &EpochRecord) -> PyResult<Bound<'py, PyAny>> {
    class(py, "EpochRecord")?.call_method1("read", (to_python(py, &json!(record))?,))
}

/// What to deploy, with the names of actions and costs.
pub fn recommendation<'py>(
    py: Python<'py>,
    recommended: &debora::Recommendation,
    problem: &Problem,
) -> PyResult<Bound<'py, PyAny>> {
    let costs = (1..problem.quantities()).map(|quantity| &problem.quantity(quantity).name);
    let names = (
        to_python(py, &json!(recommended))?,
        problem.actions(),
        costs.collect::<Vec<_>>(),
    );
    class(py, "Recommendation")?.call_method1("named", names)
}

/// The plain mean of what was told of an action and a quantity, in the user's units.
pub fn observed_mean(engine: &Engine, action: u32, quantity: u32, miss: f64) -> Value {
    let tally = engine.tally();
    let range = engine.problem().quantity(quantity as usize).range;
    let count = tally.counts()[action as usize];
    // Nothing divided by nothing: the tally's own answer, without a panic to come of it.
    let mean = (count > 0).then(|| tally.mean(action, quantity as usize));
    let sum = mean.unwrap_or(0.0) * count as f64;
    let [low, high] = debora::lab::observed::interval_at_any_time(count, sum, miss);
    json!({
        "action": action,
        "quantity": quantity,
        "count": count,
        "mean": mean.map(|mean| range.to_user(mean)),
        "low": range.to_user(low),
        "high": range.to_user(high),
    })
}
