//! The engine: one ask, one tell, singly and by the million.
//!
//! Its state sits behind a lock, so threads may share it. No Python code runs while the lock is held: feedback is read before,
//! callbacks come after, and a thread that waits for the lock lets go of the interpreter. So it can neither deadlock nor show
//! anyone a half-changed state.

use std::sync::{Arc, Mutex, MutexGuard};

use debora::measure::finds_nothing;
use debora::{Ask, EpochRecord, Key, Told};
use numpy::{
    IntoPyArray as _, PyArray1, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2,
    ToPyArray as _,
};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};
use serde_json::json;

use crate::arrays::{self, RoundCosts, to_round};
use crate::decision::{PyDecision, PyDecisions, PyToldMany};
use crate::error::{Error, refused, waiting, warn, warn_if_blind};
use crate::problem::PyProblem;
use crate::record::{epoch_record, observed_mean, recommendation, records};
use crate::value::{Whole, to_key};

/// The rounds of one batch at most: its arrays take a third of a gigabyte.
const BATCH_MAX: u64 = 1 << 24;

/// One run of a policy: ask for decisions, tell their feedback.
///
/// >>> import debora
/// >>> problem = debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5)
/// >>> engine = debora.Engine(problem, key=42)
/// >>> for decision in engine:
/// ...     told = engine.tell(decision.round, [0.25, 0.75][decision.action])
/// >>> engine.is_done, engine.epoch
/// (True, 1)
/// >>> engine.recommendation()
/// Recommendation(b 1.0000; reward 0.5906 to 0.8846)
#[pyclass(name = "Engine", module = "debora", frozen)]
pub struct PyEngine {
    state: Mutex<debora::Engine>,
    problem: Arc<debora::Problem>,
    names: Py<PyTuple>,
    on_epoch: Mutex<Option<Py<PyAny>>>,
}

impl PyEngine {
    /// A run before its first round.
    pub fn with_plan(py: Python<'_>, plan: Arc<debora::Plan>, key: Key) -> PyResult<Self> {
        Self::wrap(py, debora::Engine::with_plan(plan, key))
    }

    fn wrap(py: Python<'_>, engine: debora::Engine) -> PyResult<Self> {
        // Kept beside the engine: to read costs needs the problem, and must not wait for the lock.
        let problem = Arc::clone(&engine.plan().problem);
        // One tuple for all decisions, so that a name costs nothing until it is asked for.
        let names = PyTuple::new(py, problem.actions())?.unbind();
        Ok(Self {
            state: Mutex::new(engine),
            problem,
            names,
            on_epoch: Mutex::new(None),
        })
    }

    #[inline]
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, debora::Engine> {
        self.state
            .lock_py_attached(py)
            .expect("an engine that has not panicked")
    }

    fn decided(&self, py: Python<'_>, inner: debora::Decision) -> PyDecision {
        PyDecision {
            round: inner.round,
            epoch: inner.epoch,
            action: inner.action,
            probability: inner.probability,
            names: self.names.clone_ref(py),
        }
    }

    /// Calls back with a closed epoch's record. The engine has moved on already, whatever the callback raises.
    fn call_back(&self, py: Python<'_>, closed: &EpochRecord) -> PyResult<()> {
        if let Some(callback) = self.on_epoch(py) {
            callback.call1(py, (epoch_record(py, closed)?,))?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (problem, key, *, on_epoch = None))]
    fn new(
        problem: &Bound<'_, PyProblem>,
        key: &Bound<'_, PyAny>,
        on_epoch: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let plan = debora::Plan::of(Arc::clone(&problem.get().inner));
        warn_if_blind(problem.py(), &plan)?;
        let engine = Self::with_plan(problem.py(), Arc::new(plan), to_key(key)?)?;
        engine.set_on_epoch(problem.py(), on_epoch);
        Ok(engine)
    }

    /// Hands out the next round. None when all rounds are told; raises `Waiting` when the epoch waits for feedback.
    #[inline]
    fn ask(&self, py: Python<'_>) -> PyResult<Option<PyDecision>> {
        // The lock ends with this line: making Python objects may run the garbage collector.
        let asked = self.state(py).ask();
        match asked {
            Ask::Decision(decision) => Ok(Some(self.decided(py, decision))),
            Ask::Waiting { outstanding } => Err(waiting(py, outstanding)),
            Ask::Done => Ok(None),
        }
    }

