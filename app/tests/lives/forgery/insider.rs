//! What somebody can do who has the store, the program and its rules: make every hash and every count anew.

use std::collections::BTreeMap;

use debora::EpochRecord;
use debora_cli::hex;
use debora_cli::log::chain::{
    self, EpochParts, Fact, LeasesHash, RoundsHash, key_hash, record_text,
};
use debora_cli::log::{Heading, Line, OutsideOutcome};
use debora_cli::store::{DecisionKind, Event, OutcomeRow, Progress, UncountedOutcome};

/// Makes every hash of a finished experiment's lines anew, from what they say.
pub fn rehash(lines: &mut [Line]) {
    let journal = journal(lines);
    let (mut head, mut last_end) = (String::new(), 0);
    let mut epoch = OpenHashes::default();
    for line in lines.iter_mut() {
        match line {
            Line::Experiment(heading) => {
                head = genesis(heading);
                heading.genesis.clone_from(&head);
            }
            Line::Closed { .. } => last_end = epoch.close(line, &journal, &mut head),
            line => epoch.add(line),
        }
    }
    for hash in journal.range(last_end..).map(|(_, hash)| hash) {
        head = chain::head_after(&head, hash);
    }
    if let Some(Line::State { progress, .. }) = lines.last_mut() {
        progress.head = head;
        if let Some((position, hash)) = journal.last_key_value() {
            progress.next_position = position + 1;
            progress.journal.clone_from(hash);
        }
    }
}

/// Makes every count of a finished experiment's last line anew.
pub fn recount(lines: &mut [Line]) {
    let mut actions = BTreeMap::new();
    let Some(Line::State { progress, .. }) = lines.last() else {
        return;
    };
    let mut counted = Progress {
        decided: vec![0; progress.decided.len()],
        outcomes: vec![0; progress.decided.len()],
        imputed: vec![0; progress.decided.len()],
        late: 0,
        overtime: 0,
        holdback: 0,
        ..(**progress).clone()
    };
    for line in lines.iter() {
        match line {
            Line::Decisions(lease) => {
                for (round, action) in (lease.first..).zip(&lease.actions) {
                    actions.insert(round, *action as usize);
                    counted.decided[*action as usize] += 1;
                    counted.next_round = round + 1;
                }
            }
            Line::Outcome { round, imputed, .. } => {
                if let Some(action) = actions.get(round) {
                    counted.outcomes[*action] += 1;
                    counted.imputed[*action] += u64::from(*imputed);
                }
            }
            Line::Overtime(lease) => counted.overtime += lease.actions.len() as u64,
            Line::Holdback(lease) => counted.holdback += lease.actions.len() as u64,
            Line::Late { .. } => counted.late += 1,
            _ => {}
        }
    }
    counted.imputed_before.clone_from(&counted.imputed);
    counted.impute_from = counted.next_round;
    if let Some(Line::State { progress, .. }) = lines.last_mut() {
        **progress = counted;
    }
}

fn genesis(heading: &mut Heading) -> String {
    if let (Some(salt), Some(key)) = (&heading.salt, &heading.key)
        && let Some(Ok(salt)) = hex::decode(salt).map(<[u8; 16]>::try_from)
        && let Ok(key) = debora::Key::from_hex(key)
    {
        heading.key_hash = key_hash(salt, key);
    }
    let Heading {
        values_version,
        spec,
        key_hash,
        id,
        created_at,
        ..
    } = heading;
    chain::genesis(*values_version, spec, key_hash, id, *created_at)
}

/// The journal after each position.
fn journal(lines: &[Line]) -> BTreeMap<u64, String> {
    let mut journal = BTreeMap::new();
    let mut hash = String::new();
    for line in lines {
        let Some((position, uncounted)) = uncounted(line).or_else(|| event(line)) else {
            continue;
        };
        hash = match uncounted {
            Entry::Uncounted(outcome, actor) => {
                Fact::Uncounted(&outcome, actor.as_deref()).journal(&hash, position)
            }
            Entry::Event(event) => Fact::Event(&event).journal(&hash, position),
        };
        journal.insert(position, hash.clone());
    }
    journal
}

enum Entry {
    Uncounted(UncountedOutcome, Option<String>),
    Event(Event),
}

