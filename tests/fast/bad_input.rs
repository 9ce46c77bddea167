//! Bad input gives an error that names the value and the rule; the state stays as it was, and nothing panics.

use debora::problem::{Draft, Outside};
use debora::{Ask, Engine, Error, Key, Kind, Plan, Problem, Tally, Told};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::common::{Coins, draw_epoch, names, ones};

fn soft() -> Draft {
    Problem::soft(names(3), 5_000, 0.9)
        .delta(0.4)
        .growth(3)
        .reward("clicks", [-1.0, 3.0])
        .cost("price", [0.0, 0.02], 0.003)
}

fn hard() -> Draft {
    Problem::hard(names(3), 5_000, 0.9)
        .delta(0.4)
        .growth(3)
        .cost("price", [0.0, 1.0], 0.5)
}

/// Every rule of a problem: a draft that breaks it, and the message a person gets.
#[test]
fn every_rule_of_a_problem_has_its_error() {
    let two = || names(2);
    let cases: Vec<(Draft, &str)> = vec![
        (
            Problem::free(names(1), 10, 0.5),
            "1 actions; give at least 2 to choose from, and at most 1048576",
        ),
        (
            Problem::free(names(0), 10, 0.5),
            "0 actions; give at least 2 to choose from, and at most 1048576",
        ),
        (
            Problem::free(["a", ""], 10, 0.5),
            "action 1 has an empty name; give it one",
        ),
        (
            Problem::free(["a", "b", "a"], 10, 0.5),
            r#"action "a" is named twice; give each its own name"#,
        ),
        (
            soft().cost("price", [0.0, 1.0], 0.5),
            r#"quantity "price" is named twice; give each its own name"#,
        ),
        (
            Problem::free(two(), 0, 0.5),
            "horizon 0 is outside 1 to 2^53 = 9007199254740992; give the number of rounds you will run",
        ),
        (
            Problem::free(two(), (1 << 53) + 1, 0.5),
            "horizon 9007199254740993 is outside 1 to 2^53 = 9007199254740992; give the number of rounds you will run",
        ),
        (
            Problem::free(two(), 10, 0.0),
            "rho 0.0 is outside (0, 1) or below 1e-100; give the chance of differing decisions you accept, say 0.1",
        ),
        (
            Problem::free(two(), 10, 1.0),
            "rho 1.0 is outside (0, 1) or below 1e-100; give the chance of differing decisions you accept, say 0.1",
        ),
        (
            Problem::free(two(), 10, f64::NAN),
            "rho NaN is outside (0, 1) or below 1e-100; give the chance of differing decisions you accept, say 0.1",
        ),
        (
            Problem::free(two(), 10, 0.5).delta(-0.1),
            "delta -0.1 is outside (0, 1) or below 1e-100; give the chance of failing bounds you accept, say 0.01",
        ),
        (
            Problem::free(two(), 10, 0.5).delta(f64::INFINITY),
            "delta inf is outside (0, 1) or below 1e-100; give the chance of failing bounds you accept, say 0.01",
        ),
        (
            Problem::free(two(), 10, 0.2).delta(0.1).paper(),
            "profile paper needs 2 delta < rho, but delta is 0.1 and rho 0.2; lower delta or use profile tight",
        ),
        (
            Problem::free(two(), 10, 0.5).growth(1),
            "growth 1 is outside 2 to 64; leave it out for the default of 8",
        ),
        (
            Problem::free(two(), 10, 0.5).growth(65),
            "growth 65 is outside 2 to 64; leave it out for the default of 8",
        ),
        (
            Problem::free(two(), 10, 0.5).paper().growth(8),
            "growth 8 is given with profile paper, which always doubles; leave it out or use profile tight",
        ),
        (
            soft().reward("clicks", [1.0, 1.0]),
            r#"range [1.0, 1.0] of "clicks" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft().cost("wait", [0.0, f64::INFINITY], 0.5),
            r#"range [0.0, inf] of "wait" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft().cost("wait", [-1e308, 1e308], 0.5),
            r#"range [-1e308, 1e308] of "wait" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft().cost("wait", [0.0, 1.0], -0.4),
            r#"threshold -0.4 of cost "wait" is below its range [0.0, 1.0] or no number; use the range's units"#,
        ),
        (
            soft().cost("wait", [0.0, 1.0], f64::NAN),
            r#"threshold NaN of cost "wait" is below its range [0.0, 1.0] or no number; use the range's units"#,
        ),
        (
            soft().cost("wait", vec![[0.0, 1.0], [0.5, 0.5]], 0.5),
            r#"cost "wait" has 2 ranges for 3 actions; give one for each, or one for all"#,
        ),
        (
            soft().watch("wait", vec![[0.0, 1.0], [0.5, 0.5], [2.0, 1.0]]),
            r#"range [2.0, 1.0] of "wait" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft().watch("wait", vec![[0.5, 0.5]; 3]),
            r#"range [0.5, 0.5] of "wait" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft().watch("wait", vec![[0.0, 1.0], [f64::NAN, f64::NAN], [0.0, 1.0]]),
            r#"range [NaN, NaN] of "wait" is not two finite numbers in increasing order; give [least, largest]"#,
        ),
        (
            soft()
                .paper()
                .delta(0.01)
                .watch("wait", vec![[0.0, 1.0], [0.5, 0.5], [0.0, 0.5]]),
            r#"cost "wait" has a range for each action, which profile paper does not know; give one range or use profile tight"#,
        ),
        (
            soft().explore(1.0),
            "explore 1.0 is outside (0, 1); give the share of the horizon that exploration is to take, say 0.2, or leave it out",
        ),
        (
            soft().explore(f64::NAN),
            "explore NaN is outside (0, 1); give the share of the horizon that exploration is to take, say 0.2, or leave it out",
        ),
        (
            soft().paper().explore(0.5),
            "explore 0.5 is given with profile paper, whose exploration has no length of its own; leave it out or use profile tight",
        ),
        (
            soft().caution(1.5),
            "caution 1.5 is outside 0 to 1; leave it out for the default of 0.5",
        ),
        (
            soft().caution(-0.5),
            "caution -0.5 is outside 0 to 1; leave it out for the default of 0.5",
        ),
        (
            hard().caution(0.5),
            "caution is given, but policy hard does not use it; leave it out or use policy soft",
        ),
        (
            hard(),
            "policy hard has no safe strategy; give a strategy known to be safe and its costs or margins",
        ),
        (
            soft().safe_with_margins([1.0, 0.0, 0.0], [0.001]),
            "a safe strategy is given, but policy soft does not use one; leave it out or use policy hard",
        ),
        (
            hard().safe_with_margins([1.0, 0.0], [0.1]),
            "the safe strategy has 2 probabilities for 3 actions; give one for each",
        ),
        (
            hard().safe_with_margins([1.5, -0.5, 0.0], [0.1]),
            r#"the safe strategy plays "action 0" with probability 1.5; give numbers from 0 to 1"#,
        ),
        (
            hard().safe_with_margins([0.5, f64::NAN, 0.5], [0.1]),
            r#"the safe strategy plays "action 1" with probability NaN; give numbers from 0 to 1"#,
        ),
        (
            hard().safe_with_margins([0.5, 0.25, 0.0], [0.1]),
            "the safe strategy's probabilities sum to 0.75; make them sum to 1",
        ),
        (
            hard().safe_with_margins([1.0, 0.0, 0.0], [0.1, 0.1]),
            "the safe strategy has 2 known costs or margins for 1 limited costs; give one for each",
        ),
        (
            hard().safe_with_margins([1.0, 0.0, 0.0], [0.0]),
            r#"the safe strategy's margin 0.0 on cost "price" is not above 0 and at most 0.5; its cost must be known to lie below the threshold and within the range"#,
        ),
        (
            hard().safe_with_costs([1.0, 0.0, 0.0], [0.75]),
            r#"the safe strategy's margin -0.25 on cost "price" is not above 0 and at most 0.5; its cost must be known to lie below the threshold and within the range"#,
        ),
        (
            hard().safe_with_costs([1.0, 0.0, 0.0], [-0.25]),
            r#"the safe strategy's margin 0.75 on cost "price" is not above 0 and at most 0.5; its cost must be known to lie below the threshold and within the range"#,
        ),
        (
            hard().safe_with_costs([1.0, 0.0, 0.0], [f64::NAN]),
            r#"the safe strategy's margin NaN on cost "price" is not above 0 and at most 0.5; its cost must be known to lie below the threshold and within the range"#,
        ),
    ];
    for (draft, message) in cases {
        let error = draft.clone().build().expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn edge_values_are_allowed() {
    assert!(Problem::free(names(2), 1 << 53, 0.5).build().is_ok());
    assert!(
        soft()
            .cost("wait", [0.0, 1.0], 1.0)
            .cost("risk", [0.0, 1.0], 0.0)
            .build()
            .is_ok()
    );
    assert!(
        hard()
            .safe_with_costs([1.0, 0.0, 0.0], [0.0])
            .build()
            .is_ok()
    );
    assert!(
        Problem::hard(names(2), 100, 0.5)
            .safe_with_margins([0.5, 0.5], [])
            .build()
            .is_ok()
    );
    // A limit above the range never binds, and ranges that are all the same are one range.
    let lax = soft().cost("wait", [0.0, 2.0], 9.0).build().unwrap();
    assert_eq!((lax.thresholds()[1], lax.threshold(1)), (1.0, Some(9.0)));
    let same = |range: debora::problem::CostRange| soft().watch("wait", range).build().unwrap();
    assert_eq!(same([0.0, 2.0].into()), same(vec![[0.0, 2.0]; 3].into()));
    assert!(soft().caution(0.0).explore(1e-9).build().is_ok());
    let nearly = hard()
        .safe_with_margins([0.3, 0.3, 0.4 + 5e-10], [0.1])
        .build()
        .unwrap();
    assert!(
        (nearly
            .safe()
            .unwrap()
            .strategy
            .probabilities()
            .iter()
            .sum::<f64>()
            - 1.0)
            .abs()
            < 1e-15
    );
}

/// Asserts that a call fails as said and leaves the engine's bytes alone.
fn refuses<T: std::fmt::Debug>(
    engine: &mut Engine,
    call: impl FnOnce(&mut Engine) -> Result<T, Error>,
    message: &str,
) {
    let before = engine.to_bytes();
    let error = call(engine).expect_err(message);
    assert_eq!(error.to_string(), message);
    assert_eq!(engine.to_bytes(), before, "state changed by: {message}");
}

#[test]
fn bad_feedback_leaves_the_round_open() {
    let mut engine = Engine::new(soft().build().unwrap(), Key::from(1u64));
    refuses(
        &mut engine,
        |e| e.tell(1, 0.0, &[0.0]),
        "round 1 was not asked for yet; the next one to be handed out is 1",
    );
    refuses(
        &mut engine,
        |e| e.decision(1),
        "round 1 was not asked for yet; the next one to be handed out is 1",
    );
    let _ = engine.ask();
    let outside = |value: &str| {
        format!(
            r#""clicks" was told as {value}, outside its range [-1.0, 3.0]; nothing was recorded"#
        )
    };
    for (value, text) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (3.0000001, "3.0000001"),
        (-1.5, "-1.5"),
    ] {
        refuses(&mut engine, |e| e.tell(1, value, &[0.0]), &outside(text));
    }
    let price = r#""price" was told as 0.021, outside its range [0.0, 0.02]; nothing was recorded"#;
    refuses(&mut engine, |e| e.tell(1, 0.0, &[0.021]), price);
    refuses(
        &mut engine,
        |e| e.tell(1, 0.0, &[]),
        "0 costs were told where the problem has 1; nothing was recorded",
    );
    refuses(
        &mut engine,
        |e| e.tell(1, 0.0, &[0.0, 0.0]),
        "2 costs were told where the problem has 1; nothing was recorded",
    );
    refuses(
        &mut engine,
        |e| e.tell(0, 0.0, &[0.0]),
        "round 0 does not exist; rounds are 1 to 5000",
    );
    refuses(
        &mut engine,
        |e| e.tell(5_001, 0.0, &[0.0]),
        "round 5001 does not exist; rounds are 1 to 5000",
    );
    refuses(
        &mut engine,
        |e| e.tell(u64::MAX, 0.0, &[0.0]),
        "round 18446744073709551615 does not exist; rounds are 1 to 5000",
    );
    refuses(
        &mut engine,
        |e| e.tell(2, 0.0, &[0.0]),
        "round 2 was not asked for yet; the next one to be handed out is 2",
    );
    refuses(
        &mut engine,
        |e| e.tell_many(&[1], &[0.0, 1.0], &[0.0]),
        "a batch of 1 rounds has 2 rewards and 1 costs; give one reward and 1 costs a round",
    );
    assert_eq!(engine.outstanding().collect::<Vec<_>>(), [1]);
    // A subnormal is a number of the range like any other.
    assert!(engine.tell(1, 0.0, &[f64::MIN_POSITIVE / 4.0]).is_ok());
}

#[test]
fn a_round_told_twice_must_say_the_same() {
    let mut engine = Engine::new(
        Problem::free(names(2), 10_000, 0.9).build().unwrap(),
        Key::from(1u64),
    );
    run_to_epoch_of(&mut engine, 4);
    let first = engine.open_record().first_round;
    engine.ask_many(4);
    engine.tell(first + 1, 0.25, &[]).unwrap();
    assert_eq!(
        engine.tell(first + 1, 0.25, &[]),
        Ok(debora::Told::Repeated)
    );
    let conflict =
        |round: u64| format!("round {round} was told before with other feedback; the first stays");
    refuses(
        &mut engine,
        |e| e.tell(first + 1, 0.5, &[]),
        &conflict(first + 1),
    );
    refuses(
        &mut engine,
        |e| e.tell_many(&[first, first + 1], &[0.5, 0.5], &[]),
        &conflict(first + 1),
    );
    refuses(
        &mut engine,
        |e| e.tell_many(&[first, first + 2, first], &[0.5, 0.5, 0.75], &[]),
        &conflict(first),
    );
    let told = engine
        .tell_many(&[first, first + 2, first], &[0.5, 0.5, 0.5], &[])
        .unwrap();
    assert_eq!((told.recorded, told.repeated, told.already_told), (2, 1, 0));
    assert_eq!(engine.tell(first, 0.75, &[]), Ok(debora::Told::AlreadyTold));
    assert_eq!(engine.outstanding().collect::<Vec<_>>(), [first + 3]);
}

/// Tells epochs until the open one has at least this many rounds.
fn run_to_epoch_of(engine: &mut Engine, rounds: u64) {
    let means: [&[f64]; 2] = [&[0.5, 0.5, 0.5], &[0.1, 0.2, 0.3]];
    let world = Coins::new(&means[..engine.problem().quantities()], 1);
    loop {
        let tally = draw_epoch(engine, &world, Key::from(1u64));
        if tally.counts().iter().sum::<u64>() >= rounds {
            return;
        }
        engine.tell_epoch(&tally).unwrap();
    }
}

/// Tells epochs until the open one is of this kind.
fn run_to_kind(engine: &mut Engine, kind: Kind) {
    let world = Coins::new(&[&[0.5, 0.5, 0.5], &[0.1, 0.2, 0.3]], 1);
    while engine.open_record().kind != kind {
        let tally = draw_epoch(engine, &world, Key::from(1u64));
        engine.tell_epoch(&tally).unwrap();
    }
}

#[test]
fn a_tally_must_end_the_epoch_exactly() {
    let mut engine = Engine::new(
        Problem::soft(names(2), 5_000, 0.9)
            .growth(4)
            .build()
            .unwrap(),
        Key::from(1u64),
    );
    run_to_kind(&mut engine, Kind::Estimate);
    let record = engine.open_record().clone();
    let played = engine.strategy().only().expect("a single action") as usize;
    let first = record.counts[0];
    // Exploration brought both to one count, and the action played goes to four times that.
    assert_eq!(record.counts, [first; 2]);
    assert_eq!(engine.target(played as u32), Some(4 * first));
    let need = 3 * first;
    let left = 5_000 - 2 * first;
    let tally = |own: u64, other: u64, sum: u64| {
        let mut tally = Tally::new(2, 1);
        tally.add_sums(played as u32, own, &[ones(sum)]);
        tally.add_sums(1 - played as u32, other, &[0]);
        tally
    };
    let (name, other) = (format!("action {played}"), format!("action {}", 1 - played));
    let short = format!(
        "the tally ends after {} rounds with no action at its target; it must run to one, or {left} rounds to the horizon",
        need - 1
    );
    refuses(
        &mut engine,
        |e| e.tell_epoch(&tally(need - 1, 0, 0)),
        &short,
    );
    let long = format!(
        "the tally has {} rounds of action {name:?}, but the epoch ends when {name:?} has {need}",
        need + 1
    );
    refuses(&mut engine, |e| e.tell_epoch(&tally(need + 1, 0, 0)), &long);
    let zero = format!(
        "the tally has 1 rounds of action {other:?}; this epoch's strategy and decisions need none, as its probability is 0"
    );
    refuses(&mut engine, |e| e.tell_epoch(&tally(need, 1, 0)), &zero);
    let sum = format!("the tally's sum for action {name:?}, quantity 0, exceeds its count {need}");
    refuses(
        &mut engine,
        |e| e.tell_epoch(&tally(need, 0, need + 1)),
        &sum,
    );
    let shape = "the tally has 3 actions and 1 quantities; the problem has 2 and 1";
    refuses(&mut engine, |e| e.tell_epoch(&Tally::new(3, 1)), shape);
    let first = engine.open_record().first_round;
    engine.ask_many(50);
    engine.tell(first + 5, 1.0, &[]).unwrap();
    let epoch = engine.epoch();
    let begun = format!("1 rounds of epoch {epoch} are told already; tell the rest round by round");
    refuses(&mut engine, |e| e.tell_epoch(&tally(need, 0, 0)), &begun);
}

/// The counts of exploration are known before it begins: any others are refused, by the action at fault.
#[test]
fn a_tally_of_permuted_blocks_has_no_choice() {
    let mut engine = Engine::new(soft().build().unwrap(), Key::from(1u64));
    let first = engine.plan().first_informative_count.unwrap();
    let tally = |counts: [u64; 3], sum: u64| {
        let mut tally = Tally::new(3, 2);
        (0..)
            .zip(counts)
            .for_each(|(action, count)| tally.add_sums(action, count, &[ones(sum), 0]));
        tally
    };
    for (counts, wrong) in [
        ([first + 1, first, first - 1], 0),
        ([first, first - 1, first], 1),
        ([first, first, 0], 2),
    ] {
        let message = format!(
            "the tally has {} rounds of action \"action {wrong}\"; this epoch's strategy and decisions need exactly {first}, as exploration plays all actions equally often",
            counts[wrong]
        );
        refuses(&mut engine, |e| e.tell_epoch(&tally(counts, 0)), &message);
    }
    let sum =
        format!("the tally's sum for action \"action 0\", quantity 0, exceeds its count {first}");
    refuses(
        &mut engine,
        |e| e.tell_epoch(&tally([first; 3], first + 1)),
        &sum,
    );
    engine.ask_many(7);
    engine.tell(3, 0.0, &[0.0]).unwrap();
    let begun = "1 rounds of epoch 0 are told already; tell the rest round by round";
    refuses(&mut engine, |e| e.tell_epoch(&tally([first; 3], 0)), begun);
}

#[test]
fn a_tally_of_a_mixed_epoch_names_who_went_too_far() {
    let mut engine = Engine::new(
        hard()
            .safe_with_margins([0.5, 0.5, 0.0], [0.25])
            .build()
            .unwrap(),
        Key::from(1u64),
    );
    run_to_epoch_of(&mut engine, 30);
    let before = engine.open_record().counts.clone();
    let needs: Vec<u64> = (0..)
        .zip(&before)
        .map(|(action, count)| engine.target(action).unwrap() - count)
        .collect();
    let tally = |counts: &[u64]| {
        let mut tally = Tally::new(3, 2);
        (0..)
            .zip(counts)
            .for_each(|(action, &count)| tally.add_sums(action, count, &[0, 0]));
        tally
    };
    let both = tally(&[needs[0], needs[1], 0]);
    let error = engine.clone().tell_epoch(&both).unwrap_err();
    assert!(
        matches!(&error, Error::TallyLong { action, ender, .. } if action == "action 1" && ender == "action 0"),
        "{error}"
    );
    let _ = engine.ask_many(3);
    let few = engine.clone().tell_epoch(&tally(&[needs[0], 0, 0]));
    let handed = engine
        .outstanding()
        .filter(|&round| engine.decision(round).unwrap().action != 0)
        .count();
    assert!(
        handed == 0 || matches!(few, Err(Error::TallyCount { .. })),
        "{few:?}"
    );
    // Once the epoch is handed out to its end, its counts are settled.
    while !engine.ask_many(1_000).is_empty() {}
    let handed: Vec<u64> = (0..3)
        .map(|a| {
            engine
                .outstanding()
                .filter(|&r| engine.decision(r).unwrap().action == a)
                .count() as u64
        })
        .collect();
    let more: Vec<u64> = (0..3)
        .map(|a| handed[a] + u64::from(handed[a] + 1 < needs[a]))
        .collect();
    assert_ne!(more, handed);
    assert!(matches!(
        engine.clone().tell_epoch(&tally(&more)),
        Err(Error::TallyCount { .. })
    ));
    assert!(engine.tell_epoch(&tally(&handed)).is_ok());
}

#[test]
fn clipping_takes_what_refusing_does_not() {
    let mut engine = Engine::new(
        soft().outside(Outside::Clip).build().unwrap(),
        Key::from(1u64),
    );
    let _ = engine.ask();
    assert!(engine.tell(1, f64::NAN, &[0.0]).is_err());
    engine.tell(1, f64::INFINITY, &[-5.0]).unwrap();
    let action = engine.decision(1).unwrap().action as usize;
    assert_eq!(engine.tally().sums()[2 * action..][..2], [ones(1), 0]);
}

/// Thresholds that no strategy keeps: once the widths show it, epochs are marked, and the violation is the least possible.
#[test]
fn thresholds_out_of_reach_are_marked() {
    let world = Coins::new(&[&[0.9, 0.5, 0.1], &[0.9, 0.7, 0.6]], 3);
    let draft = Problem::soft(names(3), 2_000_000, 0.9).cost("price", [0.0, 1.0], 0.1);
    let mut engine = Engine::new(draft.build().unwrap(), Key::from(1u64));
    while !engine.is_done() {
        let tally = draw_epoch(&engine, &world, Key::from(1u64));
        engine.tell_epoch(&tally).unwrap();
    }
    assert_eq!(engine.recommendation().kind, Kind::Infeasible);
    assert_eq!(engine.recommendation().current.strategy, [0.0, 0.0, 1.0]);
}

fn wild_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -0.5f64..1.5,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 5e-324, 1e-300, 1e300, 1.0 - 1e-16]),
    ]
}

