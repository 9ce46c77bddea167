//! Draws from the laws a simulator needs to skip rounds: each a function of a [`Stream`], exact up to rounding.
//!
//! Counts may be as large as [`COUNT_MAX`]. Two methods cover Poisson, binomial and hypergeometric. Where the mean is
//! small, inversion: the probabilities are added up from 0 until they pass a uniform. Where it is not, rejection from a
//! hat that fits every log-concave law (`hat.rs`; Hörmann 1994), decided by bounds of the probabilities and, where
//! they leave it open, by Loader's form of them (`law.rs`; Loader 2000).
//!
//! `ln`, `exp` and `sqrt` come from libm: the standard ones may differ in the last bit across platforms, and the draws
//! are part of the values this library promises. That is why rand_distr is not used: its logarithms are libm's or the
//! standard library's, whichever another crate of the build has chosen, so that the program and the Python extension
//! could draw different numbers. (Its hypergeometric also fails from 1e14 balls on.)
//!
//! Private, except for [`Stream`] and [`beta`], which `lab::players` gives to players of one's own: those who need no equal
//! bits have other libraries. The tests and benchmarks of this one reach the rest through `lab::internals`, as they judge it in
//! release mode.

mod hat;
mod law;
mod stream;

pub use stream::Stream;

use law::{Cell, CountLaw, poisson_product};
use libm::{exp, log, log1p, sqrt};

/// The largest count, and the largest mean: twice it is still a whole number in a double.
pub const COUNT_MAX: u64 = 1 << 52;

/// Means below this are drawn by adding up, which is the faster way there (benches/samplers.rs).
const MEAN_SMALL: f64 = 32.0;

/// Where adding up ends. A Poisson law with a mean below 32 exceeds it with probability below 1e-34, the others with
/// less.
const SEARCH_END: f64 = 128.0;

/// The factor in Marsaglia and Tsang's bound of the acceptance of a gamma draw.
const GAMMA_BOUND: f64 = 0.0331;

/// A draw from Gamma(shape, 1): the time of arrival number `shape` of a Poisson clock. `shape` is in 1..=[`COUNT_MAX`].
///
/// The cube of a shifted normal, corrected by rejection: G. Marsaglia and W. W. Tsang, *A simple method for generating
/// gamma variables* (2000). With d = shape - 1/3 and c = 1 / sqrt(9 d), d (1 + c x)^3 for a normal x is accepted with
/// probability exp(x^2 / 2 + d (1 - v + ln v)), v = (1 + c x)^3; nine in ten are below their bound
/// 1 - 0.0331 x^4, which spares the logarithm.
///
/// # Numerics
///
/// The result carries a relative rounding error of a few 2^-53: at shape 1e15 1e-8 standard deviations. The exponent is
/// right to as much; the terms that cancel in it, of size c x, are rounded in proportion to themselves.
pub fn gamma(stream: &mut Stream, shape: u64) -> f64 {
    assert!(
        (1..=COUNT_MAX).contains(&shape),
        "the shape {shape} of a gamma is outside 1..=2^52"
    );
    gamma_from_one(stream, shape as f64)
}

/// [`gamma`] for any shape from 1 on.
fn gamma_from_one(stream: &mut Stream, shape: f64) -> f64 {
    // Both constants are Marsaglia and Tsang's: with them the cube of a normal comes closest to a gamma.
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let x = normal(stream);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = stream.uniform_open();
        let square = x * x;
        // The bound decides nine times in ten and spares both logarithms.
        if u < 1.0 - GAMMA_BOUND * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v))
        {
            return d * v;
        }
    }
}

/// A draw from Beta(a, b): X / (X + Y) for X from Gamma(a, 1) and Y from Gamma(b, 1). A shape of 0 gives its end for sure.
///
/// # Numerics
///
/// In logarithms, since a gamma of a small shape is often below the smallest double: for shapes below 1 it is
/// Gamma(shape + 1) times U^(1/shape) (Marsaglia and Tsang, section 6).
pub fn beta(stream: &mut Stream, a: f64, b: f64) -> f64 {
    assert!(
        a >= 0.0 && b >= 0.0 && a + b > 0.0,
        "the shapes {a} and {b} of a beta are not positive"
    );
    if a == 0.0 || b == 0.0 {
        return if a == 0.0 { 0.0 } else { 1.0 };
    }
    let x = log_gamma(stream, a);
    let y = log_gamma(stream, b);
    1.0 / (1.0 + exp(y - x))
}

