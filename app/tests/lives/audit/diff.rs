//! Two experiments diverge where an independent run of two engines diverges, for the reason it has.

use debora::key::Label;
use debora::line::MeanLine;
use debora::spec::Spec;
use debora::{Ask, Engine, EpochRecord, Estimate, Kind, Plan, Told, WorldKey};
use debora_cli::audit::{Diff, DivergingEstimate, diff};
use debora_cli::service::request::Granted;

use crate::kit::requests::{ask, tell, told};
use crate::kit::trial::{CLEAR, FREE, HARD, SOFT, Trial, read, text};

/// A world's feedback of a round, around means that every world has of its own, so that divergence is no rare event.
fn feedback(world: WorldKey, round: u64, action: u32, costs: usize) -> (f64, Vec<f64>) {
    let draw = |quantity: usize| {
        let quantity = quantity as u64;
        let mean = world.uniform(Label::Feedback, [0, quantity, u64::from(action)]);
        (world.uniform(Label::Feedback, [round, quantity, 0]) + mean) / 2.0
    };
    (draw(0), (1..=costs).map(draw).collect())
}

/// The records of all epochs, and the estimates in force in each.
fn engine_run(spec: &str, key: u64, world: WorldKey) -> Vec<(EpochRecord, Vec<Estimate>)> {
    let problem = Spec::parse(spec, "spec").unwrap().problem;
    let costs = problem.quantities() - 1;
    let mut engine = Engine::new(problem, key.into());
    let mut estimates: Vec<Vec<Estimate>> = vec![engine.estimates().collect()];
    let mut records = Vec::new();
    while let Ask::Decision(decision) = engine.ask() {
        let (reward, costs) = feedback(world, decision.round, decision.action, costs);
        if let Told::Closed(record) = engine.tell(decision.round, reward, &costs).unwrap() {
            records.push(*record);
            estimates.push(engine.estimates().collect());
        }
    }
    records.into_iter().zip(estimates).collect()
}

/// The same run as a live experiment, up to a round.
fn live_run(spec: &str, key: u64, world: WorldKey, rounds: u64) -> Trial {
    let mut trial = Trial::new(spec, key, 0);
    let costs = spec.matches("[[cost]]").count();
    loop {
        let next = trial.progress().next_round;
        let asked = 25.min((rounds + 1).saturating_sub(next));
        let decide = ask(trial.id, asked);
        if asked == 0 {
            return trial;
        }
        let Ok(Granted::Decided(decided)) = trial.ask(decide) else {
            return trial;
        };
        let outcomes =
            (decided.lease.first..)
                .zip(&decided.lease.actions)
                .map(|(round, &action)| {
                    let (reward, costs) = feedback(world, round, action, costs);
                    told(round, reward, costs)
                });
        let tell = tell(trial.id, outcomes);
        trial.ask(tell).unwrap();
    }
}

fn compared(one: &Trial, two: &Trial) -> Diff {
    diff([one, two].map(|trial| read(&text(&trial.log(1_000, true))))).unwrap()
}

/// Checks one diverging estimate against the estimates of the two engines, without the grid's edges: by the place within the cell.
fn check_diverging(diverging: &DivergingEstimate, spec: &Spec, estimates: [&[Estimate]; 2]) {
    let problem = &spec.problem;
    let action = diverging.action;
    assert_eq!(problem.actions()[action as usize], diverging.name);
    let quantity = (0..problem.quantities())
        .find(|q| problem.quantity(*q).name == diverging.quantities[0])
        .unwrap();
    let range = problem.quantity(quantity).range;
    let [one, two] = estimates.map(|all| {
        all.iter()
            .find(|e| (e.action, e.quantity as usize) == (action, quantity))
            .unwrap()
    });
    assert_eq!(diverging.cells.map(Some), [one.index, two.index]);
    assert_eq!((diverging.epoch, diverging.count), (one.epoch, one.count));
    let plan = Plan::of(problem.clone());
    let upwards = one.index < two.index;
    for (side, (estimate, up)) in [(one, upwards), (two, !upwards)].into_iter().enumerate() {
        let on_line = MeanLine::new(estimate.count, plan.offset_c.unwrap());
        let place = on_line.of_mean(estimate.mean);
        let within = (place / estimate.cell - estimate.offset).rem_euclid(1.0);
        let expected = if up { 1.0 - within } else { within };
        let near = |got: f64, expected: f64| {
            assert!((got - expected).abs() < 1e-9, "{got} against {expected}")
        };
        near(diverging.distances_in_cells[side], expected);
        let sign = if up { 1.0 } else { -1.0 };
        let edge = on_line.mean(place + sign * expected * estimate.cell);
        let distance = (edge - estimate.mean).abs();
        near(diverging.distances[side], distance * range.span());
        near(diverging.means[side], range.to_user(estimate.mean));
        near(
            diverging.edges[side],
            diverging.means[side] + sign * diverging.distances[side],
        );
    }
}

