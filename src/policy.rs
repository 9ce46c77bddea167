//! What the three policies do differently: the next strategy from what is known at an epoch's start.
//!
//! ```text
//! index(a) = reward(a) + width(a)      low_i(a) = cost_i(a) - width(a)      high_i(a) = cost_i(a) + width(a)
//! free:  the action with the largest index
//! soft:  x = argmax index.x  over  low_i.x <= alpha_i
//! hard:  sigma safe + (1 - sigma) x,   sigma = max y_i / (y_i + margin_i) over y_i = min(high_i.x, 1) - alpha_i > 0
//! ```
//!
//! Only rounded estimates enter, never raw means: they alone replicate.

use crate::lp;
use crate::plan::safe_weight;
use crate::problem::Safe;
use crate::record::Kind;
use crate::strategy::Strategy;

/// What is known at an epoch's start.
pub(crate) enum View {
    /// Not all actions are estimated: this one is to be played.
    Explore(u32),
    /// Optimistic rewards per action, optimistic and pessimistic costs per cost and action (none for policy free).
    Estimate {
        index: Vec<f64>,
        low: Vec<f64>,
        high: Vec<f64>,
    },
}

impl View {
    /// The view of these estimates (the rewards, then each cost, action by action) and widths, with costs kept from `least`
    /// to `most`.
    pub fn of(values: &[f64], widths: &[f64], least: f64, most: f64) -> Self {
        let (rewards, costs) = values.split_at(widths.len());
        // Each cost has a row of actions, and all rows the same widths.
        let costs = costs.iter().zip(widths.iter().cycle());
        View::Estimate {
            // Not clipped at 1: optimism beyond the range still says which action is known least.
            index: rewards.iter().zip(widths).map(|(r, w)| r + w).collect(),
            low: costs.clone().map(|(g, w)| (g - w).max(least)).collect(),
            high: costs.map(|(g, w)| (g + w).min(most)).collect(),
        }
    }
}

/// An epoch's strategy and how it was found.
pub(crate) struct NextStrategy {
    pub kind: Kind,
    pub candidate: Strategy,
    pub sigma: f64,
    pub strategy: Strategy,
}

/// Algorithm 2, line 11: the largest index. Ties go to the lowest action, since a tie broken by data would cost rho.
pub(crate) fn free(view: &View, actions: usize) -> NextStrategy {
    let (kind, action) = match view {
        View::Explore(action) => (Kind::Explore, *action),
        View::Estimate { index, .. } => (Kind::Estimate, lp::first_largest(index) as u32),
    };
    unmixed(kind, Strategy::pure(action, actions))
}

/// Algorithm 3, lines 13 and 14: the best strategy of the optimistic set. If that is empty, the least violation.
pub(crate) fn soft(view: &View, actions: usize, thresholds: &[f64]) -> NextStrategy {
    match view {
        View::Explore(action) => unmixed(Kind::Explore, Strategy::pure(*action, actions)),
        View::Estimate { index, low, .. } => {
            // Optimistic costs, as the true best strategy must not be shut out by a wide interval.
            let solution = lp::solve(index, low, thresholds);
            let kind = if solution.violation > 0.0 {
                Kind::Infeasible
            } else {
                Kind::Estimate
            };
            unmixed(kind, Strategy::new(solution.strategy))
        }
    }
}

/// Algorithm 4, lines 14 to 22: the soft candidate, mixed with the safe strategy until its pessimistic costs fit.
pub(crate) fn hard(view: &View, actions: usize, thresholds: &[f64], safe: &Safe) -> NextStrategy {
    let soft = soft(view, actions, thresholds);
    if soft.kind == Kind::Infeasible {
        // Under hard limits even the least violation is one too many (docs/deviations.md, 8).
        return NextStrategy {
            kind: soft.kind,
            candidate: safe.strategy.clone(),
            sigma: 1.0,
            strategy: safe.strategy.clone(),
        };
    }
    let candidate = soft.candidate;
    let worst = worst_costs(view, &candidate, thresholds.len());
    let excesses = worst
        .iter()
        .zip(thresholds)
        .map(|(worst, limit)| worst - limit);
    let sigma = safe_weight(excesses, &safe.margins);
    assert_mixed_costs_fit(sigma, &worst, thresholds, &safe.margins);
    let strategy = if sigma > 0.0 {
        Strategy::mix(sigma, &safe.strategy, &candidate)
    } else {
        candidate.clone()
    };
    NextStrategy {
        kind: soft.kind,
        candidate,
        sigma,
        strategy,
    }
}

