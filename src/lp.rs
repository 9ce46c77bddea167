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

/// What may be taken for zero once rows and objective are scaled to largest entry one. Rounding leaves about 1e-15. The
/// larger ones are for bases so ill-conditioned that their noise exceeds the first: seen four times in 300,000 programs made
/// to be so, never otherwise.
const TOLERANCES: [f64; 3] = [1e-11, 1e-9, 1e-7];

/// Pivots per basic variable before a larger tolerance is tried. Millions of programs took at most 10 (K <= 1500, m <= 50),
/// made-up ones 20.
const PIVOTS_PER_ROW_MAX: usize = 100;

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

/// The same at one tolerance; none if it stalls.
fn solve_within(
    tolerance: f64,
    objective: &[f64],
    rows: &[f64],
    limits: &[f64],
) -> Option<Solution> {
    let actions = objective.len();
    assert!(
        actions > 0 && rows.len() == actions * limits.len(),
        "rows must be limits x actions"
    );
    let mut excess = Vec::with_capacity(rows.len());
    for (row, limit) in rows.chunks_exact(actions).zip(limits) {
        let rounding = |value: f64| 4.0 * f64::EPSILON * value.abs().max(limit.abs());
        let beyond = |&value: &f64| {
            if (value - limit).abs() <= rounding(value) {
                0.0
            } else {
                value - limit
            }
        };
        excess.extend(row.iter().map(beyond));
    }
    let best = objective.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut gain: Vec<f64> = objective.iter().map(|value| value - best).collect();
    let gain_scale = power_above(&gain);
    gain.iter_mut().for_each(|value| *value /= gain_scale);
    let scales: Vec<f64> = excess.chunks_exact(actions).map(power_above).collect();
    let feasible = |simplex: &Simplex, prices: Vec<f64>, pivots| {
        let prices = prices
            .iter()
            .zip(&scales)
            .map(|(price, scale)| price.max(0.0) * gain_scale / scale)
            .collect();
        Solution {
            strategy: simplex.strategy(actions),
            violation: 0.0,
            prices,
            pivots,
        }
    };

    let mut simplex = Simplex::within_limits(tolerance, &excess, &scales, &gain);
    let proof = simplex.run()?;
    if proof == 0.0 {
        return Some(feasible(&simplex, simplex.prices(0), simplex.pivots));
    }
    let mut pivots = simplex.pivots;
    if proof <= tolerance {
        // The feasible set has no interior and rounding has emptied it: the least violation is zero within tolerance.
        simplex = Simplex::least_violation(tolerance, &excess, &scales, &gain);
        simplex.run()?;
        pivots += simplex.pivots;
        if simplex.violation()? <= tolerance {
            return Some(feasible(&simplex, simplex.prices_of_both_levels(), pivots));
        }
    }
    // Violations are compared in the caller's units, so here all rows have one scale.
    let scales = vec![power_above(&excess); limits.len()];
    simplex = Simplex::least_violation(tolerance, &excess, &scales, &gain);
    simplex.run()?;
    let strategy = simplex.strategy(actions);
    let violation = excess
        .chunks_exact(actions)
        .map(|row| dot(row, &strategy))
        .fold(f64::NEG_INFINITY, f64::max);
    let prices = simplex
        .prices(0)
        .iter()
        .map(|price| price.max(0.0))
        .collect();
    Some(Solution {
        strategy,
        violation,
        prices,
        pivots: pivots + simplex.pivots,
    })
}

/// maximise levels[0].x, then levels[1].x, .. subject to matrix x + (0, slacks) = (1, 0, .., 0), all variables >= 0.
///
/// Variables are numbered: columns of the matrix first, then the slack of each row but the first.
struct Simplex {
    tolerance: f64,
    size: usize,
    columns: usize,
    /// `size` rows of `columns` entries; the first row says that probabilities sum to one.
    matrix: Vec<f64>,
    /// The objectives in order of importance, each one entry per column.
    levels: Vec<Vec<f64>>,
    /// The basic variable of each position, their columns one after another, and the inverse of that matrix by rows.
    basis: Vec<usize>,
    basic: Vec<f64>,
    inverse: Vec<f64>,
    /// The value of the basic variable of each position.
    values: Vec<f64>,
    pivots: u32,
}

