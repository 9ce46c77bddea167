//! Which figures a report has: the first run's strategies and estimates, all runs' curves, or the players' beside each other.

use debora::lab::metrics::{Run, Spread, checkpoints};
use debora::lab::observed::{MISS, interval_at_any_time};
use debora::lab::replicate::Pair;
use debora::measure::{FirstRun, MeasuredVerb, Part, SpecText};

use crate::report::plots::{self, DrawnMean, Figure, Series};

/// The figures of a whole measurement.
pub fn of_part(part: &Part, promised: f64) -> Vec<Figure> {
    match (part.measurement.verb, &part.first_run) {
        // A comparison is about the players' curves; the first run would be debora's alone.
        (MeasuredVerb::Compare, _) => of_players(part),
        (MeasuredVerb::Replicate, None) => Vec::new(),
        (MeasuredVerb::Replicate, Some(first_run)) => {
            let pairs = &part.pairs.players[0].1;
            let mut figures = vec![plots::identical_by_epoch(
                &identical_shares(pairs),
                promised,
            )];
            figures.extend(of_runs(first_run, &part.measurement.spec, &runs_of(pairs)));
            figures
        }
    }
}

/// The figures of one player's runs; the first is shown in more detail.
pub fn of_runs(first_run: &FirstRun, spec: &SpecText, runs: &[&Run]) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(regret(spec, runs));
    figures.extend(violation(spec, runs));
    figures.push(strategy(first_run, spec.problem().actions()));
    figures.extend(estimates(first_run, spec));
    figures
}

fn runs_of(pairs: &[Pair]) -> Vec<&Run> {
    pairs.iter().flat_map(|pair| &pair.runs).collect()
}

/// The share of pairs still identical when epoch 0, 1, .. has been played.
fn identical_shares(pairs: &[Pair]) -> Vec<(f64, f64)> {
    let epochs = runs_of(pairs).iter().map(|run| run.epochs).max();
    let diverged_by = |epoch: u64| {
        let divergences = pairs.iter().filter_map(|pair| pair.divergence.as_ref());
        divergences
            .filter(|divergence| divergence.epoch <= epoch)
            .count()
    };
    (0..epochs.unwrap_or(1))
        .map(|epoch| {
            let share = 1.0 - diverged_by(epoch) as f64 / pairs.len() as f64;
            (epoch as f64, share)
        })
        .collect()
}

/// How to read a curve of these runs.
fn legend(runs: &[&Run]) -> &'static str {
    if runs.len() > 1 {
        "median of all runs; band: 5 % to 95 %; dashed: the bound. Not drawn where it is 0 or less"
    } else {
        "dashed: the bound. Not drawn where it is 0 or less"
    }
}

fn regret(spec: &SpecText, runs: &[&Run]) -> Option<Figure> {
    let reward = spec.problem().quantity(0);
    let span = reward.range.span();
    let rounds = checkpoints(spec.problem().horizon());
    let bound = |round| spec.plan.bounds_at(round).0 * span;
    let series = [
        median("measured", regret_curves(runs), &rounds, span)?,
        bound_series(&rounds, bound),
    ];
    plots::against_rounds(
        "regret",
        format!("Regret: {}.", legend(runs)),
        &format!("regret ({})", reward.name),
        &series,
    )
}

fn violation(spec: &SpecText, runs: &[&Run]) -> Option<Figure> {
    // Costs that were kept have no curve on a logarithmic axis.
    if runs.iter().all(|run| run.violation <= 0.0) {
        return None;
    }
    let rounds = checkpoints(spec.problem().horizon());
    let bound = |round| spec.plan.bounds_at(round).1.unwrap_or(0.0);
    let series = [
        median("measured", violation_curves(runs), &rounds, 1.0)?,
        bound_series(&rounds, bound),
    ];
    let caption = format!("Violation, in shares of a cost's range: {}.", legend(runs));
    plots::against_rounds("violation", caption, "violation", &series)
}

/// Runs in a world where no strategy is safe have no regret.
fn regret_curves<'a>(runs: &[&'a Run]) -> Vec<&'a [f64]> {
    let curves = runs.iter().map(|run| run.regret_curve.as_slice());
    curves.filter(|curve| !curve.is_empty()).collect()
}

fn violation_curves<'a>(runs: &[&'a Run]) -> Vec<&'a [f64]> {
    let curves = runs.iter().map(|run| run.violation_curve.as_slice());
    curves.filter(|curve| !curve.is_empty()).collect()
}

fn bound_series(rounds: &[u64], bound: impl Fn(u64) -> f64) -> Series {
    let points = rounds.iter().map(|&round| (round as f64, bound(round)));
    Series {
        name: "bound".into(),
        points: points.collect(),
        band: None,
        dashed: true,
    }
}

