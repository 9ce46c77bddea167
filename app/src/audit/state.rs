//! The end of a log: late outcomes, events, and the counts of the last line.

use super::epoch::in_range;
use super::{Auditor, Check, differs, equal};
use crate::hex;
use crate::log::published_head;
use crate::store::{Event, Progress, Status, UncountedOutcome};

impl Auditor {
    pub(super) fn late(&mut self, outcome: &UncountedOutcome, actor: Option<&str>) -> Check {
        let round = outcome.number;
        let place = || format!("the late outcome of round {round}");
        // Runs are in order, so the one that could hold the round is the last that begins before it.
        let after = self
            .counts
            .imputed_runs
            .partition_point(|(first, _)| *first <= round);
        let imputed = after
            .checked_sub(1)
            .is_some_and(|run| round <= self.counts.imputed_runs[run].1);
        let difference = || {
            differs(
                place(),
                "its round",
                round,
                "one that was imputed, in order",
            )
        };
        if !imputed {
            // If the experiment went on while its log was read, the round may have been imputed after its line was.
            self.unmatched_late.get_or_insert_with(difference);
        }
        in_range(
            &self
                .rules
                .as_ref()
                .expect("after the experiment's line")
                .problem,
            &place(),
            outcome.reward,
            &outcome.costs,
        )?;
        self.audited.late += 1;
        self.enter_uncounted(&place(), outcome, actor)
    }

    pub(super) fn event(&mut self, event: &Event) -> Check {
        let what = event.what.as_str();
        if let (Some(head), Some(_)) = (published_head(what), self.status) {
            self.check_published(head, event.position)?;
            return self.enter_event(event);
        }
        // Repeating a change is answered and not logged, so each event changes the status.
        let next = match (self.status, what) {
            (None, "created") | (Some(Status::Paused), "resumed") => Status::Running,
            (Some(Status::Running), "paused") => Status::Paused,
            (Some(Status::Running | Status::Paused), "closed") => Status::Closed,
            (before, _) => {
                let before = before.map_or("nothing".to_owned(), |status| {
                    format!("{status:?}").to_lowercase()
                });
                return Err(differs(
                    "the events",
                    "what happened",
                    what,
                    format_args!("what may follow {before}"),
                ));
            }
        };
        self.status = Some(next);
        self.enter_event(event)
    }

    pub(super) fn state(&mut self, progress: &Progress, moved: bool) -> Check {
        self.audited.status = Some(progress.status);
        self.audited.moved = moved;
        self.audited.outstanding = self.audited.decisions - self.audited.outcomes;
        self.audited.head.clone_from(&self.head);
        self.end_journal()?;
        let done = self.at_horizon();
        let early = self.open.as_ref().is_some_and(|open| open.early);
        // What an experiment had so far when it was closed is in the hash over its end.
        equal(
            || "the end".to_owned(),
            "that its last epoch was left as it was",
            &early,
            &self.journal.closed,
        )?;
        // Whoever reads a log, however late, is shown the epoch that was open when they began, or the horizon's.
        if self.open.as_ref().is_some_and(|open| open.closed) && !early && !done {
            return Err(differs(
                "the end",
                "the last epoch",
                "closed",
                "followed by another",
            ));
        }
        // In a finished experiment nothing is imputed, so its lines cannot have missed an imputation.
        if let Some(difference) = self.unmatched_late.take().filter(|_| !moved || done) {
            return Err(difference);
        }
        if !done && !early {
            let open = self.open.as_ref().expect("the order of lines is checked");
            self.audited.open_epoch = Some(open.record.epoch);
            self.audited.unhashed_outcomes = open.outcomes;
        }
        match (moved, done) {
            (false, _) => self.same_state(progress, done),
            (true, false) => self.check_not_behind(progress),
            // After the horizon only facts with a position still come.
            (true, true) => {
                self.check_not_behind(progress)?;
                self.same_state(
                    &Progress {
                        late: self.audited.late,
                        next_position: self.journal.next,
                        journal: self.journal.hash.clone(),
                        head: self.head.clone(),
                        ..progress.clone()
                    },
                    done,
                )
            }
        }
    }

    /// Whether the last epoch is closed at the horizon.
    pub(super) fn at_horizon(&self) -> bool {
        let horizon = self
            .rules
            .as_ref()
            .map_or(0, |rules| rules.problem.horizon());
        let closed = self.open.as_ref().is_some_and(|open| open.closed);
        let early = self.open.as_ref().is_some_and(|open| open.early);
        closed && !early && self.counts.next_round > horizon
    }

