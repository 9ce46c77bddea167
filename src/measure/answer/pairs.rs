//! What `debora replicate` and `debora compare` say.

use crate::Policy;
use crate::lab::metrics::{BEST_TOLERANCE, Spread};
use crate::lab::replicate::Pair;
use crate::lab::summary::{Broken, Promise, Summary};
use crate::measure::answer::{Answer, AnswerCell, AnswerTable, Sentence, Tone, gaps, row_for_each};
use crate::measure::words::{amount, counted, listed, percent, whole};
use crate::measure::{DEBORA, Findings, MeasuredVerb, Part, SpecText};
use crate::problem::Problem;

/// A whole measurement.
pub fn measured(part: &Part, findings: &Findings) -> Answer {
    match part.measurement.verb {
        MeasuredVerb::Replicate => replicate(part, findings),
        MeasuredVerb::Compare => compare(part, findings),
    }
}

pub(super) fn broken(broken: &Broken) -> Sentence {
    let promised = percent(broken.promised);
    let limit = percent(broken.limit);
    // The first promise is about a share of pairs that must be large, the others about one that must be small.
    let sentence = if broken.promise == Promise::Identical {
        format!(
            "BROKEN: identical decisions are promised in {promised} of pairs or more, and with 99.9 % confidence are at most {limit}."
        )
    } else {
        format!(
            "BROKEN: \"{}\" may fail in {promised} of runs at most, and with 99.9 % confidence fails in {limit} or more.",
            broken.promise.name()
        )
    };
    Sentence::of(Tone::Alarm, sentence)
}

fn replicate(part: &Part, findings: &Findings) -> Answer {
    let spec = &part.measurement.spec;
    let (player, summary) = &findings.summaries[0];
    let mut sentences: Vec<Sentence> = findings.broken.iter().map(broken).collect();
    sentences.push(named(spec, identical(player, summary)));
    sentences.extend(diverged(summary).map(Sentence::plain));
    if player == DEBORA {
        sentences.extend(committed(spec, summary).map(Sentence::plain));
    }
    sentences.extend(conclusion(spec.problem(), summary).map(Sentence::plain));
    let mut answer = Answer::with_warnings(&part.warnings);
    answer.paragraph(sentences);
    answer.paragraph(gaps::sentences(&part.gaps).into_iter().map(Sentence::plain));
    // Per round, not in all: totals of a billion rounds say little to anyone.
    answer.table(per_round(spec, &part.pairs.players[0], summary));
    answer_notes(&mut answer, findings);
    // Only hard limits promise something of single rounds.
    if spec.problem().policy() == Policy::Hard && player == DEBORA {
        answer.paragraph([Sentence::plain(format!(
            "Runs with an unsafe round: {} of {}; promised at most {}.",
            whole(summary.unsafe_runs),
            counted(summary.runs, "run", "runs"),
            percent(spec.problem().delta())
        ))]);
    }
    answer
}

/// The experiment's name, and the answer.
fn named(spec: &SpecText, answer: String) -> Sentence {
    // The name stays plain, as the answer is what must stand out.
    Sentence::plain(format!("{}: ", spec.name())).and(Tone::Strong, answer)
}

/// What players say of their runs, each under its name.
fn answer_notes(answer: &mut Answer, findings: &Findings) {
    for (name, summary) in &findings.summaries {
        if let Some(note) = &summary.note {
            answer.note(format!("{name}: {note}"));
        }
    }
}

fn identical(player: &str, summary: &Summary) -> String {
    let found = format!(
        "identical in {} of {}: {}, 95 % interval {}",
        whole(summary.identical),
        counted(summary.pairs, "pair", "pairs"),
        percent(summary.identical_rate),
        interval(summary),
    );
    // Only debora promises anything.
    if player == DEBORA {
        format!("{found}; promised {}", percent(summary.promised))
    } else {
        format!("{player} is {found}")
    }
}

/// What the share of identical pairs is known to lie in.
pub(super) fn interval(summary: &Summary) -> String {
    // One sign after both ends would be read as one after the second.
    let [low, high] = summary
        .interval
        .map(|end| percent(end).trim_end_matches(" %").to_owned());
    format!("{low} to {high}")
}

