//! Whatever is changed in a store or a log, one value at a time, the audit finds it, unless nobody can recompute it.
//!
//! Exhaustive over small experiments: every column of every row, every byte of every text and blob, every leaf of every JSON
//! text, every line of the log. What is exempt is named here, with the reason.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use debora_cli::audit::Verdict;
use debora_cli::service::request::Change;
use debora_cli::store::{Location, Status};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;

use crate::kit::trial::{DOUBLING, SHORT, Trial, audit_text, text};

/// What audits said of changes.
#[derive(Default)]
struct Findings {
    /// Changes that were found, by what the first difference was.
    found: BTreeMap<String, u64>,
    /// Changes that were not.
    missed: Vec<String>,
}

impl Findings {
    /// Judges the audit of something changed.
    fn judge(&mut self, change: &str, audit: impl FnOnce() -> anyhow::Result<Verdict>) {
        match catch_unwind(AssertUnwindSafe(audit)) {
            Err(_) => self.missed.push(format!("{change}: the audit panicked")),
            Ok(Ok(Verdict::Equal(audited))) if audited.recomputed => {
                self.missed.push(change.to_owned())
            }
            Ok(Ok(Verdict::Equal(_))) => {
                *self.found.entry("the key is gone".into()).or_default() += 1
            }
            Ok(Ok(Verdict::Different(_, difference))) => {
                *self.found.entry(difference.what).or_default() += 1
            }
            Ok(Err(_)) => *self.found.entry("cannot be audited".into()).or_default() += 1,
        }
    }

    fn report(&self, least: u64) {
        let found: u64 = self.found.values().sum();
        println!("{found} changes found: {:#?}", self.found);
        assert!(
            self.missed.is_empty(),
            "{} changes were not found:\n{}",
            self.missed.len(),
            self.missed.join("\n")
        );
        assert!(found >= least, "only {found} changes were tried");
    }
}

/// A finished experiment with everything in it, even what came after its end.
fn done(spec: &str) -> Trial {
    for chance in 1..100 {
        let mut trial = Trial::new(spec, 42, chance);
        trial.run_to_the_end();
        let ended = trial.progress();
        (0..100).for_each(|_| trial.tell());
        let progress = trial.progress();
        let imputed = progress.imputed.iter().sum::<u64>() > 0;
        if progress.late > ended.late && progress.overtime > 0 && imputed {
            assert_ne!(progress.head, ended.head);
            return trial;
        }
    }
    panic!("never everything");
}

/// One that is paused in the middle of an epoch after so many others, with outcomes outstanding, told and imputed.
fn midway(spec: &str, epochs: u64) -> Trial {
    // Short lives come to such a moment only by chance.
    for chance in 3..100 {
        let mut trial = Trial::new(spec, 7, chance);
        for _ in 0..400 {
            trial.step();
            let progress = trial.progress();
            let outstanding = progress.outstanding();
            let imputed = progress.imputed != progress.imputed_before;
            // Which of several imputed rounds a late outcome belongs to, nobody can recompute.
            let running = progress.status == Status::Running && progress.late <= 1;
            if running && progress.epoch >= epochs && outstanding > 1 && imputed {
                trial.change(Change::Pause);
                return trial;
            }
        }
    }
    panic!("never midway");
}

/// One that was closed before its end.
fn closed(spec: &str, epochs: u64) -> Trial {
    let mut trial = midway(spec, epochs);
    trial.change(Change::Close);
    trial
}

/// The leaves of a JSON text: each way to change one of them, with its path.
fn leaves(value: &Value, path: &str, changed: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            let mut more = fields.clone();
            more.insert("more".into(), 1.into());
            changed.push((format!("{path} with a field more"), Value::Object(more)));
            for (name, field) in fields {
                let mut below = Vec::new();
                leaves(field, &format!("{path}.{name}"), &mut below);
                for (path, new) in below {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), new);
                    changed.push((path, Value::Object(fields)));
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                let mut below = Vec::new();
                leaves(item, &format!("{path}[{place}]"), &mut below);
                for (path, new) in below {
                    let mut items = items.clone();
                    items[place] = new;
                    changed.push((path, Value::Array(items)));
                }
                let mut fewer = items.clone();
                fewer.remove(place);
                changed.push((format!("{path}[{place}] removed"), Value::Array(fewer)));
            }
        }
        leaf => changed.extend(
            other_values(leaf)
                .into_iter()
                .map(|new| (format!("{path} to {new}"), new)),
        ),
    }
}

