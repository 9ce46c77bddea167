//! The moderate rule of policy soft where parts of it matter: two worlds in which the least excess, played without its first
//! condition, breaks a limit for ever; and one whose best action has its cost rounded up, which the moderate strategy alone would
//! never play again.
//!
//! The copy of the loop below can leave out either condition, and is the engine's to the bit with both.

use std::sync::Arc;

use crate::common::{best_vertex, names, plan};
use debora::key::Label;
use debora::lab::internals::{Stream, draw_counts};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::{Bernoulli, World};
use debora::line::MeanLine;
use debora::mean::{cell_index, cell_middle};
use debora::{Key, Plan, Problem, Strategy, Tally, WorldKey};

/// A problem of one limit at 1/2, and the world's means in the user's units.
struct Case {
    problem: Problem,
    means: Vec<Vec<f64>>,
}

impl Case {
    /// Rewards .9 and .1; action 0 costs more than the limit and action 1 less. `known` says whether the first cost is.
    fn excess(horizon: u64, known: bool) -> Self {
        let draft = Problem::soft(names(2), horizon, 0.3);
        let (draft, costs) = if known {
            let ranges = vec![[0.55, 0.55], [0.0, 1.0]];
            (draft.cost("cost", ranges, 0.5), vec![0.55, 0.45])
        } else {
            (draft.cost("cost", [0.0, 1.0], 0.5), vec![0.6, 0.4])
        };
        Self {
            problem: draft.build().unwrap(),
            means: vec![vec![0.9, 0.1], costs],
        }
    }

    /// Action 0 is known to cost the limit and earns .6, action 1 costs .4 and earns .9. As long as it may cost more than the limit,
    /// nothing makes up for it.
    fn hidden(horizon: u64) -> Self {
        let ranges = vec![[0.5, 0.5], [0.0, 1.0]];
        let draft = Problem::soft(names(2), horizon, 0.3).cost("cost", ranges, 0.5);
        Self {
            problem: draft.build().unwrap(),
            means: vec![vec![0.6, 0.9], vec![0.5, 0.4]],
        }
    }

    fn experiment(&self) -> Experiment {
        let world = Arc::new(Bernoulli::new(&self.problem, &self.means).unwrap());
        Experiment {
            worlds: [world.clone(), world],
            key: Key::from(61u64),
            world_key: WorldKey::from(62u64),
            simulator: Simulator::Epochs,
            checkpoints: vec![self.problem.horizon()],
            plan: plan(self.problem.clone()),
        }
    }
}

/// Which of the two conditions the copy looks at.
#[derive(Clone, Copy, PartialEq)]
struct Conditions {
    /// That no excess of the moderate strategy is certain.
    not_certain: bool,
    /// That its spans pay for what it gives up.
    paid: bool,
}

const BOTH: Conditions = Conditions {
    not_certain: true,
    paid: true,
};

/// Index, least, middle and most cost, and span of each action.
#[derive(Clone, Default)]
struct Known {
    index: Vec<f64>,
    low: Vec<f64>,
    mid: Vec<f64>,
    high: Vec<f64>,
    reward_low: Vec<f64>,
}

impl Known {
    fn before(problem: &Problem) -> Self {
        let ends = |end: fn(debora::problem::Range) -> f64| -> Vec<f64> {
            (0..2).map(|a| end(problem.quantity(1).entry(a))).collect()
        };
        Self {
            index: vec![1.0; 2],
            reward_low: vec![0.0; 2],
            low: ends(|entry| entry.low),
            mid: ends(|entry| entry.high),
            high: ends(|entry| entry.high),
        }
    }

