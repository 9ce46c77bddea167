//! What `debora replicate` and `debora compare` say.

use crate::Policy;
use crate::job::words::{Ink, amount, counted, percent, table, whole};
use crate::job::{DEBORA, Findings, Loaded, Part};
use crate::lab::metrics::Spread;
use crate::lab::replicate::Pair;
use crate::lab::summary::{Broken, Promise, Summary};

/// A whole measurement.
pub fn measured(part: &Part, findings: &Findings, ink: Ink) -> String {
    if part.job.verb == "compare" {
        compare(part, findings, ink)
    } else {
        replicate(part, findings, ink)
    }
}

fn broken_words(broken: &[Broken], ink: Ink) -> String {
    let line = |broken: &Broken| {
        let (promised, limit) = (percent(broken.promised), percent(broken.limit));
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
        format!("{}\n", ink.alarm(&sentence))
    };
    broken.iter().map(line).collect()
}

fn replicate(part: &Part, findings: &Findings, ink: Ink) -> String {
    let Findings {
        loaded,
        summaries,
        broken,
    } = findings;
    let (problem, summary) = (&loaded.spec.problem, &summaries[0].1);
    let [low, high] = summary
        .interval
        .map(|limit| percent(limit).trim_end_matches(" %").to_owned());
    let mut text: String = part
        .warnings
        .iter()
        .map(|warning| format!("{}\n\n", ink.alarm(warning)))
        .collect();
    text += &broken_words(broken, ink);
    let answer = format!(
        "identical in {} of {}: {}, 95 % interval {low} to {high}; promised {}",
        whole(summary.identical),
        counted(summary.pairs, "pair", "pairs"),
        percent(summary.identical_rate),
        percent(summary.promised)
    );
    text += &format!("{}: {}\n", loaded.name(), ink.strong(&answer));
    if let Some((epoch, pairs)) = summary.first_split.iter().max_by_key(|(_, pairs)| **pairs) {
        let parted = counted(summary.pairs - summary.identical, "pair", "pairs");
        text += &format!(
            "Of the {parted} that parted, {} did so in epoch {epoch}.\n",
            whole(*pairs)
        );
    }
    text += &format!("\n{}", per_round(loaded, &part.shard.players[0].1, summary));
    if problem.policy() == Policy::Hard {
        let runs = counted(summary.runs, "run", "runs");
        text += &format!(
            "\nRuns with an unsafe round: {} of {runs}; promised at most {}.\n",
            whole(summary.unsafe_runs),
            percent(problem.delta())
        );
    }
    text
}

/// What a round cost on average, run by run, in the user's units: regret, and each cost's excess over its threshold.
fn per_round(loaded: &Loaded, pairs: &[Pair], summary: &Summary) -> String {
    let problem = &loaded.spec.problem;
    let rounds = problem.horizon() as f64;
    let row = |name: String, spread: &Spread, bound: Option<f64>, scale: f64| {
        let numbers = [spread.mean, spread.p05, spread.median, spread.p95]
            .map(|number| amount(number * scale));
        let bound = bound.map_or("none".into(), |bound| amount(bound * scale));
        [vec![name], numbers.to_vec(), vec![bound]].concat()
    };
    let mut rows = Vec::new();
    if let Some(regret) = &summary.regret {
        let reward = problem.quantity(0);
        rows.push(row(
            format!("regret in {}", reward.name),
            &regret.spread,
            regret.bound,
            reward.range.span() / rounds,
        ));
    }
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        let quantity = problem.quantity(cost + 1);
        let excess = Spread::of(
            pairs
                .iter()
                .flat_map(|pair| &pair.runs)
                .map(|run| run.violations[cost]),
        );
        let name = format!(
            "{}, excess over {}",
            quantity.name,
            amount(quantity.range.to_user(*threshold))
        );
        rows.extend(excess.map(|spread| {
            row(
                name,
                &spread,
                loaded.plan.violation_bound,
                quantity.range.span() / rounds,
            )
        }));
    }
    table(
        &[
            "per round, over runs",
            "mean",
            "5 %",
            "median",
            "95 %",
            "bound",
        ],
        &rows,
    )
}

fn compare(part: &Part, findings: &Findings, ink: Ink) -> String {
    let Findings {
        loaded,
        summaries,
        broken,
    } = findings;
    let (warnings, players) = (&part.warnings, &part.shard.players);
    let problem = &loaded.spec.problem;
    let span = problem.quantity(0).range.span();
    let mut text: String = warnings
        .iter()
        .map(|warning| format!("{}\n\n", ink.alarm(warning)))
        .collect();
    text += &broken_words(broken, ink);
    let regret = |summary: &Summary| {
        summary
            .regret
            .as_ref()
            .map_or(f64::INFINITY, |regret| regret.spread.mean * span)
    };
    // Under hard limits only who kept every round safe is in the race.
    let fair = |summary: &Summary| problem.policy() != Policy::Hard || summary.unsafe_runs == 0;
    let (best, least) = summaries
        .iter()
        .filter(|(name, summary)| name == DEBORA || fair(summary))
        .map(|(name, summary)| (name, regret(summary)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("a player");
    let own = &summaries[0].1;
    text += &format!(
        "{}: {}\n",
        loaded.name(),
        ink.strong(&format!(
            "debora is identical in {} of pairs, with a mean regret of {}",
            percent(own.identical_rate),
            amount(regret(own))
        ))
    );
    if best != DEBORA {
        text += &format!("The least regret is that of {best}: {}.\n", amount(least));
    }
    // Regret in all, as players differ by orders of magnitude; each cost's mean excess a round, in its own units.
    let costs = 0..problem.thresholds().len();
    let excess = |pairs: &[Pair], cost: usize| {
        let runs = pairs.iter().flat_map(|pair| &pair.runs);
        let scale = problem.quantity(cost + 1).range.span() / problem.horizon() as f64;
        Spread::of(runs.map(|run| run.violations[cost] * scale))
            .map_or(String::new(), |spread| amount(spread.mean))
    };
    let row = |((name, summary), (_, pairs)): (&(String, Summary), &(String, Vec<Pair>))| {
        let mut row = vec![
            name.clone(),
            percent(summary.identical_rate),
            amount(regret(summary)),
        ];
        row.extend(costs.clone().map(|cost| excess(pairs, cost)));
        if !costs.is_empty() {
            row.push(percent(summary.unsafe_runs as f64 / summary.runs as f64));
        }
        row.push(amount(summary.epochs_mean));
        row
    };
    let rows: Vec<Vec<String>> = summaries.iter().zip(players).map(row).collect();
    let threshold = |cost: usize| {
        amount(
            problem
                .quantity(cost + 1)
                .range
                .to_user(problem.thresholds()[cost]),
        )
    };
    let above = costs
        .clone()
        .map(|cost| format!("{}>{}", problem.quantity(cost + 1).name, threshold(cost)));
    let mut heading = vec!["player".to_owned(), "identical".into(), "regret".into()];
    heading.extend(above);
    heading.extend(
        ["unsafe", "epochs"]
            .into_iter()
            .skip(usize::from(costs.is_empty()))
            .map(str::to_owned),
    );
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    text + &format!("\n{}", table(&heading, &rows))
}
