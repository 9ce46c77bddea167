//! The replicable mean, everywhere: half a cell at most, at the borders too, and the printed first cell that breaks it.

use debora::Tally;
use debora::mean::{FIXED_ONE, round_to_cell, to_fixed};
use proptest::prelude::*;

/// What arithmetic in doubles may add to half a cell.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

fn unit() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0f64..=1.0, 1 => prop::sample::select(vec![0.0, 5e-324, 1e-17, 0.5, 1.0 - 1e-16, 1.0])]
}

proptest! {
    #![proptest_config(crate::common::cases(20_000))]

    #[test]
    fn the_estimate_is_within_half_a_cell_of_the_mean(mean in unit(), cell in 1e-9f64..1.0, offset in 0.0f64..1.0) {
        let (index, estimate) = round_to_cell(mean, cell, offset);
        prop_assert!((estimate - mean).abs() <= cell / 2.0 + ROUNDING, "{mean} became {estimate}");
        prop_assert!((0.0..=1.0).contains(&estimate));
        prop_assert!(index.unwrap() >= -1);
    }

    /// Cells are intervals: a mean between two of one cell is in it, too.
    #[test]
    fn cells_are_in_order(one in unit(), two in unit(), cell in 1e-6f64..1.0, offset in 0.0f64..1.0) {
        let (low, high) = (one.min(two), one.max(two));
        let index = |mean| round_to_cell(mean, cell, offset).0.unwrap();
        prop_assert!(index(low) <= index(high));
        prop_assert!((index(high) - index(low)) as f64 <= (high - low) / cell + 1.0 + 1e-6);
    }

    /// The mean of a tally is the exact rational sum / count, rounded, and does not depend on the order of telling.
    #[test]
    fn equal_samples_in_any_order_give_equal_means_and_cells(mut values in prop::collection::vec(unit(), 1..60), cell in 1e-6f64..1.0) {
        let mean = |values: &[f64]| {
            let mut tally = Tally::new(1, 1);
            values.iter().for_each(|&value| tally.add(0, &[to_fixed(value)]));
            tally.mean(0, 0)
        };
        let forwards = mean(&values);
        values.reverse();
        values.rotate_left(1);
        prop_assert_eq!(forwards.to_bits(), mean(&values).to_bits());
        prop_assert_eq!(round_to_cell(forwards, cell, 0.25), round_to_cell(mean(&values), cell, 0.25));
        // Exactly: |mean - sum/count| is below two roundings. All in integers: mean * count * 2^53 against the sum.
        let sum: u128 = values.iter().map(|&value| u128::from(to_fixed(value))).sum();
        let scaled = (forwards * FIXED_ONE as f64) as u128 * values.len() as u128;
        prop_assert!(scaled.abs_diff(sum) <= (sum >> 51) + values.len() as u128, "{scaled} against {sum}");
    }
}

/// Exhaustive on a grid: index -1 is reached exactly when the mean lies below the offset, and the printed form, which has no
/// index -1, errs by more than half a cell there, by up to one and a half.
#[test]
fn the_printed_first_cell_errs_by_up_to_one_and_a_half_cells() {
    let (cell, steps) = (0.1, 200);
    let (mut reached, mut printed_worst) = (0, 0.0f64);
    for (mean, offset) in (0..=steps).flat_map(|m| (0..steps).map(move |o| (m, o))) {
        let (mean, offset) = (
            f64::from(mean) / f64::from(steps),
            f64::from(offset) / f64::from(steps),
        );
        let (index, estimate) = round_to_cell(mean, cell, offset);
        assert_eq!(
            index == Some(-1),
            mean < offset * cell,
            "mean {mean}, offset {offset}"
        );
        assert!((estimate - mean).abs() <= cell / 2.0 + ROUNDING);
        reached += u32::from(index == Some(-1));
        // RepMean, lines 5 and 6, as printed.
        let printed_index = ((mean - offset * cell) / cell).max(0.0).floor();
        let printed = (offset * cell + (printed_index + 0.5) * cell).min(1.0);
        printed_worst = printed_worst.max((printed - mean).abs());
    }
    assert!(reached > 0);
    assert!(printed_worst > 1.4 * cell, "{printed_worst}");
}
