//! One epoch: why its strategy is played.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use debora::record::{Interval, Rule};
use debora::spec::Spec;
use debora::{EpochRecord, Estimate, Plan, Policy, Problem, Why};
use serde::Serialize;

use super::entry::{self, EpochEntry};
use super::words;
use crate::log::experiment::parse_record;
use crate::log::{chain, check_values};
use crate::reading::epoch::{EpochHead, check_probabilities, estimates_made};
use crate::store::{EpochRow, ExperimentRow, Progress, Status, Store};

/// Records read at once, while the estimates in force are gathered.
const ROWS_A_READ: usize = 64;

/// What a limit may be off by and still be tight, on the unit scale: the linear program is exact to about this.
const TIGHT: f64 = 1e-9;

/// An epoch, with all that its strategy follows from.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EpochDetail {
    /// The experiment.
    pub id: String,
    /// What it is called; none if its spec does not say.
    pub name: Option<String>,
    /// Whether it decides.
    pub status: Status,
    /// How many epochs it has so far.
    pub count: u64,
    /// For the pages' words; the spec, which says it, is answered elsewhere.
    #[serde(skip)]
    pub policy: Policy,
    /// How many quantities there are, the reward among them: for the pages' addresses.
    #[serde(skip)]
    pub quantities: usize,
    /// The epoch, as the list has it.
    #[serde(flatten)]
    pub entry: EpochEntry,
    /// Why this strategy is played, in sentences.
    pub why: Vec<String>,
    /// Whether the strategy was found again from the record: not for an experiment of another values version.
    pub recomputed: bool,
    /// Every action, in the spec's order: how often it is played and was before.
    pub actions: Vec<ActionAt>,
    /// Under hard limits: the weight of the safe strategy.
    pub sigma: f64,
    /// Every limit at the strategy found; empty without limits, and if it was not found again.
    pub limits: Vec<LimitHere>,
    /// What the strategy gives by the estimates alone: the reward, then the limited costs. Empty where none decides.
    pub expected: Vec<ExpectedHere>,
    /// The estimates in force, quantity by quantity within action by action.
    pub estimates: Vec<EstimateHere>,
    /// What the hash is over; none while the epoch is open.
    pub chain: Option<ChainEntry>,
}

/// An action in an epoch.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ActionAt {
    /// Its number in the spec, from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// Its probability in the epoch before; none in the first.
    pub before: Option<f64>,
    /// Its probability.
    pub after: f64,
    /// The same before mixing with the safe strategy.
    pub candidate: f64,
    /// Its estimated reward and the width: what is maximised. None where no estimate decides.
    pub index: Option<f64>,
}

/// A limit in an epoch, in the cost's units.
#[derive(Serialize, utoipa::ToSchema)]
pub struct LimitHere {
    /// The cost.
    pub name: String,
    /// The limit on its mean.
    pub threshold: f64,
    /// What the best strategy costs if each cost is the least that its estimates allow, or the moderate one where that is
    /// played; none where no estimate decides.
    pub least: Option<f64>,
    /// What the moderate strategy costs with costs taken for higher than estimated, by the spec's caution; none where another
    /// is played.
    pub moderate: Option<f64>,
    /// What the strategy played costs at most, under hard limits.
    pub most: Option<f64>,
    /// How far what it bounds is below the threshold, `least`, `moderate` or `most`; negative if it is above.
    pub slack: Option<f64>,
    /// Whether there is no slack: then the limit shapes the strategy.
    pub tight: bool,
    /// Whether the estimates say that it cannot be kept.
    pub exceeded: bool,
}

/// What a strategy gives of a quantity by the estimates.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ExpectedHere {
    /// The reward or a cost, by name.
    pub quantity: String,
    /// By the estimates alone.
    pub value: f64,
}

/// An estimate in force, in its quantity's units.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct EstimateHere {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// The reward or a cost, by name.
    pub quantity: String,
    /// The quantity's number; 0 is the reward.
    #[serde(skip)]
    pub place: u32,
    /// The edges of the cell and of its neighbours, as far as means may lie beyond them.
    #[serde(skip)]
    pub edges: Vec<f64>,
    /// The epoch at whose start it was made.
    pub made_in: u64,
    /// The plan's level it was made at; none in profile paper.
    pub level: Option<u32>,
    /// From how many rounds, imputed ones among them.
    pub count: u64,
    /// Their mean, which no decision sees.
    pub mean: f64,
    /// The grid's shift in cells, from 0 to 1.
    pub offset: f64,
    /// The cell that holds the mean, within the range: any mean in it gives the same estimate.
    #[schema(value_type = Object)]
    pub cell: Interval,
    /// The cell's number; none if the cell is the whole range.
    pub index: Option<i64>,
    /// The cell's middle, which decides.
    pub estimate: f64,
    /// Where the true mean lies. All estimates hold together with probability 1 - delta.
    #[schema(value_type = Object)]
    pub interval: Interval,
    /// By how much another run's mean must differ to give another estimate; none if no mean within the range does.
    pub to_edge: Option<f64>,
    /// The same in cells of the grid, on the line where all of them are equally wide.
    pub to_edge_cells: Option<f64>,
    /// The estimate that it took the place of, if it was made in this epoch.
    pub previous: Option<f64>,
    /// Of a cost: its threshold; under policy free it decides nothing.
    pub threshold: Option<f64>,
}

