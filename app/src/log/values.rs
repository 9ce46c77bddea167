//! Experiments of other values versions: what this program can say of them, and who can say the rest.

use debora::VALUES_VERSION;

use crate::store::ExperimentRow;

/// An experiment that was decided with other values than this program has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "experiment {id} is decided with values version {version}, and this program has {VALUES_VERSION}: from the same key it would \
     decide otherwise; serve it with a debora that has {version} (`debora --version` tells)"
)]
pub struct OtherValues {
    /// The experiment.
    pub id: String,
    /// Its values version.
    pub version: u32,
}

/// Refuses an experiment that this program could only continue with other decisions.
pub fn check_values(experiment: &ExperimentRow) -> Result<(), OtherValues> {
    if experiment.values_version == VALUES_VERSION {
        return Ok(());
    }
    Err(OtherValues {
        id: experiment.id.clone(),
        version: experiment.values_version,
    })
}