/// The epoch in which most pairs diverged.
fn diverged(summary: &Summary) -> Option<String> {
    let (epoch, pairs) = summary
        .first_split
        .iter()
        .max_by_key(|(_, pairs)| **pairs)?;
    let diverged = summary.pairs - summary.identical;
    let counted = counted(diverged, "pair", "pairs");
    Some(match (diverged, *pairs) {
        (1, _) => format!("One pair diverged, in epoch {epoch}."),
        (2, 2) => format!("Both pairs that diverged did so in epoch {epoch}."),
        (all, most) if all == most => {
            format!("All {counted} that diverged did so in epoch {epoch}.")
        }
        (_, most) => format!(
            "Of the {counted} that diverged, {} did so in epoch {epoch}.",
            whole(most)
        ),
    })
}

/// How many runs committed to an action before their trial was over; none where no run can.
fn committed(spec: &SpecText, summary: &Summary) -> Option<String> {
    spec.plan.trial.as_ref()?.looks.first()?;
    Some(format!(
        "Runs that committed to an action clearly ahead: {} of {}.",
        whole(summary.committed),
        whole(summary.runs)
    ))
}

/// What runs conclude, whatever their keys: where data are too few the final choice comes from the key.
fn conclusion(problem: &Problem, summary: &Summary) -> Option<String> {
    let found = &summary.same_conclusion;
    let same = found.other_keys.map(|rate| {
        format!(
            "Two runs with different keys end at the same strategy in {} of cases",
            percent(rate)
        )
    });
    let best = found.best.map(|rate| match problem.policy() {
        Policy::Free => format!("{} of runs end at the best action", percent(rate)),
        _ => format!(
            "{} of runs end within {} of the best reward and within the limits",
            percent(rate),
            percent(BEST_TOLERANCE)
        ),
    });
    match (same, best) {
        (Some(same), Some(best)) => Some(format!("{same}; {best}.")),
        (Some(one), None) | (None, Some(one)) => Some(one + "."),
        (None, None) => None,
    }
}

/// What a round cost on average, run by run, in the user's units: regret, and each cost's excess over its threshold.
fn per_round(
    spec: &SpecText,
    (player, pairs): &(String, Vec<Pair>),
    summary: &Summary,
) -> AnswerTable {
    let problem = spec.problem();
    // The bounds are those of debora's plan.
    let bound = |bound: Option<f64>| bound.filter(|_| player == DEBORA);
    let rounds = problem.horizon() as f64;
    let mut rows = Vec::new();
    if let Some(regret) = &summary.regret {
        let reward = problem.quantity(0);
        let name = format!("regret in {}", reward.name);
        let scale = reward.range.span() / rounds;
        rows.push(SpreadRow {
            name,
            spread: regret.spread,
            bound: bound(regret.bound),
            scale,
        });
    }
    for (cost, (quantity, threshold)) in problem.limits().enumerate() {
        let threshold = amount(threshold);
        let name = format!("{}, excess over {threshold}", quantity.name);
        let scale = quantity.range.span() / rounds;
        rows.extend(violations(pairs, cost).map(|spread| SpreadRow {
            name,
            spread,
            // It is on the largest violation, so it holds for each cost.
            bound: bound(spec.plan.violation_bound),
            scale,
        }));
    }
    row_for_each(rows)
        .words("per round, over runs", |row| row.name.clone())
        .numbers("mean", |row| row.scale * row.spread.mean)
        .numbers("5 %", |row| row.scale * row.spread.p05)
        .numbers("median", |row| row.scale * row.spread.median)
        .numbers("95 %", |row| row.scale * row.spread.p95)
        .numbers("bound", |row| {
            AnswerCell::or_none(row.bound.map(|bound| row.scale * bound))
        })
        .table()
}

/// What all runs of a player cost, as totals; `scale` makes them a round's, in the user's units.
struct SpreadRow {
    name: String,
    spread: Spread,
    bound: Option<f64>,
    scale: f64,
}

/// A cost's total excess over its threshold, run by run, in shares of its range.
fn violations(pairs: &[Pair], cost: usize) -> Option<Spread> {
    let runs = pairs.iter().flat_map(|pair| &pair.runs);
    Spread::of(runs.map(|run| run.violations[cost]))
}

