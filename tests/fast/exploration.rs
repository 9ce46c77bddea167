//! Exploration as a trial has it: exact counts, balanced prefixes, an order that is a function of key and round.

use debora::{Ask, Engine, Key, Kind, Plan, Problem};

use crate::common::{Coins, feedback, names, run};

/// Problems whose exploration ends, in stages and in one go, with few and many actions; and blind ones.
fn problems() -> Vec<Problem> {
    let staged = |actions: usize| {
        Problem::free(names(actions), 40_000, 0.9)
            .delta(0.4)
            .growth(3)
    };
    let drafts = [
        staged(2),
        staged(3),
        Problem::free(names(2), 400, 0.9).delta(0.4),
        Problem::soft(names(5), 9_000, 0.9)
            .delta(0.4)
            .cost("cost", [0.0, 1.0], 0.5),
        // Blind, and cut by the horizon inside a block: 4 blocks of 24 rounds and 4 rounds.
        Problem::free(names(3), 100, 0.1),
        Problem::soft(names(7), 3, 0.5),
    ];
    drafts.map(|draft| draft.build().unwrap()).into()
}

/// The actions of the open epoch, whose rounds must be known beforehand, as no outcome matters to them.
fn actions_of(engine: &Engine) -> Vec<u32> {
    let mut clone = engine.clone();
    let mut actions = Vec::new();
    while let Ask::Decision(decision) = clone.ask() {
        assert_eq!(decision.epoch, engine.epoch());
        assert_eq!(
            decision.probability,
            1.0 / engine.problem().actions().len() as f64
        );
        actions.push(decision.action);
    }
    actions
}

/// All rewards alike: nothing is clear, and exploration goes to its end.
fn tell_all(engine: &mut Engine) {
    let costs = vec![0.0; engine.problem().quantities() - 1];
    while let Ask::Decision(decision) = engine.ask() {
        if engine.tell(decision.round, 0.0, &costs).is_ok() && engine.open_record().rounds == 0 {
            return;
        }
    }
}

/// Every stage brings every action to exactly its count, in blocks that hold each action eight times, the last one as often as
/// is left; so at any round no action is more than eight ahead of another, and a world that drifts favours none.
#[test]
fn counts_are_exact_and_every_prefix_is_balanced() {
    for problem in problems() {
        let plan = Plan::of(problem.clone());
        let k = problem.actions().len();
        let mut engine = Engine::new(problem.clone(), Key::from(3u64));
        let looks = engine.open_record().looks.clone();
        let mut ends = looks.map_or(Vec::new(), |looks| looks.counts);
        let trial = plan.trial.as_ref().map(|trial| trial.count);
        ends.extend(trial.or(plan.first_informative_count));
        ends.dedup();
        let mut counts = vec![0u64; k];
        let mut furthest = 0;
        for &end in &ends {
            assert_eq!(engine.open_record().kind, Kind::Explore);
            let actions = actions_of(&engine);
            for (number, block) in actions.chunks(8 * k).enumerate() {
                let left = end - engine.open_record().counts[0] - 8 * number as u64;
                for action in 0..k as u32 {
                    let times = block.iter().filter(|&&played| played == action).count() as u64;
                    assert_eq!(times, left.min(8), "action {action} in block {number}");
                }
            }
            for &action in &actions {
                counts[action as usize] += 1;
                let apart = counts.iter().max().unwrap() - counts.iter().min().unwrap();
                assert!(apart <= 8, "{counts:?}");
                furthest = furthest.max(apart);
            }
            assert_eq!(counts, vec![end; k], "a stage ends when all have its count");
            tell_all(&mut engine);
        }
        // Smaller blocks would give away more of what comes next. Of two actions one is five ahead somewhere in a block with
        // probability .087, so that in 500 blocks it never is with probability 1e-20.
        assert!(
            furthest > 4 || counts[0] < 4_000,
            "never more than {furthest} apart"
        );
        if plan.blind {
            // To the horizon, wherever in a block that is.
            let actions = actions_of(&engine);
            assert_eq!(actions.len() as u64, problem.horizon());
            let short = actions.chunks(8 * k).rev().skip(1);
            assert!(short.into_iter().all(|block| {
                (0..k as u32).all(|a| block.iter().filter(|&&b| b == a).count() == 8)
            }));
        } else {
            assert_eq!(
                engine.next_round() - 1,
                plan.exploration_rounds.unwrap(),
                "exactly K n_f rounds"
            );
            assert_ne!(engine.open_record().kind, Kind::Explore);
        }
    }
}

