//! The list as a table for other programs.

use debora::measure::answer::row_for_each;

use super::entry::EpochList;
use crate::calendar::iso;
use crate::document::{csv, word};
use crate::reading::ActionShare;

/// A line an epoch, with a column for each action.
pub fn table(list: &EpochList) -> String {
    let mut table = row_for_each(&list.epochs)
        .numbers("epoch", |entry| entry.epoch)
        .words("kind", |entry| word(&entry.kind))
        .words("rule", |entry| word(&entry.rule))
        .numbers("first_round", |entry| entry.first_round)
        .numbers("rounds", |entry| entry.rounds)
        .words("opened_at", |entry| iso(entry.opened_at))
        .words("closed_at", |entry| entry.closed_at.map(iso))
        .numbers("estimates_made", |entry| entry.estimates_made)
        .words("test_leader", |entry| {
            entry.test.as_ref().map(|test| &test.leader)
        })
        .numbers("test_lead", |entry| {
            entry.test.as_ref().map(|test| test.lead)
        })
        .numbers("test_threshold", |entry| {
            entry.test.as_ref().map(|test| test.threshold)
        })
        .words("test_passed", |entry| {
            entry.test.as_ref().map(|test| test.passed.to_string())
        })
        .words("hash", |entry| entry.hash.as_ref());
    for (place, name) in (0..).zip(&list.actions) {
        let probability = |shares: &[ActionShare]| {
            // The entry has only those that are played.
            let played = shares.iter().find(|share| share.action == place);
            played.map_or(0.0, |share| share.probability)
        };
        table = table.numbers(format!("probability of {name}"), |entry| {
            probability(&entry.shares)
        });
    }
    csv(&table.table(), "\r\n")
}
