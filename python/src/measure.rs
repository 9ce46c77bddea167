//! Runs, and measurements of many pairs.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use debora::lab::LabError;
use debora::lab::epochs::Stretch;
use debora::lab::metrics::Run;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::measure::{
    FirstRun, Io, Measurement, SpecText, answer, check_names, check_speed, choose, json, warnings,
    world_gaps,
};
use numpy::{IntoPyArray as _, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde_json::{Value, json};

use crate::background::beside;
use crate::code_failure::CodeFailure;
use crate::error::{Error, measure_refused, spec_refused};
use crate::own::OwnCode;
use crate::part::PyPart;
use crate::spec::{PySpec, open};
use crate::value::{Whole, answer_items, to_python};

fn simulator(name: &str) -> PyResult<Simulator> {
    match name {
        "epochs" => Ok(Simulator::Epochs),
        "rounds" => Ok(Simulator::Rounds),
        _ => Err(Error::new_err(format!(
            "simulator is {name:?}; choose \"epochs\" or \"rounds\""
        ))),
    }
}

/// Does the work on a thread that the interpreter knows, unless nothing needs it: a player in Python that comes and goes in every
/// round would otherwise have the thread's state made anew each time, which takes longer than all the rest.
fn with_thread_state<T: Send>(needless: bool, work: impl FnOnce() -> T + Send) -> T {
    if needless {
        return work();
    }
    // Without the lock while it works, so that everyone else may have it.
    Python::attach(|py| py.detach(work))
}

/// Rows of equal length as an array.
pub fn matrix<'py>(
    py: Python<'py>,
    rows: Vec<&[f64]>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let count = rows.len();
    rows.concat().into_pyarray(py).reshape([count, columns])
}

/// One simulated run: the document of the JSON contract, the answer, curves and strategies.
#[pyfunction]
#[pyo3(signature = (spec, *, simulator = "epochs", pair = Whole(0), member = Whole(0)))]
pub fn simulate<'py>(
    py: Python<'py>,
    spec: &PySpec,
    simulator: &str,
    pair: Whole,
    member: Whole,
) -> PyResult<Bound<'py, PyDict>> {
    if member.0 > 1 {
        let message = format!("member is {}; give 0 or 1: a pair has two runs", member.0);
        return Err(Error::new_err(message));
    }
    let member = (pair.0, member.0 as usize);
    let simulator = self::simulator(simulator)?;
    let spec = &spec.spec_text;
    let experiment = spec.experiment(&spec.world(&open).map_err(spec_refused)?, simulator);
    let watched = experiment.clone();
    // On a thread of its own, as the interpreter must see Ctrl-C while a long run goes on.
    let (run, first_run, trace) = beside(py, None, move |watch| {
        watch_run(&watched, member, &watch.cancel)
    })?
    .map_err(|error| measure_refused(error.into()))?;
    let world = &*experiment.world(member.0, member.1);
    let warnings = warnings(&spec.plan, Some(world));
    let gaps = world_gaps(&spec.plan, world);
    let answer = answer::run(spec, world.means(), &run, &first_run, &warnings, &gaps);
    let document = json::run(spec, &run, simulator, &warnings);
    let document = json::of_member(json::with_gaps(document, &gaps), member);
    let span = spec.problem().quantity(0).range.span();
    let regret = run.regret_curve.iter().map(|regret| regret * span);
    let regret: Vec<f64> = regret.collect();
    let found = PyDict::new(py);
    found.set_item("document", to_python(py, &document)?)?;
    found.set_item("answer", answer_items(py, &answer)?)?;
    found.set_item("trace", to_python(py, &json!(trace))?)?;
    found.set_item("checkpoints", experiment.checkpoints.into_pyarray(py))?;
    found.set_item("regret_curve", regret.into_pyarray(py))?;
    found.set_item("violation_curve", run.violation_curve.into_pyarray(py))?;
    found.set_item("actions", spec.problem().actions())?;
    add_strategies(&found, &first_run, spec.problem().actions().len())?;
    Ok(found)
}

/// The run, and what an observer saw of it; the trace has a record for each epoch.
fn watch_run(
    experiment: &Experiment,
    member: (u64, usize),
    cancel: &AtomicBool,
) -> Result<(Run, FirstRun, Vec<Value>), LabError> {
    let mut first_run = FirstRun::new(experiment.world(member.0, member.1).means());
    let mut trace = Vec::new();
    let mut observe = |stretch: &Stretch| {
        first_run.add(stretch);
        if let Some(record) = stretch.player.record() {
            // The observer comes before the rounds are counted in, so the record does not have their number yet.
            let mut record = json!(record);
            record["rounds"] = json!(stretch.rounds);
            trace.push(record);
        }
    };
    let run = experiment.run_until(Contestant::Debora, member, &mut observe, cancel)?;
    Ok((run, first_run, trace))
}