/// The logarithm of a draw from Gamma(shape, 1), for any shape above 0.
fn log_gamma(stream: &mut Stream, shape: f64) -> f64 {
    if shape >= 1.0 {
        return log(gamma_from_one(stream, shape));
    }
    log(gamma_from_one(stream, shape + 1.0)) + log(stream.uniform_open()) / shape
}

/// A standard normal, by Marsaglia's polar method. Its twin is thrown away: keeping it would be state.
#[inline]
fn normal(stream: &mut Stream) -> f64 {
    loop {
        let x = 2.0 * stream.uniform() - 1.0;
        let y = 2.0 * stream.uniform() - 1.0;
        let square = x * x + y * y;
        if square < 1.0 && square > 0.0 {
            return x * sqrt(-2.0 * log(square) / square);
        }
    }
}

/// A draw from Poisson(mean): the arrivals of a Poisson clock in that time. `mean` is in 0..=[`COUNT_MAX`].
///
/// Inversion for means below 32, else rejection (see the module).
///
/// # Numerics
///
/// Inversion compares with a multiple of 2^-53: tails below that are not resolved. In rejection the logarithm of a
/// probability is off by no more than 1e-13 within ten standard deviations.
pub fn poisson(stream: &mut Stream, mean: f64) -> u64 {
    assert!(
        (0.0..=COUNT_MAX as f64).contains(&mean),
        "the mean {mean} of a Poisson is outside [0, 2^52]"
    );
    if mean < MEAN_SMALL {
        return search(stream, f64::INFINITY, exp(-mean), |k| mean / (k + 1.0));
    }
    let law = CountLaw {
        cells: [Cell::rising(0.0, mean)],
        mode: whole(mean),
        last: f64::INFINITY,
    };
    hat::draw(stream, &law, mean)
}

/// A draw from Binomial(n, p): the successes of n trials. `n` is at most [`COUNT_MAX`], `p` in [0, 1].
///
/// The rarer of success and failure is counted: by inversion where fewer than 32 are expected, else by rejection (see
/// the module).
///
/// # Numerics
///
/// As for [`poisson`]; besides, the two expected counts are rounded, as if the odds of success were off by a few parts
/// in 2^53: at n = 1e15 that moves the mean by at most 1e-8 standard deviations, at 1e9 by 1e-11.
pub fn binomial(stream: &mut Stream, n: u64, p: f64) -> u64 {
    assert!(n <= COUNT_MAX, "the number {n} of trials is above 2^52");
    assert!(
        (0.0..=1.0).contains(&p),
        "the probability {p} of a binomial is outside [0, 1]"
    );
    split(stream, n, p, 1.0 - p)
}

/// Binomial(n, a / (a + b)). Both weights are given, since 1 - a / (a + b) would lose the digits of a small b.
fn split(stream: &mut Stream, n: u64, a: f64, b: f64) -> u64 {
    // The rarer side is counted: inversion then is short, and small probabilities keep their digits.
    if a > b {
        return n - split(stream, n, b, a);
    }
    if n == 0 || a == 0.0 {
        return 0;
    }
    let trials = n as f64;
    let p = a / (a + b);
    let mean = trials * p;
    if mean < MEAN_SMALL {
        let odds = a / b;
        return search(stream, trials, exp(trials * log1p(-p)), |k| {
            (trials - k) / (k + 1.0) * odds
        });
    }
    let q = b / (a + b);
    let law = CountLaw {
        cells: [Cell::rising(0.0, mean), Cell::falling(trials, trials * q)],
        mode: whole((trials + 1.0) * p),
        last: trials,
    };
    hat::draw(stream, &law, mean * q)
}

