//! `debora audit` and `debora diff` themselves: sources, words, exit codes, JSON.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use debora_cli::log::{NEXT_HEADER, page};
use debora_cli::service::request::Change;
use debora_cli::store::Location;
use serde_json::Value;

use crate::kit::binary::debora;
use crate::kit::trial::{FREE, HELD_BACK, SHORT, SOFT, Trial, text};

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace('\n', " ")
    };
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    said(&debora(arguments).output().unwrap())
}

fn path(trial: &Trial) -> String {
    match &trial.location {
        Location::Sqlite(path) => path.display().to_string(),
        Location::Postgres(_) => unreachable!("trials are files"),
    }
}

fn done(spec: &str, chance: u64) -> Trial {
    let mut trial = Trial::new(spec, 42, chance);
    trial.run_to_the_end();
    trial
}

#[test]
fn a_store_a_file_and_standard_input_say_the_same() {
    let trial = done(SHORT, 1);
    let log = trial.folder.join("log.jsonl");
    fs::write(&log, text(&trial.log(1_000, false))).unwrap();
    let log = log.display().to_string();
    let answer = format!(
        "trial: 70 decisions in {} epochs recomputed, all equal.",
        trial.progress().epoch + 1
    );
    let mut piped = debora(&["audit", "-"]);
    let piped = piped.stdin(fs::File::open(&log).unwrap()).output().unwrap();
    let store = path(&trial);
    let named = format!("{store}#trial");
    let answers = [
        run(&["audit", &store]),
        run(&["audit", &named]),
        run(&["audit", &log, "--experiment", "trial"]),
        said(&piped),
    ];
    for (code, out, error) in &answers {
        assert!(
            (*code, error.as_str()) == (0, "") && out.starts_with(&answer),
            "{code}: {out} {error}"
        );
        assert!(
            out.contains(&format!("Head {}", trial.progress().head)),
            "{out}"
        );
    }
    assert!(answers.iter().all(|answer| answer == &answers[0]));
    let document: Value = serde_json::from_str(&run(&["audit", &store, "--json"]).1).unwrap();
    assert_eq!(document["experiments"][0]["verdict"], "equal");
    assert_eq!(document["experiments"][0]["audited"]["decisions"], 70);
}

#[test]
fn differences_exit_with_1_and_name_both_values() {
    let trial = done(FREE, 2);
    let log = text(&trial.log(1_000, false));
    let line = log
        .lines()
        .position(|line| line.contains("\"decisions\""))
        .unwrap();
    let mut changed: Vec<String> = log.lines().map(str::to_owned).collect();
    let mut decisions: Value = serde_json::from_str(&changed[line]).unwrap();
    let first = decisions["actions"][0].as_u64().unwrap();
    let other = (first + 1) % 3;
    decisions["actions"][0] = other.into();
    changed[line] = decisions.to_string();
    let [first, other] =
        [first, other].map(|action| format!("{action} ({:?})", ["a", "b", "c"][action as usize]));
    let file = trial.folder.join("changed.jsonl").display().to_string();
    fs::write(&file, changed.join("\n")).unwrap();
    let (code, out, error) = run(&["audit", &file]);
    assert_eq!((code, error.as_str()), (1, ""));
    let difference = format!(
        "line 3, epoch 0, round 1: the action is {other} as recorded, and {first} as recomputed."
    );
    assert!(out.contains(&difference), "{out}");
    let document: Value = serde_json::from_str(&run(&["audit", &file, "--json"]).1).unwrap();
    assert_eq!(
        document["experiments"][0]["difference"]["recorded"],
        other.as_str()
    );
    let head = "0".repeat(64);
    let (code, out, _) = run(&["audit", &path(&trial), "--head", &head]);
    assert!(
        code == 1 && out.contains("the published head"),
        "{code}: {out}"
    );
    let in_chain = "The published head is in its chain.";
    assert!(!run(&["audit", &path(&trial)]).1.contains(in_chain));
    let (code, out, _) = run(&["audit", &path(&trial), "--head", &trial.progress().head]);
    assert!(code == 0 && out.contains(in_chain), "{code}: {out}");
    let (code, _, error) = run(&["audit", &path(&trial), "--head", &head[1..]]);
    assert!(
        code == 2 && error.contains("63 characters"),
        "{code}: {error}"
    );
}

#[test]
fn what_cannot_be_audited_exits_with_2_and_says_why() {
    let mut trial = Trial::new(FREE, 42, 3);
    (0..30).for_each(|_| trial.step());
    let log = text(&trial.log(1_000, false));
    let file = trial.folder.join("log.jsonl").display().to_string();
    fs::write(&file, &log).unwrap();
    let (code, out, error) = run(&["audit", &file]);
    assert!(
        code == 2 && out.contains("hashes and counts of"),
        "{code}: {out}"
    );
    assert!(
        error.contains("the key of trial is not revealed"),
        "{error}"
    );
    // The store knows the key, and so does the log once the experiment is over.
    assert_eq!(run(&["audit", &path(&trial)]).0, 0);
    trial.change(Change::Close);
    fs::write(&file, text(&trial.log(1_000, false))).unwrap();
    assert_eq!(run(&["audit", &file]).0, 0);

    let cut: Vec<&str> = log.lines().take(5).collect();
    fs::write(&file, cut.join("\n")).unwrap();
    let refusals = [
        (vec!["audit", &file], "ends before its last line"),
        (vec!["audit", "nowhere.db"], "cannot read nowhere.db"),
        (vec!["audit", "http://127.0.0.1:1"], "name the experiment"),
    ];
    for (arguments, reason) in refusals {
        let (code, _, error) = run(&arguments);
        assert!(
            code == 2 && error.contains(reason),
            "{arguments:?}: {code} {error}"
        );
    }
    let (code, _, error) = run(&["audit", &path(&trial), "--experiment", "nobody"]);
    assert!(
        code == 2 && error.contains("no experiment \"nobody\"; it has [\""),
        "{error}"
    );
}

