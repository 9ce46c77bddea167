//! Rivals that decide anew in every round, beside slow ones written again from their formulas.

use std::sync::Arc;

use debora::key::Label;
use debora::lab::players::{Player, Rival};
use debora::mean::to_fixed;
use debora::{Key, Plan, Problem, Tally, WorldKey};

use crate::common::{names, plan};

const MEANS: [[f64; 3]; 2] = [[0.3, 0.5, 0.8], [0.1, 0.4, 0.9]];
const THRESHOLD: f64 = 0.5;
const HORIZON: u64 = 3_000;

fn soft() -> Arc<Plan> {
    let draft = Problem::soft(names(3), HORIZON, 0.3).delta(0.05);
    plan(draft.cost("cost", [0.0, 1.0], THRESHOLD).build().unwrap())
}

/// What is known in plain floats: counts, and sums of rewards and costs.
#[derive(Clone, Default)]
struct Seen {
    counts: [f64; 3],
    sums: [[f64; 3]; 2],
}

impl Seen {
    /// Optimistic rewards, then optimistic costs: sqrt(ln(2KQT/delta)/(2n)) around the mean, cut to [0, 1].
    fn optimistic(&self) -> [[f64; 3]; 2] {
        let logarithm = (2.0 * 3.0 * 2.0 * HORIZON as f64 / 0.05).ln();
        [0, 1].map(|quantity| {
            [0, 1, 2].map(|a| {
                if self.counts[a] == 0.0 {
                    return 1.0 - quantity as f64;
                }
                let mean = self.sums[quantity][a] / self.counts[a];
                let width = (logarithm / (2.0 * self.counts[a])).sqrt();
                if quantity == 0 {
                    (mean + width).min(1.0)
                } else {
                    (mean - width).max(0.0)
                }
            })
        })
    }
}

/// Plays to the horizon. `check` sees what was known and the strategy before each round, and what the round gave.
fn play(player: &mut dyn Player, key: u64, mut check: impl FnMut(u64, &Seen, &[f64], usize, f64)) {
    let world = WorldKey::from(key);
    let mut seen = Seen::default();
    for round in 1..=HORIZON {
        let probabilities = player.strategy().probabilities().to_vec();
        let action = player.action(round, Key::from(key));
        let values = [0u64, 1].map(|quantity| {
            let coin = world.uniform(Label::Feedback, [round, quantity, 0]);
            f64::from(u8::from(coin < MEANS[quantity as usize][action as usize]))
        });
        let mut stretch = Tally::new(3, 2);
        stretch.add(action, &values.map(to_fixed));
        check(round, &seen, &probabilities, action as usize, values[1]);
        seen.counts[action as usize] += 1.0;
        for (sums, value) in seen.sums.iter_mut().zip(values) {
            sums[action as usize] += value;
        }
        if round < HORIZON {
            player.tell(&stretch);
        }
    }
}

/// The best value of the program with one limit: an action within it, or two that share so as to meet it.
fn best_value([u, l]: [[f64; 3]; 2]) -> f64 {
    let mut best = f64::NEG_INFINITY;
    for a in 0..3 {
        if l[a] <= THRESHOLD {
            best = best.max(u[a]);
        }
        for b in (0..3).filter(|&b| l[a] < THRESHOLD && l[b] > THRESHOLD) {
            let share = (THRESHOLD - l[a]) / (l[b] - l[a]);
            best = best.max(share * u[b] + (1.0 - share) * u[a]);
        }
    }
    best
}

#[test]
fn doss_plays_the_best_of_the_optimistic_set_in_every_round() {
    let mut mixed = 0;
    for key in 0..3 {
        let mut player = Rival::named("doss")
            .unwrap()
            .player(&soft(), Key::from(key));
        play(&mut *player, key, |round, seen, x, _, _| {
            let [u, l] = seen.optimistic();
            let value = |row: [f64; 3]| -> f64 { row.iter().zip(x).map(|(a, b)| a * b).sum() };
            assert!(value(l) <= THRESHOLD + 1e-12, "round {round}: {x:?} {l:?}");
            let best = best_value([u, l]);
            assert!(
                (value(u) - best).abs() < 1e-12,
                "round {round}: {x:?} {u:?} {l:?}"
            );
            mixed += u32::from(x.iter().all(|&share| share < 1.0));
        });
    }
    assert!(
        mixed > 1_000,
        "the limit shared two actions in {mixed} rounds"
    );
}

#[test]
fn pessimistic_optimistic_plays_the_best_answer_to_its_queue() {
    let mut played = [0; 3];
    for key in 0..3 {
        let name = "pessimistic-optimistic";
        let mut player = Rival::named(name).unwrap().player(&soft(), Key::from(key));
        let slater = (HORIZON as f64).powf(-0.25);
        let mut queue = 0.0f64;
        play(&mut *player, key, |round, seen, x, action, cost| {
            let [u, l] = seen.optimistic();
            let scale = slater * (2.0 * round as f64 / 3.0).sqrt();
            let worth = [0, 1, 2].map(|a| u[a] - queue / scale * (l[a] - THRESHOLD));
            let best = worth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(x[action], 1.0);
            // Ties to the last bits may go either way in plain floats.
            assert!(
                worth[action] > best - 1e-9,
                "round {round}: {action} {worth:?}"
            );
            queue = (queue + cost - THRESHOLD + (6.0 / round as f64).sqrt()).max(0.0);
            played[action] += 1;
        });
    }
    assert!(played.iter().all(|&rounds| rounds > 20), "{played:?}");
}
