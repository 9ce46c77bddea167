//! What the policies do differently: the next strategy from what is known at an epoch's start.
//!
//! ```text
//! per action: index, low_i, mid_i, high_i, span         see `bounds.rs`
//! free, profile paper:  the action with the largest index
//! soft:  moderate:    x = argmax index.x  over  mid_i.x <= alpha_i
//!        optimistic:  x = argmax index.x  over  low_i.x <= alpha_i
//! hard:  mix:   sigma safe + (1 - sigma) x,   sigma = max y_i / (y_i + margin_i) over y_i = min(high_i.x, 1) - alpha_i > 0
//!        plan:  z + s safe,   the best over  high_i.z + s (alpha_i - margin_i) <= alpha_i,   sum z + s = 1
//! ```
//!
//! Only rounded estimates enter, never raw means: they alone replicate. (Policy free of profile tight decides by looks and a
//! pick instead, in `look.rs` and `pick.rs`.)

use crate::bounds::Bounds;
use crate::lp::{self, Solver};
use crate::plan::safe_weight;
use crate::problem::Safe;
use crate::record::{Kind, Rule};
use crate::strategy::Strategy;

/// What is known at an epoch's start.
pub(crate) enum View<'a> {
    /// Not all actions are estimated: this strategy is to be played, whose costs are at most these.
    Explore {
        candidate: Strategy,
        worst: Vec<f64>,
    },
    /// All actions are.
    Estimate(&'a Bounds),
}

/// An epoch's strategy and how it was found.
pub(crate) struct NextStrategy {
    pub kind: Kind,
    /// Of policies with limits.
    pub rule: Option<Rule>,
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

