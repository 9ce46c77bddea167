//! What was observed, with intervals valid at any time.
//!
//! # The mean of an action
//!
//! Let x_1, x_2, .. lie in [0, 1] with mean mu each, S their sum and n their number. For any p,
//!
//! ```text
//! (p/mu)^x ((1-p)/(1-mu))^(1-x) <= x p/mu + (1-x) (1-p)/(1-mu),      whose mean is p + 1 - p = 1:
//! ```
//!
//! the left side is convex in x, and the right side its chord. So the product over the x_i is a supermartingale that begins at 1,
//! and so is its mixture over p by Jeffreys' law, Beta(1/2, 1/2):
//!
//! ```text
//! M_n(mu) = B(S + 1/2, n - S + 1/2) / (pi mu^S (1-mu)^(n-S))
//! ```
//!
//! By Ville's inequality it ever reaches 1/miss with probability at most `miss`, so all mu with M_n(mu) < 1/miss hold at all n
//! together, whenever and however often one looks and whatever one does about it (Robbins, 1970). It asks nothing of the law but
//! its range, and is narrow where the mean is near an end of it.
//!
//! # The average of what was played
//!
//! Over a whole experiment means change from round to round, as strategies do: let x_t in [0, 1] have mean mu_t given all before it.
//! By Hoeffding's lemma exp(lambda sum(x_t - mu_t) - lambda^2 n / 8) is a supermartingale for every lambda, and so is its mixture
//! over lambda by a normal law of variance 1/r. Again by Ville, at all n together with probability at least 1 - `miss`,
//!
//! ```text
//! |sum(x_t - mu_t)| < sqrt( (n/4 + r) ln((n/4 + r) / (r miss^2)) )
//! ```
//!
//! # The lift over what was held back
//!
//! An average of what was played minus the mean of one action, each within its interval at half the error: by the union bound both
//! hold at all times together, and so does the difference of their ends.

use libm::{lgamma, log, log1p, sqrt};

/// The chance that an interval that people are shown ever misses, each for itself.
pub const MISS: f64 = 0.01;

/// Above this Stirling's series has all digits.
const LARGE: f64 = 64.0;

/// The interval of a mean of which `count` values in [0, 1] have this sum: all such intervals hold together, at every count from
/// 1 on, with probability at least 1 - `miss`.
pub fn interval_at_any_time(count: u64, sum: f64, miss: f64) -> [f64; 2] {
    if count == 0 {
        return [0.0, 1.0];
    }
    let count = count as f64;
    // The rounding of a sum must not leave it outside what is possible.
    let mean = (sum / count).clamp(0.0, 1.0);
    // ln M = count * kl(mean, mu) + ln B(..) + count * entropy: what the first term may reach.
    let most = -log(miss) - mixture(count, mean * count);
    [
        limit(mean, most / count),
        // The same question, asked of 1 - x.
        1.0 - limit(1.0 - mean, most / count),
    ]
}

/// The r of the module's second equation: narrowest near 10,000 rounds, and within a tenth of it from 1,000 to 200,000.
const NARROWEST: f64 = 300.0;

/// The interval of the average of the means of `count` values in [0, 1] with this sum, whose means may differ: all such intervals
/// hold together, at every count from 1 on, with probability at least 1 - `miss`.
pub fn average_at_any_time(count: u64, sum: f64, miss: f64) -> [f64; 2] {
    if count == 0 {
        return [0.0, 1.0];
    }
    let count = count as f64;
    let variance = count / 4.0 + NARROWEST;
    let off = sqrt(variance * (log(variance / NARROWEST) - 2.0 * log(miss))) / count;
    let average = sum / count;
    [(average - off).max(0.0), (average + off).min(1.0)]
}

/// How many values in [0, 1], and their sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SumOf {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

/// The interval of a lift, in [-1, 1]: the average of the means of what was played, whose means may differ, minus the mean of what
/// was held back, which has one. All such intervals hold together, at any two counts, with probability at least 1 - `miss`.
pub fn lift_at_any_time(played: SumOf, held_back: SumOf, miss: f64) -> [f64; 2] {
    // Each side at half the error. They share no outcome, but what is played may depend on when one looks, so nothing is
    // taken for independent.
    let [low, high] = average_at_any_time(played.count, played.sum, miss / 2.0);
    let [held_low, held_high] = interval_at_any_time(held_back.count, held_back.sum, miss / 2.0);
    [low - held_high, high - held_low]
}

/// ln B(S + 1/2, n - S + 1/2) - ln pi + n times the entropy of S / n: what is left of ln M where mu is the mean.
fn mixture(count: f64, sum: f64) -> f64 {
    // Each part without its largest terms, which cancel: n ln n would take all digits from n = 1e15 on.
    half(sum) + half(count - sum) - whole(count) - log(core::f64::consts::PI)
}

