//! The folder of a sweep: what is measured in `grid.json`, and each point's part in a file of its own as soon as it is finished.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use debora::measure::{Part, Sweep, SweepPoint};

use crate::commands::merge::read;
use crate::commands::open;
use crate::files::OutDir;

/// What is measured.
const GRID: &str = "grid.json";

/// The points, in a folder of their own: there may be thousands.
const POINTS: &str = "points";

/// Whether a path is the folder of a sweep.
pub fn is_sweep(path: &Path) -> bool {
    path.join(GRID).is_file()
}

/// The folder of a sweep.
pub struct SweepDir {
    path: PathBuf,
    points: OutDir,
}

impl SweepDir {
    /// A new folder, or one of the same sweep, which is continued. With `force` another's is begun anew.
    pub fn open(path: &Path, sweep: &Sweep, force: bool) -> Result<Self> {
        let out = OutDir::for_shards(path, true)?;
        check_unused(path, force)?;
        if is_sweep(path) {
            check_same(path, sweep, force)?;
        }
        // Before anything else: shards that begin together in one folder know it by this file.
        let text = serde_json::to_string(sweep).context("texts and numbers")? + "\n";
        out.write(GRID, text.as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            points: OutDir::for_shards(&path.join(POINTS), true)?,
        })
    }

    /// A folder to read parts from, and its sweep.
    pub fn of_parts(path: &Path) -> Result<(Self, Sweep)> {
        let folder = Self {
            path: path.to_owned(),
            points: OutDir::for_shards(&path.join(POINTS), true)?,
        };
        Ok((folder, read_grid(path)?))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a point, or its shard, is finished.
    pub fn has(&self, number: usize, shard: Option<(u64, u64)>) -> bool {
        self.points.path().join(name(number, shard)).is_file()
    }

    /// A finished point, which must be what would be measured.
    pub fn read(
        &self,
        number: usize,
        point: &SweepPoint,
        shard: Option<(u64, u64)>,
    ) -> Result<Part> {
        let file = self.points.path().join(name(number, shard));
        let remedy = || {
            format!(
                "{} cannot be used; remove it to measure it again",
                file.display()
            )
        };
        let part = read(&file).with_context(remedy)?;
        point
            .measurement
            .check_part(&part, &open)
            .with_context(remedy)?;
        // Of a whole every pair must be there; what a shard lacks is found when they are merged.
        match shard {
            None => Ok(Part::merge(vec![part]).with_context(remedy)?),
            Some(_) => Ok(part),
        }
    }

    pub fn write(&self, number: usize, shard: Option<(u64, u64)>, part: &Part) -> Result<()> {
        self.points
            .write(&name(number, shard), part.to_json().as_bytes())
    }

    /// All parts of a point that are here.
    pub fn parts(&self, number: usize, point: &SweepPoint) -> Result<Vec<Part>> {
        let folder = self.points.path();
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        let prefix = format!("{:04}", number + 1);
        let is_of_point = |file: &PathBuf| {
            let name = file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".json"))
        };
        files.retain(is_of_point);
        // Folders list their files in any order, and errors name parts by number.
        files.sort();
        let mut parts = Vec::new();
        for file in files {
            let part = read(&file)?;
            if let Some(difference) = point.measurement.difference(&part.measurement) {
                bail!(
                    "{} is of another measurement, which differs by {difference}",
                    file.display()
                );
            }
            parts.push(part);
        }
        Ok(parts)
    }
}

/// Refuses the folder of another sweep, or empties it.
fn check_same(path: &Path, sweep: &Sweep, force: bool) -> Result<()> {
    let Some(difference) = sweep.difference(&read_grid(path)?) else {
        return Ok(());
    };
    if !force {
        bail!(
            "the folder {} is of another sweep, which differs by {difference}; choose another folder, or --force to begin anew",
            path.display()
        );
    }
    // Points of the other sweep would be taken for this one's.
    fs::remove_dir_all(path.join(POINTS))
        .with_context(|| format!("cannot empty {}", path.display()))
}

/// What another program left would be taken for this sweep's.
fn check_unused(path: &Path, force: bool) -> Result<()> {
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        let name = entry?.file_name();
        // A shard that began in the same moment may be writing the grid, and has written it before its points.
        let is_grid = name
            .to_string_lossy()
            .trim_start_matches('.')
            .starts_with(GRID);
        if !force && !is_grid && !is_sweep(path) {
            bail!(
                "the folder {} is not empty; choose another, or --force to overwrite in it",
                path.display()
            );
        }
    }
    Ok(())
}

/// From 1, with zeros before it so that folders list them in order.
fn name(number: usize, shard: Option<(u64, u64)>) -> String {
    let number = number + 1;
    match shard {
        None => format!("{number:04}.json"),
        Some((shard, of)) => format!("{number:04}-shard-{shard}-of-{of}.json"),
    }
}

fn read_grid(path: &Path) -> Result<Sweep> {
    let file = path.join(GRID);
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not a sweep of debora", file.display()))
}
