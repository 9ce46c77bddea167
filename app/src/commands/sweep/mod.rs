//! `debora sweep`: a measurement at every point of a grid, one table and one figure an outcome.

mod folder;
mod page;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use debora::lab::LabError;
use debora::measure::answer;
use debora::measure::{
    Io, MeasureError, Measurement, Over, Own, Part, SpecGrid, SpecText, Sweep, SweepPoint, Swept,
    SweptPoint, choose,
};
use indicatif::ProgressBar;

use crate::args::{Common, PairArgs, SpecsArgs};
use crate::commands::compare::in_flags;
use crate::commands::measure::{check_latex, report_line};
use crate::commands::{CANCELLED, MEASURING, load_all, open, print};
use crate::files::OutDir;
use crate::terminal::{ink_for_stdout, laid_out, progress_bar};
use folder::SweepDir;
use page::write_report;

pub use folder::is_sweep;

/// The default number of pairs at a point.
const PAIRS: u64 = 200;

pub fn sweep(
    specs: &SpecsArgs,
    over: &[Over],
    pairs: &PairArgs,
    players: &[String],
    latex: bool,
    common: &Common,
) -> Result<bool> {
    let count = pairs.pairs.unwrap_or(PAIRS);
    let simulator = pairs.simulator.into();
    let measurement = |spec: SpecText| {
        if players.is_empty() {
            return Ok(Measurement::replicate(spec, count, simulator, None));
        }
        let choice = choose(spec.problem(), players, &[], count)?;
        Ok(Measurement::compare(spec, count, simulator, choice.players))
    };
    let sweep = Sweep::of(SpecGrid::of(&load_all(specs)?, over)?, measurement).map_err(in_flags)?;
    measure_all(&sweep, pairs, latex, common)
}

/// Measures what is not there yet of all points: parts of them, or the whole, which is presented.
pub fn measure_all(sweep: &Sweep, pairs: &PairArgs, latex: bool, common: &Common) -> Result<bool> {
    check_latex(pairs, latex)?;
    let folder = common
        .out
        .as_ref()
        .map(|path| SweepDir::open(path, sweep, common.force))
        .transpose()?;
    let begun = Instant::now();
    let swept = measured(sweep, pairs.shard, folder.as_ref(), common)?;
    if let (Some((number, of)), Some(folder)) = (pairs.shard, &folder) {
        print(&format!(
            "wrote shard {number} of {of} of {} points into {}; debora merge puts all {of} together\n",
            sweep.points.len(),
            folder.path().display()
        ))?;
        return Ok(true);
    }
    let seconds = begun.elapsed().as_secs_f64();
    present(sweep, &swept, latex, Some(seconds), common)
}

/// Point by point: each is written before the next begins, so that stopping loses one at most.
fn measured(
    sweep: &Sweep,
    shard: Option<(u64, u64)>,
    folder: Option<&SweepDir>,
    common: &Common,
) -> Result<Swept> {
    let there = |number: usize| folder.is_some_and(|folder| folder.has(number, shard));
    let missing = sweep
        .points
        .iter()
        .enumerate()
        .filter(|(number, _)| !there(*number));
    let total = missing
        .map(|(_, point)| Ok(point.measurement.pairs_in(shard)?))
        .sum::<Result<u64>>()?;
    let bar = progress_bar(total, common.quiet);
    let mut swept = Swept::new(&sweep.names);
    let mut done = 0;
    MEASURING.store(true, Ordering::Relaxed);
    for (number, point) in sweep.points.iter().enumerate() {
        bar.set_prefix(format!("point {} of {}, ", number + 1, sweep.points.len()));
        let part = if there(number) {
            folder
                .context("files without a folder")?
                .read(number, point, shard)?
        } else {
            let part = one_point(point, shard, common.threads, &bar, done)
                .map_err(|error| stopped(error, number, sweep, folder))?;
            done += point.measurement.pairs_in(shard)?;
            folder.map_or(Ok(()), |folder| folder.write(number, shard, &part))?;
            part
        };
        // Of a part there is nothing to sum up yet.
        if shard.is_none() {
            swept
                .points
                .push(SweptPoint::of(point.values.clone(), &part));
        }
    }
    bar.finish_and_clear();
    // What follows looks at no flag: from here on Ctrl-C ends the program itself.
    MEASURING.store(false, Ordering::Relaxed);
    Ok(swept)
}

