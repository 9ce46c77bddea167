//! How much of rho the clear test and the estimates behind it can spend together: the numbers of docs/theory.md,
//! "Replicability of the clear test", computed again.
//!
//! ```text
//! maximise   last stage + stage before + wrong leaders
//! over       all laws of D with bounded E|D1 - D2| (.924), bounded variance (.605) and Hoeffding's tails, and all x = E D
//! ```
//!
//! Lagrange multipliers take the first two conditions into the objective; what is left is a best non-decreasing function
//! A(t), found by dynamic programming over t. Any multipliers give an upper bound, so a coarse search for them errs on the
//! safe side. Run it with `cargo run --release --example clear_bound`; it takes minutes.

/// What estimates may spend of rho beside the test.
const ESTIMATES: f64 = 0.75;

/// What wrong leaders of two runs take of rho.
const WRONG_LEADERS: f64 = 0.05;

/// The step in t, far below D's standard deviation of .7 or so.
const STEP: f64 = 0.025;

fn main() {
    println!("E|D1 - D2| is at most {:.4}", apart(0.355));
    println!("in units of rho, with wrong leaders:");
    for actions in [2.0, 10.0, 100.0, 1_048_576.0] {
        for rho in [0.01, 0.05, 0.1, 0.3, 0.9] {
            let test = Test::new(actions, rho);
            println!(
                "K = {actions}, rho = {rho}: before the last stage {:.3}, at the last {:.3}",
                test.before_last() + WRONG_LEADERS,
                test.at_last() + WRONG_LEADERS
            );
        }
    }
}

/// The variance of the largest of the other means, times the samples, at most.
fn variance_of_largest(actions: f64) -> f64 {
    if actions == 2.0 {
        return 0.25;
    }
    // E[((1 + d)/2)^2] with the bounds on d's moments, at the fewest samples that a stage has.
    let samples = (15.0 * actions.ln()).max(64.0);
    let first = (actions.ln() / (2.0 * samples)).sqrt();
    let second = (1.0 + actions.ln()) / (2.0 * samples);
    (1.0 + 2.0 * first + second) / 4.0
}

/// E|D1 - D2| if the largest of the other means has this variance: g of the theory, the best action's two means at one half
/// and smoothed by a lattice step. Fewest samples are worst.
fn apart(others: f64) -> f64 {
    let samples = 64;
    let count = f64::from(samples);
    let shift = (2.0 * others * count).sqrt();
    // P(S = j) for the difference S of two Binomial(m, 1/2), from its middle outwards.
    let middle: f64 = (1..=samples).fold(1.0, |product, i| product * (1.0 - 0.5 / f64::from(i)));
    let mut sum = 0.0;
    let mut probability = middle;
    for j in 0..=samples {
        let sides: &[f64] = if j == 0 { &[0.0] } else { &[-1.0, 1.0] };
        for side in sides {
            let place = side * f64::from(j) + shift;
            let near = place * place + 0.25;
            sum += probability * if place.abs() < 0.5 { near } else { place.abs() };
        }
        probability *= (count - f64::from(j)) / (count + f64::from(j) + 1.0);
    }
    sum / count.sqrt()
}

struct Test {
    actions: f64,
    rho: f64,
    variance: f64,
    apart: f64,
    c0: f64,
    c1: f64,
}

impl Test {
    fn new(actions: f64, rho: f64) -> Self {
        let others: f64 = actions - 1.0;
        // Three stages and delta = .01. More of either only move c0, and with it everything by the same amount.
        let c0 = (others * 3.0 / (rho / 40.0).min(0.005)).ln().sqrt();
        let doubt = c0 + 2.34 / rho + 3.0 + (1.0 + others.ln()).sqrt();
        Self {
            actions,
            rho,
            variance: 0.25 + variance_of_largest(actions),
            apart: apart(variance_of_largest(actions)),
            c0,
            c1: c0.max(doubt / 2.8),
        }
    }

    /// P(D > x + distance) at most.
    fn above(&self, distance: f64) -> f64 {
        // x may lie below the smallest gap by what the largest of the other means gains on average.
        let beyond = distance - ((self.actions - 1.0).ln() / 2.0).sqrt();
        self.cantelli(distance)
            .min((-beyond.max(0.0).powi(2)).exp())
    }

    /// P(D < x - distance) at most.
    fn below(&self, distance: f64) -> f64 {
        let hoeffding = (self.actions - 1.0) * (-distance.max(0.0).powi(2)).exp();
        self.cantelli(distance).min(hoeffding)
    }

    fn cantelli(&self, distance: f64) -> f64 {
        self.variance / (self.variance + distance.max(0.0).powi(2))
    }

    /// What a stage with uniform thresholds takes of rho if D reaches only `distance` beyond x into their interval.
    fn uniform_stage(&self, tail: impl Fn(f64) -> f64, distance: f64) -> f64 {
        let steps = (0..4_000).map(|step| distance + (f64::from(step) + 0.5) * STEP / 5.0);
        let apart: f64 = steps
            .map(|distance| tail(distance).min(0.5))
            .map(|chance| 2.0 * chance * (1.0 - chance) * STEP / 5.0)
            .sum();
        // Scarf's bound on E(D - x - distance)_+, which sees that one law cannot attain every tail at once.
        let scarf = (self.variance + distance * distance).sqrt() - distance;
        apart.min(scarf).min(self.apart) / 1.2
    }

