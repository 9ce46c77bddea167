//! `debora compare`: the policy beside its rivals on the same worlds.

use anyhow::{Result, anyhow};
use debora::measure::words::{listed, whole};
use debora::measure::{MeasureError, Measurement, SpecGrid, SpecText, Sweep, choose};

use crate::args::{Common, PairArgs, SpecsArgs};
use crate::commands::load_all;
use crate::commands::measure::measure;
use crate::commands::sweep::measure_all;

/// The default number of pairs: fewer than replicate's, as each is played by all players.
const PAIRS: u64 = 200;

pub fn compare(
    args: &SpecsArgs,
    pairs: &PairArgs,
    players: &[String],
    latex: bool,
    common: &Common,
) -> Result<bool> {
    let mut specs = load_all(args)?;
    let count = pairs.pairs.unwrap_or(PAIRS);
    let mut left_out = Vec::new();
    let mut comparison = |spec: SpecText| {
        let choice = choose(spec.problem(), players, &[], count)?;
        left_out.extend(choice.left_out);
        let simulator = pairs.simulator.into();
        Ok(Measurement::compare(spec, count, simulator, choice.players))
    };
    // Several are points of a grid that has the specs alone.
    if specs.len() > 1 {
        let sweep = Sweep::of(SpecGrid::of(&specs, &[])?, comparison).map_err(in_flags)?;
        note_left_out(left_out, common);
        return measure_all(&sweep, pairs, latex, common);
    }
    let measurement = comparison(specs.remove(0)).map_err(in_flags)?;
    note_left_out(left_out, common);
    measure(&measurement, pairs, latex, common)
}

/// Names the rivals that nobody asked for and that would take too long.
fn note_left_out(mut names: Vec<String>, common: &Common) {
    names.sort();
    names.dedup();
    // On standard error: with --json, standard output is one document.
    if !names.is_empty() && !common.quiet {
        let names = listed(&names);
        eprintln!(
            "note: {names} left out, as deciding every round anew would take too long; use a shorter --horizon to include them"
        );
    }
}

/// The error with the flag to change: the library knows a horizon, not how it was typed.
pub(super) fn in_flags(error: MeasureError) -> anyhow::Error {
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
