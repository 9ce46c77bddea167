//! An experiment as its rows have it: what it is, how far it is, and its engine at the beginning of its last epoch.

use anyhow::{Context as _, Result, ensure};
use debora::spec::Spec;
use debora::{Engine, Problem};

use crate::log::check_values;
use crate::store::{ExperimentRow, Progress, Store};

/// An experiment whose spec is parsed and whose engine is restored.
pub struct StoredExperiment {
    /// What it is.
    pub experiment: ExperimentRow,
    /// How far it is.
    pub progress: Progress,
    /// Its spec.
    pub spec: Spec,
    /// At the beginning of the open epoch: nothing of it handed out or told. After the end, of the last epoch.
    pub engine: Engine,
    /// When that epoch was opened.
    pub opened_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
}

impl StoredExperiment {
    /// Restores an experiment from its rows, however many rounds it has: its last epoch is all that is read beside them.
    pub fn restore(
        store: &mut Store,
        experiment: ExperimentRow,
        progress: Progress,
    ) -> Result<Self> {
        // Other values mean other decisions for the same key, and deciding nothing is better than that.
        check_values(&experiment)?;
        let id = &experiment.id;
        let spec = Spec::parse(&experiment.spec, id)?;
        let epoch = progress.epoch;
        let rows = store.epochs(id, epoch, 1)?;
        // From the snapshot, not by replaying the log: a restart takes as long after a billion
        // rounds as after ten. `debora audit` checks the snapshot against the log.
        let (row, snapshot) = rows
            .first()
            .and_then(|row| Some((row, row.snapshot.as_ref()?)))
            .with_context(|| format!("experiment {id} has no snapshot of epoch {epoch}"))?;
        Ok(Self {
            engine: Engine::from_bytes(snapshot)?,
            opened_at: row.opened_at,
            closed_at: row.closed_at,
            experiment,
            progress,
            spec,
        })
    }
}

/// Refuses counts that cannot be: a store may be damaged, and nothing that follows is to stumble over it.
pub fn check_counts(id: &str, progress: &Progress, problem: &Problem) -> Result<()> {
    let actions = problem.actions().len();
    let counts = [
        &progress.decided,
        &progress.outcomes,
        &progress.imputed,
        &progress.imputed_before,
    ];
    let lengths_fit = counts.iter().all(|counts| counts.len() == actions);
    // Each counts a subset of what the one before it counts: differences of two are taken without a check.
    let subsets_fit = counts.windows(2).all(|pair| is_subset(pair[1], pair[0]));
    let rounds_fit = sum(&progress.decided).and_then(|decided| decided.checked_add(1))
        == Some(progress.next_round);
    ensure!(
        lengths_fit && subsets_fit && rounds_fit,
        "experiment {id} has impossible counts; run `debora audit` to find out more"
    );
    Ok(())
}

/// Whether counts can be those of a subset of what `all` counts, action by action.
fn is_subset(subset: &[u64], all: &[u64]) -> bool {
    subset.iter().zip(all).all(|(subset, all)| subset <= all)
}

/// The sum, unless it overflows, as that of damaged counts may.
pub fn sum(counts: &[u64]) -> Option<u64> {
    counts
        .iter()
        .try_fold(0u64, |sum, &count| sum.checked_add(count))
}
