//! The hash chain: whatever is stored of an experiment is in the hash of the epoch in whose time it was stored, and that hash
//! is in all that follow.
//!
//! ```text
//! key hash    = SHA-256(salt, key)
//! head before = SHA-256("debora log 2\n", values version, SHA-256(spec), key hash, id, created_at)
//! rounds hash = SHA-256 over the epoch's rounds in order of (round, action, imputed, reward, costs, at, actor)
//! leases hash = SHA-256 over its leases, counted ones by round, then overtime by serial, of
//!               (0, or 1 of overtime, first, number of actions, actions, asked, request key, at, waited, actor);
//!               if any were held back, then a byte 2 and the SHA-256 over those by serial, of the same with 2 at the beginning
//! journal     = SHA-256("debora fact 2\n", journal before, position, fact), empty before the first fact; a fact is
//!               an event ("event", at, actor, what, reason) or an uncounted outcome
//!               ("late", "overtime_outcome" or "holdback_outcome", epoch, round or serial, number of costs, reward, costs, at, actor)
//! hash        = SHA-256("debora epoch 2\n", hash before, record as JSON, opened_at, closed_at, rounds hash, leases hash,
//!               next position, journal)
//! ```
//!
//! An experiment that is closed early ends with a hash over what its open epoch has so far, made in the same way after
//! "debora final 2\n". What comes after the end is chained one by one: head = SHA-256("debora after 2\n", head, journal).
//!
//! Integers are little endian, of 8 bytes (actions and the values version 4, truth values 1), numbers the 8 bytes of their
//! bits, hashes 32 bytes. A text is its length and its bytes; one that may be missing has 1 before it, or is a single 0.

use debora::{Engine, EpochRecord, Error, Key, Tally};
use sha2::{Digest as _, Sha256};

use crate::hex;
use crate::store::{
    DecisionKind, Event, ExperimentRow, Lease, OutcomeRow, Progress, UncountedOutcome,
};

/// What a hash is over, part by part: written so that no two lists of parts give the same bytes.
#[derive(Clone, Debug, Default)]
struct Parts(Sha256);

impl Parts {
    fn after(prefix: &str) -> Self {
        // The prefixes differ, so that no head can be passed off as another kind of hash.
        Self(Sha256::new_with_prefix(prefix))
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_le_bytes());
        self
    }

    fn time(&mut self, time: i64) -> &mut Self {
        self.0.update(time.to_le_bytes());
        self
    }

    fn action(&mut self, action: u32) -> &mut Self {
        self.0.update(action.to_le_bytes());
        self
    }

    fn truth(&mut self, truth: bool) -> &mut Self {
        self.byte(u8::from(truth))
    }

    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.update([byte]);
        self
    }

    /// The reward, then the costs.
    #[inline]
    fn values(&mut self, reward: f64, costs: &[f64]) -> &mut Self {
        // The bits, not a rounded text of them: an audit must see every change of what was told.
        for value in std::iter::once(&reward).chain(costs) {
            self.0.update(value.to_bits().to_le_bytes());
        }
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).0.update(text);
        self
    }

    fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            None => self.truth(false),
            Some(text) => self.truth(true).text(text),
        }
    }

    fn hash(&mut self, hash: &str) -> &mut Self {
        // What is not hexadecimal was never a hash: it hashes as nothing, and the comparison that follows finds it out.
        self.0.update(hex::decode(hash).unwrap_or_default());
        self
    }

    fn to_hex(&self) -> String {
        hex::encode(&self.0.clone().finalize())
    }
}

/// What is published of a key before the experiment is over.
pub fn key_hash(salt: [u8; 16], key: Key) -> String {
    hex::encode(
        &Sha256::new()
            .chain_update(salt)
            .chain_update(hex::decode(&key.to_hex()).expect("hexadecimal digits"))
            .finalize(),
    )
}

/// The head before any epoch is closed.
pub fn genesis(
    values_version: u32,
    spec: &str,
    key_hash: &str,
    id: &str,
    created_at: i64,
) -> String {
    let mut parts = Parts::after("debora log 2\n");
    parts.action(values_version).0.update(Sha256::digest(spec));
    parts.hash(key_hash).text(id).time(created_at).to_hex()
}

/// The head of an experiment before any epoch is closed.
pub fn head(experiment: &ExperimentRow) -> String {
    let ExperimentRow {
        id,
        spec,
        key,
        salt,
        created_at,
        values_version,
    } = experiment;
    let key_hash = key_hash(*salt, *key);
    genesis(*values_version, spec, &key_hash, id, *created_at)
}

/// A record as it is hashed.
pub fn record_text(record: &EpochRecord) -> String {
    serde_json::to_string(record).expect("records are written as JSON")
}

/// What an epoch's hash is over, beside the hash before.
#[derive(Clone, Copy, Debug)]
pub struct EpochParts<'a> {
    /// The record's text, with its number of rounds.
    pub record: &'a str,
    /// When it was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: i64,
    /// Over its rounds.
    pub rounds_hash: &'a str,
    /// Over its leases.
    pub leases_hash: &'a str,
    /// The position of the next fact.
    pub journal_end: u64,
    /// The journal so far.
    pub journal: &'a str,
    /// Whether the experiment was closed before the epoch was complete.
    pub early: bool,
}

