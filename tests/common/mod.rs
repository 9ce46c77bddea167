//! What several tests share: worlds of coins, a slow driver of engines, and exact tail bounds.
#![allow(dead_code)] // Each test binary uses its own part.

use debora::key::{Label, to_uniform};
use debora::mean::{FIXED_ONE, to_fixed};
use debora::{
    Ask, Engine, EpochRecord, Key, Kind, Plan, Policy, Problem, Profile, Strategy, Tally, Told,
    WorldKey,
};

/// True means per quantity and action, on the unit scale; quantity 0 is the reward. Draws are 0 or 1.
#[derive(Clone, Debug)]
pub struct Coins {
    pub means: Vec<Vec<f64>>,
    pub key: WorldKey,
}

impl Coins {
    pub fn new(means: &[&[f64]], key: u64) -> Self {
        Self {
            means: means.iter().map(|row| row.to_vec()).collect(),
            key: WorldKey::from(key),
        }
    }

    /// The feedback of a round, one word of a block per quantity: there may be four.
    pub fn draw(&self, round: u64, action: u32) -> [f64; 4] {
        let words = self
            .key
            .block(Label::Feedback, [u64::from(action), round, 0]);
        let win =
            |quantity: usize| to_uniform(words[quantity]) < self.means[quantity][action as usize];
        std::array::from_fn(|quantity| {
            f64::from(u8::from(quantity < self.means.len() && win(quantity)))
        })
    }
}

/// The feedback of a round in the problem's units: the reward, then the costs.
pub fn feedback(problem: &Problem, world: &Coins, round: u64, action: u32) -> [f64; 4] {
    let mut values = world.draw(round, action);
    for (quantity, value) in values.iter_mut().enumerate().take(problem.quantities()) {
        *value = problem.quantity(quantity).range.to_user(*value);
    }
    values
}

/// Runs an engine to its end, round by round, and gives all epoch records.
pub fn run(engine: &mut Engine, world: &Coins) -> Vec<EpochRecord> {
    let mut records = Vec::new();
    loop {
        match engine.ask() {
            Ask::Decision(decision) => {
                let values = feedback(engine.problem(), world, decision.round, decision.action);
                let costs = &values[1..engine.problem().quantities()];
                if let Told::Closed(record) = engine.tell(decision.round, values[0], costs).unwrap()
                {
                    records.push(*record);
                }
            }
            Ask::Waiting { outstanding } => {
                panic!("{outstanding} rounds outstanding in a run round by round")
            }
            Ask::Done => return records,
        }
    }
}

/// Draws the open epoch's actions with `key` until it ends and tallies the world's feedback.
///
/// With the engine's own key it gives what asking and telling would; with another one it feeds a mutated engine, whose
/// offsets come from elsewhere. Permuted blocks are the engine's own in any case: no other order would be taken.
pub fn draw_epoch(engine: &Engine, world: &Coins, key: Key) -> Tally {
    let problem = engine.problem();
    let before = &engine.open_record().counts;
    let mut tally = Tally::new(before.len(), problem.quantities());
    let in_blocks = is_in_blocks(engine);
    let mut round = engine.open_record().first_round;
    // Drawn a thousand at a time, so that a block's order is drawn once or twice and not for each of its rounds.
    let mut ahead = vec![0; 1_000];
    loop {
        if in_blocks {
            engine.decide_many(round.., &mut ahead);
        } else {
            let picked = (round..).map(|round| key.uniform(Label::Round, [round, 0, 0]));
            for (action, uniform) in ahead.iter_mut().zip(picked) {
                *action = engine.strategy().pick(uniform);
            }
        }
        for &action in &ahead {
            tally.add(
                action,
                &world.draw(round, action).map(to_fixed)[..problem.quantities()],
            );
            round += 1;
            let counts: Vec<u64> = before
                .iter()
                .zip(tally.counts())
                .map(|(b, t)| b + t)
                .collect();
            if engine.is_handed_out_at(&counts) {
                return tally;
            }
        }
    }
}

/// Whether the open epoch is played in permuted blocks: exploration of profile tight without hard limits.
pub fn is_in_blocks(engine: &Engine) -> bool {
    engine.open_record().kind == Kind::Explore
        && engine.problem().profile() != Profile::Paper
        && engine.problem().policy() != Policy::Hard
}

/// The true expectations of a strategy, per quantity.
pub fn expectations(world: &Coins, strategy: &[f64]) -> Vec<f64> {
    let strategy = Strategy::new(strategy.to_vec());
    world
        .means
        .iter()
        .map(|row| strategy.expectation(row))
        .collect()
}

/// Regret, and the violation max_i sum_t max(0, excess), of a run, from its records.
pub fn regret_and_violation(
    problem: &Problem,
    world: &Coins,
    records: &[EpochRecord],
) -> (f64, f64) {
    let thresholds = if problem.policy() == Policy::Free {
        &[]
    } else {
        problem.thresholds()
    };
    let rows: Vec<f64> = world.means[1..]
        .iter()
        .take(thresholds.len())
        .flatten()
        .copied()
        .collect();
    let best = expectations(
        world,
        &debora::internals::lp::solve(&world.means[0], &rows, thresholds).strategy,
    )[0];
    let mut regret = 0.0;
    let mut violations = vec![0.0; thresholds.len()];
    for record in records {
        let values = expectations(world, &record.strategy);
        regret += (best - values[0]) * record.rounds as f64;
        for ((violation, value), threshold) in
            violations.iter_mut().zip(&values[1..]).zip(thresholds)
        {
            *violation += (value - threshold).max(0.0) * record.rounds as f64;
        }
    }
    (regret, violations.into_iter().fold(0.0, f64::max))
}

/// Whether every estimate of a run is within its width of the truth: the clean event.
pub fn is_clean(world: &Coins, records: &[EpochRecord]) -> bool {
    records
        .iter()
        .flat_map(|record| &record.estimates)
        .all(|estimate| {
            let truth = world.means[estimate.quantity as usize][estimate.action as usize];
            (estimate.estimate - truth).abs() <= estimate.width
        })
}

/// ln of the binomial coefficients' part of the pmf, exactly enough: Binomial(n, p) at k, by summed logarithms.
pub fn binomial_pmf(n: u64, p: f64) -> Vec<f64> {
    let mut log = n as f64 * (1.0 - p).ln();
    let mut pmf = Vec::with_capacity(n as usize + 1);
    for k in 0..=n {
        pmf.push(log.exp());
        log += ((n - k) as f64 / (k + 1) as f64).ln() + (p / (1.0 - p)).ln();
    }
    pmf
}

/// P(Binomial(n, p) >= k).
pub fn binomial_upper_tail(n: u64, p: f64, k: u64) -> f64 {
    binomial_pmf(n, p)[k as usize..].iter().sum()
}

/// A sum of 0s and 1s as exact fixed-point sums.
pub fn ones(count: u64) -> u128 {
    u128::from(count) * u128::from(FIXED_ONE)
}

/// Some name for each of `count` actions.
pub fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|action| format!("action {action}"))
        .collect()
}

/// Property tests with a fixed seed, so that a failure is a failure for everyone.
pub fn cases(cases: u32) -> proptest::test_runner::Config {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(1);
    proptest::test_runner::Config {
        cases,
        rng_seed,
        failure_persistence: None,
        ..Default::default()
    }
}

/// The plan of a problem, as engines share it.
pub fn plan(problem: Problem) -> std::sync::Arc<Plan> {
    std::sync::Arc::new(Plan::of(problem))
}
