//! The documents of the JSON contract.

use serde_json::{Value, json};

use crate::job::{Findings, Loaded, Part};
use crate::lab::metrics::Run;
use crate::lab::players::{Constants, Rival};
use crate::lab::replicate::Simulator;
use crate::lab::summary::Summary;
use crate::{Plan, VALUES_VERSION};

/// The plan of the JSON contract. Bounds are in the reward's units and in shares of a cost's range; widths on the unit scale.
///
/// `gap` is a difference in reward with the horizon that shows it, if one does.
pub fn plan(plan: &Plan, gap: Option<(f64, Option<u64>)>) -> Value {
    let mut document = json!(plan);
    let span = plan.problem.quantity(0).range.span();
    document["regret_bound"] = json!(plan.regret_bound * span);
    document["detectable_gap"] = json!(plan.detectable_gap.map(|gap| gap * span));
    if let Some((gap, horizon)) = gap {
        document["gap"] = json!(gap);
        document["horizon_for_gap"] = json!(horizon);
    }
    document["values_version"] = json!(VALUES_VERSION);
    document
}

/// The run of the JSON contract. Regret in the reward's units; violation in shares of a cost's range, per cost in its units.
pub fn run(loaded: &Loaded, run: &Run, simulator: Simulator, warnings: &[String]) -> Value {
    let problem = &loaded.spec.problem;
    let span = problem.quantity(0).range.span();
    let violations: serde_json::Map<String, Value> = run
        .violations
        .iter()
        .enumerate()
        .map(|(cost, sum)| {
            (
                problem.quantity(cost + 1).name.clone(),
                json!(sum * problem.quantity(cost + 1).range.span()),
            )
        })
        .collect();
    json!({
        "name": loaded.spec.name, "policy": problem.policy(), "horizon": problem.horizon(),
        "rounds": run.rounds, "epochs": run.epochs, "regret": run.regret.map(|regret| regret * span),
        "violation": run.violation, "violations": violations, "signed_violation": run.signed_violation,
        "unsafe_rounds": run.unsafe_rounds, "infeasible_epochs": run.infeasible_epochs, "reward_mean": run.reward_mean,
        "counts": run.counts, "final_strategy": run.final_strategy, "digest": run.digest, "simulator": simulator,
        "blind": loaded.plan.blind, "warnings": warnings, "values_version": VALUES_VERSION,
    })
}

/// Adds the seconds each player took. Files leave them out, so that they are the same however they were made.
pub fn with_seconds(mut document: Value, seconds: &[f64]) -> Value {
    document["seconds"] = if seconds.is_empty() {
        json!(null)
    } else {
        json!(seconds.iter().sum::<f64>())
    };
    if let Some(rows) = document
        .get_mut("rows")
        .and_then(|rows| rows.as_array_mut())
    {
        for (row, seconds) in rows
            .iter_mut()
            .zip(seconds.iter().map(Some).chain(std::iter::repeat(None)))
        {
            row["seconds"] = json!(seconds);
        }
    }
    document
}

/// A whole measurement of the JSON contract: replicate's fields, or compare's rows.
pub fn measured(part: &Part, findings: &Findings) -> Value {
    let Findings {
        loaded,
        summaries,
        broken,
    } = findings;
    let span = loaded.spec.problem.quantity(0).range.span();
    let in_units = |summary: &Summary| {
        let mut value = json!(summary);
        if let Some(regret) = value["regret"].as_object_mut() {
            let scaled = |number: &Value| number.as_f64().map(|number| number * span);
            regret
                .iter_mut()
                .for_each(|(_, number)| *number = json!(scaled(number)));
        }
        value
    };
    let mut document = if part.job.verb == "compare" {
        let row = |(name, summary): &(String, Summary)| {
            let mut row = in_units(summary);
            let rival = Rival::named(name);
            row["player"] = json!(name);
            row["source"] = json!(rival.map_or(
                "this project, after Bollini et al., Replicable Constrained Bandits",
                |rival| { rival.source }
            ));
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
