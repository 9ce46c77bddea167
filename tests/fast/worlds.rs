//! Random worlds: their laws, the room they leave for safe strategies, which pair meets which, and the values themselves.

use std::sync::Arc;

use std::io;
use std::sync::atomic::AtomicBool;

use debora::lab::metrics::UNSAFE_TOLERANCE;
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::world::{Truth, World};
use debora::measure::SpecText;
use debora::spec::Simulated;

const SOFT: &str = "policy = 'soft'\nhorizon = 1e6\nrho = 0.3\nkey = 42\nactions = 20\n\
    [reward]\nname = 'clicks'\nrange = [0, 2]\n\
    [[cost]]\nname = 'price'\nrange = [0, 10]\nthreshold = 2\n\
    [world]\nkind = 'random'\nlaw = 'uniform'\n";

const HARD: &str = "policy = 'hard'\nhorizon = 1e6\nrho = 0.3\nkey = 42\nactions = 12\n\
    [[cost]]\nname = 'price'\nthreshold = 0.5\n[[cost]]\nname = 'wait'\nthreshold = 0.3\n\
    [safe]\nstrategy = { a1 = 0.5, a7 = 0.5 }\nmargin = { price = 0.2, wait = 0.1 }\n\
    [world]\nkind = 'random'\nlaw = 'uniform'\n";

