//! One epoch of a log: its record, decisions, outcomes and hash.

use debora::record::Kind;
use debora::spec::OnWait;
use debora::{EpochRecord, Problem};
use sha2::{Digest as _, Sha256};

use super::{Auditor, Check, Replay, Rules, differs, equal};
use crate::log::chain::{self, RoundsHash};
use crate::log::{LeaseLine, ROUNDS_MAX};
use crate::store::OutcomeRow;

/// The epoch that is being read.
pub struct OpenEpoch {
    pub record: EpochRecord,
    /// The round whose outcome comes next.
    pub next_outcome: u64,
    /// The first round without an outcome, if later ones have one.
    pub missing: Option<u64>,
    hash: RoundsHash,
    pub next_serial: u64,
    last_overtime_outcome: u64,
    /// Whether a request was given fewer rounds than it asked for: no other may follow.
    cut: bool,
    pub outcomes: u64,
    /// The last imputed round, or 0.
    pub last_imputed: u64,
    /// Whether its end has been read.
    pub closed: bool,
}

impl OpenEpoch {
    fn of(record: EpochRecord) -> Self {
        Self {
            next_outcome: record.first_round,
            record,
            missing: None,
            hash: RoundsHash::default(),
            next_serial: 1,
            last_overtime_outcome: 0,
            cut: false,
            outcomes: 0,
            last_imputed: 0,
            closed: false,
        }
    }

    /// The first round without an outcome.
    pub fn first_missing(&self) -> u64 {
        self.missing.unwrap_or(self.next_outcome)
    }
}

impl Auditor {
    fn reading(&mut self) -> (&Rules, &mut Replay, &mut OpenEpoch) {
        let reading = (
            self.rules.as_ref(),
            self.replay.as_mut(),
            self.open.as_mut(),
        );
        // Options because the lines bring them one by one; that they are there when they are needed is the order's doing.
        let (Some(rules), Some(replay), Some(open)) = reading else {
            unreachable!("the order of lines is checked")
        };
        (rules, replay, open)
    }

    pub(super) fn open_epoch(&mut self, record: EpochRecord) -> Check {
        let place = || format!("the record of epoch {}", record.epoch);
        let (Some(rules), Some(replay)) = (&self.rules, &mut self.replay) else {
            unreachable!("the order is checked")
        };
        if self.counts.next_round > rules.problem.horizon() {
            return Err(differs(
                place(),
                "the epoch",
                "opened",
                "beyond the horizon",
            ));
        }
        equal(place, "epoch", &record.epoch, &self.audited.epochs)?;
        equal(
            place,
            "first_round",
            &record.first_round,
            &self.counts.next_round,
        )?;
        // Written as it was opened, whenever the line is read: the end of the epoch has a line of its own.
        equal(place, "rounds", &record.rounds, &0)?;
        equal(place, "counts", &record.counts, &self.counts.decided)?;
        equal(
            place,
            "the number of probabilities",
            &record.strategy.len(),
            &self.counts.decided.len(),
        )?;
        replay.open(&record)?;
        self.audited.epochs += 1;
        self.counts.infeasible += u64::from(record.kind == Kind::Infeasible);
        self.open = Some(OpenEpoch::of(record));
        Ok(())
    }

    pub(super) fn decisions(&mut self, given: &LeaseLine) -> Check {
        let next_round = self.counts.next_round;
        let (_, replay, open) = self.reading();
        let epoch = open.record.epoch;
        let place = || format!("epoch {epoch}, the request of round {}", given.first);
        equal(place, "its epoch", &given.epoch, &epoch)?;
        equal(place, "its first round", &given.first, &next_round)?;
        check_length(&place(), given)?;
        // Only the end of an epoch cuts a request short, so nothing may be given after it.
        if open.cut {
            return Err(differs(
                place(),
                "the request before",
                "cut short",
                "whole, as the epoch goes on",
            ));
        }
        for (round, &action) in (given.first..).zip(&given.actions) {
            replay.decide(epoch, round, action)?;
        }
        open.cut = (given.actions.len() as u64) < given.asked;
        if open.cut && replay.is_decided() == Some(false) {
            let given = format!("{} of {}", given.actions.len(), given.asked);
            return Err(differs(
                place(),
                "what was given",
                given,
                "all that was asked for, as the epoch goes on",
            ));
        }
        given
            .actions
            .iter()
            .for_each(|&action| self.counts.decided[action as usize] += 1);
        self.counts.next_round = given.end();
        self.audited.decisions += given.actions.len() as u64;
        Ok(())
    }

