//! Policy free where two runs are most likely to decide differently: looks and the pick, against a second implementation, exact
//! sums and many pairs of runs.
//!
//! A pair is two stacks of coin flips and one key. Leads are scanned from none to three times what a look may ask for, with one
//! challenger and with all of them tied; mutants that spend more than rho must be found out by the same tests.
//!
//! Release mode. `DEBORA_TRIAL_PAIRS=20000` makes the scan finer.

use std::sync::Arc;

use crate::common::{binomial_pmf, binomial_upper_tail, names, plan};
use debora::key::Label;
use debora::lab::epochs;
use debora::lab::internals::{Stream, binomial};
use debora::lab::world::Bernoulli;
use debora::{Engine, EpochRecord, Key, Kind, Plan, Problem, WorldKey};
use rayon::prelude::*;

/// The constants of a trial, written down from the specification a second time, and what mutants change.
#[derive(Clone, Debug)]
struct Rule {
    actions: usize,
    count: u64,
    spacing: f64,
    c: f64,
    least: f64,
    eta: f64,
    /// Whether thresholds take the draw that places the looks.
    shared_draw: bool,
    /// Whether the pick's draws go by rank.
    by_rank: bool,
}

impl Rule {
    fn of(problem: &Problem) -> Self {
        let growth = match problem.profile() {
            debora::Profile::Tight { growth } => f64::from(growth),
            debora::Profile::Paper => unreachable!("only profile tight has a trial"),
        };
        let spacing = growth.min(8.0);
        let k = problem.actions().len() as f64;
        let (t, rho, delta) = (problem.horizon() as f64, problem.rho(), problem.delta());
        let rounds = (3.0 * (t / rho).powf(2.0 / 3.0)).min(t / 3.0);
        let count = ((rounds / k * (1.0 + 2f64.powi(-48))).floor() as u64).max(1);
        let p = (1..).find(|&p| spacing.powi(p) >= count as f64).unwrap();
        let wrong = (delta / 2.0).min(rho / 40.0);
        let lambda = (2.0 * (k - 1.0) * f64::from(p) / wrong).ln();
        let two = k == 2.0;
        let s = if two {
            0.98
        } else {
            (0.57 + 1.5 / (k + 0.5)).min(0.95)
        };
        let apart = if two { (2f64 / 3.0).sqrt() } else { 0.9 };
        let a = 2.0 / (rho * s * spacing.ln());
        let half = apart * a * 2f64.ln();
        let right = (1.06 * (lambda + lambda.ln() / 2.0 + 0.5)).sqrt();
        Self {
            actions: k as usize,
            count,
            spacing,
            c: 1f64
                .max((4.0 * k * f64::from(p) / wrong).ln() / 2.0)
                .max(1.4 * k.ln()),
            least: right.max((half + (half * half + 5.6 * a).sqrt()) / 2.0),
            eta: 6f64.sqrt() * rho * s / (1.0 - 1.0 / k),
            shared_draw: false,
            by_rank: false,
        }
    }

    fn place(&self, wins: u64, count: u64) -> f64 {
        let c = self.c;
        (wins as f64 + c)
            .sqrt()
            .atan2(((count - wins) as f64 + c).sqrt())
    }

    /// Look numbers and counts, the first look first.
    fn looks(&self, u: f64) -> Vec<(u64, u64)> {
        let count = |k: u64| {
            let real = self.count as f64 * self.spacing.powf(-(k as f64 + u));
            ((real * (1.0 - 2f64.powi(-48))).ceil() as u64).clamp(1, self.count)
        };
        let room = |count: u64| {
            let ends = self.place(count, count) - self.place(0, count);
            (count as f64).sqrt() * ends > self.least
        };
        let all = (0..200).map(|k| (k, count(k)));
        let mut looks: Vec<_> = all.filter(|&(_, count)| room(count)).collect();
        looks.reverse();
        looks
    }

