//! Experiments of another values version, which are refused by name: this program would recompute them otherwise.

use debora::VALUES_VERSION;
use debora_cli::audit::diff;
use debora_cli::store::Location;

use crate::kit::trial::{SHORT, Trial, audit_text, read, text};

fn other() -> u32 {
    VALUES_VERSION + 1
}

fn expected() -> String {
    format!(
        "experiment trial is decided with values version {}, and this program has {VALUES_VERSION}",
        other()
    )
}

#[test]
fn a_log_is_not_audited_nor_compared() {
    let mut trial = Trial::new(SHORT, 42, 1);
    trial.run_to_the_end();
    let log = text(&trial.log(1_000, false));
    let [own, its] =
        [VALUES_VERSION, other()].map(|version| format!("\"values_version\":{version}"));
    let changed = log.replacen(&own, &its, 1);
    assert_ne!(changed, log);
    let error = audit_text(&changed, None).unwrap_err();
    assert!(error.to_string().starts_with(&expected()), "{error:#}");
    let error = diff([read(&log), read(&changed)]).unwrap_err();
    let said = format!("{error:#}");
    assert!(
        said.starts_with(&format!("the second log: {}", expected())),
        "{said}"
    );
}

#[test]
fn nor_is_a_store() {
    let trial = Trial::new(SHORT, 42, 1);
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let file = rusqlite::Connection::open(path).unwrap();
    let sql = "UPDATE experiments SET values_version = ?1";
    file.execute(sql, [other()]).unwrap();
    let error = trial.audit().unwrap_err();
    assert!(format!("{error:#}").contains(&expected()), "{error:#}");
}
