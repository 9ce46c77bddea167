//! How any store is opened: older, newer, missing, another's, and by many at once.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use debora_cli::service::clock::Moment;
use debora_cli::service::transaction::Executor;
use debora_cli::store::{Location, Purpose};

use super::{Place, served, write};
use crate::kit::fixtures::{epoch, experiment, progress};

/// A store as a program from before the first release left it.
const UNRELEASED: &str =
    "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL);
    INSERT INTO meta VALUES ('version', 3); CREATE TABLE experiments (id TEXT)";

/// Marks a SQLite file as a store.
fn mark(place: &Place) {
    if let Location::Sqlite(_) = place.location {
        place.run("PRAGMA application_id = 1684365935");
    }
}

pub fn an_older_store_is_refused_and_left_as_it_is(place: &Place) {
    place.run(UNRELEASED);
    mark(place);
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains("older than the first release; nothing was changed: serve it with the debora that made it"),
            "{refusal}"
        );
    }
    assert!(before == place.content(), "a refused store was changed");
}

pub fn a_newer_store_is_refused_and_left_as_it_is(place: &Place) {
    drop(served(place));
    place.run("UPDATE meta SET value = 2");
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains(
                "schema has version 2, and this program's has 1; nothing was changed, use a newer debora"
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
