//! The price of replicability: debora beside its rivals, regret and identical rate by horizon. Prints the tables of
//! docs/experiments.md: `cargo run --release --example price`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use debora::key::Label;
use debora::lab::players::{RIVALS, Rival};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::summary::Summary;
use debora::lab::world::Bernoulli;
use debora::problem::Draft;
use debora::{Key, Plan, Policy, Problem, WorldKey};

/// Pairs per cell; a tenth of it for players that decide every round.
const PAIRS: u64 = 200;

/// The longest run of a player that decides every round.
const ROUND_BY_ROUND_MAX: u64 = 1_000_000;

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
        // What the clear test cannot see: nobody is ahead, and the bad actions are played until it has given up.
        "two best" => with_best(actions, 0.1, &[(best, 0.6), (best + 1, 0.6)]),
        "rates below .05" => with_best(actions, 0.02, &[(best, 0.04)]),
        _ => unreachable!("a world of this file"),
    };
    let draft = Box::new(move |horizon| {
        let draft = Problem::free(names(actions), horizon, 0.3);
        if world == "rates below .05" {
            draft.mean("reward", [0.0, 0.05])
        } else {
            draft
        }
    });
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

fn measure(setting: &Setting, draft: Draft, rival: Option<&'static Rival>) -> (Arc<Plan>, Summary) {
    let problem = draft.build().expect("a valid problem");
    let world = Arc::new(Bernoulli::new(&problem, &setting.means).expect("a valid world"));
    let experiment = Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(2u64),
        simulator: Simulator::Epochs,
        checkpoints: vec![problem.horizon()],
        plan: Arc::new(Plan::of(problem)),
    };
    let pairs = if rival.is_some_and(|rival| rival.per_round) {
        PAIRS / 10
    } else {
        PAIRS
    };
    let contestant = rival.map_or(Contestant::Debora, Contestant::Rival);
    let pairs = experiment
        .pairs(contestant, 0..pairs, &|_| (), &AtomicBool::new(false))
        .expect("nobody cancels");
    (
        Arc::clone(&experiment.plan),
        Summary::of(&experiment.plan, &pairs),
    )
}

/// Mean regret, violation where there are costs, and the identical rate; `blind` after it for a plan that compares nothing, a
/// star for a rival whose first batch does not fit into the horizon.
fn cell(plan: &Arc<Plan>, summary: &Summary, rival: Option<&Rival>) -> String {
    let regret = summary.regret.map_or(f64::NAN, |regret| regret.spread.mean);
    let violation = format!(", v {:.3e}", summary.violation.spread.mean);
    let unsafe_runs = match plan.problem.policy() {
        Policy::Free => String::new(),
        Policy::Soft => violation,
        Policy::Hard => format!(
            "{violation}, unsafe {} %",
            100 * summary.unsafe_runs / summary.runs
        ),
    };
    let blind = match rival {
        None if plan.blind => " blind",
        Some(rival) if rival.player(plan, Key::from(1u64)).note().is_some() => " *",
        _ => "",
    };
    format!(
        "{regret:.3e}{unsafe_runs} ({:.0} %){blind}",
        100.0 * summary.identical_rate
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
    settings.iter().for_each(print_table);
}

/// One table of docs/experiments.md: a row per player, a column per horizon.
fn print_table(setting: &Setting) {
    let columns = HORIZONS.map(|horizon| format!("T = {horizon:e}"));
    println!(
        "\n### {}\n\n| player | {} |",
        setting.title,
        columns.join(" | ")
    );
    println!("|---|{}", "---|".repeat(HORIZONS.len()));
    for (profile, draft) in [
        ("tight", tight as fn(Draft) -> Draft),
        ("paper", Draft::paper),
    ] {
        let row = HORIZONS.map(|horizon| {
            let (plan, summary) = measure(setting, draft((setting.draft)(horizon)), None);
            cell(&plan, &summary, None)
        });
        println!("| debora, {profile} | {} |", row.join(" | "));
    }
    // The policy is the same at every horizon.
    let policy = (setting.draft)(HORIZONS[0])
        .build()
        .expect("a valid problem")
        .policy();
    for rival in RIVALS.iter().filter(|rival| rival.plays(policy)) {
        let row = HORIZONS.map(|horizon| {
            if rival.per_round && horizon > ROUND_BY_ROUND_MAX {
                return String::new();
            }
            let (plan, summary) = measure(setting, (setting.draft)(horizon), Some(rival));
            cell(&plan, &summary, Some(rival))
        });
        println!("| {} | {} |", rival.name, row.join(" | "));
    }
}

/// Drafts are of profile tight unless they say otherwise.
fn tight(draft: Draft) -> Draft {
    draft
}
