//! Which figures a report has: the first run's strategies and estimates, all runs' curves, or the players' beside each other.

use debora::lab::metrics::{Run, Spread, checkpoints};
use debora::lab::observed::{MISS, interval_at_any_time};
use debora::lab::replicate::Pair;
use debora::measure::{FirstRun, MeasuredVerb, Part, SpecText};

use crate::report::plots::{self, DrawnMean, Figure, Series, styled};

/// The quantities whose means are drawn: more figures than this nobody looks at.
const QUANTITIES_MAX: usize = 6;

/// The figures of a whole measurement.
pub fn of_part(part: &Part, promised: f64) -> Vec<Figure> {
    let mut figures = vec![identical(part, promised)];
    match (part.measurement.verb, &part.first_run) {
        // A comparison is about the players' curves; the first run would be debora's alone.
        (MeasuredVerb::Compare, _) => figures.extend(of_players(part)),
        (MeasuredVerb::Replicate, None) => {}
        (MeasuredVerb::Replicate, Some(first_run)) => {
            let runs = runs_of(&part.pairs.players[0].1);
            figures.extend(of_runs(first_run, &part.measurement.spec, &runs));
        }
    }
    figures
}

/// The figures of one player's runs; the first is shown in more detail.
pub fn of_runs(first_run: &FirstRun, spec: &SpecText, runs: &[&Run]) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(regret(spec, runs));
    figures.extend(violation(spec, runs));
    figures.push(plots::strategy_over_time(
        spec.problem().actions(),
        &first_run.strategies,
    ));
    figures.extend(estimates(first_run, spec));
    figures
}

fn runs_of(pairs: &[Pair]) -> Vec<&Run> {
    pairs.iter().flat_map(|pair| &pair.runs).collect()
}

/// Every player's share of pairs that are identical up to a round.
fn identical(part: &Part, promised: f64) -> Figure {
    let horizon = part.measurement.spec.problem().horizon();
    let rounds = checkpoints(horizon);
    let series = |(place, (name, pairs)): (usize, &(String, Vec<Pair>))| {
        let divergences = pairs.iter().filter_map(|pair| pair.divergence.as_ref());
        let diverged_at: Vec<u64> = divergences.map(|divergence| divergence.round).collect();
        plots::identical_series(
            name,
            styled(place),
            &rounds,
            &diverged_at,
            pairs.len() as u64,
        )
    };
    let players = part.pairs.players.iter().enumerate();
    plots::identical_by_round(players.map(series).collect(), promised, horizon)
}

/// How to read a curve of these runs.
fn reading(runs: &[&Run]) -> &'static str {
    if runs.len() > 1 {
        "line: the median of all runs; band: their 5 % and 95 % quantiles; dotted: the bound. Both axes are logarithmic, the upright one \
         away from zero"
    } else {
        "line: this run; dotted: the bound. Both axes are logarithmic, the upright one away from zero"
    }
}

fn regret(spec: &SpecText, runs: &[&Run]) -> Option<Figure> {
    let reward = spec.problem().quantity(0);
    let span = reward.range.span();
    let rounds = checkpoints(spec.problem().horizon());
    let bound = |round| spec.plan.bounds_at(round).0 * span;
    let series = [
        median("measured", styled(0), regret_curves(runs), &rounds, span)?,
        bound_series(&rounds, bound),
    ];
    plots::against_rounds(
        "regret",
        format!("Regret up to a round; {}.", reading(runs)),
        &format!("regret ({})", reward.name),
        &series,
    )
}

fn violation(spec: &SpecText, runs: &[&Run]) -> Option<Figure> {
    // Without costs there is nothing to violate.
    if spec.problem().thresholds().is_empty() {
        return None;
    }
    let rounds = checkpoints(spec.problem().horizon());
    let mut series = vec![median(
        "measured",
        styled(0),
        violation_curves(runs),
        &rounds,
        1.0,
    )?];
    // Policy free promises nothing about costs.
    if spec.plan.bounds_at(1).1.is_some() {
        let bound = |round| spec.plan.bounds_at(round).1.unwrap_or(0.0);
        series.push(bound_series(&rounds, bound));
    }
    let caption = format!(
        "Violation up to a round, in shares of a cost's range; {}.",
        reading(runs)
    );
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
    let points = rounds.iter().map(|&round| (round, bound(round), None));
    Series {
        name: "bound".into(),
        class: "bound".into(),
        points: points.collect(),
    }
}

