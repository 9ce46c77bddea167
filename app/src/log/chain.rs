//! The hash chain over closed epochs: a change of a stored round, record or hash breaks it from there on.
//!
//! ```text
//! key hash    = SHA-256(salt, key)
//! head before = SHA-256("debora log 1\n", values version, SHA-256(spec), key hash)
//! rounds hash = SHA-256 over the epoch's rounds in order of (round, action, imputed, reward, costs)
//! hash        = SHA-256("debora epoch 1\n", hash before, record as JSON, rounds hash)
//! ```
//!
//! Integers are little endian (rounds 8 bytes, actions 4, imputed 1), numbers the 8 bytes of their bits, hashes 32 bytes.
//! Times and request keys are not hashed: two experiments with the same salt, key and outcomes have the same hashes.

use debora::{Engine, EpochRecord, Error, Key, Tally};
use sha2::{Digest as _, Sha256};

use crate::hex;
use crate::store::{ExperimentRow, OutcomeRow};

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
pub fn genesis(values_version: u32, spec: &str, key_hash: &str) -> String {
    // The prefixes differ, so that no head can be passed off as an epoch's hash, and name the version of the format.
    let hash = Sha256::new_with_prefix("debora log 1\n").chain_update(values_version.to_le_bytes());
    hex::encode(
        &hash
            .chain_update(Sha256::digest(spec))
            // What is not hexadecimal was never a hash: it hashes as nothing, and the comparison that follows finds it out.
            .chain_update(hex::decode(key_hash).unwrap_or_default())
            .finalize(),
    )
}

/// The same, for an experiment.
pub fn head(experiment: &ExperimentRow) -> String {
    let key_hash = key_hash(experiment.salt, experiment.key);
    genesis(experiment.values_version, &experiment.spec, &key_hash)
}

/// A record as it is hashed: the text that the program of its values version wrote.
pub fn record_text(record: &EpochRecord, values_version: u32) -> String {
    let text = serde_json::to_string(record).expect("records are written as JSON");
    if values_version > 1 {
        return text;
    }
    // Version 1 knew no rule, test or level, so its records read back without them. Records hold numbers and a few fixed words,
    // no text of the user's: what is cut here can stand nowhere else.
    let later = ["\"rule\":null,", "\"test\":null,", "\"level\":null,"];
    later
        .iter()
        .fold(text, |text, field| text.replace(field, ""))
}

/// The hash of a closed epoch.
pub fn epoch_hash(before: &str, record: &str, rounds_hash: &str) -> String {
    let hash = Sha256::new_with_prefix("debora epoch 1\n")
        .chain_update(hex::decode(before).unwrap_or_default());
    hex::encode(
        &hash
            .chain_update(record)
            .chain_update(hex::decode(rounds_hash).unwrap_or_default())
            .finalize(),
    )
}

/// The hash over an epoch's rounds, in order.
#[derive(Clone, Debug, Default)]
pub struct RoundsHash(Sha256);

impl RoundsHash {
    /// Adds the next round.
    pub fn add(&mut self, action: u32, outcome: &OutcomeRow) {
        self.0.update(outcome.round.to_le_bytes());
        self.0.update(action.to_le_bytes());
        self.0.update([u8::from(outcome.imputed)]);
        // The bits, not a rounded text of them: an audit must see every change of what was told.
        for value in std::iter::once(&outcome.reward).chain(&outcome.costs) {
            self.0.update(value.to_bits().to_le_bytes());
        }
    }

    /// As 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0.clone().finalize())
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
    pub fn add(&mut self, action: u32, outcome: &OutcomeRow, engine: &Engine) -> Result<(), Error> {
        // Sums are exact, like those of the engine round by round: whatever the order of a sum, its bits are the same.
        engine
            .problem()
            .to_fixed(outcome.reward, &outcome.costs, &mut self.fixed)?;
        self.tally.add(action, &self.fixed);
        self.hash.add(action, outcome);
        self.next += 1;
        Ok(())
    }

