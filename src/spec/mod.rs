//! The spec file: one TOML format for planning, simulating, replicating and serving.
//!
//! ```
//! use debora::spec::Spec;
//!
//! let spec = Spec::parse(
//!     r#"
//!     name    = "model routing"
//!     policy  = "soft"                 # free | soft | hard
//!     horizon = 100_000_000            # 1e8 works too
//!     rho     = 0.1                    # the chance of differing decisions
//!     delta   = 0.01                   # of failing bounds; default 0.01
//!     profile = "tight"                # tight (default; growth = 8) | paper
//!     caution = 0.5                    # soft only, 0 to 1: how much uncertainty counts against a cost
//!     outside = "refuse"               # refuse (default) | clip: feedback outside its range
//!     key     = 42                     # default 0; or 32 hexadecimal digits in quotes
//!     actions = ["small", "medium", "large"]
//!
//!     [reward]                         # optional; default "reward" in [0, 1]
//!     name = "quality"
//!     range = [0, 1]
//!
//!     [[cost]]                         # as many as there are; the range defaults to [0, 1]
//!     name = "price"
//!     range = [0.0, 0.02]              # dollars a request; or { small = [0, 0.0001], .. }, one for each action
//!     threshold = 0.003                # in the same unit; without one the cost is only watched
//!
//!     [world]                          # simulation only
//!     kind = "bernoulli"
//!     reward = [0.79, 0.92, 0.93]      # means, in the order of the actions
//!     cost.price = { small = 0.00003, medium = 0.0005, large = 0.014 }    # or by their names
//!     "#,
//!     "routing.toml",
//! )?;
//! assert_eq!(spec.problem.horizon(), 100_000_000);
//! let simulated = spec.world(&mut |_| unreachable!("only tables are read from files"))?;
//! assert_eq!(simulated.world.means()[1][2], 0.7);
//! # Ok::<(), debora::spec::SpecError>(())
//! ```
//!
//! `policy` may be left out where no cost has a threshold. Equal ends of an action's range say that its cost is known.
//! `explore = 0.2` gives exploration that share of the horizon.
//!
//! Policy hard needs a strictly safe strategy; actions left out have probability 0:
//!
//! ```toml
//! [safe]
//! strategy = { small = 1.0 }
//! cost     = { price = 0.00003 }       # its known cost, or margin = { price = .. }, not both
//! ```
//!
//! The other kinds of world:
//!
//! ```toml
//! [world]
//! kind = "beta"                        # drawn sample by sample: not for long horizons
//! reward = [0.79, 0.92, 0.93]
//! concentration = 10
//!
//! [world]
//! kind = "discrete"                    # per quantity and action, values and their probabilities
//! reward = [{ values = [0, 1], probabilities = [0.2, 0.8] }, { values = [0.9], probabilities = [1] }]
//! cost.price.small = { values = [0.0, 0.02], probabilities = [0.9, 0.1] }
//! cost.price.large = { values = [0.01], probabilities = [1] }
//!
//! [world]
//! kind = "table"                       # each pull draws a recorded row of its action, with replacement
//! file = "rows.csv"                    # header action,reward,price in any order; commas, semicolons or tabs
//! columns = { reward = "clicks" }      # optional: what columns are called; all others are then ignored
//! key  = 7                             # any kind; the default follows from the policy's key (`Key::world`)
//!
//! [world]
//! kind   = "random"                    # means drawn by the world's key, within the ranges
//! law    = "gap"                       # uniform | gap | stairs | sparse: see `lab::random`
//! gap    = 0.1                         # in the reward's units; not for uniform
//! worlds = 100                         # pair j meets world j mod 100; default 1: all pairs meet the same
//! index  = 0                           # the number of the first world; default 0
//! ```
//!
//! `actions = 20` names them a1 to a20.
//!
//! And for live experiments:
//!
//! ```toml
//! [service]
//! on_wait = "hold"                     # hold (default) | serve
//! outcome_wait = "7d"                  # d, h, m or s; default: wait for ever
//! impute = { reward = 0.0, cost = { price = 0.02 } }     # default: the worst values
//! holdback = { share = 0.05, action = "small" }          # default: nobody stays outside the experiment
//! ```
//!
//! Anything else is an error that shows file, line, value and rule. This module stands above the lab, whose worlds it
//! describes; it opens no file itself.

