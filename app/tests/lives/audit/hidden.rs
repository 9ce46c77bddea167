//! What a store or a log hides, or says beside what an audit reads, is found: nothing may stand there that no line shows.

use debora_cli::audit::Verdict;
use debora_cli::store::{Location, Status};
use rusqlite::Connection;

use crate::kit::trial::{SHORT, Trial, audit_text, text};

fn found(verdict: anyhow::Result<Verdict>) -> String {
    match verdict {
        Ok(Verdict::Equal(_)) => "nothing".into(),
        Ok(Verdict::Different(_, difference)) => {
            format!("{}: {}", difference.place, difference.what)
        }
        Err(error) => format!("{error:#}"),
    }
}

fn trial() -> Trial {
    let mut trial = Trial::new(SHORT, 42, 1);
    trial.run_to_the_end();
    trial.stop();
    trial
}

/// What is done to a store, and what the audit says.
const HIDDEN: [(&str, &str); 19] = [
    (
        "CREATE TRIGGER t AFTER INSERT ON leases BEGIN DELETE FROM outcomes; END",
        "trigger t",
    ),
    ("CREATE VIEW v AS SELECT * FROM leases", "view v"),
    ("CREATE TABLE more (a INTEGER)", "table more"),
    ("ALTER TABLE leases ADD COLUMN more TEXT", "table leases"),
    ("DROP INDEX lease_requests", "lacks index lease_requests"),
    (
        "DROP INDEX uncounted_positions",
        "lacks index uncounted_positions",
    ),
    ("CREATE INDEX more ON leases (at)", "index more"),
    (
        "INSERT INTO leases SELECT 7, epoch, kind, first, rounds, actions, asked, NULL, at, waited, actor FROM leases LIMIT 1",
        "a row of leases of no experiment, number 7",
    ),
    (
        "INSERT INTO outcomes SELECT -2, round, feedback, imputed, at, actor FROM outcomes LIMIT 1",
        "a row of outcomes of no experiment, number -2",
    ),
    (
        "INSERT INTO experiments (id, spec, key, salt, created_at, values_version) SELECT 'other', spec, key, salt, 0, 1 FROM experiments",
        "an experiment without progress, number 2",
    ),
    (
        "INSERT INTO outcomes SELECT experiment, 0, feedback, imputed, at, actor FROM outcomes LIMIT 1",
        "the table outcomes: the number of rows",
    ),
    (
        "INSERT INTO outcomes SELECT experiment, 71, feedback, imputed, at, actor FROM outcomes LIMIT 1",
        "the table outcomes: the number of rows",
    ),
    (
        "INSERT INTO leases SELECT experiment, 9, kind, first, rounds, actions, asked, NULL, at, waited, actor FROM leases LIMIT 1",
        "the table leases: the number of rows",
    ),
    (
        "INSERT INTO leases SELECT experiment, epoch, 1, 999, rounds, actions, asked, NULL, at, waited, actor FROM leases LIMIT 1",
        "its first serial",
    ),
    (
        "INSERT INTO uncounted SELECT experiment, 9, 1, number, feedback, at, actor, position + 1000 FROM uncounted LIMIT 1",
        "the table uncounted: the number of rows",
    ),
    (
        "INSERT INTO uncounted SELECT experiment, 0, 0, 999, feedback, at, actor, position + 1000 FROM uncounted LIMIT 1",
        "the table uncounted: the number of rows",
    ),
    (
        "INSERT INTO events SELECT experiment, 99, at, actor, what, reason, position + 1000 FROM events LIMIT 1",
        "the table events: the number of rows",
    ),
    (
        "UPDATE events SET position = position + 1000 WHERE number = (SELECT max(number) FROM events)",
        "the hash of uncounted outcomes and events",
    ),
    (
        "INSERT INTO epochs SELECT experiment, 9, record, NULL, opened_at, closed_at, rounds_hash, hash, leases_hash, journal_end, journal FROM epochs LIMIT 1",
        "the row of epoch 9",
    ),
];

#[test]
fn whatever_a_store_hides_is_found() {
    let trial = trial();
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let whole = std::fs::read(path).unwrap();
    assert_eq!(found(trial.audit()), "nothing");
    for (sql, expected) in HIDDEN {
        let file = Connection::open(path).unwrap();
        file.execute_batch(sql).unwrap();
        file.close().unwrap();
        let said = found(trial.audit());
        assert!(said.contains(expected), "{sql}: {said}");
        std::fs::write(path, &whole).unwrap();
    }
    assert_eq!(found(trial.audit()), "nothing");
}

#[test]
fn a_log_says_no_more_and_no_less_than_its_lines() {
    let log = text(&trial().log(1_000, true));
    let lines: Vec<&str> = log.lines().collect();
    let cut = |lines: &[&str]| found(audit_text(&lines.join("\n"), None));
    assert_eq!(cut(&lines), "nothing");
    // The tail, by one line or many.
    for end in [lines.len() - 1, lines.len() - 3, 20, 1] {
        let said = cut(&lines[..end]);
        assert!(said.contains("the log ends before its last line"), "{said}");
    }
    // The last fact and the tail's counts with it: then the head and the journal of the state are others.
    let last = lines.len() - 2;
    assert!(lines[last].contains("\"position\""));
    let without: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != last)
        .map(|(_, line)| *line)
        .collect();
    let counts = |line: &str| {
        let mut state: serde_json::Value = serde_json::from_str(line).unwrap();
        let progress = &mut state["progress"];
        progress["late"] = (progress["late"].as_u64().unwrap() - 1).into();
        progress["next_position"] = (progress["next_position"].as_u64().unwrap() - 1).into();
        state.to_string()
    };
    let state = counts(lines[lines.len() - 1]);
    let mut forged = without.clone();
    *forged.last_mut().unwrap() = &state;
    assert_ne!(cut(&forged), "nothing");
    // Something after the end.
    let doubled: Vec<&str> = lines
        .iter()
        .copied()
        .chain([lines[lines.len() - 1]])
        .collect();
    assert!(cut(&doubled).ends_with("the order of lines: what follows state"));
}

/// The one who keeps the store can remove what was told late together with every count of it, and the chain still tells.
#[test]
fn counts_changed_with_what_they_count_are_found() {
    let trial = trial();
    assert_eq!(trial.status(), Status::Done);
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let file = Connection::open(path).unwrap();
    let late = "SELECT number FROM uncounted WHERE kind = 0 ORDER BY position DESC LIMIT 1";
    file.execute_batch(&format!(
        "DELETE FROM uncounted WHERE kind = 0 AND number = ({late});
         UPDATE progress SET progress = json_set(progress, '$.late', json_extract(progress, '$.late') - 1);"
    ))
    .unwrap();
    file.close().unwrap();
    let said = found(trial.audit());
    assert!(
        said.contains("the position of what comes next") || said.contains("the hash of uncounted"),
        "{said}"
    );
}
