//! A range that a person would have chosen: its ends have few digits, and hold all that was seen.

/// How many steps of 1, 2 or 5 times a power of ten a range has, about.
const STEPS: f64 = 5.0;

/// Above this many steps from zero, neighbouring multiples of a step are no longer different doubles.
const MULTIPLE_MAX: f64 = 1e15;

/// A range that holds both values, rounded outward; `None` if no double is large enough for it.
pub(super) fn outward([least, largest]: [f64; 2]) -> Option<[f64; 2]> {
    // From zero on, where values are not far from it beside their spread: what is paid or counted can also be nothing.
    let low = if least > 0.0 && (least < largest / 2.0 || least == largest) {
        0.0
    } else {
        least
    };
    let high = if largest <= 0.0 && (largest > least / 2.0 || least == largest) {
        0.0
    } else {
        largest
    };
    if low == high {
        return Some([0.0, 1.0]);
    }
    let (step, exponent) = step((high - low) / STEPS)?;
    let multiple = |end: f64| end / decimal(step, exponent);
    if multiple(low).abs().max(multiple(high).abs()) > MULTIPLE_MAX {
        return Some([low, high]);
    }
    let at = |steps: f64| decimal(steps * step, exponent);
    // Quotients are a little off, so that 0.3 would be 2.9999 steps of 0.1; what is too far in is moved out below.
    let mut low_steps = (multiple(low) + 1e-9).floor();
    let mut high_steps = (multiple(high) - 1e-9).ceil();
    while at(low_steps) > low {
        low_steps -= 1.0;
    }
    while at(high_steps) < high {
        high_steps += 1.0;
    }
    let range = [at(low_steps), at(high_steps)];
    range.iter().all(|end| end.is_finite()).then_some(range)
}

/// The least of 1, 2 and 5 times a power of ten that is not below a size: the factor and the exponent.
fn step(size: f64) -> Option<(f64, i32)> {
    if !size.is_finite() {
        return None;
    }
    let exponent = libm::log10(size).floor() as i32;
    let factors = [1.0, 2.0, 5.0];
    let enough = |factor: &f64| decimal(*factor, exponent) >= size * (1.0 - 1e-9);
    // If none of these, then ten.
    let factor = factors.into_iter().find(enough);
    Some(factor.map_or((1.0, exponent + 1), |factor| (factor, exponent)))
}

/// The double nearest to a decimal number. Powers of ten multiplied as doubles would miss it by a bit, and show it.
fn decimal(whole: f64, exponent: i32) -> f64 {
    let text = format!("{whole:.0}e{exponent}");
    text.parse().expect("digits and an exponent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_a_person_would_write() {
        let cases = [
            ([0.0, 1.0], [0.0, 1.0]),
            ([0.0003, 0.0173], [0.0, 0.02]),
            ([0.0, 3.0], [0.0, 3.0]),
            ([1.0, 7.3], [0.0, 8.0]),
            ([97.2, 103.6], [96.0, 104.0]),
            ([-3.0, 7.0], [-4.0, 8.0]),
            ([-7.3, -1.0], [-8.0, 0.0]),
            ([0.1, 0.3], [0.0, 0.3]),
            ([5.0, 5.0], [0.0, 5.0]),
            ([-5.0, -5.0], [-5.0, 0.0]),
            ([0.0, 0.0], [0.0, 1.0]),
            ([1e15, 1e15 + 1.0], [1e15, 1e15 + 1.0]),
            ([0.0, 1e-310], [0.0, 1e-310]),
            ([0.0, 9e307], [0.0, 1e308]),
        ];
        for (seen, range) in cases {
            assert_eq!(outward(seen), Some(range), "{seen:?}");
        }
        assert_eq!(outward([-1e308, 1e308]), None);
        assert_eq!(outward([0.0, 1.75e308]), None);
    }

    #[test]
    fn nothing_is_left_outside() {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            unit * libm::exp10((state % 600) as f64 - 300.0)
        };
        for _ in 0..20_000 {
            let [a, b] = [next(), next()];
            let seen = [a.min(b), a.max(b)];
            let range = outward(seen).expect("far from the largest double");
            assert!(
                range[0] <= seen[0] && seen[1] <= range[1],
                "{seen:?} {range:?}"
            );
        }
    }
}
