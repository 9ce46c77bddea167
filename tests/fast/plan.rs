//! The plan against a second, slower reading of docs/theory.md, and against what its own words promise.
//!
//! [`Reading`] is written from the text alone, with the standard library's floats, its own search for the first count and
//! its own walk of hard exploration: an error in `src/plan` would have to be made twice to pass.

use crate::common::names;
use debora::problem::Draft;
use debora::{Plan, Policy, Problem, Profile};
use proptest::prelude::*;

/// Any problem a plan can be made for, as a draft.
fn drafts() -> impl Strategy<Value = Draft> {
    let shape = (
        prop_oneof![2usize..7, 7usize..=20],
        0usize..4,
        0u32..40,
        0.0f64..1.0,
        prop_oneof![Just(Policy::Free), Just(Policy::Soft), Just(Policy::Hard)],
    );
    let budget = (
        0.01f64..0.95,
        0.001f64..0.6,
        prop::option::of(2u32..=64),
        prop::bool::weighted(0.2),
        0.01f64..1.0,
    );
    // Ranges by action with so many known entries, a watched cost, and a length of exploration.
    let more = (
        0usize..4,
        any::<bool>(),
        prop::option::weighted(0.2, 0.01f64..0.99),
    );
    (shape, budget, more).prop_map(
        |((actions, costs, octaves, part, policy), (rho, delta, growth, paper, margin), more)| {
            let (known, watched, explore) = more;
            let horizon = ((1u64 << octaves) as f64 * (1.0 + part)) as u64;
            let mut draft = start(policy, names(actions), horizon, rho);
            draft = if paper {
                draft.paper().delta(rho * delta / 2.0)
            } else {
                draft.delta(delta)
            };
            if let (Some(growth), false) = (growth, paper) {
                draft = draft.growth(growth);
            }
            let thresholds: Vec<f64> = (0..costs).map(|cost| 0.5 + 0.1 * cost as f64).collect();
            if watched {
                draft = draft.watch("seen", [0.0, 1.0]);
            }
            if let (Some(share), false) = (explore, paper) {
                draft = draft.explore(share);
            }
            for (cost, threshold) in thresholds.iter().enumerate() {
                let name = format!("cost {cost}");
                let mut own = vec![[0.0, 1.0]; actions];
                own.iter_mut().take(known).for_each(|range| range[1] = 0.0);
                // A range of all must be left, and profile paper knows one range only.
                draft = if cost == 0 && known > 0 && !paper && known < actions {
                    draft.cost(name, own, *threshold)
                } else {
                    draft.cost(name, [0.0, 1.0], *threshold)
                };
            }
            let mut safe = vec![0.0; actions];
            safe[0] = 0.75;
            safe[actions - 1] += 0.25;
            let margin = 0.5 * margin;
            if policy == Policy::Hard {
                draft.safe_with_margins(safe, vec![margin; costs])
            } else {
                draft
            }
        },
    )
}

fn start(policy: Policy, actions: Vec<String>, horizon: u64, rho: f64) -> Draft {
    match policy {
        Policy::Free => Problem::free(actions, horizon, rho),
        Policy::Soft => Problem::soft(actions, horizon, rho),
        Policy::Hard => Problem::hard(actions, horizon, rho),
    }
}

/// docs/theory.md's soft and hard in profile tight, read a second time. Letters are the page's.
struct Reading<'a> {
    problem: &'a Problem,
    beta: u64,
    k: u64,
    /// E.
    entries: f64,
    /// Rounds of exploration per sample of each action.
    pace: f64,
}

/// Levels as the page chooses them.
#[derive(Clone, Debug)]
struct Choice {
    n_f: u64,
    levels: usize,
}

impl<'a> Reading<'a> {
    fn of(problem: &'a Problem) -> Option<Self> {
        let Profile::Tight { growth } = problem.profile() else {
            return None;
        };
        if problem.policy() == Policy::Free {
            return None;
        }
        let k = problem.actions().len() as u64;
        let mut entries = k;
        for &q in problem.limited() {
            let open = |a: &u32| {
                let range = problem.quantity(q).range_of(*a);
                range.low < range.high
            };
            entries += (0..k as u32).filter(open).count() as u64;
        }
        let mut reading = Self {
            problem,
            beta: u64::from(growth),
            k,
            entries: entries as f64,
            pace: 0.0,
        };
        reading.pace = reading.path();
        Some(reading)
    }

