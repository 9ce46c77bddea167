//! Every strategy again, from nothing but the records: what docs/theory.md says an epoch plays, by enumeration of vertices.
//!
//! Means, offsets, cells, optimistic and pessimistic costs, the weight of the safe strategy, the choice between mixing and
//! planning, and the cautious strategy. None of it uses `src/policy.rs` or the linear program.

use debora::key::{Label, to_uniform};
use debora::mean::round_to_cell;
use debora::problem::Draft;
use debora::record::HardRule;
use debora::{Engine, EpochRecord, Estimate, Key, Kind, Plan, Policy, Problem, Profile};

use crate::common::{best_vertex, names, smooth_epoch};

/// A uniform number for everything that is random about a case.
fn dice(case: u64, of: u64, number: u64) -> f64 {
    to_uniform(Key::from(77u64).block(Label::Derive, [case, of, number])[0])
}

/// What a policy knows of the actions: the latest estimate and width per quantity and action.
struct Known {
    values: Vec<Vec<f64>>,
    widths: Vec<Vec<f64>>,
    estimated: Vec<bool>,
}

impl Known {
    fn before(plan: &Plan) -> Self {
        let actions = plan.problem.actions().len();
        let quantities = plan.problem.quantities_estimated();
        // Profile paper: an action never played has estimate 1/2 and the width of one sample (deviation 7). A smaller width
        // would leave it unplayed for good, a larger one would play it out of turn.
        let width = match plan.problem.profile() {
            Profile::Paper => plan.levels[0].width,
            Profile::Tight { .. } => f64::NAN,
        };
        Self {
            values: vec![vec![0.5; actions]; quantities],
            widths: vec![vec![width; actions]; quantities],
            estimated: vec![false; actions],
        }
    }

    fn learn(&mut self, estimates: &[Estimate]) {
        for estimate in estimates {
            let (q, a) = (estimate.quantity as usize, estimate.action as usize);
            self.values[q][a] = estimate.estimate;
            self.widths[q][a] = estimate.width;
            self.estimated[a] = true;
        }
    }

    fn index(&self) -> Vec<f64> {
        let both = self.values[0].iter().zip(&self.widths[0]);
        both.map(|(value, width)| value + width).collect()
    }

    /// Costs shifted by their whole width, within the declared ends in profile tight.
    fn costs(&self, problem: &Problem, sign: f64) -> Vec<Vec<f64>> {
        let ends = |q: usize| match problem.profile() {
            Profile::Tight { .. } => [problem.means(q).low, problem.means(q).high],
            Profile::Paper => [f64::NEG_INFINITY, f64::INFINITY],
        };
        (1..self.values.len())
            .map(|q| {
                let both = self.values[q].iter().zip(&self.widths[q]);
                let [lo, hi] = ends(q);
                // A cost is clipped where it points to: optimism at the lower end, pessimism at the upper one.
                both.map(|(value, width)| {
                    if sign < 0.0 {
                        (value - width).max(lo)
                    } else {
                        (value + width).min(hi)
                    }
                })
                .collect()
            })
            .collect()
    }

    /// Twice the largest width over the quantities, action by action.
    fn doubt(&self) -> Vec<f64> {
        let widest = |a: usize| self.widths.iter().map(|row| row[a]).fold(0.0, f64::max);
        (0..self.estimated.len()).map(|a| 2.0 * widest(a)).collect()
    }
}

fn dot(row: &[f64], strategy: &[f64]) -> f64 {
    row.iter().zip(strategy).map(|(value, x)| value * x).sum()
}

fn rows(costs: &[Vec<f64>]) -> Vec<&[f64]> {
    costs.iter().map(Vec::as_slice).collect()
}

/// The weight of the safe strategy for costs of at most `worst`.
fn sigma(problem: &Problem, worst: &[f64]) -> f64 {
    let safe = problem.safe().unwrap();
    let mut sigma = 0.0f64;
    for ((worst, alpha), lambda) in worst.iter().zip(problem.thresholds()).zip(&safe.margins) {
        if worst > alpha {
            sigma = sigma.max((worst - alpha) / (worst - alpha + lambda));
        }
    }
    sigma
}

