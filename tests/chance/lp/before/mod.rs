//! The solver as it was before its buffers were shared and its loops unrolled: the slow oracle of the one in `src`.
//!
//! The best strategy under linear limits: a small dense linear program, solved by the dual simplex method.
//!
//! ```text
//! maximise objective.x   over   x >= 0,  sum x = 1,  rows_i.x <= limits_i
//! ```
//!
//! As x sums to one, every limit moves into its row (rows_i - limits_i, right-hand side 0) and the start basis
//! {best action, all slacks} is dual feasible: there is no first phase. The answer is a pure function of the input:
//!
//! - Start cold, from that basis. The state is the basis alone: each pivot factors it afresh, so no error accumulates.
//! - Leaves: the basic variable whose negative value proves the largest violation. Enters: the smallest ratio of reduced
//!   cost to row entry. Ties are settled as if action 0 earned an infinitesimal bonus, action 1 an infinitesimally smaller
//!   one, and so on; the method then cannot cycle, and **among all optimal strategies the answer is the lexicographically
//!   largest**.
//! - One tolerance, relative: each row and the objective are first scaled, by powers of two, to largest entry in (1/2, 1].
//!   What equals a limit up to rounding counts as equal to it.
//!
//! If no strategy meets the limits, the same method minimises the largest violation first and maximises the objective
//! second, as two levels of one lexicographic objective. Paper: Algorithm 3, line 14, and Algorithm 4, line 15; the
//! fallback is ours (docs/deviations.md, 8).

mod dense;
mod simplex;

use dense::{dot, power_above};
use simplex::Simplex;

/// What may be taken for zero once rows and objective are scaled to largest entry one. Rounding leaves about 1e-15. The
/// larger ones are for bases so ill-conditioned that their noise exceeds the first: seen four times in 300,000 programs made
/// to be so, never otherwise.
const TOLERANCES: [f64; 3] = [1e-11, 1e-9, 1e-7];

/// An optimal strategy, or the least bad one, with its proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// A probability per action. At most one more positive entry than there are limits; the others are exactly 0.
    pub strategy: Vec<f64>,
    /// 0 if some strategy meets all limits, else the least possible largest excess max_i (rows_i.x - limits_i).
    pub violation: f64,
    /// One per limit, not negative. With excess e_ij = rows_ij - limits_i: if feasible, no strategy earns more than
    /// max_j (objective_j - sum_i prices_i e_ij), which is what `strategy` earns. If not, prices sum to one and no strategy
    /// has a largest excess below min_j sum_i prices_i e_ij, which is `violation`.
    pub prices: Vec<f64>,
    /// Pivots made.
    pub pivots: u32,
}

/// Maximises `objective.x` over strategies with `rows_i.x <= limits_i`; row i is `rows[i * objective.len()..]`.
///
/// # Numerics
///
/// Feasible within 1e-11 and optimal within about 1e-9 of the scales. Where columns or rows differ by less than 1e-5 of
/// themselves but are not equal, `prices` may prove less than that; the strategy is as good.
///
/// # Panics
///
/// If the lengths do not fit, there is no action, or a value is not finite or above 1e300.
pub fn solve(objective: &[f64], rows: &[f64], limits: &[f64]) -> Solution {
    let solution = TOLERANCES
        .iter()
        .find_map(|&tolerance| solve_within(tolerance, objective, rows, limits));
    solution.expect("the simplex method stalled at every tolerance: please report this input")
}

/// The same at one tolerance; `None` if it stalls.
fn solve_within(
    tolerance: f64,
    objective: &[f64],
    rows: &[f64],
    limits: &[f64],
) -> Option<Solution> {
    let program = Program::new(objective, rows, limits);
    let mut simplex = Simplex::within_limits(tolerance, &program, &program.scales);
    let proof = simplex.run()?;
    if proof == 0.0 {
        return Some(program.feasible(&simplex, &simplex.prices(0), simplex.pivots));
    }
    let mut pivots = simplex.pivots;
    if proof <= tolerance {
        // The feasible set has no interior and rounding has emptied it: the least violation is zero within tolerance.
        simplex = Simplex::least_violation(tolerance, &program, &program.scales);
        simplex.run()?;
        pivots += simplex.pivots;
        if simplex.violation()? <= tolerance {
            return Some(program.feasible(&simplex, &simplex.prices_of_both_levels(), pivots));
        }
    }
    // Violations are compared in the caller's units, so here all rows have one scale.
    let one_scale = vec![power_above(&program.excess); limits.len()];
    simplex = Simplex::least_violation(tolerance, &program, &one_scale);
    simplex.run()?;
    Some(program.infeasible(&simplex, pivots + simplex.pivots))
}

/// The input as the simplex method takes it.
struct Program {
    actions: usize,
    /// rows - limits, row by row.
    excess: Vec<f64>,
    /// What brings each row of the excess to largest entry in (1/2, 1].
    scales: Vec<f64>,
    /// The objective less its largest entry, scaled.
    gain: Vec<f64>,
    gain_scale: f64,
}

impl Program {
    fn new(objective: &[f64], rows: &[f64], limits: &[f64]) -> Self {
        let actions = objective.len();
        assert!(
            actions > 0 && rows.len() == actions * limits.len(),
            "rows must be limits x actions"
        );
        let mut excess = Vec::with_capacity(rows.len());
        for (row, &limit) in rows.chunks_exact(actions).zip(limits) {
            excess.extend(row.iter().map(|&value| beyond(value, limit)));
        }
        // Less its largest entry: as x sums to one the optimum is the same, and the start basis is dual feasible.
        let best = objective.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut gain: Vec<f64> = objective.iter().map(|value| value - best).collect();
        let gain_scale = power_above(&gain);
        gain.iter_mut().for_each(|value| *value /= gain_scale);
        Self {
            actions,
            scales: excess.chunks_exact(actions).map(power_above).collect(),
            excess,
            gain,
            gain_scale,
        }
    }

    /// The answer if some strategy meets all limits: the prices in the caller's units.
    fn feasible(&self, simplex: &Simplex, prices: &[f64], pivots: u32) -> Solution {
        // Prices are never negative, but rounding may leave one a little below zero.
        let prices = prices
            .iter()
            .zip(&self.scales)
            .map(|(price, scale)| price.max(0.0) * self.gain_scale / scale)
            .collect();
        Solution {
            strategy: simplex.strategy(self.actions),
            violation: 0.0,
            prices,
            pivots,
        }
    }

    /// The answer if no strategy meets all limits.
    fn infeasible(&self, simplex: &Simplex, pivots: u32) -> Solution {
        let strategy = simplex.strategy(self.actions);
        // From the strategy itself and not from the simplex's last variable, which carries the rounding of its pivots.
        let violation = self
            .excess
            .chunks_exact(self.actions)
            .map(|row| dot(row, &strategy))
            .fold(f64::NEG_INFINITY, f64::max);
        let prices = simplex
            .prices(0)
            .iter()
            .map(|price| price.max(0.0))
            .collect();
        Solution {
            strategy,
            violation,
            prices,
            pivots,
        }
    }
}

/// value - limit, but 0 where the two are equal up to rounding: thresholds and costs come from different sums.
fn beyond(value: f64, limit: f64) -> f64 {
    let rounding = 4.0 * f64::EPSILON * value.abs().max(limit.abs());
    if (value - limit).abs() <= rounding {
        0.0
    } else {
        value - limit
    }
}

/// The number of the largest value; of equals the first.
fn first_largest(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, next| {
        if values[next] > values[best] {
            next
        } else {
            best
        }
    })
}
