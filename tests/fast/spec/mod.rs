//! The spec file: what it says is read back, what it must not say is refused with its line, and nothing panics.

mod fingerprint;
mod mutants;
mod schema;
mod table;

use std::io::{self, Read};
use std::time::Duration;

use debora::lab::world::{Discrete, World};
use debora::problem::{Outside, Range};
use debora::spec::{OnWait, Simulated, Spec, SpecError, WorldKind};
use debora::{Key, Policy, Profile, WorldKey};

const FREE: &str = r#"policy = "free"
horizon = 1e6
rho = 0.1
actions = ["a", "b"]
"#;

const SOFT: &str = r#"policy = "soft"
horizon = 1e6
rho = 0.1
actions = ["a", "b"]
[[cost]]
name = "price"
threshold = 0.5
"#;

/// Every key a spec of policy hard can have.
const HARD: &str = r#"
name = "model routing"
policy = "hard"
horizon = 100_000_000
rho = 0.1
delta = 0.05
growth = 4
outside = "clip"
key = "000102030405060708090a0b0c0d0e0f"
actions = ["small", "medium", "large"]

[reward]
name = "quality"
range = [-1, 1]

[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.005

[[cost]]
name = "wait"
threshold = 0.5

[safe]
strategy = { small = 0.75, large = 0.25 }
cost = { wait = 0.25, price = 0.0025 }

[world]
kind = "beta"
key = 7
concentration = 10
reward = [0, 0.5, 1]
cost.price = { large = 0.02, small = 0.0, medium = 0.01 }
cost.wait = [0.125, 0.25, 0.5]

[service]
on_wait = "serve"
outcome_wait = "7d"
impute = { reward = -0.5, cost = { wait = 0.75 } }
"#;

/// Hard limits hold for those held back, too: only a strategy that is known to be safe may be played.
#[test]
fn a_holdback_is_an_action_that_is_known_to_be_safe() {
    let holdback = |share, action| Some(debora::spec::Holdback { share, action });
    assert_eq!(parse(HARD).service.holdback, None);
    let held_back =
        |action: &str| format!("{HARD}holdback = {{ share = 0.05, action = {action:?} }}\n");
    // A part of the safe mixture is not safe by itself.
    let error = Spec::parse(&held_back("small"), "x.toml").unwrap_err();
    let words =
        "service.holdback.action is \"small\"; under policy hard every decision must be safe";
    assert!(error.to_string().contains(words), "{error}");
    let alone = |text: String| text.replace("small = 0.75, large = 0.25", "small = 1");
    assert_eq!(
        parse(&alone(held_back("small"))).service.holdback,
        holdback(0.05, 0)
    );
    assert!(Spec::parse(&alone(held_back("large")), "x.toml").is_err());
    let soft = "policy = 'soft'\nhorizon = 1e6\nrho = 0.1\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5\n\
        [service]\nholdback = { share = 0.5, action = 'b' }";
    let spec = parse(soft);
    assert_eq!(spec.service.holdback, holdback(0.5, 1));
    for other in [
        soft.replace("'b' }", "'a' }"),
        soft.replace("0.5, action", "0.25, action"),
        soft.replace("holdback", "#"),
    ] {
        assert_ne!(parse(&other).fingerprint(), spec.fingerprint(), "{other}");
    }
}

fn parse(text: &str) -> Spec {
    Spec::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn set(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    overrides
        .iter()
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .collect()
}

fn parse_with(text: &str, overrides: &[(&str, &str)]) -> Result<Spec, SpecError> {
    Spec::parse_with(text, "x.toml", &set(overrides))
}

/// Opens "rows.csv" as this text, and nothing else.
fn simulate(spec: &Spec, rows: &str) -> Result<Simulated, SpecError> {
    spec.world(&mut |file| match file {
        "rows.csv" => Ok(Box::new(io::Cursor::new(rows.to_owned())) as Box<dyn Read>),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    })
}

#[test]
fn a_free_spec_is_read_back_with_its_defaults() {
    let spec = parse(FREE);
    let problem = &spec.problem;
    assert_eq!(
        (problem.policy(), problem.horizon(), problem.rho()),
        (Policy::Free, 1_000_000, 0.1)
    );
    assert_eq!(
        (problem.delta(), problem.profile()),
        (0.01, Profile::Tight { growth: 8 })
    );
    assert_eq!(
        (problem.actions(), problem.quantities()),
        (&["a".to_owned(), "b".to_owned()][..], 1)
    );
    assert_eq!(
        (problem.quantity(0).name.as_str(), problem.quantity(0).range),
        (
            "reward",
            Range {
                low: 0.0,
                high: 1.0
            }
        )
    );
    assert_eq!((problem.outside(), problem.safe()), (Outside::Refuse, None));
    assert_eq!(
        (spec.name.as_deref(), spec.key, spec.key_given),
        (None, Key::from(0u64), false)
    );
    assert!(spec.world.is_none());
    assert_eq!(
        (spec.service.on_wait, spec.service.outcome_wait),
        (OnWait::Hold, None)
    );
    assert_eq!(spec.service.impute, [0.0]);
}

#[test]
fn a_free_spec_may_name_costs() {
    let spec = parse(&SOFT.replace("soft", "free"));
    assert_eq!(
        (spec.problem.policy(), spec.problem.quantities()),
        (Policy::Free, 2)
    );
    assert_eq!(spec.problem.thresholds(), [0.5]);
}

#[test]
fn a_soft_spec_is_read_back() {
    let text = SOFT.replace(
        "rho = 0.1",
        "rho = 0.25\nprofile = \"paper\"\nkey = 42\noutside = \"refuse\"",
    );
    let spec =
        parse(&(text + "[world]\nkind = 'bernoulli'\nreward = [0.25, 1]\ncost.price = [0, 0.75]"));
    assert_eq!(
        (spec.problem.policy(), spec.problem.profile()),
        (Policy::Soft, Profile::Paper)
    );
    assert_eq!(
        (spec.problem.rho(), spec.key, spec.key_given),
        (0.25, Key::from(42u64), true)
    );
    assert_eq!(
        (
            spec.problem.quantity(1).name.as_str(),
            spec.problem.thresholds()
        ),
        ("price", &[0.5][..])
    );
    let simulated = simulate(&spec, "").unwrap();
    assert_eq!(simulated.world.means(), [[0.25, 1.0], [0.0, 0.75]]);
    assert_eq!(simulated.key, Key::from(42u64).world());
}

#[test]
fn a_hard_spec_is_read_back() {
    let spec = parse(HARD);
    let problem = &spec.problem;
    assert_eq!(spec.name.as_deref(), Some("model routing"));
    assert_eq!(
        (problem.policy(), problem.horizon(), problem.delta()),
        (Policy::Hard, 100_000_000, 0.05)
    );
    assert_eq!(
        (problem.profile(), problem.outside()),
        (Profile::Tight { growth: 4 }, Outside::Clip)
    );
    assert_eq!(spec.key.to_hex(), "000102030405060708090a0b0c0d0e0f");
    assert_eq!(problem.quantity(0).name, "quality");
    assert_eq!(
        problem.quantity(0).range,
        Range {
            low: -1.0,
            high: 1.0
        }
    );
    assert_eq!(
        problem.quantity(1).range,
        Range {
            low: 0.0,
            high: 0.02
        }
    );
    assert_eq!(problem.thresholds(), [0.25, 0.5]);
    let safe = problem.safe().unwrap();
    assert_eq!(
        (safe.strategy.probabilities(), &safe.margins[..]),
        (&[0.75, 0.0, 0.25][..], &[0.125, 0.25][..])
    );
    assert_eq!(
        (spec.service.on_wait, spec.service.outcome_wait),
        (OnWait::Serve, Some(Duration::from_secs(604_800)))
    );
    assert_eq!(spec.service.impute, [-0.5, 0.02, 0.75]);
    assert!(matches!(
        spec.world.as_ref().unwrap().kind,
        WorldKind::Beta {
            concentration: 10.0,
            ..
        }
    ));
    let simulated = simulate(&spec, "").unwrap();
    assert_eq!(
        simulated.world.means(),
        [[0.5, 0.75, 1.0], [0.0, 0.5, 1.0], [0.125, 0.25, 0.5]]
    );
    assert_eq!(simulated.key, WorldKey::from(7u64));
    assert!(
        !format!("{spec:?}").contains("0001020304"),
        "the key is shown"
    );
}

/// Ranges by action, known values, a watched cost, caution and a length of one's own: read, scaled once, written back as given.
#[test]
fn ranges_by_action_and_watched_costs_are_read_back() {
    let text = format!(
        "caution = 0.25\nexplore = 0.125\n{}range = {{ a = [0, 0.5], b = [2, 2] }}\n[[cost]]\nname = 'seen'\n",
        SOFT.replace("threshold = 0.5", "threshold = 1")
    );
    let problem = parse(&text).problem;
    assert_eq!((problem.caution(), problem.explore()), (0.25, Some(0.125)));
    assert_eq!(
        (problem.limited(), problem.thresholds()),
        (&[1][..], &[0.5][..])
    );
    assert_eq!(problem.threshold(1), None);
    let price = problem.quantity(1);
    assert_eq!((price.known(0), price.known(1)), (None, Some(2.0)));
    assert_eq!((price.range.low, price.range.high), (0.0, 2.0));
    assert_eq!(problem.entries_estimated(), 3);
    assert_eq!(parse(&problem.to_toml()).problem, problem);
    let same = SOFT.to_owned() + "range = { a = [0, 2], b = [0, 2] }\n";
    assert_eq!(
        parse(&same).problem,
        parse(&(SOFT.to_owned() + "range = [0, 2]\n")).problem
    );
}

/// What is to be kept is said by the policy; without a threshold there is nothing to keep.
#[test]
fn a_policy_may_be_left_out_where_nothing_is_limited() {
    let without = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("policy"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let free = parse(&without(FREE)).problem;
    assert_eq!(free.policy(), debora::Policy::Free);
    let watched = without(SOFT).replace("threshold = 0.5", "");
    assert_eq!(parse(&watched).problem.policy(), debora::Policy::Free);
    let error = Spec::parse(&without(SOFT), "x.toml")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"soft\"") && error.contains("\"hard\""),
        "{error}"
    );
}

#[test]
fn margins_say_the_same_as_costs() {
    let margins = HARD.replace(
        "cost = { wait = 0.25, price = 0.0025 }",
        "margin = { wait = 0.25, price = 0.0025 }",
    );
    assert_eq!(parse(&margins).problem.safe(), parse(HARD).problem.safe());
}

#[test]
fn a_discrete_world_is_read_in_both_layouts() {
    let list = "[world]\nkind = 'discrete'\nreward = [{ values = [0, 1], probabilities = [0.25, 0.75] }, \
        { values = [0.5], probabilities = [1] }]";
    let table = "[world]\nkind = 'discrete'\n[world.reward.b]\nvalues = [0.5]\nprobabilities = [1]\n\
        [world.reward.a]\nprobabilities = [0.25, 0.75]\nvalues = [0, 1]";
    let (list, table) = (
        parse(&format!("{FREE}{list}")),
        parse(&format!("{FREE}{table}")),
    );
    assert_eq!(list.world, table.world);
    let laws = vec![vec![
        (vec![0.0, 1.0], vec![0.25, 0.75]),
        (vec![0.5], vec![1.0]),
    ]];
    let (ours, direct) = (
        simulate(&list, "").unwrap().world,
        Discrete::new(&list.problem, &laws).unwrap(),
    );
    assert_eq!(ours.means(), direct.means());
    let draw = |world: &dyn World| {
        let mut sums = [0];
        world.pulls(WorldKey::from(3u64), 0, 0, 1_000, &mut sums);
        sums
    };
    assert_eq!(draw(&*ours), draw(&direct));
}

#[test]
fn horizons_are_whole_numbers_however_spelled() {
    let with = |horizon: &str| Spec::parse(&FREE.replace("1e6", horizon), "x.toml");
    for horizon in [
        "100_000_000",
        "100000000",
        "1e8",
        "1E8",
        "1e+8",
        "1.0e8",
        "10.0E07",
        "0x5F5E100",
        "100_000_000.0",
    ] {
        assert_eq!(
            with(horizon).unwrap().problem.horizon(),
            100_000_000,
            "{horizon}"
        );
    }
    assert_eq!(with("9007199254740992").unwrap().problem.horizon(), 1 << 53);
    assert_eq!(
        with("9007199254740992.0").unwrap().problem.horizon(),
        1 << 53
    );
    for horizon in [
        "1e-8",
        "1.5",
        "-1",
        "-0.5",
        "nan",
        "inf",
        "9007199254740994.0",
        "1e400",
        "true",
        "1979-05-27",
    ] {
        assert!(with(horizon).is_err(), "{horizon}");
    }
}

#[test]
fn keys_are_integers_or_hexadecimal_digits() {
    let with = |key: &str| parse(&format!("key = {key}\n{FREE}")).key.to_hex();
    assert_eq!(with("42"), "0000000000000000000000000000002a");
    assert_eq!(
        with("'0000000000000000000000000000002A'"),
        "0000000000000000000000000000002a"
    );
    assert_eq!(
        with("340282366920938463463374607431768211455"),
        "f".repeat(32)
    );
    // An override without quotes may look like an integer or a float: 32 digits are still hexadecimal.
    for hex in [
        "12345678901234567890123456789012",
        "1e345678901234567890123456789012",
        "0000000000000000000000000000002a",
    ] {
        assert_eq!(parse_with(FREE, &[("key", hex)]).unwrap().key.to_hex(), hex);
    }
}

#[test]
fn waits_are_read_in_four_units() {
    for (text, seconds) in [
        ("7d", 604_800),
        ("12h", 43_200),
        ("30m", 1_800),
        ("45s", 45),
        ("36500d", 3_153_600_000),
    ] {
        let spec = parse(&format!("{FREE}[service]\noutcome_wait = '{text}'"));
        assert_eq!(
            spec.service.outcome_wait,
            Some(Duration::from_secs(seconds))
        );
    }
    for text in [
        "", "d", "7", "7 d", "+7d", "-7d", "1.5h", "7dd", "36501d", "7\u{e9}", "\u{661}d",
    ] {
        let error = Spec::parse(
            &format!("{FREE}[service]\noutcome_wait = '{text}'"),
            "x.toml",
        )
        .unwrap_err();
        assert_eq!(error.line(), Some(6), "{text}");
    }
}

#[test]
fn overrides_replace_and_add() {
    let changes = [
        ("horizon", "1e9"),
        ("policy", "hard"),
        ("cost.price.threshold", "0.25"),
        ("cost.price.range", "[0, 0.5]"),
        ("safe.strategy.b", "1"),
        ("safe.margin", "{ price = 0.125 }"),
        ("world.kind", "bernoulli"),
        ("world.reward", "[0.1, 0.2]"),
        ("world.cost.price.a", "0.5"),
        ("world.cost.price.b", "0.125"),
        ("name", "a run of ours"),
        ("rho", "0.2"),
        ("rho", "0.3"),
    ];
    let spec = parse_with(SOFT, &changes).unwrap();
    assert_eq!(
        (
            spec.problem.policy(),
            spec.problem.horizon(),
            spec.problem.rho()
        ),
        (Policy::Hard, 1_000_000_000, 0.3)
    );
    assert_eq!(
        (spec.problem.thresholds(), spec.name.as_deref()),
        (&[0.5][..], Some("a run of ours"))
    );
    assert_eq!(spec.problem.safe().unwrap().margins, [0.25]);
    assert_eq!(
        simulate(&spec, "").unwrap().world.means(),
        [[0.1, 0.2], [1.0, 0.25]]
    );
    let costs = parse_with(
        SOFT,
        &[
            ("cost", "[{ name = 'a.b', threshold = 1 }]"),
            ("cost.'a.b'.threshold", "0.75"),
        ],
    );
    assert_eq!(costs.unwrap().problem.thresholds(), [0.75]);
}

/// The case's spec, overrides and table, and what they give: a message, or nothing if all is well.
fn message(case: &str) -> String {
    let (text, rows) = case.split_once("rows.csv\n").unwrap_or((case, ""));
    let (changes, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("set "));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let text = text.replace("(free)\n", FREE).replace("(soft)\n", SOFT);
    let changes: Vec<(&str, &str)> = changes
        .iter()
        .map(|line| line[4..].split_once('=').unwrap())
        .collect();
    let result = parse_with(&text, &changes).and_then(|spec| simulate(&spec, rows));
    result
        .err()
        .map_or("nothing is wrong".to_owned(), |error| error.to_string())
}

/// As people type them; the rules for values are those of the file.
#[test]
fn values_beside_the_file_may_lack_the_zero_before_a_point() {
    let typed = parse_with(FREE, &[("rho", ".3"), ("delta", "+.05")]).unwrap();
    assert_eq!((typed.problem.rho(), typed.problem.delta()), (0.3, 0.05));
    let world = format!("{FREE}[world]\nkind = 'bernoulli'\nreward = [0.1, 0.2]\n");
    let typed = parse_with(&world, &[("world.reward", "[.5, .25]")]).unwrap();
    let simulated = simulate(&typed, "").unwrap();
    assert_eq!(simulated.world.means(), [[0.5, 0.25]]);
    let typed = parse_with(FREE, &[("name", "\"a .5 b\"")]).unwrap();
    assert_eq!(typed.name.as_deref(), Some("a .5 b"));
    let wrong = parse_with(FREE, &[("rho", "..3")]).unwrap_err().to_string();
    assert_eq!(
        wrong,
        "override rho=..3: rho is \"..3\"; it must be a number"
    );
}

/// Each message of `errors.txt`, letter by letter. To see what a change does to them:
/// `DEBORA_GOLDEN=print cargo test --test fast wrong -- --nocapture`.
#[test]
fn wrong_specs_have_their_messages() {
    let golden = include_str!("errors.txt");
    let (head, rest) = golden.split_once("\n# ").unwrap();
    let mut text = head.to_owned();
    for case in rest.split("\n# ") {
        let (title, body) = case.split_once('\n').unwrap();
        let (body, _) = body.split_once(">>>").unwrap();
        text += &format!("\n# {title}\n{body}>>>\n{}", message(body));
    }
    text += "\n";
    if std::env::var("DEBORA_GOLDEN").is_ok_and(|value| value == "print") {
        print!("{text}");
    }
    for (line, (ours, theirs)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {} of errors.txt", line + 1);
    }
    assert_eq!(text.len(), golden.len());
    assert!(golden.matches("\n>>>\n").count() > 100);
}

#[test]
fn a_written_problem_is_read_back() {
    let odd = SOFT.replace(r#"["a", "b"]"#, r#"["say \"hi\" \\ \t", "é.🙂\u0007"]"#);
    let free = FREE.replace("0.1", "0.1\nprofile = 'paper'\noutside = 'clip'");
    let margins = HARD.replace(
        "cost = { wait = 0.25, price = 0.0025 }",
        "margin = { wait = 0.1, price = 1e-7 }",
    );
    for text in [FREE, SOFT, HARD, &odd, &free, &margins] {
        let problem = parse(text).problem;
        assert_eq!(
            parse(&problem.to_toml()).problem,
            problem,
            "{}",
            problem.to_toml()
        );
    }
}

/// Forms put a message beside its field, so each error knows the keys that lead there.
#[test]
fn errors_know_the_keys_that_lead_to_them() {
    let cases = [
        (HARD, "100_000_000", "0", "horizon"),
        (HARD, "rho = 0.1\n", "", "rho"),
        (
            HARD,
            "\"medium\", \"large\"",
            "\"small\", \"large\"",
            "actions.1",
        ),
        (HARD, "\"medium\",", "7,", "actions.1"),
        (
            HARD,
            "threshold = 0.5",
            "threshold = -5",
            "cost.1.threshold",
        ),
        (HARD, "threshold = 0.5", "", "safe.cost.wait"),
        (
            HARD,
            "threshold = 0.005",
            "treshold = 0.005",
            "cost.0.treshold",
        ),
        (HARD, "range = [-1, 1]", "range = [1, -1]", "reward.range"),
        (
            HARD,
            "range = [-1, 1]",
            "range = [1, \"x\"]",
            "reward.range.1",
        ),
        (HARD, "range = [-1, 1]", "mean = [0.5, 1]", "reward.mean"),
        (HARD, "small = 0.75", "small = 7.5", "safe.strategy.small"),
        (HARD, "wait = 0.25,", "wait = 2.5,", "safe.cost.wait"),
        (HARD, "wait = 0.25,", "", "safe.cost"),
        (HARD, "\"7d\"", "7", "service.outcome_wait"),
        (HARD, "wait = 0.75", "wait = 75", "service.impute.cost.wait"),
        (SOFT, "name = \"price\"\n", "", "cost.0.name"),
    ];
    for (text, right, wrong, field) in cases {
        assert!(text.contains(right), "{right}");
        let error = Spec::parse(&text.replacen(right, wrong, 1), "x.toml").unwrap_err();
        assert_eq!(error.field(), Some(field), "{error}");
    }
    // What stands nowhere in the spec has no keys.
    assert_eq!(
        Spec::parse("policy = soft", "x.toml").unwrap_err().field(),
        None
    );
    assert_eq!(parse_with(FREE, &[("rho", "7")]).unwrap_err().field(), None);
}
