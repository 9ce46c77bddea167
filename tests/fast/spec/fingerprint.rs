//! Fingerprints stay with what a spec means, and move with everything that moves results.

use super::{FREE, HARD, parse, parse_with, simulate};

fn live(text: &str) -> String {
    parse(text).fingerprint()
}

fn simulated(text: &str) -> String {
    simulate(&parse(text), "").unwrap().fingerprint
}

#[test]
fn spellings_leave_no_trace() {
    let same = r#"
        # Another file with another layout.
        service = { impute.cost.wait = 75e-2, impute.cost.price = 0.02, impute.reward = -0.5, outcome_wait = "168h", on_wait = 'serve' }
        world = { kind = "beta", concentration = 1e1, key = "00000000000000000000000000000007", reward.small = -0.0, reward.medium = 0.50, reward.large = 1.0, cost.wait = [0.125, 0.25, 5e-1], cost.price = [0, 0.01, 2e-2] }
        key = 0x000102030405060708090a0b0c0d0e0f
        rho = 1e-1
        horizon = 1e8
        delta = 0.050
        profile = "tight"
        growth = 4.0
        policy = "hard"
        outside = "clip"
        actions = ["small",
            "medium", "large"]
        [safe]
        margin = { price = 0.0025, wait = 0.25 }
        strategy = { large = 0.25, medium = 0, small = 0.75 }
        [[cost]]
        threshold = 0.005
        range = [0, 0.02]
        name = "price"
        [[cost]]
        name = "wait"
        range = [0, 1]
        threshold = 0.5
        [reward]
        range = [-1.0, 1.0]
        name = "quality"
    "#;
    assert_eq!(live(same), live(HARD));
    assert_eq!(simulated(same), simulated(HARD));
    assert_eq!(
        live(FREE),
        live(&format!(
            "{FREE}profile = 'tight'\ngrowth = 8\ndelta = 0.01\nkey = 0\noutside = 'refuse'"
        ))
    );
}

/// A change here is a change of values: earlier shards and audits would not fit.
#[test]
fn fingerprints_are_fixed() {
    assert_eq!(
        live(FREE),
        "3908ce41af4b755b2ae10606ad1b4a6699d02f98c068ca2bc7a066883ed293dc"
    );
    assert_eq!(
        live(HARD),
        "e9885986bb78ab53e41a0e1d14e22f6ddab7c87ff37602552cc16f61a3a9e68a"
    );
    assert_eq!(
        simulated(HARD),
        "5c64ef4481ddbfde2f8b38abd9c019d5fee3772ebf9713f15d9102d6609fde0b"
    );
}

/// Whether an override moves the fingerprint of the live experiment, and of the simulation.
#[test]
fn every_value_that_matters_moves_them() {
    let moves = [
        ("name", "other", [false, false]),
        ("policy", "hard", [false, false]),
        ("horizon", "100_000_001", [true, true]),
        ("rho", "0.10000000000000002", [true, true]),
        ("delta", "0.01", [true, true]),
        ("growth", "5", [true, true]),
        ("outside", "refuse", [true, true]),
        ("key", "1", [true, true]),
        ("actions", "['small', 'medium', 'large ']", [true, true]),
        ("reward.name", "points", [true, true]),
        ("reward.range", "[-1, 2]", [true, true]),
        ("explore", "0.3", [true, true]),
        ("cost.price.range", "[0, 0.03]", [true, true]),
        ("cost.price.threshold", "0.004", [true, true]),
        ("safe.strategy", "{ small = 1 }", [true, true]),
        ("safe.cost.wait", "0.2", [true, true]),
        ("world.key", "8", [false, true]),
        ("world.concentration", "11", [false, true]),
        ("world.reward", "[0, 0.5, 0.75]", [false, true]),
        ("world.cost.wait", "[0.125, 0.25, 0.25]", [false, true]),
        ("service.on_wait", "hold", [true, false]),
        ("service.outcome_wait", "8d", [true, false]),
        ("service.impute.reward", "0", [true, false]),
    ];
    for (path, value, moved) in moves {
        // Names of actions stand in two more places.
        let text = if path == "actions" {
            HARD.replace("large =", "\"large \" =")
        } else {
            HARD.to_owned()
        };
        let spec = parse_with(&text, &[(path, value)]).unwrap_or_else(|error| panic!("{error}"));
        let now = [spec.fingerprint(), simulate(&spec, "").unwrap().fingerprint];
        assert_eq!(
            [now[0] != live(HARD), now[1] != simulated(HARD)],
            moved,
            "{path}={value}"
        );
    }
}

#[test]
fn the_kinds_of_world_differ() {
    let world = |text: &str| simulated(&format!("{FREE}[world]\nreward = {text}"));
    let law = "{ values = [0, 1], probabilities = [0.5, 0.5] }";
    let kinds = [
        world("[0.5, 0.5]\nkind = 'bernoulli'"),
        world("[0.5, 0.5]\nkind = 'beta'\nconcentration = 1"),
        world(&format!("[{law}, {law}]\nkind = 'discrete'")),
    ];
    assert!(kinds[0] != kinds[1] && kinds[1] != kinds[2] && kinds[0] != kinds[2]);
    assert!(
        kinds
            .iter()
            .all(|kind| kind.len() == 64 && kind.bytes().all(|byte| byte.is_ascii_hexdigit()))
    );
}
