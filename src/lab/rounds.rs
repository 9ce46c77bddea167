//! The slow simulator: one round after another. The oracle of the fast one, and the way for players that decide each round.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::lab::LabError;
use crate::lab::epochs::Stretch;
use crate::lab::players::Player;
use crate::lab::world::World;
use crate::mean::to_fixed;
use crate::problem::Problem;
use crate::{Key, Tally, WorldKey};

/// How many rounds go by between two looks at the wish to stop: some microseconds.
const ROUNDS_BETWEEN_LOOKS: u64 = 1 << 12;

/// Plays to the horizon, round by round. The observer sees each stretch before its feedback is told. Once `cancel` is set it
/// stops with an error.
///
/// The feedback of a pull is a function of world key, action and number of the pull: two players on one world meet the same.
pub fn simulate(
    player: &mut dyn Player,
    problem: &Problem,
    world: &dyn World,
    (key, world_key): (Key, WorldKey),
    observe: &mut dyn FnMut(Stretch),
    cancel: &AtomicBool,
) -> Result<Tally, LabError> {
    let actions = problem.actions().len();
    let quantities = problem.quantities();
    let mut told = Tally::new(actions, quantities);
    let mut stretch = Tally::new(actions, quantities);
    let mut values = vec![0.0; quantities];
    let mut fixed = vec![0; quantities];
    let mut first_round = 1;
    // Asked for once a stretch, as a player may not change its mind within one.
    let mut rounds_max = player.rounds_max().unwrap_or(u64::MAX);
    for round in 1..=problem.horizon() {
        if round.is_multiple_of(ROUNDS_BETWEEN_LOOKS) && cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let action = player.action(round, key);
        // By the number of the pull and not of the round, so that another player meets the same feedback in another order.
        let pull = told.counts()[action as usize];
        world.pull(world_key, action, pull, &mut values);
        for (fixed, &value) in fixed.iter_mut().zip(&values) {
            *fixed = to_fixed(value);
        }
        told.add(action, &fixed);
        stretch.add(action, &fixed);
        let rounds = round + 1 - first_round;
        let last = round == problem.horizon();
        let stopped = player.stop(action) == Some(told.counts()[action as usize]);
        if !(last || rounds == rounds_max || stopped) {
            continue;
        }
        observe(Stretch {
            player,
            first_round,
            rounds,
        });
        // The last stretch opens no other, whatever ended it.
        if last {
            player.finish(&stretch);
        } else {
            player.tell(&stretch);
        }
        stretch.clear();
        first_round = round + 1;
        rounds_max = player.rounds_max().unwrap_or(u64::MAX);
    }
    Ok(told)
}
