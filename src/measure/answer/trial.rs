//! The trial of policy free in words: when it looks, how a look ended, and what was picked.

use crate::measure::answer::{AnswerCell, AnswerTable, row_for_each};
use crate::measure::words::{amount, whole};
use crate::plan::{PlannedLook, Trial};
use crate::problem::Problem;
use crate::record::{LookTest, Pick};
use crate::{Plan, line::MeanLine};

/// How a look ended: the lead in the reward's units, and on the line, where it was compared.
pub fn look_test(problem: &Problem, test: &LookTest) -> String {
    let reward = problem.quantity(0);
    let gap = test.means[test.leader as usize] - test.means[test.runner_up as usize];
    // Without the root of the count that the comparison itself has: people compare differences.
    let [lead, threshold] = test.gap_and_threshold().map(amount);
    let verdict = if test.passed {
        "committed"
    } else {
        "not committed"
    };
    format!(
        "{} was {} ahead in {} after {} rounds each: {lead} on the line, where the threshold was {threshold}: {verdict}.",
        problem.actions()[test.leader as usize],
        amount(gap * reward.range.span()),
        reward.name,
        whole(test.count)
    )
}

/// What was picked, and what its mean was beside the largest.
pub fn picked(problem: &Problem, pick: &Pick) -> String {
    let range = problem.quantity(0).range;
    let mean = pick.means[pick.action as usize];
    let largest = pick.means.iter().copied().fold(0.0, f64::max);
    let beside = if mean == largest {
        "the largest mean".to_owned()
    } else {
        format!(
            "mean {}, the largest being {}",
            amount(range.to_user(mean)),
            amount(range.to_user(largest))
        )
    };
    format!(
        "{} was picked after {} rounds each: {beside}.",
        problem.actions()[pick.action as usize],
        whole(pick.count)
    )
}

/// When the trial ends, and what its end can find.
pub(super) fn when(plan: &Plan) -> Option<String> {
    let trial = plan.trial.as_ref()?;
    let found = in_units(plan, &trial.line(), trial.picked_lead);
    let found = found.map_or(String::new(), |lead| {
        format!(
            "; a lead of {lead} in {} is picked with probability 90 %",
            plan.problem.quantity(0).name
        )
    });
    Some(format!(
        "After {} rounds each, one action is picked and played to the horizon{found}.",
        whole(trial.count)
    ))
}

/// When it can end sooner.
pub(super) fn sooner(plan: &Plan) -> Option<String> {
    let [first, last] = plan.trial.as_ref()?.first_and_last_look()?;
    Some(format!(
        "It can end sooner: the key places looks between rounds {} and {}, which commit to an action clearly ahead.",
        whole(first),
        whole(last)
    ))
}

/// The looks, each with the leads between which the key draws what commits.
pub(super) fn looks(plan: &Plan, trial: &Trial) -> AnswerTable {
    let lead = |look: &PlannedLook, apart: f64| {
        let line = MeanLine::new(look.count, trial.offset_c);
        AnswerCell::or_none(in_units(plan, &line, apart).as_deref())
    };
    row_for_each(&trial.looks)
        .words("look after", |look| look.count)
        .numbers("round", |look| look.round)
        .numbers("may commit from", |look| lead(look, look.commits_from))
        .numbers("surely from", |look| lead(look, look.commits_at_most))
        .table()
}

/// A lead on the line as a difference of rewards around the middle of their range; none if the range has no room for it.
fn in_units(plan: &Plan, line: &MeanLine, apart: f64) -> Option<String> {
    let span = plan.problem.quantity(0).range.span();
    let found = line
        .difference_at_half(apart)
        .filter(|&found| found < 1.0)?;
    Some(amount(found * span))
}
