//! Whatever happens in an experiment's life, its audit says that all is equal; and what the log says is what happened.

use debora::EpochRecord;
use debora::record::Kind;
use debora_cli::audit::{Audited, Verdict};
use debora_cli::log::{Line, page};
use debora_cli::reading::certificate::{Certificate, Certification};
use debora_cli::service::request::{
    Change, Decide, DecisionId, Granted, Request, Tell, ToldOutcome,
};
use debora_cli::store::{Progress, Status};

use crate::kit::trial::{CLEAR, FREE, HARD, LEVELS, PAPER, SOFT, Trial, audit_text, text};

pub fn equal(verdict: anyhow::Result<Verdict>) -> Audited {
    match verdict.unwrap() {
        Verdict::Equal(audited) => audited,
        Verdict::Different(audited, difference) => panic!("{difference}, after {audited:?}"),
    }
}

/// The audit's counts are the service's.
pub fn fits(audited: &Audited, progress: &Progress) {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    let counts = (
        audited.decisions,
        audited.outcomes,
        audited.imputed,
        audited.late,
        audited.overtime,
        audited.holdback,
    );
    let expected = (
        progress.next_round - 1,
        sum(&progress.outcomes),
        sum(&progress.imputed),
        progress.late,
        progress.overtime,
        progress.holdback,
    );
    assert_eq!(counts, expected);
    assert_eq!(
        (audited.epochs, &audited.head),
        (progress.epoch + 1, &progress.head)
    );
    assert_eq!(audited.open_epoch.is_some(), progress.status.is_open());
}

#[test]
fn an_audit_finds_all_equal_at_every_point_of_an_experiments_life() {
    for (spec, chance) in [(SOFT, 1), (HARD, 2), (FREE, 7), (PAPER, 4), (LEVELS, 5)] {
        let mut trial = Trial::new(spec, 42, chance);
        let mut steps = 0;
        while trial.status() != Status::Done {
            let audited = equal(trial.audit());
            assert!(audited.key && !audited.moved);
            fits(&audited, &trial.progress());
            trial.step();
            steps += 1;
            match steps % 60 {
                30 => trial.restart(),
                59 => (0..200).for_each(|_| trial.tell()),
                _ => {}
            }
            assert!(steps < 10_000, "{spec} has no end: {:?}", trial.progress());
        }
        let audited = equal(trial.audit());
        fits(&audited, &trial.progress());
        // What the lives are meant to hold. Without hard limits exploration is one epoch, so that short lives have few.
        let epochs = match spec {
            PAPER => 5,
            HARD | LEVELS => 3,
            _ => 2,
        };
        assert!(
            audited.epochs >= epochs && audited.decisions >= 100,
            "{audited:?}"
        );
        assert_eq!(
            audited.imputed > 0,
            spec.contains("outcome_wait"),
            "{audited:?}"
        );
        assert_eq!(audited.overtime > 0, spec.contains("serve"), "{audited:?}");
        assert_eq!(
            audited.late > 0,
            spec.contains("outcome_wait"),
            "{audited:?}"
        );
        let audited_log = equal(audit_text(
            &text(&trial.log(1_000, true)),
            Some(&audited.head),
        ));
        assert_eq!(audited_log, audited);
    }
}

#[test]
fn an_experiment_that_is_closed_early_has_all_it_had_so_far_in_its_last_hash() {
    let mut trial = Trial::new(SOFT, 7, 5);
    (0..80).for_each(|_| trial.step());
    if trial.status() == Status::Paused {
        trial.change(Change::Resume);
    }
    trial.decide(6);
    (0..3).for_each(|_| trial.tell());
    trial.change(Change::Close);
    let audited = equal(trial.audit());
    assert_eq!(
        (audited.status, audited.open_epoch),
        (Some(Status::Closed), None)
    );
    // Not complete: some of its rounds have no outcome.
    assert!(
        audited.outstanding > 0 && audited.unhashed_outcomes == 0,
        "{audited:?}"
    );
    fits(&audited, &trial.progress());
    let line = |line: &Line| matches!(line, Line::Closed { early: true, .. });
    assert_eq!(
        trial
            .log(1_000, true)
            .iter()
            .filter(|&each| line(each))
            .count(),
        1
    );
}

