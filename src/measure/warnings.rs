//! What a person must know before anything else.

use crate::lab::world::{Truth, World};
use crate::measure::gaps::sees_none;
use crate::measure::words::{amount, counted, listed, percent, whole};
use crate::{Plan, Policy, Problem, Profile};

/// Above this share of the horizon, exploration is worth a warning: little is left for what it finds.
const EXPLORATION_LONG: f64 = 0.2;

/// A margin missing by less is the rounding of floats.
const MARGIN_TOLERANCE: f64 = 1e-12;

/// A difference that a horizon should find where nobody has said what there is to find: a share of the reward's range.
const DIFFERENCE_WANTED: f64 = 0.1;

/// What a person must know before anything else: a blind plan, long exploration, a premise the world breaks.
pub fn warnings(plan: &Plan, world: Option<&dyn World>) -> Vec<String> {
    let mut warnings = Vec::new();
    if plan.blind {
        // A blind plan explores to the end: that exploration is long is nothing more to say.
        warnings.push(blind(plan));
    } else {
        warnings.extend(long_exploration(plan));
        warnings.extend(finds_nothing(plan, world));
    }
    warnings.extend(only_tallied(&plan.problem));
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

/// That the final choice will come from the key and not from the data.
pub fn finds_nothing(plan: &Plan, world: Option<&dyn World>) -> Option<String> {
    let stated = world.filter(|world| world.of_pair(0).is_none());
    let (none, what) = match stated {
        Some(world) => (
            sees_none(plan, world),
            "none of this world's differences".to_owned(),
        ),
        None => {
            let reward = plan.problem.quantity(0);
            let wanted = DIFFERENCE_WANTED * reward.range.span();
            let found = plan
                .detectable
                .is_some_and(|found| found <= DIFFERENCE_WANTED);
            let what = format!("no difference of {} in {}", amount(wanted), reward.name);
            (!found, what)
        }
    };
    none.then(|| {
        format!(
            "{what} is found with probability 90 %: the final choice comes from the key more than from the data; a longer horizon \
             or a larger rho helps"
        )
    })
}

/// Limits that policy free does not keep.
pub fn only_tallied(problem: &Problem) -> Option<String> {
    let names: Vec<String> = problem
        .limits()
        .map(|(cost, _)| cost.name.clone())
        .collect();
    (problem.policy() == Policy::Free && !names.is_empty()).then(|| {
        let [has, is] = match names.len() {
            1 => ["has a threshold", "is"],
            _ => ["have thresholds", "are"],
        };
        format!(
            "{} {has}, but policy free keeps no limits: {is} only tallied; use policy soft or hard, or leave the threshold out",
            listed(&names)
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
            let quantity = problem.quantity(problem.limited()[cost]);
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
        "BLIND: {} too few for rho {}: nothing will ever be compared, and decisions replicate only because they ignore the data. To fix this: {ways}.",
        counted(plan.problem.horizon(), "round is", "rounds are"),
        plan.problem.rho()
    )
}

/// Which cost cannot be kept, if one alone cannot; else that they cannot be kept together.
fn infeasible(problem: &Problem, world: &dyn World) -> String {
    let limits = problem.limited().iter().zip(problem.thresholds());
    for (&number, threshold) in limits {
        // A mixture costs at least as much as the cheapest action, so that alone decides.
        let means = world.means()[number].iter().copied();
        let cheapest = means.fold(f64::INFINITY, f64::min);
        if cheapest > *threshold {
            let quantity = problem.quantity(number);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Five actions, 2,000 rounds: the trial takes a third of them, whatever rho is.
    #[test]
    fn what_shortens_exploration_is_not_promised() {
        let problem = Problem::free(["a", "b", "c", "d", "e"], 2_000, 0.3);
        let said = long_exploration(&Plan::of(problem.build().unwrap())).unwrap();
        assert!(
            said.ends_with("a larger rho can reduce that share"),
            "{said}"
        );
    }

    /// Policy free with a threshold, and a horizon that finds no tenth of the range.
    #[test]
    fn limits_that_are_not_kept_and_data_that_are_too_few_are_said() {
        let problem = Problem::free(["a", "b"], 500, 0.1).cost("price", [0.0, 1.0], 0.5);
        let said = warnings(&Plan::of(problem.build().unwrap()), None);
        assert!(
            said.iter().any(|one| one.contains("only tallied")),
            "{said:?}"
        );
        assert!(
            said.iter().any(|one| one.contains("comes from the key")),
            "{said:?}"
        );
        let problem = Problem::free(["a", "b"], 1_000_000_000, 0.3).watch("price", [0.0, 1.0]);
        assert_eq!(
            warnings(&Plan::of(problem.build().unwrap()), None),
            Vec::<String>::new()
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
}