prop_compose! {
    /// Anything a user could type.
    fn wild_draft()(
        policy in 0..3u8, actions in 0usize..6, horizon in prop_oneof![0u64..300, any::<u64>()],
        rho in wild_number(), delta in wild_number(), paper in any::<bool>(), growth in prop::option::of(0u32..70),
        reward in [wild_number(), wild_number()], costs in prop::collection::vec(([wild_number(), wild_number()], wild_number()), 0..4),
        tame in any::<bool>(), explore in prop::option::of(wild_number()), caution in prop::option::of(wild_number()), own in any::<bool>(), safe in prop::option::of((prop::collection::vec(wild_number(), 0..6), prop::collection::vec(wild_number(), 0..4), any::<bool>())),
    ) -> Draft {
        let start = [Problem::free, Problem::soft, Problem::hard][policy as usize];
        let mut draft = start(names(actions), horizon, rho).delta(delta);
        draft = if paper { draft.paper() } else { draft };
        draft = growth.map_or(draft.clone(), |growth| draft.growth(growth));
        draft = if tame { draft } else { draft.reward("r", reward) };
        for (number, (range, threshold)) in costs.into_iter().enumerate() {
            let range = if tame { [0.0, 1.0] } else { range };
            let name = format!("c{number}");
            let mut each = vec![range; actions];
            each.iter_mut().take(1).for_each(|known| *known = [range[1], range[1]]);
            draft = match (own, number) {
                (true, 0) => draft.cost(name, each, threshold),
                (true, 1) => draft.watch(name, each),
                _ => draft.cost(name, range, threshold),
            };
        }
        draft = explore.map_or(draft.clone(), |share| draft.explore(share));
        draft = caution.map_or(draft.clone(), |caution| draft.caution(caution));
        match safe {
            Some((strategy, values, true)) => draft.safe_with_costs(strategy, values),
            Some((strategy, values, false)) if actions > 0 => {
                let weight = strategy.first().map_or(1.0, |weight| weight.clamp(0.0, 1.0));
                let mut pure = vec![0.0; actions];
                pure[0] += weight;
                pure[actions - 1] += 1.0 - weight;
                draft.safe_with_margins(pure, values)
            }
            _ => draft,
        }
    }
}

