//! A run of a player written in Python.

use std::sync::Arc;

use debora::key::Label;
use debora::lab::players::Player;
use debora::{Key, Problem, Strategy, Tally};
use numpy::{IntoPyArray as _, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::code_failure::CodeFailure;
use crate::error::Error;
use crate::problem::PyProblem;

/// The bound methods of a player.
pub struct Calls {
    strategy: Py<PyAny>,
    tell: Py<PyAny>,
    /// Of a player that holds a strategy for many rounds.
    pub rounds: Option<Py<PyAny>>,
    note: Option<Py<PyAny>>,
}

impl Calls {
    /// Makes a run's player, as a `debora.Player` says.
    pub fn make(player: &Bound<'_, PyAny>, problem: &Problem, key: Key) -> PyResult<Self> {
        let problem = PyProblem {
            inner: Arc::new(problem.clone()),
        };
        // A number of its own: what Python draws from it is independent of the actions, which come from the key itself.
        let [low, high, ..] = key.block(Label::Player, [u64::MAX, 0, 0]);
        let number = u128::from(high) << 64 | u128::from(low);
        let made = player.getattr("make")?.call1((problem, number))?;
        let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            Ok(made.getattr_opt(name)?.map(Bound::unbind))
        };
        let needed = |name: &str| {
            method(name)?.ok_or_else(|| {
                Error::new_err(format!(
                    "player {} has no method {name}; it needs strategy() and tell(actions, rewards, costs), or strategy(), \
                     rounds() and tell_sums(counts, rewards, costs)",
                    player.getattr("name").map_or(String::new(), |name| name.to_string())
                ))
            })
        };
        let rounds = method("rounds")?;
        Ok(Self {
            strategy: needed("strategy")?,
            tell: needed(if rounds.is_some() {
                "tell_sums"
            } else {
                "tell"
            })?,
            rounds,
            note: method("note")?,
        })
    }
}

/// Which pair a run belongs to, for messages.
pub type PairOf = Box<dyn Fn() -> Option<u64> + Send>;

/// A run of a player in Python.
pub struct PythonPlayer {
    problem: Arc<Problem>,
    name: String,
    pair: PairOf,
    failure: Arc<CodeFailure>,
    /// None once it has failed or is not to go on.
    calls: Option<Calls>,
    strategy: Strategy,
    rounds: Option<u64>,
    /// The first of the open stretch.
    round: u64,
}

impl PythonPlayer {
    pub fn new(
        object: &Py<PyAny>,
        problem: &Arc<Problem>,
        key: Key,
        (name, pair): (String, PairOf),
        failure: Arc<CodeFailure>,
    ) -> Self {
        let mut player = Self {
            problem: Arc::clone(problem),
            name,
            pair,
            failure,
            calls: None,
            strategy: Strategy::pure(0, problem.actions().len()),
            rounds: None,
            round: 1,
        };
        player.guard(|player, py| {
            player.calls = Some(Calls::make(object.bind(py), &player.problem, key)?);
            player.open(py)
        });
        player
    }

