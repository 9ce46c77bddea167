//! What `debora run` says.

use crate::job::Loaded;
use crate::job::words::{Ink, amount, counted, percent, table, whole};
use crate::lab::metrics::Run;

/// One run; `means` are the world's, per quantity and action.
pub fn run(
    loaded: &Loaded,
    means: &[Vec<f64>],
    run: &Run,
    warnings: &[String],
    ink: Ink,
) -> String {
    let problem = &loaded.spec.problem;
    let reward = problem.quantity(0);
    let mut text: String = warnings
        .iter()
        .map(|warning| format!("{}\n\n", ink.alarm(warning)))
        .collect();
    text += &format!(
        "{}: {} rounds in {}, average {} {}.\n",
        ink.strong(loaded.name()),
        whole(run.rounds),
        counted(run.epochs, "epoch", "epochs"),
        reward.name,
        amount(run.reward_mean)
    );
    text += &match run.regret {
        None => "No strategy is safe in this world, so there is no regret to speak of.\n".into(),
        Some(regret) => {
            let regret = regret * reward.range.span();
            format!(
                "Regret {} in all, {} a round.\n",
                amount(regret),
                amount(regret / run.rounds as f64)
            )
        }
    };
    for (cost, sum) in run.violations.iter().enumerate() {
        let quantity = problem.quantity(cost + 1);
        let excess = sum * quantity.range.span() / run.rounds as f64;
        let played = means[cost + 1]
            .iter()
            .zip(&run.counts)
            .map(|(mean, &count)| mean * count as f64);
        let average = quantity
            .range
            .to_user(played.sum::<f64>() / run.rounds as f64);
        text += &format!(
            "{}: {} on average, threshold {}; rounds above it exceed it by {} per round of the run.\n",
            quantity.name,
            amount(average),
            amount(quantity.range.to_user(problem.thresholds()[cost])),
            amount(excess)
        );
    }
    if run.regret.is_some_and(|regret| regret < 0.0) {
        text += "Regret is negative: it earned more than any safe strategy can, by exceeding thresholds.\n";
    }
    if !run.violations.is_empty() {
        text += &format!(
            "Rounds whose strategy was not safe: {}.\n",
            whole(run.unsafe_rounds)
        );
    }
    if run.infeasible_epochs > 0 {
        let epochs = counted(run.infeasible_epochs, "epoch", "epochs");
        text += &format!(
            "{}\n",
            ink.alarm(&format!(
                "In {epochs} the estimates left no strategy within the thresholds."
            ))
        );
    }
    let actions = problem
        .actions()
        .iter()
        .zip(&run.counts)
        .zip(&run.final_strategy);
    let row = |((name, count), x): ((&String, &u64), &f64)| {
        vec![name.clone(), whole(*count), percent(*x)]
    };
    let rows: Vec<Vec<String>> = actions.map(row).collect();
    text += &format!("\n{}", table(&["action", "rounds", "last strategy"], &rows));
    text += &ink.faint(&format!(
        "  decisions {}\n",
        run.digest.as_deref().unwrap_or("")
    ));
    text
}