/// The best over z and s of docs/theory.md's program with the safe strategy as one more column.
fn with_safe_column(problem: &Problem, objective: &[f64], high: &[Vec<f64>]) -> Vec<f64> {
    let safe = problem.safe().unwrap();
    let plays = safe.strategy.probabilities();
    let mut objective = objective.to_vec();
    objective.push(dot(&objective, plays));
    let limits = problem.thresholds();
    let extended: Vec<Vec<f64>> = high
        .iter()
        .zip(limits.iter().zip(&safe.margins))
        .map(|(row, (alpha, lambda))| [row.as_slice(), &[alpha - lambda]].concat())
        .collect();
    let (_, parts) = best_vertex(&objective, &rows(&extended), limits).expect("s = 1 fits");
    let weight = parts[plays.len()];
    plays
        .iter()
        .zip(&parts)
        .map(|(safe, part)| part + weight * safe)
        .collect()
}

fn assert_near(left: &[f64], right: &[f64], what: &str) {
    let near = left.iter().zip(right).all(|(l, r)| (l - r).abs() < 1e-7);
    assert!(
        near && left.len() == right.len(),
        "{what}: {left:?} is not {right:?}"
    );
}

/// What was seen, so that a test can say what it has tested.
#[derive(Default, Debug)]
struct Seen {
    mix: u32,
    plan: u32,
    planned_mixtures: u32,
    infeasible: u32,
    cautious: u32,
    uncautious: u32,
    clipped_low: u32,
    clipped_high: u32,
}

/// Checks an exploring epoch.
fn check_exploring(plan: &Plan, record: &EpochRecord) {
    let problem = &plan.problem;
    let actions = problem.actions().len();
    if problem.profile() == Profile::Paper {
        assert_eq!(
            record.candidate[0], 1.0,
            "the first epoch of profile paper plays action 0"
        );
    } else {
        let first = plan.first_informative_count.unwrap();
        let below: Vec<bool> = record.counts.iter().map(|&count| count < first).collect();
        let part = 1.0 / below.iter().filter(|below| **below).count() as f64;
        let even: Vec<f64> = below
            .iter()
            .map(|&below| if below { part } else { 0.0 })
            .collect();
        assert_near(
            &record.candidate,
            &even,
            "exploration is uniform over the actions still below",
        );
    }
    if problem.policy() != Policy::Hard {
        assert_eq!(record.strategy, record.candidate);
        return;
    }
    // Nothing is estimated: a candidate may cost whatever is declared possible, and no more than that.
    let worst: Vec<f64> = (1..problem.quantities())
        .map(|q| {
            if problem.profile() == Profile::Paper {
                1.0
            } else {
                problem.means(q).high
            }
        })
        .collect();
    let sigma = sigma(problem, &worst);
    assert!(
        (record.sigma - sigma).abs() < 1e-12,
        "the worst cost of exploration is its declared end: {} is not {sigma}",
        record.sigma
    );
    let safe = problem.safe().unwrap().strategy.probabilities();
    let mixed: Vec<f64> = (0..actions)
        .map(|a| sigma * safe[a] + (1.0 - sigma) * record.candidate[a])
        .collect();
    assert_near(
        &record.strategy,
        &mixed,
        "exploration is mixed with the safe strategy",
    );
}

fn check_soft(problem: &Problem, known: &Known, record: &EpochRecord) {
    let low = known.costs(problem, -1.0);
    match best_vertex(&known.index(), &rows(&low), problem.thresholds()) {
        None => assert_eq!(record.kind, Kind::Infeasible),
        Some((_, best)) => {
            assert_eq!(
                record.kind,
                Kind::Estimate,
                "some strategy may be safe for all that is known"
            );
            assert_near(
                &record.strategy,
                &best,
                "the best that may be safe: costs less their whole width, within their declared ends",
            );
        }
    }
}

