//! The list as a table for other programs.

use super::entry::{EpochEntry, EpochList};
use crate::calendar::iso;

/// A line an epoch; what is missing leaves its cell empty, which readers of CSV take for a missing value.
pub fn table(list: &EpochList) -> String {
    let mut text = String::from(
        "epoch,kind,rule,first_round,rounds,opened_at,closed_at,estimates_made,test_leader,test_lead,test_threshold,\
         test_passed,hash",
    );
    for name in &list.actions {
        text += &format!(",{}", quoted(&format!("probability of {name}")));
    }
    text.push('\n');
    for entry in &list.epochs {
        text += &line(entry, list.actions.len()).join(",");
        text.push('\n');
    }
    text
}

fn line(entry: &EpochEntry, actions: usize) -> Vec<String> {
    let test = entry.test.as_ref();
    let mut cells = vec![
        entry.epoch.to_string(),
        word(&entry.kind),
        word(&entry.rule),
        entry.first_round.to_string(),
        entry.rounds.to_string(),
        iso(entry.opened_at),
        entry.closed_at.map(iso).unwrap_or_default(),
        entry.estimates_made.to_string(),
        quoted(test.map_or("", |test| &test.leader)),
        cell(test.map(|test| test.lead)),
        cell(test.map(|test| test.threshold)),
        cell(test.map(|test| test.passed)),
        entry.hash.clone().unwrap_or_default(),
    ];
    let mut probabilities = vec![0.0; actions];
    for share in &entry.shares {
        probabilities[share.action as usize] = share.probability;
    }
    cells.extend(probabilities.iter().map(f64::to_string));
    cells
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// As it stands in JSON, without quotes.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// A user's text. What a spreadsheet would take for a formula gets an apostrophe before it, which keeps it text.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if formula { "'" } else { "" };
    if text.is_empty() {
        return String::new();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}
