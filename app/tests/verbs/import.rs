//! `debora import`: a recorded test as a world, whatever wrote its CSV.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use debora::spec::{ImportColumns, ROWS_FILE, Spec, import};
use proptest::prelude::*;
use serde_json::Value;

use crate::kit::binary::debora;
use crate::kit::scratch::Scratch;

const COLUMNS: [&str; 6] = [
    "--action",
    "variant",
    "--reward",
    "converted",
    "--cost",
    "price=spend",
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `debora` in a folder.
fn call(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = debora(arguments);
    command.current_dir(folder).output().unwrap()
}

fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = call(folder, arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    text(&output.stdout)
}

/// On one line, as the width of the terminal is not what is tested.
fn words(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Imports a text; `Err` has the message of exit code 2.
fn imported(test: impl AsRef<[u8]>, columns: &[&str]) -> Result<Value, String> {
    let folder = Scratch::new("import");
    fs::write(folder.join("ab.csv"), test).unwrap();
    let arguments = [&["import", "ab.csv", "--json", "--out", "plan"], columns].concat();
    let output = call(&folder, &arguments);
    let written = |name: &str| folder.join("plan").join(name).exists();
    match output.status.code() {
        Some(0) => {
            assert!(written("spec.toml") && written(ROWS_FILE));
            Ok(serde_json::from_slice(&output.stdout).unwrap())
        }
        code => {
            assert_eq!(code, Some(2), "{}", text(&output.stderr));
            assert!(!written("spec.toml") && !written(ROWS_FILE));
            Err(text(&output.stderr))
        }
    }
}

fn refused(test: impl AsRef<[u8]>) -> String {
    imported(test, &COLUMNS).unwrap_err()
}

/// A test of two variants, as an exporter writes it: columns nobody asked for, a boolean, gaps.
fn recorded() -> String {
    let mut test = String::from("user,variant,note,converted,spend\n");
    for user in 0..400 {
        let [variant, spend] = match user % 2 {
            0 => ["control", "0.0021"],
            _ => ["large", "0.0173"],
        };
        let converted = user % (if variant == "large" { 3 } else { 4 }) == 0;
        let spend = if user == 7 { "" } else { spend };
        test += &format!("{user},{variant},\"a, \"\"b\"\"\",{converted},{spend}\n");
    }
    test
}

#[test]
fn a_test_becomes_a_spec_that_every_verb_takes() {
    let folder = Scratch::new("import");
    fs::write(folder.join("ab.csv"), recorded()).unwrap();
    let arguments = [&["import", "ab.csv", "--out", "plan"], &COLUMNS[..]].concat();
    let answer = words(&said(&folder, &arguments));
    for part in [
        "ab.csv: 399 rows of 2 actions, with \"converted\" and \"spend\"",
        "1 row is left out, as a value is missing: \"spend\" in 1; line 9.",
        "control 200 0 %",
        "large 199 0.5 %",
        "Check that price always lies from 0 to 0.02: 0.0021 to 0.0173 was seen",
        "with as many as there are rows the plan would be blind",
        "next: debora plan plan/spec.toml, then debora replicate plan/spec.toml",
    ] {
        assert!(answer.contains(part), "no {part:?} in {answer}");
    }
    let rows = fs::read_to_string(folder.join("plan").join(ROWS_FILE)).unwrap();
    assert!(
        rows.starts_with("action,reward,price\ncontrol,1,0.0021\nlarge,0,0.0173\n"),
        "{rows}"
    );
    let plan = said(&folder, &["plan", "plan/spec.toml", "--json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["blind"], false, "{plan:#}");
    // A limit between the two costs, as the spec asks for.
    let limit = ["--set", "cost.price.threshold=0.01"];
    let replicate = [
        "replicate",
        "plan/spec.toml",
        "--pairs",
        "20",
        "--json",
        "-q",
    ];
    let found = said(&folder, &[&replicate[..], &limit].concat());
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        (&found["pairs"], &found["blind"]),
        (&20.into(), &false.into())
    );
    said(&folder, &["run", "plan/spec.toml", "--json"]);
    assert!(call(&folder, &["plan", "plan/spec.toml"]).stderr.is_empty());
    // A plan needs no rows, but must not pass over those that cannot be read.
    fs::remove_file(folder.join("plan").join(ROWS_FILE)).unwrap();
    let planned = call(&folder, &["plan", "plan/spec.toml"]);
    let warning = text(&planned.stderr);
    assert_eq!(planned.status.code(), Some(0), "{warning}");
    assert!(
        warning.contains("leaves out the world") && warning.contains(ROWS_FILE),
        "{warning}"
    );
}

#[test]
fn nothing_is_written_unasked_and_nothing_overwritten() {
    let folder = Scratch::new("import");
    fs::write(folder.join("ab.csv"), recorded()).unwrap();
    let shown = said(&folder, &[&["import", "ab.csv"], &COLUMNS[..]].concat());
    assert!(
        shown.contains("kind = \"table\"") && shown.contains("--out DIR"),
        "{shown}"
    );
    assert_eq!(fs::read_dir(&*folder).unwrap().count(), 1);
    let into = [&["import", "ab.csv", "--out", "plan"], &COLUMNS[..]].concat();
    said(&folder, &into);
    let before = fs::read(folder.join("plan/spec.toml")).unwrap();
    let output = call(&folder, &into);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("--force"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(fs::read(folder.join("plan/spec.toml")).unwrap(), before);
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let arguments = [&["import", "-", "--json"], &COLUMNS[..]].concat();
    let mut command = debora(&arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(recorded().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let piped: Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = imported(recorded(), &COLUMNS).unwrap();
    assert_eq!(
        (&piped["rows"], &piped["actions"]),
        (&file["rows"], &file["actions"])
    );
}

#[test]
fn whatever_program_wrote_it() {
    let plain = "variant,converted,spend\na,0,0.5\nb,1,1.5\nb,0,2\n";
    let wanted = imported(plain, &COLUMNS).unwrap();
    let others: [(&str, Vec<u8>); 7] = [
        (
            "a byte-order mark",
            [b"\xef\xbb\xbf", plain.as_bytes()].concat(),
        ),
        ("CRLF", plain.replace('\n', "\r\n").into()),
        (
            "quotes",
            "\"variant\",\"converted\",\"spend\"\n\"a\",\"0\",\"0.5\"\nb,1,1.5\n\"b\",0,2".into(),
        ),
        (
            "semicolons and decimal commas",
            plain.replace(',', ";").replace('.', ",").into(),
        ),
        ("tabs", plain.replace(',', "\t").into()),
        (
            "blanks and empty lines",
            "variant, converted, spend\n a , 0,.5\n\nb, 1,15e-1\nb,-0,+2.\n\n".into(),
        ),
        (
            "booleans, and bytes of another encoding where nobody reads",
            b"note,spend,variant,converted\n\xe9,0.5,a,False\n,1.5,b,TRUE\n,2,b,false\n".into(),
        ),
    ];
    for (what, test) in others {
        let found = imported(test, &COLUMNS).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found, wanted, "{what}");
    }
}

/// In a column that nobody asked for, the rows behind it would be gone without a word.
#[test]
fn a_quotation_mark_that_stays_open_is_refused_with_its_line() {
    let open = "variant,converted,spend,note\na,0,0.5,\nb,1,1.5,\"half\nb,0,2,\na,1,1,\n";
    let said = refused(open);
    assert!(said.contains("ab.csv:3:"), "{said}");
    assert!(said.contains("opens a value in line 3"), "{said}");
    // Behind a byte-order mark a cell may begin with one.
    let closed = "\u{feff}\"a note,\",variant,converted,spend\n,a,0,0.5\n,b,1,1.5\n";
    assert_eq!(imported(closed, &COLUMNS).unwrap()["rows"], 2);
    let folder = Scratch::new("import");
    let world = "[world]\nkind = \"table\"\nfile = \"rows.csv\"\n";
    let spec =
        format!("policy = \"free\"\nhorizon = 1e6\nrho = 0.3\nactions = [\"a\", \"b\"]\n{world}");
    fs::write(folder.join("spec.toml"), spec).unwrap();
    fs::write(folder.join("rows.csv"), "action,reward\na,1\nb,0\na,\"1\n").unwrap();
    let said = text(&call(&folder, &["run", "spec.toml"]).stderr);
    assert!(said.contains("rows.csv:4:"), "{said}");
}

#[test]
fn missing_values_are_counted_and_their_lines_named() {
    let mut test = String::from("variant,converted,spend\n");
    for (row, missing) in ["", "NA", "n/a", "NaN", "null", "None", " "]
        .iter()
        .enumerate()
    {
        test += &format!("{},1,2\n", ["a", "b"][row % 2]);
        test += &format!("c,{missing},1\n,1,1\n");
    }
    let found = imported(&test, &COLUMNS).unwrap();
    assert_eq!(
        (&found["rows"], &found["left_out"]["rows"]),
        (&7.into(), &14.into())
    );
    let lines: Vec<u64> = (3..)
        .step_by(3)
        .zip(0..5)
        .flat_map(|(line, _)| [line, line + 1])
        .collect();
    assert_eq!(
        found["left_out"]["lines"],
        serde_json::to_value(lines).unwrap()
    );
    let columns = &found["left_out"]["columns"];
    assert_eq!(
        (&columns["converted"], &columns["variant"]),
        (&7.into(), &7.into())
    );
    // An action may be called none; what has no complete row is not one.
    assert_eq!(found["empty_actions"], serde_json::json!(["c"]));
    let none = "variant,converted,spend\nnone,1,1\nmail,0,1\n";
    assert_eq!(
        imported(none, &COLUMNS).unwrap()["actions"][1]["name"],
        "none"
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line_column_value_and_rule() {
    let row = |row: &str| format!("variant,converted,spend\na,1,2\n{row}\nb,0,1\n");
    for (value, shown) in [
        ("inf", "inf"),
        ("-Infinity", "-Infinity"),
        ("1e400", "1e400"),
        ("$1.20", "$1.20"),
        ("1.2.3", "1.2.3"),
        ("0x10", "0x10"),
        ("ja", "ja"),
    ] {
        let message = refused(row(&format!("b,1,{value}")));
        let wanted =
            format!("error: ab.csv:3: column \"spend\" is {shown:?}; it must be a finite number");
        assert!(message.starts_with(&wanted), "{message}");
    }
    // In the line where the row begins, also after a value of several lines.
    let message = refused("variant,converted,spend,note\na,1,2,\"x\ny\"\nb,x,1,z\n");
    assert!(
        message.starts_with("error: ab.csv:4: column \"converted\" is \"x\""),
        "{message}"
    );
    let message = refused(row("b,1,1,000"));
    assert!(
        message.contains("ab.csv:3: 4 values where the header has 3 columns"),
        "{message}"
    );
    let message = refused(row("b,1,\"1"));
    assert!(message.contains("ab.csv:3:"), "{message}");
    let message = refused(b"variant,converted,spend\na,1,2\n\xe9,1,2\n");
    assert!(
        message.contains("ab.csv:3: column \"variant\"") && message.contains("UTF-8"),
        "{message}"
    );
    let message = refused(b"variant,converted,spend\na,1,\xff\n");
    assert!(message.contains("ab.csv:2: column \"spend\""), "{message}");
    // A terminal shows what a cell holds, and does not do it.
    let message = refused(row("b,1,\x1b[2Jx"));
    assert!(!message.contains('\x1b'), "{message:?}");
}

#[test]
fn a_header_that_does_not_fit_is_refused() {
    let header = |header: &str| refused(format!("{header}\na,1,2\nb,1,2\n"));
    for (line, wanted) in [
        (
            "varient,converted,spend",
            "ab.csv:1: there is no column \"variant\"; did you mean \"varient\"?",
        ),
        (
            "variant,converted,cost",
            "there is no column \"spend\"; choose from variant, converted, cost",
        ),
        (
            "variant,converted,variant,spend",
            "column \"variant\" appears 2 times",
        ),
    ] {
        let message = header(line);
        assert!(message.contains(wanted), "{message}");
    }
    assert!(refused("").contains("there is no column \"variant\""));
    let utf16: Vec<u8> = "\u{feff}variant,converted,spend\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(refused(utf16).contains("UTF-16"));
    let test = "variant,converted,spend\na,1,2\nb,0,1\n";
    for (columns, wanted) in [
        (
            [
                "--action",
                "variant",
                "--reward",
                "spend",
                "--cost",
                "price=spend",
            ],
            "asked for twice",
        ),
        (
            [
                "--action",
                "variant",
                "--reward",
                "converted",
                "--cost",
                "reward=spend",
            ],
            "cannot be told from the column reward",
        ),
        (
            [
                "--action",
                "variant",
                "--reward",
                "x=converted",
                "--cost",
                "x=spend",
            ],
            "named twice",
        ),
        (
            [
                "--action",
                "variant",
                "--reward",
                "converted",
                "--cost",
                "=spend",
            ],
            "name",
        ),
    ] {
        let message = imported(test, &columns).unwrap_err();
        assert!(message.contains(wanted), "{columns:?}: {message}");
    }
}

#[test]
fn what_cannot_be_an_experiment_is_refused() {
    let header = "variant,converted,spend\n";
    assert!(refused(format!("{header}a,1,2\na,0,1\n")).contains("\"a\" alone"));
    assert!(refused(header).contains("at least two actions"));
    assert!(refused(format!("{header}a,1,-1e308\nb,0,1.7e308\n")).contains("too far for a range"));
    let users: String = (0..1_200).map(|user| format!("{user},1,1\n")).collect();
    let message = refused(header.to_owned() + &users);
    assert!(
        message.contains("ab.csv:1002: column \"variant\" has more than 1000"),
        "{message}"
    );
}

#[test]
fn huge_and_tiny_numbers_make_a_spec_that_is_read_back() {
    for [one, two] in [
        ["1e300", "-1e299"],
        ["1e-300", "3e-300"],
        ["1e15", "1000000000000001"],
        ["-5", "-5"],
        ["0", "0"],
    ] {
        let folder = Scratch::new("import");
        fs::write(
            folder.join("ab.csv"),
            format!("variant,converted,spend\na,{one},0\nb,{two},0\n"),
        )
        .unwrap();
        said(
            &folder,
            &[&["import", "ab.csv", "--out", "plan"], &COLUMNS[..]].concat(),
        );
        said(&folder, &["run", "plan/spec.toml", "--horizon", "100"]);
    }
}

#[test]
fn names_that_end_a_comment_or_a_string_stay_names() {
    let folder = Scratch::new("import");
    let name = "a\"b\\ # x.csv";
    let test = "\"v\nariant\",converted,\"sp=end\"\n\"a\"\"\n]\",1,0.5\n'''b,0,0.25\n";
    fs::write(folder.join(name), test).unwrap();
    let columns = [
        "--action",
        "v\nariant",
        "--reward",
        "\"q\"=converted",
        "--cost",
        "x\n[y]=sp=end",
    ];
    said(
        &folder,
        &[&["import", name, "--out", "plan"], &columns[..]].concat(),
    );
    let spec = fs::read_to_string(folder.join("plan/spec.toml")).unwrap();
    let spec = Spec::parse(&spec, "spec.toml").unwrap();
    assert_eq!(spec.problem.actions(), ["'''b", "a\"\n]"]);
    assert_eq!(spec.problem.quantity(1).name, "x\n[y]");
    said(&folder, &["run", "plan/spec.toml", "--horizon", "100"]);
}

/// The world that an imported test makes, read back from what was written.
fn read_back(test: &str, columns: &ImportColumns) -> (Spec, Vec<Vec<f64>>) {
    let mut rows = Vec::new();
    let test = Box::new(std::io::Cursor::new(test.to_owned().into_bytes()));
    let found = import("ab.csv", columns, test, &mut rows).unwrap();
    let spec = Spec::parse(&found.spec, "spec.toml").unwrap();
    let mut open = |file: &str| -> std::io::Result<Box<dyn std::io::Read>> {
        assert_eq!(file, ROWS_FILE);
        Ok(Box::new(std::io::Cursor::new(rows.clone())))
    };
    let means = spec.world(&mut open).unwrap().world.means().to_vec();
    (spec, means)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever rows there are, in whatever order: the world has their means, within the range that was drafted, and the
    /// reader of the spec takes every one of them.
    #[test]
    fn the_world_is_the_test(
        mut rows in prop::collection::vec((0usize..4, -1e6f64..1e6, 0.0f64..1e-3), 4..60),
        seed in any::<u64>(),
    ) {
        let actions = ["a", "b c", "\u{e9}", "d,\"e\""];
        // Two actions at least.
        (rows[0].0, rows[1].0) = (0, 1);
        let columns = ImportColumns::new("variant", "converted", ["price=spend"]);
        let csv = |rows: &[(usize, f64, f64)]| {
            let line = |&(action, reward, cost): &(usize, f64, f64)| {
                format!("\"{}\",{reward:?},x,{cost:?}\n", actions[action].replace('"', "\"\""))
            };
            "variant,converted,note,spend\n".to_owned() + &rows.iter().map(line).collect::<String>()
        };
        let (spec, means) = read_back(&csv(&rows), &columns);
        for (number, name) in spec.problem.actions().iter().enumerate() {
            let action = actions.iter().position(|known| known == name).unwrap();
            let own: Vec<_> = rows.iter().filter(|row| row.0 == action).collect();
            for (quantity, means) in means.iter().enumerate() {
                let range = spec.problem.quantity(quantity).range;
                let value = |row: &&(usize, f64, f64)| if quantity == 0 { row.1 } else { row.2 };
                let mean = own.iter().map(|row| range.to_unit(value(row))).sum::<f64>() / own.len() as f64;
                prop_assert!((means[number] - mean).abs() < 1e-12, "{name} {quantity}");
            }
        }
        // In another order they make the same spec and the same world.
        let turn = seed as usize % rows.len();
        rows.rotate_left(turn);
        let (again, same) = read_back(&csv(&rows), &columns);
        prop_assert_eq!(again.problem, spec.problem);
        prop_assert_eq!(same, means);
    }
}

/// A file far larger than what the program may take: rows are not kept.
#[test]
fn a_large_test_is_read_row_by_row() {
    let folder = Scratch::new("import");
    let path: PathBuf = folder.join("ab.csv");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    writeln!(file, "variant,converted,spend,note").unwrap();
    let note = "x".repeat(200);
    for row in 0..300_000 {
        writeln!(file, "{},{},0.25,{note}", ["a", "b"][row % 2], row % 3 % 2).unwrap();
    }
    file.into_inner().unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 60 << 20);
    let program = env!("CARGO_BIN_EXE_debora");
    // 60 MB of rows in a program that may have 48 MB beside what it has at its start.
    let limited = format!(
        "ulimit -d 49152; exec {program} import ab.csv --out plan --json --action variant --reward converted --cost spend"
    );
    let mut command = std::process::Command::new("bash");
    let output = command
        .args(["-c", &limited])
        .current_dir(&*folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["rows"], 300_000);
}
