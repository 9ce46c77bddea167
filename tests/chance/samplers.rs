//! The samplers against their exact laws, from ten trials to 1e15. For release mode: in debug it takes minutes.
//!
//! A reference shares nothing with the samplers: a law on the integers is summed up by its ratios f(k + 1) / f(k), all
//! integers within eight standard deviations, and a gamma law is integrated. Each check of a law is two bounds that
//! hold for every law, discrete or not: Dvoretzky-Kiefer-Wolfowitz on the distribution function, with Massart's
//! constant, and Bernstein on the count of each of some fifty bins, which sees the tails. They share the false alarm
//! rate: at most 1e-9 per check, below 2e-7 for the whole file.

use debora::key::{Key, Label};
use debora::lab::internals::{
    Stream, binomial, gamma, hypergeometric, multinomial, multivariate_hypergeometric, poisson,
};

/// Draws per check. A law whose distribution function is off by 0.0095 somewhere is missed at a rate <= 1e-9 (DKW).
const DRAWS: usize = 500_000;

/// The false alarm rate of a check.
const ALARM: f64 = 1e-9;

/// Standard deviations on each side of the mean that a reference covers. What is left out is below 1e-14.
const SPAN: f64 = 8.0;

fn stream(place: u64) -> Stream {
    Stream::new(Key::from(7u64), Label::Skip, [place, 0])
}

/// A law on the integers: from `first` to `last`, with these ratios f(k + 1) / f(k).
struct Reference<R> {
    first: u64,
    last: u64,
    mean: f64,
    deviation: f64,
    ratio_up: R,
}

impl<R: Fn(f64) -> f64> Reference<R> {
    /// The part of a law on 0..=end that matters.
    fn new(end: u64, mean: f64, variance: f64, ratio_up: R) -> Self {
        let deviation = variance.sqrt();
        // Thirty more: the tails of a law with a mean near 0 are not those of a normal one.
        let reach = SPAN * deviation + 30.0;
        let (first, last) = (
            (mean - reach).max(0.0) as u64,
            ((mean + reach) as u64).min(end),
        );
        Self {
            first,
            last,
            mean,
            deviation,
            ratio_up,
        }
    }

    /// The distribution function at these points, in ascending order.
    fn cdf(&self, points: &[i64]) -> Vec<f64> {
        let (mut k, mut weight, mut sum) = (self.first as f64, 1.0, 1.0);
        let mut advance = |point: i64| {
            let end = (self.last as f64).min(point as f64);
            while k < end {
                weight *= (self.ratio_up)(k);
                sum += weight;
                k += 1.0;
            }
            if point < self.first as i64 { 0.0 } else { sum }
        };
        let sums: Vec<f64> = points.iter().map(|&point| advance(point)).collect();
        let total = advance(self.last as i64);
        sums.into_iter().map(|sum| sum / total).collect()
    }

    /// The upper ends of the bins: every integer, or every quarter of a standard deviation, out to six.
    fn edges(&self) -> Vec<i64> {
        let stride = (0.25 * self.deviation).max(1.0);
        let count = (6.0 * self.deviation / stride).ceil() as i64;
        (-count..=count)
            .map(|step| (self.mean + step as f64 * stride).floor() as i64)
            .collect()
    }

    /// Whether these draws pass for draws from this law.
    fn check(&self, mut draws: Vec<i64>) -> Result<(), String> {
        draws.sort_unstable();
        let edges = self.edges();
        // Between two draws the law's distribution function rises and theirs does not: the two are furthest apart at a
        // draw or just below one.
        let mut points: Vec<i64> = draws
            .iter()
            .flat_map(|&draw| [draw - 1, draw])
            .chain(edges.iter().copied())
            .collect();
        points.sort_unstable();
        points.dedup();
        let cdf = self.cdf(&points);
        let at_edge = |edge: &i64| cdf[points.binary_search(edge).unwrap()];
        compare(
            &draws,
            &points,
            &cdf,
            &edges,
            &edges.iter().map(at_edge).collect::<Vec<_>>(),
        )
    }
}

