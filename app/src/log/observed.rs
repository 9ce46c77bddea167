//! What was observed of an experiment: exact sums of what was told, kept beside its progress, so that nobody has to add up all
//! outcomes to look at a mean.
//!
//! ```text
//! told so far = closed epochs (the engine's sums) - their imputed rounds * what is imputed + the open epoch's told sums
//! ```
//!
//! The engine's snapshot has the first, the progress the second, and [`Observed`] the third, with what cannot be found again from
//! them: overtime, how often each action was expected to be played, and what the sample-ratio checks found at each look.

use anyhow::{Context as _, Result, ensure};
use debora::lab::sample_ratio::{EpochCounts, LastRound, SampleChecks};
use debora::mean::FIXED_ONE;
use debora::{Engine, EpochRecord, Kind, Policy, Problem, Profile};
use serde::{Deserialize, Serialize};

use crate::log::experiment::parse_record;
use crate::store::{DecisionKind, Progress, Status, Store};

/// Rows read at once where sums are made again.
const CHUNK: usize = 1_024;

/// Exact sums: how many, and of each quantity the sum in multiples of 2^-53 of its range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldSums {
    /// How many outcomes.
    pub count: u64,
    /// Their sums; the reward first, then the costs.
    pub sums: Vec<u128>,
}

impl ToldSums {
    /// Of nothing.
    pub fn new(problem: &Problem) -> Self {
        Self {
            count: 0,
            sums: vec![0; problem.quantities()],
        }
    }

    fn add(&mut self, fixed: &[u64]) {
        self.count += 1;
        for (sum, value) in self.sums.iter_mut().zip(fixed) {
            *sum += u128::from(*value);
        }
    }

    /// Adds many at once: how many, and their sums.
    pub fn add_many(&mut self, count: u64, sums: &[u128]) {
        self.count += count;
        for (sum, more) in self.sums.iter_mut().zip(sums) {
            *sum += more;
        }
    }

    /// Adds the same outcome so many times.
    pub fn add_times(&mut self, count: u64, fixed: &[u64]) {
        let times = |value: &u64| u128::from(count) * u128::from(*value);
        let sums: Vec<u128> = fixed.iter().map(times).collect();
        self.add_many(count, &sums);
    }

    /// A quantity's sum, on the unit scale.
    pub fn sum(&self, quantity: usize) -> f64 {
        self.sums[quantity] as f64 / FIXED_ONE as f64
    }
}

/// What is kept beside the progress of an experiment, and changed with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Told in the open epoch, per action; after the end, in the last.
    pub open: Vec<ToldSums>,
    /// Told of overtime decisions, which count for nothing else.
    pub overtime: ToldSums,
    /// Told of what was held back, which is only compared with the experiment; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdback: Option<ToldSums>,
    /// How often each action was expected in the epochs before: rounds times probability.
    pub expected: Vec<f64>,
    /// Whether actions have a part in what is missing.
    pub checks: SampleChecks,
    /// The checks know what was missing from this epoch on: an earlier version closed those before it.
    pub checked_from: u64,
}

impl Observed {
    /// Of an experiment of which nothing was told.
    pub fn new(problem: &Problem) -> Self {
        let actions = problem.actions().len();
        Self {
            open: vec![ToldSums::new(problem); actions],
            overtime: ToldSums::new(problem),
            holdback: None,
            expected: vec![0.0; actions],
            checks: SampleChecks::new(actions),
            checked_from: 0,
        }
    }

    /// As it was stored.
    pub fn parse(text: &str, problem: &Problem) -> Result<Self> {
        let observed: Self = serde_json::from_str(text).with_context(|| {
            format!("the store holds the observed sums {text:?}, which cannot be read")
        })?;
        let fresh = Self::new(problem);
        let lengths = |observed: &Self| {
            let quantities = observed.open.iter().map(|told| told.sums.len());
            let quantities: Vec<usize> = quantities.collect();
            let held_back = observed.holdback.as_ref();
            (
                quantities,
                held_back.map_or(problem.quantities(), |held_back| held_back.sums.len()),
                observed.overtime.sums.len(),
                observed.expected.len(),
                observed.checks.actions(),
            )
        };
        // A damaged store is an error here, and not a panic where the sums are shown.
        ensure!(
            lengths(&observed) == lengths(&fresh),
            "the store holds observed sums that do not fit its spec; run `debora audit` to find out more"
        );
        Ok(observed)
    }

