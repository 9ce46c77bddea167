//! What is held back, as an audit sees it: who, by the key, in both directions, and what they got.

use debora_cli::audit::{Verdict, diff};
use debora_cli::log::Line;
use debora_cli::service::request::Change;
use debora_cli::store::Status;

use super::lives::{equal, fits};
use crate::kit::trial::{HELD_BACK, Trial, audit_text, read, text};

/// A finished experiment in which some were held back and told.
pub fn life() -> Trial {
    let mut trial = Trial::new(HELD_BACK, 42, 3);
    trial.run_to_the_end();
    (0..100).for_each(|_| trial.tell());
    let kinds = trial.log(1_000, true);
    for kind in ["decisions", "holdback", "holdback_outcome"] {
        assert!(kinds.iter().any(|line| line.name() == kind), "no {kind}");
    }
    trial
}

#[test]
fn an_audit_finds_all_equal_at_every_point_of_a_life_with_a_holdback() {
    let mut trial = Trial::new(HELD_BACK, 42, 3);
    let mut steps = 0;
    while trial.status() != Status::Done {
        let audited = equal(trial.audit());
        fits(&audited, &trial.progress());
        // Page after page, too: a cursor knows how far it was held back.
        if steps % 10 == 0 {
            let paged = equal(audit_text(&text(&trial.log(3, true)), None));
            assert_eq!(paged, audited);
        }
        trial.step();
        steps += 1;
        if steps % 20 == 10 {
            trial.restart();
        }
        assert!(steps < 10_000, "no end: {:?}", trial.progress());
    }
    let audited = equal(trial.audit());
    assert!(audited.holdback > 3 && audited.overtime > 0, "{audited:?}");
}

/// What an audit says of a log that was changed.
fn difference(lines: &[Line]) -> String {
    match audit_text(&text(lines), None).unwrap() {
        Verdict::Different(_, difference) => difference.to_string(),
        Verdict::Equal(audited) => panic!("nothing was found: {audited:?}"),
    }
}

/// The request keys of the first lines of both sides.
fn keys(lines: &[Line]) -> [Option<String>; 2] {
    let inside = lines.iter().find_map(|line| match line {
        Line::Decisions(lease) => lease.request_key.clone(),
        _ => None,
    });
    let outside = lines.iter().find_map(|line| match line {
        Line::Holdback(lease) => lease.request_key.clone(),
        _ => None,
    });
    [inside, outside]
}

#[test]
fn a_request_on_the_wrong_side_is_named_in_both_directions() {
    let honest = life().log(1_000, true);
    let [inside, outside] = keys(&honest);
    let mut let_in = honest.clone();
    let mut kept_out = honest.clone();
    if let Some(Line::Decisions(lease)) = find(&mut let_in, "decisions") {
        lease.request_key = outside;
    }
    if let Some(Line::Holdback(lease)) = find(&mut kept_out, "holdback") {
        lease.request_key = inside;
    }
    for (lines, recorded) in [(let_in, "false"), (kept_out, "true")] {
        let found = difference(&lines);
        let words = format!("whether the request is held back is {recorded} as recorded");
        assert!(found.contains(&words), "{found}");
    }
}

#[test]
fn another_action_and_a_missing_key_are_found_without_the_experiments_key() {
    let honest = life().log(1_000, false);
    let hidden = |lines: &mut Vec<Line>| {
        if let Line::Experiment(heading) = &mut lines[0] {
            (heading.key, heading.salt) = (None, None);
        }
    };
    let mut unchanged = honest.clone();
    hidden(&mut unchanged);
    assert!(!equal(audit_text(&text(&unchanged), None)).recomputed);
    let mut other = unchanged.clone();
    if let Some(Line::Holdback(lease)) = find(&mut other, "holdback") {
        lease.actions[0] = 0;
    }
    assert!(difference(&other).contains("of holdback: the action is 0 as recorded, and 1"));
    let mut keyless = unchanged;
    if let Some(Line::Decisions(lease)) = find(&mut keyless, "decisions") {
        lease.request_key = None;
    }
    assert!(difference(&keyless).contains("its request key is missing"));
}

#[test]
fn nothing_can_be_held_back_that_the_spec_does_not_hold_back() {
    let mut lines = life().log(1_000, true);
    if let Line::Experiment(heading) = &mut lines[0] {
        heading.spec = heading
            .spec
            .replace("holdback = { share = 0.3, action = \"b\" }", "");
        heading.genesis = debora_cli::log::chain::genesis(
            heading.values_version,
            &heading.spec,
            &heading.key_hash,
            &heading.id,
            heading.created_at,
        );
    }
    // In the first epoch, before its hash, which is wrong by now as well.
    let held_back = find(&mut lines, "holdback").cloned();
    let closed = lines.iter().position(|line| line.name() == "closed");
    if let (Some(Line::Holdback(mut lease)), Some(closed)) = (held_back, closed) {
        (lease.epoch, lease.first) = (0, 1);
        lines.retain(|line| line.name() != "holdback");
        lines.insert(closed, Line::Holdback(lease));
    }
    let found = difference(&lines);
    let words = "the request is held back as recorded, and decided, as the spec has no holdback";
    assert!(found.contains(words), "{found}");
}

#[test]
fn one_that_is_closed_early_has_its_holdback_in_the_last_hash() {
    let mut trial = Trial::new(HELD_BACK, 42, 3);
    while trial.progress().next_holdback < 3 {
        trial.step();
    }
    trial.change(Change::Close);
    let audited = equal(trial.audit());
    fits(&audited, &trial.progress());
    // The last request that was held back, in the epoch that no complete one follows.
    let mut lines = trial.log(1_000, true);
    let last = lines.iter().rposition(|line| line.name() == "holdback");
    if let Some(Line::Holdback(lease)) = last.map(|place| &mut lines[place]) {
        lease.at += 1;
    }
    assert!(difference(&lines).contains("the hash of its requests"));
}

#[test]
fn a_holdback_is_no_divergence_and_another_one_is_another_spec() {
    let trial = life();
    let log = || read(&text(&trial.log(1_000, true)));
    assert!(diff([log(), log()]).unwrap().divergence.is_none());
    let other = HELD_BACK.replace("0.3, action", "0.2, action");
    let other = Trial::new(&other, 42, 3);
    let found = diff([log(), read(&text(&other.log(1_000, true)))]).unwrap();
    let specs: Vec<&str> = found.specs.iter().map(|one| &*one.what).collect();
    assert_eq!(specs, ["holdback, share"]);
}

fn find<'a>(lines: &'a mut [Line], kind: &str) -> Option<&'a mut Line> {
    lines.iter_mut().find(|line| line.name() == kind)
}