/// Both bounds, for draws in ascending order, and a distribution function at points and at edges, both ascending.
fn compare<T: PartialOrd>(
    draws: &[T],
    points: &[T],
    cdf: &[f64],
    edges: &[T],
    at_edges: &[f64],
) -> Result<(), String> {
    let count = draws.len() as f64;
    // 1. P(sup |F_n - F| > tolerance) <= 2 exp(-2 n tolerance^2) = ALARM / 2.
    let tolerance = ((4.0 / ALARM).ln() / (2.0 * count)).sqrt();
    let (mut drawn, mut distance) = (0, 0.0f64);
    for (point, f) in points.iter().zip(cdf) {
        drawn += draws[drawn..]
            .iter()
            .take_while(|draw| *draw <= point)
            .count();
        distance = distance.max((drawn as f64 / count - f).abs());
    }
    if distance > tolerance {
        return Err(format!(
            "distribution function off by {distance}, tolerance {tolerance}, {count} draws"
        ));
    }
    // 2. P(|N - n p| > sqrt(2 n p (1 - p) t) + t / 3) <= 2 exp(-t), and the bins share ALARM / 2.
    let t = (4.0 * (edges.len() + 1) as f64 / ALARM).ln();
    let drawn_up_to = |edge: &T| draws.partition_point(|draw| draw <= edge) as f64;
    let (mut drawn_before, mut f_before) = (0.0, 0.0);
    for bin in 0..=edges.len() {
        let (drawn, f) = if bin < edges.len() {
            (drawn_up_to(&edges[bin]), at_edges[bin])
        } else {
            (count, 1.0)
        };
        let (seen, p) = (drawn - drawn_before, f - f_before);
        let width = (2.0 * count * p * (1.0 - p) * t).sqrt() + t / 3.0;
        if (seen - count * p).abs() > width {
            return Err(format!(
                "bin {bin}: {seen} draws, expected {} +- {width}",
                count * p
            ));
        }
        (drawn_before, f_before) = (drawn, f);
    }
    Ok(())
}

fn draw_many(place: u64, mut draw: impl FnMut(&mut Stream) -> u64) -> Vec<i64> {
    let mut stream = stream(place);
    (0..DRAWS).map(|_| draw(&mut stream) as i64).collect()
}

fn poisson_law(mean: f64) -> Reference<impl Fn(f64) -> f64> {
    Reference::new(u64::MAX, mean, mean, move |k| mean / (k + 1.0))
}

fn binomial_law(n: u64, p: f64) -> Reference<impl Fn(f64) -> f64> {
    let (trials, odds) = (n as f64, p / (1.0 - p));
    Reference::new(n, trials * p, trials * p * (1.0 - p), move |k| {
        (trials - k) / (k + 1.0) * odds
    })
}

fn hypergeometric_law(marked: u64, unmarked: u64, draws: u64) -> Reference<impl Fn(f64) -> f64> {
    let [m, u, d] = [marked, unmarked, draws].map(|count| count as f64);
    let (mean, n) = (m * d / (m + u), m + u);
    let variance = mean * u / n * (n - d) / (n - 1.0).max(1.0);
    let ratio_up = move |k: f64| (m - k) * (d - k) / ((k + 1.0) * (u - d + k + 1.0));
    let mut law = Reference::new(marked.min(draws), mean, variance, ratio_up);
    law.first = law.first.max(draws.saturating_sub(unmarked));
    law
}

