//! How any store is opened: older, newer, missing, another's, and by many at once.

use std::fs;
use std::thread;

use debora_app::store::{Location, Purpose};

use super::fixtures::{epoch, experiment, progress};
use super::{Place, served, write};

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
            refusal.contains("version is 0, and this program needs 2; `debora serve`"),
            "{refusal}"
        );
    }
    let mut store = served(place);
    assert_eq!(store.experiments().unwrap().len(), 1);
    let before = place.open(Purpose::Read).experiments().unwrap();
    assert_eq!(before.len(), 1);
    drop(store);
    // Version 1 knew one version of the values.
    place.run("ALTER TABLE experiments DROP COLUMN values_version; UPDATE meta SET value = 1");
    let refusal = place.refusal(Purpose::Read);
    assert!(
        refusal.contains("version is 1, and this program needs 2; `debora serve`"),
        "{refusal}"
    );
    place.open(Purpose::Serve);
    assert_eq!(place.open(Purpose::Read).experiments().unwrap(), before);
}

pub fn a_newer_store_is_refused_and_left_as_it_is(place: &Place) {
    drop(served(place));
    place.run("UPDATE meta SET value = 3");
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(
            refusal.contains(
                "version is 3, and this program knows versions up to 2; nothing was changed"
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
