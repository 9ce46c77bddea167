//! The fast simulator has the law of the slow one: against exact enumeration where cases are small, and against the slow
//! simulator itself. Release mode. Every tolerance is from a bound that holds (Hoeffding, DKW-Massart), with its rate.

use std::collections::BTreeMap;
use std::sync::Arc;

use debora::key::Label;
use debora::lab::internals::{Stream, draw_counts};
use debora::lab::metrics::checkpoints;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::{Bernoulli, Beta, Discrete, Recorded, World};
use debora::mean::{FIXED_ONE, to_fixed};
use debora::problem::Draft;
use debora::{Key, Plan, Problem, Strategy, WorldKey};

use crate::common::names;

/// The exact law of a stretch's counts: all sequences of draws, summed by the counts they lead to.
fn exact_law(x: &[f64], quotas: &[Option<u64>], rounds_max: u64) -> BTreeMap<Vec<u64>, f64> {
    let mut open = BTreeMap::from([(vec![0; x.len()], 1.0)]);
    let mut ended = BTreeMap::new();
    for _ in 0..rounds_max {
        let mut next: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
        for (counts, chance) in open {
            for action in (0..x.len()).filter(|&a| x[a] > 0.0) {
                let mut after = counts.clone();
                after[action] += 1;
                let end = quotas[action] == Some(after[action]);
                *(if end { &mut ended } else { &mut next })
                    .entry(after)
                    .or_insert(0.0) += chance * x[action];
            }
        }
        open = next;
    }
    ended.extend(open);
    ended
}

/// A strategy, a quota per action, and the rounds left.
type Case = (&'static [f64], &'static [Option<u64>], u64);

/// Seven cases, 200,000 draws each, key 1. Every set of counts' frequency is within Hoeffding's tolerance of its exact
/// probability: false alarm <= 1e-6 a case, over all its sets. No set of probability 0 may occur.
#[test]
fn counts_of_a_stretch_have_their_exact_law() {
    let cases: [Case; 7] = [
        (&[0.5, 0.5], &[Some(3), Some(4)], 20),
        (&[0.2, 0.8], &[Some(2), Some(9)], 30),
        (&[0.2, 0.8], &[Some(2), None], 12),
        (&[0.3, 0.3, 0.4], &[Some(2), Some(3), None], 9),
        (&[0.1, 0.2, 0.7], &[Some(3), None, Some(5)], 6),
        (&[0.25, 0.0, 0.75], &[None, Some(1), None], 10),
        (&[0.6, 0.4], &[Some(1), Some(1)], 3),
    ];
    for (number, (x, quotas, rounds_max)) in cases.into_iter().enumerate() {
        let law = exact_law(x, quotas, rounds_max);
        assert!((law.values().sum::<f64>() - 1.0).abs() < 1e-12);
        let draws = 200_000u64;
        let strategy = Strategy::new(x.to_vec());
        let mut seen: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for draw in 0..draws {
            let mut counts = vec![0; x.len()];
            let mut stream = Stream::new(Key::from(1u64), Label::Skip, [draw, number as u64]);
            draw_counts(&mut stream, &strategy, quotas, rounds_max, &mut counts);
            *seen.entry(counts).or_insert(0) += 1;
        }
        let tolerance = ((2.0 * law.len() as f64 / 1e-6).ln() / (2.0 * draws as f64)).sqrt();
        for (counts, &times) in &seen {
            let exact = law.get(counts).copied().unwrap_or(0.0);
            let frequency = times as f64 / draws as f64;
            assert!(
                exact > 0.0,
                "case {number}: {counts:?} cannot occur, but did {times} times"
            );
            assert!(
                (frequency - exact).abs() <= tolerance,
                "case {number}, {counts:?}: {frequency} against {exact}"
            );
        }
        for (counts, exact) in law.iter().filter(|(_, exact)| **exact > tolerance) {
            assert!(
                seen.contains_key(counts),
                "case {number}: {counts:?}, of probability {exact}, never occurred"
            );
        }
    }
}

/// sup |F1 - F2| of two samples of equal length.
fn distance(mut one: Vec<f64>, mut two: Vec<f64>) -> f64 {
    one.sort_by(f64::total_cmp);
    two.sort_by(f64::total_cmp);
    let below = |sample: &[f64], value: f64| {
        sample.partition_point(|&v| v <= value) as f64 / sample.len() as f64
    };
    one.iter()
        .chain(&two)
        .map(|&value| (below(&one, value) - below(&two, value)).abs())
        .fold(0.0, f64::max)
}

fn experiment(draft: Draft, means: &[Vec<f64>], simulator: Simulator, key: u64) -> Experiment {
    let problem = draft.build().unwrap();
    let world = Arc::new(Bernoulli::new(&problem, means).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(key),
        world_key: WorldKey::from(key),
        simulator,
        checkpoints: checkpoints(problem.horizon()),
        plan: Arc::new(Plan::of(problem)),
    }
}

