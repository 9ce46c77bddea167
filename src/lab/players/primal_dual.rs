//! primal-dual: an optimistic best answer to prices on the costs, which rise while a cost exceeds its threshold \[structure\].
//!
//! ```text
//! Lam = 1/lambda_min if a safe strategy is known, else T^(1/4);   eta = Lam / sqrt(m T);   u, low_i: see `optimistic_lp.rs`
//! play   argmax over a of  u(a) - sum_i l_i (low_i(a) - alpha_i)
//! then   l <- projection onto {l >= 0, |l|_1 <= Lam} of  l + eta (g_t - alpha)
//! ```
//!
//! Source: after Castiglioni, Celli, Marchesi, Romano, Gatti, *A Unifying Framework for Online Optimization with Long-Term
//! Constraints* (NeurIPS 2022). It controls the signed violation only: rounds above a threshold are made up for by rounds
//! below it, so expect a large V_T. Decides round by round.

use std::sync::Arc;

use super::Player;
use super::epochs::AnytimeWidth;
use super::optimistic_lp::optimistic;
use crate::mean::Tally;
use crate::problem::Problem;
use crate::strategy::Strategy;

/// How prices follow the costs.
pub(super) trait Pricing: Send {
    /// Renews the prices after a round with these costs, each minus its threshold.
    fn renew(&mut self, prices: &mut [f64], excesses: impl Iterator<Item = f64>);
}

/// Prices that take steps and are kept within their bounds.
pub(super) struct Projected {
    price_max: f64,
    step: f64,
}

impl Projected {
    pub fn new(problem: &Problem) -> Self {
        let price_max = price_max(problem);
        Self {
            price_max,
            step: step(problem, price_max),
        }
    }
}

impl Pricing for Projected {
    fn renew(&mut self, prices: &mut [f64], excesses: impl Iterator<Item = f64>) {
        for (price, excess) in prices.iter_mut().zip(excesses) {
            *price += self.step * excess;
        }
        project(prices, self.price_max);
    }
}

/// The best answer to prices, whichever way these follow the costs.
pub(super) struct PrimalDual<P> {
    problem: Arc<Problem>,
    width: AnytimeWidth,
    pricing: P,
    tally: Tally,
    /// u per action.
    rewards: Vec<f64>,
    /// low_i - alpha_i, cost by cost within action by action.
    excesses: Vec<f64>,
    /// l.
    prices: Vec<f64>,
    strategy: Strategy,
    action: u32,
}

impl<P: Pricing> PrimalDual<P> {
    pub fn new(problem: &Arc<Problem>, pricing: P) -> Self {
        let actions = problem.actions().len();
        let quantities = problem.quantities();
        let limited = problem.limited().len();
        let mut player = Self {
            problem: Arc::clone(problem),
            width: AnytimeWidth::of(problem),
            pricing,
            tally: Tally::new(actions, quantities),
            rewards: vec![0.0; actions],
            excesses: vec![0.0; actions * limited],
            prices: vec![0.0; limited],
            strategy: Strategy::pure(0, actions),
            action: 0,
        };
        // Later only the action just played is bounded again, as nothing else has moved.
        (0..actions as u32).for_each(|action| player.bound(action));
        player.play_best();
        player
    }

    /// Renews what is known of an action.
    fn bound(&mut self, action: u32) {
        let costs = self.prices.len();
        let a = action as usize;
        let grounds = (&*self.problem, self.width);
        self.rewards[a] = optimistic(grounds, &self.tally, action, 0);
        let limits = self.problem.limited().iter().zip(self.problem.thresholds());
        let excesses = &mut self.excesses[a * costs..][..costs];
        for (excess, (&quantity, threshold)) in excesses.iter_mut().zip(limits) {
            *excess = optimistic(grounds, &self.tally, action, quantity) - threshold;
        }
    }

    fn play_best(&mut self) {
        let costs = self.prices.len();
        let mut best = f64::NEG_INFINITY;
        for (a, reward) in self.rewards.iter().enumerate() {
            let excesses = &self.excesses[a * costs..][..costs];
            let priced = self.prices.iter().zip(excesses);
            let paid: f64 = priced.map(|(price, excess)| price * excess).sum();
            // Strictly above: of equals the lowest action, as everywhere.
            if reward - paid > best {
                best = reward - paid;
                self.action = a as u32;
            }
        }
        self.strategy.become_pure(self.action);
    }
}

impl<P: Pricing> Player for PrimalDual<P> {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        assert_eq!(
            stretch.counts()[self.action as usize],
            1,
            "a stretch is one round"
        );
        // By what was observed, not by estimates: prices follow the costs of this very round.
        let (problem, action) = (&self.problem, self.action);
        let limits = problem.limited().iter().zip(problem.thresholds());
        let excesses = limits.map(|(&quantity, threshold)| {
            problem.on_scale(quantity, action, stretch.mean(action, quantity)) - threshold
        });
        self.pricing.renew(&mut self.prices, excesses);
        let sums = stretch.sums()[self.action as usize * stretch.quantities()..]
            .get(..stretch.quantities());
        self.tally
            .add_sums(self.action, 1, sums.expect("one sum per quantity"));
        self.bound(self.action);
        self.play_best();
    }
}

/// Lam.
pub(super) fn price_max(problem: &Problem) -> f64 {
    match problem.margin_min() {
        Some(margin) => 1.0 / margin,
        // Grows with the horizon, so that in the end it exceeds what any margin would have given.
        None => libm::sqrt(libm::sqrt(problem.horizon() as f64)),
    }
}

