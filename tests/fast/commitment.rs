//! The clear test and the commitment it leads to: made exactly when the lead exceeds the keyed threshold, recomputable from
//! its record, and final.

use debora::key::Label;
use debora::mean::FIXED_ONE;
use debora::record::ClearTest;
use debora::{Ask, Engine, Error, Key, Kind, Problem, Tally, Told};

use crate::common::{Coins, feedback, names, ones, run};

/// Three stages of two actions: 74, 588 and 4698 samples each. Small declared means make the first count that large; what is
/// told here need not keep to them, as the test looks at raw means alone.
fn staged() -> Problem {
    let draft = Problem::free(names(2), 40_000, 0.9).delta(0.4).growth(3);
    draft.mean("reward", [0.0, 0.04]).build().unwrap()
}

/// The threshold of a stage, from the formulas of docs/theory.md and the key.
fn threshold(engine: &Engine, key: Key, stage: usize) -> f64 {
    let rho = engine.problem().rho();
    let clear = engine.plan().clear.as_ref().unwrap();
    // Keyed by the stage: with one threshold for all stages a world near it would be in doubt at each of them, and each
    // would spend the share of rho that the proof counts once.
    let uniform = key.uniform(Label::Clear, [stage as u64, 0, 0]);
    if stage + 1 < clear.stages.len() {
        clear.c1 + 1.2 / rho * uniform
    } else {
        // The last stage has a distribution of its own: there a run that does not commit estimates, which costs rho too.
        clear.c0 + 1.5 / rho * (1.0 + 3.75 * uniform).ln()
    }
}

/// The open stage told so that action 1 leads by `lead` / sqrt(count) over all samples so far, half of them ones.
fn tell_lead(engine: &mut Engine, end: u64, lead: f64) {
    let before = engine.tally().clone();
    let each = end - engine.open_record().counts[0];
    let gap = (lead / (end as f64).sqrt() * end as f64 * FIXED_ONE as f64) as i128;
    let mut tally = Tally::new(2, 1);
    for action in 0..2 {
        let even = ones(end) as i128 / 2;
        let sum = if action == 1 {
            even + gap / 2
        } else {
            even - gap / 2
        };
        let rest = sum - before.sums()[action as usize] as i128;
        tally.add_sums(action, each, &[u128::try_from(rest).unwrap()]);
    }
    engine.tell_epoch(&tally).unwrap();
}

/// A hair above the threshold the run commits, a hair below it does not: at every stage, whatever the key.
#[test]
fn a_run_commits_exactly_when_its_lead_exceeds_the_threshold() {
    for number in 0..40u64 {
        let key = Key::from(number);
        for stage in 0..3 {
            for (factor, passes) in [(1.0 + 1e-9, true), (1.0 - 1e-9, false)] {
                let mut engine = Engine::new(staged(), key);
                let stages = engine.plan().clear.as_ref().unwrap().stages.clone();
                for &end in &stages[..stage] {
                    tell_lead(&mut engine, end, 0.0);
                    assert_eq!(engine.open_record().kind, Kind::Explore);
                }
                let wanted = threshold(&engine, key, stage);
                tell_lead(&mut engine, stages[stage], wanted * factor);
                let record = engine.open_record();
                let test = record.test.as_ref().expect("a stage ends with a test");
                assert_eq!((test.stage as usize, test.count), (stage, stages[stage]));
                assert!(
                    (test.threshold - wanted).abs() < 1e-12,
                    "stage {stage}: {} is not {wanted}",
                    test.threshold
                );
                assert_eq!(test.passed, passes, "key {number}, stage {stage}: {test:?}");
                let kind = match (passes, stage) {
                    (true, _) => Kind::Commit,
                    (false, 2) => Kind::Estimate,
                    (false, _) => Kind::Explore,
                };
                assert_eq!(record.kind, kind);
                // A run that commits estimates nothing: what it would estimate, it no longer needs.
                assert_eq!(
                    record.estimates.len(),
                    if kind == Kind::Estimate { 2 } else { 0 }
                );
                if passes {
                    assert_eq!((test.leader, record.strategy.clone()), (1, vec![0.0, 1.0]));
                }
            }
        }
    }
}

