//! What replicate, compare and merge share: pairs measured here or read from shards, and one way to present them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};
use debora::lab::metrics::{Spread, UNSAFE_TOLERANCE};
use debora::lab::players::{Constants, Rival};
use debora::lab::replicate::{Contestant, Experiment, Pair, Simulator};
use debora::lab::shard::{Shard, share};
use debora::lab::summary::{Broken, Summary};
use debora::lab::world::Truth;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::Common;
use crate::commands::{CANCELLED, Loaded, MEASURING, print, warnings};
use crate::files::OutDir;
use crate::report::html::{self, Page};
use crate::report::story::{Story, middle};
use crate::report::words::{Ink, amount, counted, percent, table, whole, wrapped};
use crate::report::{identical_shares, plots};

/// The name of debora's own row.
pub const DEBORA: &str = "debora";

/// Everything a measurement is determined by: what a shard carries beside its pairs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    pub verb: String,
    pub text: String,
    pub file: String,
    pub overrides: Vec<(String, String)>,
    pub simulator: Simulator,
    pub pairs: u64,
    pub players: Vec<String>,
    /// The spec of the second run's world: its file and its text.
    pub other: Option<(String, String)>,
}

/// A job and what was measured of it.
#[derive(Serialize, Deserialize)]
pub struct Part {
    pub job: Job,
    pub warnings: Vec<String>,
    /// Whether the safe strategy's true margins are smaller than the stated ones.
    pub premise_false: bool,
    /// Of pair 0's first run; in the part that has it.
    pub story: Option<Story>,
    pub shard: Shard,
}

impl Job {
    /// Measures a share of the job: all of it without one.
    pub fn measure(&self, shard: Option<(u64, u64)>, common: &Common) -> Result<(Part, Vec<f64>)> {
        let loaded = self.loaded()?;
        let experiment = self.experiment(&loaded)?;
        let (number, of) = shard.unwrap_or((1, 1));
        let indices = share(self.pairs, number, of)?;
        let bar = progress_bar((indices.end - indices.start) * self.players.len() as u64, common);
        let (mut players, mut seconds) = (Vec::new(), Vec::new());
        MEASURING.store(true, Ordering::Relaxed);
        for (place, name) in (0..).zip(&self.players) {
            let (begun, before) = (Instant::now(), place * (indices.end - indices.start));
            let progress = |done: u64| bar.set_position(before + done);
            let pairs = experiment.pairs(contestant(name)?, indices.clone(), &progress, &CANCELLED)?;
            seconds.push(begun.elapsed().as_secs_f64());
            players.push((name.clone(), pairs));
        }
        bar.finish_and_clear();
        MEASURING.store(false, Ordering::Relaxed);
        let mut story = Story::new();
        if indices.start == 0 {
            experiment.run_observed(Contestant::Debora, 0, 0, &mut |stretch| story.add(stretch))?;
        }
        let warnings = warnings(&loaded.plan, Some(&*experiment.worlds[0]));
        let story = (indices.start == 0).then_some(story);
        let truth = Truth::of(&loaded.spec.problem, &*experiment.worlds[0]);
        let premise_false = truth.margins_missing.iter().any(|&missing| missing > UNSAFE_TOLERANCE);
        let shard = Shard::new(self.fingerprint(&loaded)?, self.pairs, players);
        Ok((Part { job: self.clone(), warnings, premise_false, story, shard }, seconds))
    }

    pub fn loaded(&self) -> Result<Loaded> {
        Loaded::from_text(self.text.clone(), self.file.clone(), self.overrides.clone())
    }

    fn experiment(&self, loaded: &Loaded) -> Result<Experiment> {
        let mut experiment = loaded.experiment(self.simulator)?;
        if let Some((file, text)) = &self.other {
            let other = Loaded::from_text(text.clone(), file.clone(), Vec::new())?;
            experiment.worlds[1] = other.world().with_context(|| format!("the other world, {file}"))?.world;
            let same =
                |world: usize| (experiment.worlds[world].means().len(), experiment.worlds[world].means()[0].len());
            anyhow::ensure!(
                same(0) == same(1),
                "the world of {file} has other numbers of actions or costs than that of {}",
                self.file
            );
        }
        Ok(experiment)
    }

    /// What shards must agree on.
    fn fingerprint(&self, loaded: &Loaded) -> Result<String> {
        let other = match &self.other {
            Some((file, text)) => Loaded::from_text(text.clone(), file.clone(), Vec::new())?.world()?.fingerprint,
            None => String::new(),
        };
        Ok(format!("{} {} {:?} {other}", self.verb, loaded.world()?.fingerprint, self.simulator))
    }
}

