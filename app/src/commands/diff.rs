//! `debora diff`: where two live experiments diverge, and why.

use std::cmp::Ordering;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::args::Common;
use crate::audit::{
    self, Credentials, Diff, Divergence, DivergingEstimate, DivergingTest, Log, LogSource,
    SpecDifference,
};
use crate::commands::print;
use crate::terminal::{ink_for_stdout, laid_out};
use debora::measure::answer::{Answer, AnswerTable, Sentence, Tone};
use debora::measure::words::{counted, listed, percent, significant, whole};

/// False if they diverge.
pub fn diff(first: &str, second: &str, credentials: &Credentials, common: &Common) -> Result<bool> {
    let logs = [
        open(first, credentials).context("A")?,
        open(second, credentials).context("B")?,
    ];
    let diff = audit::diff(logs)?;
    if common.json {
        print(&format!("{:#}\n", json!(diff)))?;
    } else {
        print(&laid_out(&answer(&diff), ink_for_stdout()))?;
    }
    Ok(diff.divergence.is_none())
}

/// The one log that is meant.
fn open(text: &str, credentials: &Credentials) -> Result<Log> {
    let (source, named) = LogSource::of(text)?;
    // A store may hold many, and to guess which one is meant could compare the wrong ones.
    match &source.experiments(named.as_deref())?[..] {
        [experiment] => source.open(experiment.as_deref(), credentials),
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

fn answer(diff: &Diff) -> Answer {
    let [one, two] = &diff.experiments;
    // Premises first: with another spec or key, divergence is not news.
    let mut sentences = vec![
        Sentence::plain(format!("A is {one}, B is {two}.")),
        Sentence::plain(premises(diff)),
        Sentence::of(Tone::Strong, verdict(diff)),
    ];
    let mut answer = Answer::default();
    match &diff.divergence {
        None => {
            sentences.extend(longer(diff).map(Sentence::plain));
            sentences.push(Sentence::plain(estimates(diff)));
            answer.paragraph(sentences);
        }
        Some(divergence) => {
            sentences.extend(reasons(divergence, diff).into_iter().map(Sentence::plain));
            sentences.push(Sentence::plain(first_different(divergence)));
            let first = whole(divergence.first_round);
            sentences.push(Sentence::plain(format!(
                "The strategies from round {first} on:"
            )));
            answer.paragraph(sentences);
            answer.table(strategies(divergence));
        }
    }
    answer
}

fn verdict(diff: &Diff) -> String {
    let rounds = counted(diff.rounds, "round", "rounds");
    match &diff.divergence {
        None => {
            let epochs = counted(diff.epochs, "epoch", "epochs");
            format!("The same decisions throughout: {rounds} in {epochs}.")
        }
        Some(divergence) => format!(
            "They diverge in epoch {}, after {rounds} with the same decisions.",
            divergence.epoch
        ),
    }
}

/// Which of the two went on longer, if one did.
fn longer(diff: &Diff) -> Option<String> {
    let [one, two] = diff.decided;
    let more = counted(one.abs_diff(two), "round", "rounds");
    match one.cmp(&two) {
        Ordering::Equal => None,
        Ordering::Greater => Some(format!("A has decided {more} more.")),
        Ordering::Less => Some(format!("B has decided {more} more.")),
    }
}

/// How many estimates fell into different cells all the same.
fn estimates(diff: &Diff) -> String {
    let made = counted(diff.estimates, "estimate", "estimates");
    match diff.estimates_diverged {
        0 => format!("Each of {made} fell into the same cell in both."),
        diverged => format!(
            "Of {made}, {} fell into different cells, which changed nothing.",
            whole(diverged)
        ),
    }
}

/// What must be the same for decisions to be.
fn premises(diff: &Diff) -> String {
    if diff.specs.is_empty() && diff.same_key == Some(true) {
        return "Their specs are equivalent, and they share a key.".into();
    }
    let specs = if diff.specs.is_empty() {
        "Their specs are equivalent.".into()
    } else {
        let differences: Vec<String> = diff.specs.iter().map(difference).collect();
        format!("Their specs differ in {}.", listed(&differences))
    };
    let keys = match diff.same_key {
        Some(true) => "They share a key.",
        Some(false) => "They have different keys.",
        None => "Whether they share a key is unknown: the keys have not been revealed.",
    };
    // An unknown key alone is not a reason to expect other decisions.
    let conclusion = if !diff.specs.is_empty() || diff.same_key == Some(false) {
        " The decisions therefore need not agree."
    } else {
        ""
    };
    format!("{specs} {keys}{conclusion}")
}

/// Where the specs differ, and both values.
fn difference(difference: &SpecDifference) -> String {
    let [first, second] =
        [&difference.first, &difference.second].map(|value| value.as_deref().unwrap_or("nothing"));
    format!("{} ({first} against {second})", difference.what)
}

fn reasons(divergence: &Divergence, diff: &Diff) -> Vec<String> {
    // The test first: it comes before the estimates, and where its result differs they decide nothing.
    if let Some(test) = &divergence.diverging_test {
        return vec![test_sentence(test)];
    }
    if !divergence.diverging_estimates.is_empty() {
        return divergence
            .diverging_estimates
            .iter()
            .map(sentence)
            .collect();
    }
    // Then decisions depend on the data through cells and clear tests alone (docs/theory.md, section 7), so one of the logs
    // must be wrong.
    let expected = diff.specs.is_empty() && diff.same_key == Some(true);
    if expected {
        let due = "No estimate fell into another cell and no clear test had another result, so the same decisions were due: \
                   `debora audit` tells which log is wrong.";
        return vec![due.into()];
    }
    vec!["No estimate fell into another cell of a grid that they share.".into()]
}

/// How far each lead was from the threshold that both were held against.
fn test_sentence(test: &DivergingTest) -> String {
    let precise = |value: f64| significant(value, 6);
    let short = |value: f64| significant(value, 3);
    let side = |place: usize| {
        let (beyond, verdict) = if test.committed[place] {
            ("above", "and committed")
        } else {
            ("below", "and went on")
        };
        format!(
            "{} was ahead by {}, {} {beyond} it, {verdict}",
            test.leaders[place],
            precise(test.leads[place]),
            short(test.distances[place])
        )
    };
    format!(
        "The clear test after {} rounds each, with a threshold of {}, had different results: in A {}; in B {}.",
        whole(test.count),
        precise(test.threshold),
        side(0),
        side(1)
    )
}

/// Which estimate fell where, and how close each mean was to the edge between.
fn sentence(estimate: &DivergingEstimate) -> String {
    let precise = |value: f64| significant(value, 6);
    let short = |value: f64| significant(value, 3);
    // Six digits for means, which differ late; three for distances, which are small.
    let [one, two] = estimate.cells;
    let (first_side, second_side) = if one < two {
        ("below", "above")
    } else {
        ("above", "below")
    };
    // Neighbouring cells have one edge between them, which is then named once.
    let edge = if one.abs_diff(two) == 1 {
        format!("the edge between them at {}", precise(estimate.edges[0]))
    } else {
        format!("its edge at {}", precise(estimate.edges[0]))
    };
    let second_edge = if one.abs_diff(two) == 1 {
        "it".to_owned()
    } else {
        format!("its edge at {}", precise(estimate.edges[1]))
    };
    format!(
        "The estimate of {} of {}, made in epoch {} from {} each, fell into cell {one} in A and cell {two} in B: A's mean {} \
         lies {} ({} cells) {first_side} {edge}, B's mean {} lies {} ({} cells) {second_side} {second_edge}.",
        estimate.quantity,
        estimate.name,
        estimate.epoch,
        counted(estimate.count, "sample", "samples"),
        precise(estimate.means[0]),
        short(estimate.distances[0]),
        short(estimate.distances_in_cells[0]),
        precise(estimate.means[1]),
        short(estimate.distances[1]),
        short(estimate.distances_in_cells[1]),
    )
}

fn first_different(divergence: &Divergence) -> String {
    match &divergence.first_different {
        Some((round, [one, two])) => format!(
            "The first different decision is that of round {}: {one} in A, {two} in B.",
            whole(*round)
        ),
        None => "The decisions that both have made in this epoch are still the same.".into(),
    }
}

fn strategies(divergence: &Divergence) -> AnswerTable {
    let rows = (0..divergence.actions.len())
        .map(|action| {
            // The other spec may have fewer actions.
            let share = |side: usize| {
                divergence.strategies[side]
                    .get(action)
                    .map_or("none".into(), |share| percent(*share))
            };
            vec![divergence.actions[action].clone(), share(0), share(1)]
        })
        .collect();
    AnswerTable::of_numbers(["action", "A", "B"], rows)
}
