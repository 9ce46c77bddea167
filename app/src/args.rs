//! What was typed, turned in one step into what it means.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};

use debora::spec::{ImportColumns, number, whole_number};

use crate::store::{Location, Role};
use debora::measure::{MeasureError, Over};

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
// A literal, as `concat!` takes no constants; a test below holds it to the library's number.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (values version 2)");

#[derive(Args, Clone)]
pub struct Common {
    /// Where the verb writes its files, if it writes any.
    // Filled in from the verb's own flag: as a global one it would be taken, and forgotten, where nothing is written.
    #[arg(skip)]
    pub out: Option<PathBuf>,
    /// Overwrite what is in the way of --out, --trace or init
    #[arg(long, global = true)]
    pub force: bool,
    /// One JSON document on standard output, and nothing else there
    // In the environment 0, no and false mean no, as people expect of a switch.
    #[arg(long, global = true, env = "DEBORA_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
    /// Threads to use; results do not depend on it [default: all cores, serve: all but one]
    #[arg(long, global = true, env = "DEBORA_THREADS", value_name = "N",
          value_parser = whole::<u16, 1, 65_535>)]
    pub threads: Option<u16>,
    /// No progress bar
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// For the verbs that write files.
#[derive(Args, Clone)]
pub struct OutArgs {
    /// Write all that was found into this new folder: data, and figures and a page if there are any
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Write a commented spec to start from, and beside it the schema that editors check it with
    Init {
        /// Where to; - is standard output
        #[arg(default_value = "debora.toml")]
        file: PathBuf,
    },
    /// A recorded test, such as an A/B test's CSV, as a world to plan from: --out writes its rows and a commented spec
    Import {
        /// A CSV file with a header; - is standard input
        #[arg(value_name = "TEST.csv")]
        file: PathBuf,
        #[command(flatten)]
        columns: TestColumns,
        #[command(flatten)]
        out: OutArgs,
    },
    /// Every constant of a run before it starts: exploration, widths, bounds
    Plan {
        #[command(flatten)]
        spec: SpecArgs,
        /// Also say which horizon is needed to see a reward gap this large, in the reward's units
        #[arg(long, value_name = "G", value_parser = parse_number)]
        gap: Option<f64>,
        #[command(flatten)]
        out: OutArgs,
    },
    /// One simulated run
    Run {
        #[command(flatten)]
        spec: SpecArgs,
        /// Which pair's key and data, from 0, as `replicate` numbers them
        #[arg(long, value_name = "J", default_value = "0", value_parser = whole::<u64, 0, { u64::MAX }>)]
        pair: u64,
        /// The first (0) or the second (1) run of the pair: the same key, other data
        #[arg(long, value_name = "0|1", default_value = "0", value_parser = whole::<u8, 0, 1>)]
        member: u8,
        /// Write one line of JSON per epoch
        #[arg(long, value_name = "FILE.jsonl")]
        trace: Option<PathBuf>,
        /// Whole epochs at once, or one round after another
        #[arg(long, default_value = "epochs")]
        simulator: SimulatorArg,
        #[command(flatten)]
        out: OutArgs,
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
    /// The policy beside its rivals on the same worlds; of several specs, in one table and one figure
    Compare {
        #[command(flatten)]
        specs: SpecsArgs,
        #[command(flatten)]
        pairs: PairArgs,
        /// Which rivals [default: all that are quick; by name also thompson, kl-ucb, exp3, doss, pessimistic-optimistic]
        #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
        players: Vec<String>,
        #[command(flatten)]
        latex: LatexArg,
    },
    /// Measure at every point of a grid: regret, violation and identical pairs against a parameter
    #[command(after_long_help = SWEEP_HELP)]
    Sweep {
        #[command(flatten)]
        specs: SpecsArgs,
        /// A parameter and its values, as rho=0.05,0.1,0.3 or horizon=1e4..1e9; may be repeated
        #[arg(long, value_name = "NAME=VALUES", required = true, value_parser = parse_over)]
        over: Vec<Over>,
        #[command(flatten)]
        pairs: PairArgs,
        /// Rivals beside debora [default: debora alone, as replicate]
        #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
        players: Vec<String>,
        #[command(flatten)]
        latex: LatexArg,
    },
    /// Combine parts of replicate, compare or sweep
    Merge {
        /// Files written with --shard, or folders of them
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        #[command(flatten)]
        latex: LatexArg,
        #[command(flatten)]
        out: OutArgs,
    },
    /// What is fixed before a live experiment's first decision, to be published before it; --out writes it as JSON and as a page
    Seal {
        /// The spec file (TOML), as it will be given to the service
        #[arg(value_name = "SPEC")]
        file: PathBuf,
        #[command(flatten)]
        out: OutArgs,
    },
    /// Live experiments over HTTP, until asked to stop
    Serve(ServeArgs),
    /// Recompute every decision of a live experiment, and check its log against the hashes
    #[command(after_long_help = AUDIT_HELP)]
    Audit {
        /// A log (JSON lines; - is standard input), a store (a SQLite file or postgres://..) or the address of an experiment
        #[arg(value_name = "LOG|STORE|URL")]
        source: String,
        /// Which experiment [default: every one of a store]
        #[arg(long, value_name = "ID")]
        experiment: Option<String>,
        /// A head that was published earlier: it must be in the chain
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        #[command(flatten)]
        access: AccessArgs,
    },
    /// Where two live experiments diverge, and which estimate made them
    Diff {
        /// A log, a store or an address; one experiment of several is named as in STORE#ID
        #[arg(value_name = "A")]
        first: String,
        /// Another
        #[arg(value_name = "B")]
        second: String,
        #[command(flatten)]
        access: AccessArgs,
    },
    /// API keys with the right to read, decide or administer; also while a server is running
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
    /// Whether a server on this machine can commit: exit code 0 if it can, 1 if not
    Ready {
        /// Where it listens
        #[arg(
            long,
            env = "DEBORA_LISTEN",
            default_value = "127.0.0.1:8080",
            value_name = "HOST:PORT"
        )]
        listen: String,
    },
    /// Write the manual, a page for each verb, into a folder
    // For those who package the program.
    #[command(hide = true)]
    Man {
        /// An existing folder
        folder: PathBuf,
    },
    /// The JSON Schema of a spec file, for editors
    Schema,
    /// Completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

