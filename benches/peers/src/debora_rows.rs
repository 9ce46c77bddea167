//! debora, asked and told in every round, and the same problems simulated by whole epochs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use debora::lab::metrics::checkpoints;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::Bernoulli;
use debora::{Ask, Engine, Key, Plan, Problem, WorldKey};

use crate::{ACTIONS, Coins, ROUNDS, Row, coin, mean};

/// Runs that a time is the mean of: one alone takes a fraction of a millisecond.
const RUNS: u32 = 50;

fn names() -> impl Iterator<Item = String> {
    (0..ACTIONS).map(|action| format!("action {action}"))
}

fn free(horizon: u64) -> Problem {
    Problem::free(names(), horizon, 0.3).build().unwrap()
}

fn soft(horizon: u64) -> Problem {
    Problem::soft(names(), horizon, 0.9)
        .cost("price", [0.0, 1.0], 0.3)
        .cost("wait", [0.0, 1.0], 0.3)
        .build()
        .unwrap()
}

pub fn rows() -> [Row; 2] {
    [
        asked_and_told("debora, free, ask and tell", free(ROUNDS)),
        asked_and_told("debora, soft with two costs, ask and tell", soft(ROUNDS)),
    ]
}

fn asked_and_told(what: &str, problem: Problem) -> Row {
    let (costs, plan) = (problem.quantities() - 1, Arc::new(Plan::of(problem)));
    Row::new(what, move |coins: &Coins| {
        let mut engine = Engine::with_plan(Arc::clone(&plan), Key::from(1u64));
        let mut total = 0.0;
        while let Ask::Decision(decision) = engine.ask() {
            let (coins, action) = (coins[decision.round as usize - 1], decision.action as usize);
            let values = [0, 1, 2].map(|quantity| coin(coins, quantity, action));
            engine
                .tell(decision.round, values[0], &values[1..=costs])
                .unwrap();
            total += values[0];
        }
        total
    })
}

/// Whole runs, of a million rounds and of a thousand million: each measures seconds of one.
pub struct Simulation {
    pub what: &'static str,
    pub runs: [Box<dyn Fn() -> f64>; 2],
}

pub fn simulations() -> [Simulation; 2] {
    let horizons = [ROUNDS, 1000 * ROUNDS];
    [
        Simulation {
            what: "debora, free, simulated by whole epochs",
            runs: horizons.map(|horizon| by_epochs(free(horizon))),
        },
        Simulation {
            what: "debora, soft with two costs, simulated by whole epochs",
            runs: horizons.map(|horizon| by_epochs(soft(horizon))),
        },
    ]
}

fn by_epochs(problem: Problem) -> Box<dyn Fn() -> f64> {
    let means = vec![(0..ACTIONS).map(mean).collect::<Vec<_>>(); problem.quantities()];
    let world = Arc::new(Bernoulli::new(&problem, &means).unwrap());
    let experiment = Experiment {
        worlds: [world.clone(), world],
        key: Key::from(1u64),
        world_key: WorldKey::from(1u64),
        simulator: Simulator::Epochs,
        checkpoints: checkpoints(problem.horizon()),
        plan: Arc::new(Plan::of(problem)),
    };
    Box::new(move || {
        let begun = Instant::now();
        for pair in 0..RUNS {
            black_box(
                experiment
                    .run(Contestant::Debora, u64::from(pair), 0)
                    .unwrap(),
            );
        }
        begun.elapsed().as_secs_f64() / f64::from(RUNS)
    })
}
