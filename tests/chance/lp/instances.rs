//! Linear programs to test on: a family says what is awkward about them, a seed which one.

use debora::key::{Key, Label};

/// What makes an instance awkward. From `Coarse` on, all coefficients are multiples of 1 / [`Family::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Uniform, 53 bits: no two numbers are equal.
    Fine,
    /// [`Family::Knife`] with the coefficients of `Fine`, and limits too low by 2e-12 of their row: within tolerance.
    Rounded,
    /// Uniform, 18 bits: as good as real, yet small enough to be judged exactly.
    Coarse,
    /// Eighths: ties of every kind.
    Eighths,
    /// All actions earn the same.
    Tied,
    /// Few distinct columns, and rows that repeat, with the same or another limit.
    Duplicate,
    /// Columns and rows that repeat up to 2^-18, as may the objective: pivots are tiny, ties almost ties.
    Near,
    /// Zeros and ones, limits 0, 1 and between.
    Binary,
    /// The feasible set is a point or a face: pairs of rows that say "equal", rows at their least value.
    Knife,
    /// A row below its least value, or two rows that contradict each other.
    Infeasible,
    /// Profile paper: rewards plus widths, costs minus widths, widths up to 1e7.
    Profile,
    /// Entries of one row differ in size by up to 1e7, and in sign.
    Wide,
}

pub const ALL: [Family; 12] = {
    use Family::*;
    [
        Fine, Rounded, Coarse, Eighths, Tied, Duplicate, Near, Binary, Knife, Infeasible, Profile,
        Wide,
    ]
};

/// The families whose optimum can be found in whole numbers.
pub const EXACT: &[Family] = ALL.split_at(2).1;

impl Family {
    /// The common denominator of all coefficients.
    pub fn unit(self) -> f64 {
        match self {
            Family::Fine | Family::Rounded => (1u64 << 53) as f64,
            Family::Coarse | Family::Near => (1u64 << 18) as f64,
            Family::Knife => 64.0,
            _ => 8.0,
        }
    }

    /// Vertices may differ by less than the solver's tolerance, which then decides ties.
    pub fn is_blurred(self) -> bool {
        matches!(self, Family::Near | Family::Profile | Family::Wide)
    }
}

/// The largest instance wanted; the sizes drawn spread from 1 action and 0 rows up to it.
#[derive(Clone, Copy)]
pub struct Size {
    pub actions: u64,
    pub rows: u64,
}

/// maximise objective.x over strategies with rows_i.x <= limits_i.
#[derive(Clone, Debug)]
pub struct Instance {
    pub family: Family,
    pub seed: u64,
    pub objective: Vec<f64>,
    pub rows: Vec<f64>,
    pub limits: Vec<f64>,
}

impl Instance {
    pub fn draw(family: Family, size: Size, seed: u64) -> Self {
        let draws = &mut Draws { seed, count: 0 };
        let actions = 1 + draws.below(size.actions) as usize;
        let least = u64::from(family == Family::Infeasible);
        let rows = least + draws.below(size.rows + 1 - least);
        let mut instance = Self {
            family,
            seed,
            objective: vec![],
            rows: vec![],
            limits: vec![],
        };
        instance.objective = (0..actions).map(|_| draws.coefficient(family)).collect();
        for _ in 0..rows {
            instance
                .rows
                .extend((0..actions).map(|_| draws.coefficient(family)));
            instance.limits.push(draws.coefficient(family));
        }
        match family {
            Family::Tied => instance.objective.fill(0.5),
            Family::Duplicate => instance.repeat(draws),
            Family::Near => instance.blur(draws),
            Family::Binary => instance
                .limits
                .iter_mut()
                .for_each(|limit| *limit = draws.below(9) as f64 / 8.0),
            Family::Knife => instance.close_in(draws),
            Family::Rounded => instance.close_too_far(draws),
            Family::Infeasible => instance.contradict(draws),
            Family::Profile => instance.widen(draws),
            _ => {}
        }
        instance
    }

    pub fn actions(&self) -> usize {
        self.objective.len()
    }

    /// Rows with their limits subtracted: a strategy is feasible if no entry of excess.x is positive.
    pub fn excess(&self) -> impl Iterator<Item = Vec<f64>> {
        let rows = self.rows.chunks_exact(self.actions()).zip(&self.limits);
        rows.map(|(row, limit)| row.iter().map(|value| value - limit).collect())
    }

    /// The instance whose action j is this one's action `order[j]`.
    fn permuted(&self, order: &[usize]) -> Self {
        let pick = |values: &[f64]| order.iter().map(|&j| values[j]).collect::<Vec<f64>>();
        let rows = self
            .rows
            .chunks_exact(self.actions())
            .flat_map(pick)
            .collect();
        Self {
            objective: pick(&self.objective),
            rows,
            ..self.clone()
        }
    }

    /// The same actions in another order.
    pub fn shuffled(&self) -> Self {
        let draws = &mut Draws {
            seed: self.seed,
            count: 1 << 32,
        };
        let mut order: Vec<usize> = (0..self.actions()).collect();
        (1..order.len()).for_each(|last| order.swap(last, draws.below(last as u64 + 1) as usize));
        self.permuted(&order)
    }

