//! The lab as its users meet it: worlds, pairs, parts, metrics; equal bytes however the work is divided.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use debora::lab::LabError;
use debora::lab::metrics::{Run, Spread, checkpoints, clopper_pearson, lower_limit};
use debora::lab::part::{PartPairs, part_indices};
use debora::lab::replicate::{Contestant, Experiment, Pair, Simulator};
use debora::lab::summary::{Promise, Summary};
use debora::lab::world::{Bernoulli, Beta, Discrete, Recorded, Truth, World};
use debora::problem::Draft;
use debora::{Key, Kind, Plan, Problem, WorldKey};

use crate::common::names;

fn soft(horizon: u64) -> Draft {
    Problem::soft(names(3), horizon, 0.5).cost("price", [0.0, 2.0], 1.0)
}

fn means() -> Vec<Vec<f64>> {
    vec![vec![0.3, 0.5, 0.7], vec![0.4, 1.0, 1.4]]
}

fn experiment(draft: Draft, means: &[Vec<f64>]) -> Experiment {
    let problem = draft.build().unwrap();
    let world = Arc::new(Bernoulli::new(&problem, means).unwrap());
    Experiment {
        worlds: [world.clone(), world],
        key: Key::from(42u64),
        world_key: WorldKey::from(7u64),
        simulator: Simulator::Epochs,
        checkpoints: checkpoints(problem.horizon()),
        plan: Arc::new(Plan::of(problem)),
    }
}

fn pairs(experiment: &Experiment, indices: std::ops::Range<u64>) -> Vec<Pair> {
    experiment
        .pairs(
            Contestant::Debora,
            indices,
            &|_| (),
            &AtomicBool::new(false),
        )
        .unwrap()
}

fn part(pairs: Vec<Pair>, total: u64) -> PartPairs {
    PartPairs::new("spec", total, vec![("debora".to_owned(), pairs)])
}

fn json(part: &PartPairs) -> String {
    serde_json::to_string(part).unwrap()
}

#[test]
fn any_number_of_threads_and_parts_gives_the_same_bytes() {
    let experiment = experiment(soft(1_000_000), &means());
    let total = 40;
    let whole = json(&part(pairs(&experiment, 0..total), total));
    for threads in [1, 2, 7] {
        let stop = AtomicBool::new(false);
        let pairs = experiment.pairs_on(threads, Contestant::Debora, 0..total, &|_| (), &stop);
        let parallel = json(&part(pairs.unwrap(), total));
        assert_eq!(parallel, whole, "{threads} threads");
    }
    for count in [1, 3, 11] {
        // Through their files: floats are written so that they are read back to the bit.
        let parts: Vec<PartPairs> = (1..=count)
            .rev()
            .map(|number| part_indices(total, number, count).unwrap())
            .map(|indices| json(&part(pairs(&experiment, indices), total)))
            .map(|text| serde_json::from_str(&text).unwrap())
            .collect();
        let merged = PartPairs::merge(&parts).unwrap();
        let indices = merged.players[0].1.iter().map(|pair| pair.index);
        assert!(indices.eq(0..total));
        assert_eq!(json(&merged), whole, "{count} parts");
    }
}

#[test]
fn parts_cover_every_pair_once() {
    for (total, parts) in [(10, 3), (1, 4), (1_000, 7), (0, 2)] {
        let covered: Vec<u64> = (1..=parts)
            .flat_map(|number| part_indices(total, number, parts).unwrap())
            .collect();
        assert_eq!(covered, (0..total).collect::<Vec<_>>());
    }
    assert_eq!(
        part_indices(10, 0, 3).unwrap_err().to_string(),
        "shard 0/3 does not exist; shards are 1 to 3"
    );
    assert!(part_indices(10, 4, 3).is_err());
}

