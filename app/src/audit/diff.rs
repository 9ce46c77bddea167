//! Where two experiments diverge, and why: which estimate fell into another cell of the grid they share.
//!
//! ```text
//! edge between cells i and i + 1 = (offset + i + 1) * cell
//! ```
//!
//! With one spec and one key, decisions depend on the data through the cells of estimates and the results of clear tests
//! alone: as long as all means fall into the same cells, and all tests have the same result, the strategies are the same bit
//! for bit, and so are the decisions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use debora::record::ClearTest;
use debora::spec::Spec;
use debora::{EpochRecord, Estimate, Kind, Problem};
use serde::Serialize;

use super::source::Log;
use super::spec_diff::{SpecDifference, differences};
use crate::log::{Heading, Line};

/// Two experiments beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Their names.
    pub experiments: [String; 2],
    /// In what their specs differ.
    pub specs: Vec<SpecDifference>,
    /// Whether they have one key; `None` if that cannot be known yet.
    pub same_key: Option<bool>,
    /// Rounds with the same decision in both, from the first on.
    pub rounds: u64,
    /// Epochs that both have reached, up to the one where they diverge.
    pub epochs: u64,
    /// Estimates that were made by both, up to there.
    pub estimates: u64,
    /// Of these, in different cells.
    pub estimates_diverged: u64,
    /// Rounds decided in all, where they do not diverge.
    pub decided: [u64; 2],
    /// Where they diverge.
    pub divergence: Option<Divergence>,
}

/// Where two experiments diverge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// The epoch.
    pub epoch: u64,
    /// Its first round.
    pub first_round: u64,
    /// The names of the actions.
    pub actions: Vec<String>,
    /// The strategies.
    pub strategies: [Vec<f64>; 2],
    /// The estimates in force that lie in different cells of one grid.
    pub diverging_estimates: Vec<DivergingEstimate>,
    /// The clear test that had another result, if one did.
    pub diverging_test: Option<DivergingTest>,
    /// The first round with different actions, among those of this epoch that both have decided.
    pub first_different: Option<(u64, [String; 2])>,
}

/// A clear test with different results. Values are in the reward's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DivergingTest {
    /// Its stage, from 0.
    pub stage: u32,
    /// The rounds of each action that it looks at.
    pub count: u64,
    /// The actions that were ahead.
    pub leaders: [String; 2],
    /// By how much.
    pub leads: [f64; 2],
    /// What both leads were compared with.
    pub threshold: f64,
    /// How far each lead is from it.
    pub distances: [f64; 2],
    /// Which of the two committed.
    pub committed: [bool; 2],
}

/// An estimate that fell into different cells. Values are in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DivergingEstimate {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// The quantity.
    pub quantity: String,
    /// The epoch at whose start it was made.
    pub epoch: u64,
    /// From how many samples.
    pub count: u64,
    /// The means.
    pub means: [f64; 2],
    /// The cells' numbers.
    pub cells: [i64; 2],
    /// The edge of each mean's cell that lies towards the other's: one and the same if the cells are neighbours.
    pub edges: [f64; 2],
    /// How far each mean is from that edge.
    pub distances: [f64; 2],
    /// The same in cells.
    pub distances_in_cells: [f64; 2],
}

/// Compares two logs up to the first epoch where they diverge.
pub fn diff(logs: [Log; 2]) -> Result<Diff> {
    // Both are read once and side by side, an epoch at a time: logs may be far larger than memory.
    let [one, two] = logs;
    let mut walks = [
        LogWalk::begin(one).context("the first log")?,
        LogWalk::begin(two).context("the second log")?,
    ];
    let mut diff = Diff {
        experiments: [0, 1].map(|side| walks[side].heading.id.clone()),
        specs: spec_differences(&walks),
        same_key: same_key(&walks[0].heading, &walks[1].heading),
        rounds: 0,
        epochs: 0,
        estimates: 0,
        estimates_diverged: 0,
        decided: [0, 0],
        divergence: None,
    };
    while let [Some(one), Some(two)] = [walks[0].next_epoch()?, walks[1].next_epoch()?] {
        diff.epochs += 1;
        diff.count_estimates(&one, &two);
        let same = course(&one) == course(&two);
        let first_different =
            diff.compare_decisions(&mut walks, one.first_round == two.first_round)?;
        // A decision is a function of key, strategy and round.
        if same && first_different.is_some() && diff.specs.is_empty() {
            diff.same_key = Some(false);
        }
        if !same || first_different.is_some() {
            diff.divergence = Some(Divergence::of(&walks, one, two, first_different));
            return Ok(diff);
        }
    }
    diff.decided = [walks[0].read_on()?, walks[1].read_on()?];
    Ok(diff)
}

