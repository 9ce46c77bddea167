//! What the three policies do differently: the next strategy from what is known at an epoch's start.
//!
//! ```text
//! index(a) = reward(a) + width_0(a)    low_i(a) = cost_i(a) - width_i(a)    high_i(a) = cost_i(a) + width_i(a)
//! free:  the action with the largest index
//! soft:  x = argmax index.x  over  low_i.x <= alpha_i
//! hard:  mix:   sigma safe + (1 - sigma) x,   sigma = max y_i / (y_i + margin_i) over y_i = min(high_i.x, 1) - alpha_i > 0
//!        plan:  z + s safe,   the best over  high_i.z + s (alpha_i - margin_i) <= alpha_i,   sum z + s = 1
//! ```
//!
//! Only rounded estimates enter, never raw means: they alone replicate.

use crate::lp::{self, Solver};
use crate::plan::safe_weight;
use crate::problem::{Range, Safe};
use crate::record::{HardRule, Kind};
use crate::strategy::Strategy;

/// What is known at an epoch's start.
pub(crate) enum View {
    /// Not all actions are estimated: this strategy is to be played, whose costs are at most these.
    Explore {
        candidate: Strategy,
        worst: Vec<f64>,
    },
    /// Per action; per cost and action where a policy limits costs.
    Estimate {
        /// Optimistic rewards.
        index: Vec<f64>,
        /// Optimistic costs.
        low: Vec<f64>,
        /// Pessimistic costs; empty in a view that leaves them out.
        high: Vec<f64>,
        /// Twice the largest width over the quantities; empty likewise.
        doubt: Vec<f64>,
    },
}

/// How much of the estimates a view shows: of the policies, hard alone looks at what may go wrong.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sight {
    Optimistic,
    Whole,
}

impl View {
    /// The view of these estimates and widths (the rewards, then each cost, action by action), with each cost kept within
    /// its ends.
    pub fn of(
        actions: usize,
        values: &[f64],
        widths: &[f64],
        ends: impl IntoIterator<Item = Range>,
        sight: Sight,
    ) -> Self {
        let (rewards, costs) = values.split_at(actions);
        let (of_rewards, of_costs) = widths.split_at(actions);
        let index = rewards.iter().zip(of_rewards).map(|(r, w)| r + w);
        let (mut low, mut high, mut widest) = (Vec::with_capacity(costs.len()), vec![], vec![]);
        if sight == Sight::Whole {
            high.reserve_exact(costs.len());
            widest.extend_from_slice(of_rewards);
        }
        let rows = costs.chunks(actions).zip(of_costs.chunks(actions));
        // Row by row, so that the compiler can use vectors.
        for ((costs, widths), ends) in rows.zip(ends) {
            let row = || costs.iter().zip(widths);
            low.extend(row().map(|(cost, width)| (cost - width).max(ends.low)));
            if sight == Sight::Whole {
                high.extend(row().map(|(cost, width)| (cost + width).min(ends.high)));
            }
            let most = widest.iter_mut().zip(widths);
            most.for_each(|(most, width): (&mut f64, &f64)| *most = most.max(*width));
        }
        View::Estimate {
            index: index.collect(),
            low,
            high,
            doubt: widest.iter().map(|width| 2.0 * width).collect(),
        }
    }
}

/// An epoch's strategy and how it was found.
pub(crate) struct NextStrategy {
    pub kind: Kind,
    /// Of policy hard alone.
    pub rule: Option<HardRule>,
    /// Before mixing with the safe strategy; none if that left it as it is.
    pub unmixed: Option<Strategy>,
    pub sigma: f64,
    pub strategy: Strategy,
}

impl NextStrategy {
    /// A strategy that is played as it is.
    pub fn plain(kind: Kind, strategy: Strategy) -> Self {
        Self {
            kind,
            rule: None,
            unmixed: None,
            sigma: 0.0,
            strategy,
        }
    }

    /// The strategy before mixing with the safe one.
    pub fn candidate(&self) -> &Strategy {
        self.unmixed.as_ref().unwrap_or(&self.strategy)
    }
}

/// Algorithm 2, line 11: the largest index. Ties go to the lowest action, since a tie broken by data would cost rho.
pub(crate) fn free(view: &View) -> NextStrategy {
    match view {
        View::Explore { candidate, .. } => NextStrategy::plain(Kind::Explore, candidate.clone()),
        View::Estimate { index, .. } => {
            let best = lp::first_largest(index) as u32;
            NextStrategy::plain(Kind::Estimate, Strategy::pure(best, index.len()))
        }
    }
}

