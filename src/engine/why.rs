//! Why an epoch plays its strategy: found again from its record and the estimates in force, by the functions that found it.
//!
//! ```text
//! least_i = low_i.x,  x the optimist's strategy, or the moderate one where that is played      moderate_i = mid_i.x of it
//! most_i = sigma (alpha_i - margin_i) + (1 - sigma) high_i.candidate
//! ```
//!
//! A limit is tight where the optimist's strategy costs its threshold at least, where the moderate one costs it at middle
//! costs, or where what is played may cost it.

use super::Estimates;
use super::grounds::Grounds;
use crate::lp::Solver;
use crate::plan::Plan;
use crate::policy::{self, NextStrategy, View};
use crate::problem::{Policy, Problem};
use crate::record::{EpochRecord, Estimate, Kind, Rule};

/// An epoch's strategy and what it follows from, on the unit scale.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// How the strategy was found.
    pub kind: Kind,
    /// Which of its strategies a policy with limits plays.
    pub rule: Option<Rule>,
    /// The strategy before mixing with the safe one.
    pub candidate: Vec<f64>,
    /// The weight of the safe strategy.
    pub sigma: f64,
    /// The strategy played.
    pub strategy: Vec<f64>,
    /// The most that each action's reward may be: what is maximised. Empty where no estimate decides.
    pub index: Vec<f64>,
    /// The strategy that maximises it while costs are the least they may be or, if that is more than some threshold whatever
    /// is played, the one that exceeds the thresholds least. Empty without limits, and where no estimate decides.
    pub optimist: Vec<f64>,
    /// What the strategy played gives by the estimates, the reward and then each limited cost. Empty where none decides.
    pub expected: Vec<f64>,
    /// Each limited cost, in order. Empty under policy free.
    pub limits: Vec<LimitAt>,
}

/// A limit, and what it bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitAt {
    /// The limit on the cost's mean.
    pub threshold: f64,
    /// What the optimist's strategy costs at least, or the moderate one where that is played. None where no estimate decides.
    pub least: Option<f64>,
    /// What the moderate strategy costs at middle costs. None where another is played.
    pub moderate: Option<f64>,
    /// What the strategy played costs at most. None under soft limits, which promise nothing of it.
    pub most: Option<f64>,
}

impl Why {
    /// Of an epoch, given the estimates in force at its start: the latest of every action that has one.
    ///
    /// # Panics
    ///
    /// If the record or an estimate is not of this plan's problem.
    pub fn of(plan: &Plan, record: &EpochRecord, estimates: &[Estimate]) -> Self {
        let latest = Estimates::recorded(plan, estimates);
        let grounds = Grounds {
            plan,
            counts: &record.counts,
            decided: record.decided(),
            bounds: &latest.bounds,
        };
        let solver = &mut Solver::default();
        let next = grounds.next_strategy(solver);
        // After a commitment or a pick no estimate is asked for.
        let view = Some(grounds.view()).filter(|_| record.decided().is_none());
        let problem = &plan.problem;
        let optimist = view
            .as_ref()
            .and_then(|view| optimist(view, problem, solver));
        let estimated = matches!(view, Some(View::Estimate(_)));
        let expected = latest.values.chunks(record.counts.len());
        Self {
            limits: limits(problem, view.as_ref(), &next, optimist.as_ref()),
            expected: expected
                .filter(|_| estimated)
                .map(|values| next.strategy.expectation(values))
                .collect(),
            optimist: optimist.map_or(Vec::new(), |found| found.strategy.into_probabilities()),
            index: match view {
                Some(View::Estimate(bounds)) => bounds.index.clone(),
                _ => Vec::new(),
            },
            kind: next.kind,
            rule: next.rule,
            candidate: next.candidate().probabilities().to_vec(),
            sigma: next.sigma,
            strategy: next.strategy.into_probabilities(),
        }
    }
}