impl EpochParts<'_> {
    /// The hash of the closed epoch.
    pub fn hash(&self, before: &str) -> String {
        let prefix = match self.early {
            true => "debora final 2\n",
            false => "debora epoch 2\n",
        };
        Parts::after(prefix)
            .hash(before)
            .text(self.record)
            .time(self.opened_at)
            .time(self.closed_at)
            .hash(self.rounds_hash)
            .hash(self.leases_hash)
            .number(self.journal_end)
            .hash(self.journal)
            .to_hex()
    }
}

/// What is stored outside of rounds and leases.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// An outcome that does not count, and who told it.
    Uncounted(&'a UncountedOutcome, Option<&'a str>),
    /// A change.
    Event(&'a Event),
}

impl Fact<'_> {
    /// The journal after this fact.
    pub fn journal(&self, before: &str, position: u64) -> String {
        let mut parts = Parts::after("debora fact 2\n");
        parts.hash(before).number(position);
        match self {
            Self::Uncounted(outcome, actor) => parts
                .text(match outcome.kind {
                    DecisionKind::Round => "late",
                    DecisionKind::Overtime => "overtime_outcome",
                    DecisionKind::Holdback => "holdback_outcome",
                })
                .number(outcome.epoch)
                .number(outcome.number)
                .number(outcome.costs.len() as u64)
                .values(outcome.reward, &outcome.costs)
                .time(outcome.at)
                .maybe(*actor),
            Self::Event(event) => parts
                .text("event")
                .time(event.at)
                .text(&event.actor)
                .text(&event.what)
                .maybe(event.reason.as_deref()),
        };
        parts.to_hex()
    }

    /// Enters it into an experiment's journal; once the experiment is over, into its head, too.
    pub fn enter(&self, position: u64, progress: &mut Progress) {
        progress.journal = self.journal(&progress.journal, position);
        progress.next_position = position + 1;
        // No epoch will be closed over it any more, and yet every head that was shown must stay in the chain.
        if !progress.status.is_open() {
            progress.head = head_after(&progress.head, &progress.journal);
        }
    }
}

/// Enters an event into an experiment's journal.
pub fn enter_event(event: &Event, progress: &mut Progress) {
    Fact::Event(event).enter(event.position, progress);
}

/// The head after a fact that came after the end.
pub fn head_after(before: &str, journal: &str) -> String {
    Parts::after("debora after 2\n")
        .hash(before)
        .hash(journal)
        .to_hex()
}

/// The hash over an epoch's rounds, in order.
#[derive(Clone, Debug, Default)]
pub struct RoundsHash(Parts);

impl RoundsHash {
    /// Adds the next round.
    pub fn add(&mut self, action: u32, outcome: &OutcomeRow, actor: Option<&str>) {
        self.0
            .number(outcome.round)
            .action(action)
            .truth(outcome.imputed)
            .values(outcome.reward, &outcome.costs)
            .time(outcome.at)
            .maybe(actor);
    }

    /// As 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.to_hex()
    }
}

/// The hash over an epoch's leases: counted ones by round, then overtime by serial, which is the order they are given in, and
/// beside them those that were held back, which come at any time.
#[derive(Clone, Debug)]
pub struct LeasesHash {
    /// The first round of the next one that counts.
    pub next_round: u64,
    /// The first serial of the next overtime.
    pub next_serial: u64,
    /// The first serial of the next that is held back.
    pub next_holdback: u64,
    parts: Parts,
    // In a hash of their own: in one with the others, a server would have to read all again to put them after the last round.
    held_back: Parts,
}

impl LeasesHash {
    /// Before the first lease of an epoch that begins with this round.
    pub fn from(first_round: u64) -> Self {
        Self {
            next_round: first_round,
            next_serial: 1,
            next_holdback: 1,
            parts: Parts::default(),
            held_back: Parts::default(),
        }
    }

    /// The first round, or serial, of the next lease of a kind.
    pub fn next(&self, kind: DecisionKind) -> u64 {
        match kind {
            DecisionKind::Round => self.next_round,
            DecisionKind::Overtime => self.next_serial,
            DecisionKind::Holdback => self.next_holdback,
        }
    }

    /// Adds the next lease.
    pub fn add(&mut self, lease: &Lease, actor: Option<&str>) {
        let end = lease.first.saturating_add(lease.actions.len() as u64);
        let parts = match lease.kind {
            DecisionKind::Holdback => &mut self.held_back,
            _ => &mut self.parts,
        };
        match lease.kind {
            DecisionKind::Round => self.next_round = end,
            DecisionKind::Overtime => self.next_serial = end,
            DecisionKind::Holdback => self.next_holdback = end,
        }
        parts
            .byte(lease.kind.number())
            .number(lease.first)
            .number(lease.actions.len() as u64);
        // At once: a lease may have ten thousand.
        let actions = lease.actions.iter();
        let actions: Vec<u8> = actions.flat_map(|action| action.to_le_bytes()).collect();
        parts.0.update(actions);
        parts
            .number(lease.asked)
            .maybe(lease.request_key.as_deref())
            .time(lease.at)
            .time(lease.waited)
            .maybe(actor);
    }

