//! The rivals at play: they finish, they keep what their theory says, and the replicable ones replicate.
//!
//! What the formulas say is checked beside the code; here a driver that knows the trait alone plays them.

use std::collections::BTreeMap;
use std::sync::Arc;

use debora::internals::lp;
use debora::key::Label;
use debora::lab::players::{Constants, Player, RIVALS, Rival};
use debora::mean::to_fixed;
use debora::problem::Draft;
use debora::{Engine, Key, Plan, Policy, Problem, Strategy, Tally, WorldKey};

use crate::common::{Coins, binomial_upper_tail, names, ones, plan};

/// Plays a run round by round. `watch` sees the strategy and the tally at the start of every stretch.
fn play(
    player: &mut dyn Player,
    problem: &Problem,
    world: &Coins,
    key: Key,
    mut watch: impl FnMut(&Strategy, &Tally),
) -> Tally {
    let quantities = problem.quantities();
    let horizon = problem.horizon();
    let mut total = Tally::new(problem.actions().len(), quantities);
    let mut stretch = total.clone();
    let mut round = 0;
    // Written anew rather than taken from the lab, whose simulators are tested with these players.
    while round < horizon {
        watch(player.strategy(), &total);
        stretch.clear();
        let end = player
            .rounds_max()
            .map_or(horizon, |rounds| horizon.min(round + rounds));
        while round < end {
            round += 1;
            let action = player.action(round, key);
            let before = total.counts()[action as usize] + stretch.counts()[action as usize];
            assert!(
                player.stop(action).is_none_or(|stop| stop > before),
                "a stop in the past can never be reached"
            );
            stretch.add(
                action,
                &world.draw(round, action).map(to_fixed)[..quantities],
            );
            if player.stop(action) == Some(before + 1) {
                break;
            }
        }
        total.merge(&stretch);
        if round < horizon {
            player.tell(&stretch);
        }
    }
    total
}

fn rival(name: &str) -> &'static Rival {
    Rival::named(name).expect("a rival of that name")
}

fn with_costs(draft: Draft, thresholds: &[f64]) -> Draft {
    thresholds
        .iter()
        .enumerate()
        .fold(draft, |draft, (cost, threshold)| {
            draft.cost(format!("cost {cost}"), [0.0, 1.0], *threshold)
        })
}

/// A problem of a policy whose safe strategy, if it needs one, is action 0 most of the time.
fn problem(policy: Policy, actions: usize, costs: usize, horizon: u64) -> Draft {
    shaped(policy, actions, costs, horizon, 0.3)
}

fn shaped(policy: Policy, actions: usize, costs: usize, horizon: u64, rho: f64) -> Draft {
    let thresholds = [0.5, 0.6, 0.7];
    let draft = match policy {
        Policy::Free => Problem::free(names(actions), horizon, rho),
        Policy::Soft => Problem::soft(names(actions), horizon, rho),
        Policy::Hard => {
            let mut safe = vec![0.0; actions];
            (safe[0], safe[1]) = (0.75, 0.25);
            Problem::hard(names(actions), horizon, rho).safe_with_margins(safe, vec![0.25; costs])
        }
    };
    with_costs(draft, &thresholds[..costs])
}

/// Rewards that rise with the action, and costs that rise faster; the safe strategy of [`problem`] is safe.
fn world(actions: usize, key: WorldKey) -> Coins {
    let row = |low: f64, high: f64| {
        (0..actions)
            .map(|a| low + (high - low) * a as f64 / (actions - 1) as f64)
            .collect()
    };
    Coins {
        means: vec![row(0.2, 0.8), row(0.1, 0.8), row(0.1, 0.9), row(0.1, 0.6)],
        key,
    }
}

