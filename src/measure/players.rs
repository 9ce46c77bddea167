//! The players of a comparison.

use crate::lab::LabError;
use crate::lab::players::{OwnPlayer, RIVALS, Rival};
use crate::lab::replicate::Contestant;
use crate::measure::MeasureError;
use crate::measure::words::listed;
use crate::problem::{Policy, Problem};

/// The name of debora's own row.
pub const DEBORA: &str = "debora";

/// The longest horizon for players that decide every round.
const ROUND_BY_ROUND_MAX: u64 = 10_000_000;

/// The rounds such a player may take in all without having been asked for by name: about a quarter of a minute.
const ROUNDS_UNASKED_MAX: u64 = 100_000_000;

/// The players of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// debora first, then the rivals.
    pub players: Vec<String>,
    /// Rivals nobody asked for that would take too long.
    pub left_out: Vec<String>,
}

/// debora first, then the players asked for, rivals or one's own; without a wish, the rivals that can play this problem in
/// reasonable time and need not be named.
pub fn choose(
    problem: &Problem,
    wanted: &[String],
    own: &[OwnPlayer],
    pairs: u64,
) -> Result<Choice, MeasureError> {
    if wanted.is_empty() {
        Ok(all_quick(problem, pairs))
    } else {
        named(problem, wanted, own)
    }
}

fn all_quick(problem: &Problem, pairs: u64) -> Choice {
    // A pair is two runs; saturating, as both numbers are the user's.
    let rounds = problem.horizon().saturating_mul(2).saturating_mul(pairs);
    let mut choice = Choice {
        players: vec![DEBORA.to_owned()],
        left_out: Vec::new(),
    };
    for rival in able(problem.policy()).filter(|rival| !rival.by_name) {
        if rival.per_round && rounds > ROUNDS_UNASKED_MAX {
            choice.left_out.push(rival.name.to_owned());
        } else {
            choice.players.push(rival.name.to_owned());
        }
    }
    choice
}

fn named(problem: &Problem, wanted: &[String], own: &[OwnPlayer]) -> Result<Choice, MeasureError> {
    check_names(own)?;
    let mut players = vec![DEBORA.to_owned()];
    // Debora plays whether it is named or not: every row of a comparison is beside its own.
    for name in wanted.iter().filter(|name| *name != DEBORA) {
        check_speed(name, problem, own)?;
        if !players.contains(name) {
            players.push(name.clone());
        }
    }
    Ok(Choice {
        players,
        left_out: Vec::new(),
    })
}

/// Refuses a player that would run for hours, and longer for each pair, before anything is measured.
pub fn check_speed(name: &str, problem: &Problem, own: &[OwnPlayer]) -> Result<(), MeasureError> {
    let horizon = problem.horizon();
    let contestant = contestant(name, problem.policy(), own)?;
    if contestant.is_per_round() && horizon > ROUND_BY_ROUND_MAX {
        return Err(MeasureError::PlayerSlow {
            name: name.to_owned(),
            horizon,
            most: ROUND_BY_ROUND_MAX,
        });
    }
    Ok(())
}

/// Names tell rows apart, so one's own must be none that the library has, and no two the same.
pub fn check_names(own: &[OwnPlayer]) -> Result<(), MeasureError> {
    for (place, player) in own.iter().enumerate() {
        let known = player.name == DEBORA || Rival::named(&player.name).is_some();
        if known || own[..place].iter().any(|other| other.name == player.name) {
            return Err(MeasureError::PlayerName {
                name: player.name.clone(),
            });
        }
    }
    Ok(())
}

/// The player of this name.
pub(super) fn contestant<'a>(
    name: &str,
    policy: Policy,
    own: &'a [OwnPlayer],
) -> Result<Contestant<'a>, LabError> {
    if name == DEBORA {
        return Ok(Contestant::Debora);
    }
    match own.iter().find(|player| player.name == name) {
        Some(player) => Ok(Contestant::Own(player)),
        None => Ok(Contestant::Rival(rival(name, policy)?)),
    }
}

fn able(policy: Policy) -> impl Iterator<Item = &'static Rival> {
    RIVALS.iter().filter(move |rival| rival.plays(policy))
}

fn rival(name: &str, policy: Policy) -> Result<&'static Rival, LabError> {
    able(policy)
        .find(|rival| rival.name == name)
        .ok_or_else(|| {
            let known: Vec<String> = able(policy).map(|rival| rival.name.to_owned()).collect();
            LabError::PlayerUnknown {
                name: name.to_owned(),
                policy: policy.name(),
                known: listed(&known),
            }
        })
}
