//! What a person types, and what comes back: numbers as they are written, flags where they do something, messages that name
//! what to change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::binary::debora;

const ROUTING: &str = "examples/model-routing.toml";

fn call(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = debora(arguments);
    command.current_dir(root).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn said(arguments: &[&str]) -> String {
    let output = call(arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    text(&output.stdout)
}

/// On one line, as the width of the terminal is not what is tested.
fn words(arguments: &[&str]) -> String {
    said(arguments).replace('\n', " ")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(&[arguments, &["--json"]].concat())).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = call(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    text(&output.stderr)
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("debora-typed-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn numbers_are_read_however_they_are_written() {
    let plain = json(&["replicate", ROUTING, "--rho", "0.3", "--pairs", "100"]);
    for pairs in ["1e2", "1_00", "100."] {
        let typed = json(&["replicate", ROUTING, "--rho", ".3", "--pairs", pairs]);
        assert_eq!(
            (&typed["pairs"], &typed["digest"]),
            (&plain["pairs"], &plain["digest"])
        );
        assert_eq!(typed["identical"], plain["identical"], "{pairs}");
    }
    let gap = json(&["plan", ROUTING, "--gap", ".1"]);
    assert_eq!(
        gap["horizon_for_gap"],
        json(&["plan", ROUTING, "--gap", "0.1"])["horizon_for_gap"]
    );
    assert_eq!(
        json(&[
            "run",
            ROUTING,
            "--threads",
            "1e0",
            "--horizon",
            "10_000_000"
        ])["rounds"],
        10_000_000
    );
    let why = refused(&["replicate", ROUTING, "--pairs", "1.5"]);
    assert!(
        why.contains(
            "'1.5' for '--pairs <N>': give a whole number of 1 or more, such as 1000 or 1e3"
        ),
        "{why}"
    );
    let why = refused(&["replicate", ROUTING, "--threads", "0"]);
    assert!(why.contains("give a whole number from 1 to 65535"), "{why}");
    let why = refused(&["plan", ROUTING, "--gap", "wide"]);
    assert!(why.contains("give a number, such as 0.05"), "{why}");
}

#[test]
fn a_seed_is_called_a_key() {
    let why = refused(&["run", ROUTING, "--seed", "3"]);
    assert!(
        why.contains("unexpected argument '--seed'") && why.contains("'--key'"),
        "{why}"
    );
    let why = refused(&["run", ROUTING, "--set", "seed=3"]);
    assert!(why.contains("did you mean \"key\"?"), "{why}");
}

/// Pair j's two runs are those that replicate measures as pair j.
#[test]
fn a_run_plays_any_pair_s_data() {
    let folder = folder("pair");
    let out = folder.join("pairs");
    said(&[
        "replicate",
        ROUTING,
        "--pairs",
        "3",
        "--shard",
        "1/1",
        "--out",
        out.to_str().unwrap(),
    ]);
    let part = fs::read_to_string(out.join("shard-1-of-1.json")).unwrap();
    let part: Value = serde_json::from_str(&part).unwrap();
    for (pair, member) in [(0, 0), (2, 0), (2, 1)] {
        let measured = &part["shard"]["players"][0][1][pair]["runs"][member];
        let (pair, member) = (pair.to_string(), member.to_string());
        let run = json(&["run", ROUTING, "--pair", &pair, "--member", &member]);
        assert_eq!(
            (&run["digest"], &run["counts"]),
            (&measured["digest"], &measured["counts"])
        );
        assert_eq!(
            (run["pair"].to_string(), run["member"].to_string()),
            (pair, member)
        );
    }
    assert_eq!(
        json(&["run", ROUTING]),
        json(&["run", ROUTING, "--pair", "0", "--member", "0"])
    );
    let why = refused(&["run", ROUTING, "--member", "2"]);
    assert!(why.contains("give a whole number from 0 to 1"), "{why}");
    let report = folder.join("report");
    said(&[
        "run",
        ROUTING,
        "--pair",
        "2",
        "--member",
        "1",
        "--out",
        report.to_str().unwrap(),
    ]);
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    assert!(
        page.contains("--pair 2 --member 1"),
        "the command that makes it again"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn out_is_a_flag_of_the_verbs_that_write() {
    for verb in [
        &["init", "-"][..],
        &["completions", "bash"],
        &["schema"],
        &["audit", "log"],
        &["keys", "list"],
    ] {
        let why = refused(&[verb, &["--out", "folder"]].concat());
        assert!(
            why.contains("unexpected argument '--out'"),
            "{verb:?}: {why}"
        );
        assert!(
            !said(&[verb[0], "--help"]).contains("--out <DIR>"),
            "{verb:?}"
        );
    }
    for verb in ["plan", "run", "replicate", "compare", "merge", "seal"] {
        assert!(said(&[verb, "--help"]).contains("--out <DIR>"), "{verb}");
    }
}

#[test]
fn shards_that_do_not_fit_are_named_with_what_differs() {
    let folder = folder("shards");
    let shard = |name: &str, number: &str, more: &[&str]| {
        let out = folder.join(name).display().to_string();
        said(
            &[
                &[
                    "replicate",
                    ROUTING,
                    "--pairs",
                    "9",
                    "--shard",
                    number,
                    "--out",
                    &out,
                ],
                more,
            ]
            .concat(),
        );
        format!("{out}/shard-{}-of-3.json", &number[..1])
    };
    let [one, two, three] = ["1/3", "2/3", "3/3"].map(|number| shard("plain", number, &[]));
    let other = shard("other", "2/3", &["--rho", "0.2"]);
    let slow = shard(
        "slow",
        "2/3",
        &["--simulator", "rounds", "--horizon", "1e4"],
    );
    let fits = |parts: &[&str]| refused(&[&["merge"], parts].concat());
    let why = fits(&[&one, &other, &three]);
    assert!(
        why.contains(&format!("{one} has rho 0.1, {other} has 0.2")),
        "{why}"
    );
    let why = fits(&[&one, &slow, &three]);
    assert!(
        why.contains(&format!("{one} has simulator epochs, {slow} has rounds")),
        "{why}"
    );
    let why = fits(&[&one, &three]);
    assert!(
        why.contains("pairs 3 to 5 of debora are missing, of 9 from 0 on"),
        "{why}"
    );
    assert!(why.contains(&one) && why.contains(&three), "{why}");
    let mut edited: Value = serde_json::from_str(&fs::read_to_string(&two).unwrap()).unwrap();
    let before = edited["shard"]["players"][0][1][0]["runs"][0]["regret"]
        .as_f64()
        .unwrap();
    edited["shard"]["players"][0][1][0]["runs"][0]["regret"] = 12.5.into();
    let copy = folder.join("copy.json").display().to_string();
    fs::write(&copy, edited.to_string()).unwrap();
    let why = fits(&[&one, &two, &three, &copy]);
    let sentence = format!(
        "{two} and {copy} both have pair 3 of debora, and they differ: regret {before} and 12.5"
    );
    assert!(why.contains(&sentence), "{why}");
    said(&["merge", &one, &two, &three, &two]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_verb_says_what_the_horizon_sees_of_the_world() {
    let short = ["examples/prices.toml", "--horizon", "2e7"];
    let sentence = "12 and 9 differ in revenue by 0.63; this horizon sees ";
    for verb in [
        &["plan"][..],
        &["run"],
        &["replicate", "--pairs", "2"],
        &["compare", "--pairs", "2", "--players", "optimistic-lp"],
    ] {
        let found = words(&[verb, &short].concat());
        assert!(found.contains(sentence), "{verb:?}: {found}");
        let gaps = json(&[verb, &short].concat())["gaps"].clone();
        let one = gaps
            .as_array()
            .unwrap()
            .iter()
            .find(|gap| gap["actions"] == serde_json::json!(["12", "9"]));
        let one = one.unwrap_or_else(|| panic!("{gaps}"));
        assert_eq!(
            (&one["quantity"], &one["seen"]),
            (&"revenue".into(), &false.into())
        );
        assert!(one["horizon_needed"].as_u64() > Some(20_000_000), "{one}");
    }
    let enough = words(&["run", "examples/prices.toml"]);
    assert!(
        enough.contains("This horizon sees all that matters in this world"),
        "{enough}"
    );
    let blind = words(&["plan", "examples/prices.toml", "--horizon", "1e3"]);
    assert!(
        blind.starts_with("BLIND") && !blind.contains("tell them apart"),
        "{blind}"
    );
    assert!(json(&["plan", "examples/live.toml"]).get("gaps").is_none());
}

#[test]
fn a_comparison_says_what_its_columns_are_and_who_is_not_compared() {
    let soft = said(&[
        "compare",
        ROUTING,
        "--pairs",
        "2",
        "--players",
        "optimistic-lp",
    ]);
    for column in [
        "identical: pairs whose runs",
        "regret: against the best",
        "name>limit: excess",
        "unsafe: runs with",
        "epochs: stretches",
    ] {
        assert!(soft.contains(&format!("\n  {column}")), "{column}: {soft}");
    }
    assert!(
        soft.lines().all(|line| line.chars().count() <= 80),
        "{soft}"
    );
    let free = said(&[
        "compare",
        "examples/free.toml",
        "--horizon",
        "1e5",
        "--pairs",
        "2",
        "--players",
        "ucb1",
    ]);
    assert!(
        free.contains("\n  regret: ") && !free.contains("unsafe: "),
        "{free}"
    );
    let hard = words(&[
        "compare",
        "examples/cache-policy.toml",
        "--horizon",
        "1e6",
        "--pairs",
        "4",
        "--quiet",
    ]);
    assert!(
        hard.contains("unsafe in some run, and their regret is not compared: limits are hard."),
        "{hard}"
    );
}

/// A pair of 1e12 rounds, one by one, would take days: it stops within itself.
#[test]
fn an_interrupt_ends_pairs_that_are_played_by_rounds() {
    let arguments = [
        "replicate",
        ROUTING,
        "--simulator",
        "rounds",
        "--horizon",
        "1e12",
        "--pairs",
        "2",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = debora(&arguments);
    let child = command
        .current_dir(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let kill = ["-INT", &child.id().to_string()];
    assert!(
        std::process::Command::new("kill")
            .args(kill)
            .status()
            .unwrap()
            .success()
    );
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(output.status.code(), Some(2));
    let why = text(&output.stderr);
    assert!(
        why.contains("stopped as asked; nothing is complete"),
        "{why}"
    );
}
