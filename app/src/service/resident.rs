//! An experiment in memory: its engine as of the open epoch's beginning, and its rules. All of it can be read again.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use debora::Engine;
use debora::spec::ServiceSpec;

use crate::log::chain::{EpochSum, LeasesHash};
use crate::log::experiment::{StoredExperiment, sum};
use crate::log::observed::Observed;
use crate::service::request::EpochLabels;
use crate::store::{DecisionKind, Lease, Progress, Store};

/// Outcomes read at once, and how many gather before they are added up.
const CHUNK: usize = 1_024;

/// Leases read at once: each may hold ten thousand actions.
const LEASES_A_READ: usize = 256;

/// Reads of outcomes, and of leases, that one group of requests does ahead, and how many more for each chunk that was told since:
/// some ten milliseconds, and more rows than were told. After a restart within a long epoch there is more to read than others
/// should wait for.
const READS_AHEAD: usize = 16;
const READS_A_CHUNK: usize = 4;

/// An experiment in memory.
pub struct Resident {
    /// At the beginning of the open epoch: nothing of it handed out or told. After the end, of the last epoch.
    pub engine: Engine,
    /// What happens while waiting, and to outcomes that never come.
    pub rules: ServiceSpec,
    /// What the open epoch's decisions are drawn from.
    pub labels: Arc<EpochLabels>,
    /// What answers to those who are held back say, if anybody is.
    held_back: Option<Arc<EpochLabels>>,
    /// The open epoch's rounds, as far as they are told without a gap and were read.
    epoch_sum: EpochSum,
    /// The open epoch's leases, as far as they were read or written here.
    leases: LeasesHash,
    /// When the open epoch was opened.
    pub opened_at: i64,
    /// How many of the open epoch's rounds were told when outcomes were last added up.
    told_at_last_read: u64,
    /// What was observed, after the text by which it was stored: where the store still has that text, nobody has to read it.
    pub observed: Option<(String, Observed)>,
}

impl Resident {
    /// Of an engine at the beginning of an epoch.
    pub fn new(engine: Engine, rules: ServiceSpec, opened_at: i64) -> Self {
        let actions = engine.problem().actions().to_vec();
        let held_back = rules
            .holdback
            .map(|holdback| Arc::new(EpochLabels::certain(actions.clone(), holdback.action)));
        let labels = EpochLabels::new(actions, engine.strategy().probabilities().to_vec());
        Self {
            epoch_sum: EpochSum::of(&engine),
            leases: LeasesHash::from(engine.open_record().first_round),
            opened_at,
            labels: Arc::new(labels),
            held_back,
            engine,
            rules,
            told_at_last_read: 0,
            observed: None,
        }
    }

    /// Reads an experiment: its spec and its last epoch, whatever the number of rounds.
    pub fn read(store: &mut Store, id: &str) -> Result<Option<Self>> {
        let Some((experiment, progress)) = store.experiment(id)? else {
            return Ok(None);
        };
        let stored = StoredExperiment::restore(store, experiment, progress)?;
        let mut resident = Self::new(stored.engine, stored.spec.service, stored.opened_at);
        // Not added up at once: an experiment that is asked for now and then would have its whole epoch read each time.
        resident.told_at_last_read = resident.told(&stored.progress);
        Ok(Some(resident))
    }

    /// What the open epoch's decisions of a kind say beside the numbers of actions.
    pub fn labels_of(&self, kind: DecisionKind) -> &Arc<EpochLabels> {
        match (kind, &self.held_back) {
            (DecisionKind::Holdback, Some(held_back)) => held_back,
            _ => &self.labels,
        }
    }

    /// How many of the open epoch's rounds have an outcome.
    fn told(&self, progress: &Progress) -> u64 {
        // A damaged progress may have fewer than the epochs before.
        let outcomes = sum(&progress.outcomes).unwrap_or_default();
        (outcomes + 1).saturating_sub(self.engine.open_record().first_round)
    }

    /// All rounds of the open epoch below this one are known to have an outcome.
    pub fn next_untold(&self) -> u64 {
        self.epoch_sum.next
    }

    /// Whether all rounds of the open epoch are decided.
    pub fn is_decided(&self, progress: &Progress) -> bool {
        self.engine.is_handed_out_at(&progress.decided)
    }

    /// Whether all of them have their outcomes, too.
    pub fn is_complete(&self, progress: &Progress) -> bool {
        progress.outstanding() == 0 && self.is_decided(progress)
    }

