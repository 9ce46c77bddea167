//! Problems from keyword arguments, and their plans.

use std::sync::Arc;

use debora::measure::{WorldGap, answer, json, warnings};
use debora::problem::Outside;
use debora::spec::Spec;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use serde_json::json;

use crate::error::{Error, refused};
use crate::value::{answer_items, to_python, to_toml};

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
    #[pyo3(signature = (*, actions, horizon, rho, policy = "free", delta = None, profile = None, growth = None,
                        reward = None, costs = None, safe = None, outside = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "one for each word of the spec file"
    )]
    fn new(
        actions: &Bound<'_, PyAny>,
        horizon: &Bound<'_, PyAny>,
        rho: &Bound<'_, PyAny>,
        policy: &str,
        delta: Option<&Bound<'_, PyAny>>,
        profile: Option<&Bound<'_, PyAny>>,
        growth: Option<&Bound<'_, PyAny>>,
        reward: Option<&Bound<'_, PyAny>>,
        costs: Option<&Bound<'_, PyDict>>,
        safe: Option<&Bound<'_, PyDict>>,
        outside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // Written as a spec and read by its reader: one set of rules and messages for both.
        let mut lines = vec![format!("policy = {}", debora::spec::quoted(policy))];
        let given = [("actions", actions), ("horizon", horizon), ("rho", rho)]
            .map(|(word, value)| (word, Some(value)));
        let optional = [
            ("delta", delta),
            ("profile", profile),
            ("growth", growth),
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
        // Without file and line, which nobody has seen.
        let spec = Spec::parse(&lines.join("\n"), "problem")
            .map_err(|error| Error::new_err(in_arguments(error.message())));
        Ok(Self {
            inner: Arc::new(spec?.problem),
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
    /// (False, 183184, 12059486)
    #[pyo3(signature = (*, gap = None))]
    fn plan(&self, gap: Option<f64>) -> PyResult<PyPlan> {
        let inner = Arc::new(debora::Plan::of(Arc::clone(&self.inner)));
        let horizon = |gap| inner.horizon_for_gap(gap).map(|horizon| (gap, horizon));
        let gap = gap.map(horizon).transpose().map_err(refused)?;
        Ok(PyPlan {
            // A problem has no name; the answer needs one to begin with.
            name: "plan".into(),
            warnings: warnings(&inner, None),
            inner,
            gap,
            gaps: None,
        })
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

    /// Least and largest value of the reward and of each cost, by name.
    #[getter]
    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranges = PyDict::new(py);
        for quantity in (0..self.inner.quantities()).map(|quantity| self.inner.quantity(quantity)) {
            ranges.set_item(&quantity.name, (quantity.range.low, quantity.range.high))?;
        }
        Ok(ranges)
    }

    /// Where each quantity's mean is declared to lie for every action, by name, in its units; the range if nothing is declared.
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let means = PyDict::new(py);
        for number in 0..self.inner.quantities() {
            let quantity = self.inner.quantity(number);
            let declared = self.inner.means(number);
            let ends = (declared.low, declared.high);
            means.set_item(
                &quantity.name,
                (
                    quantity.range.to_user(ends.0),
                    quantity.range.to_user(ends.1),
                ),
            )?;
        }
        Ok(means)
    }

    /// The limit on each cost's mean, by name, in the cost's units.
    #[getter]
    fn thresholds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let thresholds = PyDict::new(py);
        for cost in 0..self.inner.thresholds().len() {
            let name = &self.inner.quantity(cost + 1).name;
            thresholds.set_item(name, self.inner.threshold(cost))?;
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

/// A count at which an action is estimated, with the grid's cell and the width that then hold, as shares of a range.
#[pyclass(name = "Level", module = "debora", frozen, get_all)]
pub struct PyLevel {
    /// Its number, from 0.
    level: u32,
    /// The number of samples.
    count: u64,
    /// The grid's step, the largest over the quantities.
    cell: f64,
    /// Half-length of the confidence interval, the largest over the quantities.
    width: f64,
    /// The grid's step of each estimated quantity.
    cells: Vec<f64>,
    /// Half-length of the confidence interval of each estimated quantity.
    widths: Vec<f64>,
}

#[pymethods]
impl PyLevel {
    fn __repr__(&self) -> String {
        let Self {
            level,
            count,
            cell,
            width,
            ..
        } = self;
        format!("Level(level={level}, count={count}, cell={cell:?}, width={width:?})")
    }
}

/// The clear test of policy free: when it is made, and where its thresholds begin.
#[pyclass(name = "Clear", module = "debora", frozen, get_all)]
pub struct PyClear {
    /// The counts of every action after which it is made, in increasing order.
    stages: Vec<u64>,
    /// Where the thresholds of the last stage begin, in leads times the root of the count.
    c0: f64,
    /// Where the thresholds before the last stage begin.
    c1: f64,
}

#[pymethods]
impl PyClear {
    fn __repr__(&self) -> String {
        let Self { stages, c0, c1 } = self;
        format!("Clear(stages={stages:?}, c0={c0:?}, c1={c1:?})")
    }
}

/// Every constant of a run. Bounds are in the reward's units and in shares of a cost's range.
#[pyclass(name = "Plan", module = "debora", frozen)]
pub struct PyPlan {
    pub name: String,
    pub inner: Arc<debora::Plan>,
    pub gap: Option<(f64, Option<u64>)>,
    /// What the horizon sees of the spec's world, if it has one.
    pub gaps: Option<Vec<WorldGap>>,
    pub warnings: Vec<String>,
}

impl PyPlan {
    fn span(&self) -> f64 {
        self.inner.problem.quantity(0).range.span()
    }

    /// The answer, laid out by a function of `debora._answer`, which lays out all others.
    fn shown(&self, py: Python<'_>, layout: &str) -> PyResult<String> {
        let answer = answer::plan(
            &self.name,
            &self.inner,
            &self.warnings,
            self.gap,
            self.gaps.as_deref().unwrap_or_default(),
        );
        py.import("debora._answer")?
            .getattr(layout)?
            .call1((answer_items(py, &answer)?,))?
            .extract()
    }
}

#[pymethods]
impl PyPlan {
    /// tight or paper.
    #[getter]
    fn profile(&self) -> &'static str {
        self.inner.profile.name()
    }

    /// By what counts grow between estimates; None in profile paper.
    #[getter]
    fn growth(&self) -> Option<u32> {
        self.inner.growth
    }

    /// What each estimate may spend of rho.
    #[getter]
    fn rho_share(&self) -> f64 {
        self.inner.rho_share
    }

    /// What each estimate may spend of delta.
    #[getter]
    fn delta_share(&self) -> f64 {
        self.inner.delta_share
    }

    /// Whether nothing will ever be compared: the horizon is too short for rho.
    #[getter]
    fn blind(&self) -> bool {
        self.inner.blind
    }

    /// The count at which actions are first estimated (tight), or from which widths are below 1/2 (paper).
    #[getter]
    fn first_informative_count(&self) -> Option<u64> {
        self.inner.first_informative_count
    }

    /// Rounds until all actions have that count.
    #[getter]
    fn exploration_rounds(&self) -> Option<u64> {
        self.inner.exploration_rounds
    }

    /// The levels that are estimated.
    #[getter]
    fn levels(&self) -> Vec<PyLevel> {
        let level = |level: &debora::plan::Level| PyLevel {
            level: level.level,
            count: level.count,
            cell: level.cell,
            width: level.width,
            cells: level.cells.clone(),
            widths: level.widths.clone(),
        };
        self.inner.levels.iter().map(level).collect()
    }

    /// The clear test of policy free; None if there are too few rounds for one.
    #[getter]
    fn clear(&self) -> Option<PyClear> {
        let clear = self.inner.clear.as_ref()?;
        Some(PyClear {
            stages: clear.stages.clone(),
            c0: clear.c0,
            c1: clear.c1,
        })
    }

    /// Epochs at most.
    #[getter]
    fn epochs_max(&self) -> u64 {
        self.inner.epochs_max
    }

    /// Differences in reward above it show at the end.
    #[getter]
    fn detectable_gap(&self) -> Option<f64> {
        self.inner.detectable_gap.map(|gap| gap * self.span())
    }

    /// The regret is at most this, with probability `bound_probability`.
    #[getter]
    fn regret_bound(&self) -> f64 {
        self.inner.regret_bound * self.span()
    }

    /// The violation is at most this, with probability `bound_probability`.
    #[getter]
    fn violation_bound(&self) -> Option<f64> {
        self.inner.violation_bound
    }

    /// The probability of the bounds.
    #[getter]
    fn bound_probability(&self) -> f64 {
        self.inner.bound_probability
    }

    /// If blind: the smallest horizon known not to be.
    #[getter]
    fn horizon_needed(&self) -> Option<u64> {
        self.inner.horizon_needed
    }

    /// If blind: any rho above this would not be.
    #[getter]
    fn rho_needed(&self) -> Option<f64> {
        self.inner.rho_needed
    }

    /// The horizon at which the gap that was asked for shows.
    #[getter]
    fn horizon_for_gap(&self) -> Option<u64> {
        self.gap.and_then(|(_, horizon)| horizon)
    }

    /// What a person must know before anything else.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Differences of the world's means, the hardest to see first, and whether this horizon is sure to see them; empty
    /// without a world.
    #[getter]
    fn gaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &json!(self.gaps.as_deref().unwrap_or_default()))
    }

    /// The document of `debora plan --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut document = json::plan(&self.inner, self.gap);
        if let Some(gaps) = &self.gaps {
            document = json::with_gaps(document, gaps);
        }
        to_python(py, &document)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.shown(py, "text")
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.shown(py, "html")
    }
}