    fn same_state(&self, progress: &Progress, done: bool) -> Check {
        let open = self.open.as_ref().expect("the order of lines is checked");
        let place = || "the state".to_owned();
        // The transaction that takes an epoch's last outcome closes it: a complete epoch is never left open.
        let complete = self.replay.as_ref().and_then(super::Replay::is_complete) == Some(true);
        if !done && ((open.closed && !open.early) || complete) {
            return Err(differs(
                place(),
                "the last epoch",
                "complete",
                "closed, and followed by another",
            ));
        }
        let [next_serial, next_holdback] = match done {
            true => [1, 1],
            false => [open.next_serial, open.next_holdback],
        };
        let status = if done {
            Some(Status::Done)
        } else {
            self.status
        };
        self.same_counts(progress)?;
        equal(place, "epoch", &progress.epoch, &open.record.epoch)?;
        equal(place, "next_serial", &progress.next_serial, &next_serial)?;
        equal(
            place,
            "next_holdback",
            &progress.next_holdback,
            &next_holdback,
        )?;
        equal(
            place,
            "digest",
            &progress.digest,
            &hex::encode(&self.digest),
        )?;
        equal(place, "head", &progress.head, &self.head)?;
        equal(place, "journal", &progress.journal, &self.journal.hash)?;
        equal(place, "status", &Some(progress.status), &status)?;
        self.check_impute_from(progress, done)
    }

    fn same_counts(&self, progress: &Progress) -> Check {
        let (seen, audited) = (&self.counts, &self.audited);
        let numbers = [
            ("next_round", progress.next_round, seen.next_round),
            ("late", progress.late, audited.late),
            ("overtime", progress.overtime, audited.overtime),
            ("holdback", progress.holdback, audited.holdback),
            ("infeasible", progress.infeasible, seen.infeasible),
            ("next_position", progress.next_position, self.journal.next),
        ];
        let lists = [
            ("decided", &progress.decided, &seen.decided),
            ("outcomes", &progress.outcomes, &seen.outcomes),
            ("imputed", &progress.imputed, &seen.imputed),
            (
                "imputed_before",
                &progress.imputed_before,
                &seen.imputed_before,
            ),
        ];
        let place = || "the state".to_owned();
        for (name, recorded, recomputed) in numbers {
            equal(place, name, &recorded, &recomputed)?;
        }
        for (name, recorded, recomputed) in lists {
            equal(place, name, recorded, recomputed)?;
        }
        Ok(())
    }

    /// How far the search for missing outcomes has come. It depends on times, so it is only known between two rounds.
    fn check_impute_from(&self, progress: &Progress, done: bool) -> Check {
        let open = self.open.as_ref().expect("the order of lines is checked");
        let waits = self
            .rules
            .as_ref()
            .is_some_and(|rules| rules.service.outcome_wait.is_some());
        // Rounds below are told or imputed, and the search stops at the first that may still come.
        let (least, most) = match (done, waits) {
            (true, _) => (self.counts.next_round, self.counts.next_round),
            (false, true) => (
                open.record.first_round.max(open.last_imputed + 1),
                open.first_missing(),
            ),
            (false, false) => (open.record.first_round, open.record.first_round),
        };
        if (least..=most).contains(&progress.impute_from) {
            return Ok(());
        }
        Err(differs(
            "the state",
            "impute_from",
            progress.impute_from,
            format_args!("{least} to {most}"),
        ))
    }

    /// Counts that were read later than the lines may not be below them.
    fn check_not_behind(&self, progress: &Progress) -> Check {
        let counts = &self.counts;
        // Each of them by itself: sums could hide that one went back.
        let below = |counts: &[u64], later: &[u64]| {
            counts.len() == later.len()
                && counts
                    .iter()
                    .zip(later)
                    .all(|(count, later)| count <= later)
        };
        let ahead = below(&counts.decided, &progress.decided)
            && below(&counts.outcomes, &progress.outcomes)
            && below(&counts.imputed, &progress.imputed)
            && counts.next_round <= progress.next_round
            && self.journal.next <= progress.next_position
            && self.audited.late <= progress.late
            && self.audited.overtime <= progress.overtime
            && self.audited.holdback <= progress.holdback
            && self
                .open
                .as_ref()
                .is_some_and(|open| open.record.epoch <= progress.epoch);
        if ahead {
            return Ok(());
        }
        Err(differs(
            "the state",
            "its counts",
            "smaller than those of the lines",
            "as large at least",
        ))
    }
}