    /// Adds up told rounds once there are many, so that closing a long epoch finds little left to read. What is far behind, as
    /// after a restart, is made up for in steps.
    ///
    /// While a gap stops it, it tries again only after as many more outcomes.
    pub fn catch_up(&mut self, store: &mut Store, id: &str, progress: &Progress) -> Result<()> {
        let told = self.told(progress);
        // Counted from the last try and not from what is added up: one outcome that is missing early in the
        // epoch would otherwise have all later ones read again with every request.
        let chunks = told.saturating_sub(self.told_at_last_read) as usize / CHUNK;
        if chunks > 0 {
            self.told_at_last_read = told;
            let reads = READS_AHEAD + READS_A_CHUNK * chunks;
            for _ in 0..reads {
                if !self.add_chunk(store, id, progress)? {
                    break;
                }
            }
            // Overtime only behind the last round: its hash comes after theirs.
            let overtime = self.is_decided(progress);
            self.read_leases(store, id, progress, overtime, reads)?;
        }
        Ok(())
    }

    /// Hashes a lease that was just written, if all before it are hashed: most are never read again.
    pub fn note_lease(&mut self, lease: &Lease, actor: Option<&str>, progress: &Progress) {
        // Overtime is hashed after all rounds of its epoch. Of a lease that does not follow, the ones before are another node's,
        // or older than this resident: all of them are read when they are needed.
        let follows = lease.first == self.leases.next(lease.kind);
        let overtime = lease.kind == DecisionKind::Overtime;
        let rounds_are_hashed =
            progress.next_round == self.leases.next_round && self.is_decided(progress);
        if follows && (!overtime || rounds_are_hashed) {
            self.leases.add(lease, actor);
        }
    }

    /// Hashes the epoch's leases that are not hashed yet, as far as so many reads go.
    fn read_leases(
        &mut self,
        store: &mut Store,
        id: &str,
        progress: &Progress,
        with_overtime: bool,
        reads: usize,
    ) -> Result<()> {
        let epoch = progress.epoch;
        let mut reads = 0..reads;
        for kind in DecisionKind::ALL {
            if kind == DecisionKind::Overtime && !with_overtime {
                continue;
            }
            loop {
                let next = self.leases.next(kind);
                if next >= progress.next(kind) {
                    break;
                }
                if reads.next().is_none() {
                    return Ok(());
                }
                let leases = store.leases(id, epoch, kind, next, LEASES_A_READ)?;
                // The progress counts them, so one that is missing is damage: a hash without it would be another than the
                // audit finds.
                ensure!(
                    leases.first().is_some_and(|lease| lease.first == next),
                    "experiment {id}: the request that was given {next} in epoch {epoch} is missing; run `debora audit` to \
                     find out more"
                );
                for lease in &leases {
                    let actor = store.actor_name(lease.actor)?;
                    self.leases.add(lease, actor.as_deref());
                }
            }
        }
        Ok(())
    }

    /// The hash over the open epoch's leases.
    pub fn leases_hash(
        &mut self,
        store: &mut Store,
        id: &str,
        progress: &Progress,
    ) -> Result<String> {
        self.read_leases(store, id, progress, true, usize::MAX)?;
        Ok(self.leases.to_hex())
    }

    /// The hash over the rounds of the open epoch that have an outcome, with gaps where they are outstanding.
    pub fn rounds_hash_so_far(
        &self,
        store: &mut Store,
        id: &str,
        progress: &Progress,
    ) -> Result<String> {
        let mut hash = self.epoch_sum.rounds_hash().clone();
        let mut next = self.epoch_sum.next;
        loop {
            let mut outcomes = store.outcomes(id, next, CHUNK)?;
            outcomes.retain(|outcome| outcome.round < progress.next_round);
            let Some(last) = outcomes.last() else {
                return Ok(hash.to_hex());
            };
            next = last.round + 1;
            let mut actions = vec![0; outcomes.len()];
            let rounds = outcomes.iter().map(|outcome| outcome.round);
            self.engine.decide_many(rounds, &mut actions);
            for (outcome, action) in outcomes.iter().zip(actions) {
                let actor = store.actor_name(outcome.actor)?;
                hash.add(action, outcome, actor.as_deref());
            }
        }
    }

