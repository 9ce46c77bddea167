//! `debora diff`: where two live experiments part, and why.

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::args::Common;
use crate::audit::{self, Access, Comparison, Log, Parting, Source, Split};
use crate::commands::print;
use crate::terminal::{Ink, ink_for_stdout, table, wrapped};
use debora::measure::words::{counted, listed, percent, significant, whole};

/// False if they part.
pub fn diff(first: &str, second: &str, access: &Access, common: &Common) -> Result<bool> {
    let logs = [
        open(first, access).context("A")?,
        open(second, access).context("B")?,
    ];
    let comparison = audit::compare(logs)?;
    if common.json {
        print(&format!("{:#}\n", json!(comparison)))?;
    } else {
        print(&wrapped(&words(&comparison, &ink_for_stdout())))?;
    }
    Ok(comparison.parting.is_none())
}

/// The one log that is meant.
fn open(text: &str, access: &Access) -> Result<Log> {
    let (source, named) = Source::of(text)?;
    match &source.experiments(named.as_deref())?[..] {
        [experiment] => source.open(experiment.as_deref(), access),
        many => {
            let names: Vec<String> = many.iter().flatten().cloned().collect();
            bail!(
                "{text} holds the experiments {}; name one, as in {text}#{}",
                listed(&names),
                names[0]
            )
        }
    }
}

fn words(comparison: &Comparison, ink: &Ink) -> String {
    let [one, two] = &comparison.experiments;
    let mut text = format!("A is {one}, B is {two}.\n{}", premises(comparison));
    let rounds = counted(comparison.rounds, "round", "rounds");
    match &comparison.parting {
        None => {
            let epochs = counted(comparison.epochs, "epoch", "epochs");
            text += &ink.strong(&format!(
                "The same decisions throughout: {rounds} in {epochs}."
            ));
            text += "\n";
            let [one, two] = comparison.decided;
            if one != two {
                let (longer, more) = if one > two {
                    ("A", one - two)
                } else {
                    ("B", two - one)
                };
                text += &format!(
                    "{longer} has decided {} more.\n",
                    counted(more, "round", "rounds")
                );
            }
            text += &estimates(comparison);
        }
        Some(parting) => {
            text += &ink.strong(&format!(
                "They part in epoch {}, after {rounds} with the same decisions.",
                parting.epoch
            ));
            text += "\n";
            text += &reasons(parting, comparison);
            text += &strategies(parting);
        }
    }
    text
}

/// How many estimates fell into different cells all the same.
fn estimates(comparison: &Comparison) -> String {
    let made = counted(comparison.estimates, "estimate", "estimates");
    match comparison.estimates_apart {
        0 => format!("Each of {made} fell into the same cell in both.\n"),
        apart => format!(
            "Of {made}, {} fell into different cells, which changed nothing.\n",
            whole(apart)
        ),
    }
}

/// What must be the same for decisions to be.
fn premises(comparison: &Comparison) -> String {
    let mut text = String::new();
    if comparison.specs.is_empty() {
        text += "Their specs say the same. ";
    } else {
        let none = || "nothing".to_owned();
        let fact = |fact: &audit::Fact| {
            let [first, second] =
                [&fact.first, &fact.second].map(|value| value.clone().unwrap_or_else(none));
            format!("{} ({first} against {second})", fact.what)
        };
        let facts: Vec<String> = comparison.specs.iter().map(fact).collect();
        text += &format!("Their specs differ in {}. ", listed(&facts));
    }
    text += match comparison.same_key {
        Some(true) => "They have one key.",
        Some(false) => "They have different keys.",
        None => "Whether they have one key is not known, as it is not revealed.",
    };
    if !comparison.specs.is_empty() || comparison.same_key == Some(false) {
        text += " So the same decisions were not to be expected.";
    }
    text + "\n"
}

fn reasons(parting: &Parting, comparison: &Comparison) -> String {
    if !parting.splits.is_empty() {
        return parting.splits.iter().map(sentence).collect();
    }
    let expected = comparison.specs.is_empty() && comparison.same_key == Some(true);
    if expected {
        return "No estimate fell into another cell, so the same decisions were due: `debora audit` tells which log is \
                not what it should be.\n"
            .into();
    }
    "No estimate fell into another cell of a grid that they share.\n".into()
}

/// Which estimate fell where, and how close each mean was to the edge between.
fn sentence(split: &Split) -> String {
    let precise = |value: f64| significant(value, 6);
    let short = |value: f64| significant(value, 3);
    let [one, two] = split.cells;
    let (first_side, second_side) = if one < two {
        ("below", "above")
    } else {
        ("above", "below")
    };
    let edge = if one.abs_diff(two) == 1 {
        format!("the edge between them at {}", precise(split.edges[0]))
    } else {
        format!("its edge at {}", precise(split.edges[0]))
    };
    let second_edge = if one.abs_diff(two) == 1 {
        "it".to_owned()
    } else {
        format!("its edge at {}", precise(split.edges[1]))
    };
    format!(
        "The estimate of {} of {}, made in epoch {} from {} each, fell into cell {one} in A and cell {two} in B: A's mean {} \
         lies {} ({} cells) {first_side} {edge}, B's mean {} lies {} ({} cells) {second_side} {second_edge}.\n",
        split.quantity,
        split.action,
        split.epoch,
        counted(split.count, "sample", "samples"),
        precise(split.means[0]),
        short(split.distances[0]),
        short(split.distances_in_cells[0]),
        precise(split.means[1]),
        short(split.distances[1]),
        short(split.distances_in_cells[1]),
    )
}

fn strategies(parting: &Parting) -> String {
    let mut text = match &parting.first_different {
        Some((round, [one, two])) => {
            format!(
                "The first different decision is that of round {}: {one} in A, {two} in B.\n",
                whole(*round)
            )
        }
        None => {
            "The decisions that both have taken in this epoch are the same all the same.\n".into()
        }
    };
    let rows: Vec<Vec<String>> = (0..parting.actions.len())
        .map(|action| {
            let share = |side: usize| {
                parting.strategies[side]
                    .get(action)
                    .map_or("none".into(), |share| percent(*share))
            };
            vec![parting.actions[action].clone(), share(0), share(1)]
        })
        .collect();
    text += &format!(
        "The strategies from round {} on:\n\n",
        whole(parting.first_round)
    );
    text + &table(&["action", "A", "B"], &rows)
}
