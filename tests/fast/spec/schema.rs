//! The schema's defaults are the parser's. Whether both agree on right and wrong is asked in `python/tests/test_schema.py`, where
//! validators are at hand.

use serde_json::Value;

use super::{HARD, SOFT, parse, parse_with, simulate};
use debora::spec::Spec;

/// The paths of keys with a default, and their defaults as TOML.
fn defaults(section: &Value, path: &str, found: &mut Vec<(String, String)>) {
    for (name, key) in section["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        if let Some(default) = key.get("default") {
            found.push((path.clone(), default.to_string()));
        }
        defaults(key, &format!("{path}."), found);
        // The one list of sections; overrides name its entries.
        defaults(&key["items"], &format!("{path}.price."), found);
    }
}

/// All that a spec says.
fn said(spec: &Spec) -> [String; 2] {
    [spec.fingerprint(), simulate(spec, "").unwrap().fingerprint]
}

#[test]
fn defaults_change_nothing() {
    let schema: Value = serde_json::from_str(&debora::spec::schema()).unwrap();
    let mut found = Vec::new();
    defaults(&schema, "", &mut found);
    let text = format!("{SOFT}[world]\nkind = 'random'\nlaw = 'uniform'\n");
    for (path, default) in &found {
        let with = parse_with(&text, &[(path, default)]).unwrap();
        assert_eq!(said(&with), said(&parse(&text)), "{path} = {default}");
    }
    assert_eq!(found.len(), 11, "{found:?}");
    // The comparison sees values: every one of these is another in the spec that has all keys.
    for (path, default) in found
        .iter()
        .filter(|(path, _)| HARD.contains(&format!("\n{path} = ")))
    {
        let with = parse_with(HARD, &[(path, default)]).unwrap();
        assert_ne!(said(&with), said(&parse(HARD)), "{path}");
    }
}