impl Diff {
    /// Counts the estimates made at the start of an epoch. Different offsets mean different keys, revealed or not.
    fn count_estimates(&mut self, one: &EpochRecord, two: &EpochRecord) {
        // A test's threshold comes from the key and its stage alone, so it tells as much as an offset does.
        if let (None, Some(one), Some(two)) = (self.same_key, &one.test, &two.test)
            && one.stage == two.stage
        {
            self.same_key = Some(one.uniform == two.uniform);
        }
        for (one, two) in one.estimates.iter().zip(&two.estimates) {
            self.estimates += 1;
            self.estimates_diverged += u64::from(one.index != two.index);
            // The offset of a grid is a function of the key and of what is estimated, from how many rounds: so it gives the key
            // away before that is revealed, though not the key itself.
            if self.same_key.is_none()
                && (one.action, one.quantity, one.count) == (two.action, two.quantity, two.count)
            {
                self.same_key = Some(one.offset == two.offset);
            }
        }
    }

    /// Compares the decisions of an epoch, as far as both go: the first round with different actions.
    fn compare_decisions(
        &mut self,
        walks: &mut [LogWalk; 2],
        aligned: bool,
    ) -> Result<Option<(u64, [u32; 2])>> {
        // Epochs that begin at different rounds cannot be walked side by side.
        if !aligned {
            return Ok(None);
        }
        let [one, two] = walks;
        while let [Some(first), Some(second)] = [one.next_decision()?, two.next_decision()?] {
            if first != second {
                return Ok(Some((self.rounds + 1, [first, second])));
            }
            self.rounds += 1;
        }
        Ok(None)
    }
}

impl Divergence {
    fn of(
        walks: &[LogWalk; 2],
        one: EpochRecord,
        two: EpochRecord,
        first_different: Option<(u64, [u32; 2])>,
    ) -> Self {
        let [first, second] = walks;
        let problem = &first.spec.problem;
        // All estimates in force, not those of this epoch alone: an older one may have differed without any effect until here.
        let pairs = first
            .estimates
            .iter()
            .filter_map(|(place, one)| Some((one, second.estimates.get(place)?)));
        let name =
            |walk: &LogWalk, action: u32| walk.spec.problem.actions()[action as usize].clone();
        Self {
            epoch: one.epoch,
            first_round: one.first_round,
            actions: problem.actions().to_vec(),
            diverging_test: DivergingTest::of(walks, &one, &two),
            strategies: [one.strategy, two.strategy],
            diverging_estimates: pairs
                .filter_map(|(one, two)| DivergingEstimate::of(problem, one, two))
                .collect(),
            first_different: first_different
                .map(|(round, [one, two])| (round, [name(first, one), name(second, two)])),
        }
    }
}

impl DivergingTest {
    /// `None` if no test was made, or both had the same result, or their thresholds differ.
    fn of(walks: &[LogWalk; 2], one: &EpochRecord, two: &EpochRecord) -> Option<Self> {
        let tests = [one.test.as_ref()?, two.test.as_ref()?];
        // With other keys or other plans there is no threshold that both were held against.
        let shared = |test: &ClearTest| (test.stage, test.count, test.threshold.to_bits());
        let result = |test: &ClearTest| test.passed.then_some(test.leader);
        if shared(tests[0]) != shared(tests[1]) || result(tests[0]) == result(tests[1]) {
            return None;
        }
        let problem = &walks[0].spec.problem;
        let span = problem.quantity(0).range.span();
        let [leads, thresholds] =
            [0, 1].map(|which| tests.map(|test| test.gap_and_threshold()[which] * span));
        let names = |side: usize| {
            let actions = walks[side].spec.problem.actions();
            actions[tests[side].leader as usize].clone()
        };
        Some(Self {
            stage: tests[0].stage,
            count: tests[0].count,
            leaders: [names(0), names(1)],
            leads,
            threshold: thresholds[0],
            distances: leads.map(|lead| (lead - thresholds[0]).abs()),
            committed: tests.map(|test| test.passed),
        })
    }
}

impl DivergingEstimate {
    /// `None` if both lie in one cell, or on different grids.
    fn of(problem: &Problem, one: &Estimate, two: &Estimate) -> Option<Self> {
        let cells = [one.index?, two.index?];
        if cells[0] == cells[1] || (one.offset, one.cell) != (two.offset, two.cell) {
            return None;
        }
        // The lower mean's cell ends at the edge above it, the higher one's begins at the edge below it.
        let edges = [one.nearest_edge(cells[1])?, two.nearest_edge(cells[0])?];
        let away = [(edges[0] - one.mean).abs(), (edges[1] - two.mean).abs()];
        let quantity = problem.quantity(one.quantity as usize);
        Some(Self {
            action: one.action,
            name: problem.actions()[one.action as usize].clone(),
            quantity: quantity.name.clone(),
            epoch: one.epoch,
            count: one.count,
            means: [one.mean, two.mean].map(|mean| quantity.range.to_user(mean)),
            cells,
            edges: edges.map(|edge| quantity.range.to_user(edge)),
            distances: away.map(|away| away * quantity.range.span()),
            distances_in_cells: away.map(|away| away / one.cell),
        })
    }
}

/// What two runs that go the same way have in common at the start of an epoch.
fn course(record: &EpochRecord) -> (u64, bool, Vec<u64>) {
    // A run that commits plays its leader for good, one that goes on may do so for an epoch: no later epoch of theirs can be
    // compared, so the difference is named here.
    let commits = record.kind == Kind::Commit;
    // By bits: a probability that differs in its last one is another strategy, and some round will tell.
    let strategy = record
        .strategy
        .iter()
        .map(|probability| probability.to_bits());
    (record.first_round, commits, strategy.collect())
}

