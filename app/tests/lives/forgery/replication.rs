//! Two live runs of one experiment compared: each side's own names and units, the cause, and what rho promises.

use std::fs;

use debora_cli::audit::{Diff, PairStanding, diff};
use debora_cli::service::request::Granted;
use serde_json::Value;

use crate::kit::binary::debora;
use crate::kit::requests::{ask, tell, told};
use crate::kit::trial::{CLEAR, FREE, HARD, SHORT, Trial, read, text};

/// An experiment whose outcomes depend on round and action alone.
fn live(spec: &str, key: u64, rounds: u64, reward: impl Fn(u64, u32) -> f64) -> Trial {
    let mut trial = Trial::new(spec, key, 0);
    let costs = spec.matches("[[cost]]").count();
    while trial.progress().next_round <= rounds {
        let decide = ask(trial.id, 25);
        let Ok(Granted::Decided(decided)) = trial.ask(decide) else {
            break;
        };
        let given = (decided.lease.first..).zip(&decided.lease.actions);
        let outcomes =
            given.map(|(round, &action)| told(round, reward(round, action), vec![0.25; costs]));
        let tell = tell(trial.id, outcomes);
        trial.ask(tell).unwrap();
    }
    trial
}

fn compared(one: &Trial, two: &Trial) -> Diff {
    diff([one, two].map(|trial| read(&text(&trial.log(1_000, true))))).unwrap()
}

/// What `debora diff` prints of two logs, without its line breaks.
fn printed(one: &Trial, two: &Trial) -> (i32, String) {
    let files = [one, two].map(|trial| {
        let file = trial.folder.join("log.jsonl");
        fs::write(&file, text(&trial.log(1_000, true))).unwrap();
        file.display().to_string()
    });
    let output = debora(&["diff", &files[0], &files[1]]).output().unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    (output.status.code().unwrap(), words.join(" "))
}

#[test]
fn a_divergence_by_chance_is_within_the_promise() {
    // Found among the first few: outcomes near one another, from which the same draws pick different actions.
    let rewards =
        |less: u32, by: f64| move |_: u64, action: u32| 0.5 - if action == less { by } else { 0.0 };
    let base = live(FREE, 42, 160, rewards(0, 0.0));
    let steps = (1..15).flat_map(|step| (0..3).map(move |less| (less, 0.02 * f64::from(step))));
    let near = steps.map(|(less, by)| live(FREE, 42, 160, rewards(less, by)));
    let other = near
        .into_iter()
        .find(|other| compared(&base, other).divergence.is_some())
        .expect("another action is picked");
    let found = compared(&base, &other);
    assert_eq!((found.same_key, found.specs.len()), (Some(true), 0));
    assert_eq!(
        (found.promise.rho, found.promise.standing),
        (0.99, PairStanding::Within)
    );
    let (code, words) = printed(&base, &other);
    assert_eq!(code, 1);
    let promise = "One such divergence is within what rho = 0.99 promises: up to 99 % of pairs may diverge. After it, nothing \
                   further is promised of this pair.";
    assert!(words.contains(promise), "{words}");
    let (code, words) = printed(&base, &base);
    let together = "With rho = 0.99, two such experiments stay together to the horizon with a probability of at least 1 %.";
    assert!(code == 0 && words.contains(together), "{words}");
}

/// Hoeffding: two means of 54 values in [0, 1] each that are 1 apart have a probability of at most 2 exp(-54).
#[test]
fn means_that_are_too_far_apart_are_not_laid_at_the_promises_door() {
    let base = live(FREE, 42, 160, |_, action| f64::from(action) / 2.0);
    let other = live(FREE, 42, 160, |_, action| 1.0 - f64::from(action) / 2.0);
    let found = compared(&base, &other);
    assert_eq!(
        found.promise.standing,
        PairStanding::OtherOutcomes,
        "{found:?}"
    );
    let (_, words) = printed(&base, &other);
    assert!(
        words.contains(
            "It says nothing about rho = 0.99, which is a promise for outcomes of the same"
        ),
        "{words}"
    );
    let clear =
        [1.0, 0.05].map(|lead| live(CLEAR, 42, 2_000, move |_, action| lead * f64::from(action)));
    let found = compared(&clear[0], &clear[1]);
    assert!(found.divergence.unwrap().diverging_test.unwrap().chance_max < 1e-3);
    assert_eq!(found.promise.standing, PairStanding::OtherOutcomes);
}

