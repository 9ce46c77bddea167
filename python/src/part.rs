//! What was measured, as arrays.

use debora::lab::metrics::{Run, checkpoints};
use debora::lab::replicate::{DivergedEstimate, Pair, PairDivergence};
use debora::measure::curves::CurveKind;
use debora::measure::{FirstRun, Part, answer, json, latex};
use numpy::{IntoPyArray as _, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::error::{Error, measure_refused};
use crate::measure::{add_strategies, matrix};
use crate::value::{answer_items, to_python};

/// A measurement and what was measured of it.
#[pyclass(name = "Part", module = "debora._debora", frozen)]
pub struct PyPart {
    pub inner: Part,
    pub seconds: Vec<f64>,
}

#[pymethods]
impl PyPart {
    /// The whole, from the bytes of parts in any order; errors call them by these names.
    #[classmethod]
    #[pyo3(signature = (parts, names = None))]
    fn merge(
        type_: &Bound<'_, PyType>,
        parts: Vec<Vec<u8>>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let numbered = || {
            (1..=parts.len())
                .map(|number| format!("part {number}"))
                .collect()
        };
        let names = names.unwrap_or_else(numbered);
        // Parts may be large, and other threads need not wait while they are read.
        let merged = type_.py().detach(|| {
            let parts = names
                .iter()
                .zip(&parts)
                .map(|(name, bytes)| read(name, bytes));
            let parts = parts.collect::<PyResult<Vec<Part>>>()?;
            Part::merge_named(&names, parts).map_err(measure_refused)
        });
        Ok(Self {
            inner: merged?,
            seconds: Vec::new(),
        })
    }

    /// The bytes of a part's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.to_json().as_bytes())
    }

    /// What was asked: replicate or compare.
    #[getter]
    fn verb(&self) -> &'static str {
        self.inner.measurement.verb.name()
    }

    /// Seconds each player took; empty after a merge.
    #[getter]
    fn seconds(&self) -> Vec<f64> {
        self.seconds.clone()
    }

    /// Document, answer, checkpoints, bounds, the names of actions and reward, and the first run's strategies.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let findings = self.inner.findings();
        let problem = self.inner.measurement.spec.problem();
        let document = json::measured(&self.inner, &findings);
        let answer = answer::measured(&self.inner, &findings);
        let found = PyDict::new(py);
        found.set_item("document", to_python(py, &document)?)?;
        found.set_item("answer", answer_items(py, &answer)?)?;
        self.add_bounds(&found)?;
        found.set_item("actions", problem.actions())?;
        found.set_item("reward", &problem.quantity(0).name)?;
        let quantities = (0..problem.quantities()).map(|number| &problem.quantity(number).name);
        found.set_item("quantities", quantities.collect::<Vec<_>>())?;
        // Parts that lack pair 0 have no first run: its arrays are empty then.
        let none = FirstRun::default();
        let first_run = self.inner.first_run.as_ref().unwrap_or(&none);
        add_strategies(&found, first_run, problem.actions().len())?;
        Ok(found)
    }

    /// The table for papers.
    fn latex(&self) -> String {
        latex::measured(&self.inner, &self.inner.findings())
    }

    /// A player's pairs, column by column: numbers that a pair does not have are NaN. Regret in the reward's units.
    fn columns<'py>(&self, py: Python<'py>, player: usize) -> PyResult<Bound<'py, PyDict>> {
        let pairs = self.pairs(player)?;
        let columns = PyDict::new(py);
        columns.set_item("pair", whole(pairs, |pair| pair.index).into_pyarray(py))?;
        let identical: Vec<bool> = pairs.iter().map(|pair| pair.divergence.is_none()).collect();
        columns.set_item("identical", identical.into_pyarray(py))?;
        add_divergences(&columns, pairs)?;
        for member in [0, 1] {
            add_runs(&columns, pairs, member, self.span())?;
        }
        Ok(columns)
    }

    /// A player's curve as a report draws it: round, value, and the band's low and high end, NaN of a single run. No rows where there
    /// is no such curve.
    fn curve<'py>(
        &self,
        py: Python<'py>,
        player: usize,
        kind: &str,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.pairs(player)?;
        let kind = match kind {
            "regret" => CurveKind::Regret,
            "violation" => CurveKind::Violation,
            _ => CurveKind::Identical,
        };
        let curve = self.inner.curve(player, kind).unwrap_or_default();
        let rows: Vec<[f64; 4]> = curve
            .iter()
            .map(|point| {
                let [low, high] = point.band.unwrap_or([f64::NAN; 2]);
                [point.round as f64, point.value, low, high]
            })
            .collect();
        matrix(py, rows.iter().map(|row| &row[..]).collect(), 4)
    }

    /// A player's regret (in the reward's units) and violation at the checkpoints: a row for each run, pair by pair. Without any
    /// regret, no rows of it.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn curves<'py>(
        &self,
        py: Python<'py>,
        player: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let runs = || {
            self.pairs(player)
                .map(|pairs| pairs.iter().flat_map(|pair| &pair.runs))
        };
        let violation: Vec<&[f64]> = runs()?.map(|run| run.violation_curve.as_slice()).collect();
        let checkpoints = violation.first().map_or(0, |curve| curve.len());
        let mut regret = Vec::new();
        if runs()?.any(|run| !run.regret_curve.is_empty()) {
            regret.extend(runs()?.map(|run| regret_curve(run, self.span(), checkpoints)));
        }
        let regret = matrix(py, regret.iter().map(Vec::as_slice).collect(), checkpoints)?;
        Ok((regret, matrix(py, violation, checkpoints)?))
    }
}

