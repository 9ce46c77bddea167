//! Every strategy again, from nothing but the records: what docs/theory.md says an epoch plays, by enumeration of vertices.
//!
//! Means, offsets, cells, optimistic and pessimistic costs, the weight of the safe strategy, the choice between mixing and
//! planning, and the cautious strategy. None of it uses `src/policy.rs` or the linear program.

use debora::key::{Label, to_uniform};
use debora::line::MeanLine;
use debora::mean::round_to_cell;
use debora::problem::Draft;
use debora::record::Rule;
use debora::{Engine, EpochRecord, Estimate, Key, Kind, Plan, Policy, Problem, Profile};

use crate::common::{best_vertex, names, smooth_epoch};

/// A uniform number for everything that is random about a case.
fn dice(case: u64, of: u64, number: u64) -> f64 {
    to_uniform(Key::from(77u64).block(Label::Derive, [case, of, number])[0])
}

/// What a policy knows of the actions, per quantity and action: the ends of the latest estimate, and what lies caution's part of
/// the way to the upper one.
struct Known {
    low: Vec<Vec<f64>>,
    mid: Vec<Vec<f64>>,
    high: Vec<Vec<f64>>,
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
        let all = |value: f64| vec![vec![value; actions]; quantities];
        Self {
            low: all(0.5 - width),
            mid: all(0.5),
            high: all(0.5 + width),
        }
    }

    /// Ends on the line in profile tight; the most that a reward may be has the excess beyond the line's end on it.
    fn learn(&mut self, plan: &Plan, estimates: &[Estimate]) {
        for estimate in estimates {
            let (q, a) = (estimate.quantity as usize, estimate.action as usize);
            let Some(c) = plan.offset_c else {
                self.low[q][a] = estimate.estimate - estimate.width;
                self.high[q][a] = estimate.estimate + estimate.width;
                continue;
            };
            let (n, w) = (estimate.count as f64, estimate.width);
            let y = (estimate.offset + estimate.index.unwrap() as f64 + 0.5) * estimate.cell;
            let y0 = c.sqrt().atan2((n + c).sqrt());
            let y1 = std::f64::consts::FRAC_PI_2 - y0;
            let mean = |y: f64| {
                let sine = y.max(y0).min(y1).sin();
                (((n + 2.0 * c) * sine * sine - c) / n).clamp(0.0, 1.0)
            };
            let shown = [estimate.low, estimate.estimate, estimate.high];
            for (shown, at) in shown.into_iter().zip([y - w, y, y + w]) {
                assert!((shown - mean(at)).abs() < 1e-9, "{estimate:?}");
            }
            self.low[q][a] = mean(y - w);
            self.mid[q][a] = mean(y + plan.problem.caution() * w);
            let excess = if q == 0 { (y + w - y1).max(0.0) } else { 0.0 };
            self.high[q][a] = (mean(y + w) + excess).min(self.low[q][a] + 1.0);
        }
    }

    fn index(&self) -> Vec<f64> {
        self.high[0].clone()
    }

    /// How far apart the ends of each action lie, at most.
    fn spans(&self) -> Vec<f64> {
        let widest = |a: usize| {
            let ends = self.low.iter().zip(&self.high);
            ends.map(|(low, high)| high[a] - low[a]).fold(0.0, f64::max)
        };
        (0..self.low[0].len()).map(widest).collect()
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
    moderate: u32,
    optimistic: u32,
    least_excess: u32,
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
    let worst = vec![1.0; problem.quantities() - 1];
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

fn check_soft(problem: &Problem, known: &Known, record: &EpochRecord, seen: &mut Seen) {
    let (index, limits) = (known.index(), problem.thresholds());
    let Some((most, best)) = best_vertex(&index, &rows(&known.low[1..]), limits) else {
        assert_eq!(record.kind, Kind::Infeasible);
        return;
    };
    assert_eq!(
        record.kind,
        Kind::Estimate,
        "some strategy may be safe for all that is known"
    );
    let paid = |strategy: &[f64]| 3.0 * dot(&known.spans(), strategy);
    let moderate = best_vertex(&index, &rows(&known.mid[1..]), limits);
    let rule = match &moderate {
        _ if problem.profile() == Profile::Paper => Rule::Optimistic,
        Some((value, moderate)) => {
            let (lost, paid) = (most - value, paid(moderate));
            if (lost - paid).abs() < 1e-9 * paid {
                return;
            }
            if lost <= paid {
                Rule::Moderate
            } else {
                Rule::Optimistic
            }
        }
        // The least excess is not enumerated: what is played in its place must meet both conditions.
        None if record.rule == Some(Rule::Moderate) => {
            let kept = known.low[1..].iter().zip(limits);
            assert!(
                kept.into_iter()
                    .all(|(row, limit)| dot(row, &record.strategy) <= limit + 1e-9)
            );
            assert!(most - dot(&index, &record.strategy) <= paid(&record.strategy) + 1e-9);
            seen.least_excess += 1;
            return;
        }
        None => Rule::Optimistic,
    };
    assert_eq!(record.rule, Some(rule));
    let wanted = match (rule, &moderate) {
        (Rule::Moderate, Some((_, moderate))) => moderate,
        _ => &best,
    };
    seen.moderate += u32::from(rule == Rule::Moderate);
    seen.optimistic += u32::from(rule == Rule::Optimistic);
    assert_near(&record.strategy, wanted, "the best that its rule allows");
}

fn check_hard(problem: &Problem, known: &Known, record: &EpochRecord, seen: &mut Seen) {
    let safe = problem.safe().unwrap();
    let (low, high) = (known.low[1..].to_vec(), known.high[1..].to_vec());
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
    let paid = dot(&known.spans(), &planned) / lambda_min;
    if (given_up - paid).abs() < 1e-9 * paid {
        return;
    }
    if given_up <= paid && !paper {
        assert_eq!(
            record.rule,
            Some(Rule::Plan),
            "what the plan gives up, {given_up}, is paid by spans that its pulls shrink, {paid}"
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
        Some(Rule::Mix),
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
    let high = known.high[1..].to_vec();
    let worth = known.low[0].clone();
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
            interval.high <= problem.threshold(cost).unwrap() + 1e-9,
            "a cautious strategy may cost {} of {}",
            interval.high,
            problem.threshold(cost).unwrap()
        );
    }
}

fn check_epoch(engine: &Engine, known: &mut Known, key: Key, seen: &mut Seen) {
    let plan = engine.plan();
    let problem = &plan.problem;
    let record = engine.open_record();
    check_estimates(plan, record, key);
    known.learn(plan, &record.estimates);
    if record.kind == Kind::Explore {
        check_exploring(plan, record);
        return;
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
        Policy::Soft => check_soft(problem, known, record, seen),
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
                ([a, q, level as u64], level_of.cell, level_of.width)
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
        let Some(offset_c) = plan.offset_c else {
            let (index, rounded) = round_to_cell(estimate.mean, estimate.cell, estimate.offset);
            assert_eq!((estimate.index, estimate.estimate), (index, rounded));
            continue;
        };
        let place = MeanLine::new(estimate.count, offset_c).of_mean(estimate.mean);
        let cells = place / estimate.cell - estimate.offset;
        // From the mean, whose last bit may be another than the sum's: not next to an edge.
        if (cells - cells.round()).abs() > 1e-9 {
            assert_eq!(estimate.index, Some(cells.floor() as i64), "{estimate:?}");
        }
    }
}

fn threshold(case: u64, cost: u64) -> f64 {
    0.3 + 0.3 * dice(case, 1, cost)
}

/// Limits of a case. Thresholds lie where costs do, so that limits bind.
fn limited(draft: Draft, case: u64, costs: u64) -> Draft {
    (0..costs).fold(draft, |draft, cost| {
        draft.cost(format!("cost {cost}"), [0.0, 1.0], threshold(case, cost))
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
            if engine.open_record().decided().is_some() {
                break;
            }
        }
    }
    println!("{policy:?} {seen:?}");
    seen
}

#[test]
fn soft_strategies_follow_from_the_estimates() {
    let seen = play(Policy::Soft, false, 300);
    assert!(
        seen.infeasible > 10 && seen.cautious > 100 && seen.uncautious > 10,
        "{seen:?}"
    );
    assert!(seen.moderate > 100 && seen.optimistic > 5, "{seen:?}");
}

/// Mixing is rarer than these cases reach, as spans pay for most of what a plan gives up: where it takes over is tested beside
/// the rule, and in `safety.rs` on a world that comes to it.
#[test]
fn hard_strategies_follow_from_the_estimates() {
    let seen = play(Policy::Hard, false, 300);
    assert!(seen.plan > 500 && seen.planned_mixtures > 50, "{seen:?}");
    assert!(seen.cautious > 100, "{seen:?}");
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
