//! However feedback is fed, the engine is the same: round by round, out of order, in batches, by whole epochs, across
//! snapshots, in another process.

use debora::key::Label;
use debora::{Ask, Engine, EpochRecord, Error, Key, Kind, Policy, Problem, Told};

use crate::common::{Coins, draw_epoch, feedback, names, run};

/// One problem for each policy and profile, small enough for thousands of runs, none of the tight ones blind; and those of
/// [`second_version`].
fn problems() -> Vec<Problem> {
    let limited = |draft: debora::problem::Draft| {
        draft
            .cost("price", [0.0, 2.0], 1.0)
            .cost("wait", [-1.0, 1.0], 0.0)
    };
    let safe = |draft: debora::problem::Draft| {
        limited(draft).safe_with_costs([0.75, 0.25, 0.0], [0.5, -0.5])
    };
    let drafts = |horizon: u64| {
        [
            Problem::free(names(3), horizon, 0.9),
            limited(Problem::soft(names(3), horizon, 0.9)),
            safe(Problem::hard(names(3), horizon, 0.9)),
        ]
    };
    let tight = drafts(9_000).map(|draft| draft.delta(0.4).growth(3).build().unwrap());
    let paper = drafts(3_000).map(|draft| draft.delta(0.4).paper().build().unwrap());
    let all = tight.into_iter().chain(paper).chain(third_version());
    all.collect()
}

/// A trial with a pick and with a commitment, ranges by action, known and watched costs, caution, a length of its own, also with
/// a horizon that cuts exploration.
fn third_version() -> [Problem; 6] {
    let tried = |reward: &str| {
        let draft = Problem::free(names(3), 30_000, 0.9).delta(0.4).growth(3);
        draft.reward(reward, [0.0, 1.0])
    };
    let ranges = || vec![[0.0, 0.5], [0.25, 2.0], [1.0, 1.0]];
    let own = |draft: debora::problem::Draft| {
        let draft = draft.delta(0.4).growth(3).watch("seen", [0.0, 1.0]);
        draft.cost("price", ranges(), 1.0)
    };
    let safe = own(Problem::hard(names(3), 9_000, 0.9));
    [
        tried("reward"),
        tried("clear"),
        own(Problem::soft(names(3), 9_000, 0.9)).caution(1.0),
        safe.safe_with_costs([0.75, 0.25, 0.0], [0.6]),
        own(Problem::soft(names(3), 100, 0.9)),
        own(Problem::soft(names(3), 9_000, 0.9)).explore(0.5),
    ]
    .map(|draft| draft.build().unwrap())
}

/// A world for each of them.
fn world(problem: &Problem) -> Coins {
    let unit: [&[f64]; 3] = [&[0.2, 0.5, 0.8], &[0.2, 0.4, 0.7], &[0.1, 0.3, 0.6]];
    let alike: [&[f64]; 1] = [&[0.5, 0.52, 0.5]];
    let is_alike = problem.policy() == Policy::Free && problem.quantity(0).name == "reward";
    let means = if is_alike { &alike[..] } else { &unit[..] };
    Coins::new(&means[..problem.quantities()], 11)
}

fn tell(engine: &mut Engine, world: &Coins, round: u64) -> Told {
    let action = engine.decision(round).unwrap().action;
    let values = feedback(engine.problem(), world, round, action);
    engine
        .tell(round, values[0], &values[1..world.means.len()])
        .unwrap()
}

/// Round by round, and the epoch records.
fn plainly(problem: &Problem, key: Key) -> (Engine, Vec<EpochRecord>) {
    let mut engine = Engine::new(problem.clone(), key);
    let records = run(&mut engine, &world(problem));
    (engine, records)
}

