//! The documents of the JSON contract: fields may be added, not renamed.

use serde_json::{Map, Value, json};

use crate::lab::metrics::Run;
use crate::lab::players::{Constants, Rival};
use crate::lab::replicate::Simulator;
use crate::lab::summary::Summary;
use crate::measure::{DEBORA, Findings, MeasuredVerb, Part, SpecText, WorldGap};
use crate::{Plan, Problem, VALUES_VERSION};

/// The plan of the JSON contract. Bounds are in the reward's units and in shares of a cost's range; widths on the unit scale.
///
/// `gap` is a difference in reward with the horizon that shows it, if one does.
pub fn plan(plan: &Plan, gap: Option<(f64, Option<u64>)>) -> Value {
    let mut document = json!(plan);
    let span = plan.problem.quantity(0).range.span();
    // A plan counts on the unit scale; its readers count in what they are paid.
    document["regret_bound"] = json!(plan.regret_bound * span);
    document["detectable"] = json!(plan.detectable.map(|found| found * span));
    if let Some((gap, horizon)) = gap {
        document["gap"] = json!(gap);
        document["horizon_for_gap"] = json!(horizon);
    }
    document["values_version"] = json!(VALUES_VERSION);
    document
}

/// The run of the JSON contract. Regret in the reward's units; violation in shares of a cost's range, per cost in its units.
pub fn run(spec: &SpecText, run: &Run, simulator: Simulator, warnings: &[String]) -> Value {
    let problem = spec.problem();
    let span = problem.quantity(0).range.span();
    // Costs in different units have no common one, so the largest violation stays a share of a range.
    json!({
        "name": spec.spec.name, "policy": problem.policy(), "horizon": problem.horizon(),
        "rounds": run.rounds, "epochs": run.epochs, "regret": run.regret.map(|regret| regret * span),
        "violation": run.violation, "violations": violations(problem, run), "signed_violation": run.signed_violation,
        "unsafe_rounds": run.unsafe_rounds, "infeasible_epochs": run.infeasible_epochs,
        "decided_by": run.decided_by, "decided_at": run.decided_at,
        "lost_at_most": run.lost_at_most.map(|most| most * span), "reward_mean": run.reward_mean,
        "counts": run.counts, "final_strategy": run.final_strategy, "digest": run.digest, "simulator": simulator,
        "blind": spec.plan.blind, "warnings": warnings, "values_version": VALUES_VERSION,
    })
}

/// Each cost's total excess over its threshold, by name, in its units.
fn violations(problem: &Problem, run: &Run) -> Map<String, Value> {
    run.violations
        .iter()
        .enumerate()
        .map(|(cost, sum)| {
            let quantity = problem.quantity(problem.limited()[cost]);
            (quantity.name.clone(), json!(sum * quantity.range.span()))
        })
        .collect()
}

/// Adds what the horizon sees of the world.
pub fn with_gaps(mut document: Value, gaps: &[WorldGap]) -> Value {
    document["gaps"] = json!(gaps);
    document
}

/// Adds which run of which pair a run was: from 0, both.
pub fn of_member(mut document: Value, (pair, member): (u64, usize)) -> Value {
    document["pair"] = json!(pair);
    document["member"] = json!(member);
    document
}

/// Adds the seconds each player took. Files leave them out, so that they are the same however they were made.
pub fn with_seconds(mut document: Value, seconds: &[f64]) -> Value {
    // Merged parts were measured elsewhere, at other times: the field is there, but nobody knows its value.
    document["seconds"] = if seconds.is_empty() {
        json!(null)
    } else {
        json!(seconds.iter().sum::<f64>())
    };
    let rows = document.get_mut("rows").and_then(Value::as_array_mut);
    for (place, row) in rows.into_iter().flatten().enumerate() {
        row["seconds"] = json!(seconds.get(place));
    }
    document
}

/// A whole measurement of the JSON contract: replicate's fields, or compare's rows.
pub fn measured(part: &Part, findings: &Findings) -> Value {
    let spec = &part.measurement.spec;
    let span = spec.problem().quantity(0).range.span();
    let mut document = match part.measurement.verb {
        MeasuredVerb::Replicate => {
            let (name, summary) = &findings.summaries[0];
            let mut document = in_units(summary, span);
            document["player"] = json!(name);
            document
        }
        MeasuredVerb::Compare => {
            let rows = findings.summaries.iter();
            let rows: Vec<Value> = rows
                .map(|(name, summary)| row(name, summary, span))
                .collect();
            json!({ "rows": rows })
        }
    };
    document["name"] = json!(spec.spec.name);
    document["blind"] = json!(spec.plan.blind);
    document["warnings"] = json!(part.warnings);
    document["broken"] = json!(findings.broken);
    document["gaps"] = json!(part.gaps);
    // The version that measured, which need not be the one that merges.
    document["values_version"] = json!(part.pairs.values_version);
    document
}

/// A summary with its regret in the reward's units.
fn in_units(summary: &Summary, span: f64) -> Value {
    let mut value = json!(summary);
    let regret = value["regret"].as_object_mut();
    for (_, number) in regret.into_iter().flatten() {
        *number = json!(number.as_f64().map(|number| number * span));
    }
    value
}

/// A player of a comparison, with where it comes from.
fn row(name: &str, summary: &Summary, span: f64) -> Value {
    let mut row = in_units(summary, span);
    let rival = Rival::named(name);
    let source = match rival {
        Some(rival) => rival.source,
        None if name == DEBORA => {
            "this project, after Bollini et al., Replicable Constrained Bandits"
        }
        // Whoever measured it knows; the library has only its name.
        None => "own player",
    };
    let constants = rival.map(|rival| rival.constants);
    row["player"] = json!(name);
    row["source"] = json!(source);
    row["constants"] = json!(constants.or((name == DEBORA).then_some(Constants::Derived)));
    row
}
