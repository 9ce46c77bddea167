//! Outcomes: which count, which were told before, which come too late. The first of a round stays.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::{Result, ensure};

use crate::service::request::{Of, Receipt, Refusal, Request, Telling};
use crate::service::sitting::Sitting;
use crate::store::{Aside, Outcome, Status};

type Receipts = Result<Vec<Receipt>, Refusal>;

impl Sitting<'_> {
    /// Records the outcomes of all requests that tell, and gives each its receipts.
    pub(super) fn tell(&mut self, group: &[&Request]) -> Result<Vec<(usize, Receipts)>> {
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
        let outcomes: Vec<&Telling> = book
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

    fn check(&self, outcomes: &[Telling]) -> Result<(), Refusal> {
        if self.progress.status == Status::Closed {
            return Err(Refusal::Closed {
                id: self.id.to_owned(),
            });
        }
        let problem = self.live.engine.problem();
        let mut fixed = vec![0; problem.quantities()];
        for (index, outcome) in outcomes.iter().enumerate() {
            let judged = problem.to_fixed(outcome.reward, &outcome.costs, &mut fixed);
            judged.map_err(|error| Refusal::Outcome { index, error })?;
        }
        Ok(())
    }

    fn tell_rounds(
        &mut self,
        outcomes: &[&Telling],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        let mut rows = Vec::new();
        // Where each round's first telling stands, here and among the rows.
        let mut firsts: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let Of::Round(round) = outcome.of else {
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
            let Of::Round(round) = outcome.of else {
                continue;
            };
            let Some(&(first, row)) = firsts.get(&round) else {
                continue;
            };
            receipts[place] = Some(match &before[row] {
                Some(stored) if stored.imputed => aside_receipt(
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

    /// Logs outcomes of rounds that are imputed: per round, the aside that was there before.
    fn tell_late(
        &mut self,
        outcomes: &[&Telling],
        firsts: &BTreeMap<u64, (usize, usize)>,
        before: &[Option<Outcome>],
    ) -> Result<BTreeMap<u64, Option<Aside>>> {
        let imputed = |row: usize| before[row].as_ref().is_some_and(|stored| stored.imputed);
        let late = firsts.iter().filter(|(_, (_, row))| imputed(*row));
        let asides: Vec<Aside> = late
            .map(|(&round, &(first, _))| aside((0, false), round, outcomes[first], self.now))
            .collect();
        if asides.is_empty() {
            return Ok(BTreeMap::new());
        }
        let known = self.store.add_asides(self.id, &asides)?;
        self.progress.late += known.iter().filter(|known| known.is_none()).count() as u64;
        Ok(asides.iter().map(|aside| aside.number).zip(known).collect())
    }

    fn tell_overtime(
        &mut self,
        outcomes: &[&Telling],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        // Where each decision's first telling stands, and what was stored before it.
        let mut firsts: BTreeMap<(u64, u64), (usize, Option<Aside>)> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let Of::Overtime { epoch, serial } = outcome.of else {
                continue;
            };
            if let Some((first, stored)) = firsts.get(&(epoch, serial)) {
                let receipt = aside_receipt(
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
            let aside = aside((epoch, true), serial, outcome, self.now);
            let stored = self.store.add_asides(self.id, &[aside])?.swap_remove(0);
            receipts[place] = Some(aside_receipt(
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

    pub(super) fn row(&self, round: u64, outcome: &Telling, imputed: bool) -> Outcome {
        Outcome {
            round,
            reward: outcome.reward,
            costs: outcome.costs.clone(),
            imputed,
            at: self.now,
        }
    }

    /// Counts the rows that were not there before.
    pub(super) fn count(&mut self, rows: &[Outcome], before: &[Option<Outcome>]) -> Result<()> {
        let first_round = self.live.engine.open_record().first_round;
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
            let action = self.live.engine.decide(row.round).action as usize;
            self.progress.told[action] += 1;
            self.progress.imputed[action] += u64::from(row.imputed);
        }
        Ok(())
    }
}

/// Requests that tell, and the receipts of all their outcomes.
#[derive(Default)]
struct Book<'a> {
    requests: Vec<(usize, &'a Vec<Telling>)>,
    receipts: Vec<Option<Receipt>>,
}

fn aside((epoch, overtime): (u64, bool), number: u64, outcome: &Telling, now: i64) -> Aside {
    Aside {
        epoch,
        overtime,
        number,
        reward: outcome.reward,
        costs: outcome.costs.clone(),
        at: now,
    }
}

/// The receipt of an outcome that is logged aside: `stored` is what was there before, `first` the group's first telling.
fn aside_receipt(
    stored: Option<&Aside>,
    outcome: &Telling,
    first: &Telling,
    is_first: bool,
    fresh: Receipt,
) -> Receipt {
    match stored {
        Some(stored) => judge(same(outcome, stored.reward, &stored.costs)),
        None if is_first => fresh,
        None => judge(same(outcome, first.reward, &first.costs)),
    }
}

fn same(outcome: &Telling, reward: f64, costs: &[f64]) -> bool {
    outcome.reward == reward && outcome.costs == costs
}

fn judge(same: bool) -> Receipt {
    if same {
        Receipt::Repeated
    } else {
        Receipt::Conflict
    }
}