/// Whoever notes a head down finds it in the chain, whatever comes after it, even after the end.
#[test]
fn every_head_that_was_ever_shown_stays_in_the_chain() {
    let mut trial = Trial::new(PAPER, 42, 4);
    let mut heads = std::collections::BTreeSet::new();
    while trial.status() != Status::Done {
        heads.insert(trial.progress().head);
        trial.step();
    }
    for _ in 0..200 {
        heads.insert(trial.progress().head);
        trial.tell();
    }
    let epochs = trial.progress().epoch as usize + 1;
    assert!(heads.len() > epochs + 1, "something came after the end");
    let log = text(&trial.log(1_000, true));
    for head in &heads {
        equal(audit_text(&log, Some(head)));
    }
}

#[test]
fn pages_of_any_length_make_the_same_log() {
    let mut trial = Trial::new(SOFT, 42, 6);
    for _ in 0..3 {
        (0..60).for_each(|_| trial.step());
        let whole = trial.log(100_000, false);
        for limit in [1, 2, 7, 100] {
            assert_eq!(trial.log(limit, false), whole, "{limit}");
        }
        let again: Vec<Line> = text(&whole)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(again, whole);
    }
}

#[test]
fn closed_epochs_have_the_same_lines_ever_after() {
    let mut trial = Trial::new(SOFT, 42, 8);
    while trial.progress().epoch == 0 {
        trial.step();
    }
    let before = trial.log(1_000, true);
    let closed = before
        .iter()
        .rposition(|line| matches!(line, Line::Closed { .. }))
        .unwrap();
    trial.run_to_the_end();
    let after = trial.log(1_000, true);
    // Only outcomes of overtime may still be added to a closed epoch.
    let settled = |lines: &[Line]| -> Vec<Line> {
        lines
            .iter()
            .filter(|line| !matches!(line, Line::OvertimeOutcome(_)))
            .cloned()
            .collect()
    };
    let before = settled(&before[..=closed]);
    assert_eq!(settled(&after)[..before.len()], before[..]);
}

#[test]
fn the_key_is_shown_to_those_who_may_see_it_or_when_all_is_over() {
    let mut trial = Trial::new(FREE, 42, 9);
    let shown = |trial: &Trial, reveal: bool| match &trial.log(10, reveal)[0] {
        Line::Experiment(heading) => heading.key.is_some() && heading.salt.is_some(),
        line => panic!("{line:?}"),
    };
    assert_eq!(
        [false, true].map(|reveal| shown(&trial, reveal)),
        [false, true]
    );
    let mut store = trial.reader();
    let certification = Certificate::read(&mut store, trial.id, false).unwrap();
    assert!(matches!(certification, Some(Certification::Open(..))));
    trial.run_to_the_end();
    assert_eq!(
        [false, true].map(|reveal| shown(&trial, reveal)),
        [true, true]
    );
}

#[test]
fn without_the_key_hashes_and_counts_are_still_checked() {
    let mut trial = Trial::new(HARD, 42, 10);
    while trial.progress().epoch == 0 {
        trial.step();
    }
    let log = text(&trial.log(1_000, false));
    let audited = equal(audit_text(&log, None));
    assert!(!audited.key);
    fits(&audited, &trial.progress());
    // A reward of a closed epoch.
    let line = log
        .lines()
        .find(|line| line.contains("\"outcome\"") && line.contains("\"imputed\":false"))
        .unwrap();
    let changed = line.replace("\"reward\":", "\"reward\":-");
    let verdict = audit_text(&log.replace(line, &changed), None).unwrap();
    assert!(
        matches!(verdict, Verdict::Different(_, difference) if difference.what == "the hash of its rounds")
    );
}

