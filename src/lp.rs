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

use crate::strategy::Strategy;
use dense::{divide, dot, maximum, power_above};
use simplex::{Memory, Simplex};

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
    Solver::default().solve(objective, rows, limits)
}

/// Solves one program after another in the same memory. An answer depends on its own program alone.
#[derive(Default)]
pub struct Solver {
    memory: Memory,
    scales: Vec<f64>,
}

impl Clone for Solver {
    /// Without the memory, which holds nothing that is needed again.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Solver")
    }
}

impl Solver {
    /// [`solve`], in this memory.
    pub fn solve(&mut self, objective: &[f64], rows: &[f64], limits: &[f64]) -> Solution {
        self.solve_as(Wanted::Proof, objective, rows, limits)
    }

    /// Strategy and violation of [`solve`], without their proof.
    pub fn strategy(&mut self, objective: &[f64], rows: &[f64], limits: &[f64]) -> (Vec<f64>, f64) {
        let solution = self.solve_as(Wanted::Strategy, objective, rows, limits);
        (solution.strategy, solution.violation)
    }

    fn solve_as(
        &mut self,
        wanted: Wanted,
        objective: &[f64],
        rows: &[f64],
        limits: &[f64],
    ) -> Solution {
        let solution = TOLERANCES.iter().find_map(|&tolerance| {
            self.scales.clear();
            let program = Program::new(objective, rows, limits, &mut self.scales);
            solve_within(tolerance, program, wanted, &mut self.memory)
        });
        solution.expect("the simplex method stalled at every tolerance: please report this input")
    }
}

/// What is asked of a program: nobody pays for a proof that nobody reads.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    /// The strategy; there are no prices.
    Strategy,
    /// The strategy with its prices.
    Proof,
}

/// The solution at one tolerance; `None` if the method stalls.
fn solve_within(
    tolerance: f64,
    mut program: Program,
    wanted: Wanted,
    memory: &mut Memory,
) -> Option<Solution> {
    let actions = program.objective.len();
    let is_proved = wanted == Wanted::Proof;
    let mut simplex = Simplex::within_limits(tolerance, &mut program, memory);
    let proof = simplex.run()?;
    let mut pivots = simplex.pivots;
    if proof == 0.0 {
        let strategy = simplex.strategy(actions);
        let prices = if is_proved { simplex.prices(0) } else { &[] };
        return Some(program.feasible(strategy, prices, pivots));
    }
    if proof <= tolerance {
        // The feasible set has no interior and rounding has emptied it: the least violation is zero within tolerance.
        simplex = Simplex::least_violation(tolerance, &mut program, None, memory);
        simplex.run()?;
        pivots += simplex.pivots;
        if simplex.violation()? <= tolerance {
            let strategy = simplex.strategy(actions);
            return Some(program.feasible(strategy, &simplex.prices_of_both_levels(), pivots));
        }
    }
    // Violations are compared in the caller's units, so here all rows have one scale.
    let one_scale = program.scale_of_all();
    simplex = Simplex::least_violation(tolerance, &mut program, Some(one_scale), memory);
    simplex.run()?;
    let strategy = simplex.strategy(actions);
    pivots += simplex.pivots;
    let prices = if is_proved { simplex.prices(0) } else { &[] };
    Some(program.infeasible(strategy, prices, pivots))
}

/// The input as the simplex method takes it.
struct Program<'a> {
    objective: &'a [f64],
    rows: &'a [f64],
    limits: &'a [f64],
    gain_scale: f64,
    /// What brings each row of the excess to largest entry in (1/2, 1].
    scales: &'a mut Vec<f64>,
}

impl<'a> Program<'a> {
    fn new(
        objective: &'a [f64],
        rows: &'a [f64],
        limits: &'a [f64],
        scales: &'a mut Vec<f64>,
    ) -> Self {
        let actions = objective.len();
        assert!(
            actions > 0 && rows.len() == actions * limits.len(),
            "rows must be limits x actions"
        );
        Self {
            objective,
            rows,
            limits,
            gain_scale: 1.0,
            scales,
        }
    }

