//! `debora replicate`: many pairs of runs, one key and fresh data.

use std::path::PathBuf;

use anyhow::{Context, Result};
use debora::job::Job;

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::load;
use crate::commands::measure::{measure, present, write_shard};

pub fn replicate(
    args: &SpecArgs,
    pairs: &PairArgs,
    other: Option<&PathBuf>,
    common: &Common,
) -> Result<bool> {
    let loaded = load(args)?;
    let read = |path: &PathBuf| {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        Ok::<_, anyhow::Error>((file, text))
    };
    let other = other.map(read).transpose()?;
    let job = Job::replicate(
        &loaded,
        pairs.pairs.unwrap_or(1_000),
        pairs.simulator.into(),
        other,
    );
    let (part, seconds) = measure(&job, pairs.shard, common)?;
    match pairs.shard {
        Some(shard) => write_shard(&part, shard, common),
        None => present(&part, &seconds, common),
    }
}