/// The largest reward a strategy within the problem's limits earns in this world.
fn best_reward(problem: &Problem, world: &Coins) -> f64 {
    let limits = if problem.policy() == Policy::Free {
        &[]
    } else {
        problem.thresholds()
    };
    let rows: Vec<f64> = world.means[1..=limits.len()].concat();
    Strategy::new(lp::solve(&world.means[0], &rows, limits).strategy).expectation(&world.means[0])
}

/// sqrt(ln(2 events / delta) / (2 count)).
fn hoeffding(events: f64, delta: f64, count: u64) -> f64 {
    ((2.0 * events / delta).ln() / (2.0 * count as f64)).sqrt()
}

/// Whether all means of the first `quantities` quantities of an action are within `width` of the truth.
fn within(world: &Coins, tally: &Tally, action: usize, quantities: usize, width: f64) -> bool {
    (0..quantities).all(|q| (tally.mean(action as u32, q) - world.means[q][action]).abs() <= width)
}

#[test]
fn rivals_are_listed_in_order_and_found_by_name() {
    let list: Vec<&str> = RIVALS.iter().map(|rival| rival.name).collect();
    let replicable = [
        "esfandiari-1",
        "esfandiari-2",
        "esfandiari-2-proved",
        "rse",
        "rec",
        "etc-grid",
    ];
    let others = [
        "ucb1",
        "ucb-doubling",
        "thompson",
        "kl-ucb",
        "exp3",
        "optimistic-lp",
        "primal-dual",
        "doss",
        "pessimistic-optimistic",
        "oplb",
        "safe-mix",
    ];
    assert_eq!(list, [&replicable[..], &others[..]].concat());
    for rival in RIVALS {
        assert!(std::ptr::eq(Rival::named(rival.name).unwrap(), rival) && !rival.source.is_empty());
    }
    assert!(Rival::named("debora").is_none());
    let published: Vec<&str> = RIVALS
        .iter()
        .filter(|rival| rival.constants == Constants::Published)
        .map(|rival| rival.name)
        .collect();
    assert_eq!(
        published,
        ["esfandiari-2", "ucb1", "thompson", "kl-ucb", "exp3"]
    );
}

#[test]
fn the_documents_say_whose_constants_a_rival_has() {
    let page = include_str!("../../docs/experiments.md");
    for rival in RIVALS {
        let has_name = |row: &&str| {
            let first = row.split('|').nth(1).unwrap_or("");
            first.split(',').any(|name| name.trim() == rival.name)
        };
        let row = page
            .lines()
            .filter(|line| line.starts_with("| "))
            .find(has_name);
        let row = row.unwrap_or_else(|| panic!("{} has no row", rival.name));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let policies: Vec<&str> = rival.policies.iter().map(|policy| policy.name()).collect();
        let constants = serde_json::to_value(rival.constants).unwrap();
        assert_eq!(
            (cells[2], Some(cells[3])),
            (&*policies.join(", "), constants.as_str()),
            "{row}"
        );
    }
}

#[test]
#[should_panic(expected = "oplb does not play problems of policy free")]
fn a_rival_is_not_built_for_a_policy_it_does_not_play() {
    rival("oplb").player(
        &plan(problem(Policy::Free, 2, 0, 10).build().unwrap()),
        Key::from(0u64),
    );
}

/// The driver plays engines as they play themselves.
#[test]
fn the_driver_gives_the_engine_its_own_run() {
    for policy in [Policy::Free, Policy::Soft, Policy::Hard] {
        let problem = problem(policy, 3, 1, 9_000)
            .delta(0.4)
            .growth(3)
            .build()
            .unwrap();
        let world = world(3, WorldKey::from(1u64));
        let mut engines = [(); 2].map(|()| Engine::new(problem.clone(), Key::from(1u64)));
        crate::common::run(&mut engines[0], &world);
        let total = play(
            &mut engines[1],
            &problem,
            &world,
            Key::from(1u64),
            |_, _| (),
        );
        assert_eq!(engines[0].tally(), &total);
        assert_eq!(engines[0].strategy(), engines[1].strategy());
    }
}

