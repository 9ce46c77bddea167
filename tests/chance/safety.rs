//! Policy hard in random worlds: safe in every round, regret within its bound; and why it does not play the safe plan alone.
//!
//! Release mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use debora::internals::lp;
use debora::key::Label;
use debora::lab::epochs;
use debora::lab::internals::{Stream, draw_counts};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::{Bernoulli, World as _};
use debora::line::MeanLine;
use debora::mean::{cell_index, cell_middle};
use debora::record::Rule;
use debora::{Engine, EpochRecord, Estimate, Key, Kind, Plan, Problem};
use debora::{Strategy, Tally, WorldKey};
use rayon::prelude::*;

use crate::common::{binomial_upper_tail, names, plan};

/// Numbers in [0, 1) of one random world, one after the other.
struct Dice {
    world: u64,
    thrown: u64,
}

impl Dice {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        self.thrown += 1;
        let uniform = Key::from(20u64).uniform(Label::Threshold, [self.world, self.thrown, 0]);
        low + (high - low) * uniform
    }

    fn row(&mut self, actions: usize) -> Vec<f64> {
        (0..actions).map(|_| self.between(0.0, 1.0)).collect()
    }
}

/// A hard problem and its true means: the reward's, then each cost's.
struct Case {
    problem: Problem,
    means: Vec<Vec<f64>>,
}

impl Case {
    /// Two to six actions, one cost or two, thresholds from .3 to .8. The safe strategy is action 0, or half action 0 and half
    /// action 1, both at least .1 below each threshold; the margin stated is `overstated` times half of the truth to all of it.
    ///
    /// A third of the worlds have a range for each action, and know one cost beforehand.
    fn random(world: u64, overstated: f64) -> Self {
        let mut dice = Dice { world, thrown: 0 };
        let actions = 2 + (world / 2 % 5) as usize;
        let horizon = [100_000, 1_000_000, 100_000_000][(world / 10 % 3) as usize];
        let mut safe = vec![0.0; actions];
        let first = [0.5, 1.0][(world / 30 % 2) as usize];
        (safe[0], safe[1]) = (first, 1.0 - first);
        let mut means = vec![dice.row(actions)];
        let mut draft = Problem::hard(names(actions), horizon, 0.3);
        let mut margins = Vec::new();
        for cost in 0..=world % 2 {
            let name = format!("cost {cost}");
            let threshold = dice.between(0.3, 0.8);
            let mut costs = dice.row(actions);
            for (value, _) in costs.iter_mut().zip(&safe).filter(|(_, x)| **x > 0.0) {
                *value = dice.between(0.0, threshold - 0.1);
            }
            let truth = threshold - dot(&safe, &costs);
            // No margin may exceed its threshold, however much is stated.
            margins.push((overstated * truth * dice.between(0.5, 1.0)).min(threshold));
            draft = if world.is_multiple_of(3) {
                let own = |(action, cost): (usize, &f64)| match action {
                    // The range of all: what is on its scale is in its units.
                    0 => [0.0, 1.0],
                    1 => [*cost, *cost],
                    _ => [0.5 * cost, 0.5 + 0.5 * cost],
                };
                let ranges: Vec<[f64; 2]> = costs.iter().enumerate().map(own).collect();
                draft.cost(name, ranges, threshold)
            } else {
                draft.cost(name, [0.0, 1.0], threshold)
            };
            means.push(costs);
        }
        Self {
            problem: draft.safe_with_margins(safe, margins).build().unwrap(),
            means,
        }
    }

    fn experiment(self) -> Experiment {
        let world = Arc::new(Bernoulli::new(&self.problem, &self.means).unwrap());
        Experiment {
            worlds: [world.clone(), world],
            key: Key::from(21u64),
            world_key: WorldKey::from(22u64),
            simulator: Simulator::Epochs,
            checkpoints: vec![self.problem.horizon()],
            plan: plan(self.problem),
        }
    }
}

const WORLDS: u64 = 200;
const RUNS: u64 = 20;
const ALARM: f64 = 1e-6;

/// What 200 random worlds showed, twenty runs each.
#[derive(Default)]
struct Seen {
    unsafe_runs: u64,
    above_bound: u64,
    blind: u64,
    /// The largest regret, as a share of its bound, of plans that are not blind.
    share_max: f64,
}

