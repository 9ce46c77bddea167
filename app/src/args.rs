//! What was typed, turned in one step into what it means.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::store::{Location, Role};

/// Bandit experiments whose decisions replicate, within limits.
#[derive(Parser)]
#[command(name = "debora", version = VERSION, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
    #[command(flatten)]
    pub common: Common,
}

/// The version, with the version of the values.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (values version 1)");

#[derive(Args, Clone)]
pub struct Common {
    /// Write summary.json, CSV, SVG plots and report.html into this new folder
    #[arg(long, global = true, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Overwrite what is in the way of --out, --trace or init
    #[arg(long, global = true)]
    pub force: bool,
    /// One JSON document on standard output, and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// Threads to use; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// No progress bar
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Write a commented spec to start from
    Init {
        /// Where to; - is standard output
        #[arg(default_value = "debora.toml")]
        file: PathBuf,
    },
    /// Every constant of a run before it starts: exploration, widths, bounds
    Plan {
        #[command(flatten)]
        spec: SpecArgs,
        /// Also say which horizon is needed to see a reward gap this large, in the reward's units
        #[arg(long, value_name = "G")]
        gap: Option<f64>,
    },
    /// One simulated run
    Run {
        #[command(flatten)]
        spec: SpecArgs,
        /// Write one line of JSON per epoch
        #[arg(long, value_name = "FILE.jsonl")]
        trace: Option<PathBuf>,
        /// Whole epochs at once, or one round after another
        #[arg(long, default_value = "epochs")]
        simulator: SimulatorArg,
    },
    /// Many pairs of runs, one key and fresh data: are the decisions the same?
    Replicate {
        #[command(flatten)]
        spec: SpecArgs,
        #[command(flatten)]
        pairs: PairArgs,
        /// The world of each pair's second run, to see what another world does
        #[arg(long, value_name = "SPEC2")]
        other_world: Option<PathBuf>,
    },
    /// The policy beside its rivals on the same worlds
    Compare {
        #[command(flatten)]
        spec: SpecArgs,
        #[command(flatten)]
        pairs: PairArgs,
        /// Which rivals [default: all that can play]
        #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
        players: Vec<String>,
    },
    /// Combine shards of replicate or compare
    Merge {
        /// Files written with --shard, or folders of them
        #[arg(required = true)]
        parts: Vec<PathBuf>,
    },
    /// API keys: who may read, decide or administer; beside a running server too
    Keys {
        #[command(subcommand)]
        action: KeysVerb,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Copy a store into one SQLite file, while it is served or not
    Backup {
        #[command(flatten)]
        store: StoreArgs,
        /// The file to write; it must not exist
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
    /// Completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
pub enum KeysVerb {
    /// Make a key and print it, this once: only its hash is kept
    Add {
        /// What the log will call whoever uses it
        name: String,
        /// What it allows
        #[arg(long)]
        role: RoleArg,
    },
    /// List the keys, without the keys
    List,
    /// Let a key be refused from now on
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum RoleArg {
    /// Look, without the experiments' keys
    Read,
    /// Also ask for decisions and tell outcomes
    Decide,
    /// Everything
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Read => Self::Read,
            RoleArg::Decide => Self::Decide,
            RoleArg::Admin => Self::Admin,
        }
    }
}

/// Where the experiments are.
#[derive(Args, Clone)]
pub struct StoreArgs {
    /// Where the experiments are: a SQLite file, or postgres://USER:PASSWORD@HOST/DATABASE
    // An address may hold a password, which `--help` must not show.
    #[arg(long, global = true, env = "DEBORA_STORE", hide_env_values = true, default_value = "debora.db")]
    store: String,
}

impl StoreArgs {
    /// What was typed.
    pub fn location(&self) -> Location {
        Location::of(&self.store)
    }
}

#[derive(Args, Clone)]
pub struct PairArgs {
    /// How many pairs [default: 1000 for replicate, 200 for compare]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub pairs: Option<u64>,
    /// Measure only share i of n (from 1) and write it into --out; `debora merge` puts shares together
    #[arg(long, value_name = "i/n", value_parser = parse_shard, requires = "out")]
    pub shard: Option<(u64, u64)>,
    /// Whole epochs at once, or one round after another
    #[arg(long, default_value = "epochs")]
    pub simulator: SimulatorArg,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SimulatorArg {
    Epochs,
    Rounds,
}

impl From<SimulatorArg> for debora::lab::replicate::Simulator {
    fn from(simulator: SimulatorArg) -> Self {
        match simulator {
            SimulatorArg::Epochs => Self::Epochs,
            SimulatorArg::Rounds => Self::Rounds,
        }
    }
}

/// A spec file, and what is changed in it.
#[derive(Args, Clone)]
pub struct SpecArgs {
    /// The spec file (TOML)
    #[arg(value_name = "SPEC")]
    pub file: PathBuf,
    /// Instead of the spec's policy: free, soft or hard
    #[arg(long)]
    policy: Option<String>,
    /// Instead of the spec's horizon; 1e9 works
    #[arg(long)]
    horizon: Option<String>,
    /// Instead of the spec's rho
    #[arg(long)]
    rho: Option<String>,
    /// Instead of the spec's delta
    #[arg(long)]
    delta: Option<String>,
    /// Instead of the spec's profile: tight or paper
    #[arg(long)]
    profile: Option<String>,
    /// Instead of the spec's growth
    #[arg(long)]
    growth: Option<String>,
    /// Instead of the spec's key: a number or 32 hexadecimal digits
    #[arg(long)]
    key: Option<String>,
    /// Anything else in the spec, as cost.price.threshold=0.004; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = parse_set)]
    sets: Vec<(String, String)>,
}

impl SpecArgs {
    /// What replaces the spec's values, in the order in which it counts.
    pub fn overrides(&self) -> Vec<(String, String)> {
        let scalars = [
            ("policy", &self.policy),
            ("horizon", &self.horizon),
            ("rho", &self.rho),
            ("delta", &self.delta),
            ("profile", &self.profile),
            ("growth", &self.growth),
            ("key", &self.key),
        ];
        let given = scalars.into_iter().filter_map(|(path, value)| Some((path.to_owned(), value.clone()?)));
        given.chain(self.sets.iter().cloned()).collect()
    }
}

fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(shard, shards)| Some((shard.parse().ok()?, shards.parse().ok()?)));
    match parts {
        Some((shard, shards)) if shard >= 1 && shard <= shards => Ok((shard, shards)),
        _ => Err("give i/n with i from 1 to n, such as 2/3".into()),
    }
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("give PATH=VALUE, such as cost.price.threshold=0.004")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_names_the_values_version() {
        assert!(super::VERSION.ends_with(&format!("(values version {})", debora::VALUES_VERSION)));
    }
}