proptest! {
    #![proptest_config(crate::common::cases(20_000))]

    /// Whatever is typed: an error with a sentence, or a problem that plans and runs.
    #[test]
    fn no_draft_panics(draft in wild_draft(), key in any::<u64>()) {
        match draft.build() {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(problem) => {
                let plan = Plan::of(problem.clone());
                prop_assert!(plan.regret_bound <= problem.horizon() as f64 && plan.regret_bound >= 0.0);
                prop_assert!((0.0..=1.0).contains(&plan.bound_probability));
                let mut engine = Engine::new(problem, Key::from(key));
                for _ in 0..200 {
                    let Ask::Decision(decision) = engine.ask() else { break };
                    let costs: Vec<f64> = (1..engine.problem().quantities()).map(|q| engine.problem().quantity(q).range_of(decision.action).high).collect();
                    let reward = engine.problem().quantity(0).range.low;
                    engine.tell(decision.round, reward, &costs).unwrap();
                }
                prop_assert_eq!(Engine::from_bytes(&engine.to_bytes()).unwrap().to_bytes(), engine.to_bytes());
            }
        }
    }
}

/// A snapshot in the middle of a mixed epoch with rounds told out of order: every field is in use.
fn busy_snapshot() -> Vec<u8> {
    let problem = hard()
        .safe_with_margins([0.5, 0.5, 0.0], [0.25])
        .build()
        .unwrap();
    let mut engine = Engine::new(problem, Key::from(1u64));
    run_to_epoch_of(&mut engine, 400);
    let first = engine.open_record().first_round;
    assert_eq!(engine.ask_many(60).len(), 60);
    for round in (first..first + 60).filter(|round| round % 3 != 1) {
        engine.tell(round, 0.5, &[0.25]).unwrap();
    }
    engine.to_bytes()
}