/// A draw from the hypergeometric law: how many of `draws` balls, taken without replacement from an urn of `marked` and
/// `unmarked` ones, are marked. The urn holds at most [`COUNT_MAX`] balls and at least `draws`.
///
/// The rarer kind is counted, in the smaller of the part drawn and the part left: by inversion where fewer than 32 are
/// expected, else by rejection (see the module).
///
/// # Numerics
///
/// As for [`binomial`]: the four expected counts of marked and unmarked, drawn and left, are rounded. Inversion starts
/// from the probability that none is marked, in Loader's form: as a quotient of factorials it would have no digits.
pub fn hypergeometric(stream: &mut Stream, marked: u64, unmarked: u64, draws: u64) -> u64 {
    let total = marked.saturating_add(unmarked);
    assert!(
        total <= COUNT_MAX,
        "an urn of {marked} and {unmarked} balls holds more than 2^52"
    );
    assert!(draws <= total, "{draws} draws from an urn of {total}");
    // By the law's symmetries the cell that is drawn can be the smallest of the four.
    if marked > unmarked {
        return draws - hypergeometric(stream, unmarked, marked, draws);
    }
    if draws > total - draws {
        return marked - hypergeometric(stream, marked, unmarked, total - draws);
    }
    if marked == 0 || draws == 0 {
        return 0;
    }
    // Counts up to 2^52 are exact as doubles.
    let [m, u, d, n] = [marked, unmarked, draws, total].map(|count| count as f64);
    let left = n - d;
    let mean = m * d / n;
    // If k marked balls are drawn, k - 0 and m - k are the marked ones drawn and left, d - k and u - d + k the unmarked.
    let cells = [
        Cell::rising(0.0, mean),
        Cell::falling(m, m * left / n),
        Cell::falling(d, u * d / n),
        Cell::rising(u - d, u * left / n),
    ];
    let law = CountLaw {
        cells,
        mode: whole((m + 1.0) * (d + 1.0) / (n + 2.0)),
        last: m.min(d),
    };
    if mean < MEAN_SMALL {
        // Four Poisson cells, given both margins; a margin is two Poisson counts, given their sum n; n itself is one.
        let cells = law.weight(0.0);
        let all = poisson_product([(n, n)]);
        let margins = poisson_product([m, u, d, left].map(|count| (count, count)));
        let exponent = cells.exponent + all.exponent - margins.exponent;
        let none_marked = exp(-exponent) * sqrt(margins.square / (cells.square * all.square));
        return search(stream, law.last, none_marked, |k| {
            (m - k) * (d - k) / ((k + 1.0) * (u - d + k + 1.0))
        });
    }
    hat::draw(stream, &law, mean * (u / n) * (left / (n - 1.0)))
}

/// Draws from the multinomial law: `n` trials over outcomes with these probabilities, counted into `out`.
///
/// The probabilities are weights: none negative, their sum above 0 and finite, divided by it here. `n` is at most
/// [`COUNT_MAX`], `out` as long as the probabilities.
///
/// The conditional method (L. Devroye, *Non-uniform random variate generation*, 1986, chapter XI): one binomial per
/// outcome, its count among the trials that no earlier outcome took.
///
/// # Numerics
///
/// The weight of the later outcomes is added up from the last, never subtracted from the whole, so each conditional
/// probability and its complement are right to a few 2^-53 of themselves, however small the last weights are.
pub fn multinomial(stream: &mut Stream, n: u64, probabilities: &[f64], out: &mut [u64]) {
    assert!(n <= COUNT_MAX, "the number {n} of trials is above 2^52");
    assert_eq!(probabilities.len(), out.len(), "one count per outcome");
    // Until its turn comes, an outcome's slot keeps the weight of all later ones: it spares an allocation.
    let mut later = 0.0;
    for (slot, &weight) in out.iter_mut().zip(probabilities).rev() {
        assert!(
            weight >= 0.0,
            "the probability {weight} of an outcome is negative"
        );
        *slot = f64::to_bits(later);
        later += weight;
    }
    assert!(
        later > 0.0 && later < f64::INFINITY,
        "the probabilities sum to {later}"
    );
    let mut left = n;
    for (slot, &weight) in out.iter_mut().zip(probabilities) {
        *slot = split(stream, left, weight, f64::from_bits(*slot));
        left -= *slot;
    }
    assert_eq!(left, 0);
}

/// Draws from the multivariate hypergeometric law: how many of `draws` balls, taken without replacement from an urn
/// with `counts[i]` balls of colour i, have each colour, counted into `out`.
///
/// The urn holds at most [`COUNT_MAX`] balls and at least `draws`; `out` is as long as `counts`. The conditional
/// method, as in [`multinomial`]: one [`hypergeometric`] draw per colour, its share of the draws that no earlier
/// colour took.
///
/// # Numerics
///
/// As for [`hypergeometric`]; the urns along the way are exact integers.
pub fn multivariate_hypergeometric(
    stream: &mut Stream,
    counts: &[u64],
    draws: u64,
    out: &mut [u64],
) {
    assert_eq!(counts.len(), out.len(), "one count per colour");
    let mut later = counts
        .iter()
        .fold(0u64, |sum, &count| sum.saturating_add(count));
    assert!(
        later <= COUNT_MAX,
        "an urn of {later} balls holds more than 2^52"
    );
    assert!(draws <= later, "{draws} draws from an urn of {later}");
    let mut left = draws;
    for (slot, &count) in out.iter_mut().zip(counts) {
        later -= count;
        *slot = hypergeometric(stream, count, later, left);
        left -= *slot;
    }
    assert_eq!(left, 0);
}

