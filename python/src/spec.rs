//! Specs and their worlds.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use debora::measure::SpecText;
use debora::spec::{Simulated, quoted};
use numpy::{PyArray2, PyArrayMethods as _, ToPyArray as _};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::engine::PyEngine;
use crate::error::{ARGUMENTS, Error, spec_refused, warn_if_blind};
use crate::plan::plan;
use crate::problem::PyProblem;
use crate::value::{Whole, key_number, to_key, to_toml};

/// What errors call a spec that was not read from a file.
const NO_FILE: &str = "<text>";

/// Opens a table's file.
pub fn open(path: &Path) -> io::Result<Box<dyn io::Read>> {
    Ok(Box::new(File::open(path)?))
}

/// A whole experiment: a problem, a key and a world to simulate, as in a spec file.
///
/// >>> import debora
/// >>> problem = debora.Problem(actions=["a", "b"], horizon=1e9, rho=0.1)
/// >>> spec = debora.Spec(problem, key=42, world=debora.worlds.bernoulli(reward=[0.4, 0.6]))
/// >>> spec.key, spec.world
/// (42, World(kind='bernoulli'))
#[pyclass(name = "Spec", module = "debora", frozen)]
#[derive(Clone)]
pub struct PySpec {
    pub spec_text: SpecText,
}

impl PySpec {
    fn parse(text: String, file: String, overrides: Vec<(String, String)>) -> PyResult<Self> {
        Ok(Self {
            spec_text: SpecText::parse(text, file, overrides).map_err(spec_refused)?,
        })
    }

    fn simulated(&self) -> PyResult<Simulated> {
        self.spec_text.world(&open).map_err(spec_refused)
    }
}

#[pymethods]
impl PySpec {
    #[new]
    #[pyo3(signature = (problem, *, key = None, world = None, name = None))]
    fn new(
        problem: &Bound<'_, PyProblem>,
        key: Option<&Bound<'_, PyAny>>,
        world: Option<&Bound<'_, PyDict>>,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let mut text = name.map_or(String::new(), |name| format!("name = {}\n", quoted(name)));
        if let Some(key) = key {
            // As text: TOML's integers end at 2^63.
            text += &format!("key = \"{}\"\n", to_key(key)?.to_hex());
        }
        text += &problem.get().inner.to_toml();
        if let Some(world) = world {
            text += "\n[world]\n";
            for (word, value) in world.iter() {
                text += &format!("{} = {}\n", to_toml(&word)?, to_toml(&value)?);
            }
        }
        Self::parse(text, ARGUMENTS.into(), Vec::new())
    }

    /// Reads a spec: a path to a file, or the text itself. Keywords replace values of the file, as the program's flags do.
    ///
    /// >>> import debora
    /// >>> text = '''
    /// ... policy = "free"
    /// ... horizon = 1e6
    /// ... rho = 0.1
    /// ... actions = ["a", "b"]
    /// ... '''
    /// >>> debora.Spec.from_toml(text, horizon=1e9, **{"reward.range": [0, 5]}).problem.horizon
    /// 1000000000
    #[classmethod]
    #[pyo3(signature = (path_or_text, **overrides))]
    fn from_toml(
        _type: &Bound<'_, PyType>,
        path_or_text: &Bound<'_, PyAny>,
        overrides: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let overrides = overrides.map_or(Ok(Vec::new()), read_overrides)?;
        match path_or_text.cast::<PyString>() {
            // No path has a line break, and no spec fits on one line: it needs at least four keys.
            Ok(text) if text.to_cow()?.contains('\n') => {
                Self::parse(text.to_cow()?.into_owned(), NO_FILE.into(), overrides)
            }
            _ => {
                let path: PathBuf = path_or_text.extract()?;
                let file = path.display().to_string();
                let text =
                    std::fs::read_to_string(&path).map_err(|error| read_failed(&file, &error))?;
                Self::parse(text, file, overrides)
            }
        }
    }

    /// This spec with other values, as `from_toml` takes them.
    ///
    /// >>> import debora
    /// >>> problem = debora.Problem(actions=["a", "b"], horizon=1e6, rho=0.1)
    /// >>> debora.Spec(problem, key=1).replace(rho=0.2, key=2).problem.rho
    /// 0.2
    #[pyo3(signature = (**overrides))]
    fn replace(&self, overrides: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let SpecText {
            text,
            file,
            overrides: before,
            ..
        } = self.spec_text.clone();
        let overrides = overrides.map_or(Ok(Vec::new()), read_overrides)?;
        Self::parse(text, file, [before, overrides].concat())
    }

    /// Reads again what `__reduce__` took apart.
    #[classmethod]
    fn _restore(
        _type: &Bound<'_, PyType>,
        text: String,
        file: String,
        overrides: Vec<(String, String)>,
    ) -> PyResult<Self> {
        Self::parse(text, file, overrides)
    }

    /// The problem.
    #[getter]
    fn problem(&self) -> PyProblem {
        PyProblem {
            inner: Arc::clone(&self.spec_text.plan.problem),
        }
    }

    /// The policy's key, as a number.
    #[getter]
    fn key(&self) -> u128 {
        key_number(&self.spec_text.spec.key.to_hex())
    }

    /// The world to simulate, if the spec has one.
    #[getter]
    fn world(&self) -> PyResult<Option<PyWorld>> {
        let Some(world) = &self.spec_text.spec.world else {
            return Ok(None);
        };
        Ok(Some(PyWorld {
            kind: world.kind.name(),
            problem: Arc::clone(&self.spec_text.plan.problem),
            simulated: self.simulated()?,
        }))
    }

