//! Which figures a report has: the first run's strategies and estimates, all runs' curves, or the players' beside each other.

use debora::lab::metrics::{Run, checkpoints};
use debora::lab::observed::{MISS, interval_at_any_time};
use debora::lab::replicate::Pair;
use debora::measure::curves::{self, CurveKind, CurvePoint};
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
    plots::identical_by_round(players(part, CurveKind::Identical), promised, horizon)
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
    let problem = spec.problem();
    let reward = problem.quantity(0);
    let span = reward.range.span();
    let series = [
        measured(curves::of_runs(problem, runs, CurveKind::Regret)?),
        bound(spec, |round| spec.plan.bounds_at(round).0 * span),
    ];
    plots::against_rounds(
        "regret",
        format!("Regret up to a round; {}.", reading(runs)),
        &format!("regret ({})", reward.name),
        &series,
    )
}

fn violation(spec: &SpecText, runs: &[&Run]) -> Option<Figure> {
    let curve = curves::of_runs(spec.problem(), runs, CurveKind::Violation)?;
    let mut series = vec![measured(curve)];
    // Policy free promises nothing about costs.
    if spec.plan.bounds_at(1).1.is_some() {
        series.push(bound(spec, |round| {
            spec.plan.bounds_at(round).1.unwrap_or(0.0)
        }));
    }
    let caption = format!(
        "Violation up to a round, in shares of a cost's range; {}.",
        reading(runs)
    );
    plots::against_rounds("violation", caption, "violation", &series)
}

fn measured(points: Vec<CurvePoint>) -> Series {
    Series {
        name: "measured".into(),
        class: styled(0),
        points,
    }
}

fn bound(spec: &SpecText, bound: impl Fn(u64) -> f64) -> Series {
    let point = |round| CurvePoint {
        round,
        value: bound(round),
        band: None,
    };
    let rounds = checkpoints(spec.problem().horizon());
    Series {
        name: "bound".into(),
        class: "bound".into(),
        points: rounds.into_iter().map(point).collect(),
    }
}

/// The players of a comparison beside each other.
fn of_players(part: &Part) -> Vec<Figure> {
    let reward = part.measurement.spec.problem().quantity(0);
    let how = "line: the median of its runs; band: their 5 % and 95 % quantiles. Both axes are logarithmic, the upright one away from zero";
    let figures = [
        plots::against_rounds(
            "regret",
            format!("Regret of each player up to a round; {how}."),
            &format!("regret ({})", reward.name),
            &players(part, CurveKind::Regret),
        ),
        plots::against_rounds(
            "violation",
            format!("Violation of each player up to a round, in shares of a cost's range; {how}."),
            "violation",
            &players(part, CurveKind::Violation),
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// A line a player. A player keeps its colour from figure to figure, whoever has no curve.
fn players(part: &Part, kind: CurveKind) -> Vec<Series> {
    let names = part.pairs.players.iter().enumerate();
    names
        .filter_map(|(place, (name, _))| {
            Some(Series {
                name: name.clone(),
                class: styled(place),
                points: part.curve(place, kind)?,
            })
        })
        .collect()
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
                quantity
                    .checked_sub(1)
                    .and_then(|cost| problem.threshold(cost)),
            )
        })
        .collect()
}

/// A mean in the user's units.
fn drawn(first_run: &FirstRun, spec: &SpecText, action: usize, quantity: usize) -> DrawnMean {
    let range = spec.problem().quantity(quantity).range_of(action as u32);
    let user = |end: f64| range.to_user(end);
    let estimate = first_run.estimate(action, quantity);
    let observed = |count: u64, mean: f64| {
        let [low, high] = interval_at_any_time(count, mean * count as f64, MISS);
        [low, mean, high].map(user)
    };
    DrawnMean {
        estimate: estimate.map(|estimate| {
            [estimate.cell_ends(&spec.plan), estimate.interval()].map(|ends| ends.map(user))
        }),
        // A cell's middle may lie just outside of the range.
        middle: estimate.map(|estimate| user(estimate.estimate.clamp(0.0, 1.0))),
        observed: estimate.map(|estimate| observed(estimate.count, estimate.mean)),
        truth: first_run
            .truth
            .get(quantity)
            .map(|means| user(means[action])),
    }
}
