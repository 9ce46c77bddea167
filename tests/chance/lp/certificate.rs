//! What an answer must show by itself, whatever the instance: its own dual proves it.

use super::instances::Instance;
use debora::internals::lp::Solution;

/// What a proof may miss, relative to the largest coefficients involved.
pub const TOLERANCE: f64 = 1e-9;

pub type Verdict = Result<(), String>;

pub fn holds(claim: bool, what: impl FnOnce() -> String) -> Verdict {
    if claim { Ok(()) } else { Err(what()) }
}

pub fn at_most(value: f64, bound: f64, what: &str) -> Verdict {
    holds(value <= bound, || {
        format!("{what}: {value:e} is above {bound:e}")
    })
}

pub fn close(left: f64, right: f64, tolerance: f64, what: &str) -> Verdict {
    at_most(
        (left - right).abs(),
        tolerance,
        &format!("{what}: {left} against {right}, the difference"),
    )
}

/// The strategy is one, meets the limits up to the violation, and the prices prove that no other does better.
pub fn certify(instance: &Instance, solution: &Solution) -> Verdict {
    is_strategy(&solution.strategy, instance.limits.len())?;
    holds(solution.violation >= 0.0, || {
        "the violation is negative or NaN".into()
    })?;
    holds(solution.prices.len() == instance.limits.len(), || {
        "not one price per limit".into()
    })?;
    holds(
        solution
            .prices
            .iter()
            .all(|price| *price >= 0.0 && price.is_finite()),
        || "a price is negative".into(),
    )?;
    for (i, row) in instance.excess().enumerate() {
        let excess = dot(&row, &solution.strategy);
        at_most(
            excess - solution.violation,
            TOLERANCE * largest(&row),
            &format!("excess of row {i} over the violation"),
        )?;
    }
    // Weak duality: whatever solved the program, prices that meet the strategy's value prove that nothing is better.
    let priced = priced(instance, &solution.prices);
    if solution.violation > 0.0 {
        close(
            solution.prices.iter().sum(),
            1.0,
            TOLERANCE,
            "sum of prices",
        )?;
        let bound = priced.iter().copied().fold(f64::INFINITY, f64::min);
        return close(
            bound,
            solution.violation,
            TOLERANCE * excess_scale(instance),
            "violation proved",
        );
    }
    let gain = gain(instance);
    let net = gain.iter().zip(&priced).map(|(gain, priced)| gain - priced);
    let bound = net.fold(f64::NEG_INFINITY, f64::max);
    close(
        bound,
        dot(&gain, &solution.strategy),
        value_tolerance(instance, &solution.prices),
        "gain proved",
    )
}

/// What an optimal value may miss: as much as the objective's spread and the limits' worth, were they moved by as little.
pub fn value_tolerance(instance: &Instance, prices: &[f64]) -> f64 {
    TOLERANCE * (largest(&gain(instance)) + price_scale(instance, prices))
}

/// What violations are measured against: they compare rows with each other, so all rows count alike.
pub fn excess_scale(instance: &Instance) -> f64 {
    instance
        .excess()
        .map(|row| largest(&row))
        .fold(0.0, f64::max)
}

/// The objective less its least entry: a constant added to every action decides nothing.
pub fn gain(instance: &Instance) -> Vec<f64> {
    let least = instance
        .objective
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    instance
        .objective
        .iter()
        .map(|value| value - least)
        .collect()
}

pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

pub fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

fn is_strategy(strategy: &[f64], rows: usize) -> Verdict {
    holds(
        strategy.iter().all(|p| *p >= 0.0 && p.is_sign_positive()),
        || "a probability is negative or NaN".into(),
    )?;
    close(strategy.iter().sum(), 1.0, 1e-12, "sum of probabilities")?;
    let positive = strategy.iter().filter(|p| **p > 0.0).count();
    holds(positive <= rows + 1, || {
        format!("{positive} positive probabilities under {rows} limits")
    })
}

/// What each action's excess costs at these prices.
fn priced(instance: &Instance, prices: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; instance.actions()];
    for (row, price) in instance.excess().zip(prices) {
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, value)| *sum += price * value);
    }
    sums
}

fn price_scale(instance: &Instance, prices: &[f64]) -> f64 {
    instance
        .excess()
        .zip(prices)
        .map(|(row, price)| price * largest(&row))
        .sum()
}
