//! Values given beside the file: `horizon=1e9`, `cost.price.threshold=0.004`, `world.reward=[0.1, 0.2]`.
//!
//! A path names keys from the top, and costs by their names; a name with a dot is quoted. A value is TOML; a bare word is
//! a text. Whatever stood there is replaced.

use std::collections::BTreeMap;

use toml::de::DeValue;

use crate::spec::document::{Node, NodeValue};
use crate::spec::error::{Fault, Read, SpecPlace};
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

/// The keys of a path; none if one is empty or a quote stays open.
fn split(path: &str) -> Option<Vec<String>> {
    let (mut keys, mut rest) = (Vec::new(), path.trim());
    loop {
        let (key, after) = match rest
            .chars()
            .next()
            .filter(|&first| first == '"' || first == '\'')
        {
            Some(quote) => {
                let (key, after) = rest[1..].split_once(quote)?;
                (
                    key,
                    after
                        .strip_prefix('.')
                        .map(Some)
                        .or(after.is_empty().then_some(None))?,
                )
            }
            None => rest
                .split_once('.')
                .map_or((rest, None), |(key, after)| (key, Some(after))),
        };
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
    match DeValue::parse(value) {
        Ok(parsed) => Ok(Node::of(&parsed, &|_| place)),
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
        NodeValue::Table(table) => Ok(table.entry(key.to_owned()).or_insert_with(|| Node {
            value: NodeValue::Table(BTreeMap::new()),
            place,
        })),
        NodeValue::List(list) => match list
            .iter()
            .rposition(|entry| is_table(entry) && entry.is_named(key))
        {
            Some(index) => Ok(&mut list[index]),
            None if list.iter().any(is_table) => {
                let names = list.iter().filter_map(Node::name);
                Err(Fault::new(
                    place,
                    format!("{path} has no entry named {key:?}; {}", hint(key, names)),
                ))
            }
            None => Err(Fault::new(
                place,
                format!("{path} is a list; replace it as a whole, {path}=[..]"),
            )),
        },
        _ => Err(Fault::new(
            place,
            format!("{path} is not a table; it has no key {key:?}"),
        )),
    }
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
