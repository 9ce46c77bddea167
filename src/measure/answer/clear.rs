//! The clear test of policy free in words: when it is made, and how it ended.

use crate::measure::answer::{AnswerCell, AnswerTable, row_for_each};
use crate::measure::words::{amount, whole};
use crate::problem::Problem;
use crate::record::ClearTest;
use crate::{Plan, clear::Clear};

/// How a clear test ended, in the reward's units.
pub fn clear_test(problem: &Problem, test: &ClearTest) -> String {
    let span = problem.quantity(0).range.span();
    // As differences of means, which people compare; the test itself scales both by the root of the count.
    let [lead, threshold] = test.gap_and_threshold().map(|gap| amount(gap * span));
    let verdict = if test.passed {
        "committed"
    } else {
        "not committed"
    };
    format!(
        "{} was {lead} ahead after {} rounds each; the threshold was {threshold}: {verdict}.",
        problem.actions()[test.leader as usize],
        whole(test.count)
    )
}

/// When the test is made, and what lead is sure to pass it.
pub(super) fn when(plan: &Plan) -> Option<String> {
    let clear = plan.clear.as_ref()?;
    // The last stage asks for the smallest lead, so it says most about what the test can find.
    let [least, sure] = clear_leads(plan, clear, clear.stages.len() - 1);
    let first =
        (0..clear.stages.len()).find(|&stage| clear_leads(plan, clear, stage)[0].is_some())?;
    let last = whole(*clear.stages.last()?);
    let sure = sure.map_or(String::new(), |sure| format!(", and any from {sure} on"));
    Some(format!(
        "After {last} rounds each, a lead from {} on may decide{sure}: the leader is played from then on. Larger leads may decide \
         from {} rounds each on.",
        least?,
        whole(clear.stages[first])
    ))
}

/// The stages, each with the leads between which the key draws its threshold.
pub(super) fn stages(plan: &Plan, clear: &Clear) -> AnswerTable {
    let lead = |stage: usize, place: usize| {
        AnswerCell::or_none(clear_leads(plan, clear, stage)[place].as_deref())
    };
    row_for_each(clear.stages.iter().enumerate())
        .words("clear test after", |(_, count)| **count)
        .numbers("lead above", |(stage, _)| lead(*stage, 0))
        .numbers("surely from", |(stage, _)| lead(*stage, 1))
        .table()
}

/// The smallest lead that may pass a stage and the smallest that is sure to, in the reward's units; `None` if no lead can.
pub fn clear_leads(plan: &Plan, clear: &Clear, stage: usize) -> [Option<String>; 2] {
    let span = plan.problem.quantity(0).range.span();
    let widest = plan.problem.means(0).span();
    let root = libm::sqrt(clear.stages[stage] as f64);
    [0.0, 1.0].map(|uniform| {
        let lead = clear.threshold(stage, uniform) / root;
        // Means differ by the declared range at most: beyond it only chance could lead.
        (lead < widest).then(|| amount(lead * span))
    })
}
