//! The library's rows of the speed table: `cargo bench --bench engine`. Read them as ratios to `ucb1`, the hand-written loop.

use std::sync::Arc;

use debora::internals::lp;
use debora::key::{Label, to_uniform};
use debora::lab::players::Rival;
use debora::mean::to_fixed;
use debora::{Ask, Engine, Key, Plan, Problem, Tally, WorldKey};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Rounds of each run.
const ROUNDS: u64 = 1_000_000;

fn main() {
    divan::main();
}

fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|action| format!("action {action}"))
        .collect()
}

/// Bernoulli feedback of a pull: the reward and up to three costs from one block of the world's key.
#[inline]
fn draw(key: WorldKey, round: u64, action: u32) -> [f64; 4] {
    let words = key.block(Label::Feedback, [u64::from(action), round, 0]);
    let mean = 0.1 + 0.07 * f64::from(action);
    words.map(|word| f64::from(u8::from(to_uniform(word) < mean)))
}

/// The yardstick: UCB1 by hand, ten actions, the same feedback.
#[divan::bench]
fn ucb1(bencher: Bencher) {
    bencher.counter(ItemsCount::new(ROUNDS)).bench(|| {
        let world = WorldKey::from(1u64);
        let (mut counts, mut sums) = ([0.0f64; 10], [0.0f64; 10]);
        for round in 1..=ROUNDS {
            let action = if round <= 10 {
                round as usize - 1
            } else {
                let bonus = 2.0 * (round as f64).ln();
                let index = |a: usize| sums[a] / counts[a] + (bonus / counts[a]).sqrt();
                (1..10)
                    .fold((0, index(0)), |best, a| {
                        if index(a) > best.1 {
                            (a, index(a))
                        } else {
                            best
                        }
                    })
                    .0
            };
            counts[action] += 1.0;
            sums[action] += draw(world, round, action as u32)[0];
        }
        sums
    });
}

/// The same as a player: what a simulator of per-round rivals pays.
#[divan::bench]
fn ucb1_as_a_player(bencher: Bencher) {
    per_round(
        bencher,
        "ucb1",
        Problem::free(names(10), ROUNDS, 0.3).build().unwrap(),
    );
}

#[divan::bench]
fn primal_dual_as_a_player(bencher: Bencher) {
    let draft = Problem::soft(names(10), ROUNDS, 0.9)
        .cost("price", [0.0, 1.0], 0.3)
        .cost("wait", [0.0, 1.0], 0.3);
    per_round(bencher, "primal-dual", draft.build().unwrap());
}

/// A whole run of a rival that decides every round.
fn per_round(bencher: Bencher, name: &str, problem: Problem) {
    let (plan, quantities) = (Arc::new(Plan::of(problem.clone())), problem.quantities());
    let rival = Rival::named(name).expect("a rival");
    bencher.counter(ItemsCount::new(ROUNDS)).bench(|| {
        let (mut player, world) = (rival.player(&plan, Key::from(1u64)), WorldKey::from(1u64));
        let (mut stretch, mut fixed) = (Tally::new(10, quantities), vec![0; quantities]);
        for round in 1..ROUNDS {
            let action = player.strategy().only().expect("a single action");
            stretch.clear();
            let values = draw(world, round, action);
            fixed
                .iter_mut()
                .zip(values)
                .for_each(|(fixed, value)| *fixed = to_fixed(value));
            stretch.add(action, &fixed);
            player.tell(&stretch);
        }
        player.strategy().only()
    });
}

/// A whole run, one ask and one tell a round.
fn run(bencher: Bencher, problem: Problem) {
    let (plan, costs) = (
        Arc::new(Plan::of(problem.clone())),
        problem.quantities() - 1,
    );
    bencher.counter(ItemsCount::new(ROUNDS)).bench(|| {
        let (mut engine, world) = (
            Engine::with_plan(Arc::clone(&plan), Key::from(1u64)),
            WorldKey::from(1u64),
        );
        while let Ask::Decision(decision) = engine.ask() {
            let values = draw(world, decision.round, decision.action);
            engine
                .tell(decision.round, values[0], &values[1..=costs])
                .unwrap();
        }
        engine.digest()
    });
}

#[divan::bench]
fn free_round_by_round(bencher: Bencher) {
    run(
        bencher,
        Problem::free(names(10), ROUNDS, 0.3).build().unwrap(),
    );
}

#[divan::bench]
fn soft_round_by_round(bencher: Bencher) {
    let draft = Problem::soft(names(10), ROUNDS, 0.9)
        .cost("price", [0.0, 1.0], 0.3)
        .cost("wait", [0.0, 1.0], 0.3);
    run(bencher, draft.build().unwrap());
}

/// The same run asked for into a slice and told in batches, as Python does it.
#[divan::bench]
fn soft_in_batches(bencher: Bencher) {
    let draft = Problem::soft(names(10), ROUNDS, 0.9)
        .cost("price", [0.0, 1.0], 0.3)
        .cost("wait", [0.0, 1.0], 0.3);
    let plan = Arc::new(Plan::of(draft.build().unwrap()));
    bencher.counter(ItemsCount::new(ROUNDS)).bench(|| {
        let (mut engine, world) = (
            Engine::with_plan(Arc::clone(&plan), Key::from(1u64)),
            WorldKey::from(1u64),
        );
        let mut actions = vec![0; ROUNDS as usize];
        while !engine.is_done() {
            let first = engine.next_round();
            let asked = engine.ask_into(&mut actions);
            let rounds: Vec<u64> = (first..first + asked as u64).collect();
            let values: Vec<_> = rounds
                .iter()
                .zip(&actions)
                .map(|(&round, &a)| draw(world, round, a))
                .collect();
            let rewards: Vec<f64> = values.iter().map(|values| values[0]).collect();
            let costs: Vec<f64> = values
                .iter()
                .flat_map(|values| [values[1], values[2]])
                .collect();
            engine.tell_many(&rounds, &rewards, &costs).unwrap();
        }
        engine.digest()
    });
}

