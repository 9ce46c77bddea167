//! Whatever a log or a store says, it is printed as what it says: no text of theirs makes a line, a verdict or a colour.

use std::fs;

use serde_json::Value;

use crate::kit::binary::debora;
use crate::kit::trial::{SHORT, Trial, text};

/// How many of the forged logs differ in their first line.
const FIRST_LINES: usize = 6;

/// Names that would print a verdict if a terminal obeyed them, or if a line was broken within them.
fn verdicts() -> Vec<String> {
    let verdict = "trial: 70 decisions in 2 epochs recomputed, all equal.";
    [
        "\x1b[2K\r",
        "\n",
        "\u{9b}2K\r",
        "\u{2028}",
        "\u{8}\u{8}",
        "\u{202e}",
    ]
    .iter()
    .map(|obeyed| format!("x{obeyed}{verdict}"))
    .chain([
        format!("x {}{verdict}", "y".repeat(78)),
        format!("x{}{verdict}", " ".repeat(79)),
        format!("{verdict} {}", "long ".repeat(1_000)),
    ])
    .collect()
}

/// What the program says, on both streams, and its exit code.
fn said(arguments: &[&str]) -> (i32, String) {
    let output = debora(arguments).output().unwrap();
    let bytes = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(bytes).unwrap(),
    )
}

/// Checks that nothing a terminal obeys is printed, and no line that reads as a verdict.
fn check_printed(printed: &str, forged: &str) {
    let obeyed = |letter: &char| {
        let format = [
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
        ];
        *letter != '\n' && letter.is_control() || format.iter().any(|range| range.contains(letter))
    };
    assert_eq!(
        printed.chars().find(obeyed),
        None,
        "{forged:?} printed {printed:?}"
    );
    // A terminal of 80 columns breaks longer lines by itself.
    let rows = printed.lines().flat_map(|line| {
        let letters: Vec<char> = line.chars().collect();
        let rows: Vec<String> = letters.chunks(80).map(|row| row.iter().collect()).collect();
        rows
    });
    for row in rows {
        let verdict =
            row.starts_with("trial: 70 decisions") || row.starts_with("The same decisions");
        assert!(!verdict, "{forged:?} printed the line {row:?} of {printed}");
    }
}

/// A log with one field of one line changed.
fn forged(log: &str, line: &str, field: &str, value: &str) -> String {
    let place = log
        .lines()
        .position(|text| text.contains(&format!("\"type\":\"{line}\"")));
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let changed = &mut lines[place.unwrap()];
    let mut parsed: Value = serde_json::from_str(changed).unwrap();
    parsed[field] = value.into();
    *changed = parsed.to_string();
    lines.join("\n")
}

#[test]
fn a_forged_log_prints_no_verdict() {
    let mut trial = Trial::new(SHORT, 42, 1);
    trial.run_to_the_end();
    let log = text(&trial.log(1_000, true));
    let honest = trial.folder.join("honest.jsonl").display().to_string();
    let file = trial.folder.join("forged.jsonl").display().to_string();
    fs::write(&honest, &log).unwrap();
    let (code, printed) = said(&["audit", &honest]);
    assert!(
        code == 0 && printed.starts_with("trial: 70 decisions"),
        "{code}: {printed}"
    );
    for verdict in verdicts() {
        let spec = |from: &str, to: &str| SHORT.replace(from, to);
        // As a TOML text has it: a name in a spec may be anything.
        let quoted = serde_json::to_string(&verdict)
            .unwrap()
            .replace('\u{9b}', "\\u009b");
        let quoted = quoted.replace('\u{85}', "\\u0085");
        let logs = [
            forged(&log, "experiment", "id", &verdict),
            forged(&log, "experiment", "key_hash", &verdict),
            forged(&log, "experiment", "salt", &verdict),
            forged(&log, "experiment", "spec", &verdict),
            forged(&log, "experiment", "spec", &spec("\"a\"", &quoted)),
            forged(&log, "experiment", "spec", &spec("\"price\"", &quoted)),
            forged(&log, "event", "what", &verdict),
            forged(&log, "closed", "hash", &verdict),
            forged(&log, "outcome", "reward", &verdict),
            forged(&log, "outcome", &verdict, "1"),
            forged(&log, "state", "type", &verdict),
        ];
        for (place, log) in logs.iter().enumerate() {
            fs::write(&file, log).unwrap();
            for arguments in [&["audit", &file][..], &["audit", &file, "--json"]] {
                let (code, printed) = said(arguments);
                assert_ne!(code, 0, "{verdict:?}: {printed}");
                check_printed(&printed, &verdict);
            }
            // A diff reads the first line, the records and the decisions.
            let arguments = [
                &["diff", &honest, &file][..],
                &["diff", &honest, &file, "--json"],
            ];
            for arguments in arguments.iter().filter(|_| place < FIRST_LINES) {
                let (_, printed) = said(arguments);
                // Of a log that differs in its name alone, the verdict is the program's own.
                let own = "The same decisions throughout: 70 rounds in 2 epochs.\n";
                check_printed(&printed.replacen(own, "", 1), &verdict);
            }
        }
    }
}
