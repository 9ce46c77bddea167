//! Where two experiments diverge, and why: which estimate fell into another cell of the grid they share.
//!
//! ```text
//! edge between cells i and i + 1 = (offset + i + 1) * cell
//! ```
//!
//! With one spec and one key, decisions depend on the data through the cells of estimates and the results of looks and picks
//! alone: as long as all means fall into the same cells, and all tests have the same result, the strategies are the same bit
//! for bit, and so are the decisions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use debora::Plan;
use debora::record::{LookTest, Pick};
use debora::spec::Spec;
use debora::{EpochRecord, Estimate, Kind, Problem};
use serde::Serialize;

use super::check_versions;
use super::promise::{self, PairPromise};
use super::source::Log;
use super::spec_diff::{SpecDifference, differences};
use crate::log::{Heading, Line};

/// Two experiments beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Their names.
    pub experiments: [String; 2],
    /// The names of their actions. What one says of an action is held against what the other says of the one of that name.
    pub actions: [Vec<String>; 2],
    /// In what their specs differ.
    pub specs: Vec<SpecDifference>,
    /// Whether they have one key; `None` if that cannot be known yet.
    pub same_key: Option<bool>,
    /// What was published of each key before its first decision. Salted, so one key has many.
    pub key_hashes: [String; 2],
    /// Which keys are revealed.
    pub keys_revealed: [bool; 2],
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
    /// What rho promises of such a pair, and whether this is within it.
    pub promise: PairPromise,
}

/// Where two experiments diverge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// The epoch.
    pub epoch: u64,
    /// Its first round.
    pub first_round: u64,
    /// The strategies, each over its own experiment's actions.
    pub strategies: [Vec<f64>; 2],
    /// The estimates in force that lie in different cells of one grid.
    pub diverging_estimates: Vec<DivergingEstimate>,
    /// The look that had another result, if one did.
    pub diverging_test: Option<DivergingTest>,
    /// The pick that chose another action, if one did.
    pub diverging_pick: Option<DivergingPick>,
    /// The first round with different actions, among those of this epoch that both have decided.
    pub first_different: Option<(u64, [String; 2])>,
}

/// A look with different results. Leads and thresholds are on the line of means.
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
    pub thresholds: [f64; 2],
    /// How far each lead is from it.
    pub distances: [f64; 2],
    /// Which of the two committed.
    pub committed: [bool; 2],
    /// Means this far apart are at most this probable where both see outcomes of the same distributions.
    pub chance_max: f64,
}

/// A pick of different actions by the same draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DivergingPick {
    /// The rounds of each action that it looks at.
    pub count: u64,
    /// The actions picked.
    pub actions: [String; 2],
    /// Means this far apart are at most this probable where both see outcomes of the same distributions.
    pub chance_max: f64,
}

/// An estimate that fell into different cells. Values are in each side's own units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DivergingEstimate {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// What each side calls the quantity.
    pub quantities: [String; 2],
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
    /// Means this far apart are at most this probable where both see outcomes of the same distributions.
    pub chance_max: f64,
}

/// Compares two logs up to the first epoch where they diverge.
pub fn diff(logs: [Log; 2]) -> Result<Diff> {
    // Both are read once and side by side, an epoch at a time: logs may be far larger than memory.
    let [one, two] = logs;
    let mut walks = [
        LogWalk::begin(one).context("the first log")?,
        LogWalk::begin(two).context("the second log")?,
    ];
    let mut diff = Diff::begin(&walks);
    let matching = matching(&walks);
    while let [Some(one), Some(two)] = [walks[0].next_epoch()?, walks[1].next_epoch()?] {
        diff.epochs += 1;
        diff.count_estimates(&matching, &one, &two);
        let same = walks[0].course(&one) == walks[1].course(&two);
        let aligned = one.first_round == two.first_round;
        let first_different = if aligned {
            diff.compare_decisions(&matching, &mut walks)?
        } else {
            // Epochs that begin at different rounds cannot be walked side by side.
            None
        };
        // A decision is a function of key, strategy and round.
        if same && first_different.is_some() && diff.specs.is_empty() {
            diff.same_key = Some(false);
        }
        if !same || first_different.is_some() {
            let looks = diff.estimates.max(1);
            let divergence = Divergence::of(&walks, &matching, [one, two], looks);
            diff.divergence = Some(divergence.at(&walks, first_different));
            break;
        }
    }
    if diff.divergence.is_none() {
        diff.decided = [walks[0].read_on()?, walks[1].read_on()?];
    }
    diff.promise = promise::of(&diff);
    Ok(diff)
}

/// For each action of the first experiment, the number that the second has for the one of that name.
fn matching(walks: &[LogWalk; 2]) -> Vec<Option<u32>> {
    let [one, two] = [0, 1].map(|side| walks[side].spec.problem.actions());
    let number = |name| (0..).zip(two).find(|(_, other)| *other == name);
    one.iter()
        .map(|name| number(name).map(|(number, _)| number))
        .collect()
}