fn check_hard(problem: &Problem, known: &Known, record: &EpochRecord, seen: &mut Seen) {
    let safe = problem.safe().unwrap();
    let (low, high) = (known.costs(problem, -1.0), known.costs(problem, 1.0));
    let index = known.index();
    let Some((most, optimist)) = best_vertex(&index, &rows(&low), problem.thresholds()) else {
        assert_eq!((record.kind, record.sigma), (Kind::Infeasible, 1.0));
        assert_eq!(record.strategy, safe.strategy.probabilities());
        return;
    };
    let paper = problem.profile() == Profile::Paper;
    let planned = with_safe_column(problem, &index, &high);
    let given_up = most - dot(&index, &planned);
    let lambda_min = safe.margins.iter().copied().fold(f64::INFINITY, f64::min);
    let paid = dot(&known.doubt(), &planned) / lambda_min;
    if (given_up - paid).abs() < 1e-9 * paid {
        return;
    }
    if given_up <= paid && !paper {
        assert_eq!(
            record.rule,
            Some(HardRule::Plan),
            "what the plan gives up, {given_up}, is paid by widths that its pulls shrink, {paid}"
        );
        assert_near(
            &record.strategy,
            &planned,
            "the best with pessimistic costs within the limits, the safe strategy one more column",
        );
        seen.plan += 1;
        seen.planned_mixtures += u32::from(record.sigma > 0.0 && record.sigma < 1.0);
        return;
    }
    assert_eq!(
        record.rule,
        Some(HardRule::Mix),
        "the plan would give up {given_up} and its pulls pay {paid}: it could get stuck"
    );
    assert_near(&record.candidate, &optimist, "the optimistic candidate");
    let worst: Vec<f64> = high
        .iter()
        .map(|row| dot(row, &record.candidate).min(1.0))
        .collect();
    let sigma = sigma(problem, &worst);
    assert!(
        (record.sigma - sigma).abs() < 1e-7,
        "the weight of the safe strategy: {} is not {sigma}",
        record.sigma
    );
    let mixed: Vec<f64> = safe
        .strategy
        .probabilities()
        .iter()
        .zip(&record.candidate)
        .map(|(safe, own)| sigma * safe + (1.0 - sigma) * own)
        .collect();
    assert_near(
        &record.strategy,
        &mixed,
        "the candidate mixed with the safe strategy",
    );
    seen.mix += 1;
}

/// The cautious strategy: the best reward for certain among those that keep every limit for certain.
fn check_cautious(engine: &Engine, known: &Known, seen: &mut Seen) {
    let problem = engine.problem();
    let cautious = engine.recommendation().cautious;
    let high = known.costs(problem, 1.0);
    let worth: Vec<f64> = known.values[0]
        .iter()
        .zip(&known.widths[0])
        .map(|(r, w)| r - w)
        .collect();
    let best = match problem.policy() {
        Policy::Hard => Some(with_safe_column(problem, &worth, &high)),
        Policy::Soft => {
            best_vertex(&worth, &rows(&high), problem.thresholds()).map(|(_, best)| best)
        }
        Policy::Free => best_vertex(&worth, &[], &[]).map(|(_, best)| best),
    };
    match (&cautious, &best) {
        (Some(cautious), Some(best)) => {
            assert_near(
                &cautious.strategy,
                best,
                "the cautious strategy keeps pessimistic costs within the limits",
            );
            seen.cautious += 1;
        }
        (None, None) => seen.uncautious += 1,
        _ => panic!("cautious {cautious:?}, by enumeration {best:?}"),
    }
    let Some(cautious) = cautious.filter(|_| problem.policy() != Policy::Free) else {
        return;
    };
    for (cost, interval) in cautious.costs.iter().enumerate() {
        assert!(
            interval.high <= problem.threshold(cost) + 1e-9,
            "a cautious strategy may cost {} of {}",
            interval.high,
            problem.threshold(cost)
        );
    }
}