fn see(overstated: f64) -> Seen {
    let of_world = |world: u64| {
        let experiment = Case::random(world, overstated).experiment();
        let mut seen = Seen::default();
        let plan = &experiment.plan;
        seen.blind += u64::from(plan.blind);
        for run in 0..RUNS {
            let run = experiment.run(Contestant::Debora, run, 0).unwrap();
            let regret = run.regret.expect("the safe strategy is safe");
            seen.unsafe_runs += u64::from(run.unsafe_rounds > 0);
            seen.above_bound += u64::from(regret > plan.regret_bound);
            if !plan.blind {
                seen.share_max = seen.share_max.max(regret / plan.regret_bound);
            }
        }
        seen
    };
    let merge = |one: Seen, other: Seen| Seen {
        unsafe_runs: one.unsafe_runs + other.unsafe_runs,
        above_bound: one.above_bound + other.above_bound,
        blind: one.blind + other.blind,
        share_max: one.share_max.max(other.share_max),
    };
    (0..WORLDS)
        .into_par_iter()
        .map(of_world)
        .reduce(Seen::default, merge)
}

/// Keys 20 to 22, 4,000 runs in 200 worlds. False alarm <= 1e-6 each: unsafe runs as Binomial(4,000, delta), regrets above the bound
/// as Binomial(4,000, 2 delta), both exact.
#[test]
fn hard_limits_hold_and_regret_is_bounded_in_random_worlds() {
    let seen = see(1.0);
    println!(
        "{} of {} runs unsafe, {} above the bound (at most {:.3} of it), {} of {WORLDS} plans blind",
        seen.unsafe_runs,
        WORLDS * RUNS,
        seen.above_bound,
        seen.share_max,
        seen.blind
    );
    let delta = 0.01;
    let alarm = binomial_upper_tail(WORLDS * RUNS, delta, seen.unsafe_runs);
    assert!(
        alarm > ALARM,
        "{} unsafe runs, chance {alarm}",
        seen.unsafe_runs
    );
    let alarm = binomial_upper_tail(WORLDS * RUNS, 2.0 * delta, seen.above_bound);
    assert!(
        alarm > ALARM,
        "{} above the bound, chance {alarm}",
        seen.above_bound
    );
    assert!(seen.blind < WORLDS / 2, "{} blind", seen.blind);
}

/// The same check can fail: it does where margins are stated three times as large as they may be.
#[test]
fn overstated_margins_are_found_out() {
    let seen = see(3.0);
    println!("{} of {} runs unsafe", seen.unsafe_runs, WORLDS * RUNS);
    let alarm = binomial_upper_tail(WORLDS * RUNS, 0.01, seen.unsafe_runs);
    assert!(
        alarm <= ALARM,
        "{} unsafe runs, chance {alarm}",
        seen.unsafe_runs
    );
}

/// What is known of every action, quantity by quantity, on each quantity's scale: the least and the most that its mean may be.
#[derive(Clone)]
struct Known {
    low: Vec<Vec<f64>>,
    high: Vec<Vec<f64>>,
}

/// Both strategies that policy hard may play, and which one it does.
struct Choice {
    mix: Vec<f64>,
    plan: Vec<f64>,
    rule: Rule,
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

impl Known {
    fn nothing(problem: &Problem) -> Self {
        let ends = |end: fn(debora::problem::Range) -> f64| -> Vec<Vec<f64>> {
            let quantities = 0..problem.quantities();
            let actions = 0..problem.actions().len() as u32;
            quantities
                .map(|q| {
                    actions
                        .clone()
                        .map(|a| end(problem.quantity(q).entry(a)))
                        .collect()
                })
                .collect()
        };
        Self {
            low: ends(|range| range.low),
            high: ends(|range| range.high),
        }
    }

    /// How far apart the ends of each action lie, at most.
    fn spans(&self) -> Vec<f64> {
        let widest = |action: usize| {
            let ends = self.low.iter().zip(&self.high);
            ends.map(|(low, high)| high[action] - low[action])
                .fold(0.0, f64::max)
        };
        (0..self.low[0].len()).map(widest).collect()
    }

