//! Looks, and the commitment or the pick they lead to: made exactly when the lead exceeds the keyed threshold, recomputable from
//! the record, and final.

use debora::key::Label;
use debora::line::MeanLine;
use debora::mean::FIXED_ONE;
use debora::record::LookTest;
use debora::{Ask, Engine, Error, Key, Kind, Problem, Tally, Told};

use crate::common::{Coins, feedback, names, ones, run};

/// Looks at four or five counts on the way to 1,881 samples of two actions.
fn tried() -> Problem {
    let draft = Problem::free(names(2), 40_000, 0.9).delta(0.4).growth(3);
    draft.build().unwrap()
}

/// The counts of a run's looks, as its first record has them.
fn looks(engine: &Engine) -> Vec<u64> {
    let first = Engine::new(engine.problem().clone(), Key::from(0u64));
    assert_eq!(first.open_record().first_round, 1);
    engine
        .open_record()
        .looks
        .clone()
        .expect("a first record")
        .counts
}

/// The threshold of a look, from the formulas of docs/theory.md and the key.
fn threshold(engine: &Engine, key: Key, look: u32) -> f64 {
    let trial = engine.plan().trial.as_ref().unwrap();
    // Keyed by the look: with one threshold for all, a world near it would be in doubt at each of them.
    let uniform = key.uniform(Label::Look, [u64::from(look) + 1, 0, 0]);
    trial.threshold * (1.0 + uniform)
}

fn line(engine: &Engine, count: u64) -> MeanLine {
    MeanLine::new(count, engine.plan().trial.as_ref().unwrap().offset_c)
}

/// The open epoch told so that action 1 leads by `lead` / sqrt(count) on the line over all samples so far, around a mean of 1/2.
fn tell_lead(engine: &mut Engine, end: u64, lead: f64) {
    let before = engine.tally().clone();
    let each = end - engine.open_record().counts[0];
    let half = lead / (end as f64).sqrt() / 2.0;
    let line = line(engine, end);
    let mut tally = Tally::new(2, 1);
    for (action, sign) in [(0, -1.0), (1, 1.0)] {
        let mean = line.mean(std::f64::consts::FRAC_PI_4 + sign * half);
        let sum = (mean * end as f64 * FIXED_ONE as f64) as i128;
        let rest = sum - before.sums()[action as usize] as i128;
        tally.add_sums(action, each, &[u128::try_from(rest).unwrap()]);
    }
    engine.tell_epoch(&tally).unwrap();
}

/// Whether the loser of such a lead can have as many ones in all as it had before.
fn can_lead(engine: &Engine, before: u64, end: u64, lead: f64) -> bool {
    let half = lead / (end as f64).sqrt() / 2.0;
    let mean = line(engine, end).mean(std::f64::consts::FRAC_PI_4 - half);
    let most = mean * end as f64;
    // Half of what was told before were ones, but for rounding.
    most > before as f64 / 2.0 + 1.0 && most < (end - before) as f64 + before as f64 / 2.0 - 1.0
}

/// A hair above the threshold the run commits, a hair below it does not: at every stage, whatever the key.
#[test]
fn a_run_commits_exactly_when_its_lead_exceeds_the_threshold() {
    let mut made = 0;
    for number in 0..40u64 {
        let key = Key::from(number);
        let counts = looks(&Engine::new(tried(), key));
        for place in 0..counts.len() {
            for (factor, passes) in [(1.0 + 1e-9, true), (1.0 - 1e-9, false)] {
                let mut engine = Engine::new(tried(), key);
                for &end in &counts[..place] {
                    tell_lead(&mut engine, end, 0.0);
                    assert_eq!(engine.open_record().kind, Kind::Explore);
                }
                // The last look is number 0.
                let look = (counts.len() - 1 - place) as u32;
                let wanted = threshold(&engine, key, look);
                let least = line(&engine, counts[place]).ends();
                let room = (counts[place] as f64).sqrt() * (least[1] - least[0]);
                // Nor can a lead be had whose loser would have lost what it has.
                let before = if place == 0 { 0 } else { counts[place - 1] };
                if wanted * factor >= room
                    || !can_lead(&engine, before, counts[place], wanted * factor)
                {
                    continue;
                }
                tell_lead(&mut engine, counts[place], wanted * factor);
                let record = engine.open_record();
                let test = record.test.as_ref().expect("a look");
                assert_eq!((test.look, test.count), (look, counts[place]));
                assert!((test.threshold - wanted).abs() < 1e-12, "{test:?}");
                assert_eq!(test.passed, passes, "key {number}, look {look}: {test:?}");
                let at_end = counts[place] == engine.plan().trial.as_ref().unwrap().count;
                let kind = match (passes, at_end) {
                    (true, _) => Kind::Commit,
                    (false, true) => Kind::Pick,
                    (false, false) => Kind::Explore,
                };
                assert_eq!(record.kind, kind);
                assert!(record.estimates.is_empty());
                if passes {
                    assert_eq!((test.leader, record.strategy.clone()), (1, vec![0.0, 1.0]));
                }
                made += 1;
            }
        }
    }
    assert!(made > 100, "{made}");
}

/// What an auditor does: every number of a look from the tally and the key.
fn recompute(test: &LookTest, engine: &Engine, key: Key) {
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
    let line = line(engine, test.count);
    let places: Vec<f64> = means.iter().map(|&mean| line.of_mean(mean)).collect();
    let gap = places[leader as usize] - places[runner_up as usize];
    assert!((test.lead - gap * (test.count as f64).sqrt()).abs() < 1e-12);
    assert_eq!(
        test.uniform,
        key.uniform(Label::Look, [u64::from(test.look) + 1, 0, 0])
    );
    assert!((test.threshold - threshold(engine, key, test.look)).abs() < 1e-12);
    assert_eq!(test.passed, test.lead > test.threshold);
    let [shown, needed] = test.gap_and_threshold();
    assert!((shown - gap).abs() < 1e-12);
    assert_eq!(needed > 0.0 && shown > needed, test.passed);
}

