//! What `debora run` says.

use crate::lab::metrics::Run;
use crate::measure::answer::{
    Answer, AnswerTable, Sentence, Tone, gaps as of_world, look_test, picked, row_for_each,
};
use crate::measure::words::{amount, counted, whole};
use crate::measure::{FirstRun, SpecText, WorldGap};
use crate::problem::Problem;

/// One run and what was seen of it; `means` are the world's, per quantity and action.
pub fn run(
    spec: &SpecText,
    means: &[Vec<f64>],
    run: &Run,
    seen: &FirstRun,
    warnings: &[String],
    gaps: &[WorldGap],
) -> Answer {
    let problem = spec.problem();
    let mut sentences = vec![
        headline(spec.name(), problem, run),
        Sentence::plain(regret(problem, run)),
    ];
    // Of the tests before it nothing followed.
    let passed = seen.tests.iter().find(|test| test.passed);
    sentences.extend(passed.map(|test| Sentence::plain(look_test(problem, test))));
    let pick = seen.pick.as_ref();
    sentences.extend(pick.map(|pick| Sentence::plain(picked(problem, pick))));
    for cost in 0..run.violations.len() {
        sentences.push(Sentence::plain(cost_kept(problem, means, run, cost)));
    }
    let watched = (1..problem.quantities()).filter(|q| !problem.limited().contains(q));
    for quantity in watched {
        let average = amount(average(problem, means, run, quantity));
        let name = &problem.quantity(quantity).name;
        sentences.push(Sentence::plain(format!(
            "{name}: {average} on average; watched only."
        )));
    }
    if run.regret.is_some_and(|regret| regret < 0.0) {
        sentences.push(Sentence::plain(
            "Regret is negative: it earned more than any safe strategy can, by exceeding thresholds.",
        ));
    }
    if !run.violations.is_empty() {
        let rounds = whole(run.unsafe_rounds);
        sentences.push(Sentence::plain(format!(
            "Rounds whose strategy was not safe: {rounds}."
        )));
    }
    if run.infeasible_epochs > 0 {
        let epochs = counted(run.infeasible_epochs, "epoch", "epochs");
        sentences.push(Sentence::of(
            Tone::Alarm,
            format!("In {epochs} the estimates left no strategy within the thresholds."),
        ));
    }
    let mut answer = Answer::with_warnings(warnings);
    answer.paragraph(sentences);
    answer.paragraph(of_world::sentences(gaps).into_iter().map(Sentence::plain));
    answer.table(actions(problem, run));
    // With the digest a reader can tell whether two runs decided alike without comparing traces.
    answer.note(format!("decisions {}", run.digest.as_deref().unwrap_or("")));
    answer
}

fn headline(name: &str, problem: &Problem, run: &Run) -> Sentence {
    let rest = format!(
        ": {} rounds in {}, average {} {}.",
        whole(run.rounds),
        counted(run.epochs, "epoch", "epochs"),
        problem.quantity(0).name,
        amount(run.reward_mean)
    );
    Sentence::of(Tone::Strong, name).and(Tone::Plain, rest)
}

fn regret(problem: &Problem, run: &Run) -> String {
    let Some(regret) = run.regret else {
        return "No strategy is safe in this world, so there is no regret to speak of.".into();
    };
    let regret = regret * problem.quantity(0).range.span();
    let known = run.lost_at_most.map_or(String::new(), |most| {
        let most = most * problem.quantity(0).range.span();
        format!(
            "; by the run's own record at most {} was lost",
            amount(most)
        )
    });
    format!(
        "Regret {} in all, {} a round{known}.",
        amount(regret),
        amount(regret / run.rounds as f64)
    )
}

/// A cost's average beside its threshold, in the user's units.
fn cost_kept(problem: &Problem, means: &[Vec<f64>], run: &Run, cost: usize) -> String {
    let number = problem.limited()[cost];
    let (quantity, threshold) = problem.limits().nth(cost).expect("a limited cost");
    let rounds = run.rounds as f64;
    let average = average(problem, means, run, number);
    // Only rounds above the threshold count: those below do not make up for them.
    let excess = run.violations[cost] * quantity.range.span() / rounds;
    format!(
        "{}: {} on average, threshold {}; the excess over it, averaged over all rounds, is {}.",
        quantity.name,
        amount(average),
        amount(threshold),
        amount(excess)
    )
}

/// What a cost was on average, in the user's units.
fn average(problem: &Problem, means: &[Vec<f64>], run: &Run, quantity: usize) -> f64 {
    // From the true means, as the violation is: what was drawn would add noise that no limit is about.
    let played = means[quantity]
        .iter()
        .zip(&run.counts)
        .map(|(mean, &count)| mean * count as f64);
    let range = problem.quantity(quantity).range;
    range.to_user(played.sum::<f64>() / run.rounds as f64)
}

fn actions(problem: &Problem, run: &Run) -> AnswerTable {
    let played = problem.actions().iter().zip(&run.counts);
    row_for_each(played.zip(&run.final_strategy))
        .words("action", |((name, _), _)| *name)
        .numbers("rounds", |((_, count), _)| **count)
        .shares("last strategy", |(_, share)| **share)
        .table()
}
