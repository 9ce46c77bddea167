//! What never changes about an experiment: its spec is parsed once, for every request, page and list that asks.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use debora::Problem;
use debora::spec::Spec;

use crate::service::cache::Cache;
use crate::store::Store;

/// How much is kept: as many experiments as a search of the list looks at, if their specs take less than a kibibyte each. A spec may
/// take a mebibyte, and weighs as a thousand of those then.
pub const INFOS_MAX: usize = 20_000;

/// What never changes about an experiment.
pub struct ExperimentInfo {
    /// What it is called.
    pub name: Option<String>,
    /// Its actions, costs and horizon.
    pub problem: Arc<Problem>,
}

/// What is known of the experiments that were asked for last.
pub struct Infos(Cache<ExperimentInfo>);

impl Default for Infos {
    fn default() -> Self {
        Self(Cache::new(INFOS_MAX))
    }
}

impl Infos {
    /// What is kept of an experiment.
    pub fn get(&self, id: &str) -> Option<Arc<ExperimentInfo>> {
        self.0.get(id)
    }

    /// Of an experiment whose spec is at hand.
    pub fn parse(&self, id: &str, spec: &str) -> Result<Arc<ExperimentInfo>> {
        if let Some(info) = self.get(id) {
            return Ok(info);
        }
        let parsed = Spec::parse(spec, id)?;
        let info = ExperimentInfo {
            name: parsed.name,
            problem: Arc::new(parsed.problem),
        };
        Ok(self.0.keep_first(id, 1 + spec.len() / 1024, info))
    }

    /// Of an experiment that is in the store.
    pub fn read(&self, store: &mut Store, id: &str) -> Result<Arc<ExperimentInfo>> {
        if let Some(info) = self.get(id) {
            return Ok(info);
        }
        let row = store.experiment(id)?;
        let (experiment, _) = row.with_context(|| not_there(id))?;
        self.parse(id, &experiment.spec)
    }
}

/// Why an experiment that a list names cannot be read.
pub fn not_there(id: &str) -> String {
    format!("the store lists an experiment {id:?} that is not there")
}