/// Every rival, on every small shape of its problems and some larger ones; a second run of one is the same.
#[test]
fn every_rival_plays_every_problem_of_its_policies_to_the_end() {
    let mut played = 0;
    for rival in RIVALS {
        for &policy in rival.policies {
            for (actions, horizon) in [
                (2, 1),
                (3, 2),
                (3, 3),
                (2, 7),
                (3, 64),
                (3, 65),
                (7, 1_000),
                (20, 2_000),
                (5, 12_000),
            ] {
                for costs in [0, 1, 3] {
                    let draft = problem(policy, actions, costs, horizon);
                    let paper = draft.clone().delta(0.1).paper();
                    for draft in [draft.clone(), draft.growth(2), paper] {
                        let (plan, world) = (
                            plan(draft.build().unwrap()),
                            world(actions, WorldKey::from(2u64)),
                        );
                        let run = || {
                            let mut player = rival.player(&plan, Key::from(3u64));
                            // Exploration in permuted blocks ends with a round, as nothing else of a rival does but deciding anew.
                            let in_blocks = player.planned_counts(1).is_some();
                            assert!(
                                in_blocks || player.rounds_max() == rival.per_round.then_some(1)
                            );
                            assert!(
                                !in_blocks || ["ucb-doubling", "etc-grid"].contains(&rival.name)
                            );
                            let mut stretches = Vec::new();
                            let total = play(
                                &mut *player,
                                &plan.problem,
                                &world,
                                Key::from(3u64),
                                |strategy, _| {
                                    stretches.push(strategy.clone());
                                },
                            );
                            (total, stretches)
                        };
                        let (total, stretches) = run();
                        assert_eq!(
                            total.counts().iter().sum::<u64>(),
                            horizon,
                            "{} {actions} {costs}",
                            rival.name
                        );
                        if horizon <= 1_000 {
                            assert_eq!(
                                (total, stretches),
                                run(),
                                "{} {actions} {costs} {horizon}",
                                rival.name
                            );
                        }
                        played += 1;
                    }
                }
            }
        }
    }
    assert_eq!(played, 18 * 9 * 3 * 3);
}

/// The largest horizon, the smallest rho and delta, many actions: numbers saturate, and nothing overflows.
#[test]
fn extreme_problems_have_players() {
    for rival in RIVALS {
        for (&policy, actions) in rival
            .policies
            .iter()
            .flat_map(|policy| [(policy, 2), (policy, 3_000)])
        {
            for (horizon, rho) in [
                (1, 1e-100),
                (1 << 53, 1e-100),
                (1 << 53, 0.999),
                (1_000_000, 0.999),
            ] {
                let plan = plan(
                    shaped(policy, actions, 2, horizon, rho)
                        .delta(1e-100)
                        .build()
                        .unwrap(),
                );
                let mut player = rival.player(&plan, Key::from(0u64));
                let mut told = Tally::new(actions, 3);
                for _ in 0..4 {
                    // Stretches of one action, whose feedback is all ones.
                    let action = player.strategy().pick(0.5);
                    let count = told.counts()[action as usize];
                    let left = horizon - told.counts().iter().sum::<u64>();
                    let rounds = player
                        .rounds_max()
                        .or(player.stop(action).map(|stop| stop - count))
                        .unwrap_or(left);
                    if rounds >= left {
                        break;
                    }
                    let mut stretch = Tally::new(actions, 3);
                    stretch.add_sums(action, rounds, &[ones(rounds); 3]);
                    told.merge(&stretch);
                    player.tell(&stretch);
                }
                let _ = player.note();
            }
        }
    }
}

