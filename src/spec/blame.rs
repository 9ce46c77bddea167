//! Which key is to blame: the library's errors, mapped to the place in the spec, here and nowhere else.
//!
//! The message stays the library's: it has the value, the rule and the remedy.

use crate::Error;
use crate::lab::LabError;
use crate::spec::document::{Node, NodeValue};
use crate::spec::error::{Fault, SpecPlace};

/// The error at the key that caused it, or at the nearest section that is there.
pub(super) fn blame(root: &Node, error: &Error) -> Fault {
    Fault::new(place(root, error), error.to_string())
}

/// The same for what the lab says of a world.
pub(super) fn blame_world(root: &Node, error: &LabError) -> Fault {
    Fault::new(place_in_world(root, error), error.to_string())
}

fn place_in_world(root: &Node, error: &LabError) -> SpecPlace {
    let at = |path: &[&str]| deepest(root, path).place;
    match error {
        LabError::HorizonSimulated { .. } => at(&["horizon"]),
        LabError::WorldValue { name, value, .. } => {
            in_world(root, name, &|node| is_number(node, *value))
        }
        LabError::WorldProbabilities { name, sum } => {
            in_world(root, name, &|node| sums_to(node, *sum))
        }
        LabError::Concentration { .. } => at(&["world", "concentration"]),
        LabError::WorldGap { .. } => at(&["world", "gap"]),
        LabError::TableEmpty { .. } => at(&["world", "file"]),
        _ => at(&["world"]),
    }
}

fn place(root: &Node, error: &Error) -> SpecPlace {
    let at = |path: &[&str]| deepest(root, path).place;
    match error {
        Error::Actions { .. } => at(&["actions"]),
        Error::NameEmpty {
            what: "action",
            number,
        } => entry(root, "actions", *number),
        Error::NameEmpty { number: 0, .. } => at(&["reward", "name"]),
        Error::NameEmpty { number, .. } => entry(root, "cost", number - 1),
        Error::NameRepeated {
            what: "action",
            name,
        } => at(&["actions", name]),
        // The second of two equal names is at fault, and `Node::child` finds the last.
        Error::NameRepeated { name, .. } => at(&["cost", name, "name"]),
        Error::Horizon { .. } => at(&["horizon"]),
        Error::Rho { .. } => at(&["rho"]),
        Error::Delta { .. } => at(&["delta"]),
        Error::PaperDelta { .. } if root.child("delta").is_some() => at(&["delta"]),
        // Without a delta in the spec it is the profile that rules the default out.
        Error::PaperDelta { .. } => at(&["profile"]),
        Error::Growth { .. } | Error::GrowthWithPaper { .. } => at(&["growth"]),
        Error::Range { name, .. } if is_cost(root, name) => at(&["cost", name, "range"]),
        Error::Range { .. } => at(&["reward", "range"]),
        Error::RangeCount { name, .. } | Error::RangesWithPaper { name } => {
            at(&["cost", name, "range"])
        }
        Error::Explore { .. } | Error::ExploreWithPaper { .. } => at(&["explore"]),
        Error::Caution { .. } | Error::CautionUnused { .. } => at(&["caution"]),
        Error::Threshold { name, .. } => at(&["cost", name, "threshold"]),
        Error::SafeMissing => at(&["policy"]),
        Error::SafeUnused { .. } => at(&["safe"]),
        Error::SafeProbability { action, .. } => at(&["safe", "strategy", action]),
        Error::SafeLength { .. } | Error::SafeSum { .. } => at(&["safe", "strategy"]),
        Error::Margin { name, .. } if deepest(root, &["safe"]).child("cost").is_some() => {
            at(&["safe", "cost", name])
        }
        Error::Margin { name, .. } => at(&["safe", "margin", name]),
        Error::MarginCount { .. } => at(&["safe"]),
        // Only telling and snapshots raise the others, which no spec leads to.
        _ => SpecPlace::Whole,
    }
}

/// The node a path leads to, or the last one on the way that is there.
fn deepest<'a>(root: &'a Node, path: &[&str]) -> &'a Node {
    let mut node = root;
    for name in path {
        match node.child(name) {
            Some(child) => node = child,
            None => break,
        }
    }
    node
}

fn entry(root: &Node, list: &str, number: usize) -> SpecPlace {
    let node = deepest(root, &[list]);
    match &node.value {
        NodeValue::List(list) => {
            list.get(number)
                .map_or(node, |entry| deepest(entry, &["name"]))
                .place
        }
        _ => node.place,
    }
}

fn is_cost(root: &Node, name: &str) -> bool {
    root.child("cost")
        .is_some_and(|costs| costs.child(name).is_some())
}

/// What the world says of a quantity: there the first value as wanted, as lists may run over many lines.
fn in_world(root: &Node, name: &str, wanted: &dyn Fn(&Node) -> bool) -> SpecPlace {
    let path: &[&str] = if is_cost(root, name) {
        &["world", "cost", name]
    } else {
        &["world", "reward"]
    };
    let node = deepest(root, path);
    node.find(wanted).unwrap_or(node).place
}

fn is_number(node: &Node, value: f64) -> bool {
    node.number()
        // NaN is unequal to itself, yet it is the value that was refused.
        .is_some_and(|number| number == value || (number.is_nan() && value.is_nan()))
}

fn sums_to(node: &Node, sum: f64) -> bool {
    match &node.value {
        NodeValue::List(list) => {
            let numbers: Option<Vec<f64>> = list.iter().map(Node::number).collect();
            numbers.is_some_and(|numbers| {
                // Equal to the bit, as the lab adds the same numbers in the same order.
                let total: f64 = numbers.iter().sum();
                total == sum || (total.is_nan() && sum.is_nan())
            })
        }
        _ => false,
    }
}