/// Algorithm 3, lines 13 and 14: the best strategy of the optimistic set. If that is empty, the least violation.
pub(crate) fn soft(view: &View, thresholds: &[f64], solver: &mut Solver) -> NextStrategy {
    match view {
        View::Explore { candidate, .. } => NextStrategy::plain(Kind::Explore, candidate.clone()),
        View::Estimate { index, low, .. } => {
            // Optimistic costs, as the true best strategy must not be shut out by a wide interval.
            let (strategy, violation) = solver.strategy(index, low, thresholds);
            let kind = if violation > 0.0 {
                Kind::Infeasible
            } else {
                Kind::Estimate
            };
            NextStrategy::plain(kind, Strategy::new(strategy))
        }
    }
}

/// Algorithm 4, and in profile tight (`planning`) the better of mixing and planning that is sure to learn.
pub(crate) fn hard(
    view: &View,
    thresholds: &[f64],
    safe: &Safe,
    planning: bool,
    solver: &mut Solver,
) -> NextStrategy {
    let optimistic = soft(view, thresholds, solver);
    if optimistic.kind == Kind::Infeasible {
        // Under hard limits even the least violation is one too many (docs/deviations.md, 8).
        return NextStrategy {
            rule: Some(HardRule::Mix),
            sigma: 1.0,
            ..NextStrategy::plain(Kind::Infeasible, safe.strategy.clone())
        };
    }
    match view {
        View::Estimate {
            index, high, doubt, ..
        } if planning => {
            let planned = plan(index, high, thresholds, safe, solver);
            let lost = optimistic.strategy.expectation(index) - planned.strategy.expectation(index);
            let factor = safe.margin_min().map_or(0.0, |margin| 1.0 / margin);
            // What the plan gives up must be paid by widths that its own pulls shrink. Without this condition it may never
            // play what it would have to learn about (docs/theory.md, "Hard constraints").
            if lost <= factor * planned.strategy.expectation(doubt) {
                return planned;
            }
            mix(view, optimistic, thresholds, safe)
        }
        _ => mix(view, optimistic, thresholds, safe),
    }
}

/// Algorithm 4, lines 14 to 22: the soft candidate, mixed with the safe strategy until its pessimistic costs fit.
fn mix(view: &View, optimistic: NextStrategy, thresholds: &[f64], safe: &Safe) -> NextStrategy {
    // Not mixed before: it is the candidate.
    let NextStrategy {
        kind,
        strategy: candidate,
        ..
    } = optimistic;
    let worst = worst_costs(view, &candidate);
    let excesses = worst
        .iter()
        .zip(thresholds)
        .map(|(worst, threshold)| worst - threshold);
    let sigma = safe_weight(excesses, &safe.margins);
    assert_mixed_costs_fit(sigma, &worst, thresholds, &safe.margins);
    let (unmixed, strategy) = if sigma > 0.0 {
        let mixed = Strategy::mix(sigma, &safe.strategy, &candidate);
        (Some(candidate), mixed)
    } else {
        (None, candidate)
    };
    NextStrategy {
        kind,
        rule: Some(HardRule::Mix),
        unmixed,
        sigma,
        strategy,
    }
}