/// Asking in runs of random length, telling in random order and batches, repeating some, restoring a snapshot now and then.
fn wildly(problem: &Problem, key: Key, seed: u64) -> (Engine, Vec<EpochRecord>) {
    let mut engine = Engine::new(problem.clone(), key);
    let world = world(problem);
    // Keyed dice, so that a failure can be played again.
    let mut draws = (0..).map(move |draw| Key::from(seed).block(Label::Threshold, [draw, 0, 0])[0]);
    let mut dice = move |sides: u64| draws.next().expect("endless") % sides;
    let mut records = Vec::new();
    while !engine.is_done() {
        let asked = engine.ask_many(dice(200) as usize);
        for decision in asked {
            assert_eq!(engine.decision(decision.round), Ok(decision));
        }
        let mut rounds: Vec<u64> = engine.outstanding().filter(|_| dice(3) > 0).collect();
        for place in (1..rounds.len()).rev() {
            rounds.swap(place, dice(place as u64 + 1) as usize);
        }
        // Some rounds come twice in one batch, as they do from callers that repeat what may have been lost.
        rounds.extend_from_within(..rounds.len().min(dice(4) as usize));
        let told: Vec<_> = rounds
            .iter()
            .map(|&round| {
                feedback(
                    problem,
                    &world,
                    round,
                    engine.decision(round).unwrap().action,
                )
            })
            .collect();
        let rewards: Vec<f64> = told.iter().map(|values| values[0]).collect();
        let costs: Vec<f64> = told
            .iter()
            .flat_map(|values| &values[1..world.means.len()])
            .copied()
            .collect();
        let outcome = engine.tell_many(&rounds, &rewards, &costs).unwrap();
        assert_eq!(
            outcome.recorded + outcome.repeated + outcome.already_told,
            rounds.len() as u64
        );
        records.extend(outcome.closed.map(|record| *record));
        if dice(5) == 0 {
            let restored = Engine::from_bytes(&engine.to_bytes()).unwrap();
            assert_eq!(restored.to_bytes(), engine.to_bytes());
            engine = restored;
        }
    }
    (engine, records)
}

#[test]
fn any_order_of_telling_gives_the_same_engine() {
    for (number, problem) in problems().iter().enumerate() {
        let key = Key::from(number as u64);
        let (engine, records) = plainly(problem, key);
        assert_eq!(
            records.iter().map(|record| record.rounds).sum::<u64>(),
            problem.horizon()
        );
        assert!(records.len() as u64 <= engine.plan().epochs_max);
        for seed in 0..3 {
            let (other, other_records) = wildly(problem, key, seed);
            assert_eq!(
                other.to_bytes(),
                engine.to_bytes(),
                "problem {number}, seed {seed}"
            );
            assert_eq!(other_records, records, "problem {number}, seed {seed}");
        }
    }
}

#[test]
fn whole_epochs_of_the_same_counts_and_sums_give_the_same_engine() {
    for (number, problem) in problems().iter().enumerate() {
        let key = Key::from(number as u64);
        let (engine, records) = plainly(problem, key);
        let mut whole = Engine::new(problem.clone(), key);
        let mut whole_records = Vec::new();
        while !whole.is_done() {
            let tally = draw_epoch(&whole, &world(problem), key);
            if number % 2 == 0 {
                whole.ask_many(tally.counts().iter().sum::<u64>() as usize / 2);
            }
            whole_records.push(whole.tell_epoch(&tally).unwrap());
        }
        assert_eq!(whole.to_bytes(), engine.to_bytes(), "problem {number}");
        assert_eq!(whole_records, records, "problem {number}");
    }
}

/// The tight problems must reach every kind of epoch they can, or the equivalences above show little.
#[test]
fn the_small_problems_explore_estimate_and_commit() {
    let kinds_of = |problem: &Problem, key: u64| -> Vec<Kind> {
        let (_, records) = plainly(problem, Key::from(key));
        records.iter().map(|record| record.kind).collect()
    };
    let [tried, clear, _, _, blind, _] = third_version();
    // By the keys of the equivalences: the problem's place in the list.
    let kinds = kinds_of(&tried, 6);
    assert!(
        kinds.starts_with(&[Kind::Explore; 3]) && kinds.ends_with(&[Kind::Pick]),
        "{kinds:?}"
    );
    let kinds = kinds_of(&clear, 7);
    assert!(kinds.ends_with(&[Kind::Explore, Kind::Commit]), "{kinds:?}");
    assert_eq!(kinds_of(&blind, 10), [Kind::Explore]);
    let all = problems();
    for problem in all[1..3].iter().chain(&all[8..10]) {
        let kinds = kinds_of(problem, 1);
        assert!(
            kinds.contains(&Kind::Explore) && kinds.contains(&Kind::Estimate),
            "{:?}: {kinds:?}",
            problem.policy()
        );
    }
}

