//! What debora loses in fifteen worlds by horizon, for the table of docs/experiments.md that puts it beside the values of
//! version 1, measured with the same keys: `cargo run --release --example versions`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use debora::key::Label;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::summary::Summary;
use debora::lab::world::Bernoulli;
use debora::problem::Draft;
use debora::{Key, Plan, Policy, Problem, WorldKey};

/// Pairs per cell.
const PAIRS: u64 = 200;

const HORIZONS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A family of problems: how to draft one at a horizon, and its means.
struct Setting {
    title: String,
    draft: Box<dyn Fn(u64) -> Draft>,
    means: Vec<Vec<f64>>,
}

fn names(actions: usize) -> Vec<String> {
    (0..actions)
        .map(|action| format!("action {action}"))
        .collect()
}

/// Uniform means. Rewards are turned so that the best action stands in the middle: a player that never leaves action 0 must
/// not look good.
fn uniform(actions: usize, quantity: u64) -> Vec<f64> {
    let draw = |a: u64| Key::from(9u64).uniform(Label::Threshold, [actions as u64, quantity, a]);
    let mut means: Vec<f64> = (0..actions as u64).map(draw).collect();
    if quantity == 0 {
        let best = (0..actions).fold(0, |best, a| if means[a] > means[best] { a } else { best });
        means.rotate_left((best + actions - actions / 2) % actions);
    }
    means
}

/// Policy free in a world of one of four kinds.
fn free(actions: usize, world: &'static str) -> Setting {
    let best = actions / 2;
    let means = match world {
        "uniform" => uniform(actions, 0),
        "gap .1" => with_best(actions, 0.5, &[(best, 0.6)]),
        // What no look can see: nobody is ahead, and the bad actions are tried to the end of the trial.
        "two best" => with_best(actions, 0.1, &[(best, 0.6), (best + 1, 0.6)]),
        "rates below .05" => with_best(actions, 0.02, &[(best, 0.04)]),
        _ => unreachable!("a world of this file"),
    };
    let draft = Box::new(move |horizon| Problem::free(names(actions), horizon, 0.3));
    Setting {
        title: format!("free, K = {actions}, {world}"),
        draft,
        means: vec![means],
    }
}

/// The same mean for all actions but these.
fn with_best(actions: usize, others: f64, best: &[(usize, f64)]) -> Vec<f64> {
    let mut means = vec![others; actions];
    for &(action, mean) in best {
        means[action] = mean;
    }
    means
}

/// One cost with threshold .5; action 0 is safe for sure, the others cost what they cost.
fn limited(policy: Policy, actions: usize) -> Setting {
    let mut costs = uniform(actions, 1);
    costs[0] = 0.1;
    let draft = Box::new(move |horizon| {
        let mut safe = vec![0.0; actions];
        safe[0] = 1.0;
        if policy == Policy::Hard {
            let draft = Problem::hard(names(actions), horizon, 0.3).cost("cost", [0.0, 1.0], 0.5);
            draft.safe_with_margins(safe, [0.4])
        } else {
            Problem::soft(names(actions), horizon, 0.3).cost("cost", [0.0, 1.0], 0.5)
        }
    });
    Setting {
        title: format!("{}, K = {actions}, one cost", policy.name()),
        draft,
        means: vec![uniform(actions, 0), costs],
    }
}

/// Regret as far as it is positive, and violation: what a run loses.
fn lost(setting: &Setting, horizon: u64) -> String {
    let problem = (setting.draft)(horizon).build().expect("a valid problem");
    let world = Arc::new(Bernoulli::new(&problem, &setting.means).expect("a valid world"));
    let experiment = Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(2u64),
        simulator: Simulator::Epochs,
        checkpoints: vec![horizon],
        plan: Arc::new(Plan::of(problem)),
    };
    let pairs = experiment
        .pairs(
            Contestant::Debora,
            0..PAIRS,
            &|_| (),
            &AtomicBool::new(false),
        )
        .expect("nobody cancels");
    let summary = Summary::of(&experiment.plan, &pairs);
    let regret = summary.regret.map_or(f64::NAN, |regret| regret.spread.mean);
    let blind = if experiment.plan.blind { " blind" } else { "" };
    format!(
        "{:.3e}{blind}",
        regret.max(0.0) + summary.violation.spread.mean
    )
}

fn main() {
    let mut settings = Vec::new();
    for world in ["uniform", "gap .1"] {
        settings.extend([2, 5, 20].map(|actions| free(actions, world)));
    }
    settings.extend([5, 20].map(|actions| free(actions, "two best")));
    settings.push(free(5, "rates below .05"));
    for policy in [Policy::Soft, Policy::Hard] {
        settings.extend([2, 5, 20].map(|actions| limited(policy, actions)));
    }
    let columns = HORIZONS.map(|horizon| format!("T = {horizon:e}"));
    println!("| setting | {} |", columns.join(" | "));
    println!("|---|{}", "---|".repeat(HORIZONS.len()));
    for setting in &settings {
        let row = HORIZONS.map(|horizon| lost(setting, horizon));
        println!("| {} | {} |", setting.title, row.join(" | "));
    }
}
