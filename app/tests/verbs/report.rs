//! The report in a real browser: nothing is fetched, nothing complains, every figure can be seen, on a desk and on a phone, by
//! day and by night. Needs Debian's chromium, which `./check` installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Tells what a person would see, in an attribute that a dump of the page shows.
const PROBE: &str = "<script>
const figures = [...document.querySelectorAll('figure')].map(figure => {
    const svg = figure.querySelector('svg.chart');
    const [box, room] = [svg.getBoundingClientRect(), figure.getBoundingClientRect()];
    const drawn = [...svg.querySelectorAll('path, text')].filter(part => part.getBoundingClientRect().width > 0);
    const words = [...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect());
    const inside = words.every(place =>
        place.left >= room.left - 1 && place.right <= room.right + 1 && place.top >= room.top - 1 && place.bottom <= room.bottom + 1);
    const letters = Math.min(...words.map(place => place.height));
    return { right: room.right, height: box.height, width: box.width, drawn: drawn.length, letters, inside };
});
const requests = performance.getEntriesByType('resource').length;
const wide = document.documentElement.scrollWidth > innerWidth;
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
document.body.dataset.seen = btoa(JSON.stringify({ figures, requests, wide, dark, width: innerWidth }));
</script></body>";

fn report(name: &str, arguments: &[&str]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("debora-report-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_debora"));
    let status = command
        .args(arguments)
        .arg("--out")
        .arg(&folder)
        .current_dir(root)
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    folder
}

fn decode(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits = text
        .bytes()
        .filter(|byte| *byte != b'=')
        .flat_map(|byte| (0..6).rev().map(move |bit| value(byte) >> bit & 1));
    bits.collect::<Vec<u8>>()
        .chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit))
        .collect()
}

/// What the browser shows of the page, and what it says on its console.
fn look(folder: &Path, size: &str, dark: bool) -> Value {
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let probe = folder.join("probe.html");
    fs::write(&probe, page.replace("</body>", PROBE)).unwrap();
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--enable-logging=stderr",
    ]);
    browser.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ]);
    browser
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--window-size={size}"));
    if dark {
        browser.arg("--force-dark-mode");
    }
    let output = browser
        .arg("--dump-dom")
        .arg(&probe)
        .output()
        .expect("chromium is installed by ./check");
    let (page, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(!log.contains("CONSOLE"), "{log}");
    let seen = page
        .split("data-seen=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("the probe ran");
    serde_json::from_slice(&decode(seen)).unwrap()
}

#[test]
fn every_figure_is_seen_and_nothing_is_fetched() {
    let calls: [(&str, &[&str], usize); 3] = [
        (
            "replicate",
            &["replicate", "examples/model-routing.toml", "--pairs", "100"],
            7,
        ),
        ("run", &["run", "examples/cache-policy.toml"], 5),
        (
            "compare",
            &[
                "compare",
                "examples/free.toml",
                "--horizon",
                "1e5",
                "--pairs",
                "5",
            ],
            2,
        ),
    ];
    for (name, arguments, figures) in calls {
        let folder = report(name, arguments);
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        let foreign = page.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !foreign.contains("http://")
                && !foreign.contains("https://")
                && !foreign.contains("src=")
        );
        // Of several players there are too many means to show.
        let observed = page.contains("What the first run observed");
        assert!(observed || name == "compare", "{name}");
        for (size, dark) in [
            ("1280,2000", false),
            ("1280,2000", true),
            ("500,2000", false),
            ("500,2000", true),
        ] {
            let seen = look(&folder, size, dark);
            let shown = seen["figures"].as_array().unwrap();
            assert_eq!(shown.len(), figures, "{name}");
            assert_eq!(
                (&seen["requests"], &seen["wide"], &seen["dark"]),
                (&0.into(), &false.into(), &dark.into()),
                "{name} {size}"
            );
            for figure in shown {
                assert!(
                    figure["right"].as_f64() <= seen["width"].as_f64()
                        && figure["height"].as_f64() > Some(80.0)
                        && figure["width"].as_f64() > Some(250.0),
                    "{figure}"
                );
                // On a phone, too, letters are as high as those of a small print.
                assert!(
                    figure["drawn"].as_u64() > Some(8)
                        && figure["inside"] == true
                        && figure["letters"].as_f64() > Some(11.0),
                    "{name} {size}: {figure}"
                );
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
