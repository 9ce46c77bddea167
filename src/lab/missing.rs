//! Evidence that whether something happens to a round depends on its action: that its outcome goes missing, say.
//!
//! Take a set of m rounds that was chosen without looking at their actions. If the actions were drawn from probabilities p, those
//! of the set are, too, one by one; in permuted blocks they are negatively associated (Joag-Dev and Proschan, 1983), and so
//! spread no wider. Either way, with m_a of them of action a, for every tilt
//!
//! ```text
//! E exp(tilt m_a) <= (1 - p_a + p_a e^tilt)^m
//! ```
//!
//! The quotient of the two, averaged over all actions and a fixed grid of tilts, is an *e-value*: its expectation is at most 1 if the
//! choice does not look at actions, so that by Markov it reaches 1/alpha with probability at most alpha. Taken over sets that
//! follow each other (the missing rounds of one epoch, of the next, ..) the quotients multiply, and the average of their products
//! is a test martingale: it reaches 1/alpha *ever* with probability at most alpha, however often one looks.

use libm::{exp, expm1, log, log1p};
use serde::{Deserialize, Serialize};

/// What is tried for each action: odds of being in the set that are e^4 times as high, and so on down to e^-4 times. A grid, as
/// nobody knows how strong a dependence is; wherever it lies between two tilts, one of them finds three quarters of what the
/// best would find: at t times the best tilt it is 2t - t^2, to second order, and neighbours are 2.8 times apart.
pub const TILTS: [f64; 8] = [-4.0, -1.4, -0.5, -0.18, 0.18, 0.5, 1.4, 4.0];

/// The logarithms of the quotients, for each action and tilt, of all sets so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    logs: Vec<[f64; TILTS.len()]>,
}

impl Evidence {
    /// None, about this many actions.
    pub fn new(actions: usize) -> Self {
        Self {
            logs: vec![[0.0; TILTS.len()]; actions],
        }
    }

    /// How many actions it is about.
    pub fn actions(&self) -> usize {
        self.logs.len()
    }

    /// Adds a set: how many rounds of each action are in it, and with which probability each was drawn.
    pub fn add(&mut self, counts: &[u64], probabilities: &[f64]) {
        let all: u64 = counts.iter().sum();
        for ((logs, &count), &probability) in self.logs.iter_mut().zip(counts).zip(probabilities) {
            for (log, tilt) in logs.iter_mut().zip(TILTS) {
                // In logarithms: the quotient of a thousand rounds is beyond what a double holds.
                *log += tilt * count as f64 - all as f64 * log1p(probability * expm1(tilt));
            }
        }
    }

    /// The logarithm of the e-value.
    pub fn ln_e_value(&self) -> f64 {
        let all = self.logs.iter().flatten();
        let largest = all.clone().copied().fold(f64::NEG_INFINITY, f64::max);
        // In units of the largest, which the others cannot overflow.
        let sum: f64 = all.map(|log| exp(log - largest)).sum();
        largest + log(sum / (self.logs.len() * TILTS.len()) as f64)
    }

    /// The action that is in the sets too often, if one is.
    pub fn most_often(&self) -> usize {
        // By tilts above 0 alone: of two actions, one is there too often exactly if the other is too seldom.
        let most = |logs: &[f64; TILTS.len()]| {
            let tilted = logs.iter().zip(TILTS).filter(|(_, tilt)| *tilt > 0.0);
            tilted.map(|(log, _)| *log).fold(f64::MIN, f64::max)
        };
        let actions = self.logs.iter().map(most).enumerate();
        let strongest = actions.max_by(|one, two| one.1.total_cmp(&two.1));
        strongest.map_or(0, |(action, _)| action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e_value(counts: &[u64], probabilities: &[f64]) -> f64 {
        let mut evidence = Evidence::new(counts.len());
        evidence.add(counts, probabilities);
        exp(evidence.ln_e_value())
    }

    /// Over all sequences of drawn actions, each with its chance.
    #[test]
    fn drawn_actions_expect_at_most_one() {
        let probabilities = [0.5, 0.3, 0.2];
        let mut expected = 0.0;
        for code in 0..3usize.pow(9) {
            let actions = (0..9).map(|place| code / 3usize.pow(place) % 3);
            let (mut counts, mut chance) = ([0; 3], 1.0);
            for action in actions {
                counts[action] += 1;
                chance *= probabilities[action];
            }
            expected += chance * e_value(&counts, &probabilities);
        }
        assert!((expected - 1.0).abs() < 1e-12, "exactly one: {expected}");
    }

    fn permutations(actions: usize) -> Vec<Vec<usize>> {
        if actions == 0 {
            return vec![vec![]];
        }
        let smaller = permutations(actions - 1);
        let put = |order: &Vec<usize>, place: usize| {
            let mut order = order.clone();
            order.insert(place, actions - 1);
            order
        };
        smaller
            .iter()
            .flat_map(|order| (0..actions).map(move |place| put(order, place)))
            .collect()
    }

    /// Over all orders of two blocks of four, for every set of their rounds.
    #[test]
    fn permuted_blocks_expect_at_most_one() {
        let orders = permutations(4);
        assert_eq!(orders.len(), 24);
        for set in 1..256u32 {
            let mut expected = 0.0;
            for first in &orders {
                for second in &orders {
                    let mut counts = [0; 4];
                    for (place, &action) in first.iter().chain(second).enumerate() {
                        counts[action] += u64::from(set >> place & 1);
                    }
                    expected += e_value(&counts, &[0.25; 4]) / 576.0;
                }
            }
            assert!(expected <= 1.0 + 1e-12, "{set:08b}: {expected}");
        }
    }

    #[test]
    fn a_loss_on_one_side_is_seen_at_once_and_an_even_one_is_not() {
        let mut evidence = Evidence::new(2);
        evidence.add(&[83, 0], &[0.5, 0.5]);
        assert!(evidence.ln_e_value() > 40.0, "{}", evidence.ln_e_value());
        assert_eq!(evidence.most_often(), 0);
        evidence.add(&[5000, 5083], &[0.5, 0.5]);
        assert!(
            evidence.ln_e_value() < 0.0,
            "evidence for one epoch is weighed against all: {}",
            evidence.ln_e_value()
        );
        // Whoever is never played is never missing either, and says nothing.
        assert!((e_value(&[0, 7], &[0.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!(Evidence::new(3).ln_e_value().abs() < 1e-12);
    }
}