/// The sequence is from a dozen lines of Python; the reward of action a after t rounds is ((7 a + 3 t) mod 5) / 4.
#[test]
fn ucb1_plays_the_published_rule() {
    let plan = plan(problem(Policy::Free, 3, 0, 60).build().unwrap());
    let mut player = rival("ucb1").player(&plan, Key::from(0u64));
    let mut sequence = String::new();
    for rounds in 0..60u64 {
        let action = player.strategy().only().expect("one action");
        sequence += &action.to_string();
        let mut stretch = Tally::new(3, 1);
        stretch.add(
            action,
            &[to_fixed(
                ((7 * u64::from(action) + 3 * rounds) % 5) as f64 / 4.0,
            )],
        );
        player.tell(&stretch);
    }
    assert_eq!(
        sequence,
        "012001212012012012000120012012012000120000112012000001201200"
    );
}

/// Keys 0 to 19. The bound 8 ln T/gap^2 + 1 + pi^2/3 is on the expectation; the means of 20 runs are measured at a
/// fifth of it.
#[test]
fn ucb1_rarely_plays_what_is_worse() {
    let plan = plan(problem(Policy::Free, 4, 0, 5_000).build().unwrap());
    let mut counts = [0.0; 4];
    for run in 0..20u64 {
        let world = world(4, WorldKey::from(run));
        let total = play(
            &mut *rival("ucb1").player(&plan, Key::from(run)),
            &plan.problem,
            &world,
            Key::from(run),
            |_, _| (),
        );
        counts
            .iter_mut()
            .zip(total.counts())
            .for_each(|(sum, count)| *sum += *count as f64 / 20.0);
    }
    for (action, mean) in counts[..3].iter().enumerate() {
        let gap = 0.2 * (3 - action) as f64;
        let bound = 8.0 * 5_000f64.ln() / (gap * gap) + 1.0 + std::f64::consts::PI.powi(2) / 3.0;
        println!("action {action}: {mean} rounds, bound {bound}");
        assert!(
            *mean <= bound,
            "action {action}: {mean} rounds on average, bound {bound}"
        );
    }
}

/// On the clean event, which must fail with probability delta = .05 at most: every epoch's action is worse by at most twice
/// its width, and an action stays below the first level at which twice its width is below its gap. 60 runs, seeds 0 to 59;
/// false alarm <= 1e-6 (exact binomial for the clean event; the rest is certain).
#[test]
fn ucb_doubling_plays_an_action_no_longer_than_its_width_allows() {
    let plan = plan(
        problem(Policy::Free, 4, 1, 5_000)
            .delta(0.05)
            .growth(2)
            .build()
            .unwrap(),
    );
    let width = |count: u64| hoeffding(4.0 * 13.0, 0.05, count);
    let first = (1u64..).find(|&count| width(count) < 0.3).unwrap();
    let levels: Vec<u64> = (0..20).map(|level| first << level).collect();
    let mut unclean = 0;
    for run in 0..60u64 {
        let world = world(4, WorldKey::from(run));
        let mut player = rival("ucb-doubling").player(&plan, Key::from(run));
        let (mut clean, best) = (true, best_reward(&plan.problem, &world));
        let total = play(
            &mut *player,
            &plan.problem,
            &world,
            Key::from(run),
            |strategy, tally| {
                let Some(action) = strategy.only() else {
                    // Exploration alone plays more than one action.
                    assert!(tally.counts().iter().all(|&count| count == 0), "run {run}");
                    return;
                };
                for (action, &count) in tally.counts().iter().enumerate() {
                    clean &=
                        !levels.contains(&count) || within(&world, tally, action, 1, width(count));
                }
                let action = action as usize;
                let count = tally.counts()[action];
                assert!(
                    !clean || best - world.means[0][action] <= 2.0 * width(count),
                    "run {run}"
                );
            },
        );
        for (&count, reward) in total.counts().iter().zip(&world.means[0]).take(3) {
            let most = levels
                .iter()
                .find(|&&count| 2.0 * width(count) < best - reward)
                .unwrap();
            assert!(
                !clean || count <= *most,
                "run {run}: {count} rounds, at most {most}"
            );
        }
        unclean += u64::from(!clean);
    }
    let alarm = binomial_upper_tail(60, 0.05, unclean);
    assert!(alarm > 1e-6, "{unclean} of 60 runs unclean, chance {alarm}");
}

