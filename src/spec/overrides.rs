//! Values given beside the file: `horizon=1e9`, `cost.price.threshold=0.004`, `world.reward=[0.1, 0.2]`.
//!
//! A path names keys from the top, and costs by their names; a name with a dot is quoted. A value is TOML; a bare word is
//! a text. Whatever stood there is replaced.

use std::collections::BTreeMap;

use toml::de::DeValue;

use crate::spec::document::{Node, NodeValue};
use crate::spec::error::{Fault, Read, SpecPlace};
use crate::spec::number::with_zeros;
use crate::spec::spelling::hint;

/// No key of a spec lies deeper; a longer path would only build a deep tree of unknown keys.
const DEPTH_MAX: usize = 8;

/// Puts a value at a path.
pub(super) fn set(root: &mut Node, path: &str, value: &str, place: SpecPlace) -> Read<()> {
    let keys = split(path).ok_or_else(|| {
        Fault::new(
            place,
            format!("{path:?} is not a path of keys; write one like cost.price.threshold"),
        )
    })?;
    let value = parse(value, keys.last().is_some_and(|key| key == "key"), place)?;
    let mut node = root;
    for (depth, key) in keys.iter().enumerate() {
        node = enter(node, key, &keys[..depth], place)?;
    }
    *node = value;
    Ok(())
}

/// The keys of a path; `None` if one is empty or a quote stays open.
fn split(path: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut rest = path.trim();
    loop {
        let (key, after) = first_key(rest)?;
        if key.is_empty() || keys.len() == DEPTH_MAX {
            return None;
        }
        keys.push(key.to_owned());
        match after {
            Some(after) => rest = after,
            None => return Some(keys),
        }
    }
}

/// The first key of a path, and what follows its dot.
fn first_key(path: &str) -> Option<(&str, Option<&str>)> {
    let Some(quote) = path
        .chars()
        .next()
        .filter(|first| ['"', '\''].contains(first))
    else {
        return Some(match path.split_once('.') {
            Some((key, after)) => (key, Some(after)),
            None => (path, None),
        });
    };
    let (key, after) = path[1..].split_once(quote)?;
    // Behind the closing quote only a dot or the end makes sense.
    if after.is_empty() {
        return Some((key, None));
    }
    Some((key, Some(after.strip_prefix('.')?)))
}

fn parse(value: &str, is_key: bool, place: SpecPlace) -> Read<Node> {
    let value = value.trim();
    let text = || Node {
        value: NodeValue::Text(value.to_owned()),
        place,
    };
    // As TOML, 32 hexadecimal digits may be a number, which would be another key.
    if is_key && value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text());
    }
    let parsed = DeValue::parse(value);
    if parsed.is_err()
        && let Ok(mended) = DeValue::parse(&with_zeros(value))
    {
        return Ok(Node::of(&mended, &|_| place));
    }
    match parsed {
        Ok(parsed) => Ok(Node::of(&parsed, &|_| place)),
        // What begins like TOML was meant as TOML; anything else is a bare word, since shells eat quotes.
        Err(error) if value.starts_with(['"', '\'', '[', '{']) => Err(Fault::new(
            place,
            format!("this is not a TOML value: {}", error.message()),
        )),
        Err(_) => Ok(text()),
    }
}

/// The entry `key` of a node, made if need be.
fn enter<'a>(
    node: &'a mut Node,
    key: &str,
    above: &[String],
    place: SpecPlace,
) -> Read<&'a mut Node> {
    let path = above.join(".");
    match &mut node.value {
        // A missing section is made, so that a spec without [service] can be given one; wrong keys are found later.
        NodeValue::Table(table) => Ok(table.entry(key.to_owned()).or_insert_with(|| Node {
            value: NodeValue::Table(BTreeMap::new()),
            place,
        })),
        NodeValue::List(list) => enter_list(list, key, &path, place),
        _ => Err(Fault::new(
            place,
            format!("{path} is not a table; it has no key {key:?}"),
        )),
    }
}

/// Entries of lists go by name, as `cost.price` does: by number, an override would change its meaning when a cost is added.
fn enter_list<'a>(
    list: &'a mut [Node],
    key: &str,
    path: &str,
    place: SpecPlace,
) -> Read<&'a mut Node> {
    let named = |entry: &Node| is_table(entry) && entry.is_named(key);
    // The last of a name, as `Node::child` has it.
    if let Some(index) = list.iter().rposition(named) {
        return Ok(&mut list[index]);
    }
    let message = if list.iter().any(is_table) {
        let names = list.iter().filter_map(Node::name);
        format!("{path} has no entry named {key:?}; {}", hint(key, names))
    } else {
        format!("{path} is a list; replace it as a whole, {path}=[..]")
    };
    Err(Fault::new(place, message))
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, NodeValue::Table(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_dots_outside_quotes() {
        let keys = |path: &str| split(path).map(|keys| keys.join("|"));
        assert_eq!(keys("horizon").as_deref(), Some("horizon"));
        assert_eq!(
            keys(" cost.price.threshold ").as_deref(),
            Some("cost|price|threshold")
        );
        assert_eq!(
            keys(r#"cost."a.b".threshold"#).as_deref(),
            Some("cost|a.b|threshold")
        );
        assert_eq!(
            keys("cost.'a \"b'.range").as_deref(),
            Some("cost|a \"b|range")
        );
        assert_eq!(
            keys("cost.my price.range").as_deref(),
            Some("cost|my price|range")
        );
        for wrong in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "\"a",
            "\"a\"b",
            "''",
            "a.b.c.d.e.f.g.h.i",
        ] {
            assert_eq!(keys(wrong), None, "{wrong}");
        }
    }
}
