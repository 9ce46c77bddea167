//! Outcomes: which count, which were told before, which come too late. The first of a round stays.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::{Result, ensure};

use crate::service::request::{DecisionId, Receipt, Refusal, Request, ToldOutcome};
use crate::service::turn::Turn;
use crate::store::{OutcomeRow, Status, UncountedOutcome};

type ToldReceipts = Result<Vec<Receipt>, Refusal>;

impl Turn<'_> {
    /// Records the outcomes of all requests that tell, and gives each its receipts.
    pub(super) fn tell(&mut self, group: &[&Request]) -> Result<Vec<(usize, ToldReceipts)>> {
        let mut answers = Vec::new();
        let mut book = Book::default();
        for (place, request) in group.iter().enumerate() {
            let Request::Tell { outcomes, .. } = request else {
                continue;
            };
            match self.check(outcomes) {
                Err(refusal) => answers.push((place, Err(refusal))),
                Ok(()) => book.requests.push((place, outcomes)),
            }
        }
        if book.requests.is_empty() {
            return Ok(answers);
        }
        let outcomes: Vec<&ToldOutcome> = book
            .requests
            .iter()
            .flat_map(|(_, outcomes)| outcomes.iter())
            .collect();
        book.receipts = vec![None; outcomes.len()];
        self.tell_rounds(&outcomes, &mut book.receipts)?;
        self.tell_overtime(&outcomes, &mut book.receipts)?;
        let mut receipts = book
            .receipts
            .into_iter()
            .map(|receipt| receipt.expect("every outcome has a receipt"));
        for (place, outcomes) in book.requests {
            answers.push((place, Ok(receipts.by_ref().take(outcomes.len()).collect())));
        }
        Ok(answers)
    }

    fn check(&self, outcomes: &[ToldOutcome]) -> Result<(), Refusal> {
        if self.progress.status == Status::Closed {
            return Err(Refusal::Closed {
                id: self.id.to_owned(),
            });
        }
        let problem = self.resident.engine.problem();
        let mut fixed = vec![0; problem.quantities()];
        for (index, outcome) in outcomes.iter().enumerate() {
            let judged = problem.to_fixed(outcome.reward, &outcome.costs, &mut fixed);
            judged.map_err(|error| Refusal::Outcome { index, error })?;
        }
        Ok(())
    }

    fn tell_rounds(
        &mut self,
        outcomes: &[&ToldOutcome],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        let mut rows = Vec::new();
        // Where each round's first outcome stands, here and among the rows.
        let mut firsts: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let DecisionId::Round(round) = outcome.decision else {
                continue;
            };
            if round == 0 || round >= self.progress.next_round {
                receipts[place] = Some(Receipt::Unknown);
            } else if let Entry::Vacant(entry) = firsts.entry(round) {
                entry.insert((place, rows.len()));
                rows.push(self.row(round, outcome, false));
            }
        }
        let before = self.store.add_outcomes(self.id, &rows)?;
        self.count(&rows, &before)?;
        let late = self.tell_late(outcomes, &firsts, &before)?;
        for (place, outcome) in outcomes.iter().enumerate() {
            let DecisionId::Round(round) = outcome.decision else {
                continue;
            };
            let Some(&(first, row)) = firsts.get(&round) else {
                continue;
            };
            receipts[place] = Some(match &before[row] {
                Some(stored) if stored.imputed => uncounted_receipt(
                    late.get(&round).and_then(Option::as_ref),
                    outcome,
                    outcomes[first],
                    place == first,
                    Receipt::Late,
                ),
                Some(stored) => judge(same(outcome, stored.reward, &stored.costs)),
                None if place == first => Receipt::Recorded,
                None => judge(same(
                    outcome,
                    outcomes[first].reward,
                    &outcomes[first].costs,
                )),
            });
        }
        Ok(())
    }

    /// Logs outcomes of rounds that are imputed: per round, the one that was there before.
    fn tell_late(
        &mut self,
        outcomes: &[&ToldOutcome],
        firsts: &BTreeMap<u64, (usize, usize)>,
        before: &[Option<OutcomeRow>],
    ) -> Result<BTreeMap<u64, Option<UncountedOutcome>>> {
        let imputed = |row: usize| before[row].as_ref().is_some_and(|stored| stored.imputed);
        let late = firsts.iter().filter(|(_, (_, row))| imputed(*row));
        let rows: Vec<UncountedOutcome> = late
            .map(|(&round, &(first, _))| uncounted((0, false), round, outcomes[first], self.now))
            .collect();
        if rows.is_empty() {
            return Ok(BTreeMap::new());
        }
        let known = self.store.add_uncounted(self.id, &rows)?;
        self.progress.late += known.iter().filter(|known| known.is_none()).count() as u64;
        Ok(rows.iter().map(|row| row.number).zip(known).collect())
    }

    fn tell_overtime(
        &mut self,
        outcomes: &[&ToldOutcome],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        // Where each decision's first outcome stands, and what was stored before it.
        let mut firsts: BTreeMap<(u64, u64), (usize, Option<UncountedOutcome>)> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let DecisionId::Overtime { epoch, serial } = outcome.decision else {
                continue;
            };
            if let Some((first, stored)) = firsts.get(&(epoch, serial)) {
                let receipt = uncounted_receipt(
                    stored.as_ref(),
                    outcome,
                    outcomes[*first],
                    false,
                    Receipt::Overtime,
                );
                receipts[place] = Some(receipt);
                continue;
            }
            // Serials are below 2^53 as rounds are; larger ones were never given.
            let given = (1..1 << 53).contains(&serial) && epoch <= self.progress.epoch;
            let lease = if given {
                self.store.leases(self.id, epoch, true, serial, 1)?.pop()
            } else {
                None
            };
            if lease.is_none_or(|lease| lease.first > serial) {
                receipts[place] = Some(Receipt::Unknown);
                continue;
            }
            let row = uncounted((epoch, true), serial, outcome, self.now);
            let stored = self.store.add_uncounted(self.id, &[row])?.swap_remove(0);
            receipts[place] = Some(uncounted_receipt(
                stored.as_ref(),
                outcome,
                outcome,
                true,
                Receipt::Overtime,
            ));
            firsts.insert((epoch, serial), (place, stored));
        }
        Ok(())
    }

    pub(super) fn row(&self, round: u64, outcome: &ToldOutcome, imputed: bool) -> OutcomeRow {
        OutcomeRow {
            round,
            reward: outcome.reward,
            costs: outcome.costs.clone(),
            imputed,
            at: self.now,
        }
    }

    /// Counts the rows that were not there before.
    pub(super) fn count(
        &mut self,
        rows: &[OutcomeRow],
        before: &[Option<OutcomeRow>],
    ) -> Result<()> {
        let first_round = self.resident.engine.open_record().first_round;
        for row in rows
            .iter()
            .zip(before)
            .filter(|(_, before)| before.is_none())
            .map(|(row, _)| row)
        {
            // A round without an outcome is of the open epoch: an epoch closes when all its rounds have one.
            ensure!(
                row.round >= first_round,
                "experiment {}: round {} has lost its outcome",
                self.id,
                row.round
            );
            let action = self.resident.engine.decide(row.round).action as usize;
            self.progress.outcomes[action] += 1;
            self.progress.imputed[action] += u64::from(row.imputed);
        }
        Ok(())
    }
}