mod blame;
mod document;
mod error;
mod field;
mod fingerprint;
mod form;
mod import;
mod keys;
mod number;
mod overrides;
mod problem;
mod quotes;
mod schema;
mod service;
mod spelling;
mod table;
mod world;
mod write;

use std::io;
use std::sync::Arc;

pub use error::SpecError;
pub use form::{FormKey, FormKind, FormRows, form_keys};
pub use import::{
    ImportColumn, ImportColumns, ImportError, Imported, ImportedAction, ImportedMean,
    ImportedQuantity, LeftOut, ROWS_FILE, import,
};
pub use number::{number, whole_number};
pub use schema::schema;
pub use service::{Holdback, OnWait, ServiceSpec};
pub use world::{WorldKind, WorldSpec};
pub use write::quoted;

use crate::lab::LabError;
use crate::lab::world::World;
use crate::problem::Problem;
use crate::{Error, Key, WorldKey};
use blame::blame_world;
use document::{Document, NodeValue};
use error::{Fault, Read, SpecPlace};
use field::Field;
use fingerprint::Canon;
use table::TableFault;
use world::Built;

/// What a spec file says, checked.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What the experiment is called.
    pub name: Option<String>,
    /// The problem.
    pub problem: Problem,
    /// The policy's key; default 0.
    pub key: Key,
    /// Whether the spec gives the key.
    pub key_given: bool,
    /// The world to simulate.
    pub world: Option<WorldSpec>,
    /// The rules of a live experiment.
    pub service: ServiceSpec,
    document: Document,
}

/// A world ready to draw from.
#[derive(Clone)]
pub struct Simulated {
    /// The world.
    pub world: Arc<dyn World>,
    /// Its key: the spec's, or the one that follows from the policy's.
    pub key: WorldKey,
    /// 64 hexadecimal digits that stand for all a simulation depends on: problem, key, world and its key, a table's rows.
    pub fingerprint: String,
}

