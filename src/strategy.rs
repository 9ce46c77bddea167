//! A strategy: a probability per action; picking an action from it; mixing two.
//!
//! ```text
//! action = first a with x_0 + .. + x_a > u,  else the last with x_a > 0
//! ```

use crate::key::to_multiple;

/// Steps up to which counting those passed is quicker than a search, which waits for each comparison in turn.
const FEW_STEPS: usize = 8;

/// A probability per action, summing to one within 1e-12 and the rounding of the sum.
#[derive(Clone, Debug)]
pub struct Strategy {
    probabilities: Vec<f64>,
    /// The actions of positive probability, each with the cumulative probability up to it.
    steps: Vec<(f64, u32)>,
    /// For each step but the last: the least multiple of 2^-53 that is beyond it.
    limits: Vec<u64>,
}

impl PartialEq for Strategy {
    fn eq(&self, other: &Self) -> bool {
        self.probabilities == other.probabilities
    }
}

impl Strategy {
    /// # Panics
    ///
    /// If an entry is negative or NaN, or the sum misses one by more than 1e-12 and its rounding. Whatever makes a strategy
    /// promises this, so it is an assertion and not an error.
    pub fn new(probabilities: Vec<f64>) -> Self {
        let mut total = 0.0;
        let mut steps = Vec::new();
        // Only actions with a chance get a step: picking stays fast with a million actions, and zeros can never be picked.
        for (action, &probability) in (0..).zip(&probabilities) {
            // Zeros change no sum, and most of many actions have one.
            if probability == 0.0 {
                continue;
            }
            assert!(
                probability > 0.0,
                "probability {probability} of action {action} is negative"
            );
            total += probability;
            steps.push((total, action));
        }
        // Each addition rounds by up to half an epsilon: a fair share for each of a million actions misses 1 by 1e-11.
        let tolerance = 1e-12 + probabilities.len() as f64 * f64::EPSILON;
        assert!(
            (total - 1.0).abs() <= tolerance,
            "a strategy sums to {total}, not 1"
        );
        let limits = steps[..steps.len() - 1]
            .iter()
            .map(|&(cumulative, _)| least_multiple_beyond(cumulative))
            .collect();
        Self {
            probabilities,
            steps,
            limits,
        }
    }

    /// The strategy that always plays one action.
    pub fn pure(action: u32, actions: usize) -> Self {
        let mut probabilities = vec![0.0; actions];
        probabilities[action as usize] = 1.0;
        Self {
            probabilities,
            steps: vec![(1.0, action)],
            limits: Vec::new(),
        }
    }

    /// The strategy that plays every action for which `among` holds equally often.
    ///
    /// # Panics
    ///
    /// If it holds for none.
    pub fn uniform(actions: usize, among: impl Fn(usize) -> bool) -> Self {
        let chosen = (0..actions).filter(|&action| among(action)).count();
        let probability = |action: usize| {
            if among(action) {
                1.0 / chosen as f64
            } else {
                0.0
            }
        };
        Self::new((0..actions).map(probability).collect())
    }

    /// Turns into the strategy that always plays `action`, in place: what a player does that decides round by round.
    #[inline]
    pub fn become_pure(&mut self, action: u32) {
        // Only what was played is reset, as filling all probabilities would cost K a round.
        for &(_, played) in &self.steps {
            self.probabilities[played as usize] = 0.0;
        }
        self.probabilities[action as usize] = 1.0;
        self.steps.clear();
        self.steps.push((1.0, action));
        self.limits.clear();
    }

    /// weight * first + (1 - weight) * second.
    pub fn mix(weight: f64, first: &Self, second: &Self) -> Self {
        let pairs = first.probabilities.iter().zip(&second.probabilities);
        Self::new(
            pairs
                .map(|(one, two)| weight * one + (1.0 - weight) * two)
                .collect(),
        )
    }

    /// The probability of each action.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The probability of each action, on their own.
    pub(crate) fn into_probabilities(self) -> Vec<f64> {
        self.probabilities
    }

    /// The only action played, if there is one.
    #[inline]
    pub fn only(&self) -> Option<u32> {
        if let [(_, action)] = self.steps[..] {
            Some(action)
        } else {
            None
        }
    }

    /// The action at `uniform` in [0, 1), by inverse CDF.
    #[inline]
    pub fn pick(&self, uniform: f64) -> u32 {
        // A sum just below one leaves a gap at its end, which goes to the last action that has a chance.
        let step = self
            .steps
            .partition_point(|(cumulative, _)| *cumulative <= uniform);
        self.steps[step.min(self.steps.len() - 1)].1
    }