fn other_values(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::Bool(value) => vec![(!value).into(), Value::Null],
        Value::Null => vec![0.into(), "0".into()],
        Value::String(text) => {
            let mut last = text.clone();
            let end = last
                .pop()
                .map_or('x', |end| if end == '0' { '1' } else { '0' });
            last.push(end);
            vec![last.into(), "".into(), Value::Null]
        }
        Value::Number(number) if number.is_f64() => {
            let value = number.as_f64().unwrap();
            // The next double, and the other sign.
            let next = f64::from_bits(value.to_bits() + 1);
            vec![next.into(), (-value).into()]
        }
        Value::Number(number) => {
            let value = number.as_i64().unwrap();
            vec![(value + 1).into(), (value - 1).into()]
        }
        _ => unreachable!("a leaf"),
    }
}

/// Whether nobody can recompute what a path of a line leads to.
fn exempt(line: &Value, last_request: bool, open: bool, path: &str) -> bool {
    let field = path
        .trim_start_matches('.')
        .split([' ', '.', '['])
        .next()
        .unwrap();
    if !open {
        return false;
    }
    match (line["type"].as_str().unwrap(), field) {
        // What is stored of an epoch is in no hash while it is open.
        ("decisions" | "overtime" | "holdback", "at" | "waited" | "request_key" | "actor") => true,
        ("outcome", "at" | "actor") => true,
        // How much more the last request of an epoch asked for than it was given.
        ("decisions", "asked") => last_request,
        // What was imputed follows from the spec.
        ("outcome", "reward" | "costs") => line["imputed"] == false,
        // How far the search for missing outcomes has come depends on times, as long as nothing is missing below.
        ("state", _) => path.contains("impute_from"),
        _ => false,
    }
}

fn tamper_with_log(trial: &Trial, least: u64) {
    tamper_with_lines(trial, least, |_| true);
}

/// The same of some kinds of lines alone.
fn tamper_with_lines(trial: &Trial, least: u64, is_changed: fn(&str) -> bool) {
    let lines = trial.log(1_000, true);
    let texts: Vec<String> = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap())
        .collect();
    assert!(matches!(
        audit_text(&text(&lines), None),
        Ok(Verdict::Equal(_))
    ));
    let mut findings = Findings::default();
    let last_closed = texts
        .iter()
        .rposition(|line| line.contains("\"type\":\"closed\""))
        .unwrap();
    let mut splice = |lines: std::ops::Range<usize>, instead: &[&str], change: &str| {
        let (before, after) = (&texts[..lines.start], &texts[lines.end..]);
        let all = before
            .iter()
            .map(String::as_str)
            .chain(instead.iter().copied());
        let all: Vec<&str> = all.chain(after.iter().map(String::as_str)).collect();
        findings.judge(&format!("line {}, {change}", lines.start + 1), || {
            audit_text(&all.join("\n"), None)
        });
    };
    for (number, line) in texts.iter().enumerate() {
        let value: Value = serde_json::from_str(line).unwrap();
        let kind = value["type"].as_str().unwrap();
        if !is_changed(kind) {
            continue;
        }
        let last_request = !texts
            .get(number + 1)
            .is_some_and(|next| next.contains("\"type\":\"decisions\""));
        let open = number > last_closed && trial.status().is_open();
        let mut changed = Vec::new();
        leaves(&value, "", &mut changed);
        for (path, new) in changed {
            if !exempt(&value, last_request, open, &path) {
                splice(
                    number..number + 1,
                    &[&new.to_string()],
                    &format!("{kind}{path}"),
                );
            }
        }
        splice(number..number + 1, &[], &format!("{kind} removed"));
        splice(number..number, &[line], &format!("{kind} doubled"));
        if let Some(next) = texts.get(number + 1) {
            splice(
                number..number + 2,
                &[next, line],
                &format!("{kind} swapped with the next"),
            );
        }
    }
    findings.report(least);
}

#[test]
fn any_change_of_a_finished_experiments_log_is_found() {
    tamper_with_log(&done(SHORT), 2_000);
    tamper_with_log(&done(DOUBLING), 2_000);
}

#[test]
fn any_change_of_a_closed_experiments_log_is_found() {
    tamper_with_log(&closed(DOUBLING, 5), 1_000);
}

