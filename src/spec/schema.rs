//! The table of keys as a JSON Schema: what editors complete, explain and underline in a spec file while it is written.
//!
//! It accepts every spec that the parser accepts, and a few more: it cannot tie a value to names and ranges that the file gives
//! elsewhere.
//!
//! Draft 7, as the TOML language server that most editors use, taplo, knows conditions from there on, and 1e8 as a whole number.
//! There are no references and no `allOf`, below which it offers no keys; conditions are nested instead.

use serde_json::{Map, Value, json};

use crate::problem::{CHANCES, Policy, SHARES};
use crate::spec::keys::{KeyPresence, KeyShape, LAW, STATED, SpecKey, TOP, WORLD};
use crate::spec::service::wait_pattern;
use crate::spec::world::{KINDS, KindWord, LAWS};

/// The JSON Schema (draft 7) of a spec file. `debora schema` prints it.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&debora::spec::schema())?;
/// assert_eq!(schema["properties"]["policy"]["enum"][1], "soft");
/// assert_eq!(schema["properties"]["delta"]["default"], 0.01);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn schema() -> String {
    let mut root = section(TOP);
    extend(
        &mut root,
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "debora spec",
            "description": "A replicable, constrained bandit experiment for debora.",
            "if": is("policy", &[Policy::Hard.name()]),
            "then": { "required": ["safe"] },
            "else": { "properties": { "safe": false } },
            "dependencies": {
                // At the profile, as growth is what someone wanted.
                "growth": { "properties": { "profile": { "const": "tight" } } },
                "explore": { "properties": { "profile": { "const": "tight" } } },
                "caution": is("policy", &[Policy::Soft.name()]),
                "cost": by_costs(),
            },
        }),
    );
    extend(
        &mut root["properties"]["safe"],
        // Either follows from the other.
        json!({ "dependencies": { "cost": { "properties": { "margin": false } } } }),
    );
    extend(&mut root["properties"]["world"], by_kind());
    format!("{root:#}\n")
}

/// A table with these keys and no others.
fn section(keys: &[SpecKey]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        // Those of a kind of world are required where it is known.
        "required": required(keys, |key| key.kinds.is_empty()),
        "additionalProperties": false,
    })
}

fn required(keys: &[SpecKey], wanted: impl Fn(&SpecKey) -> bool) -> Vec<&'static str> {
    keys.iter()
        .filter(|key| matches!(key.presence, KeyPresence::Required(_)) && wanted(key))
        .map(|key| key.name)
        .collect()
}

fn property(key: &SpecKey) -> Value {
    let mut property = value(&key.shape);
    extend(&mut property, json!({ "description": key.help }));
    if let Some(default) = key.default {
        let default: Value = serde_json::from_str(default).expect("defaults are JSON");
        extend(&mut property, json!({ "default": default }));
    }
    property
}

/// What a shape allows. Where a value has two forms, rules of both stand side by side, as each is silent about the other's
/// type: an error then names the rule that was broken, and not that neither form fits.
fn value(shape: &KeyShape) -> Value {
    match shape {
        KeyShape::Any => json!({}),
        KeyShape::Text => json!({ "type": "string" }),
        KeyShape::Name | KeyShape::Action => json!({ "type": "string", "minLength": 1 }),
        KeyShape::Word(words) => json!({ "type": "string", "enum": words }),
        KeyShape::Number => json!({ "type": "number" }),
        KeyShape::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        KeyShape::Within(least, most) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        KeyShape::Chance => {
            json!({ "type": "number", "minimum": CHANCES.start, "exclusiveMaximum": CHANCES.end })
        }
        KeyShape::Share => {
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": SHARES.end })
        }
        KeyShape::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        KeyShape::Key => {
            json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9A-Fa-f]{32}$" })
        }
        KeyShape::Wait => json!({ "type": "string", "pattern": wait_pattern() }),
        _ => lists_and_tables(shape),
    }
}

