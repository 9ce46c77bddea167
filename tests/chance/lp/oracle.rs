//! The optimum found the slow way: every vertex, in whole numbers.
//!
//! One more column, the level, turns both questions into one: over x >= 0, level >= 0, sum x = 1, excess_i.x <= level,
//! the answer is the vertex with the least level, then the largest objective.x, then the lexicographically largest x.
//! A vertex has some positive columns and one tight row less; all choices are tried. Numbers are quotients of i128.

use super::certificate::gain;
use super::instances::{Family, Instance};
use std::cmp::Ordering;

/// Positive columns of a vertex at most: one more than rows.
const COLUMNS_MAX: usize = 5;

type Table = [[i128; COLUMNS_MAX + 1]; COLUMNS_MAX];

/// The answer, exact before the last division.
#[derive(Debug)]
pub struct Optimum {
    pub strategy: Vec<f64>,
    pub violation: f64,
    /// The objective less its least entry.
    pub gain: f64,
}

/// Numerators over one positive denominator, ranked: -level, gain.x, x_0, x_1, ..
struct Vertex {
    rank: Vec<i128>,
    denominator: i128,
}

impl Optimum {
    pub fn of(instance: &Instance) -> Self {
        let unit = instance.family.unit();
        let best = Grid::of(instance).best();
        let quotient = |numerator: i128| numerator as f64 / best.denominator as f64;
        let strategy = best.rank[2..]
            .iter()
            .map(|&numerator| quotient(numerator))
            .collect();
        // 0.0 -: a level of zero must not become -0.0.
        Self {
            strategy,
            violation: 0.0 - quotient(best.rank[0]) / unit,
            gain: quotient(best.rank[1]) / unit,
        }
    }
}

/// An instance in units; the last column is the level.
struct Grid {
    gain: Vec<i128>,
    excess: Vec<Vec<i128>>,
}

impl Grid {
    fn of(instance: &Instance) -> Self {
        let whole = |value: f64| {
            let units = value * instance.family.unit();
            assert!(
                units.fract() == 0.0,
                "{value} is not on the grid of {:?}",
                instance.family
            );
            units as i128
        };
        let with = |values: &[f64], level| {
            values
                .iter()
                .map(|&value| whole(value))
                .chain([level])
                .collect()
        };
        let gain = with(&gain(instance), 0);
        Self {
            gain,
            excess: instance.excess().map(|row| with(&row, -1)).collect(),
        }
    }

    fn best(&self) -> Vertex {
        let subsets = |of: usize| {
            (0..1u32 << of)
                .map(move |set| (0..of).filter(|i| set >> i & 1 == 1).collect::<Vec<_>>())
        };
        let rows: Vec<Vec<usize>> = subsets(self.excess.len()).collect();
        let mut best: Option<Vertex> = None;
        for columns in subsets(self.gain.len()).filter(|set| set.len() <= self.excess.len() + 1) {
            for tight in rows.iter().filter(|set| set.len() + 1 == columns.len()) {
                let found = self.vertex(&columns, tight);
                if let Some(vertex) =
                    found.filter(|found| best.as_ref().is_none_or(|best| found.cmp(best).is_gt()))
                {
                    best = Some(vertex);
                }
            }
        }
        best.expect("some strategy has the least violation")
    }

    /// The point with these columns positive and these rows tight, if there is exactly one and it breaks no condition.
    fn vertex(&self, columns: &[usize], tight: &[usize]) -> Option<Vertex> {
        let (size, level) = (columns.len(), self.gain.len() - 1);
        let mut table: Table = Default::default();
        for (position, &column) in columns.iter().enumerate() {
            table[0][position] = i128::from(column != level);
            tight
                .iter()
                .zip(&mut table[1..])
                .for_each(|(&row, entries)| entries[position] = self.excess[row][column]);
        }
        table[0][size] = 1;
        let denominator = eliminate(&mut table, size)?;
        let value = |position: usize| table[position][size] * denominator.signum();
        let combine = |entries: &[i128]| {
            (0..size)
                .map(|position| entries[columns[position]] * value(position))
                .sum()
        };
        if (0..size).any(|position| value(position) < 0)
            || self.excess.iter().any(|row| combine(row) > 0)
        {
            return None;
        }
        let mut rank = vec![0; 2 + level];
        rank[1] = combine(&self.gain);
        for (position, &column) in columns.iter().enumerate() {
            if column == level {
                rank[0] = -value(position);
            } else {
                rank[2 + column] = value(position);
            }
        }
        Some(Vertex {
            rank,
            denominator: denominator.abs(),
        })
    }
}

