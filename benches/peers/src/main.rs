//! Bandits of other crates beside debora and UCB1 by hand, as a table:
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`.
//!
//! Ten actions without context and a million rounds, each a decision and its feedback. All meet the same coins, which lie ready.
//! They take turns; medians count. Every crate is used as its documentation says; where it asks for a generator of random numbers, it
//! gets the fastest of `rand`.

mod debora_rows;
mod peer_rows;

use std::hint::black_box;
use std::time::Instant;

use debora::WorldKey;
use debora::key::{Label, to_uniform};

/// How many actions there are.
const ACTIONS: usize = 10;
/// Rounds of each run.
const ROUNDS: u64 = 1_000_000;
/// How often each has its turn.
const TURNS: usize = 9;

/// Feedback of every round: bit `10 q + a` is quantity q of action a. Smaller than floats, so that reading it takes no time.
type Coins = [u32];

/// The mean of each quantity of an action.
fn mean(action: usize) -> f64 {
    0.1 + 0.07 * action as f64
}

/// What an action gives in a round with these coins; quantity 0 is the reward.
#[inline]
fn coin(coins: u32, quantity: usize, action: usize) -> f64 {
    f64::from(coins >> (ACTIONS * quantity + action) & 1)
}

fn toss() -> Vec<u32> {
    let world = WorldKey::from(1u64);
    (0..ROUNDS)
        .map(|round| {
            let mut coins = 0;
            for action in 0..ACTIONS {
                let words = world.block(Label::Feedback, [action as u64, round, 0]);
                for (quantity, &word) in words[..3].iter().enumerate() {
                    let is_one = to_uniform(word) < mean(action);
                    coins |= u32::from(is_one) << (ACTIONS * quantity + action);
                }
            }
            coins
        })
        .collect()
}

/// What is timed: a run of a million rounds, which returns its total reward.
struct Row {
    what: String,
    run: Box<dyn Fn(&Coins) -> f64>,
}

impl Row {
    fn new(what: impl Into<String>, run: impl Fn(&Coins) -> f64 + 'static) -> Self {
        Self {
            what: what.into(),
            run: Box::new(run),
        }
    }
}

/// The yardstick, as in `benches/engine.rs`.
fn ucb1_by_hand(coins: &Coins) -> f64 {
    let (mut counts, mut sums) = ([0.0f64; ACTIONS], [0.0f64; ACTIONS]);
    for (&coins, round) in coins.iter().zip(1u64..) {
        let action = if round <= ACTIONS as u64 {
            round as usize - 1
        } else {
            let bonus = 2.0 * (round as f64).ln();
            let index = |a: usize| sums[a] / counts[a] + (bonus / counts[a]).sqrt();
            (1..ACTIONS)
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
        sums[action] += coin(coins, 0, action);
    }
    sums.iter().sum()
}

fn main() {
    let coins = toss();
    let mut rows = vec![Row::new("UCB1 by hand", ucb1_by_hand)];
    rows.extend(debora_rows::rows());
    let peers_from = rows.len();
    rows.extend(peer_rows::rows());
    let simulations = debora_rows::simulations();

    let mut seconds = vec![Vec::new(); rows.len()];
    let mut simulated = vec![[vec![], vec![]]; simulations.len()];
    for _ in 0..TURNS {
        for (number, row) in rows.iter().enumerate() {
            let begun = Instant::now();
            let reward = black_box((row.run)(black_box(&coins)));
            seconds[number].push(begun.elapsed().as_secs_f64());
            // A crate that is used wrongly does not learn, and its time says nothing. Ten actions by turns have 0.415.
            let learns = number < peers_from || reward / ROUNDS as f64 > 0.6;
            assert!(learns, "{} had {reward} in all", row.what);
        }
        for (simulation, seconds) in simulations.iter().zip(&mut simulated) {
            for (run, seconds) in simulation.runs.iter().zip(seconds) {
                seconds.push(run());
            }
        }
    }

    println!("| what | decisions/s | against UCB1 by hand | 1e6 rounds | 1e9 rounds |");
    println!("|---|---|---|---|---|");
    for (row, times) in rows.iter().zip(&seconds) {
        print_row(&row.what, times, &seconds[0]);
    }
    for (simulation, times) in simulations.iter().zip(simulated) {
        let [short, long] = times.map(|times| duration(median(times.into_iter())));
        println!("| {} | | | {short} | {long} |", simulation.what);
    }
}

/// Ratios are those within a turn: machines are noisy.
fn print_row(what: &str, times: &[f64], by_hand: &[f64]) {
    let time = median(times.iter().copied());
    let ratio = median(times.iter().zip(by_hand).map(|(one, hand)| hand / one));
    let rate = ROUNDS as f64 / time;
    let [short, long] = [time, 1e3 * time].map(duration);
    println!("| {what} | {rate:.1e} | {ratio:.2} | {short} | ~ {long} |");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds in the unit that a reader would choose, to two digits.
fn duration(seconds: f64) -> String {
    let units = [(3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")];
    let (size, unit) = units
        .into_iter()
        .find(|&(size, _)| seconds >= size)
        .unwrap_or((1e-3, "ms"));
    let digits = format!("{:.1e}", seconds / size);
    format!("{} {unit}", digits.parse::<f64>().expect("a number"))
}