fn uncounted(line: &Line) -> Option<(u64, Entry)> {
    let (epoch, number, reward, costs, at, actor, position) = match line {
        Line::OvertimeOutcome(OutsideOutcome {
            epoch,
            serial,
            reward,
            costs,
            at,
            actor,
            position,
        })
        | Line::HoldbackOutcome(OutsideOutcome {
            epoch,
            serial,
            reward,
            costs,
            at,
            actor,
            position,
        }) => (*epoch, *serial, reward, costs, at, actor, position),
        Line::Late {
            round,
            reward,
            costs,
            at,
            actor,
            position,
        } => (0, *round, reward, costs, at, actor, position),
        _ => return None,
    };
    let outcome = UncountedOutcome {
        epoch,
        kind: match line {
            Line::OvertimeOutcome(_) => DecisionKind::Overtime,
            Line::HoldbackOutcome(_) => DecisionKind::Holdback,
            _ => DecisionKind::Round,
        },
        number,
        reward: *reward,
        costs: costs.clone(),
        at: *at,
        actor: 0,
        position: *position,
    };
    Some((*position, Entry::Uncounted(outcome, actor.clone())))
}

fn event(line: &Line) -> Option<(u64, Entry)> {
    let Line::Event {
        at,
        actor,
        what,
        reason,
        position,
    } = line
    else {
        return None;
    };
    let event = Event {
        at: *at,
        actor: actor.clone(),
        what: what.clone(),
        reason: reason.clone(),
        position: *position,
    };
    Some((*position, Entry::Event(event)))
}

/// The hashes of the epoch that is being read.
struct OpenHashes {
    record: Option<EpochRecord>,
    opened_at: i64,
    actions: BTreeMap<u64, u32>,
    rounds: RoundsHash,
    leases: LeasesHash,
}

impl Default for OpenHashes {
    fn default() -> Self {
        Self {
            record: None,
            opened_at: 0,
            actions: BTreeMap::new(),
            rounds: RoundsHash::default(),
            leases: LeasesHash::from(0),
        }
    }
}

impl OpenHashes {
    fn add(&mut self, line: &Line) {
        match line {
            Line::Epoch { opened_at, record } => {
                *self = Self {
                    record: Some((**record).clone()),
                    opened_at: *opened_at,
                    ..Self::default()
                };
            }
            Line::Decisions(lease) => {
                self.actions
                    .extend((lease.first..).zip(lease.actions.iter().copied()));
                self.leases
                    .add(&lease.lease(DecisionKind::Round), lease.actor.as_deref());
            }
            Line::Overtime(lease) => self
                .leases
                .add(&lease.lease(DecisionKind::Overtime), lease.actor.as_deref()),
            Line::Holdback(lease) => self
                .leases
                .add(&lease.lease(DecisionKind::Holdback), lease.actor.as_deref()),
            Line::Outcome {
                round,
                reward,
                costs,
                imputed,
                at,
                actor,
            } => {
                let outcome = OutcomeRow {
                    round: *round,
                    reward: *reward,
                    costs: costs.clone(),
                    imputed: *imputed,
                    at: *at,
                    actor: 0,
                };
                let action = self.actions.get(round).copied().unwrap_or_default();
                self.rounds.add(action, &outcome, actor.as_deref());
            }
            _ => {}
        }
    }

    /// Writes the end of the epoch anew: where the journal goes on.
    fn close(&mut self, line: &mut Line, facts: &BTreeMap<u64, String>, head: &mut String) -> u64 {
        let Line::Closed {
            rounds,
            rounds_hash,
            previous,
            hash,
            closed_at,
            leases_hash,
            journal_end,
            journal,
            early,
            ..
        } = line
        else {
            return 0;
        };
        let Some(record) = self.record.take() else {
            return 0;
        };
        *rounds = self.actions.len() as u64;
        *rounds_hash = self.rounds.to_hex();
        *leases_hash = self.leases.to_hex();
        // What was removed before the end leaves no gap there.
        let last = facts.range(..*journal_end).next_back();
        *journal_end = last.map_or(0, |(position, _)| position + 1);
        *journal = last.map(|(_, hash)| hash.clone()).unwrap_or_default();
        previous.clone_from(head);
        let record = record.with_rounds(*rounds);
        let parts = EpochParts {
            record: &record_text(&record),
            opened_at: self.opened_at,
            closed_at: *closed_at,
            rounds_hash,
            leases_hash,
            journal_end: *journal_end,
            journal,
            early: *early,
        };
        *hash = parts.hash(head);
        head.clone_from(hash);
        *journal_end
    }
}