    fn by(rule: Rule, kind: Kind, strategy: Strategy) -> Self {
        Self {
            rule: Some(rule),
            ..Self::plain(kind, strategy)
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
        View::Estimate(Bounds { index, .. }) => {
            let best = lp::first_largest(index) as u32;
            NextStrategy::plain(Kind::Estimate, Strategy::pure(best, index.len()))
        }
    }
}

/// Algorithm 3, lines 13 and 14: the best strategy of the optimistic set. If that is empty, the least violation.
pub(crate) fn optimistic(view: &View, thresholds: &[f64], solver: &mut Solver) -> NextStrategy {
    match view {
        View::Explore { candidate, .. } => NextStrategy::plain(Kind::Explore, candidate.clone()),
        View::Estimate(Bounds { index, low, .. }) => {
            // Optimistic costs, as the true best strategy must not be shut out by a wide interval.
            let (strategy, violation) = solver.strategy(index, low, thresholds);
            let kind = if violation > 0.0 {
                Kind::Infeasible
            } else {
                Kind::Estimate
            };
            NextStrategy::by(Rule::Optimistic, kind, Strategy::new(strategy))
        }
    }
}

/// How many spans of its own the moderate strategy may give up: its pulls shrink them, so that nothing can get stuck.
const SPANS_GIVEN_UP: f64 = 3.0;

/// Soft in profile tight: the moderate strategy where its own spans pay for what it gives up, else the optimistic one.
pub(crate) fn soft(view: &View, thresholds: &[f64], solver: &mut Solver) -> NextStrategy {
    let optimistic = optimistic(view, thresholds, solver);
    let View::Estimate(bounds) = view else {
        return optimistic;
    };
    // Where no strategy may be within the limits, the moderate one is not either.
    if optimistic.kind == Kind::Infeasible {
        return optimistic;
    }
    let Bounds {
        index, mid, span, ..
    } = bounds;
    let (moderate, excess) = solver.strategy(index, mid, thresholds);
    let moderate = Strategy::new(moderate);
    // An action whose excess is certain could otherwise be played for ever, while the one that would make up for it is never
    // learned about. Where the moderate set is not empty no excess is certain, as low costs are below middle ones.
    if excess > 0.0 && !lp::meets(&moderate, &bounds.low, thresholds) {
        return optimistic;
    }
    let lost = optimistic.strategy.expectation(index) - moderate.expectation(index);
    // Without this condition an action whose cost was rounded up might never be played again.
    if lost <= SPANS_GIVEN_UP * moderate.expectation(span) {
        return NextStrategy::by(Rule::Moderate, Kind::Estimate, moderate);
    }
    optimistic
}

/// Algorithm 4, and in profile tight (`planning`) the better of mixing and planning that is sure to learn.
pub(crate) fn hard(
    view: &View,
    thresholds: &[f64],
    safe: &Safe,
    planning: bool,
    solver: &mut Solver,
) -> NextStrategy {
    let optimistic = optimistic(view, thresholds, solver);
    if optimistic.kind == Kind::Infeasible {
        // Under hard limits even the least violation is one too many (docs/deviations.md, 8).
        return NextStrategy {
            sigma: 1.0,
            ..NextStrategy::by(Rule::Mix, Kind::Infeasible, safe.strategy.clone())
        };
    }
    match view {
        View::Estimate(Bounds {
            index, high, span, ..
        }) if planning => {
            let planned = plan(index, high, thresholds, safe, solver);
            let lost = optimistic.strategy.expectation(index) - planned.strategy.expectation(index);
            let factor = safe.margin_min().map_or(0.0, |margin| 1.0 / margin);
            // What the plan gives up must be paid by spans that its own pulls shrink. Without this condition it may never
            // play what it would have to learn about (docs/theory.md, "Hard constraints").
            if lost <= factor * planned.strategy.expectation(span) {
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
        rule: Some(Rule::Mix),
        unmixed,
        sigma,
        strategy,
    }
}

/// The most a strategy may cost, cost by cost.
pub(crate) fn worst_costs(view: &View, candidate: &Strategy) -> Vec<f64> {
    match view {
        View::Explore { worst, .. } => worst.clone(),
        View::Estimate(Bounds { index, high, .. }) => high
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
            rule: Some(Rule::Plan),
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
        rule: Some(Rule::Plan),
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

    fn of(index: &[f64], [low, mid, high]: [&[f64]; 3], span: f64) -> Bounds {
        Bounds {
            index: index.into(),
            reward_low: Vec::new(),
            low: low.into(),
            mid: mid.into(),
            high: high.into(),
            span: vec![span; index.len()],
        }
    }

    fn known(index: &[f64], low: &[f64], high: &[f64]) -> Bounds {
        of(index, [low, high, high], 0.0)
    }

    #[test]
    fn free_breaks_ties_by_the_lowest_action() {
        let choice = free(&View::Estimate(&known(&[0.5, 0.75, 0.75], &[], &[])));
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
        let bounds = known(&[0.5, 1.0], &[0.0, 0.1], &[0.1, 0.3]);
        let view = View::Estimate(&bounds);
        for planning in [false, true] {
            let choice = hard(&view, &[0.5], &safe, planning);
            assert_eq!((choice.sigma, choice.strategy), (0.0, Strategy::pure(1, 2)));
        }
    }

    #[test]
    fn without_any_optimistically_safe_strategy_soft_violates_least_and_hard_stays_safe() {
        let bounds = known(&[0.5, 1.0], &[0.6, 0.7], &[0.8, 0.9]);
        let view = View::Estimate(&bounds);
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

    /// The true best strategy must stay in the optimistic set whenever the estimates are within their widths: action 1 costs
    /// .45 to .95, so it may be safe at .5 and is played alone where spans do not pay for less.
    #[test]
    fn what_may_be_safe_is_not_shut_out() {
        let bounds = of(&[0.6, 1.0], [&[0.0, 0.45], &[0.3, 0.8], &[0.45, 0.95]], 0.0);
        let choice = soft(&View::Estimate(&bounds), &[0.5]);
        assert_eq!(
            (choice.kind, choice.rule, choice.strategy),
            (Kind::Estimate, Some(Rule::Optimistic), Strategy::pure(1, 2))
        );
    }

    /// Moderate costs allow .4 of action 1, the least ones all of it, so .24 of the index are given up: three spans of .08 pay
    /// for that, and less does not.
    #[test]
    fn the_moderate_strategy_is_played_exactly_where_its_spans_pay() {
        for (span, rule) in [
            (0.08 + 1e-9, Rule::Moderate),
            (0.08 - 1e-9, Rule::Optimistic),
        ] {
            let bounds = of(
                &[0.6, 1.0],
                [&[0.0, 0.45], &[0.3, 0.8], &[0.45, 0.95]],
                span,
            );
            let choice = soft(&View::Estimate(&bounds), &[0.5]);
            let played = choice.strategy.probabilities()[1];
            let wanted = if rule == Rule::Moderate { 0.4 } else { 1.0 };
            assert_eq!(choice.rule, Some(rule), "span {span}");
            assert!((played - wanted).abs() < 1e-12, "{played}");
        }
    }

    /// No strategy keeps the moderate limit: the least excess is action 1 alone, whose excess is certain if its least cost is
    /// above the limit and not if it is below.
    #[test]
    fn an_excess_that_is_certain_is_not_played_however_large_the_spans() {
        for (least, rule) in [(0.51, Rule::Optimistic), (0.5, Rule::Moderate)] {
            let bounds = of(&[0.9, 0.1], [&[0.4, least], &[0.6, 0.55], &[0.8, 0.6]], 1.0);
            let choice = soft(&View::Estimate(&bounds), &[0.5]);
            assert_eq!((choice.kind, choice.rule), (Kind::Estimate, Some(rule)));
        }
    }

    /// The plan is half of each action: it gives up .25 of the optimist's index, and spans pay (1/.4) times half of both.
    /// At a span of .1 each the two are equal. Below it the plan's own pulls no longer pay for what it
    /// gives up, so that it could be played for ever: there mixing takes over, and above it there is no need to.
    #[test]
    fn planning_gives_way_to_mixing_exactly_where_its_spans_no_longer_pay() {
        let safe = Safe {
            strategy: Strategy::pure(0, 2),
            margins: vec![0.4],
        };
        for (span, rule) in [
            (0.1 + 1e-9, Rule::Plan),
            (0.1 - 1e-9, Rule::Mix),
            (0.2, Rule::Plan),
            (0.0, Rule::Mix),
        ] {
            let bounds = of(&[0.5, 1.0], [&[0.0, 0.0], &[0.1, 0.9], &[0.1, 0.9]], span);
            let view = View::Estimate(&bounds);
            let choice = hard(&view, &[0.5], &safe, true);
            assert_eq!(choice.rule, Some(rule), "span {span}");
            // Both keep the worst cost at the threshold: .1 at half of the rounds and .9 at the other half.
            let played = choice.strategy.probabilities()[1];
            assert!((played - 0.5).abs() < 1e-12, "{played}");
            // The published algorithm knows no plan.
            assert_eq!(hard(&view, &[0.5], &safe, false).rule, Some(Rule::Mix));
        }
    }

    /// Without limits there is nothing to be safe from: hard plays what soft would, also where the safe strategy's index equals
    /// the best action's but for rounding, as a mixture of equals does.
    #[test]
    fn without_limits_hard_is_soft() {
        for index in [[0.7; 3], [0.1, 0.7, 0.7], [0.9, 0.1, 0.3]] {
            let bounds = known(&index, &[], &[]);
            let view = View::Estimate(&bounds);
            let safe = Safe {
                strategy: Strategy::uniform(3, |_| true),
                margins: vec![],
            };
            let choice = hard(&view, &[], &safe, true);
            let wanted = soft(&view, &[]).strategy;
            assert_eq!((choice.sigma, choice.strategy), (0.0, wanted), "{index:?}");
        }
    }
}
