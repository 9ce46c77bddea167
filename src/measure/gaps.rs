//! Which of a world's differences a horizon finds.
//!
//! A difference is *seen*, or found, if a run acts on it with probability .9 ([`Sight`](crate::plan::Sight)): policy free picks the
//! better of two actions that far apart; under limits the intervals around two such means do not meet, so that an action with
//! less reward has the lower index, and a cost beyond its threshold is taken for one. Smaller differences may be seen, by luck.

use serde::{Deserialize, Serialize};

use crate::lab::world::{Truth, World};
use crate::problem::Problem;
use crate::{Plan, Policy};

/// A difference of means in a world, and whether the plan's horizon sees it. In the quantity's units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorldGap {
    /// The reward's name or a cost's.
    pub quantity: String,
    /// Reward: an action of the best strategy, and one outside it that brings less. Cost: the action that differs from the
    /// threshold.
    pub actions: Vec<String>,
    /// By how much.
    pub gap: f64,
    /// The smallest difference that this horizon finds from the second of the two; `None` if the plan is blind.
    pub sight: Option<f64>,
    /// Whether it is seen.
    pub seen: bool,
    /// If it is not: the smallest horizon above the plan's known to see it. `None` if none up to 2^53 does.
    pub horizon_needed: Option<u64>,
}

/// A difference, and where its two ends lie in the actions' own range.
struct MeanDifference {
    quantity: usize,
    actions: Vec<usize>,
    /// On the quantity's own scale.
    gap: f64,
    /// The two means, or a mean and a threshold, as shares of the range.
    ends: [f64; 2],
    /// The length of that range on the quantity's scale.
    span: f64,
}

/// The differences that the best strategy rests on, the hardest to see first.
pub fn world_gaps(plan: &Plan, world: &dyn World) -> Vec<WorldGap> {
    let mut differences = differences(&plan.problem, world);
    let sight = plan.sight();
    let ease = |difference: &MeanDifference| {
        let [one, other] = difference.ends;
        sight.map_or(difference.gap, |sight| sight.ease(one, other))
    };
    differences.sort_by(|one, two| ease(one).total_cmp(&ease(two)));
    let is_seen: Vec<_> = differences
        .iter()
        .map(|difference| move |plan: &Plan| sees(plan, difference))
        .collect();
    let questions: Vec<&dyn Fn(&Plan) -> bool> = is_seen
        .iter()
        .map(|question| question as &dyn Fn(&Plan) -> bool)
        .collect();
    let horizons = plan.horizons_for(&questions);
    differences
        .iter()
        .zip(horizons)
        .map(|(difference, horizon)| in_units(plan, difference, horizon))
        .collect()
}

/// Whether a plan that is not blind sees none of a world's differences; false of a world without any.
pub(super) fn sees_none(plan: &Plan, world: &dyn World) -> bool {
    let differences = differences(&plan.problem, world);
    let seen = differences.iter().any(|difference| sees(plan, difference));
    !differences.is_empty() && !seen
}

fn sees(plan: &Plan, difference: &MeanDifference) -> bool {
    let [one, other] = difference.ends;
    plan.sight()
        .is_some_and(|sight| sight.tells_apart(one, other))
}

fn differences(problem: &Problem, world: &dyn World) -> Vec<MeanDifference> {
    // Where each pair meets another world, no list is that of all.
    if world.of_pair(0).is_some() {
        return Vec::new();
    }
    let mut differences = rewards(problem, world);
    differences.extend(costs(problem, world));
    // Equal means are no difference, and no horizon tells them apart.
    differences.retain(|difference| difference.gap > 0.0);
    differences
}

/// Each action that the best strategy leaves out, against the next better one that it plays.
fn rewards(problem: &Problem, world: &dyn World) -> Vec<MeanDifference> {
    let means = &world.means()[0];
    let truth = Truth::of(problem, world);
    let Some(best) = &truth.best else {
        return Vec::new();
    };
    let played = |action: usize| best.probabilities()[action] > 0.0;
    let against = |action: usize| {
        // The nearest: whoever tells these two apart tells the action from all that are better still.
        (0..means.len())
            .filter(|&other| played(other) && means[other] > means[action])
            .min_by(|&one, &two| means[one].total_cmp(&means[two]))
    };
    (0..means.len())
        .filter(|&action| !played(action))
        // One that brings more than all of them is left out for its costs, which are compared below.
        .filter_map(|action| Some((action, against(action)?)))
        .map(|(action, better)| MeanDifference {
            quantity: 0,
            actions: vec![better, action],
            gap: means[better] - means[action],
            ends: [means[better], means[action]],
            span: 1.0,
        })
        .collect()
}

/// Each action's costs against their thresholds, but for those known beforehand; policy free has none to keep.
fn costs(problem: &Problem, world: &dyn World) -> Vec<MeanDifference> {
    if problem.policy() == Policy::Free {
        return Vec::new();
    }
    let limits = problem.limited().iter().zip(problem.thresholds());
    let of_cost = |(&quantity, &threshold): (&usize, &f64)| {
        let means = world.means()[quantity].iter().enumerate();
        means.filter_map(move |(action, &mean)| {
            let entry = problem.quantity(quantity).entry(action as u32);
            (entry.span() > 0.0).then(|| MeanDifference {
                quantity,
                actions: vec![action],
                gap: (mean - threshold).abs(),
                ends: [mean, threshold].map(|end| entry.to_unit(end).clamp(0.0, 1.0)),
                span: entry.span(),
            })
        })
    };
    limits.flat_map(of_cost).collect()
}

fn in_units(plan: &Plan, difference: &MeanDifference, horizon: Option<u64>) -> WorldGap {
    let problem = &plan.problem;
    let quantity = problem.quantity(difference.quantity);
    let least = plan
        .sight()
        .map(|sight| sight.least_difference(difference.ends[1]).unwrap_or(1.0));
    let seen = sees(plan, difference);
    let names = difference.actions.iter();
    WorldGap {
        quantity: quantity.name.clone(),
        actions: names
            .map(|&action| problem.actions()[action].clone())
            .collect(),
        gap: difference.gap * quantity.range.span(),
        sight: least.map(|least| least * difference.span * quantity.range.span()),
        seen,
        horizon_needed: horizon.filter(|_| !seen),
    }
}
