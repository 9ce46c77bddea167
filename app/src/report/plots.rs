//! The figures of a report: what is drawn, and the points behind it.

use debora::measure::curves::{CurvePoint, IDENTICAL_MISS};

use crate::chart::drawing::Drawing;
use crate::chart::legend::{self, Entry};
use crate::chart::{Axis, COLOURS, Chart, Mark};

/// How tall the part between the axes is.
pub const HEIGHT: f64 = 270.0;

/// Of one action in a figure of means.
const ROW: f64 = 30.0;

/// The sign of a true mean.
const TRUTH: char = '×';

/// The most actions in a figure of means: more than this nobody compares by eye, and the table has them all.
pub const ROWS_MAX: usize = 40;

/// A figure.
pub struct Figure {
    /// Its file name without ending.
    pub name: String,
    /// What it shows, in a sentence that names every mark.
    pub caption: String,
    /// As it looks.
    pub chart: Chart,
    /// What its signs mean.
    pub legend: Vec<Entry>,
    /// How tall the part between the axes is.
    pub height: f64,
    /// What it was drawn from.
    pub points: Vec<Point>,
}

impl Figure {
    /// For a file.
    pub fn drawing(&self) -> Drawing {
        self.chart.drawing(&self.legend, self.height)
    }
}

/// A point of a figure, in the units of its axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it belongs to.
    pub series: String,
    /// Where.
    pub x: f64,
    /// The value there; the median of many.
    pub y: f64,
    /// The band's lower and upper end, where there is one.
    pub band: Option<[f64; 2]>,
}

/// A line, with a band around it where it stands for many runs.
pub struct Series {
    pub name: String,
    /// Its colour and dashes.
    pub class: String,
    pub points: Vec<CurvePoint>,
}

impl Series {
    fn line(&self) -> Mark {
        let points = self.points.iter();
        Mark::Line {
            class: self.class.clone(),
            points: points
                .map(|point| (point.round as f64, point.value))
                .collect(),
        }
    }

    fn band(&self) -> Option<Mark> {
        let ends = |point: &CurvePoint| {
            let [low, high] = point.band?;
            Some((point.round as f64, low, high))
        };
        let points: Vec<_> = self.points.iter().filter_map(ends).collect();
        (!points.is_empty()).then(|| Mark::Area {
            class: format!("{} band", self.class),
            points,
        })
    }

    fn data(&self) -> impl Iterator<Item = Point> + '_ {
        self.points.iter().map(|point| Point {
            series: self.name.clone(),
            x: point.round as f64,
            y: point.value,
            band: point.band,
        })
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let bands = self.points.iter().filter_map(|point| point.band);
        let values = self.points.iter().map(|point| point.value);
        values.chain(bands.flatten())
    }
}

/// The class of player n's line: a colour, and dashes that tell it from others in grey.
pub fn styled(place: usize) -> String {
    looking([place; 2])
}

/// The class of a line by its colour and its dashes.
pub fn looking([colour, dashes]: [usize; 2]) -> String {
    format!("c{} styled d{}", colour % COLOURS, dashes % COLOURS)
}

/// Series against rounds, to the horizon: both signs and many powers of ten have their place.
pub fn against_rounds(
    name: &str,
    caption: String,
    label: &str,
    series: &[Series],
) -> Option<Figure> {
    let horizon = series
        .iter()
        .filter_map(|series| series.points.last())
        .map(|point| point.round)
        .max()?;
    let values = || series.iter().flat_map(Series::values);
    let y = Axis::symmetric(
        label,
        values().fold(0.0, f64::min),
        values().fold(0.0, f64::max),
        // Earlier values are on the way there from next to nothing.
        series
            .iter()
            .filter_map(|series| series.points.last())
            .map(|point| point.value),
    );
    Some(lines(
        name,
        caption,
        Axis::rounds(1, horizon, true),
        y,
        series,
    ))
}

/// The share of pairs with equal decisions so far, player by player, against what is promised.
pub fn identical_by_round(mut series: Vec<Series>, promised: f64, horizon: u64) -> Figure {
    let caption = format!(
        "Share of pairs with identical decisions up to a round; band: an interval that misses the true share with probability at \
         most {IDENTICAL_MISS}; dashed: what debora promises at the end."
    );
    series.push(Series {
        name: "promised".into(),
        class: "threshold".into(),
        points: [1, horizon]
            .map(|round| CurvePoint {
                round,
                value: promised,
                band: None,
            })
            .into(),
    });
    let mut y = Axis::shares();
    "identical pairs".clone_into(&mut y.label);
    let x = Axis::rounds(1, horizon, true);
    lines("identical", caption, x, y, &series)
}