    fn estimate(
        &mut self,
        plan: &Plan,
        a: usize,
        level: &debora::plan::Level,
        tally: &Tally,
        key: Key,
    ) {
        let line = MeanLine::new(level.count, plan.offset_c.unwrap());
        let at = |quantity: u64, sum: u128, widths: f64| {
            let offset = key.uniform(Label::Offset, [a as u64, quantity, level.level.into()]);
            let index = cell_index(line.of_sum(sum), level.cell, offset);
            cell_middle(index, level.cell, offset) + widths * level.width
        };
        let [reward, cost] = [0, 1].map(|quantity| tally.sum(a as u32, quantity));
        self.reward_low[a] = line.mean(at(0, reward, -1.0));
        let most = at(0, reward, 1.0);
        let excess = (most - line.ends()[1]).max(0.0);
        self.index[a] = (line.mean(most) + excess).min(self.reward_low[a] + 1.0);
        let entry = plan.problem.quantity(1).entry(a as u32);
        if entry.low < entry.high {
            let ends = [-1.0, 0.5, 1.0].map(|widths| line.mean(at(1, cost, widths)));
            let on_scale = ends.map(|mean| entry.low + (entry.high - entry.low) * mean);
            [self.low[a], self.mid[a], self.high[a]] = on_scale;
        }
    }

    fn next(&self, limit: f64, conditions: Conditions) -> Vec<f64> {
        let dot = |row: &[f64], x: &[f64]| row[0] * x[0] + row[1] * x[1];
        let least = |row: &[f64]| {
            if row[1] < row[0] {
                vec![0.0, 1.0]
            } else {
                vec![1.0, 0.0]
            }
        };
        let Some((most, optimistic)) = best_vertex(&self.index, &[&self.low], &[limit]) else {
            return least(&self.low);
        };
        let found = best_vertex(&self.index, &[&self.mid], &[limit]);
        let empty = found.is_none();
        let moderate = found.map_or_else(|| least(&self.mid), |(_, strategy)| strategy);
        if empty && conditions.not_certain && dot(&self.low, &moderate) > limit + 1e-11 {
            return optimistic;
        }
        let span = |a: usize| (self.index[a] - self.reward_low[a]).max(self.high[a] - self.low[a]);
        let paid = 3.0 * dot(&[span(0), span(1)], &moderate);
        let lost = most - dot(&self.index, &moderate);
        if conditions.paid && lost > paid {
            optimistic
        } else {
            moderate
        }
    }
}

/// Regret and violation a round of a run by the copy, by the draws of the lab's simulator.
fn played(case: &Case, plan: &Plan, keys: (Key, WorldKey), conditions: Conditions) -> [f64; 2] {
    let world = Bernoulli::new(&case.problem, &case.means).unwrap();
    let limit = case.problem.thresholds()[0];
    let costs = &world.means()[1];
    let best = best_vertex(&world.means()[0], &[costs], &[limit])
        .unwrap()
        .0;
    let mut known = Known::before(&case.problem);
    let mut tally = Tally::new(2, 2);
    let [mut regret, mut violation] = [0.0; 2];
    let mut left = case.problem.horizon();
    for epoch in 0.. {
        let counts = tally.counts().to_vec();
        let exploring = counts[0] == 0;
        let x = match exploring {
            true => vec![0.5; 2],
            false => known.next(limit, conditions),
        };
        let strategy = Strategy::new(x);
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
        let mut drawn = vec![plan.levels[0].count; 2];
        if !exploring {
            let mut stream = Stream::new(keys.0, Label::Skip, [epoch, 0]);
            draw_counts(&mut stream, &strategy, &quotas, left, &mut drawn);
        }
        for (action, &count) in (0..).zip(&drawn).filter(|(_, count)| **count > 0) {
            let mut sums = vec![0; 2];
            world.pulls(keys.1, action, counts[action as usize], count, &mut sums);
            tally.add_sums(action, count, &sums);
        }
        let rounds: u64 = drawn.iter().sum();
        regret += (best - strategy.expectation(&world.means()[0])) * rounds as f64;
        violation += (strategy.expectation(costs) - limit).max(0.0) * rounds as f64;
        left -= rounds;
        if left == 0 {
            break;
        }
        for (a, (before, &count)) in counts.iter().zip(tally.counts()).enumerate() {
            let reached = plan
                .levels
                .iter()
                .find(|level| level.count == count && count > *before);
            if let Some(level) = reached {
                known.estimate(plan, a, level, &tally, keys.0);
            }
        }
    }
    [regret, violation].map(|sum| sum / case.problem.horizon() as f64)
}

