//! `debora compare`: the policy beside its rivals on the same worlds.

use anyhow::{Result, anyhow};
use debora::measure::words::{listed, whole};
use debora::measure::{MeasureError, Measurement, choose};

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::load;
use crate::commands::measure::measure;

/// The default number of pairs: fewer than replicate's, as each is played by all players.
const PAIRS: u64 = 200;

pub fn compare(
    args: &SpecArgs,
    pairs: &PairArgs,
    players: &[String],
    common: &Common,
) -> Result<bool> {
    let spec = load(args)?;
    let count = pairs.pairs.unwrap_or(PAIRS);
    let choice = choose(spec.problem(), players, &[], count).map_err(in_flags)?;
    // On standard error: with --json, standard output is one document.
    if !choice.left_out.is_empty() && !common.quiet {
        let names = listed(&choice.left_out);
        eprintln!(
            "note: {names} left out, as deciding every round anew would take too long; use a shorter --horizon to include them"
        );
    }
    let measurement = Measurement::compare(spec, count, pairs.simulator.into(), choice.players);
    measure(&measurement, pairs, common)
}

/// The error with the flag to change: the library knows a horizon, not how it was typed.
fn in_flags(error: MeasureError) -> anyhow::Error {
    match error {
        MeasureError::PlayerSlow {
            name,
            horizon,
            most,
        } => anyhow!(
            "{name} decides in every round, and {} rounds are too many for it; use --horizon {most} or less",
            whole(horizon)
        ),
        error => error.into(),
    }
}
