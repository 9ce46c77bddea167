//! What a sweep's figures show: one outcome against one parameter, a line for each player and each value of the others.

use crate::lab::summary::Summary;
use crate::measure::DEBORA;
use crate::measure::curves::CurveKind;
use crate::measure::sweep::{SPEC, Swept, SweptPoint, SweptRow};

/// There are as many colours, and as many dashes.
const LOOKS: usize = 8;

/// More lines than this nobody tells apart.
const LINES_MAX: usize = 12;

/// From this ratio of its values on, a parameter is shown by its logarithm.
const RATIO_LOGARITHMIC: f64 = 10.0;

/// The lines of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptLines {
    /// What is below.
    pub axis: SweptAxis,
    /// Twelve at most.
    pub lines: Vec<SweptLine>,
    /// Lines that only the table has.
    pub left_out: usize,
    /// What debora promises of identical pairs, where that depends on the parameter alone.
    pub promised: Vec<(f64, f64)>,
}

/// What a sweep's outcomes are drawn against.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptAxis {
    /// The parameter, or `round`.
    pub name: String,
    /// Its least and largest value.
    pub ends: [f64; 2],
    /// By its logarithm.
    pub is_logarithmic: bool,
    /// What its values 1, 2, .. are, if they are not numbers.
    pub words: Vec<String>,
}

/// A line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptLine {
    /// The player and the values of the other parameters, where there are several.
    pub name: String,
    /// Which colour and which dashes it has: its player's and its values', where there are several of both.
    pub look: [usize; 2],
    /// Place, value, and the band's low and high end.
    pub points: Vec<(f64, f64, Option<[f64; 2]>)>,
}

impl Swept {
    /// Median regret, median violation or the share of identical pairs against a parameter, with the 5 % and 95 % quantiles of the
    /// runs or the 95 % interval of the share. Without a parameter that changes, the same against rounds.
    ///
    /// `None` where there is nothing: violation without costs, regret where no strategy is safe.
    pub fn lines(&self, kind: CurveKind) -> Option<SweptLines> {
        let has_any = |point: &SweptPoint| kind != CurveKind::Violation || point.has_costs;
        if !self.points.iter().any(has_any) {
            return None;
        }
        let below = self.parameter();
        let others: Vec<usize> = (0..self.names.len())
            .filter(|place| Some(*place) != below && self.values(*place).len() > 1)
            .collect();
        let mut lines: Vec<SweptLine> = Vec::new();
        let mut looks = CurveLooks::default();
        for point in &self.points {
            for row in &point.rows {
                let name = self.line_name(point, row, &others);
                let points = match below {
                    Some(place) => Vec::from_iter(outcome(row, kind).map(|(value, band)| {
                        (self.position(place, point.value(place)), value, band)
                    })),
                    None => by_round(row, kind),
                };
                match lines.iter_mut().find(|line| line.name == name) {
                    Some(line) => line.points.extend(points),
                    None => lines.push(SweptLine {
                        name,
                        look: looks.of(&row.player, values_of(point, &others)),
                        points,
                    }),
                }
            }
        }
        lines.retain(|line| !line.points.is_empty());
        for line in &mut lines {
            // Values may be given in any order; a line goes from left to right.
            line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        looks.settle(&mut lines);
        let all = lines.len();
        // What has no look of its own would be taken for another.
        lines.retain(|line| line.look.iter().all(|&place| place < LOOKS));
        lines.truncate(LINES_MAX);
        let left_out = all - lines.len();
        let axis = self.axis(below, &lines)?;
        Some(SweptLines {
            axis,
            lines,
            left_out,
            promised: if kind == CurveKind::Identical {
                self.promised(below)
            } else {
                Vec::new()
            },
        })
    }

    /// The parameter to draw against: of those whose values are numbers the one with most, or the first that has two values.
    fn parameter(&self) -> Option<usize> {
        let several: Vec<usize> = (0..self.names.len())
            .filter(|place| self.values(*place).len() > 1 && self.names[*place] != SPEC)
            .collect();
        let numbers = several
            .iter()
            .copied()
            .filter(|place| self.is_number(*place));
        // The first of equals, although `max_by_key` keeps the last.
        let most = numbers.rev().max_by_key(|place| self.values(*place).len());
        most.or(several.first().copied())
    }

    fn is_number(&self, place: usize) -> bool {
        let number = |value: &&str| value.parse::<f64>().is_ok_and(f64::is_finite);
        self.values(place).iter().all(number)
    }

    fn position(&self, place: usize, value: &str) -> f64 {
        if self.is_number(place) {
            return value.parse().expect("a number, as was asked");
        }
        let values = self.values(place);
        let place = values.iter().position(|other| *other == value);
        place.map_or(0.0, |place| place as f64 + 1.0)
    }

    fn line_name(&self, point: &SweptPoint, row: &SweptRow, others: &[usize]) -> String {
        let mut words = Vec::new();
        if self.players().len() > 1 || others.is_empty() {
            words.push(row.player.clone());
        }
        for &place in others {
            let value = point.value(place);
            words.push(match &*self.names[place] {
                // A file's name says what it is.
                SPEC => value.to_owned(),
                name => format!("{name} = {value}"),
            });
        }
        words.join(", ")
    }

    fn axis(&self, below: Option<usize>, lines: &[SweptLine]) -> Option<SweptAxis> {
        let places = || {
            lines
                .iter()
                .flat_map(|line| &line.points)
                .map(|point| point.0)
        };
        let low = places().reduce(f64::min)?;
        let high = places().reduce(f64::max)?;
        let words = match below {
            Some(place) if !self.is_number(place) => {
                self.values(place).into_iter().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        Some(SweptAxis {
            name: below.map_or("round".to_owned(), |place| self.names[place].clone()),
            ends: [low, high],
            is_logarithmic: words.is_empty() && low > 0.0 && high / low >= RATIO_LOGARITHMIC,
            words,
        })
    }

    fn promised(&self, below: Option<usize>) -> Vec<(f64, f64)> {
        let mut promised: Vec<(f64, f64)> = Vec::new();
        for point in &self.points {
            let Some(own) = point.rows.iter().find(|row| row.player == DEBORA) else {
                continue;
            };
            let places = match below {
                Some(place) => vec![self.position(place, point.value(place))],
                None => by_round(own, CurveKind::Identical)
                    .iter()
                    .map(|point| point.0)
                    .collect(),
            };
            promised.extend(
                places
                    .into_iter()
                    .map(|place| (place, own.summary.promised)),
            );
        }
        promised.sort_by(|one, other| one.0.total_cmp(&other.0));
        promised.dedup();
        // Two promises at one place: they belong to different lines, and one dashed line cannot show both.
        let is_one = promised.windows(2).all(|two| two[0].0 != two[1].0);
        if is_one { promised } else { Vec::new() }
    }
}

fn values_of<'a>(point: &'a SweptPoint, places: &[usize]) -> Vec<&'a str> {
    places.iter().map(|&place| point.value(place)).collect()
}

/// Players and values of the other parameters, in the order in which lines were begun.
#[derive(Default)]
struct CurveLooks<'a> {
    players: Vec<&'a str>,
    values: Vec<Vec<&'a str>>,
}