#[test]
fn experiments_diverge_where_two_engines_do_and_for_the_same_reason() {
    for spec in [SOFT, HARD, FREE] {
        let (mut diverged, mut together) = (0, 0);
        for world in 1..40u64 {
            let worlds = [WorldKey::from(0u64), WorldKey::from(world)];
            let runs = worlds.map(|world| engine_run(spec, 42, world));
            let divergence = runs[0]
                .iter()
                .zip(&runs[1])
                .position(|(one, two)| one.0.strategy != two.0.strategy);
            // A few of both kinds.
            let wanted = if divergence.is_some() {
                &mut diverged
            } else {
                &mut together
            };
            *wanted += 1;
            if *wanted > 2 {
                continue;
            }
            let trials = worlds.map(|world| live_run(spec, 42, world, u64::MAX - 1));
            let comparison = compared(&trials[0], &trials[1]);
            assert_eq!(
                (comparison.same_key, comparison.specs.len()),
                (Some(true), 0)
            );
            match divergence {
                None => {
                    assert_eq!(comparison.divergence, None);
                    let rounds = Spec::parse(spec, "spec").unwrap().problem.horizon();
                    assert_eq!(
                        (comparison.rounds, comparison.epochs),
                        (rounds, runs[0].len() as u64)
                    );
                }
                Some(epoch) => {
                    let divergence = comparison.divergence.unwrap();
                    assert_eq!(
                        (divergence.epoch, divergence.first_round),
                        (epoch as u64, runs[0][epoch].0.first_round)
                    );
                    assert!(comparison.rounds + 1 >= divergence.first_round);
                    assert_eq!(
                        divergence.strategies,
                        [0, 1].map(|side: usize| runs[side][epoch].0.strategy.clone())
                    );
                    let estimates = [0, 1].map(|side: usize| &runs[side][epoch].1[..]);
                    let found = [0, 1].map(|side: usize| &runs[side][epoch].0);
                    if found.map(|record| record.kind) == [Kind::Pick; 2] {
                        let picked = divergence.diverging_pick.unwrap();
                        let best = |record: &EpochRecord| {
                            let place = record.strategy.iter().position(|&share| share == 1.0);
                            ["a", "b", "c"][place.unwrap()]
                        };
                        assert_eq!(picked.actions, found.map(best));
                        assert_eq!(picked.count, found[0].counts[0]);
                        continue;
                    }
                    let differing = estimates[0]
                        .iter()
                        .zip(estimates[1])
                        .filter(|(a, b)| a.index != b.index)
                        .count();
                    assert!(
                        differing > 0 && divergence.diverging_estimates.len() == differing,
                        "{divergence:?}"
                    );
                    let spec = Spec::parse(spec, "spec").unwrap();
                    divergence
                        .diverging_estimates
                        .iter()
                        .for_each(|diverging| check_diverging(diverging, &spec, estimates));
                }
            }
        }
        assert!(
            diverged > 0 && together > 0,
            "{diverged} diverged, {together} did not: {spec}"
        );
    }
}

