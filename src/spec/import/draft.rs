//! What was found, and the spec drafted from it: valid as it is, with a mark where a person must decide.

use std::fmt::Write as _;

use super::pleasant::outward;
use super::{
    ImportColumns, Imported, ImportedAction, ImportedMean, ImportedQuantity, ROWS_FILE, Tallies,
    of_file, written,
};
use crate::lab::observed::{MISS, interval_at_any_time};
use crate::spec::error::SpecError;
use crate::spec::write::quoted;
use crate::{Plan, Problem};

/// The template's: what a first plan is made with.
const RHO: f64 = 0.1;

/// What was found in a test, and a spec for it.
pub(super) fn drafted(
    file: &str,
    columns: &ImportColumns,
    mut tallies: Tallies,
) -> Result<Imported, SpecError> {
    let empty = |tally: &super::ActionTally| tally.rows == 0;
    let empty_actions = tallies.actions.iter().filter(|(_, tally)| empty(tally));
    let empty_actions: Vec<String> = empty_actions.map(|(name, _)| name.clone()).collect();
    tallies.actions.retain(|_, tally| !empty(tally));
    if tallies.actions.len() < 2 {
        return Err(too_few(file, columns, &tallies));
    }
    let quantities = quantities(file, columns, &tallies)?;
    let rows = tallies.actions.values().map(|tally| tally.rows).sum();
    // What is left to refuse are names: two alike, or an empty one.
    let problem = problem(&tallies, &quantities, rows)
        .map_err(|error| of_file(file, format!("a spec cannot be made of it: {error}")))?;
    let horizon = enough_rounds(&problem);
    let mut found = Imported {
        file: file.to_owned(),
        rows,
        actions: actions(&tallies, &problem),
        left_out: tallies.left_out,
        empty_actions,
        quantities,
        rows_are_blind: horizon != rows,
        horizon,
        spec: String::new(),
    };
    found.spec = spec_text(&found);
    Ok(found)
}

fn too_few(file: &str, columns: &ImportColumns, tallies: &Tallies) -> SpecError {
    let have = match tallies.actions.keys().next() {
        Some(action) => format!("{action:?} alone"),
        None => "no action".to_owned(),
    };
    let message = format!(
        "column {:?} has {have} in rows without a missing value; an experiment needs at least two actions",
        columns.action
    );
    of_file(file, message)
}

fn quantities(
    file: &str,
    columns: &ImportColumns,
    tallies: &Tallies,
) -> Result<Vec<ImportedQuantity>, SpecError> {
    let mut quantities = Vec::new();
    for (number, (wanted, &seen)) in columns.quantities.iter().zip(&tallies.seen).enumerate() {
        let range = outward(seen).ok_or_else(|| {
            let message = format!(
                "column {:?} goes from {:?} to {:?}, too far for a range; give it in larger units",
                wanted.column, seen[0], seen[1]
            );
            of_file(file, message)
        })?;
        quantities.push(ImportedQuantity {
            name: wanted.name.clone(),
            column: wanted.column.clone(),
            seen,
            range,
            // The test knows what was spent, not what may be: a limit that excludes nothing, until someone sets it.
            threshold: (number > 0).then_some(range[1]),
        });
    }
    Ok(quantities)
}

fn problem(
    tallies: &Tallies,
    quantities: &[ImportedQuantity],
    rounds: u64,
) -> Result<Problem, crate::Error> {
    let actions: Vec<&str> = tallies.actions.keys().map(String::as_str).collect();
    let draft = match quantities.len() {
        1 => Problem::free(actions, rounds, RHO),
        _ => Problem::soft(actions, rounds, RHO),
    };
    let reward = &quantities[0];
    let draft = draft.reward(reward.name.as_str(), reward.range);
    let costs = quantities[1..].iter();
    costs
        .fold(draft, |draft, cost| {
            let threshold = cost.threshold.expect("a cost");
            draft.cost(cost.name.as_str(), cost.range, threshold)
        })
        .build()
}

