//! Outcomes: which count, which were told before, which come too late. A round's first outcome stays.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::log::chain::Fact;
use crate::service::behind;
use crate::service::request::{DecisionId, KeyedOutcome, Receipt, Refusal, Request, ToldOutcome};
use crate::service::turn::Turn;
use crate::store::{DecisionKind, Lease, OutcomeRow, Status, UncountedOutcome};

type ToldReceipts = Result<Vec<Receipt>, Refusal>;

/// A decision outside the horizon: its kind, epoch and serial.
type UncountedId = (DecisionKind, u64, u64);

/// What was said of a decision. Compared as numbers: they are finite, or the problem would have refused them.
#[derive(Clone, Copy, PartialEq)]
struct Values<'a> {
    reward: f64,
    costs: &'a [f64],
}

/// An outcome, and whoever tells it, by name and number.
#[derive(Clone, Copy)]
struct Sent<'a> {
    outcome: &'a ToldOutcome,
    name: &'a str,
    actor: u64,
}

/// A round that is told in this group.
struct ToldRound {
    round: u64,
    /// The place of its first outcome in the group.
    first: usize,
    /// The outcome that it had before, told or imputed.
    before: Option<OutcomeRow>,
    /// If that was imputed: the late one that it had before.
    late: Option<UncountedOutcome>,
}

impl ToldRound {
    fn is_imputed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.imputed)
    }

    /// The receipt of the outcome at this place.
    fn receipt(&self, place: usize, outcomes: &[Sent<'_>]) -> Receipt {
        let in_group = (place != self.first).then(|| told(outcomes[self.first]));
        if self.is_imputed() {
            // Beside the imputed values anything would be a conflict: it is the late ones that
            // another late one repeats or contradicts.
            let late = self.late.as_ref().map(logged);
            return receipt(outcomes[place], late.or(in_group), Receipt::Late);
        }
        let stored = self.before.as_ref().map(counted);
        receipt(outcomes[place], stored.or(in_group), Receipt::Recorded)
    }
}