impl Simplex {
    /// The program itself.
    fn within_limits(tolerance: f64, excess: &[f64], scales: &[f64], gain: &[f64]) -> Self {
        let mut matrix = vec![1.0; gain.len()];
        for (row, scale) in excess.chunks_exact(gain.len()).zip(scales) {
            matrix.extend(row.iter().map(|value| value / scale));
        }
        Self::start(tolerance, matrix, vec![gain.to_vec()], gain)
    }

    /// The least violation, then the gain. One more column holds w = violation + 2, so that excess_i.x <= violation
    /// becomes (excess_i + 2).x - w <= 0; as entries are at most one in size, w >= 1 and is basic at the end.
    fn least_violation(tolerance: f64, excess: &[f64], scales: &[f64], gain: &[f64]) -> Self {
        let with = |values: &[f64], last: f64| [values, &[last]].concat();
        let mut matrix = with(&vec![1.0; gain.len()], 0.0);
        for (row, scale) in excess.chunks_exact(gain.len()).zip(scales) {
            matrix.extend(row.iter().map(|value| value / scale + 2.0));
            matrix.push(-1.0);
        }
        Self::start(
            tolerance,
            matrix,
            vec![with(&vec![0.0; gain.len()], -1.0), with(gain, 0.0)],
            gain,
        )
    }

    /// The basis {best action, all slacks}; of equal actions the first.
    fn start(tolerance: f64, matrix: Vec<f64>, levels: Vec<Vec<f64>>, gain: &[f64]) -> Self {
        let columns = levels[0].len();
        let size = matrix.len() / columns;
        let basis = std::iter::once(first_largest(gain))
            .chain(columns..columns + size - 1)
            .collect();
        let (basic, inverse, values) = (
            vec![0.0; size * size],
            vec![0.0; size * size],
            vec![0.0; size],
        );
        Self {
            tolerance,
            size,
            columns,
            matrix,
            levels,
            basis,
            basic,
            inverse,
            values,
            pivots: 0,
        }
    }

    /// Pivots to the end. Gives 0 at the optimum, else a lower bound on the largest excess of every strategy; none if it
    /// stalls or the basis becomes singular.
    fn run(&mut self) -> Option<f64> {
        while (self.pivots as usize) < PIVOTS_PER_ROW_MAX * (self.size + 8) {
            self.factor()?;
            let Some((position, proof)) = self.leaving() else {
                return Some(0.0);
            };
            let Some(entering) = self.entering(position) else {
                return Some(proof);
            };
            self.basis[position] = entering;
            self.pivots += 1;
        }
        None
    }

    /// Inverts the basis and computes the values: B values = (1, 0, .., 0), with one step of refinement.
    fn factor(&mut self) -> Option<()> {
        let size = self.size;
        for (column, &variable) in self.basic.chunks_exact_mut(size).zip(&self.basis) {
            for (row, entry) in column.iter_mut().enumerate() {
                *entry = if variable < self.columns {
                    self.matrix[row * self.columns + variable]
                } else {
                    f64::from(u8::from(variable - self.columns + 1 == row))
                };
            }
        }
        invert(&self.basic, &mut self.inverse, size)?;
        for (value, row) in self.values.iter_mut().zip(self.inverse.chunks_exact(size)) {
            *value = row[0];
        }
        let missing: Vec<f64> = (0..size)
            .map(|row| {
                let entries = self.basic[row..].iter().step_by(size);
                residual(f64::from(u8::from(row == 0)), entries.zip(&self.values))
            })
            .collect();
        for (value, row) in self.values.iter_mut().zip(self.inverse.chunks_exact(size)) {
            *value += dot(row, &missing);
        }
        Some(())
    }