/// Profile paper re-estimates what it should: the action just played (free), every action played (soft and hard).
#[test]
fn paper_estimates_follow_the_algorithms() {
    for problem in &problems()[3..6] {
        let (_, records) = plainly(problem, Key::from(1u64));
        for pair in records.windows(2) {
            let [before, record] = pair else {
                unreachable!()
            };
            let ended = |a: &usize| record.counts[*a] >= (2 * before.counts[*a]).max(1);
            let due: Vec<usize> = match problem.policy() {
                Policy::Free => (0..3).filter(ended).collect(),
                _ => (0..3).filter(|&a| record.counts[a] > 0).collect(),
            };
            assert_eq!((0..3).filter(ended).count(), 1);
            let wanted: Vec<(u32, u32)> = due
                .iter()
                .flat_map(|&a| {
                    (0..problem.quantities_estimated() as u32)
                        .map(move |quantity| (a as u32, quantity))
                })
                .collect();
            let made: Vec<(u32, u32)> = record
                .estimates
                .iter()
                .map(|e| (e.action, e.quantity))
                .collect();
            assert_eq!(made, wanted, "epoch {}", record.epoch);
        }
    }
}

/// An action that profile paper never played counts as one with a single sample of 1/2 (deviation 7): width(0) = width(1). So
/// it is as good as one played once, and better than one played twice: each action in turn has two rounds. With a larger
/// width every action would be tried before any has a second round, with a smaller one action 0 would go on alone.
#[test]
fn an_unplayed_action_has_the_width_of_one_sample() {
    let problem = Problem::free(names(4), 3_000, 0.9).delta(0.4).paper();
    let mut engine = Engine::new(problem.build().unwrap(), Key::from(3u64));
    // Cells are wider than the range, so that every estimate is 1/2 and widths alone decide.
    let records = run(&mut engine, &Coins::new(&[&[0.1, 0.9, 0.2, 0.8]], 1));
    let played: Vec<(usize, u64)> = records[..8]
        .iter()
        .map(|record| {
            (
                record.strategy.iter().position(|x| *x == 1.0).unwrap(),
                record.rounds,
            )
        })
        .collect();
    let in_turn: Vec<(usize, u64)> = (0..8).map(|epoch| (epoch / 2, 1)).collect();
    assert_eq!(played, in_turn);
}

/// Profile tight estimates an action exactly when its count hits a level, and at no other time.
#[test]
fn tight_estimates_are_made_at_fixed_counts() {
    let all = problems();
    for problem in all[1..3].iter().chain(&all[8..10]) {
        let (engine, records) = plainly(problem, Key::from(1u64));
        for record in &records {
            for estimate in &record.estimates {
                let level = engine
                    .plan()
                    .levels
                    .iter()
                    .find(|level| level.count == estimate.count)
                    .expect("a level");
                assert_eq!(estimate.count, record.counts[estimate.action as usize]);
                assert_eq!((estimate.cell, estimate.width), (level.cell, level.width));
            }
        }
        let made = records
            .iter()
            .map(|record| record.estimates.len())
            .sum::<usize>();
        assert!(made >= problem.entries_estimated(), "{made} estimates");
    }
}