/// The first k at which f(0) + ... + f(k) passes a uniform, given f(0) and f(k + 1) / f(k); at most `last`.
#[inline]
fn search(stream: &mut Stream, last: f64, first: f64, ratio_up: impl Fn(f64) -> f64) -> u64 {
    let end = last.min(SEARCH_END);
    let mut k = 0.0;
    let mut rest = stream.uniform();
    let mut probability = first;
    // The rest shrinks instead of a sum growing: what is left of a uniform keeps its digits in the tail.
    while rest >= probability && k < end {
        rest -= probability;
        probability *= ratio_up(k);
        k += 1.0;
    }
    k as u64
}

/// The whole part of a number above -2^63 and below 2^63.
#[inline]
fn whole(x: f64) -> f64 {
    x as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Label, WorldKey};

    fn stream(place: u64) -> Stream {
        Stream::new(Key::from(7u64), Label::Skip, [place, 0])
    }

    /// That no word is read matters: where nothing is random, later draws must not move.
    #[test]
    fn what_is_certain_takes_no_word() {
        let mut stream = stream(0);
        for n in [0, 1, 30, COUNT_MAX] {
            assert_eq!(binomial(&mut stream, n, 0.0), 0);
            assert_eq!(binomial(&mut stream, n, 1.0), n);
            assert_eq!(hypergeometric(&mut stream, n, 0, n / 2), n / 2);
            assert_eq!(hypergeometric(&mut stream, 0, n, n / 2), 0);
            assert_eq!(hypergeometric(&mut stream, n / 2, n - n / 2, 0), 0);
            assert_eq!(hypergeometric(&mut stream, n / 2, n - n / 2, n), n / 2);
        }
        assert_eq!(binomial(&mut stream, 0, 0.5), 0);
        let mut out = [9; 4];
        multinomial(&mut stream, 100, &[0.0, 0.3, 0.0, 0.0], &mut out);
        assert_eq!(out, [0, 100, 0, 0]);
        multinomial(&mut stream, 0, &[0.2, 0.3, 0.0, 0.5], &mut out);
        assert_eq!(out, [0; 4]);
        multivariate_hypergeometric(&mut stream, &[3, 0, 4, 1], 8, &mut out);
        assert_eq!(out, [3, 0, 4, 1]);
        multivariate_hypergeometric(&mut stream, &[3, 0, 4, 1], 0, &mut out);
        assert_eq!(out, [0; 4]);
        multivariate_hypergeometric(&mut stream, &[], 0, &mut []);
        assert_eq!(stream.next_u64(), super::tests::stream(0).next_u64());
    }

    #[test]
    fn no_draw_leaves_its_range() {
        let mut stream = stream(1);
        for n in [1, 2, 3, 10, 47, 48, 49, 1_000_000, COUNT_MAX] {
            for p in [
                1e-300,
                f64::EPSILON,
                1e-9,
                0.3,
                0.5,
                0.7,
                1.0 - 1e-9,
                1.0 - f64::EPSILON,
            ] {
                assert!(
                    (0..100).all(|_| binomial(&mut stream, n, p) <= n),
                    "n = {n}, p = {p}"
                );
            }
            for marked in [1, n / 3, n - 1] {
                for draws in [1, n / 2, n - 1] {
                    let least = draws.saturating_sub(n - marked);
                    let mut draw = || hypergeometric(&mut stream, marked, n - marked, draws);
                    assert!(
                        (0..100).all(|_| (least..=marked.min(draws)).contains(&draw())),
                        "{n}, {marked}, {draws}"
                    );
                }
            }
        }
        assert!((0..1000).all(|_| gamma(&mut stream, 1) > 0.0));
        assert_eq!(poisson(&mut stream, 0.0), 0);
    }

    /// Bernstein: the false alarm rate of all 4,000 draws is below 2e-18.
    #[test]
    fn the_largest_counts_are_drawn_where_they_belong() {
        let mut stream = stream(2);
        let half = 0.5 * COUNT_MAX as f64;
        let near = |draw: f64, mean: f64| {
            let width = sqrt(2.0 * mean * 50.0) + 50.0;
            assert!(
                (draw - mean).abs() <= width,
                "{draw} is not within {width} of {mean}"
            );
        };
        for _ in 0..1000 {
            near(gamma(&mut stream, COUNT_MAX), 2.0 * half);
            near(poisson(&mut stream, 2.0 * half) as f64, 2.0 * half);
            near(binomial(&mut stream, COUNT_MAX, 0.5) as f64, half);
            near(
                hypergeometric(&mut stream, COUNT_MAX / 2, COUNT_MAX / 2, COUNT_MAX / 2) as f64,
                0.5 * half,
            );
        }
    }

    /// Of 1e15 trials about one misses the first outcome. Taken as 1 less the rest, in doubles, that chance would be
    /// 11 % too high. 100,000 draws, false alarm <= 2e-10 (Bernstein); sums 5 % off are missed no more often.
    #[test]
    fn small_last_weights_keep_their_digits() {
        let (mut stream, mut out, mut sums) = (stream(3), [0; 3], [0; 3]);
        for _ in 0..100_000 {
            multinomial(
                &mut stream,
                1_000_000_000_000_000,
                &[1.0, 4e-16, 6e-16],
                &mut out,
            );
            assert_eq!(out.iter().sum::<u64>(), 1_000_000_000_000_000);
            sums = [0, sums[1] + out[1], sums[2] + out[2]];
        }
        assert!(
            sums[1].abs_diff(40_000) < 1400 && sums[2].abs_diff(60_000) < 1715,
            "{sums:?}"
        );
    }

    /// Marsaglia and Tsang checked their bound by plotting; here on a grid of normals and shapes.
    #[test]
    fn the_gamma_bound_is_below_the_acceptance() {
        for shape in [1.0, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e8, 1e15] {
            let d = shape - 1.0 / 3.0;
            for step in -2400..2400 {
                let x = f64::from(step) / 1000.0;
                let root = 1.0 + x / sqrt(9.0 * d);
                let bound = 1.0 - GAMMA_BOUND * x * x * x * x;
                if root > 0.0 {
                    let v = root * root * root;
                    let accepted = exp(0.5 * x * x + d * (1.0 - v + log(v)));
                    assert!(
                        bound <= accepted + 1e-15 * sqrt(d),
                        "shape {shape}, x = {x}: {bound} > {accepted}"
                    );
                } else {
                    assert!(bound <= 0.0, "shape {shape}, x = {x}: {bound}");
                }
            }
        }
    }

    /// Both methods, every reflection, both kinds of key. Changing one of these is a value-breaking change.
    #[test]
    fn golden_draws() {
        let mut s = stream(4);
        assert_eq!(
            [1, 2, 1_000_000, 1_000_000_000_000_000].map(|shape| gamma(&mut s, shape)),
            [
                0.5739432355647318,
                1.5275183227469389,
                1000143.8746570945,
                1000000010819945.9
            ]
        );
        assert_eq!(
            [0.5, 31.5, 32.0, 1e6, 1e15].map(|mean| poisson(&mut s, mean)),
            [0, 37, 24, 999465, 1000000052894374]
        );
        assert_eq!(
            [1e-11, 0.3, 0.5, 1.0 - 1e-8].map(|p| binomial(&mut s, 1_000_000_000_000, p)),
            [9, 299999451543, 500000534470, 999999989910]
        );
        assert_eq!([0.25, 0.75].map(|p| binomial(&mut s, 40, p)), [8, 34]);
        let urns = [
            (40, 60, 30),
            (60, 40, 30),
            (40, 60, 70),
            (60, 40, 70),
            (3_000_000, 7_000_000, 4_000_000),
        ];
        assert_eq!(
            urns.map(|(marked, unmarked, draws)| hypergeometric(&mut s, marked, unmarked, draws)),
            [12, 14, 28, 42, 1199579]
        );
        let half = 500_000_000_000_000;
        assert_eq!(hypergeometric(&mut s, half, half, half), 249999991668718);

        let mut s = Stream::new(WorldKey::from(7u64), Label::FeedbackSum, [2, 3]);
        let mut out = [0; 4];
        multinomial(&mut s, 1_000_000_000, &[0.1, 0.0, 0.6, 0.3], &mut out);
        assert_eq!(out, [100015168, 0, 600006489, 299978343]);
        multivariate_hypergeometric(&mut s, &[1_000_000, 3, 50, 2_000_000], 1_500_000, &mut out);
        assert_eq!(out, [500044, 0, 18, 999938]);
    }
}
