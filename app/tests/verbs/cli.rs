//! The real program: every verb, every exit code, the JSON contract field by field, files, signals, pipes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

fn debora(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_debora"));
    command.args(arguments).current_dir(root());
    command
}

fn output(arguments: &[&str]) -> Output {
    debora(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a call that must succeed with this exit code and say nothing on standard error.
fn said(arguments: &[&str], code: i32) -> String {
    let output = output(arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    text(&output.stdout)
}

/// The message of a call that must fail with exit code 2 and print nothing.
fn refused(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{arguments:?}: {}",
        text(&output.stdout)
    );
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    text(&output.stderr)
}

fn json(arguments: &[&str], code: i32) -> Value {
    serde_json::from_str(&said(arguments, code)).unwrap()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("debora-cli-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn has(document: &Value, fields: &[&str]) {
    for field in fields {
        assert!(document.get(field).is_some(), "no {field} in {document:#}");
    }
}

const ROUTING: &str = "examples/model-routing.toml";

#[test]
fn every_example_plans_without_being_blind_and_runs() {
    let mut seen = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        seen += 1;
        let path = path.display().to_string();
        assert_eq!(
            json(&["plan", &path, "--json"], 0)["blind"],
            false,
            "{path}"
        );
        let text = fs::read_to_string(&path).unwrap();
        // A live experiment's world is real.
        if text.contains("\n[world]") {
            assert_eq!(
                json(&["run", &path, "--json"], 0)["warnings"],
                serde_json::json!([]),
                "{path}"
            );
        } else {
            assert!(
                text.contains("\n[service]"),
                "{path} is for neither simulation nor service"
            );
        }
        assert!(
            text.lines().take(3).all(|line| line.starts_with("# ")),
            "{path}: three lines on whom it is for"
        );
    }
    assert_eq!(seen, 9);
}

#[test]
fn plan_keeps_the_contract() {
    let plan = json(&["plan", ROUTING, "--json", "--gap", "0.1"], 0);
    has(
        &plan,
        &[
            "profile",
            "growth",
            "rho_share",
            "delta_share",
            "blind",
            "first_informative_count",
            "exploration_rounds",
        ],
    );
    has(
        &plan,
        &[
            "levels",
            "epochs_max",
            "detectable",
            "regret_bound",
            "violation_bound",
            "bound_probability",
        ],
    );
    has(&plan["levels"][0], &["level", "count", "cell", "width"]);
    assert!(plan["horizon_for_gap"].as_u64().unwrap() > 1_000);
    let blind = json(&["plan", ROUTING, "--json", "--horizon", "1000"], 0);
    assert_eq!(
        (&blind["blind"], blind["horizon_needed"].is_u64()),
        (&Value::Bool(true), true)
    );
    assert!(blind.get("rho_needed").is_some());
}

#[test]
fn run_keeps_the_contract_and_so_does_its_trace() {
    let folder = folder("trace");
    let trace = folder.join("trace.jsonl").display().to_string();
    let run = json(&["run", ROUTING, "--json", "--trace", &trace], 0);
    has(
        &run,
        &[
            "rounds",
            "epochs",
            "regret",
            "violation",
            "unsafe_rounds",
            "infeasible_epochs",
            "reward_mean",
            "counts",
        ],
    );
    has(&run, &["final_strategy", "digest", "simulator"]);
    let lines: Vec<Value> = fs::read_to_string(&trace)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, run["epochs"].as_u64().unwrap());
    assert_eq!(
        lines
            .iter()
            .map(|line| line["rounds"].as_u64().unwrap())
            .sum::<u64>(),
        100_000_000
    );
    for line in &lines {
        has(
            line,
            &[
                "epoch",
                "first_round",
                "rounds",
                "kind",
                "candidate",
                "sigma",
                "strategy",
                "counts",
                "estimates",
            ],
        );
        for estimate in line["estimates"].as_array().unwrap() {
            has(
                estimate,
                &[
                    "action", "quantity", "count", "mean", "offset", "cell", "index", "estimate",
                    "width",
                ],
            );
        }
    }
    assert!(
        lines
            .iter()
            .any(|line| !line["estimates"].as_array().unwrap().is_empty())
    );
    assert!(refused(&["run", ROUTING, "--trace", &trace]).contains("--force"));
    said(&["run", ROUTING, "--trace", &trace, "--force"], 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn replicate_keeps_the_contract() {
    let document = json(&["replicate", ROUTING, "--json", "--pairs", "200"], 0);
    has(
        &document,
        &[
            "pairs",
            "identical",
            "identical_rate",
            "interval",
            "promised",
            "regret",
            "violation",
            "unsafe_runs",
        ],
    );
    has(&document, &["runs", "first_split", "seconds"]);
    for quantity in ["regret", "violation"] {
        has(
            &document[quantity],
            &["mean", "p05", "median", "p95", "bound"],
        );
    }
    assert_eq!(
        (&document["pairs"], &document["runs"]),
        (&serde_json::json!(200), &serde_json::json!(400))
    );
    assert!(document["identical_rate"].as_f64().unwrap() >= 0.9);
}

#[test]
fn compare_keeps_the_contract() {
    let document = json(
        &[
            "compare",
            "examples/free.toml",
            "--horizon",
            "1e5",
            "--pairs",
            "10",
            "--json",
        ],
        0,
    );
    let rows = document["rows"].as_array().unwrap();
    for row in rows {
        has(
            row,
            &[
                "player",
                "source",
                "constants",
                "identical_rate",
                "interval",
                "regret",
                "violation",
                "signed_violation",
            ],
        );
        has(row, &["unsafe_runs", "epochs_mean", "seconds", "note"]);
    }
    let players: Vec<&str> = rows
        .iter()
        .map(|row| row["player"].as_str().unwrap())
        .collect();
    assert_eq!(players[0], "debora");
    assert!(
        players.contains(&"ucb1") && players.contains(&"rse"),
        "{players:?}"
    );
    let few = json(
        &[
            "compare",
            ROUTING,
            "--pairs",
            "5",
            "--players",
            "optimistic-lp",
            "--json",
        ],
        0,
    );
    assert_eq!(few["rows"].as_array().unwrap().len(), 2);
    assert!(
        refused(&["compare", ROUTING, "--players", "ucb1"]).contains(
            "no player \"ucb1\" for policy soft; there are optimistic-lp, primal-dual, doss and pessimistic-optimistic"
        )
    );
    assert!(
        refused(&["compare", ROUTING, "--players", "primal-dual"])
            .contains("--horizon 10000000 or less")
    );
}

#[test]
fn the_answer_comes_in_words_first() {
    let words = said(&["replicate", ROUTING, "--pairs", "1000"], 0);
    assert!(
        words.starts_with("model routing: identical in 934 of 1,000 pairs: 93.4 %, 95 % interval"),
        "{words}"
    );
    assert!(
        words.lines().nth(1).unwrap().ends_with("promised 90 %"),
        "{words}"
    );
    assert!(
        words
            .lines()
            .all(|line| line.chars().count() <= 80 && line.is_ascii()),
        "{words}"
    );
    assert!(!words.contains('\x1b'), "colours in a pipe");
}

#[test]
fn what_matters_most_is_said_first() {
    let blind = said(&["plan", ROUTING, "--horizon", "5000"], 0).replace('\n', " ");
    assert!(
        blind.starts_with("BLIND: 5,000 rounds are too few for rho 0.1"),
        "{blind}"
    );
    assert!(blind.contains("a horizon of at least"), "{blind}");
    let long = said(&["plan", ROUTING, "--horizon", "1e5"], 0).replace('\n', " ");
    assert!(long.starts_with("exploration takes"), "{long}");
    let infeasible =
        said(&["run", ROUTING, "--set", "cost.price.threshold=0.0001"], 0).replace('\n', " ");
    assert!(
        infeasible.starts_with(
            "no strategy can keep price at or below 0.0001: the cheapest costs 0.0003"
        ),
        "{infeasible}"
    );
    let margin = said(
        &[
            "run",
            "examples/cache-policy.toml",
            "--set",
            "safe.cost.latency=3.0",
        ],
        0,
    )
    .replace('\n', " ");
    assert!(
        margin.starts_with("the safe strategy's true margin on latency is smaller"),
        "{margin}"
    );
}

/// One action far ahead: the plan says when that is seen, the run that it was, and the pairs how often.
#[test]
fn a_commitment_is_said_in_words() {
    let clear = |verb: &str, more: &[&str]| {
        let world = "world.reward=[0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]";
        let arguments = [&[verb, "examples/free.toml", "--set", world], more].concat();
        said(&arguments, 0)
    };
    let plan = clear("plan", &[]).replace('\n', " ");
    assert!(
        plan.contains("rounds each, one action is picked and played to the horizon"),
        "{plan}"
    );
    assert!(
        plan.contains("which commit to an action clearly ahead"),
        "{plan}"
    );
    let run = clear("run", &[]).replace('\n', " ");
    let words = " on the line, where the threshold was ";
    assert!(run.contains(words), "{run}");
    assert!(run.contains(": committed."), "{run}");
    let document: Value = serde_json::from_str(&clear("run", &["--json"])).unwrap();
    assert_eq!(document["decided_by"], "commit");
    assert!(document["decided_at"].as_u64().unwrap() > 1, "{document}");
    let pairs = clear("replicate", &["--pairs", "10"]).replace('\n', " ");
    let words = "Runs that committed to an action clearly ahead: 20 of 20.";
    assert!(pairs.contains(words), "{pairs}");
    let document: Value =
        serde_json::from_str(&clear("replicate", &["--pairs", "10", "--json"])).unwrap();
    assert_eq!(document["committed"], 20);
}

#[test]
fn a_broken_promise_is_exit_code_one_and_says_which() {
    let folder = folder("broken");
    let other = folder.join("other.toml");
    let spec = fs::read_to_string(root().join(ROUTING)).unwrap();
    fs::write(
        &other,
        spec.replace("[0.79, 0.92, 0.95]", "[0.95, 0.79, 0.92]"),
    )
    .unwrap();
    let other = other.display().to_string();
    let words = said(
        &[
            "replicate",
            ROUTING,
            "--pairs",
            "100",
            "--other-world",
            &other,
        ],
        1,
    )
    .replace('\n', " ");
    let sentence = "BROKEN: identical decisions are promised in 90 % of pairs or more, and with 99.9 % confidence are at most";
    assert!(words.starts_with(sentence), "{words}");
    let document = json(
        &[
            "replicate",
            ROUTING,
            "--pairs",
            "100",
            "--other-world",
            &other,
            "--json",
        ],
        1,
    );
    assert_eq!(document["broken"][0]["promise"], "identical decisions");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_are_the_same_bytes_for_any_threads_and_shards() {
    let folder = folder("shards");
    let path = |name: &str| folder.join(name).display().to_string();
    for verb in [
        vec!["replicate", ROUTING, "--pairs", "30"],
        vec![
            "compare",
            "examples/free.toml",
            "--horizon",
            "1e5",
            "--pairs",
            "7",
        ],
    ] {
        let name = verb[0];
        let call = |more: &[&str]| said(&[&verb, more].concat(), 0);
        let whole = path(&format!("{name}-whole"));
        call(&["--out", &whole]);
        call(&["--out", &path(&format!("{name}-threads")), "--threads", "1"]);
        let parts = path(&format!("{name}-parts"));
        for shard in ["1/3", "2/3", "3/3"] {
            call(&["--shard", shard, "--out", &parts]);
        }
        let merged = path(&format!("{name}-merged"));
        said(&["merge", &parts, "--out", &merged], 0);
        for entry in fs::read_dir(&whole).unwrap() {
            let file = entry.unwrap().file_name();
            let read = |from: &str| fs::read(Path::new(from).join(&file)).unwrap();
            assert!(
                read(&whole) == read(&merged),
                "{name}, merged: {}",
                file.display()
            );
            assert!(
                read(&whole) == read(&path(&format!("{name}-threads"))),
                "{name}, one thread: {}",
                file.display()
            );
        }
        let part = format!("{parts}/shard-2-of-3.json");
        assert!(refused(&["merge", &part]).contains("shard-2-of-3.json"));
        assert!(refused(&["replicate", ROUTING, "--out", &whole]).contains("is not empty"));
    }
    // A shard edited by hand: no pairs, or runs that are cut short.
    let whole_part = path("replicate-one");
    said(
        &[
            "replicate",
            ROUTING,
            "--pairs",
            "2",
            "--shard",
            "1/1",
            "--out",
            &whole_part,
        ],
        0,
    );
    let part: Value = serde_json::from_str(
        &fs::read_to_string(format!("{whole_part}/shard-1-of-1.json")).unwrap(),
    )
    .unwrap();
    let mut empty = part.clone();
    empty["shard"]["total"] = 0.into();
    empty["shard"]["players"][0][1] = serde_json::json!([]);
    let mut short = part;
    short["shard"]["players"][0][1][0]["runs"][1]["violation_curve"] = serde_json::json!([]);
    for (name, edited) in [("empty.json", empty), ("short.json", short)] {
        fs::write(path(name), edited.to_string()).unwrap();
        assert!(
            refused(&["merge", &path(name)]).contains("does not hold what its spec asks for"),
            "{name}"
        );
    }
    assert!(refused(&["merge", "Cargo.toml"]).contains("is not a shard of debora"));
    assert!(refused(&["merge", "docs"]).contains("holds no shard-i-of-n.json"));
    let one = format!("{}/shard-1-of-3.json", path("replicate-parts"));
    let two = format!("{}/shard-2-of-3.json", path("compare-parts"));
    assert!(refused(&["merge", &one, &two]).contains("these shards do not fit together"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn init_writes_a_spec_that_works_and_never_over_another() {
    let folder = folder("init");
    let file = folder.join("debora.toml").display().to_string();
    assert!(said(&["init", &file], 0).contains("debora.schema.json for editors; next"));
    assert!(
        refused(&["init", &file])
            .contains("exists; choose another name, or --force to overwrite it")
    );
    said(&["init", &file, "--force"], 0);
    said(&["replicate", &file, "--pairs", "20"], 0);
    let written = fs::read_to_string(&file).unwrap();
    let (first, rest) = written.split_once('\n').unwrap();
    assert_eq!(first, "#:schema ./debora.schema.json");
    assert_eq!(said(&["init", "-"], 0), rest);
    fs::remove_dir_all(folder).unwrap();
}

/// The schema that a spec's first line names is there, and is this program's unless another was there before.
#[test]
fn init_writes_the_schema_beside_the_spec() {
    let folder = folder("beside");
    let path = |name: &str| folder.join(name).display().to_string();
    let schema = folder.join("debora.schema.json");
    said(&["init", &path("one.toml")], 0);
    assert_eq!(
        fs::read_to_string(&schema).unwrap(),
        said(&["schema"], 0),
        "what the verb prints"
    );
    let words = said(&["init", &path("two.toml")], 0);
    assert!(!words.contains("schema"), "{words}");
    fs::write(&schema, "{}").unwrap();
    let words = said(&["init", &path("three.toml")], 0);
    assert!(words.contains("is not this version's"), "{words}");
    assert_eq!(fs::read_to_string(&schema).unwrap(), "{}");
    said(&["init", &path("three.toml"), "--force"], 0);
    assert_eq!(fs::read_to_string(&schema).unwrap(), said(&["schema"], 0));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn spec_errors_show_file_line_and_remedy() {
    let folder = folder("errors");
    let file = folder.join("bad.toml");
    fs::write(
        &file,
        "policy = \"soft\"\nhorizon = 1e6\nrho = 1.5\nactions = [\"a\", \"b\"]\n",
    )
    .unwrap();
    let message = refused(&["plan", &file.display().to_string()]);
    assert!(
        message.starts_with("error: ") && message.contains("bad.toml:3: rho 1.5 is outside (0, 1)"),
        "{message}"
    );
    assert!(message.contains("rho = 1.5"), "{message}");
    assert!(refused(&["plan", ROUTING, "--horizon", "many"]).contains("horizon"));
    assert!(refused(&["plan", ROUTING, "--set", "cost.prize.threshold=1"]).contains("price"));
    assert!(refused(&["plan", "nothing.toml"]).contains("cannot read nothing.toml"));
    assert!(refused(&["plan", ROUTING, "--gap", "7"]).contains("--gap 7 is not above 0"));
    for horizon in ["1e9", "1_000_000_000", "1000000000"] {
        assert_eq!(
            json(&["run", ROUTING, "--json", "--horizon", horizon], 0)["rounds"],
            1_000_000_000u64
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_calls_are_exit_code_two() {
    for call in [
        &["unknown"][..],
        &[],
        &["replicate", ROUTING, "--shard", "4/3", "--out", "x"],
        &["run"],
    ] {
        assert_eq!(output(call).status.code(), Some(2), "{call:?}");
    }
    assert!(said(&["--version"], 0).contains("values version 3"));
    assert!(said(&["completions", "bash"], 0).contains("replicate"));
}

/// For containers: 1 is "unhealthy" there, and 2 means nothing.
#[test]
fn a_server_that_is_not_there_is_not_ready() {
    // Port 1 is nobody's.
    let asked = output(&["ready", "--listen", "127.0.0.1:1"]);
    assert_eq!(asked.status.code(), Some(1));
    let errors = String::from_utf8(asked.stderr).unwrap();
    assert!(errors.contains("is the server running?"), "{errors}");
}

/// A reader that closes the pipe after one line has seen enough: no panic, no error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = debora(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
}

/// Ctrl-C: the work stops with a message and leaves no file.
#[test]
fn an_interrupt_leaves_no_half_file() {
    let folder = folder("interrupt");
    let out = folder.join("out");
    let arguments = [
        "replicate",
        ROUTING,
        "--pairs",
        "100000000",
        "--out",
        &out.display().to_string(),
    ];
    let child = debora(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let begun = Instant::now();
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "stopped after {:?}",
        begun.elapsed()
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("stopped as asked"),
        "{}",
        text(&output.stderr)
    );
    let left = fs::read_dir(&out).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    fs::remove_dir_all(folder).unwrap();
}

/// A single long run is not asked to stop, it is stopped, and says so.
#[test]
fn an_interrupt_ends_a_long_run() {
    let arguments = ["run", ROUTING, "--simulator", "rounds", "--horizon", "1e12"];
    let child = debora(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("stopped as asked"),
        "{}",
        text(&output.stderr)
    );
}

/// On a device without room the program says so and leaves nothing; /dev/full is such a device.
#[test]
fn a_full_disk_is_said() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = debora(&["run", ROUTING, "--json"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("cannot write to standard output"),
        "{}",
        text(&output.stderr)
    );
}

/// A seal depends on what is sealed alone, and publishes no key.
#[test]
fn a_seal_is_the_same_whenever_it_is_made() {
    let first = said(&["seal", "examples/live.toml", "--json"], 0);
    assert_eq!(said(&["seal", "examples/live.toml", "--json"], 0), first);
    let seal: Value = serde_json::from_str(&first).unwrap();
    let spec = fs::read_to_string(root().join("examples/live.toml")).unwrap();
    assert_eq!(seal["spec"], spec.as_str());
    assert_eq!(
        (&seal["key_hash"], &seal["head"]),
        (&Value::Null, &Value::Null)
    );
    let plan = json(&["plan", "examples/live.toml", "--json"], 0);
    assert_eq!(seal["plan"], plan);
    let words = said(&["seal", "examples/live.toml"], 0);
    assert!(
        words.contains("Exploration takes ") && words.ends_with(&spec),
        "{words}"
    );
    let out = std::env::temp_dir().join(format!("debora-seal-{}", std::process::id()));
    said(
        &["seal", "examples/live.toml", "--out", out.to_str().unwrap()],
        0,
    );
    assert_eq!(fs::read_to_string(out.join("seal.json")).unwrap(), first);
    let page = fs::read_to_string(out.join("seal.html")).unwrap();
    assert!(page.contains("Seal of answers within a price") && !page.contains("<script"));
    fs::remove_dir_all(out).unwrap();
    // A live experiment has no world, and its key is nobody's to read.
    let why = refused(&["seal", "examples/model-routing.toml"]);
    assert!(why.contains("model-routing.toml: "), "{why}");
    let keyed = std::env::temp_dir().join(format!("debora-keyed-{}.toml", std::process::id()));
    fs::write(&keyed, format!("key = 7\n{spec}")).unwrap();
    let why = refused(&["seal", keyed.to_str().unwrap()]);
    assert!(why.contains("the spec gives the key"), "{why}");
    fs::remove_file(keyed).unwrap();
}

/// Esfandiari's first batch is beyond any horizon of a test, and it says so in a sentence with a comma.
#[test]
fn what_a_player_says_is_in_the_table_the_document_and_the_csv() {
    let folder = folder("notes");
    let out = folder.join("out").display().to_string();
    let call = [
        "compare",
        "examples/free.toml",
        "--horizon",
        "1e5",
        "--pairs",
        "3",
    ];
    let call = [
        &call[..],
        &["--players", "esfandiari-1,thompson", "--quiet"],
    ]
    .concat();
    let shown = said(&[&call[..], &["--out", &out]].concat(), 0);
    assert!(
        shown.contains("esfandiari-1: the first batch needs"),
        "{shown}"
    );
    let written = fs::read_to_string(folder.join("out/summary.json")).unwrap();
    let document: Value = serde_json::from_str(&written).unwrap();
    let note = document["rows"][1]["note"].as_str().unwrap();
    assert!(
        note.contains("rounds, more than the 100000 of the horizon"),
        "{note}"
    );
    assert!(document["rows"][0]["note"].is_null() && document["rows"][2]["note"].is_null());
    let pairs = fs::read_to_string(folder.join("out/pairs.csv")).unwrap();
    let lines: Vec<&str> = pairs.lines().collect();
    assert!(
        lines[0].ends_with("decided_at_2,note_1,note_2"),
        "{}",
        lines[0]
    );
    assert!(lines[1].ends_with(",,"), "{}", lines[1]);
    assert!(
        lines[4].ends_with(&format!("\"{note}\",\"{note}\"")),
        "{}",
        lines[4]
    );
    assert!(lines[7].starts_with("thompson,0,false"), "{}", lines[7]);
}