/// What a clean run of a rival with anytime widths must keep in every epoch, given the strategy, the sum of b(N_a) x_a and the
/// sum of min(1, 2 b(N_a)) x_a: at most so much regret, and so much violation of any cost.
type Promise = fn(&Problem, f64, f64) -> (f64, f64);

/// On the clean event, which must fail with probability delta = .05 at most. optimistic-lp: each epoch's regret and violation
/// are at most the sum of min(1, 2 b) x. oplb: regret at most the sum of (2 + 2/lambda) b x, and no violation. 40 runs each;
/// false alarm <= 1e-6 (exact binomial for the clean event; the rest is certain).
#[test]
fn epochs_of_optimistic_lp_and_oplb_are_as_good_as_their_widths_promise() {
    let rivals: [(&str, Policy, Promise); 2] = [
        ("optimistic-lp", Policy::Soft, |_, _, doubled| {
            (doubled, doubled)
        }),
        ("oplb", Policy::Hard, |problem, single, _| {
            ((2.0 + 2.0 / problem.margin_min().unwrap()) * single, 0.0)
        }),
    ];
    for (name, policy, promise) in rivals {
        let plan = plan(problem(policy, 3, 2, 4_000).delta(0.05).build().unwrap());
        let problem = &plan.problem;
        let width = |count: u64| {
            if count == 0 {
                0.5
            } else {
                hoeffding(3.0 * 3.0 * 4_000.0, 0.05, count)
            }
        };
        let (mut unclean, mut reward) = (0, 0.0);
        for run in 0..40u64 {
            let world = world(3, WorldKey::from(run));
            let mut player = rival(name).player(&plan, Key::from(run));
            let (mut clean, best) = (true, best_reward(problem, &world));
            let total = play(
                &mut *player,
                problem,
                &world,
                Key::from(run),
                |strategy, tally| {
                    let counts = tally.counts();
                    clean &= (0..3)
                        .all(|a| counts[a] == 0 || within(&world, tally, a, 3, width(counts[a])));
                    let sum = |d: &dyn Fn(u64) -> f64| {
                        strategy.expectation(&counts.iter().map(|&n| d(n)).collect::<Vec<_>>())
                    };
                    let (regret, violation) =
                        promise(problem, sum(&width), sum(&|n| (2.0 * width(n)).min(1.0)));
                    assert!(
                        !clean || best - strategy.expectation(&world.means[0]) <= regret + 1e-9,
                        "{name}, run {run}"
                    );
                    for (costs, threshold) in world.means[1..].iter().zip(problem.thresholds()) {
                        let excess = strategy.expectation(costs) - threshold;
                        assert!(
                            !clean || excess <= violation + 1e-9,
                            "{name}, run {run}: {excess} above {violation}"
                        );
                    }
                },
            );
            unclean += u64::from(!clean);
            reward += (0..3)
                .map(|a| total.counts()[a] as f64 * world.means[0][a])
                .sum::<f64>()
                / 160_000.0;
            assert_eq!(player.note(), None);
        }
        let alarm = binomial_upper_tail(40, 0.05, unclean);
        assert!(
            alarm > 1e-6,
            "{name}: {unclean} of 40 runs unclean, chance {alarm}"
        );
        // The safe strategy earns .275 and the best one .543: playing safe throughout would not do.
        println!("{name}: {unclean} unclean, reward {reward}");
        assert!(reward > 0.3, "{name} earns {reward} a round");
    }
}

