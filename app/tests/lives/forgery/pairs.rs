//! Every single forgery of a list and every pair of them, on a small store and on its log: the audit finds it, or it is listed here
//! with the reason why only a published head can give it away. Then that must find it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use debora_cli::audit::{Credentials, LogSource, Verdict, audit};
use debora_cli::log::{Line, page};
use debora_cli::store::{Location, Purpose};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::insider::{recount, rehash};
use super::life::{life, lines};
use super::log_changes::{self, LogChange};
use super::store_changes::{self, REWRITTEN};
use crate::kit::trial::{Trial, audit_text, text};

/// What covers up others; it changes nothing by itself, and comes last.
const REHASHED: &str = "all hashes made anew";
const RECOUNTED: &str = "all counts made anew";
const BOTH: &str = "all hashes and counts made anew";
/// Of a log: that the experiment was not at its end when it was read.
const GOES_ON: &str = "said to go on";
const COVERS: [&str; 3] = [REHASHED, RECOUNTED, BOTH];

/// How an undetected forgery is seen all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Otherwise {
    /// By a head that was published: whoever has store and program can make everything else anew.
    PublishedHead,
    /// By the audit's own words that the experiment went on while its log was read, so that the last line's counts were not
    /// checked. It shows none of them, but those of the lines.
    SaidToGoOn,
}
use Otherwise::{PublishedHead, SaidToGoOn};

/// What makes hashes anew.
const HASHES: &[&str] = &[REHASHED, BOTH];

/// Forgeries that the audit does not find, each with the others of its pair (itself, if it is one alone).
const UNDETECTABLE: &[(&str, &[&str], Otherwise)] = &[
    // Decisions, estimates and strategies are recomputed, so these cannot be forged one by one. But all of them can be made by
    // running the whole experiment again with outcomes that were made up.
    (
        REWRITTEN,
        &[REWRITTEN, REHASHED, RECOUNTED, BOTH, GOES_ON],
        PublishedHead,
    ),
    // What follows from nothing else is as good as any other, once the hashes over it are made anew.
    ("a reward of the last epoch", HASHES, PublishedHead),
    ("an outcome's time", HASHES, PublishedHead),
    ("an outcome's actor", HASHES, PublishedHead),
    ("a request's time", HASHES, PublishedHead),
    ("a request's key", HASHES, PublishedHead),
    ("a request's asked rounds", HASHES, PublishedHead),
    ("a request's waiting clock", HASHES, PublishedHead),
    ("a late outcome's values", HASHES, PublishedHead),
    ("a late outcome removed", &[BOTH], PublishedHead),
    ("the last fact removed", &[BOTH, GOES_ON], PublishedHead),
    ("an overtime outcome's values", HASHES, PublishedHead),
    ("an overtime outcome removed", HASHES, PublishedHead),
    ("overtime and its outcomes removed", &[BOTH], PublishedHead),
    ("a holdback outcome's values", HASHES, PublishedHead),
    ("a holdback outcome removed", HASHES, PublishedHead),
    ("holdback and its outcomes removed", &[BOTH], PublishedHead),
    ("an uncounted outcome's position", HASHES, PublishedHead),
    (
        "two uncounted outcomes in the other order",
        &[REHASHED, BOTH, GOES_ON],
        PublishedHead,
    ),
    ("a reason", HASHES, PublishedHead),
    ("when it was paused", HASHES, PublishedHead),
    ("paused and resumed hidden", HASHES, PublishedHead),
    ("its id", HASHES, PublishedHead),
    ("its rule", HASHES, PublishedHead),
    ("the name of an actor", HASHES, PublishedHead),
    ("when the last epoch closed", HASHES, PublishedHead),
    // The last line's counts and head are those of a later moment.
    (GOES_ON, &[GOES_ON, REHASHED, RECOUNTED, BOTH], SaidToGoOn),
    ("the number of late outcomes", &[GOES_ON], SaidToGoOn),
    ("the head", &[GOES_ON], SaidToGoOn),
];

/// Nothing if the audit finds it.
fn undetected(
    audit: impl Fn(Option<&str>) -> anyhow::Result<Verdict>,
    published: &str,
) -> Option<Otherwise> {
    let found = |verdict: &anyhow::Result<Verdict>| !matches!(verdict, Ok(Verdict::Equal(audited)) if audited.recomputed);
    let verdict = audit(None);
    if found(&verdict) {
        return None;
    }
    if found(&audit(Some(published))) {
        return Some(PublishedHead);
    }
    let said = matches!(&verdict, Ok(Verdict::Equal(audited)) if audited.moved);
    said.then_some(SaidToGoOn)
        .or_else(|| panic!("nothing shows it: {verdict:?}"))
}

