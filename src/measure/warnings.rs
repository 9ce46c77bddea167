//! What a person must know before anything else.

use crate::lab::world::{Truth, World};
use crate::measure::words::{amount, counted, percent, whole};
use crate::problem::Range;
use crate::{Plan, Policy, Problem, Profile};

/// Above this share of the horizon, exploration is worth a warning: little is left for what it finds.
const EXPLORATION_LONG: f64 = 0.2;

/// A margin missing by less is the rounding of floats.
const MARGIN_TOLERANCE: f64 = 1e-12;

/// A mean that lies outside by less is the rounding of floats.
const MEAN_TOLERANCE: f64 = 1e-12;

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
        // Can, not will: a larger rho may buy more levels instead, with a longer exploration.
        format!(
            "exploration takes {} rounds, {} of the horizon; a longer horizon or a larger rho can reduce that share",
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
        .extend(false_means(problem, world).map(|quantity| false_mean(problem, world, quantity)));
    warnings
}

/// The quantities of which some action's true mean lies outside the declared ones.
pub(super) fn false_means(problem: &Problem, world: &dyn World) -> impl Iterator<Item = usize> {
    // Quantities that are not estimated rest on no premise.
    (0..problem.quantities_estimated()).filter(move |&quantity| {
        let means = world.means()[quantity].iter();
        farthest(problem.means(quantity), means.copied()).1 > MEAN_TOLERANCE
    })
}

/// The action whose mean lies farthest outside, and by how much; 0 or less is inside.
fn farthest(declared: Range, means: impl Iterator<Item = f64>) -> (usize, f64) {
    let outside = means.map(|mean| (declared.low - mean).max(mean - declared.high));
    outside
        .enumerate()
        .max_by(|one, two| one.1.total_cmp(&two.1))
        .expect("two actions")
}

fn false_mean(problem: &Problem, world: &dyn World, number: usize) -> String {
    let quantity = problem.quantity(number);
    let declared = problem.means(number);
    let means = &world.means()[number];
    let (action, _) = farthest(declared, means.iter().copied());
    let [low, high, mean] = [declared.low, declared.high, means[action]]
        .map(|value| amount(quantity.range.to_user(value)));
    // Widths and cells are computed from the declared means, so replicability falls with them, unlike with a margin.
    format!(
        "the true mean {} of {} is {mean}, outside the declared {low} to {high}: nothing is promised",
        quantity.name,
        problem.actions()[action]
    )
}

fn blind(plan: &Plan) -> String {
    let mut ways = Vec::new();
    if let Some(horizon) = plan.horizon_needed {
        ways.push(format!("a horizon of at least {}", whole(horizon)));
    }
    if let Some(rho) = plan.rho_needed {
        ways.push(format!("rho above {}", amount(rho)));
    }
    // An interval must be narrow beside the declared means before it says anything, which may take more rounds than the
    // small variance saves.
    if !Plan::of(plan.problem.without_means()).blind {
        ways.push("no declared means".into());
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
        "BLIND: {} too few for rho {}: nothing will ever be compared, and decisions replicate only because they ignore the data. To fix this: {ways}.",
        counted(plan.problem.horizon(), "round is", "rounds are"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Five actions, 2,000 rounds: rho .3 explores 865 of them, rho .5 1,220 and rho .8 730.
    #[test]
    fn what_shortens_exploration_is_not_promised() {
        let plan = |rho| {
            let problem = Problem::free(["a", "b", "c", "d", "e"], 2_000, rho);
            Plan::of(problem.build().unwrap())
        };
        let [small, larger, largest] = [0.3, 0.5, 0.8].map(|rho| plan(rho).exploration_rounds);
        assert!(
            largest < small && small < larger,
            "{small:?} {larger:?} {largest:?}"
        );
        let said = long_exploration(&plan(0.3)).unwrap();
        assert!(
            said.ends_with("a larger rho can reduce that share"),
            "{said}"
        );
    }

    #[test]
    fn a_single_round_is_one() {
        let plan = Plan::of(Problem::free(["a", "b"], 1, 0.3).build().unwrap());
        let said = blind(&plan);
        assert!(
            said.starts_with("BLIND: 1 round is too few for rho 0.3"),
            "{said}"
        );
    }

    /// Five actions, 1e4 rounds, means declared below .05: 3/10 or half of that range is too fine for the horizon.
    #[test]
    fn a_plan_that_declared_means_make_blind_says_so() {
        let problem = |horizon| Problem::free(["a", "b", "c", "d", "e"], horizon, 0.3);
        let declared = problem(10_000).mean("reward", [0.0, 0.05]).build().unwrap();
        let plan = Plan::of(declared);
        assert!(plan.blind && !Plan::of(problem(10_000).build().unwrap()).blind);
        assert!(
            blind(&plan).ends_with(", or no declared means."),
            "{}",
            blind(&plan)
        );
        let short = Plan::of(problem(100).mean("reward", [0.0, 0.05]).build().unwrap());
        assert!(!blind(&short).contains("declared"), "{}", blind(&short));
    }
}
