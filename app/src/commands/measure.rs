//! What replicate, compare and merge share: pairs measured here or read from shards, and one way to present them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};
use debora::job::words::{Ink, wrapped};
use debora::job::{Findings, Host, Job, Part, answer, document};
use debora::lab::replicate::Pair;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Common;
use crate::commands::{CANCELLED, MEASURING, open, print};
use crate::files::OutDir;
use crate::report::html::{self, Page};
use crate::report::story::{self, middle};
use crate::report::words::ink_for_stdout;
use crate::report::{identical_shares, plots};

/// Measures a share of a job, all of it without one, and shows how far it is.
pub fn measure(job: &Job, shard: Option<(u64, u64)>, common: &Common) -> Result<(Part, Vec<f64>)> {
    let total = job.pairs_in(shard)?;
    let bar = progress_bar(total, common);
    let begun = Instant::now();
    let progress = |done: u64| {
        bar.set_position(done);
        if done == total {
            bar.finish_and_clear();
            MEASURING.store(false, Ordering::Relaxed);
        }
    };
    let clock = || begun.elapsed().as_secs_f64();
    MEASURING.store(true, Ordering::Relaxed);
    Ok(job.measure(
        shard,
        &Host {
            open: &open,
            clock: &clock,
            progress: &progress,
            cancel: &CANCELLED,
        },
    )?)
}

fn progress_bar(total: u64, common: &Common) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{bar:30} {human_pos} of {human_len} pairs, {per_sec}, {eta} left",
    );
    // On anything but a terminal the bar hides itself.
    ProgressBar::new(total).with_style(style.expect("a valid template"))
}

/// Writes a shard's file.
pub fn write_shard(part: &Part, (number, of): (u64, u64), common: &Common) -> Result<bool> {
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
pub fn present(part: &Part, seconds: &[f64], common: &Common) -> Result<bool> {
    let findings = part.findings()?;
    let loaded = &findings.loaded;
    let document = document::measured(part, &findings);
    if let Some(path) = &common.out {
        let out = OutDir::for_report(path, common.force)?;
        let figures = figures(part, &findings);
        let story = part
            .story
            .as_ref()
            .context("the shards hold no first run")?;
        let page = Page {
            title: loaded.name(),
            verb: &part.job.verb,
            answer: &answer::measured(part, &findings, Ink::none()),
            figures: &figures,
            command: &html::command(&part.job.verb, loaded, &part.job.flags()),
            loaded,
            story,
        };
        html::write(
            &out,
            &document,
            &page,
            ("pairs.csv", &html::pairs_csv(&part.shard.players)),
        )?;
    }
    if common.json {
        print(&format!(
            "{:#}\n",
            document::with_seconds(document, seconds)
        ))?;
    } else {
        let time = seconds.iter().sum::<f64>();
        let ink = ink_for_stdout();
        let took = if seconds.is_empty() {
            String::new()
        } else {
            ink.faint(&format!("\n  {time:.1} seconds\n"))
        };
        let wrote = common
            .out
            .as_ref()
            .map(|path| format!("  report: {}\n", path.join("report.html").display()));
        print(&format!(
            "{}{took}{}",
            wrapped(&answer::measured(part, &findings, ink)),
            wrote.unwrap_or_default()
        ))?;
    }
    Ok(findings.broken.is_empty())
}

fn figures(part: &Part, findings: &Findings) -> Vec<plots::Figure> {
    let Findings {
        loaded, summaries, ..
    } = findings;
    let checkpoints = debora::lab::metrics::checkpoints(loaded.spec.problem.horizon());
    let runs = |pairs: &[Pair]| {
        pairs
            .iter()
            .flat_map(|pair| pair.runs.clone())
            .collect::<Vec<_>>()
    };
    let own = runs(&part.shard.players[0].1);
    let mut figures = Vec::new();
    if part.job.verb == "compare" {
        let span = loaded.spec.problem.quantity(0).range.span();
        let all: Vec<_> = part
            .shard
            .players
            .iter()
            .map(|(name, pairs)| (name, runs(pairs)))
            .collect();
        let series = |curve: &dyn Fn(&debora::lab::metrics::Run) -> &Vec<f64>,
                      scale: f64|
         -> Vec<plots::Series> {
            let one = |(name, runs): &(&String, Vec<debora::lab::metrics::Run>)| {
                let curves: Vec<&Vec<f64>> = runs
                    .iter()
                    .map(curve)
                    .filter(|curve| !curve.is_empty())
                    .collect();
                (!curves.is_empty()).then(|| middle(name, &curves, &checkpoints, scale))
            };
            all.iter()
                .filter_map(one)
                .map(|series| plots::Series {
                    band: None,
                    ..series
                })
                .collect()
        };
        let label = format!("regret ({})", loaded.spec.problem.quantity(0).name);
        figures.extend(plots::against_rounds(
            "regret",
            "Regret of each player: median over runs.".into(),
            &label,
            &series(&|run| &run.regret_curve, span),
        ));
        let caption =
            "Violation of each player, in shares of a cost's range: median over runs.".into();
        figures.extend(plots::against_rounds(
            "violation",
            caption,
            "violation",
            &series(&|run| &run.violation_curve, 1.0),
        ));
    } else if let Some(story) = &part.story {
        figures.push(plots::identical_by_epoch(
            &identical_shares(&part.shard.players[0].1),
            summaries[0].1.promised,
        ));
        figures.extend(story::figures(story, loaded, &own, &checkpoints));
    }
    figures
}