/// A number of a run, by name.
type Number<'a> = (&'static str, &'a dyn Fn(&debora::lab::metrics::Run) -> f64);

/// 1,500 runs by each simulator with different keys: counts per action, observed reward, regret, violation, epochs and the
/// round of a commitment have distances below 2 sqrt(ln(4/1e-7) / 3000) = .153: false alarm <= 1e-7 each (DKW-Massart for
/// both samples). And 750 pairs by each: identical rates within 2 sqrt(ln(4/1e-7)/1500) = .217, likewise (Hoeffding).
#[test]
fn the_same_run_two_ways() {
    let cost = |draft: Draft| draft.cost("cost", [0.0, 1.0], 0.5);
    let means = [vec![0.3, 0.5, 0.7], vec![0.2, 0.5, 0.7]];
    // A lead of .13 is in doubt at the last looks: some runs commit, and the others pick.
    let small = [vec![0.4, 0.4, 0.53], vec![0.2, 0.5, 0.7]];
    let problems: [(Draft, &[Vec<f64>]); 8] = [
        (Problem::free(names(3), 20_000, 0.3), &means[..1]),
        (cost(Problem::soft(names(3), 60_000, 0.5)), &means),
        (
            cost(Problem::hard(names(3), 60_000, 0.5)).safe_with_margins([0.5, 0.5, 0.0], [0.1]),
            &means,
        ),
        (
            cost(Problem::hard(names(3), 60_000, 0.5))
                .safe_with_margins([1.0, 0.0, 0.0], [0.25])
                .growth(3),
            &means,
        ),
        (
            cost(Problem::hard(names(3), 5_000, 0.5))
                .safe_with_margins([1.0, 0.0, 0.0], [0.25])
                .paper(),
            &means,
        ),
        (Problem::free(names(3), 30_000, 0.9).delta(0.4), &small[..1]),
        (
            cost(Problem::hard(names(3), 30_000, 0.9))
                .safe_with_margins([0.5, 0.5, 0.0], [0.1])
                .delta(0.4)
                .growth(2),
            &means,
        ),
        // Blind, and cut by the horizon inside a block.
        (cost(Problem::soft(names(3), 100, 0.5)), &means),
    ];
    for (number, (draft, means)) in problems.into_iter().enumerate() {
        let runs = [(Simulator::Epochs, 1), (Simulator::Rounds, 2)].map(|(simulator, key)| {
            let experiment = experiment(draft.clone(), means, simulator, key);
            let stop = std::sync::atomic::AtomicBool::new(false);
            experiment
                .pairs(Contestant::Debora, 0..750, &|_| (), &stop)
                .unwrap()
        });
        // Twice the bound of Dvoretzky, Kiefer and Wolfowitz for the 1,500 runs of each simulator.
        let tolerance = 2.0 * ((4.0f64 / 1e-7).ln() / (2.0 * 1_500.0)).sqrt();
        let numbers: [Number; 8] = [
            ("count of action 0", &|run| run.counts[0] as f64),
            ("count of action 1", &|run| run.counts[1] as f64),
            ("count of action 2", &|run| run.counts[2] as f64),
            ("reward", &|run| run.reward_mean),
            ("regret", &|run| run.regret.unwrap()),
            ("violation", &|run| run.violation),
            ("epochs", &|run| run.epochs as f64),
            ("decision", &|run| {
                run.decided_at.map_or(0.0, |round| round as f64)
            }),
        ];
        for (what, number_of) in numbers {
            let [fast, slow] = runs.each_ref().map(|pairs| {
                pairs
                    .iter()
                    .flat_map(|pair| &pair.runs)
                    .map(number_of)
                    .collect()
            });
            let distance = distance(fast, slow);
            assert!(
                distance <= tolerance,
                "problem {number}, {what}: distance {distance} above {tolerance}"
            );
        }
        let committed = runs.each_ref().map(|pairs| {
            let runs = pairs.iter().flat_map(|pair| &pair.runs);
            runs.filter(|run| run.decided_by == Some(debora::Kind::Commit))
                .count()
        });
        let [fast, slow] = runs.map(|pairs| {
            pairs
                .iter()
                .filter(|pair| pair.divergence.is_none())
                .count() as f64
                / 750.0
        });
        let tolerance = 2.0 * ((4.0f64 / 1e-7).ln() / (2.0 * 750.0)).sqrt();
        assert!(
            (fast - slow).abs() <= tolerance,
            "problem {number}: identical {fast} by epochs, {slow} by rounds"
        );
        // Where a commitment is in doubt, both simulators see runs that commit and runs that do not.
        assert!(
            number != 5 || committed.iter().all(|runs| (100..1_400).contains(runs)),
            "{committed:?}"
        );
        println!("problem {number}: identical {fast} by epochs, {slow} by rounds");
    }
}