/// Pairs that were not found, and how they are seen otherwise.
type Missed = BTreeMap<(&'static str, &'static str), Otherwise>;

/// Every pair of names, singles as pairs with themselves, in the order in which they are applied.
fn pairs(changes: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    assert!(changes.len() >= 40, "{} changes", changes.len());
    let names: Vec<&'static str> = changes.iter().copied().chain(COVERS).collect();
    let pairs = names.iter().enumerate().flat_map(|(place, one)| {
        let rest = names[place..].iter().map(move |two| (*one, *two));
        rest.collect::<Vec<_>>()
    });
    // Covers alone change nothing.
    pairs.filter(|(one, _)| !COVERS.contains(one)).collect()
}

/// Every pair that was missed is listed, and every pair that is listed and was tried was missed.
fn check_missed(names: &[&'static str], missed: &Missed) {
    let tried = |name: &str| names.contains(&name) || COVERS.contains(&name);
    let listed: Missed = UNDETECTABLE
        .iter()
        .flat_map(|(one, others, otherwise)| {
            others.iter().map(move |two| ((*one, *two), *otherwise))
        })
        .filter(|((one, two), _)| tried(one) && tried(two))
        .collect();
    let unlisted: Vec<_> = missed
        .iter()
        .filter(|pair| !listed.iter().any(|own| own == *pair))
        .collect();
    let found: Vec<_> = listed
        .iter()
        .filter(|pair| !missed.iter().any(|own| own == *pair))
        .collect();
    assert!(
        unlisted.is_empty() && found.is_empty(),
        "not found and not listed: {unlisted:#?}\nlisted and found: {found:#?}"
    );
}

#[test]
fn every_pair_of_changes_of_a_log_is_found() {
    let trial = life(0.0);
    let honest = lines(&trial);
    let head = trial.progress().head;
    assert!(matches!(
        audit_text(&text(&honest), Some(&head)),
        Ok(Verdict::Equal(_))
    ));
    let (honest_values, other) = (values(&honest), values(&lines(&life(0.05))));
    let changes = log_changes::all();
    let names: Vec<&'static str> = changes.iter().map(|(name, _)| *name).collect();
    let mut missed = Missed::new();
    let pairs = pairs(&names);
    for (one, two) in &pairs {
        let mut lines = honest_values.clone();
        for name in [one, two].into_iter().take(if one == two { 1 } else { 2 }) {
            apply_to_log(&changes, name, &mut lines, &other);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        // One that was undone by the other is not a forgery.
        if lines == honest_values {
            continue;
        }
        if let Some(otherwise) = undetected(|head| audit_text(&text, head), &head) {
            missed.insert((one, two), otherwise);
        }
    }
    check_missed(&names, &missed);
}

fn values(lines: &[Line]) -> Vec<Value> {
    let value = |line| serde_json::to_value(line).unwrap();
    lines.iter().map(value).collect()
}

fn apply_to_log(changes: &[LogChange], name: &str, lines: &mut Vec<Value>, other: &[Value]) {
    if let Some((_, change)) = changes.iter().find(|(own, _)| *own == name) {
        return change(lines, other);
    }
    // Where a line cannot be read any more, there is nothing to make anew.
    let parsed: Result<Vec<Line>, _> = lines.iter().cloned().map(serde_json::from_value).collect();
    if let Ok(mut parsed) = parsed {
        cover(name, &mut parsed);
        *lines = values(&parsed);
    }
}

fn cover(name: &str, lines: &mut [Line]) {
    if [RECOUNTED, BOTH].contains(&name) {
        recount(lines);
    }
    if [REHASHED, BOTH].contains(&name) {
        rehash(lines);
    }
}

#[test]
fn every_pair_of_changes_of_a_store_is_found() {
    let (trial, other) = (life(0.0), life(0.05));
    let (honest, rewritten) = (file(&trial), file(&other));
    let honest_rows = dump(&honest);
    let head = trial.progress().head;
    let names: Vec<&'static str> = store_changes::ALL.iter().map(|(name, _)| *name).collect();
    let pairs = pairs(&names);
    let forged = trial.folder.join("forged.db");
    let mut missed = Missed::new();
    for (one, two) in &pairs {
        let source = match *one {
            REWRITTEN => &rewritten,
            _ => &honest,
        };
        fs::copy(source, &forged).unwrap();
        for name in [one, two].into_iter().take(if one == two { 1 } else { 2 }) {
            let applied = apply_to_store(name, &forged);
            assert!(one != two || applied, "{one} changes nothing");
        }
        // One that was undone by the other is not a forgery.
        if dump(&forged) == honest_rows {
            continue;
        }
        if let Some(otherwise) = undetected(|head| audit_store(&forged, head), &head) {
            missed.insert((one, two), otherwise);
        }
    }
    check_missed(&names, &missed);
}

/// The file of a store, with all of it in one.
fn file(trial: &Trial) -> PathBuf {
    let Location::Sqlite(path) = &trial.location else {
        unreachable!("trials are files")
    };
    let whole = trial.folder.join("whole.db");
    let store = Connection::open(path).unwrap();
    store
        .execute("VACUUM INTO ?1", params![whole.to_str()])
        .unwrap();
    whole
}

/// All that a store holds.
fn dump(path: &Path) -> Vec<String> {
    let store = Connection::open(path).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        let columns = statement.column_count();
        let text = |row: &rusqlite::Row<'_>| {
            let values: Result<Vec<Sql>, _> = (0..columns).map(|column| row.get(column)).collect();
            Ok(format!("{:?}", values?))
        };
        let rows = statement.query_map([], text).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = [
        "sqlite_schema",
        "experiments",
        // Without the sums of what was told: they are made anew from the rows when they are missing.
        "(SELECT experiment, progress, due FROM progress)",
        "epochs",
        "leases",
        "outcomes",
        "uncounted",
        "events",
        "actors",
    ];
    let rows = tables.map(|table| texts(&format!("SELECT * FROM {table}")));
    rows.concat()
}

/// False if nothing was changed.
fn apply_to_store(name: &str, path: &Path) -> bool {
    let store = Connection::open(path).unwrap();
    store.pragma_update(None, "synchronous", "OFF").unwrap();
    store.pragma_update(None, "journal_mode", "MEMORY").unwrap();
    if let Some((_, sql)) = store_changes::ALL.iter().find(|(own, _)| *own == name) {
        let before = store.total_changes();
        // What the change before it has made impossible is left out.
        let done = store.execute_batch(sql).is_ok();
        let schema =
            sql.starts_with("CREATE") || sql.starts_with("DROP") || sql.starts_with("ALTER");
        return done && (sql.is_empty() || schema || store.total_changes() > before);
    }
    drop(store);
    cover_store(name, path)
}

fn cover_store(name: &str, path: &Path) -> bool {
    // Sums of what was told that are missing are made anew when they are next looked at, and nobody knows better.
    let forgotten = "UPDATE progress SET observed = NULL";
    Connection::open(path)
        .unwrap()
        .execute_batch(forgotten)
        .unwrap();
    if HASHES.contains(&name) {
        // A log shows no position beyond the next.
        let next = "UPDATE progress SET progress = json_set(progress, '$.next_position', (SELECT max(position) + 1 FROM
            (SELECT position FROM uncounted UNION SELECT position FROM events)))";
        Connection::open(path).unwrap().execute_batch(next).unwrap();
    }
    let location = Location::Sqlite(path.to_owned());
    let shown = location.open(Purpose::Read).and_then(|mut store| {
        let experiments = store.experiments(None, false, 1)?;
        let id = experiments
            .first()
            .map_or("", |(row, _)| &row.id)
            .to_owned();
        page(&mut store, &id, None, 10_000, true)
    });
    let Ok(Some(shown)) = shown else {
        return false;
    };
    let mut lines = shown.lines;
    cover(name, &mut lines);
    write_hashes(&Connection::open(path).unwrap(), &lines);
    true
}

/// Writes what a cover made anew.
fn write_hashes(store: &Connection, lines: &[Line]) {
    for line in lines {
        match line {
            Line::Closed {
                epoch,
                rounds_hash,
                hash,
                leases_hash,
                journal_end,
                journal,
                ..
            } => {
                store
                    .execute(
                        "UPDATE epochs SET rounds_hash = ?1, hash = ?2, leases_hash = ?3, journal_end = ?4, journal = ?5
                        WHERE epoch = ?6",
                        params![
                            rounds_hash,
                            hash,
                            leases_hash,
                            *journal_end as i64,
                            journal,
                            *epoch as i64
                        ],
                    )
                    .unwrap();
            }
            Line::State { progress, .. } => {
                let text = serde_json::to_string(progress).unwrap();
                store
                    .execute("UPDATE progress SET progress = ?1", params![text])
                    .unwrap();
            }
            _ => {}
        }
    }
}

fn audit_store(path: &Path, head: Option<&str>) -> anyhow::Result<Verdict> {
    let source = LogSource::Store(Location::Sqlite(path.to_owned()));
    let experiments = source.experiments(None)?;
    let name = experiments[0].as_deref();
    audit(&mut source.open(name, &Credentials::default())?, head)
}