fn contestant(name: &str) -> Result<Contestant> {
    if name == DEBORA {
        return Ok(Contestant::Debora);
    }
    Ok(Contestant::Rival(Rival::named(name).with_context(|| format!("no player {name:?}"))?))
}

fn progress_bar(total: u64, common: &Common) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} pairs, {per_sec}, {eta} left");
    // On anything but a terminal the bar hides itself.
    ProgressBar::new(total).with_style(style.expect("a valid template"))
}

/// Writes a shard's file.
pub fn write_shard(part: &Part, (number, of): (u64, u64), common: &Common) -> Result<bool> {
    let path = common.out.as_ref().context("--shard needs --out")?;
    let out = OutDir::for_shards(path, common.force)?;
    let name = format!("shard-{number}-of-{of}.json");
    out.write(&name, format!("{}\n", serde_json::to_string(part)?).as_bytes())?;
    print(&format!("wrote {}; debora merge puts all {of} together\n", out.path().join(name).display()))?;
    Ok(true)
}

/// Says, shows and writes what a whole measurement found. False if a promise was measured as broken.
pub fn present(part: &Part, seconds: &[f64], common: &Common) -> Result<bool> {
    let loaded = part.job.loaded()?;
    let summaries: Vec<(String, Summary)> =
        part.shard.players.iter().map(|(name, pairs)| (name.clone(), Summary::of(&loaded.plan, pairs))).collect();
    let mut broken = summaries[0].1.broken(&loaded.plan);
    if part.premise_false {
        // What rests on the safe strategy's margins is not promised then.
        broken.retain(|broken| broken.promise == "identical decisions");
    }
    let words = |ink: &Ink| match part.job.verb.as_str() {
        "compare" => compare_words(&loaded, part, &summaries, &broken, ink),
        _ => replicate_words(&loaded, part, &summaries[0].1, &broken, ink),
    };
    let document = document(&loaded, part, &summaries, &broken);
    if let Some(path) = &common.out {
        let out = OutDir::for_report(path, common.force)?;
        let figures = figures(&loaded, part, &summaries);
        let story = part.story.as_ref().context("the shards hold no first run")?;
        let page = Page {
            title: loaded.name(),
            verb: &part.job.verb,
            answer: &words(&Ink::none()),
            figures: &figures,
            command: &html::command(&part.job.verb, &loaded, &part.job.flags()),
            loaded: &loaded,
            recommendation: story.recommendation(&loaded),
            known: story.known(&loaded),
        };
        html::write(&out, &document, &page, ("pairs.csv", &html::pairs_csv(&part.shard.players)))?;
    }
    if common.json {
        print(&format!("{:#}\n", with_seconds(document, seconds)))?;
    } else {
        let time = seconds.iter().sum::<f64>();
        let ink = Ink::for_stdout();
        let took = if seconds.is_empty() { String::new() } else { ink.faint(&format!("\n  {time:.1} seconds\n")) };
        let wrote = common.out.as_ref().map(|path| format!("  report: {}\n", path.join("report.html").display()));
        print(&format!("{}{took}{}", wrapped(&words(&ink)), wrote.unwrap_or_default()))?;
    }
    Ok(broken.is_empty())
}

impl Job {
    /// The flags that, with the spec, give this job again.
    fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--pairs {}", self.pairs)];
        if self.simulator == Simulator::Rounds {
            flags.push("--simulator rounds".into());
        }
        if self.verb == "compare" {
            flags.push(format!("--players {}", self.players[1..].join(",")));
        }
        flags.extend(self.other.as_ref().map(|(file, _)| format!("--other-world {file}")));
        flags.push("--out DIR".into());
        flags
    }
}

/// Timings are for the terminal and --json only, so that files are the same however they were made.
fn with_seconds(mut document: serde_json::Value, seconds: &[f64]) -> serde_json::Value {
    document["seconds"] = if seconds.is_empty() { json!(null) } else { json!(seconds.iter().sum::<f64>()) };
    if let Some(rows) = document.get_mut("rows").and_then(|rows| rows.as_array_mut()) {
        for (row, seconds) in rows.iter_mut().zip(seconds.iter().map(Some).chain(std::iter::repeat(None))) {
            row["seconds"] = json!(seconds);
        }
    }
    document
}