/// A snapshot of the ways of a trial: in a block after the first look, and after a commitment.
fn staged_snapshots() -> [Vec<u8>; 2] {
    let draft = Problem::free(names(2), 40_000, 0.9).delta(0.4).growth(3);
    let problem = draft.build().unwrap();
    // Rewards that are alike, and rewards that are the action's number: the leader is clear at the first look.
    [0.0, 1.0].map(|apart| {
        let mut engine = Engine::new(problem.clone(), Key::from(1u64));
        while engine.epoch() == 0 {
            let Ask::Decision(decision) = engine.ask() else {
                panic!("a decision")
            };
            let reward = apart * f64::from(decision.action);
            engine.tell(decision.round, reward, &[]).unwrap();
        }
        let first = engine.open_record().first_round;
        engine.ask_many(21);
        for round in (first..first + 21).filter(|round| round % 3 != 1) {
            engine.tell(round, 0.5, &[]).unwrap();
        }
        engine.to_bytes()
    })
}

#[test]
fn every_flipped_bit_of_a_snapshot_is_noticed() {
    let [exploring, committed] = staged_snapshots();
    [busy_snapshot(), exploring, committed]
        .iter()
        .for_each(|bytes| notices_every_flipped_bit(bytes));
}

/// Amid a mixed strategy's epoch of so many rounds that their counts are kept; none is told.
fn untold_engine() -> Engine {
    // Too few rounds for any estimate: they all are one mixture.
    let draft = Problem::hard(names(3), 71_000, 0.01).cost("cost", [0.0, 1.0], 0.5);
    let draft = draft.safe_with_margins([0.5, 0.5, 0.0], [0.25]);
    let mut engine = Engine::new(draft.build().unwrap(), Key::from(1u64));
    assert_eq!(engine.ask_many(70_000).len(), 70_000);
    engine
}

