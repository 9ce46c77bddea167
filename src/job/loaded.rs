//! A spec as it was read, with what it means.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::Plan;
use crate::job::JobError;
use crate::lab::metrics::checkpoints;
use crate::lab::replicate::{Experiment, Simulator};
use crate::spec::{Simulated, Spec, SpecError};

/// Opens a table's file.
pub type Open = dyn Fn(&Path) -> io::Result<Box<dyn io::Read>> + Sync;

/// A spec, the text it was read from, and its plan.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The TOML.
    pub text: String,
    /// What errors call it; tables are looked for beside it.
    pub file: String,
    /// Values that replace the text's, as [`Spec::parse_with`] takes them.
    pub overrides: Vec<(String, String)>,
    /// What it says.
    pub spec: Spec,
    /// What it plans.
    pub plan: Arc<Plan>,
}

impl Loaded {
    /// Reads a spec.
    pub fn from_text(
        text: String,
        file: String,
        overrides: Vec<(String, String)>,
    ) -> Result<Self, SpecError> {
        let spec = Spec::parse_with(&text, &file, &overrides)?;
        let plan = Arc::new(Plan::of(spec.problem.clone()));
        Ok(Self {
            text,
            file,
            overrides,
            spec,
            plan,
        })
    }

    /// The world of the spec.
    pub fn world(&self, open: &Open) -> Result<Simulated, SpecError> {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        self.spec.world(&mut |name| open(&folder.join(name)))
    }

    /// The spec as the lab simulates it.
    pub fn experiment(&self, simulator: Simulator, open: &Open) -> Result<Experiment, JobError> {
        let Simulated {
            world,
            key: world_key,
            ..
        } = self.world(open)?;
        Ok(Experiment {
            plan: Arc::clone(&self.plan),
            worlds: [world.clone(), world],
            key: self.spec.key,
            world_key,
            simulator,
            checkpoints: checkpoints(self.spec.problem.horizon()),
        })
    }

    /// Its name, or its file.
    pub fn name(&self) -> &str {
        self.spec.name.as_deref().unwrap_or(&self.file)
    }
}
