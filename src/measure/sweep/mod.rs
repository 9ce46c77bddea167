//! A measurement at every point of a grid: the same keys, worlds and pairs everywhere, so that points differ by their parameters
//! alone.
//!
//! ```text
//! specs, Over.. -> SpecGrid (a spec a point) -> Sweep (a Measurement a point) -> Parts -> Swept -> json, answer, latex, lines
//! ```

mod decimal;
mod lines;
mod over;
mod swept;

use serde::{Deserialize, Serialize};

use crate::measure::difference::{DifferentFact, first_differing};
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
pub struct SpecGrid {
    /// The names of the parameters: `spec` first, if there are several.
    pub names: Vec<String>,
    /// The values and the spec of each point, the last parameter changing first.
    pub points: Vec<(Vec<String>, SpecText)>,
}

impl SpecGrid {
    /// Every spec at every combination of values.
    pub fn of(specs: &[SpecText], over: &[Over]) -> Result<Self, MeasureError> {
        check(specs, over)?;
        let several = specs.len() > 1;
        let mut names = Vec::from_iter(several.then(|| SPEC.to_owned()));
        names.extend(over.iter().map(|over| over.name.clone()));
        let mut points = Vec::new();
        for (spec, label) in specs.iter().zip(labels(specs)) {
            for values in combinations(over) {
                let paths = over.iter().map(|over| over.path.clone());
                // After those of the spec, as the later wins: a point is the spec with one --set more for each parameter.
                let overrides = spec.overrides.iter().cloned();
                let overrides = overrides.chain(paths.zip(values.clone())).collect();
                let at_point = SpecText::parse(spec.text.clone(), spec.file.clone(), overrides)?;
                let label = several.then(|| label.clone());
                points.push((label.into_iter().chain(values).collect(), at_point));
            }
        }
        Ok(Self { names, points })
    }
}

impl Sweep {
    /// What is measured of each spec of a grid.
    pub fn of(
        grid: SpecGrid,
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

    /// What another sweep has otherwise.
    pub fn difference(&self, other: &Self) -> Option<DifferentFact> {
        let names = [self, other].map(|sweep| sweep.names.join(", "));
        if let Some(difference) = first_differing([("parameters", names)]) {
            return Some(difference);
        }
        let points = || self.points.iter().zip(&other.points);
        // Values before what is measured there: another grid has other specs throughout.
        let mut values = points().map(|(one, two)| [one, two].map(|point| point.values.join(", ")));
        let values = values.find_map(|values| first_differing([("values", values)]));
        let counts = [self, other].map(|sweep| sweep.points.len().to_string());
        values
            .or_else(|| first_differing([("number of points", counts)]))
            .or_else(|| {
                points().find_map(|(one, two)| one.measurement.difference(&two.measurement))
            })
    }
}

fn check(specs: &[SpecText], over: &[Over]) -> Result<(), MeasureError> {
    let fault = |text: &str, reason: &str| {
        Err(MeasureError::Over {
            text: text.to_owned(),
            reason: reason.to_owned(),
        })
    };
    // By what they replace: one may be named by its path, the other by what is short for it.
    if let Some(place) = repeated(over, |over| &over.path) {
        return fault(
            &over[place].name,
            "it is there twice; give all its values at once",
        );
    }
    if let Some(place) = repeated(specs, |spec| &spec.file) {
        return fault(&specs[place].file, "the spec is there twice; give it once");
    }
    let counts = over.iter().map(|over| over.values.len());
    let points = counts.fold(specs.len(), usize::saturating_mul);
    if points > POINTS_MAX {
        let names: Vec<&str> = over.iter().map(|over| &*over.name).collect();
        return fault(
            &names.join(", "),
            &format!("the grid has {points} points, more than {POINTS_MAX}; give fewer values"),
        );
    }
    Ok(())
}

/// What tells specs apart: their files, without the folders that all of them are in. Long paths would fill tables and legends.
fn labels(specs: &[SpecText]) -> Vec<String> {
    let first = specs.first().map_or("", |spec| &spec.file);
    let folders = first.match_indices('/').map(|(place, _)| place + 1);
    let is_shared = |end: &usize| {
        let folder = &first[..*end];
        specs.iter().all(|spec| spec.file.starts_with(folder))
    };
    let shared = folders.take_while(is_shared).last().unwrap_or(0);
    let files = specs.iter().map(|spec| spec.file[shared..].to_owned());
    files.collect()
}

/// The place of the first entry whose name an earlier one has.
fn repeated<T>(entries: &[T], name: impl Fn(&T) -> &String) -> Option<usize> {
    (0..entries.len()).find(|&place| {
        let before = &entries[..place];
        before
            .iter()
            .any(|other| name(other) == name(&entries[place]))
    })
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