/// The contract's document: replicate's fields, or compare's rows.
fn document(loaded: &Loaded, part: &Part, summaries: &[(String, Summary)], broken: &[Broken]) -> serde_json::Value {
    let span = loaded.spec.problem.quantity(0).range.span();
    let in_units = |summary: &Summary| {
        let mut value = json!(summary);
        if let Some(regret) = value["regret"].as_object_mut() {
            let scaled = |number: &serde_json::Value| number.as_f64().map(|number| number * span);
            regret.iter_mut().for_each(|(_, number)| *number = json!(scaled(number)));
        }
        value
    };
    let mut document = if part.job.verb == "compare" {
        let row = |(name, summary): &(String, Summary)| {
            let mut row = in_units(summary);
            let rival = Rival::named(name);
            row["player"] = json!(name);
            row["source"] =
                json!(rival.map_or("this project, after Bollini et al., Replicable Constrained Bandits", |rival| {
                    rival.source
                }));
            row["constants"] = json!(rival.map_or(Constants::Derived, |rival| rival.constants));
            row
        };
        json!({ "rows": summaries.iter().map(row).collect::<Vec<_>>() })
    } else {
        in_units(&summaries[0].1)
    };
    document["name"] = json!(loaded.spec.name);
    document["blind"] = json!(loaded.plan.blind);
    document["warnings"] = json!(part.warnings);
    document["broken"] = json!(broken);
    document["values_version"] = json!(part.shard.values_version);
    document
}

fn broken_words(broken: &[Broken], ink: &Ink) -> String {
    let line = |broken: &Broken| {
        let (promised, limit) = (percent(broken.promised), percent(broken.limit));
        let sentence = if broken.promise == "identical decisions" {
            format!(
                "BROKEN: identical decisions are promised in {promised} of pairs or more, and with 99.9 % confidence are at most {limit}."
            )
        } else {
            format!(
                "BROKEN: \"{}\" may fail in {promised} of runs at most, and with 99.9 % confidence fails in {limit} or more.",
                broken.promise
            )
        };
        format!("{}\n", ink.alarm(&sentence))
    };
    broken.iter().map(line).collect()
}

fn replicate_words(loaded: &Loaded, part: &Part, summary: &Summary, broken: &[Broken], ink: &Ink) -> String {
    let problem = &loaded.spec.problem;
    let [low, high] = summary.interval.map(|limit| percent(limit).trim_end_matches(" %").to_owned());
    let mut text: String = part.warnings.iter().map(|warning| format!("{}\n\n", ink.alarm(warning))).collect();
    text += &broken_words(broken, ink);
    let answer = format!(
        "identical in {} of {}: {}, 95 % interval {low} to {high}; promised {}",
        whole(summary.identical),
        counted(summary.pairs, "pair", "pairs"),
        percent(summary.identical_rate),
        percent(summary.promised)
    );
    text += &format!("{}: {}\n", loaded.name(), ink.strong(&answer));
    if let Some((epoch, pairs)) = summary.first_split.iter().max_by_key(|(_, pairs)| **pairs) {
        let parted = counted(summary.pairs - summary.identical, "pair", "pairs");
        text += &format!("Of the {parted} that parted, {} did so in epoch {epoch}.\n", whole(*pairs));
    }
    text += &format!("\n{}", per_round(loaded, &part.shard.players[0].1, summary));
    if problem.policy() == debora::Policy::Hard {
        let runs = counted(summary.runs, "run", "runs");
        text += &format!(
            "\nRuns with an unsafe round: {} of {runs}; promised at most {}.\n",
            whole(summary.unsafe_runs),
            percent(problem.delta())
        );
    }
    text
}

/// What a round cost on average, run by run, in the user's units: regret, and each cost's excess over its threshold.
fn per_round(loaded: &Loaded, pairs: &[Pair], summary: &Summary) -> String {
    let problem = &loaded.spec.problem;
    let rounds = problem.horizon() as f64;
    let row = |name: String, spread: &Spread, bound: Option<f64>, scale: f64| {
        let numbers = [spread.mean, spread.p05, spread.median, spread.p95].map(|number| amount(number * scale));
        let bound = bound.map_or("none".into(), |bound| amount(bound * scale));
        [vec![name], numbers.to_vec(), vec![bound]].concat()
    };
    let mut rows = Vec::new();
    if let Some(regret) = &summary.regret {
        let reward = problem.quantity(0);
        rows.push(row(
            format!("regret in {}", reward.name),
            &regret.spread,
            regret.bound,
            reward.range.span() / rounds,
        ));
    }
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        let quantity = problem.quantity(cost + 1);
        let excess = Spread::of(pairs.iter().flat_map(|pair| &pair.runs).map(|run| run.violations[cost]));
        let name = format!("{}, excess over {}", quantity.name, amount(quantity.range.to_user(*threshold)));
        rows.extend(
            excess.map(|spread| row(name, &spread, loaded.plan.violation_bound, quantity.range.span() / rounds)),
        );
    }
    table(&["per round, over runs", "mean", "5 %", "median", "95 %", "bound"], &rows)
}