#[test]
fn the_record_of_a_look_can_be_recomputed() {
    let mut ends = std::collections::BTreeMap::new();
    for number in 0..60u64 {
        let key = Key::from(number);
        let means = [0.5, 0.5 + 0.01 * (number % 30) as f64];
        let world = Coins::new(&[&means], number);
        let mut engine = Engine::new(tried(), key);
        while engine.open_record().decided().is_none() {
            let epoch = crate::common::draw_epoch(&engine, &world, key);
            engine.tell_epoch(&epoch).unwrap();
            if let Some(test) = &engine.open_record().test {
                recompute(test, &engine, key);
            }
        }
        *ends.entry(engine.open_record().counts[0]).or_insert(0) += 1;
    }
    assert!(ends.len() > 10 && ends[&1882] > 3, "{ends:?}");
}

/// An engine that has committed as soon as its key allows, round by round, and the samples until then.
fn committed(key: Key) -> (Engine, u64) {
    let mut engine = Engine::new(tried(), key);
    while engine.open_record().decided().is_none() {
        let Ask::Decision(decision) = engine.ask() else {
            panic!("no outcome is outstanding")
        };
        engine
            .tell(decision.round, f64::from(decision.action), &[])
            .unwrap();
    }
    let looked = engine.open_record().counts[0];
    assert_eq!(engine.open_record().kind, Kind::Commit);
    assert!(looked < 500, "{looked}");
    (engine, looked)
}

/// After a commitment no outcome is needed: asking runs to the horizon without one. Outcomes are still taken and tallied.
#[test]
fn a_committed_run_never_waits_and_still_listens() {
    let (mut engine, looked) = committed(Key::from(1u64));
    let (first, epoch) = (engine.open_record().first_round, engine.epoch());
    assert_eq!(first, 2 * looked + 1);
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
            (round, 1, 1.0, epoch)
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
    assert_eq!((engine.ask(), engine.epoch()), (Ask::Done, epoch));
    assert_eq!(engine.tally().counts(), [looked, 40_000 - looked]);
    assert_eq!(engine.tally().sums(), [0, ones(looked)]);
    assert_eq!(engine.estimates().count(), 0);
}

#[test]
fn a_committed_run_recommends_its_leader() {
    let (engine, looked) = committed(Key::from(1u64));
    let recommendation = engine.recommendation();
    assert_eq!(recommendation.kind, Kind::Commit);
    assert_eq!(recommendation.current.strategy, [0.0, 1.0]);
    assert_eq!(
        recommendation.cautious,
        Some(recommendation.current.clone()),
        "the leader is what the run is sure of"
    );
    // What the trial's samples say of it: all of them were ones.
    let reward = recommendation.current.reward;
    assert!(
        reward.high == 1.0 && reward.low > 0.5,
        "{reward:?} of {looked}"
    );
}

/// No target ends a commitment: levels mean nothing any more, and the whole rest is one epoch.
#[test]
fn a_commitment_is_one_epoch_to_the_horizon() {
    let (mut engine, looked) = committed(Key::from(2u64));
    assert!((0..2).all(|action| engine.target(action).is_none()));
    let left = 40_000 - 2 * looked;
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

/// Between looks, after a commitment and after a pick: snapshots go on as if nothing had been.
#[test]
fn snapshots_hold_between_looks_and_after_the_decision() {
    for (gap, kind) in [(0.0, Kind::Pick), (0.25, Kind::Commit), (0.9, Kind::Commit)] {
        let world = Coins::new(&[&[0.05, 0.05 + gap]], 3);
        let mut whole = Engine::new(tried(), Key::from(6u64));
        let records = run(&mut whole, &world);
        assert_eq!(records.last().unwrap().kind, kind);
        let mut engine = Engine::new(tried(), Key::from(6u64));
        let mut round = 0u64;
        while let Ask::Decision(decision) = engine.ask() {
            let values = feedback(engine.problem(), &world, decision.round, decision.action);
            engine.tell(decision.round, values[0], &[]).unwrap();
            round += 1;
            // Near each look and now and then: a prime, so that no block or look is in step with it.
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

/// Whole epochs of a trial at once are those of rounds one by one, and any other counts are refused with the reason.
#[test]
fn a_part_of_the_trial_is_told_at_once_with_its_own_counts_only() {
    let world = Coins::new(&[&[0.05, 0.3]], 9);
    let key = Key::from(5u64);
    let mut plain = Engine::new(tried(), key);
    let records = run(&mut plain, &world);
    let mut whole = Engine::new(tried(), key);
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

/// Two runs with one key face the same looks and thresholds, whatever they see; two keys do not.
#[test]
fn thresholds_belong_to_the_key_and_the_look() {
    let thresholds = |key: u64, lead: f64| {
        let mut engine = Engine::new(tried(), Key::from(key));
        let mut seen = Vec::new();
        for end in looks(&engine) {
            tell_lead(&mut engine, end, lead);
            let test = engine.open_record().test.clone().unwrap();
            seen.push((test.count, test.uniform, test.threshold));
        }
        seen
    };
    let (one, same, other) = (thresholds(1, 0.0), thresholds(1, 2.0), thresholds(2, 0.0));
    assert_eq!(one, same);
    assert!(
        one.iter()
            .zip(&other)
            .all(|(one, other)| one.1 != other.1 && one.0 != other.0)
    );
    // One draw per look.
    assert!(one.windows(2).all(|two| two[0].1 != two[1].1));
}
