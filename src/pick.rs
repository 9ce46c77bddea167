//! The pick: at the end of its trial policy free plays one action for good, chosen by a keyed comparison of raw means.
//!
//! ```text
//! action = the first with the largest   eta sqrt(n_f) y(a) - ln(-ln u_a)        u_a keyed by the action
//! ```
//!
//! The second term is Gumbel noise that two runs share, so that a small difference of their means hardly ever changes the
//! answer, and a lead of ln(9(K-1))/(eta sqrt(n_f)) wins with probability .9 (docs/theory.md, "Try, look, pick").

use crate::Key;
use crate::key::Label;
use crate::line::MeanLine;
use crate::look::means;
use crate::lp::first_largest;
use crate::record::Pick;

/// Picks from the sums of all actions; `scale` is eta sqrt(n_f).
pub(crate) fn pick(key: Key, count: u64, offset_c: f64, scale: f64, sums: &[u128]) -> Pick {
    let line = MeanLine::new(count, offset_c);
    let actions = 0..sums.len() as u64;
    // By action and not by rank: draws that moved with the data would differ where two runs rank otherwise.
    let uniforms: Vec<f64> = actions
        .map(|action| key.uniform(Label::Pick, [action, 0, 0]))
        .collect();
    let scores: Vec<f64> = sums
        .iter()
        .zip(&uniforms)
        .map(|(&sum, &uniform)| scale * line.of_sum(sum) + gumbel(uniform))
        .collect();
    Pick {
        count,
        means: means(sums, count),
        scale,
        action: first_largest(&scores) as u32,
        uniforms,
    }
}

/// Gumbel noise at a uniform number: minus infinity at 0.
fn gumbel(uniform: f64) -> f64 {
    -libm::log(-libm::log(uniform))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_of_zero_never_wins() {
        assert_eq!(gumbel(0.0), f64::NEG_INFINITY);
        assert!(gumbel(1.0 - f64::EPSILON / 2.0) > 36.0);
    }

    /// The softmax of two scores: a lead of x on the line wins with probability 1/(1 + exp(-scale x)). 20,000 keys, false alarm
    /// below 1e-6 (Hoeffding, tolerance .0191), and a scale a fifth off is seen.
    #[test]
    fn leads_win_as_often_as_the_softmax_says() {
        let line = MeanLine::new(100, 2.0);
        let one = 1u128 << 53;
        let sums = [60 * one, 50 * one];
        let apart = line.of_sum(sums[0]) - line.of_sum(sums[1]);
        for scale in [5.0, 20.0] {
            let first = (0..20_000u64)
                .filter(|&key| pick(Key::from(key), 100, 2.0, scale, &sums).action == 0)
                .count() as f64
                / 20_000.0;
            let wanted = 1.0 / (1.0 + libm::exp(-scale * apart));
            assert!((first - wanted).abs() < 0.0191, "{first} {wanted}");
        }
    }
}