#[test]
fn a_divergence_without_a_cause_is_not_within_the_promise() {
    let base = live(FREE, 42, 160, |_, action| f64::from(action) / 4.0);
    let log = text(&base.log(1_000, true));
    let decided = log
        .lines()
        .position(|line| line.contains("\"type\":\"decisions\""));
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let record = lines
        .iter()
        .rposition(|line| line.contains("\"type\":\"epoch\""))
        .unwrap();
    let mut epoch: Value = serde_json::from_str(&lines[record]).unwrap();
    epoch["record"]["strategy"] = serde_json::json!([0.5, 0.25, 0.25]);
    lines[record] = epoch.to_string();
    assert!(decided.is_some_and(|decided| decided < record));
    let found = diff([read(&log), read(&lines.join("\n"))]).unwrap();
    assert_eq!(found.promise.standing, PairStanding::Unexplained);
}

#[test]
fn other_actions_are_matched_by_name_and_each_side_has_its_own() {
    let rewards = |_: u64, action: u32| f64::from(action) / 4.0;
    let base = live(FREE, 42, 160, rewards);
    let renamed = live(&FREE.replace("\"c\"", "\"huge model\""), 42, 160, rewards);
    let found = compared(&base, &renamed);
    assert_eq!(found.actions[0], ["a", "b", "c"]);
    assert_eq!(found.actions[1], ["a", "b", "huge model"]);
    assert_eq!(found.promise.standing, PairStanding::NothingPromised);
    let (round, [one, two]) = found.divergence.unwrap().first_different.unwrap();
    assert_eq!(
        (round, one.as_str(), two.as_str()),
        (found.rounds + 1, "c", "huge model")
    );
    let (code, words) = printed(&base, &renamed);
    assert_eq!(code, 1);
    for part in [
        "Their specs differ in actions (only A has c; only B has \"huge model\").",
        "Of such a pair nothing is promised.",
        "c in A, \"huge model\" in B.",
        "c 33.33 % none \"huge model\" none 33.33 %",
    ] {
        assert!(words.contains(part), "{part:?} is not in {words}");
    }
    let fewer = live(&FREE.replace(", \"c\"", ""), 42, 160, rewards);
    let (code, words) = printed(&fewer, &base);
    assert!(
        code == 1 && words.contains("actions (only B has c)"),
        "{words}"
    );
    let turned = live(
        &FREE.replace("\"a\", \"b\"", "\"b\", \"a\""),
        42,
        160,
        rewards,
    );
    let (code, words) = printed(&base, &turned);
    assert!(
        code == 1 && words.contains("actions (the same in another order)"),
        "{words}"
    );
}

#[test]
fn other_costs_and_ranges_are_said_in_words() {
    let rewards = |_: u64, action: u32| f64::from(action) / 4.0;
    let base = live(HARD, 42, 200, rewards);
    let spans = live(&HARD.replace("[-1, 1]", "[0, 4]"), 42, 200, rewards);
    let found = compared(&base, &spans);
    let estimates = found
        .divergence
        .map(|divergence| divergence.diverging_estimates);
    for estimate in estimates.unwrap_or_default() {
        // One mean of one unit in both, in units of either side.
        assert!(
            estimate
                .means
                .iter()
                .all(|mean| (0.0..=0.25).contains(mean)),
            "{estimate:?}"
        );
    }
    let (_, words) = printed(&base, &spans);
    assert!(
        words.contains("reward, range ([-1, 1] against [0, 4])"),
        "{words}"
    );
    let (code, words) = printed(&base, &live(SHORT, 42, 70, rewards));
    assert_eq!(code, 1);
    assert!(words.contains("policy (hard against soft)"), "{words}");
    assert!(
        words.contains("safe strategy (") && words.contains("against nothing)"),
        "{words}"
    );
}

#[test]
fn commitments_stand_for_keys_that_are_not_revealed() {
    let hidden = |key| {
        let trial = live(FREE, key, 25, |_, _| 0.5);
        let file = trial.folder.join("log.jsonl");
        fs::write(&file, text(&trial.log(1_000, false))).unwrap();
        (file.display().to_string(), trial)
    };
    let (one, two) = (hidden(42), hidden(42));
    let output = debora(&["diff", &one.0, &two.0]).output().unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let document = debora(&["diff", &one.0, &two.0, "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["same_key"], Value::Null);
    for hash in document["key_hashes"].as_array().unwrap() {
        assert!(words.contains(hash.as_str().unwrap()), "{words}");
    }
    assert_eq!(document["promise"]["standing"], "together");
}
