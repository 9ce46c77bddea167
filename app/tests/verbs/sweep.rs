//! Sweeps: each point is the single measurement, however the work is divided, stopped or begun again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const SPEC: &str = "name = 'random & <mixed>'\npolicy = 'soft'\nhorizon = 1e5\nrho = 0.1\nkey = 42\nactions = 4\n\
    [reward]\nname = 'click_rate'\nrange = [0, 2]\n[[cost]]\nname = 'price'\nthreshold = 0.5\n\
    [world]\nkind = 'random'\nlaw = 'gap'\ngap = 0.4\nworlds = 3\n";

/// A folder of this test's own, with the spec in it.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("debora-sweep-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("spec.toml"), SPEC).unwrap();
    path
}

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_debora"));
    command.args(line.split(' ')).current_dir(folder);
    command
}

fn output(folder: &Path, line: &str) -> Output {
    command(folder, line).output().unwrap()
}

fn said(folder: &Path, line: &str) -> String {
    let output = output(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn document(folder: &Path, line: &str) -> Value {
    serde_json::from_str(&said(folder, line)).unwrap()
}

fn refused(folder: &Path, line: &str) -> String {
    let output = output(folder, line);
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Every file below a folder, by its path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = PathBuf::from(path.file_name().unwrap());
            found.extend(
                files(&path)
                    .into_iter()
                    .map(|(inner, bytes)| (name.join(inner), bytes)),
            );
        } else {
            found.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    found
}

fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        other.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &one {
        assert!(*bytes == other[name], "{} differs", name.display());
    }
}

/// Seconds are what no two measurements share.
fn without_seconds(mut document: Value) -> Value {
    document.as_object_mut().unwrap().remove("seconds");
    for row in document
        .get_mut("rows")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        row.as_object_mut().unwrap().remove("seconds");
    }
    document
}

