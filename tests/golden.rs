//! Golden vectors: fixed keys, exact values. Changing one changes what users get, and needs a line under "Values" in the
//! changelog.
//!
//! `tests/golden.txt` holds one value a line, floats as their bits. `./check` runs this file in debug and in release builds.
//! To see what a change does to the values: `DEBORA_GOLDEN=print cargo test --test golden -- --nocapture`.

mod common;

use std::fmt::Write as _;

use common::{Coins, names, run};
use debora::internals::lp;
use debora::key::Label;
use debora::mean::round_to_cell;
use debora::{Engine, Key, Plan, Problem, Tally, WorldKey};

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

/// One problem for each policy and profile.
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
    labels
        .into_iter()
        .zip(tight.into_iter().chain(paper))
        .collect()
}

fn plans(text: &mut String) {
    for (name, problem) in problems() {
        let plan = Plan::of(problem);
        let bounds = [
            plan.rho_share,
            plan.delta_share,
            plan.regret_bound,
            plan.violation_bound.unwrap_or(-1.0),
        ];
        let exact: Vec<String> = bounds
            .into_iter()
            .chain(plan.detectable_gap)
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

fn digests(text: &mut String) {
    let all: [&[f64]; 3] = [
        &[0.3, 0.5, 0.7, 0.6],
        &[0.2, 0.4, 0.9, 0.6],
        &[0.1, 0.3, 0.6, 0.8],
    ];
    for (name, problem) in problems() {
        let world = Coins::new(&all[..problem.quantities()], 7);
        let mut engine = Engine::new(problem, Key::from(42u64));
        let records = run(&mut engine, &world);
        writeln!(
            text,
            "digest {name} {} epochs {}",
            records.len(),
            engine.digest()
        )
        .unwrap();
    }
}

fn values() -> String {
    let mut text = String::new();
    for part in [draws, plans, means, solutions, digests] {
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
        .zip(include_str!("golden.txt").lines())
        .enumerate()
    {
        assert_eq!(value, golden, "line {}", line + 1);
    }
    assert_eq!(
        values.lines().count(),
        include_str!("golden.txt").lines().count()
    );
}

#[test]
fn another_process_gives_the_same_values() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["values_are_those_promised", "--exact", "--nocapture"])
        .env("DEBORA_GOLDEN", "print")
        .output()
        .unwrap();
    let output = String::from_utf8(child.stdout).unwrap();
    assert!(output.contains(&values()), "{output}");
}