#[test]
fn a_snapshot_goes_on_in_another_process() {
    let entry = "engine::a_snapshot_goes_on_in_another_process";
    if let Ok(path) = std::env::var("DEBORA_TEST_SNAPSHOT") {
        let mut engine = Engine::from_bytes(&std::fs::read(path).unwrap()).unwrap();
        let world = world(engine.problem());
        let outstanding: Vec<u64> = engine.outstanding().collect();
        outstanding
            .into_iter()
            .for_each(|round| drop(tell(&mut engine, &world, round)));
        while let Ask::Decision(decision) = engine.ask() {
            tell(&mut engine, &world, decision.round);
        }
        println!("digest={}", engine.digest());
        return;
    }
    for (number, problem) in problems().iter().enumerate() {
        let (whole, _) = plainly(problem, Key::from(9u64));
        let mut engine = Engine::new(problem.clone(), Key::from(9u64));
        let world = world(problem);
        // Told out of order and with gaps, so that the snapshot has feedback above its low-water mark.
        while engine.tally().counts().iter().sum::<u64>() < problem.horizon() / 2 {
            for decision in engine.ask_many(50).iter().rev().step_by(2) {
                tell(&mut engine, &world, decision.round);
            }
            let outstanding: Vec<u64> = engine.outstanding().step_by(2).collect();
            outstanding
                .into_iter()
                .for_each(|round| drop(tell(&mut engine, &world, round)));
        }
        let path =
            std::env::temp_dir().join(format!("debora-snapshot-{}-{number}", std::process::id()));
        std::fs::write(&path, engine.to_bytes()).unwrap();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([entry, "--exact", "--nocapture"])
            .env("DEBORA_TEST_SNAPSHOT", &path)
            .output()
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(
            output.contains(&format!("digest={}", whole.digest())),
            "problem {number}: {output}"
        );
    }
}

#[test]
fn asking_runs_ahead_to_the_end_of_the_epoch_and_waits_there() {
    let draft = Problem::soft(names(2), 400, 0.9).delta(0.4);
    let mut engine = Engine::new(draft.explore(0.165).build().unwrap(), Key::from(0u64));
    // Exploration is 33 rounds of each action.
    let first = engine.ask_many(10_000);
    assert_eq!(first.len(), 66);
    assert!(
        first
            .iter()
            .all(|decision| (decision.epoch, decision.probability) == (0, 0.5))
    );
    assert_eq!(engine.ask(), Ask::Waiting { outstanding: 66 });
    assert!(engine.ask_many(10).is_empty());
    for round in 1..66 {
        assert_eq!(engine.tell(round, 1.0, &[]), Ok(Told::Recorded));
    }
    assert_eq!(engine.ask(), Ask::Waiting { outstanding: 1 });
    assert!(matches!(engine.tell(66, 1.0, &[]), Ok(Told::Closed(record)) if record.rounds == 66));
    assert_eq!(engine.tell(1, 1.0, &[]), Ok(Told::AlreadyTold));
    assert_eq!(
        engine.decision(1),
        Err(Error::RoundGone {
            round: 1,
            first: 67
        })
    );
    while let Ask::Decision(decision) = engine.ask() {
        let _ = engine.tell(decision.round, 0.0, &[]).unwrap();
    }
    assert_eq!((engine.ask(), engine.is_done()), (Ask::Done, true));
    assert_eq!(
        engine.clone().tell_epoch(engine.tally()),
        Err(Error::Done { horizon: 400 })
    );
}

/// With the last round the run is over: a target reached there opens nothing, and the last strategy stays on show.
///
/// Two actions, two levels n and 2n, and a horizon of 4n: exploration brings both to n, and with equal rewards one after the
/// other goes to 2n, the second with the last round.
#[test]
fn a_target_in_the_last_round_makes_no_epoch() {
    let problem = |horizon: u64| {
        let draft = Problem::soft(names(2), horizon, 0.9).delta(0.4).growth(2);
        draft.build().unwrap()
    };
    let fits = |&horizon: &u64| {
        let levels = debora::Plan::of(problem(horizon)).levels;
        levels.len() == 2 && 4 * levels[0].count == horizon
    };
    let horizon = (4..1_000).find(fits).expect("a horizon of four times n");
    let n = horizon / 4;
    let run_of = |key: u64| {
        let mut engine = Engine::new(problem(horizon), Key::from(key));
        let records = run(&mut engine, &Coins::new(&[&[1.0, 1.0]], 1));
        (engine, records)
    };
    // Not every key's grids let them take turns.
    let (engine, records) = (0..100)
        .map(run_of)
        .find(|(engine, _)| engine.tally().counts() == [2 * n; 2])
        .expect("a key by which the actions take turns");
    let lengths: Vec<(u64, u64)> = records
        .iter()
        .map(|record| (record.epoch, record.rounds))
        .collect();
    assert_eq!(lengths, [(0, 2 * n), (1, n), (2, n)]);
    assert_eq!(
        (engine.epoch(), engine.recommendation().kind),
        (2, Kind::Estimate)
    );
    // The action of the last epoch keeps the estimate it had: its second level is reached, and not estimated.
    let last = engine.strategy().only().expect("a single action");
    let counts: Vec<u64> = engine.estimates().map(|estimate| estimate.count).collect();
    assert_eq!(
        (counts[last as usize], counts[1 - last as usize]),
        (n, 2 * n)
    );
}

