//! The plain data that leaves the engine.

use std::sync::Arc;

use debora::record::Interval;
use numpy::{PyArray1, ToPyArray as _};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::value::to_python;

/// One rounded mean and all that went into it, on the scale where its range is [0, 1].
#[pyclass(name = "Estimate", module = "debora", frozen, get_all, eq)]
#[derive(PartialEq)]
pub struct PyEstimate {
    /// The epoch at whose start it was made.
    epoch: u64,
    /// The action.
    action: u32,
    /// The quantity; 0 is the reward.
    quantity: u32,
    /// The plan's level it was made at; None in profile paper, which estimates at any count.
    level: Option<u32>,
    /// The number of samples.
    count: u64,
    /// Their mean, which no decision sees.
    mean: f64,
    /// The grid's shift in cells.
    offset: f64,
    /// The grid's step.
    cell: f64,
    /// The cell that holds the mean; None if the cell is as wide as the range.
    index: Option<i64>,
    /// The cell's middle.
    estimate: f64,
    /// The true mean is this close to the estimate, unless an event of probability delta happens.
    width: f64,
}

impl From<debora::Estimate> for PyEstimate {
    fn from(estimate: debora::Estimate) -> Self {
        // The same fields, copied: `get_all` makes attributes of a struct's own fields only.
        let debora::Estimate {
            epoch,
            action,
            quantity,
            level,
            count,
            mean,
            offset,
            cell,
            index,
            estimate,
            width,
            ..
        } = estimate;
        Self {
            epoch,
            action,
            quantity,
            level,
            count,
            mean,
            offset,
            cell,
            index,
            estimate,
            width,
        }
    }
}

#[pymethods]
impl PyEstimate {
    fn __repr__(&self) -> String {
        let Self {
            action,
            quantity,
            count,
            estimate,
            width,
            ..
        } = self;
        format!(
            "Estimate(action={action}, quantity={quantity}, count={count}, estimate={estimate:?}, width={width:?})"
        )
    }
}

/// The plain mean of what was told, in the user's units, with an interval that holds at any time one looks.
#[pyclass(name = "ObservedMean", module = "debora", frozen, get_all, eq)]
#[derive(PartialEq)]
pub struct PyObservedMean {
    /// The action.
    action: u32,
    /// The quantity; 0 is the reward.
    quantity: u32,
    /// The number of outcomes.
    count: u64,
    /// Their mean, which no decision sees; NaN without one.
    mean: f64,
    /// The true mean is at least this, at every look together, but for a chance of `miss`.
    low: f64,
    /// The true mean is at most this.
    high: f64,
}

impl PyObservedMean {
    /// Of a tally's action and quantity.
    pub fn of(engine: &debora::Engine, action: u32, quantity: u32, miss: f64) -> Self {
        let tally = engine.tally();
        let range = engine.problem().quantity(quantity as usize).range;
        let count = tally.counts()[action as usize];
        let mean = match count {
            // Nothing divided by nothing: the tally's own answer, without a panic to come of it.
            0 => f64::NAN,
            _ => tally.mean(action, quantity as usize),
        };
        let sum = if count == 0 { 0.0 } else { mean * count as f64 };
        let [low, high] = debora::lab::observed::interval_at_any_time(count, sum, miss);
        Self {
            action,
            quantity,
            count,
            mean: range.to_user(mean),
            low: range.to_user(low),
            high: range.to_user(high),
        }
    }
}

#[pymethods]
impl PyObservedMean {
    fn __repr__(&self) -> String {
        let Self {
            action,
            quantity,
            count,
            mean,
            low,
            high,
        } = self;
        format!(
            "ObservedMean(action={action}, quantity={quantity}, count={count}, mean={mean:?}, low={low:?}, high={high:?})"
        )
    }
}

/// A clear test: policy free commits to the leader if its lead exceeds a keyed threshold.
#[pyclass(name = "ClearTest", module = "debora", frozen, get_all, eq)]
#[derive(PartialEq)]
pub struct PyClearTest {
    /// The stage it was made after, from 0.
    stage: u32,
    /// The samples of every action.
    count: u64,
    /// Their mean rewards, on the scale where the range is [0, 1].
    means: Vec<f64>,
    /// The action with the largest mean, the first of equals.
    leader: u32,
    /// The one with the largest of the other means.
    runner_up: u32,
    /// The difference of their means, times the root of the count.
    lead: f64,
    /// The draw behind the threshold, in [0, 1).
    uniform: f64,
    /// What the lead was compared with.
    threshold: f64,
    /// Whether the lead was above it.
    passed: bool,
}