/// ln Gamma(x + 1/2) - x ln x + x.
fn half(x: f64) -> f64 {
    if x == 0.0 {
        return 0.5 * log(core::f64::consts::PI);
    }
    if x < LARGE {
        return lgamma(x + 0.5) - x * log(x) + x;
    }
    let square = x * x;
    0.5 * log(core::f64::consts::TAU)
        - (1.0 / 24.0 - (7.0 / 2880.0 - 31.0 / 40320.0 / square) / square) / x
}

/// ln Gamma(x + 1) - x ln x + x.
fn whole(x: f64) -> f64 {
    if x < LARGE {
        return lgamma(x + 1.0) - x * log(x) + x;
    }
    let square = x * x;
    0.5 * log(core::f64::consts::TAU * x)
        + (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / x
}

/// The least mu below the mean at which the divergence is at most this; 0 if all are.
fn limit(mean: f64, most: f64) -> f64 {
    let mut low = 0.0;
    let mut high = mean;
    loop {
        let middle = 0.5 * (low + high);
        // The outer one of two neighbours: an interval that is too wide by one bit still holds.
        if middle <= low || middle >= high {
            return low;
        }
        if divergence(mean, middle) > most {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The Kullback-Leibler divergence of two chances, mean and mu.
fn divergence(mean: f64, mu: f64) -> f64 {
    // By differences: near the mean the logarithms cancel to second order, and the quotients would keep no digit of it.
    let off = mu - mean;
    let part = |share: f64, off: f64| {
        if share == 0.0 {
            0.0
        } else {
            share * log1p(off / share)
        }
    };
    -(part(mean, off) + part(1.0 - mean, -off))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Larger than what is shown: misses are to be seen.
    const MISS: f64 = 0.05;

    /// ln M as it stands in the module's equation.
    fn ln_martingale(count: f64, sum: f64, mu: f64) -> f64 {
        let beta = lgamma(sum + 0.5) + lgamma(count - sum + 0.5) - lgamma(count + 1.0);
        beta - log(core::f64::consts::PI) - sum * log(mu) - (count - sum) * log1p(-mu)
    }

    #[test]
    fn the_ends_are_where_the_martingale_reaches_its_bound() {
        for (count, sum) in [
            (1u64, 0.5),
            (3, 0.7),
            (20, 3.0),
            (100, 99.0),
            (1000, 417.25),
        ] {
            for miss in [0.05, 0.001] {
                for end in interval_at_any_time(count, sum, miss) {
                    let reached = ln_martingale(count as f64, sum, end) + log(miss);
                    let at_the_edge = end == 0.0 || end == 1.0;
                    assert!(
                        at_the_edge || reached.abs() < 1e-9,
                        "{count} {sum} {end}: {reached}"
                    );
                }
            }
        }
        assert_eq!(interval_at_any_time(0, 0.0, MISS), [0.0, 1.0]);
        assert_eq!(interval_at_any_time(10, 0.0, MISS)[0], 0.0);
        assert_eq!(interval_at_any_time(10, 10.0, MISS)[1], 1.0);
    }

    /// The chance that a walk is ever outside, summed over all its states: `steps` are what a value adds, with their chances.
    fn chance_to_miss(
        interval: fn(u64, f64, f64) -> [f64; 2],
        steps: &[(usize, f64)],
        unit: f64,
        rounds: u64,
    ) -> f64 {
        let mean: f64 = steps
            .iter()
            .map(|&(step, chance)| step as f64 * unit * chance)
            .sum();
        let largest = steps.iter().map(|step| step.0).max().unwrap();
        let mut inside = vec![1.0];
        let mut missed = 0.0;
        for count in 1..=rounds {
            let mut next = vec![0.0; inside.len() + largest];
            for (sum, chance) in inside.iter().enumerate() {
                for &(step, share) in steps {
                    next[sum + step] += chance * share;
                }
            }
            for (sum, chance) in next.iter_mut().enumerate() {
                let [low, high] = interval(count, sum as f64 * unit, MISS);
                if *chance > 0.0 && !(low..=high).contains(&mean) {
                    missed += std::mem::take(chance);
                }
            }
            inside = next;
        }
        missed
    }

    #[test]
    fn looked_at_after_every_value_it_misses_as_seldom_as_it_says() {
        for mu in [0.01, 0.2, 0.5] {
            let missed = chance_to_miss(interval_at_any_time, &[(0, 1.0 - mu), (1, mu)], 1.0, 400);
            assert!(missed <= MISS, "{mu}: {missed}");
            // Not by being far too wide: a good part of the allowance is used within 400 values.
            assert!(missed > 0.1 * MISS, "{mu}: {missed}");
        }
        let thirds = chance_to_miss(
            interval_at_any_time,
            &[(0, 0.3), (1, 0.5), (3, 0.2)],
            1.0 / 3.0,
            300,
        );
        assert!(thirds <= MISS, "{thirds}");
        let average = chance_to_miss(average_at_any_time, &[(0, 0.5), (1, 0.5)], 1.0, 1000);
        assert!(average <= MISS, "{average}");
    }

    /// Means that move as an adversary would have them: up while the sum is below them, and down while it is above.
    #[test]
    fn the_average_holds_where_means_move() {
        let runs = 2_000u64;
        let mut missed = 0;
        for run in 0..runs {
            let key = crate::WorldKey::from(run);
            let (mut sum, mut means) = (0.0, 0.0);
            let outside = (1..=500u64).any(|count| {
                let mean = if sum < means { 0.6 } else { 0.4 };
                means += mean;
                sum += f64::from(u8::from(
                    key.uniform(crate::key::Label::Round, [count, 0, 0]) < mean,
                ));
                let [low, high] = average_at_any_time(count, sum, MISS);
                !(low..=high).contains(&(means / count as f64))
            });
            missed += u64::from(outside);
        }
        // By Hoeffding, more than this many of 2,000 happen with probability below 1e-6 if each has 0.05.
        assert!(missed as f64 <= runs as f64 * (MISS + 0.0588), "{missed}");
    }

    /// Strategies that change, beside one action that is held back: looked at after every outcome of either side, the interval misses
    /// the difference of the means so far in no more runs than it says. 1,000 runs, keys 0 to 999, tolerance 0.0832 (Hoeffding:
    /// false alarm below 1e-6). An interval that is right at one look alone misses in more.
    #[test]
    fn a_lift_holds_whenever_one_looks() {
        let runs = 1_000u64;
        let (mut missed, mut at_one_look) = (0, 0);
        for run in 0..runs {
            let (out, out_at_one) = lift_misses(crate::WorldKey::from(run));
            missed += u64::from(out);
            at_one_look += u64::from(out_at_one);
        }
        let most = runs as f64 * (MISS + 0.0832);
        assert!(missed as f64 <= most, "{missed}");
        assert!(at_one_look as f64 > most, "{at_one_look}");
    }

    /// Whether a run's lift is ever missed, and whether by the interval of one look: two standard errors.
    fn lift_misses(key: crate::WorldKey) -> (bool, bool) {
        let draw = |place, side| key.uniform(crate::key::Label::Round, [place, side, 0]);
        let nothing = SumOf { count: 0, sum: 0.0 };
        let (mut played, mut held, mut means) = (nothing, nothing, 0.0);
        let (mut out, mut out_at_one) = (false, false);
        for place in 1..=600u64 {
            let aside = draw(place, 0) < 0.3;
            // Of what is played, the mean moves with what was seen; what is held back has one.
            let mean = match aside {
                true => 0.5,
                false if played.sum < means => 0.7,
                false => 0.4,
            };
            let side = if aside { &mut held } else { &mut played };
            side.count += 1;
            side.sum += f64::from(u8::from(draw(place, 1) < mean));
            means += if aside { 0.0 } else { mean };
            if played.count < 20 || held.count < 20 {
                continue;
            }
            let lift = means / played.count as f64 - 0.5;
            let [low, high] = lift_at_any_time(played, held, MISS);
            out |= !(low..=high).contains(&lift);
            let variance = 0.25 / played.count as f64 + 0.25 / held.count as f64;
            let plain = played.sum / played.count as f64 - held.sum / held.count as f64;
            out_at_one |= (plain - lift).abs() > 2.0 * sqrt(variance);
        }
        (out, out_at_one)
    }

    #[test]
    fn it_keeps_its_digits_at_any_count() {
        let half_width = |count: u64| {
            let [low, high] = interval_at_any_time(count, 0.5 * count as f64, MISS);
            assert!((low + high - 1.0).abs() < 1e-15);
            0.5 * (high - low)
        };
        for count in [1_000_000u64, 1_000_000_000_000, 1 << 50] {
            // The leading terms of the equation: n * 2 w^2 = ln(1/miss) + ln(pi n / 2) / 2.
            let n = count as f64;
            let leading = (-log(MISS) + 0.5 * log(core::f64::consts::FRAC_PI_2 * n)) / (2.0 * n);
            let ratio = half_width(count) / leading.sqrt();
            assert!((ratio - 1.0).abs() < 1e-3, "{count}: {ratio}");
        }
        let pieces = [half(63.99) - half(64.01), whole(63.99) - whole(64.01)];
        let slopes = pieces.map(f64::abs);
        assert!(
            slopes[0] < 1e-6 && slopes[1] < 2e-4,
            "the series joins the function: {slopes:?}"
        );
    }
}
