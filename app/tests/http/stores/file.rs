//! What only a file can do: be locked, be something else, be left behind by a killed server, fill the disk.

use std::fs;
use std::process::Command;

use debora_cli::store::{Location, Purpose};

use super::{Place, outcome, served, write};

#[test]
fn a_file_has_one_server_and_the_next_when_it_is_gone() {
    let place = Place::sqlite();
    let store = served(&place);
    let other_name = place.folder.join("other.db");
    std::os::unix::fs::symlink(place.file(), &other_name).unwrap();
    for path in [place.file(), other_name] {
        let error = Location::Sqlite(path)
            .open(Purpose::Serve)
            .err()
            .expect("two servers");
        let why = format!("{error:#}");
        assert!(
            why.contains("another server has it open") && why.contains("stop that server"),
            "{why}"
        );
    }
    drop(store);
    place.open(Purpose::Serve);
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let place = Place::sqlite();
    fs::write(
        place.file(),
        "a letter to a friend, longer than the header of a database file".repeat(9),
    )
    .unwrap();
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(refusal.contains("not a SQLite file"), "{refusal}");
    }
    assert!(before == place.content());
}

#[cfg(unix)]
#[test]
fn a_new_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::sqlite();
    let _store = served(&place);
    for name in ["store.db", "store.db-wal"] {
        let mode = fs::metadata(place.folder.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name} holds keys");
    }
}

/// What a server leaves that was killed: the file and the log beside it, copied in the middle of a transaction.
#[test]
fn a_killed_servers_file_is_read_to_the_last_commit() {
    let place = Place::sqlite();
    let mut store = served(&place);
    write(&mut store, |store| {
        store.add_outcomes("a", &[outcome(1, 0.5)]).unwrap()
    });
    store.begin().unwrap();
    store.add_outcomes("a", &[outcome(2, 0.5)]).unwrap();
    let killed = Place::sqlite();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(place.folder.join(name), killed.folder.join(name)).unwrap();
    }
    let before = killed.content();
    assert_eq!(
        killed.open(Purpose::Read).outcomes("a", 0, 9).unwrap(),
        [outcome(1, 0.5)]
    );
    assert!(before == killed.content(), "a reader changed the file");
    let mut store = killed.open(Purpose::Serve);
    assert_eq!(store.outcomes("a", 0, 9).unwrap(), [outcome(1, 0.5)]);
    write(&mut store, |store| {
        store.add_outcomes("a", &[outcome(2, 0.75)]).unwrap()
    });
}

#[test]
fn a_closed_file_has_nothing_beside_it_whoever_reads_it() {
    let place = Place::sqlite();
    let store = served(&place);
    let reader = place.open(Purpose::Read);
    assert_eq!(
        names(&place),
        ["store.db", "store.db-shm", "store.db-wal", "store.db.lock"]
    );
    store.close().unwrap();
    let log = fs::metadata(place.folder.join("store.db-wal")).unwrap();
    assert_eq!(log.len(), 0, "what was committed is in the file");
    drop(reader);
    assert_eq!(names(&place), ["store.db"]);
    let linked = Place::sqlite();
    std::os::unix::fs::symlink(place.file(), linked.file()).unwrap();
    for name in [&place, &linked] {
        for purpose in [Purpose::Read, Purpose::Write, Purpose::Serve] {
            let mut store = name.open(purpose);
            assert_eq!(store.experiments(None, false, 9).unwrap().len(), 1);
            drop(store);
            assert_eq!(names(&place), ["store.db"], "{purpose:?}");
        }
    }
}

