//! `debora run`: one simulated run, by default pair 0's first.

use std::path::Path;

use anyhow::{Result, bail};
use debora::lab::metrics::Run;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::measure::{FirstRun, answer, json, warnings, world_gaps};
use serde_json::json;

use crate::args::{Common, SpecArgs};
use crate::commands::measure::{command, report_line};
use crate::commands::{load, open, print};
use crate::files::{OutDir, write_whole};
use crate::report::html::ReportPage;
use crate::report::{self, figures, runs_csv};
use crate::terminal::{ink_for_stdout, laid_out};

pub fn run(
    args: &SpecArgs,
    member: (u64, usize),
    trace: Option<&Path>,
    simulator: Simulator,
    common: &Common,
) -> Result<bool> {
    let spec = load(args)?;
    let experiment = spec.experiment(&spec.world(&open)?, simulator);
    // Both are checked before the run, which may be long.
    let out = common
        .out
        .as_ref()
        .map(|path| OutDir::for_report(path, common.force))
        .transpose()?;
    refuse_overwriting(trace, common.force)?;
    let (run, first_run) = observed(&experiment, member, trace, common.force)?;
    let world = &*experiment.world(member.0, member.1);
    let warnings = warnings(&spec.plan, Some(world));
    let gaps = world_gaps(&spec.plan, world);
    let document = json::run(&spec, &run, simulator, &warnings);
    let document = json::of_member(json::with_gaps(document, &gaps), member);
    let answer = answer::run(&spec, world.means(), &run, &first_run, &warnings, &gaps);
    if let Some(out) = out {
        let page = ReportPage {
            verb: "run",
            answer: &answer,
            figures: &figures::of_runs(&first_run, &spec, &[&run]),
            command: &command("run", &spec, &flags(member, simulator)),
            spec: &spec,
            first_run: &first_run,
        };
        report::write(&out, &document, &page, &runs_csv(&run))?;
    }
    print(&if common.json {
        format!("{document:#}\n")
    } else {
        laid_out(&answer, ink_for_stdout()) + &report_line(common)
    })?;
    Ok(true)
}

/// The flags that, with the spec, give this run again.
fn flags((pair, member): (u64, usize), simulator: Simulator) -> Vec<String> {
    let mut flags = Vec::new();
    if (pair, member) != (0, 0) {
        flags.push(format!("--pair {pair} --member {member}"));
    }
    if simulator == Simulator::Rounds {
        flags.push("--simulator rounds".into());
    }
    flags.push("--out DIR".into());
    flags
}

fn refuse_overwriting(trace: Option<&Path>, force: bool) -> Result<()> {
    if let Some(path) = trace.filter(|path| path.exists() && !force) {
        bail!(
            "{} exists; choose another name, or --force to overwrite it",
            path.display()
        );
    }
    Ok(())
}

/// Runs, and writes the trace if it is wanted: one line of JSON per epoch.
fn observed(
    experiment: &Experiment,
    (pair, member): (u64, usize),
    trace: Option<&Path>,
    force: bool,
) -> Result<(Run, FirstRun)> {
    let mut first_run = FirstRun::new(experiment.world(pair, member).means());
    let mut lines = String::new();
    let run = experiment.run_observed(Contestant::Debora, pair, member, &mut |stretch| {
        first_run.add(stretch);
        // Only if a trace is wanted: records hold every estimate.
        if let (Some(_), Some(record)) = (trace, stretch.player.record()) {
            // The observer comes before the rounds are counted in, so the record does not have their number yet.
            let mut record = json!(record);
            record["rounds"] = json!(stretch.rounds);
            lines += &format!("{record}\n");
        }
    })?;
    if let Some(path) = trace {
        write_whole(path, force, |file| Ok(file.write_all(lines.as_bytes())?))?;
    }
    Ok((run, first_run))
}