/// What an auditor does: every number of the test from the tally and the key.
fn recompute(test: &ClearTest, engine: &Engine, key: Key) {
    let means: Vec<f64> = (0..2)
        .map(|action| engine.tally().mean(action, 0))
        .collect();
    assert_eq!(test.means, means);
    let (leader, runner_up) = if means[1] > means[0] { (1, 0) } else { (0, 1) };
    assert_eq!(
        (test.leader, test.runner_up),
        (leader, runner_up),
        "the first of equals leads"
    );
    let lead = (means[leader as usize] - means[runner_up as usize]) * (test.count as f64).sqrt();
    assert!((test.lead - lead).abs() < 1e-12);
    assert_eq!(
        test.uniform,
        key.uniform(Label::Clear, [u64::from(test.stage), 0, 0])
    );
    assert!((test.threshold - threshold(engine, key, test.stage as usize)).abs() < 1e-12);
    assert_eq!(test.passed, test.lead > test.threshold);
    let [gap, needed] = test.gap_and_threshold();
    assert!((gap - (means[leader as usize] - means[runner_up as usize])).abs() < 1e-12);
    assert_eq!(needed > 0.0 && gap > needed, test.passed);
}

#[test]
fn the_record_of_a_test_can_be_recomputed() {
    let mut passed = [0; 3];
    for number in 0..60u64 {
        let key = Key::from(number);
        let means = [0.5, 0.5 + 0.01 * (number % 30) as f64];
        let world = Coins::new(&[&means], number);
        let mut engine = Engine::new(staged(), key);
        for _ in 0..3 {
            let epoch = crate::common::draw_epoch(&engine, &world, key);
            engine.tell_epoch(&epoch).unwrap();
            let record = engine.open_record();
            let test = record.test.as_ref().unwrap();
            recompute(test, &engine, key);
            if test.passed {
                passed[test.stage as usize] += 1;
                break;
            }
        }
    }
    // Stage 0 needs a lead of .37 at least.
    assert!(passed[1] > 3 && passed[2] > 3, "{passed:?}");
}

/// A committed engine after its first stage, round by round.
fn committed(key: Key) -> Engine {
    let mut engine = Engine::new(staged(), key);
    while engine.epoch() == 0 {
        let Ask::Decision(decision) = engine.ask() else {
            panic!("no outcome is outstanding")
        };
        engine
            .tell(decision.round, f64::from(decision.action), &[])
            .unwrap();
    }
    assert_eq!(
        (engine.epoch(), engine.open_record().kind),
        (1, Kind::Commit)
    );
    engine
}

/// After a commitment no outcome is needed: asking runs to the horizon without one. Outcomes are still taken and tallied.
#[test]
fn a_committed_run_never_waits_and_still_listens() {
    let mut engine = committed(Key::from(1u64));
    let first = engine.open_record().first_round;
    assert_eq!(first, 2 * 74 + 1);
    for round in first..=40_000 {
        let Ask::Decision(decision) = engine.ask() else {
            panic!("round {round} waits")
        };
        assert_eq!(
            (
                decision.round,
                decision.action,
                decision.probability,
                decision.epoch
            ),
            (round, 1, 1.0, 1)
        );
    }
    assert_eq!(
        engine.ask(),
        Ask::Waiting {
            outstanding: 40_001 - first
        },
        "only the end waits"
    );
    // In any order; what the leader gives no longer matters, and it is counted all the same.
    for round in (first..=40_000)
        .rev()
        .step_by(2)
        .chain((first..40_000).rev().step_by(2))
    {
        let told = engine.tell(round, 0.0, &[]).unwrap();
        assert_eq!(matches!(told, Told::Closed(_)), engine.is_done());
    }
    assert_eq!((engine.ask(), engine.epoch()), (Ask::Done, 1));
    assert_eq!(engine.tally().counts(), [74, 40_000 - 74]);
    assert_eq!(engine.tally().sums(), [0, ones(74)]);
    assert_eq!(engine.estimates().count(), 0);
}

#[test]
fn a_committed_run_recommends_its_leader() {
    let engine = committed(Key::from(1u64));
    let recommendation = engine.recommendation();
    assert_eq!(recommendation.kind, Kind::Commit);
    assert_eq!(recommendation.current.strategy, [0.0, 1.0]);
    assert_eq!(
        recommendation.cautious,
        Some(recommendation.current.clone()),
        "the leader is what the run is sure of"
    );
    // Without an estimate all that is known of its reward is what was declared.
    let declared = debora::record::Interval {
        low: 0.0,
        high: 0.04,
    };
    assert_eq!(recommendation.current.reward, declared);
}