fn check_epoch(engine: &Engine, known: &mut Known, key: Key, seen: &mut Seen) {
    let plan = engine.plan();
    let problem = &plan.problem;
    let record = engine.open_record();
    check_estimates(plan, record, key);
    known.learn(&record.estimates);
    if record.kind == Kind::Explore {
        check_exploring(plan, record);
        return;
    }
    let low = known.costs(problem, -1.0);
    let high = known.costs(problem, 1.0);
    for q in 1..known.values.len() {
        let clipped = |ends: &[f64], sign: f64| {
            (0..ends.len()).any(|a| ends[a] != known.values[q][a] + sign * known.widths[q][a])
        };
        seen.clipped_low += u32::from(clipped(&low[q - 1], -1.0));
        seen.clipped_high += u32::from(clipped(&high[q - 1], 1.0));
    }
    seen.infeasible += u32::from(record.kind == Kind::Infeasible);
    match problem.policy() {
        Policy::Free => {
            let (_, best) = best_vertex(&known.index(), &[], &[]).unwrap();
            assert_eq!(
                record.strategy, best,
                "free plays the largest index, the first of equals"
            );
        }
        Policy::Soft => check_soft(problem, known, record),
        Policy::Hard => check_hard(problem, known, record, seen),
    }
    check_cautious(engine, known, seen);
}

/// Every estimate from its raw mean, the key and the plan, as an auditor recomputes it.
fn check_estimates(plan: &Plan, record: &EpochRecord, key: Key) {
    for estimate in &record.estimates {
        let (a, q) = (u64::from(estimate.action), u64::from(estimate.quantity));
        assert_eq!(estimate.count, record.counts[a as usize]);
        let (indices, cell, width) = match plan.problem.profile() {
            Profile::Tight { .. } => {
                // Level 0 is the first that is estimated. Every estimate has an offset of its own, or one unlucky grid would
                // round several quantities, or one action level after level, in the same direction.
                let level = plan
                    .levels
                    .iter()
                    .position(|level| level.count == estimate.count)
                    .expect("a level's count");
                assert_eq!(
                    estimate.level,
                    Some(level as u32),
                    "levels are numbered from the first estimated count"
                );
                let level_of = &plan.levels[level];
                (
                    [a, q, level as u64],
                    level_of.cells[q as usize],
                    level_of.widths[q as usize],
                )
            }
            Profile::Paper => {
                assert_eq!(estimate.level, None);
                // Keyed by the epoch: the counts of this epoch depend on the offsets of those before (deviations 9 and 10),
                // and only a fresh offset is independent of everything before it.
                let one = &plan.levels[0];
                let root = (estimate.count as f64).sqrt();
                ([record.epoch, a, q], one.cell / root, one.width / root)
            }
        };
        assert_eq!(
            estimate.offset,
            key.uniform(Label::Offset, indices),
            "the offset of action {a}, quantity {q} in epoch {} is keyed by {indices:?}",
            record.epoch
        );
        assert!(
            (estimate.cell - cell).abs() <= 1e-12 * cell
                && (estimate.width - width).abs() <= 1e-12 * width,
            "quantity {q} has its own cell {cell} and width {width}: {estimate:?}"
        );
        let (index, rounded) = round_to_cell(estimate.mean, estimate.cell, estimate.offset);
        assert_eq!((estimate.index, estimate.estimate), (index, rounded));
    }
}

fn threshold(case: u64, cost: u64) -> f64 {
    0.3 + 0.3 * dice(case, 1, cost)
}

/// Limits and declared ends of a case. Thresholds lie where costs do, so that limits bind.
fn limited(draft: Draft, case: u64, costs: u64) -> Draft {
    (0..costs).fold(draft, |draft, cost| {
        let name = format!("cost {cost}");
        let draft = draft.cost(&name, [0.0, 1.0], threshold(case, cost));
        // Every other case declares where costs lie.
        if case.is_multiple_of(2) {
            return draft;
        }
        draft.mean(
            name,
            [
                0.05 + 0.05 * dice(case, 2, cost),
                0.75 + 0.2 * dice(case, 3, cost),
            ],
        )
    })
}