/// eta; without costs there are no prices to move.
fn step(problem: &Problem, price_max: f64) -> f64 {
    price_max / libm::sqrt((problem.thresholds().len().max(1) as f64) * problem.horizon() as f64)
}

/// The nearest point with no negative entry and a sum of at most `most`: entries are lowered by one number, and cut at 0.
///
/// If the sum is too large the number is what the positive entries have in excess, shared equally; entries below it drop
/// out, and so on (Michelot 1986). Ends after as many steps as there are entries.
fn project(point: &mut [f64], most: f64) {
    point.iter_mut().for_each(|entry| *entry = entry.max(0.0));
    // The nearest point lowers all positive entries alike; which stay positive is found by lowering again and again. The
    // usual way sorts, but there are few costs.
    let mut lowered = 0.0;
    loop {
        let above = || point.iter().filter(|entry| **entry > lowered);
        let count = above().count() as f64;
        let next = (above().sum::<f64>() - most) / count;
        if next <= lowered {
            break;
        }
        lowered = next;
    }
    point
        .iter_mut()
        .for_each(|entry| *entry = (*entry - lowered).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Label};

    /// Every support, with the sum free or at its limit: the nearest feasible point is the nearest feasible of these.
    fn project_by_enumeration(point: &[f64], most: f64) -> Vec<f64> {
        let mut best: Option<(f64, Vec<f64>)> = None;
        for support in 0..1u32 << point.len() {
            let inside = |place: usize| support >> place & 1 == 1;
            let sum: f64 = (0..point.len())
                .filter(|&place| inside(place))
                .map(|place| point[place])
                .sum();
            for lowered in [0.0, (sum - most) / f64::from(support.count_ones().max(1))] {
                let candidate: Vec<f64> = (0..point.len())
                    .map(|place| {
                        if inside(place) {
                            point[place] - lowered
                        } else {
                            0.0
                        }
                    })
                    .collect();
                let feasible = candidate.iter().all(|entry| *entry >= 0.0)
                    && candidate.iter().sum::<f64>() <= most + 1e-12;
                let distance = candidate
                    .iter()
                    .zip(point)
                    .map(|(x, v)| (x - v) * (x - v))
                    .sum();
                if feasible && best.as_ref().is_none_or(|(least, _)| distance < *least) {
                    best = Some((distance, candidate));
                }
            }
        }
        best.expect("0 is feasible").1
    }

    #[test]
    fn the_projection_is_the_nearest_point() {
        for case in 0..2_000u64 {
            let draw = |place: u64| Key::from(6u64).uniform(Label::Threshold, [case, place, 0]);
            let (mut point, most): (Vec<f64>, f64) = (
                (0..1 + case % 5).map(|p| 4.0 * draw(p) - 1.5).collect(),
                3.0 * draw(9),
            );
            let wanted = project_by_enumeration(&point, most);
            project(&mut point, most);
            assert!(
                point
                    .iter()
                    .zip(&wanted)
                    .all(|(x, y)| (x - y).abs() < 1e-12),
                "case {case}: {point:?} {wanted:?}"
            );
        }
        project(&mut [], 1.0);
    }

    #[test]
    fn the_largest_price_and_the_step_are_those_of_the_formulas() {
        let soft = |costs: usize| {
            let draft = Problem::soft(["a", "b"], 10_000, 0.3);
            let named = (0..costs).fold(draft, |draft, cost| {
                draft.cost(format!("cost {cost}"), [0.0, 1.0], 0.5)
            });
            Arc::new(named.build().unwrap())
        };
        let constants = |problem: &Arc<Problem>| {
            let pricing = Projected::new(problem);
            (pricing.price_max, pricing.step)
        };
        assert_eq!(constants(&soft(1)), (10.0, 0.1));
        assert!((constants(&soft(3)).1 - 0.05773502691896258).abs() < 1e-16);
        assert_eq!(constants(&soft(0)), (10.0, 0.1));
        let hard = Problem::hard(["a", "b"], 10_000, 0.3)
            .cost("x", [0.0, 1.0], 0.5)
            .cost("y", [0.0, 1.0], 0.5);
        let (price_max, step) = constants(&Arc::new(
            hard.safe_with_margins([1.0, 0.0], [0.5, 0.25])
                .build()
                .unwrap(),
        ));
        assert!(price_max == 4.0 && (step - 0.0282842712474619).abs() < 1e-16);
    }

    /// Both rewards look like 1, so the prices decide. T = 1e4, m = 1: eta = .1.
    #[test]
    fn a_cost_above_its_threshold_raises_its_price() {
        let problem = Problem::soft(["a", "b"], 10_000, 0.3)
            .cost("cost", [0.0, 1.0], 0.25)
            .build()
            .unwrap();
        let pricing = Projected::new(&problem);
        let mut player = PrimalDual::new(&Arc::new(problem), pricing);
        let round = |player: &mut PrimalDual<Projected>, cost: u128| {
            let (action, mut stretch) = (player.action, Tally::new(2, 2));
            stretch.add_sums(action, 1, &[1 << 53, cost << 53]);
            player.tell(&stretch);
            (action, player.prices[0])
        };
        assert_eq!(round(&mut player, 1), (0, 0.1 * 0.75));
        assert_eq!(round(&mut player, 0), (0, 0.1 * 0.75 + 0.1 * -0.25));
        let prices = [0; 3].map(|cost| round(&mut player, cost).1);
        assert_eq!(prices[2], 0.0);
    }
}