#[test]
fn any_change_of_a_running_experiments_log_is_found() {
    tamper_with_log(&midway(SHORT, 1), 1_000);
    tamper_with_log(&midway(DOUBLING, 5), 1_000);
}

#[test]
fn any_change_of_a_log_with_a_holdback_is_found() {
    // Of the other lines, those without a holdback have shown it.
    let is_changed = |kind: &str| kind.starts_with("holdback") || kind == "state";
    tamper_with_lines(&super::held_back::life(), 200, is_changed);
}

/// Columns that nobody can recompute.
fn exempt_column(table: &str, column: &str, row: &BTreeMap<String, Sql>, trial: &Trial) -> bool {
    let integer = |column: &str| match row[column] {
        Sql::Integer(value) => value,
        _ => panic!("{column} is not an integer"),
    };
    let in_open_epoch = || match table {
        "leases" => trial.is_open_epoch(integer("epoch") as u64),
        _ => trial.in_open_epoch(integer("round") as u64),
    };
    match (table, column) {
        // When the server is to look for missing outcomes again: it looks, and finds what the rows say.
        ("progress", "due") => true,
        // They only put events in order, which their positions do.
        ("events", "number") => true,
        // What is stored of an epoch is in no hash while it is open.
        ("leases" | "outcomes", "at" | "actor") => in_open_epoch(),
        ("leases", "request_key" | "waited") => in_open_epoch(),
        ("outcomes", "feedback") => integer("imputed") == 0 && in_open_epoch(),
        // What the last request of an epoch asked for beyond what it was given.
        ("leases", "asked") => {
            in_open_epoch() && trial.ends_epoch(integer("epoch") as u64, integer("first") as u64)
        }
        _ => false,
    }
}

/// Every way to change a stored value.
fn other_stored(table: &str, column: &str, value: &Sql, open: bool) -> Vec<(String, Sql)> {
    let flipped = |bytes: &[u8]| -> Vec<(usize, Vec<u8>)> {
        let flip = |place: usize| {
            let mut bytes = bytes.to_vec();
            bytes[place] ^= 1;
            (place, bytes)
        };
        (0..bytes.len()).map(flip).collect()
    };
    // A few bytes of those that only a comparison reads: all of them would take minutes.
    let compared = column.ends_with("hash") || matches!(column, "journal" | "request_key");
    let some =
        |place: usize, length: usize| !compared || [0, length / 2, length - 1].contains(&place);
    let mut changed: Vec<(String, Sql)> = match value {
        Sql::Null => vec![
            ("to 5".into(), Sql::Integer(5)),
            ("to text".into(), Sql::Text("x".into())),
        ],
        Sql::Integer(value) => [value + 1, value - 1]
            .map(|new| (format!("to {new}"), Sql::Integer(new)))
            .into(),
        Sql::Real(_) => panic!("{table}.{column} is a real"),
        Sql::Blob(bytes) => flipped(bytes)
            .into_iter()
            .map(|(place, bytes)| (format!("byte {place}"), Sql::Blob(bytes)))
            .collect(),
        Sql::Text(text) if matches!(column, "record" | "progress" | "observed") => {
            let mut below = Vec::new();
            leaves(&serde_json::from_str(text).unwrap(), "", &mut below);
            // What a look at the open epoch found, and how many there were: what was missing then is not kept.
            // And one number of many that are compared as one text.
            below.retain(|(path, _)| {
                let looks = [".checks.open.", ".checks.looks"];
                let evidence = path.contains(".logs[") && !path.contains(".logs[0][0]");
                let exempt = evidence || looks.iter().any(|look| path.starts_with(look));
                column != "observed" || !exempt
            });
            below
                .into_iter()
                .map(|(path, new)| (path, Sql::Text(new.to_string())))
                .collect()
        }
        Sql::Text(text) => {
            let length = text.len();
            let texts = flipped(text.as_bytes()).into_iter();
            let texts = texts.filter(|(place, _)| some(*place, length));
            let texts =
                texts.filter_map(|(place, bytes)| Some((place, String::from_utf8(bytes).ok()?)));
            texts
                .map(|(place, text)| (format!("byte {place}"), Sql::Text(text)))
                .collect()
        }
    };
    // Sums that are gone are made again from what was told.
    if *value != Sql::Null && column != "observed" {
        changed.push(("to null".into(), Sql::Null));
    }
    match (table, column) {
        ("progress", "progress") if open => {
            let Sql::Text(old) = value else {
                panic!("progress is a text")
            };
            let due = |text: &str| {
                serde_json::from_str::<Value>(text)
                    .ok()
                    .map(|new| new["impute_from"].clone())
            };
            changed.retain(|(_, new)| match new {
                Sql::Text(new) => due(new).is_none() || due(new) == due(old),
                _ => true,
            });
            changed
        }
        _ => changed,
    }
}