impl Turn<'_> {
    /// Records the outcomes of all requests that tell, and gives each its receipts.
    pub(super) fn tell(&mut self, group: &[&Request]) -> Result<Vec<(usize, ToldReceipts)>> {
        let mut answers = Vec::new();
        let mut accepted: Vec<(usize, Cow<'_, [ToldOutcome]>, &str)> = Vec::new();
        for (place, request) in group.iter().enumerate() {
            let (found, actor) = match request {
                Request::Tell(tell) => (Ok(Cow::from(&tell.outcomes)), &tell.actor),
                Request::TellKeyed(tell) => {
                    let found = self.find(&tell.outcomes, &tell.keyed)?;
                    (found.map(Cow::from), &tell.actor)
                }
                _ => continue,
            };
            // All outcomes of a request are checked before any is recorded: all or nothing.
            match found.and_then(|outcomes| self.check(&outcomes).map(|()| outcomes)) {
                Err(refusal) => answers.push((place, Err(refusal))),
                Ok(outcomes) => accepted.push((place, outcomes, actor)),
            }
        }
        if accepted.is_empty() {
            return Ok(answers);
        }
        // The outcomes are told together: one statement of the store takes the outcomes of all requests.
        let outcomes: Vec<Sent<'_>> = accepted
            .iter()
            .flat_map(|(_, outcomes, name)| {
                let actor = self.actors[*name];
                outcomes.iter().map(move |outcome| Sent {
                    outcome,
                    name,
                    actor,
                })
            })
            .collect();
        let mut receipts = self.record(&outcomes)?.into_iter();
        for (place, outcomes, _) in &accepted {
            answers.push((*place, Ok(receipts.by_ref().take(outcomes.len()).collect())));
        }
        Ok(answers)
    }

    /// The outcomes with their decisions, where only request keys were given. A key that was given nothing leaves its outcome
    /// unknown.
    fn find(
        &mut self,
        outcomes: &[ToldOutcome],
        keyed: &[KeyedOutcome],
    ) -> Result<Result<Vec<ToldOutcome>, Refusal>> {
        // Here and not before the transaction: what was decided by now is found, on whichever node.
        let keys: BTreeSet<&str> = keyed.iter().map(|one| one.request_key.as_str()).collect();
        let keys: Vec<&str> = keys.into_iter().collect();
        let leases = self.store.leases_of(self.id, &keys)?;
        let leases: BTreeMap<&str, &Lease> = leases
            .iter()
            .filter_map(|lease| Some((lease.request_key.as_deref()?, lease)))
            .collect();
        let mut outcomes = outcomes.to_vec();
        for one in keyed {
            if let Some(lease) = leases.get(one.request_key.as_str()) {
                match decision_of(lease, one) {
                    Ok(decision) => outcomes[one.place].decision = decision,
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
        }
        Ok(Ok(outcomes))
    }

    fn check(&self, outcomes: &[ToldOutcome]) -> Result<(), Refusal> {
        // A done experiment still takes outcomes: repetitions, and late ones for its log. A closed
        // one has been certified as it is.
        if self.progress.status == Status::Closed {
            return Err(self.refuse_closed());
        }
        let problem = self.resident.engine.problem();
        let mut fixed = vec![0; problem.quantities()];
        for (index, outcome) in outcomes.iter().enumerate() {
            let judged = problem.to_fixed(0, outcome.reward, &outcome.costs, &mut fixed);
            judged.map_err(|error| Refusal::Outcome { index, error })?;
        }
        Ok(())
    }

    fn record(&mut self, outcomes: &[Sent<'_>]) -> Result<Vec<Receipt>> {
        self.look_for_unknown(outcomes);
        // What is left empty here is of a decision that was never made.
        let mut receipts = vec![None; outcomes.len()];
        self.tell_rounds(outcomes, &mut receipts)?;
        self.tell_uncounted(outcomes, &mut receipts)?;
        Ok(receipts
            .into_iter()
            .map(|receipt| receipt.unwrap_or(Receipt::Unknown))
            .collect())
    }

    /// Warns of rounds that only another copy of the store can have decided.
    fn look_for_unknown(&self, outcomes: &[Sent<'_>]) {
        let rounds = outcomes
            .iter()
            .filter_map(|sent| match sent.outcome.decision {
                DecisionId::Round(round) => Some(round),
                DecisionId::Overtime { .. } | DecisionId::Holdback { .. } => None,
            });
        let last = rounds.max().unwrap_or_default();
        if last >= self.progress.next_round {
            behind::warn(self.id, last, self.progress.next_round - 1);
        }
    }

    fn tell_rounds(
        &mut self,
        outcomes: &[Sent<'_>],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        let mut rounds = self.rounds_of(outcomes);
        let rows: Vec<OutcomeRow> = rounds
            .iter()
            .map(|told| self.row(told.round, outcomes[told.first]))
            .collect();
        // The store takes only a round's first outcome and returns those it had: asking it first
        // what it has would read every outcome once more.
        let before = self.store.add_outcomes(self.id, &rows)?;
        self.count(&rows, &before)?;
        for (told, before) in rounds.iter_mut().zip(before) {
            told.before = before;
        }
        self.log_late(outcomes, &mut rounds)?;
        for (place, sent) in outcomes.iter().enumerate() {
            if let DecisionId::Round(round) = sent.outcome.decision
                && let Ok(found) = rounds.binary_search_by_key(&round, |told| told.round)
            {
                receipts[place] = Some(rounds[found].receipt(place, outcomes));
            }
        }
        Ok(())
    }

    /// The decided rounds among these outcomes, in order, each once.
    fn rounds_of(&self, outcomes: &[Sent<'_>]) -> Vec<ToldRound> {
        let mut rounds = Vec::with_capacity(outcomes.len());
        for (first, sent) in outcomes.iter().enumerate() {
            if let DecisionId::Round(round) = sent.outcome.decision
                && (1..self.progress.next_round).contains(&round)
            {
                rounds.push(ToldRound {
                    round,
                    first,
                    before: None,
                    late: None,
                });
            }
        }
        // Of a round that is told twice the first place comes first, and stays.
        rounds.sort_by_key(|told| told.round);
        rounds.dedup_by_key(|told| told.round);
        rounds
    }

    /// Logs outcomes of rounds that were imputed. They change nothing: an epoch may have been closed with the imputed values,
    /// and decisions made from it.
    fn log_late(&mut self, outcomes: &[Sent<'_>], rounds: &mut [ToldRound]) -> Result<()> {
        let late = rounds.iter().filter(|told| told.is_imputed());
        // Late outcomes are kept under epoch 0, whatever their round's: a round is unique.
        let (rows, names): (Vec<UncountedOutcome>, Vec<&str>) = late
            .map(|told| (told.round, outcomes[told.first]))
            .zip(self.progress.next_position..)
            .map(|((round, sent), position)| {
                (
                    self.uncounted((DecisionKind::Round, 0, round), sent, position),
                    sent.name,
                )
            })
            .unzip();
        if rows.is_empty() {
            return Ok(());
        }
        let known = self.store.add_uncounted(self.id, &rows)?;
        for ((row, name), known) in rows.iter().zip(names).zip(&known) {
            self.enter(row, name, known.as_ref());
        }
        self.progress.late += known.iter().filter(|known| known.is_none()).count() as u64;
        let imputed = rounds.iter_mut().filter(|told| told.is_imputed());
        for (told, known) in imputed.zip(known) {
            told.late = known;
        }
        Ok(())
    }

    /// Logs outcomes of decisions outside the horizon. Together, too: of a holdback there may be as many as of rounds.
    fn tell_uncounted(
        &mut self,
        outcomes: &[Sent<'_>],
        receipts: &mut [Option<Receipt>],
    ) -> Result<()> {
        let firsts = self.served_among(outcomes)?;
        if firsts.is_empty() {
            return Ok(());
        }
        let mut told_first: Vec<_> = firsts.iter().map(|(id, place)| (*place, *id)).collect();
        // In the journal they stand as they were told.
        told_first.sort_unstable();
        let rows: Vec<UncountedOutcome> = told_first
            .iter()
            .zip(self.progress.next_position..)
            .map(|(&(place, id), position)| self.uncounted(id, outcomes[place], position))
            .collect();
        let mut stored = BTreeMap::new();
        let before = self.store.add_uncounted(self.id, &rows)?;
        for ((row, (place, id)), before) in rows.iter().zip(told_first).zip(before) {
            let sent = outcomes[place];
            self.enter(row, sent.name, before.as_ref());
            if before.is_none() {
                self.observe_uncounted(row.kind, sent.outcome)?;
            }
            stored.insert(id, before);
        }
        for (place, sent) in outcomes.iter().enumerate() {
            let Some(id) = sent.outcome.decision.uncounted() else {
                continue;
            };
            if let (Some(&first), Some(stored)) = (firsts.get(&id), stored.get(&id)) {
                let in_group = (place != first).then(|| told(outcomes[first]));
                let before = stored.as_ref().map(logged).or(in_group);
                let fresh = match id.0 {
                    DecisionKind::Holdback => Receipt::Holdback,
                    _ => Receipt::Overtime,
                };
                receipts[place] = Some(receipt(*sent, before, fresh));
            }
        }
        Ok(())
    }

    /// The decisions outside the horizon that were handed out, and the place where each is first told.
    fn served_among(&mut self, outcomes: &[Sent<'_>]) -> Result<BTreeMap<UncountedId, usize>> {
        let mut firsts = BTreeMap::new();
        for (place, sent) in outcomes.iter().enumerate() {
            if let Some(id) = sent.outcome.decision.uncounted() {
                firsts.entry(id).or_insert(place);
            }
        }
        let ids: Vec<UncountedId> = firsts.keys().copied().collect();
        for same in ids.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            for id in &same[self.served(same)?..] {
                firsts.remove(id);
            }
        }
        // Serials count from 1.
        firsts.retain(|(_, _, serial), _| *serial > 0);
        Ok(firsts)
    }

    /// How many of these, which are of one kind and epoch and in the order of their serials, were handed out.
    fn served(&mut self, same: &[UncountedId]) -> Result<usize> {
        // Serials are handed out in order, so all those before one that was were, too. The last is looked up first: nearly
        // always that is all.
        let (mut served, mut unserved) = (0, same.len());
        let mut looked_up = same.len() - 1;
        while served < unserved {
            if self.was_served(same[looked_up])? {
                served = looked_up + 1;
            } else {
                unserved = looked_up;
            }
            looked_up = (served + unserved) / 2;
        }
        Ok(served)
    }

    /// Whether a decision with this serial, or one after it, was handed out in the epoch.
    fn was_served(&mut self, (kind, epoch, serial): UncountedId) -> Result<bool> {
        // Serials stay below 2^53, as rounds do, and the largest would not fit a store's integers.
        if serial >= 1 << 53 || epoch > self.progress.epoch {
            return Ok(false);
        }
        // A lease that ends at or after the serial.
        Ok(!self
            .store
            .leases(self.id, epoch, kind, serial, 1)?
            .is_empty())
    }

    /// Enters an outcome into the journal, unless there was one before it: then nothing stands at its position.
    fn enter(&mut self, row: &UncountedOutcome, name: &str, before: Option<&UncountedOutcome>) {
        if before.is_none() {
            Fact::Uncounted(row, Some(name)).enter(row.position, &mut self.progress);
        }
    }

    fn row(&self, round: u64, Sent { outcome, actor, .. }: Sent<'_>) -> OutcomeRow {
        OutcomeRow {
            round,
            reward: outcome.reward,
            costs: outcome.costs.clone(),
            imputed: false,
            at: self.time.at,
            actor,
        }
    }

    fn uncounted(
        &self,
        (kind, epoch, number): UncountedId,
        Sent { outcome, actor, .. }: Sent<'_>,
        position: u64,
    ) -> UncountedOutcome {
        UncountedOutcome {
            epoch,
            kind,
            number,
            reward: outcome.reward,
            costs: outcome.costs.clone(),
            at: self.time.at,
            actor,
            position,
        }
    }

    /// Counts the rows that were not there before.
    pub(super) fn count(
        &mut self,
        rows: &[OutcomeRow],
        before: &[Option<OutcomeRow>],
    ) -> Result<()> {
        let engine = &self.resident.engine;
        let first_round = engine.open_record().first_round;
        let fresh: Vec<&OutcomeRow> = rows
            .iter()
            .zip(before)
            .filter(|(_, before)| before.is_none())
            .map(|(row, _)| row)
            .collect();
        // An epoch closes when all its rounds have an outcome, so only the open epoch can have a round
        // without one.
        if let Some(lost) = fresh.iter().find(|row| row.round < first_round) {
            bail!(
                "experiment {}: the outcome of round {} is missing from the store",
                self.id,
                lost.round
            );
        }
        // Drawn again: leases are not looked up to be told. Together, as the rounds of a permuted block
        // share an order that takes as long to draw as all of them.
        let mut actions = vec![0; fresh.len()];
        engine.decide_many(fresh.iter().map(|row| row.round), &mut actions);
        for (row, &action) in fresh.iter().zip(&actions) {
            self.progress.outcomes[action as usize] += 1;
            self.progress.imputed[action as usize] += u64::from(row.imputed);
        }
        self.observe(&fresh, &actions)
    }

    /// Adds rows that were not there before to what was observed.
    fn observe(&mut self, fresh: &[&OutcomeRow], actions: &[u32]) -> Result<()> {
        if fresh.is_empty() {
            return Ok(());
        }
        let mut fixed = vec![0; self.resident.engine.problem().quantities()];
        // Even if all are imputed, which were not observed: a look may be due.
        self.observed()?;
        let (problem, observed) = (self.resident.engine.problem(), &mut self.observed);
        let told = fresh.iter().zip(actions).filter(|(row, _)| !row.imputed);
        for (row, &action) in told {
            problem.to_fixed(0, row.reward, &row.costs, &mut fixed)?;
            if let Some(observed) = observed {
                observed.tell(action, &fixed);
            }
        }
        Ok(())
    }

    fn observe_uncounted(&mut self, kind: DecisionKind, outcome: &ToldOutcome) -> Result<()> {
        let problem = self.resident.engine.problem();
        let mut fixed = vec![0; problem.quantities()];
        problem.to_fixed(0, outcome.reward, &outcome.costs, &mut fixed)?;
        self.observed()?.tell_uncounted(kind, &fixed);
        Ok(())
    }
}

/// The decision that an outcome is of, among those that its key was given.
fn decision_of(lease: &Lease, outcome: &KeyedOutcome) -> Result<DecisionId, Refusal> {
    let rounds = lease.actions.len() as u64;
    // Without an index only where nothing else can be meant: a guess would count an outcome for another action.
    let only = (rounds == 1).then_some(0);
    let index = outcome.index.or(only).filter(|&index| index < rounds);
    let number = lease.first
        + index.ok_or_else(|| Refusal::OutcomeIndex {
            place: outcome.place,
            request_key: outcome.request_key.clone(),
            rounds,
            index: outcome.index,
        })?;
    let (epoch, serial) = (lease.epoch, number);
    Ok(match lease.kind {
        DecisionKind::Round => DecisionId::Round(number),
        DecisionKind::Overtime => DecisionId::Overtime { epoch, serial },
        DecisionKind::Holdback => DecisionId::Holdback { epoch, serial },
    })
}

fn told<'a>(sent: Sent<'a>) -> Values<'a> {
    Values {
        reward: sent.outcome.reward,
        costs: &sent.outcome.costs,
    }
}

fn counted(row: &OutcomeRow) -> Values<'_> {
    Values {
        reward: row.reward,
        costs: &row.costs,
    }
}

fn logged(row: &UncountedOutcome) -> Values<'_> {
    Values {
        reward: row.reward,
        costs: &row.costs,
    }
}

/// The receipt of an outcome, beside what was said of its decision before; `fresh` if nothing was.
fn receipt(sent: Sent<'_>, before: Option<Values<'_>>, fresh: Receipt) -> Receipt {
    match before {
        None => fresh,
        Some(before) if before == told(sent) => Receipt::Repeated,
        Some(_) => Receipt::Conflict,
    }
}
