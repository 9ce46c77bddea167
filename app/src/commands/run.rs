//! `debora run`: one simulated run, pair 0's first member.

use std::path::PathBuf;

use anyhow::Result;
use debora::job::words::{Ink, wrapped};
use debora::job::{Story, answer, document, warnings};
use debora::lab::replicate::{Contestant, Simulator};
use serde_json::json;

use crate::args::{Common, SpecArgs};
use crate::commands::{load, open, print};
use crate::files::{OutDir, write_whole};
use crate::report::html::{self, Page};
use crate::report::story;
use crate::report::words::ink_for_stdout;

pub fn run(
    args: &SpecArgs,
    trace: Option<&PathBuf>,
    simulator: Simulator,
    common: &Common,
) -> Result<bool> {
    let loaded = load(args)?;
    let experiment = loaded.experiment(simulator, &open)?;
    let out = common
        .out
        .as_ref()
        .map(|path| OutDir::for_report(path, common.force))
        .transpose()?;
    if let Some(path) = trace.filter(|path| path.exists() && !common.force) {
        anyhow::bail!(
            "{} exists; choose another name, or --force to overwrite it",
            path.display()
        );
    }
    let mut story = Story::new();
    let mut lines = Vec::new();
    let run = experiment.run_observed(Contestant::Debora, 0, 0, &mut |stretch| {
        story.add(stretch);
        if let (Some(_), Some(record)) = (trace, stretch.player.record()) {
            let mut record = json!(record);
            record["rounds"] = json!(stretch.rounds);
            lines.push(format!("{record}\n"));
        }
    })?;
    if let Some(path) = trace {
        write_whole(path, common.force, |file| {
            Ok(lines
                .iter()
                .try_for_each(|line| file.write_all(line.as_bytes()))?)
        })?;
    }
    let warnings = warnings(&loaded.plan, Some(&*experiment.worlds[0]));
    let document = document::run(&loaded, &run, simulator, &warnings);
    let words = |ink: Ink| answer::run(&loaded, experiment.worlds[0].means(), &run, &warnings, ink);
    if let Some(out) = out {
        let figures = story::figures(
            &story,
            &loaded,
            std::slice::from_ref(&run),
            &experiment.checkpoints,
        );
        let page = Page {
            title: loaded.name(),
            verb: "run",
            answer: &words(Ink::none()),
            figures: &figures,
            command: &html::command("run", &loaded, &["--out DIR".to_owned()]),
            loaded: &loaded,
            story: &story,
        };
        html::write(
            &out,
            &document,
            &page,
            ("runs.csv", &html::runs_csv(&[(0, 0, &run)])),
        )?;
    }
    let wrote = common
        .out
        .as_ref()
        .map(|path| format!("  report: {}\n", path.join("report.html").display()));
    print(&if common.json {
        format!("{document:#}\n")
    } else {
        wrapped(&words(ink_for_stdout())) + &wrote.unwrap_or_default()
    })?;
    Ok(true)
}
