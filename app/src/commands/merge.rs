//! `debora merge`: shards of replicate or compare, put together to the bytes of the whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use debora::lab::metrics::{Run, checkpoints};
use debora::lab::shard::Shard;

use crate::args::Common;
use crate::commands::measure::{Part, present};

pub fn merge(paths: &[PathBuf], common: &Common) -> Result<bool> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { files.extend(shards_in(path)?) } else { files.push(path.clone()) }
    }
    let mut parts: Vec<Part> = files.iter().map(|file| read(file)).collect::<Result<_>>()?;
    let shards: Vec<Shard> = parts.iter().map(|part| part.shard.clone()).collect();
    let shard = Shard::merge(&shards)?;
    check_shape(&parts[0], &shard)?;
    let story = parts.iter_mut().find_map(|part| part.story.take());
    let first = parts.swap_remove(0);
    present(&Part { story, shard, ..first }, &[], common)
}

/// Every run must have the numbers the spec asks for: a file edited by hand may not.
fn check_shape(part: &Part, shard: &Shard) -> Result<()> {
    let problem = part.job.loaded()?.spec.problem;
    let (costs, checkpoints) = (problem.thresholds().len(), checkpoints(problem.horizon()).len());
    let fits = |run: &Run| {
        let regret = run.regret_curve.len();
        run.violations.len() == costs
            && run.violation_curve.len() == checkpoints
            && (regret == checkpoints || (regret == 0 && run.regret.is_none()))
    };
    let mut runs = shard.players.iter().flat_map(|(_, pairs)| pairs).flat_map(|pair| &pair.runs);
    if shard.players.is_empty() || shard.total == 0 || !runs.all(fits) {
        bail!("these shards do not hold what their spec asks for; measure them again");
    }
    Ok(())
}

fn shards_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("shard-")));
    files.sort();
    if files.is_empty() {
        bail!("{} holds no shard-i-of-n.json", folder.display());
    }
    Ok(files)
}

fn read(file: &Path) -> Result<Part> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a shard of debora", file.display()))
}
