//! Why an epoch's strategy is played, in sentences.

use debora::measure::words::{amount, counted, listed, whole};
use debora::record::{Kind, Rule};
use debora::{Policy, VALUES_VERSION};

use super::detail::{ActionAt, EpochDetail, EstimateHere, LimitHere};
use crate::reading::share;

/// Estimates told one by one; of more, their number says enough.
const TOLD_MAX: usize = 3;

/// What the optimist's words mean.
const MAY: &str = "What may be: each reward is taken as the most, and each cost as the least, that the estimates allow.";

/// The same where limits must be kept.
const SURE: &str = "What may be, and what is sure: each reward and each cost is taken as the most that the estimates allow.";

/// The reasons, the most important first.
pub fn why(detail: &EpochDetail, values_version: u32) -> Vec<String> {
    let mut sentences = match detail.entry.kind {
        Kind::Explore => explore(detail),
        Kind::Estimate => estimate(detail),
        Kind::Infeasible => infeasible(detail),
        Kind::Commit => vec![committed(detail)],
        Kind::Pick => vec![picked(detail)],
    };
    sentences.extend(detail.entry.test.iter().map(|test| test.sentence.clone()));
    sentences.push(changed(detail));
    sentences.extend(made(detail));
    sentences.extend(nearest(detail));
    if !detail.recomputed {
        sentences.push(format!(
            "The experiment was decided with values version {values_version}, and this program has {VALUES_VERSION}: it shows \
             what is recorded, and does not find the strategy again."
        ));
    }
    sentences
}

fn committed(detail: &EpochDetail) -> String {
    let leader = detail
        .entry
        .test
        .as_ref()
        .map_or("One action", |test| &test.leader);
    format!("{leader} is played to the horizon, whatever its outcomes.")
}

fn picked(detail: &EpochDetail) -> String {
    let best = detail.entry.shares.first();
    let action = best.map_or("One action", |share| &share.name);
    format!(
        "{action} was picked at the end of the trial, by its mean and a draw of the key, and is played to the horizon whatever its \
         outcomes."
    )
}

fn explore(detail: &EpochDetail) -> Vec<String> {
    let mut sentences = vec![
        "It explores: not every action is estimated yet, so no estimate decides what is played."
            .to_owned(),
    ];
    if detail.sigma > 0.0 {
        sentences.push(format!(
            "The safe strategy has {} of it: so every limit is kept even if the other actions cost the most that their ranges allow.",
            share(detail.sigma)
        ));
    }
    sentences
}

fn estimate(detail: &EpochDetail) -> Vec<String> {
    if !detail.recomputed {
        return vec!["The estimates decide what is played.".into()];
    }
    match (detail.policy, detail.entry.rule) {
        (Policy::Free, _) => vec![largest(detail)],
        (_, Some(Rule::Plan)) => vec![planned(detail), SURE.into(), binding(detail)],
        (_, Some(Rule::Mix)) => vec![best(detail), MAY.into(), mixed(detail), binding(detail)],
        (_, Some(Rule::Moderate)) => moderate(detail),
        (_, Some(Rule::Optimistic) | None) => vec![best(detail), MAY.into(), binding(detail)],
    }
}

/// Without limits: whose index is the largest, and who is next.
fn largest(detail: &EpochDetail) -> String {
    let mut ranked: Vec<&ActionAt> = detail.actions.iter().collect();
    // Stable: of equals the first is played.
    ranked.sort_by(|one, other| {
        let index = |at: &ActionAt| at.index.unwrap_or(f64::NEG_INFINITY);
        index(other).total_cmp(&index(one))
    });
    let [first, next, ..] = ranked[..] else {
        return "There is one action alone.".into();
    };
    let told = |at: &ActionAt| amount(at.index.unwrap_or_default());
    let next = if next.index == first.index {
        format!("as much as {}: of equals the first in the spec", next.name)
    } else {
        format!("the most of all; next is {} with {}", next.name, told(next))
    };
    format!(
        "{} is played: by its estimate and width its reward may be {}, {next}.",
        first.name,
        told(first)
    )
}

/// Between estimates and the most that costs may be.
fn moderate(detail: &EpochDetail) -> Vec<String> {
    // On the unit scale this may be the rounding of a sum.
    let is_above = |limit: &LimitHere| limit.slack.is_some_and(|slack| slack < 0.0) && !limit.tight;
    if detail.limits.iter().any(is_above) {
        return vec![format!(
            "With costs taken for higher than estimated, by the spec's caution, no strategy keeps every limit: the one that exceeds \
             them least is played, as it may keep them all.{}",
            gives(detail)
        )];
    }
    let best = format!(
        "Of the strategies that keep every limit while costs are taken for higher than estimated, by the spec's caution, the one that \
         may have the largest {} is played.{}",
        reward(detail),
        gives(detail)
    );
    vec![best, binding(detail)]
}

/// The optimist's program.
fn best(detail: &EpochDetail) -> String {
    let (what, gives) = match detail.entry.rule {
        // What it gives is said of what is played, once the safe strategy has its share.
        Some(Rule::Mix | Rule::Plan) => ("the candidate", String::new()),
        _ => ("played", gives(detail)),
    };
    format!(
        "Of the strategies that may keep every limit, the one that may have the largest {} is {what}.{gives}",
        reward(detail)
    )
}

fn reward(detail: &EpochDetail) -> &str {
    let reward = detail.expected.first();
    reward.map_or("reward", |reward| &reward.quantity)
}