impl From<debora::record::ClearTest> for PyClearTest {
    fn from(test: debora::record::ClearTest) -> Self {
        let debora::record::ClearTest {
            stage,
            count,
            means,
            leader,
            runner_up,
            lead,
            uniform,
            threshold,
            passed,
            ..
        } = test;
        Self {
            stage,
            count,
            means,
            leader,
            runner_up,
            lead,
            uniform,
            threshold,
            passed,
        }
    }
}

#[pymethods]
impl PyClearTest {
    fn __repr__(&self) -> String {
        let Self {
            stage,
            count,
            leader,
            runner_up,
            lead,
            threshold,
            ..
        } = self;
        // As Python writes it.
        let passed = if self.passed { "True" } else { "False" };
        format!(
            "ClearTest(stage={stage}, count={count}, leader={leader}, runner_up={runner_up}, lead={lead:?}, threshold={threshold:?}, passed={passed})"
        )
    }
}

/// One epoch: a run of rounds under one strategy.
#[pyclass(name = "EpochRecord", module = "debora", frozen)]
pub struct PyEpochRecord {
    pub inner: debora::EpochRecord,
}

#[pymethods]
impl PyEpochRecord {
    /// Its number, from 0.
    #[getter]
    fn epoch(&self) -> u64 {
        self.inner.epoch
    }

    /// Its first round.
    #[getter]
    fn first_round(&self) -> u64 {
        self.inner.first_round
    }

    /// How many rounds it has; of an open epoch, how many are handed out.
    #[getter]
    fn rounds(&self) -> u64 {
        self.inner.rounds
    }

    /// How its strategy was found: explore, estimate, infeasible or commit.
    #[getter]
    fn kind(&self) -> String {
        word(json!(self.inner.kind))
    }

    /// Which of its strategies policy hard plays, mix or plan; None for the others.
    #[getter]
    fn rule(&self) -> Option<String> {
        self.inner.rule.map(|rule| word(json!(rule)))
    }

    /// The clear test made at its start, if one was due.
    #[getter]
    fn test(&self) -> Option<PyClearTest> {
        self.inner.test.clone().map(PyClearTest::from)
    }

    /// The strategy before mixing with the safe one.
    #[getter]
    fn candidate<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.candidate.to_pyarray(py)
    }

    /// The weight of the safe strategy.
    #[getter]
    fn sigma(&self) -> f64 {
        self.inner.sigma
    }

    /// The strategy played.
    #[getter]
    fn strategy<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.strategy.to_pyarray(py)
    }

    /// Rounds per action before the epoch.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.inner.counts.to_pyarray(py)
    }

    /// The estimates made at its start.
    #[getter]
    fn estimates(&self) -> Vec<PyEstimate> {
        self.inner
            .estimates
            .iter()
            .map(|&estimate| estimate.into())
            .collect()
    }

    /// A line of the program's trace.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &json!(self.inner))
    }

    fn __repr__(&self) -> String {
        let debora::EpochRecord {
            epoch,
            first_round,
            rounds,
            strategy,
            ..
        } = &self.inner;
        let kind = self.kind();
        format!(
            "EpochRecord(epoch={epoch}, first_round={first_round}, rounds={rounds}, kind='{kind}', strategy={strategy:?})"
        )
    }
}

fn word(value: Value) -> String {
    // By way of its JSON, so that traces and attributes have the same word.
    value.as_str().expect("a word").to_owned()
}

/// What telling many rounds did.
#[pyclass(name = "ToldMany", module = "debora", frozen, get_all)]
pub struct PyToldMany {
    /// Rounds whose feedback counts.
    recorded: u64,
    /// Rounds told before with the same feedback.
    repeated: u64,
    /// Rounds told before whose feedback is no longer remembered.
    already_told: u64,
    /// The epoch's record, if these were its last rounds.
    closed: Option<Py<PyEpochRecord>>,
}

impl PyToldMany {
    pub fn new(told: &debora::ToldMany, closed: Option<Py<PyEpochRecord>>) -> Self {
        let debora::ToldMany {
            recorded,
            repeated,
            already_told,
            ..
        } = *told;
        Self {
            recorded,
            repeated,
            already_told,
            closed,
        }
    }
}

