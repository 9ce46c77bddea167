//! Problems from keyword arguments.

use std::sync::Arc;

use debora::problem::Outside;
use debora::spec::Spec;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::{Error, refused, warn};
use crate::plan::plan;
use crate::value::to_toml;

/// What is asked of an experiment, checked. The words are those of the spec file.
///
/// >>> import debora
/// >>> problem = debora.Problem(
/// ...     policy="soft", actions=["small", "large"], horizon=1e8, rho=0.1,
/// ...     costs={"price": {"range": (0, 0.02), "threshold": 0.003}},
/// ... )
/// >>> problem
/// Problem(policy='soft', actions=('small', 'large'), horizon=100000000, rho=0.1, costs=('price',))
/// >>> debora.Problem(policy="sofd", actions=["a", "b"], horizon=1000, rho=0.1)
/// Traceback (most recent call last):
/// debora.Error: policy is "sofd"; did you mean "soft"?
#[pyclass(name = "Problem", module = "debora", frozen, eq)]
#[derive(PartialEq)]
pub struct PyProblem {
    pub inner: Arc<debora::Problem>,
}

#[pymethods]
impl PyProblem {
    #[new]
    #[pyo3(signature = (*, actions, horizon, rho, policy = None, delta = None, profile = None, growth = None,
                        explore = None, caution = None, reward = None, costs = None, safe = None, outside = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "one for each word of the spec file"
    )]
    fn new(
        actions: &Bound<'_, PyAny>,
        horizon: &Bound<'_, PyAny>,
        rho: &Bound<'_, PyAny>,
        policy: Option<&Bound<'_, PyAny>>,
        delta: Option<&Bound<'_, PyAny>>,
        profile: Option<&Bound<'_, PyAny>>,
        growth: Option<&Bound<'_, PyAny>>,
        explore: Option<&Bound<'_, PyAny>>,
        caution: Option<&Bound<'_, PyAny>>,
        reward: Option<&Bound<'_, PyAny>>,
        costs: Option<&Bound<'_, PyDict>>,
        safe: Option<&Bound<'_, PyDict>>,
        outside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // Written as a spec and read by its reader: one set of rules and messages for both.
        let mut lines = Vec::new();
        let given = [("actions", actions), ("horizon", horizon), ("rho", rho)]
            .map(|(word, value)| (word, Some(value)));
        let optional = [
            ("policy", policy),
            ("delta", delta),
            ("profile", profile),
            ("growth", growth),
            ("explore", explore),
            ("caution", caution),
            ("outside", outside),
        ];
        for (word, value) in given.into_iter().chain(optional) {
            if let Some(value) = value {
                lines.push(format!("{word} = {}", to_toml(value)?));
            }
        }
        if let Some(reward) = reward {
            // A bare pair is its range.
            let toml = to_toml(reward)?;
            lines.push(if toml.starts_with('{') {
                format!("reward = {toml}")
            } else {
                format!("reward.range = {toml}")
            });
        }
        let costs = costs.map_or(Ok(Vec::new()), |costs| {
            costs.iter().map(cost).collect::<PyResult<Vec<_>>>()
        })?;
        if !costs.is_empty() {
            lines.push(format!("cost = [{}]", costs.join(", ")));
        }
        if let Some(safe) = safe {
            lines.push(format!(
                "safe = {}",
                to_toml(by_action(actions, safe)?.as_any())?
            ));
        }
        // Without file and line: there is no file.
        let spec = Spec::parse(&lines.join("\n"), "problem")
            .map_err(|error| Error::new_err(in_arguments(error.message())));
        let problem = spec?.problem;
        if let Some(warning) = debora::measure::only_tallied(&problem) {
            warn(actions.py(), &warning)?;
        }
        Ok(Self {
            inner: Arc::new(problem),
        })
    }

    /// Reads what `to_toml` wrote.
    #[classmethod]
    fn from_toml(_type: &Bound<'_, PyType>, text: &str) -> PyResult<Self> {
        let spec = Spec::parse(text, "problem").map_err(crate::error::spec_refused)?;
        Ok(Self {
            inner: Arc::new(spec.problem),
        })
    }

    /// The problem as the head of a spec file.
    fn to_toml(&self) -> String {
        self.inner.to_toml()
    }

    /// Every constant of a run, before any data. With `gap`, also the horizon at which a difference in reward that small shows.
    ///
    /// >>> import debora
    /// >>> plan = debora.Problem(actions=["a", "b"], horizon=1e8, rho=0.1).plan(gap=0.05)
    /// >>> plan.blind, plan.exploration_rounds, plan.horizon_for_gap
    /// (False, 3000000, 51065)
    #[pyo3(signature = (*, gap = None))]
    fn plan<'py>(&self, py: Python<'py>, gap: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let computed = debora::Plan::of(Arc::clone(&self.inner));
        // A problem has no name; the answer needs one to begin with.
        plan(py, "plan", &computed, None, gap)
    }

    /// free, soft or hard.
    #[getter]
    fn policy(&self) -> &'static str {
        self.inner.policy().name()
    }

    /// The names of the actions.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.actions())
    }

    /// The names of the costs.
    #[getter]
    fn costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            (1..self.inner.quantities()).map(|quantity| &self.inner.quantity(quantity).name),
        )
    }

    /// The name of the reward.
    #[getter]
    fn reward(&self) -> &str {
        &self.inner.quantity(0).name
    }

    /// Least and largest value of the reward and of each cost, by name; of each action by its name where they differ.
    #[getter]
    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranges = PyDict::new(py);
        for quantity in (0..self.inner.quantities()).map(|quantity| self.inner.quantity(quantity)) {
            if quantity.by_action.is_empty() {
                ranges.set_item(&quantity.name, (quantity.range.low, quantity.range.high))?;
                continue;
            }
            let own = PyDict::new(py);
            for (action, range) in self.inner.actions().iter().zip(&quantity.by_action) {
                own.set_item(action, (range.low, range.high))?;
            }
            ranges.set_item(&quantity.name, own)?;
        }
        Ok(ranges)
    }

    /// The share of the horizon that exploration is asked to take; None by default.
    #[getter]
    fn explore(&self) -> Option<f64> {
        self.inner.explore()
    }

    /// How much of an estimate's uncertainty counts against a cost, from 0 to 1; of policy soft.
    #[getter]
    fn caution(&self) -> f64 {
        self.inner.caution()
    }

    /// The limit on each limited cost's mean, by name, in the cost's units.
    #[getter]
    fn thresholds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let thresholds = PyDict::new(py);
        for (cost, threshold) in self.inner.limits() {
            thresholds.set_item(&cost.name, threshold)?;
        }
        Ok(thresholds)
    }

    /// The number of rounds.
    #[getter]
    fn horizon(&self) -> u64 {
        self.inner.horizon()
    }

    /// The chance of differing decisions.
    #[getter]
    fn rho(&self) -> f64 {
        self.inner.rho()
    }

    /// The chance of failing bounds.
    #[getter]
    fn delta(&self) -> f64 {
        self.inner.delta()
    }

    /// What happens to feedback outside its range: refuse or clip.
    #[getter]
    fn outside(&self) -> &'static str {
        match self.inner.outside() {
            Outside::Refuse => "refuse",
            Outside::Clip => "clip",
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!(
            "Problem(policy='{}', actions={}, horizon={}, rho={:?}",
            self.policy(),
            self.actions(py)?.repr()?,
            self.horizon(),
            self.rho()
        );
        // Most problems have none, and `costs=()` would be noise.
        if self.inner.quantities() > 1 {
            text += &format!(", costs={}", self.costs(py)?.repr()?);
        }
        Ok(text + ")")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((
            py.get_type::<Self>().getattr("from_toml")?,
            (self.to_toml(),),
        ))
    }
}