    /// What a run decides: after how many samples each, and for which action.
    fn decide(&self, key: Key, world: &[f64], stack: (WorldKey, u64)) -> (u64, usize) {
        let u = key.uniform(Label::Look, [0, 0, 0]);
        let looks = self.looks(u);
        let mut stream = Stream::new(stack.0, Label::Feedback, [stack.1, 0]);
        let mut wins = vec![0; world.len()];
        let mut before = 0;
        let mut sample = |count: u64, wins: &mut Vec<u64>| {
            // A stack's first entries are the same at every count: only what is added is drawn.
            for (wins, &mean) in wins.iter_mut().zip(world) {
                *wins += binomial(&mut stream, count - before, mean);
            }
            before = count;
        };
        for (k, count) in looks {
            sample(count, &mut wins);
            let (leader, lead) = self.lead(&wins, count);
            let w = if self.shared_draw {
                u
            } else {
                key.uniform(Label::Look, [k + 1, 0, 0])
            };
            if lead > self.least * (1.0 + w) {
                return (count, leader);
            }
        }
        sample(self.count, &mut wins);
        (self.count, self.pick(key, &wins))
    }

    fn lead(&self, wins: &[u64], count: u64) -> (usize, f64) {
        let places: Vec<f64> = wins.iter().map(|&wins| self.place(wins, count)).collect();
        let order = order(&places);
        let apart = places[order[0]] - places[order[1]];
        (order[0], (count as f64).sqrt() * apart)
    }

    fn pick(&self, key: Key, wins: &[u64]) -> usize {
        let places: Vec<f64> = wins
            .iter()
            .map(|&wins| self.place(wins, self.count))
            .collect();
        let mut of_draw: Vec<usize> = (0..self.actions).collect();
        if self.by_rank {
            of_draw = order(&places);
        }
        let mut scores = vec![0.0; self.actions];
        for (index, &action) in of_draw.iter().enumerate() {
            let uniform = key.uniform(Label::Pick, [index as u64, 0, 0]);
            let noise = -(-uniform.ln()).ln();
            scores[action] = self.eta * (self.count as f64).sqrt() * places[action] + noise;
        }
        order(&scores)[0]
    }
}

/// The largest first, of equals the first of them.
fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[other].total_cmp(&values[one]));
    order
}

fn problem(actions: usize, horizon: u64, rho: f64) -> Problem {
    Problem::free(names(actions), horizon, rho).build().unwrap()
}

/// Every constant is the specification's, from two actions to a hundred and a hundred rounds to 1e15.
#[test]
fn constants_are_those_of_the_specification() {
    for actions in [2, 3, 5, 20, 100] {
        for horizon in [
            300,
            10_000,
            1_000_000,
            1_000_000_000_000,
            1_000_000_000_000_000,
        ] {
            for (rho, growth) in [(0.02, 8), (0.3, 2), (0.95, 64)] {
                let draft = Problem::free(names(actions), horizon, rho).growth(growth);
                let plan = Plan::of(draft.build().unwrap());
                let rule = Rule::of(&plan.problem);
                let trial = plan.trial.as_ref().expect("rounds for a trial");
                assert_eq!(trial.count, rule.count);
                let same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-12;
                assert!(same(trial.offset_c, rule.c) && same(trial.threshold, rule.least));
                assert!(same(trial.scale, rule.eta * (rule.count as f64).sqrt()));
                let lead = (9.0 * (actions as f64 - 1.0)).ln() / trial.scale;
                assert!(same(trial.picked_lead, lead));
                let looks: Vec<u64> = trial.looks.iter().map(|look| look.count).collect();
                let wanted: Vec<u64> = rule.looks(0.5).iter().map(|look| look.1).collect();
                assert_eq!(looks, wanted, "{actions} {horizon} {rho}");
                for look in &trial.looks {
                    let root = (look.count as f64).sqrt();
                    assert!(same(look.commits_from * root, rule.least));
                    assert!(same(look.commits_at_most * root, 2.0 * rule.least));
                    assert_eq!(look.round, look.count * actions as u64);
                }
            }
        }
    }
}

/// An engine's run with its records, whole epochs at once.
fn records(plan: &Arc<Plan>, means: &[f64], keys: (Key, WorldKey)) -> (Vec<EpochRecord>, String) {
    let world = Bernoulli::new(&plan.problem, &[means.to_vec()]).unwrap();
    let mut engine = Engine::with_plan(Arc::clone(plan), keys.0);
    let mut records = Vec::new();
    let observe = &mut |stretch: epochs::Stretch| {
        records.extend(stretch.player.record().cloned());
    };
    epochs::simulate(&mut engine, &plan.problem, &world, keys, observe).unwrap();
    (records, engine.digest())
}