fn compare_words(
    loaded: &Loaded,
    part: &Part,
    summaries: &[(String, Summary)],
    broken: &[Broken],
    ink: &Ink,
) -> String {
    let (warnings, players) = (&part.warnings, &part.shard.players);
    let problem = &loaded.spec.problem;
    let span = problem.quantity(0).range.span();
    let mut text: String = warnings.iter().map(|warning| format!("{}\n\n", ink.alarm(warning))).collect();
    text += &broken_words(broken, ink);
    let regret = |summary: &Summary| summary.regret.as_ref().map_or(f64::INFINITY, |regret| regret.spread.mean * span);
    // Under hard limits only who kept every round safe is in the race.
    let fair = |summary: &Summary| problem.policy() != debora::Policy::Hard || summary.unsafe_runs == 0;
    let (best, least) = summaries
        .iter()
        .filter(|(name, summary)| name == DEBORA || fair(summary))
        .map(|(name, summary)| (name, regret(summary)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("a player");
    let own = &summaries[0].1;
    text += &format!(
        "{}: {}\n",
        loaded.name(),
        ink.strong(&format!(
            "debora is identical in {} of pairs, with a mean regret of {}",
            percent(own.identical_rate),
            amount(regret(own))
        ))
    );
    if best != DEBORA {
        text += &format!("The least regret is that of {best}: {}.\n", amount(least));
    }
    // Regret in all, as players differ by orders of magnitude; each cost's mean excess a round, in its own units.
    let costs = 0..problem.thresholds().len();
    let excess = |pairs: &[Pair], cost: usize| {
        let runs = pairs.iter().flat_map(|pair| &pair.runs);
        let scale = problem.quantity(cost + 1).range.span() / problem.horizon() as f64;
        Spread::of(runs.map(|run| run.violations[cost] * scale)).map_or(String::new(), |spread| amount(spread.mean))
    };
    let row = |((name, summary), (_, pairs)): (&(String, Summary), &(String, Vec<Pair>))| {
        let mut row = vec![name.clone(), percent(summary.identical_rate), amount(regret(summary))];
        row.extend(costs.clone().map(|cost| excess(pairs, cost)));
        if !costs.is_empty() {
            row.push(percent(summary.unsafe_runs as f64 / summary.runs as f64));
        }
        row.push(amount(summary.epochs_mean));
        row
    };
    let rows: Vec<Vec<String>> = summaries.iter().zip(players).map(row).collect();
    let threshold = |cost: usize| amount(problem.quantity(cost + 1).range.to_user(problem.thresholds()[cost]));
    let above = costs.clone().map(|cost| format!("{}>{}", problem.quantity(cost + 1).name, threshold(cost)));
    let mut heading = vec!["player".to_owned(), "identical".into(), "regret".into()];
    heading.extend(above);
    heading.extend(["unsafe", "epochs"].into_iter().skip(usize::from(costs.is_empty())).map(str::to_owned));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    text + &format!("\n{}", table(&heading, &rows))
}

fn figures(loaded: &Loaded, part: &Part, summaries: &[(String, Summary)]) -> Vec<plots::Figure> {
    let checkpoints = debora::lab::metrics::checkpoints(loaded.spec.problem.horizon());
    let runs = |pairs: &[Pair]| pairs.iter().flat_map(|pair| pair.runs.clone()).collect::<Vec<_>>();
    let own = runs(&part.shard.players[0].1);
    let mut figures = Vec::new();
    if part.job.verb == "compare" {
        let span = loaded.spec.problem.quantity(0).range.span();
        let all: Vec<_> = part.shard.players.iter().map(|(name, pairs)| (name, runs(pairs))).collect();
        let series = |curve: &dyn Fn(&debora::lab::metrics::Run) -> &Vec<f64>, scale: f64| -> Vec<plots::Series> {
            let one = |(name, runs): &(&String, Vec<debora::lab::metrics::Run>)| {
                let curves: Vec<&Vec<f64>> = runs.iter().map(curve).filter(|curve| !curve.is_empty()).collect();
                (!curves.is_empty()).then(|| middle(name, &curves, &checkpoints, scale))
            };
            all.iter().filter_map(one).map(|series| plots::Series { band: None, ..series }).collect()
        };
        let label = format!("regret ({})", loaded.spec.problem.quantity(0).name);
        figures.extend(plots::against_rounds(
            "regret",
            "Regret of each player: median over runs.".into(),
            &label,
            &series(&|run| &run.regret_curve, span),
        ));
        let caption = "Violation of each player, in shares of a cost's range: median over runs.".into();
        figures.extend(plots::against_rounds(
            "violation",
            caption,
            "violation",
            &series(&|run| &run.violation_curve, 1.0),
        ));
    } else if let Some(story) = &part.story {
        figures.push(plots::identical_by_epoch(&identical_shares(&part.shard.players[0].1), summaries[0].1.promised));
        figures.extend(story.figures(loaded, &own, &checkpoints));
    }
    figures
}