    /// Writes the objective less its largest entry, scaled, and returns the first action that has the most of it.
    fn gain(&mut self, gain: &mut [f64]) -> usize {
        // Less its largest entry: as x sums to one the optimum is the same, and the start basis is dual feasible.
        let best = maximum(self.objective, |value| value);
        for (gain, value) in gain.iter_mut().zip(self.objective) {
            *gain = value - best;
        }
        self.gain_scale = power_above(gain);
        divide(gain, self.gain_scale);
        // The most is 0; scaling may have made zeros of others, which then are as good.
        gain.iter()
            .position(|&gain| gain == 0.0)
            .expect("a best action")
    }

    /// rows - limits, of one row.
    fn excess(&self, row: usize, excess: &mut [f64]) {
        let actions = self.objective.len();
        let limit = self.limits[row];
        let values = &self.rows[row * actions..][..actions];
        for (excess, &value) in excess.iter_mut().zip(values) {
            *excess = beyond(value, limit);
        }
    }

    /// The same, scaled; notes the scale.
    fn scaled_excess(&mut self, row: usize, excess: &mut [f64]) {
        self.excess(row, excess);
        let scale = power_above(excess);
        divide(excess, scale);
        self.scales.push(scale);
    }

    /// What brings the whole excess to largest entry in (1/2, 1].
    fn scale_of_all(&self) -> f64 {
        power_above(&self.excess_of_all())
    }

    fn excess_of_all(&self) -> Vec<f64> {
        let mut excess = vec![0.0; self.rows.len()];
        for (number, row) in excess.chunks_exact_mut(self.objective.len()).enumerate() {
            self.excess(number, row);
        }
        excess
    }

    /// The answer if some strategy meets all limits: the prices, if there are any, in the caller's units.
    fn feasible(self, strategy: Vec<f64>, prices: &[f64], pivots: u32) -> Solution {
        // Prices are never negative, but rounding may leave one a little below zero. Each takes the place of its scale.
        for (scale, price) in self.scales.iter_mut().zip(prices) {
            *scale = price.max(0.0) * self.gain_scale / *scale;
        }
        let prices = match prices {
            [] => Vec::new(),
            _ => std::mem::take(self.scales),
        };
        Solution {
            strategy,
            violation: 0.0,
            prices,
            pivots,
        }
    }

    /// The answer if no strategy meets all limits.
    fn infeasible(&self, strategy: Vec<f64>, prices: &[f64], pivots: u32) -> Solution {
        // From the strategy itself and not from the simplex's last variable, which carries the rounding of its pivots.
        let violation = self
            .excess_of_all()
            .chunks_exact(strategy.len())
            .map(|row| dot(row, &strategy))
            .fold(f64::NEG_INFINITY, f64::max);
        Solution {
            strategy,
            violation,
            prices: prices.iter().map(|price| price.max(0.0)).collect(),
            pivots,
        }
    }
}

/// value - limit, but 0 where the two are equal up to rounding: thresholds and costs come from different sums.
fn beyond(value: f64, limit: f64) -> f64 {
    let (value_size, limit_size) = (value.abs(), limit.abs());
    // Not `f64::max`, which has its own mind about NaN: that is refused later.
    let larger = if value_size > limit_size {
        value_size
    } else {
        limit_size
    };
    let rounding = 4.0 * f64::EPSILON * larger;
    if (value - limit).abs() <= rounding {
        0.0
    } else {
        value - limit
    }
}

/// Whether a strategy meets all limits, within the tolerance that the method itself has: of each row as it is scaled there.
pub(crate) fn meets(strategy: &Strategy, rows: &[f64], limits: &[f64]) -> bool {
    let actions = strategy.probabilities().len();
    let mut excess = vec![0.0; actions];
    rows.chunks(actions).zip(limits).all(|(row, &limit)| {
        for (excess, &value) in excess.iter_mut().zip(row) {
            *excess = beyond(value, limit);
        }
        strategy.expectation(&excess) <= TOLERANCES[0] * power_above(&excess)
    })
}

