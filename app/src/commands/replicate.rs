//! `debora replicate`: many pairs of runs, one key and fresh data.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::args::{Common, PairArgs, SpecArgs};
use crate::commands::Loaded;
use crate::commands::measure::{DEBORA, Job, present, write_shard};

pub fn replicate(args: &SpecArgs, pairs: &PairArgs, other: Option<&PathBuf>, common: &Common) -> Result<bool> {
    let loaded = Loaded::read(args)?;
    let read = |path: &PathBuf| {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        Ok::<_, anyhow::Error>((file, text))
    };
    let job = Job {
        verb: "replicate".into(),
        text: loaded.text,
        file: loaded.file,
        overrides: loaded.overrides,
        simulator: pairs.simulator.into(),
        pairs: pairs.pairs.unwrap_or(1_000),
        players: vec![DEBORA.into()],
        other: other.map(read).transpose()?,
    };
    let (part, seconds) = job.measure(pairs.shard, common)?;
    match pairs.shard {
        Some(shard) => write_shard(&part, shard, common),
        None => present(&part, &seconds, common),
    }
}
