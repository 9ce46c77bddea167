//! The bandits of other crates, with their default constants.

use nexus_stats::learning::{EpsilonGreedyF64, ThompsonBetaF64, Ucb1F64};
use pymab::policy::Policy;
use pymab::policy::epsilon_greedy::EpsilonGreedyPolicy;
use pymab::policy::thompson::BernoulliThompsonSamplingPolicy;
use pymab::policy::ucb::UCBPolicy;
use pymab::rng::{StreamKey, StreamRole, rng_for};
use pymab::types::ActionIndex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rill_ml::bandit::{
    Bandit as RillBandit, EpsilonGreedy, EpsilonGreedyConfig, ThompsonConfig, ThompsonSampling,
    Ucb1, Ucb1Config,
};
use rl_bandit::bandit::{Bandit as RlBandit, UpdateType};
use rl_bandit::bandits::egreedy::EGreedy;
use rl_bandit::bandits::ucb::UCB;

use crate::{ACTIONS, Coins, Row, coin};

/// How often epsilon-greedy explores.
const EPSILON: f64 = 0.1;

pub fn rows() -> Vec<Row> {
    let greedy = || EGreedy::new(ACTIONS, EPSILON, 0.0, UpdateType::Average);
    let rill_greedy = || EpsilonGreedy::new(ACTIONS, EpsilonGreedyConfig::default()).unwrap();
    let rill_ucb1 = || Ucb1::new(ACTIONS, Ucb1Config::default()).unwrap();
    let rill_thompson = || ThompsonSampling::new(ACTIONS, ThompsonConfig::default()).unwrap();
    let pymab_greedy = || EpsilonGreedyPolicy::new(ACTIONS, 0.0, EPSILON).unwrap();
    let pymab_ucb = || UCBPolicy::new(ACTIONS, 0.0, 2.0, 1.0).unwrap();
    let pymab_thompson = || BernoulliThompsonSamplingPolicy::new(ACTIONS, 1.0, 1.0).unwrap();
    vec![
        Row::new(name("nexus-stats", "epsilon-greedy"), nexus_greedy),
        Row::new(name("nexus-stats", "UCB1"), nexus_ucb1),
        Row::new(name("nexus-stats", "Thompson"), nexus_thompson),
        Row::new(name("pymab", "epsilon-greedy"), pymab(pymab_greedy)),
        Row::new(name("pymab", "UCB"), pymab(pymab_ucb)),
        Row::new(name("pymab", "Thompson"), pymab(pymab_thompson)),
        Row::new(name("rill-ml", "epsilon-greedy"), rill(rill_greedy)),
        Row::new(name("rill-ml", "UCB1"), rill(rill_ucb1)),
        Row::new(name("rill-ml", "Thompson"), rill(rill_thompson)),
        Row::new(name("rl-bandit", "epsilon-greedy"), rl(greedy)),
        Row::new(name("rl-bandit", "UCB"), rl(|| UCB::new(ACTIONS, 1.0))),
    ]
}

/// Crate, version and algorithm.
fn name(package: &str, algorithm: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let start = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = lock.split_once(&start).expect("a locked crate");
    let (version, _) = rest.split_once('"').expect("a version");
    format!("{package} {version}, {algorithm}")
}

/// A run: how a bandit chooses, and how it learns.
#[inline]
fn play<B>(
    coins: &Coins,
    mut bandit: B,
    mut choose: impl FnMut(&mut B) -> usize,
    mut learn: impl FnMut(&mut B, usize, f64),
) -> f64 {
    let mut total = 0.0;
    for &coins in coins {
        let action = choose(&mut bandit);
        let reward = coin(coins, 0, action);
        learn(&mut bandit, action, reward);
        total += reward;
    }
    total
}

fn nexus_greedy(coins: &Coins) -> f64 {
    let bandit = EpsilonGreedyF64::builder().arms(ACTIONS).epsilon(EPSILON);
    let mut random = SmallRng::seed_from_u64(1);
    play(
        coins,
        bandit.build().unwrap(),
        |bandit| bandit.select(&mut || random.r#gen()),
        |bandit, action, reward| bandit.update(action, reward).unwrap(),
    )
}

fn nexus_ucb1(coins: &Coins) -> f64 {
    play(
        coins,
        Ucb1F64::builder().arms(ACTIONS).build().unwrap(),
        |bandit| bandit.select(),
        |bandit, action, reward| bandit.update(action, reward).unwrap(),
    )
}

fn nexus_thompson(coins: &Coins) -> f64 {
    let mut random = SmallRng::seed_from_u64(1);
    play(
        coins,
        ThompsonBetaF64::builder().arms(ACTIONS).build().unwrap(),
        |bandit| bandit.select(&mut || random.r#gen()),
        |bandit, action, reward| bandit.update(action, reward).unwrap(),
    )
}

fn pymab<P: Policy>(policy: impl Fn() -> P) -> impl Fn(&Coins) -> f64 {
    move |coins| {
        let key = StreamKey::new(1, 0, StreamRole::PolicySelection);
        let mut random = rng_for(&key.with_policy_id("peer").unwrap()).unwrap();
        play(
            coins,
            policy(),
            |policy| policy.select_action(&mut random).unwrap().get(),
            |policy, action, reward| {
                let action = ActionIndex::new(action, ACTIONS).unwrap();
                policy.update(action, reward).unwrap();
            },
        )
    }
}

fn rill<B: RillBandit>(bandit: impl Fn() -> B) -> impl Fn(&Coins) -> f64 {
    move |coins| {
        let mut random = SmallRng::seed_from_u64(1);
        play(
            coins,
            bandit(),
            |bandit| bandit.select(&mut random).unwrap(),
            |bandit, action, reward| bandit.update(action, reward).unwrap(),
        )
    }
}

fn rl<B: RlBandit>(bandit: impl Fn() -> B) -> impl Fn(&Coins) -> f64 {
    move |coins| {
        play(
            coins,
            bandit(),
            |bandit| bandit.choose(),
            |bandit, action, reward| bandit.update(action, reward),
        )
    }
}
