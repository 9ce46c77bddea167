//! `debora compare`: the policy beside its rivals on the same worlds.

use anyhow::{Result, bail};
use debora::lab::players::{RIVALS, Rival};

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::Loaded;
use crate::commands::measure::{DEBORA, Job, present, write_shard};
use crate::report::words::{listed, whole};

/// The longest horizon for players that decide every round.
const ROUND_BY_ROUND_MAX: u64 = 10_000_000;

/// The rounds such a player may take in all without having been asked for by name: about a quarter of a minute.
const ROUNDS_UNASKED_MAX: u64 = 100_000_000;

pub fn compare(args: &SpecArgs, pairs: &PairArgs, players: &[String], common: &Common) -> Result<bool> {
    let loaded = Loaded::read(args)?;
    let count = pairs.pairs.unwrap_or(200);
    let job = Job {
        verb: "compare".into(),
        players: chosen(&loaded, players, count, common)?,
        text: loaded.text,
        file: loaded.file,
        overrides: loaded.overrides,
        simulator: pairs.simulator.into(),
        pairs: count,
        other: None,
    };
    let (part, seconds) = job.measure(pairs.shard, common)?;
    match pairs.shard {
        Some(shard) => write_shard(&part, shard, common),
        None => present(&part, &seconds, common),
    }
}

/// debora first, then the rivals asked for; without a wish, all that can play this problem in reasonable time.
fn chosen(loaded: &Loaded, players: &[String], pairs: u64, common: &Common) -> Result<Vec<String>> {
    let (policy, horizon) = (loaded.spec.problem.policy(), loaded.spec.problem.horizon());
    let able = || RIVALS.iter().filter(|rival| rival.policies.contains(&policy));
    let names: Vec<String> = able().map(|rival| rival.name.to_owned()).collect();
    let mut chosen = vec![DEBORA.to_owned()];
    if players.is_empty() {
        let slow = |rival: &&Rival| rival.per_round && horizon.saturating_mul(2 * pairs) > ROUNDS_UNASKED_MAX;
        chosen.extend(able().filter(|rival| !slow(rival)).map(|rival| rival.name.to_owned()));
        let left_out: Vec<String> = able().filter(slow).map(|rival| rival.name.to_owned()).collect();
        if !left_out.is_empty() && !common.quiet {
            let names = listed(&left_out);
            eprintln!(
                "note: {names} left out, as deciding every round anew would take long; a shorter --horizon has room for it"
            );
        }
        return Ok(chosen);
    }
    for player in players.iter().filter(|player| *player != DEBORA) {
        let Some(rival) = able().find(|rival| rival.name == player) else {
            bail!("no player {player:?} for policy {}; there are {}", policy.name(), listed(&names));
        };
        if rival.per_round && horizon > ROUND_BY_ROUND_MAX {
            bail!(
                "{player} decides every round, and {} are too many; use --horizon {ROUND_BY_ROUND_MAX} or less",
                whole(horizon)
            );
        }
        if !chosen.contains(player) {
            chosen.push(player.clone());
        }
    }
    Ok(chosen)
}