/// Nothing is known before the first estimate but ranges, and nothing is recommended but the safe strategy.
#[test]
fn before_any_estimate_the_recommendation_says_what_ranges_do() {
    let [_, _, soft, hard, blind, _] = third_version();
    for problem in [soft, hard, blind] {
        let engine = Engine::new(problem.clone(), Key::from(0u64));
        let recommendation = engine.recommendation();
        assert_eq!(recommendation.kind, Kind::Explore);
        let reward = recommendation.current.reward;
        assert!(reward.low == 0.0 && reward.high == 1.0, "{reward:?}");
        let Some(safe) = problem.safe() else {
            assert_eq!(recommendation.cautious, None);
            continue;
        };
        // Its cost is known, so that the recommendation knows more than the ranges.
        let cautious = recommendation.cautious.expect("the safe strategy");
        assert_eq!(cautious.strategy, safe.strategy.probabilities());
        let cost = cautious.costs[1];
        assert!(
            (cost.low - 0.0625).abs() < 1e-12 && (cost.high - 0.6).abs() < 1e-12,
            "{cost:?}"
        );
    }
}

/// The recommendation's intervals are in the user's units and hold the truth in every clean run: of the current strategy and of
/// the cautious one, ten keys each. Which keys are clean is a fact, as they are fixed; most must be, or this shows nothing.
#[test]
fn the_recommendation_holds_the_truth() {
    let all = problems();
    for problem in all[..3].iter().chain(&all[6..]) {
        let mut clean = 0;
        for key in 0..10u64 {
            let (engine, records) = plainly(problem, Key::from(key));
            let world = world(problem);
            if !crate::common::is_clean(&world, &records) || problem.quantity(0).name == "clear" {
                continue;
            }
            clean += 1;
            let recommendation = engine.recommendation();
            for prospect in std::iter::once(recommendation.current).chain(recommendation.cautious) {
                let truth = crate::common::expectations(&world, &prospect.strategy);
                let intervals = std::iter::once(prospect.reward).chain(prospect.costs);
                for (quantity, (unit, interval)) in truth.iter().zip(intervals).enumerate() {
                    if problem.has_ranges_by_action() && quantity > 0 {
                        // Coins are shares of each action's own range.
                        continue;
                    }
                    let value = problem.quantity(quantity).range.to_user(*unit);
                    assert!(
                        interval.low <= value + 1e-12 && value <= interval.high + 1e-12,
                        "{value} outside {interval:?}"
                    );
                }
            }
        }
        assert!(
            clean > 4 || problem.quantity(0).name == "clear",
            "{clean} clean runs"
        );
    }
}

#[test]
fn rounds_decided_together_are_those_decided_alone() {
    for problem in problems() {
        let engine = Engine::new(problem, Key::from(5u64));
        let rounds = |step| (7..).step_by(step).take(333);
        for step in [1, 3] {
            let mut actions = vec![u32::MAX; 333];
            engine.decide_many(rounds(step), &mut actions);
            assert!(
                rounds(step)
                    .map(|round| engine.decide(round).action)
                    .eq(actions.iter().copied())
            );
            // All but the published first epoch of free and soft play more than one action.
            let mixed = actions.iter().any(|&action| action != actions[0]);
            assert_eq!(mixed, engine.strategy().only().is_none());
        }
    }
}