/// A gamma law: points from `SPAN` standard deviations below the mean to as many above, and its distribution function
/// there, by Simpson's rule.
fn gamma_law(shape: f64) -> (Vec<f64>, Vec<f64>) {
    const PANELS: usize = 20_000;
    let (mode, reach) = (shape - 1.0, SPAN * shape.sqrt() + 30.0);
    let low = (-reach).max(-mode);
    let stride = (reach - low) / PANELS as f64;
    let density = |offset: f64| match mode {
        0.0 => (-offset).exp(),
        _ => (mode * (offset / mode).ln_1p() - offset).exp(),
    };
    let offset = |panel: f64| low + panel * stride;
    let mut sums = vec![0.0];
    for panel in (0..PANELS).map(|panel| panel as f64) {
        let [left, middle, right] =
            [panel, panel + 0.5, panel + 1.0].map(|place| density(offset(place)));
        sums.push(sums.last().unwrap() + left + 4.0 * middle + right);
    }
    let points = (0..=PANELS)
        .map(|panel| mode + offset(panel as f64))
        .collect();
    (points, sums.iter().map(|sum| sum / sums[PANELS]).collect())
}

/// Whether draws of this shape pass for draws from this law.
fn check_gamma(
    place: u64,
    shape_drawn: u64,
    (points, cdf): &(Vec<f64>, Vec<f64>),
) -> Result<(), String> {
    let mut stream = stream(place);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| gamma(&mut stream, shape_drawn))
        .collect();
    draws.sort_unstable_by(f64::total_cmp);
    // Four hundred of the points are the edges of bins, a twentieth of a standard deviation apart.
    let thin = |all: &[f64]| all.iter().copied().step_by(50).collect::<Vec<_>>();
    compare(&draws, points, cdf, &thin(points), &thin(cdf))
}

/// Whether these draws from 0..pmf.len() have these probabilities.
fn check_pmf(mut draws: Vec<i64>, pmf: &[f64]) -> Result<(), String> {
    draws.sort_unstable();
    let points: Vec<i64> = (0..pmf.len() as i64).collect();
    let cdf: Vec<f64> = pmf
        .iter()
        .scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        })
        .collect();
    compare(&draws, &points, &cdf, &points, &cdf)
}

/// Says which case it was, since the checks know only numbers.
fn expect_pass(case: String, result: Result<(), String>) {
    if let Err(text) = result {
        panic!("{case}, key 7: {text}");
    }
}

fn expect_failure(case: String, result: Result<(), String>) {
    assert!(result.is_err(), "{case}, key 7: a wrong law passed");
}

/// n over k, exactly.
fn choose(n: u64, k: u64) -> u128 {
    (0..k).fold(1, |product, i| {
        product * u128::from(n - i) / u128::from(i + 1)
    })
}

#[test]
fn the_references_agree_with_enumeration() {
    let close = |reference: Vec<f64>, pmf: Vec<f64>| {
        let mut sum = 0.0;
        for (k, (f, p)) in reference.iter().zip(&pmf).enumerate() {
            sum += p;
            assert!((f - sum).abs() < 1e-12, "F({k}) = {f}, enumerated {sum}");
        }
    };
    for n in [10u64, 100] {
        for p in [0.03, 0.5, 0.8] {
            // One trial after the other.
            let mut pmf = vec![1.0];
            for _ in 0..n {
                let next = |k: usize| {
                    p * if k > 0 { pmf[k - 1] } else { 0.0 }
                        + (1.0 - p) * pmf.get(k).copied().unwrap_or(0.0)
                };
                pmf = (0..=pmf.len()).map(next).collect();
            }
            close(
                binomial_law(n, p).cdf(&(0..=n as i64).collect::<Vec<_>>()),
                pmf,
            );
        }
    }
    for (marked, unmarked, draws) in [
        (4, 6, 5),
        (9, 1, 7),
        (50, 50, 50),
        (80, 20, 70),
        (3, 97, 40),
    ] {
        let ways = |k: u64| {
            let rest = draws - k.min(draws);
            if k > marked || k > draws || rest > unmarked {
                0
            } else {
                choose(marked, k) * choose(unmarked, rest)
            }
        };
        let all = choose(marked + unmarked, draws) as f64;
        let law = hypergeometric_law(marked, unmarked, draws);
        close(
            law.cdf(&(0..=draws as i64).collect::<Vec<_>>()),
            (0..=draws).map(|k| ways(k) as f64 / all).collect(),
        );
    }
    for mean in [0.2, 5.0, 40.0] {
        let mut pmf = vec![f64::exp(-mean)];
        (1..150).for_each(|k| pmf.push(pmf[k - 1] * mean / k as f64));
        close(poisson_law(mean).cdf(&(0..150).collect::<Vec<_>>()), pmf);
    }
    // A gamma is below x when a Poisson count of mean x reaches its shape.
    for shape in [1, 2, 10, 100] {
        let (points, cdf) = gamma_law(shape as f64);
        for (x, f) in points.iter().zip(&cdf).step_by(500) {
            let mut term = f64::exp(-x);
            let mut sum = term;
            (1..shape).for_each(|k| {
                term *= x / k as f64;
                sum += term;
            });
            assert!(
                (f - (1.0 - sum)).abs() < 1e-9,
                "shape {shape}, x = {x}: {f}, enumerated {}",
                1.0 - sum
            );
        }
    }
}

