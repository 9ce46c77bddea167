//! What a comparison of two experiments found, in words: the same at a terminal and in the pages.

use std::cmp::Ordering;

use debora::measure::answer::{Answer, AnswerCell, AnswerTable, Sentence, Tone, row_for_each};
use debora::measure::words::{counted, listed, percent, significant, whole};

use super::{
    Diff, Divergence, DivergingEstimate, DivergingPick, DivergingTest, PairStanding, SpecDifference,
};
use crate::terminal::{name, value};

/// The most estimates that are told one by one: of hundreds of actions, nobody reads as many sentences.
const ESTIMATES_TOLD: usize = 10;

/// What was found.
pub fn compared(diff: &Diff) -> Answer {
    let [one, two] = &diff.experiments;
    let mut sentences = vec![Sentence::plain(format!(
        "A is experiment {}, B is experiment {}.",
        name(one),
        name(two)
    ))];
    // Premises first: with another spec or key, divergence is not news.
    sentences.push(Sentence::plain(premises(diff)));
    sentences.push(Sentence::of(Tone::Strong, verdict(diff)));
    sentences.push(Sentence::plain(promise(diff)));
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
            answer.table(strategies(&diff.actions, divergence));
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

/// Whether what happened is within what rho promises.
fn promise(diff: &Diff) -> String {
    let rho = diff.promise.rho;
    let (share, rest) = (percent(rho), percent(1.0 - rho));
    match diff.promise.standing {
        PairStanding::Together => format!(
            "With rho = {rho}, two such experiments stay together to the horizon with a probability of at least {rest}."
        ),
        PairStanding::Within => format!(
            "One such divergence is within what rho = {rho} promises: up to {share} of pairs may diverge. After it, nothing further \
             is promised of this pair."
        ),
        PairStanding::OtherOutcomes => format!(
            "It says nothing about rho = {rho}, which is a promise for outcomes of the same distributions: {}.",
            improbable(diff)
        ),
        PairStanding::Unexplained => {
            format!("It is not within what rho = {rho} promises: nothing in the data explains it.")
        }
        PairStanding::UnknownKey => {
            format!("If they share a key, rho = {rho} allows up to {share} of pairs to diverge.")
        }
        PairStanding::NothingPromised => "Of such a pair nothing is promised.".into(),
    }
}

/// How improbable the means are that differ most.
fn improbable(diff: &Diff) -> String {
    let divergence = diff.divergence.iter();
    let chances = divergence.flat_map(|divergence| {
        let tests = divergence.diverging_test.iter();
        let estimates = divergence.diverging_estimates.iter();
        let picks = divergence.diverging_pick.iter();
        tests
            .map(|test| test.chance_max)
            .chain(picks.map(|pick| pick.chance_max))
            .chain(estimates.map(|estimate| estimate.chance_max))
    });
    let chance = chances.fold(1.0, f64::min);
    format!(
        "with those, means this far apart have a probability of at most {}",
        significant(chance, 1)
    )
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
        let differences = diff.specs.iter();
        let differences: Vec<String> = differences.map(|one| difference(one, diff)).collect();
        format!("Their specs differ in {}.", listed(&differences))
    };
    let keys = match diff.same_key {
        Some(true) => "They share a key.".into(),
        Some(false) => "They have different keys.".into(),
        None => unknown_keys(diff),
    };
    // An unknown key alone is not a reason to expect other decisions.
    let conclusion = if !diff.specs.is_empty() || diff.same_key == Some(false) {
        " The decisions therefore need not agree."
    } else {
        ""
    };
    format!("{specs} {keys}{conclusion}")
}

/// What is known of keys that cannot be compared.
fn unknown_keys(diff: &Diff) -> String {
    // The commitments are what each side can be held to once it reveals its key.
    let side = |side: usize| match diff.keys_revealed[side] {
        true => "is revealed".to_owned(),
        false => format!("has the hash {}", value(&diff.key_hashes[side])),
    };
    format!(
        "Whether they share a key is unknown: the keys have not both been revealed (A's {}, B's {}).",
        side(0),
        side(1)
    )
}

/// Where the specs differ, and both values.
fn difference(difference: &SpecDifference, diff: &Diff) -> String {
    // Of many actions only those that differ are worth reading.
    if difference.what == "actions" {
        return format!("actions ({})", other_actions(&diff.actions));
    }
    let [first, second] = [&difference.first, &difference.second]
        .map(|text| text.as_deref().map_or("nothing".into(), quoted));
    format!("{} ({first} against {second})", difference.what)
}

/// A value of a spec. Numbers and lists of them need no quotes.
fn quoted(text: &str) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || "[]., -e".contains(letter);
    if text.chars().all(is_number) {
        return value(text);
    }
    name(text)
}

/// Which actions only one of them has.
fn other_actions(actions: &[Vec<String>; 2]) -> String {
    let only = |side: usize| -> Vec<String> {
        let others = &actions[1 - side];
        let own = actions[side].iter().filter(|name| !others.contains(name));
        own.map(|own| name(own)).collect()
    };
    let sides = ["A", "B"].into_iter().zip([only(0), only(1)]);
    let sides: Vec<String> = sides
        .filter(|(_, only)| !only.is_empty())
        .map(|(side, only)| format!("only {side} has {}", listed(&only)))
        .collect();
    if sides.is_empty() {
        return "the same in another order".into();
    }
    sides.join("; ")
}