    /// The position that leaves. Its row of the inverse weighs the constraints so that, unless a column enters, every
    /// strategy exceeds some row by -value / (sum of the weights): the largest such proof leaves.
    fn leaving(&self) -> Option<(usize, f64)> {
        let mut leaving = None;
        for (position, &value) in self
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value < -self.tolerance)
        {
            let proof = -value / absolute_sum(&self.inverse[position * self.size..][..self.size]);
            if leaving.is_none_or(|(_, most)| proof > most) {
                leaving = Some((position, proof));
            }
        }
        leaving
    }

    /// The variable that enters at this position, if one can: the lexicographically smallest ratio of reduced costs to the
    /// entry in the leaving row.
    fn entering(&self, position: usize) -> Option<usize> {
        let mut target = vec![0.0; self.size];
        target[position] = 1.0;
        let weights = self.multipliers(&target);
        let row = self.combine(&weights);
        let least = -self.tolerance * absolute_sum(&weights);
        let mut tied: Vec<usize> = (0..row.len())
            .filter(|&j| row[j] < least && !self.basis.contains(&j))
            .collect();

        for level in 0..self.levels.len() {
            if tied.len() > 1 {
                let reduced = self.reduced(level);
                keep_smallest(&mut tied, &row, self.tolerance, |variable| {
                    reduced[variable]
                });
            }
        }
        // The infinitesimal bonuses, action by action. In its own turn a tied action outside the basis has -1 where the
        // others have 0, and wins; a basic action has its row's entries.
        let mut actions: Vec<(usize, usize)> = self.basis.iter().copied().zip(0..).collect();
        actions.sort_unstable();
        for (action, position) in actions {
            if tied.len() <= 1 || tied[0] < action {
                break;
            }
            let weights = &self.inverse[position * self.size..][..self.size];
            keep_smallest(&mut tied, &row, self.tolerance, |variable| {
                self.inner(weights, variable)
            });
        }
        tied.first().copied()
    }

    /// y with y.B = target, with one step of refinement.
    fn multipliers(&self, target: &[f64]) -> Vec<f64> {
        let mut multipliers = vec![0.0; self.size];
        self.add_combination(target, &mut multipliers);
        let columns = self.basic.chunks_exact(self.size);
        let missing: Vec<f64> = columns
            .zip(target)
            .map(|(column, &wanted)| residual(wanted, column.iter().zip(&multipliers)))
            .collect();
        self.add_combination(&missing, &mut multipliers);
        multipliers
    }

    /// Adds the inverse's rows, weighted.
    fn add_combination(&self, weights: &[f64], sum: &mut [f64]) {
        for (&weight, row) in weights.iter().zip(self.inverse.chunks_exact(self.size)) {
            if weight != 0.0 {
                sum.iter_mut()
                    .zip(row)
                    .for_each(|(total, entry)| *total += weight * entry);
            }
        }
    }

    /// The prices of the rows for one level of the objective; the first is the level's value.
    fn dual(&self, level: usize) -> Vec<f64> {
        let cost = |&variable: &usize| {
            if variable < self.columns {
                self.levels[level][variable]
            } else {
                0.0
            }
        };
        self.multipliers(&self.basis.iter().map(cost).collect::<Vec<f64>>())
    }

    /// The reduced cost of every variable, at least 0 at an optimum.
    fn reduced(&self, level: usize) -> Vec<f64> {
        let mut reduced = self.combine(&self.dual(level));
        reduced
            .iter_mut()
            .zip(&self.levels[level])
            .for_each(|(value, cost)| *value -= cost);
        reduced
    }

    /// The weighted sum of the rows, for every variable. Row by row, so that the compiler can use vectors.
    fn combine(&self, weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns];
        for (&weight, row) in weights.iter().zip(self.matrix.chunks_exact(self.columns)) {
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, entry)| *sum += weight * entry);
        }
        sums.extend(&weights[1..]);
        sums
    }

    /// The weighted sum of the rows, for one variable.
    fn inner(&self, weights: &[f64], variable: usize) -> f64 {
        match variable.checked_sub(self.columns) {
            Some(slack) => weights[slack + 1],
            None => weights
                .iter()
                .zip(self.matrix[variable..].iter().step_by(self.columns))
                .map(|(w, e)| w * e)
                .sum(),
        }
    }

    /// The values of the actions: what is negligible is zero, and the rest sums to one.
    fn strategy(&self, actions: usize) -> Vec<f64> {
        let mut strategy = vec![0.0; actions];
        for (&variable, &value) in self.basis.iter().zip(&self.values) {
            if variable < actions && value > self.tolerance {
                strategy[variable] = value;
            }
        }
        let total: f64 = strategy.iter().sum();
        strategy
            .iter_mut()
            .for_each(|probability| *probability /= total);
        strategy
    }

    /// The violation of [`Self::least_violation`], from its last column; none if rounding has kept that out of the basis.
    fn violation(&self) -> Option<f64> {
        let position = self
            .basis
            .iter()
            .position(|&variable| variable == self.columns - 1)?;
        Some(self.values[position] - 2.0)
    }

    /// One price per limit.
    fn prices(&self, level: usize) -> Vec<f64> {
        self.dual(level).split_off(1)
    }

    /// Prices under which the violation counts so much that no action pays by violating.
    fn prices_of_both_levels(&self) -> Vec<f64> {
        let ratio = |(violation, gain): (&f64, &f64)| {
            if *violation > self.tolerance {
                -gain / violation
            } else {
                0.0
            }
        };
        let weight = self
            .reduced(0)
            .iter()
            .zip(&self.reduced(1))
            .map(ratio)
            .fold(0.0, f64::max);
        self.prices(0)
            .iter()
            .zip(self.prices(1))
            .map(|(violation, gain)| weight * violation + gain)
            .collect()
    }
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

