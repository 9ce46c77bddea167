//! exp3: exponential weights on rewards that are weighed by how seldom they are seen, round by round \[published\].
//!
//! ```text
//! gamma = min(1, sqrt(K ln K / ((e - 1) T))),   p(a) = (1 - gamma) w(a) / sum w + gamma / K
//! after action a with reward r:   w(a) <- w(a) exp(gamma r / (p(a) K))
//! ```
//!
//! Source: Auer, Cesa-Bianchi, Freund, Schapire, *The Nonstochastic Multiarmed Bandit Problem* (SIAM Journal on Computing 32,
//! 2002), Figure 1, with the gamma of Corollary 3.2 for g = T. It makes no use of rewards having means, and pays for that here.

use super::Player;
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;

pub(super) struct Exp3 {
    gamma: f64,
    /// ln w: the weights themselves would leave the range of doubles.
    log_weights: Vec<f64>,
    strategy: Strategy,
}

impl Exp3 {
    pub fn new(problem: &Problem) -> Self {
        let actions = problem.actions().len();
        let mut player = Self {
            gamma: gamma(actions, problem.horizon()),
            log_weights: vec![0.0; actions],
            strategy: Strategy::pure(0, actions),
        };
        player.mix();
        player
    }

    fn mix(&mut self) {
        let largest = self.log_weights.iter().copied().fold(0.0, f64::max);
        let weights: Vec<f64> = self
            .log_weights
            .iter()
            .map(|log| libm::exp(log - largest))
            .collect();
        let share = (1.0 - self.gamma) / weights.iter().sum::<f64>();
        let floor = self.gamma / weights.len() as f64;
        self.strategy = Strategy::new(weights.iter().map(|w| share * w + floor).collect());
    }
}

fn gamma(actions: usize, horizon: u64) -> f64 {
    let k = actions as f64;
    let squared = k * libm::log(k) / ((std::f64::consts::E - 1.0) * horizon as f64);
    libm::sqrt(squared).min(1.0)
}

impl Player for Exp3 {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        let action = stretch
            .counts()
            .iter()
            .position(|&count| count == 1)
            .expect("a stretch is one round");
        let weighed = stretch.mean(action as u32, 0) / self.strategy.probabilities()[action];
        self.log_weights[action] += self.gamma * weighed / self.log_weights.len() as f64;
        self.mix();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(player: &mut Exp3, action: u32, fixed: u128) {
        let mut stretch = Tally::new(player.log_weights.len(), 1);
        stretch.add_sums(action, 1, &[fixed]);
        player.tell(&stretch);
    }

    /// The weights themselves, multiplied round by round as the paper writes them. gamma from a line of Python.
    #[test]
    fn probabilities_are_those_of_the_weights() {
        let problem = Problem::free(["a", "b", "c"], 1_000, 0.3).build().unwrap();
        let mut player = Exp3::new(&problem);
        assert!(
            (player.gamma - 0.04379612181067773).abs() < 1e-15,
            "{}",
            player.gamma
        );
        let (gamma, mut weights) = (player.gamma, [1.0f64; 3]);
        for (action, fixed) in [
            (0, 1u128 << 53),
            (2, 1 << 52),
            (2, 0),
            (1, 1 << 53),
            (1, 1 << 51),
        ] {
            let total: f64 = weights.iter().sum();
            let chance = (1.0 - gamma) * weights[action] / total + gamma / 3.0;
            let reward = fixed as f64 / (1u64 << 53) as f64;
            weights[action] *= (gamma * reward / chance / 3.0).exp();
            told(&mut player, action as u32, fixed);
            let total: f64 = weights.iter().sum();
            for (weight, x) in weights.iter().zip(player.strategy.probabilities()) {
                let wanted = (1.0 - gamma) * weight / total + gamma / 3.0;
                assert!(
                    (x - wanted).abs() < 1e-14,
                    "{weights:?} {:?}",
                    player.strategy
                );
            }
        }
    }

    #[test]
    fn a_million_good_rounds_leave_every_action_its_share_of_gamma() {
        let problem = Problem::free(["a", "b"], 100, 0.3).build().unwrap();
        let mut player = Exp3::new(&problem);
        for _ in 0..1_000_000 {
            told(&mut player, 1, 1 << 53);
        }
        let [a, b] = player.strategy.probabilities() else {
            panic!("two actions")
        };
        assert!(
            (a - player.gamma / 2.0).abs() < 1e-15 && (a + b - 1.0).abs() < 1e-15,
            "{a} {b}"
        );
    }
}