    /// An entry's ends from its cell, width and line.
    fn set(
        &mut self,
        problem: &Problem,
        (q, a): (usize, usize),
        line: &MeanLine,
        [middle, width]: [f64; 2],
    ) {
        let entry = problem.quantity(q).entry(a as u32);
        let on_scale = |mean: f64| entry.low + (entry.high - entry.low) * mean;
        self.low[q][a] = on_scale(line.mean(middle - width));
        let excess = if q == 0 {
            (middle + width - line.ends()[1]).max(0.0)
        } else {
            0.0
        };
        let high = on_scale(line.mean(middle + width)) + excess;
        self.high[q][a] = high.min(self.low[q][a] + 1.0);
    }
}

/// sigma x_safe + (1 - sigma) candidate, with the smallest sigma that makes every pessimistic cost fit.
fn mixed(problem: &Problem, high: &[Vec<f64>], candidate: &[f64]) -> Vec<f64> {
    let safe = problem.safe().expect("a hard problem");
    let limits = problem.thresholds().iter().zip(&safe.margins);
    let weights = high.iter().zip(limits).map(|(row, (threshold, margin))| {
        let excess = (dot(row, candidate).min(1.0) - threshold).max(0.0);
        excess / (excess + margin)
    });
    let sigma = weights.fold(0.0, f64::max);
    let plays = candidate.iter().zip(safe.strategy.probabilities());
    plays
        .map(|(x, safe)| sigma * safe + (1.0 - sigma) * x)
        .collect()
}

/// z + s x_safe, the best whose pessimistic costs fit, with the safe strategy as one more action, whose costs are known.
fn planned(problem: &Problem, high: &[Vec<f64>], index: &[f64]) -> Vec<f64> {
    let safe = problem.safe().expect("a hard problem");
    let safe_plays = safe.strategy.probabilities();
    let limits = problem.thresholds().iter().zip(&safe.margins);
    let mut rows = Vec::new();
    for (row, (threshold, margin)) in high.iter().zip(limits) {
        rows.extend(row);
        rows.push(threshold - margin);
    }
    let mut extended = index.to_vec();
    extended.push(dot(index, safe_plays));
    let parts = lp::solve(&extended, &rows, problem.thresholds()).strategy;
    let weight = parts[index.len()];
    let plays = parts.iter().zip(safe_plays);
    plays.map(|(part, safe)| part + weight * safe).collect()
}

/// Policy hard's rule, written down from the specification a second time. None if the optimistic set is empty.
fn choose(problem: &Problem, known: &Known) -> Option<Choice> {
    let safe = problem.safe().expect("a hard problem");
    let index = known.high[0].clone();
    let low = known.low[1..].concat();
    let high = known.high[1..].to_vec();
    let optimistic = lp::solve(&index, &low, problem.thresholds());
    if optimistic.violation > 0.0 {
        return None;
    }
    let candidate = optimistic.strategy;
    let mix = mixed(problem, &high, &candidate);
    let plan = planned(problem, &high, &index);
    let margin_min = safe.margins.iter().copied().fold(f64::INFINITY, f64::min);
    let lost = dot(&index, &candidate) - dot(&index, &plan);
    let rule = if lost <= dot(&known.spans(), &plan) / margin_min {
        Rule::Plan
    } else {
        Rule::Mix
    };
    Some(Choice { mix, plan, rule })
}

/// In 200 random worlds, and 20 runs of one in which mixing matters, every strategy of every run is the one the specification
/// gives.
#[test]
fn engines_choose_as_the_specification_says() {
    let mut seen = BTreeMap::new();
    let random = (0..WORLDS).map(|world| Case::random(world, 1.0));
    let sticky = (0..20).map(|_| sticky(1_000_000_000));
    for (number, case) in (0..).zip(random.chain(sticky)) {
        let problem = &case.problem;
        let coins = Bernoulli::new(problem, &case.means).unwrap();
        let keys = (Key::from(23u64).derive(number, 0), WorldKey::from(24u64));
        let mut engine = Engine::new(problem.clone(), keys.0);
        let mut known = Known::nothing(problem);
        let plan = Plan::of(problem.clone());
        let observe = &mut |stretch: epochs::Stretch| {
            let record = stretch.player.record().expect("an engine has records");
            known.add(&plan, &record.estimates);
            if record.kind == Kind::Estimate {
                let rule = assert_chosen(problem, &known, record);
                *seen.entry(format!("{rule:?}")).or_insert(0) += 1;
            }
        };
        epochs::simulate(&mut engine, problem, &coins, keys, observe).unwrap();
    }
    println!("{seen:?}");
    assert!(
        seen.len() == 2 && seen.values().all(|&epochs| epochs > 20),
        "{seen:?}"
    );
}

/// That an epoch's rule and strategy are what they must be.
fn assert_chosen(problem: &Problem, known: &Known, record: &EpochRecord) -> Rule {
    let choice = choose(problem, known).expect("a feasible epoch");
    let rule = record.rule.expect("policy hard has a rule");
    assert_eq!(rule, choice.rule, "{record:?}");
    let expected = match rule {
        Rule::Mix => choice.mix,
        Rule::Plan => choice.plan,
        Rule::Moderate | Rule::Optimistic => unreachable!("policy hard mixes or plans"),
    };
    for (played, expected) in record.strategy.iter().zip(&expected) {
        // The copy adds up in another order, and that is all.
        assert!((played - expected).abs() < 1e-9, "{expected:?}, {record:?}");
    }
    rule
}

/// A world in which the safe plan alone never learns about its best action.
///
/// The safe strategy plays actions 0 and 1 alike, so exploration leaves action 1 better known than action 2. Once action 1 is known to
/// cost what it may, .5, it uses up the limit; action 2 would need the safe strategy beside it, whose margin is small, and
/// earns less that way than action 1 does alone. So it is not played, and stays as unknown as it was, .15 better every round.
fn sticky(horizon: u64) -> Case {
    let draft = Problem::hard(names(3), horizon, 0.5).cost("cost", [0.0, 1.0], 0.5);
    let draft = draft.safe_with_margins([0.5, 0.5, 0.0], [0.05]);
    Case {
        problem: draft.build().unwrap(),
        means: vec![vec![0.0, 0.75, 0.9], vec![0.4, 0.5, 0.5]],
    }
}

/// The regret of a run of policy hard, by a copy of its loop that may play the safe plan alone, whatever that gives up.
fn regret(case: &Case, plan: &Plan, keys: (Key, WorldKey), alone: bool) -> f64 {
    let problem = &case.problem;
    let world = Bernoulli::new(problem, &case.means).unwrap();
    let (actions, quantities) = (problem.actions().len(), problem.quantities());
    let rows = case.means[1..].concat();
    let best = dot(
        &lp::solve(&case.means[0], &rows, problem.thresholds()).strategy,
        &case.means[0],
    );
    let mut known = Known::nothing(problem);
    let mut tally = Tally::new(actions, quantities);
    let mut regret = 0.0;
    let mut left = problem.horizon();
    for epoch in 0.. {
        let counts = tally.counts().to_vec();
        let strategy = next_strategy(problem, plan, &counts, &known, alone);
        let next = |count: u64| {
            plan.levels
                .iter()
                .map(|level| level.count)
                .find(|&next| next > count)
        };
        let quotas: Vec<Option<u64>> = counts
            .iter()
            .map(|&count| Some(next(count)? - count))
            .collect();
        let mut drawn = vec![0; actions];
        // The draws of the lab's simulator, by the same labels, so that the copy can be held against the engine.
        let mut stream = Stream::new(keys.0, Label::Skip, [epoch, 0]);
        draw_counts(&mut stream, &strategy, &quotas, left, &mut drawn);
        for (action, &count) in (0..).zip(&drawn).filter(|(_, count)| **count > 0) {
            let mut sums = vec![0; quantities];
            world.pulls(keys.1, action, counts[action as usize], count, &mut sums);
            tally.add_sums(action, count, &sums);
        }
        let rounds: u64 = drawn.iter().sum();
        regret += (best - strategy.expectation(&case.means[0])) * rounds as f64;
        left -= rounds;
        if left == 0 {
            break;
        }
        known.update(plan, &counts, &tally, keys.0);
    }
    regret
}

/// While actions are below the first level: uniform over them, mixed with the safe strategy as if they cost as much as they can.
fn next_strategy(
    problem: &Problem,
    plan: &Plan,
    counts: &[u64],
    known: &Known,
    alone: bool,
) -> Strategy {
    let below: Vec<f64> = counts
        .iter()
        .map(|&count| f64::from(u8::from(count < plan.levels[0].count)))
        .collect();
    let number: f64 = below.iter().sum();
    if number > 0.0 {
        let safe = problem.safe().expect("a hard problem");
        let excess = 1.0 - problem.thresholds()[0];
        let sigma = excess / (excess + safe.margins[0]);
        let candidate = Strategy::new(below.iter().map(|one| one / number).collect());
        return Strategy::mix(sigma, &safe.strategy, &candidate);
    }
    let choice = choose(problem, known).expect("a feasible epoch");
    Strategy::new(if alone || choice.rule == Rule::Plan {
        choice.plan
    } else {
        choice.mix
    })
}

impl Known {
    fn add(&mut self, plan: &Plan, estimates: &[Estimate]) {
        for estimate in estimates {
            let place = (estimate.quantity as usize, estimate.action as usize);
            let line = MeanLine::new(estimate.count, plan.offset_c.unwrap());
            let middle = cell_middle(estimate.index.unwrap(), estimate.cell, estimate.offset);
            self.set(&plan.problem, place, &line, [middle, estimate.width]);
        }
    }