/// 9 shapes, false alarm <= 1e-9 each. A shape off by a twentieth of a standard deviation fails.
#[test]
fn gamma_draws_have_their_law() {
    for (place, shape) in (0..).zip([
        1,
        2,
        10,
        100,
        10_000,
        1_000_000,
        10u64.pow(9),
        10u64.pow(12),
        10u64.pow(15),
    ]) {
        let law = gamma_law(shape as f64);
        expect_pass(format!("gamma({shape})"), check_gamma(place, shape, &law));
        let wrong = shape + (0.05 * (shape as f64).sqrt()).ceil() as u64;
        expect_failure(
            format!("gamma({wrong}) for {shape}"),
            check_gamma(place, wrong, &law),
        );
    }
}

/// 13 means, false alarm <= 1e-9 each. A mean off by a twentieth of a standard deviation fails.
#[test]
fn poisson_draws_have_their_law() {
    for (place, mean) in (100..).zip([
        0.01, 0.7, 5.0, 10.0, 31.99, 32.0, 41.5, 100.0, 1e4, 1e6, 1e9, 1e12, 1e15,
    ]) {
        let law = poisson_law(mean);
        expect_pass(
            format!("Poisson({mean})"),
            law.check(draw_many(place, |stream| poisson(stream, mean))),
        );
        let wrong = mean + 0.05 * mean.sqrt();
        let draws = draw_many(place, |stream| poisson(stream, wrong));
        expect_failure(format!("Poisson({wrong}) for {mean}"), law.check(draws));
    }
}

/// 7 sizes and 6 probabilities, false alarm <= 1e-9 each: both methods, their border and the reflection at 1/2.
#[test]
fn binomial_draws_have_their_law() {
    let mut place = 200;
    for exponent in [1, 2, 4, 6, 9, 12, 15] {
        let n = 10u64.pow(exponent);
        let size = n as f64;
        for p in [
            3.0 / size,
            0.4f64.min(35.0 / size),
            0.3,
            0.5,
            0.999,
            1.0 - 5.0 / size,
        ] {
            let draws = draw_many(place, |stream| binomial(stream, n, p));
            expect_pass(
                format!("Binomial({n}, {p})"),
                binomial_law(n, p).check(draws),
            );
            place += 1;
        }
    }
}

/// A probability that moves the mean by a twentieth of a standard deviation, and one that keeps the mean but makes the
/// variance an eighth larger, fail the checks the right ones pass.
#[test]
fn wrong_binomial_draws_are_found() {
    for (place, exponent) in (300..).zip([1, 2, 4, 6, 9, 12, 15]) {
        let n = 10u64.pow(exponent);
        let (law, wrong) = (binomial_law(n, 0.2), 0.2 + 0.05 * (0.16 / n as f64).sqrt());
        let draws = draw_many(place, |stream| binomial(stream, n, wrong));
        expect_failure(format!("Binomial({n}, {wrong}) for 0.2"), law.check(draws));
        let draws = draw_many(place, |stream| binomial(stream, n * 2, 0.1));
        expect_failure(
            format!("Binomial({}, 0.1) for Binomial({n}, 0.2)", n * 2),
            law.check(draws),
        );
    }
}