#[test]
fn a_log_that_is_read_while_the_experiment_goes_on_is_equal_as_far_as_it_goes() {
    let mut moved = 0;
    for chance in 20..30 {
        let mut trial = Trial::new(SOFT, 42, chance);
        (0..40).for_each(|_| trial.step());
        let mut lines = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = page(&mut trial.reader(), trial.id, cursor.as_deref(), 9, true)
                .unwrap()
                .unwrap();
            lines.extend(page.lines);
            trial.step();
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let audited = equal(audit_text(&text(&lines), None));
        assert!(audited.decisions > 0);
        moved += u32::from(audited.moved);
    }
    assert!(moved > 0, "no log was overtaken");
}

#[test]
fn cursors_that_no_page_gave_are_refused() {
    let trial = Trial::new(FREE, 42, 11);
    for cursor in [
        "",
        "0",
        "0.closed.0",
        "1.epoch.0",
        "0.nowhere.0",
        "0.outcomes.-1",
    ] {
        let error = page(&mut trial.reader(), trial.id, Some(cursor), 10, true).unwrap_err();
        assert!(
            error.downcast_ref::<debora_cli::log::BadCursor>().is_some(),
            "{cursor}: {error}"
        );
    }
    assert_eq!(
        page(&mut trial.reader(), "nobody", None, 10, true).unwrap(),
        None
    );
}

#[test]
fn a_published_head_must_be_in_the_chain() {
    let mut trial = Trial::new(PAPER, 42, 12);
    let mut heads = vec![trial.progress().head];
    while trial.status() != Status::Done {
        trial.step();
        (0..3).for_each(|_| trial.tell());
        heads.push(trial.progress().head);
    }
    let log = text(&trial.log(1_000, true));
    heads.dedup();
    assert!(heads.len() > 5);
    for head in &heads {
        equal(audit_text(&log, Some(head)));
    }
    let other = Trial::new(PAPER, 42, 12).progress().head;
    let Verdict::Different(_, difference) = audit_text(&log, Some(&other)).unwrap() else {
        panic!("found")
    };
    assert_eq!(
        (difference.what.as_str(), difference.recorded),
        ("the published head", other)
    );
}

fn certificate(trial: &Trial) -> Certificate {
    match Certificate::read(&mut trial.reader(), trial.id, false).unwrap() {
        Some(Certification::Over(certificate)) => *certificate,
        _ => panic!("{} has no certificate", trial.id),
    }
}

#[test]
fn the_certificate_says_what_happened() {
    let mut trial = Trial::new(SOFT, 42, 13);
    trial.run_to_the_end();
    let (progress, log) = (trial.progress(), trial.log(1_000, false));
    let certificate = certificate(&trial);
    let Line::Experiment(heading) = &log[0] else {
        panic!("no heading")
    };
    assert_eq!(certificate.key, heading.key);
    assert_eq!(
        (&certificate.key_hash, &certificate.salt),
        (&heading.key_hash, &heading.salt)
    );
    assert_eq!(
        (certificate.head, certificate.digest),
        (progress.head, progress.digest)
    );
    assert_eq!(
        (certificate.rounds, certificate.horizon, certificate.epochs),
        (150, 150, progress.epoch + 1)
    );
    let mut spec = debora::spec::Spec::parse(SOFT, "spec").unwrap();
    spec.key = 42u64.into();
    assert_eq!(certificate.fingerprint, Some(spec.fingerprint()));
    let outcomes: Vec<u64> = certificate
        .actions
        .iter()
        .map(|action| action.told + action.imputed)
        .collect();
    assert_eq!(outcomes, progress.outcomes);
    let names: Vec<&str> = certificate
        .recommendation
        .current
        .quantities
        .iter()
        .map(|known| known.name.as_str())
        .collect();
    assert_eq!(names, ["reward", "price", "latency"]);
    assert_eq!(
        certificate.recommendation.current.quantities[1].threshold,
        Some(1.2)
    );
    assert_eq!(certificate.ended_at, trial.now);
    equal(audit_text(
        &text(&log),
        Some(
            certificate
                .verify
                .split("--head ")
                .nth(1)
                .unwrap()
                .split('`')
                .next()
                .unwrap(),
        ),
    ));
}