    /// The counts and sums.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The hash of all rounds added.
    pub fn rounds_hash(&self) -> String {
        self.hash.to_hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "policy = 'soft'\nhorizon = 40\nrho = 0.5\nprofile = 'paper'\nactions = ['a', 'b', 'c']\n[[cost]]\nname = 'price'\nthreshold = 0.3";

    /// The head of a small experiment and the text of its last record, as programs of a values version have them.
    fn small_experiment(values_version: u32) -> (String, String) {
        let problem = debora::spec::Spec::parse(SPEC, "spec").unwrap().problem;
        let mut engine = Engine::new(problem, Key::from(7u64));
        let mut head = genesis(values_version, SPEC, &key_hash([9; 16], Key::from(7u64)));
        let mut record = String::new();
        while !engine.is_done() {
            let mut epoch_sum = EpochSum::of(&engine);
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
                    at: 0,
                    actor: 0,
                };
                epoch_sum.add(decision.action, &outcome, &engine).unwrap();
                engine.tell(decision.round, reward, &[cost]).unwrap();
            }
            // Only what is hashed is looked at here, so an opening record serves as well as a closed one.
            record = record_text(engine.open_record(), values_version);
            head = epoch_hash(&head, &record, &epoch_sum.rounds_hash());
        }
        (head, record)
    }

    /// Logs outlive versions: what version 1 wrote and hashed is what it always was. Profile paper decides alike in both.
    #[test]
    fn the_hashes_of_a_small_experiment_of_version_1_stay() {
        assert_eq!(
            key_hash([9; 16], Key::from(7u64)),
            "b588ac3cb1de34ede44971ded9ea1b13b7e24b452a5f4ce0329fbbe62c5a8e00"
        );
        let (head, record) = small_experiment(1);
        assert_eq!(
            head,
            "b041b069e4f122369f3979706daf9a8b845c3d55b3805f395bf6ddffce9198e0"
        );
        assert_eq!(
            record,
            "{\"epoch\":13,\"first_round\":33,\"rounds\":8,\"kind\":\"estimate\",\"candidate\":[0.0,1.0,0.0],\"sigma\":0.0,\"strategy\":[0.0,1.0,0.0],\"counts\":[16,8,8],\"estimates\":[{\"epoch\":13,\"action\":0,\"quantity\":0,\"count\":16,\"mean\":0.2375,\"offset\":0.02589956312163222,\"cell\":1037.2629450286397,\"index\":null,\"estimate\":0.5,\"width\":519.7839868976849},{\"epoch\":13,\"action\":0,\"quantity\":1,\"count\":16,\"mean\":0.10010645374609316,\"offset\":0.5970804248473744,\"cell\":1037.2629450286397,\"index\":null,\"estimate\":0.5,\"width\":519.7839868976849},{\"epoch\":13,\"action\":1,\"quantity\":0,\"count\":8,\"mean\":0.375,\"offset\":0.8158028142049083,\"cell\":1466.9113246065601,\"index\":null,\"estimate\":0.5,\"width\":735.0855637750651},{\"epoch\":13,\"action\":1,\"quantity\":1,\"count\":8,\"mean\":0.10583940912888282,\"offset\":0.5602548204072381,\"cell\":1466.9113246065601,\"index\":null,\"estimate\":0.5,\"width\":735.0855637750651},{\"epoch\":13,\"action\":2,\"quantity\":0,\"count\":8,\"mean\":0.325,\"offset\":0.602638361531781,\"cell\":1466.9113246065601,\"index\":null,\"estimate\":0.5,\"width\":735.0855637750651},{\"epoch\":13,\"action\":2,\"quantity\":1,\"count\":8,\"mean\":0.08004746159637462,\"offset\":0.8410919831648794,\"cell\":1466.9113246065601,\"index\":null,\"estimate\":0.5,\"width\":735.0855637750651}]}"
        );
    }

    #[test]
    fn the_hashes_of_a_small_experiment_of_version_2_stay() {
        let (head, record) = small_experiment(2);
        assert_eq!(
            head,
            "611c296d098480ace2b5b9a38e2d90bd90493a37ea882c51568394c3441878d8"
        );
        let begin = "{\"epoch\":13,\"first_round\":33,\"rounds\":8,\"kind\":\"estimate\",\"rule\":null,\"candidate\":[0.0,1.0,0.0],\"sigma\":0.0,\"strategy\":[0.0,1.0,0.0],\"counts\":[16,8,8],\"test\":null,\"estimates\":[{\"epoch\":13,\"action\":0,\"quantity\":0,\"level\":null,\"count\":16,\"mean\":0.2375,";
        assert!(record.starts_with(begin), "{record}");
    }
}