/// Looks, tests and picks of engines are those of the second implementation, on the means that their records have.
#[test]
fn engines_look_and_pick_as_the_specification_says() {
    let mut kinds = [0; 2];
    for (number, (actions, horizon, rho)) in
        [(2, 5_000, 0.5), (3, 40_000, 0.3), (20, 1_000_000, 0.2)]
            .into_iter()
            .enumerate()
    {
        let plan = plan(problem(actions, horizon, rho));
        let rule = Rule::of(&plan.problem);
        for run in 0..60 {
            let mut means = vec![0.5; actions];
            means[run as usize % actions] += 0.04 * (run % 12) as f64;
            let keys = (
                Key::from(40u64).derive(run, 0),
                WorldKey::from(number as u64).derive(run, 0),
            );
            let (records, _) = records(&plan, &means, keys);
            let u = keys.0.uniform(Label::Look, [0, 0, 0]);
            let looks = records[0]
                .looks
                .clone()
                .expect("the first record says when it looks");
            let counts: Vec<u64> = rule.looks(u).iter().map(|look| look.1).collect();
            assert_eq!((looks.offset, &looks.counts), (u, &counts));
            let last = records.last().unwrap();
            kinds[usize::from(last.kind == Kind::Pick)] += 1;
            for record in &records[1..] {
                check(&rule, keys.0, record);
            }
            let played = last
                .strategy
                .iter()
                .position(|&share| share == 1.0)
                .unwrap();
            assert_eq!(last.decided(), Some((last.kind, played as u32)));
            assert!(records.len() as u64 <= plan.epochs_max);
            assert!(
                records[..records.len() - 1]
                    .iter()
                    .all(|one| one.kind == Kind::Explore)
            );
        }
    }
    println!("commits and picks: {kinds:?}");
    assert!(kinds.iter().all(|&runs| runs > 10), "{kinds:?}");
}

fn check(rule: &Rule, key: Key, record: &EpochRecord) {
    let count = record.counts[0];
    assert!(record.counts.iter().all(|&one| one == count), "{record:?}");
    let wins = |means: &[f64]| -> Vec<u64> {
        means
            .iter()
            .map(|mean| (mean * count as f64).round() as u64)
            .collect()
    };
    if let Some(test) = &record.test {
        let (leader, lead) = rule.lead(&wins(&test.means), count);
        let threshold =
            rule.least * (1.0 + key.uniform(Label::Look, [u64::from(test.look) + 1, 0, 0]));
        assert_eq!((test.count, test.leader as usize), (count, leader));
        assert!((test.lead - lead).abs() < 1e-9 && (test.threshold - threshold).abs() < 1e-9);
        assert_eq!(test.passed, lead > threshold);
        assert_eq!(test.passed, record.kind == Kind::Commit);
    }
    let picks = count == rule.count && record.kind != Kind::Commit;
    assert_eq!(record.pick.is_some(), picks, "{record:?}");
    if let Some(pick) = &record.pick {
        assert_eq!(pick.action as usize, rule.pick(key, &wins(&pick.means)));
    }
}

/// Growth spaces levels, not looks: beyond 8 they stay 8 apart.
#[test]
fn a_larger_growth_spaces_looks_no_further() {
    let looks = |growth: u32| {
        let draft = Problem::free(names(4), 1_000_000_000, 0.3).growth(growth);
        Plan::of(draft.build().unwrap()).trial
    };
    assert_eq!(looks(8), looks(64));
    assert_ne!(looks(8), looks(4));
}

/// Every count of two actions' wins in n flips each, with its chance: the difference of places and the lead.
fn outcomes(rule: &Rule, means: [f64; 2], n: u64) -> Vec<(f64, f64)> {
    let [first, second] = means.map(|mean| binomial_pmf(n, mean));
    let places: Vec<f64> = (0..=n).map(|wins| rule.place(wins, n)).collect();
    let mut outcomes = Vec::new();
    for (a, one) in first.iter().enumerate() {
        for (b, other) in second.iter().enumerate() {
            outcomes.push((places[a] - places[b], one * other));
        }
    }
    // Symmetric sums come up twice.
    outcomes.sort_by(|one, other| one.0.total_cmp(&other.0));
    outcomes.dedup_by(|next, kept| {
        let same = (next.0 - kept.0).abs() < 1e-13;
        if same {
            kept.1 += next.1;
        }
        same
    });
    outcomes.retain(|outcome| outcome.1 > 1e-15);
    outcomes
}

