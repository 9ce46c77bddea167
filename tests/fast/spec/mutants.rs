//! No text panics: right specs and tables, cut, doubled, swapped and spoiled; and plain noise.

use proptest::prelude::*;

use super::{FREE, HARD, SOFT, simulate};
use crate::common::cases;
use debora::spec::Spec;

const ROWS: &str = "action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.125\n";

/// What a hand might put where it does not belong.
const TOKENS: [&str; 40] = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "18446744073709551616",
    "0.5",
    "1",
    "2.5",
    "true",
    "\"\"",
    "\"a\"",
    "'b'",
    "[",
    "]",
    "{",
    "}",
    "[]",
    "{}",
    "[[cost]]\n",
    "[cost]\n",
    "[world]\n",
    "[safe]\n",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "\"",
    "'''",
    "price",
    "reward",
    "world.reward",
    "1979-05-27",
    "\u{0}",
    "\u{e9}\u{1f600}",
    "\u{feff}",
];

fn bases() -> Vec<String> {
    let law = "{ values = [0, 0.5], probabilities = [0.25, 0.75] }";
    let discrete = format!(
        "[world]\nkind = 'discrete'\nreward = [{law}, {law}]\ncost.price = {{ a = {law}, b = {law} }}\n"
    );
    vec![
        FREE.to_owned(),
        HARD.to_owned(),
        HARD.replace(
            "threshold = 0.5\n",
            "threshold = 0.5\nrange = { small = [0, 1], medium = [0.5, 0.5], large = [0, 0.5] }\n",
        ),
        format!("{SOFT}[world]\nkind = 'bernoulli'\nreward = [0.25, 1]\ncost.price = [0, 0.75]\n"),
        format!("{SOFT}{discrete}"),
        format!("{SOFT}[world]\nkind = 'table'\nfile = 'rows.csv'\n"),
        format!("outside = 'clip'\n{SOFT}[world]\nkind = 'table'\nfile = 'rows.csv'\n"),
    ]
}

/// One change: what, where (as shares of the text), and with which token.
type Change = (u8, f64, f64, usize);

fn change() -> impl Strategy<Value = Change> {
    (0u8..6, 0.0..1.0, 0.0..1.0, 0..TOKENS.len())
}

fn apply(text: &str, (what, one, two, token): Change) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = |share: f64| (share * letters.len() as f64) as usize;
    let (start, end) = (
        at(one),
        (at(one) + (two * two * 30.0) as usize).min(letters.len()),
    );
    let cut = |with: &str| -> String {
        letters[..start]
            .iter()
            .copied()
            .chain(with.chars())
            .chain(letters[end..].iter().copied())
            .collect()
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let line = |share: f64| (share * lines.len() as f64) as usize;
    let (first, second) = (line(one), line(two));
    match what {
        0 => return cut(""),
        1 => return cut(TOKENS[token]),
        2 => return replace_value(text, one, TOKENS[token]),
        _ if lines.is_empty() => return TOKENS[token].to_owned(),
        3 => lines.swap(first, second),
        4 => lines.insert(first, lines[second]),
        _ => drop(lines.remove(first)),
    }
    lines.join("\n")
}

/// Puts a token in place of some number, name or text, which keeps most of the syntax.
fn replace_value(text: &str, share: f64, token: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || "._-\"'".contains(letter);
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|&(at, letter)| is_part(letter) && !text[..at].ends_with(is_part))
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = starts.get((share * starts.len() as f64) as usize) else {
        return token.to_owned();
    };
    let end = text[start..]
        .find(|letter| !is_part(letter))
        .map_or(text.len(), |length| start + length);
    format!("{}{token}{}", &text[..start], &text[end..])
}

