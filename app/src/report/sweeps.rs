//! The figures and the table of a sweep: each outcome against a parameter, a line for each player.

use debora::lab::summary::Bounded;
use debora::measure::answer::{TableDraft, row_for_each};
use debora::measure::curves::{CurveKind, IDENTICAL_MISS};
use debora::measure::words::amount;
use debora::measure::{Swept, SweptAxis, SweptLine, SweptLines, SweptPoint, SweptRow};

use crate::chart::{Axis, Chart, Mark, legend};
use crate::report::csv::CsvFile;
use crate::report::plots::{Figure, HEIGHT, Point, looking};

/// Above this many lines their bands would cover each other: each point has an upright line instead.
const BANDS_MAX: usize = 3;

/// The share of the axis between two numbers below it, at least.
const TICKS_APART: f64 = 0.07;

/// Regret, violation and identical pairs, those that there are.
pub fn figures(swept: &Swept) -> Vec<Figure> {
    let reward = swept.points.first().map_or("", |point| &point.reward);
    let outcomes = [
        (CurveKind::Regret, "regret", format!("regret ({reward})")),
        (CurveKind::Violation, "violation", "violation".to_owned()),
        (
            CurveKind::Identical,
            "identical",
            "identical pairs".to_owned(),
        ),
    ];
    outcomes
        .into_iter()
        .filter_map(|(kind, name, label)| Some(figure(kind, name, &label, swept.lines(kind)?)))
        .collect()
}

fn figure(kind: CurveKind, name: &str, label: &str, mut found: SweptLines) -> Figure {
    let caption = caption(kind, &found);
    let y = upright(kind, label, &found);
    let x = across(&found);
    let measured = found.lines.len();
    let looks = found.lines.iter().map(|line| looking(line.look));
    let mut classes: Vec<String> = looks.collect();
    // Last, so that players keep their colours whether or not something is promised.
    if !found.promised.is_empty() {
        classes.push("threshold".into());
        let points = found.promised.iter().map(|&(x, y)| (x, y, None));
        found.lines.push(SweptLine {
            name: "promised".into(),
            look: [0; 2],
            points: points.collect(),
        });
    }
    let lines: Vec<(&SweptLine, &String)> = found.lines.iter().zip(&classes).collect();
    let chart = Chart {
        label: caption.clone(),
        x,
        y,
        marks: marks(&found.axis, &lines, measured),
        tips: Vec::new(),
    };
    let points = lines.iter().flat_map(|(line, _)| points(line)).collect();
    let is_connected = found.axis.words.is_empty();
    let entry =
        |(line, class): &(&SweptLine, &String)| (sign(class, is_connected), line.name.clone());
    Figure {
        name: name.to_owned(),
        caption,
        chart,
        legend: lines.iter().map(entry).collect(),
        height: HEIGHT,
        points,
    }
}

/// What stands for a player.
fn sign(class: &str, is_connected: bool) -> Vec<Mark> {
    if is_connected {
        legend::level(class)
    } else {
        legend::dot(&unstyled(class))
    }
}

/// All bands, then all lines, then all dots: nothing is hidden by another's band. The first `measured` lines are players'.
fn marks(axis: &SweptAxis, lines: &[(&SweptLine, &String)], measured: usize) -> Vec<Mark> {
    let is_round = axis.name == "round";
    // Between two words there is nothing that a line or a band could stand for.
    let has_bands = axis.words.is_empty() && (is_round || measured <= BANDS_MAX);
    let bands = lines.iter().flat_map(|(line, class)| {
        if has_bands {
            Vec::from_iter(band(line, class))
        } else {
            uprights(line, class)
        }
    });
    let connected = if axis.words.is_empty() { lines } else { &[] };
    let strokes = connected.iter().map(|(line, class)| stroke(line, class));
    // Rounds are many, and dots at each would be a thick line. What is promised was not measured.
    let dotted = if is_round { 0 } else { measured };
    // Only where no line can be is the promise shown by dots.
    let dotted = if connected.is_empty() {
        lines.len()
    } else {
        dotted
    };
    let dots = lines[..dotted]
        .iter()
        .flat_map(|(line, class)| dots(line, class));
    bands.chain(strokes).chain(dots).collect()
}