/// An epoch's entry in the hash chain.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ChainEntry {
    /// The hash before: of the epoch before, or what the chain starts from.
    pub previous: String,
    /// SHA-256 over the epoch's rounds.
    pub rounds_hash: String,
    /// SHA-256 over its leases.
    pub leases_hash: String,
    /// The position of the next uncounted outcome or event.
    pub journal_end: u64,
    /// The hash over those before; empty if there are none.
    pub journal: String,
    /// Whether the experiment was closed before the epoch was complete.
    pub early: bool,
}

/// The latest estimate of each action and quantity, and the one before it if the epoch in question made it.
type InForce = BTreeMap<(u32, u32), (Estimate, Option<Estimate>)>;

/// Reads an epoch; the outer `None` if there is no such experiment, the inner if it has no such epoch.
pub fn read(store: &mut Store, id: &str, number: u64) -> Result<Option<Option<EpochDetail>>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    if number > progress.epoch {
        return Ok(Some(None));
    }
    let spec = Spec::parse(&experiment.spec, id)?;
    let first = number.saturating_sub(1);
    let rows = store.epochs(id, first, (number - first + 1) as usize)?;
    let rows_there = rows.last().is_some_and(|row| row.epoch == number);
    ensure!(
        rows_there,
        "experiment {id} has no row of epoch {number}; run `debora audit` to find out more"
    );
    let in_force = in_force(store, id, number, &spec.problem)?;
    let read = Neighbours {
        experiment,
        progress,
        spec,
        rows,
    };
    read.detail(&in_force).map(|detail| Some(Some(detail)))
}

/// Gathers the estimates in force at an epoch's start.
fn in_force(store: &mut Store, id: &str, number: u64, problem: &Problem) -> Result<InForce> {
    let mut latest = InForce::new();
    let mut next = 0;
    while next <= number {
        let rows = store.epochs(id, next, ROWS_A_READ)?;
        ensure!(
            !rows.is_empty(),
            "experiment {id} has no row of epoch {next}"
        );
        for row in rows.iter().filter(|row| row.epoch <= number) {
            for made in estimates_made(row, problem)? {
                let before = latest.get(&(made.action, made.quantity)).map(|old| old.0);
                let before = before.filter(|_| row.epoch == number);
                latest.insert((made.action, made.quantity), (made, before));
            }
        }
        next += ROWS_A_READ as u64;
    }
    Ok(latest)
}

/// An epoch and the one before, as they were read.
struct Neighbours {
    experiment: ExperimentRow,
    progress: Progress,
    spec: Spec,
    /// The epoch's row, after that of the one before.
    rows: Vec<EpochRow>,
}

impl Neighbours {
    fn detail(self, in_force: &InForce) -> Result<EpochDetail> {
        let problem = &self.spec.problem;
        let heads = EpochHead::parse_all(&self.rows, &self.progress, problem)?;
        let entry = entry::entries(&heads, problem).pop();
        let (row, entry) = self.rows.last().zip(entry).context("an epoch")?;
        let record = parse_record(row)?;
        let estimates: Vec<Estimate> = in_force.values().map(|(latest, _)| *latest).collect();
        // With other values the same estimates may have led elsewhere: then only what is recorded is shown.
        let why = check_values(&self.experiment)
            .is_ok()
            .then(|| Why::of(&Plan::of(problem.clone()), &record, &estimates));
        let plan = Plan::of(problem.clone());
        let mut detail = EpochDetail {
            actions: self.actions(&heads, &record, why.as_ref())?,
            limits: why.as_ref().map_or(Vec::new(), |why| limits(problem, why)),
            expected: why
                .as_ref()
                .map_or(Vec::new(), |why| expected(problem, why)),
            estimates: in_force
                .values()
                .map(|found| estimate(&plan, found))
                .collect(),
            chain: self.chain_entry(),
            sigma: record.sigma,
            recomputed: why.is_some(),
            why: Vec::new(),
            policy: problem.policy(),
            quantities: problem.quantities(),
            entry,
            count: self.progress.epoch + 1,
            status: self.progress.status,
            name: self.spec.name,
            id: self.experiment.id,
        };
        detail.why = words::why(&detail, self.experiment.values_version);
        Ok(detail)
    }