/// An engine restored from a snapshot, amid an epoch of a mixed strategy with so many rounds handed out; all but ten are told.
#[divan::bench(args = [100_000, 1_000_000, 10_000_000], sample_count = 10)]
fn restore(bencher: Bencher, rounds: usize) {
    // A horizon too short for any estimate, so that all of it is one mixture with the safe strategy.
    let draft = Problem::hard(names(3), 1 << 40, 1e-6).cost("price", [0.0, 1.0], 0.5);
    let draft = draft.safe_with_margins([0.5, 0.5, 0.0], [0.25]);
    let plan = Arc::new(Plan::of(draft.build().unwrap()));
    let mut engine = Engine::with_plan(plan, Key::from(1u64));
    assert_eq!(engine.ask_into(&mut vec![0; rounds]), rounds);
    let told: Vec<u64> = (1..=rounds as u64 - 10).collect();
    let values = vec![0.5; told.len()];
    engine.tell_many(&told, &values, &values).unwrap();
    let bytes = engine.to_bytes();
    bencher.bench(|| Engine::from_bytes(&bytes).unwrap());
}

/// Closing one epoch and finding the next strategy: a thousand actions, ten costs, all estimated.
#[divan::bench]
fn close_epoch(bencher: Bencher) {
    let (actions, costs) = (1_000, 10);
    let mut draft = Problem::soft(names(actions), 1 << 53, 0.9);
    for cost in 0..costs {
        draft = draft.cost(format!("cost {cost}"), [0.0, 1.0], 0.5);
    }
    let plan = Arc::new(Plan::of(draft.build().unwrap()));
    let mut engine = Engine::with_plan(plan, Key::from(1u64));
    // Explore with means that differ by action and cost, then stop before an epoch that estimates.
    while engine.open_record().kind == debora::Kind::Explore || engine.strategy().only().is_some() {
        let tally = epoch(&engine);
        engine.tell_epoch(&tally).unwrap();
    }
    let tally = epoch(&engine);
    bencher
        .with_inputs(|| engine.clone())
        .bench_values(|mut engine| engine.tell_epoch(&tally).unwrap());
}

/// Counts that end the open epoch, and sums as the means have it.
fn epoch(engine: &Engine) -> Tally {
    let record = engine.open_record();
    let actions = record.counts.len() as u32;
    let mut tally = Tally::new(actions as usize, engine.problem().quantities());
    if record.kind == debora::Kind::Explore {
        // Permuted blocks bring all actions to one count together.
        let rounds = engine.last_round() + 1 - record.first_round;
        for action in 0..actions {
            add(&mut tally, action, rounds / u64::from(actions));
        }
        return tally;
    }
    let can_end = |&a: &u32| {
        engine.target(a).is_some() && engine.strategy().probabilities()[a as usize] > 0.0
    };
    let action = (0..actions)
        .filter(can_end)
        .min_by_key(|&a| record.counts[a as usize])
        .expect("an action to play");
    let target = engine.target(action).expect("a target");
    add(&mut tally, action, target - record.counts[action as usize]);
    tally
}

/// This many pulls of an action, with means that differ by action and quantity.
fn add(tally: &mut Tally, action: u32, count: u64) {
    let sum = |quantity: u64| {
        let mean = Key::from(2u64).uniform(Label::Threshold, [u64::from(action), quantity, 0]);
        ((mean * 1024.0) as u128 * u128::from(count)) << 43
    };
    let sums: Vec<u128> = (0..tally.quantities() as u64).map(sum).collect();
    tally.add_sums(action, count, &sums);
}

/// A linear program on random data with binding limits: objective, rows and limits.
fn program((actions, rows): (u64, u64)) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let value =
        |row: u64, action: u64| Key::from(3u64).uniform(Label::Threshold, [row, action, actions]);
    let objective: Vec<f64> = (0..actions).map(|action| value(0, action)).collect();
    let matrix: Vec<f64> = (1..=rows)
        .flat_map(|row| (0..actions).map(move |action| value(row, action)))
        .collect();
    (objective, matrix, vec![0.45; rows as usize])
}

/// The linear program alone.
#[divan::bench(args = [(10, 2), (100, 5), (1_000, 10), (1_500, 50)])]
fn linear_program(bencher: Bencher, size: (u64, u64)) {
    let (objective, rows, limits) = program(size);
    bencher.bench(|| lp::solve(&objective, &rows, &limits));
}

/// The same as an engine solves it: in the memory of the program before, and without the proof.
#[divan::bench(args = [(10, 2), (100, 5), (1_000, 10), (1_500, 50)])]
fn linear_program_of_an_engine(bencher: Bencher, size: (u64, u64)) {
    let (objective, rows, limits) = program(size);
    let mut solver = lp::Solver::default();
    bencher.bench_local(|| solver.strategy(&objective, &rows, &limits));
}
