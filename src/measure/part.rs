//! Parts of a measurement as they were measured, and what the whole found.

use serde::{Deserialize, Serialize};

use crate::lab::LabError;
use crate::lab::metrics::{Run, checkpoints};
use crate::lab::part::PartPairs;
use crate::lab::summary::{Broken, Promise, Summary};
use crate::measure::difference::DifferentFact;
use crate::measure::{DEBORA, FirstRun, MeasureError, Measurement, WorldGap};

/// A measurement and what was measured of it: the content of a shard's file, whose field names stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What was asked.
    // Frozen, like the names below: files that exist have them.
    #[serde(rename = "job")]
    pub measurement: Measurement,
    /// What a person must know first.
    pub warnings: Vec<String>,
    /// Whether the safe strategy's true margins are smaller than the stated ones.
    pub premise_false: bool,
    /// What the horizon sees of the world.
    // Absent from files that older versions wrote.
    #[serde(default)]
    pub gaps: Vec<WorldGap>,
    /// Pair 0's first run; in the part that has it.
    #[serde(rename = "story")]
    pub first_run: Option<FirstRun>,
    /// Its pairs.
    #[serde(rename = "shard")]
    pub pairs: PartPairs,
}

/// A whole measurement, summed up.
pub struct Findings {
    /// Player by player; in a comparison debora first.
    pub summaries: Vec<(String, Summary)>,
    /// The promises that debora was measured to break.
    pub broken: Vec<Broken>,
}

impl Part {
    /// The content of a shard's file: floats are written so that they are read back to the bit.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string(self).expect("numbers, texts and lists");
        text + "\n"
    }

    /// The whole, from parts in any order. Parts may overlap where they agree.
    pub fn merge(parts: Vec<Part>) -> Result<Part, MeasureError> {
        let names: Vec<String> = (1..=parts.len())
            .map(|number| format!("shard number {number}"))
            .collect();
        Self::merge_named(&names, parts)
    }

    /// The same; errors call the parts by these names.
    pub fn merge_named(names: &[String], mut parts: Vec<Part>) -> Result<Part, MeasureError> {
        for (name, part) in names.iter().zip(&parts) {
            part.check_shape(name)?;
            // A fingerprint says only that something differs, so first what a person would look for.
            if part.pairs.fingerprint != parts[0].pairs.fingerprint
                && let Some(differing) = parts[0].measurement.difference(&part.measurement)
            {
                let DifferentFact { what, values } = differing;
                let [one, other] = values;
                let reason = format!("{} has {what} {one}, {name} has {other}", names[0]);
                return Err(LabError::PartMerge { reason }.into());
            }
        }
        let pairs: Vec<PartPairs> = parts.iter().map(|part| part.pairs.clone()).collect();
        let pairs = PartPairs::merge_named(names, &pairs)?;
        let first_run = parts.iter_mut().find_map(|part| part.first_run.take());
        let first = parts.swap_remove(0);
        Ok(Part {
            first_run,
            pairs,
            ..first
        })
    }

    /// Every run must have the numbers the spec asks for: a file edited by hand may not.
    fn check_shape(&self, name: &str) -> Result<(), MeasureError> {
        let pairs = &self.pairs;
        let problem = self.measurement.spec.problem();
        let costs = problem.thresholds().len();
        let checkpoints = checkpoints(problem.horizon()).len();
        // Where no strategy is safe there is no regret, and so no curve of it.
        let fits = |run: &Run| {
            let regret = run.regret_curve.len();
            run.violations.len() == costs
                && run.violation_curve.len() == checkpoints
                && (regret == checkpoints || (regret == 0 && run.regret.is_none()))
        };
        let mut runs = pairs
            .players
            .iter()
            .flat_map(|(_, pairs)| pairs)
            .flat_map(|pair| &pair.runs);
        if pairs.players.is_empty() || pairs.total == 0 || !runs.all(fits) {
            let name = name.to_owned();
            return Err(MeasureError::PartShape { name });
        }
        Ok(())
    }

    /// What a whole measurement found.
    pub fn findings(&self) -> Findings {
        let plan = &self.measurement.spec.plan;
        let summaries: Vec<(String, Summary)> = self
            .pairs
            .players
            .iter()
            .map(|(name, pairs)| (name.clone(), Summary::of(plan, pairs)))
            .collect();
        // Only debora has a plan to keep: what others promise is not in it.
        let own = summaries.iter().find(|(name, _)| name == DEBORA);
        let mut broken = own.map_or(Vec::new(), |(_, summary)| summary.broken(plan));
        if self.premise_false {
            // What rests on the safe strategy's margins is not promised then.
            broken.retain(|broken| broken.promise == Promise::Identical);
        }
        Findings { summaries, broken }
    }
}
