//! Measurements: runs, jobs and the parts that are measured of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use debora::job::words::{Ink, wrapped};
use debora::job::{Host, Story, answer, choose, document, warnings};
use debora::lab::metrics::Run;
use debora::lab::replicate::{Contestant, Pair, Simulator};
use numpy::{IntoPyArray as _, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde_json::json;

use crate::error::{Error, job_refused};
use crate::measure::beside;
use crate::spec::{Spec, open};
use crate::value::to_python;

fn simulator(name: &str) -> PyResult<Simulator> {
    match name {
        "epochs" => Ok(Simulator::Epochs),
        "rounds" => Ok(Simulator::Rounds),
        _ => Err(Error::new_err(format!(
            "simulator is {name:?}; choose \"epochs\" or \"rounds\""
        ))),
    }
}

/// Rows of equal length as an array.
fn matrix<'py>(
    py: Python<'py>,
    rows: Vec<&[f64]>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let count = rows.len();
    rows.concat().into_pyarray(py).reshape([count, columns])
}

/// One simulated run: the document of the JSON contract, the answer in words, curves and story.
#[pyfunction]
#[pyo3(signature = (spec, *, simulator = "epochs"))]
pub fn simulate<'py>(
    py: Python<'py>,
    spec: &Spec,
    simulator: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let simulator = self::simulator(simulator)?;
    let loaded = spec.loaded.clone();
    let experiment = loaded.experiment(simulator, &open).map_err(job_refused)?;
    let watched = experiment.clone();
    let work = move |_: &crate::measure::Watch| {
        let (mut story, mut trace) = (Story::new(), Vec::new());
        let run = watched.run_observed(Contestant::Debora, 0, 0, &mut |stretch| {
            story.add(stretch);
            if let Some(record) = stretch.player.record() {
                let mut record = json!(record);
                record["rounds"] = json!(stretch.rounds);
                trace.push(record);
            }
        });
        run.map(|run| (run, story, trace))
    };
    let (run, story, trace) =
        beside(py, Some(1), None, work)?.map_err(|error| job_refused(error.into()))?;
    let warnings = warnings(&loaded.plan, Some(&*experiment.worlds[0]));
    let words = answer::run(
        &loaded,
        experiment.worlds[0].means(),
        &run,
        &warnings,
        Ink::none(),
    );
    let span = loaded.spec.problem.quantity(0).range.span();
    let regret: Vec<f64> = run
        .regret_curve
        .iter()
        .map(|regret| regret * span)
        .collect();
    let found = PyDict::new(py);
    found.set_item(
        "document",
        to_python(py, &document::run(&loaded, &run, simulator, &warnings))?,
    )?;
    found.set_item("answer", wrapped(&words))?;
    found.set_item("trace", to_python(py, &json!(trace))?)?;
    found.set_item("checkpoints", experiment.checkpoints.into_pyarray(py))?;
    found.set_item("regret_curve", regret.into_pyarray(py))?;
    found.set_item("violation_curve", run.violation_curve.into_pyarray(py))?;
    add_story(&found, &story, loaded.spec.problem.actions().len())?;
    Ok(found)
}

fn add_story(found: &Bound<'_, PyDict>, story: &Story, actions: usize) -> PyResult<()> {
    let py = found.py();
    let first: Vec<u64> = story.strategies.iter().map(|(first, ..)| *first).collect();
    let strategies = story
        .strategies
        .iter()
        .map(|(.., strategy)| strategy.as_slice())
        .collect();
    found.set_item("first_rounds", first.into_pyarray(py))?;
    found.set_item("strategies", matrix(py, strategies, actions)?)
}

/// Everything a measurement is determined by. Shares of it, measured anywhere and merged, are the bytes of the whole.
///
/// >>> import debora
/// >>> problem = debora.Problem(actions=["a", "b"], horizon=1e6, rho=0.3)
/// >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
/// >>> job = debora.Job.replicate(spec, pairs=20)
/// >>> parts = [job.measure(shard=(number, 2)) for number in (1, 2)]
/// >>> debora.merge(parts).to_dict() == debora.replicate(spec, pairs=20).to_dict()
/// True
#[pyclass(module = "debora", frozen, eq)]
#[derive(PartialEq)]
pub struct Job {
    inner: Arc<debora::job::Job>,
    left_out: Vec<String>,
}