    pub(super) fn outcome(&mut self, outcome: &OutcomeRow) -> Check {
        let next_round = self.counts.next_round;
        let (rules, replay, open) = self.reading();
        let (epoch, round) = (open.record.epoch, outcome.round);
        let place = || format!("epoch {epoch}, the outcome of round {round}");
        if !(open.next_outcome..next_round).contains(&round) {
            let expected = format!(
                "one of {} to {}, in order",
                open.next_outcome,
                next_round - 1
            );
            return Err(differs(place(), "its round", round, expected));
        }
        in_range(&rules.problem, &place(), outcome.reward, &outcome.costs)?;
        check_imputed(rules, &place(), outcome)?;
        // Outcomes come in any order, and those of the open epoch with gaps.
        if round != open.next_outcome {
            open.missing.get_or_insert(open.next_outcome);
        }
        open.next_outcome = round + 1;
        let action = replay.action(open.record.first_round, round);
        // The hash is over rounds in order, so behind a gap there is nothing to hash yet, and an epoch with one is not closed.
        if open.missing.is_none() {
            replay.tell(outcome)?;
            open.hash.add(action, outcome);
        }
        open.outcomes += 1;
        self.counts.outcomes[action as usize] += 1;
        self.audited.outcomes += 1;
        if outcome.imputed {
            self.count_imputed(round, action);
        }
        Ok(())
    }

    fn count_imputed(&mut self, round: u64, action: u32) {
        self.reading().2.last_imputed = round;
        self.counts.imputed[action as usize] += 1;
        self.audited.imputed += 1;
        // Rounds come in order, so a run grows at its end or a new one begins.
        match self.counts.imputed_runs.last_mut() {
            Some((_, last)) if *last + 1 == round => *last = round,
            _ => self.counts.imputed_runs.push((round, round)),
        }
    }

    pub(super) fn overtime(&mut self, given: &LeaseLine) -> Check {
        let (rules, replay, open) = self.reading();
        let epoch = open.record.epoch;
        let place = || format!("epoch {epoch}, the overtime from serial {}", given.first);
        equal(place, "its epoch", &given.epoch, &epoch)?;
        equal(place, "its first serial", &given.first, &open.next_serial)?;
        check_length(&place(), given)?;
        equal(
            place,
            "what was asked for",
            &given.asked,
            &(given.actions.len() as u64),
        )?;
        check_overtime(rules, replay, &place())?;
        for (serial, &action) in (given.first..).zip(&given.actions) {
            // Without the key it cannot be recomputed, and counts for nothing.
            let expected = replay.overtime(serial).unwrap_or(action);
            equal(
                || format!("epoch {epoch}, serial {serial} of overtime"),
                "the action",
                &action,
                &expected,
            )?;
        }
        open.next_serial = given.end();
        self.audited.overtime += given.actions.len() as u64;
        Ok(())
    }

    pub(super) fn overtime_outcome(
        &mut self,
        epoch: u64,
        serial: u64,
        reward: f64,
        costs: &[f64],
    ) -> Check {
        let (rules, _, open) = self.reading();
        let place = || {
            format!(
                "epoch {}, the outcome of serial {serial} of overtime",
                open.record.epoch
            )
        };
        equal(place, "its epoch", &epoch, &open.record.epoch)?;
        // In order and once each; some are never told.
        if !(open.last_overtime_outcome + 1..open.next_serial).contains(&serial) {
            return Err(differs(
                place(),
                "its serial",
                serial,
                "one that was given, in order",
            ));
        }
        in_range(&rules.problem, &place(), reward, costs)?;
        open.last_overtime_outcome = serial;
        Ok(())
    }