impl Verb {
    /// The folder to write into.
    fn out(&self) -> Option<&PathBuf> {
        match self {
            Self::Import { out, .. }
            | Self::Plan { out, .. }
            | Self::Run { out, .. }
            | Self::Merge { out, .. }
            | Self::Seal { out, .. } => out.out.as_ref(),
            Self::Replicate { pairs, .. }
            | Self::Compare { pairs, .. }
            | Self::Sweep { pairs, .. } => pairs.out.out.as_ref(),
            _ => None,
        }
    }
}

/// The columns of a recorded test.
#[derive(Args, Clone)]
pub struct TestColumns {
    /// The column that says what was chosen
    #[arg(long, value_name = "COLUMN")]
    action: String,
    /// The column of what to maximise, and its name if that is to be another
    #[arg(long, value_name = "[NAME=]COLUMN")]
    reward: String,
    /// A column of what to limit; may be repeated
    #[arg(long = "cost", value_name = "[NAME=]COLUMN")]
    costs: Vec<String>,
}

impl TestColumns {
    /// What was typed.
    pub fn columns(&self) -> ImportColumns {
        let costs = self.costs.iter().map(String::as_str);
        ImportColumns::new(&self.action, &self.reward, costs)
    }
}

impl Cli {
    /// What was typed; ends the program with a message if that cannot be.
    pub fn typed() -> Self {
        let mut cli = Self::try_parse().unwrap_or_else(|error| called_key(error).exit());
        cli.common.out = cli.verb.out().cloned();
        cli
    }
}

/// What others call a seed is called a key here, and no spelling of one is near to the other.
fn called_key(mut error: clap::Error) -> clap::Error {
    let wrong = error.get(ContextKind::InvalidArg);
    if wrong == Some(&ContextValue::String("--seed".into())) {
        let key = ContextValue::String("--key".into());
        error.insert(ContextKind::SuggestedArg, key);
    }
    error
}

