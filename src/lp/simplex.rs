//! The dual simplex method on a basis that is factored afresh at every pivot.

use super::Program;
use super::dense::{absolute_sum, combine, dot, invert, residual};

/// Pivots per basic variable before a larger tolerance is tried. Millions of programs took at most 10 (K <= 1500, m <= 50),
/// made-up ones 20.
const PIVOTS_PER_ROW_MAX: usize = 100;

/// A factor that makes up for the rounding of two products, and is far from a tie.
const BEYOND: f64 = 1.0 + 1e-14;

/// maximise levels[0].x, then levels[1].x, .. subject to matrix x + (0, slacks) = (1, 0, .., 0), all variables >= 0.
///
/// Variables are numbered: columns of the matrix first, then the slack of each row but the first.
// Slices of one allocation: one for each of them took a third of a small program's time.
pub(super) struct Simplex<'a> {
    tolerance: f64,
    size: usize,
    columns: usize,
    /// `size` rows of `columns` entries; the first row says that probabilities sum to one.
    matrix: &'a mut [f64],
    /// The objectives in order of importance, each one entry per column.
    levels: &'a mut [f64],
    /// The basic variable of each position, their columns one after another, and the inverse of that matrix by rows.
    basis: &'a mut [usize],
    basic: &'a mut [f64],
    inverse: &'a mut [f64],
    /// The value of the basic variable of each position.
    values: &'a mut [f64],
    pub(super) pivots: u32,
    room: Room<'a>,
    /// The variables that may enter, in increasing order.
    tied: &'a mut [usize],
}

/// What the slices of a [`Simplex`] are of. It may have served other programs: what is read has been written for this one.
#[derive(Default)]
pub(super) struct Memory {
    numbers: Vec<f64>,
    variables: Vec<usize>,
}

#[cfg(test)]
impl Memory {
    /// Leaves nothing in it that a program could compute with.
    pub(super) fn spoil(&mut self) {
        self.numbers.fill(f64::NAN);
        self.variables.fill(usize::MAX);
    }
}

/// What a pivot computes and the next one overwrites.
struct Room<'a> {
    /// The basis beside the identity, while it is inverted.
    rows: &'a mut [f64],
    /// One entry per position.
    target: &'a mut [f64],
    missing: &'a mut [f64],
    weights: &'a mut [f64],
    /// One entry per variable.
    row: &'a mut [f64],
    reduced: &'a mut [f64],
    costs: &'a mut [f64],
}

impl<'a> Simplex<'a> {
    /// The program itself. Its rows' scales are noted in it.
    pub(super) fn within_limits(
        tolerance: f64,
        program: &mut Program,
        memory: &'a mut Memory,
    ) -> Self {
        let columns = program.objective.len();
        let simplex = Self::cold(tolerance, program, columns, 1, memory);
        let (ones, rows) = simplex.matrix.split_at_mut(columns);
        ones.fill(1.0);
        for (number, row) in rows.chunks_exact_mut(columns).enumerate() {
            program.scaled_excess(number, row);
        }
        simplex.basis[0] = program.gain(simplex.levels);
        simplex
    }

    /// The least violation, then the gain. One more column holds w = violation + 2, so that excess_i.x <= violation
    /// becomes (excess_i + 2).x - w <= 0; as entries are at most one in size, w >= 1 and is basic at the end.
    pub(super) fn least_violation(
        tolerance: f64,
        program: &mut Program,
        one_scale: Option<f64>,
        memory: &'a mut Memory,
    ) -> Self {
        let actions = program.objective.len();
        let columns = actions + 1;
        let simplex = Self::cold(tolerance, program, columns, 2, memory);
        let (ones, rows) = simplex.matrix.split_at_mut(columns);
        ones[..actions].fill(1.0);
        ones[actions] = 0.0;
        for (number, row) in rows.chunks_exact_mut(columns).enumerate() {
            let (row, last) = row.split_at_mut(actions);
            program.excess(number, row);
            let scale = one_scale.unwrap_or(program.scales[number]);
            row.iter_mut()
                .for_each(|value| *value = *value / scale + 2.0);
            last[0] = -1.0;
        }
        // The violation outranks the gain, and each is nothing to the other's columns.
        let (violation, gain) = simplex.levels.split_at_mut(columns);
        violation[..actions].fill(0.0);
        violation[actions] = -1.0;
        simplex.basis[0] = program.gain(&mut gain[..actions]);
        gain[actions] = 0.0;
        simplex
    }