/// No target ends a commitment: levels mean nothing any more, and the whole rest is one epoch.
#[test]
fn a_commitment_is_one_epoch_to_the_horizon() {
    let mut engine = committed(Key::from(2u64));
    assert!((0..2).all(|action| engine.target(action).is_none()));
    let left = 40_000 - 2 * 74;
    let tally = |rounds: [u64; 2]| {
        let mut tally = Tally::new(2, 1);
        (0..)
            .zip(rounds)
            .for_each(|(action, rounds)| tally.add_sums(action, rounds, &[0]));
        tally
    };
    assert_eq!(
        engine.clone().tell_epoch(&tally([0, left - 1])),
        Err(Error::TallyShort {
            rounds: left - 1,
            left
        })
    );
    assert!(matches!(
        engine.clone().tell_epoch(&tally([1, left - 1])),
        Err(Error::TallyCount { .. })
    ));
    let record = engine.tell_epoch(&tally([0, left])).unwrap();
    assert_eq!((record.kind, record.rounds), (Kind::Commit, left));
    assert!(engine.is_done());
}

/// In every stage, and in the commitment: snapshots go on as if nothing had been.
#[test]
fn snapshots_hold_in_every_stage_and_in_the_commitment() {
    for (gap, kind) in [
        (0.0, Kind::Estimate),
        (0.25, Kind::Commit),
        (0.9, Kind::Commit),
    ] {
        let world = Coins::new(&[&[0.05, 0.05 + gap]], 3);
        let mut whole = Engine::new(staged(), Key::from(6u64));
        let records = run(&mut whole, &world);
        assert_eq!(records.last().unwrap().kind, kind);
        let mut engine = Engine::new(staged(), Key::from(6u64));
        let mut round = 0u64;
        while let Ask::Decision(decision) = engine.ask() {
            let values = feedback(engine.problem(), &world, decision.round, decision.action);
            engine.tell(decision.round, values[0], &[]).unwrap();
            round += 1;
            // Near each stage's ends and now and then: a prime, so that no block or stage is in step with it.
            let counts = engine.open_record().first_round;
            if round.is_multiple_of(997) || round.abs_diff(counts) < 3 {
                let restored = Engine::from_bytes(&engine.to_bytes()).unwrap();
                assert_eq!(restored.open_record(), engine.open_record());
                assert_eq!(restored.recommendation(), engine.recommendation());
                engine = restored;
            }
        }
        assert_eq!(engine.to_bytes(), whole.to_bytes());
        assert_eq!(engine.digest(), whole.digest());
    }
}

/// Whole stages at once are those of rounds one by one, and any other counts are refused with the reason.
#[test]
fn a_stage_is_told_at_once_with_its_own_counts_only() {
    let world = Coins::new(&[&[0.05, 0.3]], 9);
    let key = Key::from(5u64);
    let mut plain = Engine::new(staged(), key);
    let records = run(&mut plain, &world);
    let mut whole = Engine::new(staged(), key);
    let mut told = Vec::new();
    while !whole.is_done() {
        let epoch = crate::common::draw_epoch(&whole, &world, key);
        if crate::common::is_in_blocks(&whole) {
            let before = whole.to_bytes();
            let each = epoch.counts()[0];
            for wrong in [
                [each + 1, each - 1],
                [each - 1, each],
                [0, 0],
                [u64::MAX, u64::MAX],
            ] {
                let mut tally = Tally::new(2, 1);
                (0..)
                    .zip(wrong)
                    .for_each(|(action, count)| tally.add_sums(action, count, &[0]));
                let error = whole.tell_epoch(&tally).unwrap_err();
                let expected =
                    format!("exactly {each}, as exploration plays all actions equally often");
                assert!(
                    matches!(&error, Error::TallyCount { rule, .. } if *rule == expected),
                    "{error}"
                );
                assert_eq!(whole.to_bytes(), before);
            }
        }
        told.push(whole.tell_epoch(&epoch).unwrap());
    }
    assert_eq!(told, records);
    assert_eq!(whole.to_bytes(), plain.to_bytes());
}

/// Two runs with one key face the same thresholds, whatever they see; two keys do not.
#[test]
fn thresholds_belong_to_the_key_and_the_stage() {
    let thresholds = |key: u64, lead: f64| {
        let mut engine = Engine::new(staged(), Key::from(key));
        let stages = engine.plan().clear.as_ref().unwrap().stages.clone();
        let mut seen = Vec::new();
        for end in stages {
            tell_lead(&mut engine, end, lead);
            let test = engine.open_record().test.clone().unwrap();
            seen.push((test.uniform, test.threshold));
        }
        seen
    };
    let (one, same, other) = (thresholds(1, 0.0), thresholds(1, 2.0), thresholds(2, 0.0));
    assert_eq!(one, same);
    assert!(one.iter().zip(&other).all(|(one, other)| one.0 != other.0));
    // One draw per stage.
    assert!(one[0].0 != one[1].0 && one[1].0 != one[2].0 && one[0].0 != one[2].0);
}