impl Job {
    fn wrap(inner: debora::job::Job) -> PyResult<Self> {
        if inner.pairs == 0 {
            return Err(Error::new_err("pairs is 0; give at least 1"));
        }
        Ok(Self {
            inner: Arc::new(inner),
            left_out: Vec::new(),
        })
    }
}

#[pymethods]
impl Job {
    /// Pairs of runs with one key and fresh data. `other` is a spec whose world the second run of each pair has.
    #[classmethod]
    #[pyo3(signature = (spec, *, pairs = 1000, simulator = "epochs", other = None))]
    fn replicate(
        _type: &Bound<'_, PyType>,
        spec: &Spec,
        pairs: u64,
        simulator: &str,
        other: Option<&Spec>,
    ) -> PyResult<Self> {
        if other.is_some_and(|other| !other.loaded.overrides.is_empty()) {
            // A shard carries the other spec's text alone.
            return Err(Error::new_err(
                "the other spec has replaced values; write them into its text",
            ));
        }
        let other = other.map(|other| (other.loaded.file.clone(), other.loaded.text.clone()));
        Self::wrap(debora::job::Job::replicate(
            &spec.loaded,
            pairs,
            self::simulator(simulator)?,
            other,
        ))
    }

    /// The policy beside its rivals on the same worlds; without `players`, all that can play in reasonable time.
    #[classmethod]
    #[pyo3(signature = (spec, *, players = None, pairs = 200, simulator = "epochs"))]
    fn compare(
        _type: &Bound<'_, PyType>,
        spec: &Spec,
        players: Option<Vec<String>>,
        pairs: u64,
        simulator: &str,
    ) -> PyResult<Self> {
        let chosen = choose(
            &spec.loaded.spec.problem,
            &players.unwrap_or_default(),
            pairs,
        )
        .map_err(job_refused)?;
        let job = debora::job::Job::compare(
            &spec.loaded,
            pairs,
            self::simulator(simulator)?,
            chosen.players,
        );
        Ok(Self {
            left_out: chosen.left_out,
            ..Self::wrap(job)?
        })
    }

    /// replicate or compare.
    #[getter]
    fn verb(&self) -> &str {
        &self.inner.verb
    }

    /// How many pairs of each player.
    #[getter]
    fn pairs(&self) -> u64 {
        self.inner.pairs
    }

    /// Who plays; debora first.
    #[getter]
    fn players(&self) -> Vec<String> {
        self.inner.players.clone()
    }

    /// Rivals nobody asked for that would take too long.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.left_out.clone()
    }

    /// Measures share `(number from 1, of how many)`, all without one: the bytes of the program's `shard-i-of-n.json`.
    #[pyo3(signature = (shard = None, *, threads = None, progress = None))]
    fn measure<'py>(
        &self,
        py: Python<'py>,
        shard: Option<(u64, u64)>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let part = self._measure(py, shard, threads, progress)?;
        let bytes = py.detach(|| part.inner.to_json());
        Ok(PyBytes::new(py, bytes.as_bytes()))
    }

    /// The same as a part.
    #[pyo3(signature = (shard = None, threads = None, progress = None))]
    fn _measure(
        &self,
        py: Python<'_>,
        shard: Option<(u64, u64)>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Part> {
        let total = self.inner.pairs_in(shard).map_err(job_refused)?;
        let job = Arc::clone(&self.inner);
        let measured = beside(
            py,
            threads,
            progress.map(|progress| (progress, total)),
            move |watch| {
                let begun = Instant::now();
                let host = Host {
                    open: &open,
                    clock: &|| begun.elapsed().as_secs_f64(),
                    progress: &|done| {
                        watch.done.fetch_max(done, Ordering::Relaxed);
                    },
                    cancel: &watch.cancel,
                };
                job.measure(shard, &host)
            },
        );
        let (inner, seconds) = measured?.map_err(job_refused)?;
        Ok(Part { inner, seconds })
    }

    /// Reads again what `__reduce__` took apart.
    #[classmethod]
    fn _restore(_type: &Bound<'_, PyType>, json: &str, left_out: Vec<String>) -> PyResult<Self> {
        let inner = serde_json::from_str(json)
            .map_err(|error| Error::new_err(format!("this is not a job: {error}")))?;
        Ok(Self {
            left_out,
            ..Self::wrap(inner)?
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "Job({}, {:?}, pairs={}, players={:?})",
            self.verb(),
            self.inner.file,
            self.pairs(),
            self.players()
        )
    }

    #[expect(clippy::type_complexity, reason = "Python's protocol")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, Vec<String>))> {
        let json = serde_json::to_string(&*self.inner).expect("texts and numbers");
        Ok((
            py.get_type::<Self>().getattr("_restore")?,
            (json, self.left_out()),
        ))
    }
}