    /// The basis {best action, all slacks}, where the caller puts in the action, of equals the first; matrix and levels are the
    /// caller's, too.
    fn cold(
        tolerance: f64,
        program: &Program,
        columns: usize,
        levels: usize,
        memory: &'a mut Memory,
    ) -> Self {
        let size = program.limits.len() + 1;
        let variables = columns + size - 1;
        let numbers = (size + levels) * columns + 4 * size * size + 4 * size + 3 * variables;
        if memory.numbers.len() < numbers {
            memory.numbers = vec![0.0; numbers];
        }
        if memory.variables.len() < size + variables {
            memory.variables = vec![0; size + variables];
        }
        let mut rest = &mut memory.numbers[..numbers];
        let mut take = |count: usize| {
            let (taken, others) = std::mem::take(&mut rest).split_at_mut(count);
            rest = others;
            taken
        };
        // Cold, always: started from the last epoch's basis, one tied program in ten would end at another vertex, and the
        // answer would depend on more than its input.
        let (basis, tied) = memory.variables[..size + variables].split_at_mut(size);
        (1..size).for_each(|slack| basis[slack] = columns + slack - 1);
        Self {
            tolerance,
            size,
            columns,
            matrix: take(size * columns),
            levels: take(levels * columns),
            basis,
            basic: take(size * size),
            inverse: take(size * size),
            values: take(size),
            pivots: 0,
            room: Room {
                rows: take(2 * size * size),
                target: take(size),
                missing: take(size),
                weights: take(size),
                row: take(variables),
                reduced: take(variables),
                costs: take(variables),
            },
            tied,
        }
    }

    /// Pivots to the end. Gives 0 at the optimum, else a lower bound on the largest excess of every strategy; `None` if it
    /// stalls or the basis becomes singular.
    pub(super) fn run(&mut self) -> Option<f64> {
        // Compiled apart for the numbers of limits that most programs have: their loops over positions are then unrolled.
        match self.size {
            2 => self.run_with(2),
            3 => self.run_with(3),
            4 => self.run_with(4),
            size => self.run_with(size),
        }
    }

    #[inline(always)]
    fn run_with(&mut self, size: usize) -> Option<f64> {
        // Eight more than the rows, so that the smallest programs have room as well.
        while (self.pivots as usize) < PIVOTS_PER_ROW_MAX * (size + 8) {
            self.factor(size)?;
            let Some((position, proof)) = self.leaving(size) else {
                return Some(0.0);
            };
            let Some(entering) = self.entering(position, size) else {
                return Some(proof);
            };
            self.basis[position] = entering;
            self.pivots += 1;
        }
        None
    }