/// What is in the folder of a place.
fn names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(&*place.folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What a program leaves that is killed while it makes its file: `done` committed, more begun and half written.
fn half_made(done: &str) -> Place {
    let place = Place::sqlite();
    place.run(done);
    killed_while_writing(&place)
}

fn killed_while_writing(place: &Place) -> Place {
    let killed = Place::sqlite();
    let writer = rusqlite::Connection::open(place.file()).unwrap();
    // A cache of a page or two: the transaction is written to the file before its end, under a journal.
    let begun = "PRAGMA cache_size = 1; BEGIN; CREATE TABLE half (content BLOB);
        WITH RECURSIVE part(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM part WHERE n < 64)
        INSERT INTO half SELECT randomblob(4000) FROM part;";
    writer.execute_batch(begun).unwrap();
    for name in ["store.db", "store.db-journal"] {
        let length = fs::copy(place.folder.join(name), killed.folder.join(name)).unwrap();
        assert!(length > 0, "{name} is not half written");
    }
    killed
}

#[test]
fn a_kill_while_a_file_is_made_heals_at_the_next_start() {
    for purpose in [Purpose::Read, Purpose::Write] {
        let refusal = half_made("").refusal(purpose);
        assert!(refusal.contains("`debora serve"), "{refusal}");
    }
    let place = half_made("");
    let mut store = served(&place);
    assert_eq!(store.experiments(None, false, 9).unwrap().len(), 1);
    store.close().unwrap();
    assert_eq!(names(&place), ["store.db"]);
    // A file with nothing in it, and with a journal that has not reached its first page.
    let place = Place::sqlite();
    fs::write(place.file(), "").unwrap();
    fs::write(place.folder.join("store.db-journal"), [0; 512]).unwrap();
    served(&place).close().unwrap();
    assert_eq!(names(&place), ["store.db"]);
}

#[test]
fn a_kill_before_a_file_has_its_log_heals_for_readers_too() {
    let place = Place::sqlite();
    served(&place).close().unwrap();
    // As a store is before its server switches it to a log.
    place.run("PRAGMA journal_mode = DELETE");
    let killed = killed_while_writing(&place);
    let experiments = killed
        .open(Purpose::Read)
        .experiments(None, false, 9)
        .unwrap();
    assert_eq!(experiments.len(), 1);
    assert_eq!(
        names(&killed),
        ["store.db"],
        "a journal that was used is gone"
    );
}

#[test]
fn what_another_program_left_half_written_is_left_to_it() {
    let place = half_made("CREATE TABLE letters (text TEXT)");
    let before = place.content();
    for purpose in [Purpose::Serve, Purpose::Write, Purpose::Read] {
        let refusal = place.refusal(purpose);
        assert!(refusal.contains("another program"), "{refusal}");
    }
    assert!(before == place.content());
    assert_eq!(names(&place), ["store.db", "store.db-journal"]);
}

/// A limit on the size of files stands for the end of the disk. It holds for a whole process, so the test starts itself
/// again under it, and looks at what that one leaves.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_a_transaction_and_no_more() {
    const FILE: &str = "DEBORA_TEST_FULL_DISK";
    const BATCH: u64 = 100;
    let batch = |number: u64| {
        (1..=BATCH)
            .map(move |i| outcome(number * BATCH + i, 0.5))
            .collect::<Vec<_>>()
    };
    if let Ok(file) = std::env::var(FILE) {
        let mut store = Location::parse(&file).open(Purpose::Serve).unwrap();
        let mut fill = |number| -> anyhow::Result<()> {
            store.begin()?;
            store.add_outcomes("a", &batch(number))?;
            store.commit()
        };
        let kept = (0..).find(|number| fill(*number).is_err()).unwrap();
        store.rollback();
        assert_eq!(
            store.outcomes("a", 0, usize::MAX).unwrap().len() as u64,
            kept * BATCH
        );
        println!("kept={kept};");
        return;
    }
    let place = Place::sqlite();
    drop(served(&place));
    let mut child = Command::new("sh");
    child
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap());
    child
        .args([
            "--exact",
            "stores::file::a_full_disk_loses_a_transaction_and_no_more",
            "--nocapture",
        ])
        .env(FILE, place.file());
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let kept: u64 = said
        .split_once("kept=")
        .unwrap()
        .1
        .split_once(';')
        .unwrap()
        .0
        .parse()
        .unwrap();
    assert!(kept > 3, "the limit was met after {kept} transactions");
    let mut store = place.open(Purpose::Serve);
    let expected: Vec<_> = (0..kept).flat_map(batch).collect();
    assert_eq!(store.outcomes("a", 0, usize::MAX).unwrap(), expected);
    assert_eq!(
        write(&mut store, |store| store
            .add_outcomes("a", &batch(kept))
            .unwrap()),
        vec![None; BATCH as usize]
    );
}