/// The same, with all but a few rounds told.
fn long_engine() -> Engine {
    let mut engine = untold_engine();
    for round in (1..=70_000).filter(|round| *round < 69_990 || round % 3 == 0) {
        engine.tell(round, 0.5, &[0.25]).unwrap();
    }
    engine
}

/// Hands out and tells what is left; the first error ends it.
fn run_to_the_end(engine: &mut Engine) -> Result<(), Error> {
    engine.ask_many(1_000);
    let rounds: Vec<u64> = engine.outstanding().collect();
    for round in rounds {
        engine.tell(round, 0.25, &[0.5])?;
    }
    Ok(())
}

/// How often each action was handed out stands in the snapshot, and the run goes on as if it had been drawn again.
#[test]
fn a_long_epoch_is_restored_from_its_counts() {
    let mut engine = long_engine();
    let bytes = engine.to_bytes();
    let mut restored = Engine::from_bytes(&bytes).unwrap();
    assert_eq!(restored.to_bytes(), bytes);
    for engine in [&mut engine, &mut restored] {
        run_to_the_end(engine).unwrap();
        assert!(engine.is_done());
    }
    assert_eq!(restored.to_bytes(), engine.to_bytes());
    // Of a run that is over all is drawn again, as nothing would compare the counts later.
    assert!(Engine::from_bytes(&engine.to_bytes()).is_ok());
}