impl Spec {
    /// Reads a spec; `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        Self::parse_with(text, file, &[])
    }

    /// Reads a spec after replacing or adding values: pairs of a path and a TOML value or a bare word, the later winning.
    ///
    /// ```
    /// # use debora::spec::Spec;
    /// let text = "policy = 'soft'\nhorizon = 1e8\nrho = 0.1\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5";
    /// let set = |path: &str, value: &str| (path.to_owned(), value.to_owned());
    /// let spec = Spec::parse_with(text, "x.toml", &[set("horizon", "1e9"), set("cost.price.threshold", "0.25")])?;
    /// assert_eq!((spec.problem.horizon(), spec.problem.thresholds()), (1_000_000_000, &[0.25][..]));
    ///
    /// let error = Spec::parse_with(text, "x.toml", &[set("policy", "hrad")]).unwrap_err();
    /// assert_eq!(error.to_string(), r#"override policy=hrad: policy is "hrad"; did you mean "hard"?"#);
    /// # Ok::<(), debora::spec::SpecError>(())
    /// ```
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, SpecError> {
        let document = Document::parse(text, file, overrides)?;
        let read = Sections::read(&document).map_err(|fault| document.error(fault))?;
        Ok(Self {
            name: read.name,
            problem: read.problem,
            key: read.key.unwrap_or(Key::from(0u64)),
            key_given: read.key.is_some(),
            world: read.world,
            service: read.service,
            // Kept for worlds: what is wrong with one may show only when it is built.
            document,
        })
    }

    /// Builds the world. `open` opens a table's file by the name in the spec.
    pub fn world(
        &self,
        open: &mut dyn FnMut(&str) -> io::Result<Box<dyn io::Read>>,
    ) -> Result<Simulated, SpecError> {
        let spec = self
            .world
            .as_ref()
            .ok_or_else(|| self.document.error(world::missing()))?;
        // Derived from the policy's key, not equal to it: world and policy must not share draws.
        let key = spec.key.unwrap_or_else(|| self.key.world());
        let (world, rows) = match spec
            .kind
            .build(&self.problem, key)
            .map_err(|error| self.blame_world(&error))?
        {
            Built::World(world) => (world, None),
            Built::Rows(file, columns) => self.table(file, columns, open)?,
        };
        let mut canon = Canon::of(&self.problem, self.key).world(&spec.kind, key, rows.as_deref());
        if let WorldKind::Random { .. } = spec.kind {
            canon = canon.means(world.means());
        }
        Ok(Simulated {
            world,
            key,
            fingerprint: canon.fingerprint(),
        })
    }

    /// 64 hexadecimal digits that stand for all a live experiment depends on: problem, key and service, not the world.
    ///
    /// Two specs that mean the same have the same. A name of the experiment changes nothing; the order of actions or costs
    /// does, as their draws go by number. **It depends on the key**: with it a weak key can be guessed, so keep it as secret.
    pub fn fingerprint(&self) -> String {
        Canon::of(&self.problem, self.key)
            .service(&self.service)
            .fingerprint()
    }

    /// The first value that another spec has otherwise: its path and both, as a message shows them. Names are not compared, as
    /// nothing depends on them.
    pub(crate) fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        self.document.root().difference(other.document.root(), "")
    }

    fn table(
        &self,
        file: &str,
        columns: Option<&[String]>,
        open: &mut dyn FnMut(&str) -> io::Result<Box<dyn io::Read>>,
    ) -> Result<(Arc<dyn World>, Option<String>), SpecError> {
        // The caller opens files: a library that opens nothing works where there is no disk.
        let reader = open(file).map_err(|error| self.unopened(file, &error))?;
        match table::read(&self.problem, file, columns, reader) {
            Ok((table, rows)) => Ok((Arc::new(table), Some(rows))),
            Err(TableFault::Line(error)) => Err(error),
            Err(TableFault::Whole(error)) => Err(self.blame_world(&error)),
        }
    }

    fn unopened(&self, file: &str, error: &io::Error) -> SpecError {
        let named = self
            .document
            .root()
            .child("world")
            .and_then(|world| world.child("file"));
        // The line that names the file, since that is what to mend.
        let place = named.map_or(SpecPlace::Whole, |node| node.place);
        self.document.error(Fault::new(
            place,
            format!("{file:?} cannot be opened: {error}"),
        ))
    }

    fn blame_world(&self, error: &LabError) -> SpecError {
        self.document
            .error(blame_world(self.document.root(), error))
    }
}

/// What a document's sections say.
struct Sections {
    name: Option<String>,
    problem: Problem,
    key: Option<Key>,
    world: Option<WorldSpec>,
    service: ServiceSpec,
}

impl Sections {
    fn read(document: &Document) -> Read<Self> {
        // The problem first: worlds and services are checked against its actions and ranges.
        let top = problem::read(&document.field())?;
        Ok(Self {
            world: read_world(&top)?,
            service: service::read(&top.section, &top.problem)?,
            name: top.name,
            problem: top.problem,
            key: top.key,
        })
    }
}

/// `[world]`, built once for its checks; a table's rows are not read here.
fn read_world(top: &problem::Top<'_>) -> Read<Option<WorldSpec>> {
    let Some(field) = top.section.get("world") else {
        return Ok(None);
    };
    let world = world::read(&field, &top.problem)?;
    let key = world.key.or(top.key.map(Key::world));
    world
        .kind
        // Whether values are right does not depend on the key.
        .build(&top.problem, key.unwrap_or(WorldKey::from(0u64)))
        .map_err(|error| blame_world(top.root, &error))?;
    Ok(Some(world))
}

/// A key: a whole number, or 32 hexadecimal digits.
fn key<K: From<u128>>(field: &Field<'_>, from_hex: fn(&str) -> Result<K, Error>) -> Read<K> {
    match &field.node.value {
        // In quotes they are hexadecimal, bare they are decimal: 32 digits could be either.
        NodeValue::Text(text) => from_hex(text).map_err(|error| field.fault(error.to_string())),
        _ => Ok(K::from(field.whole(
            "it must be a whole number, 0 or more, or 32 hexadecimal digits in quotes",
        )?)),
    }
}

/// The names of the costs, in order.
fn cost_names(problem: &Problem) -> Vec<&str> {
    (1..problem.quantities())
        .map(|quantity| problem.quantity(quantity).name.as_str())
        .collect()
}
