//! The real program beside a server that has the store open: keys, and backups.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use debora_cli::hex;
use debora_cli::store::{Location, OutcomeRow, Purpose, Role, Store};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::kit::binary::debora;
use crate::kit::fixtures::{epoch, experiment, progress};
use crate::kit::schema::schema;
use crate::kit::scratch::Scratch;

/// A folder of one test, and what is in it.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        Self(Scratch::new(name))
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&*self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

fn run(folder: &Folder, store: &str, arguments: &[&str]) -> Output {
    debora(arguments)
        .env("DEBORA_STORE", store)
        .current_dir(&*folder.0)
        .output()
        .unwrap()
}

/// Standard output of a call that must succeed.
fn said(folder: &Folder, store: &str, arguments: &[&str]) -> String {
    let output = run(folder, store, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a call that must fail and print nothing.
fn refused(folder: &Folder, store: &str, arguments: &[&str]) -> String {
    let output = run(folder, store, arguments);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn outcomes(rounds: std::ops::RangeInclusive<u64>) -> Vec<OutcomeRow> {
    let outcome = |round| OutcomeRow {
        round,
        reward: 0.5,
        costs: vec![-0.0, 1.0],
        imputed: false,
        at: 1,
        actor: 0,
    };
    rounds.map(outcome).collect()
}

/// A server's connection, with an experiment and three outcomes in it.
fn serve(location: &Location) -> Store {
    let mut store = location.open(Purpose::Serve).unwrap();
    store.begin().unwrap();
    assert!(
        store
            .create(&experiment("a"), &progress(), &epoch(0))
            .unwrap()
    );
    store.add_outcomes("a", &outcomes(1..=3)).unwrap();
    store.commit().unwrap();
    store
}

/// Keys are made, listed and revoked while the server's connection reads them.
fn keys_work_beside_a_server(folder: &Folder, address: &str) {
    let mut server = serve(&Location::parse(address));
    let key = said(folder, address, &["keys", "add", "ann", "--role", "decide"]);
    let key = key.trim_end();
    assert!(key.len() == 71 && key.starts_with("debora_"), "{key}");
    let hash = hex::encode(&Sha256::digest(key));
    let known = server.keys().unwrap();
    assert_eq!(
        (known[0].name.as_str(), known[0].role, &known[0].hash),
        ("ann", Role::Decide, &hash)
    );
    let other: Value = serde_json::from_str(&said(
        folder,
        address,
        &["keys", "add", "bob", "--role", "admin", "--json"],
    ))
    .unwrap();
    assert_ne!(other["key"], key);
    assert_eq!(
        (&other["name"], &other["role"]),
        (&"bob".into(), &"admin".into())
    );

    let why = refused(folder, address, &["keys", "add", "ann", "--role", "read"]);
    assert!(
        why.contains("there is, or was, a key named \"ann\""),
        "{why}"
    );
    for name in [
        "",
        "loopback",
        "debora",
        "a b",
        "é",
        ".",
        "..",
        &"n".repeat(65),
    ] {
        let why = refused(folder, address, &["keys", "add", name, "--role", "read"]);
        assert!(why.contains("cannot be a key's name"), "{why}");
    }
    said(folder, address, &["keys", "revoke", "ann"]);
    assert!(
        server.keys().unwrap()[0]
            .revoked_at
            .is_some_and(|at| at >= known[0].created_at)
    );
    let why = refused(folder, address, &["keys", "revoke", "ann"]);
    assert!(
        why.contains("revoked at 20") && why.contains("already"),
        "{why}"
    );
    let why = refused(folder, address, &["keys", "revoke", "eve"]);
    assert!(
        why.contains("no key \"eve\"; there are ann and bob"),
        "{why}"
    );

    let list = said(folder, address, &["keys", "list"]);
    assert!(
        list.contains("ann") && list.contains("decide") && list.contains("bob"),
        "{list}"
    );
    let list: Value =
        serde_json::from_str(&said(folder, address, &["keys", "list", "--json"])).unwrap();
    assert_eq!(list["keys"].as_array().unwrap().len(), 2);
    assert!(list["keys"][0]["revoked_at"].is_i64() && list["keys"][1]["revoked_at"].is_null());
    assert!(!list.to_string().contains(&hash), "a list shows no hashes");
}

/// How many add one name at the same time.
const ADDING: usize = 8;

/// Of many who add one name one gets it, and its key is the one that is stored. `until` lets them go on.
fn a_name_is_given_once(folder: &Folder, address: &str, until: impl FnOnce()) {
    let add = |_| {
        let mut command = debora(&["keys", "add", "ann", "--role", "read"]);
        command.env("DEBORA_STORE", address).current_dir(&*folder.0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let adding: Vec<_> = (0..ADDING).map(add).collect();
    until();
    let (added, refused): (Vec<_>, Vec<_>) = adding
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .partition(|output| output.status.success());
    assert_eq!(added.len(), 1, "{added:?}");
    for output in refused {
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(why.contains("there is, or was, a key named"), "{why}");
    }
    let key = String::from_utf8(added[0].stdout.clone()).unwrap();
    let known = Location::parse(address).open(Purpose::Read).unwrap().keys();
    assert_eq!(
        known.unwrap()[0].hash,
        hex::encode(&Sha256::digest(key.trim_end()))
    );
}

/// A backup is whole while its store is written to, and is not written over.
fn a_backup_is_taken_beside_a_server(folder: &Folder, address: &str) {
    let mut server = serve(&Location::parse(address));
    server.begin().unwrap();
    server.add_outcomes("a", &outcomes(4..=9)).unwrap();
    let words = said(folder, address, &["backup", "copy.db"]);
    server.commit().unwrap();
    assert!(
        words.contains("holds 1 experiment and 3 outcomes") && words.contains("verified"),
        "{words}"
    );
    let why = refused(folder, address, &["backup", "copy.db", "--force"]);
    assert!(why.contains("never overwrites"), "{why}");
    let document: Value =
        serde_json::from_str(&said(folder, address, &["backup", "other.db", "--json"])).unwrap();
    assert_eq!(
        (&document["outcomes"], &document["experiments"]),
        (&9.into(), &1.into())
    );
    let names = folder.names();
    assert!(
        names
            .iter()
            .filter(|name| name.contains("copy") || name.contains("part"))
            .eq(["copy.db"]),
        "{names:?}"
    );
    let mode = fs::metadata(folder.0.join("copy.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "a copy holds keys");

    // A copy is a store: it can be read, and served.
    let copy = Location::Sqlite(folder.0.join("copy.db"));
    assert_eq!(
        copy.open(Purpose::Read)
            .unwrap()
            .outcomes("a", 0, 99)
            .unwrap(),
        outcomes(1..=3)
    );
    assert!(
        !folder.names().contains(&"copy.db-wal".to_owned()),
        "a copy is one file, and stays one"
    );
    copy.open(Purpose::Serve).unwrap();
}

fn file(folder: &Folder) -> String {
    folder.0.join("store.db").to_str().unwrap().to_owned()
}

#[test]
fn keys_work_beside_a_server_on_sqlite() {
    let folder = Folder::new("keys");
    keys_work_beside_a_server(&folder, &file(&folder));
}

#[test]
fn keys_work_beside_a_server_on_postgres() {
    keys_work_beside_a_server(&Folder::new("keys-postgres"), &schema("keys"));
}

#[test]
fn a_name_is_given_once_on_sqlite() {
    let folder = Folder::new("name");
    let _server = serve(&Location::parse(&file(&folder)));
    a_name_is_given_once(&folder, &file(&folder), || {});
}

#[test]
fn a_name_is_given_once_on_postgres() {
    let address = schema("name");
    let _server = serve(&Location::parse(&address));
    let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
    // All have looked at the keys and found the name free before one of them may write.
    let held = "BEGIN; LOCK TABLE api_keys IN SHARE MODE";
    client.batch_execute(held).unwrap();
    a_name_is_given_once(&Folder::new("name-postgres"), &address, || {
        let waiting = "SELECT count(*) FROM pg_locks
            WHERE relation = 'api_keys'::regclass AND NOT granted";
        let mut waiting = || client.query_one(waiting, &[]).unwrap().get::<_, i64>(0);
        while waiting() < ADDING as i64 {}
        client.batch_execute("COMMIT").unwrap();
    });
}

#[test]
fn a_backup_is_taken_beside_a_server_on_sqlite() {
    let folder = Folder::new("backup");
    a_backup_is_taken_beside_a_server(&folder, &file(&folder));
}

#[test]
fn a_backup_is_taken_beside_a_server_on_postgres() {
    a_backup_is_taken_beside_a_server(&Folder::new("backup-postgres"), &schema("backup"));
}

#[test]
fn the_first_key_may_come_before_the_store() {
    let folder = Folder::new("first");
    for address in [&file(&folder), &schema("first_key")] {
        let why = refused(&folder, address, &["keys", "list"]);
        assert!(why.contains("debora serve"), "{why}");
        refused(&folder, address, &["keys", "revoke", "ann"]);
        said(&folder, address, &["keys", "add", "ann", "--role", "admin"]);
        assert_eq!(
            Location::parse(address)
                .open(Purpose::Serve)
                .unwrap()
                .keys()
                .unwrap()
                .len(),
            1
        );
    }
}

#[test]
fn a_key_may_be_for_some_experiments() {
    let folder = Folder::new("scopes");
    let file = file(&folder);
    let add = [
        "keys",
        "add",
        "ann",
        "--role",
        "decide",
        "--experiment",
        "a",
    ];
    said(
        &folder,
        &file,
        &[&add[..], &["--experiment", "b-2"]].concat(),
    );
    said(&folder, &file, &["keys", "add", "bob", "--role", "read"]);
    let table = said(&folder, &file, &["keys", "list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("for"), "{table}");
    assert!(
        table.contains("a and b-2") && table.contains("all experiments"),
        "{table}"
    );
    let listed = said(&folder, &file, &["keys", "list", "--json"]);
    let keys = serde_json::from_str::<Value>(&listed).unwrap()["keys"].take();
    assert_eq!(keys[0]["experiments"], json!(["a", "b-2"]));
    assert_eq!(keys[1]["experiments"], Value::Null);
    // A key that is revoked keeps its scope: it says what it was for.
    said(&folder, &file, &["keys", "revoke", "ann"]);
    let mut store = Location::parse(&file).open(Purpose::Read).unwrap();
    let scope = store.keys().unwrap().swap_remove(0).experiments;
    assert_eq!(scope, Some(vec!["a".into(), "b-2".into()]));
    for id in ["", "A", "a b", "a/b", &"n".repeat(129)] {
        let add = ["keys", "add", "eve", "--role", "read", "--experiment", id];
        let why = refused(&folder, &file, &add);
        assert!(
            why.contains("lower-case letters, digits and dashes"),
            "{why}"
        );
    }
}

#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let folder = Folder::new("none");
    let why = refused(&folder, "missing.db", &["backup", "copy.db"]);
    assert!(why.contains("does not exist"), "{why}");
    fs::write(folder.0.join("letter.db"), "a letter ".repeat(999)).unwrap();
    let why = refused(&folder, "letter.db", &["backup", "copy.db"]);
    assert!(why.contains("not a SQLite file"), "{why}");
    let why = refused(
        &folder,
        "postgres://ann:sesame@127.0.0.1:1/db",
        &["backup", "copy.db"],
    );
    assert!(
        why.contains("cannot connect") && !why.contains("sesame"),
        "{why}"
    );
    assert_eq!(folder.names(), ["letter.db"]);
}

#[test]
fn help_does_not_show_the_address() {
    let folder = Folder::new("help");
    let help = said(
        &folder,
        "postgres://ann:sesame@127.0.0.1:1/db",
        &["keys", "add", "--help"],
    );
    assert!(
        help.contains("DEBORA_STORE") && !help.contains("sesame"),
        "{help}"
    );
}