struct Table {
    name: &'static str,
    columns: Vec<String>,
    keys: Vec<String>,
    rows: Vec<BTreeMap<String, Sql>>,
}

impl Table {
    fn read(file: &Connection, name: &'static str) -> Self {
        let mut statement = file
            .prepare(&format!("SELECT name, pk FROM pragma_table_info('{name}')"))
            .unwrap();
        let columns: Vec<(String, i64)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let keys = columns
            .iter()
            .filter(|(_, key)| *key > 0)
            .map(|(name, _)| name.clone())
            .collect();
        let columns: Vec<String> = columns.into_iter().map(|(name, _)| name).collect();
        let mut statement = file
            .prepare(&format!("SELECT {} FROM {name}", columns.join(", ")))
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let value =
                |(place, column): (usize, &String)| (column.clone(), row.get(place).unwrap());
            found.push(columns.iter().enumerate().map(value).collect());
        }
        Self {
            name,
            columns,
            keys,
            rows: found,
        }
    }

    /// Sets a column of a row, which is found by its key as it is in `row`. False if the store does not allow it.
    fn set(
        &self,
        file: &Connection,
        row: &BTreeMap<String, Sql>,
        column: &str,
        value: &Sql,
    ) -> bool {
        let wanted: Vec<String> = self
            .keys
            .iter()
            .enumerate()
            .map(|(place, key)| format!("{key} = ?{}", place + 2))
            .collect();
        let sql = format!(
            "UPDATE {} SET {column} = ?1 WHERE {}",
            self.name,
            wanted.join(" AND ")
        );
        let values = std::iter::once(value).chain(self.keys.iter().map(|key| &row[key]));
        file.prepare_cached(&sql)
            .unwrap()
            .execute(params_from_iter(values))
            .is_ok_and(|changed| changed == 1)
    }
}

fn tamper_with_store(mut trial: Trial, least: u64) {
    trial.stop();
    let Location::Sqlite(path) = &trial.location else {
        panic!("a file")
    };
    let file = Connection::open(path).unwrap();
    file.pragma_update(None, "synchronous", "OFF").unwrap();
    let open = trial.status().is_open();
    let mut findings = Findings::default();
    for name in [
        "experiments",
        "progress",
        "epochs",
        "leases",
        "outcomes",
        "uncounted",
        "events",
        "actors",
    ] {
        let table = Table::read(&file, name);
        for row in &table.rows {
            for column in table
                .columns
                .iter()
                .filter(|column| !exempt_column(name, column, row, &trial))
            {
                for (change, value) in other_stored(name, column, &row[column], open) {
                    if !table.set(&file, row, column, &value) {
                        continue;
                    }
                    let keys: Vec<&Sql> = table.keys.iter().map(|key| &row[key]).collect();
                    findings.judge(&format!("{name} {keys:?}, {column} {change}"), || {
                        trial.audit()
                    });
                    let mut changed = row.clone();
                    changed.insert(column.clone(), value);
                    assert!(
                        table.set(&file, &changed, column, &row[column]),
                        "{name}.{column} is not set back"
                    );
                }
            }
        }
    }
    assert!(
        matches!(trial.audit(), Ok(Verdict::Equal(_))),
        "everything was set back"
    );
    findings.report(least);
}

#[test]
fn any_change_of_a_finished_experiments_store_is_found() {
    tamper_with_store(done(SHORT), 3_000);
    tamper_with_store(done(DOUBLING), 3_000);
}

#[test]
fn any_change_of_a_closed_experiments_store_is_found() {
    tamper_with_store(closed(DOUBLING, 5), 2_000);
}

#[test]
fn any_change_of_a_running_experiments_store_is_found() {
    tamper_with_store(midway(SHORT, 1), 2_000);
    tamper_with_store(midway(DOUBLING, 5), 2_000);
}