    pub(super) fn close_epoch(
        &mut self,
        epoch: u64,
        rounds: u64,
        rounds_hash: &str,
        before: &str,
        hash: &str,
    ) -> Check {
        let (next_round, head_before) = (self.counts.next_round, self.head.clone());
        let values_version = self.audited.values_version;
        let (_, replay, open) = self.reading();
        let number = open.record.epoch;
        let place = || format!("the end of epoch {number}");
        equal(place, "its epoch", &epoch, &number)?;
        if open.first_missing() < next_round {
            let place = format!("{}, round {}", place(), open.first_missing());
            return Err(differs(place, "its outcome", "missing", "due"));
        }
        if replay.is_complete() == Some(false) {
            return Err(differs(
                place(),
                "the epoch",
                "closed",
                format_args!("going on with round {next_round}"),
            ));
        }
        // The hash is over the record's text, so it is made again from what was recomputed, never taken from the log.
        let rounds_decided = next_round - open.record.first_round;
        let record = open.record.clone().with_rounds(rounds_decided);
        equal(place, "its number of rounds", &rounds, &record.rounds)?;
        let text = chain::record_text(&record, values_version);
        let recomputed = open.hash.to_hex();
        equal(
            place,
            "the hash of its rounds",
            &rounds_hash,
            &recomputed.as_str(),
        )?;
        let head = chain::epoch_hash(&head_before, &text, &recomputed);
        equal(place, "the hash before", &before, &head_before.as_str())?;
        equal(place, "its hash", &hash, &head.as_str())?;
        open.closed = true;
        self.counts.imputed_before.clone_from(&self.counts.imputed);
        self.digest = digest(self.digest, &record);
        self.tick_off_head(&head);
        self.head = head;
        Ok(())
    }
}

/// Overtime is not part of the promise, but it must have been allowed.
fn check_overtime(rules: &Rules, replay: &Replay, place: &str) -> Check {
    let instead = if rules.service.on_wait != OnWait::Serve {
        "held, as the spec says"
    } else if replay.is_decided() == Some(false) {
        // Rounds that count come first: overtime in their place would stretch the experiment.
        "rounds, as the epoch goes on"
    } else {
        return Ok(());
    };
    Err(differs(place, "overtime", "served", instead))
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

fn check_length(place: &str, given: &LeaseLine) -> Check {
    let length = given.actions.len() as u64;
    // A lease of nothing would be a line that no request explains.
    if length == 0 || length > given.asked || given.asked > ROUNDS_MAX {
        let recorded = format!("{length} of {}", given.asked);
        return Err(differs(
            place,
            "what was given",
            recorded,
            format_args!("1 to {ROUNDS_MAX}, and no more than asked for"),
        ));
    }
    Ok(())
}

/// Feedback must be within its range, or the spec must say that it is clipped.
pub(super) fn in_range(problem: &Problem, place: &str, reward: f64, costs: &[f64]) -> Check {
    let mut fixed = vec![0; problem.quantities()];
    let judged = problem.to_fixed(reward, costs, &mut fixed);
    judged.map_err(|error| differs(place, "its values", error, "what the spec allows"))
}

/// An imputed outcome has the values of the spec, which must say that outcomes are imputed.
fn check_imputed(rules: &Rules, place: &str, outcome: &OutcomeRow) -> Check {
    if !outcome.imputed {
        return Ok(());
    }
    if rules.service.outcome_wait.is_none() {
        return Err(differs(
            place,
            "it",
            "imputed",
            "waited for, as the spec has no outcome_wait",
        ));
    }
    // By bits: -0.0 in place of 0.0 has another hash.
    let values: Vec<f64> = std::iter::once(outcome.reward)
        .chain(outcome.costs.iter().copied())
        .collect();
    let bits =
        |values: &[f64]| -> Vec<u64> { values.iter().map(|value| value.to_bits()).collect() };
    if bits(&values) == bits(&rules.service.impute) {
        return Ok(());
    }
    let impute = &rules.service.impute;
    Err(differs(
        place,
        "what was imputed",
        format_args!("{values:?}"),
        format_args!("{impute:?}"),
    ))
}