fn gives(detail: &EpochDetail) -> String {
    let reward = detail.expected.first();
    reward.map_or(String::new(), |reward| {
        format!(" By the estimates it gives {}.", amount(reward.value))
    })
}

fn planned(detail: &EpochDetail) -> String {
    format!(
        "Of the strategies that are sure to keep every limit, the one that may have the largest {} is played.{} The safe strategy \
         has {} of it.",
        reward(detail),
        gives(detail),
        share(detail.sigma)
    )
}

fn mixed(detail: &EpochDetail) -> String {
    if detail.sigma == 0.0 {
        return "It is sure to keep every limit, even if each cost is the most that its estimates allow: so it is played as it \
                is."
            .into();
    }
    format!(
        "At the most that its estimates allow it would exceed a limit: so the safe strategy takes {} of its place, no more than is \
         needed.{}",
        share(detail.sigma),
        gives(detail).replace("it gives", "what is played gives")
    )
}

fn binding(detail: &EpochDetail) -> String {
    let tight: Vec<String> = detail
        .limits
        .iter()
        .filter(|limit| limit.tight)
        .map(|limit| format!("{} (threshold {})", limit.name, amount(limit.threshold)))
        .collect();
    match tight.len() {
        0 => "No limit binds: with higher ones the same would be played.".into(),
        1 => format!("This limit binds: {}.", tight[0]),
        _ => format!("These limits bind: {}.", listed(&tight)),
    }
}

fn infeasible(detail: &EpochDetail) -> Vec<String> {
    let instead = match detail.policy {
        Policy::Hard => "So the safe strategy is played.",
        _ => "What is played is the strategy whose largest excess is the least.",
    };
    let mut sentences =
        vec!["By the estimates no strategy keeps all limits, even if each cost is the least that they allow.".to_owned()];
    let exceeded = detail.limits.iter().filter(|limit| limit.exceeded);
    sentences.extend(exceeded.map(excess));
    sentences.push(instead.into());
    sentences
}

fn excess(limit: &LimitHere) -> String {
    let least = limit.least.unwrap_or(limit.threshold);
    format!(
        "{} cannot be kept: where the largest excess is least it costs at least {}, which is {} above its threshold of {}.",
        limit.name,
        amount(least),
        amount(least - limit.threshold),
        amount(limit.threshold)
    )
}

/// What is different from the epoch before.
fn changed(detail: &EpochDetail) -> String {
    let changes = &detail.entry.changes;
    let texts: Vec<String> = changes
        .iter()
        .take(TOLD_MAX)
        .map(|change| format!("{} {}", change.name, change.text()))
        .collect();
    match changes.len().checked_sub(TOLD_MAX) {
        _ if detail.entry.epoch == 0 => "It is the first epoch.".into(),
        _ if changes.is_empty() => "The strategy is that of the epoch before.".into(),
        None | Some(0) => format!("Against the epoch before: {}.", listed(&texts)),
        Some(more) => format!(
            "Against the epoch before: {}, and {}.",
            texts.join(", "),
            counted(more as u64, "smaller change", "smaller changes")
        ),
    }
}

/// Which estimates were made for it.
fn made(detail: &EpochDetail) -> Option<String> {
    let made: Vec<&EstimateHere> = made_here(detail).collect();
    if made.is_empty() {
        return (detail.entry.kind == Kind::Estimate)
            .then(|| "No estimate was made for it.".into());
    }
    let number = counted(made.len() as u64, "estimate was", "estimates were");
    if made.len() > TOLD_MAX {
        let same = made
            .iter()
            .filter(|made| made.previous == Some(made.estimate))
            .count();
        let same = if same == made.len() {
            ", and not one of them changed"
        } else {
            ""
        };
        return Some(format!("{number} made at its start{same}."));
    }
    let texts: Vec<String> = made.iter().map(|made| told(made)).collect();
    Some(format!("{number} made at its start: {}.", listed(&texts)))
}

fn made_here(detail: &EpochDetail) -> impl Iterator<Item = &EstimateHere> {
    let here = detail.entry.epoch;
    detail
        .estimates
        .iter()
        .filter(move |estimate| estimate.made_in == here)
}

fn told(made: &EstimateHere) -> String {
    let before = made.previous.map_or(String::new(), |previous| {
        if previous == made.estimate {
            ", as before".into()
        } else {
            format!(", before {}", amount(previous))
        }
    });
    format!(
        "{} of {} is {} from {} rounds{before}",
        made.quantity,
        made.name,
        amount(made.estimate),
        whole(made.count)
    )
}

/// Where another run is likeliest to differ.
fn nearest(detail: &EpochDetail) -> Option<String> {
    let near = |estimate: &EstimateHere| estimate.to_edge_cells;
    let all = made_here(detail).filter(|estimate| near(estimate).is_some());
    let nearest = all.min_by(|one, other| {
        let distance = |estimate: &EstimateHere| near(estimate).unwrap_or(f64::INFINITY);
        distance(one).total_cmp(&distance(other))
    })?;
    let (quantity, name) = (&nearest.quantity, &nearest.name);
    let (distance, part) = (amount(nearest.to_edge?), share(near(nearest)?));
    let more = made_here(detail).count() > 1;
    let of_all = if more {
        ": of the means behind these estimates it is the nearest to an edge"
    } else {
        ""
    };
    Some(format!(
        "Another run's mean of {quantity} of {name} must differ by {distance} ({part} of a cell) to be rounded differently{of_all}."
    ))
}