/// 7 sizes and 8 urns, false alarm <= 1e-9 each: both methods, their border and both reflections.
#[test]
fn hypergeometric_draws_have_their_law() {
    let mut place = 400;
    for exponent in [1, 2, 4, 6, 9, 12, 15] {
        let n = 10u64.pow(exponent);
        let root = (35.0 * n as f64).sqrt() as u64;
        for (marked, draws) in [
            (n / 2, n / 2),
            (n * 3 / 10, n * 4 / 10),
            (n / 5, n * 9 / 10),
            (n * 9 / 10, n / 5),
            (n * 9 / 10, n * 9 / 10),
            (5, n / 2),
            (n * 7 / 10, 8),
            (root.min(n / 3), root.min(n / 3)),
        ] {
            let sample = draw_many(place, |stream| {
                hypergeometric(stream, marked, n - marked, draws)
            });
            let law = hypergeometric_law(marked, n - marked, draws);
            expect_pass(
                format!("Hypergeometric({marked}, {}, {draws})", n - marked),
                law.check(sample),
            );
            place += 1;
        }
    }
}

/// An urn that moves the mean by a twentieth of a standard deviation, and draws with replacement, fail.
#[test]
fn wrong_hypergeometric_draws_are_found() {
    for (place, exponent) in (500..).zip([1, 2, 4, 6, 9, 12, 15]) {
        let n = 10u64.pow(exponent);
        let (marked, draws) = (n / 5, n / 5);
        let law = hypergeometric_law(marked, n - marked, draws);
        let wrong = marked + (0.25 * law.deviation).ceil() as u64;
        let sample = draw_many(place, |stream| {
            hypergeometric(stream, wrong, n - wrong, draws)
        });
        expect_failure(
            format!(
                "Hypergeometric({wrong}, {}, {draws}) for {marked} marked",
                n - wrong
            ),
            law.check(sample),
        );
        let sample = draw_many(place, |stream| binomial(stream, draws, 0.2));
        expect_failure(
            format!("Binomial({draws}, 0.2) for an urn of {n}"),
            law.check(sample),
        );
    }
}

/// The last digits of a large count are uniform: modulo 8, up to exp(-variance / 4). False alarm <= 1e-9 for each of 9
/// checks. A residue whose probability is off by 0.0067 is missed at a rate of 1e-9 or less (Bernstein).
#[test]
fn large_counts_have_uniform_last_digits() {
    for (place, exponent) in (600..).zip([9, 12, 15]) {
        let n = 10u64.pow(exponent);
        let modulo = |draws: Vec<i64>| {
            check_pmf(
                draws.into_iter().map(|draw| draw % 8).collect(),
                &[0.125; 8],
            )
        };
        expect_pass(
            format!("Poisson({n})"),
            modulo(draw_many(place, |stream| poisson(stream, n as f64))),
        );
        expect_pass(
            format!("Binomial({n}, 0.5)"),
            modulo(draw_many(place, |stream| binomial(stream, n, 0.5))),
        );
        let draws = draw_many(place, |stream| {
            hypergeometric(stream, n / 3, n - n / 3, n / 2)
        });
        expect_pass(format!("an urn of {n}"), modulo(draws));
    }
}

