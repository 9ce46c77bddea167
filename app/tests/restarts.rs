//! A PostgreSQL server that is stopped in the middle of everything. Alone in its file, since other tests use that server.

use std::process::Command;

use debora::Key;
use debora_app::store::{EpochRow, Experiment, Location, Outcome, Progress, Purpose, Status, Store};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run this under scripts/with-postgres"))
}

fn outcome(round: u64) -> Outcome {
    Outcome { round, reward: 0.5, costs: vec![-0.0], imputed: false, at: 1 }
}

fn create(store: &mut dyn Store) {
    let (id, spec, digits) = ("restarts".to_owned(), String::new(), "0".repeat(64));
    let experiment = Experiment { id, spec, key: Key::from(1u64), salt: [0; 16], created_at: 0 };
    let progress = Progress {
        status: Status::Running,
        epoch: 0,
        next_round: 1,
        decided: vec![0],
        told: vec![0],
        imputed: vec![0],
        imputed_before: vec![0],
        late: 0,
        overtime: 0,
        next_serial: 1,
        due_from: 1,
        infeasible: 0,
        head: digits.clone(),
        digest: digits,
    };
    let record = "{}".to_owned();
    let opened =
        EpochRow { epoch: 0, record, snapshot: None, opened_at: 0, closed_at: None, rounds_hash: None, hash: None };
    store.begin().unwrap();
    assert!(store.create(&experiment, &progress, &opened).unwrap());
    store.add_outcomes("restarts", &[outcome(1)]).unwrap();
    store.commit().unwrap();
}

#[test]
fn a_lost_connection_loses_its_open_transaction_and_no_more() {
    let url = variable("DEBORA_TEST_POSTGRES");
    let schema = format!("restarts_{}", std::process::id());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).unwrap();
    let location = Location::Postgres(format!("{url}&options=-csearch_path%3D{schema}"));
    let mut store = location.open(Purpose::Serve).unwrap();
    let mut reader = location.open(Purpose::Read).unwrap();
    create(&mut *store);
    for cycle in 0..3 {
        let committed: Vec<_> = (1..=1 + cycle).map(outcome).collect();
        let next = [outcome(2 + cycle)];
        assert_eq!(reader.outcomes("restarts", 0, 9).unwrap(), committed);
        store.begin().unwrap();
        store.lock("restarts").unwrap().unwrap();
        store.add_outcomes("restarts", &next).unwrap();
        let restarted = Command::new(variable("DEBORA_TEST_POSTGRES_RESTART")).status().unwrap();
        assert!(restarted.success());
        if cycle == 1 {
            store.add_outcomes("restarts", &[outcome(9)]).unwrap_err();
        }
        store.commit().unwrap_err();
        assert_eq!(reader.outcomes("restarts", 0, 9).unwrap(), committed, "a reader connects again by itself");
        store.begin().unwrap();
        assert_eq!(store.add_outcomes("restarts", &next).unwrap(), [None], "and so does a writer when it begins");
        store.commit().unwrap();
    }
}
