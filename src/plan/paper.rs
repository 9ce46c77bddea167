//! What profile paper needs to see anything: far more rounds than anyone has, which is worth saying exactly.

use crate::budget::{Share, doublings};
use crate::problem::{HORIZON_MAX, Problem};
use crate::width;

/// The smallest count of profile paper with width below 1/2; none beyond 2^53.
pub(super) fn informative_count(share: Share) -> Option<u64> {
    // width(1)^2 / n < 1/4. The closed form may be off by one in the last bit, so look at the count itself.
    let guess = libm::floor(4.0 * width::paper(share, 1).width * width::paper(share, 1).width);
    if guess >= HORIZON_MAX as f64 {
        return None;
    }
    let guess = guess as u64;
    (guess.saturating_sub(1)..guess + 3).find(|&n| n > 0 && width::paper(share, n).width < 0.5)
}

/// The smallest horizon with K times the informative count at or below T - 1; the shares depend on T by its doublings only.
pub(super) fn horizon_needed(problem: &Problem) -> Option<u64> {
    (1..=doublings(HORIZON_MAX)).find_map(|exponent| {
        let count = informative_count(Share::paper(problem, exponent))?;
        let needed = count
            .checked_mul(problem.actions().len() as u64)?
            .saturating_add(1);
        let smallest = if exponent == 1 {
            1
        } else {
            (1 << (exponent - 1)) + 1
        };
        (needed <= 1 << exponent).then_some(needed.max(smallest))
    })
}

/// The rho at which floor((T - 1)/K) samples have width 1/2.
pub(super) fn rho_needed(problem: &Problem, share: Share) -> Option<f64> {
    let count = (problem.horizon() - 1) / problem.actions().len() as u64;
    let room = 2.0 * libm::sqrt(2.0 * libm::log(2.0 / share.delta) / count as f64);
    Some(share.shares * (room + 2.0 * share.delta)).filter(|rho| *rho < 1.0)
}
