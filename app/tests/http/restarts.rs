//! A PostgreSQL server that is stopped in the middle of everything: one of the test's own, since other tests use that of
//! `scripts/with-postgres` around them.

use std::process::Command;

use debora_cli::store::{Location, OutcomeRow, Purpose};

use crate::kit::alone::alone;
use crate::kit::fixtures::{epoch, experiment, progress};
use crate::kit::schema::schema;

fn outcome(round: u64) -> OutcomeRow {
    OutcomeRow {
        round,
        reward: 0.5,
        costs: vec![-0.0],
        imputed: false,
        at: 1,
        actor: 0,
    }
}

#[test]
fn a_lost_connection_loses_its_open_transaction_and_no_more() {
    let claim = concat!(
        module_path!(),
        "::a_lost_connection_loses_its_open_transaction_and_no_more"
    );
    let under = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/with-postgres");
    alone(claim, &[under], lose_connections);
}

fn lose_connections() {
    let restart = std::env::var("DEBORA_TEST_POSTGRES_RESTART");
    let restart = restart.expect("scripts/with-postgres sets it");
    let location = Location::Postgres(schema("restarts"));
    let mut store = location.open(Purpose::Serve).unwrap();
    let mut reader = location.open(Purpose::Read).unwrap();
    store.begin().unwrap();
    assert!(
        store
            .create(&experiment("a"), &progress(), &epoch(0))
            .unwrap()
    );
    store.add_outcomes("a", &[outcome(1)]).unwrap();
    store.commit().unwrap();
    let mut connection = store.connection();
    for cycle in 0..3 {
        let committed: Vec<_> = (1..=1 + cycle).map(outcome).collect();
        let next = [outcome(2 + cycle)];
        assert_eq!(reader.outcomes("a", 0, 9).unwrap(), committed);
        store.begin().unwrap();
        store.lock("a").unwrap().unwrap();
        store.add_outcomes("a", &next).unwrap();
        let restarted = Command::new(&restart).status().unwrap();
        assert!(restarted.success());
        if cycle == 1 {
            store.add_outcomes("a", &[outcome(9)]).unwrap_err();
        }
        store.commit().unwrap_err();
        assert_eq!(
            reader.outcomes("a", 0, 9).unwrap(),
            committed,
            "a reader connects again by itself"
        );
        store.begin().unwrap();
        assert_ne!(store.connection(), connection, "which is said");
        connection = store.connection();
        assert_eq!(
            store.add_outcomes("a", &next).unwrap(),
            [None],
            "and so does a writer when it begins"
        );
        store.commit().unwrap();
    }
}
