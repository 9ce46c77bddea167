//! What a person must know before anything else.

use crate::job::words::{amount, percent, whole};
use crate::lab::world::{Truth, World};
use crate::{Plan, Policy};

/// What a person must know before anything else: a blind plan, long exploration, a premise the world breaks.
pub fn warnings(plan: &Plan, world: Option<&dyn World>) -> Vec<String> {
    let (problem, mut warnings) = (&plan.problem, Vec::new());
    if plan.blind {
        warnings.push(blind(plan));
    } else if let Some(rounds) = plan.exploration_rounds {
        let share = rounds as f64 / problem.horizon() as f64;
        if share > 0.2 {
            let part = percent(share);
            warnings.push(format!(
                "exploration takes {} rounds, {part} of the horizon; a longer horizon or a larger rho needs less",
                whole(rounds)
            ));
        }
    }
    let Some(world) = world else { return warnings };
    let truth = Truth::of(problem, world);
    if problem.policy() != Policy::Free && truth.best.is_none() {
        warnings.push(infeasible(plan, world));
    }
    for (cost, missing) in truth
        .margins_missing
        .iter()
        .enumerate()
        .filter(|(_, missing)| **missing > 1e-12)
    {
        let quantity = problem.quantity(cost + 1);
        warnings.push(format!(
            "the safe strategy's true margin on {} is smaller than the stated one by {}: safety is not promised",
            quantity.name,
            amount(missing * quantity.range.span())
        ));
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
    if plan.profile == crate::Profile::Paper {
        ways.push("profile tight".into());
    }
    let ways = if ways.is_empty() {
        "fewer actions or costs".to_owned()
    } else {
        ways.join(", or ")
    };
    format!(
        "BLIND: {} rounds are too few for rho {}: nothing will ever be compared, and decisions replicate only because they ignore the data. What would see: {ways}.",
        whole(plan.problem.horizon()),
        plan.problem.rho()
    )
}

/// Which cost cannot be kept, if one alone cannot; else that they cannot be kept together.
fn infeasible(plan: &Plan, world: &dyn World) -> String {
    let problem = &plan.problem;
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        let cheapest = world.means()[cost + 1]
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        if cheapest > *threshold {
            let quantity = problem.quantity(cost + 1);
            return format!(
                "no strategy can keep {} at or below {}: the cheapest costs {}",
                quantity.name,
                amount(quantity.range.to_user(*threshold)),
                amount(quantity.range.to_user(cheapest))
            );
        }
    }
    "no strategy can keep all thresholds at once, though each can be kept alone".into()
}