    /// Estimates the actions whose counts have reached a level.
    fn update(&mut self, plan: &Plan, before: &[u64], tally: &Tally, key: Key) {
        for (a, (&before, &count)) in before.iter().zip(tally.counts()).enumerate() {
            let reached = plan
                .levels
                .iter()
                .find(|level| level.count == count && count > before);
            let Some(level) = reached else { continue };
            for q in 0..self.low.len() {
                let offset = key.uniform(Label::Offset, [a as u64, q as u64, level.level.into()]);
                let line = MeanLine::new(count, plan.offset_c.unwrap());
                let index = cell_index(line.of_sum(tally.sum(a as u32, q)), level.cell, offset);
                let middle = cell_middle(index, level.cell, offset);
                self.set(&plan.problem, (q, a), &line, [middle, level.width]);
            }
        }
    }
}

/// 50 runs, keys 21 and 22, at two horizons. The copy of the loop is the engine's to the last bit, and yet: played alone the safe
/// plan loses .15 a round or more in at least 35 runs, at a hundred times the horizon too, while the rule's regret per round falls.
#[test]
fn the_safe_plan_alone_gets_stuck_and_the_rule_does_not() {
    let runs = 50;
    for (horizon, rule_at_most) in [(1_000_000_000, 0.08), (100_000_000_000, 0.01)] {
        let case = sticky(horizon);
        let experiment = sticky(horizon).experiment();
        let plan = &experiment.plan;
        let per_round = |run: u64, alone: bool| {
            let world_key = experiment.world_key.derive(run, 0);
            let keys = (experiment.key.derive(run, 0), world_key);
            regret(&case, plan, keys, alone) / horizon as f64
        };
        let ruled: Vec<f64> = (0..runs).map(|run| per_round(run, false)).collect();
        for (run, regret) in (0..).zip(&ruled) {
            let engine = experiment.run(Contestant::Debora, run, 0).unwrap();
            let engine = engine.regret.expect("a safe strategy") / horizon as f64;
            assert!(
                (regret - engine).abs() <= 1e-12,
                "run {run}: {regret}, {engine}"
            );
        }
        let alone: Vec<f64> = (0..runs).map(|run| per_round(run, true)).collect();
        let stuck = alone.iter().filter(|&&regret| regret >= 0.15).count();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        println!(
            "T {horizon:e}: regret per round {:.4} with the rule, {:.4} for the plan alone, stuck in {stuck} of {runs} runs",
            mean(&ruled),
            mean(&alone)
        );
        assert!(stuck >= 35, "{alone:?}");
        assert!(
            ruled.iter().all(|&regret| regret <= rule_at_most),
            "{ruled:?}"
        );
    }
}