/// A decision is a function of key and round: asked one by one, many at once, into a buffer, looked up alone, in any order, on
/// a fresh copy, across a snapshot in mid-block, after telling out of order.
#[test]
fn every_way_of_asking_gives_the_same_actions() {
    for problem in problems() {
        let fresh = Engine::new(problem.clone(), Key::from(8u64));
        let alone = actions_of(&fresh);
        let rounds = alone.len() as u64;
        let action = |round: u64| alone[round as usize - 1];
        // No state, and in no order: each of these calls draws its block anew.
        for round in (1..=rounds).rev().step_by(1 + alone.len() / 500) {
            assert_eq!(fresh.decide(round).action, action(round), "round {round}");
        }
        let mut many = vec![u32::MAX; alone.len()];
        fresh.decide_many(1.., &mut many);
        assert_eq!(many, alone);
        let mut backwards = vec![u32::MAX; alone.len()];
        fresh.decide_many((1..=rounds).rev(), &mut backwards);
        assert!(backwards.iter().rev().eq(&alone));
        let mut buffered = fresh.clone();
        let mut actions = vec![u32::MAX; alone.len() + 10];
        let mut filled = 0;
        // In pieces that end anywhere in a block.
        while filled < alone.len() {
            let end = (filled + 37).min(actions.len());
            filled += buffered.ask_into(&mut actions[filled..end]);
        }
        assert_eq!(buffered.ask_into(&mut actions[filled..]), 0);
        assert_eq!(actions[..alone.len()], alone);
        let mut snapshot = fresh.clone();
        let mut asked = Vec::new();
        while let Some(first) = snapshot.ask_many(29).first().copied() {
            asked.extend(
                (first.round..snapshot.next_round())
                    .map(|round| snapshot.decision(round).unwrap().action),
            );
            // Some of it told, from the end, so that asking and telling are in different blocks.
            let costs = vec![0.0; problem.quantities() - 1];
            let outstanding: Vec<u64> = snapshot.outstanding().collect();
            for round in outstanding
                .into_iter()
                .rev()
                .step_by(3)
                .filter(|round| *round > 1)
            {
                snapshot.tell(round, 0.0, &costs).unwrap();
            }
            snapshot = Engine::from_bytes(&snapshot.to_bytes()).unwrap();
        }
        assert_eq!(asked, alone);
        // Exploration waits for no outcome: none of these runs was told its first round.
        assert!(snapshot.outstanding().any(|round| round == 1));
    }
}

/// An outcome counts for the action of its round, also if it is told when the asking is blocks ahead.
#[test]
fn outcomes_count_for_the_action_of_their_round() {
    for problem in problems() {
        let world = Coins::new(&[&[0.3, 0.9, 0.5, 0.1, 0.7, 0.2, 0.6], &[0.5; 7]], 5);
        let mut plain = Engine::new(problem.clone(), Key::from(2u64));
        let mut far = plain.clone();
        let alone = actions_of(&plain);
        let mut tallies = vec![0.0; problem.actions().len()];
        while !far.ask_many(1_000).is_empty() {}
        let quantities = problem.quantities();
        for round in (1..=alone.len() as u64).rev() {
            let action = alone[round as usize - 1];
            let values = feedback(&problem, &world, round, action);
            tallies[action as usize] += values[0];
            far.tell(round, values[0], &values[1..quantities]).unwrap();
        }
        for (action, sum) in tallies.iter().enumerate() {
            let told = far.tally().sums()[action * quantities];
            assert_eq!(told, crate::common::ones(*sum as u64), "action {action}");
        }
        run(&mut plain, &world);
        let first = alone.len() as u64 + 1;
        if first <= problem.horizon() {
            run(&mut far, &world);
        }
        assert_eq!(far.digest(), plain.digest());
    }
}

/// Orders of one run's epochs and of different keys differ, as beside the code that draws them; here through the engine.
#[test]
fn stages_and_keys_have_orders_of_their_own() {
    let problem = problems().swap_remove(1);
    let mut engine = Engine::new(problem.clone(), Key::from(3u64));
    let first = actions_of(&engine);
    tell_all(&mut engine);
    assert_eq!(
        (engine.epoch(), engine.open_record().kind),
        (1, Kind::Explore)
    );
    let second = actions_of(&engine);
    // A block of three actions has 9e9 orders; that two are equal by chance has probability 1e-10.
    assert_ne!(
        first[..24],
        second[..24],
        "the second stage repeats the first one's order"
    );
    assert_ne!(
        first[..24],
        first[24..48],
        "the second block repeats the first one's order"
    );
    let other = actions_of(&Engine::new(problem, Key::from(4u64)));
    assert_ne!(first[..24], other[..24], "two keys have one order");
}
