//! What the program says: every verb, in words and as JSON, over the store that the service has left and over small specs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use clap::CommandFactory as _;
use debora_cli::args::Cli;

use crate::golden::{Goldens, plain};
use crate::kit::binary::debora;
use crate::masked::masked;

/// Verbs that are about this machine or about files of other programs, and say nothing that is kept here.
const ELSEWHERE: [&str; 5] = ["serve", "ready", "man", "completions", "help"];

/// A spec of each policy that is simulated in no time.
const SPECS: [(&str, &str); 3] = [
    (
        "free.toml",
        "name = 'free'\npolicy = 'free'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.5\ngrowth = 2\nkey = 1\nactions = ['a', 'b', 'c']\n\
         [world]\nkind = 'bernoulli'\nreward = [0.2, 0.5, 0.8]\n",
    ),
    (
        "soft.toml",
        "name = 'soft'\npolicy = 'soft'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.5\ngrowth = 2\nactions = ['small', 'large']\n\
         [reward]\nname = 'quality'\n[[cost]]\nname = 'price'\nrange = [0.0, 0.02]\nthreshold = 0.008\n\
         [world]\nkind = 'bernoulli'\nreward = [0.4, 0.8]\ncost.price = [0.002, 0.012]\n",
    ),
    (
        "hard.toml",
        "name = 'hard'\npolicy = 'hard'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.5\ngrowth = 2\nactions = ['small', 'large']\n\
         [reward]\nname = 'quality'\n[[cost]]\nname = 'price'\nthreshold = 0.5\n\
         [safe]\nstrategy = { small = 1.0 }\ncost = { price = 0.2 }\n\
         [world]\nkind = 'bernoulli'\nreward = [0.4, 0.8]\ncost.price = [0.1, 0.9]\n",
    ),
];

const RECORDED_TEST: &str =
    "variant,converted,spend\nold,1,0.5\nold,0,0.25\nold,1,0.5\nnew,1,1.5\nnew,1,0.75\nnew,0,1\n";

/// What is called without a store, in this order: later calls read what earlier ones wrote.
const CALLS: &[&str] = &[
    "--version",
    "init made.toml",
    "init -",
    "schema",
    "plan made.toml",
    "plan free.toml",
    "plan free.toml --json --gap 0.1",
    "plan soft.toml --gap 0.1 --out plan-soft",
    "plan soft.toml --json",
    "plan hard.toml",
    "plan hard.toml --json",
    "plan soft.toml --horizon 100",
    "plan soft.toml --set cost.price.threshold=0.001 --json",
    "run free.toml",
    "run free.toml --json",
    "run soft.toml --trace trace.jsonl --out run-soft",
    "run soft.toml --json --simulator rounds",
    "run hard.toml --pair 2 --member 1",
    "run hard.toml --json",
    "replicate free.toml --pairs 6",
    "replicate free.toml --pairs 6 --json",
    "replicate soft.toml --pairs 6 --out replicate-soft",
    "replicate hard.toml --pairs 6 --json",
    "replicate soft.toml --pairs 4 --other-world soft.toml",
    "compare free.toml --pairs 3",
    "compare free.toml --pairs 3 --json",
    "compare soft.toml dear.toml --pairs 3 --out compare --latex",
    "compare hard.toml --pairs 2 --players oplb --json",
    "compare hard.toml --pairs 2 --players ucb1",
    "sweep free.toml --over rho=0.5,0.9 --pairs 3",
    "sweep free.toml --over rho=0.5,0.9 --pairs 3 --json",
    "sweep soft.toml --over horizon=1e4..1e5 --over rho=0.5,0.9 --pairs 2 --out sweep --latex",
    "replicate free.toml --pairs 6 --shard 1/2 --out parts",
    "replicate free.toml --pairs 6 --shard 2/2 --out parts --force",
    "merge parts",
    "merge parts --json",
    "merge parts --out merged",
    "import test.csv --action variant --reward converted --cost price=spend",
    "import test.csv --action variant --reward converted --cost price=spend --json --out imported",
    "seal live.toml",
    "seal live.toml --json",
    "seal live.toml --out sealed",
    "plan nowhere.toml",
    "plan bad.toml",
    "plan bad.toml --json",
    "run live.toml",
    "plan",
    "no-such-verb",
];