fn one_point(
    point: &SweepPoint,
    shard: Option<(u64, u64)>,
    threads: Option<u16>,
    bar: &ProgressBar,
    before: u64,
) -> Result<Part, MeasureError> {
    let begun = Instant::now();
    let io = Io {
        open: &open,
        clock: &|| begun.elapsed().as_secs_f64(),
        progress: &|done| bar.set_position(before + done),
        cancel: &CANCELLED,
        threads: threads.map(usize::from),
        own: &Own::default(),
    };
    Ok(point.measurement.measure(shard, &io)?.0)
}

/// Stopped as asked, a sweep in a folder can go on.
fn stopped(
    error: MeasureError,
    number: usize,
    sweep: &Sweep,
    folder: Option<&SweepDir>,
) -> anyhow::Error {
    match (error, folder) {
        (MeasureError::Lab(LabError::Cancelled), Some(folder)) => anyhow!(
            "stopped as asked; the first {number} of {} points are in {}, and the same command goes on from there",
            sweep.points.len(),
            folder.path().display()
        ),
        (error, _) => error.into(),
    }
}

/// Says, shows and writes what a sweep found. False if a promise was measured as broken.
fn present(
    sweep: &Sweep,
    swept: &Swept,
    latex: bool,
    seconds: Option<f64>,
    common: &Common,
) -> Result<bool> {
    let document = swept.document();
    let answer = answer::swept(swept);
    if let Some(path) = &common.out {
        // What is there was made by the same sweep, and is made again to the byte.
        let out = OutDir::for_shards(path, true)?;
        write_report(&out, sweep, swept, &answer, latex)?;
    }
    print(&if common.json {
        format!("{document:#}\n")
    } else {
        let ink = ink_for_stdout();
        let took = seconds.map(|seconds| ink.faint(&format!("\n  {seconds:.1} seconds\n")));
        laid_out(&answer, ink) + &took.unwrap_or_default() + &report_line(common)
    })?;
    Ok(!swept.is_broken())
}

/// Puts the parts of a sweep together, from one folder or several.
pub fn merge(paths: &[PathBuf], latex: bool, common: &Common) -> Result<bool> {
    let folders = paths.iter().map(|path| read_folder(path));
    let folders = folders.collect::<Result<Vec<_>>>()?;
    let sweep = check_same(&folders)?;
    let target = common.out.as_ref();
    let target = target.map(|path| SweepDir::open(path, sweep, common.force));
    let target = target.transpose()?;
    let mut swept = Swept::new(&sweep.names);
    for (number, point) in sweep.points.iter().enumerate() {
        let mut parts = Vec::new();
        for (folder, _) in &folders {
            parts.extend(folder.parts(number, point)?);
        }
        let place = || format!("point {} of {}", number + 1, sweep.points.len());
        let whole = Part::merge(parts).with_context(place)?;
        // As one machine would have left it, so that the folders are the same.
        target
            .as_ref()
            .map_or(Ok(()), |target| target.write(number, None, &whole))?;
        swept
            .points
            .push(SweptPoint::of(point.values.clone(), &whole));
    }
    present(sweep, &swept, latex, None, common)
}

/// The sweep that all folders are of.
fn check_same(folders: &[(SweepDir, Sweep)]) -> Result<&Sweep> {
    let (first, sweep) = &folders[0];
    for (folder, other) in &folders[1..] {
        if let Some(difference) = sweep.difference(other) {
            bail!(
                "{} and {} are of different sweeps, which differ by {difference}",
                first.path().display(),
                folder.path().display()
            );
        }
    }
    Ok(sweep)
}

fn read_folder(path: &Path) -> Result<(SweepDir, Sweep)> {
    if !is_sweep(path) {
        bail!(
            "{} is not a folder of a sweep, as the others are; merge sweeps alone",
            path.display()
        );
    }
    SweepDir::of_parts(path)
}