/// The most a strategy may cost, cost by cost.
pub(crate) fn worst_costs(view: &View, candidate: &Strategy) -> Vec<f64> {
    match view {
        View::Explore { worst, .. } => worst.clone(),
        View::Estimate { index, high, .. } => high
            .chunks(index.len())
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

/// The best strategy whose pessimistic costs fit, with the safe strategy as one more action of known cost.
fn plan(
    index: &[f64],
    high: &[f64],
    thresholds: &[f64],
    safe: &Safe,
    solver: &mut Solver,
) -> NextStrategy {
    let (mut parts, sigma) = best_with_safe(index, high, thresholds, safe, solver);
    let sum: f64 = parts.iter().sum();
    if sum == 0.0 {
        return NextStrategy {
            rule: Some(HardRule::Plan),
            sigma: 1.0,
            ..NextStrategy::plain(Kind::Estimate, safe.strategy.clone())
        };
    }
    let played = parts
        .iter()
        .zip(safe.strategy.probabilities())
        .map(|(part, safe)| part + sigma * safe)
        .collect();
    // Not 1 - sigma: where that is tiny its rounding would exceed what a strategy's sum may miss.
    parts.iter_mut().for_each(|part| *part /= sum);
    NextStrategy {
        kind: Kind::Estimate,
        rule: Some(HardRule::Plan),
        unmixed: Some(Strategy::new(parts)),
        sigma,
        strategy: Strategy::new(played),
    }
}

/// Maximises objective.z + s (objective.safe) over high_i.z + s (alpha_i - margin_i) <= alpha_i, sum z + s = 1: z and s.
///
/// s = 1 always fits, so there is an answer.
pub(crate) fn best_with_safe(
    objective: &[f64],
    high: &[f64],
    thresholds: &[f64],
    safe: &Safe,
    solver: &mut Solver,
) -> (Vec<f64>, f64) {
    let actions = objective.len();
    // The safe strategy is the last column: among equals the actions come first.
    let mut extended = objective.to_vec();
    extended.push(safe.strategy.expectation(objective));
    let mut rows = Vec::with_capacity(high.len() + thresholds.len());
    for ((row, threshold), margin) in high.chunks(actions).zip(thresholds).zip(&safe.margins) {
        rows.extend(row);
        rows.push(threshold - margin);
    }
    let (mut parts, violation) = solver.strategy(&extended, &rows, thresholds);
    assert_eq!(violation, 0.0, "the safe strategy meets every limit");
    let weight = parts.pop().expect("a column for the safe strategy");
    for ((row, threshold), margin) in high.chunks(actions).zip(thresholds).zip(&safe.margins) {
        let cost: f64 = row.iter().zip(&parts).map(|(cost, part)| cost * part).sum();
        let worst = cost + weight * (threshold - margin);
        assert!(
            worst <= threshold + 1e-9,
            "a plan with weight {weight} may cost {worst}, above {threshold}"
        );
    }
    (parts, weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soft(view: &View, thresholds: &[f64]) -> NextStrategy {
        super::soft(view, thresholds, &mut Solver::default())
    }

    fn hard(view: &View, thresholds: &[f64], safe: &Safe, planning: bool) -> NextStrategy {
        super::hard(view, thresholds, safe, planning, &mut Solver::default())
    }

    fn seen(values: &[f64], widths: &[f64], ends: [Range; 1]) -> View {
        View::of(2, values, widths, ends, Sight::Whole)
    }

    fn known(index: &[f64], low: &[f64], high: &[f64]) -> View {
        View::Estimate {
            index: index.into(),
            low: low.into(),
            high: high.into(),
            doubt: vec![0.0; index.len()],
        }
    }

    #[test]
    fn free_breaks_ties_by_the_lowest_action() {
        let choice = free(&known(&[0.5, 0.75, 0.75], &[], &[]));
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
        let view = View::Explore {
            candidate: Strategy::pure(1, 2),
            worst: vec![1.0],
        };
        let choice = hard(&view, &[threshold], &safe, true);
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
        let view = known(&[0.5, 1.0], &[0.0, 0.1], &[0.1, 0.3]);
        for planning in [false, true] {
            let choice = hard(&view, &[0.5], &safe, planning);
            assert_eq!((choice.sigma, choice.strategy), (0.0, Strategy::pure(1, 2)));
        }
    }

    #[test]
    fn without_any_optimistically_safe_strategy_soft_violates_least_and_hard_stays_safe() {
        let view = known(&[0.5, 1.0], &[0.6, 0.7], &[0.8, 0.9]);
        let choice = soft(&view, &[0.5]);
        assert_eq!(
            (choice.kind, choice.strategy),
            (Kind::Infeasible, Strategy::pure(0, 2))
        );
        let safe = Safe {
            strategy: Strategy::new(vec![0.5, 0.5]),
            margins: vec![0.25],
        };
        let choice = hard(&view, &[0.5], &safe, true);
        assert_eq!(
            (choice.kind, choice.sigma, choice.strategy),
            (Kind::Infeasible, 1.0, safe.strategy)
        );
    }

    const UNIT: [Range; 1] = [Range::UNIT];

    /// The true best strategy must stay in the optimistic set whenever the estimates are within their widths: action 1 costs
    /// .45 to .95, so it may be safe at .5 and is played alone. Less than the whole width would shut it out.
    #[test]
    fn what_may_be_safe_is_not_shut_out() {
        let view = seen(&[0.5, 0.9, 0.2, 0.7], &[0.1, 0.1, 0.25, 0.25], UNIT);
        let choice = soft(&view, &[0.5]);
        assert_eq!(
            (choice.kind, choice.strategy),
            (Kind::Estimate, Strategy::pure(1, 2))
        );
    }

    /// An optimistic cost below the least declared one is no cost that any world of the premise has: it would pay for more of
    /// action 1 than can be safe, here .625 or, at the end of the range, .5 instead of 5/11.
    #[test]
    fn no_cost_is_thought_below_its_declared_end() {
        let declared = [Range {
            low: 0.05,
            high: 1.0,
        }];
        let view = seen(&[0.1, 0.9, 0.1, 0.9], &[0.1, 0.1, 0.3, 0.3], declared);
        let choice = soft(&view, &[0.3]);
        let played = choice.strategy.probabilities()[1];
        assert!((played - 0.25 / 0.55).abs() < 1e-12, "{played}");
    }

    /// A pessimistic cost above the largest declared one would keep more of the safe strategy than safety needs: action 1 may
    /// cost .6 and not .8, so the weight is .1/.35 when mixing, and planning gives action 1 the same part.
    #[test]
    fn no_cost_is_thought_above_its_declared_end() {
        let declared = [Range {
            low: 0.0,
            high: 0.6,
        }];
        let safe = Safe {
            strategy: Strategy::pure(0, 2),
            margins: vec![0.25],
        };
        let view = seen(&[0.1, 0.9, 0.1, 0.5], &[0.1, 0.1, 0.3, 0.3], declared);
        let mixed = hard(&view, &[0.5], &safe, false);
        assert!((mixed.sigma - 0.1 / 0.35).abs() < 1e-12, "{}", mixed.sigma);
        let planned = hard(&view, &[0.5], &safe, true);
        assert_eq!(planned.rule, Some(HardRule::Plan));
        let played = planned.strategy.probabilities()[1];
        assert!((played - 0.25 / 0.35).abs() < 1e-12, "{played}");
    }

    /// The plan is half of each action: it gives up .25 of the optimist's index, and widths pay (1/.4) times half of what is
    /// in doubt of both. At a doubt of .1 each the two are equal. Below it the plan's own pulls no longer pay for what it
    /// gives up, so that it could be played for ever: there mixing takes over, and above it there is no need to.
    #[test]
    fn planning_gives_way_to_mixing_exactly_where_its_widths_no_longer_pay() {
        let safe = Safe {
            strategy: Strategy::pure(0, 2),
            margins: vec![0.4],
        };
        for (doubt, rule) in [
            (0.1 + 1e-9, HardRule::Plan),
            (0.1 - 1e-9, HardRule::Mix),
            (0.2, HardRule::Plan),
            (0.0, HardRule::Mix),
        ] {
            let view = View::Estimate {
                index: vec![0.5, 1.0],
                low: vec![0.0, 0.0],
                high: vec![0.1, 0.9],
                doubt: vec![doubt; 2],
            };
            let choice = hard(&view, &[0.5], &safe, true);
            assert_eq!(choice.rule, Some(rule), "doubt {doubt}");
            // Both keep the worst cost at the threshold: .1 at half of the rounds and .9 at the other half.
            let played = choice.strategy.probabilities()[1];
            assert!((played - 0.5).abs() < 1e-12, "{played}");
            // The published algorithm knows no plan.
            assert_eq!(hard(&view, &[0.5], &safe, false).rule, Some(HardRule::Mix));
        }
    }

    /// Without limits there is nothing to be safe from: hard plays what soft would, also where the safe strategy's index equals
    /// the best action's but for rounding, as a mixture of equals does.
    #[test]
    fn without_limits_hard_is_soft() {
        for index in [[0.7; 3], [0.1, 0.7, 0.7], [0.9, 0.1, 0.3]] {
            let view = known(&index, &[], &[]);
            let safe = Safe {
                strategy: Strategy::uniform(3, |_| true),
                margins: vec![],
            };
            let choice = hard(&view, &[], &safe, true);
            let wanted = soft(&view, &[]).strategy;
            assert_eq!((choice.sigma, choice.strategy), (0.0, wanted), "{index:?}");
        }
    }

    /// In doubt is the largest width of an action over all its quantities, twice: a cost may hide more than a reward.
    #[test]
    fn doubt_is_twice_the_largest_width() {
        let view = seen(&[0.5; 4], &[0.1, 0.2, 0.3, 0.05], UNIT);
        let View::Estimate { doubt, .. } = view else {
            unreachable!("estimates were given")
        };
        assert_eq!(doubt, [0.6, 0.4]);
    }
}
