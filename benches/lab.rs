//! The lab's rows of the speed table: `cargo bench --bench lab`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use debora::lab::metrics::checkpoints;
use debora::lab::players::{OwnPlayer, Player, Rival};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::Bernoulli;
use debora::{Key, Plan, Problem, Strategy, Tally, WorldKey};
use divan::Bencher;

fn main() {
    divan::main();
}

/// Soft constraints on a Bernoulli world: `actions` actions and two costs, the better the dearer.
fn experiment(actions: u32, horizon: u64, simulator: Simulator) -> Experiment {
    let names = (0..actions).map(|action| format!("action {action}"));
    let draft = Problem::soft(names, horizon, 0.3)
        .cost("price", [0.0, 1.0], 0.4)
        .cost("wait", [0.0, 1.0], 0.5);
    let problem = draft.build().unwrap();
    let row = |low: f64, span: f64| {
        (0..actions)
            .map(|a| low + span * f64::from(a) / f64::from(actions))
            .collect::<Vec<_>>()
    };
    let world =
        Arc::new(Bernoulli::new(&problem, &[row(0.1, 0.8), row(0.1, 0.6), row(0.2, 0.5)]).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(1u64),
        simulator,
        checkpoints: checkpoints(horizon),
        plan: Arc::new(Plan::of(problem)),
    }
}

/// One run by whole epochs, by horizon.
#[divan::bench(args = [1_000_000, 1_000_000_000, 1_000_000_000_000, 1_000_000_000_000_000])]
fn run_by_horizon(bencher: Bencher, horizon: u64) {
    let experiment = experiment(10, horizon, Simulator::Epochs);
    let mut pair = 0;
    bencher.bench_local(|| {
        pair += 1;
        experiment.run(Contestant::Debora, pair, 0).unwrap()
    });
}

/// One run by whole epochs at T = 1e12, by number of actions.
#[divan::bench(args = [2, 10, 50, 200])]
fn run_by_actions(bencher: Bencher, actions: u32) {
    let experiment = experiment(actions, 1_000_000_000_000, Simulator::Epochs);
    let mut pair = 0;
    bencher.bench_local(|| {
        pair += 1;
        experiment.run(Contestant::Debora, pair, 0).unwrap()
    });
}

/// One run of 16,000 actions by whole epochs, by number of costs (0: policy free). At T = 1e12 nothing can be estimated, and the
/// run is one epoch; at 1e15 it has thousands.
#[divan::bench(args = [(0, 1_000_000_000_000), (1, 1_000_000_000_000), (0, 1_000_000_000_000_000), (1, 1_000_000_000_000_000)], sample_count = 3, sample_size = 1)]
fn run_of_16_000_actions(bencher: Bencher, (costs, horizon): (usize, u64)) {
    let actions = 16_000;
    let names = (0..actions).map(|action| format!("action {action}"));
    let row = |low: f64, span: f64| {
        (0..actions)
            .map(|a| low + span * f64::from(a) / f64::from(actions))
            .collect::<Vec<_>>()
    };
    let mut means = vec![row(0.1, 0.8)];
    let problem = if costs == 0 {
        Problem::free(names, horizon, 0.9).growth(2)
    } else {
        means.push(row(0.1, 0.6));
        Problem::soft(names, horizon, 0.9).cost("price", [0.0, 1.0], 0.4)
    };
    let problem = problem.build().unwrap();
    let world = Arc::new(Bernoulli::new(&problem, &means).unwrap());
    let experiment = Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(1u64),
        simulator: Simulator::Epochs,
        checkpoints: checkpoints(horizon),
        plan: Arc::new(Plan::of(problem)),
    };
    bencher.bench(|| experiment.run(Contestant::Debora, 0, 0).unwrap());
}

/// One run round by round, a million rounds.
#[divan::bench]
fn run_round_by_round(bencher: Bencher) {
    let experiment = experiment(10, 1_000_000, Simulator::Rounds);
    bencher.bench(|| experiment.run(Contestant::Debora, 0, 0).unwrap());
}

/// Ten thousand pairs at T = 1e12 on all cores.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn ten_thousand_pairs(bencher: Bencher) {
    let experiment = experiment(10, 1_000_000_000_000, Simulator::Epochs);
    bencher.bench(|| {
        experiment
            .pairs(
                Contestant::Debora,
                0..10_000,
                &|_| (),
                &AtomicBool::new(false),
            )
            .unwrap()
    });
}

/// Nothing but what the trait and the simulators cost: action 0 in stretches of one round.
struct Idle(Strategy);

impl Player for Idle {
    fn strategy(&self) -> &Strategy {
        &self.0
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, _: &Tally) {}
}

/// A hundred thousand stretches of one round by a player of one's own that does nothing, by rounds and as epochs.
#[divan::bench(args = [true, false])]
fn stretches_of_an_idle_player(bencher: Bencher, by_rounds: bool) {
    let experiment = experiment(10, 100_000, Simulator::Epochs);
    let own = OwnPlayer::new("idle", |plan, _| {
        Box::new(Idle(Strategy::pure(0, plan.problem.actions().len())))
    });
    let own = if by_rounds { own.per_round() } else { own };
    bencher.bench(|| experiment.run(Contestant::Own(&own), 0, 0).unwrap());
}

/// A hundred thousand rounds of each rival that decides anew in every one.
#[divan::bench(args = ["ucb1", "thompson", "kl-ucb", "exp3", "primal-dual", "doss", "pessimistic-optimistic"], sample_count = 10)]
fn rivals_round_by_round(bencher: Bencher, name: &str) {
    let soft = experiment(10, 100_000, Simulator::Rounds);
    let rival = Rival::named(name).unwrap();
    // Those without limits play the same actions and rewards.
    let experiment = if rival.plays(soft.plan.problem.policy()) {
        soft
    } else {
        free(10, 100_000)
    };
    bencher.bench(|| experiment.run(Contestant::Rival(rival), 0, 0).unwrap());
}

/// No limits, and the rewards of `experiment`.
fn free(actions: u32, horizon: u64) -> Experiment {
    let names = (0..actions).map(|action| format!("action {action}"));
    let problem = Problem::free(names, horizon, 0.3).build().unwrap();
    let rewards = (0..actions).map(|a| 0.1 + 0.8 * f64::from(a) / f64::from(actions));
    let world = Arc::new(Bernoulli::new(&problem, &[rewards.collect()]).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(1u64),
        simulator: Simulator::Rounds,
        checkpoints: checkpoints(horizon),
        plan: Arc::new(Plan::of(problem)),
    }
}
