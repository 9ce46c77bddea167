//! The plan against a second, slower reading of docs/theory.md, and against what its own words promise.

mod common;

use common::names;
use debora::problem::Draft;
use debora::{Plan, Policy, Problem, Profile};
use proptest::prelude::*;

/// Any problem a plan can be made for, as a draft.
fn drafts() -> impl Strategy<Value = Draft> {
    let shape = (
        2usize..7,
        0usize..4,
        0u32..46,
        0.0f64..1.0,
        prop_oneof![Just(Policy::Free), Just(Policy::Soft), Just(Policy::Hard)],
    );
    let budget = (
        0.01f64..0.95,
        0.001f64..0.6,
        prop::option::of(2u32..=64),
        any::<bool>(),
        0.01f64..1.0,
    );
    (shape, budget).prop_map(
        |((actions, costs, octaves, part, policy), (rho, delta, growth, paper, margin))| {
            let horizon = ((1u64 << octaves) as f64 * (1.0 + part)) as u64;
            let mut draft = match policy {
                Policy::Free => Problem::free(names(actions), horizon, rho),
                Policy::Soft => Problem::soft(names(actions), horizon, rho),
                Policy::Hard => Problem::hard(names(actions), horizon, rho),
            };
            draft = if paper {
                draft.paper().delta(rho * delta / 2.0)
            } else {
                draft.delta(delta)
            };
            if let (Some(growth), false) = (growth, paper) {
                draft = draft.growth(growth);
            }
            for cost in 0..costs {
                draft = draft.cost(format!("cost {cost}"), [0.0, 1.0], 0.5 + 0.1 * cost as f64);
            }
            let mut safe = vec![0.0; actions];
            safe[0] = 0.75;
            safe[actions - 1] += 0.25;
            if policy == Policy::Hard {
                draft.safe_with_margins(safe, vec![0.5 * margin; costs])
            } else {
                draft
            }
        },
    )
}

/// Width and cell of THEORY's profile tight, written down again.
fn tight_width(problem: &Problem, levels: usize, count: u64) -> (f64, f64) {
    let quantities = if problem.policy() == Policy::Free {
        1
    } else {
        problem.quantities()
    };
    let shares = (problem.actions().len() * quantities * levels) as f64;
    let cell = shares / (problem.rho() * (std::f64::consts::PI * count as f64).sqrt());
    (
        ((2.0 * shares / problem.delta()).ln() / (2.0 * count as f64)).sqrt() + cell / 2.0,
        cell,
    )
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-300)
}

proptest! {
    #![proptest_config(common::cases(2_000))]

    /// Levels, cells and widths are those of the formulas, each width below 1/2, and no larger top would do.
    #[test]
    fn a_tight_plan_estimates_the_levels_it_should(draft in drafts()) {
        let problem = draft.build().unwrap();
        let Profile::Tight { growth } = problem.profile() else { return Ok(()) };
        let plan = Plan::of(problem.clone());
        let counts: Vec<u64> =
            (0..64).map_while(|k| u64::from(growth).checked_pow(k)).take_while(|&n| n < problem.horizon()).collect();
        for (levels, entry) in (1..=plan.levels.len()).rev().zip(&plan.levels) {
            let (width, cell) = tight_width(&problem, plan.levels.len(), entry.count);
            prop_assert!(close(entry.width, width) && close(entry.cell, cell), "{entry:?} {width} {cell} {levels}");
            prop_assert!(entry.width < 0.5 && entry.cell < 1.0);
        }
        let total = plan.rho_share * (plan.levels.len().max(1) * problem.actions().len() * problem.quantities_estimated()) as f64;
        prop_assert!(close(total, problem.rho()));
        prop_assert_eq!(plan.blind, plan.levels.is_empty());
        // One level less at the bottom, or one more at the top, is not informative or does not fit.
        if let (Some(first), Some(last)) = (plan.levels.first(), plan.levels.last()) {
            if first.level > 0 {
                let below = u64::from(growth).pow(first.level - 1);
                prop_assert!(tight_width(&problem, plan.levels.len() + 1, below).0 >= 0.5);
            }
            prop_assert!(plan.exploration_rounds.unwrap() < problem.horizon());
            if problem.policy() != Policy::Hard {
                prop_assert_eq!(plan.exploration_rounds, Some(first.count * problem.actions().len() as u64));
                for top in last.level as usize + 1..counts.len() {
                    let first = (0..=top).find(|&k| tight_width(&problem, top - k + 1, counts[k]).0 < 0.5);
                    let fits = first.is_some_and(|k| counts[k] * (problem.actions().len() as u64) < problem.horizon());
                    prop_assert!(!fits, "top {top} would fit");
                }
            }
        }
    }

    /// A blind plan's advice works, and a little less than it does not.
    #[test]
    fn what_a_blind_plan_asks_for_is_what_it_needs(draft in drafts()) {
        let plan = Plan::of(draft.clone().build().unwrap());
        if !plan.blind {
            prop_assert_eq!((plan.horizon_needed, plan.rho_needed), (None, None));
            return Ok(());
        }
        let with_horizon = |horizon: u64| Plan::of(rebuilt(&plan.problem, horizon, plan.problem.rho()));
        if let Some(horizon) = plan.horizon_needed {
            prop_assert!(horizon > plan.problem.horizon());
            prop_assert!(!with_horizon(horizon).blind);
            if plan.growth.is_some() || horizon > 2 {
                prop_assert!(with_horizon(horizon - 1).blind, "horizon {} would do", horizon - 1);
            }
        }
        let with_rho = |rho: f64| Plan::of(rebuilt(&plan.problem, plan.problem.horizon(), rho));
        if let Some(rho) = plan.rho_needed {
            prop_assert!(rho >= plan.problem.rho() * (1.0 - 1e-9));
            if rho < 0.999 {
                prop_assert!(!with_rho(rho * 1.0001).blind);
            }
            prop_assert!(with_rho(rho * 0.9999).blind);
        } else if plan.growth.is_some() {
            prop_assert!(with_rho(0.999_999).blind);
        }
    }

    /// The bound is the sum of d over the pulls of a run that spreads them evenly, counted one by one.
    #[test]
    fn the_tight_bound_is_the_sum_over_pulls(draft in drafts()) {
        let problem = draft.build().unwrap();
        let (horizon, actions) = (problem.horizon(), problem.actions().len() as u64);
        if horizon > 200_000 || problem.profile() == Profile::Paper {
            return Ok(());
        }
        let plan = Plan::of(problem.clone());
        let d = |count: u64| plan.levels.iter().rfind(|level| level.count <= count).map_or(1.0, |level| 2.0 * level.width);
        let whole: f64 = (0..horizon / actions).map(d).sum();
        let part = (horizon % actions) as f64 / actions as f64 * d(horizon / actions);
        let drawn = if problem.policy() == Policy::Free { 0.0 } else { (horizon as f64 * (1.0 / problem.delta()).ln() / 2.0).sqrt() };
        let factor = problem.margin_min().map_or(1.0, |margin| 1.0 + 1.0 / margin);
        let bound = (factor * (actions as f64 * (whole + part) + drawn)).min(horizon as f64);
        prop_assert!((plan.regret_bound - bound).abs() <= 1e-6 * bound, "{} against {bound}", plan.regret_bound);
        // d falls with the count, so spreading pulls evenly is the worst case.
        prop_assert!(plan.levels.windows(2).all(|pair| pair[1].width < pair[0].width));
    }
}