/// Rewards far apart: after 64 rounds of each action the run commits, if its key's threshold allows it.
fn told_of_a_clear_world(trial: &mut Trial, rounds: u64) -> bool {
    let decide = Request::Decide(Decide {
        id: trial.id.into(),
        rounds,
        request_key: None,
        seen: 0,
        actor: "tester".into(),
    });
    let Ok(Granted::Decided(decided)) = trial.ask(decide) else {
        return false;
    };
    let outcomes = (decided.lease.first..).zip(&decided.lease.actions);
    let outcomes = outcomes.map(|(round, &action)| ToldOutcome {
        decision: DecisionId::Round(round),
        reward: f64::from(action),
        costs: Vec::new(),
    });
    let tell = Request::Tell(Tell {
        id: trial.id.into(),
        outcomes: outcomes.collect(),
        actor: "tester".into(),
    });
    trial.ask(tell).unwrap();
    true
}

fn open_record(trial: &Trial) -> EpochRecord {
    let epoch = trial.progress().epoch;
    let row = trial.reader().epochs(trial.id, epoch, 1).unwrap().remove(0);
    serde_json::from_str(&row.record).unwrap()
}

/// A stage ends by its rounds and not by a count, whatever the requests ask for; then nothing is waited for any more.
#[test]
fn a_committed_experiment_never_waits_and_is_audited_as_it_is() {
    let mut trial = Trial::new(CLEAR, 42, 0);
    while open_record(&trial).decided().is_none() {
        assert!(told_of_a_clear_world(&mut trial, 50));
    }
    let record = open_record(&trial);
    let test = record.test.as_ref().unwrap();
    let looked = test.count;
    assert_eq!(trial.progress().decided, [looked; 2]);
    assert_eq!((record.kind, test.leader), (Kind::Commit, 1));
    trial.restart();
    // Never told, and never waited for.
    for _ in 0..5 {
        trial.decide(10_000);
    }
    assert_eq!(trial.progress().decided, [looked, 50_000 + looked]);
    trial.tell();
    trial.wait(70_000);
    trial.tick();
    let audited = equal(trial.audit());
    assert!(
        audited.recomputed && audited.imputed > 40_000,
        "{audited:?}"
    );
    fits(&audited, &trial.progress());
    trial.change(Change::Close);
    equal(trial.audit());
    let certificate = certificate(&trial);
    let recommended = certificate.recommendation;
    assert_eq!(recommended.kind, Kind::Commit);
    let cautious = recommended.cautious.unwrap().shares;
    assert_eq!([0, 1].map(|action| cautious.of(action)), [0.0, 1.0]);
}

/// A world without a leader goes on to the next look: rounds end it there, too.
#[test]
fn a_look_that_does_not_pass_leads_to_the_next() {
    let mut trial = Trial::new(CLEAR, 42, 1);
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let before = trial.progress();
        trial.decide(97);
        (0..200).for_each(|_| trial.tell());
        if trial.progress().epoch > before.epoch {
            ends.push(open_record(&trial).counts);
        }
    }
    let looks = Engine::new(
        Spec::parse(CLEAR, "spec").unwrap().problem,
        Key::from(42u64),
    );
    let looks = looks.open_record().looks.clone().unwrap().counts;
    assert_eq!(ends, [[looks[0]; 2], [looks[1]; 2]].map(Vec::from));
    let test = open_record(&trial).test.unwrap();
    assert_eq!((test.count, test.passed), (looks[1], false));
    equal(trial.audit());
}
