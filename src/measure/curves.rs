//! What a measurement shows over its rounds: the points of its figures, in the user's units.

use crate::lab::metrics::{Run, Spread, checkpoints, clopper_pearson};
use crate::lab::replicate::Pair;
use crate::measure::Part;
use crate::problem::Problem;

/// The chance with which an interval of identical pairs misses the true share, at each round.
pub const IDENTICAL_MISS: f64 = 0.05;

/// What is read at the checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveKind {
    /// Regret up to a round, in the reward's units.
    Regret,
    /// Violation up to a round, in shares of a cost's range.
    Violation,
    /// The share of pairs whose decisions are identical up to a round.
    Identical,
}

/// A value at a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The round.
    pub round: u64,
    /// The median over runs, or the share.
    pub value: f64,
    /// The 5 % and 95 % quantiles over runs, or the interval of the share; none of a single run.
    pub band: Option<[f64; 2]>,
}

/// The curve of these runs; `None` of regret where no strategy is safe, and of violation without costs.
pub fn of_runs(problem: &Problem, runs: &[&Run], kind: CurveKind) -> Option<Vec<CurvePoint>> {
    let (curves, scale): (Vec<&[f64]>, f64) = match kind {
        CurveKind::Regret => {
            let curves = runs.iter().map(|run| run.regret_curve.as_slice());
            let span = problem.quantity(0).range.span();
            (curves.filter(|curve| !curve.is_empty()).collect(), span)
        }
        // Without costs every curve would be zero.
        CurveKind::Violation if problem.thresholds().is_empty() => return None,
        CurveKind::Violation => {
            let curves = runs.iter().map(|run| run.violation_curve.as_slice());
            (curves.collect(), 1.0)
        }
        // A run alone is identical to nothing.
        CurveKind::Identical => return None,
    };
    // The band of a single run would be a line upon its line.
    let many = curves.len() > 1;
    checkpoints(problem.horizon())
        .into_iter()
        .enumerate()
        .map(|(place, round)| {
            let spread = Spread::of(curves.iter().map(|curve| curve[place] * scale))?;
            Some(CurvePoint {
                round,
                value: spread.median,
                band: many.then_some([spread.p05, spread.p95]),
            })
        })
        .collect()
}

/// The share of pairs that are identical up to each checkpoint.
pub fn identical(problem: &Problem, pairs: &[Pair]) -> Vec<CurvePoint> {
    let total = pairs.len() as u64;
    let point = |round: u64| {
        let divergences = pairs.iter().filter_map(|pair| pair.divergence.as_ref());
        let diverged = divergences.filter(|one| one.round <= round).count() as u64;
        CurvePoint {
            round,
            value: (total - diverged) as f64 / total as f64,
            band: Some(clopper_pearson(total - diverged, total, IDENTICAL_MISS)),
        }
    };
    checkpoints(problem.horizon())
        .into_iter()
        .map(point)
        .collect()
}

impl Part {
    /// A player's curve, by its place among the players.
    pub fn curve(&self, place: usize, kind: CurveKind) -> Option<Vec<CurvePoint>> {
        let problem = self.measurement.spec.problem();
        let pairs = &self.pairs.players[place].1;
        if kind == CurveKind::Identical {
            return Some(identical(problem, pairs));
        }
        let runs: Vec<&Run> = pairs.iter().flat_map(|pair| &pair.runs).collect();
        of_runs(problem, &runs, kind)
    }
}
