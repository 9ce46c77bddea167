//! One file per verb.

pub mod audit;
pub mod compare;
pub mod diff;
pub mod init;
pub mod measure;
pub mod merge;
pub mod plan;
pub mod replicate;
pub mod run;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use debora::lab::metrics::checkpoints;
use debora::lab::replicate::{Experiment, Simulator};
use debora::lab::world::{Truth, World};
use debora::spec::{Simulated, Spec};
use debora::{Plan, Policy};

use crate::args::SpecArgs;
use crate::report::words::{amount, percent, whole};

/// Set by Ctrl-C.
pub static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Set while pairs are measured, which look at [`CANCELLED`] between two of them.
pub static MEASURING: AtomicBool = AtomicBool::new(false);

/// Ctrl-C asks the measuring of pairs to stop. Other work, and a second Ctrl-C, end at once, without a half file.
pub fn listen_for_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        if CANCELLED.swap(true, Ordering::Relaxed) || !MEASURING.load(Ordering::Relaxed) {
            crate::files::remove_unfinished();
            eprintln!("error: stopped as asked; nothing is complete");
            std::process::exit(2);
        }
    })
    .context("cannot listen for Ctrl-C")
}

/// Prints to standard output. A reader that has gone away is not an error: it has seen enough.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// A spec as it was read, with what it means.
pub struct Loaded {
    pub text: String,
    pub file: String,
    pub overrides: Vec<(String, String)>,
    pub spec: Spec,
    pub plan: Arc<Plan>,
}

impl Loaded {
    pub fn read(args: &SpecArgs) -> Result<Self> {
        let file = args.file.display().to_string();
        let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read {file}"))?;
        Self::from_text(text, file, args.overrides())
    }

    pub fn from_text(text: String, file: String, overrides: Vec<(String, String)>) -> Result<Self> {
        let spec = Spec::parse_with(&text, &file, &overrides)?;
        let plan = Arc::new(Plan::of(spec.problem.clone()));
        Ok(Self { text, file, overrides, spec, plan })
    }

    /// The world of the spec; tables are looked for beside it.
    pub fn world(&self) -> Result<Simulated> {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new("")).to_owned();
        let mut open = |name: &str| Ok(Box::new(fs::File::open(folder.join(name))?) as Box<dyn std::io::Read>);
        Ok(self.spec.world(&mut open)?)
    }

    pub fn experiment(&self, simulator: Simulator) -> Result<Experiment> {
        let Simulated { world, key: world_key, .. } = self.world()?;
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

/// What a person must know before anything else: a blind plan, long exploration, a premise the world breaks.
pub fn warnings(plan: &Plan, world: Option<&dyn World>) -> Vec<String> {
    let (problem, mut warnings) = (&plan.problem, Vec::new());
    if plan.blind {
        warnings.push(blind(plan));
    } else if let Some(rounds) = plan.exploration_rounds {
        let share = rounds as f64 / problem.horizon() as f64;
        if share > 0.2 {
            let part = percent(share);
            warnings.push(format!(
                "exploration takes {} rounds, {part} of the horizon; a longer horizon or a larger rho needs less",
                whole(rounds)
            ));
        }
    }
    let Some(world) = world else { return warnings };
    let truth = Truth::of(problem, world);
    if problem.policy() != Policy::Free && truth.best.is_none() {
        warnings.push(infeasible(plan, world));
    }
    for (cost, missing) in truth.margins_missing.iter().enumerate().filter(|(_, missing)| **missing > 1e-12) {
        let quantity = problem.quantity(cost + 1);
        warnings.push(format!(
            "the safe strategy's true margin on {} is smaller than the stated one by {}: safety is not promised",
            quantity.name,
            amount(missing * quantity.range.span())
        ));
    }
    warnings
}

fn blind(plan: &Plan) -> String {
    let mut ways = Vec::new();
    if let Some(horizon) = plan.horizon_needed {
        ways.push(format!("a horizon of at least {}", whole(horizon)));
    }
    if let Some(rho) = plan.rho_needed {
        ways.push(format!("rho above {}", amount(rho)));
    }
    if plan.profile == "paper" {
        ways.push("profile tight".into());
    }
    let ways = if ways.is_empty() { "fewer actions or costs".to_owned() } else { ways.join(", or ") };
    format!(
        "BLIND: {} rounds are too few for rho {}: nothing will ever be compared, and decisions replicate only because they ignore the data. What would see: {ways}.",
        whole(plan.problem.horizon()),
        plan.problem.rho()
    )
}

/// Which cost cannot be kept, if one alone cannot; else that they cannot be kept together.
fn infeasible(plan: &Plan, world: &dyn World) -> String {
    let problem = &plan.problem;
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        let cheapest = world.means()[cost + 1].iter().copied().fold(f64::INFINITY, f64::min);
        if cheapest > *threshold {
            let quantity = problem.quantity(cost + 1);
            return format!(
                "no strategy can keep {} at or below {}: the cheapest costs {}",
                quantity.name,
                amount(quantity.range.to_user(*threshold)),
                amount(quantity.range.to_user(cheapest))
            );
        }
    }
    "no strategy can keep all thresholds at once, though each can be kept alone".into()
}