    /// Whether the basis is the first one of [`Self::within_limits`], where all that follows from it is known: with a the best
    /// action's column, whose first entry is the largest, B = (a, e_1, ..), and all is exact but one subtraction an entry.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.pivots == 0 && self.levels.len() == self.columns
    }

    /// Inverts the basis and computes the values: B values = (1, 0, .., 0), with one step of refinement.
    #[inline(always)]
    fn factor(&mut self, size: usize) -> Option<()> {
        let is_plain = self.is_plain();
        let basic = &mut self.basic[..size * size];
        let inverse = &mut self.inverse[..size * size];
        let values = &mut self.values[..size];
        for (column, &variable) in basic.chunks_exact_mut(size).zip(&self.basis[..size]) {
            for (row, entry) in column.iter_mut().enumerate() {
                *entry = if variable < self.columns {
                    self.matrix[row * self.columns + variable]
                } else {
                    f64::from(u8::from(variable - self.columns + 1 == row))
                };
            }
        }
        if is_plain {
            inverse.fill(0.0);
            inverse[0] = 1.0;
            for position in 1..size {
                inverse[position * size] = 0.0 - basic[position];
                inverse[position * size + position] = 1.0;
            }
            (0..size).for_each(|position| values[position] = inverse[position * size]);
            return Some(());
        }
        invert(basic, inverse, &mut self.room.rows[..2 * size * size], size)?;
        (0..size).for_each(|position| values[position] = inverse[position * size]);
        // In twice the precision: the rounding of an ill-conditioned inverse would otherwise pass for a violation.
        let missing = &mut self.room.missing[..size];
        for row in 0..size {
            let entries = basic[row..].iter().step_by(size);
            let wanted = if row == 0 { 1.0 } else { 0.0 };
            missing[row] = residual(wanted, entries.zip(&*values));
        }
        for (value, row) in values.iter_mut().zip(inverse.chunks_exact(size)) {
            *value += dot(row, missing);
        }
        Some(())
    }

    /// The position that leaves. Its row of the inverse weighs the constraints so that, unless a column enters, every
    /// strategy exceeds some row by -value / (sum of the weights): the largest such proof leaves.
    #[inline(always)]
    fn leaving(&self, size: usize) -> Option<(usize, f64)> {
        let mut leaving = None;
        for (position, value) in self.values[..size].iter().enumerate() {
            if *value < -self.tolerance {
                let proof = -value / absolute_sum(&self.inverse[position * size..][..size]);
                if leaving.is_none_or(|(_, most)| proof > most) {
                    leaving = Some((position, proof));
                }
            }
        }
        leaving
    }

    /// The variable that enters at this position, if one can: the lexicographically smallest ratio of reduced costs to the
    /// entry in the leaving row.
    #[inline(always)]
    fn entering(&mut self, position: usize, size: usize) -> Option<usize> {
        self.leaving_row(position, size);
        // An entry this small may be rounding; a pivot on it would make the basis singular.
        let least = -self.tolerance * absolute_sum(&self.room.weights[..size]);
        let row = &mut *self.room.row;
        self.basis[..size]
            .iter()
            .for_each(|&basic| row[basic] = 0.0);
        self.reduce(0, size);
        let mut count = 0;
        let mut best = f64::INFINITY;
        let entries = self.room.row.iter().zip(&*self.room.reduced);
        for (variable, (&entry, &cost)) in entries.enumerate() {
            // Of many candidates nearly all are beyond the best so far, by more than a product rounds: they need no division.
            let beyond = (best > 0.0) & (cost > best * -entry * BEYOND);
            if (entry < least) & !beyond {
                let ratio = (cost + self.tolerance) / -entry;
                best = if ratio < best { ratio } else { best };
                self.tied[count] = variable;
                count += 1;
            }
        }
        for level in 0..self.levels.len() / self.columns {
            // Reduced costs take a pass over the whole matrix and are needed only where there is a choice.
            if count > 1 {
                if level > 0 {
                    self.reduce(level, size);
                }
                let Room {
                    row,
                    reduced,
                    costs,
                    ..
                } = &mut self.room;
                let cost = |variable: usize| reduced[variable];
                let tied = &mut self.tied[..count];
                count = keep_smallest(tied, row, self.tolerance, costs, cost);
            }
        }
        if count > 1 {
            count = self.settle_ties(count);
        }
        self.tied[..count].first().copied()
    }

    /// The leaving row of the tableau, an entry per variable, and the weights that make it of the matrix.
    #[inline(always)]
    fn leaving_row(&mut self, position: usize, size: usize) {
        if self.is_plain() {
            self.room
                .weights
                .copy_from_slice(&self.inverse[position * size..][..size]);
            let (of_actions, of_slacks) = self.room.row.split_at_mut(self.columns);
            let entries = &self.matrix[position * self.columns..][..self.columns];
            let first = self.room.weights[0];
            for (entry, value) in of_actions.iter_mut().zip(entries) {
                *entry = first + value;
            }
            of_slacks.copy_from_slice(&self.room.weights[1..]);
            return;
        }
        let target = &mut self.room.target[..size];
        target.fill(0.0);
        target[position] = 1.0;
        self.multiply(size);
        combine(self.room.weights, self.matrix, self.room.row);
    }

    /// The infinitesimal bonuses, action by action. In its own turn a tied action outside the basis has -1 where the others
    /// have 0, and wins; a basic action has its row's entries. Returns how many are still tied.
    fn settle_ties(&mut self, mut count: usize) -> usize {
        let mut actions: Vec<(usize, usize)> = self.basis.iter().copied().zip(0..).collect();
        actions.sort_unstable();
        for (action, position) in actions {
            if count <= 1 || self.tied[0] < action {
                break;
            }
            let weights = &self.inverse[position * self.size..][..self.size];
            let (matrix, columns) = (&*self.matrix, self.columns);
            let cost = |variable: usize| inner(weights, matrix, columns, variable);
            let Room { row, costs, .. } = &mut self.room;
            let tied = &mut self.tied[..count];
            count = keep_smallest(tied, row, self.tolerance, costs, cost);
        }
        count
    }

    /// The weights y with y.B = target, with one step of refinement.
    #[inline(always)]
    fn multiply(&mut self, size: usize) {
        let weights = &mut self.room.weights[..size];
        let missing = &mut self.room.missing[..size];
        let target = &self.room.target[..size];
        let inverse = &self.inverse[..size * size];
        weights.fill(0.0);
        add_combination(target, inverse, weights);
        let columns = self.basic[..size * size].chunks_exact(size);
        for ((missing, column), &wanted) in missing.iter_mut().zip(columns).zip(target) {
            *missing = residual(wanted, column.iter().zip(&*weights));
        }
        add_combination(missing, inverse, weights);
    }

    /// The prices of the rows for one level of the objective, as weights; the first is the level's value.
    #[inline(always)]
    fn price(&mut self, level: usize, size: usize) {
        let earned = &self.levels[level * self.columns..][..self.columns];
        // Slacks earn nothing.
        for (target, &variable) in self.room.target[..size].iter_mut().zip(&*self.basis) {
            *target = earned.get(variable).copied().unwrap_or(0.0);
        }
        self.multiply(size);
    }

    /// The reduced cost of every variable, at least 0 at an optimum.
    #[inline(always)]
    fn reduce(&mut self, level: usize, size: usize) {
        // The best action gains nothing over itself, so that all prices are zero at first.
        if self.is_plain() {
            self.room.reduced.fill(0.0);
        } else {
            self.price(level, size);
            combine(self.room.weights, self.matrix, self.room.reduced);
        }
        let costs = &self.levels[level * self.columns..][..self.columns];
        let of_actions = &mut self.room.reduced[..self.columns];
        (of_actions.iter_mut().zip(costs)).for_each(|(value, cost)| *value -= cost);
    }

    /// The values of the actions: what is negligible is zero, and the rest sums to one.
    pub(super) fn strategy(&mut self, actions: usize) -> Vec<f64> {
        let mut strategy = vec![0.0; actions];
        let mut count = 0;
        for (&variable, &value) in self.basis.iter().zip(&*self.values) {
            if variable < actions && value > self.tolerance {
                strategy[variable] = value;
                self.tied[count] = variable;
                count += 1;
            }
        }
        // In the order of the actions, as if all were added: zeros change no sum.
        let played = &mut self.tied[..count];
        played.sort_unstable();
        // What was negligible is missing from the sum, and a strategy must sum to one.
        let total: f64 = played.iter().map(|&action| strategy[action]).sum();
        for &mut action in played {
            strategy[action] /= total;
        }
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
    pub(super) fn prices(&mut self, level: usize) -> &[f64] {
        match self.size {
            2 => self.price(level, 2),
            3 => self.price(level, 3),
            size => self.price(level, size),
        }
        &self.room.weights[1..]
    }

    /// Prices under which the violation counts so much that no action pays by violating.
    pub(super) fn prices_of_both_levels(&mut self) -> Vec<f64> {
        // Both levels as one objective: the first must outweigh what any variable could gain on the second by entering.
        self.reduce(0, self.size);
        let violations = self.room.reduced.to_vec();
        self.reduce(1, self.size);
        let weight = violations
            .iter()
            .zip(&*self.room.reduced)
            .filter(|(violation, _)| **violation > self.tolerance)
            .map(|(violation, gain)| -gain / violation)
            .fold(0.0, f64::max);
        let of_violation = self.prices(0).to_vec();
        of_violation
            .iter()
            .zip(self.prices(1))
            .map(|(violation, gain)| weight * violation + gain)
            .collect()
    }
}