/// Six trials over three outcomes, all 28 results: false alarm <= 1e-9. Other probabilities fail.
#[test]
fn multinomial_draws_have_their_joint_law() {
    let mut pmf = vec![0.0; 49];
    for i in 0..=6 {
        for j in 0..=6 - i {
            let ways = (choose(6, i) * choose(6 - i, j)) as f64;
            pmf[(7 * i + j) as usize] = ways
                * 0.2f64.powi(i as i32)
                * 0.5f64.powi(j as i32)
                * 0.3f64.powi((6 - i - j) as i32);
        }
    }
    let draws = |weights: [f64; 3]| {
        draw_many(700, |stream| {
            let mut out = [0; 3];
            multinomial(stream, 6, &weights, &mut out);
            7 * out[0] + out[1]
        })
    };
    expect_pass(
        "multinomial".into(),
        check_pmf(draws([0.4, 1.0, 0.6]), &pmf),
    );
    expect_failure(
        "multinomial of other weights".into(),
        check_pmf(draws([0.4, 1.0, 0.63]), &pmf),
    );
}

/// Six draws from an urn of three, four and five balls, all results: false alarm <= 1e-9. Another urn fails.
#[test]
fn multivariate_hypergeometric_draws_have_their_joint_law() {
    let mut pmf = vec![0.0; 49];
    for i in 0..=3 {
        for j in (1 - i.min(1))..=4u64.min(6 - i) {
            let ways = choose(3, i) * choose(4, j) * choose(5, 6 - i - j);
            pmf[(7 * i + j) as usize] = ways as f64 / choose(12, 6) as f64;
        }
    }
    let draws = |counts: [u64; 3]| {
        draw_many(701, |stream| {
            let mut out = [0; 3];
            multivariate_hypergeometric(stream, &counts, 6, &mut out);
            7 * out[0] + out[1]
        })
    };
    expect_pass("urn".into(), check_pmf(draws([3, 4, 5]), &pmf));
    expect_failure("other urn".into(), check_pmf(draws([6, 8, 10]), &pmf));
}

/// The last outcome, and two together, are binomial: 7 sizes, 2 checks each, false alarm <= 1e-9 per check.
#[test]
fn multinomial_draws_have_their_marginals() {
    for (place, exponent) in (800..).zip([1, 2, 4, 6, 9, 12, 15]) {
        let n = 10u64.pow(exponent);
        let mut columns = [const { Vec::new() }; 2];
        let mut stream = stream(place);
        for _ in 0..DRAWS {
            let mut out = [0; 5];
            multinomial(&mut stream, n, &[0.2, 0.0, 1.0, 0.5, 0.3], &mut out);
            assert_eq!((out.iter().sum::<u64>(), out[1]), (n, 0));
            for (column, count) in columns.iter_mut().zip([out[4], out[0] + out[3]]) {
                column.push(count as i64);
            }
        }
        for (column, p) in columns.into_iter().zip([0.15, 0.35]) {
            expect_pass(
                format!("multinomial of {n}, share {p}"),
                binomial_law(n, p).check(column),
            );
        }
    }
}

/// The last colour, and two together, are hypergeometric: 7 sizes, 2 checks each, false alarm <= 1e-9 per check.
#[test]
fn multivariate_hypergeometric_draws_have_their_marginals() {
    for (place, exponent) in (900..).zip([1, 2, 4, 6, 9, 12, 15]) {
        let n = 10u64.pow(exponent);
        let counts = [n / 10, 0, n / 2, n / 4, n - n / 10 - n / 2 - n / 4];
        let mut columns = [const { Vec::new() }; 2];
        let mut stream = stream(place);
        for _ in 0..DRAWS {
            let mut out = [0; 5];
            multivariate_hypergeometric(&mut stream, &counts, n / 3, &mut out);
            assert_eq!((out.iter().sum::<u64>(), out[1]), (n / 3, 0));
            for (column, count) in columns.iter_mut().zip([out[4], out[0] + out[3]]) {
                column.push(count as i64);
            }
        }
        for (column, marked) in columns.into_iter().zip([counts[4], counts[0] + counts[3]]) {
            let law = hypergeometric_law(marked, n - marked, n / 3);
            expect_pass(format!("urn of {n}, {marked} marked"), law.check(column));
        }
    }
}