/// The most a strategy may cost, cost by cost. Of an action that is not estimated all costs may be 1.
fn worst_costs(view: &View, candidate: &Strategy, costs: usize) -> Vec<f64> {
    match view {
        View::Explore(_) => vec![1.0; costs],
        View::Estimate { high, .. } => high
            .chunks(candidate.probabilities().len())
            .map(|row| candidate.expectation(row).min(1.0))
            .collect(),
    }
}

/// The promise of policy hard, checked wherever a strategy is made; 1e-12 is for the rounding of the check itself.
fn assert_mixed_costs_fit(sigma: f64, worst: &[f64], thresholds: &[f64], margins: &[f64]) {
    for ((worst, threshold), margin) in worst.iter().zip(thresholds).zip(margins) {
        let mixed = sigma * (threshold - margin) + (1.0 - sigma) * worst;
        assert!(
            mixed <= threshold + 1e-12,
            "mixing with {sigma} leaves a cost of {mixed} above {threshold}"
        );
    }
}

fn unmixed(kind: Kind, candidate: Strategy) -> NextStrategy {
    NextStrategy {
        kind,
        sigma: 0.0,
        strategy: candidate.clone(),
        candidate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(index: &[f64], low: &[f64], high: &[f64]) -> View {
        View::Estimate {
            index: index.into(),
            low: low.into(),
            high: high.into(),
        }
    }

    #[test]
    fn free_breaks_ties_by_the_lowest_action() {
        let choice = free(&known(&[0.5, 0.75, 0.75], &[], &[]), 3);
        assert_eq!(choice.strategy, Strategy::pure(1, 3));
    }

    /// Deviation 5, on the numbers of docs/deviations.md: threshold .9, the safe strategy costs .85, the candidate may cost 1.
    #[test]
    fn mixing_keeps_the_margin_and_the_printed_weight_does_not() {
        let (threshold, cost) = (0.9, 0.85);
        let worst_cost = |sigma: f64| sigma * cost + (1.0 - sigma) * 1.0;
        let safe = Safe {
            strategy: Strategy::pure(0, 2),
            margins: vec![threshold - cost],
        };
        let choice = hard(&View::Explore(1), 2, &[threshold], &safe);
        assert!(
            worst_cost(choice.sigma) <= threshold + 1e-12,
            "{}",
            worst_cost(choice.sigma)
        );
        let printed = safe_weight(std::iter::once(1.0 - threshold), &[cost]);
        assert!(worst_cost(printed) > 0.98, "{}", worst_cost(printed));
    }

    #[test]
    fn a_candidate_that_is_safe_for_certain_is_not_mixed() {
        let safe = Safe {
            strategy: Strategy::pure(0, 2),
            margins: vec![0.25],
        };
        let choice = hard(
            &known(&[0.5, 1.0], &[0.0, 0.1], &[0.1, 0.3]),
            2,
            &[0.5],
            &safe,
        );
        assert_eq!((choice.sigma, choice.strategy), (0.0, Strategy::pure(1, 2)));
    }

    #[test]
    fn without_any_optimistically_safe_strategy_soft_violates_least_and_hard_stays_safe() {
        let view = known(&[0.5, 1.0], &[0.6, 0.7], &[0.8, 0.9]);
        let choice = soft(&view, 2, &[0.5]);
        assert_eq!(
            (choice.kind, choice.strategy),
            (Kind::Infeasible, Strategy::pure(0, 2))
        );
        let safe = Safe {
            strategy: Strategy::new(vec![0.5, 0.5]),
            margins: vec![0.25],
        };
        let choice = hard(&view, 2, &[0.5], &safe);
        assert_eq!(
            (choice.kind, choice.sigma, choice.strategy),
            (Kind::Infeasible, 1.0, safe.strategy)
        );
    }
}