    /// The action at the uniform number of a word, the same as [`Self::pick`] has it. Whole numbers are compared, and nothing
    /// branches on the draw: it is random, so every other branch would be mispredicted.
    #[inline]
    pub(crate) fn pick_by_word(&self, word: u64) -> u32 {
        let draw = to_multiple(word);
        let step = if self.is_simple() {
            let passed = |limit: &u64| usize::from(*limit <= draw);
            self.limits.iter().map(passed).sum()
        } else {
            self.limits.partition_point(|&limit| limit <= draw)
        };
        self.steps[step].1
    }

    /// Whether few actions have a chance, so that looking at each takes no time beside a few rounds.
    #[inline]
    pub(crate) fn is_simple(&self) -> bool {
        self.limits.len() <= FEW_STEPS
    }

    /// The actions of positive probability, in increasing order.
    pub fn played(&self) -> impl Iterator<Item = u32> + '_ {
        self.steps.iter().map(|&(_, action)| action)
    }

    /// The expectation of a value per action. Values are finite.
    pub fn expectation(&self, values: &[f64]) -> f64 {
        let product = |(probability, value): (&f64, &f64)| probability * value;
        let played = self.played().map(|action| action as usize);
        let sum: f64 = played
            .map(|a| product((&self.probabilities[a], &values[a])))
            .sum();
        // The others' products are zeros, which change nothing but the sign of a zero.
        if sum == 0.0 {
            return self.probabilities.iter().zip(values).map(product).sum();
        }
        sum
    }
}

/// The least k with k 2^-53 >= `cumulative`: scaling by a power of two rounds nothing, so exactly the draws from k on pass it.
fn least_multiple_beyond(cumulative: f64) -> u64 {
    libm::ceil(cumulative * (1u64 << 53) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::to_uniform;

    /// At every step, one draw before it and one after; steps that are multiples of 2^-53 and steps that are not, down to the
    /// least number there is, few and many, and sums beyond one.
    #[test]
    fn picking_by_words_is_picking_by_their_uniforms() {
        let third = vec![1.0 / 3.0; 3];
        let tiny = vec![
            f64::MIN_POSITIVE / 8.0,
            2f64.powi(-53),
            0.0,
            1.0 - 2f64.powi(-52),
        ];
        let beyond = vec![0.5, 0.5 + 5e-13, 0.0, 1e-13];
        let many: Vec<f64> = (0..90).map(|a| f64::from(a) / 4_005.0).collect();
        for probabilities in [third, tiny, beyond, many, vec![0.0, 1.0], vec![0.1; 10]] {
            let strategy = Strategy::new(probabilities);
            let ends = [0, 1 << 11, u64::MAX];
            let near = strategy.limits.iter().flat_map(|limit| {
                let word = limit.min(&((1 << 53) - 1)) << 11;
                [word.saturating_sub(1), word, word | 2047]
            });
            for word in near.chain(ends) {
                assert_eq!(
                    strategy.pick_by_word(word),
                    strategy.pick(to_uniform(word)),
                    "{word} of {strategy:?}"
                );
            }
        }
    }

    #[test]
    fn picking_inverts_the_cumulative_probabilities() {
        let strategy = Strategy::new(vec![0.0, 0.25, 0.0, 0.75, 0.0]);
        let picks: Vec<u32> = [0.0, 0.249, 0.25, 0.999]
            .map(|uniform| strategy.pick(uniform))
            .into();
        assert_eq!(picks, [1, 1, 3, 3]);
    }

    #[test]
    fn a_sum_below_one_leaves_the_rest_to_the_last_positive_action() {
        let short = 1.0 - 2f64.powi(-50);
        let strategy = Strategy::new(vec![0.5, short - 0.5, 0.0]);
        assert_eq!(strategy.pick(1.0 - 2f64.powi(-53)), 1);
    }

    #[test]
    fn a_pure_strategy_has_one_step() {
        assert_eq!(Strategy::pure(2, 3).only(), Some(2));
        assert_eq!(Strategy::pure(2, 3), Strategy::new(vec![0.0, 0.0, 1.0]));
        assert_eq!(Strategy::new(vec![0.5, 0.5]).only(), None);
    }

    #[test]
    fn the_sum_over_many_actions_may_round() {
        let many = Strategy::new(vec![1.0 / 300_000.0; 300_000]);
        let total: f64 = many.probabilities().iter().sum();
        assert!(
            (total - 1.0).abs() > 1e-12,
            "{total} does not show the point"
        );
    }

    #[test]
    fn becoming_pure_leaves_nothing_of_the_strategy_before() {
        let mut strategy = Strategy::new(vec![0.25, 0.5, 0.25]);
        for action in [1, 2, 2, 0] {
            strategy.become_pure(action);
            assert_eq!(
                (&strategy, strategy.only()),
                (&Strategy::pure(action, 3), Some(action))
            );
            assert_eq!(strategy.pick(0.5), action);
        }
    }

    #[test]
    #[should_panic(expected = "sums to 0.9")]
    fn a_strategy_must_sum_to_one() {
        Strategy::new(vec![0.5, 0.4]);
    }
}
