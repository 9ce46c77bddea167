//! What a horizon sees of a world: the sentence before the run, and what runs then do.

use std::fs;
use std::path::Path;

use debora::lab::replicate::{Contestant, Simulator};
use debora::lab::world::{Bernoulli, Truth};
use debora::measure::{SpecText, WorldGap, world_gaps};
use debora::{Plan, Problem};

const HORIZON: u64 = 2_000_000;

fn spec(text: &str) -> SpecText {
    SpecText::parse(text.to_owned(), "gaps.toml".into(), Vec::new()).unwrap()
}

fn two_actions(rewards: [f64; 2]) -> SpecText {
    spec(&format!(
        "policy = 'free'\nhorizon = 1e6\nrho = 0.3\nkey = 5\nactions = ['a', 'b']\n[world]\nkind = 'bernoulli'\nreward = {rewards:?}"
    ))
}

fn gaps_of(spec: &SpecText) -> Vec<WorldGap> {
    let world = spec
        .world(&|_| unreachable!("only tables are read from files"))
        .unwrap();
    world_gaps(&spec.plan, &*world.world)
}

/// The place of the largest number; the first of several.
fn main_action(strategy: &[f64]) -> usize {
    let largest = strategy.iter().copied().fold(f64::MIN, f64::max);
    strategy.iter().position(|&x| x == largest).unwrap()
}

/// How many of so many runs end with another main action than the first.
fn misses(spec: &SpecText, runs: u64) -> usize {
    let world = spec
        .world(&|_| unreachable!("only tables are read from files"))
        .unwrap();
    let experiment = spec.experiment(&world, Simulator::Epochs);
    (0..runs)
        .map(|pair| experiment.run(Contestant::Debora, pair, 0).unwrap())
        .filter(|run| main_action(&run.final_strategy) != 0)
        .count()
}

/// A lead that is seen is picked with probability .9, if the means are the true ones: 40 of 200 runs or more miss it with
/// probability below 2e-5 (exact binomial tail). Half of it with samples that scatter is missed more often.
#[test]
fn a_gap_that_is_seen_is_told_apart_and_a_small_one_need_not_be() {
    let plan = Plan::of(two_actions([0.5, 0.5]).problem().clone());
    let sight = plan.sight().unwrap().least_difference(0.5).unwrap();
    let large = two_actions([0.5 + sight * 1.001, 0.5]);
    let small = two_actions([0.5 + sight / 100.0, 0.5]);
    assert!(gaps_of(&large)[0].seen && !gaps_of(&small)[0].seen);
    let [large, small] = [large, small].map(|spec| misses(&spec, 200));
    assert!(large < 40, "{large} of 200 runs missed a gap of {sight}");
    assert!(
        small >= 40,
        "{small} of 200 runs missed a hundredth of {sight}"
    );
}

/// By hand: 9 and 12 against what the plan's last level can tell, and the horizon that is named does what is said of it.
#[test]
fn the_horizon_that_is_named_sees_the_gap_and_the_one_before_it_does_not() {
    let text = "policy = 'soft'\nhorizon = 2e6\nrho = 0.1\nactions = ['9', '12', '15']\n[reward]\nname = 'revenue'\n\
        range = [0, 19]\n[[cost]]\nname = 'complaints'\nthreshold = 0.3\n[world]\nkind = 'bernoulli'\n\
        reward = [2.7, 3.12, 6]\ncost.complaints = [0.1, 0.1, 0.6]";
    let spec = spec(text);
    let gaps = gaps_of(&spec);
    let of = |actions: &[&str], quantity: &str| {
        let found = gaps
            .iter()
            .find(|gap| gap.actions == actions && gap.quantity == quantity);
        found
            .unwrap_or_else(|| panic!("{actions:?} in {quantity}: {gaps:?}"))
            .clone()
    };
    // 12 and 15 are mixed, so that nothing has to tell them apart but their costs.
    assert_eq!(gaps.len(), 4, "{gaps:?}");
    let prices = of(&["12", "9"], "revenue");
    assert!((prices.gap - 0.42).abs() < 1e-12 && !prices.seen);
    let sight = spec.plan.sight().unwrap();
    let least = sight.least_difference(2.7 / 19.0).unwrap();
    assert!((prices.sight.unwrap() - least * 19.0).abs() < 1e-12);
    let complaints = of(&["15"], "complaints");
    assert!((complaints.gap - 0.3).abs() < 1e-12 && complaints.seen);
    assert_eq!(complaints.sight, sight.least_difference(0.3));
    assert_eq!(complaints.horizon_needed, None);

    let needed = prices.horizon_needed.unwrap();
    let sees = |horizon: u64| {
        let problem: Problem = spec.problem().with_horizon(horizon).unwrap();
        let sight = Plan::of(problem).sight().unwrap();
        sight.tells_apart(3.12 / 19.0, 2.7 / 19.0)
    };
    assert!(needed > HORIZON && sees(needed));
    assert!(!sees((needed as f64 / 1.06) as u64));
}

#[test]
fn what_does_not_matter_to_the_best_strategy_is_left_out() {
    // b costs too much alone and brings the most: its cost is compared, its reward is not. c and d are equal.
    let problem = Problem::soft(["a", "b", "c", "d"], 1_000_000, 0.3)
        .cost("price", [0.0, 1.0], 0.2)
        .build()
        .unwrap();
    let means = [vec![0.6, 0.9, 0.5, 0.5], vec![0.2, 0.2, 0.2, 0.2]];
    let world = Bernoulli::new(&problem, &means).unwrap();
    let plan = Plan::of(problem);
    let gaps = world_gaps(&plan, &world);
    // All costs are at the threshold, and that is no difference.
    let named: Vec<&[String]> = gaps.iter().map(|gap| &*gap.actions).collect();
    assert_eq!(named, [["b", "a"], ["b", "c"], ["b", "d"]]);
    let blind = Plan::of(plan.problem.with_horizon(100).unwrap());
    let gaps = world_gaps(&blind, &world);
    assert!(
        gaps.iter()
            .all(|gap| gap.sight.is_none() && !gap.seen && gap.horizon_needed.is_some())
    );
}

/// Fixed keys: nothing here is left to chance.
#[test]
fn the_examples_find_their_best_action_in_most_pairs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let specs: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|end| end == "toml"))
        .collect();
    let mut simulated = 0;
    for file in specs {
        let text = fs::read_to_string(&file).unwrap();
        let spec = SpecText::parse(text, file.display().to_string(), Vec::new()).unwrap();
        if spec.spec.world.is_none() {
            continue;
        }
        simulated += 1;
        let world = spec
            .world(&|path| Ok(Box::new(fs::File::open(path)?)))
            .unwrap();
        let experiment = spec.experiment(&world, Simulator::Epochs);
        let pairs = 20;
        let found = (0..pairs)
            .filter(|&index| {
                let truth = Truth::of(spec.problem(), &*experiment.world(index, 0));
                let best = main_action(truth.best.unwrap().probabilities());
                let pair = experiment.pair(Contestant::Debora, index).unwrap();
                pair.runs
                    .iter()
                    .all(|run| main_action(&run.final_strategy) == best)
            })
            .count();
        assert!(
            2 * found > pairs as usize,
            "{}: {found} of {pairs}",
            file.display()
        );
    }
    assert!(simulated >= 6, "{simulated}");
}