fn lines(name: &str, caption: String, x: Axis, y: Axis, series: &[Series]) -> Figure {
    // All bands, then all lines: no line is hidden by another's band.
    let bands = series.iter().filter_map(Series::band);
    let marks = bands.chain(series.iter().map(Series::line)).collect();
    let chart = Chart {
        label: caption.clone(),
        x,
        y,
        marks,
        tips: Vec::new(),
    };
    let legend = series
        .iter()
        .map(|series| (legend::level(&series.class), series.name.clone()))
        .collect();
    Figure {
        name: name.to_owned(),
        chart,
        legend,
        height: HEIGHT,
        caption,
        points: series.iter().flat_map(Series::data).collect(),
    }
}

/// A run's strategy over time: the probability of each action, stacked, to the horizon. First round, rounds and strategy of each
/// stretch.
pub fn strategy_over_time(actions: &[String], stretches: &[(u64, u64, Vec<f64>)]) -> Figure {
    let shown = most_played(actions.len(), stretches);
    let last = stretches
        .last()
        .map_or(1, |(first, length, _)| first + length - 1);
    let mut marks = Vec::new();
    let mut points = Vec::new();
    for (place, group) in shown.iter().enumerate() {
        let mut area = Vec::new();
        for (first, length, strategy) in stretches {
            let sum = |groups: &[Vec<usize>]| -> f64 {
                groups
                    .iter()
                    .flatten()
                    .map(|&action| strategy[action])
                    .sum()
            };
            let (low, high) = (sum(&shown[..place]), sum(&shown[..=place]));
            // From its first round to that of the next stretch: strategies change in steps.
            let end = (first + length).min(last);
            area.extend([*first, end].map(|round| (round as f64, low, high)));
            points.push(Point {
                series: group_name(actions, group),
                x: *first as f64,
                y: high - low,
                band: None,
            });
        }
        marks.push(Mark::Area {
            class: group_class(place, group),
            points: area,
        });
    }
    let legend = shown
        .iter()
        .enumerate()
        .map(|(place, group)| {
            (
                legend::block(&group_class(place, group)),
                group_name(actions, group),
            )
        })
        .collect();
    let caption =
        "The strategy of the first run over its rounds: the height of an area is the probability of its action."
            .to_owned();
    let mut y = Axis::shares();
    "probability".clone_into(&mut y.label);
    let chart = Chart {
        label: caption.clone(),
        x: Axis::rounds(1, last, true),
        y,
        marks,
        tips: Vec::new(),
    };
    Figure {
        name: "strategy".into(),
        chart,
        legend,
        height: HEIGHT,
        caption,
        points,
    }
}

/// The actions, each alone, if there are colours for all; else those played most, and the others together.
fn most_played(actions: usize, stretches: &[(u64, u64, Vec<f64>)]) -> Vec<Vec<usize>> {
    if actions <= COLOURS {
        return (0..actions).map(|action| vec![action]).collect();
    }
    let played = |action: usize| -> f64 {
        let rounds = stretches.iter();
        rounds
            .map(|(_, length, strategy)| *length as f64 * strategy[action])
            .sum()
    };
    let mut order: Vec<usize> = (0..actions).collect();
    // A stable sort: of equals, the first in the spec comes first.
    order.sort_by(|&one, &other| played(other).total_cmp(&played(one)));
    let rest = order.split_off(COLOURS - 1);
    order.sort_unstable();
    order
        .into_iter()
        .map(|action| vec![action])
        .chain([rest])
        .collect()
}

fn group_name(actions: &[String], group: &[usize]) -> String {
    match group {
        [action] => actions[*action].clone(),
        others => format!("{} others", others.len()),
    }
}

fn group_class(place: usize, group: &[usize]) -> String {
    match group {
        [_] => format!("c{place}"),
        _ => "muted".into(),
    }
}

/// An action's mean of a quantity: as it decides, as it was observed, and as it is.
#[derive(Clone, Copy)]
pub struct DrawnMean {
    /// With its cell and the interval that holds the true mean; none before the first estimate.
    pub estimate: Option<[[f64; 2]; 2]>,
    /// The middle of the cell.
    pub middle: Option<f64>,
    /// The plain mean, between the ends of its interval.
    pub observed: Option<[f64; 3]>,
    /// The world's.
    pub truth: Option<f64>,
}