/// Where the long engine's snapshot has the counts handed out, and after them those told.
fn places_of_counts(bytes: &[u8]) -> [usize; 2] {
    let told_above = (69_990..=70_000).filter(|round| round % 3 == 0 && *round > 69_990);
    let after_counts = 3 * 2 * 16 + 8 + 8 + told_above.count() * 3 * 8 + 32;
    let told = bytes.len() - after_counts - 3 * 8;
    [told - 3 * 8, told]
}

/// The snapshot with one round more of action 0, one fewer of action 1, at each of these places.
fn forged(mut bytes: Vec<u8>, places: &[usize]) -> Vec<u8> {
    for &place in places {
        for (at, by) in [(place, 1), (place + 8, u64::MAX)] {
            let word: &mut [u8; 8] = (&mut bytes[at..at + 8]).try_into().unwrap();
            *word = u64::from_le_bytes(*word).wrapping_add(by).to_le_bytes();
        }
    }
    resealed(bytes)
}

/// Counts that the key's draws do not give are refused: at once if handed out and told do not fit each other, else before the
/// epoch closes, whichever way it is told, or when asked to.
#[test]
fn a_forged_split_of_a_long_epoch_is_refused() {
    let bytes = long_engine().to_bytes();
    let [asked, told] = places_of_counts(&bytes);
    let refused = |result: Result<(), Error>| matches!(result, Err(Error::Snapshot { .. }));
    assert!(Engine::from_bytes(&forged(bytes.clone(), &[])).is_ok());
    for place in [asked, told] {
        let read = Engine::from_bytes(&forged(bytes.clone(), &[place]));
        assert!(refused(read.map(drop)), "one of two forged");
    }
    let both = forged(bytes.clone(), &[asked, told]);
    let restore = || Engine::from_bytes(&both).unwrap();
    assert!(refused(restore().check_counts_read()));
    // One by one: all is told but the last round, and that cannot be.
    let mut engine = restore();
    assert!(refused(run_to_the_end(&mut engine)));
    assert_eq!((engine.outstanding_count(), engine.epoch()), (1, 0));
    // In a batch: nothing is told.
    let mut engine = restore();
    engine.ask_many(1_000);
    let rounds: Vec<u64> = engine.outstanding().collect();
    let values = vec![0.25; rounds.len()];
    let before = engine.to_bytes();
    let told = engine.tell_many(&rounds, &values, &values);
    assert!(refused(told.map(drop)));
    assert_eq!(engine.to_bytes(), before);
    // A run that is over would never be compared with the draws: with its counts it is not read at all.
    let mut over = long_engine();
    run_to_the_end(&mut over).unwrap();
    let mut bytes = over.to_bytes();
    let told = bytes.len() - (3 * 2 * 16 + 8 + 8 + 32) - 3 * 8;
    let counts: Vec<u8> = bytes[told..told + 3 * 8].to_vec();
    bytes.splice(told..told, counts);
    bytes[15] = 3;
    assert!(refused(Engine::from_bytes(&resealed(bytes)).map(drop)));
}