/// The spec's word for each of the costs is the argument's name without its s.
fn in_arguments(message: &str) -> String {
    match message.strip_prefix("cost.") {
        Some(rest) => format!("costs.{rest}"),
        None => message.replace(" in cost.", " in costs."),
    }
}

fn cost((name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)) -> PyResult<String> {
    let mut entries = vec![format!("name = {}", to_toml(&name)?)];
    let words = value.cast::<PyDict>().map_err(|_| {
        let message =
            format!("costs[{name:?}] is {value:?}; give a dictionary, as {{\"threshold\": 0.5}}");
        Error::new_err(message)
    })?;
    for (word, value) in words.iter() {
        entries.push(format!("{} = {}", to_toml(&word)?, to_toml(&value)?));
    }
    Ok(format!("{{ {} }}", entries.join(", ")))
}

/// `safe`, its strategy by the names of the actions; a list has one probability for each.
fn by_action<'py>(
    actions: &Bound<'py, PyAny>,
    safe: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    // A copy, since the dictionary is the caller's.
    let safe = safe.copy()?;
    // A list has no names, but the spec's words go by them.
    let Some(strategy) = safe
        .get_item("strategy")?
        .filter(|strategy| !strategy.is_instance_of::<PyDict>())
    else {
        return Ok(safe);
    };
    let names: Vec<Bound<'_, PyAny>> = match actions.extract::<u32>() {
        // As the spec's reader names them.
        Ok(count) => (1..=count)
            .map(|number| format!("a{number}").into_bound_py_any(safe.py()))
            .collect::<PyResult<_>>()?,
        Err(_) => actions.try_iter()?.collect::<PyResult<_>>()?,
    };
    let probabilities: Vec<Bound<'_, PyAny>> = strategy.try_iter()?.collect::<PyResult<_>>()?;
    if names.len() != probabilities.len() {
        return Err(refused(debora::Error::SafeLength {
            got: probabilities.len(),
            actions: names.len(),
        }));
    }
    let named = PyDict::new(safe.py());
    for (name, probability) in names.iter().zip(probabilities) {
        named.set_item(name, probability)?;
    }
    safe.set_item("strategy", named)?;
    Ok(safe)
}
