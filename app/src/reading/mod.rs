//! What is known of an experiment: read once from its rows, in the user's units and names. Every surface shows this.
//!
//! ```text
//! row, spec, engine, observed sums ─► Reading ─► /state, list, pages, metrics, notices, certificate, report
//! ```
//!
//! Nothing of it is hashed, and no decision depends on it. The audit does not use it either: it must not share a mistake with what
//! it checks.

mod advice;
pub mod alerts;
pub mod certificate;
pub mod epoch;
mod holdback;
mod limits;
mod means;
mod outcomes;
pub mod pace;
mod run_state;
mod sample_ratio;
mod shares;
mod sums;
mod trial;

pub use advice::{Advice, AdvisedQuantity, AdvisedStrategy};
pub use holdback::{HoldbackState, LiftState, SideMean};
pub use limits::{LimitState, LimitVerdict};
pub use means::{ActionMean, IntervalMethods, METHODS};
pub use outcomes::{ActionCounts, OutcomeCounts};
pub use run_state::RunState;
pub use sample_ratio::SampleRatio;
pub use shares::{ActionShare, ByName, Shares, share};
pub use trial::TestState;

use std::sync::OnceLock;

use anyhow::Result;
use debora::record::Kind;
use debora::spec::Spec;
use debora::{Engine, Policy, Problem};

use crate::log::experiment::{StoredExperiment, check_counts};
use crate::log::observed::Observed;
use crate::store::{ExperimentRow, Progress, Store};

/// An experiment as it was read, and what follows from that.
///
/// What takes time is computed when it is first asked for: a list shows a few facts of each of a thousand experiments.
pub struct Reading {
    /// What it is.
    pub experiment: ExperimentRow,
    /// How far it is.
    pub progress: Progress,
    /// Its spec.
    pub spec: Spec,
    /// At the beginning of the open epoch, or of the last.
    pub engine: Engine,
    /// When the last epoch was closed; `None` while it is open, and if the experiment was closed by hand.
    pub closed_at: Option<i64>,
    /// What was told since the epoch began, and beside it.
    observed: Observed,
    /// What stands in for a missing outcome, in multiples of 2^-53.
    imputed: Vec<u64>,
    shares: OnceLock<Shares>,
    means: OnceLock<Vec<ActionMean>>,
    limits: OnceLock<Vec<LimitState>>,
    sample_ratio: OnceLock<SampleRatio>,
    holdback: OnceLock<Option<HoldbackState>>,
    advice: OnceLock<Advice>,
}

impl Reading {
    /// Reads an experiment; `None` if there is none of this id. The reads must see one state: call it within a transaction.
    pub fn read(store: &mut Store, id: &str) -> Result<Option<Self>> {
        // From the store and not from the writer, which has it in memory: what is shown must not take the writer's time.
        let Some((experiment, progress)) = store.experiment(id)? else {
            return Ok(None);
        };
        Self::from_row(store, experiment, progress).map(Some)
    }

    /// Reads the rest of an experiment whose row is read.
    pub fn from_row(
        store: &mut Store,
        experiment: ExperimentRow,
        progress: Progress,
    ) -> Result<Self> {
        let stored = StoredExperiment::restore(store, experiment, progress)?;
        let StoredExperiment {
            experiment,
            progress,
            spec,
            engine,
            closed_at,
            ..
        } = stored;
        let problem = engine.problem();
        // Differences of counts are taken all over, and damage is an error here instead of a panic there.
        check_counts(&experiment.id, &progress, problem)?;
        let observed = Observed::read(store, &experiment.id, &progress, &engine)?;
        let mut imputed = vec![0; problem.quantities()];
        let impute = &spec.service.impute;
        problem.to_fixed(0, impute[0], &impute[1..], &mut imputed)?;
        Ok(Self {
            experiment,
            progress,
            spec,
            engine,
            closed_at,
            observed,
            imputed,
            shares: OnceLock::new(),
            means: OnceLock::new(),
            limits: OnceLock::new(),
            sample_ratio: OnceLock::new(),
            holdback: OnceLock::new(),
            advice: OnceLock::new(),
        })
    }

    /// Its name in addresses.
    pub fn id(&self) -> &str {
        &self.experiment.id
    }

    /// Its display name: what its spec calls it, or else its id.
    pub fn name(&self) -> &str {
        self.spec.name.as_deref().unwrap_or(self.id())
    }

    /// What is asked.
    pub fn problem(&self) -> &Problem {
        self.engine.problem()
    }

    /// Which algorithm decides.
    pub fn policy(&self) -> Policy {
        self.problem().policy()
    }

    /// How the strategy of the open epoch was found, or of the last.
    pub fn kind(&self) -> Kind {
        self.engine.open_record().kind
    }

    /// Whether it may still change.
    pub fn is_open(&self) -> bool {
        self.progress.status.is_open()
    }

    /// Whether the open epoch is fully decided and waits for outcomes.
    pub fn is_waiting(&self) -> bool {
        // A closed experiment waits for nothing, whatever is outstanding.
        self.is_open()
            && self.progress.outstanding() > 0
            && self.engine.is_handed_out_at(&self.progress.decided)
    }

    /// What it does, in a word.
    pub fn run_state(&self) -> RunState {
        let is_committed = self.kind() == Kind::Commit;
        RunState::new(self.progress.status, is_committed, self.is_waiting())
    }

    /// What became of its rounds.
    pub fn outcomes(&self) -> OutcomeCounts {
        OutcomeCounts::from_progress(&self.progress)
    }

    /// What became of the rounds of each action, in the spec's order.
    pub fn actions(&self) -> Vec<ActionCounts> {
        ActionCounts::for_actions(self.problem(), &self.progress)
    }

    /// The strategy of the open epoch, or of the last.
    pub fn shares(&self) -> &Shares {
        let strategy = self.engine.strategy().probabilities();
        self.shares
            .get_or_init(|| Shares::new(self.problem(), strategy))
    }

    /// The clear test made at the epoch's start, if one was due.
    pub fn test(&self) -> Option<TestState> {
        let test = self.engine.open_record().test.as_ref()?;
        Some(TestState::new(self.problem(), test))
    }

    /// All means, quantity by quantity within action by action.
    pub fn means(&self) -> &[ActionMean] {
        self.means.get_or_init(|| means::compute(self))
    }

    /// The means of a quantity, action by action.
    pub fn means_of<'a>(&'a self, quantity: &str) -> impl Iterator<Item = &'a ActionMean> {
        self.means()
            .iter()
            .filter(move |mean| mean.quantity == quantity)
    }

    /// Every cost beside its threshold.
    pub fn limits(&self) -> &[LimitState] {
        self.limits.get_or_init(|| limits::compute(self))
    }

    /// Whether outcomes go missing more often after some actions than after others.
    pub fn sample_ratio(&self) -> &SampleRatio {
        self.sample_ratio
            .get_or_init(|| sample_ratio::compute(self))
    }

    /// Those who are held back, beside the experiment; `None` if the spec holds nothing back.
    pub fn holdback(&self) -> Option<&HoldbackState> {
        let holdback = self.holdback.get_or_init(|| {
            let holdback = self.spec.service.holdback.as_ref();
            holdback.map(|holdback| holdback::compute(self, holdback))
        });
        holdback.as_ref()
    }

    /// What to deploy.
    pub fn advice(&self) -> &Advice {
        self.advice
            .get_or_init(|| Advice::from_engine(&self.engine))
    }
}
