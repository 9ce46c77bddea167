//! The dual simplex method on a basis that is factored afresh at every pivot.

use super::dense::{absolute_sum, dot, invert, residual};
use super::{Program, first_largest};

/// Pivots per basic variable before a larger tolerance is tried. Millions of programs took at most 10 (K <= 1500, m <= 50),
/// made-up ones 20.
const PIVOTS_PER_ROW_MAX: usize = 100;

/// maximise levels[0].x, then levels[1].x, .. subject to matrix x + (0, slacks) = (1, 0, .., 0), all variables >= 0.
///
/// Variables are numbered: columns of the matrix first, then the slack of each row but the first.
pub(super) struct Simplex {
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
    pub(super) pivots: u32,
}

impl Simplex {
    /// The program itself.
    pub(super) fn within_limits(tolerance: f64, program: &Program, scales: &[f64]) -> Self {
        let gain = &program.gain;
        let mut matrix = vec![1.0; gain.len()];
        for (row, scale) in program.excess.chunks_exact(gain.len()).zip(scales) {
            matrix.extend(row.iter().map(|value| value / scale));
        }
        Self::start(tolerance, matrix, vec![gain.clone()], gain)
    }

    /// The least violation, then the gain. One more column holds w = violation + 2, so that excess_i.x <= violation
    /// becomes (excess_i + 2).x - w <= 0; as entries are at most one in size, w >= 1 and is basic at the end.
    pub(super) fn least_violation(tolerance: f64, program: &Program, scales: &[f64]) -> Self {
        let gain = &program.gain;
        let with_last = |values: &[f64], last: f64| [values, &[last]].concat();
        let mut matrix = with_last(&vec![1.0; gain.len()], 0.0);
        for (row, scale) in program.excess.chunks_exact(gain.len()).zip(scales) {
            matrix.extend(row.iter().map(|value| value / scale + 2.0));
            matrix.push(-1.0);
        }
        let levels = vec![
            with_last(&vec![0.0; gain.len()], -1.0),
            with_last(gain, 0.0),
        ];
        Self::start(tolerance, matrix, levels, gain)
    }

    /// The basis {best action, all slacks}; of equal actions the first.
    fn start(tolerance: f64, matrix: Vec<f64>, levels: Vec<Vec<f64>>, gain: &[f64]) -> Self {
        let columns = levels[0].len();
        let size = matrix.len() / columns;
        // Cold, always: started from the last epoch's basis, one tied program in ten would end at another vertex, and the
        // answer would depend on more than its input.
        let basis = std::iter::once(first_largest(gain))
            .chain(columns..columns + size - 1)
            .collect();
        Self {
            tolerance,
            size,
            columns,
            matrix,
            levels,
            basis,
            basic: vec![0.0; size * size],
            inverse: vec![0.0; size * size],
            values: vec![0.0; size],
            pivots: 0,
        }
    }

    /// Pivots to the end. Gives 0 at the optimum, else a lower bound on the largest excess of every strategy; `None` if it
    /// stalls or the basis becomes singular.
    pub(super) fn run(&mut self) -> Option<f64> {
        // Eight more than the rows, so that the smallest programs have room as well.
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
        // In twice the precision: the rounding of an ill-conditioned inverse would otherwise pass for a violation.
        let mut missing = Vec::with_capacity(size);
        for row in 0..size {
            let entries = self.basic[row..].iter().step_by(size);
            let wanted = if row == 0 { 1.0 } else { 0.0 };
            missing.push(residual(wanted, entries.zip(&self.values)));
        }
        for (value, row) in self.values.iter_mut().zip(self.inverse.chunks_exact(size)) {
            *value += dot(row, &missing);
        }
        Some(())
    }

    /// The position that leaves. Its row of the inverse weighs the constraints so that, unless a column enters, every
    /// strategy exceeds some row by -value / (sum of the weights): the largest such proof leaves.
    fn leaving(&self) -> Option<(usize, f64)> {
        let mut leaving = None;
        let negative = (0..)
            .zip(&self.values)
            .filter(|(_, value)| **value < -self.tolerance);
        for (position, value) in negative {
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
        // An entry this small may be rounding; a pivot on it would make the basis singular.
        let least = -self.tolerance * absolute_sum(&weights);
        let mut tied: Vec<usize> = (0..row.len())
            .filter(|&j| row[j] < least && !self.basis.contains(&j))
            .collect();
        for level in 0..self.levels.len() {
            // Reduced costs take a pass over the whole matrix and are needed only where there is a choice.
            if tied.len() > 1 {
                let reduced = self.reduced(level);
                keep_smallest(&mut tied, &row, self.tolerance, |variable| {
                    reduced[variable]
                });
            }
        }
        self.settle_ties(&mut tied, &row);
        tied.first().copied()
    }

    /// The infinitesimal bonuses, action by action. In its own turn a tied action outside the basis has -1 where the others
    /// have 0, and wins; a basic action has its row's entries.
    fn settle_ties(&self, tied: &mut Vec<usize>, row: &[f64]) {
        let mut actions: Vec<(usize, usize)> = self.basis.iter().copied().zip(0..).collect();
        actions.sort_unstable();
        for (action, position) in actions {
            if tied.len() <= 1 || tied[0] < action {
                break;
            }
            let weights = &self.inverse[position * self.size..][..self.size];
            keep_smallest(tied, row, self.tolerance, |variable| {
                self.inner(weights, variable)
            });
        }
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
        // Slacks earn nothing.
        let earned: Vec<f64> = self
            .basis
            .iter()
            .map(|&variable| self.levels[level].get(variable).copied().unwrap_or(0.0))
            .collect();
        self.multipliers(&earned)
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
    pub(super) fn strategy(&self, actions: usize) -> Vec<f64> {
        let mut strategy = vec![0.0; actions];
        for (&variable, &value) in self.basis.iter().zip(&self.values) {
            if variable < actions && value > self.tolerance {
                strategy[variable] = value;
            }
        }
        // What was negligible is missing from the sum, and a strategy must sum to one.
        let total: f64 = strategy.iter().sum();
        strategy
            .iter_mut()
            .for_each(|probability| *probability /= total);
        strategy
    }

    /// The violation of [`Self::least_violation`], from its last column; `None` if rounding has kept that out of the basis.
    pub(super) fn violation(&self) -> Option<f64> {
        // The column holds violation + 2. Scaled rows are at most 1 in size, so the violation is at least -1: with + 2 the
        // column is at least 1 and must be basic, where with + 1 it could be 0 and stay outside.
        let position = self
            .basis
            .iter()
            .position(|&variable| variable == self.columns - 1)?;
        Some(self.values[position] - 2.0)
    }

    /// One price per limit.
    pub(super) fn prices(&self, level: usize) -> Vec<f64> {
        self.dual(level).split_off(1)
    }

    /// Prices under which the violation counts so much that no action pays by violating.
    pub(super) fn prices_of_both_levels(&self) -> Vec<f64> {
        // Both levels as one objective: the first must outweigh what any variable could gain on the second by entering.
        let weight = self
            .reduced(0)
            .iter()
            .zip(&self.reduced(1))
            .filter(|(violation, _)| **violation > self.tolerance)
            .map(|(violation, gain)| -gain / violation)
            .fold(0.0, f64::max);
        self.prices(0)
            .iter()
            .zip(self.prices(1))
            .map(|(violation, gain)| weight * violation + gain)
            .collect()
    }
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