/// Keeps the variables whose ratio cost / -row is smallest. Costs within tolerance are tied (Harris' ratio test): choosing
/// any of them leaves no reduced cost below -tolerance.
fn keep_smallest(tied: &mut Vec<usize>, row: &[f64], tolerance: f64, cost: impl Fn(usize) -> f64) {
    let costs: Vec<f64> = tied.iter().map(|&variable| cost(variable)).collect();
    let ratios = tied
        .iter()
        .zip(&costs)
        .map(|(&variable, cost)| (cost + tolerance) / -row[variable]);
    let least = ratios.fold(f64::INFINITY, f64::min);
    let mut costs = costs.iter();
    tied.retain(|&variable| {
        costs
            .next()
            .is_some_and(|cost| *cost / -row[variable] <= least)
    });
}

/// The smallest power of two at or above every absolute value; 1 if all are zero.
fn power_above(values: &[f64]) -> f64 {
    assert!(
        values.iter().all(|value| value.abs() <= 1e300),
        "coefficients must be finite and at most 1e300"
    );
    let largest = values
        .iter()
        .fold(0.0f64, |most, value| most.max(value.abs()));
    let (fraction, exponent) = libm::frexp(largest);
    if fraction == 0.0 {
        1.0
    } else {
        libm::ldexp(1.0, exponent - i32::from(fraction == 0.5))
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

fn absolute_sum(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

/// wanted - sum a b, as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2). Products are split by Veltkamp's
/// method rather than by a fused operation, which not every processor has.
fn residual<'a>(wanted: f64, terms: impl Iterator<Item = (&'a f64, &'a f64)>) -> f64 {
    let split = |value: f64| {
        let shifted = 134_217_729.0 * value;
        let high = shifted - (shifted - value);
        (high, value - high)
    };
    let (mut sum, mut error) = (wanted, 0.0);
    for (&a, &b) in terms.filter(|(a, _)| **a != 0.0) {
        let product = -a * b;
        let ((a_high, a_low), (b_high, b_low)) = (split(-a), split(b));
        let product_error =
            a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
        let total = sum + product;
        let part = total - sum;
        error += ((sum - (total - part)) + (product - part)) + product_error;
        sum = total;
    }
    sum + error
}

/// The inverse, by rows, of a matrix given by columns: Gauss-Jordan elimination with row pivoting. None if it is singular.
fn invert(columns: &[f64], inverse: &mut [f64], size: usize) -> Option<()> {
    let width = 2 * size;
    let mut rows = vec![0.0; size * width];
    for row in 0..size {
        for column in 0..size {
            rows[row * width + column] = columns[column * size + row];
        }
        rows[row * width + size + row] = 1.0;
    }
    for step in 0..size {
        let entry = |row: usize| rows[row * width + step].abs();
        let pivot = (step..size)
            .rev()
            .max_by(|&a, &b| entry(a).total_cmp(&entry(b)))
            .expect("a row");
        let scale = rows[pivot * width + step];
        if scale == 0.0 {
            return None;
        }
        for column in 0..width {
            rows.swap(step * width + column, pivot * width + column);
        }
        let (before, rest) = rows.split_at_mut(step * width);
        let (pivot_row, after) = rest.split_at_mut(width);
        pivot_row[step..]
            .iter_mut()
            .for_each(|value| *value /= scale);
        for row in before
            .chunks_exact_mut(width)
            .chain(after.chunks_exact_mut(width))
        {
            let factor = row[step];
            if factor != 0.0 {
                row[step..]
                    .iter_mut()
                    .zip(&pivot_row[step..])
                    .for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    for (target, row) in inverse.chunks_exact_mut(size).zip(rows.chunks_exact(width)) {
        target.copy_from_slice(&row[size..]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
