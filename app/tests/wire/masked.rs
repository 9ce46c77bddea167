//! What differs from run to run or from release to release, and is no matter of these files.
//!
//! ```text
//! TIME     the clock in a page's footer and on a report, which is the machine's
//! TAKEN    how long something took
//! FOLDER   the folder of this run
//! VERSION  the program's
//! HASH     of a script or a style, or of a part of a page that holds one of these
//! STYLE    the style sheet within a paper or a report, which has a history of its own
//! ```
//!
//! The series of a metric come in any order, and are sorted.

use std::path::Path;

/// The text without what varies.
pub fn masked(text: &str, folder: &Path) -> String {
    let text = text.replace(&*folder.to_string_lossy(), "FOLDER");
    let text = between(&text, "<time id=\"updated\">", "</time>", "TIME");
    let text = between(&text, "x-shown&quot;:&quot;", "&quot;", "HASH");
    let text = between(&text, "Report of ", ", by debora ", "TIME");
    let text = between(&text, "<style>", "</style>", "STYLE");
    let text = [".css?", ".js?"]
        .iter()
        .fold(text, |text, file| between(&text, file, "\"", "HASH"));
    let version = env!("CARGO_PKG_VERSION");
    let text = ["debora ", "\"version\":\"", "\"version\": \"", "version=\""]
        .iter()
        .fold(text, |text, before| {
            text.replace(&format!("{before}{version}"), &format!("{before}VERSION"))
        });
    let taken = |line: &str| {
        let (series, _) = line
            .rsplit_once(' ')
            .filter(|(series, _)| is_duration(series))?;
        Some(format!("{series} TAKEN"))
    };
    let lines = text.split('\n');
    let lines: Vec<String> = lines
        .map(|line| taken(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    // The metrics of a family come in any order.
    let mut families: Vec<_> = lines
        .split_inclusive(|line| line.starts_with('#'))
        .map(<[String]>::to_vec)
        .collect();
    for family in &mut families {
        let is_series = |line: &String| line.starts_with("debora_");
        let series = family.iter().take_while(|line| is_series(line)).count();
        family[..series].sort();
    }
    families.concat().join("\n")
}

/// Whether a line of the metrics says how long something took.
fn is_duration(series: &str) -> bool {
    let name = series.split('{').next().unwrap_or_default();
    name.starts_with("debora_")
        && ["_seconds_bucket", "_seconds_sum", "queue_age_seconds"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Each stretch between two words is replaced.
fn between(text: &str, before: &str, after: &str, mask: &str) -> String {
    let mut parts = text.split(before);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked += before;
        match part.split_once(after) {
            Some((_, rest)) => masked.extend([mask, after, rest]),
            None => masked += part,
        }
    }
    masked
}

/// The text in lines that can be read: broken where a tag or a value follows another, each such break marked by a backslash.
pub fn in_lines(text: &str) -> String {
    text.replace("><", ">\\\n<")
        .replace(",\"", ",\\\n\"")
        .replace(",{", ",\\\n{")
}