    /// The objective and the rows with their limits times powers of two, the rows all by the same one if `together`.
    pub fn rescaled(&self, together: bool) -> Self {
        let draws = &mut Draws {
            seed: self.seed,
            count: 1 << 32,
        };
        let mut power = || 2f64.powi(draws.below(81) as i32 - 40);
        let (of_objective, of_rows) = (power(), power());
        let mut other = self.clone();
        other
            .objective
            .iter_mut()
            .for_each(|value| *value *= of_objective);
        for (row, limit) in other
            .rows
            .chunks_exact_mut(self.actions())
            .zip(&mut other.limits)
        {
            let by = if together { of_rows } else { power() };
            row.iter_mut().chain([limit]).for_each(|value| *value *= by);
        }
        other
    }

    fn repeat(&mut self, draws: &mut Draws) {
        let actions = self.actions();
        let distinct = 1 + actions as u64 / 3;
        let order: Vec<usize> = (0..actions)
            .map(|_| draws.below(distinct) as usize)
            .collect();
        *self = self.permuted(&order);
        for row in 1..self.limits.len() {
            match draws.below(3) {
                0 => continue,
                1 => self.limits[row] = self.limits[row - 1],
                _ => {}
            }
            self.rows
                .copy_within((row - 1) * actions..row * actions, row * actions);
        }
    }

    fn blur(&mut self, draws: &mut Draws) {
        self.repeat(draws);
        for value in self.objective.iter_mut().chain(&mut self.rows) {
            *value += draws.below(2) as f64 / Family::Near.unit();
        }
        if !self.limits.is_empty() && draws.below(2) == 0 {
            self.objective = self.rows[..self.actions()].to_vec();
        }
    }

    /// Moves limits until a drawn strategy, in eighths, is feasible but nothing beyond a face through it: rows in pairs
    /// say "equal", half of them with no entry below its value at that strategy.
    fn close_in(&mut self, draws: &mut Draws) {
        let actions = self.actions();
        let mut inside = vec![0.0; actions];
        (0..8).for_each(|_| inside[draws.below(actions as u64) as usize] += 0.125);
        for (pair, limits) in self
            .rows
            .chunks_mut(2 * actions)
            .zip(self.limits.chunks_mut(2))
        {
            let (row, opposite) = pair.split_at_mut(actions);
            if draws.below(2) == 0 {
                let lift =
                    |entry: f64, weight: f64| if weight > 0.0 { 0.25 } else { entry.max(0.25) };
                row.iter_mut()
                    .zip(&inside)
                    .for_each(|(entry, weight)| *entry = lift(*entry, *weight));
            }
            limits[0] = row
                .iter()
                .zip(&inside)
                .map(|(entry, weight)| entry * weight)
                .sum();
            opposite
                .iter_mut()
                .zip(row)
                .for_each(|(opposite, entry)| *opposite = 1.0 - *entry);
            if let [limit, limit_opposite] = limits {
                *limit_opposite = 1.0 - *limit;
            }
        }
    }

    fn close_too_far(&mut self, draws: &mut Draws) {
        self.close_in(draws);
        let largest: Vec<f64> = self
            .excess()
            .map(|row| row.iter().fold(0.0, |most, value| value.abs().max(most)))
            .collect();
        self.limits
            .iter_mut()
            .zip(largest)
            .for_each(|(limit, largest)| *limit -= 2e-12 * largest);
    }

    fn contradict(&mut self, draws: &mut Draws) {
        let actions = self.actions();
        let row = draws.below(self.limits.len() as u64) as usize;
        let short = (1 + draws.below(4)) as f64 / 8.0;
        let entries = self.rows[row * actions..][..actions].to_vec();
        if row == 0 {
            self.limits[0] = entries.iter().copied().fold(f64::INFINITY, f64::min) - short;
        } else {
            self.limits[row - 1] = 1.0 - self.limits[row] - short;
            let opposite = self.rows[(row - 1) * actions..].iter_mut();
            opposite
                .zip(entries)
                .for_each(|(opposite, entry)| *opposite = 1.0 - entry);
        }
    }

    fn widen(&mut self, draws: &mut Draws) {
        let width_max = draws.width();
        for action in 0..self.actions() {
            let width = draws.width().min(width_max);
            self.objective[action] += width;
            for row in 0..self.limits.len() {
                self.rows[row * self.objective.len() + action] -= width;
            }
        }
    }
}

/// The numbers of one instance, one after another.
struct Draws {
    seed: u64,
    count: u64,
}

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.count += 1;
        Key::from(self.seed).uniform(Label::Round, [self.count, 0, 0])
    }

    /// A whole number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        (self.uniform() * bound as f64) as u64
    }

    fn width(&mut self) -> f64 {
        [0.0, 0.125, 1.0, 1e3, 1e5, 1e7][self.below(6) as usize]
    }

    fn coefficient(&mut self, family: Family) -> f64 {
        match family {
            Family::Fine | Family::Rounded => self.uniform(),
            Family::Coarse => self.below(1 << 18) as f64 / family.unit(),
            Family::Binary => self.below(2) as f64,
            Family::Wide => (self.below(17) as f64 / 8.0 - 1.0) * self.width().max(1.0),
            _ => self.below(9) as f64 / 8.0,
        }
    }
}