    /// Adds up to a chunk of rounds. False where a gap stops it, or the last decided round.
    fn add_chunk(&mut self, store: &mut Store, id: &str, progress: &Progress) -> Result<bool> {
        let before = self.epoch_sum.next;
        let outcomes = store.outcomes(id, before, CHUNK)?;
        // Sums are exact and could be taken in any order, but the hash is over the rounds in order.
        let told = outcomes
            .iter()
            .zip(before..progress.next_round)
            .take_while(|(outcome, round)| outcome.round == *round)
            .count();
        let mut actions = vec![0; told];
        // Drawn again, which is cheaper than reading the leases that have them, and together: rounds of a
        // permuted block share its order.
        self.engine.decide_many(before.., &mut actions);
        for (outcome, action) in outcomes.iter().zip(actions) {
            let actor = store.actor_name(outcome.actor)?;
            self.epoch_sum
                .add(action, outcome, actor.as_deref(), &self.engine)?;
        }
        Ok(told == CHUNK)
    }

    /// The whole epoch's rounds.
    pub fn whole_epoch_sum(
        &mut self,
        store: &mut Store,
        id: &str,
        progress: &Progress,
    ) -> Result<&EpochSum> {
        while self.add_chunk(store, id, progress)? {}
        // The counts say that every round has an outcome, so a gap here is damage: an epoch closed
        // without one would have other estimates than the audit finds.
        if self.epoch_sum.next != progress.next_round {
            bail!(
                "experiment {id}: the outcome of round {} is missing; run `debora audit` to find out more",
                self.epoch_sum.next
            );
        }
        Ok(&self.epoch_sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::service::clock::Moment;
    use crate::service::request::{Create, Decide, DecisionId, Request, Tell, ToldOutcome};
    use crate::service::transaction::Executor;
    use crate::store::{Location, Purpose};

    /// The first group after a restart reads a part of a long epoch, later ones the rest, and the hashes are those of one who reads all.
    #[test]
    fn a_long_epoch_is_read_in_steps_after_a_restart() {
        let folder = Scratch::new("steps");
        let location = Location::Sqlite(folder.join("store.db"));
        let open = |purpose| location.open(purpose).unwrap();
        let mut executor = Executor::start(open(Purpose::Serve), Moment::both(0)).unwrap();
        let actor = "tester";
        let mut served = |requests: &[Request]| {
            for answer in executor.serve(requests, Moment::both(0)) {
                answer.unwrap();
            }
        };
        served(&[Request::Create(Create {
            id: "long".into(),
            spec: "policy = 'soft'\nhorizon = 1e12\nrho = 0.3\nactions = ['a', 'b']
                [[cost]]\nname = 'price'\nthreshold = 0.5"
                .into(),
            key: None,
            blind: true,
            actor: actor.into(),
        })]);
        let decide = |_| {
            Request::Decide(Decide {
                id: "long".into(),
                rounds: 2,
                request_key: None,
                seen: 0,
                actor: actor.into(),
            })
        };
        let leases = LEASES_A_READ * (READS_AHEAD + 3 * READS_A_CHUNK);
        for _ in 0..leases.div_ceil(1_000) {
            served(&(0..1_000).map(decide).collect::<Vec<_>>());
        }
        let tell = |rounds: std::ops::Range<u64>| {
            Request::Tell(Tell {
                id: "long".into(),
                outcomes: rounds
                    .map(|round| ToldOutcome {
                        decision: DecisionId::Round(round),
                        reward: 0.5,
                        costs: vec![0.5],
                    })
                    .collect(),
                actor: actor.into(),
            })
        };
        served(&[tell(1..5_001), tell(5_001..10_001)]);
        let mut store = open(Purpose::Read);
        store.begin().unwrap();
        let (_, before) = store.experiment("long").unwrap().unwrap();
        let mut resident = Resident::read(&mut store, "long").unwrap().unwrap();
        let mut told = before.clone();
        for step in 1..=4 {
            told.outcomes[0] += CHUNK as u64;
            resident.catch_up(&mut store, "long", &told).unwrap();
            let read = (step * LEASES_A_READ * (READS_AHEAD + READS_A_CHUNK)) as u64;
            assert_eq!(
                resident.leases.next(DecisionKind::Round),
                (1 + 2 * read).min(before.next_round)
            );
        }
        assert_eq!(resident.next_untold(), 10_001);
        let mut at_once = Resident::read(&mut store, "long").unwrap().unwrap();
        let mut hashes = |resident: &mut Resident| {
            [
                resident.leases_hash(&mut store, "long", &before).unwrap(),
                resident
                    .rounds_hash_so_far(&mut store, "long", &before)
                    .unwrap(),
            ]
        };
        assert_eq!(hashes(&mut resident), hashes(&mut at_once));
    }
}
