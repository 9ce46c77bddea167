//! Experiments of other values versions, which this program neither continues nor recomputes.

use debora::VALUES_VERSION;

use crate::store::ExperimentRow;

/// An experiment that was decided with other values than this program has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "experiment {id} is decided with values version {version}, and this program has {VALUES_VERSION}: from the same key it would \
     decide otherwise; use a debora that has {version} (`debora --version` tells)"
)]
pub struct OtherValues {
    /// The experiment.
    pub id: String,
    /// Its values version.
    pub version: u32,
}

/// Refuses an experiment that this program could only continue with other decisions.
pub fn check_values(experiment: &ExperimentRow) -> Result<(), OtherValues> {
    check_values_version(&experiment.id, experiment.values_version)
}

/// Refuses another values version than this program's.
pub fn check_values_version(id: &str, version: u32) -> Result<(), OtherValues> {
    if version == VALUES_VERSION {
        return Ok(());
    }
    Err(OtherValues {
        id: id.to_owned(),
        version,
    })
}