/// A problem of 2 to 4 actions and a world of means for it.
fn case(policy: Policy, paper: bool, number: u64) -> (Problem, Vec<Vec<f64>>) {
    let actions = 2 + (number % 3) as usize;
    let costs = if policy == Policy::Free {
        0
    } else {
        1 + number / 3 % 2
    };
    let longest = if paper { 7.0 } else { 11.0 };
    let horizon = 10f64.powf(5.5 + (longest - 5.5) * dice(number, 0, 0)) as u64;
    let draft = match policy {
        Policy::Free => Problem::free(names(actions), horizon, 0.8),
        Policy::Soft => Problem::soft(names(actions), horizon, 0.8),
        Policy::Hard => {
            let mut safe = vec![0.0; actions];
            safe[0] = 0.75;
            safe[actions - 1] = 0.25;
            // Up to nine tenths of what is possible: the larger the margin, the sooner planning has to give way to mixing.
            let part = 0.1 + 0.8 * dice(number, 4, 0);
            let margins: Vec<f64> = (0..costs)
                .map(|cost| part * (threshold(number, cost) - 0.1))
                .collect();
            Problem::hard(names(actions), horizon, 0.8).safe_with_margins(safe, margins)
        }
    };
    let draft = limited(draft, number, costs);
    let draft = if paper {
        draft.delta(0.1).paper()
    } else {
        draft.delta(0.1).growth(2 + (number % 7) as u32)
    };
    let problem = draft.build().unwrap();
    let mean = |q: u64, a: u64| {
        let [lo, mut hi] = if q == 0 { [0.0, 1.0] } else { [0.1, 0.75] };
        // A good action of known cost beside a better one that may cost too much: the plan alone would settle for the first
        // and never learn about the second. There mixing has its place.
        if problem.safe().is_some() && actions == 4 {
            let rewards = [0.05, 0.7, 0.9, 0.05];
            if q == 0 {
                return rewards[a as usize];
            }
            if a == 1 || a == 2 {
                return threshold(number, q - 1) - [0.1, 0.02][a as usize - 1];
            }
        }
        // The premise of hard limits must be true: what the safe strategy plays costs less than its margin says.
        if let (Some(safe), Some(cost)) = (problem.safe(), (q as usize).checked_sub(1))
            && safe.strategy.probabilities()[a as usize] > 0.0
        {
            hi = problem.thresholds()[cost] - safe.margins[cost];
        }
        lo + (hi - lo) * dice(number, 5 + q, a)
    };
    let means = (0..=costs)
        .map(|q| (0..actions as u64).map(|a| mean(q, a)).collect())
        .collect();
    (problem, means)
}

fn play(policy: Policy, paper: bool, cases: u64) -> Seen {
    let mut seen = Seen::default();
    for number in 0..cases {
        let (problem, means) = case(policy, paper, number);
        let key = Key::from(number);
        let mut engine = Engine::new(problem, key);
        if engine.plan().blind && !paper {
            continue;
        }
        let mut known = Known::before(engine.plan());
        while !engine.is_done() {
            check_epoch(&engine, &mut known, key, &mut seen);
            let epoch = smooth_epoch(&engine, &means);
            engine.tell_epoch(&epoch).unwrap();
            if engine.open_record().kind == Kind::Commit {
                break;
            }
        }
    }
    println!("{policy:?} {seen:?}");
    seen
}

#[test]
fn free_strategies_follow_from_the_estimates() {
    let seen = play(Policy::Free, false, 300);
    assert!(seen.cautious > 300, "{seen:?}");
}

#[test]
fn soft_strategies_follow_from_the_estimates() {
    let seen = play(Policy::Soft, false, 300);
    assert!(
        seen.infeasible > 10 && seen.cautious > 100 && seen.uncautious > 100,
        "{seen:?}"
    );
    assert!(
        seen.clipped_low > 100 && seen.clipped_high > 100,
        "{seen:?}"
    );
}

/// Mixing is rare, as it ends the doubt it lives on; where it takes over exactly is tested beside the rule.
#[test]
fn hard_strategies_follow_from_the_estimates() {
    let seen = play(Policy::Hard, false, 300);
    assert!(
        seen.mix >= 5 && seen.plan > 500 && seen.planned_mixtures > 50,
        "{seen:?}"
    );
    assert!(
        seen.cautious > 100 && seen.clipped_low > 100 && seen.clipped_high > 100,
        "{seen:?}"
    );
}

/// Profile paper, whose decisions are those of values version 1.
#[test]
fn paper_strategies_follow_from_the_estimates() {
    for policy in [Policy::Free, Policy::Soft, Policy::Hard] {
        let seen = play(policy, true, 60);
        assert!(
            policy != Policy::Hard || (seen.mix > 100 && seen.plan == 0),
            "{seen:?}"
        );
    }
}