#[test]
fn batches_in_order_are_round_by_round() {
    for problem in problems() {
        let world = world(&problem);
        let (mut one, mut two) = (
            Engine::new(problem.clone(), Key::from(5u64)),
            Engine::new(problem, Key::from(5u64)),
        );
        let mut actions = [0; 100];
        while !one.is_done() {
            let decisions = one.ask_many(actions.len());
            let first = two.next_round();
            let rounds = two.ask_into(&mut actions);
            assert!(
                decisions
                    .iter()
                    .map(|decision| decision.action)
                    .eq(actions[..rounds].iter().copied())
            );
            assert!(
                decisions
                    .iter()
                    .map(|decision| decision.round)
                    .eq(first..first + rounds as u64)
            );
            let mut batch = (Vec::new(), Vec::new(), Vec::new());
            for decision in decisions {
                let values = feedback(two.problem(), &world, decision.round, decision.action);
                batch.0.push(decision.round);
                batch.1.push(values[0]);
                batch.2.extend(&values[1..world.means.len()]);
                tell(&mut one, &world, decision.round);
            }
            // Of a batch with one wrong value nothing is told, and a batch that begins with rounds told before tells the rest.
            let wrong = [&batch.1[1..], &[7.0]].concat();
            let before = two.to_bytes();
            assert!(matches!(
                two.tell_many(&batch.0, &wrong, &batch.2),
                Err(Error::Outside { .. })
            ));
            assert_eq!(two.to_bytes(), before);
            let (half, costs) = (batch.0.len() / 2, world.means.len() - 1);
            let told = two
                .tell_many(&batch.0[..half], &batch.1[..half], &batch.2[..half * costs])
                .unwrap();
            assert_eq!((told.recorded, told.already_told), (half as u64, 0));
            let told = two.tell_many(&batch.0, &batch.1, &batch.2).unwrap();
            assert_eq!(
                (told.recorded, told.already_told),
                ((batch.0.len() - half) as u64, half as u64)
            );
            assert_eq!(
                told.closed.is_some(),
                two.next_round() == two.open_record().first_round || two.is_done()
            );
        }
        assert_eq!(one.digest(), two.digest());
    }
}

/// What others would otherwise work out for themselves, beside the definition of each.
#[test]
fn facts_have_one_home() {
    for problem in problems() {
        let mut engine = Engine::new(problem.clone(), Key::from(4u64));
        let world = world(&problem);
        let mut counts = vec![0; problem.actions().len()];
        while let Ask::Decision(decision) = engine.ask() {
            counts[decision.action as usize] += 1;
            // An epoch is handed out exactly when asking would wait, and the counts alone say so.
            assert_eq!(engine.is_handed_out_at(&counts), engine.is_handed_out());
            if engine.is_handed_out() {
                assert!(matches!(
                    engine.clone().ask(),
                    Ask::Waiting { outstanding: 1 }
                ));
            }
            tell(&mut engine, &world, decision.round);
        }
        assert!(engine.is_handed_out());
        for estimate in engine.estimates() {
            let [low, high] = estimate.interval();
            assert!((0.0..=1.0).contains(&low) && (low..=1.0).contains(&high));
            assert!(low <= estimate.estimate && estimate.estimate <= high);
            let Some(index) = estimate.index else {
                assert_eq!(estimate.nearest_edge(0, engine.plan()), None);
                continue;
            };
            // The mean lies between the edges towards the cells on both sides, which are a cell apart.
            let [below, above] = [index - 1, index + 1]
                .map(|other| estimate.nearest_edge(other, engine.plan()).unwrap());
            assert!(below <= estimate.mean + 1e-12 && estimate.mean < above + 1e-12);
            let on_the_line = engine.plan().offset_c.is_some();
            assert!(on_the_line || (above - below - estimate.cell).abs() < 1e-12);
        }
        for ((cost, threshold), unit) in problem.limits().zip(problem.thresholds()) {
            assert_eq!(threshold, cost.range.to_user(*unit));
        }
    }
}