    fn actions(
        &self,
        heads: &[EpochHead],
        record: &EpochRecord,
        why: Option<&Why>,
    ) -> Result<Vec<ActionAt>> {
        let problem = &self.spec.problem;
        check_probabilities(record.epoch, &record.candidate, problem)?;
        let before = match heads {
            [before, _] => Some(&before.strategy),
            _ => None,
        };
        let range = problem.quantity(0).range;
        let index = |action: usize| Some(range.to_user(*why?.index.get(action)?));
        let actions = problem.actions().iter().enumerate();
        Ok(actions
            .map(|(action, name)| ActionAt {
                action: action as u32,
                name: name.clone(),
                before: before.map(|before| before[action]),
                after: record.strategy[action],
                candidate: record.candidate[action],
                index: index(action),
            })
            .collect())
    }

    fn chain_entry(&self) -> Option<ChainEntry> {
        let row = self.rows.last()?;
        let previous = match &self.rows[..] {
            [before, _] => before.hash.clone()?,
            _ => chain::head(&self.experiment),
        };
        let last = row.epoch == self.progress.epoch;
        Some(ChainEntry {
            previous,
            rounds_hash: row.rounds_hash.clone()?,
            leases_hash: row.leases_hash.clone()?,
            journal_end: row.journal_end?,
            journal: row.journal.clone()?,
            // A finished experiment's last epoch was complete, one that was closed by hand left its last one as it was.
            early: last && self.progress.status == Status::Closed,
        })
    }
}

fn limits(problem: &Problem, why: &Why) -> Vec<LimitHere> {
    let named = why.limits.iter().enumerate().map(|(cost, at)| {
        let quantity = problem.quantity(cost + 1);
        let to_user = |unit: f64| quantity.range.to_user(unit);
        // A plan is made at the most that costs may be; what the optimist hopes for binds nothing then.
        let hoped = at.least.filter(|_| why.rule != Some(Rule::Plan));
        let bounded = at.moderate.or(hoped);
        let values = [bounded, at.most].into_iter().flatten();
        let slack = values.map(|value| at.threshold - value).reduce(f64::min);
        LimitHere {
            name: quantity.name.clone(),
            threshold: to_user(at.threshold),
            least: at.least.map(to_user),
            moderate: at.moderate.map(to_user),
            most: at.most.map(to_user),
            slack: slack.map(|slack| slack * quantity.range.span()),
            tight: slack.is_some_and(|slack| slack.abs() <= TIGHT),
            exceeded: at.least.is_some_and(|least| least > at.threshold + TIGHT),
        }
    });
    named.collect()
}

fn expected(problem: &Problem, why: &Why) -> Vec<ExpectedHere> {
    let expected = why.expected.iter().enumerate().map(|(place, &unit)| {
        let quantity = problem.quantity(problem.estimated()[place]);
        ExpectedHere {
            quantity: quantity.name.clone(),
            value: quantity.range.to_user(unit),
        }
    });
    expected.collect()
}

fn estimate(plan: &Plan, (made, previous): &(Estimate, Option<Estimate>)) -> EstimateHere {
    let problem = &plan.problem;
    let quantity = problem.quantity(made.quantity as usize);
    let range = quantity.range;
    let to_user = |unit: f64| range.to_user(unit);
    let interval = |ends: [f64; 2]| {
        let [low, high] = ends.map(to_user);
        Interval { low, high }
    };
    let edges = made.index.map(|index| index - 1..=index + 2);
    let edges = edges.into_iter().flatten();
    let to_edge = to_edge(plan, made);
    let cost = made.quantity.checked_sub(1);
    EstimateHere {
        action: made.action,
        name: problem.actions()[made.action as usize].clone(),
        quantity: quantity.name.clone(),
        place: made.quantity,
        edges: edges
            .filter_map(|edge| made.mean_at_edge(edge, plan))
            .map(to_user)
            .collect(),
        made_in: made.epoch,
        level: made.level,
        count: made.count,
        mean: to_user(made.mean),
        offset: made.offset,
        cell: interval(made.cell_ends(plan)),
        index: made.index,
        estimate: to_user(made.estimate),
        interval: interval(made.interval()),
        to_edge: to_edge.map(|[distance, _]| distance * range.span()),
        to_edge_cells: to_edge.map(|[_, cells]| cells),
        previous: previous.map(|previous| to_user(previous.estimate)),
        threshold: cost.and_then(|cost| problem.threshold(cost as usize)),
    }
}

/// How far the mean is from the nearest edge that another mean can be beyond: on the unit scale, and in cells.
fn to_edge(plan: &Plan, made: &Estimate) -> Option<[f64; 2]> {
    let index = made.index?;
    let place = made.place_in_cells(plan);
    // A cell that reaches beyond the last mean there can be is not left at that end.
    let edges = [index, index + 1].into_iter().filter_map(|edge| {
        let distance = (made.mean_at_edge(edge, plan)? - made.mean).abs();
        Some([distance, (place - edge as f64).abs()])
    });
    edges.min_by(|one, other| one[0].total_cmp(&other[0]))
}