    /// Exploration's path for one sample each, step by step: who is below gets an even part of 1 - sigma, everyone his part of
    /// sigma times the safe strategy, until the next arrives.
    fn path(&self) -> f64 {
        let Some(safe) = self.problem.safe() else {
            return self.k as f64;
        };
        let sigma = self.sigma_exploring();
        let mut counts = vec![0.0f64; self.k as usize];
        let mut rounds = 0.0;
        loop {
            let below: Vec<usize> = (0..counts.len()).filter(|&a| counts[a] < 1.0).collect();
            let rate = |a: usize| {
                let even = if below.contains(&a) {
                    (1.0 - sigma) / below.len() as f64
                } else {
                    0.0
                };
                even + sigma * safe.strategy.probabilities()[a]
            };
            let wait = |a: usize| (1.0 - counts[a]) / rate(a);
            let Some(next) = below
                .iter()
                .copied()
                .min_by(|&a, &b| wait(a).total_cmp(&wait(b)))
            else {
                return rounds;
            };
            let time = wait(next);
            rounds += time;
            let gains: Vec<f64> = (0..counts.len()).map(|a| time * rate(a)).collect();
            for (count, gain) in counts.iter_mut().zip(gains) {
                *count += gain;
                // Those that arrive together would otherwise miss one by a rounding error.
                if (*count - 1.0).abs() < 1e-12 {
                    *count = 1.0;
                }
            }
            counts[next] = 1.0;
        }
    }

    /// The safe strategy's weight while costs may be as large as their ranges.
    fn sigma_exploring(&self) -> f64 {
        let safe = self.problem.safe().expect("hard");
        let mut sigma = 0.0f64;
        for (i, alpha) in self.problem.thresholds().iter().enumerate() {
            let excess = 1.0 - alpha;
            if excess > 0.0 {
                sigma = sigma.max(excess / (excess + safe.margins[i]));
            }
        }
        sigma
    }

    fn explore(&self, n: u64) -> f64 {
        (self.pace * n as f64).max((self.k * n) as f64)
    }

    fn l(&self, levels: usize) -> f64 {
        (2.0 * self.entries * levels as f64 / self.problem.delta()).ln()
    }

    /// Cell and width at a count, if there are so many levels.
    fn cell_and_width(&self, n: u64, levels: usize) -> (f64, f64) {
        let n = n as f64;
        let rho_s = self.problem.rho() / (self.entries * levels as f64);
        let cell = 1.0 / (std::f64::consts::PI * n).sqrt() / rho_s;
        (
            cell,
            1.03 * (self.l(levels) / (2.0 * n)).sqrt() + cell / 2.0,
        )
    }

    /// n_1(J): bit by bit the largest count that is not informative, and one more.
    fn n_1(&self, phi: f64, levels: usize) -> u64 {
        let mut n = 0u64;
        for bit in (0..54).rev() {
            let more = n + (1 << bit);
            if self.cell_and_width(more, levels).1 >= phi {
                n = more;
            }
        }
        n + 1
    }

