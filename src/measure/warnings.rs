//! What a person must know before anything else.

use crate::lab::world::{Truth, World};
use crate::measure::words::{amount, percent, whole};
use crate::{Plan, Policy, Problem, Profile};

/// Above this share of the horizon, exploration is worth a warning: little is left for what it finds.
const EXPLORATION_LONG: f64 = 0.2;

/// A margin missing by less is the rounding of floats.
const MARGIN_TOLERANCE: f64 = 1e-12;

/// What a person must know before anything else: a blind plan, long exploration, a premise the world breaks.
pub fn warnings(plan: &Plan, world: Option<&dyn World>) -> Vec<String> {
    let mut warnings = Vec::new();
    if plan.blind {
        // A blind plan explores to the end: that exploration is long is nothing more to say.
        warnings.push(blind(plan));
    } else {
        warnings.extend(long_exploration(plan));
    }
    if let Some(world) = world {
        warnings.extend(premises(plan, world));
    }
    warnings
}

fn long_exploration(plan: &Plan) -> Option<String> {
    let rounds = plan.exploration_rounds?;
    let share = plan.exploration_share();
    (share > EXPLORATION_LONG).then(|| {
        format!(
            "exploration takes {} rounds, {} of the horizon; a longer horizon or a larger rho would reduce that share",
            whole(rounds),
            percent(share)
        )
    })
}

/// What the world makes impossible.
fn premises(plan: &Plan, world: &dyn World) -> Vec<String> {
    let problem = &plan.problem;
    let truth = Truth::of(problem, world);
    let mut warnings = Vec::new();
    // Policy free has no limits to keep.
    if problem.policy() != Policy::Free && truth.best.is_none() {
        warnings.push(infeasible(problem, world));
    }
    for (cost, missing) in truth.margins_missing.iter().enumerate() {
        if *missing > MARGIN_TOLERANCE {
            let quantity = problem.quantity(cost + 1);
            warnings.push(format!(
                "the safe strategy's true margin on {} is smaller than the stated one by {}: safety is not promised",
                quantity.name,
                amount(missing * quantity.range.span())
            ));
        }
    }
    warnings
}

fn blind(plan: &Plan) -> String {
    let mut ways = Vec::new();
    if let Some(horizon) = plan.horizon_needed {
        ways.push(format!("a horizon of at least {}", whole(horizon)));
    }
    if let Some(rho) = plan.rho_needed {
        ways.push(format!("rho above {}", amount(rho)));
    }
    if plan.profile == Profile::Paper {
        ways.push("profile tight".into());
    }
    // Both may be missing: with very many actions no horizon up to 2^53 and no rho below 1 is enough.
    let ways = if ways.is_empty() {
        "fewer actions or costs".to_owned()
    } else {
        ways.join(", or ")
    };
    format!(
        "BLIND: {} rounds are too few for rho {}: nothing will ever be compared, and decisions replicate only because they ignore the data. To fix this: {ways}.",
        whole(plan.problem.horizon()),
        plan.problem.rho()
    )
}

/// Which cost cannot be kept, if one alone cannot; else that they cannot be kept together.
fn infeasible(problem: &Problem, world: &dyn World) -> String {
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        // A mixture costs at least as much as the cheapest action, so that alone decides.
        let means = world.means()[cost + 1].iter().copied();
        let cheapest = means.fold(f64::INFINITY, f64::min);
        if cheapest > *threshold {
            let quantity = problem.quantity(cost + 1);
            return format!(
                "no strategy can keep {} at or below {}: the cheapest costs {}",
                quantity.name,
                amount(problem.threshold(cost)),
                amount(quantity.range.to_user(cheapest))
            );
        }
    }
    "no strategy can keep all thresholds at once, though each can be kept alone".into()
}