/// In what two experiments differ before any data: their specs, and the version of the values.
fn spec_differences(walks: &[LogWalk; 2]) -> Vec<SpecDifference> {
    let mut specs = differences(&walks[0].spec, &walks[1].spec);
    let versions = [0, 1].map(|side| walks[side].heading.values_version);
    // Programs with other values decide otherwise from the same spec and key.
    if versions[0] != versions[1] {
        let [first, second] = versions.map(|version| Some(version.to_string()));
        specs.push(SpecDifference {
            what: "values version".into(),
            first,
            second,
        });
    }
    specs
}

/// Whether two experiments have one key, as far as their logs tell.
fn same_key(one: &Heading, two: &Heading) -> Option<bool> {
    match (&one.key, &two.key) {
        (Some(one), Some(two)) => Some(one == two),
        _ if one.key_hash == two.key_hash => Some(true),
        _ => None,
    }
}

/// A log, epoch by epoch.
struct LogWalk {
    log: Log,
    heading: Heading,
    spec: Spec,
    /// A line that was read and not used.
    held: Option<Line>,
    /// The actions of the request that is being read.
    actions: std::vec::IntoIter<u32>,
    /// Rounds decided, as far as it was read.
    decided: u64,
    /// The latest estimate of each quantity of each action.
    estimates: BTreeMap<(u32, u32), Estimate>,
}

impl LogWalk {
    fn begin(mut log: Log) -> Result<Self> {
        let heading = match log.next().transpose()? {
            Some(Line::Experiment(heading)) => *heading,
            Some(line) => bail!(
                "it begins with {:?} and not with its experiment",
                line.name()
            ),
            None => bail!("it is empty"),
        };
        Ok(Self {
            spec: Spec::parse(&heading.spec, &heading.id)?,
            log,
            heading,
            held: None,
            actions: Vec::new().into_iter(),
            decided: 0,
            estimates: BTreeMap::new(),
        })
    }

    fn next_line(&mut self) -> Result<Option<Line>> {
        match self.held.take() {
            Some(line) => Ok(Some(line)),
            None => self.log.next().transpose(),
        }
    }

    /// Reads to the next epoch.
    fn next_epoch(&mut self) -> Result<Option<EpochRecord>> {
        self.actions = Vec::new().into_iter();
        while let Some(line) = self.next_line()? {
            match line {
                Line::Epoch { record: logged, .. } => {
                    let record = logged.record;
                    let estimates = record.estimates.iter();
                    self.estimates.extend(
                        estimates.map(|estimate| ((estimate.action, estimate.quantity), *estimate)),
                    );
                    self.check(&record)?;
                    return Ok(Some(record));
                }
                Line::Decisions(given) => self.decided += given.actions.len() as u64,
                _ => {}
            }
        }
        Ok(None)
    }

    /// What is looked up by number must be there.
    fn check(&self, record: &EpochRecord) -> Result<()> {
        // A diff does not audit, but a log that was made up must not make it panic.
        let actions = self.spec.problem.actions().len();
        let quantities = self.spec.problem.quantities();
        let known = |estimate: &Estimate| {
            (estimate.action as usize) < actions && (estimate.quantity as usize) < quantities
        };
        let leads = |test: &ClearTest| (test.leader as usize) < actions;
        if record.strategy.len() != actions
            || !record.estimates.iter().all(known)
            || !record.test.iter().all(leads)
        {
            bail!(
                "the record of epoch {} does not fit the spec; `debora audit` says more",
                record.epoch
            );
        }
        Ok(())
    }

    /// The next decision of the epoch, if there is one.
    fn next_decision(&mut self) -> Result<Option<u32>> {
        loop {
            if let Some(action) = self.actions.next() {
                if action as usize >= self.spec.problem.actions().len() {
                    bail!("there is no action {action}; `debora audit` says more");
                }
                return Ok(Some(action));
            }
            match self.next_line()? {
                Some(Line::Decisions(given)) => {
                    self.decided += given.actions.len() as u64;
                    self.actions = given.actions.into_iter();
                }
                // The next epoch's line, perhaps: it is read again by `next_epoch`.
                line => {
                    self.held = line;
                    return Ok(None);
                }
            }
        }
    }

    /// Reads to the end: how many rounds were decided.
    fn read_on(&mut self) -> Result<u64> {
        while self.next_epoch()?.is_some() {}
        Ok(self.decided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where only one of two runs commits, both may play the leader in the next epoch; what follows is different all the same.
    #[test]
    fn a_run_that_commits_goes_another_way_than_one_that_does_not() {
        let problem = Problem::free(["a", "b"], 100_000, 0.5).build().unwrap();
        let engine = debora::Engine::new(problem, debora::Key::from(1u64));
        let mut committed = engine.open_record().clone();
        committed.kind = Kind::Commit;
        assert_eq!(committed.strategy, engine.open_record().strategy);
        assert_ne!(course(&committed), course(engine.open_record()));
    }
}