/// A world whose costs are twice what the other's are must fail the comparison above: it has power.
#[test]
fn another_world_is_told_apart() {
    let draft = Problem::free(names(3), 20_000, 0.3);
    let rewards = |means: &[Vec<f64>], simulator, key| {
        let experiment = experiment(draft.clone(), means, simulator, key);
        (0..1_500)
            .map(|pair| {
                experiment
                    .run(Contestant::Debora, pair, 0)
                    .unwrap()
                    .reward_mean
            })
            .collect::<Vec<_>>()
    };
    let one = rewards(&[vec![0.3, 0.5, 0.7]], Simulator::Epochs, 1);
    let other = rewards(&[vec![0.3, 0.5, 0.71]], Simulator::Rounds, 2);
    assert!(distance(one, other) > 0.153);
}

/// Sums of 40 pulls by both ways of drawing, 3,000 each, key 3: distance below 2 sqrt(ln(4/1e-7)/6000) = .108, false alarm
/// <= 1e-7 per world and quantity (DKW-Massart). The mean of 120,000 pulls is within Hoeffding's tolerance of the truth.
#[test]
fn pulls_at_once_have_the_law_of_pulls_one_by_one() {
    let problem = Problem::soft(names(2), 1_000, 0.5)
        .reward("reward", [-1.0, 1.0])
        .cost("cost", [0.0, 10.0], 5.0);
    let problem = problem.build().unwrap();
    let law = |values: &[f64], chances: &[f64]| (values.to_vec(), chances.to_vec());
    let rows = (0..60).map(|row| {
        (
            row % 2,
            vec![f64::from(row) / 30.0 - 1.0, f64::from(row * 7 % 10)],
        )
    });
    let worlds: Vec<(&str, Box<dyn World>)> = vec![
        (
            "bernoulli",
            Box::new(Bernoulli::new(&problem, &[vec![-0.5, 0.5], vec![1.0, 9.0]]).unwrap()),
        ),
        (
            "beta",
            Box::new(Beta::new(&problem, &[vec![-0.5, 0.5], vec![1.0, 9.0]], 0.7).unwrap()),
        ),
        (
            "discrete",
            Box::new(
                Discrete::new(
                    &problem,
                    &[
                        vec![
                            law(&[-1.0, 0.0, 0.5], &[0.2, 0.5, 0.3]),
                            law(&[1.0], &[1.0]),
                        ],
                        vec![
                            law(&[0.0, 10.0], &[0.9, 0.1]),
                            law(&[2.0, 3.0, 7.0], &[0.1, 0.8, 0.1]),
                        ],
                    ],
                )
                .unwrap(),
            ),
        ),
        ("table", Box::new(Recorded::new(&problem, rows).unwrap())),
    ];
    let trials = 3_000u64;
    for (name, world) in &worlds {
        for action in 0..2u32 {
            let mut sums = [[vec![], vec![]], [vec![], vec![]]];
            for trial in 0..trials {
                let key = WorldKey::from(3u64).derive(trial, 0);
                let mut at_once = [0u128; 2];
                world.pulls(key, action, 5, 40, &mut at_once);
                // Other pulls of the same world, so that the two sums are independent.
                let mut values = [0.0; 2];
                let mut one_by_one = [0u128; 2];
                for pull in 100..140 {
                    world.pull(key, action, pull, &mut values);
                    one_by_one
                        .iter_mut()
                        .zip(values)
                        .for_each(|(sum, value)| *sum += u128::from(to_fixed(value)));
                }
                for quantity in 0..2 {
                    sums[quantity][0].push(at_once[quantity] as f64 / FIXED_ONE as f64);
                    sums[quantity][1].push(one_by_one[quantity] as f64 / FIXED_ONE as f64);
                }
            }
            for (quantity, [at_once, one_by_one]) in sums.into_iter().enumerate() {
                let truth = world.means()[quantity][action as usize];
                let tolerance = ((2.0f64 / 1e-7).ln() / (2.0 * 40.0 * trials as f64)).sqrt();
                for sample in [&at_once, &one_by_one] {
                    let mean = sample.iter().sum::<f64>() / (40.0 * trials as f64);
                    assert!(
                        (mean - truth).abs() <= tolerance,
                        "{name}, action {action}: mean {mean}, truth {truth}"
                    );
                }
                let distance = distance(at_once, one_by_one);
                assert!(
                    distance <= 0.108,
                    "{name}, action {action}, quantity {quantity}: distance {distance}"
                );
            }
        }
    }
}
