//! What the figures draw, as numbers: the points in `curves.csv` against quantiles computed here, and the corners of the paths in
//! SVG and PDF against those points. Needs Debian's poppler-utils, which `./check` installs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use debora::lab::metrics::Run;
use debora::lab::replicate::{Contestant, Simulator};
use debora::measure::SpecText;

const PAIRS: u64 = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A world in which regret falls far below zero: a strategy that exceeds a threshold earns more than a safe one.
fn report() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("debora-figures-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let output = Command::new(env!("CARGO_BIN_EXE_debora"))
        .args([
            "replicate",
            "examples/model-routing.toml",
            "--pairs",
            &PAIRS.to_string(),
            "--out",
        ])
        .arg(&folder)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    folder
}

fn runs() -> Vec<Run> {
    let path = root().join("examples/model-routing.toml");
    let text = fs::read_to_string(path).unwrap();
    let spec = SpecText::parse(text, "model-routing.toml".into(), Vec::new()).unwrap();
    let world = spec.world(&|_| unreachable!("it has no table")).unwrap();
    let experiment = spec.experiment(&world, Simulator::Epochs);
    let pairs = experiment.pairs(
        Contestant::Debora,
        0..PAIRS,
        &|_| (),
        &AtomicBool::new(false),
    );
    let pairs = pairs.unwrap();
    pairs.into_iter().flat_map(|pair| pair.runs).collect()
}

/// The value that this share of the others lies below, interpolated.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = share * (values.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    values[below] * (above as f64 - place + f64::from(u8::from(above == below)))
        + values[above] * (place - below as f64)
}

/// Series of a figure: x, y, low, high.
fn curves(folder: &Path, figure: &str) -> BTreeMap<String, Vec<[f64; 4]>> {
    let text = fs::read_to_string(folder.join("curves.csv")).unwrap();
    let mut series: BTreeMap<String, Vec<[f64; 4]>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[0] != figure {
            continue;
        }
        let number = |place: usize| cells[place].parse().unwrap_or(f64::NAN);
        series
            .entry(cells[1].to_owned())
            .or_default()
            .push([2, 3, 4, 5].map(number));
    }
    series
}

/// The corners of every path, in the order of the file.
fn svg_paths(svg: &str) -> Vec<Vec<[f64; 2]>> {
    svg.split("<path d=\"")
        .skip(1)
        .map(|rest| {
            let path = rest.split('"').next().unwrap().trim_end_matches('Z');
            let corners = path.split(['M', 'L']).skip(1);
            corners.map(pair).collect()
        })
        .collect()
}

fn pair(text: &str) -> [f64; 2] {
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// Where a number beside an axis stands.
fn tick(svg: &str, text: &str) -> [f64; 2] {
    let before = svg.split(&format!(">{text}</text>")).next().unwrap();
    let tag = before.rsplit("<text ").next().unwrap();
    let value = |name: &str| -> f64 {
        let rest = tag.split(&format!("{name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    [value("x"), value("y")]
}

#[test]
fn curves_are_the_quantiles_of_all_runs() {
    let folder = report();
    let runs = runs();
    let drawn = &curves(&folder, "regret")["measured"];
    let last = drawn.last().unwrap();
    assert!(last[2] < last[1] && last[1] < last[3], "{last:?}");
    for (place, point) in drawn.iter().enumerate() {
        let mut values: Vec<f64> = runs.iter().map(|run| run.regret_curve[place]).collect();
        let expected = [0.5, 0.05, 0.95].map(|share| quantile(&mut values, share));
        for (seen, expected) in point[1..].iter().zip(expected) {
            let error = (seen - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-9, "round {}: {seen} and {expected}", point[0]);
        }
    }
    assert_eq!(last[0], 1e8, "a curve ends with its last round");
    drawn_as_told(&folder, drawn);
    files_are_alike(&folder);
    fs::remove_dir_all(folder).unwrap();
}

/// The line's corners in the figure, against the points and the numbers beside the axes.
fn drawn_as_told(folder: &Path, points: &[[f64; 4]]) {
    let svg = fs::read_to_string(folder.join("regret.svg")).unwrap();
    let paths = svg_paths(&svg);
    let line = paths
        .iter()
        .find(|path| path.len() == points.len())
        .expect("a corner a point");
    let band = paths
        .iter()
        .find(|path| path.len() == 2 * points.len())
        .expect("a band");
    // The axis is linear in sign(v) ln(1 + |v| / near), near being a tenth of the smallest number above zero beside it: 10,000.
    let near = 1_000.0;
    let bent = |value: f64| (value.abs() / near).ln_1p().copysign(value);
    // Words stand 4 below the height they tell.
    let [zero, million] = ["0", "1,000,000"].map(|text| tick(&svg, text)[1] - 4.0);
    let unit = (zero - million) / bent(1e6);
    let [left, right] = ["1", "100M"].map(|text| tick(&svg, text)[0]);
    for (place, point) in points.iter().enumerate() {
        let across = left + (right - left) * point[0].log10() / 8.0;
        let corners = [
            (line[place], point[1]),
            (band[place], point[2]),
            (band[2 * points.len() - 1 - place], point[3]),
        ];
        for (corner, value) in corners {
            let expected = [across, zero - unit * bent(value)];
            let error = (corner[0] - expected[0])
                .abs()
                .max((corner[1] - expected[1]).abs());
            // Corners and words are written to a tenth.
            assert!(error < 0.4, "{corner:?}, not {expected:?}, for {value}");
        }
    }
}

/// The PDF has the corners of the SVG, upside down, and a reader opens it.
fn files_are_alike(folder: &Path) {
    for name in [
        "identical",
        "regret",
        "violation",
        "strategy",
        "estimates-reward",
        "estimates-cost-1",
    ] {
        let svg = fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
        let pdf_path = folder.join(format!("{name}.pdf"));
        let pdf = fs::read_to_string(&pdf_path).unwrap();
        let height: f64 = {
            let rest = svg.split("viewBox=\"0 0 640 ").nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let drawn: Vec<[f64; 2]> = pdf
            .lines()
            .filter(|line| line.ends_with(" m") || line.ends_with(" l"))
            .map(pair)
            .collect();
        let expected: Vec<[f64; 2]> = svg_paths(&svg).into_iter().flatten().collect();
        assert_eq!(drawn.len(), expected.len(), "{name}");
        for ([x, y], [svg_x, svg_y]) in drawn.into_iter().zip(expected) {
            assert!(
                (x - svg_x).abs() < 0.1 && (height - y - svg_y).abs() < 0.1,
                "{name}: {x} {y}, {svg_x} {svg_y}"
            );
        }
        let words = Command::new("pdftotext").arg(&pdf_path).arg("-").output();
        let words = words.expect("poppler-utils is installed by ./check");
        assert!(
            words.status.success() && words.stderr.is_empty(),
            "{words:?}"
        );
        let words = String::from_utf8(words.stdout).unwrap();
        let label = match name {
            "identical" => "identical pairs",
            "strategy" => "medium",
            "estimates-reward" | "estimates-cost-1" => "true mean",
            name => name,
        };
        assert!(words.contains(label), "{name}: {words}");
    }
}