impl Diff {
    fn begin(walks: &[LogWalk; 2]) -> Self {
        let headings = [0, 1].map(|side| &walks[side].heading);
        let problems = [0, 1].map(|side| &walks[side].spec.problem);
        Self {
            experiments: headings.map(|heading| heading.id.clone()),
            actions: problems.map(|problem| problem.actions().to_vec()),
            specs: differences(&walks[0].spec, &walks[1].spec),
            same_key: same_key(headings[0], headings[1]),
            key_hashes: headings.map(|heading| heading.key_hash.clone()),
            keys_revealed: headings.map(|heading| heading.key.is_some()),
            rounds: 0,
            epochs: 0,
            estimates: 0,
            estimates_diverged: 0,
            decided: [0, 0],
            divergence: None,
            promise: PairPromise::before(problems[0].rho()),
        }
    }

    /// Counts the estimates made at the start of an epoch. Different offsets mean different keys, revealed or not.
    fn count_estimates(&mut self, matching: &[Option<u32>], one: &EpochRecord, two: &EpochRecord) {
        // A test's threshold comes from the key and its stage alone, so it tells as much as an offset does.
        if let (None, Some(one), Some(two)) = (self.same_key, &one.test, &two.test)
            && one.look == two.look
        {
            self.same_key = Some(one.uniform == two.uniform);
        }
        for one in &one.estimates {
            let same = |two: &&Estimate| is_same_estimate(matching, one, two);
            let Some(two) = two.estimates.iter().find(same) else {
                continue;
            };
            self.estimates += 1;
            self.estimates_diverged += u64::from(one.index != two.index);
            // The offset of a grid is a function of the key and of what is estimated, from how many rounds: so it gives the key
            // away before that is revealed, though not the key itself.
            if self.same_key.is_none() && (one.level, one.count) == (two.level, two.count) {
                self.same_key = Some(one.offset == two.offset);
            }
        }
    }

    /// Compares the decisions of an epoch, as far as both go: the first round with different actions.
    fn compare_decisions(
        &mut self,
        matching: &[Option<u32>],
        walks: &mut [LogWalk; 2],
    ) -> Result<Option<(u64, [u32; 2])>> {
        let [one, two] = walks;
        while let [Some(first), Some(second)] = [one.next_decision()?, two.next_decision()?] {
            if matching[first as usize] != Some(second) {
                return Ok(Some((self.rounds + 1, [first, second])));
            }
            self.rounds += 1;
        }
        Ok(None)
    }
}

/// Whether two estimates are of one quantity of one action, by the number and the action's name: with another number, an action has
/// another grid.
fn is_same_estimate(matching: &[Option<u32>], one: &Estimate, two: &Estimate) -> bool {
    matching[one.action as usize] == Some(one.action)
        && (one.action, one.quantity) == (two.action, two.quantity)
}

impl Divergence {
    fn of(
        walks: &[LogWalk; 2],
        matching: &[Option<u32>],
        [one, two]: [EpochRecord; 2],
        looks: u64,
    ) -> Self {
        let problems = [0, 1].map(|side| &walks[side].spec.problem);
        // All estimates in force, not those of this epoch alone: an older one may have differed without any effect until here.
        let pairs = walks[0].estimates.iter().filter_map(|(place, one)| {
            let two = walks[1].estimates.get(place)?;
            is_same_estimate(matching, one, two).then_some((one, two))
        });
        Self {
            epoch: one.epoch,
            first_round: one.first_round,
            diverging_test: DivergingTest::of(problems, [&one, &two]),
            diverging_pick: DivergingPick::of(problems, [&one, &two]),
            diverging_estimates: pairs
                .filter_map(|(one, two)| DivergingEstimate::of(problems, one, two, looks))
                .collect(),
            strategies: [one.strategy, two.strategy],
            first_different: None,
        }
    }

    /// The same, with the first round whose actions differ.
    fn at(self, walks: &[LogWalk; 2], first_different: Option<(u64, [u32; 2])>) -> Self {
        let name =
            |side: usize, action: u32| walks[side].spec.problem.actions()[action as usize].clone();
        Self {
            first_different: first_different
                .map(|(round, [one, two])| (round, [name(0, one), name(1, two)])),
            ..self
        }
    }
}

impl DivergingTest {
    /// `None` if no test was made, or both had the same result, or their thresholds differ.
    fn of(problems: [&Problem; 2], [one, two]: [&EpochRecord; 2]) -> Option<Self> {
        let tests = [one.test.as_ref()?, two.test.as_ref()?];
        // With other keys or other plans there is no threshold that both were held against.
        let shared = |test: &LookTest| (test.look, test.count, test.threshold.to_bits());
        let leaders =
            [0, 1].map(|side| problems[side].actions()[tests[side].leader as usize].clone());
        let result = |side: usize| tests[side].passed.then_some(&leaders[side]);
        if shared(tests[0]) != shared(tests[1]) || result(0) == result(1) {
            return None;
        }
        // On the line, where both runs have one.
        let in_units =
            |which: usize| [0, 1].map(|side: usize| tests[side].gap_and_threshold()[which]);
        let [leads, thresholds] = [in_units(0), in_units(1)];
        let apart = tests[0].means.iter().zip(&tests[1].means);
        let apart = apart.map(|(one, two)| (one - two).abs());
        let count = tests[0].count;
        // Each test looks at every action, and there was one test per stage.
        let looks = u64::from(tests[0].look + 1) * tests[0].means.len() as u64;
        Some(Self {
            stage: tests[0].look,
            count,
            leaders,
            leads,
            thresholds,
            distances: [0, 1].map(|side: usize| (leads[side] - thresholds[side]).abs()),
            committed: tests.map(|test| test.passed),
            chance_max: promise::chance_max(apart.fold(0.0, f64::max), [count; 2], looks),
        })
    }
}