#[test]
fn parts_that_do_not_fit_are_refused_with_the_reason() {
    let experiment = experiment(soft(10_000), &means());
    let [one, two, three] = [0..2, 2..4, 4..6].map(|indices| part(pairs(&experiment, indices), 6));
    let refused = |parts: &[PartPairs], reason: &str| {
        let error = PartPairs::merge(parts).unwrap_err();
        assert_eq!(
            error,
            LabError::PartMerge {
                reason: reason.to_owned()
            }
        );
    };
    refused(&[], "there are none");
    refused(
        &[one.clone(), three.clone()],
        "pairs 2 to 3 of debora are missing, of 6 from 0 on; there are only shard number 1, shard number 2",
    );
    let mut other = two.clone();
    other.fingerprint = "other".into();
    refused(
        &[one.clone(), other],
        "shard number 1 has spec spec, shard number 2 has other",
    );
    let mut other = two.clone();
    other.values_version += 1;
    refused(
        &[one.clone(), other],
        "shard number 1 has values version 3, shard number 2 has 4",
    );
    let mut other = two.clone();
    other.total = 7;
    refused(
        &[one.clone(), other],
        "shard number 1 has pairs in all 6, shard number 2 has 7",
    );
    let mut other = two.clone();
    other.players[0].0 = "ucb1".into();
    refused(
        &[one.clone(), other],
        "shard number 1 has players debora, shard number 2 has ucb1",
    );
    let mut other = two.clone();
    other.players[0].1[0].runs[0].violation = 0.25;
    let violation = two.players[0].1[0].runs[0].violation;
    refused(
        &[one.clone(), two.clone(), other],
        &format!(
            "shard number 2 and shard number 3 both have pair 2 of debora, and they differ: violation {violation} and 0.25"
        ),
    );
    let mut other = three.clone();
    other.players[0].1[1].index = 9;
    let mut last = three.clone();
    last.players[0].1.remove(0);
    refused(
        &[one.clone(), two.clone(), other, last],
        "shard number 3 has pair 9 of debora, beyond the 6 of the whole",
    );
    assert_eq!(
        PartPairs::merge(&[three, one.clone(), two, one])
            .unwrap()
            .players[0]
            .1
            .len(),
        6
    );
}

#[test]
fn progress_is_told_and_cancelling_stops() {
    let experiment = experiment(soft(10_000), &means());
    let (most, calls, cancel) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let progress = |done: u64| {
        most.fetch_max(done, Ordering::Relaxed);
        calls.fetch_add(1, Ordering::Relaxed);
    };
    experiment
        .pairs(Contestant::Debora, 0..30, &progress, &cancel)
        .unwrap();
    assert_eq!((most.into_inner(), calls.into_inner()), (30, 30));
    let stop = |done: u64| cancel.store(done >= 3, Ordering::Relaxed);
    assert_eq!(
        experiment.pairs(Contestant::Debora, 0..100_000, &stop, &cancel),
        Err(LabError::Cancelled)
    );
}

/// A trace of the run, told stretch by stretch, gives the same regret and violation when summed round by round.
#[test]
fn curves_are_exact_at_every_checkpoint() {
    let experiment = experiment(soft(30_000), &means());
    let truth = Truth::of(&experiment.plan.problem, &*experiment.worlds[0]);
    let world = &experiment.worlds[0];
    let (mut regret, mut violation, mut at) = (0.0, 0.0, vec![]);
    let run = experiment
        .run_observed(Contestant::Debora, 3, 0, &mut |stretch| {
            let strategy = stretch.player.strategy();
            for round in stretch.first_round..stretch.first_round + stretch.rounds {
                regret += truth.reward.unwrap() - strategy.expectation(&world.means()[0]);
                violation += (strategy.expectation(&world.means()[1]) - 0.5).max(0.0);
                if experiment.checkpoints.contains(&round) {
                    at.push((regret, violation));
                }
            }
        })
        .unwrap();
    assert_eq!(run.regret_curve.len(), experiment.checkpoints.len());
    for ((regret, violation), (one, two)) in at
        .iter()
        .zip(run.regret_curve.iter().zip(&run.violation_curve))
    {
        assert!((regret - one).abs() < 1e-6 && (violation - two).abs() < 1e-6);
    }
    assert_eq!(
        (run.regret_curve.last(), run.violation_curve.last()),
        (run.regret.as_ref(), Some(&run.violation))
    );
    assert_eq!(
        (run.counts.iter().sum::<u64>(), run.rounds),
        (30_000, 30_000)
    );
}