/// Adds the rows of a square matrix, weighted.
#[inline(always)]
fn add_combination(weights: &[f64], rows: &[f64], sum: &mut [f64]) {
    for (&weight, row) in weights.iter().zip(rows.chunks_exact(sum.len())) {
        if weight != 0.0 {
            sum.iter_mut()
                .zip(row)
                .for_each(|(total, entry)| *total += weight * entry);
        }
    }
}

/// The weighted sum of the rows, for one variable.
fn inner(weights: &[f64], matrix: &[f64], columns: usize, variable: usize) -> f64 {
    match variable.checked_sub(columns) {
        Some(slack) => weights[slack + 1],
        None => weights
            .iter()
            .zip(matrix[variable..].iter().step_by(columns))
            .map(|(w, e)| w * e)
            .sum(),
    }
}

/// Keeps the variables whose ratio cost / -row is smallest, and returns how many they are. Costs within tolerance are tied
/// (Harris' ratio test): choosing any of them leaves no reduced cost below -tolerance.
#[inline(always)]
fn keep_smallest(
    tied: &mut [usize],
    row: &[f64],
    tolerance: f64,
    costs: &mut [f64],
    cost: impl Fn(usize) -> f64,
) -> usize {
    let mut least = f64::INFINITY;
    for (slot, &variable) in costs.iter_mut().zip(&*tied) {
        *slot = cost(variable);
        least = least.min((*slot + tolerance) / -row[variable]);
    }
    let mut kept = 0;
    for (place, &cost) in (0..tied.len()).zip(&*costs) {
        let variable = tied[place];
        tied[kept] = variable;
        kept += usize::from(cost / -row[variable] <= least);
    }
    kept
}