/// What is called over the store.
const STORE_CALLS: &[&str] = &[
    "audit store.db",
    "audit store.db --json",
    "audit store.db --experiment soft",
    "audit store.db --experiment done --json",
    "audit store.db --experiment nowhere",
    "diff store.db#team-a store.db#team-b",
    "diff store.db#team-a store.db#team-b --json",
    "diff store.db#team-a store.db#team-c",
    "diff store.db#team-a store.db#soft",
    "keys list --store store.db",
    "keys list --store store.db --json",
    "keys revoke reader --store store.db",
    "keys revoke nobody --store store.db --json",
    "backup --store store.db copy.db",
    "backup --store copy.db store.db",
];

/// Folders that calls have written, whose files are kept, too.
const WRITTEN: [&str; 8] = [
    "plan-soft",
    "run-soft",
    "replicate-soft",
    "compare",
    "sweep",
    "merged",
    "imported",
    "sealed",
];

/// Calls all that needs no store.
pub fn of_specs(folder: &Path, goldens: &mut Goldens) {
    for (name, text) in SPECS {
        fs::write(folder.join(name), text).expect("a file");
    }
    let dear = SPECS[1].1.replace("threshold = 0.008", "threshold = 0.004");
    fs::write(folder.join("dear.toml"), dear).expect("a file");
    fs::write(folder.join("test.csv"), RECORDED_TEST).expect("a file");
    fs::write(folder.join("bad.toml"), "policy = 'sift'\nhorizn = 3\n").expect("a file");
    let live = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/live.toml");
    fs::copy(live, folder.join("live.toml")).expect("an example");
    keep_calls(folder, CALLS.iter().map(ToString::to_string), goldens);
    let verbs = verbs().into_iter().map(|verb| format!("{verb} --help"));
    keep_calls(folder, verbs.chain(["--help".into()]), goldens);
    for written in WRITTEN {
        keep_files(&folder.join(written), written, folder, goldens);
    }
}

/// Calls all that looks into a store, in its folder.
pub fn of_a_store(folder: &Path, goldens: &mut Goldens) {
    keep_calls(folder, STORE_CALLS.iter().map(ToString::to_string), goldens);
}

fn keep_calls(folder: &Path, calls: impl Iterator<Item = String>, goldens: &mut Goldens) {
    for call in calls {
        goldens.keep(&format!("{}.txt", plain(&call)), said(folder, &call));
    }
}

/// What a call says, and how it ends.
fn said(folder: &Path, call: &str) -> String {
    let arguments: Vec<&str> = call.split(' ').collect();
    let mut command = debora(&arguments);
    // A terminal's width and colours would be those of whoever runs the tests.
    let output = command
        .current_dir(folder)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("the program");
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    let code = status.code().expect("an exit code");
    let text = format!("debora {call}\nexit code {code}\n\n{stdout}\n{stderr}");
    without_seconds(&masked(&text, folder))
}

/// How long a measurement took is its only value that no key fixes.
fn without_seconds(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let (name, value) = line.split_once("\"seconds\": ").unwrap_or((line, ""));
        let ends_in_seconds = line.trim_end().ends_with(" seconds") && line.starts_with("  ");
        if !value.is_empty() && value != "null" && value != "null," {
            format!("{name}\"seconds\": TAKEN")
        } else if ends_in_seconds && line.trim().split(' ').count() == 2 {
            "  TAKEN seconds".into()
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The files of a folder: texts as they are, and of others the length.
fn keep_files(folder: &Path, name: &str, root: &Path, goldens: &mut Goldens) {
    let files = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let file = path.file_name().expect("a name").to_string_lossy();
        let name = format!("{name}-{file}");
        if path.is_dir() {
            keep_files(&path, &name, root, goldens);
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        let text = match String::from_utf8(bytes) {
            Ok(text) => without_seconds(&masked(&text, root)),
            Err(error) => format!("{} bytes\n", error.as_bytes().len()),
        };
        goldens.keep(&format!("file-{name}"), text);
    }
}

/// The names of all verbs.
fn verbs() -> Vec<String> {
    let cli = Cli::command();
    cli.get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect()
}

/// A verb must be called here, or named as one that says nothing to keep.
pub fn every_verb_is_kept(goldens: &Goldens) {
    for verb in verbs() {
        let [begins, alone] = [format!("debora {verb} "), format!("debora {verb}\n")];
        let mut calls = goldens
            .said()
            .filter(|(name, _)| !name.ends_with("-help.txt"));
        let is_called =
            calls.any(|(_, text)| text.starts_with(&begins) || text.starts_with(&alone));
        let is_elsewhere = ELSEWHERE.contains(&&*verb);
        assert!(is_called != is_elsewhere, "{verb} is not called here");
    }
}