impl DivergingPick {
    /// `None` if not both picked, or both the same action, or by other draws.
    fn of(problems: [&Problem; 2], [one, two]: [&EpochRecord; 2]) -> Option<Self> {
        let picks = [one.pick.as_ref()?, two.pick.as_ref()?];
        let shared = |pick: &Pick| (pick.count, pick.scale.to_bits(), pick.uniforms.clone());
        if shared(picks[0]) != shared(picks[1]) || picks[0].action == picks[1].action {
            return None;
        }
        let means = picks[0].means.iter().zip(&picks[1].means);
        let apart = means.map(|(one, two)| (one - two).abs());
        let name = |side: usize| problems[side].actions()[picks[side].action as usize].clone();
        Some(Self {
            count: picks[0].count,
            actions: [0, 1].map(name),
            chance_max: promise::chance_max(
                apart.fold(0.0, f64::max),
                [picks[0].count; 2],
                picks[0].means.len() as u64,
            ),
        })
    }
}

impl DivergingEstimate {
    /// `None` if both lie in one cell, or on different grids.
    fn of(problems: [&Problem; 2], one: &Estimate, two: &Estimate, looks: u64) -> Option<Self> {
        let cells = [one.index?, two.index?];
        if cells[0] == cells[1] || (one.offset, one.cell) != (two.offset, two.cell) {
            return None;
        }
        // The lower mean's cell ends at the edge above it, the higher one's begins at the edge below it.
        let plan = Plan::of(problems[0].clone());
        let edges = [
            one.nearest_edge(cells[1], &plan)?,
            two.nearest_edge(cells[0], &plan)?,
        ];
        let means = [one.mean, two.mean];
        let away = [0, 1].map(|side: usize| (edges[side] - means[side]).abs());
        // On the line, where all cells are equally wide.
        let places = [one, two].map(|side| side.place_in_cells(&plan));
        // In each side's own units: the same cell may mean another price.
        let quantities = problems.map(|problem| problem.quantity(one.quantity as usize));
        let to_user = |side: usize, value: f64| quantities[side].range.to_user(value);
        Some(Self {
            action: one.action,
            name: problems[0].actions()[one.action as usize].clone(),
            quantities: quantities.map(|quantity| quantity.name.clone()),
            epoch: one.epoch,
            count: one.count,
            means: [0, 1].map(|side| to_user(side, means[side])),
            cells,
            edges: [0, 1].map(|side| to_user(side, edges[side])),
            distances: [0, 1].map(|side| away[side] * quantities[side].range.span()),
            distances_in_cells: [0, 1].map(|side: usize| {
                let edge = cells[side] + i64::from(cells[side] < cells[1 - side]);
                (places[side] - edge as f64).abs()
            }),
            chance_max: promise::chance_max(
                (one.mean - two.mean).abs(),
                [one.count, two.count],
                looks,
            ),
        })
    }
}

/// Whether two experiments have one key, as far as their logs tell.
fn same_key(one: &Heading, two: &Heading) -> Option<bool> {
    match (&one.key, &two.key) {
        (Some(one), Some(two)) => Some(one == two),
        _ if one.key_hash == two.key_hash => Some(true),
        _ => None,
    }
}

/// First round, whether it commits, and the probability of each action that is played.
fn course<'a>(actions: &'a [String], record: &EpochRecord) -> (u64, bool, BTreeMap<&'a str, u64>) {
    // A run that commits plays its leader for good, one that goes on may do so for an epoch: no later epoch of theirs can be
    // compared, so the difference is named here.
    let commits = record.kind == Kind::Commit;
    // By bits: a probability that differs in its last one is another strategy, and some round will tell. An action that is never
    // played may be missing in the other experiment.
    let strategy = actions.iter().zip(&record.strategy);
    let played = strategy.filter(|(_, probability)| **probability != 0.0);
    let bits = played.map(|(name, probability)| (name.as_str(), probability.to_bits()));
    (record.first_round, commits, bits.collect())
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
        // Programs with other values decide otherwise from the same spec and key.
        check_versions(&heading)?;
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

    /// What two runs that go the same way have in common at the start of an epoch.
    fn course(&self, record: &EpochRecord) -> (u64, bool, BTreeMap<&str, u64>) {
        course(self.spec.problem.actions(), record)
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
                Line::Epoch { record, .. } => {
                    let record = *record;
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
        let leads = |test: &LookTest| (test.leader as usize) < actions;
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
        let actions = engine.problem().actions();
        assert_ne!(
            course(actions, &committed),
            course(actions, engine.open_record())
        );
    }
}