/// So many runs of the copy, each with regret and violation a round.
fn runs(case: &Case, number: u64, conditions: Conditions) -> Vec<[f64; 2]> {
    let experiment = case.experiment();
    let keys = |run: u64| {
        (
            experiment.key.derive(run, 0),
            experiment.world_key.derive(run, 0),
        )
    };
    (0..number)
        .map(|run| played(case, &experiment.plan, keys(run), conditions))
        .collect()
}

/// 40 runs in each world: the copy is the engine, to rounding.
#[test]
fn the_copy_of_the_loop_is_the_engine() {
    let horizon = 1_000_000;
    for case in [
        Case::excess(horizon, false),
        Case::excess(horizon, true),
        Case::hidden(horizon),
    ] {
        let experiment = case.experiment();
        for (run, copy) in (0..).zip(runs(&case, 40, BOTH)) {
            let engine = experiment.run(Contestant::Debora, run, 0).unwrap();
            let regret = engine.regret.unwrap() / horizon as f64;
            let violation = engine.violation / horizon as f64;
            assert!((regret - copy[0]).abs() < 1e-9, "{run}: {regret} {copy:?}");
            assert!(
                (violation - copy[1]).abs() < 1e-9,
                "{run}: {violation} {copy:?}"
            );
            assert!(engine.violation <= experiment.plan.violation_bound.unwrap());
            assert!(engine.regret.unwrap() <= engine.lost_at_most.unwrap());
            assert!(engine.lost_at_most.unwrap() <= experiment.plan.regret_bound);
        }
    }
}

/// Keys 61 and 62, 100 runs, 1e9 rounds: with the condition a round's violation falls to nothing in all; without it, it stays in
/// some of them, as the action that would cure it is never pulled again.
#[test]
fn an_excess_that_is_certain_is_not_played_for_ever() {
    for known in [false, true] {
        let case = Case::excess(1_000_000_000, known);
        let without = Conditions {
            not_certain: false,
            ..BOTH
        };
        let worst = |runs: &[[f64; 2]]| runs.iter().map(|run| run[1]).fold(0.0, f64::max);
        let (right, wrong) = (runs(&case, 100, BOTH), runs(&case, 100, without));
        let stuck = wrong.iter().filter(|run| run[1] > 0.03).count();
        println!(
            "first cost known {known}: worst violation a round {:.5}, without the condition {:.5}, stuck in {stuck} of 100",
            worst(&right),
            worst(&wrong)
        );
        assert!(worst(&right) < 0.01, "{}", worst(&right));
        assert!(stuck > 3, "{stuck}");
    }
}

/// Keys 61 and 62, 100 runs, 1e9 rounds: by its middle cost the best action is unsafe at first, and the moderate strategy leaves it
/// out. Alone it never plays it again, .3 worse in every round; with the condition every run comes back to it.
#[test]
fn an_action_whose_cost_was_rounded_up_is_played_again() {
    let case = Case::hidden(1_000_000_000);
    let alone = Conditions {
        paid: false,
        ..BOTH
    };
    let worst = |runs: &[[f64; 2]]| runs.iter().map(|run| run[0]).fold(0.0, f64::max);
    let [right, wrong] = [BOTH, alone].map(|conditions| runs(&case, 100, conditions));
    let stuck = wrong.iter().filter(|run| run[0] > 0.29).count();
    println!(
        "worst regret a round {:.5}; the moderate strategy alone is stuck in {stuck} of 100 runs",
        worst(&right)
    );
    assert!(worst(&right) < 0.01 && stuck > 20, "{stuck}");
}