/// Where the service listens and what it keeps its experiments in.
#[derive(Args, Clone)]
pub struct ServeArgs {
    /// A SQLite file, made if it is missing, or postgres://...
    #[arg(
        long,
        env = "DEBORA_STORE",
        hide_env_values = true,
        default_value = "debora.db",
        value_name = "FILE|URL"
    )]
    pub store: String,
    /// Where to listen; port 0 is any that is free. Addresses that others can reach need an API key
    #[arg(
        long,
        env = "DEBORA_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "HOST:PORT"
    )]
    pub listen: String,
    /// Seconds that a client may take to send its headers, and again its body; idle connections are kept as long
    #[arg(long, env = "DEBORA_TIMEOUT", default_value = "30", value_name = "SECONDS",
          value_parser = whole::<u64, 1, 3600>)]
    pub timeout: u64,
    /// Connections at a time; more are answered 503, but for a few with API keys and for /health and /ready
    #[arg(long, env = "DEBORA_CONNECTIONS", default_value = "1024", value_name = "N",
          value_parser = whole::<u32, 1, 1_000_000>)]
    pub connections: u32,
    /// Seconds that requests in flight may take after SIGTERM or Ctrl-C
    #[arg(long, env = "DEBORA_GRACE", default_value = "10", value_name = "SECONDS",
          value_parser = whole::<u64, 0, 3600>)]
    pub grace: u64,
    /// What is logged on standard error: off, error, warn, info, debug or trace
    #[arg(long, env = "DEBORA_LOG", default_value = "info", value_name = "LEVEL")]
    pub log: tracing::level_filters::LevelFilter,
}

/// What audit can and cannot find.
const AUDIT_HELP: &str = "\
Exit code 0: all equal. 1: a difference, which is named with both values. 2: it cannot be audited; if only the key is not \
revealed yet, hashes and counts are still checked.

What it finds: any change of what is stored or shown of an experiment, by anyone who cannot change everything that depends on it, \
and anything in a store that debora does not make. Anyone who can rewrite the whole store can rehash it. Heads stop that: each head \
stands for all that is in the chain before it, so publish or note down heads while the experiment goes on, and give one with \
--head. What it does not find: changes of what is in no hash yet, which are the values that were told in the open epoch, and its \
times, request keys and names of actors.";

/// How values are written, and what a sweep leaves.
const SWEEP_HELP: &str = "\
VALUES are separated by commas, or a range: a..b by factors of ten, a..b*f by factors of f, a..b+s by steps of s. NAME is any value \
of the spec by its path, as for --set; K is short for actions, gap for world.gap and world for world.index, of random worlds. The \
last --over changes first. Every point has the same key, world key and pairs, and is what replicate (or compare, with --players) \
gives for the spec with these values.

With --out, each point is written as it is finished, and the same command on the same folder goes on where it was stopped.";

/// How a service is entered.
#[derive(Args, Clone)]
pub struct AccessArgs {
    /// The API key for a URL; better from the environment, as others see what is typed
    #[arg(
        long,
        value_name = "KEY",
        env = "DEBORA_API_KEY",
        hide_env_values = true
    )]
    api_key: Option<String>,
    /// A file with the API key
    // Files can be kept from other users; what is typed or exported is seen by more.
    #[arg(long, value_name = "FILE", conflicts_with = "api_key")]
    key_file: Option<PathBuf>,
}

impl AccessArgs {
    /// The API key, if there is one.
    pub fn access(&self) -> anyhow::Result<crate::audit::Credentials> {
        use anyhow::Context as _;
        let api_key = match &self.key_file {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                // Editors end files with a line break, which is not part of the key.
                Some(text.trim().to_owned())
            }
            None => self.api_key.clone(),
        };
        Ok(crate::audit::Credentials { api_key })
    }
}