/// The median over runs with its band; `None` if there are no curves.
fn median(name: &str, curves: Vec<&[f64]>, rounds: &[u64], scale: f64) -> Option<Series> {
    let spreads = (0..rounds.len())
        .map(|place| Spread::of(curves.iter().map(|curve| curve[place] * scale)))
        .collect::<Option<Vec<Spread>>>()?;
    let points = rounds
        .iter()
        .zip(&spreads)
        .map(|(&round, spread)| (round as f64, spread.median))
        .collect();
    let low = spreads.iter().map(|spread| spread.p05).collect();
    let high = spreads.iter().map(|spread| spread.p95).collect();
    Some(Series {
        name: name.into(),
        points,
        // The band of a single run would be a line upon its line.
        band: (curves.len() > 1).then_some((low, high)),
        dashed: false,
    })
}

/// The players of a comparison beside each other. Without bands, which would hide one another.
fn of_players(part: &Part) -> Vec<Figure> {
    let problem = part.measurement.spec.problem();
    let reward = problem.quantity(0);
    let regret = players(part, regret_curves, reward.range.span());
    let violation = players(part, violation_curves, 1.0);
    let figures = [
        plots::against_rounds(
            "regret",
            "Regret of each player: median over runs.".into(),
            &format!("regret ({})", reward.name),
            &regret,
        ),
        plots::against_rounds(
            "violation",
            "Violation of each player, in shares of a cost's range: median over runs.".into(),
            "violation",
            &violation,
        ),
    ];
    figures.into_iter().flatten().collect()
}

fn players<'a>(
    part: &'a Part,
    curves: impl Fn(&[&'a Run]) -> Vec<&'a [f64]>,
    scale: f64,
) -> Vec<Series> {
    let rounds = checkpoints(part.measurement.spec.problem().horizon());
    let series = |(name, pairs): &'a (String, Vec<Pair>)| {
        let series = median(name, curves(&runs_of(pairs)), &rounds, scale)?;
        Some(Series {
            band: None,
            ..series
        })
    };
    part.pairs.players.iter().filter_map(series).collect()
}

/// The strategy against the logarithm of the round, each stretch drawn from its first to its last round.
fn strategy(first_run: &FirstRun, actions: &[String]) -> Figure {
    let mut rounds = Vec::new();
    let mut strategies = Vec::new();
    for (first, length, strategy) in &first_run.strategies {
        // Just before the next stretch begins, so that strategies change in steps.
        for round in [*first as f64, (first + length) as f64 - 0.01] {
            // Here and not by the axis: probabilities stay linear.
            rounds.push(round.log10());
            strategies.push(strategy.clone());
        }
    }
    plots::strategy_over_time(actions, &rounds, &strategies)
}

/// The first quantities' estimates: more figures than this nobody looks at.
fn estimates(first_run: &FirstRun, spec: &SpecText) -> Vec<Figure> {
    const NAMES: [&str; 6] = [
        "estimates-reward",
        "estimates-cost-1",
        "estimates-cost-2",
        "estimates-cost-3",
        "estimates-cost-4",
        "estimates-cost-5",
    ];
    let problem = spec.problem();
    // Policy free estimates no cost, so it has none to draw.
    NAMES[..problem.quantities_estimated().min(NAMES.len())]
        .iter()
        .enumerate()
        .map(|(quantity, name)| {
            let means: Vec<DrawnMean> = (0..problem.actions().len())
                .map(|action| drawn(first_run, spec, action, quantity))
                .collect();
            plots::estimates(
                name,
                &problem.quantity(quantity).name,
                problem.actions(),
                &means,
                quantity.checked_sub(1).map(|cost| problem.threshold(cost)),
            )
        })
        .collect()
}

/// A mean in the user's units. Without an estimate, all that the range allows.
fn drawn(first_run: &FirstRun, spec: &SpecText, action: usize, quantity: usize) -> DrawnMean {
    let range = spec.problem().quantity(quantity).range;
    let Some(estimate) = first_run.estimate(action, quantity) else {
        return DrawnMean {
            estimate: range.to_user(0.5),
            interval: [0.0, 1.0].map(|end| range.to_user(end)),
            cell: [range.to_user(0.5); 2],
            observed: None,
        };
    };
    let sum = estimate.mean * estimate.count as f64;
    let [low, high] = interval_at_any_time(estimate.count, sum, MISS);
    DrawnMean {
        // A cell's middle may lie just outside of the range.
        estimate: range.to_user(estimate.estimate.clamp(0.0, 1.0)),
        interval: estimate.interval().map(|end| range.to_user(end)),
        cell: estimate.cell_ends().map(|end| range.to_user(end)),
        observed: Some([low, estimate.mean, high].map(|end| range.to_user(end))),
    }
}
