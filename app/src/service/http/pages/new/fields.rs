//! The fields of the form, and where each stands in a spec.
//!
//! A field is called by the keys that lead to its value, `cost.0.threshold`, so that a fault of the spec finds it. What a spec
//! says by name, the safe strategy and what is imputed, goes by the number of the action or the cost: `safe.strategy.0`.

use std::collections::BTreeMap;

use crate::service::http::spec_edit::{Notation, SpecEdit};

/// The fields that every spec has, and how they are written.
const SINGLE: [(&str, Notation); 11] = [
    ("name", Notation::Text),
    ("policy", Notation::Text),
    ("horizon", Notation::Number),
    ("rho", Notation::Number),
    ("delta", Notation::Number),
    ("service.on_wait", Notation::Text),
    ("service.outcome_wait", Notation::Text),
    ("service.impute.reward", Notation::Number),
    ("service.holdback.share", Notation::Number),
    ("service.holdback.action", Notation::Text),
    ("reward.name", Notation::Text),
];

/// What each cost has beside its name; the reward has all but the threshold.
const OF_COST: [&str; 5] = ["range.0", "range.1", "threshold", "mean.0", "mean.1"];

/// What is said of costs by their names.
const BY_COST: [&str; 2] = ["safe.cost", "service.impute.cost"];

/// The most inputs that rows of actions and costs may have together, with a guess for each of their pairs: a page of two megabytes.
const INPUTS_MAX: usize = 8_192;

/// Whether a spec has more rows than a form can hold.
pub fn is_large(spec: &SpecEdit) -> bool {
    let [actions, costs] = ["actions", "cost"].map(|list| spec.count(list));
    2 * actions + (OF_COST.len() + BY_COST.len() + 1) * costs + actions.saturating_mul(costs + 1)
        > INPUTS_MAX
}

pub fn is_name(field: &str) -> bool {
    field.ends_with(".name") || is_action(field)
}

fn is_action(field: &str) -> bool {
    field
        .strip_prefix("actions.")
        .is_some_and(|rest| !rest.contains('.'))
}

/// All fields of a spec, by their names in the form.
pub fn fields_of(spec: &SpecEdit) -> BTreeMap<String, String> {
    let mut names: Vec<String> = SINGLE.iter().map(|(name, _)| (*name).to_owned()).collect();
    let rows = |list: &str| if is_large(spec) { 0 } else { spec.count(list) };
    for action in 0..rows("actions") {
        names.extend([
            format!("actions.{action}"),
            format!("safe.strategy.{action}"),
        ]);
    }
    let of_reward = OF_COST.iter().filter(|name| **name != "threshold");
    names.extend(of_reward.map(|name| format!("reward.{name}")));
    for cost in 0..rows("cost") {
        names.push(format!("cost.{cost}.name"));
        names.extend(OF_COST.iter().map(|name| format!("cost.{cost}.{name}")));
        names.extend(BY_COST.iter().map(|name| format!("{name}.{cost}")));
    }
    let value = |name: String| {
        let path = path_of(spec, &name);
        let value = spec.get(&path.iter().map(String::as_str).collect::<Vec<_>>());
        (name, value)
    };
    names.into_iter().map(value).collect()
}

/// Where a field of the form stands in the spec: what is said by name there goes by number here.
fn path_of(spec: &SpecEdit, field: &str) -> Vec<String> {
    let keys: Vec<&str> = field.split('.').collect();
    match keys[..] {
        ["safe", "strategy", action] => {
            let name = spec.get(&["actions", action]);
            vec!["safe".into(), "strategy".into(), name]
        }
        ["safe", "cost", cost] => {
            let name = spec.get(&["cost", cost, "name"]);
            vec!["safe".into(), known_by(spec).into(), name]
        }
        ["service", "impute", "cost", cost] => {
            let name = spec.get(&["cost", cost, "name"]);
            vec!["service".into(), "impute".into(), "cost".into(), name]
        }
        _ => keys.iter().map(|key| (*key).to_owned()).collect(),
    }
}

/// Whether a spec states the safe strategy's costs or its margins.
fn known_by(spec: &SpecEdit) -> &'static str {
    if spec.has(&["safe", "margin"]) {
        "margin"
    } else {
        "cost"
    }
}