    /// To be stored.
    pub fn text(&self) -> Result<String> {
        serde_json::to_string(self).context("cannot write the observed sums")
    }

    /// An experiment's, as it is stored; made again from its rows where an earlier version has not kept it.
    pub fn read(store: &mut Store, id: &str, progress: &Progress, engine: &Engine) -> Result<Self> {
        match store.observed(id)? {
            Some(text) => Self::parse(&text, engine.problem()),
            None => Self::of_rows(store, id, progress, engine),
        }
    }

    /// Made again from what is stored: all but what was missing in closed epochs, and at looks that are past.
    pub fn of_rows(
        store: &mut Store,
        id: &str,
        progress: &Progress,
        engine: &Engine,
    ) -> Result<Self> {
        let mut observed = Self::new(engine.problem());
        observed.checked_from = progress.epoch + u64::from(progress.status == Status::Done);
        observed.checks.skip_looks(progress.outcomes.iter().sum());
        observed.add_open_epoch(store, id, engine)?;
        for epoch in 0..=progress.epoch {
            for kind in [DecisionKind::Overtime, DecisionKind::Holdback] {
                observed.add_uncounted(store, id, epoch, kind, engine.problem())?;
            }
            for row in store.epochs(id, epoch, 1)? {
                let record = parse_record(&row)?;
                if record.epoch < progress.epoch {
                    observed.expect(record.rounds, &record.strategy);
                }
            }
        }
        Ok(observed)
    }

    /// All that can be recomputed, for an audit: what stored looks found is taken as it is, as nobody knows any more what was
    /// missing at their time.
    pub fn recomputed(
        stored: &Self,
        store: &mut Store,
        id: &str,
        progress: &Progress,
        engine: &Engine,
    ) -> Result<Self> {
        let mut observed = Self::of_rows(store, id, progress, engine)?;
        observed.checked_from = stored.checked_from;
        let done = progress.status == Status::Done;
        for epoch in stored.checked_from..progress.epoch + u64::from(done) {
            let last = epoch == progress.epoch;
            observed.check_closed(store, id, epoch, last, engine.problem())?;
        }
        observed.checks.take_looks(&stored.checks);
        Ok(observed)
    }

    fn check_closed(
        &mut self,
        store: &mut Store,
        id: &str,
        epoch: u64,
        last: bool,
        problem: &Problem,
    ) -> Result<()> {
        for row in store.epochs(id, epoch, 1)? {
            let record = parse_record(&row)?;
            let (decided, told) = rounds_of(store, id, &record)?;
            let counts = EpochCounts {
                strategy: &record.strategy,
                // The engine that played it is gone: by what is recorded.
                blocks: is_in_blocks(problem, record.kind),
                decided: &decided,
                told: &told,
            };
            if last {
                self.checks.close_last(counts);
            } else {
                self.checks.close(counts);
            }
        }
        Ok(())
    }

    fn add_open_epoch(&mut self, store: &mut Store, id: &str, engine: &Engine) -> Result<()> {
        let mut from = engine.open_record().first_round;
        let mut fixed = vec![0; engine.problem().quantities()];
        loop {
            let rows = store.outcomes(id, from, CHUNK)?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            from = last.round + 1;
            let mut actions = vec![0; rows.len()];
            // Drawn again, as it is when outcomes are counted: leases need not be read.
            engine.decide_many(rows.iter().map(|row| row.round), &mut actions);
            for (row, action) in rows.iter().zip(actions).filter(|(row, _)| !row.imputed) {
                engine
                    .problem()
                    .to_fixed(0, row.reward, &row.costs, &mut fixed)?;
                self.tell(action, &fixed);
            }
        }
    }

    fn add_uncounted(
        &mut self,
        store: &mut Store,
        id: &str,
        epoch: u64,
        kind: DecisionKind,
        problem: &Problem,
    ) -> Result<()> {
        let mut from = 0;
        let mut fixed = vec![0; problem.quantities()];
        loop {
            let rows = store.uncounted(id, epoch, kind, from, CHUNK)?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            from = last.number + 1;
            for row in &rows {
                problem.to_fixed(0, row.reward, &row.costs, &mut fixed)?;
                self.tell_uncounted(kind, &fixed);
            }
        }
    }

