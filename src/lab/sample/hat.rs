//! Rejection from a hat that every log-concave law fits under: flat about the mode, geometric on both sides.
//!
//! ```text
//! hat(mode + j) = 1                              for j < start
//!               = height * ratio^(j - start)     for j >= start
//! ratio         = f(mode + reach + 1) / f(mode + reach)
//! height       >= f(mode + reach) * ratio^(start - reach)
//! ```
//!
//! for the law f divided by f(mode), and the mirror image below the mode. ln f is concave, so it lies under the line
//! through its two values at `reach`: the hat holds at every integer and for all parameters, by one line of proof,
//! where the constants of BTRS and of the ratio of uniforms were found by numerical search. With a reach of sqrt(2)
//! standard deviations, best for a normal law, a draw takes 1.13 trials. After W. Hörmann, *A universal generator for
//! discrete log-concave distributions* (Computing 52, 1994).
//!
//! A simulator draws from most laws once, so the set-up must be cheap: it takes a bound of f in place of f
//! ([`CountLaw::ln_change_above`]), and so do all but a few of the decisions. Two draws in five need no more of the hat
//! than its flat part, and set up nothing else.

use super::law::{CountLaw, ln_above};
use super::{Stream, whole};
use libm::{log, sqrt};
use std::f64::consts::SQRT_2;

/// Less than the flat part's share of any hat. It is near 1/2, and least for small hypergeometric laws: 0.4466 of hundreds of
/// thousands of laws tried. That is a search and not a proof, so every hat that is set up is held to it.
const FLAT_SHARE: f64 = 0.4;

/// One side of the hat, in steps away from the mode.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// The direction of a step, 1 or -1.
    sign: f64,
    /// Where the geometric part starts; at least 1.
    start: f64,
    /// The hat at the start.
    height: f64,
    /// The factor of a step, as numerator and denominator.
    ratio: (f64, f64),
    /// The sum of the geometric part.
    mass: f64,
}

impl Side {
    #[inline]
    fn new<const CELLS: usize>(law: &CountLaw<CELLS>, sign: f64, reach: f64) -> Self {
        let start = start(reach);
        let (numerator, denominator) = law.ratio(sign, reach);
        let rise = (reach - start) * ln_above(denominator, numerator);
        let height = 1.0 / exp_below(-rise - law.ln_change_above(sign, reach));
        let mass = height * denominator / (denominator - numerator);
        assert!(height > 0.0 && mass > 0.0);
        Self {
            sign,
            start,
            height,
            ratio: (numerator, denominator),
            mass,
        }
    }
}

/// Where the geometric part of a hat that touches the law at `reach` starts, on both sides.
#[inline]
fn start(reach: f64) -> f64 {
    // Half way to the touch the line of a normal law is level with the mode. Any start is right, this one is good.
    whole(0.5 * reach) + 1.0
}

/// A draw from the law.
///
/// `variance` only shapes the hat: a wrong one costs trials, not the law. The mode is further than sqrt(2 variance) + 1
/// from both ends.
#[inline]
pub(super) fn draw<const CELLS: usize>(
    stream: &mut Stream,
    law: &CountLaw<CELLS>,
    variance: f64,
) -> u64 {
    let reach = whole(SQRT_2 * sqrt(variance) + 0.5).max(1.0);
    assert!(reach < law.mode && law.mode + reach < law.last);
    let start = start(reach);
    let flat = start + start - 1.0;
    let mut sides = None;
    loop {
        // 1. An integer in proportion to the hat, and a uniform number below the hat there: exp(fall) times `bar`.
        let uniform = stream.uniform();
        let v = stream.uniform_open();
        let tail = if uniform < FLAT_SHARE {
            None
        } else {
            tail(
                uniform,
                flat,
                sides.get_or_insert_with(|| both_sides(law, reach)),
            )
        };
        let (k, bar, fall) = match tail {
            None => {
                let place = stream.below(flat as u64) as f64;
                (law.mode - start + 1.0 + place, v, 0.0)
            }
            Some(side) => {
                let ln_ratio = log(side.ratio.0 / side.ratio.1);
                // The whole part of an exponential is geometric.
                let step = whole(log(stream.uniform_open()) / ln_ratio);
                let k = law.mode + side.sign * (side.start + step);
                (k, v * side.height, step * ln_ratio)
            }
        };
        // 2. Is it below f, too?
        if k >= 0.0 && k <= law.last && is_below(law, k, bar, fall) {
            return k as u64;
        }
    }
}