/// On the clean event, which must fail with probability delta = .05 at most, no epoch of safe-mix is unsafe. 60 runs; false
/// alarm <= 1e-6 (exact binomial for the clean event; the rest is certain).
#[test]
fn safe_mix_is_never_unsafe_on_clean_runs() {
    let plan = plan(
        problem(Policy::Hard, 3, 2, 6_000)
            .delta(0.05)
            .growth(2)
            .build()
            .unwrap(),
    );
    let problem = &plan.problem;
    let (mut unclean, mut least) = (0, 1.0f64);
    for run in 0..60u64 {
        let world = world(3, WorldKey::from(run));
        let mut player = rival("safe-mix").player(&plan, Key::from(run));
        let mut clean = true;
        play(
            &mut *player,
            problem,
            &world,
            Key::from(run),
            |strategy, tally| {
                for (action, &count) in tally.counts().iter().enumerate() {
                    let width = hoeffding(3.0 * 3.0 * 13.0, 0.05, count.max(1));
                    clean &= !count.is_power_of_two() || within(&world, tally, action, 3, width);
                }
                for (costs, threshold) in world.means[1..].iter().zip(problem.thresholds()) {
                    let cost = strategy.expectation(costs);
                    assert!(
                        !clean || cost <= threshold + 1e-9,
                        "run {run}: a cost of {cost} above {threshold}"
                    );
                }
                least = least.min(strategy.probabilities()[0]);
            },
        );
        unclean += u64::from(!clean);
    }
    let alarm = binomial_upper_tail(60, 0.05, unclean);
    assert!(alarm > 1e-6, "{unclean} of 60 runs unclean, chance {alarm}");
    assert!(
        least < 0.3,
        "it never left the safe strategy: action 0 has a probability of {least} or more"
    );
}

/// While the price stays below Lam, it rises by eta (g - alpha) a round at least, so sum (g_t - alpha) <= Lam/eta = sqrt(T):
/// certain, whatever the feedback. (Here a price of 1.2 turns the player to the cheap action, and Lam is 10.)
#[test]
fn primal_dual_keeps_the_signed_violation_and_not_the_positive_part() {
    let plan = plan(
        with_costs(Problem::soft(names(2), 10_000, 0.3), &[0.4])
            .build()
            .unwrap(),
    );
    let world = Coins::new(&[&[0.3, 0.9], &[0.2, 0.7]], 5);
    let mut positive = 0.0;
    let mut player = rival("primal-dual").player(&plan, Key::from(0u64));
    let total = play(
        &mut *player,
        &plan.problem,
        &world,
        Key::from(0u64),
        |strategy, _| {
            positive += (strategy.expectation(&world.means[1]) - 0.4).max(0.0);
        },
    );
    let signed = (0..2)
        .map(|a| total.mean(a, 1) * total.counts()[a as usize] as f64)
        .sum::<f64>()
        - 4_000.0;
    println!(
        "signed {signed}, positive part {positive}, counts {:?}",
        total.counts()
    );
    assert!(signed <= 100.0, "signed violation {signed}");
    assert!(positive > 1_000.0, "positive part {positive}");
}

/// Binomial(n, p) by inversion of its distribution function, cut where it is below 1e-25 of its mode.
struct Binomial {
    first: u64,
    cumulative: Vec<f64>,
}

impl Binomial {
    fn new(n: u64, p: f64) -> Self {
        let odds = p / (1.0 - p);
        let up = |k: u64| (n - k) as f64 / (k + 1) as f64 * odds;
        let mode = ((n + 1) as f64 * p) as u64;
        let walk = |mut k: u64, below: bool| {
            let (mut weight, mut weights) = (1.0, Vec::new());
            while (if below { k > 0 } else { k < n }) && weight > 1e-25 {
                weight *= if below { 1.0 / up(k - 1) } else { up(k) };
                k = if below { k - 1 } else { k + 1 };
                weights.push(weight);
            }
            weights
        };
        let mut weights = walk(mode, true);
        let first = mode - weights.len() as u64;
        weights.reverse();
        weights.push(1.0);
        weights.extend(walk(mode, false));
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let add = |weight: &f64| {
            sum += weight / total;
            sum
        };
        Self {
            first,
            cumulative: weights.iter().map(add).collect(),
        }
    }

