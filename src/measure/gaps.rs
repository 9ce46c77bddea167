//! Which of a world's differences a horizon can see.
//!
//! ```text
//! sight of a quantity = 2 width at T/K samples of each action
//! ```
//!
//! An estimate lies within one width of its mean, and what decides is an end of the interval around it, at most two widths from
//! the mean. So a difference of the sight or more is seen whatever the data, as long as the intervals hold: an action with less
//! reward has the lower index, and a cost beyond its threshold is taken for one. Smaller differences may be seen, by luck.

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
    /// The smallest difference that this horizon is sure to see; `None` if the plan is blind.
    pub sight: Option<f64>,
    /// Whether it is seen.
    pub seen: bool,
    /// If it is not: the smallest horizon above the plan's known to see it. `None` if none up to 2^53 does.
    pub horizon_needed: Option<u64>,
}

/// A difference on the unit scale.
struct MeanDifference {
    quantity: usize,
    actions: Vec<usize>,
    gap: f64,
}

/// The differences that the best strategy rests on, the hardest to see first.
pub fn world_gaps(plan: &Plan, world: &dyn World) -> Vec<WorldGap> {
    // Where each pair meets another world, no list is that of all.
    if world.of_pair(0).is_some() {
        return Vec::new();
    }
    let problem = &plan.problem;
    let mut differences = rewards(problem, world);
    differences.extend(costs(problem, world));
    // Equal means are no difference, and no horizon tells them apart.
    differences.retain(|difference| difference.gap > 0.0);
    let hardness = |difference: &MeanDifference| {
        let sight = plan.sight(difference.quantity);
        difference.gap / sight.unwrap_or(1.0)
    };
    differences.sort_by(|one, two| hardness(one).total_cmp(&hardness(two)));
    let wanted: Vec<(usize, f64)> = differences.iter().map(|of| (of.quantity, of.gap)).collect();
    let horizons = plan.horizons_for_gaps(&wanted);
    differences
        .iter()
        .zip(horizons)
        .map(|(difference, horizon)| in_units(plan, difference, horizon))
        .collect()
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
        })
        .collect()
}

/// Each action's costs against their thresholds; policy free has none to keep.
fn costs(problem: &Problem, world: &dyn World) -> Vec<MeanDifference> {
    if problem.policy() == Policy::Free {
        return Vec::new();
    }
    let of_cost = |(cost, threshold): (usize, &f64)| {
        let threshold = *threshold;
        let means = world.means()[cost + 1].iter().enumerate();
        means.map(move |(action, mean)| MeanDifference {
            quantity: cost + 1,
            actions: vec![action],
            gap: (mean - threshold).abs(),
        })
    };
    let thresholds = problem.thresholds().iter().enumerate();
    thresholds.flat_map(of_cost).collect()
}

fn in_units(plan: &Plan, difference: &MeanDifference, horizon: Option<u64>) -> WorldGap {
    let problem = &plan.problem;
    let quantity = problem.quantity(difference.quantity);
    let sight = plan.sight(difference.quantity);
    let seen = sight.is_some_and(|sight| difference.gap >= sight);
    let names = difference.actions.iter();
    WorldGap {
        quantity: quantity.name.clone(),
        actions: names
            .map(|&action| problem.actions()[action].clone())
            .collect(),
        gap: difference.gap * quantity.range.span(),
        sight: sight.map(|sight| sight * quantity.range.span()),
        seen,
        horizon_needed: horizon.filter(|_| !seen),
    }
}