    /// Adds the told outcome of a round.
    pub fn tell(&mut self, action: u32, fixed: &[u64]) {
        self.open[action as usize].add(fixed);
    }

    /// Adds the told outcome of a decision outside the horizon. A late one of a round changes nothing.
    pub fn tell_uncounted(&mut self, kind: DecisionKind, fixed: &[u64]) {
        let nothing = || ToldSums {
            count: 0,
            sums: vec![0; fixed.len()],
        };
        match kind {
            DecisionKind::Round => {}
            DecisionKind::Overtime => self.overtime.add(fixed),
            DecisionKind::Holdback => self.holdback.get_or_insert_with(nothing).add(fixed),
        }
    }

    /// Looks for what is missing in the open epoch. `last` is its last round, if all are handed out.
    pub fn look(&mut self, progress: &Progress, engine: &Engine, last: Option<LastRound>) {
        let outcomes = progress.outcomes.iter().sum();
        let (decided, told) = self.open_epoch(progress, engine);
        let epoch = counts(engine, &decided, &told);
        self.checks.look(outcomes, epoch, last);
    }

    /// Goes on to the next epoch, when all of the open one is counted; at the end, stays with it.
    pub fn close(&mut self, progress: &Progress, engine: &Engine, at_end: bool) {
        let (decided, told) = self.open_epoch(progress, engine);
        let epoch = counts(engine, &decided, &told);
        if at_end {
            self.checks.close_last(epoch);
            return;
        }
        self.checks.close(epoch);
        self.expect(decided.iter().sum(), engine.strategy().probabilities());
        self.open.fill(ToldSums::new(engine.problem()));
    }

    fn expect(&mut self, rounds: u64, strategy: &[f64]) {
        for (expected, probability) in self.expected.iter_mut().zip(strategy) {
            *expected += rounds as f64 * probability;
        }
    }

    /// Rounds of the open epoch, per action: decided, and told.
    pub fn open_epoch(&self, progress: &Progress, engine: &Engine) -> (Vec<u64>, Vec<u64>) {
        let before = &engine.open_record().counts;
        let decided = progress.decided.iter().zip(before);
        (
            // A damaged store may have less than before: the audit says so, and a look must not panic.
            decided
                .map(|(decided, before)| decided.saturating_sub(*before))
                .collect(),
            self.open.iter().map(|told| told.count).collect(),
        )
    }
}

/// Rounds of a closed epoch, per action: decided, and told.
fn rounds_of(store: &mut Store, id: &str, record: &EpochRecord) -> Result<(Vec<u64>, Vec<u64>)> {
    let mut counts = (
        vec![0; record.strategy.len()],
        vec![0; record.strategy.len()],
    );
    let end = record.first_round + record.rounds;
    let mut from = record.first_round;
    while from < end {
        let Some(lease) = store
            .leases(id, record.epoch, DecisionKind::Round, from, 1)?
            .pop()
        else {
            break;
        };
        let length = lease.actions.len();
        for &action in &lease.actions {
            counts.0[action as usize] += 1;
        }
        for outcome in store.outcomes(id, lease.first, length)? {
            // Where some are missing, the same number of outcomes reaches beyond the lease.
            let place = (outcome.round - lease.first) as usize;
            if let Some(&action) = lease.actions.get(place).filter(|_| !outcome.imputed) {
                counts.1[action as usize] += 1;
            }
        }
        from = lease.first + length as u64;
    }
    Ok(counts)
}

/// Whether an epoch of this kind is played in permuted blocks: under hard limits exploration is drawn, and profile paper's, too.
fn is_in_blocks(problem: &Problem, kind: Kind) -> bool {
    kind == Kind::Explore && problem.policy() != Policy::Hard && problem.profile() != Profile::Paper
}

/// An epoch as the checks see it.
pub fn counts<'a>(engine: &'a Engine, decided: &'a [u64], told: &'a [u64]) -> EpochCounts<'a> {
    EpochCounts {
        strategy: engine.strategy().probabilities(),
        blocks: engine.is_in_blocks(),
        decided,
        told,
    }
}
