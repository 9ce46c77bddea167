//! Golden vectors: fixed keys, exact values. Changing one changes what users get, and needs a line under "Values" in the
//! changelog.
//!
//! `tests/golden.txt` holds one value a line, floats as their bits. `./check` runs this file in debug and in release builds.
//! To see what a change does to the values: `DEBORA_GOLDEN=print cargo test --test fast golden -- --nocapture`.

use std::fmt::Write as _;

use debora::internals::lp;
use debora::key::Label;
use debora::mean::round_to_cell;
use debora::{Engine, EpochRecord, Key, Plan, Problem, Tally, WorldKey};

use crate::common::{Coins, names, run, smooth_epoch};

fn bits(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

fn draws(text: &mut String) {
    let key = Key::from(42u64);
    let world = WorldKey::from_hex("000102030405060708090a0b0c0d0e0f").unwrap();
    // Every label by its number: reusing one would make two draws depend on each other.
    for label in [
        Label::Round,
        Label::Offset,
        Label::Skip,
        Label::Overtime,
        Label::Threshold,
        Label::Derive,
        Label::Block,
        Label::Look,
        Label::Pick,
    ] {
        writeln!(
            text,
            "draw {} {:016x?}",
            label as u64,
            key.block(label, [1, 2, 3])
        )
        .unwrap();
    }
    writeln!(
        text,
        "feedback {:016x?}",
        world.block(Label::Feedback, [1, 2, 3])
    )
    .unwrap();
    writeln!(
        text,
        "feedback sum {:016x?}",
        world.block(Label::FeedbackSum, [1, 2, 3])
    )
    .unwrap();
    writeln!(
        text,
        "uniform {}",
        bits(key.uniform(Label::Round, [1, 0, 0]))
    )
    .unwrap();
    writeln!(
        text,
        "derived {} {}",
        key.derive(7, 0).to_hex(),
        world.derive(7, 1).to_hex()
    )
    .unwrap();
}

/// One problem for each policy and profile, and one for every path that looks, ranges by action and short horizons open.
fn problems() -> Vec<(&'static str, Problem)> {
    let limited = |draft: debora::problem::Draft| {
        draft
            .cost("price", [0.0, 0.02], 0.012)
            .cost("wait", [0.0, 1.0], 0.5)
    };
    let drafts = |horizon: u64| {
        [
            Problem::free(names(4), horizon, 0.5),
            limited(Problem::soft(names(4), horizon, 0.5)),
            limited(Problem::hard(names(4), horizon, 0.5))
                .safe_with_costs([0.5, 0.5, 0.0, 0.0], [0.006, 0.25]),
        ]
    };
    let tight = drafts(300_000).map(|draft| draft.build().unwrap());
    let paper = drafts(30_000).map(|draft| draft.paper().build().unwrap());
    let labels = [
        "free tight",
        "soft tight",
        "hard tight",
        "free paper",
        "soft paper",
        "hard paper",
    ];
    let more = more_problems().map(|(label, draft)| (label, draft.build().unwrap()));
    labels
        .into_iter()
        .zip(tight.into_iter().chain(paper))
        .chain(more)
        .collect()
}

fn more_problems() -> [(&'static str, debora::problem::Draft); 6] {
    let ranges = || vec![[0.0, 0.002], [0.0, 0.02], [0.015, 0.015], [0.001, 0.012]];
    let own = |draft: debora::problem::Draft| {
        draft
            .cost("price", ranges(), 0.012)
            .watch("seen", [0.0, 1.0])
            .cost("wait", [0.0, 1.0], 0.5)
    };
    let free = |horizon: u64| Problem::free(names(4), horizon, 0.9).delta(0.4);
    let short = |draft: debora::problem::Draft| own(draft.delta(0.4).growth(2));
    [
        // Some looks, and none clear enough.
        ("free picked", free(60_000)),
        ("free clear", free(60_000).growth(2)),
        ("free explore", free(9_000).explore(0.25)),
        (
            "soft own",
            short(Problem::soft(names(4), 60_000, 0.9)).caution(0.75),
        ),
        (
            "hard own",
            short(Problem::hard(names(4), 200_000, 0.9))
                .safe_with_costs([0.5, 0.5, 0.0, 0.0], [0.004, 0.2]),
        ),
        // Cut by the horizon in the middle of a block.
        ("soft blind", short(Problem::soft(names(4), 110, 0.9))),
    ]
}

fn plans(text: &mut String) {
    for (name, problem) in problems() {
        let plan = Plan::of(problem);
        let bounds = [
            plan.rho_share.unwrap_or(-1.0),
            plan.delta_share.unwrap_or(-1.0),
            plan.offset_c.unwrap_or(-1.0),
            plan.regret_bound,
            plan.violation_bound.unwrap_or(-1.0),
        ];
        let exact: Vec<String> = bounds
            .into_iter()
            .chain(plan.detectable)
            .map(bits)
            .collect();
        let counts = (
            plan.blind,
            plan.first_informative_count,
            plan.exploration_rounds,
            plan.epochs_max,
            plan.horizon_needed,
        );
        writeln!(
            text,
            "plan {name} {counts:?} {exact:?} {:?}",
            plan.rho_needed.map(bits)
        )
        .unwrap();
        for level in &plan.levels {
            writeln!(
                text,
                "level {} {} {} {}",
                level.level,
                level.count,
                bits(level.cell),
                bits(level.width)
            )
            .unwrap();
        }
        if let Some(trial) = &plan.trial {
            let constants = [
                trial.offset_c,
                trial.threshold,
                trial.scale,
                trial.picked_lead,
            ];
            let looks: Vec<u64> = trial.looks.iter().map(|look| look.count).collect();
            let constants = constants.map(bits);
            writeln!(text, "trial {} {looks:?} {constants:?}", trial.count).unwrap();
        }
    }
}

fn means(text: &mut String) {
    let mut tally = Tally::new(1, 1);
    for (round, value) in [0.1, 0.2, 1.0 / 3.0, 0.7, 1.0].into_iter().enumerate() {
        tally.add(0, &[debora::mean::to_fixed(value)]);
        let mean = tally.mean(0, 0);
        let offset = Key::from(42u64).uniform(Label::Offset, [0, 0, round as u64]);
        let (index, estimate) = round_to_cell(mean, 0.1 * (round + 1) as f64, offset);
        writeln!(text, "mean {} {index:?} {}", bits(mean), bits(estimate)).unwrap();
        let line = debora::line::MeanLine::new(round as u64 + 1, 1.5);
        let place = line.of_sum(tally.sums()[0]);
        writeln!(
            text,
            "place {} {}",
            bits(place),
            bits(line.mean(place + 0.125))
        )
        .unwrap();
    }
}

fn solutions(text: &mut String) {
    let key = Key::from(42u64);
    for (number, (actions, rows)) in [(2, 1), (3, 0), (5, 2), (10, 3), (40, 6), (7, 2)]
        .into_iter()
        .enumerate()
    {
        let number = number as u64;
        let value = |row: u64, action: u64| key.uniform(Label::Threshold, [number, row, action]);
        let matrix: Vec<f64> = (0..rows)
            .flat_map(|row| (0..actions).map(move |action| value(row + 1, action)))
            .collect();
        let objective: Vec<f64> = (0..actions).map(|action| value(0, action)).collect();
        // The last one is infeasible.
        let limits = vec![if number == 5 { -0.25 } else { 0.4 }; rows as usize];
        let solution = lp::solve(&objective, &matrix, &limits);
        let played = solution
            .strategy
            .iter()
            .enumerate()
            .filter(|(_, probability)| **probability > 0.0);
        let played: Vec<String> = played
            .map(|(action, &probability)| format!("{action}:{}", bits(probability)))
            .collect();
        writeln!(
            text,
            "lp {actions} {rows} {} {played:?}",
            bits(solution.violation)
        )
        .unwrap();
    }
}

/// The world of a problem: rewards alike where the trial is to end with a pick.
fn world(name: &str, problem: &Problem) -> Coins {
    let all: [&[f64]; 4] = [
        &[0.3, 0.5, 0.7, 0.6],
        &[0.2, 0.4, 0.9, 0.6],
        &[0.1, 0.3, 0.6, 0.8],
        &[0.4, 0.3, 0.45, 0.6],
    ];
    let alike: [&[f64]; 1] = [&[0.5, 0.51, 0.5, 0.52]];
    let means = if name == "free picked" {
        &alike[..]
    } else {
        &all[..]
    };
    Coins::new(&means[..problem.quantities()], 7)
}

/// Rules and weights of every epoch of a run under hard limits.
fn rules(records: &[EpochRecord]) -> String {
    let each = records.iter().map(|record| {
        let rule = record.rule.expect("a rule of policy hard");
        format!("{:?} {rule:?} {}", record.kind, bits(record.sigma))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A world in which planning alone would never learn about its best action, so that mixing takes over (see `safety.rs`). Told by
/// whole epochs, as the horizon is long; not every key comes to it.
fn mixing(text: &mut String) {
    let draft = Problem::hard(names(3), 1_000_000_000, 0.5).cost("cost", [0.0, 1.0], 0.5);
    let problem = draft
        .safe_with_margins([0.5, 0.5, 0.0], [0.05])
        .build()
        .unwrap();
    let means = [vec![0.0, 0.75, 0.9], vec![0.4, 0.5, 0.5]];
    let play = |key: u64| {
        let mut engine = Engine::new(problem.clone(), Key::from(key));
        let mut records = Vec::new();
        while !engine.is_done() {
            let epoch = smooth_epoch(&engine, &means);
            records.push(engine.tell_epoch(&epoch).unwrap());
        }
        (key, rules(&records), engine.digest())
    };
    let both = |rules: &str| rules.contains("Estimate Mix") && rules.contains("Estimate Plan");
    let mut played = (0..50).map(play);
    let (key, rules, digest) = played.find(|(_, rules, _)| both(rules)).expect("a key");
    writeln!(text, "mixing {key} {digest} {rules}").unwrap();
}

fn digests(text: &mut String) {
    for (name, problem) in problems() {
        let world = world(name, &problem);
        let mut engine = Engine::new(problem, Key::from(42u64));
        let records = run(&mut engine, &world);
        writeln!(
            text,
            "digest {name} {} epochs {}",
            records.len(),
            engine.digest()
        )
        .unwrap();
        for test in records.iter().filter_map(|record| record.test.as_ref()) {
            let numbers = [test.lead, test.uniform, test.threshold].map(bits);
            writeln!(
                text,
                "look {} {} leader {} runner-up {} {numbers:?} {}",
                test.look, test.count, test.leader, test.runner_up, test.passed
            )
            .unwrap();
        }
        if let Some(pick) = records.iter().find_map(|record| record.pick.as_ref()) {
            let uniforms: Vec<String> = pick.uniforms.iter().copied().map(bits).collect();
            writeln!(text, "pick {} {uniforms:?} {}", pick.count, pick.action).unwrap();
        }
        if name == "soft tight" || name == "soft own" {
            let rules: Vec<String> = records
                .iter()
                .map(|one| format!("{:?}", one.rule))
                .collect();
            writeln!(text, "rules {}", rules.join(", ")).unwrap();
        }
        if name == "hard tight" || name == "hard own" {
            writeln!(text, "rules {}", rules(&records)).unwrap();
        }
        let recommended = engine.recommendation();
        let cautious = recommended.cautious.map(|cautious| cautious.strategy);
        let both = [Some(recommended.current.strategy), cautious];
        let both = both.map(|strategy| {
            strategy.map(|strategy| strategy.into_iter().map(bits).collect::<Vec<_>>())
        });
        writeln!(text, "current and cautious {both:?}").unwrap();
    }
}

/// The first two blocks of exploration, before and after the first look where there are looks.
fn blocks(text: &mut String) {
    for (name, draft) in more_problems() {
        let mut engine = Engine::new(draft.build().unwrap(), Key::from(42u64));
        let mut actions = [0; 64];
        while crate::common::is_in_blocks(&engine) && engine.epoch() < 2 {
            engine.decide_many(engine.next_round().., &mut actions);
            let order: String = actions.iter().map(u32::to_string).collect();
            writeln!(text, "blocks {name} {} {order}", engine.epoch()).unwrap();
            if engine.plan().trial.is_none() {
                break;
            }
            // All alike, so that the first look leaves everything open.
            let means = vec![vec![0.0; 4]];
            engine.tell_epoch(&smooth_epoch(&engine, &means)).unwrap();
        }
    }
}

fn values() -> String {
    let mut text = String::new();
    for part in [draws, plans, means, solutions, blocks, digests, mixing] {
        part(&mut text);
    }
    text
}

#[test]
fn values_are_those_promised() {
    let values = values();
    if std::env::var("DEBORA_GOLDEN").is_ok_and(|what| what == "print") {
        println!("{values}");
    }
    for (line, (value, golden)) in values
        .lines()
        .zip(include_str!("../golden.txt").lines())
        .enumerate()
    {
        assert_eq!(value, golden, "line {}", line + 1);
    }
    assert_eq!(
        values.lines().count(),
        include_str!("../golden.txt").lines().count()
    );
}

#[test]
fn another_process_gives_the_same_values() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "golden::values_are_those_promised",
            "--exact",
            "--nocapture",
        ])
        .env("DEBORA_GOLDEN", "print")
        .output()
        .unwrap();
    let output = String::from_utf8(child.stdout).unwrap();
    assert!(output.contains(&values()), "{output}");
}
