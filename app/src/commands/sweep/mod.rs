//! `debora sweep`: a measurement at every point of a grid, one table and one figure an outcome.

mod folder;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use debora::lab::LabError;
use debora::measure::answer::{self, Answer};
use debora::measure::{
    Grid, Io, MeasureError, MeasuredVerb, Measurement, Over, Part, SpecText, Sweep, SweepPoint,
    Swept, SweptPoint, choose, latex,
};
use indicatif::ProgressBar;

use crate::args::{Common, PairArgs, SpecsArgs};
use crate::commands::compare::in_flags;
use crate::commands::measure::{check_latex, command, report_line};
use crate::commands::{CANCELLED, MEASURING, load_all, open, print};
use crate::files::OutDir;
use crate::report::html::SweepPage;
use crate::report::{self, sweeps};
use crate::terminal::{ink_for_stdout, laid_out, progress_bar};
use folder::SweepDir;

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
        let choice = choose(spec.problem(), players, count)?;
        Ok(Measurement::compare(spec, count, simulator, choice.players))
    };
    let sweep = Sweep::of(Grid::of(&load_all(specs)?, over)?, measurement).map_err(in_flags)?;
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
            let part = one_point(point, shard, &bar, done)
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
    bar: &ProgressBar,
    before: u64,
) -> Result<Part, MeasureError> {
    let begun = Instant::now();
    let io = Io {
        open: &open,
        clock: &|| begun.elapsed().as_secs_f64(),
        progress: &|done| bar.set_position(before + done),
        cancel: &CANCELLED,
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

fn write_report(
    out: &OutDir,
    sweep: &Sweep,
    swept: &Swept,
    answer: &Answer,
    latex: bool,
) -> Result<()> {
    let first = &sweep.points[0].measurement;
    let mut specs: Vec<(String, String)> = Vec::new();
    for point in &sweep.points {
        let spec = &point.measurement.spec;
        if specs.iter().all(|(file, _)| *file != spec.file) {
            specs.push((spec.file.clone(), spec.text.clone()));
        }
    }
    let names: Vec<&str> = specs.iter().map(|(file, _)| &**file).collect();
    let title = if specs.len() > 1 {
        names.join(", ")
    } else {
        first.spec.name().to_owned()
    };
    let page = SweepPage {
        verb: verb(sweep),
        title: &title,
        answer,
        figures: &sweeps::figures(swept),
        command: &again(sweep, swept, &names),
        specs: &specs,
    };
    report::write_sweep(out, &swept.document(), &page, &sweeps::sweep_csv(swept))?;
    if latex {
        out.write("table.tex", latex::swept(swept).as_bytes())?;
    }
    Ok(())
}

/// Several specs without a parameter are a comparison.
fn verb(sweep: &Sweep) -> &'static str {
    if over(sweep).is_empty() {
        "compare"
    } else {
        "sweep"
    }
}

/// The parameters beside the specs.
fn over(sweep: &Sweep) -> &[String] {
    match sweep.names.split_first() {
        Some((first, rest)) if first == "spec" => rest,
        _ => &sweep.names,
    }
}

/// The command that makes the same again.
fn again(sweep: &Sweep, swept: &Swept, files: &[&str]) -> String {
    let first = &sweep.points[0].measurement;
    let mut spec = first.spec.clone();
    // A point has its parameters behind what is the same for all.
    spec.overrides
        .truncate(spec.overrides.len() - over(sweep).len());
    spec.file = files.join(" ");
    let mut flags = Vec::new();
    for (place, name) in sweep.names.iter().enumerate() {
        if over(sweep).contains(name) {
            flags.push(format!("--over '{name}={}'", swept.values(place).join(",")));
        }
    }
    flags.push(format!("--pairs {}", first.pairs));
    if first.simulator == debora::lab::replicate::Simulator::Rounds {
        flags.push("--simulator rounds".into());
    }
    if first.verb == MeasuredVerb::Compare {
        flags.push(format!("--players {}", swept.players()[1..].join(",")));
    }
    flags.push("--out DIR".into());
    command(verb(sweep), &spec, &flags)
}

/// Puts the parts of a sweep together, from one folder or several.
pub fn merge(paths: &[PathBuf], latex: bool, common: &Common) -> Result<bool> {
    let folders = paths
        .iter()
        .map(|path| read_folder(path))
        .collect::<Result<Vec<_>>>()?;
    let (_, sweep) = &folders[0];
    for (folder, other) in &folders[1..] {
        if let Some(difference) = sweep.difference(other) {
            bail!(
                "{} and {} are of different sweeps, which differ by {difference}",
                folders[0].0.path().display(),
                folder.path().display()
            );
        }
    }
    let target = common
        .out
        .as_ref()
        .map(|path| SweepDir::open(path, sweep, common.force))
        .transpose()?;
    let mut swept = Swept::new(&sweep.names);
    for (number, point) in sweep.points.iter().enumerate() {
        let mut parts = Vec::new();
        for (folder, _) in &folders {
            parts.extend(folder.parts(number, point)?);
        }
        let whole = Part::merge(parts)
            .with_context(|| format!("point {} of {}", number + 1, sweep.points.len()))?;
        target
            .as_ref()
            .map_or(Ok(()), |target| target.write(number, None, &whole))?;
        swept
            .points
            .push(SweptPoint::of(point.values.clone(), &whole));
    }
    present(sweep, &swept, latex, None, common)
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