#[pymethods]
impl PyToldMany {
    fn __repr__(&self) -> String {
        let Self {
            recorded,
            repeated,
            already_told,
            closed,
        } = self;
        // A record's own text would be longer than all the rest.
        let closed = if closed.is_some() {
            "an EpochRecord"
        } else {
            "None"
        };
        format!(
            "ToldMany(recorded={recorded}, repeated={repeated}, already_told={already_told}, closed={closed})"
        )
    }
}

/// A strategy with what it is known to give, in the user's units.
#[pyclass(name = "Prospect", module = "debora", frozen)]
pub struct PyProspect {
    names: Arc<Names>,
    inner: debora::record::Prospect,
}

/// What actions and costs are called.
struct Names {
    actions: Vec<String>,
    costs: Vec<String>,
}

impl PyProspect {
    /// Shares, reward and costs, as both classes show them.
    fn text(&self) -> String {
        let shares = self
            .names
            .actions
            .iter()
            .zip(&self.inner.strategy)
            // Of many actions a strategy plays a few, and only they are worth a line.
            .filter(|(_, share)| **share > 0.0);
        let shares: Vec<String> = shares
            .map(|(name, share)| format!("{name} {share:.4}"))
            .collect();
        let Interval { low, high } = self.inner.reward;
        let mut text = format!("{}; reward {low:.4} to {high:.4}", shares.join(", "));
        for (name, Interval { low, high }) in self.names.costs.iter().zip(&self.inner.costs) {
            text += &format!("; {name} {low:.4} to {high:.4}");
        }
        text
    }
}

#[pymethods]
impl PyProspect {
    /// A probability per action.
    #[getter]
    fn strategy<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.strategy.to_pyarray(py)
    }

    /// Its expected reward lies in here.
    #[getter]
    fn reward(&self) -> (f64, f64) {
        (self.inner.reward.low, self.inner.reward.high)
    }

    /// Its expected costs lie in here, by name. All intervals hold together with probability 1 - delta.
    #[getter]
    fn costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let costs = PyDict::new(py);
        for (name, Interval { low, high }) in self.names.costs.iter().zip(&self.inner.costs) {
            costs.set_item(name, (low, high))?;
        }
        Ok(costs)
    }

    fn __repr__(&self) -> String {
        format!("Prospect({})", self.text())
    }
}

/// What to deploy when the experiment ends: the current strategy, or the cautious one, and what they are known to give.
#[pyclass(name = "Recommendation", module = "debora", frozen)]
pub struct PyRecommendation {
    current: PyProspect,
    inner: debora::Recommendation,
}

impl PyRecommendation {
    pub fn of(engine: &debora::Engine) -> Self {
        let problem = engine.problem();
        let costs =
            (1..problem.quantities()).map(|quantity| problem.quantity(quantity).name.clone());
        let inner = engine.recommendation();
        Self {
            current: PyProspect {
                names: Arc::new(Names {
                    actions: problem.actions().to_vec(),
                    costs: costs.collect(),
                }),
                inner: inner.current.clone(),
            },
            inner,
        }
    }
}

#[pymethods]
impl PyRecommendation {
    /// The current strategy, which learns: a probability per action.
    #[getter]
    fn strategy<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.current.strategy(py)
    }

    /// How it was found. While exploring it says nothing about which action is best.
    #[getter]
    fn kind(&self) -> String {
        word(json!(self.inner.kind))
    }

    /// Its expected reward lies in here, in the user's units.
    #[getter]
    fn reward(&self) -> (f64, f64) {
        self.current.reward()
    }

    /// Its expected costs lie in here, by name. All intervals hold together with probability 1 - delta.
    #[getter]
    fn costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.current.costs(py)
    }

    /// The best strategy sure to keep every limit; None while nothing is estimated, or if no strategy is sure to.
    #[getter]
    fn cautious(&self) -> Option<PyProspect> {
        Some(PyProspect {
            names: Arc::clone(&self.current.names),
            inner: self.inner.cautious.clone()?,
        })
    }

    /// The same as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &json!(self.inner))
    }

    fn __repr__(&self) -> String {
        format!("Recommendation({})", self.current.text())
    }
}
