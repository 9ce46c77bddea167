//! `debora merge`: parts of replicate or compare, put together to the bytes of the whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use debora::measure::Part;

use crate::args::Common;
use crate::commands::measure::present;
use crate::commands::sweep;

pub fn merge(paths: &[PathBuf], latex: bool, common: &Common) -> Result<bool> {
    if paths.iter().any(|path| sweep::is_sweep(path)) {
        return sweep::merge(paths, latex, common);
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(shards_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    let parts = files.iter().map(|file| read(file)).collect::<Result<_>>()?;
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    present(&Part::merge_named(&names, parts)?, &[], latex, common)
}

/// The files that --shard writes: a folder may hold other things beside them.
fn shards_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| {
        file.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("shard-"))
    });
    // Folders list their files in any order, and errors name parts by number.
    files.sort();
    if files.is_empty() {
        bail!("{} holds no shard-i-of-n.json", folder.display());
    }
    Ok(files)
}

pub(super) fn read(file: &Path) -> Result<Part> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not a shard of debora", file.display()))
}