fn reasons(divergence: &Divergence, diff: &Diff) -> Vec<String> {
    // The test first: it comes before the estimates, and where its result differs they decide nothing.
    if let Some(test) = &divergence.diverging_test {
        return vec![test_sentence(test)];
    }
    if let Some(pick) = &divergence.diverging_pick {
        return vec![pick_sentence(pick)];
    }
    if !divergence.diverging_estimates.is_empty() {
        return estimate_sentences(&divergence.diverging_estimates);
    }
    // Then decisions depend on the data through cells, looks and the pick alone (docs/theory.md, section 7), so one of the logs
    // must be wrong.
    let expected = diff.specs.is_empty() && diff.same_key == Some(true);
    if expected {
        let due = "No estimate fell into another cell, and no look or pick had another result, so the same decisions were due: \
                   `debora audit` tells which log is wrong.";
        return vec![due.into()];
    }
    vec!["No estimate fell into another cell of a grid that they share.".into()]
}

/// Each estimate, or the first few and how many more there are.
fn estimate_sentences(estimates: &[DivergingEstimate]) -> Vec<String> {
    let told = estimates.iter().take(ESTIMATES_TOLD).map(estimate_sentence);
    let mut sentences: Vec<String> = told.collect();
    let more = estimates.len().saturating_sub(ESTIMATES_TOLD) as u64;
    if more > 0 {
        sentences.push(format!(
            "{} in different cells, which the JSON document lists.",
            counted(more, "more estimate lies", "more estimates lie")
        ));
    }
    sentences
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
            name(&test.leaders[place]),
            precise(test.leads[place]),
            short(test.distances[place])
        )
    };
    let [first, second] = test.thresholds;
    let threshold = if first == second {
        precise(first)
    } else {
        format!(
            "{} in A's units and {} in B's",
            precise(first),
            precise(second)
        )
    };
    format!(
        "The look after {} rounds each, with a threshold of {}, had different results: in A {}; in B {}.",
        whole(test.count),
        threshold,
        side(0),
        side(1)
    )
}

/// What each picked: near a tie the draws that both share leave it to the means.
fn pick_sentence(pick: &DivergingPick) -> String {
    let [first, second] = &pick.actions;
    format!(
        "The pick after {} rounds each, by the means and draws that both share, was {} in A and {} in B.",
        whole(pick.count),
        name(first),
        name(second)
    )
}

/// Which estimate fell where, and how close each mean was to the edge between.
fn estimate_sentence(estimate: &DivergingEstimate) -> String {
    let precise = |value: f64| significant(value, 6);
    let short = |value: f64| significant(value, 3);
    // Six digits for means, which differ late; three for distances, which are small.
    let [one, two] = estimate.cells;
    let (first_side, second_side) = if one < two {
        ("below", "above")
    } else {
        ("above", "below")
    };
    // Neighbouring cells have one edge between them, which is then named once, unless each side has units of its own.
    let shared = one.abs_diff(two) == 1 && estimate.edges[0] == estimate.edges[1];
    let (edge, second_edge) = if shared {
        let edge = format!("the edge between them at {}", precise(estimate.edges[0]));
        (edge, "it".to_owned())
    } else {
        let [first, second] = estimate
            .edges
            .map(|edge| format!("its edge at {}", precise(edge)));
        (first, second)
    };
    let quantity = match &estimate.quantities {
        [first, second] if first == second => name(first),
        [first, second] => format!("{} (in B {})", name(first), name(second)),
    };
    format!(
        "The estimate of {} of {}, made in epoch {} from {} each, fell into cell {one} in A and cell {two} in B: A's mean {} \
         lies {} ({} cells) {first_side} {edge}, B's mean {} lies {} ({} cells) {second_side} {second_edge}.",
        quantity,
        name(&estimate.name),
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
            "The first different decision is that of round {}: {} in A, {} in B.",
            whole(*round),
            name(one),
            name(two)
        ),
        None => "The decisions that both have made in this epoch are still the same.".into(),
    }
}

/// The probability of each action, by name: first the actions of A, then those that only B has.
fn strategies(actions: &[Vec<String>; 2], divergence: &Divergence) -> AnswerTable {
    let added = actions[1].iter().filter(|name| !actions[0].contains(name));
    let share = |action: &String, side: usize| {
        let place = actions[side].iter().position(|own| own == action);
        AnswerCell::or_none(place.map(|place| divergence.strategies[side][place]))
    };
    row_for_each(actions[0].iter().chain(added))
        .words("action", |action| name(action))
        .shares("A", |action| share(action, 0))
        .shares("B", |action| share(action, 1))
        .table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_estimates_the_first_are_told_and_the_others_counted() {
        let estimate = DivergingEstimate {
            action: 0,
            name: "a".into(),
            quantities: ["reward".into(), "reward".into()],
            epoch: 1,
            count: 8,
            means: [0.1, 0.3],
            cells: [0, 1],
            edges: [0.2; 2],
            distances: [0.1; 2],
            distances_in_cells: [0.5; 2],
            chance_max: 1.0,
        };
        let told = |many: usize| estimate_sentences(&vec![estimate.clone(); many]);
        assert_eq!(told(ESTIMATES_TOLD).len(), ESTIMATES_TOLD);
        let more = told(ESTIMATES_TOLD + 2);
        assert_eq!(more.len(), ESTIMATES_TOLD + 1);
        assert!(more[ESTIMATES_TOLD].starts_with("2 more estimates lie in different cells"));
    }
}
