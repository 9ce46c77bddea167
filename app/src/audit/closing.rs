//! The end of an epoch: that it is complete, and its hash.

use debora::EpochRecord;
use sha2::{Digest as _, Sha256};

use super::journal::JournalEnd;
use super::{Auditor, Check, differs, equal};
use crate::log::Line;
use crate::log::chain::{self, EpochParts};

impl Auditor {
    pub(super) fn close_epoch(&mut self, line: &Line) -> Check {
        let Line::Closed {
            epoch,
            rounds,
            rounds_hash,
            previous,
            hash,
            closed_at,
            leases_hash,
            journal_end,
            journal,
            early,
        } = line
        else {
            unreachable!("only called with the end of an epoch")
        };
        let (next_round, head_before) = (self.counts.next_round, self.head.clone());
        let (_, _, open) = self.reading();
        let number = open.record.epoch;
        let place = || format!("the end of epoch {number}");
        equal(place, "its epoch", epoch, &number)?;
        let rounds_decided = next_round - open.record.first_round;
        equal(place, "its number of rounds", rounds, &rounds_decided)?;
        if !early {
            self.check_complete(&place())?;
        }
        equal(place, "the hash before", previous, &head_before)?;
        let end = JournalEnd {
            epoch: number,
            end: *journal_end,
            journal: journal.clone(),
        };
        let head = self.recomputed_hash(rounds_hash, leases_hash, end, *closed_at, *early)?;
        equal(place, "its hash", hash, &head)?;
        self.end_epoch(head, *early);
        Ok(())
    }

    /// An epoch is closed when all its rounds are decided and have their outcomes.
    fn check_complete(&mut self, place: &str) -> Check {
        let next_round = self.counts.next_round;
        let (_, replay, open) = self.reading();
        if open.first_missing() < next_round {
            let place = format!("{place}, round {}", open.first_missing());
            return Err(differs(place, "its outcome", "missing", "due"));
        }
        if replay.is_complete() == Some(false) {
            return Err(differs(
                place,
                "the epoch",
                "closed",
                format_args!("going on with round {next_round}"),
            ));
        }
        Ok(())
    }

    fn recomputed_hash(
        &mut self,
        rounds_hash: &String,
        leases_hash: &String,
        end: JournalEnd,
        closed_at: i64,
        early: bool,
    ) -> Check<String> {
        let (head, record) = (self.head.clone(), self.closed_record());
        let text = chain::record_text(&record);
        let (_, _, open) = self.reading();
        let place = || format!("the end of epoch {}", record.epoch);
        equal(
            place,
            "the hash of its rounds",
            rounds_hash,
            &open.rounds.to_hex(),
        )?;
        equal(
            place,
            "the hash of its requests",
            leases_hash,
            &open.leases.to_hex(),
        )?;
        let parts = EpochParts {
            record: &text,
            opened_at: open.opened_at,
            closed_at,
            rounds_hash,
            leases_hash,
            journal_end: end.end,
            journal: &end.journal,
            early,
        };
        let hash = parts.hash(&head);
        // What it says of the journal is held against the lines that follow all epochs.
        self.journal.expect(end);
        self.opens_at = closed_at;
        Ok(hash)
    }

    /// The record as the epoch was closed: the hash is over its text, so it is made again from what was recomputed.
    fn closed_record(&mut self) -> EpochRecord {
        let next_round = self.counts.next_round;
        let (_, _, open) = self.reading();
        let rounds = next_round - open.record.first_round;
        open.record.clone().with_rounds(rounds)
    }

    fn end_epoch(&mut self, head: String, early: bool) {
        let record = self.closed_record();
        let (_, _, open) = self.reading();
        (open.closed, open.early) = (true, early);
        let served = [open.next_serial, open.next_holdback];
        self.journal.served.push(served);
        // Epochs that were not complete are in no digest, and what they imputed counts as the open epoch's.
        if !early {
            self.counts.imputed_before.clone_from(&self.counts.imputed);
            self.digest = digest(self.digest, &record);
        }
        self.journal.over = early || self.at_horizon();
        self.tick_off_head(&head);
        self.head = head;
    }
}

/// SHA-256 of the digest before, epoch, rounds and the bits of every probability, 8 bytes little endian each.
fn digest(before: [u8; 32], record: &EpochRecord) -> [u8; 32] {
    // From the records, not from an engine: without the key there is none.
    let hash = Sha256::new_with_prefix(before).chain_update(record.epoch.to_le_bytes());
    let hash = hash.chain_update(record.rounds.to_le_bytes());
    record
        .strategy
        .iter()
        .fold(hash, |hash, probability| {
            hash.chain_update(probability.to_bits().to_le_bytes())
        })
        .finalize()
        .into()
}