/// Reads all there is to read; an error must point into the text.
fn read(text: &str, overrides: &[(String, String)], rows: &str) -> bool {
    let spec = match Spec::parse_with(text, "x.toml", overrides) {
        Ok(spec) => spec,
        Err(error) => {
            assert!(
                error
                    .line()
                    .is_none_or(|line| line >= 1 && line <= text.lines().count().max(1) as u64),
                "{error}"
            );
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(spec.fingerprint().len(), 64);
    match simulate(&spec, rows) {
        Ok(simulated) => {
            assert!(
                simulated
                    .world
                    .means()
                    .iter()
                    .flatten()
                    .all(|mean| (0.0..=1.0).contains(mean))
            );
            assert_eq!(simulated.fingerprint.len(), 64);
        }
        Err(error) => assert!(
            spec.world.is_none() || error.origin() != "x.toml" || error.line().is_some(),
            "{error}"
        ),
    }
    true
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn spoiled_specs_are_refused_or_read(
        base in 0..7usize,
        changes in prop::collection::vec(change(), 0..4),
        rows in prop::collection::vec(change(), 0..3),
    ) {
        let text = changes.into_iter().fold(bases()[base].clone(), |text, change| apply(&text, change));
        let rows = rows.into_iter().fold(ROWS.to_owned(), |text, change| apply(&text, change));
        read(&text, &[], &rows);
    }
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn spoiled_overrides_are_refused_or_read(
        base in 0..7usize,
        paths in prop::collection::vec((0..PATHS.len(), 0..TOKENS.len(), any::<bool>()), 1..4),
        spoil in change(),
    ) {
        let spoiled = |path: &str, is_spoiled: bool| if is_spoiled { apply(path, spoil) } else { path.to_owned() };
        let set = |(path, token, is_spoiled): (usize, usize, bool)| (spoiled(PATHS[path], is_spoiled), TOKENS[token].to_owned());
        let overrides: Vec<(String, String)> = paths.into_iter().map(set).collect();
        read(&bases()[base], &overrides, ROWS);
    }

    #[test]
    fn noise_is_refused(text in ".{0,200}", path in ".{0,20}", value in ".{0,20}") {
        read(&text, &[], &text);
        read(FREE, &[(path, value)], &text);
    }
}

const PATHS: [&str; 19] = [
    "policy",
    "horizon",
    "rho",
    "growth",
    "key",
    "actions",
    "reward.range",
    "cost",
    "cost.price.threshold",
    "cost.price.name",
    "explore",
    "caution",
    "cost.price.range.a",
    "safe.strategy.a",
    "safe.margin.price",
    "world.kind",
    "world.reward",
    "world.cost.price.a",
    "service.impute.cost.price",
];

/// What the mutants cannot find in reasonable time: depth and length.
#[test]
fn deep_and_long_texts_are_refused() {
    for text in [
        format!("actions = {}", "[".repeat(100_000)),
        format!("actions = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        "[[cost]]\n".repeat(20_000),
        format!("policy = \"{}\"", "soft".repeat(100_000)),
        format!("{} = 1", "policy".repeat(100_000)),
    ] {
        assert!(!read(&text, &[], ""), "{}", &text[..20]);
    }
    for (path, value) in [
        ("a.".repeat(100_000) + "a", "1".to_owned()),
        ("cost".to_owned(), "[".repeat(100_000)),
    ] {
        assert!(!read(FREE, &[(path, value)], ""));
    }
}

/// Sums over many actions round; the strategies they make must still sum to one.
#[test]
fn a_safe_strategy_may_spread_over_many_actions() {
    for count in [1_000, 99_991, 300_000] {
        let names: Vec<String> = (0..count).map(|action| format!("a{action}")).collect();
        let chances: Vec<String> = names
            .iter()
            .map(|name| format!("{name} = {:?}", 1.0 / count as f64))
            .collect();
        let head = "policy = 'hard'\nhorizon = 1e9\nrho = 0.1\nactions = ['";
        let text = format!(
            "{head}{}']\n[safe]\nstrategy = {{ {} }}",
            names.join("','"),
            chances.join(", ")
        );
        assert!(read(&text, &[], ""));
    }
}
