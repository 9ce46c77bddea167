//! The files of a whole sweep, and the command that makes them again.

use anyhow::Result;
use debora::lab::replicate::Simulator;
use debora::measure::answer::Answer;
use debora::measure::{MeasuredVerb, Sweep, Swept, latex};

use crate::commands::measure::command;
use crate::files::OutDir;
use crate::report::html::SweepPage;
use crate::report::{self, sweeps};

/// Table, figures and page.
pub fn write_report(
    out: &OutDir,
    sweep: &Sweep,
    swept: &Swept,
    answer: &Answer,
    latex: bool,
) -> Result<()> {
    let specs = specs(sweep);
    let files: Vec<&str> = specs.iter().map(|(file, _)| &**file).collect();
    let page = SweepPage {
        verb: verb(sweep),
        title: &title(sweep, &files),
        answer,
        figures: &sweeps::figures(swept),
        command: &again(sweep, swept, &files),
        specs: &specs,
    };
    report::write_sweep(out, &swept.document(), &page, &sweeps::sweep_csv(swept))?;
    // Only where it is asked for: few need it, and it is no part of what a sweep found.
    if latex {
        out.write("table.tex", latex::swept(swept).as_bytes())?;
    }
    Ok(())
}

/// File and text of each spec.
fn specs(sweep: &Sweep) -> Vec<(String, String)> {
    let mut specs: Vec<(String, String)> = Vec::new();
    for point in &sweep.points {
        let spec = &point.measurement.spec;
        if specs.iter().all(|(file, _)| *file != spec.file) {
            specs.push((spec.file.clone(), spec.text.clone()));
        }
    }
    specs
}

fn title(sweep: &Sweep, files: &[&str]) -> String {
    match files {
        [_] => sweep.points[0].measurement.spec.name().to_owned(),
        several => several.join(", "),
    }
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
    let same = spec.overrides.len() - over(sweep).len();
    spec.overrides.truncate(same);
    spec.file = files.join(" ");
    let mut flags = Vec::new();
    for (place, name) in sweep.names.iter().enumerate() {
        if over(sweep).contains(name) {
            flags.push(format!("--over '{name}={}'", swept.values(place).join(",")));
        }
    }
    flags.push(format!("--pairs {}", first.pairs));
    if first.simulator == Simulator::Rounds {
        flags.push("--simulator rounds".into());
    }
    let players = &first.players;
    // Specs of different policies have each all rivals that can play, which are not named.
    let are_same = sweep
        .points
        .iter()
        .all(|point| point.measurement.players == *players);
    if first.verb == MeasuredVerb::Compare && are_same {
        flags.push(format!("--players {}", players[1..].join(",")));
    }
    flags.push("--out DIR".into());
    command(verb(sweep), &spec, &flags)
}