impl PyPart {
    fn pairs(&self, player: usize) -> PyResult<&[Pair]> {
        let players = &self.inner.pairs.players;
        let found = players.get(player).map(|(_, pairs)| pairs.as_slice());
        found.ok_or_else(|| {
            let many = players.len();
            Error::new_err(format!(
                "player {player} does not exist; there are {many}, from 0"
            ))
        })
    }

    fn span(&self) -> f64 {
        let problem = self.inner.measurement.spec.problem();
        problem.quantity(0).range.span()
    }

    /// The rounds of the curves, and what they stay below.
    fn add_bounds(&self, found: &Bound<'_, PyDict>) -> PyResult<()> {
        let plan = &self.inner.measurement.spec.plan;
        let rounds = checkpoints(plan.problem.horizon());
        let bounds: Vec<_> = rounds.iter().map(|&round| plan.bounds_at(round)).collect();
        let regret = bounds.iter().map(|(regret, _)| regret * self.span());
        let regret: Vec<f64> = regret.collect();
        // Without limits there is nothing to violate, and a plot leaves NaN out.
        let violation = bounds.iter().map(|(_, bound)| bound.unwrap_or(f64::NAN));
        let violation: Vec<f64> = violation.collect();
        let py = found.py();
        found.set_item("checkpoints", rounds.into_pyarray(py))?;
        found.set_item("regret_bound", regret.into_pyarray(py))?;
        found.set_item("violation_bound", violation.into_pyarray(py))
    }
}

fn read(name: &str, bytes: &[u8]) -> PyResult<Part> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::new_err(format!("{name} is not a shard of debora: {error}")))
}

/// Where each pair diverged, and the estimate that made it.
fn add_divergences(columns: &Bound<'_, PyDict>, pairs: &[Pair]) -> PyResult<()> {
    let places = |read: fn(&PairDivergence) -> f64| {
        numbers(pairs, |pair| pair.divergence.as_ref().map(read))
    };
    let estimates = |read: fn(&DivergedEstimate) -> f64| {
        numbers(pairs, |pair| {
            let estimate = pair.divergence.as_ref()?.estimate.as_ref();
            estimate.map(read)
        })
    };
    // As doubles, also what is whole: integers have no NaN.
    for (name, column) in [
        ("split_epoch", places(|place| place.epoch as f64)),
        ("split_round", places(|place| place.round as f64)),
        ("split_action", estimates(|estimate| estimate.action.into())),
        (
            "split_quantity",
            estimates(|estimate| estimate.quantity.into()),
        ),
        ("split_count", estimates(|estimate| estimate.count as f64)),
        ("mean_1", estimates(|estimate| estimate.means[0])),
        ("mean_2", estimates(|estimate| estimate.means[1])),
        ("edge", estimates(|estimate| estimate.edge)),
    ] {
        columns.set_item(name, column.into_pyarray(columns.py()))?;
    }
    Ok(())
}

/// What the first or the second run of each pair cost.
fn add_runs(columns: &Bound<'_, PyDict>, pairs: &[Pair], member: usize, span: f64) -> PyResult<()> {
    let py = columns.py();
    // Regret in the reward's units; violation stays a share, as costs have no common unit.
    let regret = numbers(pairs, |pair| {
        pair.runs[member].regret.map(|regret| regret * span)
    });
    for (name, column) in [
        ("regret", regret),
        (
            "violation",
            numbers(pairs, |pair| Some(pair.runs[member].violation)),
        ),
        (
            "reward_mean",
            numbers(pairs, |pair| Some(pair.runs[member].reward_mean)),
        ),
        (
            "decided_at",
            numbers(pairs, |pair| {
                pair.runs[member].decided_at.map(|round| round as f64)
            }),
        ),
    ] {
        columns.set_item(format!("{name}_{}", member + 1), column.into_pyarray(py))?;
    }
    for (name, column) in [
        (
            "unsafe_rounds",
            whole(pairs, |pair| pair.runs[member].unsafe_rounds),
        ),
        ("epochs", whole(pairs, |pair| pair.runs[member].epochs)),
    ] {
        columns.set_item(format!("{name}_{}", member + 1), column.into_pyarray(py))?;
    }
    Ok(())
}

fn regret_curve(run: &Run, span: f64, checkpoints: usize) -> Vec<f64> {
    // One of two worlds may have no regret: its rows are NaN, so that each run keeps its place.
    if run.regret_curve.is_empty() {
        return vec![f64::NAN; checkpoints];
    }
    run.regret_curve
        .iter()
        .map(|regret| regret * span)
        .collect()
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
