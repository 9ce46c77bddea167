//! The linear algebra the simplex method needs: small, dense, in one fixed order of operations.

/// The smallest power of two at or above every absolute value; 1 if all are zero.
pub(super) fn power_above(values: &[f64]) -> f64 {
    assert!(
        // Every value is looked at, as a loop without an exit takes vectors.
        values
            .iter()
            .fold(true, |fit, value| fit & (value.abs() <= 1e300)),
        "coefficients must be finite and at most 1e300"
    );
    let (fraction, exponent) = libm::frexp(maximum(values, f64::abs));
    if fraction == 0.0 {
        1.0
    } else {
        libm::ldexp(1.0, exponent - i32::from(fraction == 0.5))
    }
}

/// The largest of these, each taken as `of` says; minus infinity if there is none. NaN is passed over.
#[inline(always)]
pub(super) fn maximum(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    // A maximum has no order: eight at a time, none waits for another.
    let mut most = [f64::NEG_INFINITY; 8];
    let larger = |most: f64, value: f64| if value > most { value } else { most };
    let chunks = values.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (most, &value) in most.iter_mut().zip(chunk) {
            *most = larger(*most, of(value));
        }
    }
    let rest = rest.iter().map(|&value| of(value));
    rest.chain(most).fold(f64::NEG_INFINITY, larger)
}

/// Divides by a power of two.
#[inline]
pub(super) fn divide(values: &mut [f64], power: f64) {
    let inverse = 1.0 / power;
    // The same bits, as both round the one true quotient; but the inverse of the smallest powers is beyond the largest double.
    if inverse.is_finite() {
        values.iter_mut().for_each(|value| *value *= inverse);
    } else {
        values.iter_mut().for_each(|value| *value /= power);
    }
}

/// The weighted sum of a matrix's rows; the weights but the first follow it, as the slacks' entries do.
pub(super) fn combine(weights: &[f64], matrix: &[f64], sums: &mut [f64]) {
    let columns = matrix.len() / weights.len();
    let (sums, of_slacks) = sums.split_at_mut(columns);
    match *weights {
        [a, b] => combine_rows([a, b], matrix, sums),
        [a, b, c] => combine_rows([a, b, c], matrix, sums),
        [a, b, c, d] => combine_rows([a, b, c, d], matrix, sums),
        _ => {
            sums.fill(0.0);
            for (&weight, row) in weights.iter().zip(matrix.chunks_exact(columns)) {
                sums.iter_mut()
                    .zip(row)
                    .for_each(|(sum, entry)| *sum += weight * entry);
            }
        }
    }
    of_slacks.copy_from_slice(&weights[1..]);
}

/// The same for few rows, in one pass and in the same order.
#[inline]
fn combine_rows<const N: usize>(weights: [f64; N], matrix: &[f64], sums: &mut [f64]) {
    let columns = sums.len();
    let rows: [&[f64]; N] = std::array::from_fn(|row| &matrix[row * columns..][..columns]);
    for (column, sum) in sums.iter_mut().enumerate() {
        *sum = (0..N).fold(0.0, |sum, row| sum + weights[row] * rows[row][column]);
    }
}

#[inline(always)]
pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

#[inline(always)]
pub(super) fn absolute_sum(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

/// wanted - sum a b, as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2). Products are split by Veltkamp's
/// method rather than by a fused operation, which not every processor has.
#[inline(always)]
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
#[inline(always)]
fn halves(value: f64) -> (f64, f64) {
    // 2^27 + 1: Veltkamp's constant for the 53 bits of a double.
    let shifted = 134_217_729.0 * value;
    let high = shifted - (shifted - value);
    (high, value - high)
}

/// The inverse, by rows, of a matrix given by columns: Gauss-Jordan elimination with row pivoting, in `rows`. `None` if it is
/// singular.
#[inline(always)]
pub(super) fn invert(
    columns: &[f64],
    inverse: &mut [f64],
    rows: &mut [f64],
    size: usize,
) -> Option<()> {
    let width = 2 * size;
    put_beside_identity(columns, rows, size);
    for step in 0..size {
        let pivot = pivot_row(rows, size, step);
        let scale = rows[pivot * width + step];
        // Exactly zero only: a basis that is nearly singular is the tolerances' business, not this function's.
        if scale == 0.0 {
            return None;
        }
        if pivot != step {
            let (before, after) = rows.split_at_mut(pivot * width);
            before[step * width..][..width].swap_with_slice(&mut after[..width]);
        }
        eliminate(rows, width, step, scale);
    }
    for (target, row) in inverse.chunks_exact_mut(size).zip(rows.chunks_exact(width)) {
        target.copy_from_slice(&row[size..]);
    }
    Some(())
}

/// The matrix by rows, each followed by its row of the identity.
#[inline(always)]
fn put_beside_identity(columns: &[f64], rows: &mut [f64], size: usize) {
    rows.fill(0.0);
    for (row, entries) in rows.chunks_exact_mut(2 * size).enumerate() {
        for column in 0..size {
            entries[column] = columns[column * size + row];
        }
        entries[size + row] = 1.0;
    }
}

/// The row, from `step` on, with the largest entry in that column; of equals the first.
#[inline(always)]
fn pivot_row(rows: &[f64], size: usize, step: usize) -> usize {
    // As bits, which order what has no sign, and NaN above all: a basis that has one is given up, whatever its other entries.
    let entry = |row: usize| rows[row * 2 * size + step].abs().to_bits();
    (step + 1..size).fold(
        step,
        |best, row| {
            if entry(row) > entry(best) { row } else { best }
        },
    )
}

/// Scales the row of this step to entry one and clears the column in all others.
#[inline(always)]
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