impl Estimates {
    /// As an engine had them that made these last.
    fn recorded(plan: &Plan, estimates: &[Estimate]) -> Self {
        let mut latest = Self::before(plan);
        for estimate in estimates {
            let mut quantities = plan.problem.estimated().iter();
            let place = quantities
                .position(|&quantity| quantity == estimate.quantity as usize)
                .expect("an estimate is of a quantity that decides");
            latest.note(plan, place, estimate);
        }
        for action in estimates.iter().map(|estimate| estimate.action as usize) {
            latest.bounds.set_span(action);
        }
        latest
    }
}

fn optimist(view: &View, problem: &Problem, solver: &mut Solver) -> Option<NextStrategy> {
    let decides = matches!(view, View::Estimate(_)) && problem.policy() != Policy::Free;
    // Policy hard begins with it, too, and shows it no more once it mixes or plans.
    decides.then(|| policy::optimistic(view, problem.thresholds(), solver))
}

fn limits(
    problem: &Problem,
    view: Option<&View>,
    played: &NextStrategy,
    optimist: Option<&NextStrategy>,
) -> Vec<LimitAt> {
    let Some(view) = view.filter(|_| problem.policy() != Policy::Free) else {
        return Vec::new();
    };
    let worst = policy::worst_costs(view, played.candidate());
    let bounds = match view {
        View::Estimate(bounds) => Some(*bounds),
        View::Explore { .. } => None,
    };
    // What is not played would say nothing of what is.
    let moderate = (played.rule == Some(Rule::Moderate)).then_some(&played.strategy);
    let hopeful = moderate.or(optimist.map(|found| &found.strategy));
    let limits = problem.thresholds().iter().enumerate();
    limits
        .map(|(cost, &threshold)| LimitAt {
            threshold,
            least: bounds
                .zip(hopeful)
                .map(|(bounds, strategy)| bounds.cost_of(strategy, &bounds.low, cost)),
            moderate: bounds
                .zip(moderate)
                .map(|(bounds, strategy)| bounds.cost_of(strategy, &bounds.mid, cost)),
            // The safe strategy's cost is known by its margin, better than by the estimates of its actions.
            most: problem.safe().map(|safe| {
                let known = threshold - safe.margins[cost];
                played.sigma * known + (1.0 - played.sigma) * worst[cost]
            }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Told;
    use crate::{Ask, Engine, Key};

    /// Plays some rounds, action a earning and costing what the world says of it; the records in order, the open one last.
    fn records(problem: &Problem, world: &[(f64, &[f64])]) -> Vec<EpochRecord> {
        let mut engine = Engine::new(problem.clone(), Key::from(7u64));
        let mut records = Vec::new();
        while let Ask::Decision(decision) = engine.ask() {
            let (reward, costs) = world[decision.action as usize];
            if let Told::Closed(record) = engine.tell(decision.round, reward, costs).unwrap() {
                records.push(*record);
            }
            if decision.round == 60_000 {
                break;
            }
        }
        records.push(engine.open_record().clone());
        records
    }

    /// Explains every epoch from records alone, and holds it against what was played.
    fn explained(problem: &Problem, world: &[(f64, &[f64])]) -> Vec<Why> {
        let plan = Plan::of(problem.clone());
        let mut latest: Vec<Estimate> = Vec::new();
        let explain = |record: EpochRecord| {
            for made in &record.estimates {
                latest.retain(|old| (old.action, old.quantity) != (made.action, made.quantity));
                latest.push(*made);
            }
            let why = Why::of(&plan, &record, &latest);
            let found = (why.kind, why.rule, why.sigma);
            assert_eq!(
                found,
                (record.kind, record.rule, record.sigma),
                "{record:?}"
            );
            assert_eq!(why.candidate, record.candidate, "{record:?}");
            assert_eq!(why.strategy, record.strategy, "{record:?}");
            why
        };
        records(problem, world).into_iter().map(explain).collect()
    }

    fn kinds(whys: &[Why], kind: Kind) -> Vec<&Why> {
        whys.iter().filter(|why| why.kind == kind).collect()
    }

    #[test]
    fn without_limits_a_clear_lead_commits_and_else_one_is_picked() {
        let close = Problem::free(["a", "b", "c"], 6_000, 0.5).build().unwrap();
        let whys = explained(&close, &[(0.5, &[]), (0.52, &[]), (0.3, &[])]);
        // The last epoch is closed and still the open record.
        assert_eq!(kinds(&whys, Kind::Explore).len(), whys.len() - 2);
        let last = whys.last().unwrap();
        assert_eq!((last.kind, last.rule), (Kind::Pick, None));
        assert!(last.index.is_empty() && last.expected.is_empty() && last.limits.is_empty());
        let far = Problem::free(["a", "b"], 50_000, 0.3).delta(0.5);
        let clear = explained(&far.build().unwrap(), &[(0.0, &[]), (1.0, &[])]);
        let last = clear.last().unwrap();
        assert_eq!(
            (last.kind, &*last.strategy),
            (Kind::Commit, &[0.0, 1.0][..])
        );
        assert!(last.index.is_empty() && last.expected.is_empty());
    }

    /// Where two limits bind, the optimist costs their thresholds; where none can be kept, the largest excess is the least.
    #[test]
    fn soft_limits_that_bind_are_tight_and_those_that_cannot_be_kept_are_exceeded() {
        let problem = |threshold: f64| {
            Problem::soft(["a", "b", "c"], 200_000, 0.9)
                .cost("price", [0.0, 1.0], threshold)
                .cost("delay", [0.0, 1.0], 0.5)
                .build()
                .unwrap()
        };
        let world: [(f64, &[f64]); 3] =
            [(0.1, &[0.1, 0.1]), (0.9, &[0.9, 0.2]), (0.5, &[0.2, 0.9])];
        let whys = explained(&problem(0.3), &world);
        let last = whys.last().unwrap();
        assert_eq!(last.kind, Kind::Estimate);
        let slack = |at: &LimitAt| at.threshold - at.least.unwrap();
        assert!(
            last.limits.iter().any(|at| slack(at).abs() < 1e-9),
            "{last:?}"
        );
        assert!(
            last.limits
                .iter()
                .all(|at| slack(at) > -1e-9 && at.most.is_none()),
            "{last:?}"
        );
        assert_eq!((last.expected.len(), last.optimist.len()), (3, 3));
        assert!(
            (last.rule == Some(Rule::Optimistic)) == (last.optimist == last.strategy),
            "{last:?}"
        );
        let dear: [(f64, &[f64]); 3] = [(0.1, &[0.9, 0.1]), (0.9, &[0.9, 0.2]), (0.5, &[0.9, 0.9])];
        let whys = explained(&problem(0.1), &dear);
        let last = whys.last().unwrap();
        assert_eq!(last.kind, Kind::Infeasible);
        assert!(slack(&last.limits[0]) < 0.0, "{last:?}");
    }

    #[test]
    fn under_hard_limits_what_is_played_may_cost_the_threshold_and_never_more() {
        let mut rules = Vec::new();
        for (horizon, costs) in [(200_000, [0.1, 0.9]), (200_000, [0.05, 0.5])] {
            let problem = Problem::hard(["a", "b"], horizon, 0.9)
                .cost("price", [0.0, 1.0], 0.5)
                .safe_with_margins([1.0, 0.0], [0.2])
                .build()
                .unwrap();
            let [a, b] = costs.map(|cost| vec![cost]);
            for why in explained(&problem, &[(0.2, &a), (0.9, &b)]) {
                let at = why.limits[0];
                assert!(at.most.unwrap() <= at.threshold + 1e-9, "{why:?}");
                assert_eq!(at.least.is_none(), why.kind == Kind::Explore);
                rules.extend(why.rule);
            }
        }
        assert!(rules.contains(&Rule::Mix) && rules.contains(&Rule::Plan));
    }

    /// There actions that were never played have an index, and every action is estimated anew.
    #[test]
    fn the_published_profile_is_explained_too() {
        for problem in [
            Problem::soft(["a", "b"], 64, 0.9).cost("price", [0.0, 1.0], 0.5),
            Problem::free(["a", "b"], 64, 0.9).cost("price", [0.0, 1.0], 0.5),
        ] {
            let problem = problem.paper().build().unwrap();
            let whys = explained(&problem, &[(0.2, &[0.1]), (0.9, &[0.9])]);
            assert!(!kinds(&whys, Kind::Estimate).is_empty());
        }
    }
}
