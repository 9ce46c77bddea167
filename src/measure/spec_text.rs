//! A spec as it was read, with what it means.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::lab::metrics::checkpoints;
use crate::lab::replicate::{Experiment, Simulator};
use crate::spec::{Simulated, Spec, SpecError, WorldKind};
use crate::{Plan, Problem};

/// Opens a table's file.
pub type OpenTable = dyn Fn(&Path) -> io::Result<Box<dyn io::Read>> + Sync;

/// A spec, the text it was read from, and its plan.
#[derive(Clone, Debug)]
pub struct SpecText {
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

impl PartialEq for SpecText {
    /// Spec and plan follow from the text, its place and what replaces its values.
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.file, &self.overrides) == (&other.text, &other.file, &other.overrides)
    }
}

impl SpecText {
    /// Reads a spec. This is the one place where a measurement parses its text: everything after has the values.
    pub fn parse(
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

    /// The problem it states.
    pub fn problem(&self) -> &Problem {
        &self.spec.problem
    }

    /// Its world. A table is read from its file, so ask once.
    pub fn world(&self, open: &OpenTable) -> Result<Simulated, SpecError> {
        self.spec.world(&mut |name| open(&self.beside(name)))
    }

    /// The file that its world is read from, if that is a table.
    pub fn table(&self) -> Option<PathBuf> {
        match &self.spec.world.as_ref()?.kind {
            WorldKind::Table { file, .. } => Some(self.beside(file)),
            _ => None,
        }
    }

    /// Tables are looked for beside the spec, wherever the program was started.
    fn beside(&self, name: &str) -> PathBuf {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        folder.join(name)
    }

    /// The spec as the lab simulates it on a world that [`SpecText::world`] built.
    pub fn experiment(&self, simulated: &Simulated, simulator: Simulator) -> Experiment {
        Experiment {
            plan: Arc::clone(&self.plan),
            // One law for both runs; `Measurement` replaces the second's where another world is asked for.
            worlds: [simulated.world.clone(), simulated.world.clone()],
            key: self.spec.key,
            world_key: simulated.key,
            simulator,
            checkpoints: checkpoints(self.problem().horizon()),
        }
    }

    /// Its name, or its file.
    pub fn name(&self) -> &str {
        // A spec need not have a name, but a reader needs something to call it. What was read from no file is called `<text>`
        // or the like, for errors.
        let file = if self.file.starts_with('<') {
            "unnamed"
        } else {
            &self.file
        };
        self.spec.name.as_deref().unwrap_or(file)
    }
}