/// Three actions of mean 2/3: however they are mixed, a round is worth as much, and nobody earns more than the best strategy.
#[test]
fn where_means_are_equal_nothing_is_lost() {
    let means = [vec![2.0 / 3.0; 3], vec![0.4, 1.0, 1.4]];
    let experiment = experiment(soft(1_000_000), &means);
    for pair in pairs(&experiment, 0..20) {
        for run in &pair.runs {
            assert_eq!(run.regret, Some(0.0), "{run:?}");
            assert!(run.regret_curve.iter().all(|&regret| regret == 0.0));
        }
    }
}

#[test]
fn checkpoints_are_four_a_decade_and_end_with_the_horizon() {
    assert_eq!(checkpoints(100), [1, 2, 3, 6, 10, 18, 32, 56, 100]);
    assert_eq!(checkpoints(1), [1]);
    assert_eq!(checkpoints(1_000_000_000_000).len(), 49);
}

/// The optimal safe strategy of a world is the one worked out by hand: half of actions 0 and 2.
#[test]
fn a_world_knows_its_optimal_safe_strategy() {
    let problem = soft(100).build().unwrap();
    let world = Bernoulli::new(&problem, &[vec![0.2, 0.3, 1.0], vec![0.0, 1.0, 2.0]]).unwrap();
    let truth = Truth::of(&problem, &world);
    assert_eq!(truth.best.unwrap().probabilities(), [0.5, 0.0, 0.5]);
    assert_eq!(truth.reward, Some(0.6));
    let unsafe_world =
        Bernoulli::new(&problem, &[vec![0.2, 0.3, 1.0], vec![1.5, 1.6, 2.0]]).unwrap();
    assert_eq!(Truth::of(&problem, &unsafe_world).best, None);
    let free = Problem::free(names(3), 100, 0.5)
        .cost("price", [0.0, 2.0], 1.0)
        .build()
        .unwrap();
    assert_eq!(Truth::of(&free, &unsafe_world).reward, Some(1.0));
}

#[test]
fn without_a_safe_strategy_there_is_no_regret_but_violation() {
    let experiment = experiment(soft(1_000_000), &[vec![0.3, 0.5, 0.7], vec![1.5, 1.6, 2.0]]);
    let run = experiment.run(Contestant::Debora, 0, 0).unwrap();
    assert_eq!((run.regret, run.regret_curve.len()), (None, 0));
    assert!(
        run.violation > 0.2 * 1_000_000.0
            && run.infeasible_epochs > 0
            && run.unsafe_rounds == 1_000_000
    );
    let summary = Summary::of(&experiment.plan, &pairs(&experiment, 0..5));
    assert_eq!(
        (summary.regret, summary.broken(&experiment.plan)),
        (None, vec![])
    );
}

#[test]
fn a_true_margin_below_the_stated_one_is_seen() {
    let problem = Problem::hard(names(2), 100, 0.5)
        .cost("c", [0.0, 1.0], 0.5)
        .safe_with_margins([1.0, 0.0], [0.4]);
    let problem = problem.build().unwrap();
    let world = Bernoulli::new(&problem, &[vec![0.5, 0.5], vec![0.25, 0.5]]).unwrap();
    assert!((Truth::of(&problem, &world).margins_missing[0] - 0.15).abs() < 1e-12);
}

