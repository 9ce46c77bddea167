//! The list as a table for other programs.

use serde_json::{Value, json};

use super::entry::{EpochEntry, EpochList};
use crate::calendar::iso;
use crate::service::http::table::DataTable;

/// What stands before the probabilities.
const COLUMNS: [&str; 13] = [
    "epoch",
    "kind",
    "rule",
    "first_round",
    "rounds",
    "opened_at",
    "closed_at",
    "estimates_made",
    "test_leader",
    "test_lead",
    "test_threshold",
    "test_passed",
    "hash",
];

/// A line an epoch, with a column for each action.
pub fn table(list: &EpochList) -> String {
    let mut table = DataTable::new(&COLUMNS, Vec::new());
    let names = list.actions.iter();
    table
        .columns
        .extend(names.map(|name| format!("probability of {name}")));
    let lines = list.epochs.iter();
    table.rows = lines.map(|entry| line(entry, list.actions.len())).collect();
    table.csv()
}

fn line(entry: &EpochEntry, actions: usize) -> Vec<Value> {
    let test = entry.test.as_ref();
    let mut cells = vec![
        json!(entry.epoch),
        json!(entry.kind),
        json!(entry.rule),
        json!(entry.first_round),
        json!(entry.rounds),
        json!(iso(entry.opened_at)),
        json!(entry.closed_at.map(iso)),
        json!(entry.estimates_made),
        json!(test.map(|test| &test.leader)),
        json!(test.map(|test| test.lead)),
        json!(test.map(|test| test.threshold)),
        json!(test.map(|test| test.passed)),
        json!(entry.hash),
    ];
    // The entry has those that are played alone.
    let mut probabilities = vec![0.0; actions];
    for share in &entry.shares {
        probabilities[share.action as usize] = share.probability;
    }
    cells.extend(probabilities.into_iter().map(Value::from));
    cells
}