    /// Hands out up to `rounds` rounds (2^24 at most), fewer where the epoch ends; no rounds when all are told. Raises `Waiting` like
    /// `ask`.
    ///
    /// >>> import debora, numpy
    /// >>> engine = debora.Engine(debora.Problem(actions=["a", "b"], horizon=20_000, rho=0.5), key=42)
    /// >>> while len(batch := engine.ask_many(1000)):
    /// ...     told = engine.tell_many(batch.rounds, numpy.array([0.25, 0.75])[batch.actions])
    /// >>> engine.is_done
    /// True
    fn ask_many(&self, py: Python<'_>, rounds: Whole) -> PyResult<PyDecisions> {
        let rounds = rounds.0;
        // With the interpreter held throughout: nobody else can fork, or write to an array, in between.
        let mut state = self.state(py);
        let (first, epoch) = (state.next_round(), state.epoch());
        let left = state.problem().horizon() + 1 - first;
        // Room for no more rounds than are left, whatever was asked for.
        let mut actions = vec![0; rounds.min(left).min(BATCH_MAX) as usize];
        let handed = state.ask_into(&mut actions);
        actions.truncate(handed);
        let outstanding = state.outstanding_count();
        // Done, if nothing is outstanding: then an empty batch ends the caller's loop.
        if actions.is_empty() && rounds > 0 && outstanding > 0 {
            drop(state);
            return Err(waiting(py, outstanding));
        }
        let strategy = state.strategy().probabilities();
        let probabilities: Vec<f64> = actions
            .iter()
            .map(|&action| strategy[action as usize])
            .collect();
        drop(state);
        let rounds: Vec<u64> = (first..first + actions.len() as u64).collect();
        Ok(PyDecisions {
            epoch,
            rounds: rounds.into_pyarray(py).unbind(),
            actions: actions.into_pyarray(py).unbind(),
            probabilities: probabilities.into_pyarray(py).unbind(),
            names: self.names.clone_ref(py),
        })
    }

    /// The decision of a round of the open epoch that was handed out, again.
    fn decision(&self, py: Python<'_>, round: &Bound<'_, PyAny>) -> PyResult<PyDecision> {
        let round = to_round(round, &self.problem)?;
        let decision = self.state(py).decision(round).map_err(refused)?;
        Ok(self.decided(py, decision))
    }

