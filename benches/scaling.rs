//! How the time of a run grows with its horizon, actions and costs, and its memory with its actions, as CSV for figures:
//! `cargo bench --bench scaling`. It takes less than a minute.
//!
//! Policy soft in profile tight, Bernoulli feedback, whole epochs at once. A time is the median over runs with different keys. Memory
//! is the most that a process held that made one run (`VmHWM`, so on Linux alone). What a run was goes to standard error.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use debora::lab::metrics::checkpoints;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::Bernoulli;
use debora::{Key, Plan, Problem, WorldKey};

/// Long enough for two thousand actions to be estimated.
const HORIZON: u64 = 1_000_000_000_000_000;

const RHO: f64 = 0.3;

/// The argument that asks this program for one run of so many actions and its memory.
const MEMORY: &str = "--memory-of";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == MEMORY) {
        return print_memory(arguments[place + 1].parse().expect("a number of actions"));
    }
    // Cargo runs benches among all targets' tests, too, but says so.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    println!("series,x,y");
    for power in 6..=15 {
        let horizon = 10u64.pow(power);
        print_time("run by T (ms)", horizon, &experiment(10, 2, horizon, RHO));
    }
    for actions in [2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000] {
        let experiment = experiment(actions, 2, HORIZON, RHO);
        print_time("run by K (ms)", actions.into(), &experiment);
    }
    for costs in 0..=8 {
        let experiment = experiment(10, costs, HORIZON, RHO);
        print_time("run by m (ms)", costs as u64, &experiment);
    }
    for actions in [1_000, 4_000, 16_000, 64_000] {
        if let Some(megabytes) = memory_of(actions) {
            println!("memory by K (MB),{actions},{megabytes}");
        }
    }
}

/// The better the dearer, and every cost a little different. Limits are such that the best actions are too dear to be played alone.
fn experiment(actions: u32, costs: usize, horizon: u64, rho: f64) -> Experiment {
    let names = (0..actions).map(|action| format!("action {action}"));
    let row = |low: f64, span: f64| {
        let mean = move |a: u32| low + span * f64::from(a) / f64::from(actions);
        (0..actions).map(mean).collect::<Vec<_>>()
    };
    let mut means = vec![row(0.1, 0.8)];
    let mut draft = Problem::soft(names, horizon, rho);
    for cost in 0..costs {
        let shift = 0.02 * cost as f64;
        means.push(row(0.1 + shift, 0.6 - shift));
        draft = draft.cost(format!("cost {cost}"), [0.0, 1.0], 0.4 + shift);
    }
    let problem = draft.build().unwrap();
    let world = Arc::new(Bernoulli::new(&problem, &means).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(1u64),
        simulator: Simulator::Epochs,
        checkpoints: checkpoints(horizon),
        plan: Arc::new(Plan::of(problem)),
    }
}

/// The median time of a run, over as many of them as half a second holds, but three at least and a hundred and one at most.
fn print_time(series: &str, x: u64, experiment: &Experiment) {
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut epochs = 0;
    while times.len() < 3 || (times.len() < 101 && begun.elapsed().as_secs_f64() < 0.5) {
        let start = Instant::now();
        let run = experiment.run(Contestant::Debora, times.len() as u64, 0);
        times.push(1e3 * start.elapsed().as_secs_f64());
        epochs = run.unwrap().epochs;
    }
    times.sort_by(f64::total_cmp);
    println!("{series},{x},{:.5}", times[times.len() / 2]);
    let blind = if experiment.plan.blind { ", blind" } else { "" };
    eprintln!(
        "{series} {x}: {} runs, the last of {epochs} epochs{blind}",
        times.len()
    );
}

/// The memory of a process of its own that makes one run, in megabytes.
fn memory_of(actions: u32) -> Option<f64> {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args([MEMORY, &actions.to_string()])
        .output()
        .expect("this program runs again");
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Makes one run with one cost, and a rho at which the most actions can be estimated, then prints the most memory this process held, in megabytes.
fn print_memory(actions: u32) {
    let experiment = experiment(actions, 1, HORIZON, 0.9);
    let run = experiment.run(Contestant::Debora, 0, 0).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| {
        let value = line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?;
        value.trim().parse::<f64>().ok()
    });
    if let Some(kilobytes) = kilobytes {
        println!("{:.2}", kilobytes / 1024.0);
    }
    eprintln!("{actions} actions, {} epochs", run.epochs);
}