    fn draw(&self, uniform: f64) -> u64 {
        let place = self.cumulative.partition_point(|sum| *sum <= uniform);
        self.first + place.min(self.cumulative.len() - 1) as u64
    }
}

/// A world of 0s and 1s for players of single actions: the wins of a whole stretch are one draw.
#[derive(Default)]
struct Stretches {
    means: Vec<f64>,
    tables: BTreeMap<(u32, u64), Binomial>,
}

impl Stretches {
    /// The stretches of a run: action and rounds.
    fn play(&mut self, player: &mut dyn Player, horizon: u64, key: WorldKey) -> Vec<(u32, u64)> {
        let mut counts = vec![0; self.means.len()];
        let (mut stretches, mut round) = (Vec::new(), 0);
        while round < horizon {
            let action = player.strategy().only().expect("a single action");
            let count = counts[action as usize];
            let rounds = player
                .stop(action)
                .map_or(horizon, |stop| stop - count)
                .min(horizon - round);
            round += rounds;
            counts[action as usize] += rounds;
            stretches.push((action, rounds));
            if round < horizon {
                let mean = self.means[action as usize];
                let table = self
                    .tables
                    .entry((action, rounds))
                    .or_insert_with(|| Binomial::new(rounds, mean));
                let wins =
                    table.draw(key.uniform(Label::FeedbackSum, [u64::from(action), count, 0]));
                let mut stretch = Tally::new(self.means.len(), 1);
                stretch.add_sums(action, rounds, &[ones(wins)]);
                player.tell(&stretch);
            }
        }
        stretches
    }
}

/// The replicable rivals, each with a horizon and rewards at which its thresholds really decide: a gap lies among them.
fn decisive(name: &str) -> (Arc<Plan>, Stretches) {
    let (horizon, means): (u64, &[f64]) = match name {
        "rse" | "rec" => (10_000_000, &[0.35, 0.1, 0.8]),
        "esfandiari-1" => (3_000_000_000, &[0.3, 0.1, 0.7]),
        _ => (40_000_000, &[0.25, 0.1, 0.85]),
    };
    let problem = Problem::free(names(3), horizon, 0.3).build().unwrap();
    (
        plan(problem),
        Stretches {
            means: means.to_vec(),
            ..Stretches::default()
        },
    )
}

const REPLICABLE: [&str; 4] = ["esfandiari-1", "esfandiari-2-proved", "rse", "rec"];

/// 400 pairs, keys and worlds from seed 8, rho = .3; false alarm <= 1e-6 per rival (exact binomial). The runs really decide:
/// each rival ends on the best action alone, and when it does depends on its thresholds in a fifth of the keys or more.
#[test]
fn pairs_of_replicable_rivals_are_identical_as_often_as_promised() {
    for name in REPLICABLE {
        let (plan, mut world) = decisive(name);
        let (mut splits, mut lengths) = (0, BTreeMap::new());
        for pair in 0..400u64 {
            let runs = [0, 1].map(|member| {
                let mut player = rival(name).player(&plan, Key::from(8u64).derive(pair, 0));
                assert_eq!(player.note(), None, "{name}");
                world.play(
                    &mut *player,
                    plan.problem.horizon(),
                    WorldKey::from(8u64).derive(pair, member),
                )
            });
            splits += u64::from(runs[0] != runs[1]);
            assert!(
                runs.iter().all(|run| run.last().unwrap().0 == 2),
                "{name}, pair {pair}: {runs:?}"
            );
            *lengths.entry(runs[0].clone()).or_insert(0) += 1;
        }
        let alarm = binomial_upper_tail(400, 0.3, splits);
        println!(
            "{name}: {splits} of 400 pairs split, {:?}",
            lengths.values().collect::<Vec<_>>()
        );
        assert!(
            alarm > 1e-6,
            "{name}: {splits} of 400 pairs split, chance {alarm}"
        );
        let usual = lengths.values().max().unwrap();
        assert!(
            *usual <= 320,
            "{name}: {usual} of 400 runs are the same whatever the key"
        );
    }
}

