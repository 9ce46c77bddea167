//! An experiment in memory: its engine as of the open epoch's beginning, and its rules. All of it can be read again.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail, ensure};
use debora::spec::{ServiceSpec, Spec};
use debora::{Engine, VALUES_VERSION};

use crate::log::chain::Fold;
use crate::service::request::EpochText;
use crate::store::{OutcomeRow, Progress, Store};

/// Outcomes read at once.
const CHUNK: usize = 1_024;

/// An experiment in memory.
pub struct Resident {
    /// At the beginning of the open epoch: nothing of it handed out or told. After the end, of the last epoch.
    pub engine: Engine,
    /// What happens while waiting, and to outcomes that never come.
    pub rules: ServiceSpec,
    /// What the open epoch's decisions are drawn from.
    pub text: Arc<EpochText>,
    /// The open epoch's rounds, as far as they are told without a gap and were read.
    fold: Fold,
    /// How many of the open epoch's rounds were told when the fold was last moved on.
    told_at_fold: u64,
}

impl Resident {
    /// Around an engine at the beginning of an epoch.
    pub fn new(engine: Engine, rules: ServiceSpec) -> Self {
        let text = EpochText {
            actions: engine.problem().actions().to_vec(),
            strategy: engine.strategy().probabilities().to_vec(),
            per_action: OnceLock::new(),
        };
        Self {
            fold: Fold::of(&engine),
            text: Arc::new(text),
            engine,
            rules,
            told_at_fold: 0,
        }
    }

    /// Reads an experiment: its spec and its last epoch, whatever the number of rounds.
    pub fn read(store: &mut dyn Store, id: &str) -> Result<Option<Self>> {
        let Some((experiment, progress)) = store.experiment(id)? else {
            return Ok(None);
        };
        let version = experiment.values_version;
        ensure!(
            version == VALUES_VERSION,
            "experiment {id} decides with values version {version}, and this program has {VALUES_VERSION}; serve it with a debora that has {version}"
        );
        let spec = Spec::parse(&experiment.spec, id)?;
        let rows = store.epochs(id, progress.epoch, 1)?;
        let snapshot = rows.first().and_then(|row| row.snapshot.as_ref());
        let snapshot = snapshot.with_context(|| {
            format!(
                "experiment {id} has no snapshot of epoch {}",
                progress.epoch
            )
        })?;
        Ok(Some(Self::new(Engine::from_bytes(snapshot)?, spec.service)))
    }

    /// Refuses a progress that cannot be: a store may be damaged, and nothing below is to stumble over it.
    pub fn check(&self, id: &str, progress: &Progress) -> Result<()> {
        let actions = self.engine.problem().actions().len();
        let sum = |counts: &[u64]| {
            counts
                .iter()
                .try_fold(0u64, |sum, &count| sum.checked_add(count))
        };
        let within =
            |some: &[u64], all: &[u64]| some.iter().zip(all).all(|(some, all)| some <= all);
        let Progress {
            decided,
            outcomes,
            imputed,
            imputed_before,
            next_round,
            ..
        } = progress;
        let lengths = [decided, outcomes, imputed, imputed_before]
            .iter()
            .all(|counts| counts.len() == actions);
        let counts = within(outcomes, decided)
            && within(imputed, outcomes)
            && within(imputed_before, imputed);
        let rounds = sum(decided).and_then(|decided| decided.checked_add(1)) == Some(*next_round);
        ensure!(
            lengths && counts && rounds,
            "experiment {id} has impossible counts; `debora audit` tells more"
        );
        Ok(())
    }

    /// Whether all rounds of the open epoch are decided.
    pub fn is_decided(&self, progress: &Progress) -> bool {
        self.engine.is_handed_out_at(&progress.decided)
    }

    /// Whether all of them have their outcomes, too.
    pub fn is_complete(&self, progress: &Progress) -> bool {
        progress.outstanding() == 0 && self.is_decided(progress)
    }

    /// Adds told rounds to the fold once there are many, so that closing a long epoch finds little left to read.
    ///
    /// While a gap stops it, it tries again only after as many more outcomes, so every outcome is read about once.
    pub fn move_fold_on(
        &mut self,
        store: &mut dyn Store,
        id: &str,
        progress: &Progress,
    ) -> Result<()> {
        let told =
            progress.outcomes.iter().sum::<u64>() + 1 - self.engine.open_record().first_round;
        if told >= self.told_at_fold + CHUNK as u64 {
            self.told_at_fold = told;
            while self.fold_chunk(store, id, progress)? {}
        }
        Ok(())
    }

    /// Adds up to a chunk of rounds. False where a gap stops it, or the last decided round.
    fn fold_chunk(&mut self, store: &mut dyn Store, id: &str, progress: &Progress) -> Result<bool> {
        let before = self.fold.next;
        for outcome in store.outcomes(id, before, CHUNK)? {
            if outcome.round != self.fold.next || outcome.round >= progress.next_round {
                return Ok(false);
            }
            self.add(&outcome)?;
        }
        Ok(self.fold.next == before + CHUNK as u64)
    }

    fn add(&mut self, outcome: &OutcomeRow) -> Result<()> {
        let action = self.engine.decide(outcome.round).action;
        Ok(self.fold.add(action, outcome, &self.engine)?)
    }

    /// The whole epoch's rounds.
    pub fn whole_fold(
        &mut self,
        store: &mut dyn Store,
        id: &str,
        progress: &Progress,
    ) -> Result<&Fold> {
        while self.fold_chunk(store, id, progress)? {}
        if self.fold.next != progress.next_round {
            bail!(
                "experiment {id}: the outcome of round {} is missing; `debora audit` tells more",
                self.fold.next
            );
        }
        Ok(&self.fold)
    }
}
