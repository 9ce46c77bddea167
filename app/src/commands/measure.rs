//! What replicate, compare and merge share: pairs measured here or read from parts, and one way to present them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use debora::lab::replicate::Simulator;
use debora::measure::answer::{self, Answer};
use debora::measure::{Findings, Io, MeasuredVerb, Measurement, Own, Part, SpecText, json, latex};
use serde_json::Value;

use crate::args::{Common, PairArgs};
use crate::commands::{CANCELLED, MEASURING, open, print};
use crate::files::OutDir;
use crate::report::html::ReportPage;
use crate::report::{self, figures, pairs_csv};
use crate::terminal::{ink_for_stdout, laid_out, progress_bar};

/// Measures what was asked for: a part, which is written, or the whole, which is presented.
pub fn measure(
    measurement: &Measurement,
    pairs: &PairArgs,
    latex: bool,
    common: &Common,
) -> Result<bool> {
    check_latex(pairs, latex)?;
    let (part, seconds) = watched(measurement, pairs.shard, common)?;
    match pairs.shard {
        Some(shard) => write_part(&part, shard, common),
        None => present(&part, &seconds, latex, common),
    }
}

/// Refused before anything is measured: of a part there is no table.
pub fn check_latex(pairs: &PairArgs, latex: bool) -> Result<()> {
    if latex && pairs.shard.is_some() {
        bail!("--latex is for the whole; give it to debora merge, not with --shard");
    }
    Ok(())
}

/// Measures a part, or the whole, and shows how far it is.
fn watched(
    measurement: &Measurement,
    shard: Option<(u64, u64)>,
    common: &Common,
) -> Result<(Part, Vec<f64>)> {
    let total = measurement.pairs_in(shard)?;
    let bar = progress_bar(total, common.quiet);
    let begun = Instant::now();
    let progress = |done: u64| {
        bar.set_position(done);
        if done == total {
            bar.finish_and_clear();
            // What follows looks at no flag: from here on Ctrl-C ends the program itself.
            MEASURING.store(false, Ordering::Relaxed);
        }
    };
    MEASURING.store(true, Ordering::Relaxed);
    Ok(measurement.measure(
        shard,
        &Io {
            open: &open,
            clock: &|| begun.elapsed().as_secs_f64(),
            progress: &progress,
            cancel: &CANCELLED,
            threads: common.threads.map(usize::from),
            own: &Own::default(),
        },
    )?)
}

/// Writes the file of a part.
fn write_part(part: &Part, (number, of): (u64, u64), common: &Common) -> Result<bool> {
    let path = common.out.as_ref().context("--shard needs --out")?;
    let out = OutDir::for_shards(path, common.force)?;
    let name = format!("shard-{number}-of-{of}.json");
    out.write(&name, part.to_json().as_bytes())?;
    print(&format!(
        "wrote {}; debora merge puts all {of} together\n",
        out.path().join(name).display()
    ))?;
    Ok(true)
}

/// Says, shows and writes what a whole measurement found. False if a promise was measured as broken.
pub fn present(part: &Part, seconds: &[f64], latex: bool, common: &Common) -> Result<bool> {
    let findings = part.findings();
    let document = json::measured(part, &findings);
    let answer = answer::measured(part, &findings);
    let table = latex.then(|| latex::measured(part, &findings));
    write_report(
        part,
        &findings,
        &document,
        &answer,
        table.as_deref(),
        common,
    )?;
    // Timings go to the screen alone: files must be the same bytes on every machine.
    print(&if common.json {
        format!("{:#}\n", json::with_seconds(document, seconds))
    } else {
        let ink = ink_for_stdout();
        let took = match seconds {
            [] => String::new(),
            _ => ink.faint(&format!("\n  {:.1} seconds\n", seconds.iter().sum::<f64>())),
        };
        laid_out(&answer, ink) + &took + &report_line(common)
    })?;
    Ok(findings.broken.is_empty())
}

/// Writes what --out asks for, if it is there.
fn write_report(
    part: &Part,
    findings: &Findings,
    document: &Value,
    answer: &Answer,
    table: Option<&str>,
    common: &Common,
) -> Result<()> {
    let Some(path) = &common.out else {
        return Ok(());
    };
    let out = OutDir::for_report(path, common.force)?;
    let measurement = &part.measurement;
    let page = ReportPage {
        verb: measurement.verb.name(),
        answer,
        figures: &figures::of_part(part, findings.summaries[0].1.promised),
        command: &command(
            measurement.verb.name(),
            &measurement.spec,
            &flags(measurement),
        ),
        spec: &measurement.spec,
        // A file edited by hand may lack what every whole measurement has.
        first_run: part
            .first_run
            .as_ref()
            .context("the shards hold no first run")?,
    };
    report::write(&out, document, &page, &pairs_csv(&part.pairs.players))?;
    table.map_or(Ok(()), |table| out.write("table.tex", table.as_bytes()))
}

/// Where the report is, if there is one.
pub fn report_line(common: &Common) -> String {
    common.out.as_ref().map_or(String::new(), |path| {
        format!("  report: {}\n", path.join("report.html").display())
    })
}

/// The command that makes the same again.
pub fn command(verb: &str, spec: &SpecText, flags: &[String]) -> String {
    let mut words = vec![format!("debora {verb} {}", spec.file)];
    let sets = spec.overrides.iter();
    words.extend(sets.map(|(path, value)| format!("--set '{path}={value}'")));
    words.extend(flags.iter().cloned());
    words.join(" ")
}

/// The flags that, with the spec, give this measurement again.
fn flags(measurement: &Measurement) -> Vec<String> {
    let mut flags = vec![format!("--pairs {}", measurement.pairs)];
    if measurement.simulator == Simulator::Rounds {
        flags.push("--simulator rounds".into());
    }
    if measurement.verb == MeasuredVerb::Compare {
        // Which rivals play without a wish depends on the numbers of rounds and pairs, so they are named.
        let rivals = measurement.players[1..].join(",");
        flags.push(format!("--players {rivals}"));
    }
    if let Some(other) = &measurement.other {
        flags.push(format!("--other-world {}", other.file));
    }
    flags.push("--out DIR".into());
    flags
}
