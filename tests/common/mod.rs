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
        let own = problem.quantity(quantity).range_of(action);
        // A coin of a known cost has one side.
        *value = if own.low == own.high {
            own.low
        } else {
            own.to_user(*value)
        };
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
            let mut fixed = world.draw(round, action).map(to_fixed);
            for (quantity, value) in fixed.iter_mut().enumerate().take(problem.quantities()) {
                let is_known = problem.quantity(quantity).known(action).is_some();
                *value *= u64::from(!is_known);
            }
            tally.add(action, &fixed[..problem.quantities()]);
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

/// An epoch as it goes on average, in time that does not grow with its rounds: every action gets its probability's part until
/// the first is at its target, with sums of `means` (per quantity and action).
pub fn smooth_epoch(engine: &Engine, means: &[Vec<f64>]) -> Tally {
    let problem = engine.problem();
    let record = engine.open_record();
    let left = problem.horizon() + 1 - record.first_round;
    let mut tally = Tally::new(record.counts.len(), problem.quantities());
    for (action, count) in (0..).zip(smooth_counts(engine, left)) {
        let sums: Vec<u128> = means[..problem.quantities()]
            .iter()
            .map(|row| u128::from(to_fixed(row[action as usize])) * u128::from(count))
            .collect();
        tally.add_sums(action, count, &sums);
    }
    tally
}

fn smooth_counts(engine: &Engine, left: u64) -> Vec<u64> {
    let record = engine.open_record();
    if is_in_blocks(engine) {
        // Blocks have the same counts for all actions, whatever ends the epoch.
        let rounds = engine.last_round() + 1 - record.first_round;
        let each = rounds / record.counts.len() as u64;
        return vec![each; record.counts.len()];
    }
    let need = |action: usize| {
        let target = engine.target(action as u32)?;
        Some(target - record.counts[action])
    };
    let played = |action: &usize| record.strategy[*action] > 0.0;
    let time = |action: usize| need(action).map(|need| need as f64 / record.strategy[action]);
    let actions = 0..record.counts.len();
    let ender = actions
        .clone()
        .filter(played)
        .filter(|&action| time(action).is_some_and(|time| time < left as f64 * 0.999))
        .min_by(|&one, &other| time(one).unwrap().total_cmp(&time(other).unwrap()));
    let rounds = ender.map_or(left as f64, |action| time(action).unwrap());
    let mut counts: Vec<u64> = actions
        .map(|action| {
            let even = (record.strategy[action] * rounds) as u64;
            // Only the ender may reach its target, and it does.
            match need(action) {
                Some(need) if ender == Some(action) => need,
                Some(need) => even.min(need.saturating_sub(1)),
                None => even,
            }
        })
        .collect();
    if ender.is_none() {
        // What rounding left over goes to an action that cannot end the epoch by it.
        let missing = left - counts.iter().sum::<u64>();
        let room =
            |action: &usize| need(*action).is_none_or(|need| counts[*action] + missing < need);
        let most = (0..counts.len())
            .filter(played)
            .filter(room)
            .max_by_key(|&a| counts[a]);
        counts[most.expect("an action with room")] += missing;
    }
    counts
}

/// The best strategy under linear limits by enumeration of vertices, for a few actions and limits: no simplex, no pivots.
/// None if no strategy keeps the limits. Of equally good ones the first in lexicographic order, as the program documents.
pub fn best_vertex(objective: &[f64], rows: &[&[f64]], limits: &[f64]) -> Option<(f64, Vec<f64>)> {
    let mut best: Option<(f64, Vec<f64>)> = None;
    let subsets = |of: usize| 1u32..1 << of;
    for support in subsets(objective.len()) {
        let played: Vec<usize> = (0..objective.len())
            .filter(|a| support >> a & 1 == 1)
            .collect();
        for active in 0u32..1 << rows.len() {
            let tight: Vec<usize> = (0..rows.len()).filter(|i| active >> i & 1 == 1).collect();
            // A vertex has as many equations as positive entries.
            if tight.len() + 1 != played.len() {
                continue;
            }
            let mut system = vec![vec![1.0; played.len() + 1]];
            for &row in &tight {
                let mut equation: Vec<f64> = played.iter().map(|&a| rows[row][a]).collect();
                equation.push(limits[row]);
                system.push(equation);
            }
            let Some(parts) = solved(system) else {
                continue;
            };
            let mut strategy = vec![0.0; objective.len()];
            played
                .iter()
                .zip(&parts)
                .for_each(|(&a, part)| strategy[a] = *part);
            let dot = |row: &[f64]| -> f64 { row.iter().zip(&strategy).map(|(c, x)| c * x).sum() };
            // Relative to the row: profile paper's pessimistic costs reach into the thousands.
            let scale = |row: &[f64]| {
                row.iter()
                    .fold(1.0, |most: f64, entry| most.max(entry.abs()))
            };
            let keeps = |(row, limit): (&&[f64], &f64)| dot(row) <= limit + 1e-11 * scale(row);
            let inside =
                parts.iter().all(|part| *part >= -1e-12) && rows.iter().zip(limits).all(keeps);
            let value = dot(objective);
            let better = |(most, other): &(f64, Vec<f64>)| {
                let rounding = 1e-12 * scale(objective);
                value > most + rounding || (value > most - rounding && is_larger(&strategy, other))
            };
            if inside && best.as_ref().is_none_or(better) {
                best = Some((value, strategy));
            }
        }
    }
    best
}

/// Whether a strategy is lexicographically larger than another, beyond rounding.
fn is_larger(one: &[f64], other: &[f64]) -> bool {
    let differing = one.iter().zip(other).find(|(a, b)| (*a - *b).abs() > 1e-9);
    differing.is_some_and(|(a, b)| a > b)
}

/// The solution of a small linear system, each row an equation with its right-hand side last; none if it is singular.
fn solved(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = system.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| system[a][column].abs().total_cmp(&system[b][column].abs()))?;
        if system[pivot][column].abs() < 1e-12 {
            return None;
        }
        system.swap(column, pivot);
        for row in (0..size).filter(|&row| row != column) {
            let factor = system[row][column] / system[column][column];
            let above = system[column].clone();
            system[row]
                .iter_mut()
                .zip(above)
                .for_each(|(entry, other)| *entry -= factor * other);
        }
    }
    Some(
        (0..size)
            .map(|row| system[row][size] / system[row][row])
            .collect(),
    )
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
            (estimate.low..=estimate.high).contains(&truth)
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
