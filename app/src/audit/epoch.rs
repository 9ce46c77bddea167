//! One epoch of a log: its record, decisions and outcomes.

use debora::record::Kind;
use debora::spec::OnWait;
use debora::{EpochRecord, Problem};

use super::{Auditor, Check, Replay, Rules, differs, equal, held_back};
use crate::log::chain::{LeasesHash, RoundsHash};
use crate::log::{LeaseLine, OutsideOutcome, ROUNDS_MAX};
use crate::store::{DecisionKind, OutcomeRow};

/// The epoch that is being read.
pub struct OpenEpoch {
    pub record: EpochRecord,
    /// The round whose outcome comes next.
    pub next_outcome: u64,
    /// The first round without an outcome, if later ones have one.
    pub missing: Option<u64>,
    pub opened_at: i64,
    pub rounds: RoundsHash,
    pub leases: LeasesHash,
    pub next_serial: u64,
    pub next_holdback: u64,
    /// Whether a request was given fewer rounds than it asked for: no other may follow.
    cut: bool,
    pub outcomes: u64,
    /// The last imputed round, or 0.
    pub last_imputed: u64,
    /// Whether its end has been read.
    pub closed: bool,
    /// Whether that was the experiment's end before the epoch was complete.
    pub early: bool,
}

impl OpenEpoch {
    fn of(record: EpochRecord, opened_at: i64) -> Self {
        Self {
            next_outcome: record.first_round,
            leases: LeasesHash::from(record.first_round),
            record,
            missing: None,
            opened_at,
            rounds: RoundsHash::default(),
            next_serial: 1,
            next_holdback: 1,
            cut: false,
            outcomes: 0,
            last_imputed: 0,
            closed: false,
            early: false,
        }
    }

    /// The first round without an outcome.
    pub fn first_missing(&self) -> u64 {
        self.missing.unwrap_or(self.next_outcome)
    }
}

impl Auditor {
    pub(super) fn reading(&mut self) -> (&Rules, &mut Replay, &mut OpenEpoch) {
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

    pub(super) fn open_epoch(&mut self, record: EpochRecord, opened_at: i64) -> Check {
        let place = || format!("the record of epoch {}", record.epoch);
        if self.open.as_ref().is_some_and(|open| open.early) {
            return Err(differs(
                place(),
                "the epoch",
                "opened",
                "after the experiment was closed",
            ));
        }
        // The transaction that closes an epoch opens the next.
        equal(place, "opened_at", &opened_at, &self.opens_at)?;
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
        self.counts.rows.epochs += 1;
        self.open = Some(OpenEpoch::of(record, opened_at));
        Ok(())
    }

    /// Takes what every lease has, whatever it was of.
    pub(super) fn lease(&mut self, place: &str, given: &LeaseLine, kind: DecisionKind) -> Check {
        let (rules, replay, _) = self.reading();
        held_back::check_membership(rules, replay, place, given, kind)?;
        self.counts.rows.leases += 1;
        let (_, _, open) = self.reading();
        open.leases.add(&given.lease(kind), given.actor.as_deref());
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
        self.lease(&place(), given, DecisionKind::Round)
    }

    pub(super) fn outcome(&mut self, outcome: &OutcomeRow, actor: Option<&str>) -> Check {
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
        // Rounds are told in order: what is behind a gap is not told, and an epoch with one is not complete.
        if open.missing.is_none() {
            replay.tell(outcome)?;
        }
        open.rounds.add(action, outcome, actor);
        open.outcomes += 1;
        self.counts.rows.outcomes += 1;
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
        check_overtime(rules, replay, given, &place())?;
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
        self.lease(&place(), given, DecisionKind::Overtime)
    }

    /// An outcome of overtime, or of what was held back.
    pub(super) fn outside_outcome(&mut self, told: &OutsideOutcome, kind: DecisionKind) -> Check {
        let OutsideOutcome { epoch, serial, .. } = *told;
        let place = format!(
            "epoch {epoch}, the outcome of serial {serial} of {}",
            kind.word()
        );
        // Stored at any time after its decision, so of any epoch.
        let next_serial = self.next_serial(kind, epoch);
        if !(1..next_serial).contains(&serial) {
            return Err(differs(
                place,
                "its serial",
                serial,
                "one that was given, in order",
            ));
        }
        let (rules, ..) = self.reading();
        in_range(&rules.problem, &place, told.reward, &told.costs)?;
        self.enter_uncounted(&place, &told.row(kind), told.actor.as_deref())
    }

    /// The serial after the last of a kind that an epoch served.
    fn next_serial(&self, kind: DecisionKind, epoch: u64) -> u64 {
        let open = self.open.as_ref().expect("the order of lines is checked");
        let served = usize::try_from(epoch).ok();
        let served = served.and_then(|epoch| self.journal.served.get(epoch));
        let [overtime, holdback] = match served {
            _ if epoch == open.record.epoch => [open.next_serial, open.next_holdback],
            Some(served) => *served,
            None => [1, 1],
        };
        match kind {
            DecisionKind::Holdback => holdback,
            _ => overtime,
        }
    }
}

/// Overtime is not part of the promise, but it must have been allowed.
fn check_overtime(rules: &Rules, replay: &Replay, given: &LeaseLine, place: &str) -> Check {
    // A flag is answered while an epoch waits, whatever the spec says to others.
    let may_be_flag = given.asked == 1 && given.request_key.is_some();
    let instead = if rules.service.on_wait != OnWait::Serve && !may_be_flag {
        "held, as the spec says"
    } else if replay.is_decided() == Some(false) {
        // Rounds that count come first: overtime in their place would stretch the experiment.
        "rounds, as the epoch goes on"
    } else {
        return Ok(());
    };
    Err(differs(place, "overtime", "served", instead))
}

pub(super) fn check_length(place: &str, given: &LeaseLine) -> Check {
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
    let judged = problem.to_fixed(0, reward, costs, &mut fixed);
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
