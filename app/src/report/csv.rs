//! The tables of `--out`, for other programs. Numbers are plain, and need no quotes; names and notes may.

use debora::lab::metrics::Run;
use debora::lab::replicate::Pair;

use crate::report::plots::Figure;

/// A table and the name of its file.
pub struct CsvFile {
    pub name: &'static str,
    pub text: String,
}

/// The line of one run. Unit scale.
pub fn runs_csv(run: &Run) -> CsvFile {
    let mut text = String::from(
        "pair,member,rounds,epochs,regret,violation,unsafe_rounds,infeasible_epochs,reward_mean,digest,decided_by,decided_at,lost_at_most\n",
    );
    // `run` simulates pair 0's first member.
    let columns = [
        "0".to_owned(),
        "0".to_owned(),
        run.rounds.to_string(),
        run.epochs.to_string(),
        cell(run.regret),
        run.violation.to_string(),
        run.unsafe_rounds.to_string(),
        run.infeasible_epochs.to_string(),
        run.reward_mean.to_string(),
        cell(run.digest.as_deref()),
        run.decided_by
            .map_or(String::new(), |kind| format!("{kind:?}").to_lowercase()),
        cell(run.decided_at),
        cell(run.lost_at_most),
    ];
    text += &format!("{}\n", columns.join(","));
    CsvFile {
        name: "runs.csv",
        text,
    }
}

/// A line per pair and player: whether it diverged, where and why, and both runs' costs. Unit scale.
pub fn pairs_csv(players: &[(String, Vec<Pair>)]) -> CsvFile {
    let mut text = String::from(
        "player,pair,identical,split_epoch,split_round,split_action,split_quantity,split_count,mean_1,mean_2,edge,\
         regret_1,regret_2,violation_1,violation_2,unsafe_rounds_1,unsafe_rounds_2,decided_at_1,decided_at_2,note_1,note_2\n",
    );
    for (name, pairs) in players {
        for pair in pairs {
            text += &format!("{},{}\n", quoted(name), pair_columns(pair).join(","));
        }
    }
    CsvFile {
        name: "pairs.csv",
        text,
    }
}

fn pair_columns(pair: &Pair) -> [String; 20] {
    let divergence = pair.divergence.as_ref();
    // A player that does not round has no estimate to blame.
    let estimate = divergence.and_then(|divergence| divergence.estimate.as_ref());
    let [first, second] = &pair.runs;
    [
        pair.index.to_string(),
        divergence.is_none().to_string(),
        cell(divergence.map(|divergence| divergence.epoch)),
        cell(divergence.map(|divergence| divergence.round)),
        cell(estimate.map(|estimate| estimate.action)),
        cell(estimate.map(|estimate| estimate.quantity)),
        cell(estimate.map(|estimate| estimate.count)),
        cell(estimate.map(|estimate| estimate.means[0])),
        cell(estimate.map(|estimate| estimate.means[1])),
        cell(estimate.map(|estimate| estimate.edge)),
        cell(first.regret),
        cell(second.regret),
        first.violation.to_string(),
        second.violation.to_string(),
        first.unsafe_rounds.to_string(),
        second.unsafe_rounds.to_string(),
        cell(first.decided_at),
        cell(second.decided_at),
        cell(first.note.as_deref().map(quoted)),
        cell(second.note.as_deref().map(quoted)),
    ]
}

/// A line per point of every figure, in the units of its axes.
pub fn curves_csv(figures: &[Figure]) -> CsvFile {
    let mut text = String::from("figure,series,x,y,low,high\n");
    for figure in figures {
        for point in &figure.points {
            let columns = [
                figure.name.clone(),
                quoted(&point.series),
                point.x.to_string(),
                point.y.to_string(),
                cell(point.band.map(|[low, _]| low)),
                cell(point.band.map(|[_, high]| high)),
            ];
            text += &format!("{}\n", columns.join(","));
        }
    }
    CsvFile {
        name: "curves.csv",
        text,
    }
}

/// A text as a cell: in quotes if it holds what ends one.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// What is missing leaves its cell empty, which readers of CSV take for a missing value.
pub(super) fn cell(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