fn caption(kind: CurveKind, found: &SweptLines) -> String {
    let axis = &found.axis.name;
    let quantiles = "line: the median of its runs; band or upright line: their 5 % and 95 % quantiles; the upright axis is logarithmic away from zero";
    let mut caption = match kind {
        CurveKind::Regret => format!("Regret of each player against {axis}; {quantiles}."),
        CurveKind::Violation => {
            format!(
                "Violation of each player against {axis}, in shares of a cost's range; {quantiles}."
            )
        }
        CurveKind::Identical => format!(
            "Share of pairs with identical decisions against {axis}; band or upright line: an interval that misses the true share \
             with probability at most {IDENTICAL_MISS}."
        ),
    };
    if !found.promised.is_empty() {
        caption += " Dashed: what debora promises.";
    }
    // Lines left out in silence would be taken for players that did not play.
    if found.left_out > 0 {
        let all = found.lines.len() + found.left_out;
        caption += &format!(
            " The first {} of {all} lines; the table has all.",
            found.lines.len()
        );
    }
    caption
}

fn upright(kind: CurveKind, label: &str, found: &SweptLines) -> Axis {
    if kind == CurveKind::Identical {
        let mut axis = Axis::shares();
        label.clone_into(&mut axis.label);
        return axis;
    }
    let values = || {
        let points = found.lines.iter().flat_map(|line| &line.points);
        points.flat_map(|&(_, value, band)| band.into_iter().flatten().chain([value]))
    };
    // Against rounds only the ends are results: what is before them comes from next to nothing.
    let is_result = |x: f64| found.axis.name != "round" || x == found.axis.ends[1];
    let results = found.lines.iter().flat_map(|line| &line.points);
    Axis::symmetric(
        label,
        values().fold(0.0, f64::min),
        values().fold(0.0, f64::max),
        results
            .filter(|point| is_result(point.0))
            .map(|point| point.1),
    )
}

fn across(found: &SweptLines) -> Axis {
    let axis = &found.axis;
    let [low, high] = axis.ends;
    let is_rounds = ["round", "horizon"].contains(&&*axis.name);
    let mut drawn = if !axis.words.is_empty() {
        Axis::words(&axis.words)
    } else if !axis.is_logarithmic {
        Axis::linear("", low, high)
    } else if is_rounds {
        Axis::rounds(low as u64, high as u64, true)
    } else {
        Axis::logarithmic("", low, high)
    };
    if axis.words.is_empty() && !is_rounds {
        drawn.ticks = value_ticks(&drawn, found);
    }
    axis.name.clone_into(&mut drawn.label);
    drawn
}

/// The values themselves: what lies between was not measured.
fn value_ticks(axis: &Axis, found: &SweptLines) -> Vec<(f64, String)> {
    let points = found.lines.iter().flat_map(|line| &line.points);
    let mut values: Vec<f64> = points.map(|point| point.0).collect();
    values.sort_by(f64::total_cmp);
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for value in values {
        let place = axis.place(value);
        // Numbers closer than this would run into each other.
        if ticks
            .last()
            .is_none_or(|(last, _)| place - last > TICKS_APART)
        {
            ticks.push((place, amount(value)));
        }
    }
    ticks
}

fn band(line: &SweptLine, class: &str) -> Option<Mark> {
    let ends =
        |(x, _, band): &(f64, f64, Option<[f64; 2]>)| band.map(|[low, high]| (*x, low, high));
    let points: Vec<_> = line.points.iter().filter_map(ends).collect();
    // Of a single point it would be a line without width: the table has its interval.
    (points.len() > 1).then(|| Mark::Area {
        class: format!("{class} band"),
        points,
    })
}

