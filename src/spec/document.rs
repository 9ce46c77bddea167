//! The text as a tree of values that know their places, before any of them has a meaning.
//!
//! Values are kept as written, not as the types a spec wants: an error can then show any of them with its line.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::spec::error::{Fault, Read, SpecError, SpecPlace};
use crate::spec::field::Field;
use crate::spec::overrides;
use crate::spec::spelling::{printable, shorten};

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct Node {
    pub value: NodeValue,
    pub place: SpecPlace,
}

/// What TOML can say, as far as a spec cares.
#[derive(Clone)]
pub(super) enum NodeValue {
    Text(String),
    /// An integer, 0 or more.
    Whole(u128),
    /// Any other number.
    Number(f64),
    /// What no key of a spec takes, as written: true, false, dates.
    Other(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

impl Node {
    /// A value of TOML; `place` says where an offset of it lies.
    pub fn of(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> SpecPlace) -> Self {
        let read = match value.get_ref() {
            DeValue::String(text) => NodeValue::Text(text.clone().into_owned()),
            DeValue::Integer(integer) => whole_or_number(integer),
            // The parser lets through nothing that Rust does not read.
            DeValue::Float(float) => NodeValue::Number(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => NodeValue::Other(boolean.to_string()),
            DeValue::Datetime(date) => NodeValue::Other(date.to_string()),
            DeValue::Array(list) => {
                NodeValue::List(list.iter().map(|entry| Self::of(entry, place)).collect())
            }
            DeValue::Table(table) => NodeValue::Table(entries(table, place)),
        };
        // A value begins on the line of its key, and a section's value is its header.
        Self {
            value: read,
            place: place(value.span().start),
        }
    }

    /// The entry of a table with this key, or of a list with this name: the last one, as a repeated name is its fault.
    pub fn child(&self, name: &str) -> Option<&Node> {
        match &self.value {
            NodeValue::Table(table) => table.get(name),
            NodeValue::List(list) => list.iter().rev().find(|entry| entry.is_named(name)),
            _ => None,
        }
    }

    /// Whether this is the text `name`, or a table that calls itself so.
    pub fn is_named(&self, name: &str) -> bool {
        self.name() == Some(name)
    }

    pub fn name(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            NodeValue::Table(table) => match &table.get("name")?.value {
                NodeValue::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self.value {
            NodeValue::Whole(whole) => Some(whole as f64),
            NodeValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// This node or the first below it that is as wanted.
    pub fn find(&self, wanted: &dyn Fn(&Node) -> bool) -> Option<&Node> {
        if wanted(self) {
            return Some(self);
        }
        match &self.value {
            NodeValue::List(list) => list.iter().find_map(|entry| entry.find(wanted)),
            NodeValue::Table(table) => table.values().find_map(|entry| entry.find(wanted)),
            _ => None,
        }
    }

    /// The keys that lead to the value at a place: the innermost, as a list of sections begins where its first section does.
    fn path_to(&self, place: SpecPlace) -> Option<Vec<String>> {
        let children: Vec<(String, &Node)> = match &self.value {
            NodeValue::List(list) => (0usize..)
                .map(|number| number.to_string())
                .zip(list)
                .collect(),
            NodeValue::Table(table) => table
                .iter()
                .map(|(key, node)| (key.clone(), node))
                .collect(),
            _ => Vec::new(),
        };
        let below = children.into_iter().find_map(|(key, node)| {
            let mut path = node.path_to(place)?;
            path.insert(0, key);
            Some(path)
        });
        below.or_else(|| (self.place == place).then(Vec::new))
    }

    /// The first value below that another tree has otherwise, with its path and both as messages show them.
    pub fn difference(&self, other: &Self, path: &str) -> Option<(String, String, String)> {
        let pairs = match (&self.value, &other.value) {
            (NodeValue::Table(one), NodeValue::Table(two)) => {
                let keys: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
                let pair = |key: &String| (key.clone(), one.get(key), two.get(key));
                keys.into_iter().map(pair).collect()
            }
            (NodeValue::List(one), NodeValue::List(two)) if one.len() == two.len() => {
                let numbers = (0..).map(|number: usize| number.to_string());
                let pairs = one.iter().zip(two).zip(numbers);
                pairs
                    .map(|((one, two), number)| (number, Some(one), Some(two)))
                    .collect()
            }
            _ => Vec::new(),
        };
        // A leaf, or two that are not of one kind. 1e6 and 1_000_000 are the same number.
        if pairs.is_empty() {
            let same = match (self.number(), other.number()) {
                (Some(one), Some(two)) => one == two,
                _ => self.shown() == other.shown(),
            };
            return (!same).then(|| (path.to_owned(), self.shown(), other.shown()));
        }
        let below = |key: &str| match path {
            "" => key.to_owned(),
            _ => format!("{path}.{key}"),
        };
        pairs
            .into_iter()
            .filter(|(key, ..)| !(path.is_empty() && key == "name"))
            .find_map(|(key, one, two)| match (one, two) {
                (Some(one), Some(two)) => one.difference(two, &below(&key)),
                _ => {
                    let shown = |node: Option<&Node>| node.map_or("none".to_owned(), Node::shown);
                    Some((below(&key), shown(one), shown(two)))
                }
            })
    }

    /// The value as a message shows it.
    pub fn shown(&self) -> String {
        match &self.value {
            NodeValue::Text(text) => format!("{:?}", shorten(text)),
            NodeValue::Whole(whole) => whole.to_string(),
            NodeValue::Number(number) => format!("{number:?}").trim_end_matches(".0").to_owned(),
            NodeValue::Other(text) => text.clone(),
            NodeValue::List(list) => format!("a list of {}", list.len()),
            NodeValue::Table(_) => "a table".to_owned(),
        }
    }
}

fn entries(table: &DeTable<'_>, place: &dyn Fn(usize) -> SpecPlace) -> BTreeMap<String, Node> {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().clone().into_owned(), Node::of(value, place)))
        .collect()
}

fn whole_or_number(integer: &DeInteger<'_>) -> NodeValue {
    let digits = integer.as_str();
    let radix = integer.radix();
    // 128 bits, not the 64 that TOML asks for: a key written as a number has as many.
    if let Ok(whole) = u128::from_str_radix(digits, radix) {
        return NodeValue::Whole(whole);
    }
    match i128::from_str_radix(digits, radix) {
        Ok(negative) => NodeValue::Number(negative as f64),
        // Beyond 128 bits: no rule allows it, so its size is all that matters.
        Err(_) => NodeValue::Number(digits.parse().unwrap_or(f64::INFINITY)),
    }
}

/// A spec's text, its overrides and the tree they give.
#[derive(Clone)]
pub(super) struct Document {
    file: String,
    text: String,
    /// Each override as `path=value`.
    overrides: Vec<String>,
    root: Node,
}

impl std::fmt::Debug for Document {
    /// Without the text, which may hold the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Document({:?})", self.file)
    }
}

impl Document {
    pub fn parse(
        text: &str,
        file: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, SpecError> {
        let shown = overrides
            .iter()
            .map(|(path, value)| shorten(&format!("{path}={value}")))
            .collect();
        // Empty at first: a text that is not TOML needs the document for its error.
        let mut document = Self {
            file: file.to_owned(),
            text: text.to_owned(),
            overrides: shown,
            root: Node {
                value: NodeValue::Table(BTreeMap::new()),
                place: SpecPlace::Whole,
            },
        };
        match read(text, overrides) {
            Ok(value) => document.root.value = value,
            Err(fault) => return Err(document.error(fault)),
        }
        Ok(document)
    }

    pub fn root(&self) -> &Node {
        &self.root
    }

    pub fn field(&self) -> Field<'_> {
        Field {
            path: String::new(),
            node: &self.root,
        }
    }

    /// The fault with its line and text.
    pub fn error(&self, fault: Fault) -> SpecError {
        let mut error = SpecError {
            origin: self.file.as_str().into(),
            line: None,
            column: None,
            field: self.path(&fault).map(Into::into),
            excerpt: None,
            message: fault.message.into(),
        };
        match fault.place {
            // What is missing stands nowhere.
            SpecPlace::Whole => {}
            SpecPlace::Override(number) => {
                error.origin = format!("override {}", self.overrides[number]).into();
            }
            SpecPlace::Text(offset) => {
                let (line, column, excerpt) = line_at(&self.text, offset);
                error.line = Some(line);
                error.column = Some(column);
                error.excerpt = Some(excerpt.into());
            }
        }
        error
    }

    /// The keys that lead to what is at fault.
    fn path(&self, fault: &Fault) -> Option<String> {
        let mut path = match fault.place {
            SpecPlace::Whole => Vec::new(),
            SpecPlace::Text(_) => self.root.path_to(fault.place)?,
            // An override names its path itself.
            SpecPlace::Override(_) => return None,
        };
        path.extend(fault.missing.clone());
        (!path.is_empty()).then(|| path.join("."))
    }
}

fn read(text: &str, overrides: &[(String, String)]) -> Read<NodeValue> {
    let table = DeTable::parse(text).map_err(|error| {
        let place = error
            .span()
            .map_or(SpecPlace::Whole, |span| SpecPlace::Text(span.start));
        Fault::new(place, format!("this is not TOML: {}", error.message()))
    })?;
    let mut root = Node {
        value: NodeValue::Table(entries(table.get_ref(), &SpecPlace::Text)),
        place: SpecPlace::Whole,
    };
    // In their order, so that the later of two wins.
    for (number, (path, value)) in overrides.iter().enumerate() {
        overrides::set(&mut root, path, value, SpecPlace::Override(number))?;
    }
    Ok(root.value)
}

/// The line of an offset, and the character within it, from 1; and the line's text. What stops short at the end of the text is
/// shown on its last line.
fn line_at(text: &str, offset: usize) -> (u64, u64, String) {
    // Bytes, as an offset of the parser need not lie between two characters.
    let bytes = &text.as_bytes()[..offset.min(text.len())];
    let before = if offset < text.len() {
        bytes
    } else {
        bytes.trim_ascii_end()
    };
    let start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
    // A line break precedes `start`, so it lies between two characters.
    let excerpt = text[start..]
        .lines()
        .next()
        .unwrap_or("")
        .replace('\t', "    ");
    let column = String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1;
    (
        line,
        column,
        excerpt
            .trim_end()
            .chars()
            .take(EXCERPT_MAX)
            .map(printable)
            .collect(),
    )
}

/// How much of a line an error shows: a list of a thousand means may stand on one.
const EXCERPT_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_offset() {
        let text = "one\r\ntwo\n\u{e9}\u{7}hree\n\n";
        let at = |offset| line_at(text, offset);
        assert_eq!(at(0), (1, 1, "one".into()));
        assert_eq!(at(5), (2, 1, "two".into()));
        assert_eq!(at(7), (2, 3, "two".into()));
        assert_eq!(at(9), (3, 1, "\u{e9}\u{fffd}hree".into()));
        assert_eq!(at(11), (3, 2, "\u{e9}\u{fffd}hree".into()));
        assert_eq!(at(text.len()), (3, 7, "\u{e9}\u{fffd}hree".into()));
        assert_eq!(at(text.len() + 5), (3, 7, "\u{e9}\u{fffd}hree".into()));
        assert_eq!(line_at("", 0), (1, 1, "".into()));
    }
}