/// The number of the largest value; of equals the first.
pub(crate) fn first_largest(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, next| {
        if values[next] > values[best] {
            next
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger and smaller, feasible and not, in the memory of the one before: with and without the proof.
    #[test]
    fn an_answer_does_not_depend_on_the_programs_before() {
        let programs: [(&[f64], &[f64], &[f64]); 6] = [
            (
                &[1.0, 0.5, 0.25],
                &[0.75, 0.25, 0.5, 0.125, 0.5, 0.25],
                &[0.5, 0.25],
            ),
            (&[0.0, 0.5, 1.0], &[0.5, 0.5, 0.75], &[0.25]),
            (&[0.25, 0.75], &[], &[]),
            // Feasible within tolerance alone.
            (
                &[1.0, 0.5, 0.25],
                &[0.75, 0.25, 0.5, -0.75, -0.25, -0.5],
                &[0.5, -0.5 - 1e-12],
            ),
            (&[1.0, 0.5], &[0.75, 0.25], &[0.5]),
            (
                &[0.5, 1.0, 0.25, 0.125],
                &[0.5, 0.75, 0.625, 0.875, 1.0, 0.5, 0.75, 0.25],
                &[0.25, 0.125],
            ),
        ];
        let mut solver = Solver::default();
        for first in programs {
            for (objective, rows, limits) in [first].into_iter().chain(programs) {
                let alone = solve(objective, rows, limits);
                assert_eq!(solver.solve(objective, rows, limits), alone);
                // Had something been read that was not written, it would show.
                solver.memory.spoil();
                assert_eq!(solver.solve(objective, rows, limits), alone);
                solver.memory.spoil();
                let found = solver.strategy(objective, rows, limits);
                assert_eq!(found, (alone.strategy, alone.violation));
            }
        }
    }

    #[test]
    fn without_limits_the_first_best_action_is_played() {
        let solution = solve(&[0.25, 0.75, 0.5, 0.75], &[], &[]);
        assert_eq!(solution.strategy, [0.0, 1.0, 0.0, 0.0]);
        assert_eq!((solution.violation, solution.pivots), (0.0, 0));
    }

    #[test]
    fn a_binding_limit_mixes_two_actions() {
        let solution = solve(&[1.0, 0.5], &[0.75, 0.25], &[0.5]);
        assert_eq!(solution.strategy, [0.5, 0.5]);
        assert_eq!(solution.prices, [1.0]);
    }

    #[test]
    fn among_optimal_strategies_the_lexicographically_largest_is_chosen() {
        let solution = solve(&[1.0; 4], &[1.0, 1.0, 0.0, 0.0], &[0.5]);
        assert_eq!(solution.strategy, [0.5, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn out_of_reach_limits_give_the_least_violation_then_the_reward() {
        let solution = solve(&[0.0, 0.5, 1.0], &[0.5, 0.5, 0.75], &[0.25]);
        assert_eq!(
            (solution.strategy, solution.violation),
            (vec![0.0, 1.0, 0.0], 0.25)
        );
        assert_eq!(solution.prices, [1.0]);
    }

    /// 0.1 + 0.2 is not 0.3, but it is 0.3 up to rounding.
    #[test]
    fn a_cost_that_equals_its_limit_up_to_rounding_is_within_it() {
        let solution = solve(&[0.5, 1.0], &[0.1 + 0.2, 0.1 + 0.2], &[0.3]);
        assert_eq!(
            (solution.strategy, solution.violation),
            (vec![0.0, 1.0], 0.0)
        );
    }

    #[test]
    #[should_panic(expected = "coefficients must be finite")]
    fn a_coefficient_that_is_not_a_number_is_refused() {
        solve(&[0.0, f64::NAN], &[], &[]);
    }
}