/// Two runs on one world, round by round, meet the same feedback at the same pull of an action, whoever plays and whenever.
#[test]
fn two_players_meet_the_same_stacks() {
    let problem = soft(100).build().unwrap();
    let world = Bernoulli::new(&problem, &means()).unwrap();
    let key = WorldKey::from(5u64);
    let stack = |action: u32| -> Vec<[f64; 2]> {
        (0..50)
            .map(|pull| {
                let mut values = [0.0; 2];
                world.pull(key, action, pull, &mut values);
                values
            })
            .collect()
    };
    assert_eq!(stack(1), stack(1));
    assert_ne!(stack(1), stack(2));
    let mut experiment = experiment(soft(20_000), &means());
    experiment.simulator = Simulator::Rounds;
    let other = Experiment {
        plan: Arc::new(Plan::of(soft(20_000).growth(4).build().unwrap())),
        ..experiment.clone()
    };
    let rewards = |experiment: &Experiment| experiment.run(Contestant::Debora, 0, 0).unwrap();
    assert_eq!(rewards(&experiment), rewards(&experiment));
    assert_ne!(rewards(&experiment).counts, rewards(&other).counts);
}

/// Splits are explained: the estimate named lies on two sides of the edge named, each within a cell.
#[test]
fn a_split_names_the_estimate_and_the_edge() {
    let experiment = experiment(soft(1_000_000), &means());
    let pairs = pairs(&experiment, 0..300);
    let splits: Vec<_> = pairs
        .iter()
        .filter_map(|pair| pair.divergence.as_ref())
        .collect();
    assert!(
        splits.len() > 5 && splits.len() < 150,
        "{} of 300 split",
        splits.len()
    );
    for split in splits {
        let estimate = split.estimate.as_ref().expect("debora rounds estimates");
        let [one, two] = estimate.means;
        assert_ne!(estimate.indices[0], estimate.indices[1]);
        assert!(
            (one - estimate.edge) * (two - estimate.edge) <= 1e-15,
            "{estimate:?}"
        );
        assert!((one - estimate.edge).abs() <= estimate.cell, "{estimate:?}");
        assert!(split.round > 1 && split.epoch > 0);
    }
    for pair in pairs.iter().filter(|pair| pair.divergence.is_none()) {
        assert_eq!(pair.runs[0].digest, pair.runs[1].digest);
        assert_eq!(pair.runs[0].counts, pair.runs[1].counts);
    }
    for pair in pairs.iter().filter(|pair| pair.divergence.is_some()) {
        assert_ne!(pair.runs[0].digest, pair.runs[1].digest);
    }
}

/// With other means in the second world the promise breaks, and the summary says so; with the same it does not.
#[test]
fn a_broken_promise_is_measured_as_broken() {
    let mut experiment = experiment(soft(1_000_000), &means());
    let summary = Summary::of(&experiment.plan, &pairs(&experiment, 0..200));
    assert_eq!(summary.broken(&experiment.plan), vec![]);
    assert!(summary.identical_rate >= summary.promised);
    let other = [vec![0.5, 0.7, 0.4], vec![0.4, 0.6, 1.4]];
    experiment.worlds[1] = Arc::new(Bernoulli::new(&experiment.plan.problem, &other).unwrap());
    let summary = Summary::of(&experiment.plan, &pairs(&experiment, 0..200));
    let broken = summary.broken(&experiment.plan);
    assert_eq!(broken[0].promise, Promise::Identical);
    assert_eq!(
        serde_json::to_value(&broken[0]).unwrap()["promise"],
        "identical decisions"
    );
    assert!(broken[0].limit < 0.5);
}