    fn choose(&self) -> Option<Choice> {
        let horizon = u128::from(self.problem.horizon());
        // Up to rounding: a path of whole rounds may come out a last bit above them.
        let fits = |n: u64| self.explore(n) <= (horizon as f64 - 1.0) * (1.0 + 1e-14);
        if let Some(share) = self.problem.explore() {
            let n_f = ((share * horizon as f64 / self.pace * (1.0 + 2f64.powi(-48))) as u64).max(1);
            let informative = self.cell_and_width(n_f, 1).1 < 0.5;
            return (informative && fits(n_f)).then_some(Choice { n_f, levels: 1 });
        }
        for phi in [0.3, 0.5] {
            let mut found = None;
            for levels in 1..=60 {
                let n_1 = self.n_1(phi, levels);
                let n_top = u128::from(n_1) * u128::from(self.beta).pow(levels as u32 - 1);
                if !fits(n_1) || n_top * u128::from(self.k) > horizon {
                    break;
                }
                found = Some(Choice { n_f: n_1, levels });
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The span of an action with so many samples, at most.
    fn d(&self, choice: Option<&Choice>, count: u64) -> f64 {
        let Some(choice) = choice.filter(|choice| count >= choice.n_f) else {
            return 1.0;
        };
        let reached = |j: &usize| choice.n_f * self.beta.pow(*j as u32) <= count;
        let j = (0..choice.levels).rev().find(reached).unwrap();
        let n = choice.n_f * self.beta.pow(j as u32);
        let c = 1f64.max(self.l(choice.levels) / 2.0);
        let width = self.cell_and_width(n, choice.levels).1;
        ((1.0 + 2.0 * c / n as f64) * 2.0 * width).min(1.0)
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-300)
}

proptest! {
    #![proptest_config(crate::common::cases(2_000))]

    /// n_f, J, both attempts, a length of one's own, shares, cells and widths, exploration and the number of epochs.
    #[test]
    fn a_tight_plan_is_what_a_second_reading_says(draft in drafts()) {
        let problem = draft.build().unwrap();
        let Some(reading) = Reading::of(&problem) else { return Ok(()) };
        let plan = Plan::of(problem.clone());
        let k = reading.k;
        prop_assert!(plan.trial.is_none());
        let Some(choice) = reading.choose() else {
            prop_assert!(plan.blind && plan.levels.is_empty());
            prop_assert_eq!((plan.epochs_max, plan.detectable, plan.exploration_rounds), (1, None, None));
            return Ok(());
        };
        prop_assert!(!plan.blind, "{choice:?}");
        let wanted: Vec<(u32, u64)> = (0..choice.levels as u32).map(|j| (j, choice.n_f * reading.beta.pow(j))).collect();
        let levels: Vec<(u32, u64)> = plan.levels.iter().map(|level| (level.level, level.count)).collect();
        prop_assert_eq!(levels, wanted, "levels are numbered from n_f: {:?}", choice);
        for level in &plan.levels {
            let (cell, width) = reading.cell_and_width(level.count, choice.levels);
            prop_assert!(close(level.cell, cell) && close(level.width, width), "{level:?}, read as {cell} and {width}");
            prop_assert!(level.width < 0.5);
        }
        let estimates = reading.entries * choice.levels as f64;
        prop_assert!(close(plan.rho_share.unwrap() * estimates, problem.rho()));
        prop_assert!(close(plan.delta_share.unwrap() * estimates, problem.delta()));
        prop_assert!(close(plan.offset_c.unwrap(), 1f64.max(reading.l(choice.levels) / 2.0)));
        prop_assert_eq!(plan.first_informative_count, Some(choice.n_f));
        let rounds = plan.exploration_rounds.unwrap();
        prop_assert!(rounds < problem.horizon() && (rounds as f64 - reading.explore(choice.n_f)).abs() < 1.0 + 1e-9 * rounds as f64);
        let epochs = match problem.policy() {
            Policy::Hard => k * choice.levels as u64 + 1,
            _ => k * (choice.levels as u64 - 1) + 2,
        };
        prop_assert_eq!(plan.epochs_max, epochs.min(problem.horizon()));
        prop_assert_eq!(plan.detectable, plan.levels.last().map(|level| 2.0 * level.width).filter(|found| *found < 1.0));
    }

    /// Where counts are small the first one is found by trying all of them: no smaller count has a width below phi.
    #[test]
    fn the_first_count_is_exact(draft in drafts()) {
        let problem = draft.build().unwrap();
        let Some(reading) = Reading::of(&problem) else { return Ok(()) };
        let Some(choice) = reading.choose().filter(|choice| choice.n_f < 3_000) else { return Ok(()) };
        if problem.explore().is_some() {
            return Ok(());
        }
        let scan = |phi: f64| (1..=3_000).find(|&n| reading.cell_and_width(n, choice.levels).1 < phi);
        let first = Plan::of(problem.clone()).first_informative_count;
        prop_assert!(first == scan(0.3) || first == scan(0.5));
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
            // A length of one's own is a share of the horizon: a shorter one may do by a sample that rounding gives.
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

    /// The bound is the sum of d over the pulls of a run that spreads them evenly, counted one by one: 1 while an action has no
    /// estimate, then the most that its span can be at its level.
    #[test]
    fn the_tight_bound_is_the_sum_over_pulls(draft in drafts()) {
        let problem = draft.build().unwrap();
        let (horizon, actions) = (problem.horizon(), problem.actions().len() as u64);
        let Some(reading) = Reading::of(&problem) else { return Ok(()) };
        if horizon > 200_000 {
            return Ok(());
        }
        let plan = Plan::of(problem.clone());
        let choice = reading.choose();
        let d = |count: u64| reading.d(choice.as_ref(), count);
        let whole: f64 = (0..horizon / actions).map(d).sum();
        let part = (horizon % actions) as f64 / actions as f64 * d(horizon / actions);
        let drawn = (horizon as f64 * (1.0 / problem.delta()).ln() / 2.0).sqrt();
        let limited = !problem.thresholds().is_empty();
        let factor = match problem.policy() {
            _ if !limited => 1.0,
            Policy::Soft => 4.0,
            _ => 1.0 + 1.0 / problem.margin_min().unwrap(),
        };
        let sum = actions as f64 * (whole + part) + drawn;
        let bound = (factor * sum).min(horizon as f64);
        prop_assert!((plan.regret_bound - bound).abs() <= 1e-6 * bound, "{} against {bound}", plan.regret_bound);
        let violation = if problem.policy() == Policy::Soft && limited { sum.min(horizon as f64) } else { 0.0 };
        prop_assert!((plan.violation_bound.unwrap() - violation).abs() <= 1e-6 * violation);
        prop_assert!((plan.bound_probability - (1.0 - 2.0 * problem.delta()).max(0.0)).abs() < 1e-12);
        // d falls with the count, so spreading pulls evenly is the worst case.
        prop_assert!(plan.levels.windows(2).all(|pair| pair[1].width < pair[0].width));
        let (of_spans, _) = plan.bounds_of_spans(actions as f64 * (whole + part), horizon);
        prop_assert!((of_spans - bound).abs() <= 1e-6 * bound);
    }
}

/// Policy free's bound from the page, at three horizons; a blind plan promises nothing but the horizon.
#[test]
fn the_bound_of_a_trial_is_that_of_the_page() {
    for (horizon, rho) in [(10_000u64, 0.3), (1_000_000, 0.1), (1_000_000_000_000, 0.5)] {
        let plan = Plan::of(Problem::free(names(5), horizon, rho).build().unwrap());
        let trial = plan.trial.as_ref().unwrap();
        let (n, k, delta) = (trial.count as f64, 5.0, 0.01f64);
        let sampling = 2.06 * ((4.0 * k / delta).ln() / (2.0 * n)).sqrt();
        let noise = (2.0 * (k - 1.0) / delta).ln() / trial.scale;
        let loss = ((1.0 + 2.0 * trial.offset_c / n) * (noise + sampling)).min(1.0);
        let bound = k * n + (horizon as f64 - k * n) * loss;
        assert!(close(plan.regret_bound, bound.min(horizon as f64)));
        assert_eq!((plan.violation_bound, plan.bound_probability), (None, 0.98));
        assert_eq!(plan.bounds_at(trial.count).0, n);
    }
    let blind = Plan::of(Problem::free(names(5), 5, 0.3).build().unwrap());
    assert!(blind.blind && blind.regret_bound == 5.0);
    assert_eq!((blind.horizon_needed, blind.rho_needed), (Some(6), None));
    assert!(!Plan::of(Problem::free(names(5), 6, 0.3).build().unwrap()).blind);
}

/// A length of one's own, where it is and where it is not enough.
#[test]
fn exploration_takes_the_share_that_is_asked_for() {
    let plan = Plan::of(
        Problem::free(names(5), 1_000_000, 0.3)
            .explore(0.1)
            .build()
            .unwrap(),
    );
    let trial = plan.trial.as_ref().unwrap();
    assert_eq!(
        (trial.count, plan.exploration_rounds),
        (20_000, Some(100_000))
    );
    let soft = |horizon: u64, share: f64| {
        let draft = Problem::soft(names(3), horizon, 0.5).cost("cost", [0.0, 1.0], 0.5);
        Plan::of(draft.explore(share).build().unwrap())
    };
    let plan = soft(100_000, 0.3);
    assert_eq!(
        (plan.levels.len(), plan.first_informative_count),
        (1, Some(10_000))
    );
    let short = soft(1_000, 0.01);
    assert!(short.blind);
    let needed = short.horizon_needed.unwrap();
    assert!(
        !soft(needed, 0.01).blind && soft(needed - 1, 0.01).blind,
        "{needed}"
    );
}

/// The same problem with another horizon and rho.
fn rebuilt(problem: &Problem, horizon: u64, rho: f64) -> Problem {
    let mut draft = start(problem.policy(), problem.actions().to_vec(), horizon, rho);
    draft = match problem.profile() {
        Profile::Tight { growth } => draft.growth(growth),
        Profile::Paper => draft.paper(),
    };
    for quantity in 1..problem.quantities() {
        let cost = problem.quantity(quantity);
        let own = cost.by_action.iter().map(|range| [range.low, range.high]);
        let range: debora::problem::CostRange = match cost.by_action.is_empty() {
            true => [cost.range.low, cost.range.high].into(),
            false => own.collect::<Vec<_>>().into(),
        };
        draft = match problem.threshold(quantity - 1) {
            Some(threshold) => draft.cost(cost.name.clone(), range, threshold),
            None => draft.watch(cost.name.clone(), range),
        };
    }
    draft = problem
        .explore()
        .map_or(draft.clone(), |share| draft.explore(share));
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
        let first = plan.first_informative_count.unwrap();
        let expected = plan.exploration_rounds.unwrap() as f64;
        // A candidate nothing is known of may cost as much as its range has.
        let sigma = 0.5 / (0.5 + margin);
        let explore = |run: u64| {
            let key = debora::Key::from(1u64).derive(run, 0);
            let mut counts = [0u64; 3];
            let mut round = 0;
            while counts.iter().any(|&count| count < first) {
                let below = counts.iter().filter(|&&count| count < first).count() as f64;
                let part = |a: usize| f64::from(u8::from(counts[a] < first)) / below;
                let mixed = (0..3).map(|a| sigma * safe[a] + (1.0 - sigma) * part(a));
                let strategy = debora::Strategy::new(mixed.collect());
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

/// The properties above would show little if their problems missed a path. The generator's seed is fixed, so these are facts.
#[test]
fn the_problems_reach_every_path() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::new(crate::common::cases(1));
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..2_000 {
        let drawn = drafts().new_tree(&mut runner).unwrap();
        let problem = drawn.current().build().unwrap();
        let Some(reading) = Reading::of(&problem) else {
            continue;
        };
        let mut note =
            |path: &'static str, here: bool| *seen.entry(path).or_insert(0) += u32::from(here);
        let Some(choice) = reading.choose() else {
            note("blind", true);
            continue;
        };
        let explore = problem.explore().is_some();
        note("a length of its own", explore);
        note(
            "second attempt",
            !explore && reading.cell_and_width(choice.n_f, choice.levels).1 >= 0.3,
        );
        note("several levels", choice.levels > 1);
        let all = (reading.k as usize * (problem.limited().len() + 1)) as f64;
        note("known entries", reading.entries < all);
        note(
            "watched",
            problem.limited().len() + 1 < problem.quantities(),
        );
        note("hard", problem.policy() == Policy::Hard);
        note("soft", problem.policy() == Policy::Soft);
    }
    assert_eq!(seen.len(), 8);
    assert!(seen.values().all(|&times| times >= 10), "{seen:?}");
}
