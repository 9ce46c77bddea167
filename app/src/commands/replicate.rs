//! `debora replicate`: many pairs of runs, one key and fresh data.

use std::path::Path;

use anyhow::{Context, Result};
use debora::measure::{Measurement, SpecText};

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::load;
use crate::commands::measure::measure;

/// The default number of pairs: the interval of a rate near 1 is then about two percent wide.
const PAIRS: u64 = 1_000;

pub fn replicate(
    args: &SpecArgs,
    pairs: &PairArgs,
    other: Option<&Path>,
    common: &Common,
) -> Result<bool> {
    let spec = load(args)?;
    let other = other.map(load_other).transpose()?;
    // The default is here and not in `PairArgs`, as it differs by verb.
    let count = pairs.pairs.unwrap_or(PAIRS);
    let measurement = Measurement::replicate(spec, count, pairs.simulator.into(), other);
    measure(&measurement, pairs, false, common)
}

/// The spec of the second run's world, as it stands: flags replace values of the first alone.
fn load_other(path: &Path) -> Result<SpecText> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    Ok(SpecText::parse(text, file, Vec::new())?)
}