    /// The rounds that are handed out and not told, in order.
    fn outstanding<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let rounds: Vec<u64> = self.state(py).outstanding().collect();
        rounds.into_pyarray(py)
    }

    /// Tells the reward and costs of a decision, or of a round by its number, in the user's units and any order of rounds.
    ///
    /// Costs come as a sequence in the order of the problem, as a dictionary by their names, or, if there is one, as a number.
    /// Returns "recorded", "closed" (it was the epoch's last), "repeated" or "already told".
    #[pyo3(signature = (round, reward, costs = None))]
    fn tell<'py>(
        &self,
        py: Python<'py>,
        round: &Bound<'py, PyAny>,
        reward: f64,
        costs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<&Bound<'py, PyString>> {
        let round = match round.cast::<PyDecision>() {
            Ok(decision) => decision.get().round,
            Err(_) => to_round(round, &self.problem)?,
        };
        let costs = RoundCosts::read(costs, &self.problem)?;
        let told = self
            .state(py)
            .tell(round, reward, costs.as_slice())
            .map_err(refused)?;
        match told {
            // Interned: one text for all rounds, not one each.
            Told::Recorded => Ok(intern!(py, "recorded")),
            Told::Repeated => Ok(intern!(py, "repeated")),
            Told::AlreadyTold => Ok(intern!(py, "already told")),
            Told::Closed(record) => {
                self.call_back(py, &record)?;
                Ok(intern!(py, "closed"))
            }
        }
    }

    /// Tells many rounds: all of them, or none if there is an error. They come as `ask_many` gave them, or as their numbers.
    ///
    /// Costs have a row for each round and a column for each cost, or come as a dictionary of arrays by their names.
    #[pyo3(signature = (rounds, rewards, costs = None))]
    fn tell_many<'py>(
        &self,
        py: Python<'py>,
        rounds: &Bound<'py, PyAny>,
        rewards: &Bound<'py, PyAny>,
        costs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyToldMany> {
        let rounds: PyReadonlyArray1<'py, u64> = match rounds.cast::<PyDecisions>() {
            Ok(decisions) => decisions.get().rounds.bind(py).readonly(),
            Err(_) => arrays::rounds(rounds)?,
        };
        let rewards: PyReadonlyArray1<'py, f64> = arrays::rewards(rewards)?;
        let costs: Option<PyReadonlyArray2<'py, f64>> = arrays::costs(costs, &self.problem)?;
        let (rounds, rewards) = (rounds.as_slice()?, rewards.as_slice()?);
        let costs = costs
            .as_ref()
            .map_or(Ok(&[][..]), |costs| costs.as_slice())?;
        // Read in place: the arrays cannot change meanwhile, as the interpreter is held.
        let told = self.state(py).tell_many(rounds, rewards, costs);
        let told = told.map_err(refused)?;
        if let Some(closed) = &told.closed {
            self.call_back(py, closed)?;
        }
        Ok(PyToldMany {
            recorded: told.recorded,
            repeated: told.repeated,
            already_told: told.already_told,
            record: told.closed,
        })
    }

    /// The number of the open epoch, from 0; after the end, of the last.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> u64 {
        self.state(py).epoch()
    }

    /// The open epoch as far as it is handed out; after the end, the last.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // A copy, so that the lock is free when Python's code runs.
        let open = self.state(py).open_record().clone();
        epoch_record(py, &open)
    }

    /// The strategy of the open epoch: a probability per action.
    #[getter]
    fn strategy<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let strategy = self.state(py).strategy().probabilities().to_vec();
        strategy.into_pyarray(py)
    }

    /// Rounds told per action.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let counts = self.state(py).tally().counts().to_vec();
        counts.to_pyarray(py)
    }

    /// The latest estimate of each quantity of each action that has one.
    #[getter]
    fn estimates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let estimates: Vec<_> = self.state(py).estimates().collect();
        records(py, "Estimate", &json!(estimates))
    }

    /// The plain mean of each quantity of each action, as it was told, with an interval valid at any time: all
    /// looks together miss the true mean with probability `miss` at most, each interval for itself. No decision sees them.
    #[pyo3(signature = (miss = 0.01))]
    fn observed<'py>(&self, py: Python<'py>, miss: f64) -> PyResult<Bound<'py, PyAny>> {
        if !(miss > 0.0 && miss < 1.0) {
            return Err(Error::new_err(format!(
                "miss {miss} is outside (0, 1); give the chance that an interval ever misses, say 0.01"
            )));
        }
        let state = self.state(py);
        let quantities = self.problem.quantities() as u32;
        let actions = 0..self.problem.actions().len() as u32;
        let of_action = |action| {
            let engine = &state;
            (0..quantities).map(move |quantity| observed_mean(engine, action, quantity, miss))
        };
        let observed: Vec<_> = actions.flat_map(of_action).collect();
        drop(state);
        records(py, "ObservedMean", &json!(observed))
    }

    /// The current strategy and what it is known to give: what to deploy when the experiment ends. It warns if the horizon
    /// finds no difference of a tenth of the reward's range, as the key then decides more than the data.
    fn recommendation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.state(py);
        let (recommended, nothing) = (state.recommendation(), finds_nothing(state.plan(), None));
        drop(state);
        // Outside the lock: a filter of warnings may be code that uses this engine.
        if let Some(nothing) = nothing {
            warn(py, &nothing)?;
        }
        recommendation(py, &recommended, &self.problem)
    }

    /// SHA-256 over the strategies and lengths of all closed epochs: with one key, equal digests mean equal decisions.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        self.state(py).digest()
    }

    /// Whether all rounds are told.
    #[getter]
    fn is_done(&self, py: Python<'_>) -> bool {
        self.state(py).is_done()
    }

    /// The problem.
    #[getter]
    fn problem(&self) -> PyProblem {
        PyProblem {
            inner: Arc::clone(&self.problem),
        }
    }

    /// Called with the record of each epoch that closes. What it raises reaches the caller of `tell`; the engine stays whole.
    #[getter]
    fn on_epoch(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let callback = self
            .on_epoch
            .lock_py_attached(py)
            .expect("a lock that is only read and set");
        callback.as_ref().map(|callback| callback.clone_ref(py))
    }

    #[setter]
    fn set_on_epoch(&self, py: Python<'_>, callback: Option<Py<PyAny>>) {
        // The old one is dropped after the lock: its end may run Python code.
        let old = {
            let mut place = self
                .on_epoch
                .lock_py_attached(py)
                .expect("a lock that is only read and set");
            std::mem::replace(&mut *place, callback)
        };
        drop(old);
    }

    /// The engine as bytes, to continue bit for bit. **They hold the key**; the callback is not in them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = self.state(py).to_bytes();
        PyBytes::new(py, &bytes)
    }

    /// Reads what `to_bytes` wrote.
    #[classmethod]
    fn from_bytes(type_: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        Self::wrap(
            type_.py(),
            debora::Engine::from_bytes(bytes).map_err(refused)?,
        )
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyDecision>> {
        self.ask(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = self.state(py);
        let (told, horizon) = (
            state.tally().counts().iter().sum::<u64>(),
            state.problem().horizon(),
        );
        let (epoch, outstanding) = (state.epoch(), state.outstanding_count());
        format!("Engine(epoch {epoch}, {told} of {horizon} rounds told, {outstanding} outstanding)")
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((
            py.get_type::<Self>().getattr("from_bytes")?,
            (self.to_bytes(py),),
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Locked only for moments with the interpreter held, when no collection runs.
        match self.on_epoch.try_lock() {
            Ok(callback) => callback
                .as_ref()
                .map_or(Ok(()), |callback| visit.call(callback)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        if let Ok(mut callback) = self.on_epoch.try_lock() {
            *callback = None;
        }
    }
}