impl Vertex {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.rank.iter().zip(&other.rank);
        let compared = pairs
            .map(|(&mine, &theirs)| compare((mine, self.denominator), (theirs, other.denominator)));
        compared.fold(Ordering::Equal, Ordering::then)
    }
}

/// Fraction-free Gauss-Jordan elimination of a system whose right-hand side is in column `size`. Afterwards that column
/// holds the numerators of the solution over the denominator returned; none if the system is singular.
///
/// Every entry is a minor of the system, so each division is exact. Products of two minors must fit: checked.
fn eliminate(table: &mut Table, size: usize) -> Option<i128> {
    let mut previous = 1;
    for step in 0..size {
        let pivot = (step..size).find(|&row| table[row][step] != 0)?;
        table.swap(step, pivot);
        let lead = table[step];
        for row in (0..size).filter(|&row| row != step) {
            let factor = table[row][step];
            for column in step + 1..=size {
                let kept = lead[step]
                    .checked_mul(table[row][column])
                    .expect("a product of minors fits");
                let taken = lead[column]
                    .checked_mul(factor)
                    .expect("a product of minors fits");
                table[row][column] = (kept - taken) / previous;
            }
        }
        previous = lead[step];
    }
    Some(previous)
}

/// a / b against c / d, for b and d positive, without products: first the whole parts, then the rests upside down.
fn compare((a, b): (i128, i128), (c, d): (i128, i128)) -> Ordering {
    let whole = a.div_euclid(b).cmp(&c.div_euclid(d));
    match (a.rem_euclid(b), c.rem_euclid(d)) {
        _ if whole.is_ne() => whole,
        (0, right) => 0.cmp(&right),
        (left, 0) => left.cmp(&0),
        (left, right) => compare((d, right), (b, left)),
    }
}

/// Solved by hand: a mixture, the first of two ties, the least violation, then the objective.
#[test]
fn the_oracle_knows_instances_solved_by_hand() {
    let judged = |objective: &[f64], rows: &[f64], limits: &[f64]| {
        let (objective, rows, limits) = (objective.to_vec(), rows.to_vec(), limits.to_vec());
        let optimum = Optimum::of(&Instance {
            family: Family::Eighths,
            seed: 0,
            objective,
            rows,
            limits,
        });
        (optimum.strategy, optimum.violation, optimum.gain)
    };
    assert_eq!(
        judged(&[1.0, 0.5], &[0.75, 0.25], &[0.5]),
        (vec![0.5, 0.5], 0.0, 0.25)
    );
    assert_eq!(
        judged(&[0.5; 3], &[1.0, 0.0, 0.0], &[0.25]),
        (vec![0.25, 0.75, 0.0], 0.0, 0.0)
    );
    assert_eq!(
        judged(&[0.0, 0.5, 1.0], &[0.5, 0.5, 0.75], &[0.25]),
        (vec![0.0, 1.0, 0.0], 0.25, 0.5)
    );
    assert_eq!(
        judged(&[0.25, 1.0], &[1.0, 0.0, 0.0, 1.0], &[0.0, 0.0]),
        (vec![0.5, 0.5], 0.5, 0.375)
    );
}

#[test]
fn fractions_compare_without_overflow() {
    let huge = i128::MAX;
    assert_eq!(compare((1, 3), (2, 6)), Ordering::Equal);
    assert_eq!(compare((-1, 3), (-1, 2)), Ordering::Greater);
    assert_eq!(
        compare((huge - 1, huge), (huge - 2, huge - 1)),
        Ordering::Greater
    );
    assert_eq!(compare((0, huge), (1, huge)), Ordering::Less);
}