/// The same test rejects players whose thresholds are not shared: it can fail.
#[test]
fn pairs_without_shared_thresholds_fail_the_same_test() {
    for name in REPLICABLE {
        let (plan, mut world) = decisive(name);
        let splits = (0..400u64).filter(|&pair| {
            let runs = [0, 1].map(|member| {
                let mut player = rival(name).player(&plan, Key::from(8u64).derive(pair, member));
                world.play(
                    &mut *player,
                    plan.problem.horizon(),
                    WorldKey::from(8u64).derive(pair, member),
                )
            });
            runs[0] != runs[1]
        });
        let splits = splits.count() as u64;
        println!("{name}: {splits} of 400 pairs split");
        let alarm = binomial_upper_tail(400, 0.3, splits);
        assert!(
            alarm <= 1e-6,
            "{name}: {splits} of 400 pairs split, chance {alarm}"
        );
    }
}

/// Blind rivals say so, and what they do instead is what they say.
#[test]
fn rivals_that_cannot_compare_say_so() {
    let free = |actions: usize, horizon: u64| {
        plan(Problem::free(names(actions), horizon, 0.3).build().unwrap())
    };
    let counts = |name: &str, plan: &Arc<Plan>| {
        let means = vec![0.5; plan.problem.actions().len()];
        let mut counts = vec![0; means.len()];
        let mut world = Stretches {
            means,
            ..Stretches::default()
        };
        let mut player = rival(name).player(plan, Key::from(0u64));
        for (action, rounds) in
            world.play(&mut *player, plan.problem.horizon(), WorldKey::from(0u64))
        {
            counts[action as usize] += rounds;
        }
        (player.note(), counts)
    };
    let million = free(5, 1_000_000);
    let (note, played) = counts("esfandiari-1", &million);
    let first = "the first batch needs 1129140 rounds, more than the 1000000 of the horizon: action 0 is played throughout";
    assert_eq!(
        (note.as_deref(), played),
        (Some(first), vec![1_000_000, 0, 0, 0, 0])
    );
    assert_eq!(counts("esfandiari-2", &million).0, None);
    // 2 actions, 2304 * 2 pulls each: the first batch fits exactly, and nothing is left to use it.
    let (note, played) = counts("esfandiari-2", &free(2, 9_216));
    let blind = "no batch that fits into 9216 rounds can tell two actions apart";
    assert_eq!((note.as_deref(), played), (Some(blind), vec![4_608, 4_608]));
    let (note, played) = counts("esfandiari-2-proved", &free(5, 500_000));
    assert!(
        note.unwrap().contains("the first batch needs 711"),
        "{played:?}"
    );
    // rse and rec: 4^8 pulls fit, w_a falls below 1 at 4^8 = 65,536; at a fifth of that horizon nothing can be decided.
    for name in ["rse", "rec"] {
        assert_eq!(counts(name, &million).0, None);
        let (note, played) = counts(name, &free(5, 100_002));
        let blind = "no batch that fits into 100002 rounds can tell two actions apart";
        assert_eq!(
            (note.as_deref(), played),
            (Some(blind), vec![20_001, 20_001, 20_000, 20_000, 20_000])
        );
        let short = "the first batch needs 20 rounds, more than the 12 of the horizon: all actions share the rounds";
        assert_eq!(
            counts(name, &free(5, 12)),
            (Some(short.to_owned()), vec![3, 3, 2, 2, 2])
        );
    }
}
