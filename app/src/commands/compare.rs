//! `debora compare`: the policy beside its rivals on the same worlds.

use anyhow::{Result, anyhow};
use debora::job::words::listed;
use debora::job::{Job, choose};

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::load;
use crate::commands::measure::{measure, present, write_shard};

pub fn compare(
    args: &SpecArgs,
    pairs: &PairArgs,
    players: &[String],
    common: &Common,
) -> Result<bool> {
    let loaded = load(args)?;
    let count = pairs.pairs.unwrap_or(200);
    let choice = choose(&loaded.spec.problem, players, count);
    // What to change in the spec is a flag here.
    let choice = choice
        .map_err(|error| anyhow!(error.to_string().replace("use horizon", "use --horizon")))?;
    if !choice.left_out.is_empty() && !common.quiet {
        let names = listed(&choice.left_out);
        eprintln!(
            "note: {names} left out, as deciding every round anew would take long; a shorter --horizon has room for it"
        );
    }
    let job = Job::compare(&loaded, count, pairs.simulator.into(), choice.players);
    let (part, seconds) = measure(&job, pairs.shard, common)?;
    match pairs.shard {
        Some(shard) => write_shard(&part, shard, common),
        None => present(&part, &seconds, common),
    }
}