/// Telling a whole epoch at once takes what was handed out from the same counts.
#[test]
fn a_forged_split_of_a_long_epoch_that_is_not_told_is_refused() {
    let engine = untold_engine();
    let bytes = engine.to_bytes();
    let asked = bytes.len() - (3 * 2 * 16 + 8 + 8 + 32) - 2 * 3 * 8;
    let mut tally = Tally::new(3, 2);
    for action in 0..3 {
        tally.add_sums(action, counts_to(&engine, 71_000)[action as usize], &[0, 0]);
    }
    let mut restored = Engine::from_bytes(&bytes).unwrap();
    assert!(restored.tell_epoch(&tally).is_ok());
    let mut restored = Engine::from_bytes(&forged(bytes, &[asked])).unwrap();
    let told = restored.tell_epoch(&tally);
    assert!(matches!(told, Err(Error::Snapshot { .. })), "{told:?}");
}

/// How often each of three actions is played in the first rounds of the engine's first epoch.
fn counts_to(engine: &Engine, rounds: usize) -> [u64; 3] {
    let mut actions = vec![0; rounds];
    engine.decide_many(1.., &mut actions);
    let mut counts = [0; 3];
    actions
        .iter()
        .for_each(|&action| counts[action as usize] += 1);
    counts
}

fn notices_every_flipped_bit(bytes: &[u8]) {
    assert!(Engine::from_bytes(bytes).is_ok());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = Engine::from_bytes(&flipped).expect_err("a flipped bit");
        assert!(matches!(error, Error::Snapshot { .. }));
    }
    for length in 0..bytes.len() {
        assert!(
            Engine::from_bytes(&bytes[..length]).is_err(),
            "cut to {length}"
        );
    }
}

/// With the checksum made to fit, a wrong snapshot is refused or is a possible state: nothing panics later either.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 32);
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}

/// What is computed again from a snapshot must come out as it did: values of another version could change a run in
/// mid-epoch, and so could a layout of another version that happens to be readable.
#[test]
fn a_snapshot_of_another_version_is_refused_with_the_reason() {
    for (place, message) in [
        (15, "it has version 9, and this program reads version 1"),
        (23, "it has values version 9, and this program has 3"),
    ] {
        let mut bytes = busy_snapshot();
        bytes[place] = 9;
        let error = Engine::from_bytes(&resealed(bytes)).unwrap_err();
        assert!(
            matches!(&error, Error::Snapshot { reason } if reason == message),
            "{error}"
        );
    }
}