/// The sides above and below the mode.
// Not inlined: the compiler would compute them before the loop, for all draws.
#[inline(never)]
fn both_sides<const CELLS: usize>(law: &CountLaw<CELLS>, reach: f64) -> [Side; 2] {
    [1.0, -1.0].map(|sign| Side::new(law, sign, reach))
}

/// The side that holds the point at this share of the hat; none if that is in the flat part.
#[inline]
fn tail(share: f64, flat: f64, sides: &[Side; 2]) -> Option<&Side> {
    let [up, down] = sides;
    let total = flat + up.mass + down.mass;
    assert!(
        FLAT_SHARE * total < flat,
        "the flat part {flat} of a hat of {total} is too small"
    );
    let point = share * total;
    if point < flat {
        None
    } else if point < flat + up.mass {
        Some(up)
    } else {
        Some(down)
    }
}

/// Whether ln(bar) + fall is ln(f(k) / f(mode)) or less.
#[inline]
fn is_below<const CELLS: usize>(law: &CountLaw<CELLS>, k: f64, bar: f64, fall: f64) -> bool {
    let sign = if k >= law.mode { 1.0 } else { -1.0 };
    let steps = (k - law.mode).abs();
    // Bounds first: they need no logarithm of a factorial and decide nearly always. As ln x <= x - 1, even in libm's bits, most
    // need no logarithm at all.
    let low = law.ln_change_below(sign, steps);
    if bar - 1.0 + fall <= low {
        return true;
    }
    let ln_bar = log(bar) + fall;
    ln_bar <= low || is_below_exactly(law, k, ln_bar)
}

/// The same where the bound below left it open.
#[cold]
#[inline(never)]
fn is_below_exactly<const CELLS: usize>(law: &CountLaw<CELLS>, k: f64, ln_bar: f64) -> bool {
    let sign = if k >= law.mode { 1.0 } else { -1.0 };
    ln_bar <= law.ln_change_above(sign, (k - law.mode).abs()) && ln_bar <= law.ln_change(k)
}

/// A number below exp(x), close to it near 0: the Taylor polynomials of odd degree are below exp everywhere.
#[inline]
fn exp_below(x: f64) -> f64 {
    1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0)))
}

#[cfg(test)]
mod tests {
    use super::super::law::Cell;
    use super::*;

    fn ln_hat(mode: f64, up: &Side, down: &Side, k: f64) -> f64 {
        let side = if k >= mode { up } else { down };
        let steps = (k - mode).abs();
        if steps < side.start {
            0.0
        } else {
            log(side.height) + (steps - side.start) * log(side.ratio.0 / side.ratio.1)
        }
    }

    /// Every integer of the law, or 5,000 on each side of the mode spread over twelve standard deviations.
    fn check<const CELLS: usize>(law: &CountLaw<CELLS>, variance: f64) {
        let reach = whole(SQRT_2 * sqrt(variance) + 0.5).max(1.0);
        let (up, down) = (Side::new(law, 1.0, reach), Side::new(law, -1.0, reach));
        let stride = whole(12.0 * sqrt(variance) / 5000.0).max(1.0);
        let mut mass = 0.0;
        for step in -5000..=5000 {
            let k = law.mode + f64::from(step) * stride;
            if k < 0.0 || k > law.last {
                continue;
            }
            let exact = law.ln_change(k);
            let (sign, steps) = (if step >= 0 { 1.0 } else { -1.0 }, (k - law.mode).abs());
            let low = law.ln_change_below(sign, steps);
            let high = law.ln_change_above(sign, steps);
            assert!(
                low <= exact && exact <= high,
                "{law:?}: ln f({k}) = {exact} outside [{low}, {high}]"
            );
            let hat = ln_hat(law.mode, &up, &down, k);
            assert!(
                exact <= hat + 1e-12,
                "{law:?}: ln f({k}) = {exact} above {hat}"
            );
            mass += stride * libm::exp(exact);
        }
        let flat = up.start + down.start - 1.0;
        let total = flat + up.mass + down.mass;
        assert!(FLAT_SHARE * total < flat, "{law:?}: {flat} of {total}");
        let trials = total / mass;
        assert!(
            (1.0..1.25).contains(&trials),
            "{law:?}: {trials} trials a draw"
        );
    }

