//! What two measurements have otherwise, and whether a part is of one: so that work is only continued where it fits.

use std::fmt::{self, Display, Formatter};

use crate::VALUES_VERSION;
use crate::measure::{MeasureError, Measurement, OpenTable, Part, SpecText};

/// A fact that two measurements have otherwise. Shown as the middle of a sentence.
#[derive(Debug)]
pub struct DifferentFact {
    /// What it is called.
    pub(super) what: String,
    /// What is asked for, and what is there instead.
    pub(super) values: [String; 2],
}

impl Display for DifferentFact {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let [asked, there] = &self.values;
        write!(formatter, "the {}: {asked} instead of {there}", self.what)
    }
}

/// The first of these facts that differs.
pub(super) fn first_differing<const N: usize>(
    facts: [(&str, [String; 2]); N],
) -> Option<DifferentFact> {
    let mut facts = facts.into_iter();
    let found = facts.find(|(_, [asked, there])| asked != there);
    found.map(|(what, values)| DifferentFact {
        what: what.to_owned(),
        values,
    })
}

impl Measurement {
    /// What another measurement has otherwise.
    pub fn difference(&self, other: &Self) -> Option<DifferentFact> {
        let both = |fact: &dyn Fn(&Self) -> String| [fact(self), fact(other)];
        // In the order in which a person would look for the mistake: what was typed, then what the file says.
        let typed = first_differing([
            ("verb", both(&|one| one.verb.name().to_owned())),
            ("number of pairs", both(&|one| one.pairs.to_string())),
            ("players", both(&|one| one.players.join(", "))),
            (
                "simulator",
                both(&|one| format!("{:?}", one.simulator).to_lowercase()),
            ),
            ("other world", both(&|one| other_file(one))),
        ]);
        let said = || {
            let differing = self.spec.spec.difference(&other.spec.spec);
            differing.map(|(what, one, two)| DifferentFact {
                what,
                values: [one, two],
            })
        };
        // Two spellings of the same values are still two texts, and a part carries its text.
        let spelt = || {
            first_differing([
                ("spec", both(&|one| one.spec.file.clone())),
                ("replaced values", both(&|one| sets(&one.spec))),
                ("text of the other world", both(&|one| other_text(one))),
            ])
        };
        typed
            .or_else(said)
            .or_else(spelt)
            .or_else(|| differing_line(&self.spec, &other.spec))
    }

    /// Whether a part is one of this measurement, as it would be measured today: of the same spec, flags, world and version.
    pub fn check_part(&self, part: &Part, open: &OpenTable) -> Result<(), MeasureError> {
        let fault = |reason: String| MeasureError::PartOther { reason };
        if let Some(difference) = self.difference(&part.measurement) {
            return Err(fault(difference.to_string()));
        }
        let other = self.other_world(open)?;
        let fingerprint = self.fingerprint(&self.spec.world(open)?, other.as_ref());
        // A table is not in the spec, and means are drawn by a version of the program.
        if part.pairs.fingerprint != fingerprint {
            return Err(fault(
                "the rows of its table, or the draws of its world".into(),
            ));
        }
        let versions =
            [VALUES_VERSION, part.pairs.values_version].map(|version| version.to_string());
        first_differing([("values version", versions)])
            .map_or(Ok(()), |difference| Err(fault(difference.to_string())))
    }
}

/// The first line of a spec that differs.
fn differing_line(ours: &SpecText, theirs: &SpecText) -> Option<DifferentFact> {
    let lines = |spec: &SpecText| spec.text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (ours_lines, theirs_lines) = (lines(ours), lines(theirs));
    // Behind the end of the shorter there is nothing.
    let line = |lines: &[String], place: usize| {
        lines
            .get(place)
            .map_or("nothing".to_owned(), |line| format!("{line:?}"))
    };
    let most = ours_lines.len().max(theirs_lines.len());
    let place = (0..most).find(|&place| ours_lines.get(place) != theirs_lines.get(place))?;
    let what = format!("text of {}, line {}", ours.file, place + 1);
    let values = [line(&ours_lines, place), line(&theirs_lines, place)];
    Some(DifferentFact { what, values })
}

/// What replaces a spec's values, as it is typed.
fn sets(spec: &SpecText) -> String {
    let sets = spec.overrides.iter();
    let sets: Vec<String> = sets
        .map(|(path, value)| format!("{path}={value}"))
        .collect();
    // An empty text would leave a gap in the sentence.
    if sets.is_empty() {
        "none".to_owned()
    } else {
        sets.join(", ")
    }
}

fn other_text(measurement: &Measurement) -> String {
    let other = measurement.other.as_ref();
    other.map_or("none".to_owned(), |other| other.text.clone())
}

fn other_file(measurement: &Measurement) -> String {
    let other = measurement.other.as_ref();
    other.map_or("none".to_owned(), |other| other.file.clone())
}
