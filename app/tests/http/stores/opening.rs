//! How any store is opened: older, newer, missing, another's, and by many at once.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use debora_cli::service::clock::Moment;
use debora_cli::service::transaction::Executor;
use debora_cli::store::{DecisionKind, ExperimentRow, Location, Progress, Purpose, schema};

use super::{Place, served, write};
use crate::kit::fixtures::{epoch, experiment, progress};

/// A store of version 0, as the first lines of any store's life leave it.
const VERSION_0: &str = "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL);
    INSERT INTO meta VALUES ('version', 0);";

/// Marks a SQLite file as a store.
fn mark(place: &Place) {
    if let Location::Sqlite(_) = place.location {
        place.run("PRAGMA application_id = 1684365935");
    }
}

pub fn an_older_store_is_brought_to_this_version_by_a_server_alone(place: &Place) {
    place.run(VERSION_0);
    mark(place);
    for purpose in [Purpose::Read, Purpose::Write] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains("version is 0, and this program needs 3; `debora serve`"),
            "{refusal}"
        );
    }
    drop(served(place));
    assert_eq!(rows(place).len(), 1);
}

/// A store as the released program of version 2 left it, with an experiment in it.
pub fn what_an_older_program_stored_is_kept(place: &Place) {
    place.run(VERSION_0);
    mark(place);
    let in_postgres = matches!(place.location, Location::Postgres(_));
    for sql in &schema::MIGRATIONS[..2] {
        place.run(&if in_postgres {
            schema::for_postgres(sql)
        } else {
            (*sql).to_owned()
        });
    }
    let blob = if in_postgres { "'\\x" } else { "X'" };
    place.run(&format!(
        "UPDATE meta SET value = 2;
        INSERT INTO experiments (id, spec, key, salt, created_at, values_version)
            VALUES ('a', 'name = 1', '{key}', {blob}{salt}', 5, 2);
        INSERT INTO progress SELECT number, '{progress}' FROM experiments;
        INSERT INTO leases SELECT number, 0, 0, 1, 2, {blob}0100', 2, 'k', 6 FROM experiments;
        INSERT INTO outcomes SELECT number, 1, {blob}{feedback}', 0, 7 FROM experiments;
        INSERT INTO asides SELECT number, 0, 0, 1, {blob}{feedback}', 8 FROM experiments;
        INSERT INTO events SELECT number, 0, 9, 'ann', 'created' FROM experiments;
        INSERT INTO api_keys VALUES ('ann', 'admin', 'ef', 10, NULL);",
        key = experiment("a").key.to_hex(),
        salt = "07".repeat(16),
        feedback = "00".repeat(8),
        progress = serde_json::to_string(&progress()).unwrap(),
    ));
    let refusal = place.refusal(Purpose::Read);
    assert!(
        refusal.contains("version is 2, and this program needs 3; `debora serve`"),
        "{refusal}"
    );
    let mut store = place.open(Purpose::Serve);
    assert_eq!(store.experiment("a").unwrap().unwrap().1, progress());
    let lease = store
        .leases("a", 0, DecisionKind::Round, 0, 9)
        .unwrap()
        .remove(0);
    assert_eq!((lease.at, lease.waited, lease.actor), (6, 0, 0));
    assert_eq!(lease.actions, [1, 0]);
    let outcome = store.outcomes("a", 0, 9).unwrap().remove(0);
    assert_eq!((outcome.at, outcome.actor), (7, 0));
    let late = store
        .uncounted("a", 0, DecisionKind::Round, 0, 9)
        .unwrap()
        .remove(0);
    assert_eq!((late.at, late.actor), (8, 0));
    assert_eq!(store.events("a", 0, 9).unwrap()[0].reason, None);
    assert_eq!(store.keys().unwrap()[0].experiments, None);
    assert_eq!(store.identity().unwrap(), None);
    assert_eq!(store.due(0, 9).unwrap(), ["a"], "to be looked at once");
}

fn rows(place: &Place) -> Vec<(ExperimentRow, Progress)> {
    let mut store = place.open(Purpose::Read);
    store.experiments(None, false, usize::MAX).unwrap()
}

pub fn a_newer_store_is_refused_and_left_as_it_is(place: &Place) {
    drop(served(place));
    place.run("UPDATE meta SET value = 4");
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains(
                "version is 4, and this program knows versions up to 3; nothing was changed"
            ),
            "{refusal}"
        );
    }
    assert!(before == place.content(), "a refused store was changed");
}

pub fn what_is_missing_is_made_by_a_server_alone(place: &Place) {
    for purpose in [Purpose::Read, Purpose::Write] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains("`debora serve") && refusal.contains("creates"),
            "{refusal}"
        );
        assert_eq!(fs::read_dir(&*place.folder).unwrap().count(), 0);
    }
    drop(served(place));
    place.open(Purpose::Write);
}

pub fn what_belongs_to_others_is_left_to_them(place: &Place) {
    // With tables of the same names, but nothing that says debora.
    place.run("CREATE TABLE meta (a BIGINT); CREATE TABLE experiments (b BIGINT)");
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(refusal.contains("another program"), "{refusal}");
    }
    assert!(before == place.content());
}

/// Every start has its number, and all of them are of one store, whichever was first.
pub fn starts_are_numbered_and_of_one_store(place: &Place) {
    drop(place.open(Purpose::Serve));
    let start = || {
        let executor = Executor::start(place.open(Purpose::Serve), Moment::both(7));
        executor.unwrap().node.start.clone()
    };
    let starts: Vec<_> = match place.location {
        Location::Sqlite(_) => (0..6).map(|_| start()).collect(),
        Location::Postgres(_) => thread::scope(|scope| {
            let starts: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
            starts
                .into_iter()
                .map(|start| start.join().unwrap())
                .collect()
        }),
    };
    let numbers: BTreeSet<_> = starts.iter().map(|start| start.incarnation).collect();
    assert!(numbers.into_iter().eq(1..=6), "{starts:?}");
    let identity = &starts[0].identity;
    assert_eq!(identity.len(), 32);
    assert!(starts.iter().all(|start| start.identity == *identity));
}

pub fn servers_that_start_together_agree(place: &Place) {
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let location = place.location.clone();
            thread::spawn(move || location.open(Purpose::Serve))
        })
        .collect();
    let opened: Vec<_> = starts
        .into_iter()
        .map(|start| start.join().unwrap())
        .collect();
    let refused = opened
        .iter()
        .filter_map(|opened| opened.as_ref().err().map(|error| format!("{error:#}")));
    match place.location {
        Location::Sqlite(_) => {
            let refused: Vec<_> = refused.collect();
            assert_eq!(refused.len(), 7, "one server has the file: {refused:?}");
            assert!(
                refused
                    .iter()
                    .all(|why| why.contains("another server has it open")),
                "{refused:?}"
            );
        }
        Location::Postgres(_) => assert_eq!(refused.collect::<Vec<_>>(), [""; 0]),
    }
    let mut store = opened.into_iter().find_map(Result::ok).unwrap();
    write(&mut store, |store| {
        assert!(
            store
                .create(&experiment("a"), &progress(), &epoch(0))
                .unwrap()
        )
    });
}