    /// What the experiment is called.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.spec_text.spec.name.as_deref()
    }

    /// Where it was read from, or `<text>` or `<arguments>`.
    #[getter]
    fn file(&self) -> &str {
        &self.spec_text.file
    }

    /// The spec as it was read, before what replaces its values.
    #[getter]
    fn text(&self) -> &str {
        &self.spec_text.text
    }

    /// The plan of the problem, and what it sees of the world; `gap` as `Problem.plan` takes it.
    #[pyo3(signature = (*, gap = None))]
    fn plan<'py>(&self, py: Python<'py>, gap: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        // A plan needs no world; one that cannot be read is the business of what simulates it.
        let world = self.simulated().ok();
        let world = world.as_ref().map(|simulated| &*simulated.world);
        plan(py, self.spec_text.name(), &self.spec_text.plan, world, gap)
    }

    /// The engine of one pair of a replication. Pair 0 is what `run` simulates: each pair has a key derived from the spec's.
    #[pyo3(signature = (*, pair = Whole(0)))]
    fn engine(&self, py: Python<'_>, pair: Whole) -> PyResult<PyEngine> {
        warn_if_blind(py, &self.spec_text.plan)?;
        PyEngine::with_plan(
            py,
            Arc::clone(&self.spec_text.plan),
            // As the lab derives it, so that an engine told by hand repeats a simulated run.
            self.spec_text.spec.key.derive(pair.0, 0),
        )
    }

    fn __repr__(&self) -> String {
        let problem = self.spec_text.problem();
        // Of the world only its kind: to build it might be to read a table of millions of rows.
        let world = self.spec_text.spec.world.as_ref();
        let world = world.map_or("None".into(), |world| world_repr(world.kind.name()));
        format!(
            "Spec({:?}, policy='{}', horizon={}, world={world})",
            self.spec_text.name(),
            problem.policy().name(),
            problem.horizon(),
        )
    }

    #[expect(clippy::type_complexity, reason = "Python's protocol")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, String, Vec<(String, String)>))> {
        let SpecText {
            text,
            file,
            overrides,
            ..
        } = self.spec_text.clone();
        Ok((
            py.get_type::<Self>().getattr("_restore")?,
            (text, file, overrides),
        ))
    }
}

/// Values that replace those of a spec: paths and TOML values.
fn read_overrides(overrides: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let one = |(path, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let path: String = path.extract()?;
        // TOML has no integers beyond 2^63, and keys have 128 bits.
        let value = if path == "key" {
            quoted(&to_key(&value)?.to_hex())
        } else {
            to_toml(&value)?
        };
        Ok((path, value))
    };
    overrides.iter().map(one).collect()
}

fn read_failed(file: &str, error: &io::Error) -> PyErr {
    let sentence = format!(
        "cannot read {file:?}: {error}; give a path to a spec file, or its text of several lines"
    );
    match error.kind() {
        // The class that Python itself would raise, so that callers can expect it.
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(sentence),
        _ => PyOSError::new_err(sentence),
    }
}

/// A world to simulate: what each action gives, in the user's units.
#[pyclass(name = "World", module = "debora", frozen)]
pub struct PyWorld {
    kind: &'static str,
    problem: Arc<debora::Problem>,
    simulated: Simulated,
}

#[pymethods]
impl PyWorld {
    /// bernoulli, beta, discrete, table or random.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The world's key, as a number.
    #[getter]
    fn key(&self) -> u128 {
        key_number(&self.simulated.key.to_hex())
    }

    /// True means: a row for the reward and one for each cost, a column for each action. Of random worlds, those of the first.
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = self.simulated.world.means().iter().enumerate();
        let row = |(quantity, row): (usize, &Vec<f64>)| {
            row.iter()
                .map(|&mean| self.problem.quantity(quantity).range.to_user(mean))
                .collect::<Vec<f64>>()
        };
        let means: Vec<f64> = rows.flat_map(row).collect();
        means
            .to_pyarray(py)
            .reshape([self.problem.quantities(), self.problem.actions().len()])
    }

    /// The reward and the costs of an action's pull number `pull`, from 0, in one member of a pair.
    #[pyo3(signature = (action, pull, *, pair = 0, member = 0))]
    fn pull<'py>(
        &self,
        py: Python<'py>,
        action: u32,
        pull: u64,
        pair: u64,
        member: u64,
    ) -> PyResult<(f64, Bound<'py, PyTuple>)> {
        let actions = self.problem.actions().len();
        if action as usize >= actions {
            return Err(Error::new_err(format!(
                "action {action} does not exist; actions are 0 to {}",
                actions - 1
            )));
        }
        // Worlds draw on the unit scale.
        let mut values = vec![0.0; self.problem.quantities()];
        self.simulated.world.pull(
            self.simulated.key.derive(pair, member),
            action,
            pull,
            &mut values,
        );
        for (quantity, value) in values.iter_mut().enumerate() {
            *value = self.problem.quantity(quantity).range.to_user(*value);
        }
        Ok((values[0], PyTuple::new(py, &values[1..])?))
    }

    fn __repr__(&self) -> String {
        world_repr(self.kind)
    }
}

fn world_repr(kind: &str) -> String {
    format!("World(kind='{kind}')")
}
