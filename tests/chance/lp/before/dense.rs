//! The linear algebra the simplex method needs: small, dense, in one fixed order of operations.

/// The smallest power of two at or above every absolute value; 1 if all are zero.
pub(super) fn power_above(values: &[f64]) -> f64 {
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

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

pub(super) fn absolute_sum(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

/// wanted - sum a b, as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2). Products are split by Veltkamp's
/// method rather than by a fused operation, which not every processor has.
pub(super) fn residual<'a>(wanted: f64, terms: impl Iterator<Item = (&'a f64, &'a f64)>) -> f64 {
    let mut sum = wanted;
    let mut error = 0.0;
    for (&a, &b) in terms.filter(|(a, _)| **a != 0.0) {
        let product = -a * b;
        let (a_high, a_low) = halves(-a);
        let (b_high, b_low) = halves(b);
        // The rounding errors of product and sum, each exact in doubles, are carried along.
        let product_error =
            a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
        let total = sum + product;
        let part = total - sum;
        error += ((sum - (total - part)) + (product - part)) + product_error;
        sum = total;
    }
    sum + error
}

/// A number as two that sum to it, each of half its digits, so that their products are exact.
fn halves(value: f64) -> (f64, f64) {
    // 2^27 + 1: Veltkamp's constant for the 53 bits of a double.
    let shifted = 134_217_729.0 * value;
    let high = shifted - (shifted - value);
    (high, value - high)
}

/// The inverse, by rows, of a matrix given by columns: Gauss-Jordan elimination with row pivoting. `None` if it is singular.
pub(super) fn invert(columns: &[f64], inverse: &mut [f64], size: usize) -> Option<()> {
    let width = 2 * size;
    let mut rows = beside_identity(columns, size);
    for step in 0..size {
        let pivot = pivot_row(&rows, size, step);
        let scale = rows[pivot * width + step];
        // Exactly zero only: a basis that is nearly singular is the tolerances' business, not this function's.
        if scale == 0.0 {
            return None;
        }
        for column in 0..width {
            rows.swap(step * width + column, pivot * width + column);
        }
        eliminate(&mut rows, width, step, scale);
    }
    for (target, row) in inverse.chunks_exact_mut(size).zip(rows.chunks_exact(width)) {
        target.copy_from_slice(&row[size..]);
    }
    Some(())
}

/// The matrix by rows, each followed by its row of the identity.
fn beside_identity(columns: &[f64], size: usize) -> Vec<f64> {
    let width = 2 * size;
    let mut rows = vec![0.0; size * width];
    for row in 0..size {
        for column in 0..size {
            rows[row * width + column] = columns[column * size + row];
        }
        rows[row * width + size + row] = 1.0;
    }
    rows
}

/// The row, from `step` on, with the largest entry in that column.
fn pivot_row(rows: &[f64], size: usize, step: usize) -> usize {
    let entry = |row: usize| rows[row * 2 * size + step].abs();
    // Reversed, as `max_by` keeps the last of equals and the first is wanted.
    (step..size)
        .rev()
        .max_by(|&a, &b| entry(a).total_cmp(&entry(b)))
        .expect("a row")
}

/// Scales the row of this step to entry one and clears the column in all others.
fn eliminate(rows: &mut [f64], width: usize, step: usize, scale: f64) {
    let (before, rest) = rows.split_at_mut(step * width);
    let (pivot_row, after) = rest.split_at_mut(width);
    pivot_row[step..]
        .iter_mut()
        .for_each(|value| *value /= scale);
    let others = before
        .chunks_exact_mut(width)
        .chain(after.chunks_exact_mut(width));
    for row in others {
        let factor = row[step];
        // The column of a slack has one entry: skipping zeros spares most rows.
        if factor != 0.0 {
            for (value, pivot) in row[step..].iter_mut().zip(&pivot_row[step..]) {
                *value -= factor * pivot;
            }
        }
    }
}