fn spec(text: &str, overrides: &[(&str, &str)]) -> SpecText {
    let overrides = overrides
        .iter()
        .map(|(path, value)| (path.to_string(), value.to_string()));
    SpecText::parse(text.into(), "x.toml".into(), overrides.collect())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn simulated(spec: &SpecText) -> Simulated {
    let open = |_: &std::path::Path| -> io::Result<Box<dyn io::Read>> { unreachable!() };
    spec.world(&open).unwrap_or_else(|error| panic!("{error}"))
}

/// The world that a pair meets, on the unit scale.
fn met(world: &Simulated, pair: u64) -> Arc<dyn World> {
    let first = &world.world;
    first.of_pair(pair).unwrap_or_else(|| Arc::clone(first))
}

fn in_order(mut row: Vec<f64>) -> Vec<f64> {
    row.sort_by(f64::total_cmp);
    row
}

#[test]
fn rewards_lie_as_their_law_says() {
    let rewards = |law: &str, gap: &str, pair| {
        let mut overrides = vec![("world.law", law), ("world.worlds", "50")];
        if !gap.is_empty() {
            overrides.push(("world.gap", gap));
        }
        met(&simulated(&spec(SOFT, &overrides)), pair).means()[0].clone()
    };
    for pair in 0..50 {
        // A gap of 0.2 clicks is a tenth of the range.
        let uniform = rewards("uniform", "", pair);
        assert!(uniform.iter().all(|mean| (0.0..=1.0).contains(mean)));
        let gap = in_order(rewards("gap", "0.2", pair));
        assert!(
            (gap[19] - 0.55).abs() < 1e-12
                && gap[..19].iter().all(|mean| (mean - 0.45).abs() < 1e-12),
            "{gap:?}"
        );
        let stairs = in_order(rewards("stairs", "0.05", pair));
        assert!(
            stairs
                .windows(2)
                .all(|two| (two[1] - two[0] - 0.025).abs() < 1e-12),
            "{stairs:?}"
        );
        assert!((stairs[0] + stairs[19] - 1.0).abs() < 1e-12);
        let sparse = in_order(rewards("sparse", "0.2", pair));
        assert!(
            sparse[..18].iter().all(|&mean| mean == 0.0) && sparse[18] >= 0.1 && sparse[19] <= 1.0,
            "{sparse:?}"
        );
    }
    // The best is not always the same one: of 50 worlds with 20 actions, all alike with probability 20^-49.
    let best = |pair| {
        let row = rewards("gap", "0.2", pair);
        (0..20).max_by(|&one, &other| row[one].total_cmp(&row[other]))
    };
    assert!((1..50).any(|pair| best(pair) != best(0)));
}

/// How far the law of these numbers is from the uniform one on an interval.
fn off_uniform(means: Vec<f64>, [low, high]: [f64; 2]) -> f64 {
    let count = means.len() as f64;
    let off = in_order(means)
        .into_iter()
        .enumerate()
        .map(|(place, mean)| {
            let share = (mean - low) / (high - low);
            let [below, above] =
                [place, place + 1].map(|place| (share - place as f64 / count).abs());
            below.max(above)
        });
    off.fold(0.0, f64::max)
}

/// n = 2,000 means each, key 42: an empirical law is off by more than 0.06 with probability at most 2 exp(-2 n 0.06^2) = 1.2e-6
/// (Dvoretzky, Kiefer, Wolfowitz, Massart); the two largest of twenty draws would be off by more than 0.6.
#[test]
fn means_that_are_called_uniform_are() {
    let means = |overrides: &[(&str, &str)], worlds: u64| -> Vec<f64> {
        let world = simulated(&spec(
            SOFT,
            &[&[("world.worlds", "1000")], overrides].concat(),
        ));
        (0..worlds)
            .flat_map(|pair| met(&world, pair).means()[0].clone())
            .collect()
    };
    let uniform = means(&[], 100);
    let sparse = means(&[("world.law", "sparse"), ("world.gap", "0.2")], 1_000);
    let sparse: Vec<f64> = sparse.into_iter().filter(|&mean| mean > 0.0).collect();
    assert_eq!((uniform.len(), sparse.len()), (2_000, 2_000));
    let off = [
        off_uniform(uniform, [0.0, 1.0]),
        off_uniform(sparse, [0.1, 1.0]),
    ];
    assert!(off.iter().all(|off| *off < 0.06), "off by {off:?}");
}

#[test]
fn every_world_has_a_safe_strategy_with_its_margin() {
    let soft = simulated(&spec(SOFT, &[("world.worlds", "200")]));
    let problem = spec(SOFT, &[]).spec.problem;
    for pair in 0..200 {
        let world = met(&soft, pair);
        assert!(Truth::of(&problem, &*world).best.is_some());
        // The threshold is 0.2 of the range: some action has half of it or less.
        assert!(
            world.means()[1].iter().any(|&cost| cost <= 0.1),
            "{:?}",
            world.means()[1]
        );
    }
    let text = spec(HARD, &[("world.worlds", "200")]);
    let hard = simulated(&text);
    for pair in 0..200 {
        let truth = Truth::of(text.problem(), &*met(&hard, pair));
        assert!(
            truth
                .margins_missing
                .iter()
                .all(|&missing| missing <= UNSAFE_TOLERANCE),
            "{truth:?}"
        );
        let price = met(&hard, pair).means()[1].clone();
        assert!(price.iter().all(|mean| (0.0..=1.0).contains(mean)));
    }
}

#[test]
fn pair_j_meets_world_j_of_so_many() {
    let means = |overrides: &[(&str, &str)], pair| {
        met(&simulated(&spec(SOFT, overrides)), pair)
            .means()
            .to_vec()
    };
    let three: &[(&str, &str)] = &[("world.worlds", "3")];
    assert_eq!(means(three, 0), means(three, 3));
    assert_eq!(means(three, 2), means(&[("world.index", "2")], 0));
    assert_eq!(
        means(&[], 0),
        means(&[], 1),
        "one world unless more are asked for"
    );
    assert_ne!(means(three, 0), means(three, 1));
    assert_ne!(means(three, 0), means(&[("world.key", "7")], 0));
    // More actions, the same first ones.
    assert_eq!(
        means(&[("actions", "30")], 0)[0][..20],
        means(&[], 0)[0][..]
    );
}

/// A pair of a random world is the pair of a world with these means written out, but for its fingerprint.
#[test]
fn a_random_world_plays_as_its_means_written_out() {
    let random = spec(SOFT, &[("world.worlds", "4")]);
    let world = simulated(&random);
    let pairs = |spec: &SpecText, from: u64| {
        let experiment: Experiment = spec.experiment(&simulated(spec), Simulator::Epochs);
        experiment
            .pairs(
                Contestant::Debora,
                from..from + 1,
                &|_| (),
                &AtomicBool::new(false),
            )
            .unwrap()
    };
    for pair in 0..5 {
        let met = met(&world, pair);
        let user = |quantity: usize| {
            let range = random.problem().quantity(quantity).range;
            format!(
                "{:?}",
                met.means()[quantity]
                    .iter()
                    .map(|&mean| range.to_user(mean))
                    .collect::<Vec<f64>>()
            )
        };
        let table = format!(
            "{{ kind = 'bernoulli', reward = {}, cost.price = {} }}",
            user(0),
            user(1)
        );
        let written = spec(SOFT, &[("world", &table)]);
        let [one, two] = [&random, &written].map(|spec| pairs(spec, pair)[0].runs[0].clone());
        // To the user's units and back a mean may move by a bit, and with it a draw in 2^50.
        assert_eq!(
            (one.digest, one.counts),
            (two.digest, two.counts),
            "pair {pair}"
        );
    }
}

#[test]
fn the_fingerprint_covers_law_numbers_key_and_draws() {
    let of = |overrides: &[(&str, &str)]| simulated(&spec(SOFT, overrides)).fingerprint;
    let mut all = vec![of(&[])];
    for one in [
        &[("world.law", "gap"), ("world.gap", "0.2")][..],
        &[("world.law", "gap"), ("world.gap", "0.3")],
        &[("world.worlds", "2")],
        &[("world.index", "1")],
        &[("world.key", "7")],
        &[("actions", "21")],
    ] {
        let fingerprint = of(one);
        assert!(!all.contains(&fingerprint), "{one:?}");
        all.push(fingerprint);
    }
    assert_eq!(of(&[]), of(&[("world.worlds", "1"), ("world.index", "0")]));
}

/// Values: means of fixed keys, as bits. Changing one needs a line under "Values" in the changelog.
#[test]
fn drawn_means_are_golden() {
    let bits = |overrides: &[(&str, &str)]| {
        let mut overrides = overrides.to_vec();
        overrides.push(("actions", "4"));
        let means = simulated(&spec(SOFT, &overrides)).world.means().to_vec();
        means
            .concat()
            .iter()
            .map(|mean| format!("{:016x}", mean.to_bits()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let found = [
        bits(&[]),
        bits(&[("world.index", "3")]),
        bits(&[("world.law", "gap"), ("world.gap", "0.2")]),
        bits(&[("world.law", "stairs"), ("world.gap", "0.2")]),
        bits(&[("world.law", "sparse"), ("world.gap", "0.2")]),
    ];
    let golden = include_str!("../worlds.txt");
    assert_eq!(found.join("\n"), golden.trim_end(), "{}", found.join("\n"));
}