    /// What spares most draws their logarithm, in bits: near 1, where the two differ least, and over all that a hat can ask.
    #[test]
    fn a_logarithm_is_at_most_its_argument_less_one() {
        let near = (-100_000..=100_000).map(|step| 1.0 + f64::from(step) * f64::EPSILON / 2.0);
        let around = (0..=400).map(|step| libm::exp2(f64::from(step - 200) / 4.0));
        let close = (1..=1000).flat_map(|step| {
            let off = libm::exp2(-f64::from(step) / 20.0);
            [1.0 - off, 1.0 + off]
        });
        for x in near.chain(around).chain(close).filter(|&x| x > 0.0) {
            assert!(log(x) <= x - 1.0, "{x}");
        }
    }

    /// 60,000 points below hats, most of them within three standard deviations of the mode.
    #[test]
    fn what_spares_a_logarithm_decides_as_the_logarithm_does() {
        for (n, p) in [(120.0, 0.4), (1e4, 0.01), (1e12, 0.3)] {
            let (mean, left) = (n * p, n * (1.0 - p));
            let law = CountLaw {
                cells: [Cell::rising(0.0, mean), Cell::falling(n, left)],
                mode: whole((n + 1.0) * p),
                last: n,
            };
            let deviation = sqrt(mean * (1.0 - p));
            let key = crate::Key::from(5u64);
            for place in 0..20_000 {
                let words = key.block(crate::key::Label::Player, [place, n as u64, 0]);
                let [one, two, three, _] = words.map(crate::key::to_uniform);
                let k = (law.mode + whole((6.0 * one - 3.0) * deviation)).clamp(0.0, n);
                let (bar, fall) = (two + f64::EPSILON, whole(2.0 * three) * (0.5 - three));
                let ln_bar = log(bar) + fall;
                let plainly = ln_bar <= law.ln_change(k);
                assert_eq!(
                    is_below(&law, k, bar, fall),
                    plainly,
                    "{n}: {k}, {bar}, {fall}"
                );
            }
        }
    }

    #[test]
    fn the_hat_covers_poisson_laws() {
        for mean in [
            24.0, 30.1, 32.0, 32.5, 57.9, 100.0, 1e3, 1e5, 1e8, 1e12, 1e15,
        ] {
            check(
                &CountLaw {
                    cells: [Cell::rising(0.0, mean)],
                    mode: whole(mean),
                    last: f64::INFINITY,
                },
                mean,
            );
        }
    }

    #[test]
    fn the_hat_covers_binomial_laws() {
        for n in [48.0, 49.0, 60.0, 100.0, 1e3, 1e5, 1e8, 1e12, 1e15] {
            for p in [24.0 / n, 32.7 / n, 0.01, 0.1, 0.25, 0.4, 0.5] {
                if n * p >= 24.0 {
                    let cells = [Cell::rising(0.0, n * p), Cell::falling(n, n * (1.0 - p))];
                    check(
                        &CountLaw {
                            cells,
                            mode: whole((n + 1.0) * p),
                            last: n,
                        },
                        n * p * (1.0 - p),
                    );
                }
            }
        }
    }

    #[test]
    fn the_hat_covers_hypergeometric_laws() {
        for n in [96.0, 97.0, 150.0, 1e3, 1e5, 1e8, 1e12, 1e15] {
            for marked in [0.001, 0.03, 0.25, 0.4, 0.5].map(|share| whole(n * share)) {
                for drawn in [0.001, 0.03, 0.25, 0.4, 0.5].map(|share| whole(n * share)) {
                    let mean = marked * drawn / n;
                    if mean < 24.0 {
                        continue;
                    }
                    let (unmarked, left) = (n - marked, n - drawn);
                    let cells = [
                        Cell::rising(0.0, mean),
                        Cell::falling(marked, marked * left / n),
                        Cell::falling(drawn, unmarked * drawn / n),
                        Cell::rising(unmarked - drawn, unmarked * left / n),
                    ];
                    let mode = whole((marked + 1.0) * (drawn + 1.0) / (n + 2.0));
                    let variance = mean * unmarked / n * left / (n - 1.0);
                    check(
                        &CountLaw {
                            cells,
                            mode,
                            last: marked.min(drawn),
                        },
                        variance,
                    );
                }
            }
        }
    }
}
