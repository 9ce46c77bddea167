//! Grids of specs, and what was measured on them.

use debora::measure::curves::CurveKind;
use debora::measure::{Over, SpecGrid, Swept, SweptPoint, answer, latex};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::measure_refused;
use crate::measure::matrix;
use crate::part::PyPart;
use crate::spec::PySpec;
use crate::value::{answer_items, to_python, to_toml};

/// Every spec at every combination of values.
#[pyclass(name = "Grid", module = "debora._debora", frozen)]
pub struct PyGrid {
    inner: SpecGrid,
}

#[pymethods]
impl PyGrid {
    #[new]
    fn new(specs: Vec<PyRef<'_, PySpec>>, over: &Bound<'_, PyDict>) -> PyResult<Self> {
        let specs: Vec<_> = specs.iter().map(|spec| spec.spec_text.clone()).collect();
        let over = over.iter().map(|(name, values)| parameter(&name, &values));
        let over = over.collect::<PyResult<Vec<Over>>>()?;
        Ok(Self {
            inner: SpecGrid::of(&specs, &over).map_err(measure_refused)?,
        })
    }

    /// The names of the parameters.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names.clone()
    }

    /// The spec of each point.
    #[getter]
    fn specs(&self) -> Vec<PySpec> {
        let points = self.inner.points.iter();
        points
            .map(|(_, spec)| PySpec {
                spec_text: spec.clone(),
            })
            .collect()
    }

    /// What was found, from a whole part of each point.
    fn swept(&self, parts: Vec<PyRef<'_, PyPart>>) -> PySwept {
        // One a point, as the caller has it from `specs`.
        assert_eq!(parts.len(), self.inner.points.len());
        let mut inner = Swept::new(&self.inner.names);
        for ((values, _), part) in self.inner.points.iter().zip(parts) {
            inner
                .points
                .push(SweptPoint::of(values.clone(), &part.inner));
        }
        PySwept { inner }
    }
}

/// A list of values, or a text of them as the program takes it.
fn parameter(name: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<Over> {
    let name: String = name.extract()?;
    let over = match values.cast::<PyString>() {
        Ok(text) => Over::parse(&format!("{name}={}", text.to_str()?)),
        Err(_) => {
            let values = values.try_iter()?.map(|value| as_typed(&value?));
            Over::of(&name, values.collect::<PyResult<Vec<String>>>()?)
        }
    };
    over.map_err(measure_refused)
}

/// A value as it is typed behind `--over`.
fn as_typed(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        // Words without quotes, so that both have the same text.
        Ok(word) => Ok(word.to_str()?.to_owned()),
        Err(_) => to_toml(value),
    }
}

/// All points, measured.
#[pyclass(name = "Swept", module = "debora._debora", frozen)]
pub struct PySwept {
    inner: Swept,
}

#[pymethods]
impl PySwept {
    /// Document and answer.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("document", to_python(py, &self.inner.document())?)?;
        found.set_item("answer", answer_items(py, &answer::swept(&self.inner))?)?;
        let reward = self.inner.points.first().map_or("", |point| &point.reward);
        found.set_item("reward", reward)?;
        Ok(found)
    }

    /// The table for papers.
    fn latex(&self) -> String {
        latex::swept(&self.inner)
    }

    /// The lines of a figure: `axis` with its name, ends, scale and words; `lines` with name, colour and dashes, and points; `promised`. None where
    /// there is no such figure.
    fn lines<'py>(&self, py: Python<'py>, kind: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let kind = match kind {
            "regret" => CurveKind::Regret,
            "violation" => CurveKind::Violation,
            _ => CurveKind::Identical,
        };
        let Some(found) = self.inner.lines(kind) else {
            return Ok(None);
        };
        let drawn = PyDict::new(py);
        drawn.set_item("name", &found.axis.name)?;
        drawn.set_item("is_logarithmic", found.axis.is_logarithmic)?;
        drawn.set_item("words", &found.axis.words)?;
        let mut lines = Vec::new();
        for line in &found.lines {
            let points = line.points.iter().map(|(x, y, band)| {
                // What matplotlib leaves out.
                let [low, high] = band.unwrap_or([f64::NAN; 2]);
                [*x, *y, low, high]
            });
            let points: Vec<[f64; 4]> = points.collect();
            let rows = points.iter().map(|row| &row[..]).collect();
            lines.push((&line.name, line.look, matrix(py, rows, 4)?));
        }
        drawn.set_item("lines", lines)?;
        drawn.set_item("promised", &found.promised)?;
        Ok(Some(drawn))
    }
}