impl<'a> CurveLooks<'a> {
    fn of(&mut self, player: &'a str, values: Vec<&'a str>) -> [usize; 2] {
        [
            place_in(&mut self.players, player),
            place_in(&mut self.values, values),
        ]
    }

    /// Lines that differ in one way alone differ in colour and in dashes.
    fn settle(&self, lines: &mut [SweptLine]) {
        if self.players.len() > 1 && self.values.len() > 1 {
            return;
        }
        for (place, line) in lines.iter_mut().enumerate() {
            line.look = [place; 2];
        }
    }
}

fn place_in<T: PartialEq>(known: &mut Vec<T>, one: T) -> usize {
    let place = known.iter().position(|other| *other == one);
    place.unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    })
}

/// What a row has of this kind, in the user's units.
fn outcome(row: &SweptRow, kind: CurveKind) -> Option<(f64, Option<[f64; 2]>)> {
    let Summary {
        regret,
        violation,
        identical_rate,
        interval,
        ..
    } = &row.summary;
    match kind {
        CurveKind::Identical => Some((*identical_rate, Some(*interval))),
        CurveKind::Regret => {
            let spread = regret.as_ref()?.spread;
            let [median, low, high] =
                [spread.median, spread.p05, spread.p95].map(|value| value * row.span);
            Some((median, Some([low, high])))
        }
        CurveKind::Violation => {
            let spread = violation.spread;
            Some((spread.median, Some([spread.p05, spread.p95])))
        }
    }
}

fn by_round(row: &SweptRow, kind: CurveKind) -> Vec<(f64, f64, Option<[f64; 2]>)> {
    let points = row.curve(kind).unwrap_or_default().iter();
    points
        .map(|point| (point.round as f64, point.value, point.band))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(lines: &[(&'static str, &'static str)]) -> Vec<[usize; 2]> {
        let mut looks = CurveLooks::default();
        let begun = lines.iter().map(|(player, value)| SweptLine {
            name: format!("{player}, {value}"),
            look: looks.of(player, vec![value]),
            points: Vec::new(),
        });
        let mut begun: Vec<SweptLine> = begun.collect();
        looks.settle(&mut begun);
        begun.into_iter().map(|line| line.look).collect()
    }

    #[test]
    fn players_have_colours_and_values_have_dashes() {
        let both = [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")];
        assert_eq!(looks(&both), [[0, 0], [1, 0], [0, 1], [1, 1]]);
        // Of one kind alone: both, so that grey tells them apart, too.
        assert_eq!(looks(&[("a", "1"), ("b", "1")]), [[0, 0], [1, 1]]);
        assert_eq!(looks(&[("a", "1"), ("a", "2")]), [[0, 0], [1, 1]]);
    }
}
