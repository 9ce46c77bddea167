//! The linear program against enumeration of vertices, against another solver, and against its own dual.
//!
//! Every answer of every test is solved again in the memory of the programs before it, with its proof and without (same bits),
//! certified by its own dual, and counted. Run with
//! `--nocapture` to see, per family, how many instances were feasible and the most pivots any took.

mod certificate;
mod instances;
mod oracle;

use certificate::{
    TOLERANCE, Verdict, certify, close, dot, excess_scale, gain, holds, largest, value_tolerance,
};
use debora::internals::lp::{self, Solution, Solver};
use instances::{ALL, EXACT, Family, Instance, Size};
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use oracle::Optimum;

/// No instance here needs 8; the solver itself gives up at 200. Instances drawn to be hard have needed 19.
const PIVOTS_PER_BASIC_MAX: u32 = 10;

fn solve(instance: &Instance) -> Solution {
    lp::solve(&instance.objective, &instance.rows, &instance.limits)
}

/// Draws, solves and certifies `count` instances of each family, and puts each to the check.
fn each(
    families: &[Family],
    count: u64,
    size: fn(Family) -> Size,
    check: fn(&Instance, &Solution) -> Verdict,
) {
    for &family in families {
        let (mut feasible, mut pivots) = (0, 0);
        let mut solver = Solver::default();
        for seed in 0..count {
            let instance = Instance::draw(family, size(family), seed);
            let solution = solve(&instance);
            let most = PIVOTS_PER_BASIC_MAX * (instance.limits.len() as u32 + 1);
            let verdict = holds(solution.pivots <= most, || {
                format!("{} pivots, {most} would do", solution.pivots)
            })
            .and_then(|()| certify(&instance, &solution))
            .and_then(|()| same_again(&mut solver, &instance, &solution))
            .and_then(|()| check(&instance, &solution));
            verdict.unwrap_or_else(|fault| panic!("{fault}\n{instance:?}\n{solution:?}"));
            feasible += u64::from(solution.violation == 0.0);
            pivots = pivots.max(solution.pivots);
        }
        println!("{family:?}: {count} instances, {feasible} feasible, at most {pivots} pivots");
        let known = match family {
            Family::Infeasible => feasible == 0,
            Family::Knife | Family::Rounded => feasible == count,
            _ => feasible > 0,
        };
        assert!(known, "{family:?}: {feasible} of {count} feasible");
    }
}

fn bits<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> Vec<u64> {
    numbers.into_iter().map(|number| number.to_bits()).collect()
}

fn same_bits(left: &Solution, right: &Solution) -> Verdict {
    let all = |solution: &Solution| {
        bits(
            solution
                .strategy
                .iter()
                .chain(&solution.prices)
                .chain([&solution.violation]),
        )
    };
    holds(
        all(left) == all(right) && left.pivots == right.pivots,
        || format!("other bits: {right:?}"),
    )
}

fn same_again(solver: &mut Solver, instance: &Instance, solution: &Solution) -> Verdict {
    let Instance {
        objective,
        rows,
        limits,
        ..
    } = instance;
    let (strategy, violation) = solver.strategy(objective, rows, limits);
    let unproved = Solution {
        strategy,
        violation,
        ..solution.clone()
    };
    same_bits(solution, &unproved)?;
    same_bits(solution, &solver.solve(objective, rows, limits))
}

/// The verdict, the violation and the value are the exact ones; so is the strategy, and with it the tie rule, unless
/// coefficients are so unequal that the solver's tolerance may decide ties and verdicts.
fn agrees_with_enumeration(instance: &Instance, solution: &Solution) -> Verdict {
    let exact = Optimum::of(instance);
    let (feasible, found) = (exact.violation == 0.0, solution.violation == 0.0);
    holds(
        found == feasible || found && instance.family.is_blurred(),
        || format!("wrong verdict, exact is {exact:?}"),
    )?;
    if !found {
        close(
            solution.violation,
            exact.violation,
            TOLERANCE * excess_scale(instance),
            "violation",
        )?;
    } else if feasible {
        let found = dot(&gain(instance), &solution.strategy);
        close(
            found,
            exact.gain,
            value_tolerance(instance, &solution.prices),
            "gain",
        )?;
    }
    let same = |(found, wanted): (&f64, &f64)| {
        (found - wanted).abs() <= TOLERANCE && (*found > 0.0) == (*wanted > 0.0)
    };
    let same = solution.strategy.iter().zip(&exact.strategy).all(same);
    holds(same || instance.family.is_blurred(), || {
        format!("another strategy, exact is {exact:?}")
    })
}