    /// As 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        // Nothing is added where nothing was held back, as in most experiments.
        if self.next_holdback == 1 {
            return self.parts.to_hex();
        }
        let mut whole = self.parts.clone();
        // No lease among the others begins with a 2, so it cannot be taken for one of them.
        let kind = DecisionKind::Holdback.number();
        whole.byte(kind).hash(&self.held_back.to_hex()).to_hex()
    }
}

/// An epoch's rounds in order, as far as they have been read: their outcomes summed and hashed.
#[derive(Clone, Debug)]
pub struct EpochSum {
    /// The next round to add.
    pub next: u64,
    tally: Tally,
    hash: RoundsHash,
    fixed: Vec<u64>,
}

impl EpochSum {
    /// Before the first round of the engine's open epoch.
    pub fn of(engine: &Engine) -> Self {
        let problem = engine.problem();
        Self {
            next: engine.open_record().first_round,
            tally: Tally::new(problem.actions().len(), problem.quantities()),
            hash: RoundsHash::default(),
            // Kept between rounds: an epoch may have millions, and each would allocate.
            fixed: vec![0; problem.quantities()],
        }
    }

    /// Adds the next round.
    pub fn add(
        &mut self,
        action: u32,
        outcome: &OutcomeRow,
        actor: Option<&str>,
        engine: &Engine,
    ) -> Result<(), Error> {
        // Sums are exact, like those of the engine round by round: whatever the order of a sum, its bits are the same.
        engine
            .problem()
            .to_fixed(0, outcome.reward, &outcome.costs, &mut self.fixed)?;
        self.tally.add(action, &self.fixed);
        self.hash.add(action, outcome, actor);
        self.next += 1;
        Ok(())
    }

    /// The counts and sums.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The hash of all rounds added, to go on with.
    pub fn rounds_hash(&self) -> &RoundsHash {
        &self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "policy = 'soft'\nhorizon = 40\nrho = 0.5\nprofile = 'paper'\nactions = ['a', 'b', 'c']\n[[cost]]\nname = 'price'\nthreshold = 0.3";

    /// The head of a small experiment and the text of its last record.
    fn small_experiment() -> (String, String) {
        let problem = debora::spec::Spec::parse(SPEC, "spec").unwrap().problem;
        let mut engine = Engine::new(problem, Key::from(7u64));
        let key_hash = key_hash([9; 16], Key::from(7u64));
        let mut head = genesis(2, SPEC, &key_hash, "small", 5);
        let mut record = String::new();
        while !engine.is_done() {
            let mut rounds = RoundsHash::default();
            for decision in engine.ask_many(40) {
                let (reward, cost) = (
                    0.1 * (decision.round % 7) as f64,
                    1.0 / (1.0 + decision.round as f64),
                );
                let outcome = OutcomeRow {
                    round: decision.round,
                    reward,
                    costs: vec![cost],
                    imputed: decision.round % 5 == 0,
                    at: 6,
                    actor: 1,
                };
                rounds.add(decision.action, &outcome, Some("ann"));
                engine.tell(decision.round, reward, &[cost]).unwrap();
            }
            // Only what is hashed is looked at here, so an opening record serves as well as a closed one.
            record = record_text(engine.open_record());
            let parts = EpochParts {
                record: &record,
                opened_at: 5,
                closed_at: 7,
                rounds_hash: &rounds.to_hex(),
                leases_hash: &LeasesHash::from(1).to_hex(),
                journal_end: 0,
                journal: "",
                early: false,
            };
            head = parts.hash(&head);
        }
        (head, record)
    }

    /// Logs outlive programs: what one has hashed, another must hash alike.
    #[test]
    fn the_hashes_of_a_small_experiment_stay() {
        assert_eq!(
            key_hash([9; 16], Key::from(7u64)),
            "b588ac3cb1de34ede44971ded9ea1b13b7e24b452a5f4ce0329fbbe62c5a8e00"
        );
        let (head, record) = small_experiment();
        assert_eq!(
            head,
            "58e3e084611e8cd11160ba21d50cc3a7ec6cc1215ae73b0fa9fe945e3cc986db"
        );
        let begin = "{\"epoch\":13,\"first_round\":33,\"rounds\":8,\"kind\":\"estimate\",\"rule\":\"optimistic\",\"candidate\":[0.0,1.0,0.0],\"sigma\":0.0,\"strategy\":[0.0,1.0,0.0],\"counts\":[16,8,8],\"test\":null,\"pick\":null,\"estimates\":[{\"epoch\":13,\"action\":0,\"quantity\":0,\"level\":null,\"count\":16,\"mean\":0.2375,";
        assert!(record.starts_with(begin), "{record}");
    }
}