/// A service that knows one experiment and one API key, and serves short pages.
fn serve(trial: &Trial) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut store = trial.reader();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head: Vec<String> = BufReader::new(&stream)
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            let after = head[0]
                .split(['&', '?', ' '])
                .find_map(|part| part.strip_prefix("after="))
                .map(str::to_owned);
            let allowed = head
                .iter()
                .any(|line| line.eq_ignore_ascii_case("authorization: bearer debora_key"));
            let page = page(&mut store, "trial", after.as_deref(), 7, true)
                .unwrap()
                .unwrap();
            let body = if allowed {
                text(&page.lines)
            } else {
                "{\"code\":\"no_key\"}".into()
            };
            let status = if allowed {
                "200 OK"
            } else {
                "401 Unauthorized"
            };
            let next = page
                .next_cursor
                .map_or(String::new(), |next| format!("{NEXT_HEADER}: {next}\r\n"));
            let length = body.len();
            let close = "connection: close";
            write!(
                stream,
                "HTTP/1.1 {status}\r\n{next}content-length: {length}\r\n{close}\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    address
}

#[test]
fn a_service_is_read_page_by_page_with_an_api_key() {
    let trial = done(SHORT, 4);
    let address = serve(&trial);
    let url = format!("{address}/v1/experiments/trial");
    let key = trial.folder.join("key");
    fs::write(&key, "debora_key\n").unwrap();
    let with_file = run(&["audit", &url, "--key-file", &key.display().to_string()]);
    let with_name = said(
        &debora(&["audit", &format!("{address}#trial")])
            .env("DEBORA_API_KEY", "debora_key")
            .output()
            .unwrap(),
    );
    assert_eq!(with_file, with_name);
    assert_eq!(with_file, run(&["audit", &path(&trial)]));
    let (code, _, error) = run(&["audit", &url]);
    assert!(
        code == 2 && error.contains("the service answers 401") && error.contains("no_key"),
        "{error}"
    );
    let (code, out, _) = run(&["diff", &url, &path(&trial), "--api-key", "debora_key"]);
    assert!(
        code == 0 && out.contains("The same decisions throughout: 70 rounds"),
        "{out}"
    );
}

#[test]
fn diff_says_where_and_why_and_exits_with_1_where_they_part() {
    let trials: Vec<Trial> = (0..12).map(|chance| done(SOFT, chance)).collect();
    let paths: Vec<String> = trials.iter().map(path).collect();
    let answers: Vec<_> = paths
        .iter()
        .map(|other| run(&["diff", &paths[0], other]))
        .collect();
    assert_eq!(answers[0].0, 0);
    assert!(
        answers[0]
            .1
            .contains("The same decisions throughout: 150 rounds"),
        "{}",
        answers[0].1
    );
    let diverged = answers
        .iter()
        .find(|(code, ..)| *code == 1)
        .expect("two of twelve diverge");
    for words in [
        "They diverge in epoch",
        "fell into cell",
        "the edge between them at",
        "cells) ",
        "The strategies from round",
    ] {
        assert!(diverged.1.contains(words), "{words}: {}", diverged.1);
    }
    let place = answers.iter().position(|(code, ..)| *code == 1).unwrap();
    let (code, out, _) = run(&["diff", &paths[0], &paths[place], "--json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert!(
        code == 1
            && document["divergence"]["diverging_estimates"][0]["distances_in_cells"][0].is_f64(),
        "{out}"
    );
    let (code, _, error) = run(&["diff", &paths[0], "nowhere.jsonl"]);
    assert!(
        code == 2 && error.contains("B: cannot read nowhere.jsonl"),
        "{error}"
    );
}

/// The chain of hashes can be checked by another program: the one in the docs.
#[test]
fn the_program_in_the_docs_finds_the_same_head() {
    let docs =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/audit.md")).unwrap();
    let program = docs
        .split("```python\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    for trial in [done(SHORT, 5), done(HELD_BACK, 3)] {
        check_by_program(program, &trial);
    }
}

fn check_by_program(program: &str, trial: &Trial) {
    let log = text(&trial.log(1_000, false));
    let check = |log: &str| {
        let file = trial.folder.join("log.jsonl");
        fs::write(&file, log).unwrap();
        said(
            &Command::new("python3")
                .args(["-c", program])
                .stdin(fs::File::open(&file).unwrap())
                .output()
                .unwrap(),
        )
    };
    assert_eq!(
        check(&log),
        (0, format!("head {} ", trial.progress().head), String::new())
    );
    let changed = log.replacen("\"imputed\":false", "\"imputed\":true", 1);
    let (code, _, error) = check(&changed);
    assert!(
        code == 1 && error.contains("AssertionError"),
        "{code}: {error}"
    );
}

#[test]
fn help_states_what_an_audit_cannot_find() {
    let help = debora(&["audit", "--help"])
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let (_, help, _) = said(&help);
    let help: Vec<&str> = help.split_whitespace().collect();
    let help = help.join(" ");
    for words in [
        "Anyone who can rewrite the whole store",
        "--head",
        "request keys",
        "in no hash yet",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
}
