//! A store of the version before rule 2 is continued under rule 2, and its audit says what the old rule covers.

use debora::EpochRecord;
use debora_cli::audit::{Audited, Verdict};
use debora_cli::log::chain::{self, RoundsHash};
use debora_cli::service::request::Change;
use debora_cli::store::schema::{META, MIGRATIONS};
use debora_cli::store::{DecisionKind, Location, Status};
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::kit::trial::{DOUBLING, Trial, audit_text, text};

/// Columns of version 2, by table.
const COLUMNS: [(&str, &str); 7] = [
    (
        "experiments",
        "number, id, spec, key, salt, created_at, values_version",
    ),
    ("progress", "experiment, progress"),
    (
        "epochs",
        "experiment, epoch, record, snapshot, opened_at, closed_at, rounds_hash, hash",
    ),
    (
        "leases",
        "experiment, epoch, overtime, first, rounds, actions, asked, request_key, at",
    ),
    ("outcomes", "experiment, round, feedback, imputed, at"),
    (
        "asides",
        "experiment, epoch, overtime, number, feedback, at",
    ),
    ("events", "experiment, number, at, actor, what"),
];

/// Makes of a trial's store what the program of version 2 would have stored: its tables, and its hashes.
fn as_version_2(trial: &mut Trial) {
    trial.stop();
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let old = trial.folder.join("old.db");
    let file = Connection::open(&old).unwrap();
    file.execute_batch(META).unwrap();
    MIGRATIONS[..2]
        .iter()
        .for_each(|sql| file.execute_batch(sql).unwrap());
    file.execute_batch(&format!(
        "PRAGMA application_id = {}; UPDATE meta SET value = 2; ATTACH '{}' AS new;",
        0x6465_626f,
        path.display()
    ))
    .unwrap();
    for (table, columns) in COLUMNS {
        file.execute_batch(&format!(
            "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"
        ))
        .unwrap();
    }
    let head = rehash(trial, &file);
    let progress: String = file
        .query_row("SELECT progress FROM progress", [], |row| row.get(0))
        .unwrap();
    let mut progress: Value = serde_json::from_str(&progress).unwrap();
    let fields = progress.as_object_mut().unwrap();
    fields.insert("head".into(), head.into());
    ["next_position", "journal"]
        .iter()
        .for_each(|field| drop(fields.remove(*field)));
    file.execute("UPDATE progress SET progress = ?1", [progress.to_string()])
        .unwrap();
    file.execute_batch("DETACH new").unwrap();
    file.close().unwrap();
    std::fs::remove_file(path).unwrap();
    std::fs::rename(&old, path).unwrap();
}

/// The chain by rule 1; the last head.
fn rehash(trial: &Trial, file: &Connection) -> String {
    let mut store = trial.reader();
    let (experiment, progress) = store.experiment(trial.id).unwrap().unwrap();
    let key_hash = chain::key_hash(experiment.salt, experiment.key);
    let mut head = chain::genesis_by_rule_1(experiment.values_version, &experiment.spec, &key_hash);
    for row in store.epochs(trial.id, 0, 1_000).unwrap() {
        if row.closed_at.is_none()
            || (row.epoch == progress.epoch && progress.status == Status::Closed)
        {
            continue;
        }
        let record: EpochRecord = serde_json::from_str(&row.record).unwrap();
        let leases = store
            .leases(trial.id, row.epoch, DecisionKind::Round, 0, 1_000)
            .unwrap();
        let actions: Vec<u32> = leases.into_iter().flat_map(|lease| lease.actions).collect();
        let outcomes = store
            .outcomes(trial.id, record.first_round, actions.len())
            .unwrap();
        let mut rounds = RoundsHash::by_rule(1);
        for (outcome, action) in outcomes.iter().zip(actions) {
            rounds.add(action, outcome, None);
        }
        head = chain::epoch_hash_by_rule_1(&head, &row.record, &rounds.to_hex());
        let sql = "UPDATE epochs SET rounds_hash = ?1, hash = ?2 WHERE epoch = ?3";
        file.execute(sql, params![rounds.to_hex(), head, row.epoch as i64])
            .unwrap();
    }
    head
}

fn equal(verdict: anyhow::Result<Verdict>) -> Audited {
    match verdict.unwrap() {
        Verdict::Equal(audited) => audited,
        Verdict::Different(audited, difference) => panic!("{difference}, after {audited:?}"),
    }
}

fn audited(trial: &Trial) -> Audited {
    let audited = equal(trial.audit());
    assert_eq!(equal(audit_text(&text(&trial.log(7, true)), None)), audited);
    audited
}

/// One in its sixth epoch, with late outcomes and overtime before it.
fn old() -> Trial {
    let mut trial = (1..100)
        .map(|chance| {
            let mut trial = Trial::new(DOUBLING, 42, chance);
            while trial.progress().epoch < 5 && trial.status() != Status::Done {
                trial.step();
            }
            trial
        })
        .find(|trial| {
            let progress = trial.progress();
            progress.status == Status::Running && progress.late > 0 && progress.overtime > 0
        })
        .unwrap();
    as_version_2(&mut trial);
    trial
}

#[test]
fn an_older_stores_experiment_goes_on_under_rule_2() {
    let mut trial = old();
    trial.restart();
    let before = audited(&trial);
    assert_eq!((before.epochs_by_rule_1, before.epochs), (5, 6));
    assert!(before.facts_by_rule_1 > 1);
    trial.run_to_the_end();
    let after = audited(&trial);
    assert_eq!(after.epochs_by_rule_1, 5);
    assert_eq!(after.facts_by_rule_1, before.facts_by_rule_1);
    assert!(after.epochs > 6 && trial.progress().next_position > 0);
    // A head that the old program published is still in the chain.
    let log = text(&trial.log(1_000, true));
    assert_eq!(equal(audit_text(&log, Some(&before.head))), after);
}

#[test]
fn the_rule_never_goes_back() {
    let mut trial = old();
    trial.restart();
    trial.run_to_the_end();
    let log = text(&trial.log(1_000, true));
    // The last closed epoch, as rule 1 would have closed it.
    let line = log
        .lines()
        .rfind(|line| line.contains("\"type\":\"closed\""))
        .unwrap();
    let mut closed: Value = serde_json::from_str(line).unwrap();
    let fields = closed.as_object_mut().unwrap();
    ["leases_hash", "journal_end", "journal"]
        .iter()
        .for_each(|field| drop(fields.remove(*field)));
    let forged = log.replace(line, &closed.to_string());
    let verdict = audit_text(&forged, None).unwrap();
    assert!(
        matches!(verdict, Verdict::Different(_, difference) if difference.what == "what it has of its hash")
    );
}

#[test]
fn what_was_closed_under_rule_1_stays_as_it_is_and_what_is_closed_later_has_its_end_hashed() {
    let mut trial = old();
    trial.restart();
    trial.change(Change::Close);
    let after = audited(&trial);
    assert_eq!((after.epochs_by_rule_1, after.open_epoch), (5, None));
    // The old program hashed nothing when an experiment was closed.
    as_version_2(&mut trial);
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let open = "UPDATE epochs SET closed_at = NULL, rounds_hash = NULL, hash = NULL,
        record = json_set(record, '$.rounds', 0) WHERE epoch = 5";
    Connection::open(path).unwrap().execute_batch(open).unwrap();
    trial.restart();
    assert_eq!(audited(&trial).open_epoch, Some(5));
}
