//! Plans as objects of `debora._records`, with what the program says of them.

use debora::Plan;
use debora::lab::world::World;
use debora::measure::{answer, json, warnings, world_gaps};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::refused;
use crate::record::class;
use crate::value::{answer_items, to_python};

/// A plan and what it sees of a world; with `gap`, also the horizon at which a difference in reward that small shows.
pub fn plan<'py>(
    py: Python<'py>,
    name: &str,
    plan: &Plan,
    world: Option<&dyn World>,
    gap: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let horizon = |gap| plan.horizon_for_gap(gap).map(|horizon| (gap, horizon));
    let gap = gap.map(horizon).transpose().map_err(refused)?;
    let warnings = warnings(plan, world);
    let gaps = world.map_or(Vec::new(), |world| world_gaps(plan, world));
    let mut document = json::plan(plan, gap);
    // Without a world there is nothing to see, which is not the same as seeing nothing.
    if world.is_some() {
        document = json::with_gaps(document, &gaps);
    }
    let answer = answer::plan(name, plan, &warnings, gap, &gaps);
    let others = PyDict::new(py);
    others.set_item("_answer", answer_items(py, &answer)?)?;
    others.set_item("warnings", warnings)?;
    class(py, "Plan")?.call_method("read", (to_python(py, &document)?,), Some(&others))
}