/// The chance that two runs of two actions differ whose one look is at the trial's end, by summing over all that may come.
///
/// Given both differences, only the threshold and the pick's noise are left, and what lies between two of either is a length.
fn exact_split(rule: &Rule, means: [f64; 2], looks: bool) -> f64 {
    let root = (rule.count as f64).sqrt();
    let passes = |difference: f64| {
        let lead = root * difference.abs();
        if looks {
            ((lead - rule.least) / rule.least).clamp(0.0, 1.0)
        } else {
            0.0
        }
    };
    let picks_first = |difference: f64| 1.0 / (1.0 + (-rule.eta * root * difference).exp());
    let outcomes: Vec<[f64; 4]> = outcomes(rule, means, rule.count)
        .into_iter()
        .map(|(difference, chance)| {
            [
                difference,
                chance,
                passes(difference),
                picks_first(difference),
            ]
        })
        .collect();
    let mut split = 0.0;
    for [one, chance, passes_one, first_one] in &outcomes {
        for [two, other, passes_two, first_two] in &outcomes {
            let (least, most) = (passes_one.min(*passes_two), passes_one.max(*passes_two));
            let differ = if (*one > 0.0) == (*two > 0.0) {
                0.0
            } else {
                least
            };
            let picks = (1.0 - most) * (first_one - first_two).abs();
            split += chance * other * (most - least + differ + picks);
        }
    }
    split
}

/// The horizon whose trial has this count.
fn with_count(count: u64, rho: f64) -> Rule {
    Rule::of(&problem(2, 6 * count, rho))
}

/// Exact: two actions, 16 to 64 samples, means from .02 to .98. Looks at the trial's end and the pick together split with
/// probability rho at most, the pick alone with .98 rho; at equal means five sixths are used (the rest goes to the line's offset, which fades with the count). With
/// eta a third larger, or the least threshold half as large, it is more than rho.
#[test]
fn no_world_of_two_actions_splits_more_often_than_rho() {
    let means = [0.02, 0.1, 0.3, 0.5, 0.9];
    let worlds: Vec<[f64; 2]> = means
        .iter()
        .flat_map(|&one| means.iter().map(move |&other| [one, other]))
        .filter(|[one, other]| one >= other)
        .collect();
    let (mut pick_most, mut most, mut larger, mut lower) = (0f64, 0f64, 0f64, 0f64);
    for count in [16, 40, 64] {
        for rho in [0.05, 0.3, 0.6] {
            let rule = with_count(count, rho);
            assert_eq!(rule.count, count);
            let eta = Rule {
                eta: rule.eta * 4.0 / 3.0,
                ..rule.clone()
            };
            let least = Rule {
                least: rule.least / 2.0,
                ..rule.clone()
            };
            for &world in &worlds {
                let pick = exact_split(&rule, world, false) / rho;
                let both = exact_split(&rule, world, true) / rho;
                assert!(
                    pick <= 0.98 && both <= 1.0,
                    "{count} {rho} {world:?}: {pick} {both}"
                );
                pick_most = pick_most.max(pick);
                most = most.max(both);
                larger = larger.max(exact_split(&eta, world, false) / rho);
                lower = lower.max(exact_split(&least, world, true) / rho);
            }
        }
    }
    println!(
        "of rho: pick {pick_most:.3}, with a look {most:.3}; eta 4/3 {larger:.3}, t_0 half {lower:.3}"
    );
    assert!(pick_most > 0.8 && larger > 1.1, "{pick_most} {larger}");
}

/// Worlds with a leader so many thresholds ahead after the trial, and some or all others tied behind it.
fn scanned(rule: &Rule, base: f64, ties: usize) -> Vec<Vec<f64>> {
    let line_end = rule.place(rule.count, rule.count);
    let leads = [0.0, 0.1, 0.25, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0];
    let ahead = |lead: &f64| {
        let y = base.sqrt().asin() + lead * rule.least / (rule.count as f64).sqrt();
        let best = y.min(line_end).sin().powi(2);
        let behind = |action: usize| if action <= ties { base } else { base / 4.0 };
        let mut means: Vec<f64> = (0..rule.actions).map(behind).collect();
        means[0] = best.max(base);
        means
    };
    leads.iter().map(ahead).collect()
}

/// How many of `pairs` pairs of runs decide differently.
fn splits(rule: &Rule, means: &[f64], pairs: u64, seed: u64) -> u64 {
    let decide = |pair: u64, member: u64| {
        let key = Key::from(seed).derive(pair, 0);
        rule.decide(
            key,
            means,
            (WorldKey::from(seed).derive(pair, member), member),
        )
    };
    let differ = |pair: &u64| decide(*pair, 0) != decide(*pair, 1);
    (0..pairs).into_par_iter().filter(differ).count() as u64
}