/// The field of the form that a fault of the spec belongs to.
pub fn field_of(fields: &BTreeMap<String, String>, fault: &str) -> String {
    let numbered = |list: &str, suffix: &str, name: &str| {
        let number = (0..)
            .map_while(|number| Some((number, fields.get(&format!("{list}{number}{suffix}"))?)));
        number
            .into_iter()
            .find(|(_, value)| *value == name)
            .map(|(number, _)| number)
    };
    let cost = |name: &str| numbered("cost.", ".name", name);
    let named = if let Some(name) = fault.strip_prefix("safe.strategy.") {
        numbered("actions.", "", name).map(|number| format!("safe.strategy.{number}"))
    } else if let Some((_, name)) = fault
        .strip_prefix("safe.")
        .and_then(|rest| rest.split_once('.'))
    {
        cost(name).map(|number| format!("safe.cost.{number}"))
    } else if let Some(name) = fault.strip_prefix("service.impute.cost.") {
        cost(name).map(|number| format!("service.impute.cost.{number}"))
    } else {
        None
    };
    named.unwrap_or_else(|| fault.to_owned())
}

/// Writes a field into the spec.
pub fn change(
    spec: &mut SpecEdit,
    before: &BTreeMap<String, String>,
    posted: &BTreeMap<String, String>,
    field: &str,
    value: &str,
) {
    let value = value.trim();
    if let Some(ends) = field
        .strip_suffix(".0")
        .or(field.strip_suffix(".1"))
        .filter(|ends| ends.ends_with(".range") || ends.ends_with(".mean"))
    {
        return change_ends(spec, posted, ends);
    }
    if is_name(field) {
        rename(spec, before, field, value);
    }
    let path = path_of(spec, field);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let single = SINGLE
        .iter()
        .find(|(name, _)| *name == field)
        .map(|(_, notation)| *notation);
    let notation = match single {
        Some(notation) => notation,
        None if is_name(field) => Notation::Text,
        None => Notation::Number,
    };
    // A row keeps its name, even an empty one: without it there would be no row to type into.
    if value.is_empty() && is_name(field) && field != "reward.name" {
        spec.write(&path, value, notation);
    } else {
        spec.set(&path, value, notation);
    }
}

/// What is said of an action or a cost by its name follows it.
fn rename(spec: &mut SpecEdit, before: &BTreeMap<String, String>, field: &str, name: &str) {
    // Also from and to an empty one: that is how it is while another is typed.
    let Some(old) = before.get(field) else {
        return;
    };
    // Of two that are called alike, nobody knows whose it is.
    let alike = before.iter().filter(|(other, value)| {
        is_action(other) == is_action(field) && is_name(other) && *value == old
    });
    if alike.count() > 1 {
        return;
    }
    if is_action(field) {
        spec.rename(&["safe", "strategy"], old, name);
        let held_back = ["service", "holdback", "action"];
        if spec.has(&held_back) && spec.get(&held_back) == *old {
            spec.write(&held_back, name, Notation::Text);
        }
    } else {
        spec.rename(&["safe", known_by(spec)], old, name);
        spec.rename(&["service", "impute", "cost"], old, name);
    }
}

/// Writes an interval. If one end is empty, it is where it is by default.
fn change_ends(spec: &mut SpecEdit, posted: &BTreeMap<String, String>, field: &str) {
    let typed = |number: usize| {
        posted
            .get(&format!("{field}.{number}"))
            .map_or("", |end| end.trim())
    };
    let path: Vec<&str> = field.split('.').collect();
    let ends = [typed(0), typed(1)];
    if ends == ["", ""] {
        return spec.remove(&path);
    }
    let defaults = ["0", "1"].map(|end| {
        let mut range = path.clone();
        range.pop();
        // Means lie within their range.
        range.extend(["range", end]);
        Some(spec.get(&range))
            .filter(|value| !value.is_empty() && !field.ends_with("range"))
            .unwrap_or(end.to_owned())
    });
    let end = |number: usize| {
        if ends[number].is_empty() {
            &*defaults[number]
        } else {
            ends[number]
        }
    };
    spec.set_ends(&path, [end(0), end(1)]);
}

pub fn remove_action(spec: &mut SpecEdit, action: usize) {
    let name = spec.get(&["actions", &action.to_string()]);
    spec.remove(&["safe", "strategy", &name]);
    spec.remove_entry("actions", action);
}

pub fn remove_cost(spec: &mut SpecEdit, cost: usize) {
    let name = spec.get(&["cost", &cost.to_string(), "name"]);
    spec.remove(&["safe", known_by(spec), &name]);
    spec.remove(&["service", "impute", "cost", &name]);
    spec.remove_entry("cost", cost);
}
