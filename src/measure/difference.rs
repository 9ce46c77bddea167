//! What two measurements have otherwise, and whether a part is of one: so that work is only continued where it fits.

use crate::VALUES_VERSION;
use crate::measure::{MeasureError, Measurement, OpenTable, Part, SpecText};

/// What is asked for, and what is there instead: the middle of a sentence.
pub(super) fn differing(what: &str, asked: &str, there: &str) -> String {
    format!("the {what}: {asked} instead of {there}")
}

/// The first of these facts that differs: its name, what is asked for, what is there.
pub(super) fn first_differing<const N: usize>(facts: [(&str, [String; 2]); N]) -> Option<String> {
    let found = facts.iter().find(|(_, [asked, there])| asked != there);
    found.map(|(what, [asked, there])| differing(what, asked, there))
}

impl Measurement {
    /// What another measurement has otherwise, in a sentence's middle.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let both = |fact: &dyn Fn(&Self) -> String| [fact(self), fact(other)];
        // In the order in which a person would look for the mistake: what was typed, then what the file says.
        let found = first_differing([
            ("verb", both(&|one| one.verb.name().to_owned())),
            ("number of pairs", both(&|one| one.pairs.to_string())),
            ("players", both(&|one| one.players.join(", "))),
            ("simulator", both(&|one| format!("{:?}", one.simulator))),
            ("spec", both(&|one| one.spec.file.clone())),
            ("replaced values", both(&|one| sets(&one.spec))),
            ("other world", both(&|one| other_text(one))),
        ]);
        found.or_else(|| differing_line(&self.spec, &other.spec))
    }

    /// Whether a part is one of this measurement, as it would be measured today: of the same spec, flags, world and version.
    pub fn check_part(&self, part: &Part, open: &OpenTable) -> Result<(), MeasureError> {
        let fault = |reason: String| MeasureError::PartOther { reason };
        if let Some(difference) = self.difference(&part.measurement) {
            return Err(fault(difference));
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
            .map_or(Ok(()), |difference| Err(fault(difference)))
    }
}

/// The first line of a spec that differs.
fn differing_line(ours: &SpecText, theirs: &SpecText) -> Option<String> {
    let mut lines = (1..).zip(ours.text.lines().zip(theirs.text.lines()));
    if let Some((number, (one, two))) = lines.find(|(_, (one, two))| one != two) {
        let what = format!("text of {}, line {number}", ours.file);
        return Some(differing(&what, &format!("{one:?}"), &format!("{two:?}")));
    }
    (ours.text != theirs.text)
        .then(|| format!("the text of {}, which is longer or shorter", ours.file))
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