fn compare(part: &Part, findings: &Findings) -> Answer {
    let spec = &part.measurement.spec;
    let problem = spec.problem();
    let own = &findings.summaries[0].1;
    let mut sentences: Vec<Sentence> = findings.broken.iter().map(broken).collect();
    sentences.push(named(
        spec,
        format!(
            "debora is identical in {} of pairs, with a mean regret of {}",
            percent(own.identical_rate),
            amount(mean_regret(problem, own))
        ),
    ));
    sentences.extend(best_rival(problem, &findings.summaries).map(Sentence::plain));
    sentences.extend(left_out(problem, &findings.summaries).map(Sentence::plain));
    let mut answer = Answer::with_warnings(&part.warnings);
    answer.paragraph(sentences);
    answer.paragraph(gaps::sentences(&part.gaps).into_iter().map(Sentence::plain));
    answer.table(players(part, findings));
    for column in legend(problem) {
        answer.note(column);
    }
    answer_notes(&mut answer, findings);
    answer
}

/// What the columns are.
fn legend(problem: &Problem) -> Vec<String> {
    let mut columns = vec![
        "identical: pairs whose runs took the same decisions in every round".to_owned(),
        "regret: against the best safe strategy, over all rounds, mean of the runs".into(),
    ];
    if !problem.thresholds().is_empty() {
        columns.push("name>limit: excess of the rounds above the limit, per round of a run".into());
        columns.push("unsafe: runs with a round whose strategy breaks a limit".into());
    }
    columns.push("epochs: stretches of one strategy in a run, mean".into());
    columns
}

/// In the reward's units, over all rounds; infinite where no strategy is safe.
fn mean_regret(problem: &Problem, summary: &Summary) -> f64 {
    let span = problem.quantity(0).range.span();
    summary
        .regret
        .as_ref()
        // Infinite, so that it loses against every player that has one, and is shown as none.
        .map_or(f64::INFINITY, |regret| regret.spread.mean * span)
}

/// The rival with the least regret, if debora's is larger.
fn best_rival(problem: &Problem, summaries: &[(String, Summary)]) -> Option<String> {
    let (best, least) = summaries
        .iter()
        .filter(|(name, summary)| name == DEBORA || is_fair(problem, summary))
        .map(|(name, summary)| (name, mean_regret(problem, summary)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    (best != DEBORA).then(|| format!("The least regret is that of {best}: {}.", amount(least)))
}

/// Under hard limits only a player that kept every round safe is in the race: regret is easily saved by breaking them.
fn is_fair(problem: &Problem, summary: &Summary) -> bool {
    problem.policy() != Policy::Hard || summary.unsafe_runs == 0
}

/// The players that are not in the race for the least regret.
fn left_out(problem: &Problem, summaries: &[(String, Summary)]) -> Option<String> {
    let unsafe_ones: Vec<String> = summaries
        .iter()
        .filter(|(name, summary)| name != DEBORA && !is_fair(problem, summary))
        .map(|(name, _)| name.clone())
        .collect();
    let verb = if unsafe_ones.len() == 1 {
        "was"
    } else {
        "were"
    };
    (!unsafe_ones.is_empty()).then(|| {
        format!(
            "{} {verb} unsafe in some run, and their regret is not compared: limits are hard.",
            listed(&unsafe_ones)
        )
    })
}

/// Regret in all, as players differ by orders of magnitude; each cost's mean excess a round, in its own units.
fn players(part: &Part, findings: &Findings) -> AnswerTable {
    let problem = part.measurement.spec.problem();
    let costs = problem.thresholds().len();
    let players = findings.summaries.iter().zip(&part.pairs.players);
    let mut table = row_for_each(players)
        .words("player", |((name, _), _)| name)
        .shares("identical", |((_, summary), _)| summary.identical_rate)
        .numbers("regret", |((_, summary), _)| mean_regret(problem, summary));
    for (cost, (quantity, threshold)) in problem.limits().enumerate() {
        let threshold = amount(threshold);
        let scale = quantity.range.span() / problem.horizon() as f64;
        table = table.numbers(
            format!("{}>{threshold}", quantity.name),
            move |(_, (_, pairs))| violations(pairs, cost).map(|spread| spread.mean * scale),
        );
    }
    table
        // Without limits no run can be unsafe.
        .when(costs > 0, |table| {
            table.shares("unsafe", |((_, summary), _)| summary.unsafe_share())
        })
        .numbers("epochs", |((_, summary), _)| summary.epochs_mean)
        .table()
}