/// A job and what was measured of it.
#[pyclass(module = "debora._debora", frozen)]
pub struct Part {
    inner: debora::job::Part,
    seconds: Vec<f64>,
}

#[pymethods]
impl Part {
    /// The whole, from the bytes of shards in any order.
    #[classmethod]
    fn merge(type_: &Bound<'_, PyType>, parts: Vec<Vec<u8>>) -> PyResult<Self> {
        let merged = type_.py().detach(|| {
            let read = |(number, bytes): (usize, &Vec<u8>)| {
                serde_json::from_slice(bytes).map_err(|error| {
                    Error::new_err(format!(
                        "part {} is not a shard of debora: {error}",
                        number + 1
                    ))
                })
            };
            let parts = parts
                .iter()
                .enumerate()
                .map(read)
                .collect::<PyResult<Vec<_>>>()?;
            debora::job::Part::merge(parts).map_err(job_refused)
        });
        Ok(Self {
            inner: merged?,
            seconds: Vec::new(),
        })
    }

    /// The bytes of a shard's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.to_json().as_bytes())
    }

    /// What was asked: replicate or compare.
    #[getter]
    fn verb(&self) -> &str {
        &self.inner.job.verb
    }

    /// Seconds each player took; none after a merge.
    #[getter]
    fn seconds(&self) -> Vec<f64> {
        self.seconds.clone()
    }

    /// Document, answer, checkpoints, bounds, the names of the costs, and the first run's story.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let findings = self.inner.findings().map_err(job_refused)?;
        let (loaded, found) = (&findings.loaded, PyDict::new(py));
        let problem = &loaded.spec.problem;
        let checkpoints = debora::lab::metrics::checkpoints(problem.horizon());
        let span = problem.quantity(0).range.span();
        let bounds: Vec<_> = checkpoints
            .iter()
            .map(|&round| loaded.plan.bounds_at(round))
            .collect();
        let regret: Vec<f64> = bounds.iter().map(|(regret, _)| regret * span).collect();
        let violation: Vec<f64> = bounds
            .iter()
            .map(|(_, violation)| violation.unwrap_or(f64::NAN))
            .collect();
        found.set_item(
            "document",
            to_python(py, &document::measured(&self.inner, &findings))?,
        )?;
        found.set_item(
            "answer",
            wrapped(&answer::measured(&self.inner, &findings, Ink::none())),
        )?;
        found.set_item("checkpoints", checkpoints.into_pyarray(py))?;
        found.set_item("regret_bound", regret.into_pyarray(py))?;
        found.set_item("violation_bound", violation.into_pyarray(py))?;
        found.set_item("actions", problem.actions())?;
        found.set_item("reward", &problem.quantity(0).name)?;
        add_story(
            &found,
            self.inner.story.as_ref().unwrap_or(&Story::new()),
            problem.actions().len(),
        )?;
        Ok(found)
    }

    /// A player's pairs, column by column: numbers that a pair does not have are NaN. Regret in the reward's units.
    fn columns<'py>(&self, py: Python<'py>, player: usize) -> PyResult<Bound<'py, PyDict>> {
        let (pairs, span) = (self.pairs(player)?, self.span()?);
        let columns = PyDict::new(py);
        columns.set_item("pair", whole(pairs, |pair| pair.index).into_pyarray(py))?;
        let identical: Vec<bool> = pairs.iter().map(|pair| pair.divergence.is_none()).collect();
        columns.set_item("identical", identical.into_pyarray(py))?;
        let split = |read: &dyn Fn(&debora::lab::replicate::PairDivergence) -> Option<f64>| {
            numbers(pairs, |pair| pair.divergence.as_ref().and_then(read))
        };
        let estimate = |read: &dyn Fn(&debora::lab::replicate::DivergedEstimate) -> f64| {
            split(&|split| split.estimate.as_ref().map(read))
        };
        for (name, column) in [
            ("split_epoch", split(&|split| Some(split.epoch as f64))),
            ("split_round", split(&|split| Some(split.round as f64))),
            (
                "split_action",
                estimate(&|estimate| f64::from(estimate.action)),
            ),
            (
                "split_quantity",
                estimate(&|estimate| f64::from(estimate.quantity)),
            ),
            ("split_count", estimate(&|estimate| estimate.count as f64)),
            ("mean_1", estimate(&|estimate| estimate.means[0])),
            ("mean_2", estimate(&|estimate| estimate.means[1])),
            ("edge", estimate(&|estimate| estimate.edge)),
        ] {
            columns.set_item(name, column.into_pyarray(py))?;
        }
        for member in [0, 1] {
            let run = |pair: &Pair| pair.runs[member].clone();
            let set = |name: &str, column: Vec<f64>| {
                columns.set_item(format!("{name}_{}", member + 1), column.into_pyarray(py))
            };
            set(
                "regret",
                numbers(pairs, |pair| run(pair).regret.map(|regret| regret * span)),
            )?;
            set(
                "violation",
                numbers(pairs, |pair| Some(run(pair).violation)),
            )?;
            set(
                "reward_mean",
                numbers(pairs, |pair| Some(run(pair).reward_mean)),
            )?;
            let unsafe_rounds = whole(pairs, |pair| run(pair).unsafe_rounds).into_pyarray(py);
            columns.set_item(format!("unsafe_rounds_{}", member + 1), unsafe_rounds)?;
            columns.set_item(
                format!("epochs_{}", member + 1),
                whole(pairs, |pair| run(pair).epochs).into_pyarray(py),
            )?;
        }
        Ok(columns)
    }

    /// A player's regret (in the reward's units) and violation at the checkpoints: a row for each run, pair by pair. No regret,
    /// no row.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn curves<'py>(
        &self,
        py: Python<'py>,
        player: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (runs, span) = (
            self.pairs(player)?.iter().flat_map(|pair| &pair.runs),
            self.span()?,
        );
        let violation: Vec<&[f64]> = runs
            .clone()
            .map(|run| run.violation_curve.as_slice())
            .collect();
        let checkpoints = violation.first().map_or(0, |curve| curve.len());
        // One of two worlds may have no regret: its rows are NaN, so that each run keeps its place.
        let scaled = |run: &Run| match run.regret_curve.is_empty() {
            true => vec![f64::NAN; checkpoints],
            false => run
                .regret_curve
                .iter()
                .map(|regret| regret * span)
                .collect::<Vec<f64>>(),
        };
        let some = runs.clone().any(|run| !run.regret_curve.is_empty());
        let regret: Vec<Vec<f64>> = if some {
            runs.map(scaled).collect()
        } else {
            Vec::new()
        };
        let regret = matrix(py, regret.iter().map(Vec::as_slice).collect(), checkpoints)?;
        Ok((regret, matrix(py, violation, checkpoints)?))
    }
}

impl Part {
    fn pairs(&self, player: usize) -> PyResult<&[Pair]> {
        let (players, many) = (&self.inner.shard.players, self.inner.shard.players.len());
        let found = players.get(player).map(|(_, pairs)| pairs.as_slice());
        found.ok_or_else(|| {
            Error::new_err(format!(
                "player {player} does not exist; there are {many}, from 0"
            ))
        })
    }

    fn span(&self) -> PyResult<f64> {
        Ok(self
            .inner
            .job
            .loaded()
            .map_err(job_refused)?
            .spec
            .problem
            .quantity(0)
            .range
            .span())
    }
}

fn numbers(pairs: &[Pair], read: impl Fn(&Pair) -> Option<f64>) -> Vec<f64> {
    pairs
        .iter()
        .map(|pair| read(pair).unwrap_or(f64::NAN))
        .collect()
}

fn whole(pairs: &[Pair], read: impl Fn(&Pair) -> u64) -> Vec<u64> {
    pairs.iter().map(read).collect()
}