/// As many rounds as the test has rows, or if they would be blind, as many as are not.
fn enough_rounds(problem: &Problem) -> u64 {
    let rows = problem.horizon();
    let sees = |horizon: &u64| {
        let longer = problem.with_horizon(*horizon);
        longer.is_ok_and(|longer| !Plan::of(longer).blind)
    };
    if sees(&rows) {
        return rows;
    }
    // With very many actions no horizon is enough: the plan then says what would help.
    let Some(least) = Plan::of(problem.clone()).horizon_needed else {
        return rows;
    };
    // Of two digits, as it is a proposal.
    let unit = 10u64.pow(least.ilog10().saturating_sub(1));
    let round = least.div_ceil(unit) * unit;
    Some(round).filter(sees).unwrap_or(least)
}

fn actions(tallies: &Tallies, problem: &Problem) -> Vec<ImportedAction> {
    let mean = |rows: u64, quantity: usize, mean: f64| {
        let range = problem.quantity(quantity).range;
        let sum = range.to_unit(mean) * rows as f64;
        ImportedMean {
            mean,
            interval: interval_at_any_time(rows, sum, MISS).map(|end| range.to_user(end)),
        }
    };
    let action = |(name, tally): (&String, &super::ActionTally)| ImportedAction {
        name: name.clone(),
        rows: tally.rows,
        left_out: tally.left_out,
        means: (0..)
            .zip(&tally.means)
            .map(|(quantity, &value)| mean(tally.rows, quantity, value))
            .collect(),
    };
    tallies.actions.iter().map(action).collect()
}

fn spec_text(found: &Imported) -> String {
    let policy = match found.quantities.len() {
        1 => ("free", "no limits"),
        _ => ("soft", "each cost at or below its threshold, on average"),
    };
    let names: Vec<String> = found.actions.iter().map(|one| quoted(&one.name)).collect();
    let mut text = String::new();
    let mut line = |content: String, comment: &str| {
        let gap = if comment.is_empty() { "" } else { "# " };
        // Strings take all.
        let _ = writeln!(
            text,
            "{}",
            format!("{content:<30} {gap}{comment}").trim_end()
        );
    };
    // Quoted, as a file's name may hold what ends a comment.
    let from = quoted(&found.file);
    line(
        format!(
            "# {} rows of {from}, to plan from. CHECK: someone who knows the test must decide these.",
            found.rows
        ),
        "",
    );
    line(String::new(), "");
    line(format!("policy  = \"{}\"", policy.0), policy.1);
    line(
        format!("horizon = {}", found.horizon),
        horizon_comment(found),
    );
    line(
        format!("rho     = {RHO:?}"),
        "two runs with one key differ with at most this probability",
    );
    line(format!("actions = [{}]", names.join(", ")), "");
    for quantity in &found.quantities {
        quantity_lines(quantity, &mut line);
    }
    line(String::new(), "");
    line(
        "[world]".into(),
        "for simulation: each round draws a row of its action, with replacement",
    );
    line("kind = \"table\"".into(), "");
    line(format!("file = {}", quoted(ROWS_FILE)), "");
    text
}

fn quantity_lines(quantity: &ImportedQuantity, line: &mut dyn FnMut(String, &str)) {
    let [low, high] = quantity.range;
    let [least, largest] = quantity.seen.map(written);
    let section = match quantity.threshold {
        Some(_) => "[[cost]]",
        None => "[reward]",
    };
    line(String::new(), "");
    line(section.into(), "");
    line(format!("name      = {}", quoted(&quantity.name)), "");
    let seen = format!(
        "CHECK: {least} to {largest} was seen; a range must hold every value that can ever come"
    );
    line(format!("range     = [{low:?}, {high:?}]"), &seen);
    if let Some(threshold) = quantity.threshold {
        let limit = "CHECK: put your limit on the mean here; this one excludes nothing";
        line(format!("threshold = {threshold:?}"), limit);
    }
}

fn horizon_comment(found: &Imported) -> &'static str {
    if found.rows_are_blind {
        "CHECK: rounds in all; as many as the test has rows would be blind, these are about the fewest that are not"
    } else {
        "CHECK: rounds in all; as many as the test has rows"
    }
}
