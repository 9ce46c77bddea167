//! The tables of `--out`, for other programs.

use debora::lab::metrics::Run;
use debora::lab::replicate::{DivergedEstimate, Pair};
use debora::measure::answer::{AnswerCell, AnswerTable, row_for_each};

use crate::report::plots::Figure;

/// A table and the name of its file.
pub struct CsvFile {
    pub name: &'static str,
    pub table: AnswerTable,
}

/// What a run says of itself.
type OfRun = fn(&Run) -> AnswerCell;

/// The line of one run. Unit scale.
pub fn runs_csv(run: &Run) -> CsvFile {
    let table = row_for_each([run])
        // `run` simulates pair 0's first member.
        .numbers("pair", |_| 0_u64)
        .numbers("member", |_| 0_u64)
        .numbers("rounds", |run| run.rounds)
        .numbers("epochs", |run| run.epochs)
        .numbers("regret", |run| run.regret)
        .numbers("violation", |run| run.violation)
        .numbers("unsafe_rounds", |run| run.unsafe_rounds)
        .numbers("infeasible_epochs", |run| run.infeasible_epochs)
        .numbers("reward_mean", |run| run.reward_mean)
        .words("digest", |run| run.digest.as_deref())
        .words("decided_by", |run| {
            run.decided_by
                .map(|kind| format!("{kind:?}").to_lowercase())
        })
        .numbers("decided_at", |run| run.decided_at)
        .numbers("lost_at_most", |run| run.lost_at_most)
        .table();
    CsvFile {
        name: "runs.csv",
        table,
    }
}

/// A line per pair and player: whether it diverged, where and why, and both runs' costs. Unit scale.
pub fn pairs_csv(players: &[(String, Vec<Pair>)]) -> CsvFile {
    let pairs = players
        .iter()
        .flat_map(|(name, pairs)| pairs.iter().map(move |pair| (name, pair)));
    let mut table = row_for_each(pairs.map(|(name, pair)| (name, pair, blamed(pair))))
        .words("player", |(name, ..)| *name)
        .numbers("pair", |(_, pair, _)| pair.index)
        .words("identical", |(_, pair, _)| {
            pair.divergence.is_none().to_string()
        })
        .numbers("split_epoch", |(_, pair, _)| {
            pair.divergence.as_ref().map(|split| split.epoch)
        })
        .numbers("split_round", |(_, pair, _)| {
            pair.divergence.as_ref().map(|split| split.round)
        })
        .numbers("split_action", |(.., split)| {
            split.map(|split| split.action)
        })
        .numbers("split_quantity", |(.., split)| {
            split.map(|split| split.quantity)
        })
        .numbers("split_count", |(.., split)| split.map(|split| split.count))
        .numbers("mean_1", |(.., split)| split.map(|split| split.means[0]))
        .numbers("mean_2", |(.., split)| split.map(|split| split.means[1]))
        .numbers("edge", |(.., split)| split.map(|split| split.edge));
    let of_runs: [(&str, OfRun); 5] = [
        ("regret", |run| run.regret.into()),
        ("violation", |run| run.violation.into()),
        ("unsafe_rounds", |run| run.unsafe_rounds.into()),
        ("decided_at", |run| run.decided_at.into()),
        ("note", |run| run.note.as_deref().into()),
    ];
    for (name, value) in of_runs {
        for (member, number) in [(0, 1), (1, 2)] {
            table = table.numbers(format!("{name}_{number}"), |(_, pair, _)| {
                value(&pair.runs[member])
            });
        }
    }
    CsvFile {
        name: "pairs.csv",
        table: table.table(),
    }
}

/// The estimate that is to blame: a player that does not round has none.
fn blamed(pair: &Pair) -> Option<&DivergedEstimate> {
    pair.divergence.as_ref()?.estimate.as_ref()
}

/// A line per point of every figure, in the units of its axes.
pub fn curves_csv(figures: &[Figure]) -> CsvFile {
    let points = figures
        .iter()
        .flat_map(|figure| figure.points.iter().map(move |point| (figure, point)));
    let table = row_for_each(points)
        .words("figure", |(figure, _)| &figure.name)
        .words("series", |(_, point)| &point.series)
        .numbers("x", |(_, point)| point.x)
        .numbers("y", |(_, point)| point.y)
        .numbers("low", |(_, point)| point.band.map(|[low, _]| low))
        .numbers("high", |(_, point)| point.band.map(|[_, high]| high))
        .table();
    CsvFile {
        name: "curves.csv",
        table,
    }
}