/// The same problem with another horizon and rho.
fn rebuilt(problem: &Problem, horizon: u64, rho: f64) -> Problem {
    let actions = problem.actions().to_vec();
    let mut draft = match problem.policy() {
        Policy::Free => Problem::free(actions, horizon, rho),
        Policy::Soft => Problem::soft(actions, horizon, rho),
        Policy::Hard => Problem::hard(actions, horizon, rho),
    };
    draft = match problem.profile() {
        Profile::Tight { growth } => draft.growth(growth),
        Profile::Paper => draft.paper(),
    };
    for (cost, threshold) in problem.thresholds().iter().enumerate() {
        draft = draft.cost(format!("cost {cost}"), [0.0, 1.0], *threshold);
    }
    if let Some(safe) = problem.safe() {
        draft = draft.safe_with_margins(safe.strategy.probabilities(), safe.margins.clone());
    }
    draft.delta(problem.delta()).build().unwrap()
}

#[test]
fn one_round_is_blind_and_has_one_epoch() {
    for draft in [
        Problem::free(names(3), 1, 0.5),
        Problem::soft(names(3), 1, 0.5).paper(),
    ] {
        let plan = Plan::of(draft.build().unwrap());
        assert!(plan.blind && plan.levels.is_empty());
        assert_eq!((plan.epochs_max, plan.regret_bound), (1, 1.0));
    }
}

/// Exploration under hard constraints takes what its expected path says: 200 walks of the schedule with key 1, whose mean is
/// within 5 % of the plan. The key is fixed, so this compares two numbers; it claims no rate of error. The plan is also at
/// least docs/theory.md's lower bound, max(K n, A n/(1 - sigma_0)).
#[test]
fn hard_exploration_takes_the_expected_path() {
    use debora::key::Label;
    for (safe, margin) in [
        ([0.999, 0.001, 0.0], 0.125),
        ([0.5, 0.5, 0.0], 0.125),
        ([1.0, 0.0, 0.0], 0.5),
        ([0.4, 0.3, 0.3], 0.05),
    ] {
        let draft = Problem::hard(names(3), 3_000_000, 0.5).cost("cost", [0.0, 1.0], 0.5);
        let plan = Plan::of(draft.safe_with_margins(safe, [margin]).build().unwrap());
        let (first, expected) = (
            plan.first_informative_count.unwrap(),
            plan.exploration_rounds.unwrap() as f64,
        );
        let sigma = 0.5 / (0.5 + margin);
        let explore = |run: u64| {
            let key = debora::Key::from(1u64).derive(run, 0);
            let mut counts = [0u64; 3];
            let mut round = 0;
            while let Some(action) = plan.explored(&counts) {
                let mixed: Vec<f64> = (0..3)
                    .map(|a| sigma * safe[a] + if a as u32 == action { 1.0 - sigma } else { 0.0 })
                    .collect();
                let strategy = debora::Strategy::new(mixed);
                round += 1;
                counts[strategy.pick(key.uniform(Label::Round, [round, 0, 0])) as usize] += 1;
            }
            round as f64
        };
        let mean = (0..200).map(explore).sum::<f64>() / 200.0;
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "safe {safe:?}: {mean} rounds, planned {expected}"
        );
        let outside = safe
            .iter()
            .filter(|probability| **probability == 0.0)
            .count() as f64;
        let least = (3.0 * first as f64).max(outside * first as f64 / (1.0 - sigma));
        assert!(expected >= least - 1.0, "{expected} below {least}");
    }
}