/// The first round and the strategy of each stretch.
pub fn add_strategies(
    found: &Bound<'_, PyDict>,
    first_run: &FirstRun,
    actions: usize,
) -> PyResult<()> {
    let stretches = &first_run.strategies;
    let first: Vec<u64> = stretches.iter().map(|(first, ..)| *first).collect();
    let strategies = stretches
        .iter()
        .map(|(.., strategy)| strategy.as_slice())
        .collect();
    found.set_item("first_rounds", first.into_pyarray(found.py()))?;
    found.set_item("strategies", matrix(found.py(), strategies, actions)?)
}

/// Everything that determines a measurement. Parts of it, measured anywhere and merged, are the bytes of the whole.
///
/// >>> import debora
/// >>> problem = debora.Problem(actions=["a", "b"], horizon=1e6, rho=0.3)
/// >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
/// >>> measurement = debora.Measurement.replicate(spec, pairs=20)
/// >>> parts = [measurement.measure(shard=(number, 2)) for number in (1, 2)]
/// >>> debora.merge(parts).to_dict() == debora.replicate(spec, pairs=20).to_dict()
/// True
#[pyclass(name = "Measurement", module = "debora", frozen, eq)]
#[derive(PartialEq)]
pub struct PyMeasurement {
    inner: Arc<Measurement>,
    left_out: Vec<String>,
    code: OwnCode,
}

impl PyMeasurement {
    fn wrap(inner: Measurement, left_out: Vec<String>, code: OwnCode) -> PyResult<Self> {
        // The library measures nothing then, and a summary of nothing has no numbers.
        if inner.pairs == 0 {
            return Err(Error::new_err("pairs is 0; give at least 1"));
        }
        Ok(Self {
            inner: Arc::new(inner),
            left_out,
            code,
        })
    }
}

#[pymethods]
impl PyMeasurement {
    /// Pairs of runs with one key and fresh data, of debora or another player. `other` is a spec whose world the second run of
    /// each pair has, `world` a `debora.worlds.Function` in place of the spec's.
    #[classmethod]
    #[pyo3(signature = (spec, *, pairs = Whole(1000), simulator = "epochs", other = None, player = None, world = None))]
    fn replicate(
        _type: &Bound<'_, PyType>,
        spec: &PySpec,
        pairs: Whole,
        simulator: &str,
        other: Option<&PySpec>,
        player: Option<Bound<'_, PyAny>>,
        world: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        if other.is_some_and(|other| !other.spec_text.overrides.is_empty()) {
            // Of the other spec a part carries only the text.
            return Err(Error::new_err(
                "the other spec has replaced values; write them into its text",
            ));
        }
        let simulator = self::simulator(simulator)?;
        let other = other.map(|other| other.spec_text.clone());
        let pairs = pairs.0;
        let players = Vec::from_iter(player);
        let (names, code) = OwnCode::read(&players, world, &spec.spec_text)?;
        let mut inner = Measurement::replicate(spec.spec_text.clone(), pairs, simulator, other);
        if let (Some(name), Some(player)) = (names.into_iter().next(), players.first()) {
            let failure = Arc::new(CodeFailure::default());
            let own = code.own(player.py(), &spec.spec_text, pairs, &failure)?;
            let checked = check_names(&own.players)
                .and_then(|()| check_speed(&name, spec.spec_text.problem(), &own.players));
            checked.map_err(measure_refused)?;
            inner = inner.of_player(name);
        }
        Self::wrap(inner, Vec::new(), code)
    }

    /// The policy beside its rivals on the same worlds; without `players`, all that can play in reasonable time and need not be
    /// named. A player is a rival's name or a `debora.Player`.
    #[classmethod]
    #[pyo3(signature = (spec, *, players = None, pairs = Whole(200), simulator = "epochs", world = None))]
    fn compare(
        type_: &Bound<'_, PyType>,
        spec: &PySpec,
        players: Option<Vec<Bound<'_, PyAny>>>,
        pairs: Whole,
        simulator: &str,
        world: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let pairs = pairs.0;
        let spec = spec.spec_text.clone();
        let (wanted, code) = OwnCode::read(&players.unwrap_or_default(), world, &spec)?;
        let own = code.own(type_.py(), &spec, pairs, &Arc::new(CodeFailure::default()))?;
        let chosen =
            choose(spec.problem(), &wanted, &own.players, pairs).map_err(measure_refused)?;
        let simulator = self::simulator(simulator)?;
        let inner = Measurement::compare(spec, pairs, simulator, chosen.players);
        Self::wrap(inner, chosen.left_out, code)
    }