fn pairs() -> u64 {
    let wanted = std::env::var("DEBORA_TRIAL_PAIRS").ok();
    wanted.map_or(1_000, |pairs| pairs.parse().expect("a number of pairs"))
}

/// 2, 3, 5, 20 and 100 actions, rho .05 to .6, means .5 and .03, ten leads, one and all challengers tied: 800 worlds or so. False
/// alarm 1e-6 over all of them (exact binomial, shared evenly).
#[test]
fn no_scanned_world_splits_more_often_than_rho() {
    let mut worst = 0f64;
    let mut seed = 0;
    for actions in [2, 3, 5, 20, 100] {
        for rho in [0.05, 0.1, 0.3, 0.6] {
            // As many samples as there are at 1e6 rounds, and so a few looks.
            let rule = Rule::of(&problem(actions, 1_000_000, rho));
            for base in [0.5, 0.03] {
                for ties in [1, actions - 1] {
                    for means in scanned(&rule, base, ties) {
                        seed += 1;
                        let split = splits(&rule, &means, pairs(), seed);
                        let alarm = binomial_upper_tail(pairs(), rho, split);
                        assert!(
                            alarm > 1e-6 / 800.0,
                            "{actions} actions, rho {rho}, {means:?}: {split} of {} pairs split",
                            pairs()
                        );
                        worst = worst.max(split as f64 / pairs() as f64 / rho);
                    }
                }
            }
        }
    }
    println!(
        "worst of {seed} worlds: {worst:.3} of rho in {} pairs each",
        pairs()
    );
}

/// Engines themselves: equal means, where the pick is most in doubt. 4,000 pairs, false alarm 1e-6 (exact binomial).
#[test]
fn pairs_of_engines_split_no_more_often_than_rho() {
    for (actions, rho) in [(2, 0.3), (3, 0.1), (5, 0.6)] {
        let plan = plan(problem(actions, 100_000, rho));
        let means = vec![0.5; actions];
        let digest = |pair: u64, member: u64| {
            let world = WorldKey::from(50u64).derive(pair, member);
            records(&plan, &means, (Key::from(51u64).derive(pair, 0), world)).1
        };
        let differ = |pair: &u64| digest(*pair, 0) != digest(*pair, 1);
        let split = (0..4_000u64).into_par_iter().filter(differ).count() as u64;
        println!("{actions} actions, rho {rho}: {split} of 4,000 pairs of engines split");
        assert!(binomial_upper_tail(4_000, rho, split) > 1e-6, "{split}");
    }
}

/// What each part is for: without it the same scan finds more than rho. 4,000 pairs in the worst of some worlds each; the alarm is
/// raised for certain, below 1e-6.
#[test]
fn mutants_are_found_out() {
    let pairs = 4_000;
    let worst = |rule: &Rule, rho: f64| {
        let worlds = [scanned(rule, 0.5, 1), scanned(rule, 0.5, rule.actions - 1)].concat();
        let found = worlds.iter().enumerate();
        let splits = found.map(|(seed, means)| splits(rule, means, pairs, 900 + seed as u64));
        let split = splits.max().unwrap();
        (split, binomial_upper_tail(pairs, rho, split))
    };
    for (name, actions, rho, mutate) in [
        (
            "eta a third larger",
            2,
            0.1,
            (|rule| rule.eta *= 4.0 / 3.0) as fn(&mut Rule),
        ),
        ("t_0 half as large", 2, 0.1, |rule| rule.least /= 2.0),
        ("the pick by rank", 3, 0.1, |rule| rule.by_rank = true),
    ] {
        let right = Rule::of(&problem(actions, 1_000_000_000, rho));
        let mut wrong = right.clone();
        mutate(&mut wrong);
        let (split, alarm) = worst(&wrong, rho);
        println!(
            "{name}, {actions} actions: {:.3} of rho",
            split as f64 / pairs as f64 / rho
        );
        assert!(
            alarm < 1e-6,
            "{name}: {split} of {pairs} pairs, chance {alarm}"
        );
        let (split, alarm) = worst(&right, rho);
        assert!(alarm > 1e-6, "not mutated: {split} of {pairs} pairs");
    }
}