/// The value, or else the violation, that microlp finds is the same, as far as it judges: to 1e-7.
fn agrees_with_microlp(instance: &Instance, solution: &Solution) -> Verdict {
    let gain = gain(instance);
    let spread = positive_or_one(largest(&gain));
    if solution.violation > 0.0 {
        let scale = excess_scale(instance);
        let rows = instance.excess().map(|row| scaled(&row, scale));
        let value = maximise_by_microlp(&vec![0.0; gain.len()], rows, f64::INFINITY)?;
        return close(
            -value * scale,
            solution.violation,
            1e-7 * scale,
            "violation by microlp",
        );
    }
    let rows = instance.excess().map(|row| scaled(&row, largest(&row)));
    let value = maximise_by_microlp(&scaled(&gain, spread), rows, 0.0)?;
    let tolerance = 1e-7 / TOLERANCE * value_tolerance(instance, &solution.prices);
    close(
        value * spread,
        dot(&gain, &solution.strategy),
        tolerance,
        "gain by microlp",
    )
}

/// The largest gain.x - level over strategies x and 0 <= level <= `level_max` with excess_i.x <= level.
fn maximise_by_microlp(
    gain: &[f64],
    rows: impl Iterator<Item = Vec<f64>>,
    level_max: f64,
) -> Result<f64, String> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let level = problem.add_var(-1.0, (0.0, level_max));
    let actions: Vec<_> = gain
        .iter()
        .map(|&gain| problem.add_var(gain, (0.0, f64::INFINITY)))
        .collect();
    problem.add_constraint(
        actions.iter().map(|&action| (action, 1.0)),
        ComparisonOp::Eq,
        1.0,
    );
    for row in rows {
        let terms = actions.iter().copied().zip(row).chain([(level, -1.0)]);
        problem.add_constraint(terms, ComparisonOp::Le, 0.0);
    }
    let outcome = problem
        .solve()
        .map_err(|error| format!("microlp: {error}"))?;
    Ok(outcome
        .into_solution()
        .map_err(|_| "microlp was interrupted")?
        .objective())
}

fn survives_rescaling(instance: &Instance, solution: &Solution) -> Verdict {
    // Violations of different rows are compared with each other: only all rows together may be scaled then.
    let other = instance.rescaled(solution.violation > 0.0);
    let rescaled = solve(&other);
    let same = bits(&rescaled.strategy) == bits(&solution.strategy);
    holds(same, || format!("other bits: {rescaled:?}\nof {other:?}"))
}

fn survives_shuffling(instance: &Instance, solution: &Solution) -> Verdict {
    let other = instance.shuffled();
    let shuffled = solve(&other);
    certify(&other, &shuffled)?;
    close(
        shuffled.violation,
        solution.violation,
        TOLERANCE * excess_scale(instance),
        "violation",
    )?;
    let value = |instance: &Instance, solution: &Solution| dot(&gain(instance), &solution.strategy);
    let tolerance =
        value_tolerance(instance, &solution.prices) + value_tolerance(&other, &shuffled.prices);
    close(
        value(&other, &shuffled),
        value(instance, solution),
        tolerance,
        "gain",
    )
}

fn scaled(values: &[f64], scale: f64) -> Vec<f64> {
    values
        .iter()
        .map(|value| value / positive_or_one(scale))
        .collect()
}

fn positive_or_one(scale: f64) -> f64 {
    if scale > 0.0 { scale } else { 1.0 }
}

/// 50,000 instances, 5,000 of each of ten families, at most 12 actions and 4 rows (2 where products would overflow).
#[test]
fn small_instances_agree_with_the_exact_enumeration_of_vertices() {
    let size = |family| Size {
        actions: 12,
        rows: if family == Family::Wide { 2 } else { 4 },
    };
    each(EXACT, 5_000, size, agrees_with_enumeration);
}

/// 5,040 instances, 420 of each family, at most 60 actions and 10 rows.
#[test]
fn instances_of_middle_size_agree_with_microlp() {
    each(
        &ALL,
        420,
        |_| Size {
            actions: 60,
            rows: 10,
        },
        agrees_with_microlp,
    );
}

/// 204 instances, 17 of each family, at most 1,500 actions and 50 rows.
#[test]
fn large_instances_are_certified_by_their_own_dual() {
    each(
        &ALL,
        17,
        |_| Size {
            actions: 1_500,
            rows: 50,
        },
        |_, _| Ok(()),
    );
}

/// 2,400 instances, 200 of each family, at most 40 actions and 8 rows; each row and the objective by 2^-40 to 2^40.
#[test]
fn scaling_by_powers_of_two_changes_no_bit_of_the_strategy() {
    each(
        &ALL,
        200,
        |_| Size {
            actions: 40,
            rows: 8,
        },
        survives_rescaling,
    );
}

/// 2,400 instances, 200 of each family, at most 40 actions and 8 rows.
#[test]
fn the_order_of_actions_changes_neither_value_nor_violation() {
    each(
        &ALL,
        200,
        |_| Size {
            actions: 40,
            rows: 8,
        },
        survives_shuffling,
    );
}