    /// Two stages that follow one another before the last, at the worst x; others are out of reach.
    fn before_last(&self) -> f64 {
        let lacks = (0..80).map(|step| -0.5 + 0.05 * f64::from(step));
        let risk = |lack: f64| {
            let next = 2.8 * (self.c1 - lack) - (self.c1 + 1.2 / self.rho);
            self.uniform_stage(|distance| self.above(distance), lack)
                + self.uniform_stage(|distance| self.below(distance), next)
        };
        lacks.map(risk).fold(0.0, f64::max)
    }

    /// The last stage and the one before it, at the worst x.
    fn at_last(&self) -> f64 {
        let top = 1.5 / self.rho * 4.75f64.ln();
        let end = top + 3.0 + (1.0 + (self.actions - 1.0).ln()).sqrt();
        let risk = |x: f64| {
            let lack = self.c1 - (self.c0 + x) / 2.8;
            self.last_stage(x, top) / self.rho
                + self.uniform_stage(|distance| self.above(distance), lack)
        };
        (0..=48)
            .map(|step| -1.0 + (end + 1.0) * f64::from(step) / 48.0)
            .map(risk)
            .fold(0.0, f64::max)
    }

    /// The largest integral of G' (2 A (1 - A) + min(A^2, .75 rho)), with thresholds from 0 to `top` and D around `x`.
    fn last_stage(&self, x: f64, top: f64) -> f64 {
        let g = |t: f64| ((self.rho * t / 1.5).exp() - 1.0) / 3.75;
        // Nine away from x the tails leave less than 1e-9.
        let (from, to) = ((x - 9.0).max(0.0), (x + 9.0).min(top));
        let rest = ESTIMATES * self.rho * (1.0 - g(to.clamp(0.0, top)));
        let laws = Laws::new(self, x, from, to);
        let best = golden(1.1 * self.rho, |apart| {
            golden(0.3 * self.rho, |spread| laws.dual(apart, spread))
        });
        best + rest
    }
}

/// The least value of a convex function on [0, most], nearly.
fn golden(most: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..12 {
        let one = low + 0.382 * (high - low);
        let two = low + 0.618 * (high - low);
        if value(one) < value(two) {
            high = two;
        } else {
            low = one;
        }
    }
    value((low + high) / 2.0)
}

/// Every distribution function A on a grid of times and values.
struct Laws {
    values: Vec<f64>,
    /// Per time: G', the distance from x, and the least and the largest A that the tails allow.
    times: Vec<[f64; 4]>,
    step: f64,
    rho: f64,
    variance: f64,
    apart: f64,
}

impl Laws {
    fn new(test: &Test, x: f64, from: f64, to: f64) -> Self {
        let rho = test.rho;
        let mut values: Vec<f64> = (0..=150).map(|i| f64::from(i) / 150.0).collect();
        // Finer near 0 and 1, where tails are, and where A^2 passes what estimates may spend.
        for i in 0..=30 {
            let small = 10f64.powf(-7.0 + 0.2 * f64::from(i));
            let bend = (ESTIMATES * rho).sqrt() * (0.9 + f64::from(i) / 150.0);
            values.extend([small, 1.0 - small, bend.min(1.0)]);
        }
        values.sort_by(f64::total_cmp);
        values.dedup();
        let count = ((to - from).max(0.0) / STEP).ceil();
        let step = if count > 0.0 {
            (to - from) / count
        } else {
            0.0
        };
        let time = |i: u32| {
            let t = from + (f64::from(i) + 0.5) * step;
            let density = rho / 5.625 * (rho * t / 1.5).exp();
            // A little wider than the tails, so that the grid's values do not cut off what lies between them.
            let most = if t < x {
                1.05 * test.below(x - t) + 1e-7
            } else {
                1.0
            };
            let least = if t > x {
                1.0 - 1.05 * test.above(t - x) - 1e-7
            } else {
                0.0
            };
            [density, t - x, least, most]
        };
        Self {
            values,
            times: (0..count as u32).map(time).collect(),
            step,
            rho,
            variance: test.variance,
            apart: test.apart,
        }
    }

    /// The best law if exceeding either condition costs its multiplier: at least what any law within them has.
    fn dual(&self, apart: f64, spread: f64) -> f64 {
        let mut best = vec![0.0f64; self.values.len()];
        // From the last time back: best[k] is what can still be had with A at value k or above.
        for [density, distance, least, most] in self.times.iter().rev() {
            for (best, &a) in best.iter_mut().zip(&self.values) {
                let differ = 2.0 * a * (1.0 - a);
                let neither = (a * a).min(ESTIMATES * self.rho);
                let square = 2.0 * distance.abs() * if *distance < 0.0 { a } else { 1.0 - a };
                let gain = density * (differ + neither) - apart * differ - spread * square;
                let allowed = (*least..=*most).contains(&a);
                *best = if allowed {
                    *best + gain * self.step
                } else {
                    f64::NEG_INFINITY
                };
            }
            for k in (1..best.len()).rev() {
                best[k - 1] = best[k - 1].max(best[k]);
            }
        }
        best[0] + apart * self.apart + spread * self.variance
    }
}