#[test]
fn each_point_is_the_single_measurement() {
    let folder = folder("points");
    let over = "--over horizon=1e4..1e5 --over cost.price.threshold=0.4,.6 --over K=3,5";
    let sweep = document(
        &folder,
        &format!("sweep spec.toml {over} --pairs 6 --players optimistic-lp --json --quiet"),
    );
    assert_eq!(
        sweep["parameters"][0],
        json!({ "name": "horizon", "values": [10000, 100000] })
    );
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.len(), 8);
    // In the grid's order: the last parameter changes first.
    assert_eq!(
        points[1]["values"],
        json!({ "horizon": 10000, "cost.price.threshold": 0.4, "K": 5 })
    );
    for point in points {
        let values = &point["values"];
        let single = format!(
            "compare spec.toml --horizon {} --set cost.price.threshold={} --set actions={} --pairs 6 --players optimistic-lp --json --quiet",
            values["horizon"], values["cost.price.threshold"], values["K"]
        );
        assert_eq!(
            without_seconds(document(&folder, &single)),
            point["measured"],
            "{single}"
        );
    }
    // Without players it is replicate, at every world of a generated few.
    let worlds = document(
        &folder,
        "sweep spec.toml --over world=0..2+1 --over gap=0.2 --pairs 4 --json --quiet",
    );
    for point in worlds["points"].as_array().unwrap() {
        let values = &point["values"];
        let single = format!(
            "replicate spec.toml --set world.index={} --set world.gap={} --pairs 4 --json --quiet",
            values["world"], values["gap"]
        );
        assert_eq!(
            without_seconds(document(&folder, &single)),
            point["measured"],
            "{single}"
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn shards_merge_to_the_whole() {
    let folder = folder("shards");
    let sweep = "sweep spec.toml --over rho=0.1,0.3 --over horizon=1e4,1e5 --pairs 7 --players optimistic-lp --quiet";
    said(&folder, &format!("{sweep} --out whole --latex --threads 1"));
    // Begun in the same moment, in a folder that neither has made yet.
    let begun = ["3/3", "1/3"].map(|shard| {
        let mut command = command(&folder, &format!("{sweep} --out parts --shard {shard}"));
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut shard in begun {
        assert!(shard.wait().unwrap().success());
    }
    let gap = refused(&folder, "merge parts --out merged");
    assert!(
        gap.contains("point 1 of 4") && gap.contains("pair"),
        "{gap}"
    );
    let early = refused(&folder, &format!("{sweep} --out early --shard 1/3 --latex"));
    assert!(early.contains("give it to debora merge"), "{early}");
    // The last from another machine's folder.
    said(
        &folder,
        &format!("{sweep} --out elsewhere --shard 2/3 --threads 2"),
    );
    said(&folder, "merge elsewhere parts --out merged --latex");
    assert_same(&folder.join("whole"), &folder.join("merged"));
    // A part of another sweep is not taken for one of this.
    said(
        &folder,
        &format!(
            "{} --out other --shard 2/3",
            sweep.replace("pairs 7", "pairs 8")
        ),
    );
    let other = refused(&folder, "merge other parts");
    assert!(
        other.contains("the number of pairs: 8 instead of 7"),
        "{other}"
    );
    let single = refused(&folder, "merge parts spec.toml");
    assert!(single.contains("is not a folder of a sweep"), "{single}");
    fs::remove_dir_all(folder).unwrap();
}

/// The process, once so many points are written.
fn begun(folder: &Path, line: &str, out: &str, points: usize) -> Child {
    let mut command = command(folder, line);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_dir(folder.join(out).join("points")).map_or(0, Iterator::count) < points {
        assert!(Instant::now() < deadline, "no point in a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn killed_and_begun_again_it_is_the_uninterrupted_sweep() {
    let folder = folder("killed");
    let sweep = "sweep spec.toml --over rho=0.1..0.3+0.01 --over horizon=1e5 --pairs 60 --threads 1 --quiet --out";
    said(&folder, &format!("{sweep} whole"));
    let mut killed = begun(&folder, &format!("{sweep} killed"), "killed", 2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = fs::read_dir(folder.join("killed/points")).unwrap().count();
    assert!(
        !folder.join("killed/sweep.json").exists() && left < 21,
        "{left} points: it had ended"
    );
    let interrupted = begun(&folder, &format!("{sweep} killed"), "killed", left + 2);
    Command::new("kill")
        .args(["-INT", &interrupted.id().to_string()])
        .status()
        .unwrap();
    let stopped = interrupted.wait_with_output().unwrap();
    let message = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(2), "{message}");
    assert!(
        message.contains("stopped as asked; the first ")
            && message.contains("the same command goes on"),
        "{message}"
    );
    // What a killed program leaves of the file it was writing is not a point.
    for entry in fs::read_dir(folder.join("killed/points")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "part") {
            fs::remove_file(path).unwrap();
        }
    }
    let before: Vec<_> = ["0001.json", "0002.json"]
        .map(|name| folder.join("killed/points").join(name))
        .into();
    let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let times: Vec<_> = before.iter().map(written).collect();
    said(&folder, &format!("{sweep} killed"));
    assert_eq!(
        before.iter().map(written).collect::<Vec<_>>(),
        times,
        "finished points were measured again"
    );
    assert_same(&folder.join("whole"), &folder.join("killed"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_of_another_sweep_is_refused() {
    let folder = folder("refused");
    let sweep = "sweep spec.toml --over rho=0.1,0.3 --pairs 4 --quiet --out out";
    said(&folder, sweep);
    for (other, difference) in [
        (
            sweep.replace("0.1,0.3", "0.1,0.2"),
            "the values: 0.2 instead of 0.3",
        ),
        (
            sweep.replace("rho=0.1,0.3", "delta=0.1,0.3"),
            "the parameters: delta instead of rho",
        ),
        (
            sweep.replace("0.1,0.3", "0.1"),
            "the number of points: 1 instead of 2",
        ),
        (
            sweep.replace("--pairs 4", "--pairs 5"),
            "the number of pairs: 5 instead of 4",
        ),
        (
            sweep.replace("--pairs", "--horizon 1e4 --pairs"),
            "the horizon: 10000 instead of 100000",
        ),
        (
            sweep.replace("--pairs", "--players optimistic-lp --pairs"),
            "the verb: compare instead of replicate",
        ),
    ] {
        let message = refused(&folder, &other);
        assert!(
            message.contains(difference) && message.contains("--force"),
            "{message}"
        );
    }
    fs::write(
        folder.join("spec.toml"),
        SPEC.replace("gap = 0.4", "gap = 0.3"),
    )
    .unwrap();
    let message = refused(&folder, sweep);
    assert!(
        message.contains("the world.gap: 0.3 instead of 0.4"),
        "{message}"
    );
    said(&folder, &format!("{sweep} --force"));
    fs::write(folder.join("spec.toml"), SPEC).unwrap();
    said(&folder, &format!("{sweep} --force"));
    // A point that was tampered with, or cut off.
    let point = folder.join("out/points/0002.json");
    let text = fs::read_to_string(&point).unwrap();
    fs::write(
        &point,
        text.replacen("\"spec\":\"replicate ", "\"spec\":\"replicate 0", 1),
    )
    .unwrap();
    let message = refused(&folder, sweep);
    assert!(
        message.contains("0002.json cannot be used; remove it")
            && message.contains("draws of its world"),
        "{message}"
    );
    fs::write(&point, &text[..text.len() / 2]).unwrap();
    assert!(refused(&folder, sweep).contains("is not a shard of debora"));
    fs::remove_file(&point).unwrap();
    said(&folder, sweep);
    assert_eq!(fs::read_to_string(&point).unwrap(), text);
    // Anything else in the folder is not overwritten.
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/notes.txt"), "").unwrap();
    assert!(refused(&folder, &sweep.replace("out out", "out mine")).contains("is not empty"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rows_of_a_table_that_changed_are_refused() {
    let folder = folder("rows");
    let rows = "action,reward\na,0\na,1\nb,1\nb,1\n";
    fs::write(folder.join("rows.csv"), rows).unwrap();
    let spec = "policy = 'free'\nhorizon = 1e4\nrho = 0.3\nactions = ['a', 'b']\n[world]\nkind = 'table'\nfile = 'rows.csv'\n";
    fs::write(folder.join("table.toml"), spec).unwrap();
    let sweep = "sweep table.toml --over rho=0.1,0.3 --pairs 4 --quiet --out out";
    said(&folder, sweep);
    fs::write(
        folder.join("rows.csv"),
        rows.replace("b,1\nb,1", "b,1\nb,0"),
    )
    .unwrap();
    let message = refused(&folder, sweep);
    assert!(
        message.contains("0001.json") && message.contains("the rows of its table"),
        "{message}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_specs_are_one_table_and_one_figure() {
    let folder = folder("specs");
    fs::write(
        folder.join("other.toml"),
        SPEC.replace("gap = 0.4", "gap = 0.8"),
    )
    .unwrap();
    let line = "compare spec.toml other.toml --pairs 5 --players optimistic-lp --quiet";
    said(&folder, &format!("{line} --out out --latex"));
    let sweep: Value =
        serde_json::from_slice(&fs::read(folder.join("out/sweep.json")).unwrap()).unwrap();
    for (place, file) in ["spec.toml", "other.toml"].iter().enumerate() {
        let single = document(
            &folder,
            &format!("compare {file} --pairs 5 --players optimistic-lp --quiet --json"),
        );
        assert_eq!(sweep["points"][place]["measured"], without_seconds(single));
        assert_eq!(sweep["points"][place]["values"], json!({ "spec": file }));
    }
    let curves = fs::read_to_string(folder.join("out/curves.csv")).unwrap();
    // To the last round, a line for each spec and player.
    for series in ["debora, spec.toml", "optimistic-lp, other.toml"] {
        assert!(
            curves.contains(&format!("regret,\"{series}\",100000,")),
            "{curves}"
        );
    }
    // Of the path only what tells them apart.
    fs::create_dir_all(folder.join("in/one")).unwrap();
    fs::create_dir_all(folder.join("in/two")).unwrap();
    fs::copy(folder.join("spec.toml"), folder.join("in/one/spec.toml")).unwrap();
    fs::copy(folder.join("spec.toml"), folder.join("in/two/spec.toml")).unwrap();
    let line = "sweep in/one/spec.toml in/two/spec.toml --over rho=0.3 --pairs 1 --quiet --json";
    let points = &document(&folder, line)["points"];
    let labels = [0, 1].map(|place| points[place]["values"]["spec"].clone());
    assert_eq!(labels, ["one/spec.toml", "two/spec.toml"]);
    let twice = refused(&folder, "compare spec.toml spec.toml");
    assert!(
        twice.contains("spec.toml: the spec is there twice"),
        "{twice}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn figures_and_tables_have_the_numbers_of_the_points() {
    let folder = folder("figures");
    said(
        &folder,
        "sweep spec.toml --over rho=0.1,0.3 --over horizon=1e4..1e6 --pairs 5 --players optimistic-lp --quiet --out out --latex",
    );
    let out = folder.join("out");
    let sweep: Value = serde_json::from_slice(&fs::read(out.join("sweep.json")).unwrap()).unwrap();
    let curves = fs::read_to_string(out.join("curves.csv")).unwrap();
    let table = fs::read_to_string(out.join("sweep.csv")).unwrap();
    let mut rows = 0;
    for point in sweep["points"].as_array().unwrap() {
        for row in point["measured"]["rows"].as_array().unwrap() {
            let (rho, horizon, player) = (
                &point["values"]["rho"],
                &point["values"]["horizon"],
                row["player"].as_str().unwrap(),
            );
            let number = |value: &Value| value.as_f64().unwrap().to_string();
            let regret = &row["regret"];
            let [median, low, high] = ["median", "p05", "p95"].map(|name| number(&regret[name]));
            let drawn =
                format!("regret,\"{player}, rho = {rho}\",{horizon},{median},{low},{high}\n");
            assert!(curves.contains(&drawn), "{drawn} in {curves}");
            let rate = number(&row["identical_rate"]);
            assert!(curves.contains(&format!(
                "identical,\"{player}, rho = {rho}\",{horizon},{rate},"
            )));
            let line = format!("\n{rho},{horizon},{player},5,{},{rate},", row["identical"]);
            let found = table
                .find(&line)
                .map(|at| table[at + 1..].lines().next().unwrap());
            assert!(
                found.is_some_and(|found| found.contains(&number(&regret["mean"]))),
                "{line} in {table}"
            );
            rows += 1;
        }
    }
    assert_eq!((rows, table.lines().count()), (12, 13));
    for name in ["regret", "violation", "identical"] {
        let svg = fs::read_to_string(out.join(format!("{name}.svg"))).unwrap();
        assert!(
            svg.contains("horizon") && svg.contains("optimistic-lp, rho = 0.3"),
            "{svg}"
        );
        assert!(
            fs::read(out.join(format!("{name}.pdf")))
                .unwrap()
                .starts_with(b"%PDF")
        );
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("random &amp; &lt;mixed&gt;"));
    // The page says how to make it again, and that does.
    let again = page
        .split("<pre>debora ")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next())
        .unwrap();
    said(
        &folder,
        &again
            .replace('\'', "")
            .replace("--out DIR", "--out again --quiet --latex"),
    );
    assert_same(&out, &folder.join("again"));
    latex(&fs::read_to_string(out.join("table.tex")).unwrap(), 7, 12);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn comparisons_have_their_table_for_papers() {
    let folder = folder("latex");
    said(
        &folder,
        "compare spec.toml --pairs 5 --players optimistic-lp --quiet --out out --latex",
    );
    let text = fs::read_to_string(folder.join("out/table.tex")).unwrap();
    latex(&text, 5, 2);
    assert!(
        text.contains("random \\& \\textless{}mixed\\textgreater{}")
            && text.contains("regret (click\\_rate)"),
        "{text}"
    );
    // Of two players' identical rates, regrets and violations one is best, unless they are equal.
    let rows: Value = document(
        &folder,
        "compare spec.toml --pairs 5 --players optimistic-lp --quiet --json",
    )["rows"]
        .clone();
    let differ = |path: &str| rows[0].pointer(path) != rows[1].pointer(path);
    let bold = ["/identical_rate", "/regret/mean", "/violation/mean"]
        .iter()
        .filter(|path| differ(path))
        .count();
    assert_eq!(text.matches("\\textbf{").count(), bold, "{text}");
    let alone = refused(&folder, "compare spec.toml --latex");
    assert!(alone.contains("--out"), "{alone}");
    fs::remove_dir_all(folder).unwrap();
}

/// What LaTeX would stumble over: environments and braces in pairs, as many cells as columns, and nothing special but what
/// begins a command.
fn latex(text: &str, columns: usize, rows: usize) {
    let mut open = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("\\begin{") {
            open.push(name.split('}').next().unwrap().to_owned());
        } else if let Some(name) = line.strip_prefix("\\end{") {
            assert_eq!(open.pop().as_deref(), name.strip_suffix('}'), "{text}");
        }
    }
    assert!(open.is_empty(), "{open:?} in {text}");
    let body = text
        .strip_prefix("% Needs \\usepackage{booktabs}.\n")
        .unwrap();
    let (mut depth, mut letters) = (0_i32, body.chars());
    while let Some(letter) = letters.next() {
        match letter {
            // What follows a backslash is part of the command, or the letter that it makes harmless.
            '\\' => drop(letters.next()),
            '{' => depth += 1,
            '}' => depth -= 1,
            '%' | '#' | '_' | '^' | '~' => panic!("a bare {letter} in {text}"),
            _ => {}
        }
        assert!(depth >= 0, "{text}");
    }
    assert_eq!(depth, 0, "{text}");
    assert!(!text.replace("$\\cdot$", "").contains('$'), "{text}");
    let lines: Vec<&str> = body.lines().filter(|line| line.ends_with("\\\\")).collect();
    assert_eq!(lines.len(), rows + 1, "{text}");
    for line in lines {
        assert_eq!(
            line.replace("\\&", "").matches('&').count(),
            columns - 1,
            "{line}"
        );
    }
    let sides = body
        .split("\\begin{tabular}{")
        .nth(1)
        .unwrap()
        .split('}')
        .next()
        .unwrap();
    assert_eq!(sides.len(), columns);
    let rules = ["\\toprule", "\\midrule", "\\bottomrule"].map(|rule| text.matches(rule).count());
    assert_eq!(rules, [1, 1, 1]);
}
