//! The numbers behind every figure and table, for other programs: as they are shown, with all their digits.

use debora::measure::answer::{AnswerTable, row_for_each};

use super::view::ExperimentView;
use crate::calendar::iso;
use crate::document::word;

/// The table of a name, as addresses have it.
pub fn table(view: &ExperimentView, name: &str) -> Option<AnswerTable> {
    match name {
        "strategy" => Some(strategy(view)),
        "means" => Some(means(view)),
        "limits" => Some(limits(view)),
        "counts" => Some(counts(view)),
        _ => None,
    }
}

/// One row for each epoch and action: actions as columns would meet names that columns have.
fn strategy(view: &ExperimentView) -> AnswerTable {
    // Also those that are not played: a reader should not have to fill in zeros.
    let actions = view.reading.problem().actions();
    let rows = view.epochs.iter().flat_map(|epoch| {
        let played = actions.iter().zip(&epoch.strategy).enumerate();
        played.map(move |(action, (name, probability))| (epoch, (action, name), *probability))
    });
    row_for_each(rows)
        .numbers("epoch", |(epoch, ..)| epoch.epoch)
        .words("kind", |(epoch, ..)| word(&epoch.kind))
        .numbers("first round", |(epoch, ..)| epoch.first_round)
        .numbers("last round", |(epoch, ..)| epoch.last_round())
        .words("opened", |(epoch, ..)| iso(epoch.opened_at))
        .words("closed", |(epoch, ..)| epoch.closed_at.map(iso))
        .numbers("action", |(_, action, _)| action.0 as u32)
        .words("name", |(_, action, _)| action.1)
        .numbers("probability", |(.., probability)| *probability)
        .table()
}

fn means(view: &ExperimentView) -> AnswerTable {
    let rows = view.reading.means().iter();
    row_for_each(rows.map(|mean| (mean, &mean.observed, mean.estimate.as_ref())))
        .words("quantity", |(mean, ..)| &mean.quantity)
        .numbers("action", |(mean, ..)| mean.action)
        .words("name", |(mean, ..)| &mean.name)
        .numbers("observed mean", |(_, observed, _)| observed.mean)
        .numbers("observed from", |(_, observed, _)| observed.interval.low)
        .numbers("observed to", |(_, observed, _)| observed.interval.high)
        .numbers("told", |(_, observed, _)| observed.count)
        .numbers("estimate", |(.., made)| made.map(|made| made.value))
        .numbers("cell from", |(.., made)| made.map(|made| made.cell.low))
        .numbers("cell to", |(.., made)| made.map(|made| made.cell.high))
        .numbers("width", |(.., made)| made.map(|made| made.width))
        .numbers("rounds of the estimate", |(.., made)| {
            made.map(|made| made.count)
        })
        .numbers("threshold", |(mean, ..)| mean.threshold)
        .words("why they differ", |(mean, ..)| &mean.why)
        .table()
}

/// Without sentences: a program that reads this has words of its own.
fn limits(view: &ExperimentView) -> AnswerTable {
    row_for_each(view.reading.limits())
        .words("cost", |limit| &limit.name)
        .numbers("threshold", |limit| limit.threshold)
        .words("verdict", |limit| word(&limit.all.verdict))
        .numbers("rounds", |limit| limit.all.count)
        .numbers("average", |limit| limit.all.realised)
        .numbers("average of those told", |limit| limit.all.realised_told)
        .numbers("mean from", |limit| limit.all.interval.low)
        .numbers("mean to", |limit| limit.all.interval.high)
        .numbers("expected by the estimates", |limit| {
            limit.all.expected.as_ref().map(|expected| expected.value)
        })
        .numbers("rounds of the last epoch", |limit| limit.last_epoch.count)
        .numbers("average in the last epoch", |limit| {
            limit.last_epoch.realised
        })
        .numbers("average of overtime", |limit| limit.realised_overtime)
        .table()
}

/// The last row is of all actions together, and the only one with late outcomes and overtime.
fn counts(view: &ExperimentView) -> AnswerTable {
    let (actions, outcomes) = (view.reading.actions(), view.reading.outcomes());
    let shares = view.reading.shares().all();
    let each = actions.iter().zip(shares).map(|(action, share)| {
        let counts = [
            action.decided,
            action.told,
            action.outstanding(),
            action.imputed,
        ];
        (Some(share), &*action.name, counts)
    });
    let counts = [
        outcomes.decided,
        outcomes.told,
        outcomes.outstanding,
        outcomes.imputed,
    ];
    let all = (None, "all actions", counts);
    row_for_each(each.chain([all]))
        .numbers("action", |(share, ..)| share.map(|share| share.action))
        .words("name", |(_, name, _)| *name)
        .numbers("probability", |(share, ..)| {
            share.map(|share| share.probability)
        })
        .numbers("decided", |(.., counts)| counts[0])
        .numbers("told", |(.., counts)| counts[1])
        .numbers("outstanding", |(.., counts)| counts[2])
        .numbers("imputed", |(.., counts)| counts[3])
        .numbers("late", |(share, ..)| {
            share.is_none().then_some(outcomes.late)
        })
        .numbers("overtime", |(share, ..)| {
            share.is_none().then_some(outcomes.overtime)
        })
        .table()
}