/// Requests that tell, and the receipts of all their outcomes.
#[derive(Default)]
struct Book<'a> {
    requests: Vec<(usize, &'a Vec<ToldOutcome>)>,
    receipts: Vec<Option<Receipt>>,
}

fn uncounted(
    (epoch, overtime): (u64, bool),
    number: u64,
    outcome: &ToldOutcome,
    now: i64,
) -> UncountedOutcome {
    UncountedOutcome {
        epoch,
        overtime,
        number,
        reward: outcome.reward,
        costs: outcome.costs.clone(),
        at: now,
    }
}

/// The receipt of an outcome that is logged and not counted: `stored` is what was there before, `first` the group's first outcome.
fn uncounted_receipt(
    stored: Option<&UncountedOutcome>,
    outcome: &ToldOutcome,
    first: &ToldOutcome,
    is_first: bool,
    fresh: Receipt,
) -> Receipt {
    match stored {
        Some(stored) => judge(same(outcome, stored.reward, &stored.costs)),
        None if is_first => fresh,
        None => judge(same(outcome, first.reward, &first.costs)),
    }
}

fn same(outcome: &ToldOutcome, reward: f64, costs: &[f64]) -> bool {
    outcome.reward == reward && outcome.costs == costs
}

fn judge(same: bool) -> Receipt {
    if same {
        Receipt::Repeated
    } else {
        Receipt::Conflict
    }
}