/// One quantity's means, action by action, beside its threshold.
pub fn estimates(
    name: &str,
    quantity: &str,
    actions: &[String],
    means: &[DrawnMean],
    threshold: Option<f64>,
) -> Figure {
    let shown = means.len().min(ROWS_MAX);
    let caption = estimates_caption(quantity, means.len(), threshold.is_some());
    let values = means[..shown].iter().flat_map(DrawnMean::values);
    let ends = values
        .chain(threshold)
        .fold(None, |ends: Option<[f64; 2]>, value| match ends {
            None => Some([value; 2]),
            Some([low, high]) => Some([value.min(low), value.max(high)]),
        });
    let [low, high] = ends.unwrap_or([0.0, 1.0]);
    let mut marks: Vec<Mark> = threshold
        .map(|x| Mark::Upright {
            class: "threshold".into(),
            x,
        })
        .into_iter()
        .collect();
    for (place, mean) in means[..shown].iter().enumerate() {
        // The first action on top.
        marks.extend(mean.marks((shown - place) as f64 - 0.5));
    }
    let chart = Chart {
        label: caption.clone(),
        x: Axis::linear(quantity, low, high),
        y: Axis::names(&actions[..shown]),
        marks,
        tips: Vec::new(),
    };
    let mut points = Vec::new();
    for (action, mean) in actions.iter().zip(means) {
        points.extend(mean.points(action));
    }
    Figure {
        name: name.to_owned(),
        chart,
        legend: means_legend(threshold.is_some()),
        height: ROW * shown as f64,
        caption,
        points,
    }
}

fn estimates_caption(quantity: &str, actions: usize, threshold: bool) -> String {
    let dashed = if threshold {
        " Dashed: the threshold."
    } else {
        ""
    };
    let cut = if actions > ROWS_MAX {
        format!(" The first {ROWS_MAX} of {actions} actions.")
    } else {
        String::new()
    };
    format!(
        "{quantity} of each action after the first run. Above: the estimate, which decides (bar), in its cell (broad; every mean \
         in it gives this estimate) and in the interval that holds the true mean with all others together with probability 1 - \
         delta (line). Below: the observed mean (dot) in the interval that holds the true mean at every look. Cross: the world's \
         true mean.{dashed}{cut}"
    )
}

fn means_legend(threshold: bool) -> Vec<Entry> {
    let mut observed = legend::level("c1");
    observed.extend(legend::dot("c1"));
    let mut legend = vec![
        (legend::level("c0 wide faint"), "cell".to_owned()),
        (legend::level("c0"), "interval of the estimate".to_owned()),
        (observed, "observed, with its interval".to_owned()),
        (legend::letter(TRUTH), "true mean".to_owned()),
    ];
    if threshold {
        legend.push((legend::upright("threshold"), "threshold".into()));
    }
    legend
}

impl DrawnMean {
    fn values(&self) -> impl Iterator<Item = f64> + use<> {
        let estimate = self.estimate.into_iter().flatten().flatten();
        let observed = self.observed.into_iter().flatten();
        estimate.chain(observed).chain(self.truth)
    }

    /// Around this height: the estimate above, what was observed below.
    fn marks(&self, height: f64) -> Vec<Mark> {
        let mut marks = Vec::new();
        let across = |class: &str, [low, high]: [f64; 2], y: f64| Mark::Line {
            class: class.to_owned(),
            points: vec![(low, y), (high, y)],
        };
        let (above, below) = (height + 0.16, height - 0.2);
        if let Some([cell, interval]) = self.estimate {
            marks.push(across("c0 wide faint", cell, above));
            marks.push(across("c0", interval, above));
        }
        if let Some(middle) = self.middle {
            marks.push(Mark::Line {
                class: "c0".into(),
                points: vec![(middle, above - 0.14), (middle, above + 0.14)],
            });
        }
        if let Some([low, mean, high]) = self.observed {
            marks.push(across("c1", [low, high], below));
            marks.push(Mark::Dot {
                class: "c1".into(),
                at: (mean, below),
            });
        }
        marks.extend(self.truth.map(|truth| Mark::Sign {
            class: String::new(),
            at: (truth, height),
            sign: TRUTH,
        }));
        marks
    }

    fn points(&self, action: &str) -> Vec<Point> {
        let point = |what: &str, value: f64, band: Option<[f64; 2]>| Point {
            series: format!("{action}: {what}"),
            x: value,
            y: value,
            band,
        };
        let estimate = self.middle.zip(self.estimate);
        let mut points = Vec::new();
        if let Some((middle, [cell, interval])) = estimate {
            points.push(point("estimate, cell", middle, Some(cell)));
            points.push(point("estimate, interval", middle, Some(interval)));
        }
        if let Some([low, mean, high]) = self.observed {
            points.push(point("observed", mean, Some([low, high])));
        }
        points.extend(self.truth.map(|truth| point("true mean", truth, None)));
        points
    }
}
