//! The fast simulator: a whole stretch of rounds drawn at once, exactly in law.
//!
//! Within a stretch the strategy x is fixed. Let every action ring at the times of its own Poisson clock of rate x_a: the
//! order of the rings is a sequence of draws from x. With q_a the pulls action a lacks to end the stretch,
//!
//! ```text
//! G_a ~ Gamma(q_a, 1) / x_a,    winner w = argmin G_a,    count_w = q_w,
//! count_a ~ Binomial(q_a - 1, G_w / G_a)  with a quota,   Poisson(x_a G_w)  without
//! ```
//!
//! If the horizon falls inside, the rounds before it are a multivariate hypergeometric part of those drawn. The draws come
//! from the policy key, so both runs of a pair share them. Source: docs/theory.md, section 9.

use crate::key::Label;
use crate::lab::LabError;
use crate::lab::players::Player;
use crate::lab::sample::{self, Stream};
use crate::lab::world::{DRAWS_MAX, World};
use crate::problem::Problem;
use crate::strategy::Strategy;
use crate::{Key, Tally, WorldKey};

/// The longest horizon: what is drawn for a stretch may exceed it a little and must stay a count of the samplers.
const HORIZON_MAX: u64 = sample::COUNT_MAX / 2;

/// A stretch that was played, as an observer sees it.
pub struct Stretch<'a> {
    /// Who plays. Its record is that of this stretch, before its rounds are counted in.
    pub player: &'a dyn Player,
    /// The first round.
    pub first_round: u64,
    /// How many rounds.
    pub rounds: u64,
}

/// Plays to the horizon, whole stretches at once. The observer sees each before its feedback is told.
pub fn simulate(
    player: &mut dyn Player,
    problem: &Problem,
    world: &dyn World,
    (key, world_key): (Key, WorldKey),
    observe: &mut dyn FnMut(Stretch),
) -> Result<Tally, LabError> {
    let horizon = problem.horizon();
    if horizon > HORIZON_MAX {
        return Err(LabError::HorizonSimulated { horizon });
    }
    if world.is_slow() && horizon > DRAWS_MAX {
        return Err(LabError::WorldSlow {
            draws: horizon,
            most: DRAWS_MAX,
        });
    }
    let (actions, quantities) = (problem.actions().len(), problem.quantities());
    let mut told = Tally::new(actions, quantities);
    let (mut counts, mut quotas, mut sums) =
        (vec![0; actions], vec![None; actions], vec![0; quantities]);
    let mut tally = Tally::new(actions, quantities);
    let mut rounds_told = 0;
    for stretch in 0.. {
        for (action, quota) in (0..).zip(&mut quotas) {
            *quota = player
                .stop(action)
                .map(|stop| stop - told.counts()[action as usize]);
        }
        let left = horizon - rounds_told;
        let rounds_max = player.rounds_max().unwrap_or(left).min(left);
        let mut stream = Stream::new(key, Label::Skip, [stretch, 0]);
        draw_counts(
            &mut stream,
            player.strategy(),
            &quotas,
            rounds_max,
            &mut counts,
        );
        let rounds = counts.iter().sum();

        tally.clear();
        for (action, &count) in (0..).zip(&counts).filter(|(_, count)| **count > 0) {
            world.pulls(
                world_key,
                action,
                told.counts()[action as usize],
                count,
                &mut sums,
            );
            tally.add_sums(action, count, &sums);
        }
        observe(Stretch {
            player,
            first_round: rounds_told + 1,
            rounds,
        });
        told.merge(&tally);
        rounds_told += rounds;
        if rounds_told == horizon {
            player.finish(&tally);
            break;
        }
        player.tell(&tally);
    }
    Ok(told)
}

/// How often each action is played in a stretch that ends when an action with a quota has reached it, or after `rounds_max`
/// rounds.
pub fn draw_counts(
    stream: &mut Stream,
    strategy: &Strategy,
    quotas: &[Option<u64>],
    rounds_max: u64,
    counts: &mut [u64],
) {
    counts.fill(0);
    if let Some(action) = strategy.only() {
        let quota = quotas[action as usize].unwrap_or(u64::MAX);
        counts[action as usize] = quota.min(rounds_max);
        return;
    }
    let x = strategy.probabilities();
    let racing = |a: &usize| x[*a] > 0.0 && quotas[*a].is_some();
    let times: Vec<(usize, u64, f64)> = (0..x.len())
        .filter(racing)
        .map(|a| {
            (
                a,
                quotas[a].unwrap_or(0),
                sample::gamma(stream, quotas[a].unwrap_or(1)) / x[a],
            )
        })
        .collect();
    let Some(&(winner, quota, end)) = times
        .iter()
        .reduce(|best, next| if next.2 < best.2 { next } else { best })
    else {
        // No action can end the stretch: it lasts to its last round.
        return sample::multinomial(stream, rounds_max, x, counts);
    };
    // Rings come at rate one, so more than `rounds_max` of them have come by this time but for a chance below e^-1000.
    let long_enough = rounds_max as f64 + 60.0 * libm::sqrt(rounds_max as f64) + 4_000.0;
    let time = end.min(long_enough);
    for &(a, quota, ring) in &times {
        counts[a] = sample::binomial(stream, quota - 1, time / ring);
    }
    for a in (0..x.len()).filter(|&a| x[a] > 0.0 && quotas[a].is_none()) {
        counts[a] = sample::poisson(stream, x[a] * time);
    }
    // None of these rings ends the stretch, so they come in random order; the winner's last comes after all of them.
    let before: u64 = counts.iter().sum();
    if before >= rounds_max {
        let urn = counts.to_vec();
        return sample::multivariate_hypergeometric(stream, &urn, rounds_max, counts);
    }
    assert!(
        time == end,
        "{before} rounds at time {time} of a stretch that lasts to {end}"
    );
    counts[winner] = quota;
}
