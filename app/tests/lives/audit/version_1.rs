//! Logs of values version 1, written by the program that had it: what this one can say of them, and that it says no more.

use debora_cli::audit::{Verdict, diff};
use debora_cli::log::{LoggedRecord, chain};
use serde_json::Value;

use crate::kit::binary::debora;
use crate::kit::trial::{audit_text, read};

/// Two finished experiments with one spec and one key, on different data.
const LOGS: [&str; 2] = [
    include_str!("version-1.jsonl"),
    include_str!("version-1-other.jsonl"),
];

#[test]
fn hashes_order_and_counts_are_checked_and_nothing_is_recomputed() {
    for log in LOGS {
        let Verdict::Equal(audited) = audit_text(log, None).unwrap() else {
            panic!("a difference")
        };
        assert_eq!((audited.values_version, audited.decisions), (1, 70));
        assert!(audited.key && !audited.recomputed);
    }
}

#[test]
fn a_changed_value_is_found_by_the_hashes() {
    let log = LOGS[0];
    let mut lines = log.lines();
    let outcome = lines.find(|line| line.contains("\"outcome\"")).unwrap();
    let changed = outcome.replace("\"reward\":0.", "\"reward\":0.9");
    assert_ne!(outcome, changed);
    let verdict = audit_text(&log.replace(outcome, &changed), None).unwrap();
    assert!(
        matches!(verdict, Verdict::Different(_, difference) if difference.what == "the hash of its rounds")
    );
    // A field that version 1 did not have is not passed over.
    let changed = log.replacen("\"sigma\":0.0,", "\"rule\":\"plan\",\"sigma\":0.0,", 1);
    let verdict = audit_text(&changed, None).unwrap();
    assert!(matches!(verdict, Verdict::Different(_, difference) if difference.what == "its hash"));
}

/// The hash is over the text that the first program wrote, and anyone may take it from the line.
#[test]
fn records_are_written_as_they_were() {
    let epochs = LOGS[0]
        .lines()
        .filter(|line| line.contains("\"epoch\",\"opened_at\""));
    let mut seen = 0;
    for line in epochs {
        let text = line.split_once("\"record\":").unwrap().1;
        let text = text.strip_suffix('}').unwrap();
        let record = serde_json::from_str(text).unwrap();
        assert_eq!(chain::record_text(&record, 1), text);
        let logged = LoggedRecord {
            record,
            values_version: 1,
        };
        assert_eq!(serde_json::to_string(&logged).unwrap(), text);
        seen += 1;
    }
    assert_eq!(seen, 13);
}

#[test]
fn they_diverge_where_the_first_program_said_they_do() {
    let found = diff(LOGS.map(read)).unwrap();
    assert_eq!((found.same_key, found.rounds), (Some(true), 64));
    let divergence = found.divergence.unwrap();
    let estimates: Vec<(&str, u64, [i64; 2])> = divergence
        .diverging_estimates
        .iter()
        .map(|estimate| (&*estimate.name, estimate.epoch, estimate.cells))
        .collect();
    assert_eq!(estimates, [("a", 11, [-1, 0]), ("b", 12, [0, -1])]);
}

#[test]
fn the_program_says_who_can_recompute_them_and_exits_with_2() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/lives/audit/version-1.jsonl"
    );
    let output = debora(&["audit", file]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stdout).unwrap().replace('\n', " ");
    assert!(
        said.starts_with("first: hashes and counts of 70 decisions in 13 epochs are equal."),
        "{said}"
    );
    assert!(
        said.contains("request keys in their hashes: 13 epochs; in no hash: "),
        "{said}"
    );
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("audit it with a debora that has 1"),
        "{error}"
    );
    let output = debora(&["audit", file, "--json"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        document["experiments"][0]["verdict"],
        "hashes equal, other values version"
    );
}