/// Against scipy 1.x, `scipy.stats.beta.ppf`.
#[test]
fn clopper_pearson_intervals_are_exact() {
    let close = |interval: [f64; 2], wanted: [f64; 2]| {
        interval
            .iter()
            .zip(wanted)
            .for_each(|(one, two)| assert!((one - two).abs() < 1e-9, "{interval:?}, {wanted:?}"));
    };
    close(
        clopper_pearson(9_981, 10_000, 0.05),
        [0.9970344978517347, 0.9988557003646984],
    );
    close(clopper_pearson(0, 50, 0.05), [0.0, 0.07112173646419764]);
    close(clopper_pearson(50, 50, 0.05), [0.9288782635358024, 1.0]);
    close(
        clopper_pearson(7, 20, 0.05),
        [0.15390920478454118, 0.5921885345328282],
    );
    assert_eq!(lower_limit(0, 10, 0.001), 0.0);
    // Where inverting the beta law numerically fails or never ends.
    let relative =
        |limit: f64, wanted: f64| assert!((limit / wanted - 1.0).abs() < 1e-6, "{limit} {wanted}");
    relative(lower_limit(7, 5_018_193, 0.025), 5.608321451215398e-7);
    relative(
        lower_limit(100_000_000, 100_000_000, 0.001),
        0.9999999309224495,
    );
    relative(lower_limit(1, 20_000_000, 0.001), 5.002501667792542e-11);
    relative(
        1.0 - lower_limit(60_000_000, 100_000_000, 0.025),
        0.40009602612689665,
    );
}

#[test]
fn spreads_interpolate_between_order_statistics() {
    let spread = Spread::of((0..=100).rev().map(f64::from)).unwrap();
    assert_eq!(
        (spread.mean, spread.p05, spread.median, spread.p95),
        (50.0, 5.0, 50.0, 95.0)
    );
    assert_eq!(Spread::of([]), None);
    assert_eq!(Spread::of([2.0]).unwrap().p95, 2.0);
}

#[test]
fn bad_worlds_are_refused_with_the_value() {
    let problem = soft(100).build().unwrap();
    let says = |result: Result<(), LabError>, message: &str| {
        assert_eq!(result.unwrap_err().to_string(), message)
    };
    let bernoulli = |means: &[Vec<f64>]| Bernoulli::new(&problem, means).map(|_| ());
    says(
        bernoulli(&[vec![0.5; 3]]),
        "the world has 1 quantities where 2 are needed; give one for each",
    );
    says(
        bernoulli(&[vec![0.5; 3], vec![0.5; 2]]),
        "the world has 2 actions where 3 are needed; give one for each",
    );
    let outside = |value: &str| {
        format!(
            r#"the world gives "price" the value {value}, outside its range [0.0, 2.0]; use the range's units"#
        )
    };
    says(
        bernoulli(&[vec![0.5; 3], vec![0.5, 2.5, 0.1]]),
        &outside("2.5"),
    );
    says(
        bernoulli(&[vec![0.5; 3], vec![0.5, f64::NAN, 0.1]]),
        &outside("NaN"),
    );
    let beta = |concentration: f64| Beta::new(&problem, &means(), concentration).map(|_| ());
    says(
        beta(0.0),
        "concentration 0.0 is outside 1e-6 to 1e12; give a number in it, say 10",
    );
    says(
        beta(f64::NAN),
        "concentration NaN is outside 1e-6 to 1e12; give a number in it, say 10",
    );
    let law = |values: Vec<f64>, chances: Vec<f64>| {
        let row = vec![(values, chances); 3];
        Discrete::new(&problem, &[row.clone(), row]).map(|_| ())
    };
    let sum = |sum: &str| {
        format!(
            r#"the world's probabilities for "reward" sum to {sum} or are not all from 0 to 1; make them sum to 1"#
        )
    };
    says(law(vec![0.0, 1.0], vec![0.5, 0.25]), &sum("0.75"));
    says(law(vec![0.0, 1.0], vec![1.5, -0.5]), &sum("1.0"));
    says(
        law(vec![], vec![]),
        &sum("0.0").replace("0.0 or", "-0.0 or"),
    );
    says(
        law(vec![0.0], vec![0.5, 0.5]),
        "the world has 2 probabilities where 1 are needed; give one for each",
    );
    let table = |rows: Vec<(u32, Vec<f64>)>| Recorded::new(&problem, rows).map(|_| ());
    says(
        table(vec![]),
        r#"the table has no row of action "action 0"; each action needs at least one"#,
    );
    says(
        table(vec![(0, vec![0.5, 0.5]), (2, vec![0.5, 0.5])]),
        r#"the table has no row of action "action 1"; each action needs at least one"#,
    );
    says(
        table(vec![(3, vec![0.5, 0.5])]),
        "a row is of action number 3, but the problem has 3 actions, from 0",
    );
    says(
        table(vec![(0, vec![0.5])]),
        "the world has 1 values in a row where 2 are needed; give one for each",
    );
    says(table(vec![(0, vec![0.5, -1.0])]), &outside("-1.0"));
}