    /// Does something in Python. If it fails the player is done with it, and holds its strategy to the horizon.
    fn guard(&mut self, work: impl FnOnce(&mut Self, Python<'_>) -> PyResult<()>) {
        let failure = Arc::clone(&self.failure);
        let goes_on = failure.attach(|py| match work(self, py) {
            Ok(()) => true,
            Err(error) => {
                let pair = (self.pair)().map_or(String::new(), |pair| format!(", pair {pair}"));
                let place = format!("in player {:?}{pair}, round {}", self.name, self.round);
                failure.set(py, error, &place);
                false
            }
        });
        if goes_on != Some(true) {
            self.calls = None;
            self.rounds = None;
        }
    }

    /// Asks for the next strategy, and for how many rounds it holds.
    fn open(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(calls) = &self.calls else {
            return Ok(());
        };
        let given = calls.strategy.bind(py).call0()?;
        let rounds = match &calls.rounds {
            Some(rounds) => self.read_rounds(&rounds.bind(py).call0()?)?,
            None => 1,
        };
        self.strategy = self.read_strategy(&given)?;
        self.rounds = Some(rounds);
        Ok(())
    }

    /// For how many rounds a strategy holds.
    fn read_rounds(&self, given: &Bound<'_, PyAny>) -> PyResult<u64> {
        let rounds = given.extract().ok().filter(|&rounds| rounds > 0);
        rounds.ok_or_else(|| {
            Error::new_err(format!(
                "rounds() of player {:?} gives {}; give a whole number: a strategy holds for 1 round or more",
                self.name,
                shorten_repr(given)
            ))
        })
    }

    fn read_strategy(&self, given: &Bound<'_, PyAny>) -> PyResult<Strategy> {
        let refused =
            |wrong: String| Error::new_err(format!("strategy() of player {:?} {wrong}", self.name));
        let probabilities: Vec<f64> = match given.extract::<PyReadonlyArray1<f64>>() {
            Ok(array) => array.as_array().to_vec(),
            // A method without a return gives None, and one that chooses an action gives its number.
            Err(_) => given.extract().map_err(|_| {
                let given = shorten_repr(given);
                refused(format!(
                    "gives {given}; give a list with a probability for each action"
                ))
            })?,
        };
        if let Some(wrong) = find_fault(&probabilities, self.problem.actions()) {
            return Err(refused(wrong));
        }
        // The library's strategies sum to 1 as nearly as floats do; what people divide and add up may miss it by more.
        let sum: f64 = probabilities.iter().sum();
        Ok(Strategy::new(
            probabilities.iter().map(|value| value / sum).collect(),
        ))
    }

    fn pass_on(&mut self, py: Python<'_>, stretch: &Tally) -> PyResult<()> {
        let Some(calls) = &self.calls else {
            return Ok(());
        };
        let tell = calls.tell.bind(py);
        if calls.rounds.is_some() {
            tell.call1(self.sums(py, stretch)?)?;
        } else {
            let counts = stretch.counts();
            let action = counts.iter().position(|&count| count == 1);
            let action = action.expect("a stretch is one round") as u32;
            let value = |quantity: usize| {
                let range = self.problem.quantity(quantity).range;
                range.to_user(stretch.mean(action, quantity))
            };
            let costs = PyList::new(py, (1..stretch.quantities()).map(value))?;
            tell.call1(([action], [value(0)], PyList::new(py, [costs])?))?;
        }
        self.round += stretch.counts().iter().sum::<u64>();
        self.open(py)
    }

    /// How often each action was played, and the sums of its rewards and of its costs, in the user's units.
    fn sums<'py>(
        &self,
        py: Python<'py>,
        stretch: &Tally,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let actions = stretch.counts().len() as u32;
        let sum = |action: u32, quantity: usize| {
            let count = stretch.counts()[action as usize];
            let range = self.problem.quantity(quantity).range;
            // An action that was not played has no mean.
            if count == 0 {
                return 0.0;
            }
            range.to_user(stretch.mean(action, quantity)) * count as f64
        };
        let rewards: Vec<f64> = (0..actions).map(|action| sum(action, 0)).collect();
        let costs: Vec<f64> = (0..actions)
            .flat_map(|action| (1..stretch.quantities()).map(move |quantity| (action, quantity)))
            .map(|(action, quantity)| sum(action, quantity))
            .collect();
        let costs = costs
            .into_pyarray(py)
            .reshape([actions as usize, stretch.quantities() - 1])?;
        Ok((
            stretch.counts().to_vec().into_pyarray(py).into_any(),
            rewards.into_pyarray(py).into_any(),
            costs.into_any(),
        ))
    }
}

/// A value as Python writes it, as far as a message has room for it.
fn shorten_repr(given: &Bound<'_, PyAny>) -> String {
    let text = given
        .repr()
        .map_or("what cannot be shown".into(), |text| text.to_string());
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// What is wrong with probabilities of these actions, and what would not be.
fn find_fault(probabilities: &[f64], actions: &[String]) -> Option<String> {
    let (got, wanted) = (probabilities.len(), actions.len());
    if got != wanted {
        return Some(format!(
            "gives {got} probabilities for {wanted} actions; give one for each"
        ));
    }
    let mut entries = probabilities.iter().zip(actions);
    if let Some((value, action)) = entries.find(|(value, _)| value.is_nan() || **value < 0.0) {
        return Some(format!(
            "gives {action:?} the probability {value}; give 0 or more"
        ));
    }
    let sum: f64 = probabilities.iter().sum();
    ((sum - 1.0).abs() > 1e-9)
        .then(|| format!("sums to {sum}; make it sum to 1 within 1e-9, in 64-bit floats"))
}

impl Player for PythonPlayer {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        self.rounds
    }

    fn tell(&mut self, stretch: &Tally) {
        if self.calls.is_some() {
            self.guard(|player, py| player.pass_on(py, stretch));
        }
    }

    fn note(&self) -> Option<String> {
        let note = self.calls.as_ref()?.note.as_ref()?;
        self.failure.attach(|py| {
            let said = note.bind(py).call0().and_then(|said| said.extract());
            said.unwrap_or_else(|error: PyErr| {
                let place = format!("in note() of player {:?}", self.name);
                self.failure.set(py, error, &place);
                None
            })
        })?
    }
}