#[derive(Subcommand)]
pub enum KeysVerb {
    /// Create a key and print it, only this once: the store keeps its hash alone
    Add {
        /// What the log will call its user
        name: String,
        /// What it allows
        #[arg(long)]
        role: RoleArg,
        /// The experiment it is for, which need not be there yet; may be repeated. Without it, the key is for all
        #[arg(long = "experiment", value_name = "ID")]
        experiments: Vec<String>,
    },
    /// List key names and roles (never the keys themselves)
    List,
    /// Revoke a key
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
    #[arg(
        long,
        global = true,
        env = "DEBORA_STORE",
        hide_env_values = true,
        default_value = "debora.db"
    )]
    store: String,
}

impl StoreArgs {
    /// What was typed.
    pub fn location(&self) -> Location {
        Location::parse(&self.store)
    }
}

#[derive(Args, Clone)]
pub struct PairArgs {
    /// How many pairs, as 1000 or 1e3 [default: 1000 for replicate, 200 for compare and at each point of sweep]
    #[arg(long, value_name = "N", value_parser = whole::<u64, 1, { u64::MAX }>)]
    // Without a default here, as it differs by verb.
    pub pairs: Option<u64>,
    /// Measure only part i of n (from 1) and write it into --out; `debora merge` puts parts together
    #[arg(long, value_name = "i/n", value_parser = parse_shard, requires = "out")]
    pub shard: Option<(u64, u64)>,
    /// Whole epochs at once, or one round after another
    #[arg(long, default_value = "epochs")]
    pub simulator: SimulatorArg,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Clone, Copy, ValueEnum)]
// A copy of the library's enum, which cannot derive this trait: the library does not depend on clap.
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
    #[command(flatten)]
    pub changes: SpecChanges,
}

/// Spec files, and what is changed in each of them.
#[derive(Args, Clone)]
pub struct SpecsArgs {
    /// The spec file (TOML), or several
    #[arg(value_name = "SPEC", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub changes: SpecChanges,
}

/// Whether a table for papers is wanted.
#[derive(Args, Clone, Copy)]
pub struct LatexArg {
    /// Also write table.tex into --out: the table for a paper, with intervals, the best in bold
    #[arg(long, requires = "out")]
    pub latex: bool,
}

/// What replaces a spec's values.
#[derive(Args, Clone)]
pub struct SpecChanges {
    /// Instead of the spec's policy: free, soft or hard
    #[arg(long)]
    // Texts all of them: the spec's reader checks them by its own rules, and its errors name the flag's value.
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

impl SpecChanges {
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
        let given = scalars
            .into_iter()
            .filter_map(|(path, value)| Some((path.to_owned(), value.clone()?)));
        // --set comes last, and the later wins: it can say everything the other flags can.
        given.chain(self.sets.iter().cloned()).collect()
    }
}

/// A number, as `.3` or `10_000`.
fn parse_number(text: &str) -> Result<f64, String> {
    number(text).ok_or_else(|| "give a number, such as 0.05".to_owned())
}

/// A whole number from `LOW` to `HIGH`, as `1000`, `1e3` or `1_000`.
fn whole<T: TryFrom<u64>, const LOW: u64, const HIGH: u64>(text: &str) -> Result<T, String> {
    whole_number(text)
        .filter(|number| (LOW..=HIGH).contains(number))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| match HIGH {
            u64::MAX => format!("give a whole number of {LOW} or more, such as 1000 or 1e3"),
            _ => format!("give a whole number from {LOW} to {HIGH}"),
        })
}

fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text
        .split_once('/')
        .and_then(|(shard, shards)| Some((whole_number(shard)?, whole_number(shards)?)));
    match parts {
        // From 1 to n, as batch systems number their arrays and as people count.
        Some((shard, shards)) if shard >= 1 && shard <= shards => Ok((shard, shards)),
        _ => Err("give i/n with i from 1 to n, such as 2/3".into()),
    }
}

fn parse_over(text: &str) -> Result<Over, String> {
    Over::parse(text).map_err(|error| match error {
        // Without the text, which clap shows before the message.
        MeasureError::Over { reason, .. } => reason,
        error => error.to_string(),
    })
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (path, value) = text
        // At the first: a value may hold more of them.
        .split_once('=')
        .ok_or("give PATH=VALUE, such as cost.price.threshold=0.004")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_names_the_values_version() {
        assert!(super::VERSION.ends_with(&format!("(values version {})", debora::VALUES_VERSION)));
    }
}
