//! A measurement at every point of a grid: the same keys, worlds and pairs everywhere, so that points differ by their parameters
//! alone.
//!
//! ```text
//! specs, Over.. -> Grid (a spec a point) -> Sweep (a Measurement a point) -> Parts -> Swept -> json, answer, latex, lines
//! ```

mod decimal;
mod lines;
mod over;
mod swept;

use serde::{Deserialize, Serialize};

use crate::measure::{MeasureError, Measurement, SpecText};

pub use lines::{SweptAxis, SweptLine, SweptLines};
pub use over::Over;
pub use swept::{Swept, SweptPoint, SweptRow};

/// The most points: each has a file of its own.
const POINTS_MAX: usize = 10_000;

/// The name of the parameter that tells several specs apart.
const SPEC: &str = "spec";

/// What to measure at each point of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The names of the parameters: `spec` first, if there are several.
    pub names: Vec<String>,
    /// The points, the last parameter changing first.
    pub points: Vec<SweepPoint>,
}

/// A point of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// The value of each parameter.
    pub values: Vec<String>,
    /// What is measured there.
    // The word that the files of parts have.
    #[serde(rename = "job")]
    pub measurement: Measurement,
}

/// The specs of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The names of the parameters: `spec` first, if there are several.
    pub names: Vec<String>,
    /// The values and the spec of each point, the last parameter changing first.
    pub points: Vec<(Vec<String>, SpecText)>,
}

impl Grid {
    /// Every spec at every combination of values.
    pub fn of(specs: &[SpecText], over: &[Over]) -> Result<Self, MeasureError> {
        check(specs, over)?;
        let several = specs.len() > 1;
        let mut names = Vec::from_iter(several.then(|| SPEC.to_owned()));
        names.extend(over.iter().map(|over| over.name.clone()));
        let mut points = Vec::new();
        for spec in specs {
            for values in combinations(over) {
                let paths = over.iter().map(|over| over.path.clone());
                // After those of the spec, as the later wins: a point is the spec with one --set more for each parameter.
                let overrides = spec.overrides.iter().cloned();
                let overrides = overrides.chain(paths.zip(values.clone())).collect();
                let at_point = SpecText::parse(spec.text.clone(), spec.file.clone(), overrides)?;
                let file = several.then(|| spec.file.clone());
                points.push((file.into_iter().chain(values).collect(), at_point));
            }
        }
        Ok(Self { names, points })
    }
}

impl Sweep {
    /// What is measured of each spec of a grid.
    pub fn of(
        grid: Grid,
        mut measurement: impl FnMut(SpecText) -> Result<Measurement, MeasureError>,
    ) -> Result<Self, MeasureError> {
        let mut points = Vec::new();
        for (values, spec) in grid.points {
            points.push(SweepPoint {
                values,
                measurement: measurement(spec)?,
            });
        }
        Ok(Self {
            names: grid.names,
            points,
        })
    }

    /// What another sweep has otherwise, in a sentence's middle.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.names != other.names {
            return Some(differing(
                "parameters",
                &self.names.join(", "),
                &other.names.join(", "),
            ));
        }
        let values = |sweep: &Self| -> Vec<String> {
            sweep
                .points
                .iter()
                .map(|point| point.values.join(", "))
                .collect()
        };
        let (ours, theirs) = (values(self), values(other));
        if let Some((one, two)) = ours.iter().zip(&theirs).find(|(one, two)| one != two) {
            return Some(differing("values", one, two));
        }
        if ours.len() != theirs.len() {
            return Some(differing(
                "number of points",
                &ours.len().to_string(),
                &theirs.len().to_string(),
            ));
        }
        let points = self.points.iter().zip(&other.points);
        points
            .filter_map(|(one, two)| one.measurement.difference(&two.measurement))
            .next()
    }
}

fn check(specs: &[SpecText], over: &[Over]) -> Result<(), MeasureError> {
    let fault = |text: &str, reason: String| MeasureError::Over {
        text: text.to_owned(),
        reason,
    };
    for (place, one) in over.iter().enumerate() {
        if over[..place].iter().any(|other| other.path == one.path) {
            return Err(fault(
                &one.name,
                "it is there twice; give all its values at once".into(),
            ));
        }
    }
    for (place, one) in specs.iter().enumerate() {
        if specs[..place].iter().any(|other| other.file == one.file) {
            return Err(fault(
                &one.file,
                "the spec is there twice; give it once".into(),
            ));
        }
    }
    let points = over.iter().try_fold(specs.len(), |points, over| {
        points.checked_mul(over.values.len())
    });
    match points {
        Some(points) if points <= POINTS_MAX => Ok(()),
        _ => {
            let names: Vec<&str> = over.iter().map(|over| &*over.name).collect();
            let reason = format!("the grid has more than {POINTS_MAX} points; give fewer values");
            Err(fault(&names.join(", "), reason))
        }
    }
}

/// The last parameter changes first.
fn combinations(over: &[Over]) -> Vec<Vec<String>> {
    over.iter().fold(vec![Vec::new()], |before, over| {
        let with = |values: Vec<String>| {
            let next = over.values.iter().cloned();
            next.map(move |value| [values.clone(), vec![value]].concat())
        };
        before.into_iter().flat_map(with).collect()
    })
}

/// The same for both kinds of difference: first what is asked for, then what is there.
pub(super) fn differing(what: &str, asked: &str, there: &str) -> String {
    format!("the {what}: {asked} instead of {there}")
}
