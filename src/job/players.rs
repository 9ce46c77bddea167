//! Who takes part in a comparison.

use crate::job::JobError;
use crate::job::words::listed;
use crate::lab::LabError;
use crate::lab::players::{RIVALS, Rival};
use crate::lab::replicate::Contestant;
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

/// debora first, then the rivals asked for; without a wish, all that can play this problem in reasonable time.
pub fn choose(problem: &Problem, wanted: &[String], pairs: u64) -> Result<Choice, JobError> {
    let horizon = problem.horizon();
    let mut players = vec![DEBORA.to_owned()];
    if wanted.is_empty() {
        let slow = |rival: &&Rival| {
            rival.per_round && horizon.saturating_mul(2).saturating_mul(pairs) > ROUNDS_UNASKED_MAX
        };
        let (slow, quick): (Vec<&Rival>, Vec<&Rival>) = able(problem.policy()).partition(slow);
        let names = |rivals: Vec<&Rival>| {
            rivals
                .iter()
                .map(|rival| rival.name.to_owned())
                .collect::<Vec<_>>()
        };
        players.extend(names(quick));
        return Ok(Choice {
            players,
            left_out: names(slow),
        });
    }
    for name in wanted.iter().filter(|name| *name != DEBORA) {
        if rival(name, problem.policy())?.per_round && horizon > ROUND_BY_ROUND_MAX {
            return Err(JobError::PlayerSlow {
                name: name.clone(),
                horizon,
                most: ROUND_BY_ROUND_MAX,
            });
        }
        if !players.contains(name) {
            players.push(name.clone());
        }
    }
    Ok(Choice {
        players,
        left_out: Vec::new(),
    })
}

/// Who plays under this name.
pub(super) fn contestant(name: &str, policy: Policy) -> Result<Contestant, LabError> {
    if name == DEBORA {
        Ok(Contestant::Debora)
    } else {
        Ok(Contestant::Rival(rival(name, policy)?))
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