#[test]
fn an_experiment_that_has_come_less_far_has_the_same_decisions_so_far() {
    let world = WorldKey::from(5u64);
    let (short, long) = (
        live_run(FREE, 42, world, 90),
        live_run(FREE, 42, world, 130),
    );
    let comparison = compared(&short, &long);
    assert_eq!(
        (comparison.rounds, comparison.decided, comparison.divergence),
        (90, [90, 130], None)
    );
}

#[test]
fn other_keys_and_other_specs_are_named() {
    let world = WorldKey::from(5u64);
    let one = live_run(HARD, 42, world, 200);
    let other_key = compared(&one, &live_run(HARD, 43, world, 200));
    assert_eq!(other_key.same_key, Some(false));
    let divergence = other_key.divergence.unwrap();
    let (_, actions) = divergence.first_different.unwrap();
    assert_ne!(actions[0], actions[1]);
    let spec = HARD.replace("threshold = 0.6", "threshold = 0.5");
    let other_spec = compared(&one, &live_run(&spec, 42, world, 200));
    let facts: Vec<&str> = other_spec
        .specs
        .iter()
        .map(|fact| fact.what.as_str())
        .collect();
    assert_eq!(
        facts,
        [
            "cost 1, threshold",
            "margins of the safe strategy, on the unit scale"
        ]
    );
}

#[test]
fn keys_that_are_not_revealed_are_told_apart_by_the_grids() {
    let world = WorldKey::from(5u64);
    let hidden = |trial: &Trial| read(&text(&trial.log(1_000, false)));
    let [one, same, other] = [42, 42, 43].map(|key| live_run(SOFT, key, world, 150));
    assert_eq!(
        diff([hidden(&one), hidden(&same)]).unwrap().same_key,
        Some(true)
    );
    assert_eq!(
        diff([hidden(&one), hidden(&other)]).unwrap().same_key,
        Some(false)
    );
}

/// Some epochs of an experiment in which `b` gives this much and `a` nothing.
fn with_lead(lead: f64) -> Trial {
    let mut trial = Trial::new(CLEAR, 42, 0);
    for _ in 0..20 {
        let decide = ask(trial.id, 100);
        let Ok(Granted::Decided(decided)) = trial.ask(decide) else {
            panic!("nothing is decided")
        };
        let outcomes = (decided.lease.first..).zip(&decided.lease.actions);
        let outcomes = outcomes.map(|(round, &action)| told(round, lead * f64::from(action), []));
        let tell = tell(trial.id, outcomes);
        trial.ask(tell).unwrap();
    }
    trial
}

/// By the line and the thresholds' range, from the specification: a lead of 1/20 is not clear where one of 1 is for the first time.
#[test]
fn a_look_with_other_results_is_the_reason() {
    let leads = [1.0, 0.05];
    let found = compared(&with_lead(leads[0]), &with_lead(leads[1]));
    assert_eq!(found.same_key, Some(true));
    let divergence = found.divergence.unwrap();
    let test = divergence.diverging_test.unwrap();
    assert_eq!(divergence.first_round, 2 * test.count + 1);
    assert_eq!(test.committed, [true, false]);
    assert_eq!(test.leaders, ["b", "b"]);
    let trial = Plan::of(Spec::parse(CLEAR, "spec").unwrap().problem).trial;
    let (trial, count) = (trial.unwrap(), test.count as f64);
    let place = |mean: f64| {
        let ones = (count * mean + trial.offset_c).sqrt();
        ones.atan2((count - count * mean + trial.offset_c).sqrt())
    };
    for (side, lead) in leads.into_iter().enumerate() {
        let expected = place(lead) - place(0.0);
        assert!((test.leads[side] - expected).abs() < 1e-9, "{test:?}");
        let distance = (expected - test.thresholds[side]).abs();
        assert!((test.distances[side] - distance).abs() < 1e-9, "{test:?}");
        let threshold = test.thresholds[side] * count.sqrt() / trial.threshold;
        assert!((1.0..=2.0).contains(&threshold), "{test:?}");
    }
}
