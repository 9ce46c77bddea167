//! What a sweep found: a few numbers and curves of each point, so that a thousand pairs a point need no room.

use serde_json::{Map, Value, json};

use crate::VALUES_VERSION;
use crate::lab::summary::{Broken, Summary};
use crate::measure::curves::{CurveKind, CurvePoint};
use crate::measure::{Part, json as documents};
use crate::problem::Policy;

/// All points of a sweep, measured.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The names of the parameters.
    pub names: Vec<String>,
    /// In the order of the grid.
    pub points: Vec<SweptPoint>,
}

/// What was found at a point.
#[derive(Clone, Debug)]
pub struct SweptPoint {
    /// The value of each parameter.
    pub values: Vec<String>,
    /// The document that the single measurement has.
    pub document: Value,
    /// Player by player; debora first.
    pub rows: Vec<SweptRow>,
    /// The promises that debora was measured to break.
    pub broken: Vec<Broken>,
    /// What a person must know first.
    pub warnings: Vec<String>,
    /// The name of the reward.
    pub reward: String,
    /// Whether it has limits to keep.
    pub has_costs: bool,
    /// Its policy.
    pub policy: Policy,
}

/// A player at a point.
#[derive(Clone, Debug)]
pub struct SweptRow {
    /// Its name.
    pub player: String,
    /// On the unit scale.
    pub summary: Summary,
    /// The length of the reward's range: regret in units is so many times that of the summary.
    pub span: f64,
    /// Regret, violation and identical pairs by round.
    curves: [Option<Vec<CurvePoint>>; 3],
}

const KINDS: [CurveKind; 3] = [
    CurveKind::Regret,
    CurveKind::Violation,
    CurveKind::Identical,
];

impl SweptRow {
    /// A curve over rounds, where there is one.
    pub fn curve(&self, kind: CurveKind) -> Option<&[CurvePoint]> {
        let place = KINDS.iter().position(|other| *other == kind)?;
        self.curves[place].as_deref()
    }

    /// Mean regret in the reward's units; infinite where no strategy is safe.
    pub fn regret(&self) -> f64 {
        let regret = self.summary.regret.as_ref();
        regret.map_or(f64::INFINITY, |regret| regret.spread.mean * self.span)
    }
}

impl SweptPoint {
    /// Of a whole measurement.
    pub fn of(values: Vec<String>, part: &Part) -> Self {
        let findings = part.findings();
        let problem = part.measurement.spec.problem();
        let reward = problem.quantity(0);
        let document = documents::measured(part, &findings);
        let rows = findings.summaries.into_iter().enumerate();
        let row = |(place, (player, summary)): (usize, (String, Summary))| SweptRow {
            player,
            summary,
            span: reward.range.span(),
            curves: KINDS.map(|kind| part.curve(place, kind)),
        };
        Self {
            values,
            document,
            rows: rows.map(row).collect(),
            broken: findings.broken,
            warnings: part.warnings.clone(),
            reward: reward.name.clone(),
            has_costs: !problem.thresholds().is_empty(),
            policy: problem.policy(),
        }
    }

    /// The value of a parameter.
    pub(super) fn value(&self, place: usize) -> &str {
        &self.values[place]
    }
}

impl Swept {
    /// Before the first point.
    pub fn new(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            points: Vec::new(),
        }
    }

    /// Whether debora was measured to break a promise at some point.
    pub fn is_broken(&self) -> bool {
        self.points.iter().any(|point| !point.broken.is_empty())
    }

    /// The names of all players, in the order in which they first appear.
    pub fn players(&self) -> Vec<&str> {
        let mut players = Vec::new();
        for row in self.points.iter().flat_map(|point| &point.rows) {
            if !players.contains(&&*row.player) {
                players.push(&*row.player);
            }
        }
        players
    }

    /// A parameter's values, in the order in which they first appear.
    pub fn values(&self, place: usize) -> Vec<&str> {
        let mut values = Vec::new();
        for point in &self.points {
            if !values.contains(&point.value(place)) {
                values.push(point.value(place));
            }
        }
        values
    }

    /// The document of the JSON contract: the single measurement's at each point.
    pub fn document(&self) -> Value {
        let parameters: Vec<Value> = self
            .names
            .iter()
            .enumerate()
            .map(|(place, name)| {
                let values = self.values(place).into_iter().map(value);
                json!({ "name": name, "values": values.collect::<Vec<Value>>() })
            })
            .collect();
        let point = |point: &SweptPoint| {
            let values = self
                .names
                .iter()
                .cloned()
                .zip(point.values.iter().map(|text| value(text)));
            json!({ "values": values.collect::<Map<String, Value>>(), "measured": point.document })
        };
        let points: Vec<Value> = self.points.iter().map(point).collect();
        json!({ "parameters": parameters, "points": points, "values_version": VALUES_VERSION })
    }
}

/// A number as a number, anything else as it was written.
fn value(text: &str) -> Value {
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(whole), _) => json!(whole),
        // Infinite for a text such as inf, which JSON cannot say.
        (_, Ok(number)) if number.is_finite() => json!(number),
        _ => json!(text),
    }
}
