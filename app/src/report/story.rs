//! What happened over time, for figures: the first run's strategies and estimates, and all runs' curves.

use debora::job::{Loaded, Story};
use debora::lab::metrics::{Run, Spread};

use crate::report::plots::{self, Figure, Series};

/// All figures of a report on these runs.
pub fn figures(story: &Story, loaded: &Loaded, runs: &[Run], checkpoints: &[u64]) -> Vec<Figure> {
    let problem = &loaded.spec.problem;
    let span = problem.quantity(0).range.span();
    let mut figures = Vec::new();
    let band = if runs.len() > 1 {
        "median of all runs; band: 5 % to 95 %; dashed: the bound. Not drawn where it is 0 or less"
    } else {
        "dashed: the bound. Not drawn where it is 0 or less"
    };
    let regret: Vec<&Vec<f64>> = runs
        .iter()
        .map(|run| &run.regret_curve)
        .filter(|curve| !curve.is_empty())
        .collect();
    let bound = |violation: bool| -> Vec<(f64, f64)> {
        let at = |&round: &u64| {
            let (regret, costs) = loaded.plan.bounds_at(round);
            (
                round as f64,
                if violation {
                    costs.unwrap_or(0.0)
                } else {
                    regret * span
                },
            )
        };
        checkpoints.iter().map(at).collect()
    };
    let series = |curves: &[&Vec<f64>], scale: f64, violation: bool| {
        vec![
            middle("measured", curves, checkpoints, scale),
            Series {
                name: "bound".into(),
                points: bound(violation),
                band: None,
                dashed: true,
            },
        ]
    };
    if !regret.is_empty() {
        let label = format!("regret ({})", problem.quantity(0).name);
        figures.extend(plots::against_rounds(
            "regret",
            format!("Regret: {band}."),
            &label,
            &series(&regret, span, false),
        ));
    }
    let violation: Vec<&Vec<f64>> = runs.iter().map(|run| &run.violation_curve).collect();
    if runs.iter().any(|run| run.violation > 0.0) {
        let caption = format!("Violation, in shares of a cost's range: {band}.");
        figures.extend(plots::against_rounds(
            "violation",
            caption,
            "violation",
            &series(&violation, 1.0, true),
        ));
    }
    figures.push(strategy_figure(story, problem.actions()));
    figures.extend(estimate_figures(story, loaded));
    figures
}

/// The strategy against the logarithm of the round, each stretch drawn from its first to its last round.
fn strategy_figure(story: &Story, actions: &[String]) -> Figure {
    let (mut rounds, mut strategies) = (Vec::new(), Vec::new());
    for (first, length, strategy) in &story.strategies {
        for round in [*first as f64, (first + length) as f64 - 0.01] {
            rounds.push(round.log10());
            strategies.push(strategy.clone());
        }
    }
    plots::strategy_over_time(actions, &rounds, &strategies)
}

fn estimate_figures(story: &Story, loaded: &Loaded) -> Vec<Figure> {
    const NAMES: [&str; 6] = [
        "estimates-reward",
        "estimates-cost-1",
        "estimates-cost-2",
        "estimates-cost-3",
        "estimates-cost-4",
        "estimates-cost-5",
    ];
    let problem = &loaded.spec.problem;
    let quantities = problem.quantities_estimated().min(NAMES.len());
    let figure = |quantity: usize| {
        let range = problem.quantity(quantity).range;
        let interval = |action: usize| {
            let found = story.estimate(action, quantity);
            let (low, middle, high) = found.map_or((0.0, 0.5, 1.0), |e| {
                (e.estimate - e.width, e.estimate, e.estimate + e.width)
            });
            [low, middle, high].map(|unit| range.to_user(unit.clamp(0.0, 1.0)))
        };
        let intervals: Vec<[f64; 3]> = (0..problem.actions().len()).map(interval).collect();
        let threshold = quantity
            .checked_sub(1)
            .map(|cost| range.to_user(problem.thresholds()[cost]));
        plots::estimates(
            NAMES[quantity],
            &problem.quantity(quantity).name,
            problem.actions(),
            &intervals,
            threshold,
        )
    };
    (0..quantities).map(figure).collect()
}

/// The median over runs with its band.
pub fn middle(name: &str, curves: &[&Vec<f64>], checkpoints: &[u64], scale: f64) -> Series {
    let spread =
        |place: usize| Spread::of(curves.iter().map(|curve| curve[place] * scale)).expect("a run");
    let spreads: Vec<Spread> = (0..checkpoints.len()).map(spread).collect();
    let points = checkpoints
        .iter()
        .zip(&spreads)
        .map(|(&round, spread)| (round as f64, spread.median))
        .collect();
    let band = (
        spreads.iter().map(|spread| spread.p05).collect(),
        spreads.iter().map(|spread| spread.p95).collect(),
    );
    Series {
        name: name.into(),
        points,
        band: (curves.len() > 1).then_some(band),
        dashed: false,
    }
}