fn restore_and_run(bytes: &[u8]) -> bool {
    let Ok(mut engine) = Engine::from_bytes(bytes) else {
        return false;
    };
    let problem = engine.problem();
    let costs: Vec<f64> = (1..problem.quantities())
        .map(|quantity| problem.quantity(quantity).range.low)
        .collect();
    let reward = engine.problem().quantity(0).range.low;
    for _ in 0..3 {
        engine.ask_many(1_000);
        let rounds: Vec<u64> = engine.outstanding().take(5_000).collect();
        for round in rounds {
            match engine.tell(round, reward, &costs) {
                // Counts of a long epoch are compared with the draws before it closes.
                Err(Error::Snapshot { .. }) => return false,
                told => drop(told.unwrap()),
            }
        }
    }
    let _ = (
        engine.recommendation(),
        engine.estimates().count(),
        engine.digest(),
    );
    true
}

#[test]
fn a_wrong_snapshot_with_a_right_checksum_never_panics() {
    let [exploring, committed] = staged_snapshots();
    never_panics_on(busy_snapshot(), 1);
    // Every third bit, as most of what these hold is in the first, too; 3 divides no byte, so all places of a bit occur.
    never_panics_on(exploring, 3);
    never_panics_on(committed, 3);
    never_panics_on(long_engine().to_bytes(), 7);
}

fn never_panics_on(bytes: Vec<u8>, step: usize) {
    assert!(restore_and_run(&resealed(bytes.clone())));
    let (mut refused, mut restored) = (0, 0);
    for bit in (15 * 8..(bytes.len() - 32) * 8).step_by(step) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        *(if restore_and_run(&resealed(flipped)) {
            &mut restored
        } else {
            &mut refused
        }) += 1;
    }
    assert!(refused > restored, "{refused} refused, {restored} restored");
}

proptest! {
    #![proptest_config(crate::common::cases(3_000))]

    #[test]
    fn a_torn_snapshot_with_a_right_checksum_never_panics(cut in 15usize..2_000, paste in 15usize..2_000, length in 0usize..64, words in prop::collection::vec(any::<u8>(), 0..32)) {
        let [exploring, committed] = staged_snapshots();
        let bytes = [busy_snapshot(), exploring, committed][cut % 3].clone();
        let body = bytes.len() - 32;
        let (cut, paste) = (cut % body, paste % body);
        let mut torn = bytes[..cut.max(15)].to_vec();
        torn.extend(&words);
        torn.extend(&bytes[paste.max(15)..(paste.max(15) + length).min(body)]);
        torn.extend(&bytes[cut.max(15)..]);
        restore_and_run(&resealed(torn));
    }
}

/// Actions with ranges of their own: feedback is judged by the action's, a known cost may be left out and must not differ.
#[test]
fn feedback_is_judged_by_the_range_of_its_action() {
    let ranges = vec![[0.0, 0.5], [1.0, 1.0]];
    let draft = Problem::soft(names(2), 1_000, 0.9).cost("price", ranges, 0.75);
    let problem = draft.delta(0.4).build().unwrap();
    let mut engine = Engine::new(problem.clone(), Key::from(3u64));
    let mut seen = [0; 2];
    for decision in engine.ask_many(40) {
        let (round, action) = (decision.round, decision.action as usize);
        let right = [0.25, 1.0][action];
        let wrong = [0.75, 0.5][action];
        let error = engine.tell(round, 0.5, &[wrong]).unwrap_err().to_string();
        let wanted = [
            r#""price" was told as 0.75, outside its range [0.0, 0.5]; nothing was recorded"#,
            r#""price" of "action 1" was told as 0.5, but its range says that it is 1.0; leave it out, or widen the range"#,
        ];
        assert_eq!(error, wanted[action]);
        assert_eq!(engine.tell(round, 0.5, &[f64::NAN]).is_ok(), action == 1);
        let again = engine.tell(round, 0.5, &[right]).unwrap();
        assert_eq!(
            again == Told::Repeated || again == Told::AlreadyTold,
            action == 1
        );
        seen[action] += 1;
    }
    assert!(seen[0] > 10 && seen[1] > 10);
    // Half of its own range, and of a known one nothing.
    let half = u128::from(debora::mean::FIXED_ONE) / 2;
    assert_eq!(engine.tally().sums()[1], half * seen[0] as u128);
    assert_eq!(engine.tally().sums()[3], 0);
    let restored = Engine::from_bytes(&engine.to_bytes()).unwrap();
    assert_eq!(restored.to_bytes(), engine.to_bytes());
    // Told as a whole, too.
    let mut whole = Engine::new(problem, Key::from(3u64));
    let each = whole.last_round() / 2;
    let mut tally = Tally::new(2, 2);
    tally.add_sums(0, each, &[0, 0]);
    tally.add_sums(1, each, &[0, 1]);
    assert!(matches!(
        whole.tell_epoch(&tally),
        Err(Error::TallyKnown { .. })
    ));
}