#[test]
fn what_would_take_too_long_is_refused() {
    let beta = |horizon: u64| {
        let mut experiment = experiment(soft(horizon), &means());
        let world = Arc::new(Beta::new(&experiment.plan.problem, &means(), 10.0).unwrap());
        experiment.worlds = [world.clone(), world];
        experiment.run(Contestant::Debora, 0, 0)
    };
    assert!(matches!(
        beta(1_000_000_001),
        Err(LabError::WorldSlow {
            draws: 1_000_000_001,
            ..
        })
    ));
    assert_eq!(beta(5_000).unwrap().rounds, 5_000);
    let endless = experiment(soft(1 << 53), &means()).run(Contestant::Debora, 0, 0);
    assert_eq!(
        endless.unwrap_err(),
        LabError::HorizonSimulated { horizon: 1 << 53 }
    );
}

/// Rows are averaged exactly and played; spec/table.rs reads ten million of them.
#[test]
fn a_table_of_many_rows_is_averaged_and_played() {
    let problem = soft(100_000).build().unwrap();
    let rows = (0..210_000u32).map(|row| {
        (
            row % 3,
            vec![f64::from(row % 7) / 6.0, f64::from(row % 5) / 4.0],
        )
    });
    let world: Arc<dyn World> = Arc::new(Recorded::new(&problem, rows).unwrap());
    // Whole cycles of 3, 5 and 7: every residue is as frequent as any other.
    assert!(
        (world.means()[0][1] - 0.5).abs() < 1e-12 && (world.means()[1][2] - 0.25).abs() < 1e-12
    );
    let experiment = Experiment {
        worlds: [world.clone(), world],
        simulator: Simulator::Rounds,
        ..experiment(soft(100_000), &means())
    };
    let run: Run = experiment.run(Contestant::Debora, 0, 0).unwrap();
    assert_eq!(run.rounds, 100_000);
}

/// Runs say how and in which round they decided, and the summary counts commitments: all where the best action is clearly ahead,
/// none where two are alike; then every run picks at its trial's end.
#[test]
fn decisions_are_counted_with_their_round() {
    let draft = || Problem::free(names(2), 40_000, 0.9).delta(0.4);
    let trial = debora::Plan::of(draft().build().unwrap()).trial.unwrap();
    for (means, kind) in [(vec![0.1, 0.9], Kind::Commit), (vec![0.5, 0.5], Kind::Pick)] {
        let experiment = experiment(draft(), &[means]);
        let pairs = pairs(&experiment, 0..50);
        let runs = || pairs.iter().flat_map(|pair| &pair.runs);
        for run in runs() {
            assert_eq!(run.decided_by, Some(kind), "{run:?}");
            let last = 2 * trial.count + 1;
            let round = run.decided_at.unwrap();
            assert!((kind == Kind::Pick) == (round == last) && round <= last);
            let lost = run.lost_at_most.unwrap();
            assert!(lost >= run.regret.unwrap() - 1e-9 && lost <= 40_000.0);
        }
        let summary = Summary::of(&experiment.plan, &pairs);
        let committed = if kind == Kind::Commit { 100 } else { 0 };
        assert_eq!(summary.committed, committed);
        // Of two equal actions both are the best, and which it is comes from the key.
        assert_eq!(summary.same_conclusion.best, Some(1.0));
        let same = summary.same_conclusion.other_keys.unwrap();
        assert_eq!(same == 1.0, kind == Kind::Commit, "{same}");
    }
}
