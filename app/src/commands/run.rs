//! `debora run`: one simulated run, pair 0's first member.

use std::path::PathBuf;

use anyhow::Result;
use debora::lab::metrics::Run;
use debora::lab::replicate::{Contestant, Simulator};
use serde_json::json;

use crate::args::{Common, SpecArgs};
use crate::commands::{Loaded, print, warnings};
use crate::files::{OutDir, write_whole};
use crate::report::html::{self, Page};
use crate::report::story::Story;
use crate::report::words::{Ink, amount, counted, percent, table, whole, wrapped};

pub fn run(args: &SpecArgs, trace: Option<&PathBuf>, simulator: Simulator, common: &Common) -> Result<bool> {
    let loaded = Loaded::read(args)?;
    let experiment = loaded.experiment(simulator)?;
    let out = common.out.as_ref().map(|path| OutDir::for_report(path, common.force)).transpose()?;
    if let Some(path) = trace.filter(|path| path.exists() && !common.force) {
        anyhow::bail!("{} exists; choose another name, or --force to overwrite it", path.display());
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
            Ok(lines.iter().try_for_each(|line| file.write_all(line.as_bytes()))?)
        })?;
    }
    let warnings = warnings(&loaded.plan, Some(&*experiment.worlds[0]));
    let document = document(&loaded, &run, simulator, &warnings);
    let text = words(&loaded, experiment.worlds[0].means(), &run, &warnings, &Ink::for_stdout());
    if let Some(out) = out {
        let figures = story.figures(&loaded, std::slice::from_ref(&run), &experiment.checkpoints);
        let page = Page {
            title: loaded.name(),
            verb: "run",
            answer: &words(&loaded, experiment.worlds[0].means(), &run, &warnings, &Ink::none()),
            figures: &figures,
            command: &html::command("run", &loaded, &["--out DIR".to_owned()]),
            loaded: &loaded,
            recommendation: story.recommendation(&loaded),
            known: story.known(&loaded),
        };
        html::write(&out, &document, &page, ("runs.csv", &html::runs_csv(&[(0, 0, &run)])))?;
    }
    let wrote = common.out.as_ref().map(|path| format!("  report: {}\n", path.join("report.html").display()));
    print(&if common.json { format!("{document:#}\n") } else { wrapped(&text) + &wrote.unwrap_or_default() })?;
    Ok(true)
}

/// The run of the JSON contract. Regret in the reward's units; violation in shares of a cost's range, per cost in its units.
pub fn document(loaded: &Loaded, run: &Run, simulator: Simulator, warnings: &[String]) -> serde_json::Value {
    let problem = &loaded.spec.problem;
    let span = problem.quantity(0).range.span();
    let violations: serde_json::Map<String, serde_json::Value> = run
        .violations
        .iter()
        .enumerate()
        .map(|(cost, sum)| {
            (problem.quantity(cost + 1).name.clone(), json!(sum * problem.quantity(cost + 1).range.span()))
        })
        .collect();
    json!({
        "name": loaded.spec.name, "policy": problem.policy(), "horizon": problem.horizon(),
        "rounds": run.rounds, "epochs": run.epochs, "regret": run.regret.map(|regret| regret * span),
        "violation": run.violation, "violations": violations, "signed_violation": run.signed_violation,
        "unsafe_rounds": run.unsafe_rounds, "infeasible_epochs": run.infeasible_epochs, "reward_mean": run.reward_mean,
        "counts": run.counts, "final_strategy": run.final_strategy, "digest": run.digest, "simulator": simulator,
        "blind": loaded.plan.blind, "warnings": warnings, "values_version": debora::VALUES_VERSION,
    })
}

fn words(loaded: &Loaded, means: &[Vec<f64>], run: &Run, warnings: &[String], ink: &Ink) -> String {
    let problem = &loaded.spec.problem;
    let reward = problem.quantity(0);
    let mut text: String = warnings.iter().map(|warning| format!("{}\n\n", ink.alarm(warning))).collect();
    text += &format!(
        "{}: {} rounds in {}, average {} {}.\n",
        ink.strong(loaded.name()),
        whole(run.rounds),
        counted(run.epochs, "epoch", "epochs"),
        reward.name,
        amount(run.reward_mean)
    );
    text += &match run.regret {
        None => "No strategy is safe in this world, so there is no regret to speak of.\n".into(),
        Some(regret) => {
            let regret = regret * reward.range.span();
            format!("Regret {} in all, {} a round.\n", amount(regret), amount(regret / run.rounds as f64))
        }
    };
    for (cost, sum) in run.violations.iter().enumerate() {
        let quantity = problem.quantity(cost + 1);
        let excess = sum * quantity.range.span() / run.rounds as f64;
        let played = means[cost + 1].iter().zip(&run.counts).map(|(mean, &count)| mean * count as f64);
        let average = quantity.range.to_user(played.sum::<f64>() / run.rounds as f64);
        text += &format!(
            "{}: {} on average, threshold {}; rounds above it exceed it by {} per round of the run.\n",
            quantity.name,
            amount(average),
            amount(quantity.range.to_user(problem.thresholds()[cost])),
            amount(excess)
        );
    }
    if run.regret.is_some_and(|regret| regret < 0.0) {
        text += "Regret is negative: it earned more than any safe strategy can, by exceeding thresholds.\n";
    }
    if !run.violations.is_empty() {
        text += &format!("Rounds whose strategy was not safe: {}.\n", whole(run.unsafe_rounds));
    }
    if run.infeasible_epochs > 0 {
        let epochs = counted(run.infeasible_epochs, "epoch", "epochs");
        text +=
            &format!("{}\n", ink.alarm(&format!("In {epochs} the estimates left no strategy within the thresholds.")));
    }
    let actions = problem.actions().iter().zip(&run.counts).zip(&run.final_strategy);
    let row = |((name, count), x): ((&String, &u64), &f64)| vec![name.clone(), whole(*count), percent(*x)];
    let rows: Vec<Vec<String>> = actions.map(row).collect();
    text += &format!("\n{}", table(&["action", "rounds", "last strategy"], &rows));
    text += &ink.faint(&format!("  decisions {}\n", run.digest.as_deref().unwrap_or("")));
    text
}