fn uprights(line: &SweptLine, class: &str) -> Vec<Mark> {
    let ends = |(x, _, band): &(f64, f64, Option<[f64; 2]>)| {
        let [low, high] = (*band)?;
        Some(Mark::Line {
            class: class.replace("styled", "faint"),
            points: vec![(*x, low), (*x, high)],
        })
    };
    line.points.iter().filter_map(ends).collect()
}

fn stroke(line: &SweptLine, class: &str) -> Mark {
    Mark::Line {
        class: class.to_owned(),
        points: line.points.iter().map(|(x, y, _)| (*x, *y)).collect(),
    }
}

fn dots(line: &SweptLine, class: &str) -> impl Iterator<Item = Mark> {
    let class = format!("{} dot", unstyled(class));
    line.points.iter().map(move |(x, y, _)| Mark::Dot {
        class: class.clone(),
        at: (*x, *y),
    })
}

/// The colour alone: dashes are for lines.
fn unstyled(class: &str) -> String {
    class.split(" styled").next().unwrap_or(class).to_owned()
}

fn points(line: &SweptLine) -> impl Iterator<Item = Point> + '_ {
    line.points.iter().map(|(x, y, band)| Point {
        series: line.name.clone(),
        x: *x,
        y: *y,
        band: *band,
    })
}

/// A row for each point and player.
type SweepDraft<'a> = TableDraft<(&'a SweptPoint, &'a SweptRow)>;

/// A number of what is bounded.
type BoundedPart = fn(&Bounded) -> Option<f64>;

/// A line for each point and player. Regret in the reward's units, violation in shares of a cost's range.
pub fn sweep_csv(swept: &Swept) -> CsvFile {
    let rows = swept
        .points
        .iter()
        .flat_map(|point| point.rows.iter().map(move |row| (point, row)));
    let mut table: SweepDraft = row_for_each(rows);
    for (place, name) in swept.names.iter().enumerate() {
        table = table.words(name, |(point, _)| &point.values[place]);
    }
    table = table
        .words("player", |(_, row)| &row.player)
        .numbers("pairs", |(_, row)| row.summary.pairs)
        .numbers("identical", |(_, row)| row.summary.identical)
        .numbers("identical_rate", |(_, row)| row.summary.identical_rate)
        .numbers("interval_low", |(_, row)| row.summary.interval[0])
        .numbers("interval_high", |(_, row)| row.summary.interval[1])
        .numbers("promised", |(_, row)| row.summary.promised);
    // Where no strategy is safe there is no regret: its cells are empty.
    table = bounded(table, "regret", |row| {
        (row.summary.regret.as_ref(), row.span)
    });
    table = bounded(table, "violation", |row| {
        (Some(&row.summary.violation), 1.0)
    });
    let table = table
        .numbers("unsafe_runs", |(_, row)| row.summary.unsafe_runs)
        .numbers("runs", |(_, row)| row.summary.runs)
        .numbers("epochs_mean", |(_, row)| row.summary.epochs_mean)
        .numbers("reward_mean", |(_, row)| row.summary.reward_mean)
        .table();
    CsvFile {
        name: "sweep.csv",
        table,
    }
}

/// Mean, quantiles and bound of what is found in a row, which is multiplied by the number beside it.
fn bounded<'a>(
    mut table: SweepDraft<'a>,
    name: &str,
    found: impl Fn(&SweptRow) -> (Option<&Bounded>, f64),
) -> SweepDraft<'a> {
    let parts: [(&str, BoundedPart); 5] = [
        ("mean", |found| Some(found.spread.mean)),
        ("p05", |found| Some(found.spread.p05)),
        ("median", |found| Some(found.spread.median)),
        ("p95", |found| Some(found.spread.p95)),
        ("bound", |found| found.bound),
    ];
    for (part, number) in parts {
        table = table.numbers(format!("{name}_{part}"), |(_, row)| {
            let (found, scale) = found(row);
            found.and_then(number).map(|number| number * scale)
        });
    }
    table
}