fn lists_and_tables(shape: &KeyShape) -> Value {
    match shape {
        KeyShape::Actions(most) => json!({
            "type": ["array", "integer"],
            "items": value(&KeyShape::Name),
            "minItems": 2,
            "uniqueItems": true,
            "minimum": 2,
            "maximum": most,
        }),
        KeyShape::Ends => json!({
            "type": "array",
            "items": value(&KeyShape::Number),
            "minItems": 2,
            "maxItems": 2,
        }),
        KeyShape::EndsOfCost => json!({
            "type": ["array", "object"],
            "items": value(&KeyShape::Number),
            "minItems": 2,
            "maxItems": 2,
            "additionalProperties": value(&KeyShape::Ends),
            "minProperties": 2,
        }),
        KeyShape::List(entry) => json!({ "type": "array", "items": value(entry), "minItems": 1 }),
        KeyShape::EachAction(entry) => json!({
            "type": ["array", "object"],
            "items": value(entry),
            // There are two actions at least.
            "minItems": 2,
            "additionalProperties": value(entry),
            "minProperties": 2,
        }),
        KeyShape::ByName(entry) | KeyShape::ByAction(entry) | KeyShape::ByCost(entry) => {
            json!({ "type": "object", "additionalProperties": value(entry) })
        }
        KeyShape::Section(keys) => section(keys),
        KeyShape::Sections(keys) => json!({ "type": "array", "items": section(keys) }),
        _ => unreachable!("a value that is neither"),
    }
}

/// What other sections must have once there are costs.
fn by_costs() -> Value {
    let some = json!({ "minProperties": 1 });
    let stated = KINDS.into_iter().filter(|(_, kind)| STATED.contains(kind));
    let stated: Vec<&str> = stated.map(|(word, _)| word).collect();
    let limited = json!({ "contains": { "required": ["threshold"] } });
    json!({
        "if": { "properties": { "cost": { "minItems": 1 } } },
        "then": {
            "properties": {
                "world": {
                    "if": is("kind", &stated),
                    "then": { "required": ["cost"], "properties": { "cost": some } },
                },
            },
            "if": { "properties": { "cost": limited } },
            "then": {
                "required": ["policy"],
                "properties": {
                    "safe": {
                        "anyOf": [{ "required": ["cost"] }, { "required": ["margin"] }],
                        "properties": { "cost": some, "margin": some },
                    },
                },
            },
        },
    })
}

/// What a world must have by its kind: one condition within the other.
fn by_kind() -> Value {
    let nest = |rest: Value, (word, kind)| json!({ "if": is("kind", &[word]), "then": of_kind(kind), "else": rest });
    KINDS.into_iter().rev().fold(json!({}), nest)
}

fn of_kind(kind: KindWord) -> Value {
    let unused = WORLD.iter().filter(|key| !key.is_of(kind));
    let mut properties: Map<String, Value> = unused
        .map(|key| (key.name.to_owned(), json!(false)))
        .collect();
    let entry = match kind {
        KindWord::Bernoulli | KindWord::Beta => Some(KeyShape::EachAction(&KeyShape::Number)),
        KindWord::Discrete => Some(KeyShape::EachAction(&KeyShape::Section(LAW))),
        KindWord::Table | KindWord::Random => None,
    };
    if let Some(entry) = entry {
        let entry = value(&entry);
        let costs = json!({ "additionalProperties": entry });
        properties.extend([("reward".into(), entry), ("cost".into(), costs)]);
    }
    let needed = required(WORLD, |key| key.kinds.contains(&kind));
    let mut rules = json!({ "properties": properties, "required": needed });
    if kind == KindWord::Random {
        extend(&mut rules, by_law());
    }
    rules
}

/// Whether a random world has a gap.
fn by_law() -> Value {
    let without = LAWS.into_iter().filter(|(_, law)| !law.has_gap());
    let without: Vec<&str> = without.map(|(word, _)| word).collect();
    json!({
        "if": is("law", &without),
        "then": { "properties": { "gap": false } },
        "else": { "required": ["gap"] },
    })
}

/// The condition that a key is there and has one of these words.
fn is(key: &str, words: &[&str]) -> Value {
    // Without `required` it would also hold where the key is missing.
    json!({ "properties": { key: { "enum": words } }, "required": [key] })
}

/// Adds the entries of one object to another.
fn extend(schema: &mut Value, entries: Value) {
    let (Value::Object(schema), Value::Object(entries)) = (schema, entries) else {
        unreachable!("schemas are objects");
    };
    schema.extend(entries);
}