    /// replicate or compare.
    #[getter]
    fn verb(&self) -> &'static str {
        self.inner.verb.name()
    }

    /// How many pairs of each player.
    #[getter]
    fn pairs(&self) -> u64 {
        self.inner.pairs
    }

    /// The names of the players; in a comparison debora first.
    #[getter]
    fn players(&self) -> Vec<String> {
        self.inner.players.clone()
    }

    /// Rivals left out because they would take too long; those asked for by name play.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.left_out.clone()
    }

    /// Measures part `(number from 1, of how many)`, all without one: the bytes of the program's `shard-i-of-n.json`.
    #[pyo3(signature = (shard = None, *, threads = None, progress = None))]
    fn measure<'py>(
        &self,
        py: Python<'py>,
        shard: Option<(u64, u64)>,
        threads: Option<Whole>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let part = self._measure(py, shard, threads, progress, None)?;
        // The text grows with the pairs; other threads go on meanwhile.
        let bytes = py.detach(|| part.inner.to_json());
        Ok(PyBytes::new(py, bytes.as_bytes()))
    }

    /// The files that its worlds are read from, for machines that do not have them.
    #[getter]
    fn _tables(&self) -> Vec<PathBuf> {
        let first = (!self.code.has_world()).then_some(&self.inner.spec);
        let specs = first.into_iter().chain(&self.inner.other);
        specs.filter_map(SpecText::table).collect()
    }

    /// Measures and gives the part itself; `tables` has the bytes of files that are not read from where they are.
    #[pyo3(signature = (shard = None, threads = None, progress = None, tables = None))]
    fn _measure(
        &self,
        py: Python<'_>,
        shard: Option<(u64, u64)>,
        threads: Option<Whole>,
        progress: Option<&Bound<'_, PyAny>>,
        tables: Option<BTreeMap<PathBuf, Vec<u8>>>,
    ) -> PyResult<PyPart> {
        let total = self.inner.pairs_in(shard).map_err(measure_refused)?;
        let measurement = Arc::clone(&self.inner);
        let progress = progress.map(|progress| (progress, total));
        let threads = threads.map(|threads| threads.0 as usize);
        if threads == Some(0) {
            return Err(Error::new_err(
                "threads is 0; give at least 1, or None for all cores",
            ));
        }
        let failure = Arc::new(CodeFailure::default());
        let own = self
            .code
            .own(py, &measurement.spec, measurement.pairs, &failure)?;
        let watched = Arc::clone(&failure);
        let tables = tables.unwrap_or_default();
        let measured = beside(py, progress, move |watch| {
            watched.watch(watch);
            let work = || {
                let begun = Instant::now();
                let open = move |path: &Path| match tables.get(path) {
                    Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>),
                    None => open(path),
                };
                // Threads report out of order, and a bar must not go back.
                let done = |done: u64| {
                    watch.done.fetch_max(done, Ordering::Relaxed);
                };
                let io = Io {
                    open: &open,
                    clock: &|| begun.elapsed().as_secs_f64(),
                    progress: &done,
                    cancel: &watch.cancel,
                    threads,
                    own: &own,
                };
                measurement.measure(shard, &io)
            };
            with_thread_state(own.players.is_empty() && own.world.is_none(), work)
        })?;
        // What failed in Python's code comes first: it is why the measurement was stopped.
        if let Some(error) = failure.take() {
            return Err(error);
        }
        let (inner, seconds) = measured.map_err(measure_refused)?;
        Ok(PyPart { inner, seconds })
    }

    /// Reads again what `__reduce__` took apart.
    #[classmethod]
    #[pyo3(signature = (json, left_out, players = None, world = None))]
    fn _restore(
        _type: &Bound<'_, PyType>,
        json: &str,
        left_out: Vec<String>,
        players: Option<Vec<Bound<'_, PyAny>>>,
        world: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let inner: Measurement = serde_json::from_str(json)
            .map_err(|error| Error::new_err(format!("this is not a measurement: {error}")))?;
        let (_, code) = OwnCode::read(&players.unwrap_or_default(), world, &inner.spec)?;
        Self::wrap(inner, left_out, code)
    }

    fn __repr__(&self) -> String {
        format!(
            "Measurement({}, {:?}, pairs={}, players={:?})",
            self.verb(),
            self.inner.spec.file,
            self.pairs(),
            self.players()
        )
    }

    #[expect(clippy::type_complexity, reason = "Python's protocol")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Bound<'py, PyAny>,
        (
            String,
            Vec<String>,
            Vec<Bound<'py, PyAny>>,
            Option<Py<PyAny>>,
        ),
    )> {
        let json = serde_json::to_string(&*self.inner).expect("texts and numbers");
        let (players, world) = self.code.objects(py);
        Ok((
            py.get_type::<Self>().getattr("_restore")?,
            (json, self.left_out(), players, world),
        ))
    }
}