/// The median over runs with its band; `None` if there are no curves.
fn median(
    name: &str,
    class: String,
    curves: Vec<&[f64]>,
    rounds: &[u64],
    scale: f64,
) -> Option<Series> {
    let spreads = (0..rounds.len())
        .map(|place| Spread::of(curves.iter().map(|curve| curve[place] * scale)))
        .collect::<Option<Vec<Spread>>>()?;
    // The band of a single run would be a line upon its line.
    let band = |spread: &Spread| (curves.len() > 1).then_some([spread.p05, spread.p95]);
    let points = rounds
        .iter()
        .zip(&spreads)
        .map(|(&round, spread)| (round, spread.median, band(spread)))
        .collect();
    Some(Series {
        name: name.into(),
        class,
        points,
    })
}

/// The players of a comparison beside each other.
fn of_players(part: &Part) -> Vec<Figure> {
    let problem = part.measurement.spec.problem();
    let reward = problem.quantity(0);
    let mut figures = Vec::new();
    let how = "line: the median of its runs; band: their 5 % and 95 % quantiles. Both axes are logarithmic, the upright one away from zero";
    figures.extend(plots::against_rounds(
        "regret",
        format!("Regret of each player up to a round; {how}."),
        &format!("regret ({})", reward.name),
        &players(part, regret_curves, reward.range.span()),
    ));
    // Without costs every curve would be zero.
    if !problem.thresholds().is_empty() {
        figures.extend(plots::against_rounds(
            "violation",
            format!("Violation of each player up to a round, in shares of a cost's range; {how}."),
            "violation",
            &players(part, violation_curves, 1.0),
        ));
    }
    figures
}

fn players<'a>(
    part: &'a Part,
    curves: impl Fn(&[&'a Run]) -> Vec<&'a [f64]>,
    scale: f64,
) -> Vec<Series> {
    let rounds = checkpoints(part.measurement.spec.problem().horizon());
    let series = |(place, (name, pairs)): (usize, &'a (String, Vec<Pair>))| {
        // A player keeps its colour from figure to figure, whoever has no curve.
        median(name, styled(place), curves(&runs_of(pairs)), &rounds, scale)
    };
    let players = part.pairs.players.iter().enumerate();
    players.filter_map(series).collect()
}

fn estimates(first_run: &FirstRun, spec: &SpecText) -> Vec<Figure> {
    let problem = spec.problem();
    // Policy free estimates no cost, so it has none to draw.
    (0..problem.quantities_estimated().min(QUANTITIES_MAX))
        .map(|quantity| {
            let means: Vec<DrawnMean> = (0..problem.actions().len())
                .map(|action| drawn(first_run, spec, action, quantity))
                .collect();
            let name = match quantity {
                0 => "estimates-reward".to_owned(),
                cost => format!("estimates-cost-{cost}"),
            };
            plots::estimates(
                &name,
                &problem.quantity(quantity).name,
                problem.actions(),
                &means,
                quantity.checked_sub(1).map(|cost| problem.threshold(cost)),
            )
        })
        .collect()
}

/// A mean in the user's units.
fn drawn(first_run: &FirstRun, spec: &SpecText, action: usize, quantity: usize) -> DrawnMean {
    let user = |end: f64| spec.problem().quantity(quantity).range.to_user(end);
    let estimate = first_run.estimate(action, quantity);
    let observed = |count: u64, mean: f64| {
        let [low, high] = interval_at_any_time(count, mean * count as f64, MISS);
        [low, mean, high].map(user)
    };
    DrawnMean {
        estimate: estimate
            .map(|estimate| [estimate.cell_ends(), estimate.interval()].map(|ends| ends.map(user))),
        // A cell's middle may lie just outside of the range.
        middle: estimate.map(|estimate| user(estimate.estimate.clamp(0.0, 1.0))),
        observed: estimate.map(|estimate| observed(estimate.count, estimate.mean)),
        truth: first_run
            .truth
            .get(quantity)
            .map(|means| user(means[action])),
    }
}
