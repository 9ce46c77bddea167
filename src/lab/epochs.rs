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
//! Exploration in permuted blocks needs no draw: how often it plays each action is known beforehand. If the horizon falls
//! inside another stretch, the rounds before it are a multivariate hypergeometric draw from them. The draws come
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
const HORIZON_SIMULATED_MAX: u64 = sample::COUNT_MAX / 2;

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
    check_horizon(problem.horizon(), world)?;
    let actions = problem.actions().len();
    let quantities = problem.quantities();
    let mut told = Tally::new(actions, quantities);
    let mut tally = Tally::new(actions, quantities);
    let mut counts = vec![0; actions];
    let mut quotas = vec![None; actions];
    let mut sums = vec![0; quantities];
    let mut left = problem.horizon();
    for stretch in 0.. {
        // Of those played alone: the others' quotas are not looked at.
        for action in player.strategy().played() {
            let stop = player.stop(action);
            quotas[action as usize] = stop.map(|stop| stop - told.counts()[action as usize]);
        }
        let rounds_max = player.rounds_max().unwrap_or(left).min(left);
        if let Some(planned) = player.planned_counts(rounds_max) {
            counts = planned;
        } else {
            // From the policy's key, by the stretch's number: runs of a pair share these draws for as long as they agree.
            let mut stream = Stream::new(key, Label::Skip, [stretch, 0]);
            let strategy = player.strategy();
            draw_counts(&mut stream, strategy, &quotas, rounds_max, &mut counts);
        }
        tally.clear();
        for (action, &count) in (0..).zip(&counts).filter(|(_, count)| **count > 0) {
            let first = told.counts()[action as usize];
            world.pulls(world_key, action, first, count, &mut sums);
            tally.add_sums(action, count, &sums);
        }
        let rounds = counts.iter().sum();
        observe(Stretch {
            player,
            first_round: problem.horizon() - left + 1,
            rounds,
        });
        told.merge(&tally);
        left -= rounds;
        if left == 0 {
            player.finish(&tally);
            break;
        }
        player.tell(&tally);
    }
    Ok(told)
}

/// Refuses what would not be exact, and what would take too long.
fn check_horizon(horizon: u64, world: &dyn World) -> Result<(), LabError> {
    if horizon > HORIZON_SIMULATED_MAX {
        return Err(LabError::HorizonSimulated { horizon });
    }
    if world.is_slow() && horizon > DRAWS_MAX {
        return Err(LabError::WorldSlow {
            draws: horizon,
            most: DRAWS_MAX,
        });
    }
    Ok(())
}

/// An action that can end the stretch.
struct Racer {
    action: usize,
    quota: u64,
    /// When its clock rings for the quota's last time.
    time: f64,
}

/// The actions that are played and have a quota, each with the time at which it would end the stretch.
fn race(stream: &mut Stream, strategy: &Strategy, quotas: &[Option<u64>]) -> Vec<Racer> {
    let x = strategy.probabilities();
    let mut racers = Vec::new();
    for action in strategy.played().map(|action| action as usize) {
        if let Some(quota) = quotas[action] {
            let time = sample::gamma(stream, quota) / x[action];
            racers.push(Racer {
                action,
                quota,
                time,
            });
        }
    }
    racers
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
    let racers = race(stream, strategy, quotas);
    let Some(winner) = racers
        .iter()
        .reduce(|best, next| if next.time < best.time { next } else { best })
    else {
        // No action can end the stretch: it lasts to its last round.
        return sample::multinomial(stream, rounds_max, x, counts);
    };
    // Rings come at rate one, so more than `rounds_max` of them have come by this time but for a chance below e^-1000.
    let long_enough = rounds_max as f64 + 60.0 * libm::sqrt(rounds_max as f64) + 4_000.0;
    let end = winner.time;
    let time = end.min(long_enough);
    // Given its time, a racer's earlier rings are spread evenly over it.
    for racer in &racers {
        counts[racer.action] = sample::binomial(stream, racer.quota - 1, time / racer.time);
    }
    let played = strategy.played().map(|action| action as usize);
    for a in played.filter(|&a| quotas[a].is_none()) {
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
    counts[winner.action] = winner.quota;
}
